/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Begins time epochs. Recorded times never go down, so after a clock that was far ahead they stand
 * still. An administrator ends that by beginning a new time epoch: from then on times follow the
 * clock again, and whatever was before counts as having been when the time epoch began.
 */
#include "common/bytes.h"
#include "engine/history/past.h"
#include "engine/history/standing.h"
#include "engine/history/times.h"

/* ---- what is kept ---- */

/* Makes the horizon of now the partition's floor. */
static int keep_horizon(struct engine_txn *txn, const struct partition *root, struct source *source)
{
	struct history *history = source->partition->history;
	uint64_t horizon;
	int result = history_horizon(txn->engine, history, root->history, &horizon);

	if (!result)
		result = partitions_limit_dirty(txn);
	if (result)
		return result;
	history->floor = max_u64(history->floor, horizon);
	return source_changed(txn, source);
}

/*
 * A policy promises by ages, and the new time epoch makes moments younger. But what the policy has
 * given up by the wrong clock does not come back. So its horizon must not go down. Partitions
 * without a policy of their own have inherited_floor for that.
 */
static int raise_floor(struct engine_txn *txn, const struct partition *root, uint16_t index)
{
	struct source source;
	int result = source_open(txn->engine, index, &source);

	if (result)
		return result;
	if (source.partition->history->particular)
		result = keep_horizon(txn, root, &source);
	source_close(txn->engine, &source);
	return result;
}

/* Also of those that are gone and may come back. */
static int raise_floors_of_partitions(struct engine_txn *txn, struct partition *root)
{
	struct idset indices = history_indices(txn->engine, root);
	struct idset_walk walk = idset_walk_from(&indices, 0);
	uint64_t index;
	int result = 0;

	while (root->history->device.particular && (result = idset_walk(&walk, &index)) > 0) {
		result = raise_floor(txn, root, (uint16_t)index);
		if (result)
			break;
	}
	return result;
}

static int raise_floors(struct engine_txn *txn, struct partition *root)
{
	const struct history inherits = history_new(RECORD_ROOT_INDEX, 0);
	struct engine *engine = txn->engine;
	struct history *device = root->history;
	uint64_t of_device, inherited;
	int result = raise_floors_of_partitions(txn, root);

	if (!result)
		result = history_horizon(engine, device, device, &of_device);
	if (!result)
		result = history_horizon(engine, &inherits, device, &inherited);
	if (!result)
		result = partitions_limit_dirty(txn);
	if (result)
		return result;
	device->floor = max_u64(device->floor, of_device);
	device->device.inherited_floor = max_u64(device->device.inherited_floor, inherited);
	device->device.judged_ms = min_u64(device->device.judged_ms, txn->time_ms);
	partition_mark_history(txn, root);
	return 0;
}

/* ---- the time epoch ---- */

static int begin_time_epoch(struct engine_txn *txn, struct partition *root)
{
	struct device_history *device = &root->history->device;
	int result = raise_floors(txn, root);

	if (result)
		return result;
	device->time_epoch_sequence = txn->sequence;
	device->time_epoch_ms = txn->time_ms;
	txn->changed = txn->is_moment = txn->begins_time_epoch = true;
	return 0;
}

int engine_time_epoch(struct engine_txn *txn)
{
	struct engine *engine = txn->engine;
	struct partition *root;
	int result;

	if (txn->mode == ENGINE_READ)
		return -EROFS;
	result = partition_get(engine, 0, &root);
	if (result)
		return result;
	if (txn->time_ms >= engine->committed_ms)
		result = -EALREADY;
	if (!result)
		result = txn_begin_slot(txn, SLOT_GO_BACK);
	txn_raise_room(txn, RECORD_ROOM_UPKEEP);
	if (!result)
		result = begin_time_epoch(txn, root);
	partition_release(engine, root);
	return result;
}
