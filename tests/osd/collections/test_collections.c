/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Collections: making, removing and listing them, memberships of user objects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bytes.h"
#include "tests/osd/collection_calls.h"

static unsigned collection_type(struct unit *unit, uint64_t collection)
{
	uint8_t type;

	assert_int_equal(unit_get(unit, P, collection, OSD_COLLECTION_INFORMATION,
				  OSD_INFORMATION_COLLECTION_TYPE, &type, 1),
			 1);
	return type;
}

/* ---- CREATE COLLECTION ---- */

static void test_create_collection_makes_an_empty_linear_one(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_COLLECTION, P, C);
	uint64_t ids[4];

	call_set(&call, OSD_COLLECTION_INFORMATION, OSD_INFORMATION_USERNAME, "films", 5);
	call_get(&call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_OBJECT_TYPE);
	call_get(&call, OSD_COLLECTION_INFORMATION, OSD_INFORMATION_USERNAME);
	call_run(unit, &call);
	shows_good(unit, CREATE_COLLECTION, "requested ID");
	assert_int_equal(unit_retrieved(unit, &call, 0).value[0], OSD_TYPE_COLLECTION);
	assert_memory_equal(unit_retrieved(unit, &call, 1).value, "films", 5);
	assert_int_equal(collection_type(unit, C), OSD_COLLECTION_LINEAR);
	assert_int_equal(unit_members(unit, P, C, ids, 4), 0);
	assert_int_equal(
		unit_get_number(unit, P, C, OSD_COLLECTION_INFORMATION, OSD_INFORMATION_OBJECT_ID),
		C);
}

static void test_create_collection_chooses_an_id_behind_all(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_COLLECTION, P, 0);

	call_get(&call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_OBJECT_ID);
	call_run(unit, &call);
	shows_good(unit, CREATE_COLLECTION, "the target chooses the ID");
	assert_int_equal(get_be64(unit_retrieved(unit, &call, 0).value), O + 1);
}

static void test_create_collection_refuses_an_id_that_is_taken(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_COLLECTION, P, O);

	call_run(unit, &call);
	shows_field(unit, CREATE_COLLECTION, "the ID is taken, by an object of any type", 24);
}

static void test_create_collection_refuses_a_reserved_id(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_COLLECTION, P, 0xFFFF);

	call_run(unit, &call);
	shows_field(unit, CREATE_COLLECTION, "ID 1...FFFF", 24);
}

/* ---- CREATE USER TRACKING COLLECTION ---- */

static void test_create_user_tracking_collection_copies_its_source(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_USER_TRACKING_COLLECTION, P, T + 1);
	uint8_t value[8];

	call.cdb.address = C;
	call_run(unit, &call);
	shows_good(unit, CREATE_USER_TRACKING_COLLECTION, "with the members of a source");
	assert_int_equal(collection_type(unit, T + 1), OSD_COLLECTION_IS_TRACKING);
	assert_members(unit, T + 1, (1 << MEMBERS) - 1);
	assert_members(unit, C, (1 << MEMBERS) - 1);
	/* The objects do not know of it. */
	assert_int_equal(unit_get(unit, P, M, OSD_USER_OBJECT_COLLECTIONS, 2, value, 8), 0);
}

static void test_create_user_tracking_collection_without_source_is_empty(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_USER_TRACKING_COLLECTION, P, 0);
	static const uint8_t capabilities[8] = { 0 };

	call_descriptor(&call, OSD_CONTINUATION_EXTENSION_CAPABILITIES, capabilities, 8);
	call_get(&call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_OBJECT_ID);
	call_get(&call, OSD_COLLECTION_TRACKING, OSD_TRACKING_ACTIVE_COMMAND);
	call_run(unit, &call);
	shows_good(unit, CREATE_USER_TRACKING_COLLECTION, "without a source it is empty");
	assert_int_equal(get_be64(unit_retrieved(unit, &call, 0).value), T + 1);
	assert_int_equal(get_be16(unit_retrieved(unit, &call, 1).value), 0);
	assert_members(unit, T + 1, 0);
}

static void test_create_user_tracking_collection_needs_a_collection_as_its_source(void **state)
{
	static const uint64_t sources[] = { O, C + 77, 5 };
	struct unit *unit = *state;

	for (size_t i = 0; i < 3; i++) {
		struct call call = call_of(OSD_CREATE_USER_TRACKING_COLLECTION, P, T + 1);

		call.cdb.address = sources[i];
		call_run(unit, &call);
		shows_field(unit, CREATE_USER_TRACKING_COLLECTION, "the source is no collection",
			    40);
	}
}

