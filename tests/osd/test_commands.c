/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The commands that make, remove and flush: what they do, and each error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bytes.h"
#include "tests/osd/unit.h"
#include "tests/wire/hex.h"

static void run(struct unit *unit, uint16_t action, uint64_t partition, uint64_t object)
{
	struct call call = call_of(action, partition, object);

	call_run(unit, &call);
}

static uint64_t partitions(struct unit *unit)
{
	return unit_get_number(unit, 0, 0, OSD_ROOT_INFORMATION, OSD_ROOT_PARTITIONS);
}

static uint64_t members(struct unit *unit)
{
	return unit_get_number(unit, P, 0, OSD_PARTITION_INFORMATION, OSD_INFORMATION_MEMBERS);
}

/* ---- FORMAT OSD ---- */

static void test_format_removes_everything_and_sets_the_root_s_attributes(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_FORMAT_OSD, 0, 0);
	char name[16];

	unit_set(unit, 0, 0, 0x90010000, 7, "old", 3);
	call_set(&call, OSD_ROOT_INFORMATION, OSD_ROOT_OSD_NAME, "name", 4);
	call_get(&call, OSD_ROOT_INFORMATION, OSD_ROOT_PARTITIONS);
	call_run(unit, &call);
	shows_good(unit, FORMAT_OSD, "everything is removed, then attributes are set");
	assert_int_equal(get_be64(unit_retrieved(unit, &call, 0).value), 0);
	assert_int_equal(
		unit_get(unit, 0, 0, OSD_ROOT_INFORMATION, OSD_ROOT_OSD_NAME, name, sizeof(name)),
		4);
	assert_memory_equal(name, "name", 4);
	assert_int_equal(unit_get(unit, 0, 0, 0x90010000, 7, name, sizeof(name)), 0);
	run(unit, OSD_GET_ATTRIBUTES, P, 0);
	expect_field(unit, 16);
}

static void test_format_above_the_capacity_is_refused(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_FORMAT_OSD, 0, 0);
	uint64_t capacity =
		unit_get_number(unit, 0, 0, OSD_ROOT_INFORMATION, OSD_ROOT_TOTAL_CAPACITY);

	call.cdb.length = capacity + 1;
	call_run(unit, &call);
	shows_fields(unit, FORMAT_OSD, "a capacity above the device's", 36, 32);
	assert_int_equal(partitions(unit), 1);
	call.cdb.length = capacity;
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(partitions(unit), 0);
}

static void test_format_with_a_set_that_can_t_be_keeps_everything(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_FORMAT_OSD, 0, 0);

	call_set_number(&call, OSD_ROOT_INFORMATION, OSD_ROOT_TOTAL_CAPACITY, 5);
	call_run(unit, &call);
	shows_sense(unit, FORMAT_OSD, "a set that can't be: nothing is formatted", ILLEGAL_REQUEST,
		    INVALID_FIELD_IN_PARAMETER_LIST);
	assert_int_equal(partitions(unit), 1);
}

static void test_format_with_a_get_that_can_t_be_keeps_everything(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_FORMAT_OSD, 0, 0);

	call_get(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH);
	call_run(unit, &call);
	shows_sense(unit, FORMAT_OSD, "a get that can't be: nothing is formatted", ILLEGAL_REQUEST,
		    INVALID_FIELD_IN_PARAMETER_LIST);
	assert_int_equal(partitions(unit), 1);
}

/* ---- partitions ---- */

static void test_a_partition_gets_the_requested_id_or_the_next(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_PARTITION, 0, 0);

	unit_create_partition(unit, 0x20000);
	call_get(&call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_PARTITION_ID);
	call_get(&call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_OBJECT_ID);
	call_get(&call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_OBJECT_TYPE);
	call_run(unit, &call);
	shows_good(unit, CREATE_PARTITION, "the requested ID or the next");
	assert_int_equal(get_be64(unit_retrieved(unit, &call, 0).value), 0x20001);
	assert_int_equal(get_be64(unit_retrieved(unit, &call, 1).value), 0);
	assert_int_equal(unit_retrieved(unit, &call, 2).value[0], OSD_TYPE_PARTITION);
	assert_int_equal(partitions(unit), 2);
}

