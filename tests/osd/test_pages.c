/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Page and CDB format, answers about several objects, and the standard pages: identity, times,
 * quotas.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/osd/unit.h"

#define APPLICATION_PAGE 0x10003u

/* ---- page and CDB format ---- */

/* Gets a page and sets an attribute in page format. */
static void run_page(struct unit *unit, uint64_t object, uint32_t get_page, uint32_t room,
		     uint32_t set_page, uint32_t set_number, const void *value, size_t length)
{
	struct osd_cdb decoded = { .version = OSD_2,
				   .action = OSD_SET_ATTRIBUTES,
				   .format = OSD_ATTRIBUTES_PAGE,
				   .partition = P,
				   .object = object,
				   .get_page = get_page,
				   .retrieved = { 0, room },
				   .set_page = set_page,
				   .set_number = set_number,
				   .set_data = { 0, (uint32_t)length } };
	uint8_t cdb[OSD_CDB_BYTES_MAX];

	assert_int_equal(osd_cdb_encode(&decoded, cdb, NULL), 0);
	unit_execute(unit, cdb, OSD2_CDB_BYTES, value, length, room);
}

static void test_page_format_sets_one_attribute_and_gets_one_page(void **state)
{
	struct unit *unit = *state;
	char value[8];

	run_page(unit, O, OSD_USER_OBJECT_TIMESTAMPS, 38, APPLICATION_PAGE, 7, "seven", 5);
	expect_good(unit);
	assert_int_equal(unit->command.data_in_length, 38);
	assert_int_equal(get_be32(unit->data_in), OSD_USER_OBJECT_TIMESTAMPS);
	assert_int_equal(get_be32(unit->data_in + 4), 0x1E);
	assert_int_equal(get_be48(unit->data_in + 8), UNIT_CLOCK);
	assert_int_equal(unit_get(unit, P, O, APPLICATION_PAGE, 7, value, sizeof(value)), 5);
	run_page(unit, O, 0, 0, APPLICATION_PAGE, 7, NULL, 0);
	expect_good(unit);
	assert_int_equal(unit_get(unit, P, O, APPLICATION_PAGE, 7, value, sizeof(value)), 0);
}

static void test_pages_with_a_structure_have_the_standard_s_lengths(void **state)
{
	static const struct {
		uint64_t partition, object;
		uint32_t page, length;
	} cases[] = {
		{ P, O, OSD_USER_OBJECT_QUOTAS, 0x08 },
		{ P, O, OSD_USER_OBJECT_TIMESTAMPS, 0x1E },
		{ P, 0, OSD_PARTITION_QUOTAS, 0x1C },
		{ P, 0, OSD_PARTITION_TIMESTAMPS, 0x1F },
		{ 0, 0, OSD_ROOT_QUOTAS, 0x24 },
		{ 0, 0, OSD_ROOT_TIMESTAMPS, 0x0D },
		{ P, O, OSD_PAGE_CURRENT_COMMAND, 0x44 },
	};
	struct unit *unit = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct call call = call_of(OSD_GET_ATTRIBUTES, cases[i].partition, cases[i].object);

		call.cdb.format = OSD_ATTRIBUTES_PAGE;
		call.cdb.get_page = cases[i].page;
		call.cdb.retrieved.length = 100;
		call.data_in_capacity = 100;
		call_run(unit, &call);
		expect_good(unit);
		assert_int_equal(get_be32(unit->data_in), cases[i].page);
		assert_int_equal(get_be32(unit->data_in + 4), cases[i].length);
		assert_int_equal(unit->command.data_in_length, 8 + cases[i].length);
		call.cdb.retrieved.length = 9;
		call_run(unit, &call);
		expect_good(unit);
		assert_int_equal(unit->command.data_in_length, 9);
	}
}

