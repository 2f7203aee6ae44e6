/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Checks commands against the locks of retention. */
#include "engine/history/locks.h"

#include "common/bytes.h"

/* Of two clocks that may not agree. */
#define SAME_DAY_MS 60000

/* ---- policies ---- */

static bool is_unlimited(const struct engine_retention *policy)
{
	return policy->kind == ENGINE_RETAIN_ALL ||
	       (policy->kind == ENGINE_RETAIN_SNAPSHOTS && !policy->keep_all_ms);
}

bool locks_hold(struct engine_txn *txn, const struct history *history)
{
	return history_policy(txn->engine, history)->locked_until_ms > device_time_of(txn);
}

bool locks_keep_all(const struct engine_retention *policy, uint64_t device_ms)
{
	return policy->kind == ENGINE_RETAIN_ALL ||
	       (policy->locked_until_ms >= device_ms && is_unlimited(policy));
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a + min_u64(b, UINT64_MAX - a);
}

struct engine_retention locks_to_store(struct engine_txn *txn, const struct engine_retention *now,
				       const struct engine_retention *wanted)
{
	uint64_t device_ms = device_time_of(txn),
		 until_ms = min_u64(now->locked_until_ms, device_ms);
	struct engine_retention stored = *wanted;

	if (wanted->locked_until_ms > txn->time_ms) {
		until_ms = add(device_ms, wanted->locked_until_ms - txn->time_ms);
		if (until_ms < now->locked_until_ms &&
		    add(until_ms, SAME_DAY_MS) >= now->locked_until_ms)
			until_ms = now->locked_until_ms;
	}
	stored.locked_until_ms = until_ms;
	return stored;
}

struct engine_retention locks_to_tell(struct engine_txn *txn, const struct engine_retention *stored)
{
	struct engine_retention told = *stored;
	uint64_t device_ms = device_time_of(txn);

	told.locked_until_ms = stored->locked_until_ms > device_ms
				       ? add(txn->time_ms, stored->locked_until_ms - device_ms)
				       : 0;
	return told;
}

/* How much a kind keeps. */
static int rank_of(enum engine_retention_kind kind)
{
	return kind == ENGINE_RETAIN_ALL ? 2 : kind == ENGINE_RETAIN_SNAPSHOTS ? 1 : 0;
}

bool locks_keeps_less(const struct engine_retention *now, const struct engine_retention *wanted)
{
	if (wanted->locked_until_ms < now->locked_until_ms ||
	    rank_of(wanted->kind) < rank_of(now->kind) ||
	    (is_unlimited(now) && !is_unlimited(wanted)))
		return true;
	if (wanted->kind == ENGINE_RETAIN_ALL)
		return false;
	return wanted->keep_all_ms < now->keep_all_ms ||
	       wanted->keep_interval_for_ms < now->keep_interval_for_ms ||
	       (now->keep_interval_ms && (!wanted->keep_interval_ms ||
					  now->keep_interval_ms % wanted->keep_interval_ms != 0));
}

/* ---- device time ---- */

static int mark(struct engine_txn *txn, struct partition *root, void *context)
{
	(void)context;
	partition_mark_history(txn, root);
	return 0;
}

int locks_keep_time(struct engine *engine, uint64_t owed_ms)
{
	int result;

	if (device_time_owed(engine) < owed_ms)
		return 0;
	turn_take(&engine->turn);
	engine->history->make_space(engine, ENGINE_HISTORY);
	result = engine_aside(engine, mark, NULL);
	turn_give(&engine->turn);
	return result;
}

int engine_keep_time(struct engine *engine, uint64_t owed_ms)
{
	return locks_keep_time(engine, owed_ms);
}

/* ---- rollbacks of the device ---- */

/* -EPERM: a partition of the present is not there at `bound`, and its retention is locked. */
static int check_partition(struct engine_txn *txn, uint64_t id, uint64_t bound)
{
	struct engine *engine = txn->engine;
	struct partition *partition;
	uint16_t index = RECORD_ROOT_INDEX;
	int result = partition_get(engine, id, &partition);

	if (result)
		return result;
	if (locks_hold(txn, partition->history)) {
		result = partition_index_as_of(engine, id, bound, &index);
		if (result == -ENOENT || (!result && index != partition->index))
			result = -EPERM;
	}
	partition_release(engine, partition);
	return result;
}

typedef int partition_check(struct engine_txn *txn, uint64_t id, uint64_t bound);

/* Calls `check` for all partitions that are there now. */
static int check_each(struct engine_txn *txn, struct partition *root, partition_check *check,
		      uint64_t bound)
{
	struct idset table =
		partition_set(txn->engine, root, PARTITION_USER_OBJECTS, RECORD_NEWEST);
	struct idset_walk walk = idset_walk_from(&table, 0);
	uint64_t element;
	int result;

	while ((result = idset_walk(&walk, &element)) > 0) {
		result = check(txn, element >> 16, bound);
		if (result)
			break;
	}
	return result;
}

int locks_check_rollback(struct engine_txn *txn, uint64_t bound)
{
	struct partition *root;
	int result = partition_get(txn->engine, 0, &root);

	if (result)
		return result;
	if (root->history->device.locked_until_ms > device_time_of(txn))
		result = check_each(txn, root, check_partition, bound);
	partition_release(txn->engine, root);
	return result;
}

static int check_unlocked(struct engine_txn *txn, uint64_t id, uint64_t bound)
{
	struct partition *partition;
	int result = partition_get(txn->engine, id, &partition);

	(void)bound;
	if (result)
		return result;
	if (partition->history->retention.locked_until_ms > device_time_of(txn))
		result = -EPERM;
	partition_release(txn->engine, partition);
	return result;
}

int locks_check_all(struct engine_txn *txn)
{
	const struct device_history *device;
	struct partition *root;
	int result = 0;

	/* What can't be read at all is no reason not to begin anew. */
	if (partition_get(txn->engine, 0, &root))
		return 0;
	device = &root->history->device;
	if (root->history->retention.locked_until_ms > device_time_of(txn))
		result = -EPERM;
	/*
	 * The latest lock may have been of one that was removed when it was over, and a crash has
	 * taken back some of the time that had passed then.
	 */
	else if (device->locked_until_ms > device_time_of(txn))
		result = check_each(txn, root, check_unlocked, 0) ? -EPERM : 0;
	partition_release(txn->engine, root);
	return result;
}
