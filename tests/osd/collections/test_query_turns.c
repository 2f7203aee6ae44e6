/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * QUERY of a collection so large that others get their turn in between: what it answers is that of
 * one moment all the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "engine/history/past.h"
#include "engine/objects/objects.h"
#include "osd/execute.h"
#include "tests/osd/unit.h"

/* Members of collection LINEAR, from FIRST on. A search takes several turns of AT_ONCE. */
enum { MANY = 750, AT_ONCE = 32, HEAD = 12, ROUNDS = 30 };
#define LINEAR UINT64_C(0x20000)
#define FIRST  UINT64_C(0x20001)
#define PAGE   0x10000u

static int set_up(void **state)
{
	struct unit *unit;
	struct call call = call_of(OSD_CREATE_COLLECTION, P, LINEAR);

	unit_set_up(state);
	unit = *state;
	unit->device->portions.candidates = AT_ONCE;
	assert_true(MANY > 2 * AT_ONCE * unit->device->portions.turn);
	unit_create_partition(unit, P);
	call_run(unit, &call);
	expect_good(unit);
	call = call_of(OSD_CREATE, P, 0);
	call.cdb.objects = MANY;
	call_set_number(&call, OSD_USER_OBJECT_COLLECTIONS, 1, LINEAR);
	call_run(unit, &call);
	expect_good(unit);
	return 0;
}

/* Members that have an attribute at all; at most `room` of them are answered. */
static void query(struct unit *unit, uint32_t page, uint32_t number, size_t room)
{
	struct call call = call_of(OSD_QUERY, P, LINEAR);
	uint8_t list[20] = { 0x01, 0, 0, 0, 0, 0, 0, 12 };

	put_be32(list + 8, page);
	put_be32(list + 12, number);
	call_descriptor(&call, OSD_CONTINUATION_QUERY_LIST, list, sizeof(list));
	call.cdb.length = call.data_in_capacity = HEAD + 8 * room;
	call_run(unit, &call);
	expect_good(unit);
}

/* Matches, whether they had room or not. */
static uint64_t found(const struct unit *unit)
{
	return (get_be64(unit->data_in) - 4) / 8;
}

/* The answer is FIRST … without a gap. */
static void assert_no_gap(const struct unit *unit)
{
	for (size_t i = 0; HEAD + 8 * (i + 1) <= unit->command.data_in_length; i++)
		assert_int_equal(get_be64(unit->data_in + HEAD + 8 * i), FIRST + i);
}

static void test_all_turns_together_find_every_member_once(void **state)
{
	struct unit *unit = *state;

	query(unit, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, MANY);
	assert_int_equal(found(unit), MANY);
	assert_int_equal(unit->command.data_in_length, HEAD + 8 * MANY);
	assert_no_gap(unit);
	/* Also those without room are counted. */
	query(unit, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, 3);
	assert_int_equal(found(unit), MANY);
	assert_int_equal(unit->command.data_in_length, HEAD + 8 * 3);
	query(unit, PAGE, 1, MANY);
	assert_int_equal(found(unit), 0);
}

static void test_what_history_does_not_show_is_found_in_one_turn(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_QUERY, P, LINEAR);
	uint8_t list[36] = { 0x01, 0, 0, 0, 0, 0, 0, 28 };

	/* PARTITION_ID is P for all, not the number of a moment of it. */
	put_be32(list + 8, OSD_USER_OBJECT_INFORMATION);
	put_be32(list + 12, OSD_INFORMATION_PARTITION_ID);
	put_be16(list + 16, 8);
	put_be64(list + 18, P);
	put_be16(list + 26, 8);
	put_be64(list + 28, P);
	call_descriptor(&call, OSD_CONTINUATION_QUERY_LIST, list, sizeof(list));
	call.cdb.length = call.data_in_capacity = HEAD + 8 * MANY;
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(found(unit), MANY);
	query(unit, OSD_USER_OBJECT_TIMESTAMPS, OSD_TIME_ATTRIBUTES_ACCESSED, MANY);
	assert_int_equal(found(unit), MANY);
}

struct writer {
	struct unit *unit;
	bool failed;
	uint64_t written;
	bool stop; /* atomic */
};

/*
 * Gives the members their attribute, one of the first half, one of the second, and so on: at any
 * moment as many of both have it, or one more of the first.
 */