static void test_create_partition_refuses_taken_and_reserved_ids(void **state)
{
	struct unit *unit = *state;

	run(unit, OSD_CREATE_PARTITION, P, 0);
	shows_field(unit, CREATE_PARTITION, "the ID is taken", 16);
	run(unit, OSD_CREATE_PARTITION, 0xFFFF, 0);
	shows_field(unit, CREATE_PARTITION, "an ID from 1 to FFFF", 16);
	run(unit, OSD_CREATE_PARTITION, UINT64_C(1) << 48, 0);
	shows_field(unit, CREATE_PARTITION, "an ID above 2^48 - 1", 16);
	assert_int_equal(partitions(unit), 1);
}

static void test_a_partition_is_removed_when_empty_or_with_its_contents_when_asked(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_REMOVE_PARTITION, P, 0);

	call_run(unit, &call);
	shows_sense(unit, REMOVE_PARTITION, "it is not empty", ILLEGAL_REQUEST,
		    PARTITION_OR_COLLECTION_CONTAINS_USER_OBJECTS);
	call.cdb.command_options = 2;
	call_run(unit, &call);
	shows_field(unit, REMOVE_PARTITION, "a remove scope above 1", 11);
	call.cdb.command_options = OSD_REMOVE_CONTENTS;
	call_run(unit, &call);
	shows_good(unit, REMOVE_PARTITION, "with its contents, by scope 1");
	assert_int_equal(partitions(unit), 0);
	call_run(unit, &call);
	expect_field(unit, 16);
	call.cdb.partition = 0;
	call_run(unit, &call);
	shows_field(unit, REMOVE_PARTITION, "partition 0", 16);
	unit_create_partition(unit, P);
	run(unit, OSD_GET_ATTRIBUTES, P, O);
	expect_field(unit, 24);
}

static void test_osd1_removes_no_contents_whatever_its_reserved_bits_say(void **state)
{
	struct unit *unit = *state;

	for (unsigned bits = 0; bits < 8; bits++) {
		struct call call = call_of_version(OSD_1, OSD_REMOVE_PARTITION, P, 0);

		call.cdb.command_options = (uint8_t)bits;
		call_run(unit, &call);
		expect_sense(unit, SENSE_ILLEGAL_REQUEST,
			     SENSE_PARTITION_OR_COLLECTION_CONTAINS_USER_OBJECTS);
	}
	run(unit, OSD_GET_ATTRIBUTES, P, O);
	expect_good(unit);
}

static void test_an_empty_partition_is_removed(void **state)
{
	struct unit *unit = *state;

	unit_create_partition(unit, P);
	run(unit, OSD_REMOVE_PARTITION, P, 0);
	shows_good(unit, REMOVE_PARTITION, "an empty one");
	assert_int_equal(partitions(unit), 0);
	run(unit, OSD_REMOVE_PARTITION, P, 0);
	shows_field(unit, REMOVE_PARTITION, "there is no such partition", 16);
}

/* ---- CREATE and REMOVE ---- */

static void test_create_gives_the_requested_id_or_the_next(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE, P, 0);

	call_get(&call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_OBJECT_ID);
	call_get(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_OBJECT_ID);
	call_get(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH);
	call_run(unit, &call);
	shows_good(unit, CREATE, "the requested ID or the next");
	assert_int_equal(get_be64(unit_retrieved(unit, &call, 0).value), O + 1);
	assert_int_equal(get_be64(unit_retrieved(unit, &call, 1).value), O + 1);
	assert_int_equal(get_be64(unit_retrieved(unit, &call, 2).value), 0);
	assert_int_equal(members(unit), 2);
}

static void test_create_of_several_gives_consecutive_ids_and_sets_each(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE, P, 0);
	char value[4];

	call.cdb.objects = 3;
	call_set(&call, 0x10000, 1, "x", 1);
	call_run(unit, &call);
	shows_good(unit, CREATE, "several objects with consecutive IDs");
	for (uint64_t object = O + 1; object <= O + 3; object++)
		assert_int_equal(unit_get(unit, P, object, 0x10000, 1, value, sizeof(value)), 1);
	run(unit, OSD_GET_ATTRIBUTES, P, O + 4);
	expect_field(unit, 24);
}

