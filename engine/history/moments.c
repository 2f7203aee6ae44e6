/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Moments of the past as bounds of sequence numbers: versions, times, numbers, and views, which are
 * numbers for any of them.
 */
#include "engine/history/moments.h"

#include <assert.h>

#include "common/bytes.h"
#include "engine/history/left_out.h"
#include "engine/history/times.h"
#include "engine/history/versions.h"

/* The present as a moment that lasts. */
static int present(struct engine_txn *txn, uint64_t *bound)
{
	struct engine *engine = txn->engine;
	int result;

	result = txn->mode == ENGINE_READ ? slots_end_present(engine)
					  : txn_begin_slot(txn, SLOT_KEEP);
	*bound = slot_end(engine->committed);
	/* At the end of its life the device shows what it has, although more may come. */
	return txn->mode == ENGINE_READ && result == -EOVERFLOW ? 0 : result;
}

/*
 * All of a writing transaction lies behind the moments that it asks for, if it can be so. Readers
 * of a transaction that has changed something already must do with the moments before its slot.
 * `of_present`: the moment is after all that is committed, so that this must be one. -ETIME.
 */
static int settle_slot(struct engine_txn *txn, bool of_present)
{
	if (txn->mode != ENGINE_READ)
		txn_begin_slot(txn, SLOT_KEEP);
	return of_present && slots_end_present(txn->engine) == -ETIME ? -ETIME : 0;
}

static int resolve_time(struct engine_txn *txn, struct partition *partition,
			const struct history *device, uint64_t ms, uint64_t *bound)
{
	struct engine *engine = txn->engine;
	const struct engine_retention *policy = history_policy(engine, partition->history);
	uint64_t before;
	int kept, result;

	/* The table does not tell when it was before the time epoch. */
	if (ms < device->device.time_epoch_ms)
		return -ESTALE;
	result = settle_slot(txn, ms >= engine->committed_ms);
	if (result)
		return result;
	result = times_boundary(engine, device, ms, bound);
	if (!result)
		result = history_reaches(engine, partition, *bound);
	if (result != -ENOENT)
		return result;
	before = history_interval_before(policy, device->device.judged_ms, ms);
	if (!before)
		return result;
	kept = times_boundary(engine, device, before, bound);
	if (!kept)
		kept = history_reaches(engine, partition, *bound);
	return kept == -ENOENT ? result : kept;
}

static int resolve_sequence(struct engine_txn *txn, struct partition *partition,
			    const struct history *device, uint64_t sequence, uint64_t *bound)
{
	struct engine *engine = txn->engine;
	int kept, result = settle_slot(txn, sequence >= engine->committed);

	if (result)
		return result;
	result = times_boundary_of(engine, device, sequence, bound);
	if (!result)
		result = history_reaches(engine, partition, *bound);
	if (result != -ENOENT)
		return result;
	/* The table of times may have ended since with the history around it. */
	*bound = sequence;
	kept = history_keeps(engine, partition, sequence);
	return kept == -ENOENT ? result : kept;
}

static int resolve_with(struct engine_txn *txn, struct partition *partition,
			const struct history *device, struct engine_moment moment, uint64_t *bound)
{

	switch (moment.kind) {
	case ENGINE_NOW:
		return present(txn, bound);
	case ENGINE_AT_VERSION:
		return moment.value > ENGINE_VIEW_LAST
			       ? -ENOENT
			       : moment_of_version(txn, partition->id, (uint32_t)moment.value,
						   bound);
	case ENGINE_AT_TIME:
		return resolve_time(txn, partition, device, moment.value, bound);
	case ENGINE_AT_SEQUENCE:
		return resolve_sequence(txn, partition, device, moment.value, bound);
	}
	return -EINVAL;
}

int moment_resolve(struct engine_txn *txn, struct partition *partition, struct engine_moment moment,
		   uint64_t *bound)
{
	struct partition *root;
	int result = partition_get(txn->engine, 0, &root);

	if (result)
		return result;
	result = resolve_with(txn, partition, root->history, moment, bound);
	/* Bound 0 is before anything was written. A wrong year must not lead to an empty device. */
	if (!result && (*bound < partition->created_sequence || *bound == 0))
		result = -ENOENT;
	/* A moment of another partition of its ID, or of none, is no moment of this one. */
	if (!result && moment.kind != ENGINE_NOW)
		result = history_was_there(txn->engine, partition, *bound);
	partition_release(txn->engine, root);
	return result;
}

/* As history_was_there, for a number that need not end a slot. */
static int was_there_inside(struct engine *engine, const struct partition *partition,
			    uint64_t sequence)
{
	int result = history_was_there(engine, partition, sequence);

	/* Its state of then may have been absorbed by one that came later in the slot. */
	return result == -ENOENT ? history_was_there(engine, partition, slot_end(sequence))
				 : result;
}

