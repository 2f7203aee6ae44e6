/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Commands on tracking collections whose partition is taken away, or taken back, between two of
 * their batches: they end there, and touch nothing of what is found later under the same IDs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "tests/osd/collection_calls.h"
#include "tests/osd/function_call.h"

/* Partitions: of the commands that are cancelled, of one that goes on, and a snapshot or clone. */
#define VICTIM  (P + 1)
#define OTHER   (P + 2)
#define DERIVED (P + 3)

/* Objects of a filled partition; more than the members of one batch. */
enum { OBJECTS = 100, BATCH = 64 };
#define LINEAR   UINT64_C(0x20000) /* new objects come behind it */
#define TRACKING UINT64_C(0x10001)
#define MATCHES  UINT64_C(0x10002)

static uint64_t objects_in(struct unit *unit, uint64_t partition)
{
	struct engine_address address = { .partition = partition };
	struct engine_stat stat;
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_READ, &txn), 0);
	assert_int_equal(engine_stat(txn, address, &stat), 0);
	engine_abort(txn);
	return stat.members - stat.collections;
}

static void make_collection(struct unit *unit, uint64_t partition, uint16_t action,
			    uint64_t collection, uint64_t source)
{
	struct call call = call_of(action, partition, collection);

	call.cdb.address = source;
	call_run(unit, &call);
	expect_good(unit);
}

/* A partition with OBJECTS objects, all of them members of LINEAR and of TRACKING. */
static void fill(struct unit *unit, uint64_t partition)
{
	struct call create = call_of(OSD_CREATE, partition, 0);

	unit_create_partition(unit, partition);
	make_collection(unit, partition, OSD_CREATE_COLLECTION, LINEAR, 0);
	create.cdb.objects = OBJECTS;
	call_set_number(&create, OSD_USER_OBJECT_COLLECTIONS, 1, LINEAR);
	call_run(unit, &create);
	expect_good(unit);
	make_collection(unit, partition, OSD_CREATE_USER_TRACKING_COLLECTION, TRACKING, LINEAR);
}

/* Commands that are answered wait behind their first batch ... */
static void hold(struct unit *unit)
{
	unit->device->background.started = true;
}

static void remove_members(struct unit *unit, uint64_t partition)
{
	struct call call = call_of(OSD_REMOVE_MEMBER_OBJECTS, partition, TRACKING);

	call.cdb.immediate_tracking = true;
	call_run(unit, &call);
	expect_good(unit);
}

/* ... and now go on, all to their ends: the thread takes them in their order. */
static void let_go(struct unit *unit)
{
	unit->device->background.started = false;
	fill(unit, OTHER);
	remove_members(unit, OTHER);
	for (int i = 0; i < 10000000 && objects_in(unit, OTHER) != 0; i++)
		sched_yield();
	assert_int_equal(objects_in(unit, OTHER), 0);
}

/* REMOVE MEMBER OBJECTS has removed its first batch of VICTIM. */
static void begin(struct unit *unit)
{
	hold(unit);
	remove_members(unit, VICTIM);
	assert_int_equal(objects_in(unit, VICTIM), OBJECTS - BATCH);
}

static void run(struct unit *unit, uint16_t action, uint64_t partition, uint64_t address)
{
	struct call call = call_of(action, partition, 0);

	call.cdb.address = address;
	call_run(unit, &call);
	expect_good(unit);
}

static void test_a_command_ends_with_its_partition(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_REMOVE_PARTITION, VICTIM, 0);

	fill(unit, VICTIM);
	begin(unit);
	call.cdb.command_options = OSD_REMOVE_CONTENTS;
	call_run(unit, &call);
	expect_good(unit);
	fill(unit, VICTIM);
	let_go(unit);
	assert_int_equal(objects_in(unit, VICTIM), OBJECTS);
}

static void test_a_command_ends_with_a_format(void **state)
{
	struct unit *unit = *state;

	fill(unit, VICTIM);
	begin(unit);
	run(unit, OSD_FORMAT_OSD, 0, 0);
	fill(unit, VICTIM);
	let_go(unit);
	assert_int_equal(objects_in(unit, VICTIM), OBJECTS);
}

static void test_a_command_ends_when_its_partition_is_restored(void **state)
{
	struct unit *unit = *state;

	fill(unit, VICTIM);
	run(unit, OSD_CREATE_SNAPSHOT, DERIVED, VICTIM);
	begin(unit);
	run(unit, OSD_RESTORE_PARTITION_FROM_SNAPSHOT, VICTIM, DERIVED);
	let_go(unit);
	assert_int_equal(objects_in(unit, VICTIM), OBJECTS);
}

static void test_a_command_ends_when_its_clone_is_refreshed(void **state)
{
	struct unit *unit = *state;

	fill(unit, DERIVED);
	run(unit, OSD_CREATE_CLONE, VICTIM, DERIVED);
	begin(unit);
	run(unit, OSD_REFRESH_SNAPSHOT_OR_CLONE, VICTIM, 0);
	let_go(unit);
	assert_int_equal(objects_in(unit, VICTIM), OBJECTS);
}

static void end_by_rollback(struct unit *unit, uint64_t partition)
{
	struct function_call call;
	uint64_t version;

	fill(unit, VICTIM);
	function_subscribe(unit);
	version = function_snapshot(unit, partition, NULL);
	begin(unit);
	function_of(&call, OSD_FUNCTION_ROLLBACK, partition, 0);
	osd_item_add_number(&call.writer, OSD_ITEM_VERSION, version);
	function_run(unit, &call);
	expect_good(unit);
	let_go(unit);
	assert_int_equal(objects_in(unit, VICTIM), OBJECTS);
}

