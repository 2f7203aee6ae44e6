/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Locks of retention: what no command shortens until their time is over. */
#ifndef MUNINN_ENGINE_LOCKS_H
#define MUNINN_ENGINE_LOCKS_H

#include "engine/objects.h"

/*
 * Whether a policy keeps every moment as long as `now_ms` says. A lock keeps all that the policy does not limit: with the kind
 * `snapshots` and no keep_all_ms it is as `all` until it ends, or any write could make room of what is locked.
 */
bool locks_keep_all(const struct engine_retention *policy, uint64_t now_ms);

/* Whether `wanted` keeps less than `now`, which is locked. */
bool locks_keeps_less(const struct engine_retention *now, const struct engine_retention *wanted);

/*
 * Whether the whole device may go back to `bound`. -EPERM: a partition whose retention is locked would vanish, and with it the
 * lock; or one comes back, for which all others would give up what is locked. -EIO, -EBADMSG.
 */
int locks_check_rollback(struct engine_txn *txn, uint64_t bound);

/*
 * From which bound on the whole device keeps its past when a partition comes back after a rollback of the device: the floor of
 * all of them from then on. 0: none is needed.
 */
int locks_floor_of_returned(struct engine *engine, const struct history *device, uint64_t *floor);

#endif
