/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* EXECUTE: versions, rollback, undo, log, diff, retention, views; and versions in object IDs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "osd/layout.h"
#include "tests/osd/function_call.h"

/* ---- short forms ---- */

static void write_text(struct unit *unit, uint64_t object, const char *text)
{
	unit->now_ms += FUNCTION_STEP_MS;
	unit_write(unit, object, 0, text, strlen(text));
}

static void expect_text_at(struct unit *unit, uint64_t partition, uint64_t object, const char *text)
{
	struct call call = call_of(OSD_READ, partition, object);

	call.cdb.length = call.data_in_capacity = strlen(text);
	call_run(unit, &call);
	expect_good(unit);
	assert_memory_equal(unit->data_in, text, strlen(text));
}

static void expect_absent(struct unit *unit, uint64_t partition, uint64_t object)
{
	struct call call = call_of(OSD_READ, partition, object);

	call.cdb.length = call.data_in_capacity = 1;
	call_run(unit, &call);
	assert_int_equal(unit->command.status, SCSI_STATUS_CHECK_CONDITION);
}

static uint64_t at_version(uint64_t version)
{
	return version << 48 | P;
}

/* ---- versions ---- */

static void test_a_snapshot_keeps_a_moment_under_a_number_and_a_name(void **state)
{
	struct unit *unit = *state;
	struct function_call call;
	struct osd_item entry, item;
	uint64_t first, second;

	function_subscribe(unit);
	write_text(unit, O, "one");
	first = function_snapshot(unit, P, "before");
	write_text(unit, O, "two");
	second = function_snapshot(unit, P, NULL);
	write_text(unit, O, "new");
	expect_text_at(unit, at_version(first), O, "one");
	expect_text_at(unit, at_version(second), O, "two");
	expect_text_at(unit, P, O, "new");

	function_of(&call, OSD_FUNCTION_VERSIONS, P, 0);
	function_run(unit, &call);
	expect_good(unit);
	assert_true(function_entry(unit, 0, &entry));
	assert_int_equal(entry_number(&entry, OSD_ITEM_VERSION), first);
	assert_int_equal(entry_number(&entry, OSD_ITEM_OBJECTS), 1);
	assert_int_equal(entry_number(&entry, OSD_ITEM_USED), 4096);
	assert_int_equal(osd_item_find(entry.value, entry.length, OSD_ITEM_NAME, &item), 0);
	assert_int_equal(item.length, 6);
	assert_memory_equal(item.value, "before", 6);
	assert_true(function_entry(unit, 1, &entry));
	assert_int_equal(entry_number(&entry, OSD_ITEM_VERSION), second);
	assert_true(osd_item_find(entry.value, entry.length, OSD_ITEM_NAME, &item) != 0);
	assert_false(function_entry(unit, 2, &entry));

	/* The name again, and names that are none. */
	function_of(&call, OSD_FUNCTION_SNAPSHOT, P, 0);
	osd_item_add_text(&call.writer, OSD_ITEM_NAME, "before");
	function_run(unit, &call);
	expect_parameter(unit, 0);
	function_of(&call, OSD_FUNCTION_SNAPSHOT, P, 0);
	osd_item_add(&call.writer, OSD_ITEM_NAME, "a\0b", 3);
	function_run(unit, &call);
	expect_parameter(unit, 0);
}

static void test_a_version_of_the_device_is_one_of_every_partition(void **state)
{
	struct unit *unit = *state;
	struct function_call call;
	struct osd_item entry;
	uint64_t version;

	function_subscribe(unit);
	unit_create_partition(unit, P + 1);
	write_text(unit, O, "one");
	version = function_snapshot(unit, 0, "all");
	assert_int_equal(version, ENGINE_DEVICE_VERSION_FIRST);
	function_of(&call, OSD_FUNCTION_VERSIONS, P, 0);
	function_run(unit, &call);
	expect_good(unit);
	assert_true(function_entry(unit, 0, &entry));
	assert_int_equal(entry_number(&entry, OSD_ITEM_OBJECTS), 1);
	assert_int_equal(entry_number(&entry, OSD_ITEM_USED), 4096);
	write_text(unit, O, "two");
	expect_text_at(unit, at_version(version), O, "one");
}

