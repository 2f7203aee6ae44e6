/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Rolls back partitions and the device: it notes a hidden interval, which hides what came after the
 * moment. rollback_object.c does the same for single objects.
 */
#include "common/bytes.h"
#include "engine/history/left_out.h"
#include "engine/history/locks.h"
#include "engine/history/moments.h"
#include "engine/history/retention.h"
#include "engine/history/times.h"

/* Makes memory forget the state of a partition, or of the device, from before the rollback. */
static void forget(struct engine_txn *txn, struct partition *partition)
{
	struct engine *engine = txn->engine;

	if (partition->index == RECORD_ROOT_INDEX) {
		partition_release(engine, partition);
		objects_release(txn);
		stale_say(&engine->memories, STALE_RECORDS);
		return;
	}
	partition_forget(engine, partition);
	partition_release(engine, partition);
}

/*
 * The device keeps each rollback of what is locked, so only a limited number of them can follow.
 * Without a lock any number can, one taking the place of another: these leave the locked ones their
 * room. Who ends a lock to go back finds it, too.
 */
static int raise_room(struct engine_txn *txn, const struct partition *partition, bool *is_kept)
{
	const struct engine_retention *policy = history_policy(txn->engine, partition->history);
	struct partition *root;
	int result = partition_get(txn->engine, 0, &root);

	if (result)
		return result;
	*is_kept = policy->locked_until_ms &&
		   policy->locked_until_ms >= root->history->device.reclaimed_ms;
	partition_release(txn->engine, root);
	txn_raise_room(txn, *is_kept ? RECORD_ROOM_RESCUE : RECORD_ROOM_RETURN);
	return 0;
}

/* Whether the device is so full that only what is left for going back to locked history is left. */
static bool is_last_room(const struct engine *engine)
{
	const struct record_store_operations *operations = engine->store->operations;

	return operations->merge && operations->shortage(engine->store, RECORD_ROOM_RETURN);
}

/* Whether it goes in the slow lane. -ETIME, -EFBIG: it can't. */
static int choose_lane(struct engine_txn *txn, const struct partition *partition, uint64_t bound,
		       bool *slow)
{
	struct engine *engine = txn->engine;
	const struct hidden_interval interval = { .to = bound, .partition = partition->index };
	bool is_kept;
	int result = raise_room(txn, partition, &is_kept);

	if (result)
		return result;
	*slow = hidden_is_beyond(&engine->past->hidden, &interval) ||
		(is_kept && is_last_room(engine));
	return *slow ? slow_lane_check(txn, interval.partition) : 0;
}

/* Rolls back what `partition` stands for, which is released. */
static int roll_back(struct engine_txn *txn, struct partition *partition, uint64_t bound, bool slow)
{
	struct engine *engine = txn->engine;
	const struct hidden_interval interval = { .to = bound, .partition = partition->index };
	bool of_device = interval.partition == RECORD_ROOT_INDEX;
	struct partition *root;
	struct left_out left_out = { 0 };
	int result = of_device ? left_out_find(engine, bound, &left_out) : 0;

	txn->changed = txn->is_moment = txn->rolled_back = txn->forgets_accesses = true;
	txn->forgets_states = true;
	txn->accesses_of = partition->id;
	if (!result)
		result = hidden_add_beside(txn, interval);
	/* From here on everything reads otherwise than before, the root too. */
	forget(txn, partition);
	if (!result)
		result = partition_get(engine, 0, &root);
	if (!result) {
		result = left_out_keep(txn, root, &left_out);
		root->history->device.hidden_chunks = engine->past->hidden.chunks;
		if (slow)
			slow_lane_use(txn, root, interval.partition);
		partition_mark_history(txn, root);
		/* With the table of partitions, the policies that count change too. */
		if (!result && of_device)
			result = retention_recount(txn, root);
		partition_release(engine, root);
	}
	left_out_free(&left_out);
	return result;
}

int engine_rollback(struct engine_txn *txn, uint64_t id, struct engine_moment to)
{
	struct partition *partition;
	uint64_t bound;
	bool slow;
	int result = txn_begin_slot(txn, SLOT_GO_BACK);

	if (!result && txn->put_bytes)
		result = -EINVAL;
	if (result)
		return result;
	result = partition_get(txn->engine, id, &partition);
	if (result)
		return result;
	result = partition_is_read_only(partition) ? -EROFS
						   : moment_resolve(txn, partition, to, &bound);
	if (!result && id == 0)
		result = locks_check_rollback(txn, bound);
	if (!result)
		result = choose_lane(txn, partition, bound, &slow);
	onode_free(txn->old.onode);
	txn->old = (struct old_view){ 0 };
	if (!result)
		return roll_back(txn, partition, bound, slow);
	partition_release(txn->engine, partition);
	return result;
}
