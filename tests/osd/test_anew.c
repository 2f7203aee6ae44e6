/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Commands that find rows full, and begin anew behind the threads that seal these: they answer and
 * leave behind what they do where there are no such threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "engine/history/past.h"
#include "engine/objects/objects.h"
#include "osd/execute.h"
#include "tests/osd/full_rows.h"
#include "tests/osd/function_call.h"

#define TEST_PAGE UINT32_C(0x10000)

/* The threads get at the rows when the call has begun for the second time. */
static void run_anew(struct full_rows *rows, struct call *call)
{
	full_rows_run(rows, call, 2);
	assert_int_equal(rows->tries_alone, 1);
	assert_in_range(rows->tries, 2, FULL_ROWS_TRIES_MAX - 1);
}

static void run_anew_well(struct full_rows *rows, struct call *call)
{
	run_anew(rows, call);
	expect_good(&rows->served);
	full_rows_expect_same(rows);
}

static void get_what_commands_change(struct call *call)
{
	call_get(call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USED_CAPACITY);
	call_get(call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH);
	call_get(call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_OBJECT_ID);
	call_get(call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_APPEND_ADDRESS);
	call_get(call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_CHANGE_IN_USED_CAPACITY);
}

static void write_to_both(struct full_rows *rows, const void *data, size_t length)
{
	unit_write(&rows->served, O, 0, data, length);
	unit_write(&rows->alone, O, 0, data, length);
}

static struct call data_call(uint16_t action, uint64_t object, const void *data, size_t length)
{
	struct call call = call_of(action, P, object);

	call_data(&call, data, length);
	return call;
}

/* ---- commands ---- */

static uint8_t data[24 * FULL_ROWS_PAGE];

static void test_create_of_many_objects(void **state)
{
	static const uint8_t value[100] = { 1, 2, 3 };
	struct full_rows *rows = *state;
	struct call call = call_of(OSD_CREATE, P, 0);
	uint8_t set[sizeof(value)];

	call.cdb.objects = 60;
	call.retrieved_capacity = 60 * 256;
	call_set(&call, TEST_PAGE, 1, value, sizeof(value));
	call_get(&call, TEST_PAGE, 1);
	call_get(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_OBJECT_ID);
	call_get(&call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_CHANGE_IN_USED_CAPACITY);
	run_anew_well(rows, &call);
	/* What no other try has made is there: no more objects, and no other IDs. */
	assert_int_equal(unit_get_number(&rows->served, P, 0, OSD_PARTITION_INFORMATION,
					 OSD_INFORMATION_MEMBERS),
			 61);
	for (uint64_t object = O + 1; object <= O + 60; object++) {
		assert_int_equal(unit_get(&rows->served, P, object, TEST_PAGE, 1, set, sizeof(set)),
				 sizeof(value));
		assert_memory_equal(set, value, sizeof(value));
	}
}

static void test_create_and_write(void **state)
{
	struct full_rows *rows = *state;
	struct call call = data_call(OSD_CREATE_AND_WRITE, O + 1, data, sizeof(data));

	get_what_commands_change(&call);
	run_anew_well(rows, &call);
	assert_int_equal(unit_get_number(&rows->served, P, O + 1, OSD_USER_OBJECT_INFORMATION,
					 OSD_INFORMATION_LOGICAL_LENGTH),
			 sizeof(data));
}

static void test_append(void **state)
{
	struct full_rows *rows = *state;
	struct call call = data_call(OSD_APPEND, O, data, sizeof(data));

	write_to_both(rows, "before", 6);
	get_what_commands_change(&call);
	run_anew_well(rows, &call);
	assert_int_equal(get_be64(unit_retrieved(&rows->served, &call, 3).value), 6);
	assert_int_equal(unit_get_number(&rows->served, P, O, OSD_USER_OBJECT_INFORMATION,
					 OSD_INFORMATION_LOGICAL_LENGTH),
			 6 + sizeof(data));
}

static void test_write(void **state)
{
	struct full_rows *rows = *state;
	struct call call = data_call(OSD_WRITE, O, data, sizeof(data));

	call_set_number(&call, TEST_PAGE, 1, 42);
	get_what_commands_change(&call);
	run_anew_well(rows, &call);
}

