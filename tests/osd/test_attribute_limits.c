/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Where commands end since an object would have too many attributes or memberships, or a list could
 * not say all that there is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "tests/osd/collection_calls.h"

/* Pages and numbers that take anything. */
#define PAGE 0x10010u

enum { LONG_BYTES = 40000 };

static void run(struct unit *unit, uint16_t action, uint64_t partition, uint64_t object)
{
	struct call call = call_of(action, partition, object);

	call_run(unit, &call);
}

static void add_source(struct call *call, uint64_t object, bool attributes)
{
	struct osd_copy_source source = { P, object, attributes, false, 0 };
	uint8_t content[OSD_COPY_SOURCE_BYTES];

	osd_copy_source_encode(&source, content);
	call_descriptor(call, OSD_CONTINUATION_COPY_SOURCE, content, sizeof(content));
}

/* ---- attributes of one object ---- */

static void join(struct unit *unit, uint32_t number, uint64_t collection)
{
	struct call call = call_of(OSD_SET_ATTRIBUTES, P, O);

	call_set_number(&call, OSD_USER_OBJECT_COLLECTIONS, number, collection);
	call_run(unit, &call);
}

static void test_an_object_joins_collections_that_are_there_once_each(void **state)
{
	struct unit *unit = *state;

	run(unit, OSD_CREATE_COLLECTION, P, C);
	join(unit, 1, C);
	expect_good(unit);
	join(unit, 2, C);
	shows_sense(unit, SET_ATTRIBUTES, "a second membership in one collection", ILLEGAL_REQUEST,
		    INVALID_FIELD_IN_PARAMETER_LIST);
	assert_int_equal(unit_sense(unit).attribute[0].number, 2);
	join(unit, 2, C + 1);
	shows_sense(unit, SET_ATTRIBUTES, "a membership in a collection that is not there",
		    ILLEGAL_REQUEST, INVALID_FIELD_IN_PARAMETER_LIST);
	join(unit, 2, O);
	shows_sense(unit, SET_ATTRIBUTES, "a membership in what is no collection", ILLEGAL_REQUEST,
		    INVALID_FIELD_IN_PARAMETER_LIST);
}

static void test_an_object_is_in_as_many_collections_as_the_quota_allows(void **state)
{
	struct unit *unit = *state;
	uint8_t quota[4];

	put_be32(quota, 1);
	unit_set(unit, P, 0, OSD_PARTITION_QUOTAS, OSD_QUOTA_COLLECTIONS_PER_OBJECT, quota, 4);
	run(unit, OSD_CREATE_COLLECTION, P, C);
	run(unit, OSD_CREATE_COLLECTION, P, C + 1);
	join(unit, 1, C);
	expect_good(unit);
	join(unit, 2, C + 1);
	shows_sense(unit, SET_ATTRIBUTES, "more memberships than COLLECTIONS PER USER OBJECT",
		    DATA_PROTECT, QUOTA_ERROR);
	join(unit, 1, C + 1); /* moves */
	expect_good(unit);
}

static void test_an_object_is_in_1024_collections_at_most(void **state)
{
	struct unit *unit = *state;

	for (uint32_t i = 0; i <= ENGINE_MEMBERSHIPS_MAX; i++) {
		run(unit, OSD_CREATE_COLLECTION, P, C + i);
		expect_good(unit);
		join(unit, i + 1, C + i);
		if (i < ENGINE_MEMBERSHIPS_MAX)
			expect_good(unit);
	}
	shows_sense(unit, SET_ATTRIBUTES, "more than 1,024 memberships", ILLEGAL_REQUEST,
		    INVALID_FIELD_IN_PARAMETER_LIST);
}