/*
 * Kept versions have all numbers: refused. Dropped ones give theirs to new ones, which are listed
 * as the newest.
 */
static void test_numbers_of_versions_run_out_until_some_are_dropped(void **state)
{
	struct unit *unit = *state;
	struct function_call call;
	struct osd_item entry, last = { 0 };

	function_subscribe(unit);
	write_text(unit, O, "old");
	for (uint64_t number = 1; number <= ENGINE_PARTITION_VERSION_LAST; number++)
		assert_int_equal(function_snapshot(unit, P, NULL), number);
	function_of(&call, OSD_FUNCTION_SNAPSHOT, P, 0);
	function_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_SYSTEM_RESOURCE_FAILURE);
	write_text(unit, O, "new");
	function_run_with(unit, OSD_FUNCTION_DROP, P, 0, OSD_ITEM_VERSION, 7);
	expect_good(unit);
	assert_int_equal(function_snapshot(unit, P, NULL), 7);
	expect_text_at(unit, at_version(7), O, "new");
	expect_text_at(unit, at_version(6), O, "old");
	expect_text_at(unit, at_version(ENGINE_PARTITION_VERSION_LAST), O, "old");
	for (uint64_t number = 20; number <= ENGINE_PARTITION_VERSION_LAST; number++)
		function_run_with(unit, OSD_FUNCTION_DROP, P, 0, OSD_ITEM_VERSION, number);
	function_of(&call, OSD_FUNCTION_VERSIONS, P, 0);
	function_run(unit, &call);
	expect_good(unit);
	for (size_t n = 0; function_entry(unit, n, &entry); n++) {
		assert_true(n == 0 || entry_number(&entry, OSD_ITEM_SEQUENCE) >
					      entry_number(&last, OSD_ITEM_SEQUENCE));
		last = entry;
	}
	assert_int_equal(entry_number(&last, OSD_ITEM_VERSION), 7);
}

static void test_versions_stream_when_there_are_more_than_fit(void **state)
{
	struct unit *unit = *state;
	struct function_call call;
	struct osd_item entry;
	uint64_t next = 1;

	function_subscribe(unit);
	for (int i = 0; i < 300; i++) {
		function_snapshot(unit, P, NULL);
		write_text(unit, O, "x");
	}
	function_of(&call, OSD_FUNCTION_VERSIONS, P, 0);
	do {
		function_run(unit, &call);
		expect_good(unit);
		for (size_t n = 0; function_entry(unit, n, &entry); n++)
			assert_int_equal(entry_number(&entry, OSD_ITEM_VERSION), next++);
	} while (function_continue(unit, &call));
	assert_int_equal(next, 301);
}

static void test_a_dropped_version_is_gone(void **state)
{
	struct unit *unit = *state;
	struct function_call call;
	uint64_t version;

	function_subscribe(unit);
	version = function_snapshot(unit, P, "gone soon");
	function_of(&call, OSD_FUNCTION_DROP, P, 0);
	osd_item_add_text(&call.writer, OSD_ITEM_NAME, "gone soon");
	function_run(unit, &call);
	expect_good(unit);
	expect_absent(unit, at_version(version), O);
	function_run_with(unit, OSD_FUNCTION_DROP, P, 0, OSD_ITEM_VERSION, version);
	expect_parameter(unit, 0);
	function_run_with(unit, OSD_FUNCTION_DROP, P, 0, OSD_ITEM_TIME, version);
	expect_parameter(unit, 0);
}

/* ---- going back ---- */