static void test_page_format_refuses_what_has_no_structure(void **state)
{
	struct unit *unit = *state;

	run_page(unit, O, OSD_USER_OBJECT_INFORMATION, 64, 0, 0, NULL, 0);
	expect_field(unit, 52);
	run_page(unit, O, APPLICATION_PAGE, 64, 0, 0, NULL, 0);
	expect_field(unit, 52);
	run_page(unit, O, OSD_PARTITION_QUOTAS, 64, 0, 0, NULL, 0);
	expect_field(unit, 52);
	run_page(unit, O, 0, 0, OSD_USER_OBJECT_INFORMATION, 1, "12345678", 8);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	run_page(unit, O, OSD_PAGE_ALL, 4096, 0, 0, NULL, 0);
	expect_good(unit);
	assert_int_equal(unit->data_in[0], OSD_LIST_TYPE_VALUES);
}

static void test_the_current_command_page_of_several_new_objects_names_the_highest(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE, P, 0);

	call.cdb.objects = 3;
	call.cdb.format = OSD_ATTRIBUTES_PAGE;
	call.cdb.get_page = OSD_PAGE_CURRENT_COMMAND;
	call.cdb.retrieved.length = 76;
	call.data_in_capacity = 76;
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit->data_in[40], OSD_TYPE_USER_OBJECT);
	assert_int_equal(get_be64(unit->data_in + 44), P);
	assert_int_equal(get_be64(unit->data_in + 52), O + 3);
	call.cdb.get_page = OSD_USER_OBJECT_TIMESTAMPS;
	call_run(unit, &call);
	expect_field(unit, 52);
}

static void test_cdb_format_sets_one_attribute(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_WRITE, P, O);
	char value[8];

	call_data(&call, "data", 4);
	call.cdb.format = OSD_ATTRIBUTES_CDB;
	call.cdb.set_page = APPLICATION_PAGE;
	call.cdb.set_number = 4;
	call.cdb.set_length = 4;
	memcpy(call.cdb.set_value, "four", 4);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit_get(unit, P, O, APPLICATION_PAGE, 4, value, sizeof(value)), 4);
	assert_memory_equal(value, "four", 4);
	call.cdb.set_page = OSD_USER_OBJECT_INFORMATION;
	call.cdb.set_number = OSD_INFORMATION_OBJECT_ID;
	call_run(unit, &call);
	expect_field(unit, 52);
	assert_int_equal(unit_sense(unit).attribute[0].number, OSD_INFORMATION_OBJECT_ID);
}

/* ---- several objects ---- */

static void test_several_new_objects_answer_object_by_object_in_osd2(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE, P, 0);
	const uint8_t *list;

	call.cdb.objects = 2;
	call_set(&call, APPLICATION_PAGE, 1, "set", 3);
	call_get(&call, 1, OSD_INFORMATION_OBJECT_ID);
	call_get(&call, APPLICATION_PAGE, 1);
	call_run(unit, &call);
	expect_good(unit);
	list = unit->data_in;
	assert_int_equal(list[0], OSD_LIST_TYPE_OBJECTS);
	assert_int_equal(unit->command.data_in_length, 8 + 2 * (16 + 24 + 24));
	for (uint64_t i = 0; i < 2; i++) {
		const uint8_t *element = list + 8 + i * 64;

		assert_int_equal(get_be64(element), O + 1 + i);
		assert_int_equal(element[8], OSD_TYPE_USER_OBJECT);
		assert_int_equal(get_be16(element + 14), 48);
		assert_int_equal(get_be64(element + 32), O + 1 + i);
		assert_memory_equal(element + 56, "set", 3);
	}
}

