/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Sets and gets in list format: what can be set, wildcards, malformed lists, and all or nothing. */
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

/* ---- lists ---- */

static void test_undefined_attributes_are_empty_entries_in_the_order_asked(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_GET_ATTRIBUTES, P, O);

	unit_set(unit, P, O, APPLICATION_PAGE, 2, "two", 3);
	for (uint32_t number = 3; number >= 1; number--)
		call_get(&call, APPLICATION_PAGE, number);
	call_get(&call, OSD_USER_OBJECT_INFORMATION, 0x77); /* not in the standard */
	call_get(&call, 0x20000001, 1);                     /* a vendor's page */
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit_retrieved_count(unit, &call), 5);
	assert_int_equal(unit_retrieved(unit, &call, 0).number, 3);
	assert_int_equal(unit_retrieved(unit, &call, 0).length, 0);
	assert_int_equal(unit_retrieved(unit, &call, 1).length, 3);
	assert_int_equal(unit_retrieved(unit, &call, 2).length, 0);
	assert_int_equal(unit_retrieved(unit, &call, 3).length, 0);
	assert_int_equal(unit_retrieved(unit, &call, 4).length, 0);
}

static void test_a_set_of_length_0_makes_an_attribute_undefined(void **state)
{
	struct unit *unit = *state;
	char value[8];

	unit_set(unit, P, O, APPLICATION_PAGE, 1, "one", 3);
	assert_int_equal(unit_get(unit, P, O, APPLICATION_PAGE, 1, value, sizeof(value)), 3);
	unit_set(unit, P, O, APPLICATION_PAGE, 1, NULL, 0);
	assert_int_equal(unit_get(unit, P, O, APPLICATION_PAGE, 1, value, sizeof(value)), 0);
	unit_set(unit, P, O, OSD_USER_OBJECT_QUOTAS, OSD_QUOTA_MAXIMUM_LENGTH, NULL, 0);
}

static void test_every_type_has_its_pages_and_those_of_any_object(void **state)
{
	static const struct {
		uint64_t partition, object;
		uint32_t page;
	} cases[] = {
		{ 0, 0, 0x90010000 },
		{ P, 0, 0x30010000 },
		{ P, O, 0x00010000 },
	};
	struct unit *unit = *state;
	char value[8];

	for (size_t i = 0; i < 3; i++) {
		unit_set(unit, cases[i].partition, cases[i].object, 0xF0000003, 1, "any", 3);
		for (size_t j = 0; j < 3; j++) {
			struct call call =
				call_of(OSD_SET_ATTRIBUTES, cases[i].partition, cases[i].object);

			call_set(&call, cases[j].page, 1, "own", 3);
			call_run(unit, &call);
			if (i == j) {
				expect_good(unit);
				assert_int_equal(unit_get(unit, cases[i].partition, cases[i].object,
							  cases[j].page, 1, value, sizeof(value)),
						 3);
				continue;
			}
			expect_sense(unit, SENSE_ILLEGAL_REQUEST,
				     SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
			assert_int_equal(unit_sense(unit).attribute[0].page, cases[j].page);
			call = call_of(OSD_GET_ATTRIBUTES, cases[i].partition, cases[i].object);
			call_get(&call, cases[j].page, 1);
			call_run(unit, &call);
			expect_sense(unit, SENSE_ILLEGAL_REQUEST,
				     SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
		}
	}
}

static void test_what_can_t_be_set_is_refused_by_name_and_nothing_happens(void **state)
{
	static const struct {
		uint32_t page, number, length;
	} cases[] = {
		{ OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_OBJECT_ID, 8 }, /* computed */
		{ OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH,
		  4 }, /* wrong length */
		{ OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, 0 },
		{ OSD_USER_OBJECT_INFORMATION, 0x77, 8 }, /* not in the standard */
		{ OSD_USER_OBJECT_INFORMATION, 0, 8 },    /* identification of a standard page */
		{ OSD_USER_OBJECT_TIMESTAMPS, OSD_TIME_CREATED, 6 },
		{ OSD_USER_OBJECT_QUOTAS, OSD_QUOTA_MAXIMUM_LENGTH, 4 },
		{ 0x00000000, 5, 40 }, /* directory */
		{ 0x00008000, 1, 4 },  /* other standards */
		{ 0x0000F000, 1, 4 },  /* manufacturers */
		{ 0x20000000, 1, 4 },  /* vendors */
		{ 0xC0000000, 1, 4 },  /* reserved */
		{ OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_OBJECT_ID, 8 },
		{ OSD_PAGE_ALL, 1, 4 },
		{ APPLICATION_PAGE, OSD_ATTRIBUTE_ALL, 4 },
		{ APPLICATION_PAGE, 0, 41 }, /* a page's name: 40 bytes with a NUL */
		{ APPLICATION_PAGE, 0, 8 },
	};
	static const uint8_t value[64] = { [0 ... 63] = 'x' };
	struct unit *unit = *state;
	char buffer[8];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct call call = call_of(OSD_WRITE, P, O);
		struct osd_sense sense;

		call_data(&call, "data", 4);
		call_set(&call, APPLICATION_PAGE, 1, "before", 6);
		call_set(&call, cases[i].page, cases[i].number, value, cases[i].length);
		call_run(unit, &call);
		expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
		sense = unit_sense(unit);
		assert_int_equal(sense.attributes, 1);
		assert_int_equal(sense.attribute[0].page, cases[i].page);
		assert_int_equal(sense.attribute[0].number, cases[i].number);
	}
	assert_int_equal(unit_get(unit, P, O, APPLICATION_PAGE, 1, buffer, sizeof(buffer)), 0);
	assert_int_equal(unit_get_number(unit, P, O, 1, OSD_INFORMATION_LOGICAL_LENGTH), 0);
}

static void test_a_get_that_fails_undoes_the_command(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_WRITE, P, O);

	call_data(&call, "data", 4);
	call_get(&call, OSD_PARTITION_INFORMATION, 1);
	call_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	assert_int_equal(unit_get_number(unit, P, O, 1, OSD_INFORMATION_LOGICAL_LENGTH), 0);
}

