/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Runs random operations on an engine and on its model side by side. */
#include "tests/engine/model/model_power.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bytes.h"

const struct model_weights model_usual = {
	.reading = 33,
	.history = 6,
	.jumps = 150,
	.upheavals = 300,
	.looks = 300,
	.disturbed = 20,
	.crashes = 200,
	.aborts = 12,
};

const struct model_weights model_historic = {
	.reading = 33,
	.history = 17,
	.jumps = 150,
	.upheavals = 300,
	.looks = 300,
	.cuts = 24,
	.failures = 32,
	.disturbed = 20,
	.crashes = 200,
	.aborts = 12,
	.comebacks = 6,
};

const struct model_weights model_restless = {
	.reading = 33,
	.history = 22,
	.jumps = 150,
	.upheavals = 300,
	.looks = 300,
	.cuts = 24,
	.failures = 32,
	.disturbed = 20,
	.crashes = 200,
	.aborts = 12,
	.comebacks = 6,
};

/* When a run begins: long enough behind the beginning of time for the clock to go back. */
#define FIRST_MS 300000

static uint64_t mixed(uint64_t z)
{
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

uint64_t model_run_below(struct model_run *run, uint64_t limit)
{
	return mixed(run->random += UINT64_C(0x9e3779b97f4a7c15)) % limit;
}

static uint64_t clock_of(void *context)
{
	return ((struct model_run *)context)->now_ms;
}

static uint64_t running_of(void *context)
{
	return ((struct model_run *)context)->running_ms;
}

/* ---- transactions ---- */

static void reading_transaction(struct model_run *run)
{
	uint64_t count = 1 + model_run_below(run, 6);

	run->doing = MODEL_READING;
	run->model.bypass = false;
	assert_int_equal(answer(run, engine_begin(run->engine, ENGINE_READ, &run->txn)), 0);
	if (one_in(run, 6))
		history_check_some(run);
	for (; count; count--)
		operate_reading(run);
	engine_abort(run->txn);
	run->txn = NULL;
}

/* ---- the clock ---- */

void model_run_see(struct model_run *run)
{
	model_power_notice(run);
	model_clock_see(&run->model.clock, run->engine->committed, run->now_ms);
}

void model_run_set_clock(struct model_run *run, uint64_t ms)
{
	if (run->engine)
		model_run_see(run);
	run->now_ms = ms;
	locks_follow_clock(run);
}

void model_run_pass(struct model_run *run, uint64_t ms)
{
	run->running_ms += ms;
	model_run_set_clock(run, run->now_ms + ms);
}

void model_run_learn_device_time(struct model_run *run)
{
	uint64_t found_ms = device_time_now(run->engine);

	assert_true(found_ms <= model_run_device_ms(run));
	run->closed_for_ms = run->running_ms - found_ms;
}

void model_run_jump(struct model_run *run, uint64_t one_of)
{
	if (!run->weights->jumps || !one_in(run, one_of))
		return;
	model_run_set_clock(run, model_clock_some_jump(&run->model.clock, run->now_ms,
						       model_run_below(run, UINT64_MAX)));
	run->jumps++;
}

/* ---- opening again ---- */

static void open_again(struct model_run *run)
{
	run->doing = MODEL_OPENING;
	run->closed_ms = run->now_ms;
	model_run_jump(run, 4);
	run->engine = run->store.open(run);
	model_power_notice(run);
	model_clock_see(&run->model.clock, run->engine->committed, run->closed_ms);
	model_clock_open(&run->model.clock, run->engine->committed);
	model_run_learn_device_time(run);
}

void model_run_leave(struct model_run *run)
{
	if (run->engine && run->store.leave)
		run->store.leave(run);
}

void model_run_abandon(struct model_run *run)
{
	model_run_leave(run);
	engine_abandon(run->engine);
	run->engine = NULL;
	run->txn = NULL;
	object_model_abort(&run->model);
	run->crashes++;
	run->crashed = true;
	open_again(run);
}

/* It may commit access times, in a slot of their own: what was before has to be seen first. */
void model_run_flush(struct model_run *run)
{
	model_run_see(run);
	run->doing = MODEL_FLUSHING;
	assert_int_equal(answer(run, engine_flush(run->engine)), 0);
	model_power_flushed(run);
}

void model_run_begin(struct model_run *run, enum engine_mode mode)
{
	/* What the engine has committed for itself may be of the slot before. */
	model_run_see(run);
	assert_int_equal(engine_begin(run->engine, mode, &run->txn), 0);
	object_model_begin(&run->model, run->txn->sequence, run->now_ms);
	model_power_notice(run);
}

bool model_run_commit(struct model_run *run)
{
	bool stable = one_in(run, 10);
	int result;

	model_power_committing(run);
	result = engine_commit(run->txn, stable);
	run->txn = NULL;
	if (model_power_committed(run, result, stable))
		return true;
	run->commits += result == 0;
	run->failures += result == -ENOSPC;
	assert_true(result == 0 || result == -ENOSPC);
	return result == 0;
}

static void writing_transaction(struct model_run *run)
{
	enum engine_mode mode = one_in(run, 10) ? ENGINE_FREE : ENGINE_WRITE;
	uint64_t count = 1 + model_run_below(run, 8);

	run->doing = MODEL_WRITING;
	if (run->store.disturb && now_and_then(run, run->weights->disturbed))
		run->store.disturb(run);
	model_run_begin(run, mode);
	if (one_in(run, 40))
		operate_snapshot(run);
	while (run->txn && count--)
		operate(run);
	if (!run->txn)
		return;
	if (now_and_then(run, run->weights->crashes)) {
		model_run_abandon(run);
	} else if (now_and_then(run, run->weights->aborts)) {
		engine_abort(run->txn);
		run->txn = NULL;
		object_model_abort(&run->model);
		run->aborts++;
	} else if (model_run_commit(run)) {
		object_model_commit(&run->model);
	} else {
		object_model_abort(&run->model);
	}
}

/*
 * The access times of an object are found as they are stored, unless the host fails: then they may
 * be those of before.
 */
static void found_stored(struct model_run *run, struct model_object *object)
{
	if (!model_power_may_take_back(run)) {
		object_model_settled(object);
		return;
	}
	object_model_accessed(object, ENGINE_TIME_DATA_ACCESSED,
			      object->times_ms[ENGINE_TIME_DATA_ACCESSED]);
	object_model_accessed(object, ENGINE_TIME_ATTRIBUTES_ACCESSED,
			      object->times_ms[ENGINE_TIME_ATTRIBUTES_ACCESSED]);
}

/* Everything that is known about access times is stable now. */
static void all_stable(struct model_run *run)
{
	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++) {
		struct model_state *state = &run->model.partitions[index].now;

		if (state->self)
			found_stored(run, state->self);
		for (uint32_t object = 0; object < state->count; object++)
			found_stored(run, state->objects[object]);
	}
}

