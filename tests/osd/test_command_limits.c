/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Where commands end for want of something that is limited: IDs, partitions, what quotas allow; or
 * for a locked history.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "tests/osd/collection_calls.h"

#define FIRST_ID UINT64_C(0x10000)

static void run(struct unit *unit, uint16_t action, uint64_t partition, uint64_t object)
{
	struct call call = call_of(action, partition, object);

	call_run(unit, &call);
}

static void add_source(struct call *call, uint64_t object)
{
	struct osd_copy_source source = { P, object, false, false, 0 };
	uint8_t content[OSD_COPY_SOURCE_BYTES];

	osd_copy_source_encode(&source, content);
	call_descriptor(call, OSD_CONTINUATION_COPY_SOURCE, content, sizeof(content));
}

/* ---- IDs ---- */

/* Takes the IDs around which the unit looks for a gap, and the last one. */
static void take_ids(struct unit *unit, uint16_t action, uint64_t last)
{
	for (unsigned bit = 0; bit < 64; bit++) {
		uint64_t distance = (UINT64_C(1) << bit) - 1;

		if (distance > last - FIRST_ID)
			break;
		for (uint64_t below = 0; below <= 1 && below <= distance; below++) {
			uint64_t id = FIRST_ID + distance - below;

			run(unit, action, action == OSD_CREATE ? P : id,
			    action == OSD_CREATE ? id : 0);
		}
	}
	run(unit, action, action == OSD_CREATE ? P : last, action == OSD_CREATE ? last : 0);
	expect_good(unit);
}

static void test_creating_ends_where_no_object_id_is_free(void **state)
{
	struct unit *unit = *state;
	struct call call;

	take_ids(unit, OSD_CREATE, UINT64_MAX);
	run(unit, OSD_CREATE, P, 0);
	shows_sense(unit, CREATE, "no ID is free where the unit looks", ILLEGAL_REQUEST,
		    SYSTEM_RESOURCE_FAILURE);
	call = call_of(OSD_CREATE_AND_WRITE, P, 0);
	call_data(&call, "x", 1);
	call_run(unit, &call);
	shows_sense(unit, CREATE_AND_WRITE, "no ID is free where the unit looks", ILLEGAL_REQUEST,
		    SYSTEM_RESOURCE_FAILURE);
	run(unit, OSD_CREATE_COLLECTION, P, 0);
	shows_sense(unit, CREATE_COLLECTION, "no ID is free where the unit looks", ILLEGAL_REQUEST,
		    SYSTEM_RESOURCE_FAILURE);
}

static void test_creating_of_osd2_ends_where_no_object_id_is_free(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_COPY_USER_OBJECTS, P, 0);

	take_ids(unit, OSD_CREATE, UINT64_MAX);
	run(unit, OSD_CREATE_USER_TRACKING_COLLECTION, P, 0);
	shows_sense(unit, CREATE_USER_TRACKING_COLLECTION, "no ID is free where the unit looks",
		    ILLEGAL_REQUEST, SYSTEM_RESOURCE_FAILURE);
	add_source(&call, O);
	call_run(unit, &call);
	shows_sense(unit, COPY_USER_OBJECTS, "no ID is free where the unit looks", ILLEGAL_REQUEST,
		    SYSTEM_RESOURCE_FAILURE);
}

static void duplicate(struct unit *unit, uint16_t action, uint64_t id, uint64_t source)
{
	struct call call = call_of(action, id, 0);

	call.cdb.address = source;
	call_run(unit, &call);
}

static void test_create_partition_ends_where_no_id_is_free(void **state)
{
	struct unit *unit = *state;

	take_ids(unit, OSD_CREATE_PARTITION, ENGINE_LAST_PARTITION_ID);
	run(unit, OSD_CREATE_PARTITION, 0, 0);
	shows_sense(unit, CREATE_PARTITION, "no ID is free where the unit looks", ILLEGAL_REQUEST,
		    SYSTEM_RESOURCE_FAILURE);
}

