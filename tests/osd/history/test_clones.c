/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * CREATE SNAPSHOT, CREATE CLONE, REFRESH SNAPSHOT OR CLONE, DETACH CLONE, RESTORE PARTITION FROM
 * SNAPSHOT.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bytes.h"
#include "tests/osd/function_call.h"

#define Q UINT64_C(0x10010) /* the snapshot or clone of P */

#define STEP_MS 2000 /* longer than moments are apart */

static void write_in(struct unit *unit, uint64_t partition, uint64_t object, const char *text)
{
	struct call call = call_of(OSD_WRITE, partition, object);

	unit->now_ms += STEP_MS;
	call_data(&call, text, strlen(text));
	call_run(unit, &call);
}

static void duplicate(struct unit *unit, uint16_t action, uint64_t requested, uint64_t source)
{
	struct call call = call_of(action, requested, 0);

	unit->now_ms += STEP_MS;
	call.cdb.address = source;
	call_run(unit, &call);
}

static void run_on(struct unit *unit, uint16_t action, uint64_t partition)
{
	struct call call = call_of(action, partition, 0);

	unit->now_ms += STEP_MS;
	call_run(unit, &call);
}

/* When the contents that the duplicate began with came about. */
static void expect_time(struct unit *unit, uint64_t partition, uint64_t time_ms)
{
	uint8_t value[8];

	assert_int_equal(unit_get(unit, partition, 0, OSD_MUNINN_PARTITION,
				  OSD_MUNINN_DUPLICATION_TIME, value, sizeof(value)),
			 6);
	assert_int_equal(get_be48(value), time_ms);
}

static void expect_writable(struct unit *unit, uint64_t partition, bool writable)
{
	uint8_t value[8];

	assert_int_equal(unit_get(unit, partition, 0, OSD_MUNINN_PARTITION, OSD_MUNINN_WRITABLE,
				  value, sizeof(value)),
			 1);
	assert_int_equal(value[0], writable);
}

/* ---- making ---- */

static void test_a_snapshot_shows_the_source_as_it_was_and_is_read_only(void **state)
{
	struct unit *unit = *state;
	struct call list = call_of(OSD_LIST, Q, 0);

	write_in(unit, P, O, "one");
	duplicate(unit, OSD_CREATE_SNAPSHOT, Q, P);
	shows_good(unit, CREATE_SNAPSHOT, "a partition is duplicated, nothing of it copied");
	write_in(unit, P, O, "two");
	unit_create(unit, P, O + 1);
	function_expect_text(unit, Q, O, "one");
	function_expect_text(unit, P, O, "two");
	list.cdb.length = list.data_in_capacity = 256;
	call_run(unit, &list);
	expect_good(unit);
	assert_int_equal(unit->command.data_in_length, 24 + 8);
	assert_true(get_be64(unit->data_in + 24) == O);
	write_in(unit, Q, O, "three");
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_WRITE_PROTECTED);
}

static void test_a_clone_and_its_source_change_apart_from_each_other(void **state)
{
	struct unit *unit = *state;
	struct call call;

	unit_create(unit, P, O + 1);
	write_in(unit, P, O, "one");
	write_in(unit, P, O + 1, "same");
	duplicate(unit, OSD_CREATE_CLONE, Q, P);
	shows_good(unit, CREATE_CLONE, "a partition is duplicated, nothing of it copied");
	write_in(unit, Q, O, "clone");
	expect_good(unit);
	write_in(unit, P, O, "source");
	function_expect_text(unit, Q, O, "clone");
	function_expect_text(unit, P, O, "source");
	call = call_of(OSD_REMOVE, P, O + 1);
	call_run(unit, &call);
	expect_good(unit);
	function_expect_text(unit, Q, O + 1, "same");
	call = call_of(OSD_REMOVE, Q, O);
	call_run(unit, &call);
	expect_good(unit);
	function_expect_text(unit, P, O, "source");
}

static void test_a_duplicate_tells_its_source_its_time_and_whether_it_is_writable(void **state)
{
	struct unit *unit = *state;
	struct call remove;
	uint64_t written;

	write_in(unit, P, O, "one");
	written = unit->now_ms;
	duplicate(unit, OSD_CREATE_SNAPSHOT, Q, P);
	expect_good(unit);
	duplicate(unit, OSD_CREATE_CLONE, Q + 1, Q);
	expect_good(unit);
	assert_int_equal(
		unit_get_number(unit, Q, 0, OSD_MUNINN_PARTITION, OSD_MUNINN_SOURCE_PARTITION), P);
	expect_writable(unit, Q, false);
	assert_int_equal(
		unit_get_number(unit, Q + 1, 0, OSD_MUNINN_PARTITION, OSD_MUNINN_SOURCE_PARTITION),
		Q);
	expect_writable(unit, Q + 1, true);
	expect_time(unit, Q, written);
	/* A source that is gone is told as 0; what was made of it stays. */
	remove = call_of(OSD_REMOVE_PARTITION, P, 0);
	remove.cdb.command_options = OSD_REMOVE_CONTENTS;
	call_run(unit, &remove);
	expect_good(unit);
	assert_int_equal(
		unit_get_number(unit, Q, 0, OSD_MUNINN_PARTITION, OSD_MUNINN_SOURCE_PARTITION), 0);
	expect_time(unit, Q, written);
}

