/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Damage that commands have met since the unit was opened, for the error recovery pages. Private to
 * osd/. Thread-safe. It is all in memory, because OBJECT STRUCTURE CHECK finds it again.
 *
 * Addresses are those of the wire, bits of versions included: an old version may be damaged where
 * the present is not.
 */
#ifndef MUNINN_OSD_DAMAGE_H
#define MUNINN_OSD_DAMAGE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct osd_request;

/* Damaged objects that are remembered. Another one replaces the one that was met longest ago. */
#define OSD_DAMAGED_OBJECTS_MAX 256

/* The two low bits of a DAMAGE SUMMARY. */
enum osd_damage_kind {
	OSD_DAMAGE_CONTENT =
		1 << 0, /* data of a user object; of others the list of what they contain */
	OSD_DAMAGE_ATTRIBUTES = 1 << 1,
};

struct osd_damaged_object {
	uint64_t partition, object;         /* object 0: a partition, both 0: the root */
	uint8_t kinds;                      /* enum osd_damage_kind; 0: free */
	bool unchecked;                     /* met by another command than OBJECT STRUCTURE CHECK */
	uint64_t content_ms, attributes_ms; /* when last met; 0: never */
};

struct osd_damage_log {
	pthread_mutex_t lock;
	uint64_t commands;          /* that ended with MEDIUM ERROR */
	uint64_t partition, object; /* what the latest of them addressed */
	struct osd_damaged_object objects[OSD_DAMAGED_OBJECTS_MAX];
};

/* What the error recovery page of one object tells. */
struct osd_damage_summary {
	uint8_t kinds; /* of itself */
	uint64_t content_ms, attributes_ms;
	uint8_t contained_kinds; /* of what is in it */
	uint64_t contained_ms;
	uint64_t contained; /* damaged partitions in the root, damaged objects in a partition */
	bool unchecked;     /* another command than OBJECT STRUCTURE CHECK met some of that */
};

void osd_damage_init(struct osd_damage_log *log);
void osd_damage_destroy(struct osd_damage_log *log);

/* `checked`: OBJECT STRUCTURE CHECK has found it. */
void osd_damage_note(struct osd_damage_log *log, uint64_t partition, uint64_t object,
		     enum osd_damage_kind kind, uint64_t now_ms, bool checked);
/* The object was found whole, or is not there any more. */
void osd_damage_clear(struct osd_damage_log *log, uint64_t partition, uint64_t object);
/* The same of a partition (0: of the root) and everything in it. */
void osd_damage_clear_all(struct osd_damage_log *log, uint64_t partition);
struct osd_damage_summary osd_damage_read(struct osd_damage_log *log, uint64_t partition,
					  uint64_t object);

/*
 * At the end of every command: notes the damage that it ended with, or forgets damage of what it
 * removed.
 */
void osd_damage_settle(struct osd_request *request);

#endif
