/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Keeps the policies of retention, and gives up the oldest history for space. */
#include "engine/history/retention.h"

#include <assert.h>

#include "common/bytes.h"
#include "engine/history/left_out.h"
#include "engine/history/locks.h"
#include "engine/history/standing.h"
#include "engine/history/times.h"
#include "engine/history/versions.h"

/* Of all history at least this part goes at once: looking for segments to free has its price. */
#define RECLAIM_PART 16

/* ---- policies ---- */

static bool is_policy(const struct engine_retention *retention)
{
	return retention->kind <= ENGINE_RETAIN_NONE && retention->keep_all_ms <= ONODE_TIME_MAX &&
	       retention->keep_interval_ms <= ONODE_TIME_MAX &&
	       retention->keep_interval_for_ms <= ONODE_TIME_MAX &&
	       (retention->keep_interval_ms != 0) == (retention->keep_interval_for_ms != 0);
}

static bool is_lossy(const struct history *history)
{
	return history->particular && history->retention.kind == ENGINE_RETAIN_SNAPSHOTS;
}

/*
 * How much a policy of its own leaves of the moments of the device: the less, the higher. One that
 * is inherited takes none.
 */
enum loss { NO_LOSS, LOSSY, LEFT_OUT };

static enum loss loss_of(const struct history *history)
{
	if (history->particular && history->retention.kind == ENGINE_RETAIN_NONE)
		return LEFT_OUT;
	return is_lossy(history) ? LOSSY : NO_LOSS;
}

/*
 * A lossy partition is about to count no more. What it gave up does not come back, so the device's
 * horizon of now stays.
 */
static int note_loss(struct engine_txn *txn, struct partition *root)
{
	struct history *history = root->history;
	uint64_t horizon;
	int result = history_horizon(txn->engine, history, history, &horizon);

	if (!result)
		history->device.lossy_removed = max_u64(history->device.lossy_removed, horizon);
	return result;
}

/* Adds a partition to the root's sums, or with by = -1 takes it out. */
static void count_policy(struct partition *root, const struct history *history, int by)
{
	struct device_history *device = &root->history->device;

	if (is_lossy(history))
		device->lossy += (uint32_t)by;
	device->locked_until_ms =
		max_u64(device->locked_until_ms, history->retention.locked_until_ms);
}

int retention_recount(struct engine_txn *txn, struct partition *root)
{
	struct engine *engine = txn->engine;
	struct idset table = partition_set(engine, root, PARTITION_USER_OBJECTS, RECORD_NEWEST);
	struct idset_walk walk = idset_walk_from(&table, 0);
	struct device_history *device = &root->history->device;
	struct partition *partition;
	uint64_t element;
	int result = 0;

	if (!device->particular && !device->locked_until_ms)
		return 0;
	if (device->lossy)
		result = note_loss(txn, root);
	if (result)
		return result;
	device->lossy = 0;
	device->locked_until_ms = root->history->retention.locked_until_ms;
	partition_mark_history(txn, root);
	while ((result = idset_walk(&walk, &element)) > 0) {
		result = partition_get(engine, element >> 16, &partition);
		if (result)
			break;
		count_policy(root, partition->history, 1);
		partition_release(engine, partition);
	}
	return result;
}

int engine_retention_get(struct engine_txn *txn, uint64_t id, struct engine_retention *retention)
{
	struct engine *engine = txn->engine;
	struct partition *partition;
	int result = partition_get(engine, id, &partition);

	if (result)
		return result;
	*retention = locks_to_tell(txn, history_policy(engine, partition->history));
	partition_release(engine, partition);
	return 0;
}

/*
 * What the transaction changes from here on is under the new policy; an abort brings the old one
 * back.
 */
static void change_policy_of_device(struct engine_txn *txn,
				    const struct engine_retention *retention)
{
	if (!txn->policy_changed)
		txn->policy_before = txn->engine->past->policy;
	txn->policy_changed = true;
	txn->engine->past->policy = *retention;
}

