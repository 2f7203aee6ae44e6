/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* GET and SET MEMBER ATTRIBUTES: on linear and tracking collections, whole and in part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "tests/osd/collections/many_members.h"

/* ---- GET MEMBER ATTRIBUTES ---- */

/*
 * Reads the answer about members: the first one's ID, how many there are; checks number TEST_NUMBER
 * of each.
 */
static size_t check_answer(struct unit *unit, const struct call *call, uint64_t first)
{
	const uint8_t *list = unit->data_in + call->cdb.retrieved.offset, *at = list + 8;
	size_t count = 0;

	assert_int_equal(list[0], OSD_LIST_TYPE_OBJECTS);
	assert_int_equal(get_be32(list + 4),
			 unit->command.data_in_length - call->cdb.retrieved.offset - 8);
	for (; at < unit->data_in + unit->command.data_in_length; count++) {
		assert_int_equal(get_be64(at), first + count);
		assert_int_equal(at[8], OSD_TYPE_USER_OBJECT);
		assert_int_equal(get_be16(at + 14), 24);
		assert_int_equal(get_be32(at + 16), TEST_PAGE);
		assert_int_equal(get_be16(at + 16 + 14), 8);
		assert_int_equal(get_be64(at + 16 + 16), first + count - M);
		at += 16 + 24;
	}
	return count;
}

static struct call get_call(uint64_t collection, size_t room)
{
	struct call call = call_of(OSD_GET_MEMBER_ATTRIBUTES, P, collection);

	call_get(&call, TEST_PAGE, TEST_NUMBER);
	call.retrieved_capacity = room;
	return call;
}

static void test_get_member_attributes_of_a_linear_collection(void **state)
{
	struct unit *unit = *state;
	struct call call = get_call(C, 4096);

	call_run(unit, &call);
	shows_good(unit, GET_MEMBER_ATTRIBUTES, "linear: member by member");
	assert_int_equal(check_answer(unit, &call, M), MEMBERS);
	assert_members(unit, C, ALL);
	call = get_call(C, 8 + 3 * 40 + 39);
	call_run(unit, &call);
	shows_good(unit, GET_MEMBER_ATTRIBUTES, "cut between members");
	assert_int_equal(check_answer(unit, &call, M), 3);
}

static void test_get_member_attributes_goes_on_where_there_was_no_room(void **state)
{
	struct unit *unit = *state;
	struct call call = get_call(T, 8 + 4 * 40);
	uint64_t next = M;

	while (next < M + MEMBERS) {
		call_run(unit, &call);
		shows_good(unit, GET_MEMBER_ATTRIBUTES,
			   "tracking: members without space stay in the collection for the next "
			   "command");
		next += check_answer(unit, &call, next);
		assert_members(unit, T, ALL & ~((1U << (next - M)) - 1));
	}
	assert_int_equal(unit_tracked(unit, T).percent, 100);
	assert_int_equal(unit_tracked(unit, T).members, 2);
}

static void test_get_member_attributes_without_any_room_does_nothing(void **state)
{
	struct unit *unit = *state;
	struct call call = get_call(T, 7);

	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit->command.data_in_length, 0);
	assert_members(unit, T, ALL);
	assert_int_equal(unit_tracked(unit, T).percent, 0);
}

static void test_get_member_attributes_refuses_a_member_that_has_more_than_a_list_can_say(
	void **state)
{
	struct unit *unit = *state;
	struct call call = get_call(T, 100000);
	struct osd_sense sense;

	unit_set_long(unit, P, M + 3, 0x10000, 1, 40000);
	unit_set_long(unit, P, M + 3, 0x10000, 2, 40000);
	call_get(&call, 0x10000, 1);
	call_get(&call, 0x10000, 2);
	call_run(unit, &call);
	shows_sense(unit, GET_MEMBER_ATTRIBUTES,
		    "a member whose attributes are longer than its length can say", ILLEGAL_REQUEST,
		    INVALID_FIELD_IN_PARAMETER_LIST);
	sense = unit_sense(unit);
	assert_true(sense.partition == P && sense.object == M + 3);
	/* None counts as dealt with. */
	assert_members(unit, T, ALL);
}