static void test_create_user_tracking_collection_refuses_ids(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_USER_TRACKING_COLLECTION, P, M);

	call_run(unit, &call);
	shows_field(unit, CREATE_USER_TRACKING_COLLECTION, "the ID is taken, or 1...FFFF", 24);
	call.cdb.object = 7;
	call_run(unit, &call);
	expect_field(unit, 24);
}

static void test_create_user_tracking_collection_takes_no_query_list(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_USER_TRACKING_COLLECTION, P, T + 1);
	static const uint8_t list[8] = { 0 };

	call_descriptor(&call, OSD_CONTINUATION_QUERY_LIST, list, 8);
	call_run(unit, &call);
	shows_field(unit, CREATE_USER_TRACKING_COLLECTION,
		    "a descriptor other than extension capabilities", 48);
}

/* ---- REMOVE COLLECTION ---- */

static void test_remove_collection_removes_an_empty_one(void **state)
{
	struct unit *unit = *state;
	struct call create = call_of(OSD_CREATE_COLLECTION, P, C);
	struct call call = call_of(OSD_REMOVE_COLLECTION, P, C);

	call_run(unit, &create);
	expect_good(unit);
	call_get(&call, OSD_COLLECTION_INFORMATION, OSD_INFORMATION_OBJECT_ID);
	call_run(unit, &call);
	shows_good(unit, REMOVE_COLLECTION, "empty");
	assert_int_equal(get_be64(unit_retrieved(unit, &call, 0).value), C);
	call = call_of(OSD_REMOVE_COLLECTION, P, C);
	call_run(unit, &call);
	expect_field(unit, 24);
}

static void test_remove_collection_refuses_one_with_members(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_REMOVE_COLLECTION, P, C);

	call_run(unit, &call);
	shows_sense(unit, REMOVE_COLLECTION, "members, and FCR 0", ILLEGAL_REQUEST,
		    PARTITION_OR_COLLECTION_CONTAINS_USER_OBJECTS);
	assert_members(unit, C, (1 << MEMBERS) - 1);
}

static void test_remove_collection_with_force_leaves_the_objects(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_REMOVE_COLLECTION, P, C);
	uint8_t value[8];

	call.cdb.command_options = OSD_FORCE_COLLECTION_REMOVAL;
	call_run(unit, &call);
	shows_good(unit, REMOVE_COLLECTION, "members, and FCR 1: the objects stay");
	for (uint64_t i = 0; i < MEMBERS; i++)
		assert_int_equal(unit_get(unit, P, M + i, OSD_USER_OBJECT_COLLECTIONS, 1, value, 8),
				 0);
}

static void test_remove_collection_is_for_collections(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_REMOVE_COLLECTION, P, O);

	call_run(unit, &call);
	shows_field(unit, REMOVE_COLLECTION, "a user object", 24);
}

static void test_a_partition_with_collections_is_removed_with_its_contents(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_REMOVE_PARTITION, P, 0);

	call.cdb.command_options = OSD_REMOVE_CONTENTS;
	call_run(unit, &call);
	expect_good(unit);
	unit_create_partition(unit, P);
	call = call_of(OSD_CREATE_COLLECTION, P, C);
	call_run(unit, &call);
	expect_good(unit);
	assert_members(unit, C, 0);
}

/* ---- LIST COLLECTION ---- */

static struct call list_of(uint64_t collection, uint64_t initial, size_t bytes)
{
	struct call call = call_of(OSD_LIST_COLLECTION, P, collection);

	call.cdb.address = initial;
	call.cdb.length = call.data_in_capacity = OSD_LIST_HEAD_BYTES + bytes;
	return call;
}

static struct osd_list_head decode_head(struct unit *unit)
{
	struct osd_list_head head;

	assert_int_equal(osd_list_head_decode(unit->version, unit->data_in,
					      unit->command.data_in_length, &head),
			 0);
	return head;
}

