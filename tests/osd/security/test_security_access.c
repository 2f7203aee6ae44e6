/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * ALLOWED ATTRIBUTES ACCESS: capabilities for some attributes only, and the page that lists them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bytes.h"
#include "tests/osd/secured.h"

#define FIELD_ACCESS 136
#define APPLICATION  0x10003u

/*
 * What test capabilities name: list 3 has all of an application page, the name of any page, and one
 * more attribute.
 */
#define LIST 3
static const uint8_t items[] = {
	0x00, 0x01, 0x00, 0x03, 0xFF, 0xFF, 0xFF, 0xFF, /* 10003, all */
	0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, /* all, 0 */
	0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x82, /* logical length */
};

static void secure(struct unit *unit)
{
	unit_set(unit, P, 0, OSD_PARTITION_ATTRIBUTES_ACCESS, LIST, items, sizeof(items));
	unit_set(unit, P, O, APPLICATION, 7, "seven", 5);
	secured_set_method(unit, P, OSD_CMDRSP);
}

static struct signed_call restricted(struct unit *unit, uint16_t action, uint64_t object)
{
	struct signed_call call = signed_call_of(unit, action, P, object, OSD_CMDRSP);

	call.capability.attributes_access = LIST;
	call.call.retrieved_capacity = 2048;
	return call;
}

/* Is a get of this attribute allowed? */
static bool may_get(struct unit *unit, uint32_t page, uint32_t number)
{
	struct signed_call call = restricted(unit, OSD_GET_ATTRIBUTES, O);

	call_get(&call.call, APPLICATION, 7); /* that is */
	call_get(&call.call, page, number);
	signed_run(unit, &call);
	if (unit->command.status == SCSI_STATUS_GOOD)
		return true;
	expect_field(unit, FIELD_ACCESS);
	return false;
}

static bool may_set(struct unit *unit, uint32_t page, uint32_t number, const void *value,
		    uint32_t length)
{
	struct signed_call call = restricted(unit, OSD_SET_ATTRIBUTES, O);

	call_set(&call.call, APPLICATION, 8, "eight", 5);
	call_set(&call.call, page, number, value, length);
	signed_run(unit, &call);
	if (unit->command.status == SCSI_STATUS_GOOD)
		return true;
	expect_field(unit, FIELD_ACCESS);
	return false;
}

static void test_listed_attributes_can_be_got_and_no_others(void **state)
{
	struct unit *unit = *state;

	secure(unit);
	assert_true(may_get(unit, APPLICATION, 7));
	assert_true(may_get(unit, APPLICATION, OSD_ATTRIBUTE_ALL));
	assert_true(may_get(unit, OSD_USER_OBJECT_TIMESTAMPS, 0));
	assert_true(may_get(unit, OSD_PAGE_ALL, 0));
	assert_true(may_get(unit, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH));
	assert_true(may_get(unit, OSD_PAGE_CURRENT_COMMAND, OSD_ATTRIBUTE_ALL));
	assert_false(may_get(unit, APPLICATION + 1, 7));
	assert_false(may_get(unit, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USERNAME));
	assert_false(may_get(unit, OSD_USER_OBJECT_INFORMATION, OSD_ATTRIBUTE_ALL));
	assert_false(may_get(unit, OSD_PAGE_ALL, OSD_ATTRIBUTE_ALL));
	assert_false(may_get(unit, OSD_PAGE_ALL, 7));
}

static void test_listed_attributes_can_be_set_and_no_others(void **state)
{
	struct unit *unit = *state;
	uint64_t before;

	secure(unit);
	assert_true(may_set(unit, APPLICATION, 9, "nine", 4));
	assert_true(may_set(unit, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH,
			    "\0\0\0\0\0\0\0\1", 8));
	before = contents_of(unit);
	assert_false(may_set(unit, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USERNAME, "x", 1));
	assert_false(may_set(unit, OSD_USER_OBJECT_SECURITY, OSD_SECURITY_POLICY_ACCESS_TAG,
			     "\1\2\3\4", 4));
	assert_int_equal(contents_of(unit), before);
}

