/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Slots of sequence numbers, and when they were. Records of one slot may absorb one another, so the
 * state of a partition is exact at the end of each slot only; a slot ends with a snapshot, a
 * rollback, or when history_interval_ms have passed. The table of times has an entry for every slot
 * in which something was committed, in chunks that are records.
 *
 * Recorded times never go down: what is committed while the clock is behind the last recorded time
 * has that time. Only an administrator begins anew, with a time epoch (time_epoch.c). Whatever was
 * before counts as having been when the time epoch began.
 */
#ifndef MUNINN_ENGINE_HISTORY_TIMES_H
#define MUNINN_ENGINE_HISTORY_TIMES_H

#include "engine/history/history.h"

#define TIMES_ENTRY_BYTES   32
#define TIMES_CHUNK_ENTRIES 16

/* A clock that is behind the last recorded time by more than this is warned of. */
#define TIMES_BEHIND_MS 2000

/* A slot. */
struct times_entry {
	uint64_t sequence, ms; /* of its first commit */
	/*
	 * Of the last commit before it. After a restart that is not known any more: the time is
	 * then the one at which its slot began.
	 */
	uint64_t before_sequence, before_ms;
	uint64_t put_bytes; /* of all records that were ever put before it */
};

void times_entry_encode(const struct times_entry *entry, uint8_t *to);
void times_entry_decode(struct times_entry *entry, const uint8_t *from);

/*
 * The last end of a slot that was over at `ms`; 0: history begins later. If all that is committed
 * was, the present is made one: the next writing transaction begins a slot.
 */
int times_boundary(struct engine *engine, const struct history *device, uint64_t ms,
		   uint64_t *bound);

/*
 * The last end of a slot not behind `sequence` where nothing follows in the slot; 0: history begins
 * later.
 */
int times_boundary_of(struct engine *engine, const struct history *device, uint64_t sequence,
		      uint64_t *bound);

/*
 * The slot that ends at `bound` was the newest state from *ms to *last_ms. -ENOENT: before the
 * table.
 */
int times_of_boundary(struct engine *engine, const struct history *device, uint64_t bound,
		      uint64_t *ms, uint64_t *last_ms);

/* When the first slot of the table was over. -ENOENT: there is none. */
int times_first_boundary(struct engine *engine, const struct history *device, uint64_t *ms);

/*
 * The recorded time at which the slot of `sequence` began, in whatever time epoch. 0: before the
 * table.
 */
int times_of(struct engine *engine, const struct history *device, uint64_t sequence, uint64_t *ms);

/*
 * The first end of a slot behind `sequence` by which `bytes` more had been put than at `sequence`;
 * the end of the present slot if so much has not been put yet.
 */
int times_boundary_after(struct engine *engine, const struct history *device, uint64_t sequence,
			 uint64_t bytes, uint64_t *bound);

/* Bytes of the records that were put since the slot that ends at `bound`. */
int times_put_since(struct engine *engine, const struct history *device, uint64_t bound,
		    uint64_t *bytes);

/* Notes the slot of a transaction that is about to be committed. -ENOSPC, -EIO. */
int times_note(struct engine_txn *txn);

/*
 * After a recovery without NVRAM: what was found, up to the number `committed`, may be newer than
 * the table of times. Its time is not known and counts as now. Puts a record unless the table goes
 * so far. -ENOSPC, -EIO, -EBADMSG.
 */
int times_note_found(struct engine *engine, uint64_t committed);

/* Drops some chunks that hold only entries older than `sequence`. -ENOSPC, -EIO. */
int times_forget(struct engine_txn *txn, struct partition *root, uint64_t sequence);

#endif