static void test_a_rollback_of_a_partition_brings_everything_back_and_can_be_rolled_back(
	void **state)
{
	struct unit *unit = *state;
	uint64_t version, ruined;
	struct call call;

	function_subscribe(unit);
	write_text(unit, O, "precious");
	version = function_snapshot(unit, P, NULL);
	write_text(unit, O, "RUINED!!");
	unit_create(unit, P, O + 1);
	call = call_of(OSD_REMOVE, P, O);
	call_run(unit, &call);
	expect_good(unit);
	ruined = function_snapshot(unit, P, NULL);
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, 0, OSD_ITEM_VERSION, version);
	expect_good(unit);
	expect_text_at(unit, P, O, "precious");
	expect_absent(unit, P, O + 1);
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, 0, OSD_ITEM_VERSION, ruined);
	expect_good(unit);
	expect_absent(unit, P, O);
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
		write_text(unit, O, texts[i]);
		unit->now_ms += FUNCTION_STEP_MS;
		between[i] = unit->now_ms;
	}
	/* A look first, through a view. */
	for (int i = 0; i < 3; i++) {
		function_run_with(unit, OSD_FUNCTION_VIEW, P, 0, OSD_ITEM_TIME, between[i]);
		expect_good(unit);
		expect_text_at(unit, at_version(function_number(unit, OSD_ITEM_VERSION)), O,
			       texts[i]);
	}
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, 0, OSD_ITEM_TIME, between[1]);
	expect_good(unit);
	expect_text_at(unit, P, O, "again");

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
	expect_text_at(unit, P, O, "again");
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
	write_text(unit, O, "first");
	then = unit->now_ms += FUNCTION_STEP_MS;
	unit->now_ms += 1000 * FUNCTION_STEP_MS;
	write_text(unit, O, "ahead");
	unit->now_ms -= 900 * FUNCTION_STEP_MS;
	write_text(unit, O, "right");
	expect_text_at(unit, P, O, "right");
	begin_epoch(unit);
	unit->now_ms += FUNCTION_STEP_MS;
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, 0, OSD_ITEM_TIME, then);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_PARAMETER_VALUE_INVALID);
	function_run_with(unit, OSD_FUNCTION_VIEW, P, 0, OSD_ITEM_TIME, then);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_PARAMETER_VALUE_INVALID);
	expect_text_at(unit, P, O, "right");
}

static void test_a_rollback_of_the_device_leaves_a_partition_that_kept_nothing(void **state)
{
	struct unit *unit = *state;
	uint64_t before, meanwhile;

	function_subscribe(unit);
	write_text(unit, O, "before");
	before = unit->now_ms += FUNCTION_STEP_MS;
	function_run_with(unit, OSD_FUNCTION_SET_RETENTION, P, 0, OSD_ITEM_KIND, OSD_RETAIN_NONE);
	expect_good(unit);
	unit->now_ms += FUNCTION_STEP_MS;
	write_text(unit, O, "meanwhile");
	meanwhile = unit->now_ms += FUNCTION_STEP_MS;
	unit->now_ms += FUNCTION_STEP_MS;
	write_text(unit, O, "last");
	unit->now_ms += FUNCTION_STEP_MS;
	function_run_with(unit, OSD_FUNCTION_VIEW, 0, 0, OSD_ITEM_TIME, meanwhile);
	expect_good(unit);
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, 0, 0, OSD_ITEM_TIME, meanwhile);
	expect_good(unit);
	expect_text_at(unit, P, O, "last");
	unit->now_ms += FUNCTION_STEP_MS;
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, 0, 0, OSD_ITEM_TIME, before);
	expect_good(unit);
	expect_text_at(unit, P, O, "before");
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
	write_text(unit, O, "one");
	write_text(unit, O + 1, "other one");
	version = function_snapshot(unit, P, NULL);
	write_text(unit, O, "two");
	write_text(unit, O + 1, "other two");
	write_text(unit, O, "333");

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
	expect_text_at(unit, P, O, "one");
	function_run_with(unit, OSD_FUNCTION_UNDO, P, O, OSD_ITEM_MODIFICATIONS, 1);
	expect_good(unit);
	expect_text_at(unit, P, O, "333");
	expect_text_at(unit, P, O + 1, "other two");
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
	expect_text_at(unit, P, O, "333");

	removal = call_of(OSD_REMOVE, P, O);
	call_run(unit, &removal);
	expect_good(unit);
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, O, OSD_ITEM_VERSION, version);
	expect_good(unit);
	expect_text_at(unit, P, O, "one");
	expect_text_at(unit, P, O + 1, "other two");
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
		expect_text_at(unit, at_version(function_number(unit, OSD_ITEM_VERSION)), O,
			       texts[n]);
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
	write_text(unit, O, "one");
	version = function_snapshot(unit, P, NULL);
	write_text(unit, O, "two");
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

