/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Segments are merged beside transactions in a quarter of the seeds: a piece with the turn between
 * two of them, and what needs no turn also while one puts its records.
 */
#include "tests/sim/world.h"

static struct sim_world *merged; /* the one in this process */

void sim_merging_act(struct sim_world *world, bool in_transaction)
{
	struct merging *merging = &world->merging;

	if (!merging->engine)
		return;
	if (in_transaction && merging->runs && one_in(&world->run, 4))
		merging_run(merging);
	for (uint64_t acts = in_transaction ? 0 : model_run_below(&world->run, 4); acts > 0; acts--)
		merging_go_on(merging);
}

/* Whoever merges himself waits for the end of the step: there is one at a time. */
static void end_step(void)
{
	if (merged)
		merging_end_step(&merged->merging);
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

/* Some seeds of each size of segments, which draw_shape draws from their last bits. */
static bool is_drawn(uint64_t seed)
{
	return (seed + seed / 4) % 4 == 2;
}

void sim_merging_begin(struct sim_world *world)
{
	if (!is_drawn(world->run.seed))
		return;
	merged = world;
	merging_begin(&world->merging, world->run.engine);
}