static void test_gets_come_first_in_get_attributes_and_last_elsewhere(void **state)
{
	static const uint16_t actions[] = { OSD_GET_ATTRIBUTES, OSD_SET_ATTRIBUTES, OSD_FLUSH };
	struct unit *unit = *state;

	for (size_t i = 0; i < 3; i++) {
		struct call call = call_of(actions[i], P, O);

		unit_set(unit, P, O, APPLICATION_PAGE, 1, "old", 3);
		call_set(&call, APPLICATION_PAGE, 1, "new", 3);
		call_get(&call, APPLICATION_PAGE, 1);
		call_run(unit, &call);
		expect_good(unit);
		assert_memory_equal(unit_retrieved(unit, &call, 0).value, i == 0 ? "old" : "new",
				    3);
	}
}

static void test_setting_the_logical_length_truncates_and_extends(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_SET_ATTRIBUTES, P, O);

	unit_write(unit, O, 0, "0123456789", 10);
	call_set_number(&call, 1, OSD_INFORMATION_LOGICAL_LENGTH, 3);
	call_run(unit, &call);
	expect_good(unit);
	call = call_of(OSD_SET_ATTRIBUTES, P, O);
	call_set_number(&call, 1, OSD_INFORMATION_LOGICAL_LENGTH, 6);
	call_run(unit, &call);
	expect_good(unit);
	call = call_of(OSD_READ, P, O);
	call.cdb.length = call.data_in_capacity = 6;
	call_run(unit, &call);
	expect_good(unit);
	assert_memory_equal(unit->data_in, "012\0\0\0", 6);
	call = call_of(OSD_SET_ATTRIBUTES, P, O);
	call_set_number(&call, 1, OSD_INFORMATION_LOGICAL_LENGTH, UINT64_MAX);
	call_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
}

