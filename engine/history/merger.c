/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Merges behind the writers. */
#include "engine/history/merger.h"

#include <errno.h>

#include "common/bytes.h"
#include "common/thread.h"
#include "engine/history/merge.h"
#include "engine/history/past.h"
#include "engine/records/waiting.h"

enum {
	/* A share where others begin to be held up, and where room ends. */
	SHARE_MOST = 400,
	SHARE_LEAST = 80,
	/* While nobody puts anything, grants for so many records may add up. */
	GRANTS_MAX = 256,
	/* A step counts as much as so many before it. */
	GAIN_WEIGHT = 8,
	/* Records that are looked at for a segment of room, before the first step has ended. */
	GAIN_FIRST = 2048,
};

void merger_init(struct merger *merger)
{
	merger->share = MERGER_ANY;
	pthread_mutex_init(&merger->merging, NULL);
	pthread_mutex_init(&merger->mutex, NULL);
	pthread_cond_init(&merger->due, NULL);
	pthread_cond_init(&merger->moved, NULL);
}

void merger_destroy(struct merger *merger)
{
	pthread_cond_destroy(&merger->moved);
	pthread_cond_destroy(&merger->due);
	pthread_mutex_destroy(&merger->mutex);
	pthread_mutex_destroy(&merger->merging);
}

/*
 * By how much of the space between the mark where merging begins and the end of room is used. Not
 * at all for the first quarter.
 */
static uint32_t share_of(const struct engine *engine, uint32_t shortage)
{
	uint32_t slack = engine->store->limits.segments_slack, quarter = slack / 4;

	if (shortage > slack)
		return 0;
	return shortage > quarter ? SHARE_MOST - (SHARE_MOST - SHARE_LEAST) * (shortage - quarter) /
							 (slack - quarter)
				  : MERGER_ANY;
}

static bool lets_on(const struct merger *merger)
{
	uint32_t share = __atomic_load_n(&merger->share, __ATOMIC_RELAXED);

	return share == MERGER_ANY ||
	       (share && __atomic_load_n(&merger->grant, __ATOMIC_RELAXED) > 0);
}

/* Under the mutex, when the grant is set. Those who have to wait on are not woken for it. */
static void set_share(struct merger *merger, uint32_t share)
{
	__atomic_store_n(&merger->share, merger->stop ? MERGER_ANY : share, __ATOMIC_RELAXED);
	if (lets_on(merger))
		pthread_cond_broadcast(&merger->moved);
}

bool merger_lets_on(const struct engine *engine)
{
	return lets_on(&engine->past->merger);
}

void merger_count_put(struct engine *engine, uint64_t bytes)
{
	__atomic_fetch_sub(&engine->past->merger.grant, (int64_t)bytes, __ATOMIC_RELAXED);
}

void merger_look(struct engine *engine, bool stores)
{
	struct merger *merger = &engine->past->merger;
	uint32_t shortage = engine->store->operations->shortage(engine->store, RECORD_ROOM_WRITE);
	bool due;

	if (!shortage && __atomic_load_n(&merger->share, __ATOMIC_RELAXED) == MERGER_ANY)
		return;
	due = merge_is_wanted(engine);
	pthread_mutex_lock(&merger->mutex);
	if (due && !merger->stop) {
		merger->wanted = true;
		merger->stores |= stores;
		pthread_cond_signal(&merger->due);
	}
	set_share(merger, due ? share_of(engine, shortage) : MERGER_ANY);
	pthread_mutex_unlock(&merger->mutex);
}

/* Others must not wait, and take little. */
static bool stores_data(enum engine_mode mode)
{
	return mode == ENGINE_WRITE || mode == ENGINE_FREE;
}

bool merger_await(struct engine *engine, enum engine_mode mode)
{
	struct merger *merger = &engine->past->merger;

	if (!stores_data(mode) || lets_on(merger))
		return true;
	if (!may_wait())
		return false;
	pthread_mutex_lock(&merger->mutex);
	/* If the thread finds nothing to merge the command goes on, and meets that itself. */
	while ((merger->wanted || merger->busy) && !lets_on(merger))
		pthread_cond_wait(&merger->moved, &merger->mutex);
	pthread_mutex_unlock(&merger->mutex);
	return true;
}

bool merger_is_behind(struct engine *engine, enum engine_mode mode)
{
	struct merger *merger = &engine->past->merger;
	uint32_t shortage;
	bool behind;

	if (!merger->is_on || !stores_data(mode))
		return false;
	shortage = engine->store->operations->shortage(engine->store, RECORD_ROOM_WRITE);
	if (share_of(engine, shortage) != 0)
		return false;
	pthread_mutex_lock(&merger->mutex);
	behind = !merger->stop && (merger->wanted || merger->busy);
	if (behind)
		set_share(merger, 0);
	pthread_mutex_unlock(&merger->mutex);
	return behind;
}

/* ---- the thread ---- */

bool merger_take_work(struct merger *merger, bool *stores)
{
	bool takes;

	pthread_mutex_lock(&merger->mutex);
	takes = merger->wanted && !merger->stop;
	*stores = merger->stores;
	merger->wanted = merger->stores = false;
	merger->busy = takes;
	pthread_mutex_unlock(&merger->mutex);
	return takes;
}

/* False: the end. */
static bool wait_for_work(struct merger *merger, bool *stores)
{
	pthread_mutex_lock(&merger->mutex);
	while (!merger->wanted && !merger->stop)
		pthread_cond_wait(&merger->due, &merger->mutex);
	pthread_mutex_unlock(&merger->mutex);
	return merger_take_work(merger, stores);
}

