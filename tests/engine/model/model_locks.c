/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Policies and their locks in random runs: what holds, what must be refused for it, and that what
 * is locked stays.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "engine/history/history.h"
#include "tests/engine/model/model_run.h"

/* ---- what holds ---- */

const struct engine_retention *locks_policy(const struct object_model *model,
					    const struct model_state *state)
{
	return state && state->particular ? &state->policy : &model->policy;
}

static bool is_locked(const struct model_run *run, const struct engine_retention *policy)
{
	return policy->locked_until_ms > model_run_device_ms(run);
}

bool locks_hold_for(const struct model_run *run, const struct model_state *state)
{
	return is_locked(run, locks_policy(&run->model, state));
}

uint64_t locks_latest(const struct object_model *model)
{
	uint64_t latest = model->policy.locked_until_ms;

	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++) {
		const struct model_state *state = &model->partitions[index].now;

		if (state->self)
			latest = max_u64(latest, locks_policy(model, state)->locked_until_ms);
	}
	return latest;
}

bool locks_hold_anything(const struct model_run *run)
{
	return locks_latest(&run->model) > model_run_device_ms(run);
}

/* Of a partition (0: of the device), by the engine. */
uint64_t locks_stored(struct model_run *run, uint64_t id)
{
	struct partition *partition;
	uint64_t until_ms;

	assert_int_equal(answer(run, partition_get(run->engine, id, &partition)), 0);
	until_ms = history_policy(run->engine, partition->history)->locked_until_ms;
	partition_release(run->engine, partition);
	return until_ms;
}

/*
 * The model keeps locks in device time. One that is over, or that an administrator ends, stays;
 * less than a minute earlier is the same day.
 */
static struct engine_retention to_store(const struct model_run *run,
					const struct engine_retention *now,
					const struct engine_retention *wanted)
{
	uint64_t device_ms = model_run_device_ms(run);
	struct engine_retention stored = *wanted;

	if (wanted->locked_until_ms <= run->now_ms) {
		stored.locked_until_ms = min_u64(now->locked_until_ms, device_ms);
		return stored;
	}
	stored.locked_until_ms = device_ms + wanted->locked_until_ms - run->now_ms;
	if (stored.locked_until_ms < now->locked_until_ms &&
	    stored.locked_until_ms + 60000 >= now->locked_until_ms)
		stored.locked_until_ms = now->locked_until_ms;
	return stored;
}

/* The day on which a lock ends; 0: there is none. */
static uint64_t day_of(const struct model_run *run, const struct engine_retention *stored)
{
	return is_locked(run, stored)
		       ? run->now_ms + stored->locked_until_ms - model_run_device_ms(run)
		       : 0;
}

/* ---- what is refused ---- */

static bool is_unlimited(const struct engine_retention *policy)
{
	return policy->kind == ENGINE_RETAIN_ALL ||
	       (policy->kind == ENGINE_RETAIN_SNAPSHOTS && policy->keep_all_ms == 0);
}

/* Whether some moment that one policy keeps another one need not. */
static bool keeps_less(const struct engine_retention *now, const struct engine_retention *wanted)
{
	static const int ranks[] = {
		[ENGINE_RETAIN_NONE] = 0,
		[ENGINE_RETAIN_SNAPSHOTS] = 1,
		[ENGINE_RETAIN_ALL] = 2,
	};

	if (wanted->locked_until_ms < now->locked_until_ms)
		return true;
	if (wanted->kind == ENGINE_RETAIN_ALL)
		return false;
	if (ranks[wanted->kind] < ranks[now->kind] || (is_unlimited(now) && !is_unlimited(wanted)))
		return true;
	if (wanted->keep_all_ms < now->keep_all_ms)
		return true;
	if (!now->keep_interval_ms)
		return false;
	return wanted->keep_interval_for_ms < now->keep_interval_for_ms ||
	       now->keep_interval_ms % wanted->keep_interval_ms != 0;
}

/*
 * How much a partition's own policy leaves of the device's moments: all, those that there is room
 * for, or none.
 */
static int loss_of(const struct engine_retention *policy)
{
	return policy->kind == ENGINE_RETAIN_NONE ? 2 : policy->kind == ENGINE_RETAIN_SNAPSHOTS;
}

bool locks_refuse_policy(const struct model_run *run, const struct model_state *state,
			 const struct engine_retention *wanted)
{
	const struct engine_retention *now = locks_policy(&run->model, state);
	const struct engine_retention stored = to_store(run, now, wanted);

	if (is_locked(run, now) && keeps_less(now, &stored))
		return true;
	/*
	 * The moments of a locked device are those that all partitions keep, so none begins to keep
	 * fewer of them.
	 */
	return state && is_locked(run, &run->model.policy) &&
	       loss_of(wanted) > (state->particular ? loss_of(&state->policy) : 0);
}