static void *set_one_by_one(void *context)
{
	struct writer *writer = context;

	for (uint64_t i = 0; i < MANY && !__atomic_load_n(&writer->stop, __ATOMIC_ACQUIRE); i++) {
		struct osd_cdb cdb = { .version = OSD_2,
				       .action = OSD_SET_ATTRIBUTES,
				       .format = OSD_ATTRIBUTES_CDB,
				       .partition = P,
				       .object = FIRST + i / 2 + i % 2 * (MANY / 2),
				       .set_page = PAGE,
				       .set_number = 1,
				       .set_length = 1 };
		uint8_t bytes[OSD_CDB_BYTES_MAX];
		struct osd_command command = { .cdb = bytes };

		cdb.set_value[0] = 1;
		osd_cdb_encode(&cdb, bytes, &command.cdb_length);
		osd_execute(writer->unit->device, &command);
		writer->failed |= command.status != SCSI_STATUS_GOOD;
		writer->written++;
	}
	return NULL;
}

/* The answer is of one moment of that. */
static void assert_one_moment(const struct unit *unit)
{
	uint64_t all = found(unit), second = all / 2, first = all - second;

	for (uint64_t i = 0; i < all; i++) {
		uint64_t id = get_be64(unit->data_in + HEAD + 8 * i);

		assert_int_equal(id, i < first ? FIRST + i : FIRST + MANY / 2 + i - first);
	}
}

static void query_beside_a_writer(struct unit *unit)
{
	struct writer writer = { .unit = unit };
	pthread_t thread;
	uint64_t before = 0;

	assert_int_equal(pthread_create(&thread, NULL, set_one_by_one, &writer), 0);
	for (int round = 0; round < ROUNDS; round++) {
		query(unit, PAGE, 1, MANY);
		assert_one_moment(unit);
		assert_true(found(unit) >= before);
		before = found(unit);
	}
	__atomic_store_n(&writer.stop, true, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(writer.failed);
	query(unit, PAGE, 1, MANY);
	assert_one_moment(unit);
	assert_int_equal(found(unit), writer.written);
}

static void test_matches_are_those_of_one_moment_beside_a_writer(void **state)
{
	query_beside_a_writer(*state);
}

static void test_matches_are_those_of_one_moment_where_no_history_is_kept(void **state)
{
	struct unit *unit = *state;
	const struct engine_retention none = { .kind = ENGINE_RETAIN_NONE };
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_retention_set(txn, P, &none, false), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	query_beside_a_writer(unit);
}

static unsigned views_in_use(const struct unit *unit)
{
	unsigned count = 0;

	for (uint32_t i = 0; i < ENGINE_VIEWS; i++)
		count += unit->engine->past->views[i].bound != 0;
	return count;
}

/* Numbers of moments are few: who has been told one may come back to it, and a QUERY does not. */
static void test_the_moment_of_a_query_takes_no_number_behind_its_end(void **state)
{
	struct unit *unit = *state;
	const struct engine_moment now = { .kind = ENGINE_NOW };
	struct engine_txn *txn;
	uint32_t version, first = unit->engine->past->views_next;
	uint64_t bound;

	query(unit, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, MANY);
	assert_int_equal(views_in_use(unit), 0);
	assert_int_not_equal(unit->engine->past->views_next, first); /* it had one */
	assert_int_equal(engine_begin(unit->engine, ENGINE_READ, &txn), 0);
	assert_int_equal(engine_view_open(txn, P, now, &version), 0);
	engine_abort(txn);
	/* The same moment, which stays. */
	query(unit, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, MANY);
	assert_int_equal(found(unit), MANY);
	assert_int_equal(views_in_use(unit), 1);
	assert_int_equal(engine_begin(unit->engine, ENGINE_READ, &txn), 0);
	assert_int_equal(engine_moment_resolve(txn, P,
					       (struct engine_moment){ ENGINE_AT_VERSION, version },
					       &bound),
			 0);
	engine_abort(txn);
}

#define with_many(test)                                   \
	{                                                 \
#test, test, set_up, unit_tear_down, NULL \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_many(test_all_turns_together_find_every_member_once),
		with_many(test_what_history_does_not_show_is_found_in_one_turn),
		with_many(test_matches_are_those_of_one_moment_beside_a_writer),
		with_many(test_matches_are_those_of_one_moment_where_no_history_is_kept),
		with_many(test_the_moment_of_a_query_takes_no_number_behind_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
