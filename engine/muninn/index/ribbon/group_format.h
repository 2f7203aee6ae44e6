/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Every byte of a group's image: what the ribbon index says of sealed segments that follow each
 * other in age. The same on flash and in memory, but that what is behind the far plane is not
 * kept in memory. Described for readers in docs/explanation/ribbon.md; little-endian throughout.
 *
 *   header, 64 bytes
 *   members, 32 bytes each
 *   tags of runs, 4 bytes for each of their pages, the oldest member first
 *   near plane, at a multiple of 64: for each 64 rows 8 words, a column each
 *   far plane: for each 64 rows a word for each other column
 *   entries that the ribbon could not take, 8 bytes each
 *   ranges of old records, which are the store's (format.h)
 *   CRC-32C of the tags, 4 bytes, and tags of the ribbon's entries, those that it could not take
 *   among them
 */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_RIBBON_GROUP_FORMAT_H
#define MUNINN_ENGINE_MUNINN_INDEX_RIBBON_GROUP_FORMAT_H

#include "engine/muninn/format.h"

#define RIBBON_VERSION 6
/*
 * That can be read: no runs. With 4 no record spans pages; with 5 none of a buffer is larger than
 * its cells.
 */
#define RIBBON_VERSION_OLDEST 3

#define GROUP_MAGIC UINT32_C(0x4e42524d) /* "MRBN" */

enum {
	GROUP_MAGIC_AT = 0,        /* 4 */
	GROUP_VERSION_AT = 4,      /* 4: RIBBON_VERSION */
	GROUP_ROW_AT = 8,          /* 4 */
	GROUP_NUMBER_AT = 12,      /* 4: of the group in its row */
	GROUP_MEMBERS_AT = 16,     /* 4: segments, up to GROUP_SEGMENTS */
	GROUP_STARTS_AT = 20,      /* 4: rows of the ribbon that a key may begin at */
	GROUP_FAILED_AT = 24,      /* 4: entries that the ribbon could not take */
	GROUP_CRC_AT = 28,         /* 4: of all in front of the tags with this field zero */
	GROUP_ENTRIES_AT = 32,     /* 4: all of them */
	GROUP_COLUMNS_AT = 36,     /* 1: of the ribbon */
	GROUP_FINGERPRINT_AT = 37, /* 1: of them, the first ones: the fingerprint */
	GROUP_LOCATIONS_AT = 38,   /* 2: the next columns are a number below this: where in its
				      segment; the columns behind them are the member */
	GROUP_APPENDED_AT = 40,    /* 4: bytes of ranges */
	GROUP_TAGS_AT = 44,        /* 4: bytes of tags and their CRC; 0: there are none */
	GROUP_JOINS_AT = 48,       /* 4: numbers, from its own on, whose groups it took the place
				      of; 0: it never took another's */
	GROUP_HEADER_BYTES = 64,   /* from 52 on zero */
};

enum {
	MEMBER_SEGMENT_AT = 0,         /* 4: physical segment */
	MEMBER_RECORDS_AT = 4,         /* 4: bits 19-0 records; bits 31-20 pages of its runs */
	MEMBER_SERIAL_AT = 8,          /* 8: of the segment's buffer */
	MEMBER_FIRST_SEQUENCE_AT = 16, /* 6: lowest sequence number in it */
	MEMBER_LAST_SEQUENCE_AT = 22,  /* 6: highest */
	MEMBER_SIZE_AT = 28, /* 4: bits 24-0 bytes of headers and values; bit 29: its runs are its
				first pages, and have no entries; bit 30: keys have candidates in
				it; bit 31: none of its records was moved */
	MEMBER_BYTES = 32,
};

enum {
	MEMBER_RECORDS_BITS = 20,
	MEMBER_SIZE_BITS = 25,
	MEMBER_RUNS_BIT = 29,
	MEMBER_CANDIDATES_BIT = 30,
	MEMBER_ORDERED_BIT = 31,
	MEMBER_RUN_PAGES_MAX = (1 << (32 - MEMBER_RECORDS_BITS)) - 1,
};

/*
 * The tag of a page of runs: that of its first record, or one less if the page before has nothing
 * with that tag. Records of runs are in the order of their tags, so these tell which pages may have
 * one. Pages of larger records, behind those of runs, have the highest tag (ribbon_arrange.h).
 */
enum { RUN_TAG_BYTES = 4 };
#define APART_TAG UINT32_MAX

/* An entry that failed: tag (4), location (2), member (1), zero (1). */
enum {
	FAILED_TAG_AT = 0,
	FAILED_LOCATION_AT = 4,
	FAILED_MEMBER_AT = 6,
	FAILED_BYTES = 8,
};

/*
 * A tag: twice what it is more than the tag before it, or than 0; one more if its entry failed. In
 * bytes of 7 bits, the lowest first; all but the last have bit 7 set. In the order of the numbers
 * that the ribbon is asked for: by tag, and entries of one tag from the newest to the oldest.
 */
enum { TAGS_CRC_BYTES = 4, TAG_BYTES_MAX = 5 };

static_assert((uint64_t)MUNINN_SEGMENT_PAGES_MAX *
			      (MUNINN_PAGE_BYTES_MAX / RECORD_HEADER_BYTES + 1) <
		      1 << MEMBER_RECORDS_BITS,
	      "the records of a segment can be counted");
static_assert((uint64_t)MUNINN_SEGMENT_PAGES_MAX * (MUNINN_PAGE_BYTES_MAX + RECORD_HEADER_BYTES) <
		      1 << MEMBER_SIZE_BITS,
	      "the bytes of a segment can be counted");

#endif