static void test_list_collection_of_a_partition_lists_collections(void **state)
{
	struct unit *unit = *state;
	struct call create = call_of(OSD_CREATE_COLLECTION, P, C), call = list_of(0, 0, 80);
	struct osd_list_head head;

	call_run(unit, &create);
	create.cdb.object = C + 9;
	call_run(unit, &create);
	call_run(unit, &call);
	shows_good(unit, LIST_COLLECTION, "the collections of a partition");
	head = decode_head(unit);
	assert_int_equal(head.additional_length, 16 + 16);
	if (unit_version == OSD_2)
		assert_int_equal(head.format, OSD_LISTED_COLLECTIONS);
	else
		assert_true(head.containers);
	assert_int_equal(get_be64(unit->data_in + 24), C);
	assert_int_equal(get_be64(unit->data_in + 32), C + 9);
}

static void test_list_collection_of_a_collection_lists_members(void **state)
{
	struct unit *unit = *state;
	struct call create = call_of(OSD_CREATE_COLLECTION, P, C), call = list_of(C, 0, 80);
	struct osd_list_head head;

	call_run(unit, &create);
	unit_join(unit, O, 5, C);
	call_run(unit, &call);
	shows_good(unit, LIST_COLLECTION, "the members of a collection");
	head = decode_head(unit);
	assert_int_equal(head.additional_length, 16 + 8);
	assert_false(head.containers);
	assert_int_equal(head.format, unit_version == OSD_2 ? OSD_LISTED_USER_OBJECTS : 0);
	assert_int_equal(get_be64(unit->data_in + 24), O);
}

static void test_list_collection_is_cut_and_continued(void **state)
{
	struct unit *unit = *state;
	struct call call = list_of(C, 0, 8 * 4);
	uint64_t next = M;
	struct osd_list_head head;

	do {
		call_run(unit, &call);
		shows_good(unit, LIST_COLLECTION,
			   "cut, and continued with list identifier and continuation ID");
		head = decode_head(unit);
		assert_int_equal(head.additional_length, 16 + 8 * (M + MEMBERS - next));
		for (size_t at = 24; at < unit->command.data_in_length; at += 8)
			assert_int_equal(get_be64(unit->data_in + at), next++);
		assert_int_equal(head.continuation_id, next < M + MEMBERS ? next : 0);
		assert_int_equal(head.identifier != 0, next < M + MEMBERS);
		call.cdb.address = head.continuation_id;
		call.cdb.list_identifier = head.identifier;
	} while (head.continuation_id != 0);
	assert_int_equal(next, M + MEMBERS);
}

static void test_list_collection_tells_that_other_members_came_meanwhile(void **state)
{
	struct unit *unit = *state;
	const uint64_t collections[] = { C, T };

	for (size_t i = 0; i < 2; i++) {
		struct call call = list_of(collections[i], 0, 8 * 4);
		struct osd_list_head head;

		call_run(unit, &call);
		head = decode_head(unit);
		/* One joins, and of the linear one another leaves: as many as before. */
		unit_join(unit, M + MEMBERS - 1, 1 + (uint32_t)i, 0);
		unit_join(unit, O, 1 + (uint32_t)i, collections[i]);
		call = list_of(collections[i], head.continuation_id, 8 * 100);
		call.cdb.list_identifier = head.identifier;
		call_run(unit, &call);
		assert_true(decode_head(unit).changed);
	}
}

static void test_list_collection_tells_attributes_of_members_that_are_there(void **state)
{
	struct unit *unit = *state;
	struct call call = list_of(T, 0, 2000), removal = call_of(OSD_REMOVE, P, M + 1);
	struct osd_listed_object object;
	struct osd_attribute attribute;
	size_t position = OSD_LIST_HEAD_BYTES;
	struct osd_list_head head;

	call_run(unit, &removal);
	expect_good(unit);
	call.cdb.list_attributes = true;
	call_get(&call, TEST_PAGE, TEST_NUMBER);
	call_run(unit, &call);
	shows_good(unit, LIST_COLLECTION,
		   "LIST_ATTR: attributes of members, without those whose objects are gone");
	head = decode_head(unit);
	assert_int_equal(head.format, OSD_LISTED_USER_OBJECTS + 1);
	for (uint64_t i = 0; i < MEMBERS; i++) {
		if (i == 1)
			continue;
		assert_int_equal(osd_listed_next(&head, unit->data_in, unit->command.data_in_length,
						 &position, &object),
				 1);
		assert_int_equal(object.id, M + i);
		assert_int_equal(object.type, OSD_TYPE_USER_OBJECT);
		assert_int_equal(osd_list_next(&object.attributes, &attribute), 1);
		assert_int_equal(get_be64(attribute.value), i);
	}
}

