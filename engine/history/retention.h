/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What is kept of history: policies of partitions and of the device, and giving the oldest history
 * up for space.
 */
#ifndef MUNINN_ENGINE_HISTORY_RETENTION_H
#define MUNINN_ENGINE_HISTORY_RETENTION_H

#include "engine/history/past.h"

/* Counts anew which partitions have policies of their own. Nothing to do when there were none. */
int retention_recount(struct engine_txn *txn, struct partition *root);

/* The partition is about to be removed: -EPERM when its retention is locked. */
int retention_forget(struct engine_txn *txn, struct partition *root, struct partition *partition);

/*
 * Before a merge: lets policies with ages count up to now. Does nothing when there is none, or
 * within history_interval_ms of the last time.
 */
int retention_judge(struct engine *engine);

/*
 * Gives up the oldest history, as much as it took to put `bytes`. The moment `needed` and what came
 * after it stay (RECORD_NEWEST: all may go). -EAGAIN: none may go.
 */
int retention_reclaim(struct engine *engine, uint64_t bytes, uint64_t needed);

/* What was put since the oldest moment that was not given up for space. */
int retention_kept_bytes(struct engine *engine, uint64_t *bytes);

#endif
