/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Collections in partitions of other kinds: packed object IDs, snapshots, clones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "tests/osd/collection_calls.h"

#define Q   UINT64_C(0x10010) /* the snapshot or clone of P */
#define ALL ((1U << MEMBERS) - 1)

static unsigned members_in(struct unit *unit, uint64_t partition, uint64_t collection)
{
	uint64_t ids[64];
	size_t count = unit_members(unit, partition, collection, ids, 64);
	unsigned found = 0;

	for (size_t i = 0; i < count; i++)
		found |= 1U << (ids[i] - M);
	return found;
}

static void duplicate(struct unit *unit, uint16_t action)
{
	struct call call = call_of(action, Q, 0);

	unit->now_ms += 2000;
	call.cdb.address = P;
	call_run(unit, &call);
	expect_good(unit);
}

static void join_in(struct unit *unit, uint64_t partition, uint64_t object, uint64_t collection)
{
	uint8_t value[8];

	put_be64(value, collection);
	unit_set(unit, partition, object, OSD_USER_OBJECT_COLLECTIONS, 1, value,
		 collection ? 8 : 0);
}

static void test_a_clone_has_members_of_its_own(void **state)
{
	struct unit *unit = *state;
	struct call removal = call_of(OSD_REMOVE, P, M + 1);
	struct call force = call_of(OSD_REMOVE_COLLECTION, P, C);

	duplicate(unit, OSD_CREATE_CLONE);
	assert_int_equal(members_in(unit, Q, C), ALL);
	assert_int_equal(unit_get_number(unit, Q, M, OSD_USER_OBJECT_COLLECTIONS, 1), C);
	join_in(unit, Q, M, 0);
	call_run(unit, &removal);
	expect_good(unit);
	assert_int_equal(members_in(unit, Q, C), ALL & ~1U);
	assert_int_equal(members_in(unit, P, C), ALL & ~2U);
	join_in(unit, Q, M, C);
	assert_int_equal(members_in(unit, Q, C), ALL);
	force.cdb.command_options = OSD_FORCE_COLLECTION_REMOVAL;
	call_run(unit, &force);
	expect_good(unit);
	assert_int_equal(members_in(unit, Q, C), ALL);
	assert_int_equal(unit_get_number(unit, Q, M + 1, OSD_USER_OBJECT_COLLECTIONS, 1), C);
}

static void test_members_of_a_clone_are_removed_there_only(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_REMOVE_MEMBER_OBJECTS, Q, T);

	duplicate(unit, OSD_CREATE_CLONE);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(members_in(unit, Q, T), 0);
	assert_int_equal(members_in(unit, Q, C), 0);
	assert_int_equal(members_in(unit, P, T), ALL);
	assert_int_equal(members_in(unit, P, C), ALL);
}

static void test_a_snapshot_keeps_its_members(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_SET_ATTRIBUTES, Q, M + 1);

	duplicate(unit, OSD_CREATE_SNAPSHOT);
	join_in(unit, P, M + 2, 0);
	assert_int_equal(members_in(unit, Q, C), ALL);
	assert_int_equal(members_in(unit, P, C), ALL & ~4U);
	call_set(&call, OSD_USER_OBJECT_COLLECTIONS, 1, NULL, 0);
	call_run(unit, &call);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_WRITE_PROTECTED);
	call = call_of(OSD_REMOVE_MEMBER_OBJECTS, Q, T);
	call_run(unit, &call);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_WRITE_PROTECTED);
	assert_int_equal(members_in(unit, Q, T), ALL);
	/* What changes nothing works, and nothing leaves. */
	call = call_of(OSD_GET_MEMBER_ATTRIBUTES, Q, T);
	call_get(&call, TEST_PAGE, TEST_NUMBER);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit->command.data_in_length, 8 + MEMBERS * 40);
	assert_int_equal(members_in(unit, Q, T), ALL);
}

/* ---- packed object IDs ---- */

#define PACKED       UINT64_C(0x10020)
#define PACKED_ID(n) ((uint64_t)(n) << 32)

static void create_packed(struct unit *unit, uint16_t action, uint64_t object)
{
	struct call call = call_of(action, PACKED, object);

	call_run(unit, &call);
	expect_good(unit);
}

static void test_packed_ids_are_packed_wherever_collections_show_them(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_PARTITION, PACKED, 0);
	static const uint8_t list[20] = { OSD_QUERY_ALL,
					  0,
					  0,
					  0,
					  0,
					  0,
					  0,
					  12,
					  0,
					  0,
					  0,
					  1,
					  0,
					  0,
					  0,
					  OSD_INFORMATION_LOGICAL_LENGTH };
	uint8_t layout = OSD_LAYOUT_PACKED;
	uint64_t ids[4];

	call_set(&call, OSD_MUNINN_PARTITION, OSD_MUNINN_LAYOUT, &layout, 1);
	call_run(unit, &call);
	expect_good(unit);
	create_packed(unit, OSD_CREATE, PACKED_ID(5));
	create_packed(unit, OSD_CREATE_COLLECTION, PACKED_ID(7));
	create_packed(unit, OSD_CREATE_USER_TRACKING_COLLECTION, PACKED_ID(9));
	join_in(unit, PACKED, PACKED_ID(5), PACKED_ID(7));
	assert_true(unit_get_number(unit, PACKED, PACKED_ID(5), OSD_USER_OBJECT_COLLECTIONS, 1) ==
		    PACKED_ID(7));
	assert_int_equal(unit_members(unit, PACKED, 0, ids, 4), 2);
	assert_true(ids[0] == PACKED_ID(7) && ids[1] == PACKED_ID(9));
	assert_int_equal(unit_members(unit, PACKED, PACKED_ID(7), ids, 4), 1);
	assert_true(ids[0] == PACKED_ID(5));
	/* QUERY: matches returned, and collected. */
	call = call_of(OSD_QUERY, PACKED, PACKED_ID(7));
	call_descriptor(&call, OSD_CONTINUATION_QUERY_LIST, list, sizeof(list));
	call.cdb.length = call.data_in_capacity = 100;
	call_run(unit, &call);
	expect_good(unit);
	assert_true(get_be64(unit->data_in + 12) == PACKED_ID(5));
	call.cdb.length = call.data_in_capacity = 0;
	call.cdb.address = PACKED_ID(9);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit_members(unit, PACKED, PACKED_ID(9), ids, 4), 1);
	assert_true(ids[0] == PACKED_ID(5));
	/* An ID with a version or a page is no collection to join. */
	call = call_of(OSD_SET_ATTRIBUTES, PACKED, PACKED_ID(5));
	call_set_number(&call, OSD_USER_OBJECT_COLLECTIONS, 2, PACKED_ID(9) | 1);
	call_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	/* GET MEMBER ATTRIBUTES. */
	call = call_of(OSD_GET_MEMBER_ATTRIBUTES, PACKED, PACKED_ID(7));
	call_get(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_OBJECT_ID);
	call_run(unit, &call);
	expect_good(unit);
	assert_true(get_be64(unit->data_in + 8) == PACKED_ID(5));
	assert_true(get_be64(unit->data_in + 8 + 32) == PACKED_ID(5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_members(test_a_clone_has_members_of_its_own),
		with_members(test_members_of_a_clone_are_removed_there_only),
		with_members(test_a_snapshot_keeps_its_members),
		with_object(test_packed_ids_are_packed_wherever_collections_show_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