static void test_duplicating_ends_where_no_partition_id_is_free(void **state)
{
	struct unit *unit = *state;

	take_ids(unit, OSD_CREATE_PARTITION, ENGINE_LAST_PARTITION_ID);
	duplicate(unit, OSD_CREATE_CLONE, 0, P);
	shows_sense(unit, CREATE_CLONE, "no ID is free where the unit looks", ILLEGAL_REQUEST,
		    SYSTEM_RESOURCE_FAILURE);
	duplicate(unit, OSD_CREATE_SNAPSHOT, 0, P);
	shows_sense(unit, CREATE_SNAPSHOT, "no ID is free where the unit looks", ILLEGAL_REQUEST,
		    SYSTEM_RESOURCE_FAILURE);
}

static void test_duplicates_take_ids_that_partitions_can_have(void **state)
{
	struct unit *unit = *state;

	duplicate(unit, OSD_CREATE_CLONE, 0xFFFF, P);
	shows_field(unit, CREATE_CLONE, "an ID from 1 to FFFF", 16);
	duplicate(unit, OSD_CREATE_CLONE, ENGINE_LAST_PARTITION_ID + 1, P);
	shows_field(unit, CREATE_CLONE, "an ID above 2^48 - 1", 16);
	duplicate(unit, OSD_CREATE_SNAPSHOT, 0xFFFF, P);
	shows_field(unit, CREATE_SNAPSHOT, "an ID from 1 to FFFF", 16);
	duplicate(unit, OSD_CREATE_SNAPSHOT, ENGINE_LAST_PARTITION_ID + 1, P);
	shows_field(unit, CREATE_SNAPSHOT, "an ID above 2^48 - 1", 16);
}

/* ---- partitions ---- */

static void test_duplicates_keep_to_the_partition_count(void **state)
{
	struct unit *unit = *state;

	unit_set_number(unit, 0, 0, OSD_ROOT_QUOTAS, OSD_QUOTA_PARTITION_COUNT, 1);
	duplicate(unit, OSD_CREATE_CLONE, P + 1, P);
	shows_sense(unit, CREATE_CLONE, "more partitions than the root may have", DATA_PROTECT,
		    QUOTA_ERROR);
	duplicate(unit, OSD_CREATE_SNAPSHOT, P + 1, P);
	shows_sense(unit, CREATE_SNAPSHOT, "more partitions than the root may have", DATA_PROTECT,
		    QUOTA_ERROR);
	unit_set_number(unit, 0, 0, OSD_ROOT_QUOTAS, OSD_QUOTA_PARTITION_COUNT, 2);
	duplicate(unit, OSD_CREATE_SNAPSHOT, P + 1, P);
	expect_good(unit);
}

/* The engine numbers them with 16 bits; several in one transaction, for the test's sake. */
static void fill_with_partitions(struct unit *unit)
{
	uint32_t count = 1; /* P */

	while (count < ENGINE_PARTITIONS_MAX) {
		struct engine_txn *txn;

		assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
		for (int i = 0; i < 512 && count < ENGINE_PARTITIONS_MAX; i++, count++)
			assert_int_equal(engine_partition_create(txn, 0, NULL), 0);
		assert_int_equal(engine_commit(txn, false), 0);
	}
}

static void keep_nothing(struct unit *unit)
{
	const struct engine_retention none = { .kind = ENGINE_RETAIN_NONE };
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_retention_set(txn, 0, &none, false), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

static void test_there_are_65534_partitions_at_most(void **state)
{
	struct unit large, *unit = &large; /* than that of the other tests */

	(void)state;
	unit_open(unit, 512 << 20);
	unit_create_partition(unit, P);
	fill_with_partitions(unit);
	run(unit, OSD_CREATE_PARTITION, 0, 0);
	shows_sense(unit, CREATE_PARTITION, "65,534 partitions are there", ILLEGAL_REQUEST,
		    SYSTEM_RESOURCE_FAILURE);
	duplicate(unit, OSD_CREATE_CLONE, 0, P);
	shows_sense(unit, CREATE_CLONE, "65,534 partitions are there", ILLEGAL_REQUEST,
		    SYSTEM_RESOURCE_FAILURE);
	duplicate(unit, OSD_CREATE_SNAPSHOT, 0, P);
	shows_sense(unit, CREATE_SNAPSHOT, "65,534 partitions are there", ILLEGAL_REQUEST,
		    SYSTEM_RESOURCE_FAILURE);
	/* One that history still shows is there in that sense, until nothing shows it any more. */
	run(unit, OSD_REMOVE_PARTITION, P + 1, 0);
	expect_good(unit);
	duplicate(unit, OSD_CREATE_SNAPSHOT, 0, P);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_SYSTEM_RESOURCE_FAILURE);
	keep_nothing(unit);
	duplicate(unit, OSD_CREATE_SNAPSHOT, 0, P);
	duplicate(unit, OSD_CREATE_SNAPSHOT, 0, P);
	expect_good(unit);
	unit_close(unit);
}

