/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* CDBs and buffer offsets: the worked examples, round trips, and what a decoder must refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/wire/hex.h"
#include "wire/wire.h"

#define P 0x10000
#define O 0x10005

static struct osd_cdb command(enum osd_version version, uint16_t action)
{
	return (struct osd_cdb){
		.version = version,
		.action = action,
		.format = OSD_ATTRIBUTES_LIST,
		.partition = P,
		.object = O,
	};
}

/* Encoding `decoded` gives the bytes, and decoding the bytes gives `decoded`. */
static void expect_cdb(const struct osd_cdb *decoded, const uint8_t *expected,
		       size_t expected_length)
{
	uint8_t cdb[OSD_CDB_BYTES_MAX];
	struct osd_cdb back;
	uint16_t bad_field;
	size_t length;

	assert_int_equal(osd_cdb_encode(decoded, cdb, &length), 0);
	assert_int_equal(length, expected_length);
	assert_memory_equal(cdb, expected, length);
	assert_int_equal(osd_cdb_decode(expected, expected_length, &back, &bad_field), 0);
	assert_int_equal(back.version, decoded->version);
	assert_int_equal(back.action, decoded->action);
	assert_int_equal(back.partition, decoded->partition);
	assert_int_equal(back.object, decoded->object);
	assert_int_equal(back.length, decoded->length);
	assert_int_equal(back.address, decoded->address);
	assert_int_equal(back.objects, decoded->objects);
	assert_int_equal(osd_cdb_encode(&back, cdb, NULL), 0);
	assert_memory_equal(cdb, expected, length);
}

static void expect_example(struct osd_cdb decoded, enum osd_object_type type, const char *dump)
{
	uint8_t cdb[OSD2_CDB_BYTES];

	hex_cdb(dump, cdb);
	osd_capability_nosec(&decoded, type);
	expect_cdb(&decoded, cdb, sizeof(cdb));
}

static void test_linux_examples_encode_and_decode_to_the_same_bytes(void **state)
{
	struct osd_cdb cdb;

	(void)state;
	cdb = command(OSD_2, OSD_FORMAT_OSD);
	cdb.partition = cdb.object = 0;
	expect_example(cdb, OSD_TYPE_ROOT, LINUX_FORMAT_OSD);

	cdb = command(OSD_2, OSD_CREATE_PARTITION);
	cdb.object = 0;
	expect_example(cdb, OSD_TYPE_PARTITION, LINUX_CREATE_PARTITION);

	expect_example(command(OSD_2, OSD_CREATE), OSD_TYPE_USER_OBJECT, LINUX_CREATE);

	cdb = command(OSD_2, OSD_WRITE);
	cdb.length = 5;
	expect_example(cdb, OSD_TYPE_USER_OBJECT, LINUX_WRITE);

	cdb.continuation_length = OSD_SCATTER_GATHER_BYTES(2);
	expect_example(cdb, OSD_TYPE_USER_OBJECT, LINUX_WRITE_SCATTERED);

	cdb = command(OSD_2, OSD_READ);
	cdb.length = 5;
	cdb.get_list = (struct osd_segment){ 0, 24 };
	cdb.retrieved = (struct osd_segment){ 8, 56 };
	expect_example(cdb, OSD_TYPE_USER_OBJECT, LINUX_READ);

	cdb = command(OSD_2, OSD_GET_ATTRIBUTES);
	cdb.get_list = (struct osd_segment){ 0, 16 };
	cdb.retrieved = (struct osd_segment){ 0, 32 };
	expect_example(cdb, OSD_TYPE_USER_OBJECT, LINUX_GET_LENGTH);

	cdb = command(OSD_2, OSD_WRITE);
	cdb.length = 5;
	cdb.set_data = (struct osd_segment){ 8, 56 };
	cdb.get_list = (struct osd_segment){ 64, 16 };
	cdb.retrieved = (struct osd_segment){ 0, 32 };
	expect_example(cdb, OSD_TYPE_USER_OBJECT, LINUX_WRITE_ATTRIBUTES);

	cdb = command(OSD_2, OSD_LIST);
	cdb.object = 0;
	cdb.length = 56;
	expect_example(cdb, OSD_TYPE_PARTITION, LINUX_LIST);

	cdb = command(OSD_2, OSD_GET_ATTRIBUTES);
	cdb.partition = cdb.object = 0;
	cdb.get_list = (struct osd_segment){ 0, 96 };
	cdb.retrieved = (struct osd_segment){ 0, 432 };
	expect_example(cdb, OSD_TYPE_ROOT, LINUX_ATTACH);
}