bool locks_refuse_going_back(const struct model_run *run, const struct model_moment *moment)
{
	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++) {
		const struct model_state *now = &run->model.partitions[index].now;

		if (now->self && locks_hold_for(run, now) &&
		    !object_model_is_same(now, &moment->states[index]))
			return true;
	}
	return false;
}

/* What was kept may be given up from then on. */
void locks_follow_clock(struct model_run *run)
{
	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++) {
		struct model_state *state = &run->model.partitions[index].now;

		if (!is_locked(run, locks_policy(&run->model, state)))
			state->kept_from = 0;
	}
}

void locks_forget_kept(struct model_run *run)
{
	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++)
		run->model.partitions[index].now.kept_from = 0;
}

bool locks_may_hold_anything(const struct model_run *run)
{
	return run->model.locked_until_ms > model_run_device_ms(run);
}

/* ---- policies ---- */

struct engine_retention locks_some_policy(struct model_run *run, const struct engine_retention *now)
{
	struct engine_retention policy = {
		.kind = (enum engine_retention_kind)model_run_below(run, 3),
		.keep_all_ms = one_in(run, 2) ? model_run_below(run, 100000) : 0,
	};

	/* One that only goes further: as often as not a lock allows it. */
	if (is_locked(run, now) && one_in(run, 2)) {
		policy = *now;
		policy.locked_until_ms = day_of(run, now) + model_run_below(run, 5000);
		if (one_in(run, 2))
			policy.keep_all_ms *= 2;
		return policy;
	}
	if (one_in(run, 3)) {
		policy.keep_interval_ms = 1 + model_run_below(run, 20000);
		policy.keep_interval_for_ms = 1 + model_run_below(run, 400000);
	}
	if (one_in(run, 2))
		policy.locked_until_ms =
			run->now_ms + model_run_below(run, one_in(run, 3) ? 200000 : 20000);
	/* Until then such a one keeps all: the room gets short. */
	if (policy.locked_until_ms && one_in(run, 2))
		policy = (struct engine_retention){ .locked_until_ms = policy.locked_until_ms };
	return policy;
}

/*
 * Of a state for which another policy holds from now on: where its history begins is to be learned
 * anew, unless that is locked.
 */
static void change_policy(struct model_run *run, struct model_state *state, bool administrator)
{
	const struct engine_retention *now = locks_policy(&run->model, state);

	if (administrator || !is_locked(run, now) || !is_unlimited(now))
		state->kept_from = 0;
}

void locks_set_policy(struct model_run *run, struct model_partition *partition,
		      const struct engine_retention *policy, bool administrator)
{
	struct object_model *model = &run->model;
	const struct engine_retention stored =
		to_store(run, locks_policy(model, partition ? &partition->now : NULL), policy);

	policy = &stored;
	model->locked_until_ms = max_u64(model->locked_until_ms, policy->locked_until_ms);
	if (partition) {
		change_policy(run, &partition->now, administrator);
		partition->now.particular = true;
		partition->now.policy = *policy;
		if (policy->kind != ENGINE_RETAIN_NONE)
			return;
		if (!partition->none_first)
			partition->none_first = model->sequence;
		partition->none_last = model->sequence;
		return;
	}
	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++)
		if (!model->partitions[index].now.particular)
			change_policy(run, &model->partitions[index].now, administrator);
	model->policy = *policy;
}

/* ---- comparing ---- */

static void check_policy(struct model_run *run, uint64_t id, const struct engine_retention *wanted)
{
	struct engine_retention found;

	assert_int_equal(answer(run, engine_retention_get(run->txn, id, &found)), 0);
	assert_int_equal(found.kind, wanted->kind);
	assert_int_equal(found.keep_all_ms, wanted->keep_all_ms);
	assert_int_equal(found.keep_interval_ms, wanted->keep_interval_ms);
	assert_int_equal(found.keep_interval_for_ms, wanted->keep_interval_for_ms);
	assert_int_equal(found.locked_until_ms, day_of(run, wanted));
}

void locks_check(struct model_run *run)
{
	struct engine_history history;

	check_policy(run, 0, &run->model.policy);
	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++) {
		struct model_partition *partition = &run->model.partitions[index];
		const struct engine_retention *policy = locks_policy(&run->model, &partition->now);

		if (!partition->now.self)
			continue;
		check_policy(run, partition->id, policy);
		if (!is_locked(run, policy) || !is_unlimited(policy))
			continue;
		assert_int_equal(answer(run, engine_history(run->txn, partition->id, &history)), 0);
		/* The first look says how far it reached when it was locked. */
		if (partition->now.kept_from)
			assert_int_equal(history.horizon_sequence, partition->now.kept_from);
		partition->now.kept_from = history.horizon_sequence;
	}
}
