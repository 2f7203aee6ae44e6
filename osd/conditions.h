/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Unit attentions that an initiator has not been told yet: what a logical unit remembers between
 * commands. Private to osd/. Thread-safe; all in memory.
 */
#ifndef MUNINN_OSD_CONDITIONS_H
#define MUNINN_OSD_CONDITIONS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Nexuses that are known at a time. For another one, the unit forgets the one that was silent
 * longest.
 */
#define OSD_NEXUSES_MAX 256

/* In the order in which they are reported. */
enum osd_attention {
	OSD_ATTENTION_RESET,   /* of the logical unit */
	OSD_ATTENTION_CLEARED, /* another initiator ended commands of this one */
	OSD_ATTENTION_FORMATTED,
	OSD_ATTENTION_RESTORED, /* a partition, or everything, is as it was earlier */
	OSD_ATTENTION_KEYS_CHANGED,
	OSD_ATTENTIONS
};

struct osd_conditions;

/* NULL: no memory. */
struct osd_conditions *osd_conditions_create(void);
void osd_conditions_destroy(struct osd_conditions *conditions);

/* `nexus` caused it: all other known ones are to be told. */
void osd_attention_raise(struct osd_conditions *conditions, uint64_t nexus,
			 enum osd_attention attention);

/* `nexus` alone is to be told, if it is known. */
void osd_attention_raise_for(struct osd_conditions *conditions, uint64_t nexus,
			     enum osd_attention attention);

/* How many attentions a nexus has not been told, and the first of them. Leaves them untold. */
unsigned osd_attention_look(struct osd_conditions *conditions, uint64_t nexus,
			    enum osd_attention *attention);

/*
 * Notes that a nexus is there (0: nobody), and takes the first attention that it has not been told.
 * False: there is none.
 */
bool osd_attention_take(struct osd_conditions *conditions, uint64_t nexus,
			enum osd_attention *attention);

/* enum scsi_sense_code of an attention; the key is UNIT ATTENTION. */
uint16_t osd_attention_code(enum osd_attention attention);

#endif