static void test_several_new_objects_answer_attribute_by_attribute_in_osd1(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of_version(OSD_1, OSD_CREATE, P, 0);
	const uint8_t *list;

	call.cdb.objects = 2;
	call_get(&call, 1, OSD_INFORMATION_OBJECT_ID);
	call_get(&call, 1, OSD_INFORMATION_LOGICAL_LENGTH);
	call_run(unit, &call);
	expect_good(unit);
	list = unit->data_in;
	assert_int_equal(list[0], OSD_LIST_TYPE_OBJECTS_OSD1);
	assert_int_equal(get_be16(list + 2), 4 * 26);
	for (uint64_t i = 0; i < 4; i++) {
		const uint8_t *element = list + 4 + i * 26;

		assert_int_equal(get_be64(element), O + 1 + i % 2);
		assert_int_equal(get_be32(element + 12), i < 2 ? OSD_INFORMATION_OBJECT_ID
							       : OSD_INFORMATION_LOGICAL_LENGTH);
		assert_int_equal(get_be64(element + 18), i < 2 ? O + 1 + i : 0);
	}
}

static void test_several_new_objects_in_osd1_refuse_what_they_can_t_answer(void **state)
{
	static const uint32_t asked[][2] = { { 1, OSD_ATTRIBUTE_ALL },
					     { OSD_PARTITION_INFORMATION, 1 } };
	struct unit *unit = *state;

	for (size_t i = 0; i < 2; i++) {
		struct call call = call_of_version(OSD_1, OSD_CREATE, P, 0);

		call.cdb.objects = 2;
		call_get(&call, asked[i][0], asked[i][1]);
		call_run(unit, &call);
		expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
		assert_int_equal(unit_get_number(unit, P, 0, OSD_PARTITION_INFORMATION,
						 OSD_INFORMATION_MEMBERS),
				 1);
	}
}

static void test_answers_about_several_objects_are_cut_at_their_allocation(void **state)
{
	struct unit *unit = *state;

	for (enum osd_version version = OSD_1; version <= OSD_2; version++) {
		for (size_t room = 0; room < 140; room++) {
			struct call call = call_of_version(version, OSD_CREATE, P, 0);

			call.cdb.objects = 2;
			call_get(&call, 1, OSD_INFORMATION_OBJECT_ID);
			call_get(&call, 1, OSD_INFORMATION_LOGICAL_LENGTH);
			call.retrieved_capacity = room;
			call_run(unit, &call);
			expect_good(unit);
			assert_true(unit->command.data_in_length <= room);
			if (room >= osd_list_head_bytes(version))
				assert_int_equal(version == OSD_1 ? get_be16(unit->data_in + 2)
								  : get_be32(unit->data_in + 4),
						 unit->command.data_in_length -
							 osd_list_head_bytes(version));
		}
	}
}

/* ---- standard pages ---- */

static void test_the_root_tells_who_it_is(void **state)
{
	struct unit *unit = *state;
	uint8_t value[64];

	assert_int_equal(unit_get(unit, 0, 0, OSD_ROOT_INFORMATION, OSD_ROOT_SYSTEM_ID, value, 64),
			 20);
	assert_int_equal(unit_get(unit, 0, 0, OSD_ROOT_INFORMATION, OSD_ROOT_VENDOR, value, 64), 8);
	assert_memory_equal(value, "MUNINN  ", 8);
	assert_int_equal(unit_get(unit, 0, 0, OSD_ROOT_INFORMATION, OSD_ROOT_PRODUCT, value, 64),
			 16);
	assert_int_equal(unit_get(unit, 0, 0, OSD_ROOT_INFORMATION, OSD_ROOT_MODEL, value, 64), 32);
	assert_int_equal(unit_get(unit, 0, 0, OSD_ROOT_INFORMATION, OSD_ROOT_REVISION, value, 64),
			 4);
	assert_int_equal(
		unit_get(unit, 0, 0, OSD_ROOT_INFORMATION, OSD_ROOT_SERIAL_NUMBER, value, 64), 36);
	assert_memory_equal(value, "10010203-0405-0607-0809-0a0b0c0d0e0f", 36);
	assert_int_equal(unit_get(unit, 0, 0, OSD_ROOT_INFORMATION, OSD_ROOT_CLOCK, value, 64), 6);
	assert_int_equal(get_be48(value), UNIT_CLOCK);
	assert_int_equal(unit_get(unit, 0, 0, OSD_ROOT_INFORMATION,
				  OSD_ROOT_CONTINUATION_LENGTH_MAX, value, 64),
			 4);
	assert_int_equal(unit_get(unit, 0, 0, OSD_ROOT_INFORMATION,
				  OSD_ROOT_CONTINUATION_DESCRIPTORS + 1, value, 64),
			 4);
	assert_int_equal(unit_get(unit, 0, 0, OSD_ROOT_INFORMATION, OSD_ROOT_OSD_NAME, value, 64),
			 0);
	assert_true(unit_get_number(unit, 0, 0, OSD_ROOT_INFORMATION, OSD_ROOT_TOTAL_CAPACITY) > 0);
}