/*
 * The bound from which on a new policy can promise every moment. What the old one may have given up
 * stays given up. A policy that keeps nothing lets records of one slot absorb those of another; so
 * the policy that follows it begins with a new slot: this transaction's, or the next one if this
 * transaction has done something already.
 */
static int floor_of_new(struct engine_txn *txn, const struct partition *root,
			const struct partition *partition, const struct engine_retention *wanted,
			uint64_t *floor)
{
	struct engine *engine = txn->engine;
	const struct engine_retention *now = history_policy(engine, partition->history);
	/* The device's policy is about partitions that inherit it. The root is none of them. */
	const struct history inherits = history_new(RECORD_ROOT_INDEX, 0);
	bool of_device = partition == root;
	int result = history_horizon(engine, of_device ? &inherits : partition->history,
				     root->history, floor);

	if (result || !history_keeps_nothing(now) || history_keeps_nothing(wanted))
		return result;
	result = txn_begin_slot(txn, SLOT_KEEP);
	*floor = max_u64(*floor, slot_end(result ? txn->sequence : engine->committed));
	return result == -EINVAL || result == -EOVERFLOW || result == -ETIME ? 0 : result;
}

/* Takes a policy over. `horizon`: what is older the old one may have given up. */
static int take_policy(struct engine_txn *txn, struct partition *root, struct partition *partition,
		       const struct engine_retention *retention, uint64_t horizon)
{
	struct history *history = partition->history;
	struct device_history *device = &root->history->device;
	uint64_t of_device = 0;
	int result = 0;

	if (is_lossy(history))
		result = note_loss(txn, root);
	/* Partitions with policies of their own may have given up moments of the new intervals. */
	if (!result && partition == root && retention->keep_interval_ms)
		result = history_horizon(txn->engine, history, history, &of_device);
	if (result)
		return result;
	if (partition == root) {
		device->intervals_floor = max_u64(device->intervals_floor, of_device);
		device->inherited_floor = horizon;
		history->retention = *retention;
		device->locked_until_ms =
			max_u64(device->locked_until_ms, retention->locked_until_ms);
	} else {
		history->floor = horizon;
		count_policy(root, history, -1);
		device->particular += !history->particular;
		history->particular = true;
		history->retention = *retention;
		count_policy(root, history, 1);
		result = left_out_follow(txn, root, partition);
	}
	partition_mark_history(txn, partition);
	partition_mark_history(txn, root);
	txn->changed = true;
	return result;
}

/* Sets the policy of a partition, or of the root: of all that have none of their own. */
static int set_policy(struct engine_txn *txn, struct partition *root, struct partition *partition,
		      const struct engine_retention *retention, bool administrator)
{
	struct history *history = partition->history;
	const struct engine_retention *now = history_policy(txn->engine, history);
	const struct engine_retention stored = locks_to_store(txn, now, retention);
	const struct history wanted = { .particular = true, .retention = stored };
	bool unlocks = stored.locked_until_ms < now->locked_until_ms;
	bool begins_to_keep = history_keeps_nothing(now) && !history_keeps_nothing(&stored);
	uint64_t horizon;
	int result;

	if (!administrator && locks_hold(txn, history) && locks_keeps_less(now, &stored))
		return -EPERM;
	/* The moments of the whole device are those that all partitions keep. */
	if (!administrator && partition != root && loss_of(&wanted) > loss_of(history) &&
	    root->history->retention.locked_until_ms > device_time_of(txn))
		return -EPERM;
	/*
	 * Going there and back begins a slot each time, and can be done any number of times. So it
	 * has just the room that rollbacks have.
	 */
	if (administrator)
		txn_raise_room(txn, RECORD_ROOM_UPKEEP);
	else if (!begins_to_keep)
		txn_raise_room(txn, RECORD_ROOM_RESCUE);
	result = floor_of_new(txn, root, partition, retention, &horizon);
	if (!result)
		result = partitions_limit_dirty(txn);
	if (result)
		return result;
	/* The device's moments show it from here on, or no longer. */
	if (begins_to_keep || (loss_of(&wanted) == LEFT_OUT) != (loss_of(history) == LEFT_OUT))
		txn->is_moment = true;
	result = take_policy(txn, root, partition, &stored, horizon);
	if (result)
		return result;
	if (partition == root)
		change_policy_of_device(txn, &stored);
	return unlocks ? retention_recount(txn, root) : 0;
}

