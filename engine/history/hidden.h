/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What rollbacks hide. A rollback at sequence number r, back to b, makes an interval. It hides the
 * numbers between b and r from every reader whose bound is r or more. Other readers see everything
 * as before. So each reader sees one line of history, without branches, and no code above has to
 * know what is hidden.
 *
 * An interval's scope is the device, a partition, or one object. The interval of an object hides
 * only its data: the rollback puts the old onode once more, like any other modification. All
 * intervals are in memory, and in one table of the root.
 *
 * Limits, and what ends with -EFBIG there (docs/objects.md, "How many there may be"):
 *
 *  limit                      who meets it                        what is refused
 *  ENGINE_HIDDEN_MAX less     a partition, the device, or all     the fast lane of its rollback; of
 *  all that there are         objects of a partition together     an object, the interval: the
 *                                                                 data is put again
 *  ENGINE_HIDDEN_OWN          the same, when the first is lower   nothing up to here, whatever
 *                                                                 others have
 *  ENGINE_HIDDEN_STEPS        a partition's or the device's       the fast lane of its rollback
 *                             readers, following one by one
 *  STEPS_MANY, STEPS_MAX in   an object's readers, the same       the interval: the data is put
 *  rollback_object.c                                              again
 *  none: hidden_add_beside    a partition that a rollback of      nothing: at most one a partition
 *                             the device leaves as it is          for each rollback of the device
 *  HIDDEN_SLOW_MAX            rollbacks of the slow lane          its rollback
 *  HIDDEN_MAX                 nobody: the sum of all above        nothing: bounds what is loaded
 */
#ifndef MUNINN_ENGINE_HISTORY_HIDDEN_H
#define MUNINN_ENGINE_HISTORY_HIDDEN_H

#include "engine/history.h"
#include "engine/history/hidden_chunks.h"
#include "engine/history/hidden_targets.h"

/* With so many the slow lane ends: eight months of rollbacks as fast as it goes. */
#define HIDDEN_SLOW_MAX (UINT32_C(1) << 22)

/*
 * There are never more: those that all share and those of the slow lane; of each index its own ones
 * and its objects' own ones; and of each index those that hidden_add_beside added: one with the
 * last interval of the device that all share, and one with each of the device's own.
 */
#define HIDDEN_MAX        (HIDDEN_SLOW_MAX + (3 * ENGINE_HIDDEN_OWN + 1) * (UINT16_MAX + 1))
#define HIDDEN_CHUNKS_MAX (HIDDEN_MAX / HIDDEN_CHUNK_FULL + 1)

struct engine;
struct engine_txn;

struct hidden {
	struct record_hidden asked;   /* what the record store calls */
	struct hidden_interval *list; /* by partition, identifier and `at` */
	uint32_t count, capacity;
	struct hidden_targets targets; /* the same, by what they go back to */
	/* On record: how many bytes each chunk has. */
	uint16_t *lengths;
	uint32_t chunks, chunks_capacity;
	/* The transaction that added the newest ones, and how many chunks there were before. */
	uint64_t added_by;
	uint32_t chunks_before;
	/* Rounds over the list: see hidden_review.h. */
	uint32_t reviewed, due;
	bool is_short; /* one was refused since the last interval was dropped */
};

/*
 * Reads those of the first `chunks` chunks. -EBADMSG, -EIO, -ENOMEM. Of a device that is recovered
 * without its NVRAM some may be lost; hidden_mend puts empty ones in their places.
 */
int hidden_load(struct engine *engine, uint32_t chunks);
void hidden_mend(struct engine *engine);
void hidden_free(struct hidden *hidden);

/* ---- what is hidden ---- */

/*
 * The last interval of a partition, or of the device, that a reader at `bound` of the partition is
 * behind; NULL: none.
 */
const struct hidden_interval *hidden_last(const struct hidden *hidden, uint16_t partition,
					  uint64_t bound);

/* The last one of just this scope at or before `bound`; NULL: none. */
const struct hidden_interval *hidden_last_of(const struct hidden *hidden, uint16_t partition,
					     uint64_t identifier, uint64_t bound);

/* The first one of just this scope behind `bound`: its number; RECORD_NEWEST: there is none. */
uint64_t hidden_next_of(const struct hidden *hidden, uint16_t partition, uint64_t identifier,
			uint64_t bound);

/* How many of one scope a reader at `bound` goes by, at most `max`. */
uint32_t hidden_steps(const struct hidden *hidden, uint16_t partition, uint64_t identifier,
		      uint64_t bound, uint32_t max);

/*
 * Those of a partition index with identifiers from `first` to `last`: from where in the list, and
 * how many.
 */
uint32_t hidden_range(const struct hidden *hidden, uint16_t partition, uint64_t first,
		      uint64_t last, uint32_t *count);

/* Those of a partition, and of the device; not those of objects. */
uint32_t hidden_count(const struct hidden *hidden, uint16_t partition);

/* ---- changes ---- */

/* Whether the scope has as many as it may have (engine/history.h); then it is noted that some are
 * short. */
bool hidden_is_beyond(struct hidden *hidden, const struct hidden_interval *interval);

/*
 * Adds one, at the number of the transaction, to a chunk with space for it. The caller stores
 * `chunks` in the root's history. hidden_undo takes back all of a transaction. -EFBIG: the scope
 * has as many as it may have (engine/history.h). -ENOSPC, -EIO, -ENOMEM.
 */
int hidden_add(struct engine_txn *txn, struct hidden_interval interval);

/*
 * The same of one that is never refused: of the slow lane; or that the transaction's rollback of
 * the device needs for a partition.
 */
int hidden_add_beside(struct engine_txn *txn, struct hidden_interval interval);
void hidden_undo(struct hidden *hidden, uint64_t at);

/* The transaction that rolled back an object has put data, too. -ENOSPC, -EIO. */
int hidden_follow(struct engine_txn *txn);

/*
 * Drops some intervals, given in the order of the list, in a transaction of its own. The caller
 * knows that no reader needs them. Errors leave all as it was.
 */
int hidden_drop(struct engine *engine, const struct hidden_interval *dropped, uint32_t count);

/* Drops all of a partition index and of its objects. No moment shows the partition any more. */
int hidden_drop_partition(struct engine *engine, uint16_t partition);

#endif
