/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Lets the power of a run's device fail, and finds the state that the engine may show then. */
#include "tests/engine/model/model_power.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "engine/history/times.h"
#include "engine/muninn/store.h"
#include "nand/rehearsal.h"
#include "tests/engine/model/model_cuts.h"
#include "tests/engine/model/model_facts.h"

enum {
	STATES_MAX = 64, /* that are remembered since a flush */
	STATES_OF_A_TURN = 16,
	CUTS_IN_A_ROW = 3,
};

/* What the store may show again. */
struct state {
	uint64_t sequence; /* of the commit that it is of; 0: it counts for certain */
	struct object_model model;
	struct model_facts facts;
};

struct model_power {
	struct record_store_operations operations; /* first; the store's, with a few of our own */
	const struct record_store_operations *original;
	struct nand *nand;
	uint8_t boot[16];
	jmp_buf gone; /* where a turn goes on when the power is off */
	bool armed;
	bool merging, failed_merging; /* is in a merge; was when the power failed */
	enum nand_cut_nvram
		nvram; /* what the NVRAM will be; when not kept, states are remembered */
	struct state states[STATES_MAX]; /* older than the present one, which is in the run */
	uint32_t state_count;
	/*
	 * Of the present one; of the first commit since a transaction was to be committed, 0: none.
	 */
	uint64_t sequence, committing;
	bool beginning; /* it has not begun yet */
	uint64_t last;  /* number of the last commit that counts, when the power comes again */
	struct model_facts facts; /* of the present one */
	struct model_cuts cuts;
};

/* ---- the store with points at which the power may fail ---- */

static struct model_power *power_of(struct record_store *store)
{
	return (struct model_power *)(void *)store->operations;
}

bool model_power_is_off(const struct model_power *power)
{
	struct nand_power_status status;

	nand_power_status(power->nand, &status);
	return status.off;
}

static int put_or_fail(struct record_store *store, const struct record_key *key, uint64_t epoch,
		       unsigned flags, const void *value, uint32_t length, enum record_room room)
{
	struct model_power *power = power_of(store);

	if (nand_power_point(power->nand))
		return -EIO;
	return power->original->put(store, key, epoch, flags, value, length, room);
}

/* A commit is a store to NVRAM, which goes nowhere when the power is off. */
static void commit_or_fail(struct record_store *store)
{
	struct model_power *power = power_of(store);

	nand_power_point(power->nand);
	if (!power->committing && !power->beginning)
		power->committing = ((const struct muninn_store *)(const void *)store)->sequence;
	power->original->commit(store);
	nand_power_point(power->nand);
}

typedef int merge_call(struct record_store *store, const struct record_keep *keep,
		       struct record_merge *merge);

static int note_failure(struct record_store *store, merge_call *call,
			const struct record_keep *keep, struct record_merge *merge)
{
	struct model_power *power = power_of(store);
	bool was_off = model_power_is_off(power);
	int result = call(store, keep, merge);

	power->failed_merging = power->failed_merging || (!was_off && model_power_is_off(power));
	return result;
}

static int merge_or_fail(struct record_store *store, const struct record_keep *keep,
			 struct record_merge *merge)
{
	return note_failure(store, power_of(store)->original->merge, keep, merge);
}

static int piece_or_fail(struct record_store *store, const struct record_keep *keep,
			 struct record_merge *merge)
{
	return note_failure(store, power_of(store)->original->merge_step, keep, merge);
}

void model_power_attach(struct model_power *power, struct record_store *store)
{
	power->original = store->operations;
	power->operations = *store->operations;
	power->operations.put = put_or_fail;
	power->operations.commit = commit_or_fail;
	power->operations.merge = merge_or_fail;
	power->operations.merge_step = piece_or_fail;
	store->operations = &power->operations;
}

const uint8_t *model_power_boot(const struct model_power *power)
{
	return power->boot;
}

struct model_power *model_power_create(struct nand *nand)
{
	struct model_power *power = calloc(1, sizeof(*power));

	assert_non_null(power);
	power->nand = nand;
	return power;
}

/* ---- states that may be found ---- */

static void forget_states(struct model_power *power)
{
	while (power->state_count)
		object_model_clear(&power->states[--power->state_count].model);
}

void model_power_destroy(struct model_power *power)
{
	forget_states(power);
	free(power);
}

static bool host_fails(const struct model_power *power)
{
	return power->nvram != NAND_CUT_NVRAM_KEPT;
}

bool model_power_may_take_back(const struct model_run *run)
{
	return run->power && host_fails(run->power);
}

/* Whether anything may be found but the present. */
static bool is_watched(const struct model_power *power)
{
	return power->armed || host_fails(power);
}

bool model_power_is_watched(const struct model_run *run)
{
	return run->power && is_watched(run->power);
}

void model_power_committing(struct model_run *run)
{
	struct model_power *power = run->power;
	struct state *before;

	if (!power || !is_watched(power))
		return;
	assert_true(power->state_count < STATES_MAX);
	if (!model_power_is_off(power))
		model_run_see(run);
	before = &power->states[power->state_count++];
	before->sequence = power->sequence;
	before->facts = power->facts;
	object_model_copy(&before->model, &run->model);
	object_model_abort(&before->model);
	power->committing = 0;
}

