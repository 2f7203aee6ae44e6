/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The worked examples, executed: an initiator's bytes in, the standard's bytes out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bytes.h"
#include "tests/osd/unit.h"
#include "tests/wire/hex.h"

/* Executes an example's CDB with `out_length` bytes of the dump `out`. */
static void run_example(struct unit *unit, const char *cdb_dump, const char *out, size_t out_length,
			size_t in)
{
	uint8_t cdb[OSD2_CDB_BYTES], data_out[1024] = { 0 };

	hex_cdb(cdb_dump, cdb);
	if (out)
		hex_rows(out, data_out, sizeof(data_out));
	unit_execute(unit, cdb, sizeof(cdb), data_out, out_length, in);
	expect_good(unit);
}

static void expect_data_in(struct unit *unit, const char *dump, size_t length)
{
	uint8_t expected[1024] = { 0 };

	hex_rows(dump, expected, sizeof(expected));
	assert_int_equal(unit->command.data_in_length, length);
	assert_memory_equal(unit->data_in, expected, length);
}

static void write_hello(struct unit *unit)
{
	uint8_t cdb[OSD2_CDB_BYTES];

	run_example(unit, LINUX_FORMAT_OSD, NULL, 0, 0);
	run_example(unit, LINUX_CREATE_PARTITION, NULL, 0, 0);
	run_example(unit, LINUX_CREATE, NULL, 0, 0);
	hex_cdb(LINUX_WRITE, cdb);
	unit_execute(unit, cdb, sizeof(cdb), "hello", 5, 0);
	expect_good(unit);
}

static void test_linux_writes_and_reads_with_attributes(void **state)
{
	struct unit *unit = *state;

	write_hello(unit);
	run_example(unit, LINUX_READ, LINUX_READ_OUT, 24, 64);
	expect_data_in(unit, LINUX_READ_IN, 64);
	run_example(unit, LINUX_GET_LENGTH, LINUX_GET_LENGTH_OUT, 16, 32);
	expect_data_in(unit, LINUX_GET_LENGTH_IN, 32);
	run_example(unit, LINUX_WRITE_ATTRIBUTES, LINUX_WRITE_ATTRIBUTES_OUT, 80, 32);
	expect_data_in(unit, LINUX_GET_LENGTH_IN, 32);
	assert_int_equal(
		unit_get_number(unit, P, O, OSD_USER_OBJECT_QUOTAS, OSD_QUOTA_MAXIMUM_LENGTH),
		0x80000000);
}

static void test_linux_finds_undefined_attributes_as_empty_entries(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_GET_ATTRIBUTES, P, O);

	write_hello(unit);
	for (uint32_t number = 1; number <= 3; number++)
		call_get(&call, 0x10003, number);
	call.retrieved_capacity = 200;
	call_run(unit, &call);
	expect_good(unit);
	expect_data_in(unit, UNDEFINED_ATTRIBUTES_IN, 56);
}

static void test_linux_lists_a_partition(void **state)
{
	struct unit *unit = *state;
	uint8_t expected[40] = { 0 };
	struct call call = call_of(OSD_CREATE, P, 0);

	write_hello(unit);
	run_example(unit, LINUX_LIST, NULL, 0, 56);
	expect_data_in(unit, LINUX_LIST_IN, 32);
	/* Four objects, room for two: as osc-osd, and a list identifier. */
	call.cdb.objects = 3;
	run_example(unit, LINUX_FORMAT_OSD, NULL, 0, 0);
	run_example(unit, LINUX_CREATE_PARTITION, NULL, 0, 0);
	call.cdb.objects = 4;
	call_run(unit, &call);
	expect_good(unit);
	call = call_of(OSD_LIST, P, 0);
	call.cdb.length = call.data_in_capacity = 40;
	call_run(unit, &call);
	expect_good(unit);
	hex_rows(LINUX_LIST_TWO_IN, expected, sizeof(expected));
	assert_int_not_equal(get_be32(unit->data_in + 16), 0);
	memcpy(expected + 16, unit->data_in + 16, 4);
	assert_int_equal(unit->command.data_in_length, 40);
	assert_memory_equal(unit->data_in, expected, 40);
}

static void test_linux_scatters_and_removes(void **state)
{
	struct unit *unit = *state;
	uint8_t cdb[OSD2_CDB_BYTES];
	struct call call = call_of(OSD_READ, P, O);

	write_hello(unit);
	run_example(unit, LINUX_WRITE_SCATTERED, LINUX_WRITE_SCATTERED_OUT, 85, 0);
	call.cdb.length = call.data_in_capacity = 11;
	call_run(unit, &call);
	expect_good(unit);
	assert_memory_equal(unit->data_in, "abllo\0\0\0cde", 11);
	hex_cdb(LINUX_CREATE, cdb);
	hex_rows(LINUX_REMOVE, cdb, sizeof(cdb));
	unit_execute(unit, cdb, sizeof(cdb), NULL, 0, 0);
	expect_good(unit);
	unit_execute(unit, cdb, sizeof(cdb), NULL, 0, 0);
	expect_field(unit, 24);
}

