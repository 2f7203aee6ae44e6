/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Which timestamps each command changes, and of what; and that none changes when the CDB, the
 * partition or the root says that timestamps are to be left alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/osd/command_rows.h"

#define PAGE   0xF0000010u
#define NUMBER 1u

/* Of what times are looked at. */
enum { ROOT, PARTITION, OBJECT, COLLECTION, WATCHED };

static const struct engine_address watched[WATCHED] = {
	[ROOT] = { 0 },
	[PARTITION] = { .partition = P },
	[OBJECT] = { .partition = P, .object = O },
	[COLLECTION] = { .partition = P, .object = ROW_COLLECTION_ID },
};

struct times {
	bool there[WATCHED];
	uint64_t ms[WATCHED][ENGINE_TIMES];
};

/* Past the OSD layer, which would note accesses. */
static struct times read_times(struct unit *unit)
{
	struct times times = { 0 };
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_READ, &txn), 0);
	for (int i = 0; i < WATCHED; i++) {
		struct engine_stat stat;

		times.there[i] = engine_stat(txn, watched[i], &stat) == 0;
		if (times.there[i])
			memcpy(times.ms[i], stat.times_ms, sizeof(times.ms[i]));
	}
	engine_abort(txn);
	return times;
}

/*
 * What changed, as text: of each that is still there 'A' attributes modified, 'a' accessed, 'D'
 * data modified, 'd' accessed.
 */
static void changes(const struct times *before, const struct times *after, char text[64])
{
	static const char letters[ENGINE_TIMES + 1] = "CaAdD";
	static const char names[WATCHED + 1] = "rpoc";

	*text = '\0';
	for (int i = 0; i < WATCHED; i++) {
		char found[ENGINE_TIMES + 1] = { 0 };

		if (!before->there[i] || !after->there[i])
			continue;
		for (int j = 0; j < ENGINE_TIMES; j++)
			if (before->ms[i][j] != after->ms[i][j])
				found[strlen(found)] = letters[j];
		if (*found)
			sprintf(text + strlen(text), "%s%c:%s", *text ? " " : "", names[i], found);
	}
}

/* ---- what changes what ---- */

/*
 * Of each command that changes a time of what is watched, when it has no attributes. With a set and
 * a get it changes the attributes' times of what those are about, too.
 */
static const struct expectation {
	uint16_t action;
	const char *bare;
	int attributes_of; /* -1: of something that is not watched, or not there before and behind
			      it */
} expectations[] = {
	{ OSD_OBJECT_STRUCTURE_CHECK, "", OBJECT },
	{ OSD_FORMAT_OSD, "r:A", ROOT },
	{ OSD_CREATE, "", -1 },
	{ OSD_LIST, "p:d", PARTITION },
	{ OSD_PUNCH, "o:D", OBJECT },
	{ OSD_READ, "o:d", OBJECT },
	{ OSD_WRITE, "o:D", OBJECT },
	{ OSD_APPEND, "o:D", OBJECT },
	{ OSD_FLUSH, "", OBJECT },
	{ OSD_CLEAR, "o:D", OBJECT },
	{ OSD_REMOVE, "", -1 },
	{ OSD_CREATE_PARTITION, "", -1 },
	{ OSD_REMOVE_PARTITION, "", -1 },
	{ OSD_COMPARE_AND_SWAP, "o:A", OBJECT },
	{ OSD_GET_ATTRIBUTES, "", OBJECT },
	{ OSD_SET_ATTRIBUTES, "", OBJECT },
	{ OSD_FETCH_AND_ADD, "o:A", OBJECT },
	{ OSD_CONDITIONAL_SET_ATTRIBUTES, "o:A", OBJECT },
	{ OSD_CREATE_AND_WRITE, "", -1 },
	{ OSD_CREATE_COLLECTION, "", -1 },
	{ OSD_CREATE_USER_TRACKING_COLLECTION, "", -1 },
	{ OSD_REMOVE_COLLECTION, "", -1 },
	{ OSD_LIST_COLLECTION, "c:d", COLLECTION },
	{ OSD_QUERY, "c:d", COLLECTION },
	{ OSD_REMOVE_MEMBER_OBJECTS, "", COLLECTION },
	{ OSD_GET_MEMBER_ATTRIBUTES, "", -1 },
	{ OSD_SET_MEMBER_ATTRIBUTES, "", -1 },
	{ OSD_COPY_USER_OBJECTS, "o:d", -1 },
	{ OSD_FLUSH_COLLECTION, "", COLLECTION },
	{ OSD_FLUSH_PARTITION, "", PARTITION },
	{ OSD_FLUSH_OSD, "", ROOT },
	{ OSD_GENERAL_COMPARE_AND_SWAP, "o:A", OBJECT },
	{ OSD_CREATE_CLONE, "", -1 },
	{ OSD_CREATE_SNAPSHOT, "", -1 },
	{ OSD_DETACH_CLONE, "", -1 },
	{ OSD_REFRESH_SNAPSHOT_OR_CLONE, "", -1 },
	{ OSD_RESTORE_PARTITION_FROM_SNAPSHOT, "", PARTITION },
	{ OSD_READ_MAP, "", OBJECT },
	{ OSD_READ_MAPS_AND_COMPARE, "", OBJECT },
	{ OSD_PERFORM_SCSI_COMMAND, "", OBJECT },
	{ OSD_PERFORM_TASK_MANAGEMENT_FUNCTION, "", OBJECT },
};

