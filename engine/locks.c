/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
#include "engine/locks.h"

#include "common/bytes.h"

/* ---- policies ---- */

static bool is_unlimited(const struct engine_retention *policy)
{
	return policy->kind == ENGINE_RETAIN_ALL ||
	       (policy->kind == ENGINE_RETAIN_SNAPSHOTS && !policy->keep_all_ms);
}

bool locks_keep_all(const struct engine_retention *policy, uint64_t now_ms)
{
	return policy->kind == ENGINE_RETAIN_ALL ||
	       (policy->locked_until_ms > now_ms && is_unlimited(policy));
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

/* ---- rollbacks of the device ---- */

int locks_floor_of_returned(struct engine *engine, const struct history *device, uint64_t *floor)
{
	const struct history inherits = history_new(RECORD_ROOT_INDEX, 0);
	uint64_t of_nobody, said;
	int result = history_horizon(engine, device, device, 0, &of_nobody);

	if (!result)
		result = history_horizon(engine, &inherits, device, 0, &said);
	if (!result)
		*floor = of_nobody > said || device->retention.keep_interval_ms ? of_nobody : 0;
	return result;
}

/* Whether a partition of the present is not there at `bound`. -EPERM: it is not, and its retention is locked. */
static int check_partition(struct engine_txn *txn, const struct history *device, uint64_t id,
			   uint64_t bound, bool *vanishes)
{
	struct engine *engine = txn->engine;
	struct partition *partition, then;
	int result = partition_get(engine, id, &partition);

	if (result)
		return result;
	result = partition_as_of(engine, id, bound, &then);
	*vanishes = result == -ENOENT ||
		    (!result && then.created_sequence != partition->created_sequence);
	if (*vanishes)
		result = history_policy(&partition->history, device)->locked_until_ms > txn->time_ms
				 ? -EPERM
				 : 0;
	partition_release(engine, partition);
	return result;
}

/* Counts the partitions of the present that are not there at `bound`. -EPERM: a locked one. */
static int count_vanishing(struct engine_txn *txn, struct partition *root, uint64_t bound,
			   uint64_t *count)
{
	struct idset table =
		partition_set(txn->engine, root, PARTITION_USER_OBJECTS, RECORD_NEWEST);
	uint64_t elements[64], next = 0;
	bool more = true;

	*count = 0;
	while (more) {
		size_t found;
		int result = idset_list(&table, next, elements, 64, &found, &more, &next);

		for (size_t at = 0; !result && at < found; at++) {
			bool vanishes;

			result = check_partition(txn, &root->history, elements[at] >> 16, bound,
						 &vanishes);
			*count += !result && vanishes;
		}
		if (result)
			return result;
	}
	return 0;
}

static int check_tables(struct engine_txn *txn, struct partition *root, uint64_t bound)
{
	const struct idset_header *now = &root->sets[PARTITION_USER_OBJECTS];
	uint64_t vanishing, floor = 0;
	struct partition then;
	int result = count_vanishing(txn, root, bound, &vanishing);

	if (!result)
		result = partition_as_of(txn->engine, 0, bound, &then);
	if (result)
		return result;
	/* Those of then that are not among those that stay come back. */
	if (then.sets[PARTITION_USER_OBJECTS].count > now->count - vanishing)
		result = locks_floor_of_returned(txn->engine, &root->history, &floor);
	return !result && floor > root->history.device.all_floor ? -EPERM : result;
}

int locks_check_rollback(struct engine_txn *txn, uint64_t bound)
{
	struct partition *root;
	int result = partition_get(txn->engine, 0, &root);

	if (result)
		return result;
	if (root->history.device.locked_until_ms > txn->time_ms)
		result = check_tables(txn, root, bound);
	partition_release(txn->engine, root);
	return result;
}
