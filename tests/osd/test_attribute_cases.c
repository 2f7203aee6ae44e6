/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A test for each way in which GET and SET ATTRIBUTES end, in both versions, and for the quotas of
 * containers. What else they do is in test_attributes.c and test_pages.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bytes.h"
#include "tests/osd/unit.h"

/* ---- GET and SET ATTRIBUTES ---- */

static void test_get_attributes_gets_before_it_sets(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_GET_ATTRIBUTES, P, O);

	unit_set(unit, P, O, 0x10000, 1, "old", 3);
	call_set(&call, 0x10000, 1, "new", 3);
	call_get(&call, 0x10000, 1);
	call_run(unit, &call);
	shows_good(unit, GET_ATTRIBUTES, "gets, then sets");
	assert_memory_equal(unit_retrieved(unit, &call, 0).value, "old", 3);
}

static void test_set_attributes_sets_before_it_gets(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_SET_ATTRIBUTES, P, O);

	unit_set(unit, P, O, 0x10000, 1, "old", 3);
	call_set(&call, 0x10000, 1, "new", 3);
	call_get(&call, 0x10000, 1);
	call_run(unit, &call);
	shows_good(unit, SET_ATTRIBUTES, "sets, then gets");
	assert_memory_equal(unit_retrieved(unit, &call, 0).value, "new", 3);
}

static void test_get_attributes_of_what_is_not_defined_gives_an_empty_entry(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_GET_ATTRIBUTES, P, O);

	call_get(&call, 0x10000, 77);
	call_run(unit, &call);
	shows_good(unit, GET_ATTRIBUTES, "not defined: an entry of length 0");
	assert_int_equal(unit_retrieved(unit, &call, 0).length, 0);
}

static void test_get_attributes_refuses_pages_of_other_objects(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_GET_ATTRIBUTES, P, O);

	call_get(&call, OSD_PARTITION_INFORMATION, 1);
	call_run(unit, &call);
	shows_sense(unit, GET_ATTRIBUTES, "a page of another object type", ILLEGAL_REQUEST,
		    INVALID_FIELD_IN_PARAMETER_LIST);
}

static void test_get_attributes_in_page_format_wants_a_page_with_a_structure(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_GET_ATTRIBUTES, P, O);
	uint8_t cdb[OSD_CDB_BYTES_MAX];
	size_t length;

	call.cdb.format = OSD_ATTRIBUTES_PAGE;
	call.cdb.get_page = OSD_USER_OBJECT_TIMESTAMPS;
	call.cdb.retrieved.length = 38;
	assert_int_equal(osd_cdb_encode(&call.cdb, cdb, &length), 0);
	unit_execute(unit, cdb, length, NULL, 0, 38);
	shows_good(unit, GET_ATTRIBUTES, "a page with a structure, in page format");
	assert_int_equal(unit->command.data_in_length, 38);
	call.cdb.get_page = OSD_USER_OBJECT_INFORMATION;
	assert_int_equal(osd_cdb_encode(&call.cdb, cdb, &length), 0);
	unit_execute(unit, cdb, length, NULL, 0, 38);
	shows_field(unit, GET_ATTRIBUTES, "a page without structure, in page format", 52);
}

static void set_one(struct unit *unit, uint32_t page, uint32_t number, const void *value,
		    uint32_t length)
{
	struct call call = call_of(OSD_SET_ATTRIBUTES, P, O);

	call_set(&call, 0x10000, 5, "before", 6);
	call_set(&call, page, number, value, length);
	call_run(unit, &call);
}

static void test_set_attributes_refuses_what_can_t_be_set_and_sets_nothing(void **state)
{
	struct unit *unit = *state;

	set_one(unit, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USED_CAPACITY, "8 bytes!", 8);
	shows_sense(unit, SET_ATTRIBUTES, "a read-only attribute", ILLEGAL_REQUEST,
		    INVALID_FIELD_IN_PARAMETER_LIST);
	set_one(unit, 0x8000, 1, "x", 1);
	shows_sense(unit, SET_ATTRIBUTES, "a reserved page", ILLEGAL_REQUEST,
		    INVALID_FIELD_IN_PARAMETER_LIST);
	set_one(unit, OSD_PARTITION_INFORMATION, OSD_INFORMATION_USERNAME, "x", 1);
	shows_sense(unit, SET_ATTRIBUTES, "a page of another object type", ILLEGAL_REQUEST,
		    INVALID_FIELD_IN_PARAMETER_LIST);
	set_one(unit, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, "7 bytes", 7);
	shows_sense(unit, SET_ATTRIBUTES, "a wrong length", ILLEGAL_REQUEST,
		    INVALID_FIELD_IN_PARAMETER_LIST);
	set_one(unit, OSD_PAGE_ALL, 1, "x", 1);
	shows_sense(unit, SET_ATTRIBUTES, "a wildcard", ILLEGAL_REQUEST,
		    INVALID_FIELD_IN_PARAMETER_LIST);
	set_one(unit, 0x10000, 0, "no NUL", 6);
	shows_sense(unit, SET_ATTRIBUTES, "a page name without NUL", ILLEGAL_REQUEST,
		    INVALID_FIELD_IN_PARAMETER_LIST);
	assert_int_equal(unit_get(unit, P, O, 0x10000, 5, NULL, 0), 0);
}