void model_power_beginning(struct model_run *run)
{
	if (run->power)
		run->power->beginning = true;
}

void model_power_begun(struct model_run *run)
{
	if (!run->power)
		return;
	run->power->beginning = false;
	run->power->committing = 0;
}

bool model_power_committed(struct model_run *run, int result, bool stable)
{
	struct model_power *power = run->power;

	if (!power || !is_watched(power))
		return false;
	if (power->committing || model_power_is_off(power)) {
		/* What did not come to its commit never counts. */
		power->sequence = power->committing ? power->committing : RECORD_NEWEST;
		power->facts.known = false;
	} else {
		object_model_clear(&power->states[--power->state_count].model);
	}
	if (model_power_is_off(power))
		return true;
	if (!host_fails(power) || (stable && result == 0))
		forget_states(power);
	return false;
}

void model_power_flushed(struct model_run *run)
{
	if (run->power)
		forget_states(run->power);
}

/* ---- when it fails ---- */

/* Often few operations, seldom many. */
static uint64_t some_operations(struct model_run *run)
{
	return model_run_below(run, UINT64_C(1) << model_run_below(run, 11));
}

static void arm(struct model_run *run, uint64_t operations)
{
	struct model_power *power = run->power;
	struct nand_power_cut ends[NAND_REHEARSAL_ENDS], cut;
	struct error_text error;

	nand_rehearsal_ends(nand_geometry(power->nand), power->nvram, ends);
	cut = ends[model_run_below(run, NAND_REHEARSAL_ENDS)];
	cut.erase = (enum nand_cut_erase)model_run_below(run, NAND_CUT_ERASES);
	cut.count_reads = one_in(run, 6);
	cut.seed = model_run_below(run, UINT64_MAX);
	cut.after = operations;
	if (nand_arm_power_cut(power->nand, &cut, &error))
		fail_msg("%s", error.text);
	power->armed = true;
}

/* The present is stable, and states are remembered from now on, until the host fails. */
static void expect_the_host_to_fail(struct model_run *run)
{
	struct model_power *power = run->power;

	power->nvram = one_in(run, 2) ? NAND_CUT_NVRAM_FLUSHED : NAND_CUT_NVRAM_MIXED;
	power->sequence = 0;
	if (one_in(run, 2))
		arm(run, some_operations(run));
}

static void prepare(struct model_run *run)
{
	struct model_power *power = run->power;

	if (power->state_count > STATES_MAX - STATES_OF_A_TURN)
		model_run_flush(run);
	if (!power->armed && host_fails(power)) {
		if (one_in(run, 4))
			arm(run, some_operations(run));
	} else if (!power->armed && now_and_then(run, run->weights->cuts)) {
		power->sequence = 0;
		arm(run, some_operations(run));
	} else if (!power->armed && now_and_then(run, run->weights->failures)) {
		model_run_flush(run);
		expect_the_host_to_fail(run);
	}
	if (is_watched(power) && !power->facts.known)
		power->facts = model_facts_learn(run);
}

void model_power_threaten(struct model_run *run, uint64_t operations)
{
	struct model_power *power = run->power;

	if (!power || power->armed || !one_in(run, 2))
		return;
	if (!host_fails(power)) {
		power->sequence = 0;
		power->facts = model_facts_learn(run);
	}
	arm(run, model_run_below(run, operations));
}

void model_power_spare(struct model_run *run)
{
	struct model_power *power = run->power;

	if (!power)
		return;
	nand_disarm_power_cut(power->nand);
	power->armed = false;
	power->nvram = NAND_CUT_NVRAM_KEPT;
	power->facts.known = false;
	forget_states(power);
}

/* ---- what is left ---- */

static void note_cut(struct model_run *run)
{
	struct model_power *power = run->power;

	if (power->failed_merging)
		run->doing = MODEL_MERGE;
	power->failed_merging = false;
	model_cuts_note(&power->cuts, power->nand, power->nvram, run->doing, run->operations);
}

/* Ends the engine that has no power, and the transaction in flight. */
static void end_engine(struct model_run *run)
{
	if (run->txn && run->txn->mode == ENGINE_READ)
		engine_abort(run->txn);
	else if (run->txn)
		object_model_abort(&run->model);
	run->txn = NULL;
	model_run_leave(run);
	if (run->engine)
		engine_abandon(run->engine);
	run->engine = NULL;
}

static void power_on(struct model_power *power)
{
	assert_int_equal(nand_power_on(power->nand), 0);
	power->armed = false;
	if (host_fails(power))
		put_le64(power->boot, get_le64(power->boot) + 1);
}

/*
 * What the store will go back to. Later it can't be asked: which numbers are aborted it forgets
 * when nothing is left of them.
 */
static void learn_last(struct model_power *power)
{
	uint64_t bytes;
	const uint8_t *nvram = nand_nvram(power->nand, &bytes);

	power->last = get_le64(nvram + (host_fails(power) ? STATE_FLUSHED_AT : STATE_COMMITTED_AT));
}