static void test_create_refuses_taken_and_reserved_ids_and_missing_partitions(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE, P, O + 1);

	run(unit, OSD_CREATE, P, O);
	shows_field(unit, CREATE, "the ID is taken", 24);
	run(unit, OSD_CREATE, P, 0xFFFF);
	shows_field(unit, CREATE, "an ID from 1 to FFFF", 24);
	run(unit, OSD_CREATE, P + 1, O);
	shows_field(unit, CREATE, "there is no such partition", 16);
	run(unit, OSD_CREATE, 0, O);
	expect_field(unit, 16);
	call.cdb.objects = 2;
	call_run(unit, &call);
	shows_fields(unit, CREATE, "several objects with a requested ID", 36, 32);
	assert_int_equal(members(unit), 1);
}

static void test_a_collection_s_id_is_taken_and_is_no_user_object(void **state)
{
	struct unit *unit = *state;
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_create(txn, P, ENGINE_COLLECTION, O + 1, 1, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	run(unit, OSD_CREATE, P, O + 1);
	expect_field(unit, 24);
	run(unit, OSD_REMOVE, P, O + 1);
	expect_field(unit, 24);
	run(unit, OSD_FLUSH, P, O + 1);
	expect_field(unit, 24);
	run(unit, OSD_FLUSH_COLLECTION, P, O + 1);
	expect_good(unit);
	run(unit, OSD_FLUSH_COLLECTION, P, O);
	expect_field(unit, 24);
	assert_int_equal(unit_get_number(unit, P, O + 1, OSD_COLLECTION_INFORMATION,
					 OSD_INFORMATION_OBJECT_ID),
			 O + 1);
}

static void test_removed_objects_are_gone_after_their_attributes_were_answered(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_REMOVE, P, O);

	unit_set(unit, P, O, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USERNAME, "me", 2);
	call_get(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USERNAME);
	call_run(unit, &call);
	shows_good(unit, REMOVE, "gone after its attributes were answered");
	assert_memory_equal(unit_retrieved(unit, &call, 0).value, "me", 2);
	run(unit, OSD_REMOVE, P, O);
	shows_field(unit, REMOVE, "there is no such object", 24);
	run(unit, OSD_REMOVE, P + 1, O);
	expect_field(unit, 16);
	run(unit, OSD_REMOVE, P, 0);
	expect_field(unit, 24);
	assert_int_equal(members(unit), 0);
}

static void test_missing_objects_are_reported_as_the_standard_shows(void **state)
{
	struct unit *unit = *state;
	uint8_t expected[48] = { 0 };

	hex_rows(SENSE_NO_SUCH_OBJECT, expected, sizeof(expected));
	run(unit, OSD_READ, P, 0x19999);
	assert_int_equal(unit->command.status, SCSI_STATUS_CHECK_CONDITION);
	assert_int_equal(unit->command.sense_length, sizeof(expected));
	assert_memory_equal(unit->command.sense, expected, sizeof(expected));
}

static void test_create_and_write_does_both_or_nothing(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_AND_WRITE, P, 0);

	call_data(&call, "hello", 5);
	call.cdb.address = 3;
	call_get(&call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_OBJECT_ID);
	call_get(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH);
	call_run(unit, &call);
	shows_good(unit, CREATE_AND_WRITE, "a new object with data");
	assert_int_equal(get_be64(unit_retrieved(unit, &call, 0).value), O + 1);
	assert_int_equal(get_be64(unit_retrieved(unit, &call, 1).value), 8);

	call.cdb.address = UINT64_MAX - 10; /* more than an object can hold */
	call_run(unit, &call);
	shows_fields(unit, CREATE_AND_WRITE, "more than an object can hold: none is made", 44, 40);
	call.cdb.address = 0;
	call.cdb.object = O;
	call_run(unit, &call);
	shows_field(unit, CREATE_AND_WRITE, "the ID is taken", 24);
	assert_int_equal(members(unit), 2);
}

/* ---- FLUSH family, unknown commands, options ---- */

