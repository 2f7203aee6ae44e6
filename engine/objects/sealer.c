/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Seals full buffers behind the writers. */
#include "engine/objects/sealer.h"

#include <errno.h>

#include "common/bytes.h"
#include "common/thread.h"
#include "engine/objects/objects.h"

/* Tells writers, under the mutex, whether to wait. */
static void set_pressed(struct sealer *sealer, bool pressed)
{
	if (!pressed && sealer->pressed)
		pthread_cond_broadcast(&sealer->spare);
	__atomic_store_n(&sealer->pressed, pressed, __ATOMIC_RELAXED);
}

static void look(struct engine *engine, bool is_writer)
{
	struct sealer *sealer = &engine->sealer;
	struct record_sealing state;

	if (!sealer->count)
		return;
	engine->store->operations->seal_state(engine->store, &state);
	if (!state.waiting && !__atomic_load_n(&sealer->pressed, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&sealer->mutex);
	sealer->waiting = state.waiting;
	if (state.waiting > sealer->busy && !state.held_up && !sealer->wanted &&
	    (is_writer || !sealer->failing)) {
		sealer->wanted = true;
		pthread_cond_signal(&sealer->due);
	}
	set_pressed(sealer, state.pressed && !sealer->stop);
	pthread_mutex_unlock(&sealer->mutex);
}

void sealer_look(struct engine *engine)
{
	look(engine, true);
}

/* With the mutex. After an error the writer meets that himself, whatever the threads try then. */
static bool goes_on(const struct sealer *sealer, uint32_t failures)
{
	return (sealer->wanted || sealer->busy) && sealer->failures == failures;
}

void sealer_wait(struct engine *engine)
{
	struct sealer *sealer = &engine->sealer;
	uint32_t failures;

	if (!__atomic_load_n(&sealer->pressed, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&sealer->mutex);
	failures = sealer->failures;
	while (sealer->pressed && goes_on(sealer, failures))
		pthread_cond_wait(&sealer->spare, &sealer->mutex);
	pthread_mutex_unlock(&sealer->mutex);
}

void sealer_wait_for_some(struct engine *engine, uint32_t most)
{
	struct sealer *sealer = &engine->sealer;
	uint32_t failures, first, waiting;

	turn_take(&engine->turn);
	sealer_look(engine);
	turn_give(&engine->turn);
	pthread_mutex_lock(&sealer->mutex);
	failures = sealer->failures;
	first = sealer->sealed;
	waiting = (uint32_t)min_u64(sealer->waiting, most);
	/* Others may fill buffers as fast. */
	while (sealer->sealed - first < waiting && goes_on(sealer, failures))
		pthread_cond_wait(&sealer->spare, &sealer->mutex);
	pthread_mutex_unlock(&sealer->mutex);
}

/* ---- a thread ---- */

/* False: the end. */
static bool wait_for_work(struct sealer *sealer)
{
	bool is_wanted;

	pthread_mutex_lock(&sealer->mutex);
	while (!sealer->wanted && !sealer->stop)
		pthread_cond_wait(&sealer->due, &sealer->mutex);
	is_wanted = !sealer->stop;
	sealer->wanted = false;
	sealer->busy += is_wanted;
	pthread_mutex_unlock(&sealer->mutex);
	return is_wanted;
}

/*
 * After an error the next command that puts tries again: what the threads tried by themselves would
 * only wear the flash. -EAGAIN: there was nothing to do.
 */
static void end_work(struct sealer *sealer, int result)
{
	pthread_mutex_lock(&sealer->mutex);
	sealer->busy--;
	if (result != -EAGAIN)
		sealer->failing = result < 0;
	sealer->failures += result < 0 && result != -EAGAIN;
	sealer->sealed += result >= 0;
	if (result >= 0 && sealer->waiting > sealer->busy && !sealer->wanted) {
		sealer->wanted = true;
		pthread_cond_signal(&sealer->due);
	}
	pthread_cond_broadcast(&sealer->spare);
	pthread_mutex_unlock(&sealer->mutex);
}

static bool has_ended(struct sealer *sealer)
{
	bool stop;

	pthread_mutex_lock(&sealer->mutex);
	stop = sealer->stop;
	pthread_mutex_unlock(&sealer->mutex);
	return stop;
}

/* A step of a buffer in turn; `number` < 0: chooses one. As seal_take and seal_step. */
static int take_step(struct engine *engine, int number)
{
	const struct record_store_operations *operations = engine->store->operations;
	int result = 0;

	turn_take_passing(&engine->turn);
	if (!has_ended(&engine->sealer)) {
		result = number < 0 ? operations->seal_take(engine->store)
				    : operations->seal_step(engine->store, number);
		if (result >= 0)
			look(engine, false);
	} else if (number < 0) {
		result = -EAGAIN;
	}
	turn_give(&engine->turn);
	return result;
}

static void *seal(void *context)
{
	struct engine *engine = context;

	while (wait_for_work(&engine->sealer)) {
		int number = take_step(engine, -1), more = number < 0 ? number : 1;

		while (more == 1) {
			engine->store->operations->seal_run(engine->store, number);
			more = take_step(engine, number);
		}
		end_work(&engine->sealer, more);
	}
	return NULL;
}

/* ---- begin and end ---- */

int sealer_start(struct engine *engine)
{
	struct sealer *sealer = &engine->sealer;
	uint32_t wanted = engine->options.sealing_threads;
	int result = 0;

	pthread_mutex_init(&sealer->mutex, NULL);
	pthread_cond_init(&sealer->due, NULL);
	pthread_cond_init(&sealer->spare, NULL);
	if (!engine->store->operations->seal_take)
		return 0;
	for (uint32_t n = 0; !result && n < wanted && n < SEALER_THREADS_MAX; n++) {
		result = thread_start(&sealer->threads[n], "muninn-seal", seal, engine);
		sealer->count += !result;
	}
	if (result) {
		sealer_stop(engine);
		return result;
	}
	/* What an earlier process left. */
	turn_take(&engine->turn);
	sealer_look(engine);
	turn_give(&engine->turn);
	return 0;
}

void sealer_end(struct engine *engine)
{
	struct sealer *sealer = &engine->sealer;

	pthread_mutex_lock(&sealer->mutex);
	sealer->stop = true;
	set_pressed(sealer, false);
	pthread_cond_broadcast(&sealer->due);
	pthread_mutex_unlock(&sealer->mutex);
}

void sealer_stop(struct engine *engine)
{
	struct sealer *sealer = &engine->sealer;

	sealer_end(engine);
	/* Those that still work look at the number. */
	for (uint32_t n = 0; n < sealer->count; n++)
		pthread_join(sealer->threads[n], NULL);
	sealer->count = 0;
	pthread_cond_destroy(&sealer->spare);
	pthread_cond_destroy(&sealer->due);
	pthread_mutex_destroy(&sealer->mutex);
}