static void test_used_capacity_follows_the_data(void **state)
{
	struct unit *unit = *state;
	uint8_t data[8192];
	struct call call = call_of(OSD_WRITE, P, O);

	memset(data, 7, sizeof(data));
	call_data(&call, data, sizeof(data));
	call_get(&call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_CHANGE_IN_USED_CAPACITY);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(get_be64(unit_retrieved(unit, &call, 0).value), 8192);
	assert_int_equal(unit_get_number(unit, P, O, 1, OSD_INFORMATION_USED_CAPACITY), 8192);
	assert_int_equal(unit_get_number(unit, P, 0, OSD_PARTITION_INFORMATION,
					 OSD_INFORMATION_USED_CAPACITY),
			 8192);
}

static uint64_t get_time(struct unit *unit, uint32_t number)
{
	struct call call = call_of(OSD_GET_ATTRIBUTES, P, O);

	call.cdb.timestamps_control = OSD_TIMESTAMPS_BYPASS;
	call_get(&call, OSD_USER_OBJECT_TIMESTAMPS, number);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit_retrieved(unit, &call, 0).length, 6);
	return get_be48(unit_retrieved(unit, &call, 0).value);
}

static void test_timestamps_follow_commands(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_READ, P, O);
	uint8_t ignored[4];

	assert_int_equal(get_time(unit, OSD_TIME_CREATED), UNIT_CLOCK);
	unit->now_ms += 1000;
	unit_write(unit, O, 0, "data", 4);
	assert_int_equal(get_time(unit, OSD_TIME_DATA_MODIFIED), UNIT_CLOCK + 1000);
	assert_int_equal(get_time(unit, OSD_TIME_ATTRIBUTES_MODIFIED), UNIT_CLOCK);
	unit->now_ms += 1000;
	unit_set(unit, P, O, APPLICATION_PAGE, 1, "x", 1);
	assert_int_equal(get_time(unit, OSD_TIME_ATTRIBUTES_MODIFIED), UNIT_CLOCK + 2000);
	assert_int_equal(get_time(unit, OSD_TIME_DATA_MODIFIED), UNIT_CLOCK + 1000);
	unit->now_ms += 1000;
	call.cdb.length = call.data_in_capacity = 4;
	call_run(unit, &call);
	assert_int_equal(get_time(unit, OSD_TIME_DATA_ACCESSED), UNIT_CLOCK + 3000);
	unit->now_ms += 1000;
	unit_get(unit, P, O, APPLICATION_PAGE, 1, ignored, sizeof(ignored));
	assert_int_equal(get_time(unit, OSD_TIME_ATTRIBUTES_ACCESSED), UNIT_CLOCK + 4000);
	assert_int_equal(get_time(unit, OSD_TIME_CREATED), UNIT_CLOCK);
	/* The logical length is data and attribute. */
	unit->now_ms += 1000;
	unit_set(unit, P, O, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH,
		 "\0\0\0\0\0\0\0\3", 8);
	assert_int_equal(get_time(unit, OSD_TIME_DATA_MODIFIED), UNIT_CLOCK + 5000);
	assert_int_equal(get_time(unit, OSD_TIME_ATTRIBUTES_MODIFIED), UNIT_CLOCK + 5000);
}