static void test_osd1_example_encodes_with_osd1_length_and_decodes_with_both(void **state)
{
	uint8_t linux_bytes[OSD1_CDB_BYTES] = { 0 };
	struct osd_cdb cdb = command(OSD_1, OSD_WRITE), back;
	uint16_t bad_field;

	(void)state;
	cdb.length = 5;
	cdb.set_data = (struct osd_segment){ 256, 37 };
	cdb.get_list = (struct osd_segment){ 512, 12 };
	cdb.retrieved = (struct osd_segment){ 0, 22 };
	osd_capability_nosec(&cdb, OSD_TYPE_USER_OBJECT);
	hex_rows(LINUX_OSD1_WRITE, linux_bytes, sizeof(linux_bytes));
	assert_int_equal(linux_bytes[7], 0xE4);
	assert_int_equal(osd_cdb_decode(linux_bytes, sizeof(linux_bytes), &back, &bad_field), 0);
	assert_int_equal(back.version, OSD_1);
	assert_int_equal(back.action, OSD_WRITE);
	linux_bytes[7] = 0xC0;
	expect_cdb(&cdb, linux_bytes, sizeof(linux_bytes));
}

static void test_room_for_an_answer_means_nothing_without_a_get_list(void **state)
{
	uint8_t bytes[OSD2_CDB_BYTES];
	struct osd_cdb cdb;
	uint16_t bad_field;

	(void)state;
	hex_cdb(LINUX_WRITE, bytes);
	put_be32(bytes + 60, 100);
	assert_int_equal(get_be32(bytes + 64), OSD_OFFSET_UNUSED);
	assert_int_equal(osd_cdb_decode(bytes, sizeof(bytes), &cdb, &bad_field), 0);
	assert_int_equal(cdb.retrieved.length, 0);
}

static void test_page_format_decodes(void **state)
{
	uint8_t bytes[OSD2_CDB_BYTES] = { 0 };
	struct osd_cdb cdb;
	uint16_t bad_field;

	(void)state;
	hex_rows(OSC_CREATE_THREE, bytes, sizeof(bytes));
	assert_int_equal(osd_cdb_decode(bytes, sizeof(bytes), &cdb, &bad_field), 0);
	assert_int_equal(cdb.action, OSD_CREATE);
	assert_int_equal(cdb.format, OSD_ATTRIBUTES_PAGE);
	assert_int_equal(cdb.timestamps_control, OSD_TIMESTAMPS_BYPASS);
	assert_int_equal(cdb.partition, P);
	assert_int_equal(cdb.object, 0);
	assert_int_equal(cdb.objects, 3);
	assert_int_equal(cdb.get_page, OSD_PAGE_CURRENT_COMMAND);
	assert_int_equal(cdb.retrieved.length, 0x44);
	assert_int_equal(cdb.retrieved.offset, 0);
	assert_int_equal(cdb.set_page, 0);
	assert_int_equal(cdb.set_data.length, 0);
}

static void test_cdb_format_decodes_and_encodes(void **state)
{
	uint8_t bytes[OSD2_CDB_BYTES] = { 0 }, again[OSD2_CDB_BYTES];
	static const uint8_t value[8] = { 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88 };
	struct osd_cdb cdb;
	uint16_t bad_field;

	(void)state;
	hex_rows(OSC_SET_IN_CDB, bytes, sizeof(bytes));
	assert_int_equal(osd_cdb_decode(bytes, sizeof(bytes), &cdb, &bad_field), 0);
	assert_int_equal(cdb.action, OSD_SET_ATTRIBUTES);
	assert_int_equal(cdb.format, OSD_ATTRIBUTES_CDB);
	assert_int_equal(cdb.set_page, 0x10000);
	assert_int_equal(cdb.set_number, 1);
	assert_int_equal(cdb.set_length, 8);
	assert_memory_equal(cdb.set_value, value, 8);
	assert_int_equal(osd_cdb_encode(&cdb, again, NULL), 0);
	assert_memory_equal(again, bytes, sizeof(bytes));
}