static void test_the_longest_attribute_is_kept_and_a_longer_one_refused(void **state)
{
	struct unit *unit = *state;
	size_t capacity = 70000;
	uint8_t *out = calloc(1, capacity), *value = malloc(65536), cdb[OSD_CDB_BYTES_MAX];
	struct osd_list_writer writer;
	struct osd_cdb decoded = { .version = OSD_2,
				   .action = OSD_SET_ATTRIBUTES,
				   .format = OSD_ATTRIBUTES_LIST,
				   .partition = P,
				   .object = O };
	struct call call = call_of(OSD_GET_ATTRIBUTES, P, O);
	struct osd_attribute attribute;

	for (size_t i = 0; i < 65536; i++)
		value[i] = (uint8_t)(i * 13);
	osd_list_begin(&writer, OSD_2, OSD_LIST_TO_SET, out, capacity);
	assert_true(
		osd_list_add_value(&writer, APPLICATION_PAGE, 1, value, OSD_ATTRIBUTE_BYTES_MAX));
	decoded.set_data = (struct osd_segment){ 0, (uint32_t)osd_list_end(&writer) };
	assert_int_equal(osd_cdb_encode(&decoded, cdb, NULL), 0);
	unit_execute(unit, cdb, OSD2_CDB_BYTES, out, decoded.set_data.length, 0);
	expect_good(unit);
	call_get(&call, APPLICATION_PAGE, 1);
	call.retrieved_capacity = 70000;
	call_run(unit, &call);
	expect_good(unit);
	attribute = unit_retrieved(unit, &call, 0);
	assert_int_equal(attribute.length, OSD_ATTRIBUTE_BYTES_MAX);
	assert_memory_equal(attribute.value, value, OSD_ATTRIBUTE_BYTES_MAX);
	put_be16(out + 8 + 14, 0xFFFF);
	decoded.set_data.length += 8;
	assert_int_equal(osd_cdb_encode(&decoded, cdb, NULL), 0);
	unit_execute(unit, cdb, OSD2_CDB_BYTES, out, decoded.set_data.length, 0);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	free(out);
	free(value);
}

/* ---- wildcards ---- */

static void test_all_numbers_of_a_page_come_in_order_and_only_the_defined(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_GET_ATTRIBUTES, P, O);
	static const uint32_t expected[] = { 0, 1, 2, OSD_INFORMATION_USERNAME, 0x81, 0x82, 0xD1 };

	unit_set(unit, P, O, APPLICATION_PAGE, 9, "nine", 4);
	unit_set(unit, P, O, APPLICATION_PAGE, 1, "one", 3);
	unit_set(unit, P, O, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USERNAME, "me", 2);
	call_get(&call, OSD_USER_OBJECT_INFORMATION, OSD_ATTRIBUTE_ALL);
	call_get(&call, APPLICATION_PAGE, OSD_ATTRIBUTE_ALL);
	call_get(&call, 0x10004, OSD_ATTRIBUTE_ALL);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit_retrieved_count(unit, &call), 9);
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(unit_retrieved(unit, &call, i).number, expected[i]);
	assert_int_equal(unit_retrieved(unit, &call, 7).number, 1);
	assert_int_equal(unit_retrieved(unit, &call, 8).number, 9);
	assert_memory_equal(unit_retrieved(unit, &call, 8).value, "nine", 4);
}

static void test_all_pages_come_in_order_without_the_current_command(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_GET_ATTRIBUTES, P, O);
	uint64_t before = 0;
	size_t count, nines = 0;

	unit_set(unit, P, O, APPLICATION_PAGE, 9, "nine", 4);
	unit_set(unit, P, O, 0xFFFFFFFD, 0xFFFFFFFE, "last", 4);
	call_get(&call, OSD_PAGE_ALL, OSD_ATTRIBUTE_ALL);
	call_run(unit, &call);
	expect_good(unit);
	count = unit_retrieved_count(unit, &call);
	for (size_t i = 0; i < count; i++) {
		struct osd_attribute attribute = unit_retrieved(unit, &call, i);
		uint64_t key = (uint64_t)attribute.page << 32 | attribute.number;

		assert_true(attribute.length > 0);
		assert_true(i == 0 || key > before);
		assert_true(attribute.page != OSD_PAGE_CURRENT_COMMAND);
		nines += attribute.number == 9;
		before = key;
	}
	assert_int_equal(before, UINT64_C(0xFFFFFFFDFFFFFFFE));
	assert_int_equal(nines, 1);

	call = call_of(OSD_GET_ATTRIBUTES, P, O);
	call_get(&call, OSD_PAGE_ALL, 1);
	call_run(unit, &call);
	expect_good(unit);
	/* directory: information page; information: partition ID; timestamps: created; damage */
	assert_int_equal(unit_retrieved_count(unit, &call), 4);
	assert_int_equal(unit_retrieved(unit, &call, 0).page, 0);
	assert_int_equal(unit_retrieved(unit, &call, 1).page, OSD_USER_OBJECT_INFORMATION);
	assert_int_equal(unit_retrieved(unit, &call, 2).page, OSD_USER_OBJECT_TIMESTAMPS);
	assert_int_equal(unit_retrieved(unit, &call, 3).page, OSD_USER_OBJECT_ERROR_RECOVERY);
}