void merger_end_work(struct merger *merger)
{
	pthread_mutex_lock(&merger->mutex);
	merger->busy = false;
	pthread_cond_broadcast(&merger->moved);
	pthread_mutex_unlock(&merger->mutex);
}

static bool has_ended(struct merger *merger)
{
	bool stop;

	pthread_mutex_lock(&merger->mutex);
	stop = merger->stop;
	pthread_mutex_unlock(&merger->mutex);
	return stop;
}

/* Under the mutex, when a step has ended: what it gained, and what it took. */
static void learn_gain(const struct engine *engine, struct merger *merger,
		       const struct record_merge *merge)
{
	uint64_t segments =
		merge->segments_freed - min_u64(merge->segments_freed, merge->segments_taken);

	if (!merger->step_looked_at)
		return;
	merger->gained -= merger->gained / GAIN_WEIGHT;
	merger->gained += segments * engine->store->limits.segment_bytes;
	merger->looked_at -= merger->looked_at / GAIN_WEIGHT;
	merger->looked_at += merger->step_looked_at;
	merger->step_looked_at = 0;
}

/* Under the mutex: what others may put when so many records have been looked at. */
static int64_t part_of_gain(const struct merger *merger, uint32_t share, uint64_t looked_at)
{
	return (int64_t)(merger->gained * share / merger->looked_at * looked_at / 100);
}

/* Under the mutex: others may put something more. */
static void grant(struct merger *merger, uint32_t share, uint64_t looked_at)
{
	int64_t granted = 0;

	/* Nobody puts anything meanwhile, as this has the turn. */
	if (share != MERGER_ANY) {
		int64_t most = part_of_gain(merger, share, GRANTS_MAX);

		granted = __atomic_load_n(&merger->grant, __ATOMIC_RELAXED) +
			  part_of_gain(merger, share, looked_at);
		if (granted > most)
			granted = most;
	}
	__atomic_store_n(&merger->grant, granted, __ATOMIC_RELAXED);
}

/*
 * In turn, after a piece: how much may be put now. It does not wake the thread: what gained nothing
 * is tried again for the next command that stores.
 */
static void count_piece(struct engine *engine, const struct merge_job *job)
{
	struct merger *merger = &engine->past->merger;
	uint32_t shortage = engine->store->operations->shortage(engine->store, RECORD_ROOM_WRITE);
	uint32_t share = share_of(engine, shortage);

	pthread_mutex_lock(&merger->mutex);
	merger->step_looked_at += job->looked_at;
	if (!job->under_way)
		learn_gain(engine, merger, &job->merge);
	grant(merger, share, job->looked_at);
	set_share(merger, share);
	pthread_mutex_unlock(&merger->mutex);
}

/* A step is also for those who have come since the thread was woken. */
static void begin_step(struct merger *merger, struct merge_job *job)
{
	pthread_mutex_lock(&merger->mutex);
	job->stores |= merger->stores;
	pthread_mutex_unlock(&merger->mutex);
}

int merger_do_piece(struct engine *engine, struct merge_job *job)
{
	int result = -EAGAIN;

	sealer_wait(engine);
	turn_take(&engine->turn);
	if (!has_ended(&engine->past->merger)) {
		if (!job->under_way)
			begin_step(&engine->past->merger, job);
		result = merge_do_piece(engine, job);
		sealer_look(engine);
		count_piece(engine, job);
	}
	turn_give(&engine->turn);
	thread_rest();
	return result;
}

/* One step, in pieces. */
static int do_step(struct engine *engine, bool stores)
{
	struct merge_job job = { .stores = stores };
	int result;

	pthread_mutex_lock(&engine->past->merger.merging);
	do {
		result = merger_do_piece(engine, &job);
		if (result == 0 && job.under_way)
			engine->store->operations->merge_run(engine->store);
	} while (result == 0 && job.under_way);
	pthread_mutex_unlock(&engine->past->merger.merging);
	return result;
}

static void *merge_all_the_time(void *context)
{
	struct engine *engine = context;
	struct merger *merger = &engine->past->merger;
	bool stores;

	while (wait_for_work(merger, &stores)) {
		while (do_step(engine, stores) == 0)
			;
		merger_end_work(merger);
	}
	return NULL;
}

/* ---- begin and end ---- */

void merger_guess_gain(struct engine *engine)
{
	engine->past->merger.gained = engine->store->limits.segment_bytes;
	engine->past->merger.looked_at = GAIN_FIRST;
}

int merger_start(struct engine *engine)
{
	struct merger *merger = &engine->past->merger;
	int result;

	if (!engine->options.merging_thread || engine->options.merge_manual ||
	    !engine->store->operations->merge_step)
		return 0;
	merger_guess_gain(engine);
	result = thread_start(&merger->thread, "muninn-merge", merge_all_the_time, engine);
	merger->is_on = !result;
	return result;
}

void merger_end(struct engine *engine)
{
	struct merger *merger = &engine->past->merger;

	pthread_mutex_lock(&merger->mutex);
	merger->stop = true;
	__atomic_store_n(&merger->share, MERGER_ANY, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&merger->due);
	pthread_cond_broadcast(&merger->moved);
	pthread_mutex_unlock(&merger->mutex);
}

void merger_stop(struct engine *engine)
{
	struct merger *merger = &engine->past->merger;

	merger_end(engine);
	if (merger->is_on)
		pthread_join(merger->thread, NULL);
	merger->is_on = false;
}
