/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Commands that find the rows full, and begin anew behind the threads that seal them: they answer
 * and leave what they do where no threads are. A unit with such threads gets the same commands as
 * one without. What the threads may seal is kept from them until a command has begun twice, so
 * that its first try fails however fast they are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "common/bytes.h"
#include "engine/objects/objects.h"
#include "osd/execute.h"
#include "tests/engine/small_flash.h"
#include "tests/osd/secured.h"

enum {
	PAGE = 512,
	ROWS = 16,
	SEGMENT_PAGES = 8,
	FILLERS = 512,
	FILL_MAX = 100000,
	MUCH = 400 * PAGE
};

/* Where the small objects are that fill the rows. */
#define FILLED        (P + 1)
#define TEST_PAGE     UINT32_C(0x10000)
#define MORE_THAN_ALL 40 /* tries */

struct pair {
	struct unit served, alone; /* with threads, and without */
	unsigned tries, tries_alone, release_at;
};

/* ---- the units ---- */

static bool is_held; /* atomic */
static const struct record_store_operations *whole;

static int seal_take(struct record_store *store)
{
	return __atomic_load_n(&is_held, __ATOMIC_ACQUIRE) ? -EAGAIN : whole->seal_take(store);
}

static void hold(bool held)
{
	__atomic_store_n(&is_held, held, __ATOMIC_RELEASE);
}

/* No thread has taken anything yet. */
static void get_hold_of_threads(struct unit *unit)
{
	static struct record_store_operations held;

	whole = unit->engine->store->operations;
	held = *whole;
	held.seal_take = seal_take;
	unit->engine->store->operations = &held;
}

static void count_served(void *context)
{
	struct pair *pair = context;

	if (++pair->tries == pair->release_at || pair->tries == MORE_THAN_ALL)
		hold(false);
}

static void count_alone(void *context)
{
	struct pair *pair = context;

	pair->tries_alone++;
}

