/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A flush beside transactions. Whoever has the turn alone, a writing transaction, does it between
 * two records for the one who waits. If nobody has it alone, that one does it himself, beside the
 * readers. What the writing transaction has put so far does not count: a flush speaks of committed
 * numbers only.
 */
#include "engine/objects/flush_beside.h"

#include <errno.h>
#include <time.h>

#include "engine/objects/objects.h"

/* How soon it is noticed that the turn is free, or that readers have it. */
#define LOOK_NS 5000000L

void flush_beside_init(struct flush_beside *beside)
{
	pthread_mutex_init(&beside->callers, NULL);
	pthread_mutex_init(&beside->mutex, NULL);
	pthread_cond_init(&beside->served, NULL);
}

void flush_beside_destroy(struct flush_beside *beside)
{
	pthread_cond_destroy(&beside->served);
	pthread_mutex_destroy(&beside->mutex);
	pthread_mutex_destroy(&beside->callers);
}

/* Under the mutex, with the turn. */
static void flush(struct engine *engine)
{
	engine->beside.result = engine->store->operations->flush(engine->store);
	__atomic_store_n(&engine->beside.wanted, false, __ATOMIC_RELAXED);
}

void flush_beside_serve(struct engine *engine)
{
	struct flush_beside *beside = &engine->beside;

	if (!__atomic_load_n(&beside->wanted, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&beside->mutex);
	if (beside->wanted)
		flush(engine);
	pthread_cond_signal(&beside->served);
	pthread_mutex_unlock(&beside->mutex);
}

/* Under the mutex, which it gives away meanwhile. */
static void wait_a_moment(struct flush_beside *beside)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += LOOK_NS;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	pthread_cond_clockwait(&beside->served, &beside->mutex, CLOCK_MONOTONIC, &until);
}

int engine_flush_beside(struct engine *engine)
{
	struct flush_beside *beside = &engine->beside;
	uint64_t since;
	int result;

	pthread_mutex_lock(&beside->callers);
	pthread_mutex_lock(&beside->mutex);
	__atomic_store_n(&beside->wanted, true, __ATOMIC_RELAXED);
	while (beside->wanted) {
		/* Never waits here: who has the turn alone may wait for the mutex. */
		if (turn_try_share(&engine->turn, &since)) {
			flush(engine);
			turn_unshare(&engine->turn, since);
		} else {
			wait_a_moment(beside);
		}
	}
	result = beside->result;
	pthread_mutex_unlock(&beside->mutex);
	pthread_mutex_unlock(&beside->callers);
	return result;
}
