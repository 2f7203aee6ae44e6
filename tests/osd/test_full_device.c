/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A device without room: whatever commands come, what leads out of it goes on working. A client
 * that means harm sends them on purpose, so the last tests send all of them, in any order, until
 * none has any effect.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "tests/osd/collection_calls.h"
#include "tests/osd/function_call.h"
#include "tests/repetition.h"

#define DAY_MS UINT64_C(86400000)

/* Objects and collections to remove, and another partition, whose history nobody has locked. */
#define SMALL            UINT64_C(0x40000)
#define SETS             UINT64_C(0x50000)
#define OTHER            UINT64_C(0x20000)
#define COLLECTIONS_PAGE UINT32_C(0x60010000)
#define BIG_VALUE        65534
#define FULL_BYTES       (UINT64_C(14) << 20)

enum { SMALLS = 400, COLLECTIONS = 20, VERSIONS = 20 };

static bool is_good(const struct unit *unit)
{
	return unit->command.status == SCSI_STATUS_GOOD;
}

static bool is_full(const struct unit *unit)
{
	return !is_good(unit) && unit_sense(unit).key == SENSE_DATA_PROTECT;
}

/* Writes to O until there is no room for a piece however small. */
static void fill(struct unit *unit)
{
	static const uint8_t data[65536] = { 1 };

	for (size_t bytes = sizeof(data); bytes >= 512; bytes /= 2) {
		do {
			struct call call = call_of(OSD_APPEND, P, O);

			call_data(&call, data, bytes);
			call_run(unit, &call);
		} while (is_good(unit));
		assert_true(is_full(unit));
	}
}

/* A command on a collection that also sets an attribute, as large as one can be. */
static void run_with_big_set(struct unit *unit, uint16_t action, uint64_t object, uint32_t number)
{
	static const uint8_t value[BIG_VALUE] = { 1 };
	const struct osd_cdb cdb = {
		.version = OSD_2,
		.action = action,
		.format = OSD_ATTRIBUTES_PAGE,
		.partition = P,
		.object = object,
		.set_page = COLLECTIONS_PAGE,
		.set_number = number,
		.set_data = { 0, sizeof(value) },
	};
	uint8_t bytes[OSD_CDB_BYTES_MAX];
	size_t length;

	osd_cdb_encode(&cdb, bytes, &length);
	unit_execute(unit, bytes, length, value, sizeof(value), 0);
}

static void run(struct unit *unit, uint16_t action, uint64_t partition, uint64_t object)
{
	struct call call = call_of(action, partition, object);

	call_run(unit, &call);
}

static void truncate_to(struct unit *unit, uint64_t object, uint64_t length)
{
	struct call call = call_of(OSD_SET_ATTRIBUTES, P, object);

	call_set_number(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, length);
	call_run(unit, &call);
}

static void run_function(struct unit *unit, enum osd_function function, uint64_t partition,
			 uint64_t object, uint16_t tag, uint64_t value)
{
	struct function_call call;

	function_of(&call, function, partition, object);
	osd_item_add_number(&call.writer, tag, value);
	function_run(unit, &call);
}

/* Sets a policy as a client does. */
static void set_policy(struct unit *unit, uint64_t partition, enum osd_retention kind,
		       uint64_t keep_all_ms, uint64_t lock_until_ms)
{
	struct function_call call;

	function_of(&call, OSD_FUNCTION_SET_RETENTION, partition, 0);
	osd_item_add_number(&call.writer, OSD_ITEM_KIND, kind);
	osd_item_add_number(&call.writer, OSD_ITEM_KEEP_ALL, keep_all_ms);
	osd_item_add_number(&call.writer, OSD_ITEM_LOCK_UNTIL, lock_until_ms);
	function_run(unit, &call);
}

/*
 * What the administrator does on the host: ends the lock of P, and keeps nothing more of its past.
 */
