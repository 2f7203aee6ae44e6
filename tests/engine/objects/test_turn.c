/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The turn: who waits gets it before who gave it takes it again. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/objects/turn.h"
#include "engine/records/work.h"

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
		/* Those who passed the first one did not pass the next. */
		crowd.turn.queue.passes = 1;
		turn_give(&crowd.turn);
		turn_take(&crowd.turn);
		got = crowd.got;
		turn_give(&crowd.turn);
		for (int n = 0; n < WAITERS; n++)
			pthread_join(waiters[n].thread, NULL);
		turn_destroy(&crowd.turn);
		assert_int_equal(got, WAITERS);
		assert_int_equal(crowd.turn.queue.passes, 0);
		/* One that has it alone, in order; those that share it have it together. */
		for (int n = 0; n < WAITERS; n++)
			if (!crowd.shared[n])
				assert_int_equal(crowd.places[n], n);
	}
}

/* However often others pass him, he has it after a few of them, and they do not wait before. */
static void test_who_waits_is_passed_a_few_times_at_most(void **state)
{
	enum { PASSES_MOST = 16 };

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct crowd crowd = { .shared = { round & 1, round & 2, round & 4 } };
		struct waiter waiters[WAITERS];
		int taken = 0;

		turn_init(&crowd.turn);
		turn_take(&crowd.turn);
		let_wait(&crowd, waiters);
		turn_give(&crowd.turn);
		for (int got = 0; got < WAITERS; taken++) {
			turn_take_passing(&crowd.turn);
			got = crowd.got;
			turn_give(&crowd.turn);
		}
		for (int n = 0; n < WAITERS; n++)
			pthread_join(waiters[n].thread, NULL);
		turn_destroy(&crowd.turn);
		assert_in_range(taken, 1, WAITERS * PASSES_MOST);
	}
}