/* How timestamps are left alone. */
enum bypass { UPDATED, BY_CDB, BY_PARTITION, BY_ROOT };

/* Runs the command a second after everything was made; what changed. */
static void run(const struct command_row *row, enum osd_version version, bool attributes,
		enum bypass bypass, char text[64])
{
	static const uint8_t off = OSD_TIMESTAMPS_BYPASS;
	struct call call = command_row_call(row, version);
	struct times before, after;
	struct unit unit;

	unit_open(&unit, 64 << 20);
	unit_create_partition(&unit, P);
	unit_create(&unit, P, O);
	/* What is duplicated of the partition is left alone like the partition. */
	if (bypass == BY_PARTITION)
		unit_set(&unit, P, 0, OSD_PARTITION_TIMESTAMPS, OSD_TIME_BYPASS, &off, 1);
	if (bypass == BY_ROOT)
		unit_set(&unit, 0, 0, OSD_ROOT_TIMESTAMPS, OSD_TIME_BYPASS, &off, 1);
	if (bypass == BY_CDB)
		call.cdb.timestamps_control = OSD_TIMESTAMPS_BYPASS;
	command_rows_prepare(&unit);
	if (attributes) {
		call.retrieved_capacity = 256;
		if (!(row->flags & ROW_OWN_LISTS))
			call_set(&call, PAGE, NUMBER, "value", 5);
		call_get(&call, PAGE, NUMBER);
	}
	unit.now_ms += 1000;
	before = read_times(&unit);
	call_run(&unit, &call);
	expect_good(&unit);
	after = read_times(&unit);
	changes(&before, &after, text);
	unit_close(&unit);
}

static void test_each_command_changes_the_times_of_what_it_does(void **state)
{
	(void)state;
	assert_int_equal(sizeof(expectations) / sizeof(expectations[0]), command_row_count);
	for (size_t i = 0; i < command_row_count; i++) {
		const struct expectation *expected = &expectations[i];
		char text[64];

		run(command_row_of(expected->action), OSD_2, false, UPDATED, text);
		if (strcmp(text, expected->bare) != 0)
			fail_msg("%s changed '%s', not '%s'", osd_action_name(expected->action),
				 text, expected->bare);
	}
}

