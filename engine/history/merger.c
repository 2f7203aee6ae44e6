/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Merges behind the writers. */
#include "engine/history/merger.h"

#include <errno.h>

#include "engine/history/merge.h"
#include "engine/history/past.h"

enum { PIECES_MAX = 8 };

void merger_init(struct merger *merger)
{
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
 * By how much of the space between the mark where merging begins and the end of room is used: none
 * for the first quarter, then up to PIECES_MAX.
 */
static uint32_t share_of(const struct engine *engine, uint32_t shortage)
{
	uint32_t slack = engine->store->limits.segments_open, quarter = slack / 4;

	if (shortage > slack)
		return MERGER_ALL;
	return shortage > quarter ? (shortage - quarter) * PIECES_MAX / (slack - quarter) + 1 : 0;
}

/* Under the mutex: tells those who store how long to wait. */
static void set_share(struct merger *merger, uint32_t share)
{
	__atomic_store_n(&merger->share, merger->stop ? 0 : share, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&merger->moved);
}

void merger_look(struct engine *engine, bool stores)
{
	struct merger *merger = &engine->past->merger;
	uint32_t shortage = engine->store->operations->shortage(engine->store, RECORD_ROOM_WRITE);
	bool due;

	if (!shortage && !__atomic_load_n(&merger->share, __ATOMIC_RELAXED))
		return;
	due = merge_is_wanted(engine);
	pthread_mutex_lock(&merger->mutex);
	if (due && !merger->stop) {
		merger->wanted = true;
		merger->stores |= stores;
		pthread_cond_signal(&merger->due);
	}
	set_share(merger, due ? share_of(engine, shortage) : 0);
	pthread_mutex_unlock(&merger->mutex);
}

/* Others must not wait, and take little. */
static bool stores_data(enum engine_mode mode)
{
	return mode == ENGINE_WRITE || mode == ENGINE_FREE;
}

void merger_await(struct engine *engine, enum engine_mode mode)
{
	struct merger *merger = &engine->past->merger;
	uint64_t pieces;

	if (!stores_data(mode) || !__atomic_load_n(&merger->share, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&merger->mutex);
	pieces = merger->pieces;
	/* If the thread finds nothing to merge the command goes on, and meets that itself. */
	while ((merger->wanted || merger->busy) &&
	       (merger->share == MERGER_ALL || merger->pieces - pieces < merger->share))
		pthread_cond_wait(&merger->moved, &merger->mutex);
	pthread_mutex_unlock(&merger->mutex);
}

bool merger_is_behind(struct engine *engine, enum engine_mode mode)
{
	struct merger *merger = &engine->past->merger;
	uint32_t shortage;
	bool behind;

	if (!merger->is_on || !stores_data(mode))
		return false;
	shortage = engine->store->operations->shortage(engine->store, RECORD_ROOM_WRITE);
	if (share_of(engine, shortage) != MERGER_ALL)
		return false;
	pthread_mutex_lock(&merger->mutex);
	behind = !merger->stop && (merger->wanted || merger->busy);
	if (behind)
		set_share(merger, MERGER_ALL);
	pthread_mutex_unlock(&merger->mutex);
	return behind;
}

/* ---- the thread ---- */

/* False: the end. */
static bool wait_for_work(struct merger *merger, bool *stores)
{
	bool goes_on;

	pthread_mutex_lock(&merger->mutex);
	while (!merger->wanted && !merger->stop)
		pthread_cond_wait(&merger->due, &merger->mutex);
	goes_on = !merger->stop;
	*stores = merger->stores;
	merger->wanted = merger->stores = false;
	merger->busy = goes_on;
	pthread_mutex_unlock(&merger->mutex);
	return goes_on;
}

static void end_work(struct merger *merger)
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

/*
 * In turn: tells how long to wait from now on. It does not wake the thread: what gained nothing is
 * tried again for the next command that stores.
 */
static void count_piece(struct engine *engine)
{
	struct merger *merger = &engine->past->merger;
	uint32_t shortage = engine->store->operations->shortage(engine->store, RECORD_ROOM_WRITE);

	pthread_mutex_lock(&merger->mutex);
	merger->pieces++;
	set_share(merger, share_of(engine, shortage));
	pthread_mutex_unlock(&merger->mutex);
}

/* As merge_do_piece; also -EAGAIN: the thread is to end. */
static int do_piece(struct engine *engine, struct merge_job *job)
{
	int result = -EAGAIN;

	sealer_wait(engine);
	turn_take(&engine->turn);
	if (!has_ended(&engine->past->merger)) {
		result = merge_do_piece(engine, job);
		sealer_look(engine);
		count_piece(engine);
	}
	turn_give(&engine->turn);
	return result;
}

/* One step, in pieces. */
static int do_step(struct engine *engine, bool stores)
{
	struct merge_job job = { .stores = stores };
	int result;

	pthread_mutex_lock(&engine->past->merger.merging);
	do {
		result = do_piece(engine, &job);
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
		end_work(merger);
	}
	return NULL;
}

/* ---- begin and end ---- */

int merger_start(struct engine *engine)
{
	struct merger *merger = &engine->past->merger;
	int result;

	if (!engine->options.merging_thread || engine->options.merge_manual ||
	    !engine->store->operations->merge_step)
		return 0;
	result = -pthread_create(&merger->thread, NULL, merge_all_the_time, engine);
	merger->is_on = !result;
	return result;
}

void merger_end(struct engine *engine)
{
	struct merger *merger = &engine->past->merger;

	pthread_mutex_lock(&merger->mutex);
	merger->stop = true;
	__atomic_store_n(&merger->share, 0, __ATOMIC_RELAXED);
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
