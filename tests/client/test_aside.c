/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The thread that works beside a session. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/aside.h"

enum { TASKS = 10000, UNDER_WAY = 50 };

struct number {
	struct aside_task task;
	unsigned value, square;
	pthread_t by;
};

static void square(void *context, struct aside_task *task)
{
	struct number *number = (struct number *)task;

	number->square = number->value * number->value + *(unsigned *)context;
	number->by = pthread_self();
}

static void assert_next(struct aside *aside, unsigned expected, unsigned added)
{
	const struct number *number = (const struct number *)aside_take(aside, true);

	assert_non_null(number);
	assert_int_equal(number->value, expected);
	assert_int_equal(number->square, expected * expected + added);
	assert_false(pthread_equal(number->by, pthread_self()));
}

static void test_tasks_come_back_done_and_in_order(void **state)
{
	static struct number numbers[UNDER_WAY];
	unsigned added = 7, taken = 0;
	struct aside *aside;

	(void)state;
	assert_int_equal(aside_create(square, &added, &aside), 0);
	for (unsigned given = 0; given < TASKS; given++) {
		if (aside_outstanding(aside) == UNDER_WAY)
			assert_next(aside, taken++, added);
		numbers[given % UNDER_WAY].value = given;
		aside_give(aside, &numbers[given % UNDER_WAY].task);
	}
	assert_int_equal(aside_outstanding(aside), UNDER_WAY);
	while (taken < TASKS)
		assert_next(aside, taken++, added);
	assert_null(aside_take(aside, false));
	assert_null(aside_take(aside, true));
	aside_destroy(aside);
}

static void wait_for_byte(void *context, struct aside_task *task)
{
	char byte;

	(void)task;
	assert_int_equal(read(*(int *)context, &byte, 1), 1);
}

static void test_what_is_not_done_is_not_taken(void **state)
{
	struct aside_task task;
	struct aside *aside;
	int pipes[2];

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(aside_create(wait_for_byte, &pipes[0], &aside), 0);
	aside_give(aside, &task);
	assert_null(aside_take(aside, false));
	assert_int_equal(aside_outstanding(aside), 1);
	assert_int_equal(write(pipes[1], "x", 1), 1);
	assert_ptr_equal(aside_take(aside, true), &task);
	aside_destroy(aside);
	close(pipes[0]);
	close(pipes[1]);
}

static void note_mask(void *context, struct aside_task *task)
{
	(void)task;
	pthread_sigmask(SIG_SETMASK, NULL, context);
}

/* Else somebody would press ^C, and the thread that waits for the target would not hear of it. */
static void test_the_thread_takes_no_signals(void **state)
{
	struct aside_task task;
	struct aside *aside;
	sigset_t mask, own;

	(void)state;
	assert_int_equal(aside_create(note_mask, &mask, &aside), 0);
	aside_give(aside, &task);
	assert_non_null(aside_take(aside, true));
	assert_int_equal(sigismember(&mask, SIGINT), 1);
	assert_int_equal(sigismember(&mask, SIGTERM), 1);
	pthread_sigmask(SIG_SETMASK, NULL, &own);
	assert_int_equal(sigismember(&own, SIGINT), 0);
	aside_destroy(aside);
	aside_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tasks_come_back_done_and_in_order),
		cmocka_unit_test(test_what_is_not_done_is_not_taken),
		cmocka_unit_test(test_the_thread_takes_no_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