static void test_punch(void **state)
{
	struct full_rows *rows = *state;
	struct call call = call_of(OSD_PUNCH, P, O);

	write_to_both(rows, data, sizeof(data));
	call.cdb.address = 100;
	call.cdb.length = 300;
	get_what_commands_change(&call);
	run_anew_well(rows, &call);
	assert_int_equal(unit_get_number(&rows->served, P, O, OSD_USER_OBJECT_INFORMATION,
					 OSD_INFORMATION_LOGICAL_LENGTH),
			 sizeof(data) - 300);
}

static struct call number_call(uint16_t action, const uint8_t *operands, size_t length)
{
	struct call call = data_call(action, O, operands, length);

	call.cdb.length = call.data_in_capacity = 8;
	call_get(&call, OSD_USER_OBJECT_ATOMICS, OSD_ATOMICS_FETCH_AND_ADD);
	return call;
}

static void test_fetch_and_add(void **state)
{
	static const uint8_t three[8] = { [7] = 3 };
	struct full_rows *rows = *state;
	struct call call = number_call(OSD_FETCH_AND_ADD, three, sizeof(three));

	for (uint64_t n = 0; n < 3; n++) {
		run_anew_well(rows, &call);
		assert_int_equal(get_be64(rows->served.data_in), 3 * n);
		assert_int_equal(get_be64(unit_retrieved(&rows->served, &call, 0).value),
				 3 * n + 3);
	}
}

static void test_compare_and_swap(void **state)
{
	static const uint8_t none_by_five[16] = { [15] = 5 };
	struct full_rows *rows = *state;
	struct call call = number_call(OSD_COMPARE_AND_SWAP, none_by_five, sizeof(none_by_five));

	run_anew_well(rows, &call);
	assert_int_equal(get_be64(rows->served.data_in), 0);
	assert_int_equal(unit_get_number(&rows->served, P, O, OSD_USER_OBJECT_ATOMICS,
					 OSD_ATOMICS_COMPARE_AND_SWAP),
			 5);
}

static void test_set_attributes(void **state)
{
	struct full_rows *rows = *state;
	struct call call = call_of(OSD_SET_ATTRIBUTES, P, O);

	call_set(&call, TEST_PAGE, 1, data, 1000);
	call_set_number(&call, TEST_PAGE, 2, 42);
	call_get(&call, TEST_PAGE, 2);
	call_get(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USED_CAPACITY);
	run_anew_well(rows, &call);
}

static struct call read_and_set_call(void)
{
	struct call call = call_of(OSD_READ, P, O);

	call.cdb.length = call.data_in_capacity = sizeof(data);
	call_set_number(&call, TEST_PAGE, 1, 42);
	call_get(&call, TEST_PAGE, 1);
	return call;
}

/* It reads into Data-In before it finds a row full. That it has read then does not end its tries.
 */
static void test_read_with_sets(void **state)
{
	struct full_rows *rows = *state;
	struct call call = read_and_set_call();

	write_to_both(rows, data, sizeof(data));
	full_rows_run(rows, &call, 3);
	assert_int_equal(rows->tries_alone, 1);
	assert_in_range(rows->tries, 3, FULL_ROWS_TRIES_MAX - 1);
	expect_good(&rows->served);
	assert_memory_equal(rows->served.data_in, data, sizeof(data));
	full_rows_expect_same(rows);
}

/* What it has read in other turns is not read again: its last turn seals itself, if it must. */
static void test_read_of_several_turns_with_sets_goes_on(void **state)
{
	struct full_rows *rows = *state;
	struct call call = read_and_set_call();

	write_to_both(rows, data, sizeof(data));
	rows->served.device->portions.pages = rows->alone.device->portions.pages = 8;
	full_rows_run(rows, &call, FULL_ROWS_TRIES_MAX);
	expect_good(&rows->served);
	assert_int_equal(rows->tries_alone, 3);
	assert_int_equal(rows->tries, 3);
	assert_memory_equal(rows->served.data_in, data, sizeof(data));
	full_rows_expect_same(rows);
}

/* ---- commands of several turns, and on many objects ---- */

enum { COPIES = 2, MEMBERS = 10, BATCH = 4 };

#define COPY       (O + 1) /* and those behind it */
#define COLLECTION (O + 0x1000)

/* COPIES of O; the target chooses the first free IDs. */
static struct call copy_call(void)
{
	struct osd_copy_source source = { P, O, true, false, 0 };
	struct call call = call_of(OSD_COPY_USER_OBJECTS, P, 0);
	uint8_t content[OSD_COPY_SOURCE_BYTES];