static void test_page_format_round_trips(void **state)
{
	struct osd_cdb cdb = command(OSD_2, OSD_SET_ATTRIBUTES), back;
	uint8_t bytes[OSD2_CDB_BYTES];
	uint16_t bad_field;

	(void)state;
	cdb.format = OSD_ATTRIBUTES_PAGE;
	cdb.get_page = 3;
	cdb.retrieved = (struct osd_segment){ 4096, 38 };
	cdb.set_page = 0x10000;
	cdb.set_number = 7;
	cdb.set_data = (struct osd_segment){ 0, 100 };
	cdb.fua = cdb.dpo = true;
	cdb.isolation = OSD_ISOLATION_STRICT;
	assert_int_equal(osd_cdb_encode(&cdb, bytes, NULL), 0);
	assert_int_equal(get_be32(bytes + 60), 0xB0000200);
	assert_int_equal(osd_cdb_decode(bytes, sizeof(bytes), &back, &bad_field), 0);
	assert_memory_equal(&back.retrieved, &cdb.retrieved, sizeof(cdb.retrieved));
	assert_int_equal(back.set_data.length, 100);
	assert_int_equal(back.set_page, 0x10000);
	assert_int_equal(back.set_number, 7);
	assert_int_equal(back.get_page, 3);
	assert_true(back.fua && back.dpo);
	assert_int_equal(back.isolation, OSD_ISOLATION_STRICT);
}

static void test_every_action_round_trips_in_every_version_that_has_it(void **state)
{
	static const struct {
		uint16_t first, last;
	} osd1_ranges[] = { { 0x8801, 0x8803 }, { 0x8805, 0x8808 }, { 0x880A, 0x880C },
			    { 0x880E, 0x880F }, { 0x8812, 0x8812 }, { 0x8815, 0x881C },
			    { 0x8F7E, 0x8F7F }, { 0x8F80, 0x8FFF } };
	unsigned osd1_count = 0, expected = 0, osd2_count = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(osd1_ranges) / sizeof(osd1_ranges[0]); i++)
		expected += osd1_ranges[i].last - osd1_ranges[i].first + 1;
	for (uint32_t action = 0; action <= UINT16_MAX; action++) {
		for (enum osd_version version = OSD_1; version <= OSD_2; version++) {
			struct osd_cdb cdb = command(version, (uint16_t)action), back;
			uint8_t bytes[OSD_CDB_BYTES_MAX];
			uint16_t bad_field;
			size_t length;

			if (osd_cdb_encode(&cdb, bytes, &length) != 0)
				continue;
			assert_int_equal(osd_cdb_decode(bytes, length, &back, &bad_field), 0);
			assert_int_equal(back.version, version);
			assert_int_equal(back.action, action);
			osd1_count += version == OSD_1;
			osd2_count += version == OSD_2;
		}
		assert_true(osd_action_is_known((uint16_t)action) ==
			    (strcmp(osd_action_name((uint16_t)action), "unknown action") != 0));
	}
	assert_int_equal(osd1_count, expected);
	assert_int_equal(osd2_count, 43 + 128);
}

static void test_flush_scope_is_taken_from_either_byte(void **state)
{
	struct osd_cdb cdb = command(OSD_2, OSD_FLUSH), back;
	uint8_t bytes[OSD_CDB_BYTES_MAX];
	uint16_t bad_field;

	(void)state;
	cdb.flush_scope = 2;
	assert_int_equal(osd_cdb_encode(&cdb, bytes, NULL), 0);
	assert_int_equal(bytes[11], 0x32);
	assert_int_equal(osd_cdb_decode(bytes, sizeof(bytes), &back, &bad_field), 0);
	assert_int_equal(back.flush_scope, 2);
	bytes[11] = 0x30;
	bytes[10] = 0x01;
	assert_int_equal(osd_cdb_decode(bytes, sizeof(bytes), &back, &bad_field), 0);
	assert_int_equal(back.flush_scope, 1);
	assert_int_equal(back.isolation, 0);
}

static void test_list_identifier_is_not_taken_for_a_continuation_length(void **state)
{
	struct osd_cdb cdb = command(OSD_2, OSD_LIST), back;
	uint8_t bytes[OSD_CDB_BYTES_MAX];
	uint16_t bad_field;

	(void)state;
	cdb.list_identifier = 7;
	assert_int_equal(osd_cdb_encode(&cdb, bytes, NULL), 0);
	assert_int_equal(osd_cdb_decode(bytes, sizeof(bytes), &back, &bad_field), 0);
	assert_int_equal(back.list_identifier, 7);
	assert_int_equal(back.continuation_length, 0);
}

