/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Every worked example: decoded and encoded again, the bytes are the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bytes.h"
#include "tests/wire/hex.h"
#include "wire/wire.h"

/* ---- CDBs ---- */

/* osc-osd's initiator writes an offset for parts that are not there; its value means nothing. */
static void forget_absent_offsets(uint8_t *cdb)
{
	bool page = (cdb[11] & 0x30) == OSD_ATTRIBUTES_PAGE;

	if ((cdb[11] & 0x30) == OSD_ATTRIBUTES_CDB)
		return;
	for (size_t length_at = page ? 56 : 52; length_at <= 72; length_at += page ? 16 : 8)
		if (get_be32(cdb + length_at) == 0)
			memset(cdb + length_at + 4, 0, 4);
	/* Offset 0 has an exponent of the sender's choice. */
	for (size_t at = page ? 60 : 56; at <= 76; at += page ? 16 : 8)
		if ((get_be32(cdb + at) & 0x0FFFFFFF) == 0)
			memset(cdb + at, 0, 4);
}

/* `additional`: what byte 7 is encoded as, whatever it was. */
static void expect_cdb_round_trip(const uint8_t *example, size_t length, uint8_t additional,
				  bool exact)
{
	uint8_t original[OSD_CDB_BYTES_MAX], back[OSD_CDB_BYTES_MAX];
	struct osd_cdb decoded;
	uint16_t bad_field;
	size_t encoded_length;

	memcpy(original, example, length);
	assert_int_equal(osd_cdb_decode(original, length, &decoded, &bad_field), 0);
	assert_int_equal(osd_cdb_encode(&decoded, back, &encoded_length), 0);
	assert_int_equal(encoded_length, length);
	original[7] = additional;
	if (!exact) {
		forget_absent_offsets(original);
		forget_absent_offsets(back);
	}
	assert_memory_equal(back, original, length);
}

static void test_cdbs_of_linux_round_trip_byte_by_byte(void **state)
{
	const char *const examples[] = {
		LINUX_FORMAT_OSD, LINUX_CREATE_PARTITION, LINUX_CREATE,           LINUX_WRITE,
		LINUX_READ,       LINUX_GET_LENGTH,       LINUX_WRITE_ATTRIBUTES, LINUX_LIST,
		LINUX_REMOVE,     LINUX_WRITE_SCATTERED,  LINUX_ATTACH,
	};
	uint8_t cdb[OSD2_CDB_BYTES], osd1[OSD1_CDB_BYTES] = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
		hex_cdb(examples[i], cdb);
		expect_cdb_round_trip(cdb, sizeof(cdb), OSD2_ADDITIONAL_CDB_LENGTH, true);
	}
	/* One byte of Linux's OSD-1 CDBs is OSD-2's: it is read, and encoded as OSD-1 has it. */
	hex_rows(LINUX_OSD1_WRITE, osd1, sizeof(osd1));
	assert_int_equal(osd1[7], OSD2_ADDITIONAL_CDB_LENGTH);
	expect_cdb_round_trip(osd1, sizeof(osd1), OSD1_ADDITIONAL_CDB_LENGTH, true);
}

static void test_cdbs_of_osc_osd_round_trip_but_for_offsets_of_nothing(void **state)
{
	const char *const examples[] = { OSC_CREATE_THREE, OSC_SET_IN_CDB, OSC_APPEND };

	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
		uint8_t cdb[OSD2_CDB_BYTES] = { 0 };

		hex_rows(examples[i], cdb, sizeof(cdb));
		expect_cdb_round_trip(cdb, sizeof(cdb), OSD2_ADDITIONAL_CDB_LENGTH, false);
	}
}

/* ---- lists ---- */

static void expect_list_round_trip(enum osd_version version, enum osd_list_role role,
				   const uint8_t *list, size_t length)
{
	struct osd_list_reader reader;
	struct osd_list_writer writer;
	struct osd_attribute attribute;
	uint8_t back[512];
	int result;

	assert_int_equal(osd_list_read(&reader, version, role, list, length), 0);
	osd_list_begin(&writer, version, role, back, sizeof(back));
	while ((result = osd_list_next(&reader, &attribute)) == 1) {
		if (role == OSD_LIST_TO_GET)
			osd_list_add_request(&writer, attribute.page, attribute.number);
		else
			osd_list_add_value(&writer, attribute.page, attribute.number,
					   attribute.value, attribute.length);
	}
	assert_int_equal(result, 0);
	assert_int_equal(osd_list_end(&writer), length);
	assert_memory_equal(back, list, length);
}

