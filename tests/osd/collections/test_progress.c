/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * EXECUTE: long functions tell how far they are, never less than before, and 1000 at the end and
 * only there.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/osd/function_call.h"

enum { OBJECTS = 60, LONG_OBJECT_BYTES = 2 << 20, CALLS_MAX = 4000 };

/*
 * Runs a stream to its end in commands with the least room. Returns how many values of progress it
 * saw.
 */
static unsigned follow(struct unit *unit, struct function_call *call)
{
	uint64_t last = 0;
	unsigned values = 0;
	bool more = true;

	call->call.data_in_capacity = 1024;
	for (unsigned calls = 0; more; calls++) {
		uint64_t permille;

		assert_true(calls < CALLS_MAX);
		function_run(unit, call);
		expect_good(unit);
		permille = function_number(unit, OSD_ITEM_PROGRESS);
		assert_true(permille >= last);
		values += calls == 0 || permille > last;
		last = permille;
		more = function_continue(unit, call);
		assert_int_equal(permille == 1000, !more);
	}
	return values;
}

static void write_text(struct unit *unit, uint64_t object, uint64_t offset, unsigned number)
{
	char text[64];

	snprintf(text, sizeof(text), "needle %u", number);
	unit_write(unit, object, offset, text, strlen(text));
}

/* Objects of which some came and others changed since version 1. */
static void make_history(struct unit *unit)
{
	function_subscribe(unit);
	for (unsigned i = 1; i < OBJECTS; i++)
		if (i % 5 != 1)
			unit_create(unit, P, O + i);
	for (unsigned i = 0; i < OBJECTS; i++)
		if (i % 5 != 1)
			write_text(unit, O + i, 0, i);
	function_snapshot(unit, P, NULL);
	for (unsigned i = 0; i < OBJECTS; i++)
		if (i % 5 == 1)
			unit_create(unit, P, O + i);
	for (unsigned i = 0; i < OBJECTS; i += 2)
		write_text(unit, O + i, 3, i);
}

static void test_diff_tells_how_far_it_is(void **state)
{
	struct unit *unit = *state;
	struct function_call call;

	make_history(unit);
	function_of(&call, OSD_FUNCTION_DIFF, P, 0);
	osd_item_open(&call.writer, OSD_ITEM_FROM);
	osd_item_add_number(&call.writer, OSD_ITEM_VERSION, 1);
	osd_item_end(&call.writer);
	assert_true(follow(unit, &call) > 3);
	/* Two empty moments, and two that are the same. */
	function_of(&call, OSD_FUNCTION_DIFF, P, 0);
	assert_int_equal(follow(unit, &call), 1);
}

static void test_diff_of_one_long_object_tells_how_far_it_is(void **state)
{
	struct unit *unit = *state;
	struct function_call call;
	uint8_t *data = malloc(LONG_OBJECT_BYTES);

	function_subscribe(unit);
	memset(data, 'a', LONG_OBJECT_BYTES);
	unit_write(unit, O, 0, data, LONG_OBJECT_BYTES);
	function_snapshot(unit, P, NULL);
	for (unsigned at = 0; at < LONG_OBJECT_BYTES; at += 20000)
		unit_write(unit, O, at, "b", 1);
	function_of(&call, OSD_FUNCTION_DIFF, P, 0);
	osd_item_open(&call.writer, OSD_ITEM_FROM);
	osd_item_add_number(&call.writer, OSD_ITEM_VERSION, 1);
	osd_item_end(&call.writer);
	assert_true(follow(unit, &call) > 3);
	free(data);
}

static void test_versions_and_log_tell_how_far_they_are(void **state)
{
	struct unit *unit = *state;
	struct function_call call;

	function_subscribe(unit);
	for (unsigned i = 0; i < OBJECTS; i++) {
		unit_write(unit, O, i, "x", 1);
		function_snapshot(unit, P, NULL);
	}
	function_of(&call, OSD_FUNCTION_VERSIONS, P, 0);
	assert_true(follow(unit, &call) > 3);
	function_of(&call, OSD_FUNCTION_LOG, P, O);
	assert_true(follow(unit, &call) > 3);
}

static void test_search_tells_how_far_it_is(void **state)
{
	struct unit *unit = *state;
	struct function_call call;
	uint8_t *text = malloc(LONG_OBJECT_BYTES);

	make_history(unit);
	function_of(&call, OSD_FUNCTION_SEARCH, P, 0);
	osd_item_add_text(&call.writer, OSD_ITEM_PATTERN, "needle");
	assert_true(follow(unit, &call) > 2);
	/* One long object, an expression that takes long. */
	for (unsigned i = 0; i < LONG_OBJECT_BYTES; i++)
		text[i] = (uint8_t)('a' + i % 7 % 2);
	unit_write(unit, O, 0, text, LONG_OBJECT_BYTES);
	function_of(&call, OSD_FUNCTION_SEARCH, P, O);
	osd_item_add_text(&call.writer, OSD_ITEM_REGEX, "(a|b)*a(a|b){30}c");
	assert_true(follow(unit, &call) > 3);
	free(text);
}

static void test_checksum_tells_how_far_it_is(void **state)
{
	struct unit *unit = *state;
	struct function_call call;
	uint8_t length[8] = { 0, 0, 0, 0, 0x05 }; /* 80 MiB, a hole */

	function_subscribe(unit);
	unit_set(unit, P, O, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, length,
		 8);
	function_of(&call, OSD_FUNCTION_CHECKSUM, P, O);
	assert_int_equal(follow(unit, &call), 10);
	/* Little, and nothing. */
	for (uint64_t some = 0; some < 3; some++) {
		function_of(&call, OSD_FUNCTION_CHECKSUM, P, O);
		osd_item_add_number(&call.writer, OSD_ITEM_LENGTH, some);
		assert_int_equal(follow(unit, &call), 1);
	}
}

static void test_merge_tells_how_far_it_is(void **state)
{
	struct unit *unit = *state;
	struct function_call call;
	uint64_t last = 0, permille;
	bool runs;

	make_history(unit);
	function_of(&call, OSD_FUNCTION_MERGE, 0, 0);
	osd_item_add_number(&call.writer, OSD_ITEM_ACTION, OSD_MERGE_START);
	function_run(unit, &call);
	expect_good(unit);
	do {
		function_of(&call, OSD_FUNCTION_MERGE, 0, 0);
		function_run(unit, &call);
		expect_good(unit);
		permille = function_number(unit, OSD_ITEM_PROGRESS);
		runs = function_number(unit, OSD_ITEM_STATE) == 1;
		assert_true(permille >= last);
		assert_int_equal(permille == 1000, !runs);
		last = permille;
		sched_yield();
	} while (runs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object(test_diff_tells_how_far_it_is),
		with_object(test_diff_of_one_long_object_tells_how_far_it_is),
		with_object(test_versions_and_log_tell_how_far_they_are),
		with_object(test_search_tells_how_far_it_is),
		with_object(test_checksum_tells_how_far_it_is),
		with_object(test_merge_tells_how_far_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