/* Nobody has been told of those before it either. */
static void test_get_member_attributes_that_fails_late_leaves_all_members(void **state)
{
	struct unit *unit = *state;
	struct call call = get_call(U, 100000);
	uint64_t ids[MANY];

	make_many(unit);
	unit_set_long(unit, P, W + BATCH + 20, 0x10000, 1, 40000);
	unit_set_long(unit, P, W + BATCH + 20, 0x10000, 2, 40000);
	call_get(&call, 0x10000, UINT32_MAX);
	call_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	assert_int_equal(unit_members(unit, P, U, ids, MANY), MANY);
	assert_int_equal(unit_tracked(unit, U).processed, 0);
	/* So who asks for less gets all. */
	call = get_call(U, 100000);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(get_be32(unit->data_in + call.cdb.retrieved.offset + 4), MANY * 32);
	assert_int_equal(unit_members(unit, P, U, ids, MANY), 0);
}

static void test_get_member_attributes_of_an_old_version(void **state)
{
	struct unit *unit = *state;
	struct call call = get_call(T, 4096);
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_snapshot(txn, P, NULL, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	unit_set(unit, P, M, TEST_PAGE, TEST_NUMBER, "other", 5);
	call.cdb.partition |= UINT64_C(1) << 48;
	call_run(unit, &call);
	shows_good(unit, GET_MEMBER_ATTRIBUTES, "of an old version, of which nothing leaves");
	assert_int_equal(check_answer(unit, &call, M), MEMBERS);
	call_run(unit, &call);
	assert_int_equal(check_answer(unit, &call, M), MEMBERS);
}

static void test_get_member_attributes_gets_before_it_sets(void **state)
{
	struct unit *unit = *state;
	struct call call = get_call(C, 4096);

	call_set(&call, TEST_PAGE, TEST_NUMBER, "new", 3);
	call_run(unit, &call);
	shows_good(unit, GET_MEMBER_ATTRIBUTES, "with sets, which come behind the gets");
	assert_int_equal(check_answer(unit, &call, M), MEMBERS);
	call = get_call(C, 4096);
	call_run(unit, &call);
	assert_memory_equal(unit->data_in + 8 + 32, "new", 3);
}

static void test_get_member_attributes_asks_user_objects(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_GET_MEMBER_ATTRIBUTES, P, C);

	call_get(&call, OSD_COLLECTION_INFORMATION, OSD_INFORMATION_OBJECT_ID);
	call_run(unit, &call);
	shows_sense(unit, GET_MEMBER_ATTRIBUTES, "a page of another type than user objects",
		    ILLEGAL_REQUEST, INVALID_FIELD_IN_PARAMETER_LIST);
}

static void test_get_member_attributes_has_no_page_format(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_GET_MEMBER_ATTRIBUTES, P, C);

	call.cdb.format = OSD_ATTRIBUTES_PAGE;
	call.cdb.get_page = OSD_USER_OBJECT_TIMESTAMPS;
	call_run(unit, &call);
	shows_field(unit, GET_MEMBER_ATTRIBUTES, "page format, but for the current command page",
		    52);
	call.cdb.get_page = OSD_PAGE_CURRENT_COMMAND;
	call.cdb.retrieved = (struct osd_segment){ 0, 76 };
	call.data_in_capacity = 76;
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(get_be64(unit->data_in + 52), C);
}

static void test_get_member_attributes_tracks_tracking_collections_only(void **state)
{
	struct unit *unit = *state;
	struct call call = get_call(C, 100);

	call.cdb.immediate_tracking = true;
	call_run(unit, &call);
	shows_field(unit, GET_MEMBER_ATTRIBUTES, "IMMED_TR with a linear collection", 11);
	pretend_at_work(unit, T);
	call = get_call(T, 100);
	call_run(unit, &call);
	shows_field(unit, GET_MEMBER_ATTRIBUTES, "another command works on the tracking collection",
		    24);
}

/* ---- SET MEMBER ATTRIBUTES ---- */

static void test_set_member_attributes_of_a_linear_collection(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_SET_MEMBER_ATTRIBUTES, P, C);
	uint8_t value[8];

	call_set(&call, TEST_PAGE, 1, "all", 3);
	call_get(&call, TEST_PAGE, 1);
	call_run(unit, &call);
	shows_good(unit, SET_MEMBER_ATTRIBUTES, "linear: all in one");
	for (uint64_t i = 0; i < MEMBERS; i++) {
		assert_int_equal(unit_get(unit, P, M + i, TEST_PAGE, 1, value, 8), 3);
		assert_memory_equal(value, "all", 3);
	}
	assert_int_equal(unit_get(unit, P, O, TEST_PAGE, 1, value, 8), 0);
}

