/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * EXECUTE on a partition that was removed and brought back: moments from between are none of its.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/osd/function_call.h"

/* Versions of the device, and a time, with P there, without it, and with it again. */
struct past {
	uint64_t before, without, again;
	uint64_t ms_without;
};

static struct past remove_and_bring_back(struct unit *unit)
{
	struct call call = call_of(OSD_REMOVE_PARTITION, P, 0);
	struct past past;

	function_subscribe(unit);
	unit_write(unit, O, 0, "precious", 8);
	past.before = function_snapshot(unit, 0, NULL);
	call.cdb.command_options = OSD_REMOVE_CONTENTS;
	call_run(unit, &call);
	expect_good(unit);
	unit->now_ms += FUNCTION_STEP_MS;
	past.ms_without = unit->now_ms;
	past.without = function_snapshot(unit, 0, NULL);
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, 0, 0, OSD_ITEM_VERSION, past.before);
	expect_good(unit);
	past.again = function_snapshot(unit, 0, NULL);
	return past;
}

static void test_it_does_not_go_back_to_when_it_was_gone(void **state)
{
	struct unit *unit = *state;
	const struct past past = remove_and_bring_back(unit);
	const uint64_t objects[] = { 0, O };

	for (size_t n = 0; n < 2; n++) {
		function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, objects[n], OSD_ITEM_VERSION,
				  past.without);
		expect_parameter(unit, 0);
		function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, objects[n], OSD_ITEM_TIME,
				  past.ms_without);
		expect_parameter(unit, 0);
		function_expect_text(unit, P, O, "precious");
	}
	unit_write(unit, O, 0, "RUINED!!", 8);
	unit->now_ms += FUNCTION_STEP_MS;
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, 0, OSD_ITEM_VERSION, past.before);
	expect_good(unit);
	function_expect_text(unit, P, O, "precious");
}

static void test_its_versions_are_listed_and_counted_without_those_from_then(void **state)
{
	struct unit *unit = *state;
	const struct past past = remove_and_bring_back(unit);
	struct function_call call;
	struct osd_item entry;

	function_of(&call, OSD_FUNCTION_VERSIONS, P, 0);
	function_run(unit, &call);
	expect_good(unit);
	assert_true(function_entry(unit, 0, &entry));
	assert_int_equal(entry_number(&entry, OSD_ITEM_VERSION), past.before);
	assert_int_equal(entry_number(&entry, OSD_ITEM_OBJECTS), 1);
	assert_true(function_entry(unit, 1, &entry));
	assert_int_equal(entry_number(&entry, OSD_ITEM_VERSION), past.again);
	assert_false(function_entry(unit, 2, &entry));
	function_of(&call, OSD_FUNCTION_RETENTION, P, 0);
	function_run(unit, &call);
	expect_good(unit);
	assert_int_equal(function_number(unit, OSD_ITEM_COUNT), 2);
	/* The device has them all. */
	function_of(&call, OSD_FUNCTION_RETENTION, 0, 0);
	function_run(unit, &call);
	expect_good(unit);
	assert_int_equal(function_number(unit, OSD_ITEM_COUNT), 3);
}

/* FROM or TO is a moment that contains a number. */
static void run_diff(struct unit *unit, uint16_t side, uint16_t tag, uint64_t value)
{
	struct function_call call;

	function_of(&call, OSD_FUNCTION_DIFF, P, 0);
	osd_item_open(&call.writer, side);
	osd_item_add_number(&call.writer, tag, value);
	assert_true(osd_item_end(&call.writer));
	function_run(unit, &call);
}

static void test_diff_and_view_refuse_moments_from_then(void **state)
{
	struct unit *unit = *state;
	const struct past past = remove_and_bring_back(unit);
	const uint16_t sides[] = { OSD_ITEM_FROM, OSD_ITEM_TO };
	struct osd_item entry;

	for (size_t n = 0; n < 2; n++) {
		run_diff(unit, sides[n], OSD_ITEM_VERSION, past.without);
		expect_parameter(unit, 0);
		run_diff(unit, sides[n], OSD_ITEM_TIME, past.ms_without);
		expect_parameter(unit, 0);
		run_diff(unit, sides[n], OSD_ITEM_VERSION, past.before);
		expect_good(unit);
		assert_false(function_entry(unit, 0, &entry));
	}
	function_run_with(unit, OSD_FUNCTION_VIEW, P, 0, OSD_ITEM_VERSION, past.without);
	expect_parameter(unit, 0);
	function_run_with(unit, OSD_FUNCTION_VIEW, P, 0, OSD_ITEM_TIME, past.ms_without);
	expect_parameter(unit, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object(test_it_does_not_go_back_to_when_it_was_gone),
		with_object(test_its_versions_are_listed_and_counted_without_those_from_then),
		with_object(test_diff_and_view_refuse_moments_from_then),
	};

	return cmocka_run_group_tests_name("time_travel_gaps", tests, NULL, NULL);
}