static void test_the_flush_family_checks_its_target_and_scope(void **state)
{
	static const struct {
		uint16_t action;
		uint64_t partition, object;
		int missing;
	} cases[] = {
		{ OSD_FLUSH, P, O, 24 },
		{ OSD_FLUSH_PARTITION, P, 0, 16 },
		{ OSD_FLUSH_PARTITION, P, O, 16 }, /* an ID too many is harmless */
		{ OSD_FLUSH_OSD, 0, 0, -1 },
	};
	struct unit *unit = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct call call = call_of(cases[i].action, cases[i].partition, cases[i].object);

		for (call.cdb.flush_scope = 0; call.cdb.flush_scope <= 2; call.cdb.flush_scope++) {
			call_run(unit, &call);
			expect_good(unit);
		}
		call_run(unit, &call);
		expect_field(unit, 11);
		call.cdb.flush_scope = 0;
		call.cdb.partition += cases[i].missing == 16;
		call.cdb.object += cases[i].missing == 24;
		call_run(unit, &call);
		if (cases[i].missing >= 0)
			expect_field(unit, cases[i].missing);
	}
}

static void test_commands_that_are_not_there_are_invalid_operation_codes(void **state)
{
	/* Between commands of OSD-1, those of OSD-2 only, and behind all. */
	static const uint16_t actions[] = {
		0x8800, 0x8804, 0x8809, 0x880D, 0x8820, 0x887F, 0x889D,
		0x88A4, 0x88A6, 0x88B0, 0x88B3, 0x88EE, 0x8F7B, 0x9000
	};
	struct unit *unit = *state;
	uint8_t cdb[OSD2_CDB_BYTES];

	hex_cdb(LINUX_WRITE, cdb);
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		put_be16(cdb + 8, actions[i]);
		unit_execute(unit, cdb, sizeof(cdb), NULL, 0, 0);
		expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_COMMAND_OPERATION_CODE);
	}
	cdb[0] = 0x28;
	unit_execute(unit, cdb, sizeof(cdb), NULL, 0, 0);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_COMMAND_OPERATION_CODE);
}

static void test_every_command_works_in_osd1_too(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of_version(OSD_1, OSD_CREATE_AND_WRITE, P, O + 1);
	uint8_t buffer[5];

	call_data(&call, "hello", 5);
	call_set(&call, 0x10000, 1, "attribute", 9);
	call_get(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH);
	call_get(&call, 0x10000, 1);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(get_be64(unit_retrieved(unit, &call, 0).value), 5);
	assert_memory_equal(unit_retrieved(unit, &call, 1).value, "attribute", 9);

	call = call_of_version(OSD_1, OSD_READ, P, O + 1);
	call.cdb.length = call.data_in_capacity = sizeof(buffer);
	call_run(unit, &call);
	expect_good(unit);
	assert_memory_equal(unit->data_in, "hello", 5);
	call.cdb.address = 5;
	call_run(unit, &call);
	expect_field(unit, 44);

	call = call_of_version(OSD_1, OSD_CREATE, P, O + 2);
	call.cdb.objects = 2;
	call_run(unit, &call);
	expect_field(unit, 36);
}

static void test_unknown_isolation_is_refused(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_GET_ATTRIBUTES, P, O);

	for (unsigned isolation = 0; isolation <= 7; isolation++) {
		call.cdb.isolation = (uint8_t)isolation;
		call_run(unit, &call);
		if (isolation == 3 || isolation >= 6)
			expect_field(unit, 10);
		else
			expect_good(unit);
	}
}

/* How often the device was made stable on the host's storage. */
static uint64_t syncs(struct unit *unit)
{
	struct nand_counters counters;

	nand_read_counters(unit->nand, &counters);
	return counters.nvram_sync_requests;
}

static void test_fua_and_flush_wait_for_stable_storage_and_nothing_else_does(void **state)
{
	static const uint16_t flushes[] = { OSD_FLUSH, OSD_FLUSH_PARTITION, OSD_FLUSH_OSD };
	struct unit *unit = *state;
	struct call call = call_of(OSD_WRITE, P, O);
	uint64_t before = syncs(unit);

	call.cdb.dpo = true;
	call_data(&call, "stable", 6);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(syncs(unit), before);
	call.cdb.fua = true;
	call_run(unit, &call);
	expect_good(unit);
	assert_true(syncs(unit) > before);
	/*
	 * What a READ with FUA has read is as stable; when it is already there is nothing to wait
	 * for.
	 */
	unit_write(unit, O, 0, "read", 4);
	call = call_of(OSD_READ, P, O);
	call.cdb.length = call.data_in_capacity = 4;
	before = syncs(unit);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(syncs(unit), before);
	call.cdb.fua = true;
	call_run(unit, &call);
	expect_good(unit);
	assert_true(syncs(unit) > before);
	before = syncs(unit);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(syncs(unit), before);
	for (size_t i = 0; i < 3; i++) {
		unit_write(unit, O, 0, "more", 4);
		before = syncs(unit);
		run(unit, flushes[i], P, O);
		expect_good(unit);
		assert_true(syncs(unit) > before);
	}
}