static void test_the_attributes_of_an_object_are_1_mib_at_most(void **state)
{
	struct unit *unit = *state;
	uint32_t count = 0;

	do
		unit_try_set_long(unit, P, O, PAGE, ++count, 65534);
	while (unit->command.status == SCSI_STATUS_GOOD && count < 20);
	assert_int_equal(count, 16);
	shows_sense(unit, SET_ATTRIBUTES, "more than 1 MiB of attributes", ILLEGAL_REQUEST,
		    INVALID_FIELD_IN_PARAMETER_LIST);
	assert_int_equal(unit_sense(unit).attribute[0].number, count);
	unit_try_set_long(unit, P, O, PAGE, 1, 65535);
	shows_sense(unit, SET_ATTRIBUTES, "a value above 65,534 bytes", ILLEGAL_REQUEST,
		    INVALID_FIELD_IN_PARAMETER_LIST);
}

static void test_a_length_is_one_that_an_object_can_have(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_SET_ATTRIBUTES, P, O);

	call_set_number(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH,
			UINT64_MAX);
	call_run(unit, &call);
	shows_sense(unit, SET_ATTRIBUTES, "a logical length above that of the largest object",
		    ILLEGAL_REQUEST, INVALID_FIELD_IN_PARAMETER_LIST);
}

static void test_sets_of_get_attributes_keep_to_quotas(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_GET_ATTRIBUTES, P, O);

	unit_set_number(unit, P, O, OSD_USER_OBJECT_QUOTAS, OSD_QUOTA_MAXIMUM_LENGTH, 5);
	call_set_number(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, 6);
	call_run(unit, &call);
	shows_sense(unit, GET_ATTRIBUTES, "sets a logical length above the object's maximum",
		    DATA_PROTECT, QUOTA_ERROR);
}

/* ---- lists about several objects ---- */

/* Attributes of O that are more than the length of an object in such lists can say. */
static void fill_attributes(struct unit *unit)
{
	unit_set_long(unit, P, O, PAGE, 1, LONG_BYTES);
	unit_set_long(unit, P, O, PAGE, 2, LONG_BYTES);
}

static void get_all(struct call *call)
{
	call->cdb.list_attributes = true;
	call->cdb.length = call->data_in_capacity = 1 << 20;
	call_get(call, PAGE, OSD_ATTRIBUTE_ALL);
}

static void test_a_list_names_the_object_that_has_more_than_it_can_say(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_LIST, P, 0);

	fill_attributes(unit);
	run(unit, OSD_CREATE_COLLECTION, P, C);
	unit_join(unit, O, 1, C);
	get_all(&call);
	call_run(unit, &call);
	shows_sense(unit, LIST, "LIST_ATTR: attributes of an object are above 65,528 bytes",
		    ILLEGAL_REQUEST, INVALID_FIELD_IN_PARAMETER_LIST);
	assert_int_equal(unit_sense(unit).object, O);
	call = call_of(OSD_LIST_COLLECTION, P, C);
	get_all(&call);
	call_run(unit, &call);
	shows_sense(unit, LIST_COLLECTION,
		    "LIST_ATTR: attributes of a member are above 65,528 bytes", ILLEGAL_REQUEST,
		    INVALID_FIELD_IN_PARAMETER_LIST);
	assert_int_equal(unit_sense(unit).object, O);
}

static void test_a_list_asks_for_attributes_that_its_entries_can_have(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_LIST, P, 0);

	get_all(&call);
	call_get(&call, OSD_PARTITION_INFORMATION, OSD_INFORMATION_USERNAME);
	call_run(unit, &call);
	shows_sense(unit, LIST, "LIST_ATTR: a page that its entries can't have", ILLEGAL_REQUEST,
		    INVALID_FIELD_IN_PARAMETER_LIST);
	run(unit, OSD_CREATE_COLLECTION, P, C);
	call.cdb.action = OSD_LIST_COLLECTION;
	call.cdb.object = C;
	call_run(unit, &call);
	shows_sense(unit, LIST_COLLECTION, "LIST_ATTR: a page that its entries can't have",
		    ILLEGAL_REQUEST, INVALID_FIELD_IN_PARAMETER_LIST);
	call = call_of(OSD_LIST_COLLECTION, P, C);
	call.cdb.length = call.data_in_capacity = 512;
	call.cdb.list_attributes = true;
	call.cdb.format = OSD_ATTRIBUTES_PAGE;
	call_run(unit, &call);
	shows_field(unit, LIST_COLLECTION, "LIST_ATTR outside list format", 11);
}