static void unlock(struct unit *unit)
{
	const struct engine_retention nothing = { .kind = ENGINE_RETAIN_NONE };
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_RESCUE, &txn), 0);
	assert_int_equal(engine_retention_set(txn, P, &nothing, true), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

static void merge(struct unit *unit)
{
	struct engine_merge_result total = { 0 };

	for (int step = 0; step < 200; step++)
		engine_merge(unit->engine, &total);
}

/* ---- sets of commands that are for removing ---- */

static void test_what_a_removing_command_sets_is_not_kept_in_the_room_for_removing(void **state)
{
	struct unit *unit = *state;

	function_subscribe(unit);
	set_policy(unit, P, OSD_RETAIN_ALL, 0, 0);
	expect_good(unit);
	for (uint64_t i = 0; i < COLLECTIONS; i++) {
		run(unit, OSD_CREATE_COLLECTION, P, SETS + i);
		expect_good(unit);
	}
	fill(unit);
	for (uint32_t i = 0; i < COLLECTIONS * 12; i++) {
		run_with_big_set(unit, OSD_REMOVE_MEMBER_OBJECTS, SETS + i % COLLECTIONS, 1 + i);
		assert_true(is_full(unit));
	}
	for (uint64_t i = 0; i < COLLECTIONS; i++) {
		run(unit, OSD_REMOVE_MEMBER_OBJECTS, P, SETS + i);
		expect_good(unit);
		run(unit, OSD_REMOVE_COLLECTION, P, SETS + i);
		expect_good(unit);
	}
	truncate_to(unit, O, 0);
	expect_good(unit);
}

static void test_going_back_with_a_single_object_takes_no_room_from_removing(void **state)
{
	static const uint8_t data[65536] = { 2 };
	struct unit *unit = *state;
	uint64_t good;

	function_subscribe(unit);
	set_policy(unit, P, OSD_RETAIN_ALL, 0, 0);
	expect_good(unit);
	unit_create(unit, P, SMALL);
	for (uint64_t at = 0; at < 16; at++)
		unit_write(unit, SMALL, at * sizeof(data), data, sizeof(data));
	unit->now_ms += 5000;
	good = unit->now_ms;
	unit->now_ms += 5000;
	truncate_to(unit, SMALL, 0);
	expect_good(unit);
	fill(unit);
	/*
	 * A large one takes a few records each time: again and again, until there is no room for
	 * those.
	 */
	for (uint32_t tries = 0; tries < 20000 && (tries == 0 || !is_full(unit)); tries++) {
		if (tries % 2)
			run_function(unit, OSD_FUNCTION_UNDO, P, SMALL, OSD_ITEM_MODIFICATIONS, 1);
		else
			run_function(unit, OSD_FUNCTION_ROLLBACK, P, SMALL, OSD_ITEM_TIME, good);
	}
	assert_true(is_full(unit));
	run(unit, OSD_REMOVE, P, SMALL);
	expect_good(unit);
}

/* ---- whatever commands come ---- */

/*
 * A device of which P has something precious at `good`, from when on it is locked, and much that
 * can be removed.
 */
static void prepare(struct unit *unit, uint64_t *good)
{
	unit_open(unit, FULL_BYTES);
	function_subscribe(unit);
	unit_create_partition(unit, P);
	unit_create_partition(unit, OTHER);
	unit_create(unit, P, O);
	unit_create(unit, OTHER, O);
	for (uint64_t i = 0; i < SMALLS; i++)
		unit_create(unit, P, SMALL + i);
	for (uint64_t i = 0; i < COLLECTIONS; i++) {
		run(unit, OSD_CREATE_COLLECTION, P, SETS + i);
		expect_good(unit);
	}
	for (uint32_t i = 0; i < VERSIONS; i++) {
		struct function_call call;

		function_of(&call, OSD_FUNCTION_SNAPSHOT, i % 2 ? P : OTHER, 0);
		function_run(unit, &call);
		expect_good(unit);
	}
	unit_write(unit, O, 0, "precious", 8);
	unit->now_ms += 5000;
	*good = unit->now_ms;
	unit->now_ms += 5000;
	set_policy(unit, P, OSD_RETAIN_SNAPSHOTS, 7 * DAY_MS, unit->now_ms + 30 * DAY_MS);
	expect_good(unit);
}

static void assert_precious(struct unit *unit)
{
	struct call call = call_of(OSD_READ, P, O);

	call.cdb.length = call.data_in_capacity = 8;
	call_run(unit, &call);
	expect_good(unit);
	assert_memory_equal(unit->data_in, "precious", 8);
}

static void expect_the_way_out(struct unit *unit, uint64_t good)
{
	static const uint8_t data[65536] = { 3 };
	const uint64_t later = UNIT_CLOCK + 300 * DAY_MS;

	/* A longer lock, going back, and both again. */
	set_policy(unit, P, OSD_RETAIN_SNAPSHOTS, 200 * DAY_MS, later);
	expect_good(unit);
	run_function(unit, OSD_FUNCTION_ROLLBACK, P, 0, OSD_ITEM_TIME, good);
	expect_good(unit);
	assert_precious(unit);
	unit->now_ms += 1000;
	run_function(unit, OSD_FUNCTION_ROLLBACK, P, 0, OSD_ITEM_TIME, good);
	expect_good(unit);
	/* The administrator gives the past up: then there is room again. */
	unlock(unit);
	for (uint64_t version = 1; version <= VERSIONS; version++)
		for (uint64_t partition = OTHER; partition; partition = partition == P ? 0 : P) {
			run_function(unit, OSD_FUNCTION_DROP, partition, 0, OSD_ITEM_VERSION,
				     version);
			assert_false(is_full(unit));
		}
	merge(unit);
	for (uint64_t at = 1; at <= 32; at++) {
		struct call call = call_of(OSD_WRITE, P, O);

		call.cdb.address = at * sizeof(data);
		call_data(&call, data, sizeof(data));
		call_run(unit, &call);
		expect_good(unit);
	}
	assert_precious(unit);
}

enum { REFUSED_IN_A_ROW = 50 };

static void test_truncating_until_nothing_can_be_removed_leaves_the_way_out(void **state)
{
	struct unit unit;
	uint64_t good, refused = 0;

	(void)state;
	prepare(&unit, &good);
	fill(&unit);
	/* Merging looks at some segments for each; until it has seen all one more may have room. */
	for (uint64_t i = 0; refused < REFUSED_IN_A_ROW; i++) {
		assert_true(i < 100000);
		truncate_to(&unit, SMALL + i % SMALLS, i / SMALLS % 2 ? 5 : 100000);
		unit.now_ms += 1000;
		refused = is_full(&unit) ? refused + 1 : 0;
	}
	run(&unit, OSD_REMOVE, P, SMALL);
	assert_true(is_full(&unit));
	expect_the_way_out(&unit, good);
	unit_close(&unit);
}

/* ---- one of all commands ---- */

struct play {
	struct unit *unit;
	uint64_t random;
	uint64_t good;
};

static uint32_t below(struct play *play, uint32_t limit)
{
	play->random = play->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(play->random >> 33) % limit;
}

static uint64_t any_small(struct play *play)
{
	return SMALL + below(play, SMALLS);
}

static void play_data(struct play *play)
{
	static const uint16_t actions[] = { OSD_WRITE, OSD_APPEND, OSD_PUNCH, OSD_CLEAR };
	static const uint8_t data[5000] = { 4 };
	uint16_t action = actions[below(play, 4)];
	struct call call = call_of(action, P, below(play, 2) ? O : any_small(play));

	call.cdb.length = 1 + below(play, sizeof(data));
	if (action == OSD_WRITE || action == OSD_APPEND)
		call_data(&call, data, call.cdb.length);
	if (action != OSD_APPEND)
		call.cdb.address = below(play, 100000);
	call_run(play->unit, &call);
}

static void play_objects(struct play *play)
{
	struct unit *unit = play->unit;
	uint64_t collection = SETS + below(play, COLLECTIONS);
	struct call call;

	switch (below(play, 7)) {
	case 0:
		truncate_to(unit, any_small(play), below(play, 100000));
		return;
	case 1:
		run(unit, OSD_REMOVE, P, any_small(play));
		return;
	case 2:
		run(unit, OSD_CREATE, P, any_small(play));
		return;
	case 3:
		call = call_of(OSD_SET_ATTRIBUTES, P, any_small(play));
		call_set(&call, TEST_PAGE, 1, "value", below(play, 2) ? 0 : 5);
		call_run(unit, &call);
		return;
	case 4:
		run_with_big_set(unit,
				 below(play, 2) ? OSD_REMOVE_MEMBER_OBJECTS : OSD_REMOVE_COLLECTION,
				 collection, 1 + below(play, 12));
		return;
	case 5:
		run(unit, OSD_REMOVE_MEMBER_OBJECTS, P, collection);
		return;
	default:
		run(unit, below(play, 2) ? OSD_REMOVE_COLLECTION : OSD_CREATE_COLLECTION, P,
		    collection);
	}
}

static void play_partitions(struct play *play)
{
	struct unit *unit = play->unit;
	uint64_t clone = OTHER + 1 + below(play, 4);
	struct call call;

	switch (below(play, 6)) {
	case 0:
		run(unit, OSD_CREATE_PARTITION, clone, 0);
		return;
	case 1:
		call = call_of(OSD_REMOVE_PARTITION, clone, 0);
		call.cdb.command_options = OSD_REMOVE_CONTENTS;
		break;
	case 2:
		call = call_of(OSD_CREATE_SNAPSHOT, clone, 0);
		call.cdb.address = below(play, 2) ? P : OTHER;
		break;
	case 3:
		call = call_of(OSD_CREATE_CLONE, clone, 0);
		call.cdb.address = P;
		break;
	case 4:
		call = call_of(OSD_REFRESH_SNAPSHOT_OR_CLONE, clone, 0);
		break;
	default:
		call = call_of(OSD_RESTORE_PARTITION_FROM_SNAPSHOT, OTHER, 0);
		call.cdb.address = clone;
	}
	call_run(unit, &call);
}

static void play_history(struct play *play)
{
	struct unit *unit = play->unit;
	uint64_t ago = 1 + below(play, 3600);

	switch (below(play, 8)) {
	case 0:
		run_function(unit, OSD_FUNCTION_ROLLBACK, OTHER, 0, OSD_ITEM_TIME,
			     unit->now_ms - ago * 1000);
		return;
	case 1:
		run_function(unit, OSD_FUNCTION_ROLLBACK, below(play, 4) ? OTHER : P, 0,
			     OSD_ITEM_VERSION, 1 + below(play, VERSIONS));
		return;
	case 2:
		run_function(unit, OSD_FUNCTION_ROLLBACK, P, below(play, 2) ? any_small(play) : O,
			     OSD_ITEM_TIME, unit->now_ms - ago * 1000);
		return;
	case 3:
		set_policy(unit, OTHER, (enum osd_retention)below(play, 3), below(play, 2) * DAY_MS,
			   0);
		return;
	case 4:
		set_policy(unit, P, OSD_RETAIN_SNAPSHOTS, 7 * DAY_MS + below(play, 1000),
			   UNIT_CLOCK + 31 * DAY_MS + below(play, 1000));
		return;
	case 5:
		run_function(unit, OSD_FUNCTION_DROP, below(play, 2) ? OTHER : P, 0,
			     OSD_ITEM_VERSION, 1 + below(play, VERSIONS));
		return;
	case 6:
		run_function(unit, OSD_FUNCTION_SNAPSHOT, below(play, 3) ? OTHER : 0, 0,
			     OSD_ITEM_NAME, below(play, 1000));
		return;
	default:
		run_function(unit, OSD_FUNCTION_UNDO, P, any_small(play), OSD_ITEM_MODIFICATIONS,
			     1);
	}
}

/*
 * Whichever of all there are; with some of them again and again, so that they use up what they can.
 */
static void play_one(struct play *play)
{
	static void (*const kinds[])(struct play *) = { play_data, play_objects, play_objects,
							play_partitions, play_history };
	uint64_t before = play->random;
	uint32_t kind = below(play, 5), times = below(play, 8) ? 1 : 50;

	play->unit->now_ms += below(play, 3) ? 0 : below(play, 3000);
	if (times > 1)
		before = play->random;
	for (; times > 0; times--) {
		if (times > 1)
			play->random = before;
		kinds[kind](play);
	}
	if (below(play, 200) == 0)
		engine_merge(play->unit->engine, &(struct engine_merge_result){ 0 });
}

static void play_and_find_the_way_out(uint64_t seed)
{
	struct unit unit;
	struct play play = { .unit = &unit, .random = seed };
	uint64_t refused = 0, steps = rounds(1500);

	prepare(&unit, &play.good);
	fill(&unit);
	for (uint64_t step = 0; step < steps; step++) {
		play_one(&play);
		refused += is_full(&unit);
	}
	assert_true(refused > steps / 5);
	expect_the_way_out(&unit, play.good);
	unit_close(&unit);
}

static void test_whatever_commands_come_the_way_out_stays(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 2; seed++)
		play_and_find_the_way_out(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object(test_what_a_removing_command_sets_is_not_kept_in_the_room_for_removing),
		with_object(test_going_back_with_a_single_object_takes_no_room_from_removing),
		cmocka_unit_test(test_truncating_until_nothing_can_be_removed_leaves_the_way_out),
		cmocka_unit_test(test_whatever_commands_come_the_way_out_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
