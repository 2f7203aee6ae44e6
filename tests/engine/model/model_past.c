/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Comparing what can be reached of the past with what the model remembers: by number, by time,
 * modification by modification.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "engine/history/left_out.h"
#include "engine/history/times.h"
#include "tests/engine/model/model_run.h"

static struct model_partition *some_partition(struct model_run *run)
{
	return &run->model.partitions[model_run_below(run, MODEL_PARTITIONS)];
}

static uint32_t index_of(const struct model_run *run, const struct model_partition *partition)
{
	return (uint32_t)(partition - run->model.partitions);
}

uint64_t history_horizon_of(struct model_run *run, const struct model_partition *partition)
{
	struct engine_history history;

	assert_int_equal(answer(run, engine_history(run->txn, partition->id, &history)), 0);
	return history.horizon_sequence;
}

/* The policy of a partition, or of the device. */
static const struct engine_retention *policy_of(const struct model_run *run, uint64_t id)
{
	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++)
		if (run->model.partitions[index].id == id)
			return locks_policy(&run->model, &run->model.partitions[index].now);
	return &run->model.policy;
}

/* What is not kept by number may be the moment of an interval, which means the end of that. */
static void check_interval(struct model_run *run, uint64_t id, uint64_t ms, uint64_t found)
{
	uint64_t interval = policy_of(run, id)->keep_interval_ms, bound;

	if (!interval)
		fail_msg("at %llu the time %llu means %llu", (unsigned long long)run->now_ms,
			 (unsigned long long)ms, (unsigned long long)found);
	if (model_clock_meaning(&run->model.clock, ms / interval * interval, &bound) ==
	    MODEL_MEANS_MOMENT)
		assert_int_equal(found, bound);
}

/*
 * A time means the moment that it was, in a partition or on the device, or it is refused, as the
 * model says.
 */
static void check_time(struct model_run *run, uint64_t id, uint64_t ms)
{
	struct engine_moment by_time = { ENGINE_AT_TIME, ms };
	struct engine_history history;
	uint64_t bound, found, same;
	enum model_meaning meaning;
	int result;

	model_run_see(run);
	meaning = model_clock_meaning(&run->model.clock, ms, &bound);
	result = answer(run, engine_moment_resolve(run->txn, id, by_time, &found));
	if (meaning == MODEL_NOT_CERTAIN)
		return;
	run->times++;
	run->refused_times += meaning == MODEL_BEFORE_EPOCH;
	if (meaning == MODEL_BEFORE_EPOCH) {
		assert_int_equal(result, -ESTALE);
		return;
	}
	if (result == 0 && found == bound)
		return;
	if (result == 0) {
		check_interval(run, id, ms, found);
		return;
	}
	assert_int_equal(result, -ENOENT);
	if (bound == 0)
		return;
	assert_int_equal(answer(run, engine_history(run->txn, id, &history)), 0);
	if (history.horizon_sequence <= bound)
		assert_int_equal(
			answer(run,
			       engine_moment_resolve(
				       run->txn, id,
				       (struct engine_moment){ ENGINE_AT_SEQUENCE, bound }, &same)),
			result);
}

static void check_some_time(struct model_run *run)
{
	uint64_t id = one_in(run, 4) ? 0 : some_partition(run)->id;
	uint64_t ms = model_clock_some_time(&run->model.clock, run->now_ms,
					    model_run_below(run, UINT64_MAX));
	struct engine_history history;

	if (answer(run, engine_history(run->txn, id, &history)) == 0)
		check_time(run, id, ms);
}

/* A moment of a partition as the model remembers it: read by number and by time. */
static void check_moment(struct model_run *run, const struct model_moment *moment,
			 struct model_partition *partition)
{
	struct model_state *then = (struct model_state *)&moment->states[index_of(run, partition)];
	struct engine_moment by_sequence = { ENGINE_AT_SEQUENCE, moment->sequence };
	uint64_t sequence;
	uint32_t version;
	int result;

	if (moment->version)
		object_check_state(run, partition, moment->version, then);
	if (!partition->now.self)
		return;
	result =
		answer(run, engine_moment_resolve(run->txn, partition->id, by_sequence, &sequence));
	check_time(run, partition->id, moment->ms);
	/* Not there yet, or gone until a rollback of the device brought it back. */
	if (!object_model_is_same(&partition->now, then)) {
		assert_int_equal(result, -ENOENT);
		return;
	}
	if (result) {
		assert_int_equal(result, -ENOENT);
		assert_true(history_horizon_of(run, partition) > moment->sequence);
		return;
	}
	assert_int_equal(sequence, moment->sequence);
	assert_int_equal(
		answer(run, engine_view_open(run->txn, partition->id, by_sequence, &version)), 0);
	object_check_state(run, partition, version, then);
	run->moments++;
}

/*
 * Whether a moment of the device may leave a partition out: its policy was "none" then, or before
 * and after.
 */