/* Patches a valid WRITE and expects 24/00 at `field`. */
static void expect_bad_field(size_t at, size_t bytes, uint64_t value, uint16_t field)
{
	uint8_t cdb[OSD2_CDB_BYTES];
	struct osd_cdb decoded;
	uint16_t bad_field = 0;

	hex_cdb(LINUX_WRITE_ATTRIBUTES, cdb);
	for (size_t i = 0; i < bytes; i++)
		cdb[at + i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
	assert_int_equal(osd_cdb_decode(cdb, sizeof(cdb), &decoded, &bad_field), -EINVAL);
	assert_int_equal(bad_field, field);
	assert_int_equal(decoded.partition, P);
	assert_int_equal(decoded.object, O);
}

static void test_bad_fields_are_named(void **state)
{
	(void)state;
	expect_bad_field(7, 1, 0xE3, 7);
	expect_bad_field(7, 1, 0xC0, 7);
	expect_bad_field(11, 1, 0x00, 11);
	expect_bad_field(12, 1, 0x01, 12);
	expect_bad_field(48, 4, 40, 48);
	expect_bad_field(48, 4, 49, 48);
	expect_bad_field(48, 4, 52, 48);
	expect_bad_field(56, 4, OSD_OFFSET_UNUSED, 56);
	expect_bad_field(56, 4, 0xA0000001, 56);
	expect_bad_field(64, 4, 0x80000001, 64);
	expect_bad_field(72, 4, OSD_OFFSET_UNUSED, 72);
}

static void test_bad_fields_of_cdb_format_are_named(void **state)
{
	static const struct {
		size_t at;
		uint8_t bytes[4];
		uint16_t field;
	} cases[] = {
		{ 60, { 0x00, 0x13, 0, 0 }, 60 },
		{ 52, { 0xFF, 0xFF, 0xFF, 0xFF }, 52 },
		{ 56, { 0xFF, 0xFF, 0xFF, 0xFF }, 56 },
		{ 52, { 0, 0, 0, 0 }, 52 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t cdb[OSD2_CDB_BYTES] = { 0 };
		struct osd_cdb decoded;
		uint16_t bad_field = 0;

		hex_rows(OSC_SET_IN_CDB, cdb, sizeof(cdb));
		memcpy(cdb + cases[i].at, cases[i].bytes, cases[i].at == 60 ? 2 : 4);
		assert_int_equal(osd_cdb_decode(cdb, sizeof(cdb), &decoded, &bad_field), -EINVAL);
		assert_int_equal(bad_field, cases[i].field);
	}
}

static void test_truncated_cdbs_are_refused_at_every_length(void **state)
{
	uint8_t cdb[OSD2_CDB_BYTES];
	struct osd_cdb decoded;
	uint16_t bad_field;

	(void)state;
	hex_cdb(LINUX_WRITE_ATTRIBUTES, cdb);
	assert_int_equal(osd_cdb_decode(cdb, 0, &decoded, &bad_field), -EOPNOTSUPP);
	for (size_t length = 1; length < sizeof(cdb); length++) {
		assert_int_equal(osd_cdb_decode(cdb, length, &decoded, &bad_field), -EINVAL);
		assert_int_equal(bad_field, 7);
	}
}

static void test_unknown_actions_are_told_apart_from_bad_fields(void **state)
{
	uint8_t cdb[OSD2_CDB_BYTES];
	struct osd_cdb decoded;
	uint16_t bad_field;

	(void)state;
	hex_cdb(LINUX_WRITE, cdb);
	cdb[0] = 0x7E;
	assert_int_equal(osd_cdb_decode(cdb, sizeof(cdb), &decoded, &bad_field), -EOPNOTSUPP);
	hex_cdb(LINUX_WRITE, cdb);
	put_be16(cdb + 8, 0x88FF);
	assert_int_equal(osd_cdb_decode(cdb, sizeof(cdb), &decoded, &bad_field), -EOPNOTSUPP);
	assert_int_equal(decoded.partition, P);
	put_be16(cdb + 8, 0x8804); /* PUNCH is OSD-2's */
	assert_int_equal(osd_cdb_decode(cdb, sizeof(cdb), &decoded, &bad_field), -EOPNOTSUPP);
}

static void test_offsets_encode_as_initiators_do(void **state)
{
	static const struct {
		uint64_t offset;
		uint32_t osd1, osd2;
	} cases[] = {
		{ 0, 0, 0 },
		{ 256, 0x00000001, 0xB0000020 },
		{ 512, 0x00000002, 0xB0000040 },
		{ 4096, 0x00000010, 0xB0000200 },
	};
	uint32_t encoded;
	uint64_t offset;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(osd_offset_encode(OSD_1, cases[i].offset, &encoded),
				 cases[i].offset);
		assert_int_equal(encoded, cases[i].osd1);
		assert_int_equal(osd_offset_encode(OSD_2, cases[i].offset, &encoded),
				 cases[i].offset);
		assert_int_equal(encoded, cases[i].osd2);
	}
	assert_int_equal(osd_offset_encode(OSD_2, 5, &encoded), 8);
	assert_int_equal(encoded, 0xB0000001);
	assert_int_equal(osd_offset_encode(OSD_1, 5, &encoded), 256);
	assert_int_equal(osd_offset_decode(OSD_2, 0xB0000000, &offset), 0);
	assert_int_equal(offset, 0);
}

static void test_offsets_round_trip_and_never_fall_below_what_was_asked(void **state)
{
	(void)state;
	for (enum osd_version version = OSD_1; version <= OSD_2; version++) {
		for (unsigned bit = 0; bit < 44; bit++) {
			for (int delta = -1; delta <= 1; delta++) {
				uint64_t asked = (UINT64_C(1) << bit) + (uint64_t)(int64_t)delta,
					 decoded;
				uint32_t encoded;
				uint64_t given = osd_offset_encode(version, asked, &encoded);

				if (given == UINT64_MAX) {
					assert_true(bit >= 43);
					continue;
				}
				assert_true(given >= asked && given - asked < UINT64_C(1) << 16);
				assert_int_equal(osd_offset_decode(version, encoded, &decoded), 0);
				assert_int_equal(decoded, given);
			}
		}
	}
	assert_int_equal(osd_offset_encode(OSD_2, UINT64_C(1) << 43, NULL), UINT64_MAX);
	assert_int_equal(osd_offset_encode(OSD_2, UINT64_MAX, NULL), UINT64_MAX);
}

static void test_every_offset_that_decodes_also_encodes(void **state)
{
	static const uint32_t forms[] = { 0x8D000000, 0x8FFFFFFF, 0xF0000001,
					  0xFFFFFFFE, 0x7FFFFFFF, 0xB0000001 };

	(void)state;
	for (enum osd_version version = OSD_1; version <= OSD_2; version++) {
		for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
			uint64_t offset;

			if (osd_offset_decode(version, forms[i], &offset) == 0)
				assert_int_equal(osd_offset_encode(version, offset, NULL), offset);
		}
	}
}

