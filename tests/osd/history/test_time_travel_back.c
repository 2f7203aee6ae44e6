/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* EXECUTE: going back, differences, logs, views between moments. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/osd/function_call.h"

/* ---- going back ---- */

static void test_a_rollback_of_a_partition_brings_everything_back_and_can_be_rolled_back(
	void **state)
{
	struct unit *unit = *state;
	uint64_t version, ruined;
	struct call call;

	function_subscribe(unit);
	function_write_text(unit, O, "precious");
	version = function_snapshot(unit, P, NULL);
	function_write_text(unit, O, "RUINED!!");
	unit_create(unit, P, O + 1);
	call = call_of(OSD_REMOVE, P, O);
	call_run(unit, &call);
	expect_good(unit);
	ruined = function_snapshot(unit, P, NULL);
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, 0, OSD_ITEM_VERSION, version);
	expect_good(unit);
	function_expect_text(unit, P, O, "precious");
	function_expect_absent(unit, P, O + 1);
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, 0, OSD_ITEM_VERSION, ruined);
	expect_good(unit);
	function_expect_absent(unit, P, O);
	assert_int_equal(unit_get_number(unit, P, O + 1, OSD_USER_OBJECT_INFORMATION,
					 OSD_INFORMATION_LOGICAL_LENGTH),
			 0);
}

static void test_a_rollback_goes_to_a_point_in_time(void **state)
{
	struct unit *unit = *state;
	uint64_t between[3];
	static const char *const texts[] = { "first", "again", "third" };
	struct function_call call;

	function_subscribe(unit);
	for (int i = 0; i < 3; i++) {
		function_write_text(unit, O, texts[i]);
		unit->now_ms += FUNCTION_STEP_MS;
		between[i] = unit->now_ms;
	}
	/* A look first, through a view. */
	for (int i = 0; i < 3; i++) {
		function_run_with(unit, OSD_FUNCTION_VIEW, P, 0, OSD_ITEM_TIME, between[i]);
		expect_good(unit);
		function_expect_text(unit,
				     function_at_version(function_number(unit, OSD_ITEM_VERSION)),
				     O, texts[i]);
	}
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, 0, OSD_ITEM_TIME, between[1]);
	expect_good(unit);
	function_expect_text(unit, P, O, "again");

	/* No moment, two, and one before there was anything. */
	function_of(&call, OSD_FUNCTION_ROLLBACK, P, 0);
	function_run(unit, &call);
	expect_parameter(unit, 0);
	osd_item_add_number(&call.writer, OSD_ITEM_TIME, between[0]);
	osd_item_add_number(&call.writer, OSD_ITEM_VERSION, 1);
	function_run(unit, &call);
	expect_parameter(unit, 0);
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, 0, OSD_ITEM_TIME, 1000);
	expect_parameter(unit, 0);
	function_expect_text(unit, P, O, "again");
}

static void begin_epoch(struct unit *unit)
{
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_RESCUE, &txn), 0);
	assert_int_equal(engine_time_epoch(txn), 0);
	assert_int_equal(engine_commit(txn, true), 0);
}

static void test_a_time_before_the_present_epoch_of_times_is_refused(void **state)
{
	struct unit *unit = *state;
	uint64_t then;

	function_subscribe(unit);
	function_write_text(unit, O, "first");
	then = unit->now_ms += FUNCTION_STEP_MS;
	unit->now_ms += 1000 * FUNCTION_STEP_MS;
	function_write_text(unit, O, "ahead");
	unit->now_ms -= 900 * FUNCTION_STEP_MS;
	function_write_text(unit, O, "right");
	function_expect_text(unit, P, O, "right");
	begin_epoch(unit);
	unit->now_ms += FUNCTION_STEP_MS;
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, 0, OSD_ITEM_TIME, then);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_PARAMETER_VALUE_INVALID);
	function_run_with(unit, OSD_FUNCTION_VIEW, P, 0, OSD_ITEM_TIME, then);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_PARAMETER_VALUE_INVALID);
	function_expect_text(unit, P, O, "right");
}