static void test_list_collection_has_one_sort_order(void **state)
{
	struct unit *unit = *state;
	struct call call = list_of(0, 0, 80);

	call.cdb.command_options = 1;
	call_run(unit, &call);
	shows_field(unit, LIST_COLLECTION, "a sort order other than 0", 11);
}

static void test_list_collection_is_not_for_user_objects(void **state)
{
	struct unit *unit = *state;
	struct call call = list_of(O, 0, 80);

	call_run(unit, &call);
	shows_field(unit, LIST_COLLECTION, "a user object", 24);
}

/* ---- FLUSH COLLECTION ---- */

static void test_collections_are_flushed(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_FLUSH_COLLECTION, P, C);

	for (uint8_t scope = 0; scope <= 2; scope++) {
		call.cdb.flush_scope = scope;
		call_run(unit, &call);
		expect_good(unit);
	}
}

/* ---- memberships ---- */

static void test_setting_a_membership_joins_and_length_0_leaves(void **state)
{
	struct unit *unit = *state;
	uint8_t value[8];

	assert_members(unit, C, (1 << MEMBERS) - 1);
	assert_int_equal(unit_get_number(unit, P, M, OSD_USER_OBJECT_COLLECTIONS, 1), C);
	unit_join(unit, M, 1, 0);
	assert_members(unit, C, (1 << MEMBERS) - 2);
	assert_int_equal(unit_get(unit, P, M, OSD_USER_OBJECT_COLLECTIONS, 1, value, 8), 0);
	unit_join(unit, M, 0xFFFFFF00, C);
	assert_members(unit, C, (1 << MEMBERS) - 1);
}

static void test_the_collections_page_is_enumerated(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_GET_ATTRIBUTES, P, M);
	struct call create = call_of(OSD_CREATE_COLLECTION, P, C + 5);
	struct osd_attribute attribute;

	call_run(unit, &create);
	unit_join(unit, M, 9, C + 5);
	call_get(&call, OSD_USER_OBJECT_COLLECTIONS, OSD_ATTRIBUTE_ALL);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit_retrieved_count(unit, &call), 3);
	attribute = unit_retrieved(unit, &call, 0);
	assert_memory_equal(attribute.value, "INCITS  T10 User Object Collections", 35);
	attribute = unit_retrieved(unit, &call, 1);
	assert_int_equal(attribute.number, 1);
	assert_int_equal(attribute.length, 8);
	assert_int_equal(get_be64(attribute.value), C);
	attribute = unit_retrieved(unit, &call, 2);
	assert_int_equal(attribute.number, 9);
	assert_int_equal(get_be64(attribute.value), C + 5);
}

static void test_a_new_object_joins_with_its_command_or_is_not_made(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_AND_WRITE, P, M + 20);
	struct call failing = call_of(OSD_CREATE, P, M + 21);

	call_data(&call, "text", 4);
	call_set_number(&call, OSD_USER_OBJECT_COLLECTIONS, 1, C);
	call_run(unit, &call);
	expect_good(unit);
	assert_members(unit, C, ((1 << MEMBERS) - 1) | 1 << 20);
	call_set_number(&failing, OSD_USER_OBJECT_COLLECTIONS, 1, C);
	call_set_number(&failing, OSD_USER_OBJECT_COLLECTIONS, 2, C + 77);
	call_run(unit, &failing);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	assert_members(unit, C, ((1 << MEMBERS) - 1) | 1 << 20);
}

static void test_wrong_memberships_are_refused(void **state)
{
	static const struct {
		uint32_t number;
		uint64_t value;
		uint32_t length;
	} wrong[] = {
		{ 2, C, 8 },          /* is in it already */
		{ 2, C + 77, 8 },     /* no such object */
		{ 2, O, 8 },          /* no collection */
		{ 2, 0, 8 },          /* nothing */
		{ 2, C, 4 },          /* wrong length */
		{ 0, C, 8 },          /* the page's identification */
		{ 0xFFFFFF01, C, 8 }, /* behind the last number */
	};
	struct unit *unit = *state;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct call call = call_of(OSD_SET_ATTRIBUTES, P, M);
		uint8_t value[8];
		struct osd_sense sense;

		put_be64(value, wrong[i].value);
		call_set(&call, OSD_USER_OBJECT_COLLECTIONS, wrong[i].number, value,
			 wrong[i].length);
		call_run(unit, &call);
		expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
		sense = unit_sense(unit);
		assert_int_equal(sense.attributes, 1);
		assert_int_equal(sense.attribute[0].number, wrong[i].number);
	}
}

