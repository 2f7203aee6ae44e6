/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * INQUIRY data and sense data, byte by byte: each VPD page, and each type of descriptor as commands
 * send it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/osd/secured.h"
#include "tests/wire/hex.h"

/* ---- INQUIRY ---- */

static int inquire(const struct unit *unit, uint8_t bits, uint8_t page, uint8_t *data,
		   size_t capacity)
{
	const uint8_t cdb[6] = { OSD_SCSI_INQUIRY, bits, page, 0, 255, 0 };

	return osd_inquiry(unit->device, unit->nexus, cdb, data, capacity);
}

static void expect_inquiry(const struct unit *unit, uint8_t bits, uint8_t page,
			   const char *expected)
{
	uint8_t bytes[256], data[256];
	int length = (int)hex_pairs(expected, bytes, sizeof(bytes));

	assert_int_equal(inquire(unit, bits, page, data, sizeof(data)), length);
	assert_memory_equal(data, bytes, (size_t)length);
	/* Cut at any allocation length, and never behind it. */
	for (int capacity = 0; capacity <= length; capacity++) {
		memset(data, 0x5A, sizeof(data));
		assert_int_equal(inquire(unit, bits, page, data, (size_t)capacity), length);
		assert_memory_equal(data, bytes, (size_t)capacity);
		assert_int_equal(data[capacity], 0x5A);
	}
}

static void test_standard_inquiry_data(void **state)
{
	expect_inquiry(*state, 0, 0,
		       "11 00 05 12 3d 00 00 02"
		       "4d554e494e4e2020"                 /* MUNINN */
		       "4f424a4543542053544f524520202020" /* OBJECT STORE */
		       "30303031 0000000000000000000000000000000000000000 0000"
		       /* SAM-3, iSCSI, SPC-3, OSD */
		       "0060 0960 0300 0340");
}

static void test_vital_product_data_pages(void **state)
{
	/* Serial number: the UUID as text. */
	static const char serial[] = "31303031303230332d303430352d303630372d303830392d"
				     "306130623063306430653066";
	char text[256];

	expect_inquiry(*state, 1, 0x00, "11 00 0005 00 80 83 b0 b1");
	snprintf(text, sizeof(text), "11 80 0024 %s", serial);
	expect_inquiry(*state, 1, 0x80, text);
	/* T10 vendor designator; locally assigned NAA name. */
	snprintf(text, sizeof(text),
		 "11 83 003c 02 01 00 2c 4d554e494e4e2020 %s 01 03 00 08 3001020304050607", serial);
	expect_inquiry(*state, 1, 0x83, text);
	expect_inquiry(*state, 1, 0xB0, "11 b0 0014 01000010 100102030405060708090a0b0c0d0e0f");
}

static void test_what_is_configured_is_shown(void **state)
{
	static const uint8_t uuid[16] = { 1 };
	struct osd_options options = { .system_id = { 0xF1, 0x81 }, .serial = "SN7" };
	struct unit *unit = *state;

	osd_device_destroy(unit->device);
	assert_int_equal(osd_device_create(unit->engine, uuid, &options, &unit->device), 0);
	expect_inquiry(unit, 1, 0x80, "11 80 0003 534e37");
	expect_inquiry(unit, 1, 0xB0, "11 b0 0014 f181000000000000000000000000000000000000");
	expect_inquiry(unit, 1, 0x83,
		       "11 83 001b 02 01 00 0b 4d554e494e4e2020 534e37"
		       "01 03 00 08 3100000000000000");
}

static void test_other_pages_are_refused(void **state)
{
	bool there[256] = {
		[0x00] = true, [0x80] = true, [0x83] = true, [0xB0] = true, [0xB1] = true
	};
	uint8_t data[256];

	for (int page = 0; page < 256; page++) {
		int length = inquire(*state, 1, (uint8_t)page, data, sizeof(data));

		assert_int_equal(length < 0, !there[page]);
		if (page != 0)
			assert_int_equal(inquire(*state, 0, (uint8_t)page, data, sizeof(data)),
					 -EINVAL);
	}
	/* CMDDT, which is obsolete, and reserved bits. */
	for (int bit = 1; bit < 8; bit++)
		assert_int_equal(inquire(*state, (uint8_t)(1 << bit), 0, data, sizeof(data)),
				 -EINVAL);
}