static void test_a_rollback_of_the_device_leaves_a_partition_that_kept_nothing(void **state)
{
	struct unit *unit = *state;
	uint64_t before, meanwhile;

	function_subscribe(unit);
	function_write_text(unit, O, "before");
	before = unit->now_ms += FUNCTION_STEP_MS;
	function_run_with(unit, OSD_FUNCTION_SET_RETENTION, P, 0, OSD_ITEM_KIND, OSD_RETAIN_NONE);
	expect_good(unit);
	unit->now_ms += FUNCTION_STEP_MS;
	function_write_text(unit, O, "meanwhile");
	meanwhile = unit->now_ms += FUNCTION_STEP_MS;
	unit->now_ms += FUNCTION_STEP_MS;
	function_write_text(unit, O, "last");
	unit->now_ms += FUNCTION_STEP_MS;
	function_run_with(unit, OSD_FUNCTION_VIEW, 0, 0, OSD_ITEM_TIME, meanwhile);
	expect_good(unit);
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, 0, 0, OSD_ITEM_TIME, meanwhile);
	expect_good(unit);
	function_expect_text(unit, P, O, "last");
	unit->now_ms += FUNCTION_STEP_MS;
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, 0, 0, OSD_ITEM_TIME, before);
	expect_good(unit);
	function_expect_text(unit, P, O, "before");
}

static void test_one_object_goes_back_alone_and_modifications_are_undone(void **state)
{
	struct unit *unit = *state;
	struct function_call call;
	struct osd_item entry;
	uint64_t version;
	struct call removal;

	function_subscribe(unit);
	unit_create(unit, P, O + 1);
	function_write_text(unit, O, "one");
	function_write_text(unit, O + 1, "other one");
	version = function_snapshot(unit, P, NULL);
	function_write_text(unit, O, "two");
	function_write_text(unit, O + 1, "other two");
	function_write_text(unit, O, "333");

	function_of(&call, OSD_FUNCTION_LOG, P, O);
	function_run(unit, &call);
	expect_good(unit);
	/* Newest first: three writes, and the creation. */
	for (size_t n = 0; n < 4; n++) {
		assert_true(function_entry(unit, n, &entry));
		assert_int_equal(entry_number(&entry, OSD_ITEM_LENGTH), n < 3 ? 3 : 0);
		assert_int_equal(entry_number(&entry, OSD_ITEM_KIND),
				 n < 3 ? 0 : OSD_LOGGED_CREATED);
	}
	assert_false(function_entry(unit, 4, &entry));

	function_run_with(unit, OSD_FUNCTION_UNDO, P, O, OSD_ITEM_MODIFICATIONS, 2);
	expect_good(unit);
	function_expect_text(unit, P, O, "one");
	function_run_with(unit, OSD_FUNCTION_UNDO, P, O, OSD_ITEM_MODIFICATIONS, 1);
	expect_good(unit);
	function_expect_text(unit, P, O, "333");
	function_expect_text(unit, P, O + 1, "other two");
	function_run_with(unit, OSD_FUNCTION_UNDO, P, O, OSD_ITEM_MODIFICATIONS, 100);
	expect_parameter(unit, 0);
	function_run_with(unit, OSD_FUNCTION_UNDO, P, O, OSD_ITEM_MODIFICATIONS,
			  OSD_MODIFICATIONS_MAX);
	expect_parameter(unit, 0);
	/* That many are not counted at once, which says nothing of whether there are. */
	function_run_with(unit, OSD_FUNCTION_UNDO, P, O, OSD_ITEM_MODIFICATIONS,
			  OSD_MODIFICATIONS_MAX + 1);
	unit_expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_PARAMETER_VALUE_INVALID, 0, __FILE__,
			  __LINE__);
	function_expect_text(unit, P, O, "333");

	removal = call_of(OSD_REMOVE, P, O);
	call_run(unit, &removal);
	expect_good(unit);
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, O, OSD_ITEM_VERSION, version);
	expect_good(unit);
	function_expect_text(unit, P, O, "one");
	function_expect_text(unit, P, O + 1, "other two");
}