static void test_a_partition_that_is_no_duplicate_tells_nothing_of_one(void **state)
{
	struct unit *unit = *state;
	uint8_t value[8];

	for (uint32_t number = OSD_MUNINN_SOURCE_PARTITION; number <= OSD_MUNINN_WRITABLE; number++)
		assert_int_equal(
			unit_get(unit, P, 0, OSD_MUNINN_PARTITION, number, value, sizeof(value)),
			0);
}

/* What is missing then is the source, not what is to be made of it. */
static void test_a_source_that_another_partition_was_at_that_moment_is_none(void **state)
{
	struct unit *unit = *state;
	struct call removal = call_of(OSD_REMOVE_PARTITION, P, 0);
	uint64_t before;

	function_subscribe(unit);
	before = function_snapshot(unit, 0, NULL);
	removal.cdb.command_options = OSD_REMOVE_CONTENTS;
	call_run(unit, &removal);
	expect_good(unit);
	unit_create_partition(unit, P);
	duplicate(unit, OSD_CREATE_CLONE, Q, before << 48 | P);
	expect_field(unit, 40);
}

static void test_a_version_of_a_partition_is_cloned(void **state)
{
	struct unit *unit = *state;

	function_subscribe(unit);
	write_in(unit, P, O, "one");
	assert_int_equal(function_snapshot(unit, P, NULL), 1);
	write_in(unit, P, O, "two");
	duplicate(unit, OSD_CREATE_CLONE, Q, UINT64_C(1) << 48 | P);
	expect_good(unit);
	function_expect_text(unit, Q, O, "one");
}

static void test_the_target_chooses_the_id_of_a_snapshot(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_SNAPSHOT, 0, 0);
	struct osd_list_reader reader;
	struct osd_attribute attribute;

	write_in(unit, P, O, "one");
	unit->now_ms += STEP_MS;
	call.cdb.address = P;
	call_get(&call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_PARTITION_ID);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(osd_list_read(&reader, OSD_2, OSD_LIST_RETRIEVED, unit->data_in,
				       unit->command.data_in_length),
			 0);
	assert_int_equal(osd_list_next(&reader, &attribute), 1);
	function_expect_text(unit, get_be64(attribute.value), O, "one");
}

static void test_a_snapshot_needs_a_source_and_an_id_that_is_free(void **state)
{
	struct unit *unit = *state;
	struct call call;

	duplicate(unit, OSD_CREATE_SNAPSHOT, Q, P + 1);
	shows_field(unit, CREATE_SNAPSHOT, "the source does not exist", 40);
	duplicate(unit, OSD_CREATE_SNAPSHOT, Q, 0);
	expect_field(unit, 40);
	duplicate(unit, OSD_CREATE_SNAPSHOT, P, P);
	shows_field(unit, CREATE_SNAPSHOT, "the ID is taken", 16);
	call = call_of(OSD_CREATE_SNAPSHOT, Q, 0);
	call.cdb.address = P;
	call.cdb.duplication_method = OSD_DUPLICATION_BYTE_BY_BYTE;
	call_run(unit, &call);
	shows_field(unit, CREATE_SNAPSHOT, "a duplication method that copies", 14);
}

static void test_a_clone_needs_a_source_and_an_id_that_is_free(void **state)
{
	struct unit *unit = *state;
	struct call call;

	duplicate(unit, OSD_CREATE_CLONE, Q, P + 1);
	shows_field(unit, CREATE_CLONE, "the source does not exist", 40);
	duplicate(unit, OSD_CREATE_CLONE, P, P);
	shows_field(unit, CREATE_CLONE, "the ID is taken", 16);
	call = call_of(OSD_CREATE_CLONE, Q, 0);
	call.cdb.address = P;
	call.cdb.duplication_method = OSD_DUPLICATION_PREALLOCATED;
	call_run(unit, &call);
	shows_field(unit, CREATE_CLONE, "a duplication method that copies", 14);
}

/* ---- what becomes of them ---- */

