/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * History in random runs: moments and versions of the device, rollbacks, undo, clones, policies,
 * each in a transaction of its own that may end in a crash; and comparing what can be reached of
 * the past with what the model remembers.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "engine/history/times.h"
#include "tests/engine/model/model_power.h"

/* About how many records and pages they take, for power cuts. */
enum { OPERATIONS_OF_A_COMMAND = 16, OPERATIONS_OF_A_MERGE = 200 };

static struct model_partition *some_partition(struct model_run *run)
{
	return &run->model.partitions[model_run_below(run, MODEL_PARTITIONS)];
}

static uint32_t index_of(const struct model_run *run, const struct model_partition *partition)
{
	return (uint32_t)(partition - run->model.partitions);
}

/* ---- transactions of one operation ---- */

/* Ends the transaction of an operation that had `result`. Whether the model follows. */
static bool finish(struct model_run *run, int result)
{
	if (run->txn && one_in(run, 10)) {
		model_run_abandon(run);
		return false;
	}
	if (result) {
		run->failures += result == -ENOSPC;
		run->refusals += result == -EPERM;
		engine_abort(run->txn);
		run->txn = NULL;
	} else if (model_run_commit(run)) {
		return true;
	}
	object_model_abort(&run->model);
	return false;
}

/* Begins the transaction of an operation, in which the power often fails. */
static void begin(struct model_run *run, enum engine_mode mode, enum model_doing doing)
{
	run->operations++;
	run->doing = doing;
	model_power_threaten(run, OPERATIONS_OF_A_COMMAND);
	model_run_begin(run, mode);
}

/* The operation may have begun a slot. */
static void follow(struct model_run *run)
{
	run->model.sequence = run->txn->sequence;
}

static void note_moment(struct model_run *run)
{
	struct engine_moment now = { .kind = ENGINE_NOW };
	uint64_t sequence;

	/* So far behind the last commit that this is certain after a crash too. */
	model_run_pass(run, 1500);
	assert_int_equal(answer(run, engine_begin(run->engine, ENGINE_READ, &run->txn)), 0);
	assert_int_equal(answer(run, engine_moment_resolve(run->txn, 0, now, &sequence)), 0);
	engine_abort(run->txn);
	run->txn = NULL;
	object_model_note_moment(
		&run->model, MODEL_MOMENTS / 2 + (uint32_t)model_run_below(run, MODEL_MOMENTS / 2),
		sequence, run->now_ms, 0);
	model_run_pass(run, 1);
}

/* The device's versions are in the first slots. */
static void snapshot_device(struct model_run *run)
{
	struct model_moment *moment = &run->model.moments[model_run_below(run, MODEL_MOMENTS / 2)];
	uint32_t version = 0, dropped = moment->sequence ? moment->version : 0;
	uint64_t sequence;
	int result;

	model_run_pass(run, 1500);
	begin(run, ENGINE_HISTORY, MODEL_DEVICE_SNAPSHOT);
	result = answer(run, engine_snapshot(run->txn, 0, NULL, &version));
	follow(run);
	sequence = slot_end(run->engine->committed);
	if (!result && dropped) {
		result = answer(run, engine_version_drop(run->txn, 0, dropped));
		if (result != -EPERM)
			assert_false(locks_hold_anything(run));
		else
			assert_true(locks_may_hold_anything(run));
	}
	if (finish(run, result))
		object_model_note_moment(&run->model, (uint32_t)(moment - run->model.moments),
					 sequence, run->now_ms - 1, version);
}

static void drop_version(struct model_run *run)
{
	struct model_partition *partition = some_partition(run);
	uint32_t index;

	if (!partition->version_count)
		return;
	index = (uint32_t)model_run_below(run, partition->version_count);
	begin(run, ENGINE_RESCUE, MODEL_DROP);
	int result = answer(
		run, engine_version_drop(run->txn, partition->id, partition->numbers[index]));

	if (locks_hold_for(run, &partition->now))
		assert_int_equal(result, -EPERM);
	else
		assert_true(result == 0 || result == -ENOSPC || result == -EBUSY);
	if (finish(run, result)) {
		object_model_drop_version(partition, index);
		object_model_commit(&run->model);
		run->unsure = true;
	}
}

