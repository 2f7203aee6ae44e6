/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * How much a command does before others get their turn. Private to osd/.
 *
 * A record that is read, looked up or put takes some microseconds, so 8,192 of them some
 * hundredths of a second, on a slow machine too: that long others wait at most. What is more is
 * done in several turns, or in part, and the answer says where to go on; or the command is refused.
 */
#ifndef MUNINN_OSD_PORTIONS_H
#define MUNINN_OSD_PORTIONS_H

#include <stdint.h>

/* Records that a command works on in one turn. A little more, for what belongs to all of them. */
#define OSD_TURN_RECORDS_MAX 8448u

/* Tests make them little, so that few objects are enough for many steps. */
struct osd_portions {
	uint32_t members;    /* dealt with in one transaction; at most OSD_MEMBERS_PORTION */
	uint32_t candidates; /* that QUERY lists at once; at most OSD_CANDIDATES_PORTION */
	uint32_t turn; /* such portions before other commands get their turn, where matches are
			  returned */
	uint64_t search_work; /* of one SEARCH; at most EXPRESSION_WORK_MAX */
	uint32_t pages;       /* of data, read in one turn */
	uint32_t entries;     /* objects, versions or modifications, looked up for one answer */
	uint32_t objects;     /* members that one transaction is about, at most */
	uint32_t written;     /* pages that one command writes to, at most */
	/*
	 * A turn that deals with one object after the other ends, or the answer does, behind the
	 * one with which it has worked on so many records: each may have 256 pages of attributes.
	 */
	uint32_t records;
};
#define OSD_MEMBERS_PORTION    64u
#define OSD_CANDIDATES_PORTION 256u
#define OSD_TURN_PORTIONS      8u
#define OSD_PAGES_PORTION      2048u
#define OSD_ENTRIES_PORTION    2048u
#define OSD_RECORDS_PORTION    4096u
/* OSD_WRITE_BYTES_MAX in pages of 4 KiB, wherever they begin. */
#define OSD_WRITTEN_MAX 2049u

/* UNDO counts in so many turns at most, with those in which it begins again. */
#define OSD_TURNS_MAX 64u

/* Attributes that one command may touch: as much work as that many records. */
#define OSD_ATTRIBUTE_VISITS_MAX (1u << 17)
/* The target cuts a list whose entries have had so many. */
#define OSD_ATTRIBUTE_VISITS_PORTION (1u << 15)

#endif
