/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* PDUs against the bytes of the protocol's sections 8 and 9.13 and of RFC 7143. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/iscsi_pdu.h"
#include "common/bytes.h"

/* Of 9.5: a READ of 5 bytes with a get list. Only what the header shows: 24 bytes out, 64 in. */
static void make_read(uint8_t cdb[236])
{
	static const uint8_t head[32] = { 0x7f, 0, 0, 0, 0, 0, 0, 0xe4, 0x88, 0x85, 0,
					  0x30, 0, 0, 0, 0, 0, 0, 0,    0,    0,    1,
					  0,    0, 0, 0, 0, 0, 0, 1,    0,    5 };

	for (size_t i = 0; i < 236; i++)
		cdb[i] = (uint8_t)i;
	memcpy(cdb, head, sizeof(head));
}

static void test_a_bidirectional_command_has_the_bytes_of_the_worked_example(void **state)
{
	static const uint8_t first_row[8] = { 0x01, 0xe1, 0x00, 0x00, 0x3a, 0x00, 0x00, 0x18 };
	static const uint8_t cdb_head[16] = { 0x7f, 0,    0, 0,    0, 0, 0, 0xe4,
					      0x88, 0x85, 0, 0x30, 0, 0, 0, 0 };
	static const uint8_t cdb_segment[4] = { 0x00, 0xdd, 0x01, 0x00 };
	static const uint8_t length_segment[8] = { 0x00, 0x05, 0x02, 0x00, 0x00, 0x00, 0x00, 0x40 };
	uint8_t cdb[236], lun[8] = { 0, 1 }, header[ISCSI_COMMAND_HEADER_BYTES_MAX];
	struct iscsi_command command = {
		.lun = lun,
		.task_tag = 0x11223344,
		.cmd_sn = 0x55667788,
		.exp_stat_sn = 0x99aabbcc,
		.cdb = cdb,
		.cdb_length = sizeof(cdb),
		.reads = true,
		.writes = true,
		.read_length = 64,
		.write_length = 24,
		.immediate_length = 24,
		.final = true,
	};

	(void)state;
	make_read(cdb);
	assert_int_equal(iscsi_encode_command(header, &command), 280);
	assert_memory_equal(header, first_row, sizeof(first_row));
	assert_memory_equal(header + 8, lun, 8);
	assert_int_equal(get_be32(header + 16), 0x11223344);
	assert_int_equal(get_be32(header + 20), 24);
	assert_int_equal(get_be32(header + 24), 0x55667788);
	assert_int_equal(get_be32(header + 28), 0x99aabbcc);
	assert_memory_equal(header + 32, cdb_head, sizeof(cdb_head));
	assert_memory_equal(header + 48, cdb_segment, sizeof(cdb_segment));
	assert_memory_equal(header + 52, cdb + 16, 220);
	assert_memory_equal(header + 272, length_segment, sizeof(length_segment));
	command.ordered = true;
	iscsi_encode_command(header, &command);
	assert_int_equal(header[1], (first_row[1] & ~ISCSI_TASK_SIMPLE) | ISCSI_TASK_ORDERED);
}

static void expect_sizes(size_t cdb_length, bool both, size_t header_length, uint8_t words)
{
	uint8_t cdb[ISCSI_CDB_BYTES_MAX] = { 0x7f }, lun[8] = { 0 },
		header[ISCSI_COMMAND_HEADER_BYTES_MAX];
	struct iscsi_command command = {
		.lun = lun,
		.cdb = cdb,
		.cdb_length = cdb_length,
		.reads = true,
		.writes = both,
		.read_length = 100,
		.write_length = both ? 7 : 0,
		.final = true,
	};

	assert_int_equal(iscsi_encode_command(header, &command), header_length);
	assert_int_equal(header[4], words);
	assert_int_equal(get_be32(header + 20), both ? 7 : 100);
}

static void test_headers_have_the_sizes_of_the_table_in_section_8(void **state)
{
	(void)state;
	expect_sizes(200, false, 236, 0x2f);
	expect_sizes(200, true, 244, 0x31);
	expect_sizes(236, false, 272, 0x38);
	expect_sizes(236, true, 280, 0x3a);
	expect_sizes(16, false, 48, 0);
	expect_sizes(6, false, 48, 0);
	expect_sizes(ISCSI_CDB_BYTES_MAX, true, ISCSI_COMMAND_HEADER_BYTES_MAX, 64);
}

static void test_a_cdb_whose_rest_is_no_multiple_of_4_is_padded_with_zeros(void **state)
{
	uint8_t cdb[19], lun[8] = { 0 }, header[ISCSI_COMMAND_HEADER_BYTES_MAX];
	struct iscsi_command command = {
		.lun = lun, .cdb = cdb, .cdb_length = sizeof(cdb), .final = true
	};

	(void)state;
	memset(cdb, 0xaa, sizeof(cdb));
	memset(header, 0x55, sizeof(header));
	assert_int_equal(iscsi_encode_command(header, &command), 56);
	assert_int_equal(get_be16(header + 48), 4);
	assert_int_equal(header[54], 0xaa);
	assert_int_equal(header[55], 0);
}

static void test_luns_below_256_are_peripheral_and_others_flat(void **state)
{
	static const uint8_t peripheral[8] = { 0, 7 }, flat[8] = { 0x41, 0x2c };
	uint8_t lun[8];

	(void)state;
	iscsi_encode_lun(lun, 7);
	assert_memory_equal(lun, peripheral, 8);
	iscsi_encode_lun(lun, 300);
	assert_memory_equal(lun, flat, 8);
}