static bool may_be_left_out(const struct model_partition *partition,
			    const struct model_moment *moment, const struct model_state *then)
{
	if (then->particular && then->policy.kind == ENGINE_RETAIN_NONE)
		return true;
	return partition->none_first && moment->sequence >= slot_begin(partition->none_first) &&
	       moment->sequence <= slot_end(partition->none_last);
}

bool history_is_left_out(struct model_run *run, const struct model_moment *moment, uint32_t index)
{
	const struct model_partition *partition = &run->model.partitions[index];
	const struct model_state *then = &moment->states[index];
	int result;

	if (!then->self)
		return false;
	result = answer(run, left_out_check(run->engine, partition->id, moment->sequence));
	if (!result)
		return false;
	assert_int_equal(result, -ENOENT);
	assert_true(may_be_left_out(partition, moment, then));
	return true;
}

void history_check_answer_of_device(struct model_run *run, const struct model_moment *moment,
				    int result)
{
	struct partition *root;
	uint64_t horizon = 0;
	int read;

	/* What is pinned is released before the power is found to be off. */
	model_power_notice(run);
	read = partition_get(run->engine, 0, &root);
	if (!read) {
		read = history_horizon(run->engine, root->history, root->history, &horizon);
		partition_release(run->engine, root);
	}
	assert_int_equal(answer(run, read), 0);
	/* Before the first slot was over there was nothing. */
	if (result == -ENOENT)
		assert_true(moment->sequence < horizon || moment->sequence <= slot_end(0));
}

/* A partition as a moment of the device shows it. */
static void check_partition_of_moment(struct model_run *run, struct model_moment *moment,
				      uint32_t version, uint32_t index)
{
	const struct model_partition *partition = &run->model.partitions[index];
	struct engine_stat stat;

	if (!history_is_left_out(run, moment, index)) {
		object_check_state(run, partition, version, &moment->states[index]);
		return;
	}
	assert_int_equal(
		answer(run, engine_stat(run->txn, address_of(partition, 0, version), &stat)),
		-ENOENT);
	run->left_out++;
}

/* The whole device at a moment, with all that has been removed since. */
static void check_moment_of_device(struct model_run *run, struct model_moment *moment)
{
	struct engine_moment by_sequence = { ENGINE_AT_SEQUENCE, moment->sequence };
	uint32_t version;
	int result;

	if (moment->version)
		return;
	result = answer(run, engine_view_open(run->txn, 0, by_sequence, &version));
	history_check_answer_of_device(run, moment, result);
	if (result) {
		assert_int_equal(result, -ENOENT);
		return;
	}
	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++)
		check_partition_of_moment(run, moment, version, index);
	run->moments++;
}

/* The object before its newest modifications, and the log of them. */
static void check_object(struct model_run *run, struct model_partition *partition, uint64_t id)
{
	struct model_object *object = object_model_last(&partition->now, id);
	struct engine_address address = address_of(partition, id, 0);
	struct engine_modification found;
	uint64_t below = UINT64_MAX;

	if (!partition->now.self || !object || object->type == ENGINE_COLLECTION)
		return;
	for (; object && object->type != ENGINE_COLLECTION; object = object->older) {
		struct engine_stat stat;
		int result =
			answer(run, engine_log_next(run->txn, partition->id, id, below, &found));

		if (result == -ENOENT) {
			/* That something went is forgotten when nothing is left of what it was. */
			assert_true(object->removed || below < history_horizon_of(run, partition));
			return;
		}
		assert_int_equal(result, 0);
		assert_int_equal(found.sequence, object->modified_sequence);
		assert_int_equal(found.removed, object->removed);
		if (address.ago && object->removed)
			assert_int_equal(answer(run, engine_stat(run->txn, address, &stat)),
					 -ENOENT);
		else if (address.ago)
			object_check(run, address, &partition->now, object);
		below = found.sequence - 1;
		address.ago++;
		run->undone++;
	}
}

void history_check(struct model_run *run)
{
	for (uint32_t slot = 0; slot < MODEL_MOMENTS; slot++) {
		if (!run->model.moments[slot].sequence)
			continue;
		for (uint32_t index = 0; index < MODEL_PARTITIONS; index++)
			check_moment(run, &run->model.moments[slot], &run->model.partitions[index]);
		check_moment_of_device(run, &run->model.moments[slot]);
	}
	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++) {
		struct model_partition *partition = &run->model.partitions[index];

		for (uint32_t n = 0; n < partition->now.count; n++)
			if (one_in(run, 4))
				check_object(run, partition, partition->now.objects[n]->id);
	}
}

void history_check_some(struct model_run *run)
{
	struct model_moment *moment = &run->model.moments[model_run_below(run, MODEL_MOMENTS)];
	struct model_partition *partition = some_partition(run);

	if (moment->sequence)
		check_moment(run, moment, partition);
	if (moment->sequence && one_in(run, 4))
		check_moment_of_device(run, moment);
	for (int times = 0; times < 4; times++)
		check_some_time(run);
	check_object(run, partition, ENGINE_FIRST_ID + model_run_below(run, 90));
}
