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

/*
 * A policy promises by ages, which the new time epoch changes. What it may have given up by the
 * wrong clock does not come back, so its horizon of now becomes its floor, of intervals too.
 */
static int raise_floor(struct engine_txn *txn, const struct partition *root, uint16_t index)
{
	struct engine *engine = txn->engine;
	struct history *history;
	struct source source;
	uint64_t horizon;
	int result = source_open(engine, index, &source);

	if (result)
		return result;
	history = source.partition->history;
	if (history->particular) {
		result = history_horizon(engine, history, root->history, &horizon);
		if (!result)
			result = partitions_limit_dirty(txn);
		if (!result) {
			history->floor = max_u64(history->floor, horizon);
			result = source_changed(txn, &source);
		}
	}
	source_close(engine, &source);
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
	txn->changed = txn->begins_time_epoch = true;
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
		result = txn_begin_slot(txn);
	txn_raise_room(txn, RECORD_ROOM_UPKEEP);
	if (!result)
		result = begin_time_epoch(txn, root);
	partition_release(engine, root);
	return result;
}