static void test_data_out_carries_tags_and_place(void **state)
{
	uint8_t lun[8] = { 0, 1 }, header[48];
	struct iscsi_data_out data = {
		.lun = lun,
		.task_tag = 0x01020304,
		.transfer_tag = 0x05060708,
		.exp_stat_sn = 9,
		.data_sn = 10,
		.offset = 0x10000,
		.length = 0x012345,
		.final = true,
	};

	(void)state;
	iscsi_encode_data_out(header, &data);
	assert_int_equal(header[0], 0x05);
	assert_int_equal(header[1], 0x80);
	assert_int_equal(header[5], 0x01);
	assert_int_equal(get_be16(header + 6), 0x2345);
	assert_int_equal(get_be32(header + 16), 0x01020304);
	assert_int_equal(get_be32(header + 20), 0x05060708);
	assert_int_equal(get_be32(header + 28), 9);
	assert_int_equal(get_be32(header + 36), 10);
	assert_int_equal(get_be32(header + 40), 0x10000);
}

static void test_immediate_requests_have_the_immediate_bit(void **state)
{
	uint8_t lun[8] = { 0 }, header[48];

	(void)state;
	iscsi_encode_nop_answer(header, lun, 77, 5, 6);
	assert_int_equal(header[0], 0x40);
	assert_int_equal(get_be32(header + 16), 0xffffffff);
	assert_int_equal(get_be32(header + 20), 77);
	iscsi_encode_logout(header, 1, 2, 3);
	assert_int_equal(header[0], 0x46);
	assert_int_equal(header[1], 0x80);
	assert_int_equal(get_be32(header + 24), 2);
}

static void test_every_field_of_a_response_is_found(void **state)
{
	uint8_t bytes[48] = { 0x21, 0x9a, 0x01, 0x02, 0, 0, 1, 2 };
	struct iscsi_header header;

	(void)state;
	for (uint8_t i = 16; i < 48; i++)
		bytes[i] = i;
	assert_int_equal(iscsi_decode_header(bytes, &header), 0);
	assert_int_equal(header.opcode, ISCSI_SCSI_RESPONSE);
	assert_int_equal(header.flags, 0x9a);
	assert_int_equal(header.response, 1);
	assert_int_equal(header.status, 2);
	assert_int_equal(header.data_length, 0x102);
	assert_int_equal(header.task_tag, 0x10111213);
	assert_int_equal(header.stat_sn, 0x18191a1b);
	assert_int_equal(header.exp_cmd_sn, 0x1c1d1e1f);
	assert_int_equal(header.max_cmd_sn, 0x20212223);
	assert_int_equal(header.read_residual, 0x28292a2b);
	assert_int_equal(header.residual, 0x2c2d2e2f);
}

static void test_every_field_of_an_r2t_is_found(void **state)
{
	uint8_t bytes[48] = { 0x31, 0x80 };
	struct iscsi_header header;

	(void)state;
	for (uint8_t i = 16; i < 48; i++)
		bytes[i] = i;
	assert_int_equal(iscsi_decode_header(bytes, &header), 0);
	assert_int_equal(header.transfer_tag, 0x14151617);
	assert_int_equal(header.sequence, 0x24252627);
	assert_int_equal(header.offset, 0x28292a2b);
	assert_int_equal(header.burst_length, 0x2c2d2e2f);
}

static void test_data_in_has_a_status_only_with_its_flag(void **state)
{
	uint8_t bytes[48] = { 0x25, 0x80, 0, 0x08 };
	struct iscsi_header header;

	(void)state;
	put_be32(bytes + 44, 99);
	assert_int_equal(iscsi_decode_header(bytes, &header), 0);
	assert_int_equal(header.status, 0);
	assert_int_equal(header.residual, 0);
	bytes[1] = 0x81;
	assert_int_equal(iscsi_decode_header(bytes, &header), 0);
	assert_int_equal(header.status, 8);
	assert_int_equal(header.residual, 99);
}

static void test_only_pdus_of_targets_are_decoded(void **state)
{
	static const uint8_t allowed[] = { 0x20, 0x21, 0x25, 0x26, 0x31, 0x32, 0x3f };
	struct iscsi_header header;

	(void)state;
	for (unsigned byte = 0; byte < 256; byte++) {
		uint8_t bytes[48] = { (uint8_t)byte };
		int expected = memchr(allowed, (int)byte, sizeof(allowed)) ? 0 : -EPROTO;

		/* Bit 7 is reserved, and ignored. */
		if (byte & 0x80)
			expected = memchr(allowed, (int)(byte & 0x3f), sizeof(allowed)) &&
						   !(byte & 0x40)
					   ? 0
					   : -EPROTO;
		assert_int_equal(iscsi_decode_header(bytes, &header), expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_bidirectional_command_has_the_bytes_of_the_worked_example),
		cmocka_unit_test(test_headers_have_the_sizes_of_the_table_in_section_8),
		cmocka_unit_test(test_a_cdb_whose_rest_is_no_multiple_of_4_is_padded_with_zeros),
		cmocka_unit_test(test_luns_below_256_are_peripheral_and_others_flat),
		cmocka_unit_test(test_data_out_carries_tags_and_place),
		cmocka_unit_test(test_immediate_requests_have_the_immediate_bit),
		cmocka_unit_test(test_every_field_of_a_response_is_found),
		cmocka_unit_test(test_every_field_of_an_r2t_is_found),
		cmocka_unit_test(test_data_in_has_a_status_only_with_its_flag),
		cmocka_unit_test(test_only_pdus_of_targets_are_decoded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