/* Creates two objects, each with two long attributes, and asks for both. */
static void create_with_long_attributes(struct unit *unit)
{
	size_t list_bytes = 2 * LONG_BYTES + 64;
	uint8_t *out = calloc(1, list_bytes + 64), *value = calloc(1, LONG_BYTES);
	struct osd_cdb cdb = { .version = OSD_2,
			       .action = OSD_CREATE,
			       .format = OSD_ATTRIBUTES_LIST,
			       .partition = P,
			       .objects = 2,
			       .retrieved = { 0, 1 << 18 } };
	struct osd_list_writer writer;
	uint8_t bytes[OSD_CDB_BYTES_MAX];
	size_t cdb_length;

	assert_true(out && value);
	osd_list_begin(&writer, OSD_2, OSD_LIST_TO_GET, out, 64);
	osd_list_add_request(&writer, PAGE, OSD_ATTRIBUTE_ALL);
	cdb.get_list.length = (uint32_t)osd_list_end(&writer);
	cdb.set_data.offset = 64;
	osd_list_begin(&writer, OSD_2, OSD_LIST_TO_SET, out + 64, list_bytes);
	assert_true(osd_list_add_value(&writer, PAGE, 1, value, LONG_BYTES));
	assert_true(osd_list_add_value(&writer, PAGE, 2, value, LONG_BYTES));
	cdb.set_data.length = (uint32_t)osd_list_end(&writer);
	assert_int_equal(osd_cdb_encode(&cdb, bytes, &cdb_length), 0);
	unit_execute(unit, bytes, cdb_length, out, 64 + cdb.set_data.length, 1 << 18);
	free(value);
	free(out);
}

static void test_several_new_objects_have_attributes_that_a_list_can_say(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_COPY_USER_OBJECTS, P, 0);

	create_with_long_attributes(unit);
	shows_sense(unit, CREATE, "several objects: attributes of one are above 65,528 bytes",
		    ILLEGAL_REQUEST, INVALID_FIELD_IN_PARAMETER_LIST);
	fill_attributes(unit);
	add_source(&call, O, true);
	add_source(&call, O, true);
	call.retrieved_capacity = 1 << 18;
	call_get(&call, PAGE, OSD_ATTRIBUTE_ALL);
	call_run(unit, &call);
	shows_sense(unit, COPY_USER_OBJECTS, "several: attributes of one are above 65,528 bytes",
		    ILLEGAL_REQUEST, INVALID_FIELD_IN_PARAMETER_LIST);
	assert_int_equal(
		unit_get_number(unit, P, 0, OSD_PARTITION_INFORMATION, OSD_INFORMATION_MEMBERS), 1);
}

static void test_several_new_objects_are_asked_by_lists_one_attribute_after_the_other(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE, P, 0);

	call.cdb.objects = 2;
	call.cdb.format = OSD_ATTRIBUTES_PAGE;
	call.cdb.get_page = OSD_USER_OBJECT_TIMESTAMPS;
	call.cdb.retrieved.length = 64;
	call.data_in_capacity = 64;
	call_run(unit, &call);
	shows_field(unit, CREATE, "several objects: page format, but for the current command page",
		    52);
	call = call_of(OSD_CREATE, P, 0);
	call.cdb.objects = 2;
	call_get(&call, PAGE, OSD_ATTRIBUTE_ALL);
	call_run(unit, &call);
	if (unit_version == OSD_1)
		shows_sense(unit, CREATE, "several objects, in OSD-1: a wildcard", ILLEGAL_REQUEST,
			    INVALID_FIELD_IN_PARAMETER_LIST);
	else
		expect_good(unit);
}