static void test_memberships_are_limited_by_quota(void **state)
{
	static const uint8_t two[4] = { 0, 0, 0, 2 };
	struct unit *unit = *state;
	struct call call = call_of(OSD_SET_ATTRIBUTES, P, M);
	struct call create = call_of(OSD_CREATE_COLLECTION, P, 0);

	for (int i = 0; i < 2; i++) {
		call_run(unit, &create);
		expect_good(unit);
	}
	unit_set(unit, P, 0, OSD_PARTITION_QUOTAS, OSD_QUOTA_COLLECTIONS_PER_OBJECT, two, 4);
	unit_join(unit, M, 2, T + 1);
	call_set_number(&call, OSD_USER_OBJECT_COLLECTIONS, 3, T + 2);
	call_run(unit, &call);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR);
	unit_join(unit, M, 2, T + 2); /* another one in its place */
	assert_members(unit, T + 2, 1);
}

static void test_a_removed_object_leaves_its_collections(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_REMOVE, P, M + 3);

	call_run(unit, &call);
	expect_good(unit);
	assert_members(unit, C, ((1 << MEMBERS) - 1) & ~(1U << 3));
	/* The IDs of a tracking collection stay until a command gets to them. */
	assert_members(unit, T, (1 << MEMBERS) - 1);
}

static void test_old_versions_show_the_members_of_their_time(void **state)
{
	struct unit *unit = *state;
	uint64_t old = UINT64_C(1) << 48 | P, ids[16];
	struct engine_txn *txn;
	struct call call = call_of(OSD_REMOVE_COLLECTION, P, C);

	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_snapshot(txn, P, NULL, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	unit_join(unit, M + 4, 1, 0);
	assert_int_equal(unit_members(unit, P, C, ids, 16), MEMBERS - 1);
	assert_int_equal(unit_members(unit, old, C, ids, 16), MEMBERS);
	call.cdb.command_options = OSD_FORCE_COLLECTION_REMOVAL;
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit_members(unit, old, C, ids, 16), MEMBERS);
	assert_int_equal(ids[4], M + 4);
	assert_int_equal(unit_get_number(unit, old, M + 4, OSD_USER_OBJECT_COLLECTIONS, 1), C);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object_in_both(test_create_collection_makes_an_empty_linear_one),
		with_object_in_both(test_create_collection_chooses_an_id_behind_all),
		with_object_in_both(test_create_collection_refuses_an_id_that_is_taken),
		with_object_in_both(test_create_collection_refuses_a_reserved_id),
		with_members(test_create_user_tracking_collection_copies_its_source),
		with_members(test_create_user_tracking_collection_without_source_is_empty),
		with_members(test_create_user_tracking_collection_needs_a_collection_as_its_source),
		with_members(test_create_user_tracking_collection_refuses_ids),
		with_members(test_create_user_tracking_collection_takes_no_query_list),
		with_object_in_both(test_remove_collection_removes_an_empty_one),
		with_members(test_remove_collection_refuses_one_with_members),
		with_members(test_remove_collection_with_force_leaves_the_objects),
		with_object_in_both(test_remove_collection_is_for_collections),
		with_members(test_a_partition_with_collections_is_removed_with_its_contents),
		with_object_in_both(test_list_collection_of_a_partition_lists_collections),
		with_object_in_both(test_list_collection_of_a_collection_lists_members),
		with_members(test_list_collection_is_cut_and_continued),
		with_members(test_list_collection_tells_that_other_members_came_meanwhile),
		with_members(test_list_collection_tells_attributes_of_members_that_are_there),
		with_object_in_both(test_list_collection_has_one_sort_order),
		with_object_in_both(test_list_collection_is_not_for_user_objects),
		with_members(test_collections_are_flushed),
		with_members(test_setting_a_membership_joins_and_length_0_leaves),
		with_members(test_the_collections_page_is_enumerated),
		with_members(test_a_new_object_joins_with_its_command_or_is_not_made),
		with_members(test_wrong_memberships_are_refused),
		with_members(test_memberships_are_limited_by_quota),
		with_members(test_a_removed_object_leaves_its_collections),
		with_members(test_old_versions_show_the_members_of_their_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