static void look(struct model_run *run, bool whole)
{
	assert_int_equal(answer(run, engine_begin(run->engine, ENGINE_READ, &run->txn)), 0);
	object_check_present(run);
	locks_check(run);
	if (whole)
		object_check_versions(run);
	else
		object_check_some_version(run);
	if (whole && (one_in(run, 3) || (run->power && run->crashed)))
		history_check(run);
	else if (!whole)
		history_check_some(run);
	engine_abort(run->txn);
	run->txn = NULL;
	if (run->crashed)
		all_stable(run);
	run->crashed = run->unsure = false;
}

void model_run_look(struct model_run *run)
{
	look(run, true);
}

void model_run_look_again(struct model_run *run)
{
	look(run, run->weights->wholes == 0 || one_in(run, run->weights->wholes));
}

static void format(struct model_run *run)
{
	model_power_notice(run); /* it may have none already */
	model_power_spare(run);
	if (locks_hold_anything(run)) {
		assert_int_equal(engine_reformat(run->engine), -EPERM);
		run->refusals++;
		model_run_pass(run, locks_latest(&run->model) - model_run_device_ms(run));
	}
	assert_int_equal(engine_reformat(run->engine), 0);
	object_model_clear(&run->model);
	model_clock_open(&run->model.clock, run->engine->committed);
	run->formats++;
}

static void close_and_open(struct model_run *run)
{
	struct engine *engine = run->engine;

	model_run_see(run);
	model_run_leave(run);
	run->engine = NULL;
	run->doing = MODEL_CLOSING;
	assert_int_equal(answer(run, engine_close(engine)), 0);
	model_power_flushed(run);
	/* On a full device access times can get lost. */
	run->crashed = true;
	open_again(run);
}

void model_run_restart(struct model_run *run, bool killed)
{
	if (!killed) {
		close_and_open(run);
		return;
	}
	object_model_begin(&run->model, 0, 0);
	model_run_abandon(run);
}

