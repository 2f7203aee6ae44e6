/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Locks of retention: what no command shortens until their time is over. */
#ifndef MUNINN_ENGINE_HISTORY_LOCKS_H
#define MUNINN_ENGINE_HISTORY_LOCKS_H

#include "engine/history/past.h"

/*
 * Whether a policy keeps every moment at `now_ms`. A lock keeps all that the policy does not limit:
 * until it ends, the kind `snapshots` without keep_all_ms counts as `all`, since otherwise any
 * write could give up what is locked.
 */
bool locks_keep_all(const struct engine_retention *policy, uint64_t now_ms);

/* Whether `wanted` keeps less than `now`, which is locked. */
bool locks_keeps_less(const struct engine_retention *now, const struct engine_retention *wanted);

/*
 * Whether the whole device may go back to `bound`. -EPERM: a partition whose retention is locked
 * would vanish, and with it the lock. -EIO, -EBADMSG.
 */
int locks_check_rollback(struct engine_txn *txn, uint64_t bound);

/* -EPERM: the retention of the device or of a partition is locked, or can't be read. */
int locks_check_all(struct engine_txn *txn);

#endif