/* The first of the queue has been given a number, and never comes. */
static void test_who_sleeps_is_passed(void **state)
{
	struct turn turn;

	(void)state;
	turn_init(&turn);
	turn.queue.next = 1;
	alarm(60); /* who waits for him would do so for ever */
	turn_take_passing(&turn);
	alarm(0);
	assert_int_equal(turn.times.waited, 0);
	assert_int_equal(turn.queue.passes, 1);
	turn_give(&turn);
	turn.queue.next = 0;
	turn_destroy(&turn);
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

static void test_nobody_takes_it_without_waiting_before_who_must_not_wait(void **state)
{
	struct turn turn;

	(void)state;
	turn_init(&turn);
	/* He tries just now. */
	turn.awaited = 1;
	turn_take(&turn);
	turn_give(&turn);
	turn_take_passing(&turn);
	turn_give(&turn);
	assert_int_equal(turn.times.waited, 2);
	turn_destroy(&turn);
}

/* ---- trying again ---- */

/* More than any machine needs, so that what never comes ends the test. */
enum { TRIES_MOST = 100000 };

/* Somebody who may not wait, and tries until he has the turn. */
struct trier {
	struct turn turn;
	bool shared;
	bool done; /* atomic */
	uint32_t tries;
	bool got;
};

static void *try_again(void *context)
{
	struct trier *trier = context;
	struct turn *turn = &trier->turn;
	uint64_t since = 0;

	while (!trier->got && trier->tries < TRIES_MOST) {
		trier->tries++;
		trier->got = trier->shared ? turn_try_share(turn, &since) : turn_try_take(turn);
	}
	if (trier->got && trier->shared)
		turn_unshare(turn, since);
	else if (trier->got)
		turn_give(turn);
	__atomic_store_n(&trier->done, true, __ATOMIC_SEQ_CST);
	return NULL;
}

/* Who has the turn sees that somebody tries, and gives it for that alone. */
static void check_trying_is_seen(bool shared)
{
	struct trier trier = { .shared = shared };
	pthread_t thread;

	turn_init(&trier.turn);
	turn_take(&trier.turn);
	assert_int_equal(trier.turn.wanted, 0);
	assert_int_equal(pthread_create(&thread, NULL, try_again, &trier), 0);
	while (!__atomic_load_n(&trier.turn.wanted, __ATOMIC_SEQ_CST) &&
	       !__atomic_load_n(&trier.done, __ATOMIC_SEQ_CST))
		;
	turn_give(&trier.turn);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(trier.turn.awaited, 0);
	assert_int_equal(trier.turn.wanted, 0);
	turn_destroy(&trier.turn);
	print_message("%u tries\n", trier.tries);
	assert_true(trier.got);
}

static void test_who_has_the_turn_sees_that_others_try_to_have_it(void **state)
{
	(void)state;
	check_trying_is_seen(false);
	check_trying_is_seen(true);
}

/* ---- what is counted ---- */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void test_waiting_and_holding_are_counted_in_time(void **state)
{
	struct crowd crowd = { .got = 0 };
	struct waiter waiters[WAITERS];
	struct turn_times *times = &crowd.turn.times;
	uint64_t began = now_ns(), took;

	(void)state;
	turn_init(&crowd.turn);
	assert_true(turn_try_take(&crowd.turn));
	assert_false(turn_try_take(&crowd.turn));
	let_wait(&crowd, waiters);
	turn_give(&crowd.turn);
	for (int n = 0; n < WAITERS; n++)
		pthread_join(waiters[n].thread, NULL);
	took = now_ns() - began;
	turn_destroy(&crowd.turn);
	assert_int_equal(times->taken, WAITERS + 1);
	assert_in_range(times->held_ns, 1, took);
	assert_int_equal(times->waited, WAITERS);
	assert_in_range(times->waited_most_ns, 1, took);
	assert_in_range(times->waited_ns, times->waited_most_ns, WAITERS * took);
}

static void work_on_records(void *context)
{
	(void)context;
	records_worked += 11;
}

static void test_holding_is_counted_in_records(void **state)
{
	struct turn turn;
	uint64_t since;

	(void)state;
	turn_init(&turn);
	turn_take(&turn);
	records_worked += 5;
	assert_int_equal(turn_worked(&turn, false, 0), 5);
	turn_give(&turn);
	assert_int_equal(turn_take_most(&turn), 5);
	assert_int_equal(turn_take_most(&turn), 0);
	since = turn_share(&turn);
	records_worked += 7;
	assert_int_equal(turn_worked(&turn, true, since), 7);
	turn_unshare(&turn, since);
	/* A shorter one leaves the longest as it was. */
	assert_true(turn_try_take(&turn));
	records_worked += 3;
	turn_give(&turn);
	assert_int_equal(turn_take_most(&turn), 7);
	/* What is called for holds it, too. */
	turn_call(&turn, work_on_records, NULL);
	assert_int_equal(turn_take_most(&turn), 11);
	turn_destroy(&turn);
}

/* ---- what others have done in the turn ---- */

struct errand {
	struct turn *turn;
	pthread_t by; /* who did it */
	int done;
};

static void do_errand(void *context)
{
	struct errand *errand = context;

	errand->by = pthread_self();
	__atomic_fetch_add(&errand->done, 1, __ATOMIC_SEQ_CST);
}

static void *call(void *context)
{
	struct errand *errand = context;

	turn_call(errand->turn, do_errand, errand);
	return NULL;
}

static void test_who_has_the_turn_does_what_others_call_for(void **state)
{
	struct turn turn;
	struct errand errand = { .turn = &turn };
	pthread_t caller;

	(void)state;
	turn_init(&turn);
	turn_serve(&turn); /* nobody wants anything */
	turn_take(&turn);
	assert_int_equal(pthread_create(&caller, NULL, call, &errand), 0);
	while (!__atomic_load_n(&errand.done, __ATOMIC_SEQ_CST)) {
		turn_serve(&turn);
		sched_yield();
	}
	assert_true(pthread_equal(errand.by, pthread_self()));
	assert_int_equal(pthread_join(caller, NULL), 0);
	turn_serve(&turn);
	turn_give(&turn);
	assert_int_equal(errand.done, 1);
	/* Nobody has it: the caller does it himself. */
	assert_int_equal(pthread_create(&caller, NULL, call, &errand), 0);
	assert_int_equal(pthread_join(caller, NULL), 0);
	assert_int_equal(errand.done, 2);
	assert_false(pthread_equal(errand.by, pthread_self()));
	turn_destroy(&turn);
}

/* Who gives the turn wakes a caller that nobody has served. */
static void test_what_is_called_for_is_done_behind_the_turn_at_the_latest(void **state)
{
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct turn turn;
		struct errand errand = { .turn = &turn };
		pthread_t caller;

		turn_init(&turn);
		turn_take(&turn);
		assert_int_equal(pthread_create(&caller, NULL, call, &errand), 0);
		while (!__atomic_load_n(&turn.work.wanted, __ATOMIC_SEQ_CST))
			sched_yield();
		turn_give(&turn);
		assert_int_equal(pthread_join(caller, NULL), 0);
		assert_int_equal(errand.done, 1);
		turn_destroy(&turn);
	}
}

static void *take_and_give(void *context)
{
	struct turn *turn = context;

	turn_take(turn);
	turn_give(turn);
	return NULL;
}