static void test_each_session_has_a_security_token_of_its_own(void **state)
{
	struct unit *unit = *state;
	uint8_t first[20], second[20], again[20];

	unit->nexus = 1;
	assert_int_equal(inquire(unit, 1, 0xB1, first, sizeof(first)), 20);
	assert_int_equal(inquire(unit, 1, 0xB1, again, sizeof(again)), 20);
	unit->nexus = 2;
	assert_int_equal(inquire(unit, 1, 0xB1, second, sizeof(second)), 20);
	assert_memory_equal(first, "\x11\xB1\0\x10", 4);
	assert_memory_equal(first, again, 20);
	assert_memory_equal(second, first, 4);
	assert_true(memcmp(first + 4, second + 4, 16) != 0);
	secured_restart(unit, secured_manager.device_key);
	unit->nexus = 1;
	assert_int_equal(inquire(unit, 1, 0xB1, again, sizeof(again)), 20);
	assert_true(memcmp(first + 4, again + 4, 16) != 0);
}

/* ---- sense data ---- */

static void expect_sense_bytes(const struct unit *unit, const char *expected)
{
	uint8_t bytes[OSD_SENSE_BYTES_MAX];
	size_t length = hex_pairs(expected, bytes, sizeof(bytes));

	assert_int_equal(unit->command.status, SCSI_STATUS_CHECK_CONDITION);
	assert_int_equal(unit->command.sense_length, length);
	assert_memory_equal(unit->command.sense, bytes, length);
}

static void test_object_identification_and_field_pointer(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_READ, P, 0x19999);

	call.cdb.length = call.data_in_capacity = 8;
	call_run(unit, &call);
	expect_sense_bytes(unit, "72 05 2400 000000 28"
				 "06 1e 000000000000 b0103030 00000000"
				 "0000000000010000 0000000000019999"
				 "02 06 0000 c0 0018 00");
}

static void test_information_of_a_read_past_the_end(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_READ, P, O);

	unit_write(unit, O, 0, "hello", 5);
	call.cdb.length = call.data_in_capacity = 8;
	call_run(unit, &call);
	expect_sense_bytes(unit, "72 01 3b17 000000 38"
				 "06 1e 000000000000 00000000 b0103030"
				 "0000000000010000 0000000000010005"
				 "00 0a 80 00 0000000000000005"
				 "01 0a 00 00 0000000000000005");
}

static void test_attribute_identification(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_SET_ATTRIBUTES, P, O);

	call_set(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USED_CAPACITY, "12345678", 8);
	call_run(unit, &call);
	expect_sense_bytes(unit, "72 05 2600 000000 2c"
				 "06 1e 000000000000 b0103030 00000000"
				 "0000000000010000 0000000000010005"
				 "08 0a 0000 00000001 00000081");
}

static void test_unit_attention(void **state)
{
	struct unit *unit = *state;
	struct call format = call_of(OSD_FORMAT_OSD, 0, 0);
	struct call call = call_of(OSD_GET_ATTRIBUTES, 0, 0);

	unit->nexus = 1;
	call_run(unit, &call);
	expect_good(unit);
	unit->nexus = 2;
	call_run(unit, &format);
	expect_good(unit);
	unit->nexus = 1;
	call_run(unit, &call);
	expect_sense_bytes(unit, "72 06 2800 000000 20"
				 "06 1e 000000000000 b0103030 00000000"
				 "0000000000000000 0000000000000000");
}

static void test_response_integrity_check_value(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;
	size_t value_bytes = unit_version == OSD_1 ? 20 : 32;
	const uint8_t *sense = unit->command.sense;

	secured_set_method(unit, P, OSD_CMDRSP);
	/* signed_run verifies the value. */
	call = signed_call_of(unit, OSD_REMOVE, P, 0x19999, OSD_CMDRSP);
	signed_run(unit, &call);
	assert_int_equal(unit->command.status, SCSI_STATUS_CHECK_CONDITION);
	assert_int_equal(unit->command.sense_length, 48 + 2 + value_bytes);
	assert_int_equal(sense[7], unit->command.sense_length - 8);
	assert_memory_equal(sense + 40, "\x02\x06\0\0\xC0\0\x18\0", 8);
	assert_int_equal(sense[48], SENSE_DESCRIPTOR_OSD_RESPONSE_CHECK_VALUE);
	assert_int_equal(sense[49], value_bytes);
	/* Linux keeps 96 bytes: everything is in them. */
	assert_true(unit->command.sense_length <= 96);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_unit(test_standard_inquiry_data),
		with_unit(test_vital_product_data_pages),
		with_unit(test_what_is_configured_is_shown),
		with_unit(test_other_pages_are_refused),
		with_keys(test_each_session_has_a_security_token_of_its_own),
		with_object(test_object_identification_and_field_pointer),
		with_object(test_information_of_a_read_past_the_end),
		with_object(test_attribute_identification),
		with_unit(test_unit_attention),
		with_keys_in_both(test_response_integrity_check_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