static void test_timestamps_are_left_alone_when_the_cdb_partition_or_root_says_so(void **state)
{
	static const uint8_t bypass = OSD_TIMESTAMPS_BYPASS, update = OSD_TIMESTAMPS_UPDATE,
			     nonsense = 1;
	struct unit *unit = *state;
	struct call call = call_of(OSD_WRITE, P, O);

	unit->now_ms += 1000;
	call.cdb.timestamps_control = OSD_TIMESTAMPS_BYPASS;
	call_data(&call, "data", 4);
	call_run(unit, &call);
	assert_int_equal(get_time(unit, OSD_TIME_DATA_MODIFIED), UNIT_CLOCK);
	unit_set(unit, P, 0, OSD_PARTITION_TIMESTAMPS, OSD_TIME_BYPASS, &bypass, 1);
	unit_write(unit, O, 0, "data", 4);
	assert_int_equal(get_time(unit, OSD_TIME_DATA_MODIFIED), UNIT_CLOCK);
	unit_set(unit, P, 0, OSD_PARTITION_TIMESTAMPS, OSD_TIME_BYPASS, &update, 1);
	unit_set(unit, 0, 0, OSD_ROOT_TIMESTAMPS, OSD_TIME_BYPASS, &bypass, 1);
	unit_write(unit, O, 0, "data", 4);
	assert_int_equal(get_time(unit, OSD_TIME_DATA_MODIFIED), UNIT_CLOCK);
	unit_set(unit, 0, 0, OSD_ROOT_TIMESTAMPS, OSD_TIME_BYPASS, NULL, 0);
	unit_write(unit, O, 0, "data", 4);
	assert_int_equal(get_time(unit, OSD_TIME_DATA_MODIFIED), UNIT_CLOCK + 1000);
	unit->now_ms += 1000;
	call = call_of(OSD_SET_ATTRIBUTES, P, O);
	call.cdb.timestamps_control = OSD_TIMESTAMPS_BYPASS;
	call_set_number(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, 2);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(get_time(unit, OSD_TIME_DATA_MODIFIED), UNIT_CLOCK + 1000);
	assert_int_equal(get_time(unit, OSD_TIME_ATTRIBUTES_MODIFIED), UNIT_CLOCK);
	call = call_of(OSD_SET_ATTRIBUTES, P, 0);
	call_set(&call, OSD_PARTITION_TIMESTAMPS, OSD_TIME_BYPASS, &nonsense, 1);
	call_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
}

static void test_timestamps_can_be_set(void **state)
{
	struct unit *unit = *state;
	uint8_t time[6];

	put_be48(time, 12345);
	unit_set(unit, P, O, OSD_USER_OBJECT_TIMESTAMPS, OSD_TIME_DATA_MODIFIED, time, 6);
	assert_int_equal(get_time(unit, OSD_TIME_DATA_MODIFIED), 12345);
	assert_int_equal(get_time(unit, OSD_TIME_CREATED), UNIT_CLOCK);
}

static void test_the_current_command_page_comes_by_wildcard_in_both_versions(void **state)
{
	struct unit *unit = *state;

	for (enum osd_version version = OSD_1; version <= OSD_2; version++) {
		struct call call = call_of_version(version, OSD_GET_ATTRIBUTES, P, O);

		call_get(&call, OSD_PAGE_CURRENT_COMMAND, OSD_ATTRIBUTE_ALL);
		call_get(&call, OSD_PAGE_CURRENT_COMMAND, 77);
		call_run(unit, &call);
		expect_good(unit);
		/*
		 * identification, check value, type, two IDs, append address, in OSD-2 the change;
		 * the undefined
		 */
		assert_int_equal(unit_retrieved_count(unit, &call), version == OSD_1 ? 7 : 8);
		assert_memory_equal(unit_retrieved(unit, &call, 0).value,
				    "INCITS  T10 Current Command", 28);
		assert_int_equal(unit_retrieved(unit, &call, 1).length, version == OSD_1 ? 20 : 32);
		assert_int_equal(unit_retrieved(unit, &call, 2).value[0], OSD_TYPE_USER_OBJECT);
		assert_int_equal(get_be64(unit_retrieved(unit, &call, 4).value), O);
		assert_int_equal(unit_retrieved(unit, &call, version == OSD_1 ? 6 : 7).length, 0);
	}
}