static void test_lists_round_trip_byte_by_byte(void **state)
{
	static const struct {
		const char *dump;
		enum osd_version version;
		enum osd_list_role role;
		size_t offset, length;
	} examples[] = {
		{ LINUX_READ_OUT, OSD_2, OSD_LIST_TO_GET, 0, 24 },
		{ LINUX_READ_IN, OSD_2, OSD_LIST_RETRIEVED, 8, 56 },
		{ LINUX_GET_LENGTH_OUT, OSD_2, OSD_LIST_TO_GET, 0, 16 },
		{ LINUX_GET_LENGTH_IN, OSD_2, OSD_LIST_RETRIEVED, 0, 32 },
		{ UNDEFINED_ATTRIBUTES_IN, OSD_2, OSD_LIST_RETRIEVED, 0, 56 },
		{ LINUX_WRITE_ATTRIBUTES_OUT, OSD_2, OSD_LIST_TO_SET, 8, 56 },
		{ LINUX_WRITE_ATTRIBUTES_OUT, OSD_2, OSD_LIST_TO_GET, 64, 16 },
		{ LINUX_ATTACH_OUT, OSD_2, OSD_LIST_TO_GET, 0, 96 },
		{ OSC_APPEND_OUT, OSD_2, OSD_LIST_TO_GET, 8, 16 },
		{ OSC_APPEND_IN, OSD_2, OSD_LIST_RETRIEVED, 0, 32 },
		{ LINUX_OSD1_WRITE_OUT, OSD_1, OSD_LIST_TO_SET, 256, 37 },
		{ LINUX_OSD1_WRITE_OUT, OSD_1, OSD_LIST_TO_GET, 512, 12 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
		uint8_t bytes[1024] = { 0 };

		hex_rows(examples[i].dump, bytes, sizeof(bytes));
		expect_list_round_trip(examples[i].version, examples[i].role,
				       bytes + examples[i].offset, examples[i].length);
	}
}

/* ---- the rest ---- */

static void test_the_scatter_gather_segment_round_trips(void **state)
{
	uint8_t bytes[128] = { 0 }, back[128];
	struct osd_continuation continuation;
	struct osd_descriptor descriptor;
	struct osd_piece pieces[2];

	(void)state;
	hex_rows(LINUX_WRITE_SCATTERED_OUT, bytes, sizeof(bytes));
	assert_int_equal(osd_continuation_read(&continuation, OSD_WRITE, bytes, 80), 0);
	assert_int_equal(osd_continuation_next(&continuation, &descriptor), 1);
	assert_int_equal(descriptor.length, 32);
	for (size_t i = 0; i < 2; i++)
		osd_piece_decode(&descriptor, i, &pieces[i]);
	assert_int_equal(osd_continuation_encode(OSD_WRITE, pieces, 2, back, sizeof(back)), 80);
	assert_memory_equal(back, bytes, 80);
	assert_int_equal(osd_continuation_add(back, 0, sizeof(back), OSD_WRITE, descriptor.type,
					      descriptor.content, descriptor.length),
			 80);
	assert_memory_equal(back, bytes, 80);
}

static void test_list_data_round_trips(void **state)
{
	static const struct {
		const char *dump;
		size_t ids;
	} examples[] = { { LINUX_LIST_IN, 1 }, { LINUX_LIST_TWO_IN, 2 } };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		uint8_t bytes[64] = { 0 }, back[64];
		size_t position = OSD_LIST_HEAD_BYTES, length = 24 + 8 * examples[i].ids;
		struct osd_listed_object object;
		struct osd_list_head head;

		hex_rows(examples[i].dump, bytes, sizeof(bytes));
		assert_int_equal(osd_list_head_decode(OSD_2, bytes, length, &head), 0);
		osd_list_head_encode(OSD_2, &head, back);
		while (osd_listed_next(&head, bytes, length, &position, &object))
			put_be64(back + position - 8, object.id);
		assert_int_equal(position, length);
		assert_memory_equal(back, bytes, length);
	}
}

static void test_sense_data_round_trips(void **state)
{
	static const struct {
		const char *dump;
		size_t length;
	} examples[] = { { SENSE_OF_OSC, 40 }, { SENSE_NO_SUCH_OBJECT, 48 } };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		uint8_t bytes[64] = { 0 }, back[64];
		struct osd_sense sense;

		hex_rows(examples[i].dump, bytes, sizeof(bytes));
		assert_int_equal(osd_sense_decode(bytes, examples[i].length, &sense), 0);
		assert_int_equal(osd_sense_encode(&sense, back, sizeof(back)), examples[i].length);
		assert_memory_equal(back, bytes, examples[i].length);
	}
}

static void test_the_current_command_page_of_three_new_objects_is_read(void **state)
{
	uint8_t page[68] = { 0 };

	(void)state;
	hex_rows(OSC_CREATE_THREE_IN, page, sizeof(page));
	assert_int_equal(get_be32(page), OSD_PAGE_CURRENT_COMMAND);
	assert_int_equal(get_be32(page + 4), sizeof(page) - 8);
	assert_int_equal(page[40], OSD_TYPE_USER_OBJECT);
	assert_int_equal(get_be64(page + 44), 0x10000);
	/* The highest; the others are the two below. */
	assert_int_equal(get_be64(page + 52), 0x10002);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cdbs_of_linux_round_trip_byte_by_byte),
		cmocka_unit_test(test_cdbs_of_osc_osd_round_trip_but_for_offsets_of_nothing),
		cmocka_unit_test(test_lists_round_trip_byte_by_byte),
		cmocka_unit_test(test_the_scatter_gather_segment_round_trips),
		cmocka_unit_test(test_list_data_round_trips),
		cmocka_unit_test(test_sense_data_round_trips),
		cmocka_unit_test(test_the_current_command_page_of_three_new_objects_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