/* ---- a moment to go back to ---- */

/*
 * Some moment that the model remembers of a partition. false: it has none, or, with *then, it was
 * not there.
 */
static bool some_past(struct model_run *run, struct model_partition *partition,
		      struct engine_moment *moment, struct model_state **then)
{
	struct model_moment *noted = &run->model.moments[model_run_below(run, MODEL_MOMENTS)];

	*then = NULL;
	if (one_in(run, 2)) {
		uint64_t index;

		if (!partition->version_count)
			return false;
		index = model_run_below(run, partition->version_count);
		*moment = (struct engine_moment){ ENGINE_AT_VERSION, partition->numbers[index] };
		*then = &partition->versions[index];
		return true;
	}
	if (!noted->sequence)
		return false;
	*moment = (struct engine_moment){ ENGINE_AT_SEQUENCE, noted->sequence };
	if (noted->version)
		*moment = (struct engine_moment){ ENGINE_AT_VERSION, noted->version };
	*then = &noted->states[index_of(run, partition)];
	return object_model_is_same(&partition->now, *then);
}

/* Whether that could be reached, which only what is not kept by number need not be. */
static bool reached(int result, const struct engine_moment *moment)
{
	assert_true(result == 0 || result == -ENOSPC || result == -EFBIG || result == -EMLINK ||
		    (result == -ENOENT && moment->kind != ENGINE_AT_VERSION));
	return result == 0;
}

/* Between any two moments, in either order, the present among them. */
static void compare_differences(struct model_run *run)
{
	struct model_partition *partition = some_partition(run);
	struct engine_moment moments[2] = { { .kind = ENGINE_NOW }, { .kind = ENGINE_NOW } };
	struct model_state *states[2] = { &partition->now, &partition->now };
	bool was_there = partition->now.self;

	for (int side = 0; side < 2 && was_there; side++)
		if (!one_in(run, 3))
			was_there = some_past(run, partition, &moments[side], &states[side]);
	if (!was_there)
		return;
	run->operations++;
	run->doing = MODEL_READING;
	assert_int_equal(answer(run, engine_begin(run->engine, ENGINE_READ, &run->txn)), 0);
	run->diffs += model_check_differences(run, partition, moments, states[0], states[1]);
	engine_abort(run->txn);
	run->txn = NULL;
}

static void roll_back(struct model_run *run)
{
	struct model_partition *partition = some_partition(run);
	struct engine_moment moment;
	struct model_state *then;
	bool was_there;
	int result;

	if (!partition->now.self)
		return;
	was_there = some_past(run, partition, &moment, &then);
	if (!then)
		return;
	begin(run, ENGINE_HISTORY, MODEL_ROLLBACK);
	result = answer(run, engine_rollback(run->txn, partition->id, moment));
	if (was_there)
		reached(result, &moment);
	else
		assert_int_equal(result, -ENOENT);
	if (!finish(run, result))
		return;
	object_model_go_back(&run->model, partition, then);
	object_model_commit(&run->model);
	run->unsure = true;
	run->rollbacks++;
}

void history_learn_given_up(struct model_run *run)
{
	assert_int_equal(answer(run, engine_begin(run->engine, ENGINE_READ, &run->txn)), 0);
	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++) {
		struct model_partition *partition = &run->model.partitions[index];
		struct partition *found;

		if (!partition->came_back || !partition->now.self)
			continue;
		assert_int_equal(answer(run, partition_get(run->engine, partition->id, &found)), 0);
		if ((partition->now.particular && !found->history->particular) ||
		    (partition->version_count && !found->history->versions.count)) {
			assert_false(found->history->particular);
			partition->now.particular = false;
			partition->version_count = partition->version_count_before = 0;
		}
		partition_release(run->engine, found);
	}
	engine_abort(run->txn);
	run->txn = NULL;
}