/* Opens again, cleanly or not, flushes, or formats. */
static void upheaval(struct model_run *run)
{
	switch (model_run_below(run, 4)) {
	case 0:
	case 1:
		model_run_restart(run, one_in(run, 2));
		break;
	case 2:
		model_run_flush(run);
		break;
	default:
		if (one_in(run, 10))
			format(run);
		break;
	}
	run->doing = MODEL_READING;
	model_run_look(run);
}

/* A full store is formatted, or nothing would happen any more. */
static void format_if_full(struct model_run *run)
{
	if (run->commits > run->full_commits) {
		run->full_commits = run->commits;
		run->full_failures = run->failures;
	}
	if (run->failures - run->full_failures < 20)
		return;
	model_power_spare(run);
	model_run_look(run);
	format(run);
	run->full_failures = run->failures;
}

static void do_something(struct model_run *run)
{
	const struct model_weights *weights = run->weights;
	uint32_t dice = (uint32_t)model_run_below(run, 100);

	if (dice < weights->reading)
		reading_transaction(run);
	else if (dice - weights->reading < weights->history)
		history_operate(run);
	else if (dice - weights->reading - weights->history < weights->others)
		run->store.other(run);
	else
		writing_transaction(run);
}

/* Access times are to be learned; where nobody compares them a few looks are enough. */
static bool is_to_learn(struct model_run *run)
{
	return run->unsure && (!run->times_free || one_in(run, 100));
}

/* A transaction, and sometimes more. */
static void turn(struct model_run *run)
{
	const struct model_weights *weights = run->weights;

	model_run_pass(run, model_run_below(run, 100));
	model_run_jump(run, weights->jumps);
	if (run->store.between)
		run->store.between(run);
	do_something(run);
	if (run->store.calm)
		run->store.calm(run);
	if (now_and_then(run, weights->upheavals))
		upheaval(run);
	else if (now_and_then(run, weights->looks))
		model_run_look(run);
	else if (run->crashed || is_to_learn(run))
		model_run_look_again(run);
}

void model_run_open(struct model_run *run, uint64_t seed)
{
	if (!run->weights)
		run->weights = &model_usual;
	run->seed = seed;
	run->now_ms = FIRST_MS;
	run->running_ms = DEVICE_TIME_FIRST;
	run->options.running_ms = running_of;
	run->options.clock_ms = clock_of;
	run->options.clock_context = run;
	run->engine = run->store.open(run);
	object_model_init(&run->model, run->engine->page_bytes);
	run->buffer = malloc(max_u64(all_bytes(run), 5000));
	assert_non_null(run->buffer);
}

void model_run_step(struct model_run *run, uint64_t step)
{
	run->step = step;
	run->random = mixed(run->seed * UINT64_C(0x9e3779b97f4a7c15) + mixed(step + 1));
	model_power_turn(run, turn);
	format_if_full(run);
}

void model_run_close(struct model_run *run)
{
	model_power_spare(run);
	model_run_look(run);
	model_run_leave(run);
	assert_int_equal(engine_close(run->engine), 0);
	run->engine = NULL;
	object_model_clear(&run->model);
	free(run->buffer);
}

void model_run(struct model_run *run, uint64_t seed, uint64_t operations)
{
	model_run_open(run, seed);
	for (uint64_t step = 0; run->operations < operations; step++)
		model_run_step(run, step);
	model_run_close(run);
	printf("%llu operations: %llu commits, %llu aborts, %llu crashes, %llu without room, %llu "
	       "formats, %llu rollbacks, %llu clones; %llu moments and %llu modifications "
	       "compared; %llu locks, %llu refusals for them; %llu jumps of the clock, %llu "
	       "epochs, %llu times looked up, %llu of before the epoch; %llu comparisons of two "
	       "moments; "
	       "%llu partitions left out of moments; %llu writes of data alone\n",
	       (unsigned long long)run->operations, (unsigned long long)run->commits,
	       (unsigned long long)run->aborts, (unsigned long long)run->crashes,
	       (unsigned long long)run->failures, (unsigned long long)run->formats,
	       (unsigned long long)run->rollbacks, (unsigned long long)run->clones,
	       (unsigned long long)run->moments, (unsigned long long)run->undone,
	       (unsigned long long)run->locks, (unsigned long long)run->refusals,
	       (unsigned long long)run->jumps, (unsigned long long)run->epochs,
	       (unsigned long long)run->times, (unsigned long long)run->refused_times,
	       (unsigned long long)run->diffs, (unsigned long long)run->left_out,
	       (unsigned long long)run->overwritten);
}