static void test_lists_behind_data_are_held_to_it(void **state)
{
	uint8_t data[300];
	struct unit *unit = *state;
	struct signed_call call;

	memset(data, 'y', sizeof(data));
	secure(unit);
	for (int allowed = 0; allowed <= 1; allowed++) {
		uint32_t page = allowed ? APPLICATION : OSD_USER_OBJECT_INFORMATION;
		uint64_t before = contents_of(unit);

		for (int sets = 0; sets <= 1; sets++) {
			call = restricted(unit, OSD_WRITE, O);
			call_data(&call.call, data, sizeof(data));
			if (sets)
				call_set(&call.call, page, OSD_INFORMATION_USERNAME, "x", 1);
			else
				call_get(&call.call, page, OSD_INFORMATION_USERNAME);
			signed_run(unit, &call);
			if (allowed) {
				expect_good(unit);
				continue;
			}
			expect_field(unit, FIELD_ACCESS);
			assert_int_equal(contents_of(unit), before);
		}
	}
}

static void test_page_and_cdb_format_are_held_to_the_list(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;

	secure(unit);
	call = restricted(unit, OSD_GET_ATTRIBUTES, O);
	call.call.cdb.format = OSD_ATTRIBUTES_PAGE;
	call.call.cdb.get_page = OSD_USER_OBJECT_TIMESTAMPS;
	call.call.cdb.retrieved.length = call.call.data_in_capacity = 64;
	signed_run(unit, &call);
	expect_field(unit, FIELD_ACCESS);
	call.call.cdb.get_page = OSD_PAGE_CURRENT_COMMAND;
	fresh_nonce(unit, call.nonce);
	signed_run(unit, &call);
	expect_good(unit);
	call = restricted(unit, OSD_SET_ATTRIBUTES, O);
	call.call.cdb.format = OSD_ATTRIBUTES_CDB;
	call.call.cdb.set_page = OSD_USER_OBJECT_INFORMATION;
	call.call.cdb.set_number = OSD_INFORMATION_USERNAME;
	call.call.cdb.set_length = 4;
	signed_run(unit, &call);
	expect_field(unit, FIELD_ACCESS);
	call.call.cdb.set_page = APPLICATION;
	fresh_nonce(unit, call.nonce);
	signed_run(unit, &call);
	expect_good(unit);
}

static void test_commands_that_work_on_attributes_are_held_to_the_list(void **state)
{
	static const uint8_t query[20] = { 0, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 9 };
	static const uint8_t operand[8];
	struct osd_copy_source source = { .partition = P, .object = O };
	uint8_t content[OSD_COPY_SOURCE_BYTES];
	struct unit *unit = *state;
	struct signed_call call;
	struct call make = call_of(OSD_CREATE_COLLECTION, P, O + 50);

	call_run(unit, &make);
	expect_good(unit);
	secure(unit);
	/* A query tells of usernames. */
	call = restricted(unit, OSD_QUERY, O + 50);
	call.call.cdb.length = call.call.data_in_capacity = 64;
	call.capability.object_type = OSD_TYPE_COLLECTION;
	call.capability.descriptor_type = osd_descriptor_type(OSD_2, OSD_TYPE_COLLECTION);
	call_descriptor(&call.call, OSD_CONTINUATION_QUERY_LIST, query, sizeof(query));
	signed_run(unit, &call);
	expect_field(unit, FIELD_ACCESS);
	/* FETCH AND ADD changes an attribute of page 7. */
	call = restricted(unit, OSD_FETCH_AND_ADD, O);
	call_data(&call.call, operand, 8);
	call.call.data_in_capacity = 8;
	signed_run(unit, &call);
	expect_field(unit, FIELD_ACCESS);
	/* A copy without the attributes is one of data. */
	for (int attributes = 0; attributes <= 1; attributes++) {
		source.attributes = attributes;
		osd_copy_source_encode(&source, content);
		call = restricted(unit, OSD_COPY_USER_OBJECTS, 0);
		call.capability.object_type = OSD_TYPE_USER_OBJECT;
		call.capability.descriptor_type = osd_descriptor_type(OSD_2, OSD_TYPE_USER_OBJECT);
		call_descriptor(&call.call, OSD_CONTINUATION_COPY_SOURCE, content, sizeof(content));
		signed_extend(&call, P, O, OSD_TYPE_USER_OBJECT, 0xFFFC);
		signed_run(unit, &call);
		if (attributes)
			expect_field(unit, FIELD_ACCESS);
		else
			expect_good(unit);
	}
	/* Commands without attributes are none of its business. */
	call = restricted(unit, OSD_READ, O);
	call.call.cdb.length = call.call.data_in_capacity = 16;
	signed_run(unit, &call);
	expect_good(unit);
}