static void test_no_offset_encodes_as_the_mark_of_an_unused_one(void **state)
{
	/* Mantissa and exponent field all ones. */
	uint64_t last = UINT64_C(0x0FFFFFFF) << 7, decoded;
	uint32_t encoded;
	uint64_t given = osd_offset_encode(OSD_2, last, &encoded);

	(void)state;
	assert_int_not_equal(encoded, OSD_OFFSET_UNUSED);
	assert_int_equal(given, last + 128);
	assert_int_equal(osd_offset_decode(OSD_2, encoded, &decoded), 0);
	assert_int_equal(decoded, given);
}

static void test_a_segment_at_an_offset_that_has_no_form_does_not_encode(void **state)
{
	struct osd_cdb cdb = command(OSD_2, OSD_WRITE);
	uint8_t bytes[OSD_CDB_BYTES_MAX];

	(void)state;
	cdb.set_data = (struct osd_segment){ 5, 24 };
	assert_int_equal(osd_cdb_encode(&cdb, bytes, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_linux_examples_encode_and_decode_to_the_same_bytes),
		cmocka_unit_test(test_osd1_example_encodes_with_osd1_length_and_decodes_with_both),
		cmocka_unit_test(test_room_for_an_answer_means_nothing_without_a_get_list),
		cmocka_unit_test(test_page_format_decodes),
		cmocka_unit_test(test_cdb_format_decodes_and_encodes),
		cmocka_unit_test(test_page_format_round_trips),
		cmocka_unit_test(test_every_action_round_trips_in_every_version_that_has_it),
		cmocka_unit_test(test_flush_scope_is_taken_from_either_byte),
		cmocka_unit_test(test_list_identifier_is_not_taken_for_a_continuation_length),
		cmocka_unit_test(test_bad_fields_are_named),
		cmocka_unit_test(test_bad_fields_of_cdb_format_are_named),
		cmocka_unit_test(test_truncated_cdbs_are_refused_at_every_length),
		cmocka_unit_test(test_unknown_actions_are_told_apart_from_bad_fields),
		cmocka_unit_test(test_offsets_encode_as_initiators_do),
		cmocka_unit_test(test_offsets_round_trip_and_never_fall_below_what_was_asked),
		cmocka_unit_test(test_every_offset_that_decodes_also_encodes),
		cmocka_unit_test(test_no_offset_encodes_as_the_mark_of_an_unused_one),
		cmocka_unit_test(test_a_segment_at_an_offset_that_has_no_form_does_not_encode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