	osd_copy_source_encode(&source, content);
	for (int n = 0; n < COPIES; n++)
		call_descriptor(&call, OSD_CONTINUATION_COPY_SOURCE, content, sizeof(content));
	get_what_commands_change(&call);
	return call;
}

static void expect_copies(struct full_rows *rows)
{
	for (uint64_t copy = COPY; copy < COPY + COPIES; copy++) {
		struct call call = call_of(OSD_READ, P, copy);

		call.cdb.length = call.data_in_capacity = sizeof(data);
		call_run(&rows->served, &call);
		expect_good(&rows->served);
		assert_memory_equal(rows->served.data_in, data, sizeof(data));
		assert_int_equal(unit_get_number(&rows->served, P, copy, TEST_PAGE, 1), 5);
	}
	assert_int_equal(unit_get_number(&rows->served, P, 0, OSD_PARTITION_INFORMATION,
					 OSD_INFORMATION_MEMBERS),
			 1 + COPIES);
}

static void make_source(struct full_rows *rows)
{
	write_to_both(rows, data, sizeof(data));
	unit_set_number(&rows->served, P, O, TEST_PAGE, 1, 5);
	unit_set_number(&rows->alone, P, O, TEST_PAGE, 1, 5);
}

static void test_copy_user_objects(void **state)
{
	struct full_rows *rows = *state;
	struct call call = copy_call();

	make_source(rows);
	run_anew_well(rows, &call);
	expect_copies(rows);
}

/*
 * Threads get at nothing until the first turn has sealed what it must by itself, and a later one
 * has begun anew a few times.
 */
static void run_in_turns_anew(struct full_rows *rows, struct call *call)
{
	full_rows_run(rows, call, FULL_ROWS_TRIES_MAX);
	expect_good(&rows->served);
	assert_true(rows->tries_alone > 1);
	assert_in_range(rows->tries, FULL_ROWS_TRIES_MAX, FULL_ROWS_TRIES_MAX + 32);
	full_rows_expect_same(rows);
}

static void test_copy_user_objects_in_turns(void **state)
{
	struct full_rows *rows = *state;
	struct call call = copy_call();

	make_source(rows);
	rows->served.device->portions.pages = rows->alone.device->portions.pages = 32;
	run_in_turns_anew(rows, &call);
	expect_copies(rows);
}

/* The unit that is served, its calls counted as ever; in one transaction others write to O first.
 */
static struct full_rows *stepped;
static void (*counted)(void *context);

enum { FIRST_OF_SECOND_TURN = 34 };

