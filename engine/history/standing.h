/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What partitions keep for clones and for coming back.
 *
 * A bound that a clone stands on is kept while the clone is there, and then while a moment that
 * can be reached shows the clone: at that moment it still reads its source.
 *
 * A removed partition keeps its index while a moment of the device shows it, since a rollback of
 * the device may bring it back, and while a clone stands on it.
 */
#ifndef MUNINN_ENGINE_HISTORY_STANDING_H
#define MUNINN_ENGINE_HISTORY_STANDING_H

#include "engine/history/past.h"

/* The owner of an index: a partition that is there, or the history of one that is gone. */
struct source {
	struct partition *partition; /* pinned, or &left, created at 0 if nobody has the index */
	struct partition left;
	struct history left_history;
	bool is_gone;
};

/* Finds it. -EIO, -EBADMSG, -ENOMEM. */
int source_open(struct engine *engine, uint16_t index, struct source *source);
void source_close(struct engine *engine, struct source *source);

/* Its history has changed. -ENOSPC, -EIO. */
int source_changed(struct engine_txn *txn, struct source *source);

/*
 * Frees `bound` of a current partition from clones that nothing shows any more. -EBUSY: something
 * shows one of them; nothing has changed.
 */
int standing_release(struct engine_txn *txn, struct partition *partition, uint64_t bound);

/*
 * Looks at some bounds that clones stood on and some indices of removed partitions, and frees those
 * that nothing needs. Goes round all of them call by call. The caller has the turn, and no
 * transaction is open. Errors leave everything as it is.
 */
void standing_review(struct engine *engine);

/*
 * Space is short: some removed partitions lose their versions and their own policies. One that
 * comes back has the device's policy. -EAGAIN: none has any, or they are locked. The caller has the
 * turn, and no transaction is open.
 */
int standing_give_up(struct engine *engine);

#endif