static void test_sets_and_gets_change_the_times_of_attributes(void **state)
{
	static const char names[WATCHED + 1] = "rpoc";

	(void)state;
	for (size_t i = 0; i < command_row_count; i++) {
		const struct expectation *expected = &expectations[i];
		char text[64], start[8];

		run(command_row_of(expected->action), OSD_2, true, UPDATED, text);
		if (expected->attributes_of < 0) {
			assert_string_equal(text, expected->bare);
			continue;
		}
		snprintf(start, sizeof(start), "%c:aA", names[expected->attributes_of]);
		if (strncmp(text, start, 4) != 0)
			fail_msg("%s with attributes changed '%s'",
				 osd_action_name(expected->action), text);
	}
}

static void test_no_time_changes_when_timestamps_are_left_alone(void **state)
{
	(void)state;
	for (size_t i = 0; i < command_row_count; i++) {
		const struct command_row *row = &command_rows[i];

		for (int version = OSD_1; version <= OSD_2; version++) {
			struct osd_cdb cdb = { .version = (enum osd_version)version,
					       .action = row->action,
					       .format = OSD_ATTRIBUTES_LIST };
			uint8_t bytes[OSD_CDB_BYTES_MAX];
			char text[64];

			if (osd_cdb_encode(&cdb, bytes, NULL) != 0)
				continue;
			for (int bypass = BY_CDB; bypass <= BY_ROOT; bypass++) {
				/* The setting of a partition is about what is in it. */
				if (bypass == BY_PARTITION && row->target == ROW_ROOT)
					continue;
				/* The root's setting goes when everything is formatted. */
				if (bypass == BY_ROOT && row->action == OSD_FORMAT_OSD)
					continue;
				run(row, (enum osd_version)version, true, (enum bypass)bypass,
				    text);
				if (*text)
					fail_msg("%s (OSD-%d, bypass %d) changed '%s'",
						 osd_action_name(row->action), version, bypass,
						 text);
			}
		}
	}
}

/* ---- what a command's own gets find ---- */

/* Milliseconds since the unit's clock began. */
static uint64_t retrieved_time(struct unit *unit, const struct call *call, size_t index)
{
	struct osd_attribute attribute = unit_retrieved(unit, call, index);

	assert_int_equal(attribute.length, 6);
	return get_be48(attribute.value) - UNIT_CLOCK;
}

static void get_object_times(struct call *call)
{
	for (uint32_t number = OSD_TIME_ATTRIBUTES_ACCESSED; number <= OSD_TIME_DATA_MODIFIED;
	     number++)
		call_get(call, OSD_USER_OBJECT_TIMESTAMPS, number);
}

enum { ATTRIBUTES_ACCESSED, ATTRIBUTES_MODIFIED, DATA_ACCESSED, DATA_MODIFIED };

/*
 * What the command does to data and attributes is noted when its gets ask for it; the gets
 * themselves are not.
 */
static void test_gets_find_the_times_that_the_command_itself_has_changed(void **state)
{
	struct unit *unit = *state;
	struct call call;

	unit_write(unit, O, 0, "hello", 5);
	unit->now_ms = UNIT_CLOCK + 5000;
	call = call_of(OSD_READ, P, O);
	call.cdb.length = call.data_in_capacity = 5;
	get_object_times(&call);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(retrieved_time(unit, &call, ATTRIBUTES_ACCESSED), 0);
	assert_int_equal(retrieved_time(unit, &call, DATA_ACCESSED), 5000);
	assert_int_equal(retrieved_time(unit, &call, DATA_MODIFIED), 0);
	unit->now_ms = UNIT_CLOCK + 6000;
	call = call_of(OSD_WRITE, P, O);
	call_data(&call, "hallo", 5);
	get_object_times(&call);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(retrieved_time(unit, &call, ATTRIBUTES_ACCESSED), 5000);
	assert_int_equal(retrieved_time(unit, &call, DATA_ACCESSED), 5000);
	assert_int_equal(retrieved_time(unit, &call, DATA_MODIFIED), 6000);
	/* A READ that sets something is a change, and finds the same. */
	unit->now_ms = UNIT_CLOCK + 7000;
	call = call_of(OSD_READ, P, O);
	call.cdb.length = call.data_in_capacity = 5;
	call_set(&call, PAGE, NUMBER, "value", 5);
	get_object_times(&call);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(retrieved_time(unit, &call, ATTRIBUTES_ACCESSED), 6000);
	assert_int_equal(retrieved_time(unit, &call, ATTRIBUTES_MODIFIED), 7000);
	assert_int_equal(retrieved_time(unit, &call, DATA_ACCESSED), 7000);
}