static void test_a_refreshed_snapshot_shows_its_source_as_it_is_now(void **state)
{
	struct unit *unit = *state;

	write_in(unit, P, O, "one");
	duplicate(unit, OSD_CREATE_SNAPSHOT, Q, P);
	write_in(unit, P, O, "two");
	function_expect_text(unit, Q, O, "one");
	run_on(unit, OSD_REFRESH_SNAPSHOT_OR_CLONE, Q);
	shows_good(unit, REFRESH_SNAPSHOT_OR_CLONE, "it shows its source as that is now");
	function_expect_text(unit, Q, O, "two");
}

static void test_what_is_no_clone_is_not_refreshed(void **state)
{
	struct unit *unit = *state;

	run_on(unit, OSD_REFRESH_SNAPSHOT_OR_CLONE, P);
	shows_field(unit, REFRESH_SNAPSHOT_OR_CLONE, "the partition is neither", 16);
}

static void test_a_detached_clone_is_a_partition_of_its_own(void **state)
{
	struct unit *unit = *state;
	struct call call;

	write_in(unit, P, O, "one");
	duplicate(unit, OSD_CREATE_CLONE, Q, P);
	run_on(unit, OSD_DETACH_CLONE, Q);
	shows_good(unit, DETACH_CLONE, "it is a partition of its own");
	function_expect_text(unit, Q, O, "one");
	call = call_of(OSD_REMOVE_PARTITION, P, 0);
	call.cdb.command_options = OSD_REMOVE_CONTENTS;
	call_run(unit, &call);
	expect_good(unit);
	function_expect_text(unit, Q, O, "one");
	run_on(unit, OSD_REFRESH_SNAPSHOT_OR_CLONE, Q);
	expect_field(unit, 16);
}

static void test_what_is_no_clone_is_not_detached(void **state)
{
	struct unit *unit = *state;

	run_on(unit, OSD_DETACH_CLONE, P);
	shows_field(unit, DETACH_CLONE, "the partition is no clone", 16);
}

static void restore(struct unit *unit, uint64_t partition, uint64_t snapshot)
{
	duplicate(unit, OSD_RESTORE_PARTITION_FROM_SNAPSHOT, partition, snapshot);
}

static void test_a_partition_is_restored_from_its_snapshot(void **state)
{
	struct unit *unit = *state;

	write_in(unit, P, O, "one");
	duplicate(unit, OSD_CREATE_SNAPSHOT, Q, P);
	write_in(unit, P, O, "two");
	unit_create(unit, P, O + 1);
	restore(unit, P, Q);
	shows_good(unit, RESTORE_PARTITION_FROM_SNAPSHOT, "the partition is as when it was taken");
	function_expect_text(unit, P, O, "one");
	function_expect_text(unit, Q, O, "one");
	/* Again, after other changes. */
	write_in(unit, P, O, "333");
	restore(unit, P, Q);
	expect_good(unit);
	function_expect_text(unit, P, O, "one");
}

static void test_a_partition_is_restored_from_a_snapshot_of_its_own_only(void **state)
{
	struct unit *unit = *state;

	unit_create_partition(unit, P + 1);
	duplicate(unit, OSD_CREATE_SNAPSHOT, Q, P);
	restore(unit, P + 1, Q);
	shows_field(unit, RESTORE_PARTITION_FROM_SNAPSHOT,
		    "a snapshot of another partition, or none", 40);
	restore(unit, P, P + 1);
	expect_field(unit, 40);
	duplicate(unit, OSD_CREATE_CLONE, Q + 1, P);
	restore(unit, P, Q + 1);
	expect_field(unit, 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object(test_a_snapshot_shows_the_source_as_it_was_and_is_read_only),
		with_object(test_a_clone_and_its_source_change_apart_from_each_other),
		with_object(test_a_duplicate_tells_its_source_its_time_and_whether_it_is_writable),
		with_object(test_a_partition_that_is_no_duplicate_tells_nothing_of_one),
		with_object(test_a_source_that_another_partition_was_at_that_moment_is_none),
		with_object(test_a_version_of_a_partition_is_cloned),
		with_object(test_the_target_chooses_the_id_of_a_snapshot),
		with_object(test_a_snapshot_needs_a_source_and_an_id_that_is_free),
		with_object(test_a_clone_needs_a_source_and_an_id_that_is_free),
		with_object(test_a_refreshed_snapshot_shows_its_source_as_it_is_now),
		with_object(test_what_is_no_clone_is_not_refreshed),
		with_object(test_a_detached_clone_is_a_partition_of_its_own),
		with_object(test_what_is_no_clone_is_not_detached),
		with_object(test_a_partition_is_restored_from_its_snapshot),
		with_object(test_a_partition_is_restored_from_a_snapshot_of_its_own_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