/* The first of the queue sleeps, because others share the turn. */
static void let_sleep(struct turn *turn, pthread_t *writer)
{
	assert_int_equal(pthread_create(writer, NULL, take_and_give, turn), 0);
	while (!turn_is_slept_for(turn))
		sched_yield();
}

/* A long READ, behind which a writer sleeps, does not hold it up. */
static void test_what_is_called_for_is_done_beside_readers_that_a_writer_waits_for(void **state)
{
	struct turn turn;
	struct errand errand = { .turn = &turn };
	pthread_t writer;
	uint64_t since;

	(void)state;
	turn_init(&turn);
	since = turn_share(&turn);
	let_sleep(&turn, &writer);
	alarm(60); /* who waits for the end of the READ would do so for ever */
	turn_call(&turn, do_errand, &errand);
	alarm(0);
	assert_int_equal(errand.done, 1);
	assert_true(turn_is_slept_for(&turn));
	turn_unshare(&turn, since);
	assert_int_equal(pthread_join(writer, NULL), 0);
	assert_int_equal(turn.times.taken, 1);
	turn_destroy(&turn);
}

/* Otherwise attempts that follow each other would keep it for ever. */
static void test_nobody_shares_it_before_a_writer_that_sleeps(void **state)
{
	struct turn turn;
	pthread_t writer;
	uint64_t since, other;

	(void)state;
	turn_init(&turn);
	since = turn_share(&turn);
	let_sleep(&turn, &writer);
	assert_false(turn_try_share(&turn, &other));
	assert_false(turn_try_take(&turn));
	turn_unshare(&turn, since);
	assert_int_equal(pthread_join(writer, NULL), 0);
	assert_true(turn_try_share(&turn, &other));
	turn_unshare(&turn, other);
	/* The same behind one who had it alone. */
	turn_take(&turn);
	let_sleep(&turn, &writer);
	turn_give(&turn);
	assert_int_equal(pthread_join(writer, NULL), 0);
	assert_true(turn_try_share(&turn, &other));
	turn_unshare(&turn, other);
	turn_destroy(&turn);
}

static void test_who_has_the_turn_sees_that_others_sleep_for_it(void **state)
{
	struct turn turn;
	pthread_t writer;

	(void)state;
	turn_init(&turn);
	turn_take(&turn);
	let_sleep(&turn, &writer);
	assert_int_equal(turn.wanted, 1);
	turn_give(&turn);
	assert_int_equal(pthread_join(writer, NULL), 0);
	assert_int_equal(turn.wanted, 0);
	turn_destroy(&turn);
}

/* The first of the queue has not gone to sleep yet: he gets it, and nobody else has to wake him. */
static void test_with_one_processor_nobody_tries_before_he_waits(void **state)
{
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct crowd crowd = { .shared = { round & 1, round & 2, round & 4 } };
		struct waiter waiters[WAITERS];
		uint64_t other;

		turn_init(&crowd.turn);
		crowd.turn.tries = false;
		turn_take(&crowd.turn);
		assert_false(turn_try_share(&crowd.turn, &other));
		let_wait(&crowd, waiters);
		turn_give(&crowd.turn);
		for (int n = 0; n < WAITERS; n++)
			pthread_join(waiters[n].thread, NULL);
		assert_int_equal(crowd.got, WAITERS);
		turn_destroy(&crowd.turn);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_waits_comes_before_who_takes_it_again),
		cmocka_unit_test(test_who_waits_is_passed_a_few_times_at_most),
		cmocka_unit_test(test_who_sleeps_is_passed),
		cmocka_unit_test(test_trying_does_not_wait),
		cmocka_unit_test(test_nobody_takes_it_without_waiting_before_who_must_not_wait),
		cmocka_unit_test(test_who_has_the_turn_sees_that_others_try_to_have_it),
		cmocka_unit_test(test_waiting_and_holding_are_counted_in_time),
		cmocka_unit_test(test_holding_is_counted_in_records),
		cmocka_unit_test(test_who_has_the_turn_does_what_others_call_for),
		cmocka_unit_test(test_what_is_called_for_is_done_behind_the_turn_at_the_latest),
		cmocka_unit_test(
			test_what_is_called_for_is_done_beside_readers_that_a_writer_waits_for),
		cmocka_unit_test(test_nobody_shares_it_before_a_writer_that_sleeps),
		cmocka_unit_test(test_who_has_the_turn_sees_that_others_sleep_for_it),
		cmocka_unit_test(test_with_one_processor_nobody_tries_before_he_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