static void expect_depth(struct unit *unit, uint64_t partition, uint64_t depth)
{
	uint8_t value[4];
	uint32_t length = unit_get(unit, partition, 0, OSD_MUNINN_PARTITION, OSD_MUNINN_CLONE_DEPTH,
				   value, sizeof(value));

	/* Of what is no clone there is none. */
	assert_int_equal(length, depth ? 4 : 0);
	if (depth)
		assert_int_equal(get_be32(value), depth);
}

static void test_duplicates_of_duplicates_are_16_deep_at_most(void **state)
{
	struct unit *unit = *state;

	for (uint64_t depth = 0; depth < ENGINE_CLONE_DEPTH_MAX; depth++) {
		expect_depth(unit, P + depth, depth);
		duplicate(unit, OSD_CREATE_CLONE, P + 1 + depth, P + depth);
		expect_good(unit);
	}
	assert_int_equal(unit_get_number(unit, P + ENGINE_CLONE_DEPTH_MAX, 0,
					 OSD_PARTITION_INFORMATION, OSD_INFORMATION_MEMBERS),
			 1);
	duplicate(unit, OSD_CREATE_CLONE, P + 100, P + ENGINE_CLONE_DEPTH_MAX);
	shows_resource(unit, CREATE_CLONE, "of a clone of a clone ... 17 deep", 40);
	duplicate(unit, OSD_CREATE_SNAPSHOT, P + 100, P + ENGINE_CLONE_DEPTH_MAX);
	shows_resource(unit, CREATE_SNAPSHOT, "of a clone of a clone ... 17 deep", 40);
	/*
	 * A detached one reads on where it did, also when nothing is left of the partitions behind
	 * it.
	 */
	run(unit, OSD_DETACH_CLONE, P + ENGINE_CLONE_DEPTH_MAX, 0);
	expect_good(unit);
	for (uint64_t depth = 0; depth < ENGINE_CLONE_DEPTH_MAX; depth++) {
		struct call removal = call_of(OSD_REMOVE_PARTITION, P + depth, 0);

		removal.cdb.command_options = OSD_REMOVE_CONTENTS;
		call_run(unit, &removal);
		expect_good(unit);
	}
	expect_depth(unit, P + ENGINE_CLONE_DEPTH_MAX, ENGINE_CLONE_DEPTH_MAX);
	duplicate(unit, OSD_CREATE_CLONE, P + 100, P + ENGINE_CLONE_DEPTH_MAX);
	shows_resource(unit, CREATE_CLONE, "of a clone of a clone ... 17 deep, detached", 40);
}

static void test_the_root_and_missing_versions_are_not_duplicated(void **state)
{
	struct unit *unit = *state;

	duplicate(unit, OSD_CREATE_CLONE, P + 1, 0);
	shows_field(unit, CREATE_CLONE, "the source is the root", 40);
	duplicate(unit, OSD_CREATE_CLONE, P + 1, UINT64_C(0x77) << 48 | P);
	shows_field(unit, CREATE_CLONE, "the source has no such version", 40);
	duplicate(unit, OSD_CREATE_SNAPSHOT, P + 1, 0);
	shows_field(unit, CREATE_SNAPSHOT, "the source is the root", 40);
	duplicate(unit, OSD_CREATE_SNAPSHOT, P + 1, UINT64_C(0x77) << 48 | P);
	shows_field(unit, CREATE_SNAPSHOT, "the source has no such version", 40);
}

