/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Locks of retention: what no command shortens until their time is over. */
#ifndef MUNINN_ENGINE_HISTORY_LOCKS_H
#define MUNINN_ENGINE_HISTORY_LOCKS_H

#include "engine/history/past.h"

/* As engine_keep_time. */
int locks_keep_time(struct engine *engine, uint64_t owed_ms);

/* Whether a partition, or the device, is locked. */
bool locks_hold(struct engine_txn *txn, const struct history *history);

/*
 * Whether a policy has kept every moment when history was given up at `device_ms`. A lock keeps all
 * that the policy does not limit: until it ends, the kind `snapshots` without keep_all_ms counts as
 * `all`, since otherwise any write could give up what is locked. What it kept stays until history
 * is given up once more.
 */
bool locks_keep_all(const struct engine_retention *policy, uint64_t device_ms);

/*
 * A policy as it is stored, with its lock in device time, and as callers give and get it, with the
 * day on which the lock ends if the device runs until then. A lock that is over, or that an
 * administrator ends, is stored as one that has ended then. One that would end within the minute
 * before the present one does is the same day by another clock, and ends as the present one.
 */
struct engine_retention locks_to_store(struct engine_txn *txn, const struct engine_retention *now,
				       const struct engine_retention *wanted);
struct engine_retention locks_to_tell(struct engine_txn *txn,
				      const struct engine_retention *stored);

/* Whether `wanted` keeps less than `now`, which is locked. Both as stored. */
bool locks_keeps_less(const struct engine_retention *now, const struct engine_retention *wanted);

/*
 * Whether the whole device may go back to `bound`. -EPERM: a partition whose retention is locked
 * would vanish, and with it the lock. -EIO, -EBADMSG.
 */
int locks_check_rollback(struct engine_txn *txn, uint64_t bound);

/* -EPERM: the retention of the device or of a partition is locked, or can't be read. */
int locks_check_all(struct engine_txn *txn);

#endif