static void write_to_source(struct engine *engine)
{
	static const struct engine_address source = { .partition = P, .object = O };
	struct engine_txn *txn;

	assert_int_equal(engine_begin(engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_write(txn, source, 0, "changed", 7), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

/* Inside a try that leaves full buffers to threads; what others write does not. */
static void write_before_the_second_turn(void *context)
{
	struct engine *engine = stepped->served.engine;

	counted(context);
	if (stepped->tries != FIRST_OF_SECOND_TURN)
		return;
	stepped->served.now_ms += FUNCTION_STEP_MS;
	assert_false(engine_seals_awaited(engine, 0));
	write_to_source(engine);
	assert_true(engine_seals_put_off(engine));
}

static unsigned views_in_use(const struct unit *unit)
{
	unsigned count = 0;

	for (uint32_t n = 0; n < ENGINE_VIEWS; n++)
		count += unit->engine->past->views[n].bound != 0;
	return count;
}

/* The source changes between two turns, so the next one holds a moment, and more than once. */
static void test_a_copy_that_begins_anew_with_a_moment_lets_go_of_it(void **state)
{
	struct full_rows *rows = *state;
	struct call call = copy_call(), read = call_of(OSD_READ, P, COPY);

	make_source(rows);
	rows->served.device->portions.pages = 32;
	full_rows_begin(rows, FULL_ROWS_TRIES_MAX);
	stepped = rows;
	counted = rows->served.device->step;
	rows->served.device->step = write_before_the_second_turn;
	call_run(&rows->served, &call);
	expect_good(&rows->served);
	assert_in_range(rows->tries, FULL_ROWS_TRIES_MAX, FULL_ROWS_TRIES_MAX + 32);
	assert_int_equal(views_in_use(&rows->served), 0);
	read.cdb.length = read.data_in_capacity = sizeof(data);
	call_run(&rows->served, &read);
	expect_good(&rows->served);
	assert_memory_equal(rows->served.data_in, "changed", 7);
	assert_memory_equal(rows->served.data_in + 7, data + 7, sizeof(data) - 7);
}

static void make_members(struct unit *unit, uint8_t type)
{
	struct engine_address collection = { .partition = P, .object = COLLECTION };
	struct call create = call_of(type == OSD_COLLECTION_IS_TRACKING
					     ? OSD_CREATE_USER_TRACKING_COLLECTION
					     : OSD_CREATE_COLLECTION,
				     P, COLLECTION);
	struct engine_txn *txn;

	call_run(unit, &create);
	expect_good(unit);
	for (uint64_t n = 1; n <= MEMBERS; n++)
		unit_create(unit, P, O + n);
	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	for (uint64_t n = 1; n <= MEMBERS; n++)
		assert_int_equal(engine_member_insert(txn, collection, O + n), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

static struct call member_call(struct full_rows *rows, uint16_t action, uint8_t type)
{
	make_members(&rows->served, type);
	make_members(&rows->alone, type);
	return call_of(action, P, COLLECTION);
}

static void expect_set(struct unit *unit)
{
	for (uint64_t n = 1; n <= MEMBERS; n++) {
		uint8_t value[1000];

		assert_int_equal(unit_get(unit, P, O + n, TEST_PAGE, 2, value, sizeof(value)),
				 sizeof(value));
		assert_memory_equal(value, data, sizeof(value));
	}
}

static void test_set_member_attributes(void **state)
{
	struct full_rows *rows = *state;
	struct call call = member_call(rows, OSD_SET_MEMBER_ATTRIBUTES, OSD_COLLECTION_LINEAR);

	call_set(&call, TEST_PAGE, 2, data, 1000);
	call_get(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USED_CAPACITY);
	run_anew_well(rows, &call);
	expect_set(&rows->served);
}

/* Nobody else has the collection between two tries, and each member is counted once. */
static void test_set_member_attributes_in_turns(void **state)
{
	struct full_rows *rows = *state;
	struct call call = member_call(rows, OSD_SET_MEMBER_ATTRIBUTES, OSD_COLLECTION_IS_TRACKING);

	rows->served.device->portions.members = rows->alone.device->portions.members = BATCH;
	call_set(&call, TEST_PAGE, 2, data, 1000);
	run_in_turns_anew(rows, &call);
	expect_set(&rows->served);
	assert_int_equal(unit_get_number(&rows->served, P, COLLECTION, OSD_COLLECTION_TRACKING,
					 OSD_TRACKING_PROCESSED),
			 MEMBERS);
	assert_int_equal(osd_tracker_active(&rows->served.device->trackers, P, COLLECTION), 0);
}

static void test_remove_member_objects(void **state)
{
	struct full_rows *rows = *state;
	struct call call = member_call(rows, OSD_REMOVE_MEMBER_OBJECTS, OSD_COLLECTION_IS_TRACKING);

	run_anew_well(rows, &call);
	assert_int_equal(unit_get_number(&rows->served, P, COLLECTION, OSD_COLLECTION_TRACKING,
					 OSD_TRACKING_PROCESSED),
			 MEMBERS);
	assert_int_equal(unit_get_number(&rows->served, P, 0, OSD_PARTITION_INFORMATION,
					 OSD_INFORMATION_MEMBERS),
			 2);
}

/* ---- quotas ---- */

static void set_quota(struct full_rows *rows, uint32_t number, uint64_t quota)
{
	unit_set_number(&rows->served, P, 0, OSD_PARTITION_QUOTAS, number, quota);
	unit_set_number(&rows->alone, P, 0, OSD_PARTITION_QUOTAS, number, quota);
}

static void test_what_just_meets_a_capacity_is_accepted(void **state)
{
	struct full_rows *rows = *state;
	struct call call = data_call(OSD_WRITE, O, data, sizeof(data));

	set_quota(rows, OSD_QUOTA_CAPACITY, sizeof(data));
	run_anew_well(rows, &call);
}

static void test_what_just_exceeds_a_capacity_is_refused_and_leaves_nothing(void **state)
{
	struct full_rows *rows = *state;
	struct call call = data_call(OSD_WRITE, O, data, sizeof(data));
	uint64_t before;

	write_to_both(rows, "before", 6);
	set_quota(rows, OSD_QUOTA_CAPACITY, sizeof(data) - 1);
	before = contents_of(&rows->served);
	run_anew(rows, &call);
	expect_sense(&rows->served, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR);
	assert_int_equal(contents_of(&rows->served), before);
	full_rows_expect_same(rows);
}

/* Objects that an earlier try has made do not count. */
static void test_what_just_meets_a_count_of_objects_is_accepted(void **state)
{
	struct full_rows *rows = *state;
	struct call call = call_of(OSD_CREATE, P, 0);

	set_quota(rows, OSD_QUOTA_OBJECT_COUNT, 61);
	call.cdb.objects = 60;
	call_set(&call, TEST_PAGE, 1, data, 100);
	run_anew_well(rows, &call);
	call.cdb.objects = 1;
	full_rows_run(rows, &call, 2);
	expect_sense(&rows->served, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR);
	full_rows_expect_same(rows);
}

/* ---- signed commands ---- */

/* A nonce is used up by the first try, and not asked for by others. */
static void run_signed_anew(struct full_rows *rows, uint8_t method)
{
	struct signed_call call;
	unsigned before;

	/* Notes the bound of nonces, which takes a try more. */
	for (int n = 0; n < 2; n++) {
		call = signed_write(&rows->served, method, "noted");
		signed_run(&rows->served, &call);
		expect_good(&rows->served);
		signed_run(&rows->alone, &call);
		expect_good(&rows->alone);
	}
	call = signed_call_of(&rows->served, OSD_WRITE, P, O, method);
	call_data(&call.call, data, sizeof(data));
	get_what_commands_change(&call.call);
	full_rows_begin(rows, 2);
	signed_run(&rows->served, &call);
	before = rows->tries;
	signed_run(&rows->alone, &call);
	full_rows_end(rows);
	expect_good(&rows->served);
	assert_int_equal(rows->tries_alone, 1);
	assert_in_range(before, 2, FULL_ROWS_TRIES_MAX - 1);
	full_rows_expect_same(rows);
	signed_run(&rows->served, &call);
	expect_sense(&rows->served, SENSE_ILLEGAL_REQUEST, SENSE_NONCE_NOT_UNIQUE);
}

static void test_a_signed_command(void **state)
{
	run_signed_anew(*state, OSD_CMDRSP);
}

static void test_a_command_with_signed_data(void **state)
{
	run_signed_anew(*state, OSD_ALLDATA);
}

/* ---- the end of tries ---- */

/* Threads make no room for what fills all buffers alone. */
static void test_what_fills_the_buffers_alone_does_so_itself_at_last(void **state)
{
	static const uint8_t much[FULL_ROWS_DATA_MAX] = { 1 };
	struct full_rows *rows = *state;
	struct call call = data_call(OSD_WRITE, O, much, sizeof(much));

	get_what_commands_change(&call);
	full_rows_run(rows, &call, 2);
	expect_good(&rows->served);
	assert_int_equal(rows->tries_alone, 1);
	/* 32 tries that leave the buffers to threads, and one that does not. */
	assert_int_equal(rows->tries, 33);
	full_rows_expect_same(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_full_rows(test_create_of_many_objects),
		with_full_rows(test_create_and_write),
		with_full_rows(test_append),
		with_full_rows(test_write),
		with_full_rows(test_punch),
		with_full_rows(test_fetch_and_add),
		with_full_rows(test_compare_and_swap),
		with_full_rows(test_set_attributes),
		with_full_rows(test_read_with_sets),
		with_full_rows(test_read_of_several_turns_with_sets_goes_on),
		with_full_rows(test_copy_user_objects),
		with_full_rows(test_copy_user_objects_in_turns),
		with_full_rows(test_a_copy_that_begins_anew_with_a_moment_lets_go_of_it),
		with_full_rows(test_set_member_attributes),
		with_full_rows(test_set_member_attributes_in_turns),
		with_full_rows(test_remove_member_objects),
		with_full_rows(test_what_just_meets_a_capacity_is_accepted),
		with_full_rows(test_what_just_exceeds_a_capacity_is_refused_and_leaves_nothing),
		with_full_rows(test_what_just_meets_a_count_of_objects_is_accepted),
		with_full_rows(test_a_signed_command),
		with_full_rows(test_a_command_with_signed_data),
		with_full_rows(test_what_fills_the_buffers_alone_does_so_itself_at_last),
	};

	for (size_t n = 0; n < sizeof(data); n++)
		data[n] = (uint8_t)(n * 7 + n / 256);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