static void test_a_time_that_a_command_sets_is_the_one_that_stays(void **state)
{
	struct unit *unit = *state;
	struct call call;
	uint8_t time[6];

	unit_write(unit, O, 0, "hello", 5);
	put_be48(time, UNIT_CLOCK + 77);
	unit->now_ms = UNIT_CLOCK + 5000;
	call = call_of(OSD_READ, P, O);
	call.cdb.length = call.data_in_capacity = 5;
	call_set(&call, OSD_USER_OBJECT_TIMESTAMPS, OSD_TIME_DATA_ACCESSED, time, 6);
	call_get(&call, OSD_USER_OBJECT_TIMESTAMPS, OSD_TIME_DATA_ACCESSED);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(retrieved_time(unit, &call, 0), 77);
	assert_int_equal(read_times(unit).ms[OBJECT][ENGINE_TIME_DATA_ACCESSED], UNIT_CLOCK + 77);
}

static void test_gets_find_old_times_where_none_is_noted(void **state)
{
	struct unit *unit = *state;
	struct call call;

	unit_write(unit, O, 0, "hello", 5);
	call = call_of(OSD_CREATE_SNAPSHOT, P + 1, 0);
	call.cdb.address = P;
	call_run(unit, &call);
	expect_good(unit);
	unit->now_ms = UNIT_CLOCK + 5000;
	call = call_of(OSD_READ, P, O);
	call.cdb.length = call.data_in_capacity = 5;
	call.cdb.timestamps_control = OSD_TIMESTAMPS_BYPASS;
	call_get(&call, OSD_USER_OBJECT_TIMESTAMPS, OSD_TIME_DATA_ACCESSED);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(retrieved_time(unit, &call, 0), 0);
	call.cdb.timestamps_control = OSD_TIMESTAMPS_UPDATE;
	call.cdb.partition = P + 1; /* a snapshot can't be changed */
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(retrieved_time(unit, &call, 0), 0);
}

static void test_a_read_that_fails_notes_no_access(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_READ, P, O);

	unit_write(unit, O, 0, "hello", 5);
	unit->now_ms = UNIT_CLOCK + 5000;
	call.cdb.length = call.data_in_capacity = 5;
	call_get(&call, OSD_PARTITION_INFORMATION, OSD_INFORMATION_PARTITION_ID);
	call_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	assert_int_equal(read_times(unit).ms[OBJECT][ENGINE_TIME_DATA_ACCESSED], UNIT_CLOCK);
}

/* A list of a million objects would otherwise put a million onodes. */
static void test_list_with_attributes_notes_no_access_of_its_entries(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_LIST, P, 0);

	unit->now_ms = UNIT_CLOCK + 5000;
	call.cdb.length = call.data_in_capacity = 4096;
	call.cdb.list_attributes = true;
	call_get(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(read_times(unit).ms[OBJECT][ENGINE_TIME_ATTRIBUTES_ACCESSED], UNIT_CLOCK);
	assert_int_equal(read_times(unit).ms[PARTITION][ENGINE_TIME_DATA_ACCESSED],
			 UNIT_CLOCK + 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_command_changes_the_times_of_what_it_does),
		cmocka_unit_test(test_sets_and_gets_change_the_times_of_attributes),
		cmocka_unit_test(test_no_time_changes_when_timestamps_are_left_alone),
		with_object(test_a_read_that_fails_notes_no_access),
		with_object(test_a_time_that_a_command_sets_is_the_one_that_stays),
		with_object(test_gets_find_old_times_where_none_is_noted),
		with_object(test_gets_find_the_times_that_the_command_itself_has_changed),
		with_object(test_list_with_attributes_notes_no_access_of_its_entries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
