/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The order of a unit's tasks: the rules one by one, and random arrivals, ends and aborts against a
 * model of SAM-3, 8.6.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/module/order.h"

#define TASKS 24
#define STEPS 300000

static struct order order;
static struct order_task tasks[TASKS];

static int setup(void **state)
{
	(void)state;
	order_init(&order);
	return 0;
}

/* Takes what may begin, in order; -1 behind the last. */
static void assert_taken(int first, ...)
{
	va_list numbers;

	va_start(numbers, first);
	for (int number = first; number >= 0; number = va_arg(numbers, int))
		assert_ptr_equal(order_take(&order), &tasks[number]);
	va_end(numbers);
	assert_null(order_take(&order));
}

static void test_simple_tasks_begin_in_order_of_arrival_and_wait_for_nobody(void **state)
{
	(void)state;
	assert_true(order_is_empty(&order));
	for (int i = 0; i < 3; i++)
		assert_true(order_arrive(&order, &tasks[i], ORDER_SIMPLE, 0));
	assert_taken(0, 1, 2, -1);
	assert_false(order_is_empty(&order));
	for (int i = 0; i < 3; i++)
		assert_false(order_end(&order, &tasks[i]));
	assert_true(order_is_empty(&order));
}

static void test_an_ordered_task_waits_for_all_before_it_and_all_behind_it_wait_for_it(void **state)
{
	(void)state;
	assert_true(order_arrive(&order, &tasks[0], ORDER_SIMPLE, 0));
	assert_true(order_arrive(&order, &tasks[1], ORDER_SIMPLE, 0));
	assert_false(order_arrive(&order, &tasks[2], ORDER_ORDERED, 0));
	assert_false(order_arrive(&order, &tasks[3], ORDER_SIMPLE, 0));
	assert_false(order_arrive(&order, &tasks[4], ORDER_SIMPLE, 0));
	assert_false(order_arrive(&order, &tasks[5], ORDER_ORDERED, 0));
	assert_taken(0, 1, -1);
	assert_false(order_end(&order, &tasks[1]));
	assert_true(order_end(&order, &tasks[0]));
	assert_taken(2, -1);
	assert_true(order_end(&order, &tasks[2]));
	assert_taken(3, 4, -1);
	assert_false(order_end(&order, &tasks[4]));
	assert_true(order_end(&order, &tasks[3]));
	assert_taken(5, -1);
}

static void test_head_of_queue_goes_ahead_of_all_that_have_not_begun(void **state)
{
	(void)state;
	order_arrive(&order, &tasks[0], ORDER_SIMPLE, 0);
	order_arrive(&order, &tasks[1], ORDER_SIMPLE, 0);
	assert_ptr_equal(order_take(&order), &tasks[0]);
	assert_true(order_arrive(&order, &tasks[2], ORDER_HEAD_OF_QUEUE, 0));
	assert_true(order_arrive(&order, &tasks[3], ORDER_HEAD_OF_QUEUE, 0));
	assert_taken(3, 2, 1, -1);
}

static void test_head_of_queue_beside_an_ordered_task_lets_nothing_begin_when_it_ends(void **state)
{
	(void)state;
	order_arrive(&order, &tasks[0], ORDER_ORDERED, 0);
	order_arrive(&order, &tasks[1], ORDER_SIMPLE, 0);
	order_arrive(&order, &tasks[2], ORDER_HEAD_OF_QUEUE, 0);
	assert_taken(2, 0, -1);
	assert_false(order_end(&order, &tasks[2]));
	assert_false(order_arrive(&order, &tasks[3], ORDER_SIMPLE, 0));
	assert_true(order_end(&order, &tasks[0]));
	assert_taken(1, 3, -1);
}

static void test_what_arrives_waits_for_every_head_of_queue(void **state)
{
	(void)state;
	order_arrive(&order, &tasks[0], ORDER_HEAD_OF_QUEUE, 0);
	order_arrive(&order, &tasks[1], ORDER_HEAD_OF_QUEUE, 0);
	assert_false(order_arrive(&order, &tasks[2], ORDER_SIMPLE, 0));
	assert_taken(1, 0, -1);
	assert_false(order_end(&order, &tasks[0]));
	assert_true(order_end(&order, &tasks[1]));
	assert_taken(2, -1);
}