/* ---- versions ---- */

static void test_the_version_bits_of_a_partition_read_the_past_and_write_nothing(void **state)
{
	struct unit *unit = *state;
	struct engine_txn *txn;
	struct call call = call_of(OSD_READ, 0, O);
	uint32_t version;
	uint64_t past;

	unit_write(unit, O, 0, "then", 4);
	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_snapshot(txn, P, NULL, &version), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	unit_write(unit, O, 0, "now!", 4);
	past = (uint64_t)version << 48 | P;

	call.cdb.partition = past;
	call.cdb.length = call.data_in_capacity = 4;
	call_run(unit, &call);
	expect_good(unit);
	assert_memory_equal(unit->data_in, "then", 4);
	assert_int_equal(unit_get_number(unit, past, 0, OSD_PARTITION_INFORMATION,
					 OSD_INFORMATION_PARTITION_ID),
			 past);

	call = call_of(OSD_WRITE, past, O);
	call_data(&call, "no", 2);
	call_run(unit, &call);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_WRITE_PROTECTED);
	call = call_of(OSD_SET_ATTRIBUTES, past, O);
	call_set(&call, 0x10000, 1, "no", 2);
	call_run(unit, &call);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_WRITE_PROTECTED);
	run(unit, OSD_CREATE, past, O + 1);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_WRITE_PROTECTED);
	run(unit, OSD_REMOVE, past, O);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_WRITE_PROTECTED);
	run(unit, OSD_REMOVE_PARTITION, past, 0);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_WRITE_PROTECTED);

	run(unit, OSD_GET_ATTRIBUTES, UINT64_C(0x7777) << 48 | P, 0);
	expect_field(unit, 16);
	run(unit, OSD_GET_ATTRIBUTES, UINT64_C(1) << 48, 0);
	expect_field(unit, 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object_in_both(test_format_removes_everything_and_sets_the_root_s_attributes),
		with_object_in_both(test_format_above_the_capacity_is_refused),
		with_object_in_both(test_format_with_a_set_that_can_t_be_keeps_everything),
		with_object_in_both(test_format_with_a_get_that_can_t_be_keeps_everything),
		with_unit_in_both(test_a_partition_gets_the_requested_id_or_the_next),
		with_object_in_both(test_create_partition_refuses_taken_and_reserved_ids),
		with_object(test_a_partition_is_removed_when_empty_or_with_its_contents_when_asked),
		with_object(test_osd1_removes_no_contents_whatever_its_reserved_bits_say),
		with_unit_in_both(test_an_empty_partition_is_removed),
		with_object_in_both(test_create_gives_the_requested_id_or_the_next),
		with_object_in_both(test_create_of_several_gives_consecutive_ids_and_sets_each),
		with_object_in_both(
			test_create_refuses_taken_and_reserved_ids_and_missing_partitions),
		with_object(test_a_collection_s_id_is_taken_and_is_no_user_object),
		with_object_in_both(
			test_removed_objects_are_gone_after_their_attributes_were_answered),
		with_object(test_missing_objects_are_reported_as_the_standard_shows),
		with_object_in_both(test_create_and_write_does_both_or_nothing),
		with_object(test_the_flush_family_checks_its_target_and_scope),
		with_object(test_commands_that_are_not_there_are_invalid_operation_codes),
		with_object(test_every_command_works_in_osd1_too),
		with_object(test_unknown_isolation_is_refused),
		with_object(test_fua_and_flush_wait_for_stable_storage_and_nothing_else_does),
		with_object(test_the_version_bits_of_a_partition_read_the_past_and_write_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
