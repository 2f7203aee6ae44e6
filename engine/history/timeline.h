/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Rollbacks. One at sequence number r to b hides the numbers between b and r from every reader
 * whose bound is r or more; to others all is as it was. So what a reader sees is always one line of
 * history, without branches, and everything above works as if what is hidden had never been.
 * Rollbacks are kept in memory, and in records of the root. Those of single objects hide their data
 * only: see object_rollbacks.h.
 */
#ifndef MUNINN_ENGINE_HISTORY_TIMELINE_H
#define MUNINN_ENGINE_HISTORY_TIMELINE_H

#include "engine/history/object_rollbacks.h"
#include "engine/objects/keys.h"
#include "engine/records/access.h"

#define ROLLBACK_BYTES  14
#define ROLLBACKS_CHUNK 32 /* entries of a record */

struct engine;
struct engine_txn;

struct rollback {
	uint64_t at, to;
	uint32_t number; /* of its place in the records */
	uint16_t scope;  /* partition index; 0: the whole device */
};

struct timeline {
	struct record_timeline asked; /* what the record store calls */
	struct rollback *list;        /* by scope and `at` */
	uint32_t count, capacity;
	/*
	 * How often one was looked at whether it is still seen, and at which place those of others
	 * are to be: see unseen.c.
	 */
	uint32_t looked, looked_others;
	/* The one whose place the newest one has taken, until that is committed. */
	struct rollback replaced;
	uint64_t replaced_by; /* at; 0: none */
	struct object_rollbacks objects;
};

/* Reads the `count` rollbacks on record, and those of single objects. -EBADMSG, -EIO, -ENOMEM. */
int timeline_load(struct engine *engine, uint32_t count, uint32_t of_objects);
void timeline_free(struct timeline *timeline);

/* The last rollback that a reader at `bound` of a partition is behind; NULL: none. */
const struct rollback *timeline_last(const struct timeline *timeline, uint16_t partition,
				     uint64_t bound);

/*
 * Notes a rollback, now and at the place `rollback.number` of the records: the one behind the last,
 * or that of `replaced` (NULL: of none), which is forgotten. timeline_undo takes it back, or one of
 * an object. -ENOSPC, -EIO, -ENOMEM.
 */
int timeline_add(struct engine_txn *txn, struct rollback rollback, const struct rollback *replaced);
void timeline_undo(struct timeline *timeline, uint64_t at);

/* The first rollback of the device behind `bound`; RECORD_NEWEST: there is none. */
uint64_t timeline_next(const struct timeline *timeline, uint64_t bound);

/* The rollbacks of one scope: from where in the list, and how many. */
uint32_t timeline_of(const struct timeline *timeline, uint16_t scope, uint32_t *count);

/*
 * Those of a scope from `since` on, when the partition was created: what its index has before are
 * an earlier one's.
 */
uint32_t timeline_own(const struct timeline *timeline, uint16_t scope, uint64_t since);

/* These of a partition, and all of the device. */
uint32_t timeline_count(const struct timeline *timeline, uint16_t partition, uint64_t since);

#endif