int engine_retention_set(struct engine_txn *txn, uint64_t id,
			 const struct engine_retention *retention, bool administrator)
{
	struct partition_pair pair;
	int result;

	if (txn->mode == ENGINE_READ)
		return -EROFS;
	if (!is_policy(retention))
		return -EINVAL;
	result = partition_get_pair(txn->engine, id, &pair);
	if (result)
		return result;
	result = set_policy(txn, pair.root, pair.partition, retention, administrator);
	partition_release_pair(txn->engine, &pair);
	return result;
}

int retention_forget(struct engine_txn *txn, struct partition *root, struct partition *partition)
{
	const struct history *history = partition->history;
	int result = 0;

	if (locks_hold(txn, history))
		return -EPERM;
	if (!history->particular)
		return 0;
	if (is_lossy(history))
		result = note_loss(txn, root);
	if (result)
		return result;
	count_policy(root, history, -1);
	partition_mark_history(txn, root);
	return 0;
}

/* ---- what there is ---- */

/* When a horizon was. 0: that is not known any more, or nothing is over yet. */
static int time_of_horizon(struct engine *engine, const struct history *device, uint64_t horizon,
			   uint64_t *ms)
{
	uint64_t last_ms;
	int result = times_of_boundary(engine, device, horizon, ms, &last_ms);

	/* All of the device's history is there, and begins with its first command. */
	if (result == -ENOENT && horizon == 0)
		result = times_first_boundary(engine, device, ms);
	if (result)
		*ms = 0;
	return result == -ENOENT ? 0 : result;
}

static int read_history(struct engine *engine, struct partition *root, struct partition *partition,
			struct engine_history *history)
{
	uint64_t older = 0, missed = 0;
	int result = history_horizon(engine, partition->history, root->history,
				     &history->horizon_sequence);

	if (!result)
		result = time_of_horizon(engine, root->history, history->horizon_sequence,
					 &history->horizon_time_ms);
	if (result)
		return result;
	history->rollbacks = hidden_count(&engine->past->hidden, partition->index);
	history->versions = (uint32_t)root->history->versions.count;
	if (partition == root)
		return 0;
	/*
	 * Versions of the device at which the partition was not there yet, or gone, are none of it.
	 */
	result = versions_before(engine, root, partition->created_sequence, &older);
	if (!result)
		result = versions_missed(engine, root, partition, &missed);
	history->versions += (uint32_t)(partition->history->versions.count - older - missed);
	return result;
}

int engine_history(struct engine_txn *txn, uint64_t id, struct engine_history *history)
{
	struct partition_pair pair;
	int result = partition_get_pair(txn->engine, id, &pair);

	*history = (struct engine_history){ 0 };
	if (result)
		return result;
	result = read_history(txn->engine, pair.root, pair.partition, history);
	partition_release_pair(txn->engine, &pair);
	return result;
}

/* ---- giving up ---- */

static bool speaks_of_ages(const struct engine *engine, const struct device_history *device)
{
	return device->particular || engine->past->policy.keep_all_ms ||
	       engine->past->policy.keep_interval_ms;
}

static int note_judged(struct engine_txn *txn, struct partition *root, void *context)
{
	struct device_history *device = &root->history->device;

	(void)context;
	device->judged_ms = max_u64(device->judged_ms, txn->time_ms);
	partition_mark_history(txn, root);
	return 0;
}

/*
 * Whether a slot has passed since. Judging puts a record: if each step of a merge did it, merging
 * would never run out of work.
 */
