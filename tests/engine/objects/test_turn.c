/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The turn: who waits gets it before who gave it takes it again. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/objects/turn.h"

enum { ROUNDS = 300, WAITERS = 3 };

/* Threads that want the turn once each, in the order in which they come. */
struct crowd {
	struct turn turn;
	int got; /* how many have had it; each notes its place */
	int places[WAITERS];
	bool shared[WAITERS];
};

struct waiter {
	struct crowd *crowd;
	pthread_t thread;
	int number;
};

/* Only one place is written at a time by who has the turn alone; readers come to it one by one. */
static void note(struct waiter *waiter)
{
	struct crowd *crowd = waiter->crowd;

	crowd->places[waiter->number] = __atomic_fetch_add(&crowd->got, 1, __ATOMIC_SEQ_CST);
}

static void *want(void *context)
{
	struct waiter *waiter = context;
	struct turn *turn = &waiter->crowd->turn;

	if (waiter->crowd->shared[waiter->number]) {
		uint64_t since = turn_share(turn);

		note(waiter);
		turn_unshare(turn, since);
	} else {
		turn_take(turn);
		note(waiter);
		turn_give(turn);
	}
	return NULL;
}

static uint32_t waiting(struct turn *turn)
{
	uint32_t count;

	pthread_mutex_lock(&turn->queue.mutex);
	count = turn->queue.next - turn->queue.first;
	pthread_mutex_unlock(&turn->queue.mutex);
	return count;
}

/* Each thread queues before the next one is made. */
static void let_wait(struct crowd *crowd, struct waiter *waiters)
{
	for (int n = 0; n < WAITERS; n++) {
		waiters[n] = (struct waiter){ .crowd = crowd, .number = n };
		assert_int_equal(pthread_create(&waiters[n].thread, NULL, want, &waiters[n]), 0);
		while (waiting(&crowd->turn) != (uint32_t)n + 1)
			sched_yield();
	}
}

static void test_who_waits_comes_before_who_takes_it_again(void **state)
{
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct crowd crowd = { .got = 0 };
		struct waiter waiters[WAITERS];
		int got;

		for (int n = 0; n < WAITERS; n++)
			crowd.shared[n] = round >> n & 1;
		turn_init(&crowd.turn);
		turn_take(&crowd.turn);
		let_wait(&crowd, waiters);
		turn_give(&crowd.turn);
		turn_take(&crowd.turn);
		got = crowd.got;
		turn_give(&crowd.turn);
		for (int n = 0; n < WAITERS; n++)
			pthread_join(waiters[n].thread, NULL);
		turn_destroy(&crowd.turn);
		assert_int_equal(got, WAITERS);
		/* One that has it alone, in order; those that share it have it together. */
		for (int n = 0; n < WAITERS; n++)
			if (!crowd.shared[n])
				assert_int_equal(crowd.places[n], n);
	}
}

static void test_trying_does_not_wait(void **state)
{
	struct turn turn;
	uint64_t since, other;

	(void)state;
	turn_init(&turn);
	since = turn_share(&turn);
	assert_true(turn_try_share(&turn, &other));
	turn_unshare(&turn, other);
	turn_unshare(&turn, since);
	turn_take(&turn);
	assert_false(turn_try_share(&turn, &other));
	turn_give(&turn);
	turn_destroy(&turn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_waits_comes_before_who_takes_it_again),
		cmocka_unit_test(test_trying_does_not_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