static void test_set_member_attributes_answers_what_fits_and_sets_all(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_SET_MEMBER_ATTRIBUTES, P, T);
	uint8_t value[8];

	call_set(&call, TEST_PAGE, 1, "all", 3);
	call_get(&call, TEST_PAGE, TEST_NUMBER);
	call.retrieved_capacity = 8 + 2 * 40;
	call_run(unit, &call);
	shows_good(unit, SET_MEMBER_ATTRIBUTES, "with gets: answers as far as there is space");
	assert_int_equal(check_answer(unit, &call, M), 2);
	assert_int_equal(unit_get(unit, P, M + MEMBERS - 1, TEST_PAGE, 1, value, 8), 3);
	assert_members(unit, T, 0);
}

static void test_set_member_attributes_of_a_linear_collection_is_all_or_nothing(void **state)
{
	struct unit *unit = *state;
	struct call call = failing_call(unit, C, M + 5);

	call_run(unit, &call);
	shows_sense(unit, SET_MEMBER_ATTRIBUTES, "linear: a set fails; nothing has happened",
		    ILLEGAL_REQUEST, INVALID_FIELD_IN_PARAMETER_LIST);
	assert_members(unit, C + 100, 1U << 5);
}

static void test_set_member_attributes_of_a_tracking_collection_keeps_what_remains(void **state)
{
	struct unit *unit = *state;
	struct call call, removal = call_of(OSD_REMOVE, P, W + 80);
	uint64_t ids[MANY];
	uint8_t sense[256];
	struct tracked tracked;

	make_many(unit);
	call = failing_call(unit, U, W + 80);
	call_run(unit, &call);
	shows_sense(unit, SET_MEMBER_ATTRIBUTES,
		    "tracking: a set fails; what remains to be done stays in the collection",
		    ILLEGAL_REQUEST, INVALID_FIELD_IN_PARAMETER_LIST);
	memcpy(sense, unit->command.sense, unit->command.sense_length);
	tracked = unit_tracked(unit, U);
	assert_int_equal(tracked.ended, SCSI_STATUS_CHECK_CONDITION);
	assert_int_equal(tracked.active, 0);
	assert_int_equal(tracked.members, MANY);
	assert_int_equal(tracked.processed, BATCH);
	assert_int_equal(tracked.percent, BATCH * 100 / MANY);
	assert_true(tracked.sense_length > 8);
	assert_int_equal(unit_get(unit, P, U, OSD_COLLECTION_TRACKING, OSD_TRACKING_SENSE_DATA, ids,
				  sizeof(ids)),
			 tracked.sense_length);
	assert_memory_equal(ids, sense, tracked.sense_length);
	assert_int_equal(unit_members(unit, P, U, ids, MANY), MANY - BATCH);
	assert_int_equal(unit_members(unit, P, C + 100, ids, MANY), BATCH + 1);
	/* Without what was in the way, the same command does the rest. */
	call_run(unit, &removal);
	expect_good(unit);
	call_run(unit, &call);
	expect_good(unit);
	tracked = unit_tracked(unit, U);
	assert_int_equal(tracked.ended, SCSI_STATUS_GOOD);
	assert_int_equal(tracked.sense_length, 0);
	assert_int_equal(tracked.missing, 1);
	assert_int_equal(unit_members(unit, P, C + 100, ids, MANY), MANY - 1);
}

/* Writes a new object until there is no room for so much any more. */
static void fill_device(struct unit *unit)
{
	static uint8_t data[32768];

	for (size_t bytes = sizeof(data); bytes >= 4096; bytes /= 2) {
		do {
			struct call call = call_of(OSD_CREATE_AND_WRITE, P, 0);

			call_data(&call, data, bytes);
			call_run(unit, &call);
		} while (unit->command.status == SCSI_STATUS_GOOD);
		expect_sense(unit, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR);
	}
}

/* The members that have the attribute have left, and all others are still there. */
static unsigned check_consistency(struct unit *unit)
{
	uint64_t ids[MANY];
	size_t left = unit_members(unit, P, U, ids, MANY), next = 0;
	unsigned done = 0;

	for (uint64_t i = 0; i < MANY; i++) {
		uint8_t value[8];
		bool set = unit_get(unit, P, W + i, TEST_PAGE, 1, value, 8) != 0;
		bool member = next < left && ids[next] == W + i;

		assert_int_equal(set, !member);
		next += member;
		done += set;
	}
	assert_int_equal(next, left);
	return done;
}