static void test_several_copies_are_asked_by_lists(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_COPY_USER_OBJECTS, P, 0);

	add_source(&call, O, false);
	add_source(&call, O, false);
	call.cdb.format = OSD_ATTRIBUTES_PAGE;
	call.cdb.get_page = OSD_USER_OBJECT_TIMESTAMPS;
	call.cdb.retrieved.length = 64;
	call.data_in_capacity = 64;
	call_run(unit, &call);
	shows_field(unit, COPY_USER_OBJECTS,
		    "several: page format, but for the current command page", 52);
}

/* ---- commands on members ---- */

static void test_set_member_attributes_has_no_page_format(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_SET_MEMBER_ATTRIBUTES, P, T);

	call.cdb.format = OSD_ATTRIBUTES_PAGE;
	call.cdb.get_page = OSD_USER_OBJECT_TIMESTAMPS;
	call.cdb.retrieved.length = 64;
	call.data_in_capacity = 64;
	call_run(unit, &call);
	shows_field(unit, SET_MEMBER_ATTRIBUTES, "page format, but for the current command page",
		    52);
}

static void test_set_member_attributes_asks_user_objects(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_SET_MEMBER_ATTRIBUTES, P, T);

	call_get(&call, OSD_COLLECTION_INFORMATION, OSD_INFORMATION_USERNAME);
	call_run(unit, &call);
	shows_sense(unit, SET_MEMBER_ATTRIBUTES,
		    "a get of a page of another type than user objects", ILLEGAL_REQUEST,
		    INVALID_FIELD_IN_PARAMETER_LIST);
	assert_members(unit, T, (1U << MEMBERS) - 1);
}

static void test_32_commands_on_tracking_collections_are_at_work_at_most(void **state)
{
	static const uint8_t list[20] = {
		OSD_QUERY_ALL, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, OSD_INFORMATION_USERNAME
	};
	struct unit *unit = *state;
	struct call call = call_of(OSD_QUERY, P, C);

	for (uint64_t i = 0; i < OSD_TRACKERS_MAX; i++)
		unit->device->trackers.entries[i] =
			(struct osd_tracker){ P, T + 100 + i, OSD_QUERY, false };
	run(unit, OSD_GET_MEMBER_ATTRIBUTES, P, T);
	shows_sense(unit, GET_MEMBER_ATTRIBUTES,
		    "32 other commands on tracking collections are at work", ILLEGAL_REQUEST,
		    SYSTEM_RESOURCE_FAILURE);
	run(unit, OSD_SET_MEMBER_ATTRIBUTES, P, T);
	shows_sense(unit, SET_MEMBER_ATTRIBUTES,
		    "32 other commands on tracking collections are at work", ILLEGAL_REQUEST,
		    SYSTEM_RESOURCE_FAILURE);
	call.cdb.address = T;
	call_descriptor(&call, OSD_CONTINUATION_QUERY_LIST, list, sizeof(list));
	call_run(unit, &call);
	shows_sense(unit, QUERY, "32 other commands on tracking collections are at work",
		    ILLEGAL_REQUEST, SYSTEM_RESOURCE_FAILURE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object_in_both(test_an_object_joins_collections_that_are_there_once_each),
		with_object_in_both(test_an_object_is_in_as_many_collections_as_the_quota_allows),
		with_object_in_both(test_an_object_is_in_1024_collections_at_most),
		with_object_in_both(test_the_attributes_of_an_object_are_1_mib_at_most),
		with_object_in_both(test_a_length_is_one_that_an_object_can_have),
		with_object_in_both(test_sets_of_get_attributes_keep_to_quotas),
		with_object(test_a_list_names_the_object_that_has_more_than_it_can_say),
		with_object(test_a_list_asks_for_attributes_that_its_entries_can_have),
		with_object(test_several_new_objects_have_attributes_that_a_list_can_say),
		with_object_in_both(
			test_several_new_objects_are_asked_by_lists_one_attribute_after_the_other),
		with_object(test_several_copies_are_asked_by_lists),
		with_members(test_set_member_attributes_asks_user_objects),
		with_members(test_set_member_attributes_has_no_page_format),
		with_members(test_32_commands_on_tracking_collections_are_at_work_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
