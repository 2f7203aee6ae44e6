/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The administrator's word that the clock is right now, after it had been ahead: what is on record
 * as of later than now was before it, and times count by the clock again.
 */
#include "common/bytes.h"
#include "engine/history/clock.h"
#include "engine/history/times.h"
#include "engine/objects/objects.h"

/* ---- what is kept ---- */

/*
 * What a policy promises goes by ages, and those change: what it may have given up by the wrong
 * clock does not come back. Moments of intervals count from there on.
 */
static int raise_floor(struct engine_txn *txn, const struct partition *root, uint64_t id)
{
	struct engine *engine = txn->engine;
	struct partition *partition;
	uint64_t horizon;
	int result = partition_get(engine, id, &partition);

	if (result)
		return result;
	if (partition->history.particular) {
		result = history_horizon(engine, &partition->history, &root->history,
					 partition->created_sequence, &horizon);
		if (!result)
			result = partition_room(txn);
		if (!result) {
			partition->history.floor = max_u64(partition->history.floor, horizon);
			partition_mark_history(txn, partition);
		}
	}
	partition_release(engine, partition);
	return result;
}

static int raise_floors_of_partitions(struct engine_txn *txn, struct partition *root)
{
	struct idset table =
		partition_set(txn->engine, root, PARTITION_USER_OBJECTS, RECORD_NEWEST);
	uint64_t elements[64], next = 0;
	bool more = root->history.device.particular != 0;
	int result = 0;

	while (!result && more) {
		size_t count;

		result = idset_list(&table, next, elements, 64, &count, &more, &next);
		for (size_t at = 0; !result && at < count; at++)
			result = raise_floor(txn, root, elements[at] >> 16);
	}
	return result;
}

static int raise_floors(struct engine_txn *txn, struct partition *root)
{
	const struct history inherits = history_new(RECORD_ROOT_INDEX, 0);
	struct engine *engine = txn->engine;
	struct history *device = &root->history;
	uint64_t of_device, inherited;
	int result = raise_floors_of_partitions(txn, root);

	if (!result)
		result = history_device_horizon(engine, device, &of_device);
	if (!result)
		result = history_horizon(engine, &inherits, device, 0, &inherited);
	if (!result)
		result = partition_room(txn);
	if (result)
		return result;
	device->floor = max_u64(device->floor, of_device);
	device->device.inherited_floor = max_u64(device->device.inherited_floor, inherited);
	device->device.judged_ms = min_u64(device->device.judged_ms, txn->time_ms);
	partition_mark_history(txn, root);
	return 0;
}

/* ---- the word ---- */

/*
 * The cut at `sequence`, and the span up to now: earlier ones that go on behind it, or have no
 * place, are of the same.
 */
static void add_cut(struct clock_spans *spans, uint64_t sequence, uint64_t from_ms, uint64_t now_ms)
{
	while (spans->cut_count && (spans->cuts[spans->cut_count - 1].until_ms > now_ms ||
				    spans->cut_count == CLOCK_CUTS_MAX)) {
		spans->cut_count--;
		from_ms = min_u64(from_ms, spans->cuts[spans->cut_count].from_ms);
	}
	spans->cuts[spans->cut_count++] =
		(struct clock_cut){ .sequence = sequence, .from_ms = from_ms, .until_ms = now_ms };
	while (spans->count && (spans->list[spans->count - 1].until_ms > from_ms ||
				spans->count == CLOCK_SPANS_MAX)) {
		spans->count--;
		from_ms = min_u64(from_ms, spans->list[spans->count].from_ms);
	}
	spans->list[spans->count++] = (struct clock_span){ .from_ms = from_ms, .until_ms = now_ms };
}

static int trust(struct engine_txn *txn, struct partition *root, uint64_t *from_ms)
{
	struct clock_spans spans = txn->engine->doubts;
	int result = times_last_before(txn->engine, &root->history, txn->time_ms, from_ms);

	if (result)
		return result;
	if (!*from_ms && spans.begun_ms && txn->time_ms >= spans.begun_ms)
		*from_ms = spans.begun_ms;
	result = raise_floors(txn, root);
	if (result)
		return result;
	add_cut(&spans, txn->sequence, *from_ms, txn->time_ms);
	*from_ms = spans.list[spans.count - 1].from_ms;
	result = clock_put(txn, &spans);
	txn->changed = txn->clock_trusted = !result;
	return result;
}

int engine_clock_trust(struct engine_txn *txn, uint64_t *from_ms)
{
	struct engine *engine = txn->engine;
	struct partition *root;
	int result;

	*from_ms = 0;
	if (txn->mode == ENGINE_READ)
		return -EROFS;
	result = partition_get(engine, 0, &root);
	if (result)
		return result;
	if (txn->time_ms >= max_u64(engine->committed_ms, root->history.device.slot_ms))
		result = -EALREADY;
	if (!result)
		result = txn_begin_slot(txn);
	txn_raise_room(txn, RECORD_ROOM_UPKEEP);
	if (!result)
		result = trust(txn, root, from_ms);
	partition_release(engine, root);
	return result;
}