static void test_set_member_attributes_on_a_full_device_can_go_on_later(void **state)
{
	static uint8_t value[4000];
	struct unit *unit = malloc(sizeof(*unit));
	struct call call, removal;
	struct tracked tracked;
	unsigned done;

	(void)state;
	unit_open(unit, 12 << 20);
	unit_create_partition(unit, P);
	make_many(unit);
	fill_device(unit);
	/* Room for some batches, not for all. */
	for (uint64_t i = 1; i <= 20; i++) {
		removal = call_of(OSD_REMOVE, P, U + i);
		call_run(unit, &removal);
		expect_good(unit);
	}
	call = call_of(OSD_SET_MEMBER_ATTRIBUTES, P, U);
	call_set(&call, TEST_PAGE, 1, value, sizeof(value));
	call_run(unit, &call);
	shows_sense(unit, SET_MEMBER_ATTRIBUTES,
		    "tracking: the device gets full; the rest can be done when there is space",
		    DATA_PROTECT, QUOTA_ERROR);
	done = check_consistency(unit);
	assert_true(done > 0 && done < MANY);
	tracked = unit_tracked(unit, U);
	assert_int_equal(tracked.processed, done);
	assert_int_equal(tracked.ended, SCSI_STATUS_CHECK_CONDITION);
	removal = call_of(OSD_LIST, P, 0);
	removal.cdb.address = W + MANY;
	removal.cdb.length = removal.data_in_capacity = OSD_LIST_HEAD_BYTES + 8 * 2000;
	call_run(unit, &removal);
	expect_good(unit);
	for (size_t count = (unit->command.data_in_length - OSD_LIST_HEAD_BYTES) / 8; count > 0;
	     count--) {
		struct call one = call_of(OSD_REMOVE, P, U + 20 + count);

		call_run(unit, &one);
		expect_good(unit);
	}
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(check_consistency(unit), MANY);
	unit_close(unit);
	free(unit);
}

static void test_set_member_attributes_obeys_quotas(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_SET_MEMBER_ATTRIBUTES, P, C);

	unit_set_number(unit, P, M + 7, OSD_USER_OBJECT_QUOTAS, OSD_QUOTA_MAXIMUM_LENGTH, 100);
	call_set_number(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, 101);
	call_run(unit, &call);
	shows_sense(unit, SET_MEMBER_ATTRIBUTES, "a member gets longer than its maximum",
		    DATA_PROTECT, QUOTA_ERROR);
	assert_int_equal(unit_get_number(unit, P, M, OSD_USER_OBJECT_INFORMATION,
					 OSD_INFORMATION_LOGICAL_LENGTH),
			 0);
}

static void test_set_member_attributes_sets_pages_of_user_objects(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_SET_MEMBER_ATTRIBUTES, P, C);

	call_set(&call, OSD_COLLECTION_INFORMATION, OSD_INFORMATION_USERNAME, "x", 1);
	call_run(unit, &call);
	shows_sense(unit, SET_MEMBER_ATTRIBUTES, "a page of another type than user objects",
		    ILLEGAL_REQUEST, INVALID_FIELD_IN_PARAMETER_LIST);
}

static void test_set_member_attributes_tracks_tracking_collections_only(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_SET_MEMBER_ATTRIBUTES, P, C);

	call_set(&call, TEST_PAGE, 1, "x", 1);
	call.cdb.immediate_tracking = true;
	call_run(unit, &call);
	shows_field(unit, SET_MEMBER_ATTRIBUTES, "IMMED_TR with a linear collection", 11);
	pretend_at_work(unit, T);
	call.cdb.object = T;
	call_run(unit, &call);
	shows_field(unit, SET_MEMBER_ATTRIBUTES, "another command works on the tracking collection",
		    24);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_members(test_get_member_attributes_of_a_linear_collection),
		with_members(test_get_member_attributes_goes_on_where_there_was_no_room),
		with_members(test_get_member_attributes_without_any_room_does_nothing),
		with_members(
			test_get_member_attributes_refuses_a_member_that_has_more_than_a_list_can_say),
		with_members(test_get_member_attributes_that_fails_late_leaves_all_members),
		with_members(test_get_member_attributes_of_an_old_version),
		with_members(test_get_member_attributes_gets_before_it_sets),
		with_members(test_get_member_attributes_asks_user_objects),
		with_members(test_get_member_attributes_has_no_page_format),
		with_members(test_get_member_attributes_tracks_tracking_collections_only),
		with_members(test_set_member_attributes_of_a_linear_collection),
		with_members(test_set_member_attributes_answers_what_fits_and_sets_all),
		with_members(test_set_member_attributes_of_a_linear_collection_is_all_or_nothing),
		with_members(
			test_set_member_attributes_of_a_tracking_collection_keeps_what_remains),
		with_members(test_set_member_attributes_on_a_full_device_can_go_on_later),
		with_members(test_set_member_attributes_obeys_quotas),
		with_members(test_set_member_attributes_sets_pages_of_user_objects),
		with_members(test_set_member_attributes_tracks_tracking_collections_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