static void test_all_pages_of_every_type_include_the_computed(void **state)
{
	static const struct {
		uint64_t partition, object;
		uint32_t page;
	} cases[] = {
		{ 0, 0, OSD_ROOT_TIMESTAMPS },
		{ P, 0, OSD_PARTITION_TIMESTAMPS },
		{ P, O, OSD_USER_OBJECT_TIMESTAMPS },
	};
	struct unit *unit = *state;

	for (size_t i = 0; i < 3; i++) {
		struct call call = call_of(OSD_GET_ATTRIBUTES, cases[i].partition, cases[i].object);
		size_t count, at = 0;

		call_get(&call, OSD_PAGE_ALL, OSD_TIME_ATTRIBUTES_MODIFIED);
		call_run(unit, &call);
		expect_good(unit);
		count = unit_retrieved_count(unit, &call);
		while (at < count && unit_retrieved(unit, &call, at).page != cases[i].page)
			at++;
		assert_true(at < count);
		assert_int_equal(unit_retrieved(unit, &call, at).length, 6);
	}
}

static void test_the_directory_names_the_pages_that_there_are(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_GET_ATTRIBUTES, P, 0);
	static const uint32_t expected[] = { 0x30000000, 0x30000001, 0x30000002, 0x30000003,
					     0x30000004, 0x30000005, 0x30000006, 0x30010000,
					     0x50000010, 0xF0000003 };
	static const uint8_t nameless[OSD_IDENTIFICATION_BYTES];

	unit_set(unit, P, 0, 0x30010000, 0, "My page", 8);
	unit_set(unit, P, 0, 0xF0000003, 1, "x", 1);
	call_get(&call, 0x30000000, OSD_ATTRIBUTE_ALL);
	call_get(&call, 0x30000000, 0x30010000);
	call_get(&call, 0x30000000, 0x30010001);
	call_get(&call, 0x30000000, OSD_MUNINN_PARTITION);
	call_get(&call, OSD_PARTITION_INFORMATION, 0);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit_retrieved_count(unit, &call), 14);
	for (size_t i = 0; i < 10; i++) {
		struct osd_attribute attribute = unit_retrieved(unit, &call, i);

		assert_int_equal(attribute.page, 0x30000000);
		assert_int_equal(attribute.number, expected[i]);
		assert_int_equal(attribute.length, OSD_IDENTIFICATION_BYTES);
	}
	assert_memory_equal(unit_retrieved(unit, &call, 1).value,
			    "INCITS  T10 Partition Information\0", 35);
	assert_memory_equal(unit_retrieved(unit, &call, 7).value, "My page\0\0", 9);
	/*
	 * Pages without a name: ours, of which nothing is stored, and one that the client filled.
	 */
	assert_memory_equal(unit_retrieved(unit, &call, 8).value, nameless, sizeof(nameless));
	assert_memory_equal(unit_retrieved(unit, &call, 9).value, nameless, sizeof(nameless));
	assert_memory_equal(unit_retrieved(unit, &call, 10).value, "My page\0\0", 9);
	assert_int_equal(unit_retrieved(unit, &call, 11).length, 0);
	assert_int_equal(unit_retrieved(unit, &call, 12).length, OSD_IDENTIFICATION_BYTES);
	assert_memory_equal(unit_retrieved(unit, &call, 13).value,
			    "INCITS  T10 Partition Information\0", 35);

	call = call_of(OSD_GET_ATTRIBUTES, 0, 0);
	call_get(&call, OSD_PAGES_ROOT, OSD_MUNINN_ROOT);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit_retrieved(unit, &call, 0).length, OSD_IDENTIFICATION_BYTES);
	assert_memory_equal(unit_retrieved(unit, &call, 0).value, nameless, sizeof(nameless));
}