static void test_the_current_command_page_of_osd1_has_its_own_structure(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of_version(OSD_1, OSD_GET_ATTRIBUTES, P, O);

	call.cdb.format = OSD_ATTRIBUTES_PAGE;
	call.cdb.get_page = OSD_PAGE_CURRENT_COMMAND;
	call.cdb.retrieved.length = 100;
	call.data_in_capacity = 100;
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit->command.data_in_length, 56);
	assert_int_equal(get_be32(unit->data_in + 4), 0x30);
	assert_int_equal(unit->data_in[28], OSD_TYPE_USER_OBJECT);
	assert_int_equal(get_be64(unit->data_in + 32), P);
	assert_int_equal(get_be64(unit->data_in + 40), O);
}

static void test_a_collection_has_its_own_pages(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_GET_ATTRIBUTES, P, O + 1);
	struct engine_txn *txn;
	uint8_t type;

	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_create(txn, P, ENGINE_COLLECTION, O + 1, 1, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	assert_int_equal(unit_get_number(unit, P, O + 1, OSD_COLLECTION_INFORMATION,
					 OSD_INFORMATION_OBJECT_ID),
			 O + 1);
	assert_int_equal(unit_get(unit, P, O + 1, OSD_COLLECTION_INFORMATION,
				  OSD_INFORMATION_COLLECTION_TYPE, &type, 1),
			 1);
	assert_int_equal(unit_get(unit, P, O + 1, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_OBJECT_TYPE,
				  &type, 1),
			 1);
	assert_int_equal(type, OSD_TYPE_COLLECTION);
	unit_set(unit, P, O + 1, OSD_COLLECTION_INFORMATION, OSD_INFORMATION_USERNAME, "mine", 4);
	call_get(&call, 1, OSD_INFORMATION_OBJECT_ID);
	call_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
}

/* ---- quotas ---- */

static void test_an_object_may_not_outgrow_its_maximum_length(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_WRITE, P, O), longer = call_of(OSD_SET_ATTRIBUTES, P, O);

	unit_write(unit, O, 0, "0123456789", 10);
	unit_set_number(unit, P, O, OSD_USER_OBJECT_QUOTAS, OSD_QUOTA_MAXIMUM_LENGTH, 5);
	unit_write(unit, O, 0, "smaller ok", 10); /* does not make it longer */
	call_data(&call, "x", 1);
	call.cdb.address = 10;
	call_run(unit, &call);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR);
	call_set_number(&longer, 1, OSD_INFORMATION_LOGICAL_LENGTH, 11);
	call_run(unit, &longer);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR);
	assert_int_equal(unit_get_number(unit, P, O, 1, OSD_INFORMATION_LOGICAL_LENGTH), 10);
	unit_set_number(unit, P, O, OSD_USER_OBJECT_QUOTAS, OSD_QUOTA_MAXIMUM_LENGTH, 0);
	call_run(unit, &call);
	expect_good(unit);
}

