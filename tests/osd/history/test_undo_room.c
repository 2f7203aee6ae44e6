/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * UNDO and ROLLBACK of a large object on a device whose room history has taken: what came since is
 * hidden, so that it takes none, gives up no history and leaves the others what they had.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/osd/function_call.h"

enum { PART = 65536, ROUNDS = 20 };

/*
 * Of the device's 64 MiB, of which it can hold 57. The larger one not three times: then, now, and
 * once more.
 */
#define LARGE  (UINT64_C(12) << 20)
#define LARGER (UINT64_C(20) << 20)

static void write_all(struct unit *unit, uint64_t length, uint8_t byte)
{
	uint8_t data[PART];

	memset(data, byte, sizeof(data));
	unit->now_ms += 2000;
	for (uint64_t at = 0; at < length; at += PART)
		unit_write(unit, O, at, data, sizeof(data));
}

static void expect_all(struct unit *unit, uint64_t length, uint8_t byte)
{
	uint8_t wanted[PART];

	memset(wanted, byte, sizeof(wanted));
	for (uint64_t at = 0; at < length; at += PART) {
		struct call call = call_of(OSD_READ, P, O);

		call.cdb.address = at;
		call.cdb.length = call.data_in_capacity = PART;
		call_run(unit, &call);
		expect_good(unit);
		assert_memory_equal(unit->data_in, wanted, PART);
	}
}

static uint64_t free_segments(struct unit *unit)
{
	struct engine_statistics statistics;

	engine_read_statistics(unit->engine, &statistics);
	return statistics.segments_free;
}

/*
 * Writes over all of it until the past has taken all the room that there is. Returns when the last
 * but one was there.
 */
static uint64_t fill_with_history(struct unit *unit, uint64_t length)
{
	uint64_t before = 0;

	for (int round = 1; round <= ROUNDS; round++) {
		before = unit->now_ms + 1000;
		write_all(unit, length, round);
	}
	return before;
}

static void test_a_large_object_goes_back_where_history_has_taken_the_room(void **state)
{
	struct unit *unit = *state;
	uint64_t before;

	function_subscribe(unit);
	before = fill_with_history(unit, LARGE);
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, O, OSD_ITEM_TIME, before);
	expect_good(unit);
	expect_all(unit, LARGE, ROUNDS - 1);
	function_run_with(unit, OSD_FUNCTION_UNDO, P, O, OSD_ITEM_MODIFICATIONS, 1);
	expect_good(unit);
	expect_all(unit, LARGE, ROUNDS);
}

static void test_a_large_object_comes_back_where_history_has_taken_the_room(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_REMOVE, P, O);

	function_subscribe(unit);
	fill_with_history(unit, LARGE);
	call_run(unit, &call);
	expect_good(unit);
	function_run_with(unit, OSD_FUNCTION_UNDO, P, O, OSD_ITEM_MODIFICATIONS, 1);
	expect_good(unit);
	expect_all(unit, LARGE, ROUNDS);
}

static uint64_t horizon(struct unit *unit)
{
	struct function_call call;

	function_of(&call, OSD_FUNCTION_RETENTION, P, 0);
	function_run(unit, &call);
	expect_good(unit);
	return function_number(unit, OSD_ITEM_HORIZON);
}

static void test_no_history_is_given_up_for_an_object_that_could_not_be_put_again(void **state)
{
	struct unit *unit = *state;
	uint64_t before, reaches;

	function_subscribe(unit);
	unit_create(unit, P, O + 1);
	for (uint8_t round = 1; round <= 5; round++) {
		unit->now_ms += 2000;
		unit_write(unit, O + 1, 0, &round, 1);
	}
	before = fill_with_history(unit, LARGER);
	reaches = horizon(unit);
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, O, OSD_ITEM_TIME, before);
	expect_good(unit);
	assert_int_equal(horizon(unit), reaches);
	expect_all(unit, LARGER, ROUNDS - 1);
}

static void test_without_room_a_large_object_goes_back_and_takes_none(void **state)
{
	struct unit *unit = *state;
	uint64_t before, left;

	function_subscribe(unit);
	function_run_with(unit, OSD_FUNCTION_SET_RETENTION, P, 0, OSD_ITEM_KIND, OSD_RETAIN_ALL);
	expect_good(unit);
	write_all(unit, LARGE, 1);
	before = unit->now_ms + 1000;
	write_all(unit, LARGE, 2);
	write_all(unit, LARGE, 3);
	write_all(unit, LARGE, 4);
	left = free_segments(unit);
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, O, OSD_ITEM_TIME, before);
	expect_good(unit);
	assert_true(free_segments(unit) >= left);
	expect_all(unit, LARGE, 1);
	function_run_with(unit, OSD_FUNCTION_UNDO, P, O, OSD_ITEM_MODIFICATIONS, 1);
	expect_good(unit);
	expect_all(unit, LARGE, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object(test_a_large_object_goes_back_where_history_has_taken_the_room),
		with_object(test_a_large_object_comes_back_where_history_has_taken_the_room),
		with_object(test_no_history_is_given_up_for_an_object_that_could_not_be_put_again),
		with_object(test_without_room_a_large_object_goes_back_and_takes_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