static void test_diff_tells_objects_and_ranges(void **state)
{
	struct unit *unit = *state;
	struct function_call call;
	struct osd_item entry;
	uint64_t version, count = 0, added = 0, removed = 0, data = 0, length = 0, attributes = 0;
	struct call change;
	char *text = malloc(100000);

	memset(text, 'a', 100000);
	function_subscribe(unit);
	for (uint64_t i = 1; i <= 4; i++)
		unit_create(unit, P, O + i);
	unit_write(unit, O, 0, text, 100000);
	version = function_snapshot(unit, P, NULL);
	unit_write(unit, O, 8192, "b", 1);
	change = call_of(OSD_REMOVE, P, O + 1);
	call_run(unit, &change);
	unit_create(unit, P, O + 9);
	unit_set(unit, P, O + 2, 0x10000, 1, "value", 5);
	unit_write(unit, O + 3, 0, "x", 1);

	function_of(&call, OSD_FUNCTION_DIFF, P, 0);
	osd_item_open(&call.writer, OSD_ITEM_FROM);
	osd_item_add_number(&call.writer, OSD_ITEM_VERSION, version);
	osd_item_end(&call.writer);
	do {
		function_run(unit, &call);
		expect_good(unit);
		for (size_t n = 0; function_entry(unit, n, &entry); n++, count++) {
			uint64_t object = entry_number(&entry, OSD_ITEM_OBJECT);

			switch (entry_number(&entry, OSD_ITEM_KIND)) {
			case OSD_DIFFERENCE_ADDED:
				added += object == O + 9;
				break;
			case OSD_DIFFERENCE_REMOVED:
				removed += object == O + 1;
				break;
			case OSD_DIFFERENCE_DATA:
				data += (object == O &&
					 entry_number(&entry, OSD_ITEM_OFFSET) == 8192 &&
					 entry_number(&entry, OSD_ITEM_LENGTH) == 1) ||
					object == O + 3;
				break;
			case OSD_DIFFERENCE_LENGTH:
				length += object == O + 3;
				break;
			case OSD_DIFFERENCE_ATTRIBUTES:
				attributes += object == O + 2;
				break;
			default:
				fail();
			}
		}
	} while (function_continue(unit, &call));
	assert_true(added == 1 && removed == 1 && data == 2 && length == 1 && attributes == 1);
	assert_int_equal(count, 6);
	free(text);
}

static void test_a_view_by_sequence_shows_an_object_between_moments(void **state)
{
	struct unit *unit = *state;
	struct function_call call;
	struct osd_item entry;
	static const char *const texts[] = { "new", "two", "one" };

	function_subscribe(unit);
	/* All within one moment of the partition, and the partition, too. */
	unit_write(unit, O, 0, "one", 3);
	unit_write(unit, O, 0, "two", 3);
	unit_write(unit, O, 0, "new", 3);
	for (size_t n = 0; n < 3; n++) {
		function_of(&call, OSD_FUNCTION_LOG, P, O);
		function_run(unit, &call);
		assert_true(function_entry(unit, n, &entry));
		function_of(&call, OSD_FUNCTION_VIEW, P, 0);
		osd_item_add_number(&call.writer, OSD_ITEM_SEQUENCE,
				    entry_number(&entry, OSD_ITEM_SEQUENCE));
		function_run(unit, &call);
		expect_good(unit);
		function_expect_text(unit,
				     function_at_version(function_number(unit, OSD_ITEM_VERSION)),
				     O, texts[n]);
	}
}

/*
 * From a version, a point in time, or any modification on, also one that is no moment of the
 * partition.
 */