static void test_retention_is_set_shown_and_locked(void **state)
{
	struct unit *unit = *state;
	struct function_call call;

	function_subscribe(unit);
	function_of(&call, OSD_FUNCTION_RETENTION, P, 0);
	function_run(unit, &call);
	expect_good(unit);
	assert_int_equal(function_number(unit, OSD_ITEM_KIND), OSD_RETAIN_SNAPSHOTS);
	function_of(&call, OSD_FUNCTION_SET_RETENTION, P, 0);
	osd_item_add_number(&call.writer, OSD_ITEM_KEEP_ALL, 86400000);
	osd_item_add_number(&call.writer, OSD_ITEM_LOCK_UNTIL, unit->now_ms + 1000000);
	function_run(unit, &call);
	expect_good(unit);
	assert_int_equal(function_number(unit, OSD_ITEM_KEEP_ALL), 86400000);
	/* Longer is allowed, shorter is not, nor is dropping a version. */
	function_run_with(unit, OSD_FUNCTION_SET_RETENTION, P, 0, OSD_ITEM_KEEP_ALL, 2 * 86400000);
	expect_good(unit);
	function_run_with(unit, OSD_FUNCTION_SET_RETENTION, P, 0, OSD_ITEM_KEEP_ALL, 86400000);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_CONDITIONAL_WRITE_PROTECT);
	function_run_with(unit, OSD_FUNCTION_SET_RETENTION, P, 0, OSD_ITEM_KIND, OSD_RETAIN_NONE);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_CONDITIONAL_WRITE_PROTECT);
	function_run_with(unit, OSD_FUNCTION_DROP, P, 0, OSD_ITEM_VERSION,
			  function_snapshot(unit, P, NULL));
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_CONDITIONAL_WRITE_PROTECT);
	function_run_with(unit, OSD_FUNCTION_SET_RETENTION, P, 0, OSD_ITEM_KIND, 7);
	expect_parameter(unit, 0);
}

static void test_what_has_not_been_is_no_moment(void **state)
{
	struct unit *unit = *state;
	struct function_call call;

	function_subscribe(unit);
	function_of(&call, OSD_FUNCTION_ROLLBACK, P, 0);
	osd_item_add_number(&call.writer, OSD_ITEM_TIME, unit->now_ms + 1);
	function_run(unit, &call);
	expect_parameter(unit, 0);
	function_of(&call, OSD_FUNCTION_VIEW, P, 0);
	osd_item_add_number(&call.writer, OSD_ITEM_TIME, unit->now_ms + 1);
	function_run(unit, &call);
	expect_parameter(unit, 0);
	function_of(&call, OSD_FUNCTION_VIEW, P, 0);
	osd_item_add_number(&call.writer, OSD_ITEM_TIME, unit->now_ms);
	function_run(unit, &call);
	expect_good(unit);
}

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

/*
 * Numbers that nothing has yet are those of the future; what an answer tells, the end of the
 * present moment, can be asked for.
 */
static void test_a_number_that_nothing_has_yet_is_no_moment(void **state)
{
	static const enum osd_function functions[] = { OSD_FUNCTION_ROLLBACK, OSD_FUNCTION_VIEW };
	struct unit *unit = *state;
	struct function_call call;
	uint64_t last;

	function_subscribe(unit);
	write_text(unit, O, "here");
	last = newest_logged(unit, O, 0);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		function_run_with(unit, functions[i], P, 0, OSD_ITEM_SEQUENCE, 999999999999);
		expect_parameter(unit, 0);
		function_run_with(unit, functions[i], P, 0, OSD_ITEM_SEQUENCE, UINT64_MAX >> 16);
		expect_parameter(unit, 0);
	}
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, O, OSD_ITEM_SEQUENCE, 999999999999);
	expect_parameter(unit, 0);
	function_of(&call, OSD_FUNCTION_DIFF, P, 0);
	osd_item_open(&call.writer, OSD_ITEM_FROM);
	osd_item_add_number(&call.writer, OSD_ITEM_SEQUENCE, 999999999999);
	osd_item_end(&call.writer);
	function_run(unit, &call);
	expect_parameter(unit, 0);
	function_run_with(unit, OSD_FUNCTION_VIEW, P, 0, OSD_ITEM_SEQUENCE, last);
	expect_good(unit);
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, 0, OSD_ITEM_SEQUENCE, last);
	expect_good(unit);
	last = function_number(unit, OSD_ITEM_SEQUENCE);
	function_run_with(unit, OSD_FUNCTION_VIEW, P, 0, OSD_ITEM_SEQUENCE, last);
	expect_good(unit);
	expect_text_at(unit, P, O, "here");
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
	expect_text_at(unit, P, O, "one");
	/* Before its partition there was nothing to go back to: the object is not removed. */
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, O, OSD_ITEM_SEQUENCE, 1);
	expect_parameter(unit, 0);
	expect_text_at(unit, P, O, "one");
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, O, OSD_ITEM_SEQUENCE, made);
	expect_good(unit);
	assert_int_equal(unit_get_number(unit, P, O, OSD_USER_OBJECT_INFORMATION,
					 OSD_INFORMATION_LOGICAL_LENGTH),
			 0);
}

