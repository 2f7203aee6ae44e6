/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Rollbacks of single objects. One at sequence number r to b hides the data that was put into the
 * object between b and r from every reader whose bound is r or more, as a rollback of a partition
 * does with everything (timeline.h). The object's onode is put again as it was, which is a
 * modification like any other; so only data is hidden. Kept in memory, and in records of the root.
 */
#ifndef MUNINN_ENGINE_HISTORY_OBJECT_ROLLBACKS_H
#define MUNINN_ENGINE_HISTORY_OBJECT_ROLLBACKS_H

#include "engine/objects/keys.h"
#include "engine/records/access.h"

#define OBJECT_ROLLBACK_BYTES  22
#define OBJECT_ROLLBACKS_CHUNK 16 /* entries of a record */

struct engine_txn;

struct object_rollback {
	uint64_t identifier;
	uint64_t at, to;
	uint32_t number;    /* of its place in the records */
	uint16_t partition; /* index */
	bool alone; /* its transaction put no data, as far as that is known: not when it was read
		       from a record */
};

struct object_rollbacks {
	struct object_rollback *list; /* by partition, identifier and `at` */
	uint32_t count, capacity;
	uint32_t looked; /* how often one was looked at whether it is still seen: see
			    unseen_object.c */
	/* The one whose place the newest one has taken, until that is committed. */
	struct object_rollback replaced;
	uint64_t replaced_by; /* at; 0: none */
};

/* Reads the `count` ones on record. -EBADMSG, -EIO, -ENOMEM. */
int object_rollbacks_load(struct object_rollbacks *rollbacks, struct record_store *store,
			  uint32_t count);
void object_rollbacks_free(struct object_rollbacks *rollbacks);

/* The last one at or before `bound` of the object that a key of data belongs to; NULL: none. */
const struct object_rollback *object_rollbacks_last(const struct object_rollbacks *rollbacks,
						    const struct record_key *key, uint64_t bound);

/* How many of the object's own ones a reader at `bound` goes by, at most `max`. */
uint32_t object_rollbacks_steps(const struct object_rollbacks *rollbacks,
				const struct record_key *key, uint64_t bound, uint32_t max);

/*
 * Those of one object, or (identifier 0) of a partition index: from where in the list, and how
 * many.
 */
uint32_t object_rollbacks_of(const struct object_rollbacks *rollbacks, uint16_t partition,
			     uint64_t identifier, uint32_t *count);

/*
 * Notes one, now and at the place `rollback.number` of the records: the one behind the last, or
 * that of `replaced` (NULL: of none), which is forgotten. object_rollbacks_undo takes it back.
 * -ENOSPC, -EIO, -ENOMEM.
 */
int object_rollbacks_add(struct engine_txn *txn, struct object_rollback rollback,
			 const struct object_rollback *replaced);
void object_rollbacks_undo(struct object_rollbacks *rollbacks, uint64_t at);

/* The one at `at` has been committed, by a transaction that put no data. */
void object_rollbacks_alone(struct object_rollbacks *rollbacks, uint64_t at);

#endif
