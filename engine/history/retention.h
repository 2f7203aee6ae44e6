/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What is kept of history: policies of partitions and of the device, and giving the oldest history
 * up for room.
 */
#ifndef MUNINN_ENGINE_HISTORY_RETENTION_H
#define MUNINN_ENGINE_HISTORY_RETENTION_H

#include "engine/history/past.h"

/* Counts anew which partitions have policies of their own. Nothing to do when there were none. */
int retention_recount(struct engine_txn *txn, struct partition *root);

/* The partition is about to be removed: -EPERM when its retention is locked. */
int retention_forget(struct engine_txn *txn, struct partition *root, struct partition *partition);

/*
 * Compares ages with what policies say, before a merge. Nothing to do when no policy speaks of
 * ages, or less than history_interval_ms after the last time.
 */
int retention_judge(struct engine *engine);

/*
 * Gives up some of the oldest history, so much that `bytes` were put in that time. Never the moment
 * `needed` (RECORD_NEWEST: all may go), nor what came after it. -EAGAIN: there is none that may go.
 */
int retention_reclaim(struct engine *engine, uint64_t bytes, uint64_t needed);

#endif