/* ---- versions in packed object IDs ---- */

#define PACKED                  UINT64_C(0x10007)
#define ID(identifier, version) ((uint64_t)(identifier) << 32 | (uint64_t)(uint16_t)(version) << 16)

static void test_a_packed_object_id_names_a_version_or_counts_modifications_back(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_PARTITION, PACKED, 0);
	uint8_t layout = OSD_LAYOUT_PACKED;
	static const char *const texts[] = { "one", "two", "new" };
	struct function_call function;

	call_set(&call, OSD_MUNINN_PARTITION, OSD_MUNINN_LAYOUT, &layout, 1);
	call_run(unit, &call);
	expect_good(unit);
	function_subscribe(unit);
	unit_create(unit, PACKED, ID(1, 0));
	for (int i = 0; i < 3; i++) {
		unit->now_ms += FUNCTION_STEP_MS;
		call = call_of(OSD_WRITE, PACKED, ID(1, 0));
		call_data(&call, texts[i], 3);
		call_run(unit, &call);
		expect_good(unit);
		assert_int_equal(function_snapshot(unit, PACKED, NULL), i + 1);
	}
	for (int i = 0; i < 3; i++) {
		expect_text_at(unit, PACKED, ID(1, i + 1), texts[i]);
		expect_text_at(unit, PACKED, ID(1, i == 2 ? 0 : i - 2), texts[i]);
	}
	expect_absent(unit, PACKED, ID(1, 4));
	expect_absent(unit, PACKED, ID(1, -10));
	/*
	 * Functions take moments as parameters. Those that change something say what they say to
	 * any version.
	 */
	function_of(&function, OSD_FUNCTION_UNDO, PACKED, ID(1, 1));
	function_run(unit, &function);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_WRITE_PROTECTED);
	function_of(&function, OSD_FUNCTION_ROLLBACK, PACKED, ID(1, -1));
	osd_item_add_number(&function.writer, OSD_ITEM_VERSION, 1);
	function_run(unit, &function);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_WRITE_PROTECTED);
	function_of(&function, OSD_FUNCTION_LOG, PACKED, ID(1, 1));
	function_run(unit, &function);
	expect_field(unit, 28);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object(test_a_snapshot_keeps_a_moment_under_a_number_and_a_name),
		with_object(test_a_version_of_the_device_is_one_of_every_partition),
		with_object(test_numbers_of_versions_run_out_until_some_are_dropped),
		with_object(test_versions_stream_when_there_are_more_than_fit),
		with_object(test_a_dropped_version_is_gone),
		with_object(
			test_a_rollback_of_a_partition_brings_everything_back_and_can_be_rolled_back),
		with_object(test_a_rollback_goes_to_a_point_in_time),
		with_object(test_a_time_before_the_present_epoch_of_times_is_refused),
		with_object(test_a_rollback_of_the_device_leaves_a_partition_that_kept_nothing),
		with_object(test_one_object_goes_back_alone_and_modifications_are_undone),
		with_object(test_diff_tells_objects_and_ranges),
		with_object(test_a_view_by_sequence_shows_an_object_between_moments),
		with_object(test_a_log_is_told_from_a_moment_backwards),
		with_object(test_retention_is_set_shown_and_locked),
		with_object(test_what_has_not_been_is_no_moment),
		with_object(test_a_number_that_nothing_has_yet_is_no_moment),
		with_object(test_an_object_goes_back_to_whatever_its_log_tells),
		with_unit(test_a_packed_object_id_names_a_version_or_counts_modifications_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