/* As moment_resolve, for one object: sequence numbers are taken as they are. */
static int resolve_object(struct engine_txn *txn, struct partition *partition,
			  struct engine_moment moment, uint64_t *bound)
{
	uint64_t of_partition;
	int result;

	if (moment.kind == ENGINE_AT_VERSION && moment.value >= ENGINE_VIEW_FIRST &&
	    moment.value <= ENGINE_VIEW_LAST) {
		result = moment_of_view(txn, partition->id, (uint32_t)moment.value, &of_partition,
					bound);
		return result ? result : was_there_inside(txn->engine, partition, *bound);
	}
	if (moment.kind != ENGINE_AT_SEQUENCE)
		return moment_resolve(txn, partition, moment, bound);
	/* A wrong number must not lead to before its objects were there. */
	if (moment.value < partition->created_sequence)
		return -ENOENT;
	/* The present can be reached even if all up to the end of its slot has been given up. */
	if (moment.value >= txn->engine->committed) {
		*bound = txn->engine->committed;
		return history_reaches(txn->engine, partition, slot_end(*bound));
	}
	*bound = moment.value;
	result = history_reaches(txn->engine, partition, *bound);
	return result ? result : was_there_inside(txn->engine, partition, *bound);
}

typedef int resolver(struct engine_txn *txn, struct partition *partition,
		     struct engine_moment moment, uint64_t *bound);

static int resolve_in(struct engine_txn *txn, uint64_t id, resolver *resolve,
		      struct engine_moment moment, uint64_t *sequence)
{
	struct partition *partition;
	int result = partition_get(txn->engine, id, &partition);

	if (result)
		return result;
	result = resolve(txn, partition, moment, sequence);
	partition_release(txn->engine, partition);
	return result;
}

int engine_moment_resolve(struct engine_txn *txn, uint64_t id, struct engine_moment moment,
			  uint64_t *sequence)
{
	return resolve_in(txn, id, moment_resolve, moment, sequence);
}

int engine_object_moment_resolve(struct engine_txn *txn, uint64_t id, struct engine_moment moment,
				 uint64_t *sequence)
{
	return resolve_in(txn, id, resolve_object, moment, sequence);
}

/* ---- version numbers ---- */

/* What a view was made for, if it is still to be reached. */
int moment_of_view(struct engine_txn *txn, uint64_t id, uint32_t version, uint64_t *bound,
		   uint64_t *objects_bound)
{
	struct engine *engine = txn->engine;
	struct partition *partition;
	struct view view;
	bool is_of_this;
	int result;

	pthread_mutex_lock(&engine->past->views_mutex);
	view = engine->past->views[version - ENGINE_VIEW_FIRST];
	is_of_this = view.bound && (!view.partition || view.partition == id);
	if (is_of_this)
		engine->past->views[version - ENGINE_VIEW_FIRST].used_ms = txn->time_ms;
	pthread_mutex_unlock(&engine->past->views_mutex);
	if (!is_of_this)
		return -ENOENT;
	*bound = view.bound;
	*objects_bound = view.objects_bound;
	result = partition_get(engine, view.partition, &partition);
	if (result)
		return result;
	result = history_reaches(engine, partition, view.bound);
	partition_release(engine, partition);
	/* Not every partition is part of what the device was then. */
	if (!result && id && !view.partition)
		result = left_out_check(engine, id, view.bound);
	return result;
}

int moment_of_version(struct engine_txn *txn, uint64_t id, uint32_t version, uint64_t *bound)
{
	struct version_record record;
	struct partition *partition;
	uint64_t objects_bound;
	int result;

	if (version >= ENGINE_VIEW_FIRST)
		return version > ENGINE_VIEW_LAST
			       ? -ENOENT
			       : moment_of_view(txn, id, version, bound, &objects_bound);
	if (id == 0 && version <= ENGINE_PARTITION_VERSION_LAST)
		return -ENOENT;
	result = partition_get(txn->engine, version_is_of_device(version) ? 0 : id, &partition);
	if (result)
		return result;
	result = version_read(txn->engine, partition, version, &record);
	partition_release(txn->engine, partition);
	if (!result)
		*bound = record.sequence;
	return result;
}

/*
 * Sets the bound at which a view of one number reads directories. It is the moment before the
 * number. If the partition was made later, or no moment before is within reach, it is the one
 * behind the number, because states are known at the ends of slots only. If the partition was gone
 * until a rollback of the device brought it back, it had just the directories that it shows now.
 */
static int find_directories(struct engine_txn *txn, const struct partition *partition,
			    struct view *view)
{
	struct engine *engine = txn->engine;
	int result;

	if (view->bound < partition->created_sequence ||
	    (view->bound && view->bound != slot_end(view->bound))) {
		view->bound = slot_end(view->objects_bound);
		return settle_slot(txn, view->bound >= engine->committed);
	}
	result = history_was_there(engine, partition, view->bound);
	if (result != -ENOENT)
		return result;
	view->bound = hidden_next_of(&engine->past->hidden, RECORD_ROOT_INDEX, 0, view->bound);
	return 0;
}