static void test_linux_attaches(void **state)
{
	static const uint32_t numbers[] = { 4, 5, 6, 7, 8, 9, 0x80, 0x81, 0xC0, 0x100, 3 };
	static const uint32_t room[] = { 8, 16, 32, 4, 64, 64, 8, 8, 8, 6, 20 };
	struct unit *unit = *state;
	struct osd_list_reader reader;
	struct osd_attribute attribute;

	unit_set(unit, 0, 0, OSD_ROOT_INFORMATION, OSD_ROOT_OSD_NAME,
		 "5a15ba7b-1cbb-4b3d-9a6c-ad0d1b5f7f9e", 36);
	run_example(unit, LINUX_ATTACH, LINUX_ATTACH_OUT, 96, 432);
	assert_int_equal(osd_list_read(&reader, OSD_2, OSD_LIST_RETRIEVED, unit->data_in,
				       unit->command.data_in_length),
			 0);
	for (size_t i = 0; i < 11; i++) {
		assert_int_equal(osd_list_next(&reader, &attribute), 1);
		assert_int_equal(attribute.page, OSD_ROOT_INFORMATION);
		assert_int_equal(attribute.number, numbers[i]);
		assert_true(attribute.length > 0 && attribute.length <= room[i]);
		assert_int_equal(attribute.present, attribute.length);
	}
	assert_int_equal(osd_list_next(&reader, &attribute), 0);
}

static void test_osc_osd_creates_sets_and_appends(void **state)
{
	struct unit *unit = *state;
	uint8_t cdb[OSD2_CDB_BYTES] = { 0 }, out[24] = { 0 }, expected[68] = { 0 }, value[8];

	unit_create_partition(unit, P);
	hex_rows(OSC_CREATE_THREE, cdb, sizeof(cdb));
	unit_execute(unit, cdb, sizeof(cdb), NULL, 0, 68);
	expect_good(unit);
	hex_rows(OSC_CREATE_THREE_IN, expected, sizeof(expected));
	put_be32(expected + 4, 0x44); /* revision 5 has one field more, which is cut off */
	assert_int_equal(unit->command.data_in_length, 68);
	assert_memory_equal(unit->data_in, expected, 68);

	memset(cdb, 0, sizeof(cdb));
	hex_rows(OSC_SET_IN_CDB, cdb, sizeof(cdb));
	unit_execute(unit, cdb, sizeof(cdb), NULL, 0, 0);
	expect_good(unit);
	assert_int_equal(unit_get(unit, P, P, 0x10000, 1, value, 8), 8);
	assert_int_equal(get_be64(value), 0x1122334455667788);

	unit_write(unit, P, 0, "hello", 5);
	memset(cdb, 0, sizeof(cdb));
	hex_rows(OSC_APPEND, cdb, sizeof(cdb));
	hex_rows(OSC_APPEND_OUT, out, sizeof(out));
	unit_execute(unit, cdb, sizeof(cdb), out, sizeof(out), 32);
	expect_good(unit);
	expect_data_in(unit, OSC_APPEND_IN, 32);
}

static void test_linux_writes_in_osd1(void **state)
{
	struct unit *unit = *state;
	uint8_t cdb[OSD1_CDB_BYTES] = { 0 }, out[524] = { 0 }, value[8];

	write_hello(unit);
	hex_rows(LINUX_OSD1_WRITE, cdb, sizeof(cdb));
	hex_rows(LINUX_OSD1_WRITE_OUT, out, sizeof(out));
	unit_execute(unit, cdb, sizeof(cdb), out, sizeof(out), 22);
	expect_good(unit);
	assert_int_equal(unit->command.data_in_length, 22);
	assert_int_equal(get_be16(unit->data_in + 2), 18);
	assert_int_equal(get_be64(unit->data_in + 14), 5);
	assert_int_equal(unit_get(unit, P, O, 1, OSD_INFORMATION_USERNAME, value, 8), 5);
	assert_memory_equal(value, "ktest", 5);
}

static void test_truncated_and_oversized_cdbs(void **state)
{
	struct unit *unit = *state;
	uint8_t cdb[300] = { 0 };

	write_hello(unit);
	hex_cdb(LINUX_WRITE, cdb);
	for (size_t length = 1; length < OSD2_CDB_BYTES; length++) {
		unit_execute(unit, cdb, length, "HELLO", 5, 0);
		expect_field(unit, 7);
	}
	unit_execute(unit, cdb, 0, NULL, 0, 0);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_COMMAND_OPERATION_CODE);
	for (unsigned additional = 0; additional < 256; additional++) {
		cdb[7] = (uint8_t)additional;
		unit_execute(unit, cdb, OSD2_CDB_BYTES, "HELLO", 5, 0);
		if (additional == OSD2_ADDITIONAL_CDB_LENGTH)
			expect_good(unit);
		else
			expect_field(unit, 7);
	}
	/* What a transport pads a CDB with is not looked at. */
	cdb[7] = OSD2_ADDITIONAL_CDB_LENGTH;
	memset(cdb + OSD2_CDB_BYTES, 0xFF, sizeof(cdb) - OSD2_CDB_BYTES);
	unit_execute(unit, cdb, sizeof(cdb), "HELLO", 5, 0);
	expect_good(unit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_unit(test_linux_writes_and_reads_with_attributes),
		with_unit(test_linux_finds_undefined_attributes_as_empty_entries),
		with_unit(test_linux_lists_a_partition),
		with_unit(test_linux_scatters_and_removes),
		with_unit(test_linux_attaches),
		with_unit(test_osc_osd_creates_sets_and_appends),
		with_unit(test_linux_writes_in_osd1),
		with_unit(test_truncated_and_oversized_cdbs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