static void test_a_task_begins_at_once_only_if_its_turn_has_come(void **state)
{
	(void)state;
	assert_true(order_begin_at_once(&order, &tasks[0], ORDER_SIMPLE, 0));
	assert_false(order_begin_at_once(&order, &tasks[1], ORDER_ORDERED, 0));
	/* It has left nothing behind. */
	assert_taken(-1);
	assert_true(order_begin_at_once(&order, &tasks[2], ORDER_HEAD_OF_QUEUE, 0));
	assert_false(order_arrive(&order, &tasks[1], ORDER_ORDERED, 7));
	assert_int_equal(tasks[1].kind, 7);
	assert_false(order_end(&order, &tasks[2]));
	assert_true(order_end(&order, &tasks[0]));
	/* One in front of it that may begin and has not counts, too. */
	assert_false(order_begin_at_once(&order, &tasks[3], ORDER_SIMPLE, 0));
	assert_taken(1, -1);
}

static void test_a_task_that_is_put_back_begins_again_in_its_place(void **state)
{
	(void)state;
	assert_true(order_begin_at_once(&order, &tasks[0], ORDER_SIMPLE, 5));
	assert_false(order_has_next(&order));
	order_arrive(&order, &tasks[1], ORDER_SIMPLE, 0);
	order_put_back(&order, &tasks[0]);
	assert_true(order_has_next(&order));
	/* It has not ended. */
	assert_false(order_begin_at_once(&order, &tasks[2], ORDER_ORDERED, 0));
	assert_true(order_begin_at_once(&order, &tasks[3], ORDER_HEAD_OF_QUEUE, 0));
	order_put_back(&order, &tasks[3]);
	assert_taken(3, 1, 0, -1);
	assert_int_equal(tasks[0].kind, 5);
	assert_false(order_has_next(&order));
}

static bool visit_one(void *context, struct order_task *task)
{
	return task == context;
}

static void test_what_waits_for_a_task_that_is_taken_out_may_begin(void **state)
{
	(void)state;
	order_arrive(&order, &tasks[0], ORDER_SIMPLE, 0);
	order_arrive(&order, &tasks[1], ORDER_ORDERED, 0);
	order_arrive(&order, &tasks[2], ORDER_SIMPLE, 0);
	order_arrive(&order, &tasks[3], ORDER_ORDERED, 0);
	assert_taken(0, -1);
	assert_true(order_visit(&order, visit_one, &tasks[1]));
	assert_taken(2, -1);
	assert_false(order_visit(&order, visit_one, &tasks[1]));
	assert_false(order_visit(&order, visit_one, &tasks[3]));
	order_end(&order, &tasks[0]);
	order_end(&order, &tasks[2]);
	assert_true(order_is_empty(&order));
}

/* ---- the model: what SAM says of each task, with all others looked at ---- */

struct modelled {
	enum { ABSENT, WAITING, BEGUN } state;
	enum order_attribute attribute;
	bool may_begin;   /* stays so, also when HEAD OF QUEUE comes */
	uint64_t arrival; /* number, of all */
};

static struct modelled model[TASKS];
static uint64_t arrivals;

static bool model_may_begin(const struct modelled *task)
{
	if (task->attribute == ORDER_HEAD_OF_QUEUE || task->may_begin)
		return true;
	for (size_t i = 0; i < TASKS; i++) {
		const struct modelled *other = &model[i];

		if (other == task || other->state == ABSENT)
			continue;
		if (other->attribute == ORDER_HEAD_OF_QUEUE)
			return false;
		if (other->arrival < task->arrival &&
		    (other->attribute == ORDER_ORDERED || task->attribute == ORDER_ORDERED))
			return false;
	}
	return true;
}

/* Whether some may begin that could not before. */
static bool model_changes(void)
{
	bool any = false;

	for (size_t i = 0; i < TASKS; i++)
		if (model[i].state == WAITING && !model[i].may_begin) {
			model[i].may_begin = model_may_begin(&model[i]);
			any = any || model[i].may_begin;
		}
	return any;
}

static void model_arrive(size_t number, uint64_t random)
{
	static const enum order_attribute attributes[] = { ORDER_SIMPLE, ORDER_SIMPLE,
							   ORDER_ORDERED, ORDER_HEAD_OF_QUEUE };
	enum order_attribute attribute = attributes[random % 4];
	bool at_once = random / 4 % 4 == 0;
	bool expected;

	model[number] = (struct modelled){ WAITING, attribute, false, arrivals++ };
	expected = model_changes();
	assert_int_equal(model[number].may_begin, expected);
	if (!at_once) {
		assert_int_equal(order_arrive(&order, &tasks[number], attribute, 0), expected);
		return;
	}
	assert_int_equal(order_begin_at_once(&order, &tasks[number], attribute, 0), expected);
	model[number].state = expected ? BEGUN : ABSENT;
}