static void test_a_partition_keeps_its_quotas(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE, P, 0), write = call_of(OSD_WRITE, P, O);

	unit_set_number(unit, P, 0, OSD_PARTITION_QUOTAS, OSD_QUOTA_OBJECT_COUNT, 2);
	unit_set_number(unit, P, 0, OSD_PARTITION_QUOTAS, OSD_QUOTA_MAXIMUM_LENGTH, 77);
	unit_create(unit, P, O + 1);
	call_run(unit, &call);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR);
	assert_int_equal(
		unit_get_number(unit, P, O + 1, OSD_USER_OBJECT_QUOTAS, OSD_QUOTA_MAXIMUM_LENGTH),
		77);
	unit_set_number(unit, P, 0, OSD_PARTITION_QUOTAS, OSD_QUOTA_CAPACITY, 4096);
	unit_write(unit, O, 0, "page", 4);
	call_data(&write, "page", 4);
	write.cdb.address = 4096;
	call_run(unit, &write);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR);
	unit_write(unit, O, 100, "same page", 9);
	unit_set_number(unit, P, 0, OSD_PARTITION_QUOTAS, OSD_QUOTA_CAPACITY, 1);
	unit_write(unit, O, 100, "less than it has, but no more than before", 41);
}

static void test_the_root_s_quotas_limit_and_become_those_of_new_partitions(void **state)
{
	static const uint32_t others[] = { OSD_QUOTA_MAXIMUM_LENGTH, OSD_QUOTA_OBJECT_COUNT,
					   OSD_QUOTA_COLLECTIONS_PER_OBJECT };
	uint8_t value[8];
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_PARTITION, P + 2, 0);

	unit_set_number(unit, 0, 0, OSD_ROOT_QUOTAS, OSD_QUOTA_PARTITION_COUNT, 2);
	unit_set_number(unit, 0, 0, OSD_ROOT_QUOTAS, OSD_QUOTA_CAPACITY, 1 << 20);
	unit_set_number(unit, 0, 0, OSD_ROOT_QUOTAS, others[0], 100);
	unit_set_number(unit, 0, 0, OSD_ROOT_QUOTAS, others[1], 101);
	unit_set(unit, 0, 0, OSD_ROOT_QUOTAS, others[2], "\0\0\0\x66", 4);
	unit_create_partition(unit, P + 1);
	assert_int_equal(unit_get_number(unit, P + 1, 0, OSD_PARTITION_QUOTAS, OSD_QUOTA_CAPACITY),
			 1 << 20);
	for (size_t i = 0; i < 3; i++) {
		uint32_t length = i < 2 ? 8 : 4;

		assert_int_equal(unit_get(unit, P + 1, 0, OSD_PARTITION_QUOTAS, others[i], value,
					  sizeof(value)),
				 length);
		assert_int_equal(value[length - 1], 100 + i);
	}
	call_run(unit, &call);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR);
	assert_int_equal(unit_get_number(unit, 0, 0, OSD_ROOT_INFORMATION, OSD_ROOT_PARTITIONS), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object(test_page_format_sets_one_attribute_and_gets_one_page),
		with_object(test_pages_with_a_structure_have_the_standard_s_lengths),
		with_object(test_page_format_refuses_what_has_no_structure),
		with_object(test_the_current_command_page_of_several_new_objects_names_the_highest),
		with_object(test_cdb_format_sets_one_attribute),
		with_object(test_the_current_command_page_comes_by_wildcard_in_both_versions),
		with_object(test_the_current_command_page_of_osd1_has_its_own_structure),
		with_object(test_a_collection_has_its_own_pages),
		with_object(test_several_new_objects_answer_object_by_object_in_osd2),
		with_object(test_several_new_objects_answer_attribute_by_attribute_in_osd1),
		with_object(test_several_new_objects_in_osd1_refuse_what_they_can_t_answer),
		with_object(test_answers_about_several_objects_are_cut_at_their_allocation),
		with_object(test_the_root_tells_who_it_is),
		with_object(test_used_capacity_follows_the_data),
		with_object(test_timestamps_follow_commands),
		with_object(test_timestamps_are_left_alone_when_the_cdb_partition_or_root_says_so),
		with_object(test_timestamps_can_be_set),
		with_object(test_an_object_may_not_outgrow_its_maximum_length),
		with_object(test_a_partition_keeps_its_quotas),
		with_object(test_the_root_s_quotas_limit_and_become_those_of_new_partitions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
