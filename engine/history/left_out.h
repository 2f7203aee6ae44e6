/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Partitions that moments of the device leave out. A partition is left out from the slot in which
 * its policy becomes "none" until it gets another one; earlier moments show it. A rollback of the
 * device to a moment that does not show a partition leaves that one as it is now, there or gone.
 *
 * A partition has one such stretch. When its policy becomes "none" again while the device has
 * moments from before the stretch's end, the stretch goes on from where it began. Byte layout in
 * docs/objects.md.
 */
#ifndef MUNINN_ENGINE_HISTORY_LEFT_OUT_H
#define MUNINN_ENGINE_HISTORY_LEFT_OUT_H

#include "engine/history/past.h"

/* The first bound >= `bound` at which the device shows a partition; RECORD_NEWEST: none yet. */
uint64_t left_out_pass(const struct history *history, uint64_t bound);

/*
 * Lowers `*lowest` to the first moment >= `sequence` that the device keeps at intervals and that
 * shows a partition of this history. `device` = the root's. -EIO, -EBADMSG.
 */
int left_out_lower_by_interval(struct engine *engine, const struct history *history,
			       const struct history *device, uint64_t sequence, uint64_t *lowest);

/*
 * Sets *shows if a version or another moment of the device from `from` to `to` shows a partition of
 * this history. -EIO, -EBADMSG.
 */
int left_out_shows(struct engine *engine, struct partition *root, const struct history *history,
		   uint64_t from, uint64_t to, bool *shows);

/*
 * The policy of a partition has been changed: its stretch begins, goes on, or ends. `root`: pinned.
 * -EIO, -EBADMSG.
 */
int left_out_follow(struct engine_txn *txn, struct partition *root, struct partition *partition);

/*
 * Whether the device's moment `bound`, which can be reached, shows what partition `id` was then.
 * -ENOENT: it was left out, or was not there. -EIO, -EBADMSG.
 */
int left_out_check(struct engine *engine, uint64_t id, uint64_t bound);

/*
 * The same by what a partition's own history says, whoever had its ID then. 0: it is part of the
 * moment, there or not.
 */
int left_out_reaches(struct engine *engine, struct partition *partition, uint64_t bound);

/* An element of the table of partitions. is_nothing: its index has another owner, or none. */
struct left_out_element {
	uint64_t element;
	bool is_nothing;
};

/* The partitions that a rollback of the device leaves as they are. */
struct left_out {
	struct left_out_element *elements;
	uint32_t count, capacity;
};

/* Finds the partitions that were there at `bound`, but are left out of it. -ENOMEM, ... */
int left_out_find(struct engine *engine, uint64_t bound, struct left_out *found);
void left_out_free(struct left_out *found);

/*
 * Keeps the found partitions as they are, in the transaction that has rolled back the device.
 * `root` is pinned, in the state after the rollback; the caller marks its history. -ENOSPC, ...
 */
int left_out_keep(struct engine_txn *txn, struct partition *root, const struct left_out *found);

#endif
