/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Merges beside transactions, in the pieces of the thread that does so. */
#include "tests/engine/merging.h"

#include "engine/history/past.h"
#include "engine/records/waiting.h"

static struct merging *current;

static struct merger *merger_of(const struct merging *merging)
{
	return &merging->engine->past->merger;
}

void merging_run(struct merging *merging)
{
	struct record_store *store = merging->engine->store;

	if (merging->runs)
		store->operations->merge_run(store);
	merging->runs = false;
}

/* The next piece of the step that is under way, or of a new one. */
static void do_piece(struct merging *merging)
{
	struct merger *merger = merger_of(merging);
	struct merge_job *job = &merging->job;
	int64_t granted = merger->grant;
	uint64_t freed;
	int result;

	merging_run(merging);
	/* Where no further step is wanted nobody else would forget the last one's numbers. */
	if (!job->under_way)
		job->merge = (struct record_merge){ 0 };
	freed = job->merge.segments_freed;
	result = merger_do_piece(merging->engine, job);
	merging->merged += job->merge.segments_freed - freed;
	merging->runs = result == 0 && job->under_way;
	if (result != 0) {
		job->under_way = false;
		merger_end_work(merger);
	}
	if (merging->looks)
		merging->looks(merger, granted);
}

void merging_go_on(struct merging *merging)
{
	struct merger *merger = merger_of(merging);
	bool stores;

	if (!merger->busy && merger_take_work(merger, &stores))
		merging->job = (struct merge_job){ .stores = stores };
	if (merger->busy)
		do_piece(merging);
}

void merging_end_step(struct merging *merging)
{
	while (merging->engine && merging->job.under_way)
		merging_go_on(merging);
}

/* As merger_await. */
static bool await_space(struct engine *engine, enum engine_mode mode)
{
	const struct merger *merger = merger_of(current);

	if (mode != ENGINE_WRITE && mode != ENGINE_FREE)
		return true;
	if (!may_wait())
		return merger_lets_on(engine);
	while (!merger_lets_on(engine) && (merger->wanted || merger->busy))
		merging_go_on(current);
	return true;
}

/* As merger_start. */
void merging_begin(struct merging *merging, struct engine *engine)
{
	if (engine->options.merge_manual || !engine->store->operations->merge_step)
		return;
	*merging = (struct merging){
		.engine = engine,
		.calls = *engine->history,
		.original = engine->history,
		.merged = merging->merged,
		.looks = merging->looks,
	};
	merging->calls.await_space = await_space;
	engine->history = &merging->calls;
	current = merging;
	merger_guess_gain(engine);
	merger_of(merging)->is_on = true;
}

void merging_end(struct merging *merging)
{
	if (!merging->engine)
		return;
	/* No thread is to be waited for. */
	merger_of(merging)->is_on = false;
	merging->engine->history = merging->original;
	merging->engine = NULL;
}
