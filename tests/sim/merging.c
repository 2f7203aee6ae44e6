/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What the thread does that merges beside the writers, without a thread: a piece with the turn
 * between two transactions, and what needs no turn also while one puts its records. A transaction
 * that would wait for room waits here until the thread has made some, or finds none to be had.
 */
#include "engine/history/past.h"
#include "tests/sim/world.h"

static struct sim_world *merged; /* the one in this process */

static struct merger *merger_of(struct sim_world *world)
{
	return &world->run.engine->past->merger;
}

static void run_beside(struct sim_world *world)
{
	struct record_store *store = world->run.engine->store;

	if (world->merging.runs)
		store->operations->merge_run(store);
	world->merging.runs = false;
}

/* The next piece of the step that is under way, or of a new one. */
static void do_piece(struct sim_world *world)
{
	struct sim_merging *merging = &world->merging;
	uint64_t freed = merging->job.merge.segments_freed;
	int result;

	run_beside(world);
	result = merger_do_piece(world->run.engine, &merging->job);
	if (!merging->job.under_way)
		world->report->counts.merged += merging->job.merge.segments_freed - freed;
	merging->runs = result == 0 && merging->job.under_way;
	if (result == 0)
		return;
	merging->job.under_way = merging->busy = false;
	merger_end_work(merger_of(world));
}

static void take_work(struct sim_world *world)
{
	bool stores;

	if (!merger_take_work(merger_of(world), &stores))
		return;
	world->merging.busy = true;
	world->merging.job = (struct merge_job){ .stores = stores };
}

/* The thread gets so far, as it is its turn. */
static void go_on(struct sim_world *world)
{
	if (!world->merging.busy)
		take_work(world);
	if (world->merging.busy)
		do_piece(world);
}

void sim_merging_act(struct sim_world *world, bool in_transaction)
{
	if (!world->merging.original)
		return;
	if (in_transaction && world->merging.runs && one_in(&world->run, 4))
		run_beside(world);
	for (uint64_t acts = in_transaction ? 0 : model_run_below(&world->run, 4); acts > 0; acts--)
		go_on(world);
}

/* As merger_await. */
static void await_space(struct engine *engine, enum engine_mode mode)
{
	const struct merger *merger = merger_of(merged);

	if (mode != ENGINE_WRITE && mode != ENGINE_FREE)
		return;
	while (!merger_lets_on(engine) && (merger->wanted || merger->busy))
		go_on(merged);
}

/* Whoever merges himself waits for the end of the step: there is one at a time. */
static void end_step(void)
{
	while (merged && merged->merging.original && merged->merging.job.under_way)
		go_on(merged);
}

int __real_engine_merge(struct engine *engine, struct engine_merge_result *result);
int __wrap_engine_merge(struct engine *engine, struct engine_merge_result *result);
int __real_engine_make_space(struct engine *engine, const struct engine_space *wanted);
int __wrap_engine_make_space(struct engine *engine, const struct engine_space *wanted);

int __wrap_engine_merge(struct engine *engine, struct engine_merge_result *result)
{
	end_step();
	return __real_engine_merge(engine, result);
}

int __wrap_engine_make_space(struct engine *engine, const struct engine_space *wanted)
{
	end_step();
	return __real_engine_make_space(engine, wanted);
}

void sim_merging_begin(struct sim_world *world)
{
	struct sim_merging *merging = &world->merging;
	struct engine *engine = world->run.engine;

	*merging = (struct sim_merging){ 0 };
	if (!world->profile->merger || world->run.seed % 4 != 2)
		return;
	merged = world;
	merging->original = engine->history;
	merging->calls = *engine->history;
	merging->calls.await_space = await_space;
	engine->history = &merging->calls;
	merger_of(world)->gain = engine->store->limits.segment_bytes / 8;
	merger_of(world)->is_on = true;
}

void sim_merging_end(struct sim_world *world)
{
	if (!world->merging.original)
		return;
	/* No thread is to be waited for. */
	merger_of(world)->is_on = false;
	world->run.engine->history = world->merging.original;
	world->merging = (struct sim_merging){ 0 };
}