static void test_a_log_is_told_from_a_moment_backwards(void **state)
{
	struct unit *unit = *state;
	struct function_call call;
	struct osd_item entry;
	uint64_t sequences[5], version, view;

	function_subscribe(unit);
	function_write_text(unit, O, "one");
	version = function_snapshot(unit, P, NULL);
	function_write_text(unit, O, "two");
	unit_write(unit, O, 0, "three", 5);
	unit_write(unit, O, 0, "four", 4);
	function_of(&call, OSD_FUNCTION_LOG, P, O);
	function_run(unit, &call);
	for (size_t n = 0; n < 5; n++) {
		assert_true(function_entry(unit, n, &entry));
		sequences[n] = entry_number(&entry, OSD_ITEM_SEQUENCE);
	}
	function_run_with(unit, OSD_FUNCTION_LOG, P, O, OSD_ITEM_VERSION, version);
	assert_true(function_entry(unit, 0, &entry));
	assert_int_equal(entry_number(&entry, OSD_ITEM_SEQUENCE), sequences[3]);
	for (size_t n = 0; n < 3; n++) {
		function_run_with(unit, OSD_FUNCTION_LOG, P, O, OSD_ITEM_SEQUENCE, sequences[n]);
		assert_true(function_entry(unit, 0, &entry));
		assert_int_equal(entry_number(&entry, OSD_ITEM_SEQUENCE), sequences[n]);
		function_run_with(unit, OSD_FUNCTION_VIEW, P, 0, OSD_ITEM_SEQUENCE, sequences[n]);
		view = function_number(unit, OSD_ITEM_VERSION);
		function_run_with(unit, OSD_FUNCTION_LOG, P, O, OSD_ITEM_VERSION, view);
		expect_good(unit);
		assert_true(function_entry(unit, 0, &entry));
		assert_int_equal(entry_number(&entry, OSD_ITEM_SEQUENCE), sequences[n]);
	}
	function_run_with(unit, OSD_FUNCTION_LOG, P, O, OSD_ITEM_TIME, 1000);
	expect_parameter(unit, 0);
}

/* ---- retention ---- */

static uint64_t newest_logged(struct unit *unit, uint64_t object, size_t n)
{
	struct function_call call;
	struct osd_item entry;

	function_of(&call, OSD_FUNCTION_LOG, P, object);
	function_run(unit, &call);
	expect_good(unit);
	assert_true(function_entry(unit, n, &entry));
	return entry_number(&entry, OSD_ITEM_SEQUENCE);
}

/* A single object also goes back to where its partition has no moment: inside its first second. */
static void test_an_object_goes_back_to_whatever_its_log_tells(void **state)
{
	struct unit *unit = *state;
	uint64_t first, made;

	function_subscribe(unit);
	/* All within the moment in which the partition was made. */
	unit_write(unit, O, 0, "one", 3);
	unit_write(unit, O, 0, "two", 3);
	unit_write(unit, O, 0, "new", 3);
	first = newest_logged(unit, O, 2);
	made = newest_logged(unit, O, 3);
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, O, OSD_ITEM_SEQUENCE, first);
	expect_good(unit);
	assert_int_equal(function_number(unit, OSD_ITEM_SEQUENCE), first);
	function_expect_text(unit, P, O, "one");
	/* Before its partition there was nothing to go back to: the object is not removed. */
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, O, OSD_ITEM_SEQUENCE, 1);
	expect_parameter(unit, 0);
	function_expect_text(unit, P, O, "one");
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, O, OSD_ITEM_SEQUENCE, made);
	expect_good(unit);
	assert_int_equal(unit_get_number(unit, P, O, OSD_USER_OBJECT_INFORMATION,
					 OSD_INFORMATION_LOGICAL_LENGTH),
			 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object(
			test_a_rollback_of_a_partition_brings_everything_back_and_can_be_rolled_back),
		with_object(test_a_rollback_goes_to_a_point_in_time),
		with_object(test_a_time_before_the_present_epoch_of_times_is_refused),
		with_object(test_a_rollback_of_the_device_leaves_a_partition_that_kept_nothing),
		with_object(test_one_object_goes_back_alone_and_modifications_are_undone),
		with_object(test_diff_tells_objects_and_ranges),
		with_object(test_a_view_by_sequence_shows_an_object_between_moments),
		with_object(test_a_log_is_told_from_a_moment_backwards),
		with_object(test_an_object_goes_back_to_whatever_its_log_tells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
