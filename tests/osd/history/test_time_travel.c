/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* EXECUTE: versions, retention, moments that there are not; versions in object IDs. */
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

/* ---- versions ---- */

static void test_a_snapshot_keeps_a_moment_under_a_number_and_a_name(void **state)
{
	struct unit *unit = *state;
	struct function_call call;
	struct osd_item entry, item;
	uint64_t first, second;

	function_subscribe(unit);
	function_write_text(unit, O, "one");
	first = function_snapshot(unit, P, "before");
	function_write_text(unit, O, "two");
	second = function_snapshot(unit, P, NULL);
	function_write_text(unit, O, "new");
	function_expect_text(unit, function_at_version(first), O, "one");
	function_expect_text(unit, function_at_version(second), O, "two");
	function_expect_text(unit, P, O, "new");

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
	function_write_text(unit, O, "one");
	version = function_snapshot(unit, 0, "all");
	assert_int_equal(version, ENGINE_DEVICE_VERSION_FIRST);
	function_of(&call, OSD_FUNCTION_VERSIONS, P, 0);
	function_run(unit, &call);
	expect_good(unit);
	assert_true(function_entry(unit, 0, &entry));
	assert_int_equal(entry_number(&entry, OSD_ITEM_OBJECTS), 1);
	assert_int_equal(entry_number(&entry, OSD_ITEM_USED), 4096);
	function_write_text(unit, O, "two");
	function_expect_text(unit, function_at_version(version), O, "one");
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
	function_write_text(unit, O, "old");
	for (uint64_t number = 1; number <= ENGINE_PARTITION_VERSION_LAST; number++)
		assert_int_equal(function_snapshot(unit, P, NULL), number);
	function_of(&call, OSD_FUNCTION_SNAPSHOT, P, 0);
	function_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_SYSTEM_RESOURCE_FAILURE);
	function_write_text(unit, O, "new");
	function_run_with(unit, OSD_FUNCTION_DROP, P, 0, OSD_ITEM_VERSION, 7);
	expect_good(unit);
	assert_int_equal(function_snapshot(unit, P, NULL), 7);
	function_expect_text(unit, function_at_version(7), O, "new");
	function_expect_text(unit, function_at_version(6), O, "old");
	function_expect_text(unit, function_at_version(ENGINE_PARTITION_VERSION_LAST), O, "old");
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
		function_write_text(unit, O, "x");
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
	function_expect_absent(unit, function_at_version(version), O);
	function_run_with(unit, OSD_FUNCTION_DROP, P, 0, OSD_ITEM_VERSION, version);
	expect_parameter(unit, 0);
	function_run_with(unit, OSD_FUNCTION_DROP, P, 0, OSD_ITEM_TIME, version);
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
	function_write_text(unit, O, "here");
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
	function_expect_text(unit, P, O, "here");
}

/*
 * Between two moments lists are those of the one before. What they name may be gone at the number,
 * and sums are not those of the objects: that is no damage, and no failure.
 */
static void test_lists_at_a_number_may_name_what_is_gone(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_REMOVE, P, O + 1);
	struct function_call function;
	struct osd_check_head head;
	struct osd_item entry;
	uint64_t version;
	char page[5000] = "needle";

	function_subscribe(unit);
	function_write_text(unit, O, "needle");
	unit_create(unit, P, O + 1);
	unit_create(unit, P, O + 2);
	unit->now_ms += FUNCTION_STEP_MS;
	call_run(unit, &call);
	expect_good(unit);
	unit_write(unit, O + 2, 0, page, sizeof(page));
	unit_write(unit, O, 0, "n", 1);
	function_run_with(unit, OSD_FUNCTION_VIEW, P, 0, OSD_ITEM_SEQUENCE,
			  newest_logged(unit, O + 2, 0));
	version = function_at_version(function_number(unit, OSD_ITEM_VERSION));
	function_expect_absent(unit, version, O + 1);
	function_of(&function, OSD_FUNCTION_SEARCH, version, 0);
	osd_item_add(&function.writer, OSD_ITEM_PATTERN, "needle", 6);
	function_run(unit, &function);
	expect_good(unit);
	assert_true(function_entry(unit, 1, &entry));
	assert_int_equal(entry_number(&entry, OSD_ITEM_OBJECT), O + 2);
	call = call_of(OSD_OBJECT_STRUCTURE_CHECK, version, 0);
	call.cdb.length = call.data_in_capacity = 4096;
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(osd_check_head_decode(unit->data_in, unit->command.data_in_length, &head),
			 0);
	assert_int_equal(unit->command.data_in_length, OSD_CHECK_HEAD_BYTES);
	assert_int_equal(head.objects, 3); /* the partition, O, O + 2 */
	call = call_of(OSD_LIST, version, 0);
	call.cdb.list_attributes = true;
	call.cdb.length = call.data_in_capacity = 4096;
	call_get(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH);
	call_run(unit, &call);
	expect_good(unit);
}

/* ---- versions in packed object IDs ---- */

#define PACKED UINT64_C(0x10007)

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
		function_expect_text(unit, PACKED, ID(1, i + 1), texts[i]);
		function_expect_text(unit, PACKED, ID(1, i == 2 ? 0 : i - 2), texts[i]);
	}
	function_expect_absent(unit, PACKED, ID(1, 4));
	function_expect_absent(unit, PACKED, ID(1, -10));
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
		with_object(test_retention_is_set_shown_and_locked),
		with_object(test_what_has_not_been_is_no_moment),
		with_object(test_a_number_that_nothing_has_yet_is_no_moment),
		with_object(test_lists_at_a_number_may_name_what_is_gone),
		with_unit(test_a_packed_object_id_names_a_version_or_counts_modifications_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