static void model_end(size_t number)
{
	model[number].state = ABSENT;
	assert_int_equal(order_end(&order, &tasks[number]), model_changes());
}

/*
 * What is taken may begin, is HEAD OF QUEUE if one is there, and there is something as long as
 * something may.
 */
static void model_take(void)
{
	const struct order_task *taken = order_take(&order);
	bool any = false, any_head = false;

	for (size_t i = 0; i < TASKS; i++) {
		bool waits = model[i].state == WAITING && model[i].may_begin;

		any = any || waits;
		any_head = any_head || (waits && model[i].attribute == ORDER_HEAD_OF_QUEUE);
	}
	assert_int_equal(taken != NULL, any);
	if (!taken)
		return;
	assert_true(model[taken - tasks].state == WAITING && model[taken - tasks].may_begin);
	assert_int_equal(model[taken - tasks].attribute == ORDER_HEAD_OF_QUEUE, any_head);
	model[taken - tasks].state = BEGUN;
}

/* Context: bits of tasks to take out, those that were shown are set in the upper half. */
static bool visit_some(void *context, struct order_task *task)
{
	uint64_t *bits = context;
	size_t number = (size_t)(task - tasks);

	*bits |= UINT64_C(1) << (32 + number);
	return (*bits >> number & 1) != 0;
}

static void model_abort(uint64_t random)
{
	uint64_t bits = random & random >> 20 & ((UINT64_C(1) << TASKS) - 1), waiting = 0;
	uint64_t chosen = bits;
	bool changed = order_visit(&order, visit_some, &bits);

	for (size_t i = 0; i < TASKS; i++) {
		if (model[i].state != WAITING)
			continue;
		waiting |= UINT64_C(1) << i;
		if (chosen >> i & 1)
			model[i].state = ABSENT;
	}
	assert_int_equal(bits >> 32, waiting);
	assert_int_equal(changed, model_changes());
}

/* SplitMix64. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t mixed = *state += UINT64_C(0x9E3779B97F4A7C15);

	mixed = (mixed ^ mixed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94D049BB133111EB);
	return mixed ^ mixed >> 31;
}

static void test_random_arrivals_ends_and_aborts_follow_sams_rules(void **state)
{
	uint64_t random = 20;

	(void)state;
	for (uint64_t step = 0; step < STEPS; step++) {
		uint64_t draw = next_random(&random);
		size_t number = draw % TASKS;
		size_t present = 0;

		draw /= TASKS;
		if (draw % 64 == 0)
			model_abort(draw / 64);
		else if (model[number].state == ABSENT)
			model_arrive(number, draw / 64);
		else if (model[number].state == BEGUN)
			model_end(number);
		else
			model_take();
		for (size_t i = 0; i < TASKS; i++)
			present += model[i].state != ABSENT;
		assert_int_equal(order_is_empty(&order), present == 0);
	}
	/* And to the end: nothing is left that nobody lets begin. */
	for (size_t left = 0; left < (size_t)2 * TASKS; left++) {
		model_take();
		for (size_t i = 0; i < TASKS; i++)
			if (model[i].state == BEGUN)
				model_end(i);
	}
	assert_true(order_is_empty(&order));
}

#define prepared(test) cmocka_unit_test_setup(test, setup)

int main(void)
{
	const struct CMUnitTest tests_of_order[] = {
		prepared(test_simple_tasks_begin_in_order_of_arrival_and_wait_for_nobody),
		prepared(
			test_an_ordered_task_waits_for_all_before_it_and_all_behind_it_wait_for_it),
		prepared(test_head_of_queue_goes_ahead_of_all_that_have_not_begun),
		prepared(test_head_of_queue_beside_an_ordered_task_lets_nothing_begin_when_it_ends),
		prepared(test_what_arrives_waits_for_every_head_of_queue),
		prepared(test_a_task_begins_at_once_only_if_its_turn_has_come),
		prepared(test_a_task_that_is_put_back_begins_again_in_its_place),
		prepared(test_what_waits_for_a_task_that_is_taken_out_may_begin),
		prepared(test_random_arrivals_ends_and_aborts_follow_sams_rules),
	};

	return cmocka_run_group_tests(tests_of_order, NULL, NULL);
}