static bool is_due(const struct engine *engine, uint64_t judged_ms)
{
	uint64_t interval = engine->options.history_interval_ms;

	if (interval == ENGINE_EVERY_COMMAND)
		interval = 1;
	return engine_time_now(engine) >= judged_ms + interval;
}

int retention_judge(struct engine *engine)
{
	struct partition *root;
	bool needed;
	int result = partition_get(engine, 0, &root);

	if (result)
		return result;
	needed = speaks_of_ages(engine, &root->history->device) &&
		 is_due(engine, root->history->device.judged_ms);
	partition_release(engine, root);
	return needed ? engine_aside(engine, note_judged, NULL) : 0;
}

struct reclaim {
	uint64_t bytes, needed;
};

/*
 * The bound up to which history goes: as far as `reclaim` asks, but at least a part of all that
 * there is, so that each step frees something. It stays before the moment that is still needed.
 * -EAGAIN: nothing may go.
 */
static int find_bound(struct engine *engine, const struct history *device,
		      const struct reclaim *reclaim, uint64_t *bound)
{
	uint64_t from = device->device.reclaimed, bytes;
	int result = times_put_since(engine, device, from, &bytes);

	*bound = 0;
	if (result)
		return result;
	bytes = max_u64(reclaim->bytes, bytes / RECLAIM_PART);
	result = times_boundary_after(engine, device, from, bytes, bound);
	if (!result && *bound > reclaim->needed)
		result = times_boundary_of(engine, device, reclaim->needed, bound);
	if (result)
		return result;
	return *bound > from ? 0 : -EAGAIN;
}

/* Moves the root's bound up, and drops the times before it if nobody asks for them any more. */
static int give_up_oldest(struct engine_txn *txn, struct partition *root, void *context)
{
	struct engine *engine = txn->engine;
	struct device_history *device = &root->history->device;
	uint64_t bound, device_ms = device_time_of(txn);
	int result;

	/*
	 * While no policy gives up for space, the bound stays. Otherwise history would be lost at
	 * once when the lock ends, and nobody would have had the space.
	 */
	if (device->lossy == 0 && locks_keep_all(&engine->past->policy, device_ms))
		return -EAGAIN;
	result = find_bound(engine, root->history, context, &bound);
	if (result)
		return result;
	device->reclaimed = bound;
	device->reclaimed_ms = device_ms;
	partition_mark_history(txn, root);
	/* Others may still ask for older times. */
	if (speaks_of_ages(engine, device) || locks_keep_all(&engine->past->policy, device_ms))
		return 0;
	return times_forget(txn, root, bound);
}

int retention_reclaim(struct engine *engine, uint64_t bytes, uint64_t needed)
{
	struct reclaim reclaim = { .bytes = bytes, .needed = needed };

	if (standing_give_up(engine) == 0)
		return 0;
	return engine_aside(engine, give_up_oldest, &reclaim);
}

/*
 * Each step of a merge asks, in turn, so the table of times is searched once for each bound. Where
 * nothing has been put behind it yet, its entry is still to come.
 */
static int find_kept_since(struct engine *engine, const struct history *device)
{
	struct past *past = engine->past;
	uint64_t bound = device->device.reclaimed, bytes;
	int result;

	if (past->kept_since.known && past->kept_since.bound == bound)
		return 0;
	result = times_put_since(engine, device, bound, &bytes);
	if (result)
		return result;
	past->kept_since.bound = bound;
	past->kept_since.put_bytes = engine->put_bytes - bytes;
	past->kept_since.known = bytes > 0;
	return 0;
}

int retention_kept_bytes(struct engine *engine, uint64_t *bytes)
{
	struct partition *root;
	int result = partition_get(engine, 0, &root);

	if (result)
		return result;
	result = find_kept_since(engine, root->history);
	if (!result)
		*bytes = engine->put_bytes -
			 min_u64(engine->put_bytes, engine->past->kept_since.put_bytes);
	partition_release(engine, root);
	return result;
}
