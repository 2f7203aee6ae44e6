/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * How long what may be shown is kept for it. The bounds that clones stand on: as long as the clone
 * is there, and then as long as a version or any other moment that can be reached shows it, for
 * there it still reads its source. The index of a partition that is gone: as long as a moment of
 * the device shows the partition, so that a rollback of the device may bring it back, or a clone
 * stands on it.
 */
#ifndef MUNINN_ENGINE_HISTORY_STANDING_H
#define MUNINN_ENGINE_HISTORY_STANDING_H

#include "engine/history/past.h"

/*
 * The owner of an index: a partition that is there, or, with its history alone, one that is gone.
 */
struct source {
	struct partition *partition; /* pinned, or &left; one that nobody has was created at 0 */
	struct partition left;
	struct history left_history;
	bool is_gone;
};

/* Finds the owner of an index. 0 or -EIO, -EBADMSG, -ENOMEM. */
int source_open(struct engine *engine, uint16_t index, struct source *source);
void source_close(struct engine *engine, struct source *source);

/* Stores what a transaction has changed about its history. -ENOSPC, -EIO. */
int source_changed(struct engine_txn *txn, struct source *source);

/*
 * Gives `bound` of a current partition free if clones stood on it that nothing shows any more.
 * -EBUSY: one is still shown, and nothing has changed. Other errors: see engine.h.
 */
int standing_release(struct engine_txn *txn, struct partition *partition, uint64_t bound);

/*
 * Looks at some of the bounds that clones stood on, and of the indices of partitions that are gone,
 * going round all of them call by call, and gives free what nothing shows any more. The caller has
 * the turn, and no transaction is open. Errors leave everything as it is.
 */
void standing_review(struct engine *engine);

/*
 * Room is short: of some partitions that are gone what only they keep goes first, their versions
 * and policies. Should one come back, it has the device's. -EAGAIN: there is nothing, or what is
 * locked. The caller has the turn, and no transaction is open.
 */
int standing_give_up(struct engine *engine);

#endif
