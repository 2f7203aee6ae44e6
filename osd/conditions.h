/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What a logical unit remembers of the sessions of its initiators (I_T nexuses): unit attentions
 * that they have not been told yet, and the partitions that they use. Private to osd/. Thread-safe;
 * all in memory.
 */
#ifndef MUNINN_OSD_CONDITIONS_H
#define MUNINN_OSD_CONDITIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "osd/osd.h"
#include "wire/wire.h"

/*
 * Nexuses that are known at a time. For another one, the unit forgets the one that was silent
 * longest.
 */
#define OSD_NEXUSES_MAX 256

/* Partitions that are noted of each. A session that uses more counts as using every partition. */
#define OSD_USED_PARTITIONS_MAX 16

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

/* Makes the unit one of those of its device, until it is destroyed. */
void osd_conditions_join(struct osd_conditions *conditions, struct osd_units *units);

/*
 * `nexus` caused it: all other known ones are to be told. If it concerns one partition, only those
 * that use it; 0: everybody. What becomes of data is also told to such sessions of the other units
 * of the device, the causer's among them.
 */
void osd_attention_raise(struct osd_conditions *conditions, uint64_t nexus, uint64_t partition,
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

/*
 * Notes that a nexus that is there uses a partition. `initiator`: as in struct osd_command; NULL:
 * not known.
 */
void osd_use_note(struct osd_conditions *conditions, uint64_t nexus, uint64_t partition,
		  const char *initiator);

/*
 * How many nexuses use a partition (0: any at all), through this unit, but for `nexus`, or through
 * another one of the device, and the names of their initiators, each once, a blank between two;
 * what does not fit is left out.
 */
unsigned osd_users(struct osd_conditions *conditions, uint64_t nexus, uint64_t partition,
		   char names[OSD_SENSE_USERS_BYTES + 1]);

/* Forgets the nexuses that have ended, of all units of the device. */
void osd_nexuses_forget(struct osd_conditions *conditions, osd_is_logged_in *is_logged_in,
			void *context);

#endif