static void test_what_has_lost_its_source_is_not_refreshed(void **state)
{
	struct unit *unit = *state;
	struct call removal = call_of(OSD_REMOVE_PARTITION, P, 0);

	duplicate(unit, OSD_CREATE_CLONE, P + 1, P);
	duplicate(unit, OSD_CREATE_SNAPSHOT, P + 2, P);
	removal.cdb.command_options = OSD_REMOVE_CONTENTS;
	call_run(unit, &removal);
	expect_good(unit);
	for (uint64_t id = P + 1; id <= P + 2; id++) {
		run(unit, OSD_REFRESH_SNAPSHOT_OR_CLONE, id, 0);
		shows_field(unit, REFRESH_SNAPSHOT_OR_CLONE, "its source is gone", 16);
		assert_int_equal(unit_get_number(unit, id, 0, OSD_PARTITION_INFORMATION,
						 OSD_INFORMATION_MEMBERS),
				 1);
	}
}

/* ---- a locked history ---- */

static void lock_history(struct unit *unit, uint64_t partition)
{
	struct engine_retention retention = { .kind = ENGINE_RETAIN_ALL,
					      .locked_until_ms = unit->now_ms + 1000 };
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_FREE, &txn), 0);
	assert_int_equal(engine_retention_set(txn, partition, &retention, false), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

static void test_a_locked_history_is_neither_removed_nor_formatted(void **state)
{
	struct unit *unit = *state;

	run(unit, OSD_CREATE_PARTITION, P + 1, 0);
	lock_history(unit, P + 1);
	run(unit, OSD_REMOVE_PARTITION, P + 1, 0);
	shows_sense(unit, REMOVE_PARTITION, "its history is locked", DATA_PROTECT,
		    CONDITIONAL_WRITE_PROTECT);
	run(unit, OSD_FORMAT_OSD, 0, 0);
	shows_sense(unit, FORMAT_OSD, "the history of the device or of a partition is locked",
		    DATA_PROTECT, CONDITIONAL_WRITE_PROTECT);
	assert_int_equal(unit_get_number(unit, 0, 0, OSD_ROOT_INFORMATION, OSD_ROOT_PARTITIONS), 2);
	/* Until then. */
	unit->now_ms += 2000;
	run(unit, OSD_REMOVE_PARTITION, P + 1, 0);
	expect_good(unit);
	lock_history(unit, 0);
	run(unit, OSD_FORMAT_OSD, 0, 0);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_CONDITIONAL_WRITE_PROTECT);
	unit->now_ms += 2000;
	run(unit, OSD_FORMAT_OSD, 0, 0);
	expect_good(unit);
}

/* ---- quotas of partitions, and what new objects are written with ---- */

static void test_commands_that_add_data_keep_to_the_partition_s_capacity(void **state)
{
	static const uint8_t data[4096];
	struct unit *unit = *state;
	struct call call = call_of(OSD_APPEND, P, O);

	unit_set_number(unit, P, 0, OSD_PARTITION_QUOTAS, OSD_QUOTA_CAPACITY, sizeof(data));
	call_data(&call, data, sizeof(data));
	call_run(unit, &call);
	expect_good(unit);
	call_run(unit, &call);
	shows_sense(unit, APPEND, "more than the partition may hold", DATA_PROTECT, QUOTA_ERROR);
	call = call_of(OSD_CREATE_AND_WRITE, P, 0);
	call_data(&call, data, sizeof(data));
	call_run(unit, &call);
	shows_sense(unit, CREATE_AND_WRITE, "more than the partition may hold: none is made",
		    DATA_PROTECT, QUOTA_ERROR);
}

static void test_create_and_write_keeps_to_the_object_count(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_AND_WRITE, P, 0);

	unit_set_number(unit, P, 0, OSD_PARTITION_QUOTAS, OSD_QUOTA_OBJECT_COUNT, 1);
	call_data(&call, "x", 1);
	call_run(unit, &call);
	shows_sense(unit, CREATE_AND_WRITE, "more objects than the partition may have",
		    DATA_PROTECT, QUOTA_ERROR);
}

