/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Snapshots of partitions are refused for every command, attribute and function that would change
 * them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "engine/engine.h"
#include "tests/osd/command_rows.h"
#include "tests/osd/function_call.h"

#define Q UINT64_C(0x10020) /* the snapshot of P */

/* A page that every object may have. */
#define PAGE   0xF0000010u
#define NUMBER 1u

#define expect_protected(unit) expect_sense(unit, SENSE_DATA_PROTECT, SENSE_WRITE_PROTECTED)

/* Partition P with an object that is in a collection, and its snapshot. */
static int set_up(void **state)
{
	const struct engine_moment now = { .kind = ENGINE_NOW };
	struct engine_txn *txn;
	struct unit *unit;

	unit_set_up_with_object(state);
	unit = *state;
	command_rows_prepare(unit);
	function_subscribe(unit);
	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(
		engine_membership_set(txn, (struct engine_address){ .partition = P, .object = O },
				      1, ROW_COLLECTION_ID),
		0);
	assert_int_equal(engine_commit(txn, false), 0);
	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_clone(txn, P, now, Q, false, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	return 0;
}

/* What the snapshot shows: data, attributes, and how many objects. */
static uint32_t look(struct unit *unit)
{
	struct call read = call_of(OSD_READ, Q, O), list = call_of(OSD_LIST, Q, 0);
	struct call members = call_of(OSD_LIST_COLLECTION, Q, ROW_COLLECTION_ID);
	uint32_t sum = 0;

	read.cdb.length = read.data_in_capacity = 64;
	list.cdb.length = list.data_in_capacity = 256;
	members.cdb.length = members.data_in_capacity = 256;
	call_run(unit, &read);
	for (size_t at = 0; at < 8; at++)
		sum = sum * 31 + unit->data_in[at];
	call_run(unit, &list);
	expect_good(unit);
	sum = sum * 31 + (uint32_t)unit->command.data_in_length;
	call_run(unit, &members);
	expect_good(unit);
	sum = sum * 31 + (uint32_t)unit->command.data_in_length;
	sum = sum * 31 + (uint32_t)unit_get_number(unit, Q, O, OSD_USER_OBJECT_INFORMATION,
						   OSD_INFORMATION_LOGICAL_LENGTH);
	return sum * 31 + unit_get(unit, Q, O, PAGE, NUMBER, NULL, 0);
}

static struct call call_of_row(const struct command_row *row)
{
	struct call call = command_row_call(row, OSD_2);

	call.cdb.partition = Q;
	return call;
}

static void test_every_command_that_changes_something_in_a_snapshot_is_refused(void **state)
{
	struct unit *unit = *state;
	uint32_t before = look(unit);
	unsigned refused = 0;

	for (size_t at = 0; at < command_row_count; at++) {
		const struct command_row *row = &command_rows[at];
		struct call call;

		if (!(row->flags & ROW_CHANGES) || row->target == ROW_ROOT ||
		    row->target == ROW_PARTITION || row->target == ROW_NEW_PARTITION)
			continue;
		call = call_of_row(row);
		call_run(unit, &call);
		expect_protected(unit);
		refused++;
	}
	assert_true(refused >= 15);
	assert_int_equal(look(unit), before);
}

static void test_setting_attributes_in_a_snapshot_is_refused_whatever_the_command(void **state)
{
	struct unit *unit = *state;
	uint32_t before = look(unit);

	for (size_t at = 0; at < command_row_count; at++) {
		const struct command_row *row = &command_rows[at];
		struct call call;

		if (row->flags & (ROW_CHANGES | ROW_NO_ATTRIBUTES) || row->target == ROW_ROOT)
			continue;
		/* Its parameters name objects elsewhere. */
		if (row->action == OSD_PERFORM_SCSI_COMMAND || row->action == OSD_QUERY ||
		    row->action == OSD_READ_MAPS_AND_COMPARE ||
		    row->action == OSD_PERFORM_TASK_MANAGEMENT_FUNCTION)
			continue;
		call = call_of_row(row);
		call_set(&call, PAGE, NUMBER, "x", 1);
		call_run(unit, &call);
		expect_protected(unit);
	}
	/* The computed ones as well: length, times, memberships. */
	static const struct {
		uint32_t page, number, length;
	} computed[] = {
		{ OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, 8 },
		{ OSD_USER_OBJECT_INFORMATION, 9, 2 },
		{ ENGINE_MEMBERSHIPS_PAGE, 1, 0 },
	};

	for (size_t at = 0; at < sizeof(computed) / sizeof(computed[0]); at++) {
		struct call call = call_of(OSD_SET_ATTRIBUTES, Q, O);

		call_set(&call, computed[at].page, computed[at].number, "\0\0\0\0\0\0\0\1",
			 computed[at].length);
		call_run(unit, &call);
		expect_protected(unit);
	}
	assert_int_equal(look(unit), before);
}

static void test_functions_that_change_something_in_a_snapshot_are_refused(void **state)
{
	struct unit *unit = *state;
	uint32_t before = look(unit);

	function_run_with(unit, OSD_FUNCTION_SNAPSHOT, Q, 0, 0, 0);
	expect_protected(unit);
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, Q, 0, OSD_ITEM_TIME, unit->now_ms);
	expect_protected(unit);
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, Q, O, OSD_ITEM_TIME, unit->now_ms);
	expect_protected(unit);
	function_run_with(unit, OSD_FUNCTION_UNDO, Q, O, OSD_ITEM_MODIFICATIONS, 1);
	expect_protected(unit);
	assert_int_equal(look(unit), before);
	/* What does not is as elsewhere. */
	function_run_with(unit, OSD_FUNCTION_VERSIONS, Q, 0, 0, 0);
	expect_good(unit);
	function_run_with(unit, OSD_FUNCTION_CHECKSUM, Q, O, 0, 0);
	expect_good(unit);
}

#define WITH(name) cmocka_unit_test_setup_teardown(name, set_up, unit_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(test_every_command_that_changes_something_in_a_snapshot_is_refused),
		WITH(test_setting_attributes_in_a_snapshot_is_refused_whatever_the_command),
		WITH(test_functions_that_change_something_in_a_snapshot_are_refused),
	};

	return cmocka_run_group_tests_name("snapshots_read_only", tests, NULL, NULL);
}