/* Opens the store, in which the power may fail again. */
static void open_again(struct model_run *run)
{
	struct model_power *power = run->power;
	bool failed = host_fails(power);

	power_on(power);
	learn_last(power);
	for (int cuts = 1; !run->engine; cuts++) {
		if (cuts < CUTS_IN_A_ROW && one_in(run, 3)) {
			power->nvram =
				failed ? (enum nand_cut_nvram)model_run_below(run, NAND_CUT_NVRAMS)
				       : NAND_CUT_NVRAM_KEPT;
			if (power->nvram == NAND_CUT_NVRAM_LOST)
				power->nvram = NAND_CUT_NVRAM_KEPT;
			arm(run, model_run_below(run, 12));
		}
		run->engine = run->store.open(run);
		if (!model_power_is_off(power))
			break;
		end_engine(run);
		model_cuts_note_again(&power->cuts, power->nvram,
				      failed ? OUTCOME_FLUSH : OUTCOME_BEFORE);
		power_on(power);
	}
	nand_disarm_power_cut(power->nand);
	power->armed = false;
	power->nvram = failed ? NAND_CUT_NVRAM_FLUSHED : NAND_CUT_NVRAM_KEPT;
}

/*
 * The newest state that counts becomes the model; `before` it are so many that could have been
 * found.
 */
static void choose_state(struct model_run *run, bool *newest, bool *oldest)
{
	struct model_power *power = run->power;
	uint32_t found = power->state_count;

	*newest = power->sequence <= power->last;
	while (!*newest && found > 0) {
		const struct state *state = &power->states[--found];

		if (state->sequence <= power->last)
			break;
		assert_true(found > 0);
	}
	*oldest = found == 0;
	assert_true(*newest || power->state_count);
	if (!*newest) {
		object_model_clear(&run->model);
		object_model_copy(&run->model, &power->states[found].model);
		power->facts = power->states[found].facts;
	}
	forget_states(power);
}

/*
 * Before a command the engine commits for itself, in a slot of its own, what it reclaims or judges.
 * No state of the model is of such a commit: the host's failure takes it back, and the model's
 * present stays. A moment noted behind it holds what the slot that is the last one again holds, and
 * is that slot's end from now on: its own number may be given again.
 */
static void take_back_moments(struct model_run *run, uint64_t last)
{
	for (uint32_t slot = 0; slot < MODEL_MOMENTS; slot++) {
		struct model_moment *moment = &run->model.moments[slot];

		if (moment->sequence > slot_end(last))
			moment->sequence = slot_end(last);
	}
}

/* Whether it hides what was noted of accesses. */
static bool goes_back(enum model_doing doing)
{
	return doing >= MODEL_ROLLBACK && doing <= MODEL_DETACH;
}

static void recover(struct model_run *run)
{
	struct model_power *power = run->power;
	bool newest, oldest, in_flight, failed = host_fails(power);
	enum model_doing doing;
	uint64_t before_ms;

	note_cut(run);
	doing = run->doing;
	/* The clock may have jumped before it was opened: nothing was committed since. */
	before_ms = doing == MODEL_OPENING ? run->closed_ms : run->now_ms;
	end_engine(run);
	model_run_jump(run, 4);
	open_again(run);
	in_flight = power->state_count > 0;
	choose_state(run, &newest, &oldest);
	model_clock_see(&run->model.clock, run->engine->committed, before_ms);
	model_clock_open(&run->model.clock, run->engine->committed);
	model_run_learn_device_time(run);
	if (failed)
		take_back_moments(run, run->engine->committed);
	if (host_fails(power))
		power->cuts.found[doing][oldest ? OUTCOME_FLUSH : OUTCOME_LATER]++;
	else
		power->cuts.found[doing][newest && in_flight ? OUTCOME_AFTER : OUTCOME_BEFORE]++;
	power->nvram = NAND_CUT_NVRAM_KEPT;
	history_learn_given_up(run);
	if (newest && doing == MODEL_DEVICE_ROLLBACK)
		history_learn_numbers(run);
	model_facts_compare(run, &power->facts);
	power->facts.known = false;
	run->crashed = true;
	run->unsure = run->unsure || goes_back(doing);
	model_run_look_again(run);
}

void model_power_notice(struct model_run *run)
{
	if (run->power && run->power->armed && model_power_is_off(run->power))
		longjmp(run->power->gone, 1);
}

int answer(struct model_run *run, int result)
{
	model_power_notice(run);
	run->compared++;
	return result;
}

void model_power_turn(struct model_run *run, void (*turn)(struct model_run *run))
{
	if (!run->power) {
		turn(run);
		return;
	}
	if (setjmp(run->power->gone)) {
		recover(run);
		return;
	}
	prepare(run);
	turn(run);
	model_power_notice(run);
}

const struct model_cuts *model_power_cuts(const struct model_power *power)
{
	return &power->cuts;
}

void model_power_report(const struct model_power *power)
{
	model_cuts_report(&power->cuts);
}