static void test_a_command_ends_when_its_partition_is_rolled_back(void **state)
{
	end_by_rollback(*state, VICTIM);
}

static void test_a_command_ends_when_the_device_is_rolled_back(void **state)
{
	end_by_rollback(*state, 0);
}

static void test_what_fails_to_take_a_partition_away_ends_nothing(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_REMOVE_PARTITION, VICTIM, 0);

	fill(unit, VICTIM);
	begin(unit);
	call_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST,
		     SENSE_PARTITION_OR_COLLECTION_CONTAINS_USER_OBJECTS);
	/* Nor does what is done to another partition. */
	fill(unit, DERIVED);
	call = call_of(OSD_REMOVE_PARTITION, DERIVED, 0);
	call.cdb.command_options = OSD_REMOVE_CONTENTS;
	call_run(unit, &call);
	expect_good(unit);
	let_go(unit);
	assert_int_equal(objects_in(unit, VICTIM), 0);
}

static void test_a_cancelled_command_is_not_in_the_way_of_another_one(void **state)
{
	struct unit *unit = *state;
	struct call call;
	uint8_t value[2];

	fill(unit, VICTIM);
	begin(unit);
	run(unit, OSD_FORMAT_OSD, 0, 0);
	fill(unit, VICTIM);
	assert_int_equal(unit_get(unit, VICTIM, TRACKING, OSD_COLLECTION_TRACKING,
				  OSD_TRACKING_ACTIVE_COMMAND, value, 2),
			 2);
	assert_int_equal(get_be16(value), 0);
	/* It waits behind the cancelled one, whose end is not taken for its own. */
	begin(unit);
	let_go(unit);
	assert_int_equal(objects_in(unit, VICTIM), 0);
	call = call_of(OSD_REMOVE_MEMBER_OBJECTS, VICTIM, TRACKING);
	call_run(unit, &call);
	expect_good(unit);
}

/* IDs in a collection, whatever objects there are. */
static uint64_t ids_in(struct unit *unit, uint64_t partition, uint64_t collection)
{
	uint64_t ids[OBJECTS * 4];

	return unit_members(unit, partition, collection, ids, OBJECTS * 4);
}

/* QUERY with IMMED_TR: whatever has the attribute goes into MATCHES. */
static void query(struct unit *unit, uint64_t partition)
{
	static const uint8_t list[] = { 0x01, 0, 0, 0, 0, 0,    0, 12, 0, 0,
					0,    1, 0, 0, 0, 0x82, 0, 0,  0, 0 };
	struct call call = call_of(OSD_QUERY, partition, LINEAR);

	call.cdb.address = MATCHES;
	call.cdb.immediate_tracking = true;
	call_descriptor(&call, OSD_CONTINUATION_QUERY_LIST, list, sizeof(list));
	call_run(unit, &call);
	expect_good(unit);
}

static void test_a_query_ends_with_the_collection_that_it_searches(void **state)
{
	enum { MANY = 300, QUERY_BATCH = 256 };
	struct unit *unit = *state;
	struct call create = call_of(OSD_CREATE, P, 0), removal;
	uint8_t value[2];

	make_collection(unit, P, OSD_CREATE_COLLECTION, LINEAR, 0);
	create.cdb.objects = MANY;
	call_set_number(&create, OSD_USER_OBJECT_COLLECTIONS, 1, LINEAR);
	call_run(unit, &create);
	expect_good(unit);
	make_collection(unit, P, OSD_CREATE_USER_TRACKING_COLLECTION, MATCHES, 0);
	hold(unit);
	query(unit, P);
	assert_int_equal(ids_in(unit, P, MATCHES), QUERY_BATCH);
	removal = call_of(OSD_REMOVE_COLLECTION, P, LINEAR);
	removal.cdb.command_options = OSD_FORCE_COLLECTION_REMOVAL;
	call_run(unit, &removal);
	expect_good(unit);
	make_collection(unit, P, OSD_CREATE_COLLECTION, LINEAR, 0);
	create = call_of(OSD_CREATE, P, 0);
	create.cdb.objects = MANY;
	call_set_number(&create, OSD_USER_OBJECT_COLLECTIONS, 1, LINEAR);
	call_run(unit, &create);
	expect_good(unit);
	let_go(unit);
	assert_int_equal(ids_in(unit, P, MATCHES), QUERY_BATCH);
	/* Its own collection is still the one that it was, and tells of the failure. */
	assert_int_equal(unit_get(unit, P, MATCHES, OSD_COLLECTION_TRACKING,
				  OSD_TRACKING_ENDED_STATUS, value, 2),
			 2);
	assert_int_equal(get_be16(value), SCSI_STATUS_CHECK_CONDITION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_unit(test_a_command_ends_with_its_partition),
		with_unit(test_a_command_ends_with_a_format),
		with_unit(test_a_command_ends_when_its_partition_is_restored),
		with_unit(test_a_command_ends_when_its_clone_is_refreshed),
		with_unit(test_a_command_ends_when_its_partition_is_rolled_back),
		with_unit(test_a_command_ends_when_the_device_is_rolled_back),
		with_unit(test_what_fails_to_take_a_partition_away_ends_nothing),
		with_unit(test_a_cancelled_command_is_not_in_the_way_of_another_one),
		with_object(test_a_query_ends_with_the_collection_that_it_searches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