static void test_copies_keep_to_the_partition_s_quotas(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_COPY_USER_OBJECTS, P, 0);

	unit_write(unit, O, 0, "x", 1);
	unit_set_number(unit, P, 0, OSD_PARTITION_QUOTAS, OSD_QUOTA_OBJECT_COUNT, 1);
	add_source(&call, O);
	call_run(unit, &call);
	shows_sense(unit, COPY_USER_OBJECTS, "more objects than the partition may have",
		    DATA_PROTECT, QUOTA_ERROR);
	unit_set_number(unit, P, 0, OSD_PARTITION_QUOTAS, OSD_QUOTA_OBJECT_COUNT, 0);
	unit_set_number(unit, P, 0, OSD_PARTITION_QUOTAS, OSD_QUOTA_CAPACITY, 4096);
	call_run(unit, &call);
	shows_sense(unit, COPY_USER_OBJECTS, "more than the partition may hold", DATA_PROTECT,
		    QUOTA_ERROR);
}

/* OBJECT COUNT is of user objects: collections are not counted, and not limited by it. */
static void test_collections_do_not_count_as_objects(void **state)
{
	struct unit *unit = *state;

	unit_set_number(unit, P, 0, OSD_PARTITION_QUOTAS, OSD_QUOTA_OBJECT_COUNT, 2);
	for (uint64_t i = 0; i < 4; i++) {
		run(unit, OSD_CREATE_COLLECTION, P, C + i);
		expect_good(unit);
	}
	run(unit, OSD_CREATE, P, O + 1);
	expect_good(unit);
	run(unit, OSD_CREATE_COLLECTION, P, C + 4);
	shows_good(unit, CREATE_COLLECTION,
		   "as many user objects as OBJECT COUNT allows are there");
	run(unit, OSD_CREATE, P, O + 2);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR);
}

static void test_create_and_write_refuses_what_create_and_write_refuse(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_AND_WRITE, P, 0xFFFF);

	call_data(&call, "data", 4);
	call_run(unit, &call);
	shows_field(unit, CREATE_AND_WRITE, "an ID from 1 to FFFF", 24);
	call.cdb.object = O + 1;
	call.cdb.length = 5;
	call_run(unit, &call);
	shows_fields(unit, CREATE_AND_WRITE, "more than came of Data-Out", 36, 32);
}

static void test_create_and_write_gathers_what_sums_up(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_AND_WRITE, P, O + 1);

	call.data = "data";
	call.data_length = 4;
	call_piece(&call, 0, 1);
	call_piece(&call, 10, 3);
	call_run(unit, &call);
	shows_good(unit, CREATE_AND_WRITE, "pieces of a scatter/gather list");
	assert_int_equal(unit_get_number(unit, P, O + 1, OSD_USER_OBJECT_INFORMATION,
					 OSD_INFORMATION_LOGICAL_LENGTH),
			 13);
	call.cdb.object = O + 2;
	call.cdb.length = 3;
	call_run(unit, &call);
	shows_field(unit, CREATE_AND_WRITE, "pieces that do not sum up to LENGTH", 32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object_in_both(test_creating_ends_where_no_object_id_is_free),
		with_object(test_creating_of_osd2_ends_where_no_object_id_is_free),
		with_object_in_both(test_create_partition_ends_where_no_id_is_free),
		with_object(test_duplicating_ends_where_no_partition_id_is_free),
		with_object(test_duplicates_take_ids_that_partitions_can_have),
		with_object(test_duplicates_keep_to_the_partition_count),
		with_object(test_there_are_65534_partitions_at_most),
		with_object(test_duplicates_of_duplicates_are_16_deep_at_most),
		with_object(test_the_root_and_missing_versions_are_not_duplicated),
		with_object(test_what_has_lost_its_source_is_not_refreshed),
		with_object_in_both(test_a_locked_history_is_neither_removed_nor_formatted),
		with_object_in_both(test_commands_that_add_data_keep_to_the_partition_s_capacity),
		with_object_in_both(test_create_and_write_keeps_to_the_object_count),
		with_object(test_copies_keep_to_the_partition_s_quotas),
		with_object_in_both(test_collections_do_not_count_as_objects),
		with_object_in_both(test_create_and_write_refuses_what_create_and_write_refuse),
		with_object(test_create_and_write_gathers_what_sums_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