void history_learn_numbers(struct model_run *run)
{
	struct engine_stat stat;

	assert_int_equal(answer(run, engine_begin(run->engine, ENGINE_READ, &run->txn)), 0);
	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++) {
		struct model_partition *partition = &run->model.partitions[index];
		struct engine_address address = address_of(partition, 0, 0);

		if (partition->version_count == 0 && partition->now.self) {
			assert_int_equal(answer(run, engine_stat(run->txn, address, &stat)), 0);
			partition->now.version = stat.version;
		}
	}
	engine_abort(run->txn);
	run->txn = NULL;
}

/* One that is left out stays as it is: there, or gone, also if there is another one now. */
static void go_back_with_device(struct model_run *run, uint32_t index,
				const struct model_state *then, bool left_out)
{
	struct model_partition *partition = &run->model.partitions[index];
	const struct model_state gone = { 0 };

	if (left_out && object_model_is_same(&partition->now, then))
		return;
	object_model_go_back(&run->model, partition, left_out ? &gone : then);
}

static void roll_back_device(struct model_run *run)
{
	struct model_moment *noted = &run->model.moments[model_run_below(run, MODEL_MOMENTS)];
	struct engine_moment moment = { ENGINE_AT_SEQUENCE, noted->sequence };
	bool left_out[MODEL_PARTITIONS] = { false };
	uint64_t sequence;
	int result;

	if (!noted->sequence)
		return;
	if (noted->version)
		moment = (struct engine_moment){ ENGINE_AT_VERSION, noted->version };
	begin(run, ENGINE_HISTORY, MODEL_DEVICE_ROLLBACK);
	result = answer(run, engine_moment_resolve(run->txn, 0, moment, &sequence));
	if (!result)
		noted->sequence = sequence;
	for (uint32_t index = 0; !result && index < MODEL_PARTITIONS; index++)
		left_out[index] = history_is_left_out(run, noted, index);
	result = answer(run, engine_rollback(run->txn, 0, moment));
	if (!noted->version)
		history_check_answer_of_device(run, noted, result);
	if (result == -EPERM)
		assert_true(locks_refuse_going_back(run, noted));
	else if (reached(result, &moment))
		assert_false(locks_refuse_going_back(run, noted));
	if (!finish(run, result))
		return;
	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++)
		go_back_with_device(run, index, &noted->states[index], left_out[index]);
	object_model_commit(&run->model);
	run->unsure = true;
	history_learn_given_up(run);
	history_learn_numbers(run);
	run->rollbacks++;
}

/* ---- single objects ---- */

/* What restoring an object should say, and whether the model follows. */
static void restore(struct model_run *run, struct model_partition *partition, uint64_t id,
		    struct model_object *then, int result)
{
	const struct model_object *now = object_model_find(&partition->now, id);

	follow(run);
	if (result == -ENOENT && then && !(then->removed && !now))
		assert_true(run->lossy || history_horizon_of(run, partition) >
						  partition->now.self->created_sequence);
	else if (result != -ENOENT && result != -ENOSPC)
		assert_int_equal(result, 0);
	if (!finish(run, result))
		return;
	assert_true(then && !(then->removed && !now));
	object_model_restore(&run->model, partition, id, then);
	object_model_commit(&run->model);
	run->unsure = true;
	run->undone++;
}

static bool has_room(const struct model_partition *partition, uint64_t id)
{
	return partition->now.count < MODEL_OBJECTS || object_model_find(&partition->now, id);
}