static void create_fillers(struct unit *unit)
{
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_create(txn, FILLED, ENGINE_USER_OBJECT, 0, FILLERS, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

static void open_unit(struct unit *unit, bool has_threads)
{
	static const struct nand_geometry geometry = SMALL_FLASH(6000);
	const struct engine_options options = {
		.muninn = { .rows = ROWS, .segment_pages = SEGMENT_PAGES, .record_bytes = 256 },
		.sealing_threads = has_threads ? 2 : 0,
		.merging_thread = has_threads,
	};

	unit_open_with(unit, &geometry, &options);
	if (has_threads)
		get_hold_of_threads(unit);
	secured_open(unit, &secured_manager);
	unit_create_partition(unit, P);
	unit_create(unit, P, O);
	secured_set_keys(unit, &secured_manager);
	unit_create_partition(unit, FILLED);
	create_fillers(unit);
}

static int set_up(void **state)
{
	struct pair *pair = calloc(1, sizeof(*pair));

	assert_non_null(pair);
	hold(false);
	open_unit(&pair->alone, false);
	open_unit(&pair->served, true);
	*state = pair;
	return 0;
}

static int tear_down(void **state)
{
	struct pair *pair = *state;

	hold(false);
	unit_close(&pair->served);
	unit_close(&pair->alone);
	free(pair);
	return 0;
}

/* ---- full rows ---- */

static int write_small(struct unit *unit, uint64_t number)
{
	struct engine_address address = { .partition = FILLED, .object = ENGINE_FIRST_ID + number };
	struct engine_txn *txn;
	int result = engine_begin(unit->engine, ENGINE_WRITE, &txn);

	if (result)
		return result;
	result = engine_write(txn, address, 0, "s", 1);
	if (!result)
		return engine_commit(txn, false);
	engine_abort(txn);
	return result;
}

/* Until none of the small objects finds room for one more record. Both units hold the same then. */
static void fill_rows(struct pair *pair)
{
	unsigned missed = 0, n;

	hold(true);
	for (n = 0; missed < FILLERS && n < FILL_MAX; n++) {
		int result;

		assert_true(engine_seals_put_off(pair->served.engine));
		result = write_small(&pair->served, n % FILLERS);
		if (engine_seals_awaited(pair->served.engine)) {
			missed++;
			continue;
		}
		missed = 0;
		assert_int_equal(result, 0);
		assert_int_equal(write_small(&pair->alone, n % FILLERS), 0);
	}
	assert_true(n < FILL_MAX);
}

/* ---- the same on both ---- */

static void expect_same(struct pair *pair)
{
	const struct osd_command *served = &pair->served.command, *alone = &pair->alone.command;

	assert_int_equal(served->status, alone->status);
	assert_int_equal(served->sense_length, alone->sense_length);
	assert_memory_equal(served->sense, alone->sense, alone->sense_length);
	assert_int_equal(served->data_in_length, alone->data_in_length);
	if (alone->data_in_length > 0)
		assert_memory_equal(pair->served.data_in, pair->alone.data_in,
				    alone->data_in_length);
	assert_int_equal(served->data_out_used, alone->data_out_used);
}

/* Of the root, partition P and object O. */
static void expect_same_stats(struct engine_txn *served, struct engine_txn *alone)
{
	static const struct engine_address addresses[] = { { 0 },
							   { .partition = P },
							   { .partition = P, .object = O } };

	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		struct engine_stat one, other;

		assert_int_equal(engine_stat(served, addresses[i], &one), 0);
		assert_int_equal(engine_stat(alone, addresses[i], &other), 0);
		assert_int_equal(one.length, other.length);
		assert_int_equal(one.used_bytes, other.used_bytes);
		assert_int_equal(one.members, other.members);
		assert_int_equal(one.modified_sequence, other.modified_sequence);
		assert_memory_equal(one.times_ms, other.times_ms, sizeof(one.times_ms));
	}
}

static void expect_same_attributes(struct engine_txn *served, struct engine_txn *alone)
{
	static const struct engine_address object = { .partition = P, .object = O };
	uint8_t values[2][1024];
	uint32_t pages[2] = { 0 }, numbers[2] = { 0 }, lengths[2];
	int result;

	do {
		result = engine_attribute_next(served, object, &pages[0], &numbers[0], values[0],
					       sizeof(values[0]), &lengths[0]);
		assert_int_equal(engine_attribute_next(alone, object, &pages[1], &numbers[1],
						       values[1], sizeof(values[1]), &lengths[1]),
				 result);
		if (result != 0)
			break;
		assert_int_equal(pages[0], pages[1]);
		assert_int_equal(numbers[0]++, numbers[1]++);
		assert_int_equal(lengths[0], lengths[1]);
		assert_memory_equal(values[0], values[1], lengths[1]);
	} while (true);
	assert_int_equal(result, -ENOENT);
}

static void expect_same_data(struct engine_txn *served, struct engine_txn *alone)
{
	static const struct engine_address object = { .partition = P, .object = O };
	static uint8_t read[2][MUCH];
	uint64_t got[2];

	assert_int_equal(engine_read(served, object, 0, read[0], MUCH, &got[0]), 0);
	assert_int_equal(engine_read(alone, object, 0, read[1], MUCH, &got[1]), 0);
	assert_int_equal(got[0], got[1]);
	assert_memory_equal(read[0], read[1], got[1]);
}

static void expect_same_contents(struct pair *pair)
{
	struct engine_txn *served, *alone;

	assert_int_equal(engine_begin(pair->served.engine, ENGINE_READ, &served), 0);
	assert_int_equal(engine_begin(pair->alone.engine, ENGINE_READ, &alone), 0);
	expect_same_stats(served, alone);
	expect_same_attributes(served, alone);
	expect_same_data(served, alone);
	engine_abort(served);
	engine_abort(alone);
}

static void begin_counting(struct pair *pair, unsigned release_at)
{
	fill_rows(pair);
	pair->tries = pair->tries_alone = 0;
	pair->release_at = release_at;
	pair->served.device->step = count_served;
	pair->alone.device->step = count_alone;
	pair->served.device->step_context = pair->alone.device->step_context = pair;
}

static void end_counting(struct pair *pair)
{
	hold(false);
	pair->served.device->step = pair->alone.device->step = NULL;
	expect_same(pair);
}

/* The call's answers are the same afterwards, which the caller may look at, of either unit. */
static void run_on_full_rows(struct pair *pair, struct call *call, unsigned release_at)
{
	begin_counting(pair, release_at);
	call_run(&pair->served, call);
	call_run(&pair->alone, call);
	end_counting(pair);
}

/* The threads get at the rows when the call has begun for the second time. */
static void run_anew(struct pair *pair, struct call *call)
{
	run_on_full_rows(pair, call, 2);
	assert_int_equal(pair->tries_alone, 1);
	assert_in_range(pair->tries, 2, MORE_THAN_ALL - 1);
}

static void run_anew_well(struct pair *pair, struct call *call)
{
	run_anew(pair, call);
	expect_good(&pair->served);
	expect_same_contents(pair);
}

static void get_what_commands_change(struct call *call)
{
	call_get(call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USED_CAPACITY);
	call_get(call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH);
	call_get(call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_OBJECT_ID);
	call_get(call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_APPEND_ADDRESS);
	call_get(call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_CHANGE_IN_USED_CAPACITY);
}

static void write_to_both(struct pair *pair, const void *data, size_t length)
{
	unit_write(&pair->served, O, 0, data, length);
	unit_write(&pair->alone, O, 0, data, length);
}

static struct call data_call(uint16_t action, uint64_t object, const void *data, size_t length)
{
	struct call call = call_of(action, P, object);

	call_data(&call, data, length);
	return call;
}

/* ---- commands ---- */

static uint8_t data[24 * PAGE];

static void test_create_of_many_objects(void **state)
{
	static const uint8_t value[100] = { 1, 2, 3 };
	struct pair *pair = *state;
	struct call call = call_of(OSD_CREATE, P, 0);

	call.cdb.objects = 60;
	call.retrieved_capacity = 60 * 256;
	call_set(&call, TEST_PAGE, 1, value, sizeof(value));
	call_get(&call, TEST_PAGE, 1);
	call_get(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_OBJECT_ID);
	call_get(&call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_CHANGE_IN_USED_CAPACITY);
	run_anew_well(pair, &call);
	/* What no other try has made is there: no more objects, and no other IDs. */
	assert_int_equal(unit_get_number(&pair->served, P, 0, OSD_PARTITION_INFORMATION,
					 OSD_INFORMATION_MEMBERS),
			 61);
	for (uint64_t object = O + 1; object <= O + 60; object++)
		assert_int_equal(
			unit_get(&pair->served, P, object, TEST_PAGE, 1, data, sizeof(data)),
			sizeof(value));
}

static void test_create_and_write(void **state)
{
	struct pair *pair = *state;
	struct call call = data_call(OSD_CREATE_AND_WRITE, O + 1, data, sizeof(data));

	get_what_commands_change(&call);
	run_anew_well(pair, &call);
	assert_int_equal(unit_get_number(&pair->served, P, O + 1, OSD_USER_OBJECT_INFORMATION,
					 OSD_INFORMATION_LOGICAL_LENGTH),
			 sizeof(data));
}

static void test_append(void **state)
{
	struct pair *pair = *state;
	struct call call = data_call(OSD_APPEND, O, data, sizeof(data));

	write_to_both(pair, "before", 6);
	get_what_commands_change(&call);
	run_anew_well(pair, &call);
	assert_int_equal(get_be64(unit_retrieved(&pair->served, &call, 3).value), 6);
	assert_int_equal(unit_get_number(&pair->served, P, O, OSD_USER_OBJECT_INFORMATION,
					 OSD_INFORMATION_LOGICAL_LENGTH),
			 6 + sizeof(data));
}

static void test_write(void **state)
{
	struct pair *pair = *state;
	struct call call = data_call(OSD_WRITE, O, data, sizeof(data));

	call_set_number(&call, TEST_PAGE, 1, 42);
	get_what_commands_change(&call);
	run_anew_well(pair, &call);
}

static void test_punch(void **state)
{
	struct pair *pair = *state;
	struct call call = call_of(OSD_PUNCH, P, O);

	write_to_both(pair, data, sizeof(data));
	call.cdb.address = 100;
	call.cdb.length = 300;
	get_what_commands_change(&call);
	run_anew_well(pair, &call);
	assert_int_equal(unit_get_number(&pair->served, P, O, OSD_USER_OBJECT_INFORMATION,
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
	struct pair *pair = *state;
	struct call call = number_call(OSD_FETCH_AND_ADD, three, sizeof(three));

	for (uint64_t n = 0; n < 3; n++) {
		run_anew_well(pair, &call);
		assert_int_equal(get_be64(pair->served.data_in), 3 * n);
		assert_int_equal(get_be64(unit_retrieved(&pair->served, &call, 0).value),
				 3 * n + 3);
	}
}

static void test_compare_and_swap(void **state)
{
	static const uint8_t none_by_five[16] = { [15] = 5 };
	struct pair *pair = *state;
	struct call call = number_call(OSD_COMPARE_AND_SWAP, none_by_five, sizeof(none_by_five));

	run_anew_well(pair, &call);
	assert_int_equal(get_be64(pair->served.data_in), 0);
	assert_int_equal(unit_get_number(&pair->served, P, O, OSD_USER_OBJECT_ATOMICS,
					 OSD_ATOMICS_COMPARE_AND_SWAP),
			 5);
}

static void test_set_attributes(void **state)
{
	struct pair *pair = *state;
	struct call call = call_of(OSD_SET_ATTRIBUTES, P, O);

	call_set(&call, TEST_PAGE, 1, data, 1000);
	call_set_number(&call, TEST_PAGE, 2, 42);
	call_get(&call, TEST_PAGE, 2);
	call_get(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USED_CAPACITY);
	run_anew_well(pair, &call);
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
	struct pair *pair = *state;
	struct call call = read_and_set_call();

	write_to_both(pair, data, sizeof(data));
	run_on_full_rows(pair, &call, 3);
	assert_int_equal(pair->tries_alone, 1);
	assert_in_range(pair->tries, 3, MORE_THAN_ALL - 1);
	expect_good(&pair->served);
	assert_memory_equal(pair->served.data_in, data, sizeof(data));
	expect_same_contents(pair);
}

/* What it has read in other turns is not read again: its last turn seals itself, if it must. */
static void test_read_of_several_turns_with_sets_goes_on(void **state)
{
	struct pair *pair = *state;
	struct call call = read_and_set_call();

	write_to_both(pair, data, sizeof(data));
	pair->served.device->portions.pages = pair->alone.device->portions.pages = 8;
	run_on_full_rows(pair, &call, MORE_THAN_ALL);
	expect_good(&pair->served);
	assert_int_equal(pair->tries_alone, 3);
	assert_int_equal(pair->tries, 3);
	assert_memory_equal(pair->served.data_in, data, sizeof(data));
	expect_same_contents(pair);
}

/* ---- quotas ---- */

static void set_quota(struct pair *pair, uint32_t number, uint64_t quota)
{
	unit_set_number(&pair->served, P, 0, OSD_PARTITION_QUOTAS, number, quota);
	unit_set_number(&pair->alone, P, 0, OSD_PARTITION_QUOTAS, number, quota);
}

static void test_what_just_meets_a_capacity_is_accepted(void **state)
{
	struct pair *pair = *state;
	struct call call = data_call(OSD_WRITE, O, data, sizeof(data));

	set_quota(pair, OSD_QUOTA_CAPACITY, sizeof(data));
	run_anew_well(pair, &call);
}

static void test_what_just_exceeds_a_capacity_is_refused_and_leaves_nothing(void **state)
{
	struct pair *pair = *state;
	struct call call = data_call(OSD_WRITE, O, data, sizeof(data));
	uint64_t before;

	write_to_both(pair, "before", 6);
	set_quota(pair, OSD_QUOTA_CAPACITY, sizeof(data) - 1);
	before = contents_of(&pair->served);
	run_anew(pair, &call);
	expect_sense(&pair->served, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR);
	assert_int_equal(contents_of(&pair->served), before);
	expect_same_contents(pair);
}

/* Objects that an earlier try has made do not count. */
static void test_what_just_meets_a_count_of_objects_is_accepted(void **state)
{
	struct pair *pair = *state;
	struct call call = call_of(OSD_CREATE, P, 0);

	set_quota(pair, OSD_QUOTA_OBJECT_COUNT, 61);
	call.cdb.objects = 60;
	call_set(&call, TEST_PAGE, 1, data, 100);
	run_anew_well(pair, &call);
	call.cdb.objects = 1;
	run_on_full_rows(pair, &call, 2);
	expect_sense(&pair->served, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR);
	expect_same_contents(pair);
}

/* ---- signed commands ---- */

/* A nonce is used up by the first try, and not asked for by others. */
static void run_signed_anew(struct pair *pair, uint8_t method)
{
	struct signed_call call;
	unsigned before;

	/* Notes the bound of nonces, which takes a try more. */
	for (int n = 0; n < 2; n++) {
		call = signed_write(&pair->served, method, "noted");
		signed_run(&pair->served, &call);
		expect_good(&pair->served);
		signed_run(&pair->alone, &call);
		expect_good(&pair->alone);
	}
	call = signed_call_of(&pair->served, OSD_WRITE, P, O, method);
	call_data(&call.call, data, sizeof(data));
	get_what_commands_change(&call.call);
	begin_counting(pair, 2);
	signed_run(&pair->served, &call);
	before = pair->tries;
	signed_run(&pair->alone, &call);
	end_counting(pair);
	expect_good(&pair->served);
	assert_int_equal(pair->tries_alone, 1);
	assert_in_range(before, 2, MORE_THAN_ALL - 1);
	expect_same_contents(pair);
	signed_run(&pair->served, &call);
	expect_sense(&pair->served, SENSE_ILLEGAL_REQUEST, SENSE_NONCE_NOT_UNIQUE);
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
	static const uint8_t much[MUCH] = { 1 };
	struct pair *pair = *state;
	struct call call = data_call(OSD_WRITE, O, much, sizeof(much));

	get_what_commands_change(&call);
	run_on_full_rows(pair, &call, 2);
	expect_good(&pair->served);
	assert_int_equal(pair->tries_alone, 1);
	/* 32 tries that leave the buffers to threads, and one that does not. */
	assert_int_equal(pair->tries, 33);
	expect_same_contents(pair);
}

int main(void)
{
#define with_pair(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		with_pair(test_create_of_many_objects),
		with_pair(test_create_and_write),
		with_pair(test_append),
		with_pair(test_write),
		with_pair(test_punch),
		with_pair(test_fetch_and_add),
		with_pair(test_compare_and_swap),
		with_pair(test_set_attributes),
		with_pair(test_read_with_sets),
		with_pair(test_read_of_several_turns_with_sets_goes_on),
		with_pair(test_what_just_meets_a_capacity_is_accepted),
		with_pair(test_what_just_exceeds_a_capacity_is_refused_and_leaves_nothing),
		with_pair(test_what_just_meets_a_count_of_objects_is_accepted),
		with_pair(test_a_signed_command),
		with_pair(test_a_command_with_signed_data),
		with_pair(test_what_fills_the_buffers_alone_does_so_itself_at_last),
	};

	for (size_t n = 0; n < sizeof(data); n++)
		data[n] = (uint8_t)(n * 7 + n / 256);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