static void test_a_small_list_may_not_keep_the_device_busy_for_ever(void **state)
{
	struct unit *unit = *state;
	size_t descriptors = 60000;
	uint8_t *out = calloc(1, 8 + 8 * descriptors), cdb[OSD_CDB_BYTES_MAX];
	struct osd_list_writer writer;
	struct osd_cdb decoded = { .version = OSD_2,
				   .action = OSD_GET_ATTRIBUTES,
				   .format = OSD_ATTRIBUTES_LIST,
				   .partition = P,
				   .object = O };
	struct call call = call_of(OSD_SET_ATTRIBUTES, P, O);

	for (uint32_t number = 2; number < 42; number++)
		call_set(&call, APPLICATION_PAGE + number, number, "x", 1);
	call_run(unit, &call);
	expect_good(unit);
	osd_list_begin(&writer, OSD_2, OSD_LIST_TO_GET, out, 8 + 8 * descriptors);
	while (osd_list_add_request(&writer, OSD_PAGE_ALL, 0x12345678))
		;
	decoded.get_list = (struct osd_segment){ 0, (uint32_t)osd_list_end(&writer) };
	decoded.retrieved = (struct osd_segment){ 0, 4096 };
	assert_int_equal(osd_cdb_encode(&decoded, cdb, NULL), 0);
	unit_execute(unit, cdb, OSD2_CDB_BYTES, out, decoded.get_list.length, 4096);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_SYSTEM_RESOURCE_FAILURE);
	free(out);
}

/* ---- malformed lists ---- */

static void test_malformed_lists_are_refused_and_nothing_happens(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_WRITE, P, O);

	call_data(&call, "data", 4);
	call_set(&call, APPLICATION_PAGE, 1, "12345678", 8);
	call.sets[0] = OSD_LIST_TYPE_GET;
	call_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	call.sets[0] = OSD_LIST_TYPE_VALUES;
	put_be16(call.sets + 8 + 14, 9); /* longer than the list */
	call_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_PARAMETER_LIST_LENGTH_ERROR);
	call.set_writer.length = 7;
	call_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_PARAMETER_LIST_LENGTH_ERROR);

	call = call_of(OSD_WRITE, P, O);
	call_data(&call, "data", 4);
	call_get(&call, APPLICATION_PAGE, 1);
	call.gets[0] = OSD_LIST_TYPE_VALUES;
	call_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	call.gets[0] = OSD_LIST_TYPE_GET;
	call.get_writer.length -= 1;
	call_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_PARAMETER_LIST_LENGTH_ERROR);
	assert_int_equal(unit_get_number(unit, P, O, 1, OSD_INFORMATION_LOGICAL_LENGTH), 0);
}

/* Runs a WRITE with 8 bytes of data and both lists, one field of whose CDB is replaced. */
static void run_patched(struct unit *unit, size_t at, uint32_t value)
{
	struct osd_cdb decoded = { .version = OSD_2,
				   .action = OSD_WRITE,
				   .format = OSD_ATTRIBUTES_LIST,
				   .partition = P,
				   .object = O,
				   .length = 8,
				   .set_data = { 8, 32 },
				   .get_list = { 40, 16 },
				   .retrieved = { 0, 64 } };
	uint8_t out[56] = { 0 }, cdb[OSD_CDB_BYTES_MAX];
	struct osd_list_writer writer;

	osd_list_begin(&writer, OSD_2, OSD_LIST_TO_SET, out + 8, 32);
	assert_true(osd_list_add_value(&writer, APPLICATION_PAGE, 1, "12345678", 8));
	osd_list_begin(&writer, OSD_2, OSD_LIST_TO_GET, out + 40, 16);
	assert_true(osd_list_add_request(&writer, APPLICATION_PAGE, 1));
	assert_int_equal(osd_cdb_encode(&decoded, cdb, NULL), 0);
	if (at != 0)
		put_be32(cdb + at, value);
	unit_execute(unit, cdb, OSD2_CDB_BYTES, out, sizeof(out), 64);
}