/* The operands: what to add; what to compare with, and what to store. */
static void test_atomic_commands_whose_attribute_is_listed_are_allowed(void **state)
{
	static const uint8_t atomics[] = {
		0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00, 0x01, /* COMPARE AND SWAP */
		0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00, 0x02, /* FETCH AND ADD */
	};
	static const uint8_t operands[16];
	struct unit *unit = *state;

	/* One of both, or both. */
	for (uint32_t listed = 0; listed < 3; listed++)
		unit_set(unit, P, 0, OSD_PARTITION_ATTRIBUTES_ACCESS, LIST + listed,
			 atomics + (listed == 1 ? 8 : 0), listed == 2 ? 16 : 8);
	secured_set_method(unit, P, OSD_CMDRSP);
	for (uint32_t n = 0; n < 6; n++) {
		uint16_t action = n % 2 ? OSD_FETCH_AND_ADD : OSD_COMPARE_AND_SWAP;
		struct signed_call call = restricted(unit, action, O);

		call.capability.attributes_access = LIST + n / 2;
		call_data(&call.call, operands, n % 2 ? 8 : 16);
		call.call.cdb.length = 8;
		call.call.data_in_capacity = 8;
		signed_run(unit, &call);
		if (n / 2 == n % 2 || n / 2 == 2)
			expect_good(unit);
		else
			expect_field(unit, FIELD_ACCESS);
	}
}

static void test_a_list_that_is_not_there_allows_nothing(void **state)
{
	static const uint32_t numbers[] = { 1, OSD_ACCESS_LISTS_MAX + 1, UINT32_MAX };
	struct unit *unit = *state;

	secure(unit);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct signed_call call = restricted(unit, OSD_READ, O);

		call.capability.attributes_access = numbers[i];
		call.call.cdb.length = call.call.data_in_capacity = 16;
		signed_run(unit, &call);
		expect_field(unit, FIELD_ACCESS);
	}
}

static void test_lists_are_policy(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;

	secure(unit);
	call = signed_call_of(unit, OSD_SET_ATTRIBUTES, P, 0, OSD_CMDRSP);
	call_set(&call.call, OSD_PARTITION_ATTRIBUTES_ACCESS, LIST, items, 8);
	call.capability.permissions &= (uint16_t)~OSD_PERMISSION_POL_SEC;
	signed_run(unit, &call);
	expect_field(unit, OSD_FIELD_PERMISSIONS);
	call.capability.permissions |= OSD_PERMISSION_POL_SEC;
	fresh_nonce(unit, call.nonce);
	signed_run(unit, &call);
	expect_good(unit);
	/* What is not listed any more is not allowed from now on. */
	assert_false(may_get(unit, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH));
	assert_true(may_get(unit, APPLICATION, 7));
}

static void test_going_back_in_time_brings_no_old_list_back(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_SNAPSHOT, P + 1, 0);
	struct signed_call restore;

	unit_set(unit, P, 0, OSD_PARTITION_ATTRIBUTES_ACCESS, LIST,
		 "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 8);
	call.cdb.address = P;
	call_run(unit, &call);
	expect_good(unit);
	secure(unit);
	restore = signed_call_of(unit, OSD_RESTORE_PARTITION_FROM_SNAPSHOT, P, 0, OSD_CMDRSP);
	restore.call.cdb.address = P + 1;
	signed_extend(&restore, P + 1, 0, OSD_TYPE_PARTITION, 0xFFFC);
	signed_run(unit, &restore);
	expect_good(unit);
	assert_false(may_get(unit, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USERNAME));
	assert_true(may_get(unit, APPLICATION, OSD_ATTRIBUTE_ALL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_keys(test_listed_attributes_can_be_got_and_no_others),
		with_keys(test_listed_attributes_can_be_set_and_no_others),
		with_keys(test_lists_behind_data_are_held_to_it),
		with_keys(test_page_and_cdb_format_are_held_to_the_list),
		with_keys(test_commands_that_work_on_attributes_are_held_to_the_list),
		with_keys(test_atomic_commands_whose_attribute_is_listed_are_allowed),
		with_keys(test_a_list_that_is_not_there_allows_nothing),
		with_keys(test_lists_are_policy),
		with_keys(test_going_back_in_time_brings_no_old_list_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
