/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What goes on behind commands that were answered before their end, step by step: what each does,
 * and what may come in between.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "osd/functions.h"
#include "tests/osd/collection_calls.h"
#include "tests/osd/function_call.h"

enum { PORTION = 3, ALL = (1 << MEMBERS) - 1 };

static void go_by_hand(struct unit *unit)
{
	osd_background_by_hand(&unit->device->background);
	osd_merge_job_by_hand(unit->device->merge_job);
	unit->device->portions.members = PORTION;
}

static bool step(struct unit *unit)
{
	return osd_background_step(&unit->device->background);
}

/* A command with IMMED_TR on the members of T. */
static void begin(struct unit *unit, uint16_t action)
{
	struct call call = call_of(action, P, T);

	call.cdb.immediate_tracking = true;
	if (action == OSD_SET_MEMBER_ATTRIBUTES)
		call_set_number(&call, TEST_PAGE, TEST_NUMBER, 77);
	call_run(unit, &call);
	expect_good(unit);
}

/* The first `count` members have left T, and the command goes on, or has ended. */
static void expect_dealt_with(struct unit *unit, unsigned count, bool active)
{
	struct tracked tracked = unit_tracked(unit, T);

	assert_members(unit, T, ALL & ~((1u << count) - 1));
	assert_int_equal(tracked.processed, count);
	assert_int_equal(tracked.missing, 0);
	assert_int_equal(tracked.active != 0, active);
}

static void test_a_command_deals_with_one_portion_in_each_step(void **state)
{
	struct unit *unit = *state;

	go_by_hand(unit);
	begin(unit, OSD_REMOVE_MEMBER_OBJECTS);
	expect_dealt_with(unit, PORTION, true);
	assert_true(step(unit));
	expect_dealt_with(unit, 2 * PORTION, true);
	assert_true(step(unit));
	expect_dealt_with(unit, 3 * PORTION, true);
	assert_true(step(unit));
	expect_dealt_with(unit, MEMBERS, false);
	assert_false(step(unit));
}

static void test_a_member_that_goes_between_two_steps_is_missing(void **state)
{
	struct unit *unit = *state;
	struct call remove = call_of(OSD_REMOVE, P, M + PORTION + 1);

	go_by_hand(unit);
	begin(unit, OSD_SET_MEMBER_ATTRIBUTES);
	call_run(unit, &remove);
	expect_good(unit);
	while (step(unit))
		;
	assert_members(unit, T, 0);
	assert_int_equal(unit_tracked(unit, T).processed, MEMBERS - 1);
	assert_int_equal(unit_get_number(unit, P, M + MEMBERS - 1, TEST_PAGE, TEST_NUMBER), 77);
}

static void test_a_value_set_between_two_steps_is_overwritten_by_the_next_one_only(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_SET_ATTRIBUTES, P, M);

	go_by_hand(unit);
	begin(unit, OSD_SET_MEMBER_ATTRIBUTES);
	call_set_number(&call, TEST_PAGE, TEST_NUMBER, 5);
	call_run(unit, &call);
	expect_good(unit);
	call.cdb.object = M + MEMBERS - 1;
	call_run(unit, &call);
	expect_good(unit);
	while (step(unit))
		;
	/* The first member was dealt with before, the last one is behind. */
	assert_int_equal(unit_get_number(unit, P, M, TEST_PAGE, TEST_NUMBER), 5);
	assert_int_equal(unit_get_number(unit, P, M + MEMBERS - 1, TEST_PAGE, TEST_NUMBER), 77);
}

static uint64_t merge(struct unit *unit, uint64_t action, uint16_t item)
{
	struct function_call call;

	function_of(&call, OSD_FUNCTION_MERGE, 0, 0);
	osd_item_add_number(&call.writer, OSD_ITEM_ACTION, action);
	function_run(unit, &call);
	expect_good(unit);
	return function_number(unit, item);
}

static void test_a_merge_counts_its_steps_and_ends_by_itself(void **state)
{
	struct unit *unit = *state;
	struct osd_merge_job *job = unit->device->merge_job;
	unsigned steps = 1;

	go_by_hand(unit);
	function_subscribe(unit);
	assert_false(osd_merge_job_step(job));
	assert_int_equal(merge(unit, OSD_MERGE_START, OSD_ITEM_STATE), 1);
	assert_true(osd_merge_job_step(job));
	assert_int_equal(merge(unit, OSD_MERGE_PROGRESS, OSD_ITEM_COUNT), 1);
	while (steps < 100000 && osd_merge_job_step(job))
		steps++;
	assert_int_equal(merge(unit, OSD_MERGE_PROGRESS, OSD_ITEM_COUNT), steps);
	assert_int_equal(merge(unit, OSD_MERGE_PROGRESS, OSD_ITEM_STATE), 0);
	assert_int_equal(merge(unit, OSD_MERGE_PROGRESS, OSD_ITEM_PROGRESS), 1000);
}

static void test_a_cancelled_merge_ends_with_the_step_in_work(void **state)
{
	struct unit *unit = *state;
	struct osd_merge_job *job = unit->device->merge_job;

	go_by_hand(unit);
	function_subscribe(unit);
	merge(unit, OSD_MERGE_START, OSD_ITEM_STATE);
	assert_true(osd_merge_job_step(job));
	merge(unit, OSD_MERGE_CANCEL, OSD_ITEM_STATE);
	osd_merge_job_step(job);
	assert_false(osd_merge_job_step(job));
	assert_int_equal(merge(unit, OSD_MERGE_PROGRESS, OSD_ITEM_STATE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_members(test_a_command_deals_with_one_portion_in_each_step),
		with_members(test_a_member_that_goes_between_two_steps_is_missing),
		with_members(
			test_a_value_set_between_two_steps_is_overwritten_by_the_next_one_only),
		with_members(test_a_merge_counts_its_steps_and_ends_by_itself),
		with_members(test_a_cancelled_merge_ends_with_the_step_in_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