static void test_segments_that_do_not_fit_the_buffers_are_refused(void **state)
{
	static const struct {
		size_t at;
		uint32_t value;
		int field;
	} cases[] = {
		{ 52, 17, 52 },                                 /* get list longer than Data-Out */
		{ 52, 0xFFFFFFFF, 52 }, { 56, 0xB0000008, 52 }, /* starts behind it */
		{ 56, 0x70000001, 52 }, { 56, 0xB0000000, 56 }, /* in the command data */
		{ 56, 0xB0000001, 56 },                         /* in the set list */
		{ 60, 65, 60 },                                 /* more room than there is */
		{ 60, 0xFFFFFFFF, 60 }, { 64, 0xB0000001, 60 }, { 64, 0x7FFFFFFF, 60 },
		{ 68, 49, 68 },         { 68, 0xFFFFFFFF, 68 }, { 72, 0xB0000000, 72 },
		{ 72, 0x6FFFFFFF, 68 },
	};
	struct unit *unit = *state;

	run_patched(unit, 0, 0);
	expect_good(unit);
	assert_int_equal(unit->command.data_out_used, 56);
	assert_int_equal(unit->command.data_in_length, 32);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		run_patched(unit, cases[i].at, cases[i].value);
		expect_field(unit, cases[i].field);
	}
}

static void test_answers_are_cut_at_their_allocation_without_error(void **state)
{
	struct unit *unit = *state;

	unit_set(unit, P, O, APPLICATION_PAGE, 1, "0123456789", 10);
	for (size_t room = 0; room <= 40; room++) {
		struct call call = call_of(OSD_GET_ATTRIBUTES, P, O);
		struct osd_attribute attribute;

		call_get(&call, APPLICATION_PAGE, 1);
		call.retrieved_capacity = room;
		call_run(unit, &call);
		expect_good(unit);
		if (room < 8) {
			assert_int_equal(unit->command.data_in_length, 0);
			continue;
		}
		assert_int_equal(unit->command.data_in_length, room < 24 ? 8 : room);
		assert_int_equal(get_be32(unit->data_in + 4), unit->command.data_in_length - 8);
		if (room < 24)
			continue;
		attribute = unit_retrieved(unit, &call, 0);
		assert_int_equal(attribute.length, 10);
		assert_memory_equal(attribute.value, "0123456789", attribute.present);
	}
}

static void test_the_answer_follows_the_command_data_behind_zeros(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_READ, P, O);

	unit_write(unit, O, 0, "hello", 5);
	call.cdb.length = call.data_in_capacity = 5;
	call_get(&call, 1, OSD_INFORMATION_LOGICAL_LENGTH);
	call_run(unit, &call);
	expect_good(unit);
	assert_memory_equal(unit->data_in, "hello\0\0\0\x09", 9);
	/* An answer in the middle of the data is a field of the CDB that is wrong. */
	call.data_in_capacity = 0;
	call_run(unit, &call);
	expect_field(unit, 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object(test_undefined_attributes_are_empty_entries_in_the_order_asked),
		with_object(test_a_set_of_length_0_makes_an_attribute_undefined),
		with_object(test_every_type_has_its_pages_and_those_of_any_object),
		with_object(test_what_can_t_be_set_is_refused_by_name_and_nothing_happens),
		with_object(test_a_get_that_fails_undoes_the_command),
		with_object(test_gets_come_first_in_get_attributes_and_last_elsewhere),
		with_object(test_setting_the_logical_length_truncates_and_extends),
		with_object(test_the_longest_attribute_is_kept_and_a_longer_one_refused),
		with_object(test_all_numbers_of_a_page_come_in_order_and_only_the_defined),
		with_object(test_all_pages_come_in_order_without_the_current_command),
		with_object(test_all_pages_of_every_type_include_the_computed),
		with_object(test_the_directory_names_the_pages_that_there_are),
		with_object(test_a_small_list_may_not_keep_the_device_busy_for_ever),
		with_object(test_malformed_lists_are_refused_and_nothing_happens),
		with_object(test_segments_that_do_not_fit_the_buffers_are_refused),
		with_object(test_answers_are_cut_at_their_allocation_without_error),
		with_object(test_the_answer_follows_the_command_data_behind_zeros),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