static void undo(struct model_run *run)
{
	struct model_partition *partition = some_partition(run);
	uint64_t id = ENGINE_FIRST_ID + model_run_below(run, 90);
	uint32_t count = 1 + (uint32_t)model_run_below(run, 3);
	struct model_object *then = object_model_last(&partition->now, id);

	if (!partition->now.self || !has_room(partition, id))
		return;
	for (uint32_t n = 0; n < count && then; n++)
		then = then->type == ENGINE_COLLECTION ? NULL : then->older;
	if (!then || then->type == ENGINE_COLLECTION)
		return;
	begin(run, ENGINE_WRITE, MODEL_UNDO);
	restore(run, partition, id, then,
		answer(run, engine_undo(run->txn, partition->id, id, count)));
}

static void roll_back_object(struct model_run *run)
{
	struct model_partition *partition = some_partition(run);
	uint64_t id = ENGINE_FIRST_ID + model_run_below(run, 90);
	struct model_object gone = { .removed = true }, *object, *now;
	struct engine_moment moment;
	struct model_state *then;

	if (!partition->now.self || !some_past(run, partition, &moment, &then) ||
	    !has_room(partition, id))
		return;
	object = object_model_find(then, id);
	now = object_model_find(&partition->now, id);
	if ((object && object->type == ENGINE_COLLECTION) ||
	    (now && now->type == ENGINE_COLLECTION))
		return;
	begin(run, ENGINE_WRITE, MODEL_OBJECT_ROLLBACK);
	restore(run, partition, id, object ? object : &gone,
		answer(run, engine_rollback_object(run->txn, partition->id, id, moment)));
}

/* ---- clones ---- */

/* So that there is room for a clone. */
static void remove_partition(struct model_run *run, struct model_partition *partition)
{
	int result;

	begin(run, ENGINE_FREE, MODEL_REMOVE);
	result = answer(run, engine_partition_remove(run->txn, partition->id, true));
	if (locks_hold_for(run, &partition->now))
		assert_int_equal(result, -EPERM);
	else
		assert_true(result == 0 || result == -ENOSPC);
	if (!finish(run, result))
		return;
	object_model_partition_remove(&run->model, partition);
	object_model_commit(&run->model);
}

static void make_clone(struct model_run *run)
{
	struct model_partition *partition = some_partition(run), *source = some_partition(run);
	struct engine_moment moment = { .kind = ENGINE_NOW };
	struct model_state *then = &source->now;
	uint64_t id;
	int result;

	if (partition->now.self && partition != source &&
	    now_and_then(run, run->weights->comebacks))
		remove_partition(run, partition);
	if (partition->now.self || !source->now.self ||
	    (!one_in(run, 3) && !some_past(run, source, &moment, &then)))
		return;
	begin(run, ENGINE_WRITE, MODEL_CLONE);
	result = answer(run, engine_clone(run->txn, source->id, moment, partition->id, true, &id));
	reached(result, &moment);
	follow(run);
	if (!finish(run, result))
		return;
	assert_int_equal(id, partition->id);
	object_model_clone(&run->model, partition, then, true);
	object_model_commit(&run->model);
	run->unsure = true;
	run->clones++;
}

/* Refreshes or detaches what is a clone as the engine says. */
static void change_clone(struct model_run *run)
{
	struct model_partition *partition = some_partition(run), *source = NULL;
	bool detach = one_in(run, 4);
	struct engine_clone facts;
	int result;

	if (!partition->now.self)
		return;
	begin(run, ENGINE_WRITE, detach ? MODEL_DETACH : MODEL_REFRESH);
	if (answer(run, engine_clone_get(run->txn, partition->id, &facts))) {
		result = answer(run, engine_clone_refresh(run->txn, partition->id));
		assert_int_equal(result, -ENOENT);
		finish(run, result);
		return;
	}
	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++)
		if (run->model.partitions[index].id == facts.source)
			source = &run->model.partitions[index];
	result = answer(run, detach ? engine_clone_detach(run->txn, partition->id)
				    : engine_clone_refresh(run->txn, partition->id));
	assert_true(result == -ENOSPC || result == (detach || source ? 0 : -ENOENT));
	if (!finish(run, result) || detach)
		return;
	object_model_clone(&run->model, partition, &source->now, false);
	object_model_commit(&run->model);
	run->unsure = true;
	run->clones++;
}