static void test_set_attributes_of_the_length_keeps_to_the_maximum(void **state)
{
	struct unit *unit = *state;
	uint8_t length[8];

	put_be64(length, 6);
	unit_set_number(unit, P, O, OSD_USER_OBJECT_QUOTAS, OSD_QUOTA_MAXIMUM_LENGTH, 5);
	set_one(unit, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, length, 8);
	shows_sense(unit, SET_ATTRIBUTES, "a logical length above the object's maximum",
		    DATA_PROTECT, QUOTA_ERROR);
	assert_int_equal(unit_get(unit, P, O, 0x10000, 5, NULL, 0), 0);
}

static void test_set_attributes_in_cdb_format_points_into_the_cdb(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_SET_ATTRIBUTES, P, O);

	call.cdb.format = OSD_ATTRIBUTES_CDB;
	call.cdb.set_page = 0x10000;
	call.cdb.set_number = 1;
	call.cdb.set_length = 3;
	memcpy(call.cdb.set_value, "cdb", 3);
	call_run(unit, &call);
	shows_good(unit, SET_ATTRIBUTES, "one attribute in CDB format");
	call.cdb.set_page = 0x8000;
	call_run(unit, &call);
	shows_field(unit, SET_ATTRIBUTES, "an attribute that can't be set, in CDB format", 52);
}

/* ---- quotas of containers ---- */

static void test_create_keeps_to_the_object_count(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE, P, 0);

	unit_set_number(unit, P, 0, OSD_PARTITION_QUOTAS, OSD_QUOTA_OBJECT_COUNT, 1);
	call_run(unit, &call);
	shows_sense(unit, CREATE, "more objects than the partition may have", DATA_PROTECT,
		    QUOTA_ERROR);
}

static void test_create_and_write_keeps_to_quotas(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_AND_WRITE, P, O + 1);

	unit_set_number(unit, P, 0, OSD_PARTITION_QUOTAS, OSD_QUOTA_MAXIMUM_LENGTH, 4);
	call_data(&call, "hello", 5);
	call_run(unit, &call);
	shows_sense(unit, CREATE_AND_WRITE, "beyond a quota: none is made", DATA_PROTECT,
		    QUOTA_ERROR);
	call = call_of(OSD_GET_ATTRIBUTES, P, O + 1);
	call_run(unit, &call);
	expect_field(unit, 24);
}

static void test_create_partition_keeps_to_the_partition_count(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_PARTITION, 0, 0);

	unit_set_number(unit, 0, 0, OSD_ROOT_QUOTAS, OSD_QUOTA_PARTITION_COUNT, 1);
	call_run(unit, &call);
	shows_sense(unit, CREATE_PARTITION, "more partitions than the root may have", DATA_PROTECT,
		    QUOTA_ERROR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object_in_both(test_get_attributes_gets_before_it_sets),
		with_object_in_both(test_set_attributes_sets_before_it_gets),
		with_object_in_both(
			test_get_attributes_of_what_is_not_defined_gives_an_empty_entry),
		with_object_in_both(test_get_attributes_refuses_pages_of_other_objects),
		with_object_in_both(
			test_get_attributes_in_page_format_wants_a_page_with_a_structure),
		with_object_in_both(test_set_attributes_refuses_what_can_t_be_set_and_sets_nothing),
		with_object_in_both(test_set_attributes_of_the_length_keeps_to_the_maximum),
		with_object(test_set_attributes_in_cdb_format_points_into_the_cdb),
		with_object_in_both(test_create_keeps_to_the_object_count),
		with_object_in_both(test_create_and_write_keeps_to_quotas),
		with_object_in_both(test_create_partition_keeps_to_the_partition_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