/*
 * A sequence number may lie between two moments. A view of it shows objects exactly as then, and
 * directories as of the moment before.
 */
static int resolve_view(struct engine_txn *txn, struct engine_moment moment, struct view *view)
{
	struct partition *partition;
	int result = engine_moment_resolve(txn, view->partition, moment, &view->bound);

	view->objects_bound = view->bound;
	if (moment.kind != ENGINE_AT_SEQUENCE || (result && result != -ENOENT))
		return result;
	result = partition_get(txn->engine, view->partition, &partition);
	if (result)
		return result;
	result = resolve_object(txn, partition, moment, &view->objects_bound);
	if (!result && view->objects_bound < partition->created_sequence)
		result = -ENOENT;
	if (!result)
		result = find_directories(txn, partition, view);
	if (!result && view->bound == 0)
		result = -ENOENT;
	partition_release(txn->engine, partition);
	return result;
}

uint32_t views_begin(uint64_t now_ms)
{
	/*
	 * The upper bits of the product with 2^64 divided by the golden ratio: near times lead far
	 * apart.
	 */
	return (uint32_t)(now_ms * UINT64_C(0x9e3779b97f4a7c15) >> 32) % ENGINE_VIEWS;
}

static bool is_same_view(const struct view *one, const struct view *other)
{
	return one->partition == other->partition && one->bound == other->bound &&
	       one->objects_bound == other->objects_bound;
}

/*
 * Who reads at a number asks for it again and again. A clock that was set back makes none old;
 * those that were used while it was ahead count as used now.
 */
static bool is_unused(struct view *view, uint64_t now_ms)
{
	view->used_ms = min_u64(view->used_ms, now_ms);
	return !view->bound || now_ms >= view->used_ms + ENGINE_VIEW_UNUSED_MS;
}

/*
 * The place for a view: where it is, or the next one that is not in use. ENGINE_VIEWS: there is
 * none.
 */
static uint32_t place_of_view(struct engine *engine, const struct view *view, uint64_t now_ms)
{
	uint32_t place = ENGINE_VIEWS;

	for (uint32_t at = 0; at < ENGINE_VIEWS; at++)
		if (is_same_view(&engine->past->views[at], view))
			return at;
	for (uint32_t tried = 0; tried < ENGINE_VIEWS && place == ENGINE_VIEWS; tried++) {
		uint32_t at = (engine->past->views_next + tried) % ENGINE_VIEWS;

		if (is_unused(&engine->past->views[at], now_ms))
			place = at;
	}
	if (place < ENGINE_VIEWS)
		engine->past->views_next = (place + 1) % ENGINE_VIEWS;
	return place;
}

/* Gives a view its place, or finds it there. */
static int place_view(struct engine_txn *txn, struct view view, uint32_t *version)
{
	struct engine *engine = txn->engine;
	uint32_t place;

	pthread_mutex_lock(&engine->past->views_mutex);
	place = place_of_view(engine, &view, txn->time_ms);
	if (place < ENGINE_VIEWS) {
		struct view *placed = &engine->past->views[place];

		if (is_same_view(placed, &view)) {
			view.opened |= placed->opened;
			view.holders += placed->holders;
		}
		*placed = view;
	}
	pthread_mutex_unlock(&engine->past->views_mutex);
	*version = ENGINE_VIEW_FIRST + place;
	return place < ENGINE_VIEWS ? 0 : -EFBIG;
}

int engine_view_open(struct engine_txn *txn, uint64_t id, struct engine_moment moment,
		     uint32_t *version)
{
	struct view view = { .partition = id, .used_ms = txn->time_ms, .opened = true };
	int result = resolve_view(txn, moment, &view);

	return result ? result : place_view(txn, view, version);
}

int engine_view_hold(struct engine_txn *txn, uint64_t id, uint32_t *version, uint64_t *bound)
{
	const struct engine_moment now = { .kind = ENGINE_NOW };
	struct view view = { .partition = id, .used_ms = txn->time_ms, .holders = 1 };
	int result = resolve_view(txn, now, &view);

	*bound = view.bound;
	return result ? result : place_view(txn, view, version);
}

void engine_view_release(struct engine_txn *txn, uint64_t id, uint32_t version, uint64_t bound)
{
	struct engine *engine = txn->engine;
	struct view *view = &engine->past->views[version - ENGINE_VIEW_FIRST];

	assert(version >= ENGINE_VIEW_FIRST && version - ENGINE_VIEW_FIRST < ENGINE_VIEWS);
	pthread_mutex_lock(&engine->past->views_mutex);
	/* Otherwise it was unused for so long that another one has its place. */
	if (view->partition == id && view->bound == bound && view->holders > 0) {
		view->holders--;
		if (view->holders == 0 && !view->opened)
			view->bound = 0;
	}
	pthread_mutex_unlock(&engine->past->views_mutex);
}