/* ---- what is kept ---- */

static void set_retention(struct model_run *run)
{
	struct model_partition *partition = one_in(run, 3) ? NULL : some_partition(run);
	const struct model_state *state = partition ? &partition->now : NULL;
	const struct engine_retention retention =
		locks_some_policy(run, locks_policy(&run->model, state));
	bool administrator = one_in(run, 5);
	int result;

	if (!run->policies || (partition && !partition->now.self))
		return;
	begin(run, ENGINE_RESCUE, MODEL_RETENTION);
	result = answer(run, engine_retention_set(run->txn, partition ? partition->id : 0,
						  &retention, administrator));
	follow(run);
	if (!administrator && locks_refuse_policy(run, state, &retention))
		assert_int_equal(result, -EPERM);
	else
		assert_true(result == 0 || result == -ENOSPC);
	if (!finish(run, result))
		return;
	locks_set_policy(run, partition, &retention, administrator);
	run->locks += locks_hold_for(run, state);
	object_model_commit(&run->model);
	run->lossy = true;
}

static void begin_epoch(struct model_run *run)
{
	bool behind;
	int result;

	begin(run, ENGINE_RESCUE, MODEL_EPOCH);
	behind = model_clock_is_behind(&run->model.clock, run->now_ms);
	result = answer(run, engine_time_epoch(run->txn));
	follow(run);
	assert_true(behind ? result == 0 || result == -ENOSPC : result == -EALREADY);
	if (!finish(run, result))
		return;
	model_clock_begin_epoch(&run->model.clock, run->model.sequence, run->now_ms);
	locks_forget_kept(run);
	object_model_commit(&run->model);
	run->epochs++;
}

static void merge(struct model_run *run)
{
	struct engine_merge_result total = { 0 };

	run->operations++;
	run->doing = MODEL_MERGE;
	model_power_threaten(run, OPERATIONS_OF_A_MERGE);
	for (int step = 0; step < 4; step++)
		if (answer(run, engine_merge(run->engine, &total)))
			break;
}

/* A partition goes, and a clone of another one comes in its place. */
static void replace_by_clone(struct model_run *run)
{
	struct model_partition *partition = some_partition(run);

	if (!partition->now.self)
		return;
	remove_partition(run, partition);
	for (int attempt = 0; attempt < 12 && !partition->now.self; attempt++)
		make_clone(run);
}

/* One of `count` operations. */
static void one_of(struct model_run *run, void (*const operations[])(struct model_run *),
		   size_t count)
{
	operations[model_run_below(run, count)](run);
}

void history_operate(struct model_run *run)
{
	static void (*const of_restless[])(struct model_run *) = {
		note_moment,
		note_moment,
		snapshot_device,
		snapshot_device,
		drop_version,
		roll_back,
		roll_back,
		undo,
		undo,
		undo,
		compare_differences,
		make_clone,
		make_clone,
		make_clone,
		make_clone,
		change_clone,
		roll_back_object,
		replace_by_clone,
		merge,
	};
	static void (*const operations[])(struct model_run *) = {
		note_moment,
		note_moment,
		snapshot_device,
		drop_version,
		roll_back,
		roll_back,
		undo,
		undo,
		undo,
		compare_differences,
		make_clone,
		make_clone,
		change_clone,
		change_clone,
		roll_back_object,
		roll_back_object,
		merge,
	};

	if (one_in(run, 20)) {
		if (one_in(run, 4))
			roll_back_device(run);
		else if (one_in(run, 4))
			begin_epoch(run);
		else
			set_retention(run);
		return;
	}
	if (run->restless)
		one_of(run, of_restless, sizeof(of_restless) / sizeof(of_restless[0]));
	else
		one_of(run, operations, sizeof(operations) / sizeof(operations[0]));
}
