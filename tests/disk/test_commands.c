/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Each command of the disk, byte by byte as SBC-3 has it: what it does, answers and refuses. */
#include "tests/disk/drive.h"

#include <errno.h>

#include "common/bytes.h"
#include "disk/limits.h"

enum { BLOCKS = 65536, BLOCK = 512 };

static int set_up(void **state)
{
	*state = drive_new(256, (uint64_t)BLOCKS * BLOCK, BLOCK);
	return 0;
}

static int tear_down(void **state)
{
	drive_free(*state);
	return 0;
}

static uint32_t run_bytes(struct drive *drive, const uint8_t *cdb, size_t length, size_t out,
			  size_t in)
{
	memset(drive->cdb, 0, sizeof(drive->cdb));
	memcpy(drive->cdb, cdb, length);
	return drive_run(drive, out, in);
}

#define RUN(drive, out, in, ...)                                                               \
	run_bytes(drive, (const uint8_t[]){ __VA_ARGS__ }, sizeof((uint8_t[]){ __VA_ARGS__ }), \
		  out, in)

/* ---- reading and writing ---- */

static void test_all_lengths_of_cdbs_name_the_same_blocks(void **state)
{
	struct drive *drive = *state;

	drive_fill(drive->out, BLOCK, 6);
	assert_int_equal(RUN(drive, BLOCK, 0, 0x0A, 0, 0x12, 0x34, 1, 0), 0);
	drive_fill(drive->out, BLOCK, 10);
	assert_int_equal(RUN(drive, BLOCK, 0, 0x2A, 0, 0, 0, 0x12, 0x35, 0, 0, 1, 0), 0);
	drive_fill(drive->out, BLOCK, 12);
	assert_int_equal(RUN(drive, BLOCK, 0, 0xAA, 0, 0, 0, 0x12, 0x36, 0, 0, 0, 1, 0, 0), 0);
	drive_fill(drive->out, BLOCK, 16);
	assert_int_equal(
		RUN(drive, BLOCK, 0, 0x8A, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x37, 0, 0, 0, 1, 0, 0), 0);
	drive_check(drive, 0x1234, 1, 6);
	drive_check(drive, 0x1235, 1, 10);
	drive_check(drive, 0x1236, 1, 12);
	drive_check(drive, 0x1237, 1, 16);
	assert_int_equal(RUN(drive, 0, BLOCK, 0x08, 0, 0x12, 0x35, 1, 0), 0);
	assert_int_equal(get_be32(drive->in), 10);
	assert_int_equal(RUN(drive, 0, BLOCK, 0x28, 0, 0, 0, 0x12, 0x36, 0, 0, 1, 0), 0);
	assert_int_equal(get_be32(drive->in), 12);
	assert_int_equal(RUN(drive, 0, BLOCK, 0xA8, 0, 0, 0, 0x12, 0x37, 0, 0, 0, 1, 0, 0), 0);
	assert_int_equal(get_be32(drive->in), 16);
}

static void test_read_6_of_0_blocks_reads_256(void **state)
{
	struct drive *drive = *state;

	drive_write(drive, 0, 256, 7);
	assert_int_equal(RUN(drive, 0, 256 * BLOCK, 0x08, 0, 0, 0, 0, 0), 0);
	assert_int_equal(drive->command.data_in_length, 256 * BLOCK);
	assert_int_equal(get_be32(drive->in + 255 * BLOCK), 7);
}

static void test_what_nobody_has_written_reads_as_zeros(void **state)
{
	struct drive *drive = *state;

	memset(drive->in, 0xAA, 100 * BLOCK);
	drive_check(drive, 1000, 100, 0);
}

static void test_a_block_of_a_page_leaves_the_others_alone(void **state)
{
	struct drive *drive = *state;

	drive_write(drive, 8, 8, 1);
	drive_write(drive, 11, 1, 2);
	drive_check(drive, 8, 3, 1);
	drive_check(drive, 11, 1, 2);
	drive_check(drive, 12, 4, 1);
}

/* Ranges of the volume are 16,384 blocks. */
static void test_a_write_across_ranges_is_one(void **state)
{
	struct drive *drive = *state;

	drive_write(drive, 16380, 8, 5);
	drive_check(drive, 16380, 8, 5);
	drive_check(drive, 16379, 1, 0);
	drive_check(drive, 16388, 1, 0);
}

static void test_blocks_behind_the_end_are_refused(void **state)
{
	static const uint8_t operations[] = { 0x88, 0x8A, 0x8E, 0x8F, 0x8B, 0x90, 0x91, 0x93 };
	struct drive *drive = *state;
	const uint32_t out_of_range = SENSE(ILLEGAL_REQUEST, LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE);

	for (size_t i = 0; i < sizeof(operations); i++) {
		uint8_t operation = operations[i];

		assert_int_equal(drive_range(drive, operation, 0, BLOCKS - 1, 2, BLOCK, BLOCK),
				 out_of_range);
		assert_int_equal(drive_range(drive, operation, 0, BLOCKS, 1, BLOCK, BLOCK),
				 out_of_range);
		assert_int_equal(drive_range(drive, operation, 0, UINT64_MAX, 1, BLOCK, BLOCK),
				 out_of_range);
		if (operation == 0x93)
			continue;
		/* Of no blocks, the address behind the last one is one. */
		assert_int_equal(drive_range(drive, operation, 0, BLOCKS, 0, 0, 0), 0);
		assert_int_equal(drive_range(drive, operation, 0, BLOCKS + 1, 0, 0, 0),
				 out_of_range);
	}
	assert_int_equal(drive_unmap(drive, BLOCKS - 1, 2), out_of_range);
	assert_int_equal(drive_range(drive, 0x89, 0, BLOCKS - 1, 0, 0, 0), 0);
}

static void test_long_transfers_are_refused(void **state)
{
	struct drive *drive = *state;
	uint32_t most = DISK_TRANSFER_MAX / BLOCK;
	const uint32_t refused = SENSE(ILLEGAL_REQUEST, INVALID_FIELD_IN_CDB);

	assert_int_equal(drive_range(drive, 0x88, 0, 0, most, 0, BLOCK), 0);
	assert_int_equal(drive_range(drive, 0x88, 0, 0, most + 1, 0, BLOCK), refused);
	assert_int_equal(drive_range(drive, 0x8A, 0, 0, most + 1, BLOCK, 0), refused);
	/* More than 32 bits of bytes: tgtd counts in so many. */
	assert_int_equal(drive_range(drive, 0x93, 0, 0, 1 << 23, BLOCK, 0), refused);
}

static void test_short_data_moves_whole_blocks(void **state)
{
	struct drive *drive = *state;

	drive_write(drive, 0, 4, 1);
	drive_fill(drive->out, 4 * BLOCK, 2);
	assert_int_equal(drive_range(drive, 0x8A, 0, 0, 4, 2 * BLOCK + 100, 0), 0);
	assert_int_equal(drive->command.data_out_used, 4 * BLOCK);
	drive_check(drive, 0, 2, 2);
	drive_check(drive, 2, 2, 1);
	memset(drive->in, 0xEE, 2 * BLOCK);
	assert_int_equal(drive_range(drive, 0x88, 0, 0, 4, 0, 100), 0);
	assert_int_equal(drive->command.data_in_length, 4 * BLOCK);
	assert_int_equal(drive->in[99], 2);
	assert_int_equal(drive->in[100], 0xEE);
}

static void test_protection_information_is_refused(void **state)
{
	static const uint8_t operations[] = { 0x88, 0x8A, 0x8E, 0x8F, 0x8B, 0x93, 0x89 };
	struct drive *drive = *state;

	for (size_t i = 0; i < sizeof(operations); i++)
		assert_int_equal(drive_range(drive, operations[i], 0x20, 0, 1, BLOCK, BLOCK),
				 SENSE(ILLEGAL_REQUEST, INVALID_FIELD_IN_CDB));
}

static void test_a_write_protected_disk_only_reads(void **state)
{
	static const uint8_t operations[] = { 0x8A, 0x8E, 0x8B, 0x93, 0x89 };
	struct drive *drive = *state;

	drive_write(drive, 0, 1, 9);
	drive->command.write_protected = true;
	for (size_t i = 0; i < sizeof(operations); i++)
		assert_int_equal(drive_range(drive, operations[i], 0, 0, 1, BLOCK, 0),
				 SENSE(DATA_PROTECT, WRITE_PROTECTED));
	assert_int_equal(drive_unmap(drive, 0, 1), SENSE(DATA_PROTECT, WRITE_PROTECTED));
	drive_check(drive, 0, 1, 9);
	assert_int_equal(drive_range(drive, 0x90, 0, 0, 1, 0, 0), 0);
	drive->command.write_protected = false;
}

static void test_other_commands_are_unknown(void **state)
{
	struct drive *drive = *state;

	assert_int_equal(RUN(drive, 0, 0, 0x04),
			 SENSE(ILLEGAL_REQUEST, INVALID_COMMAND_OPERATION_CODE));
	assert_int_equal(RUN(drive, 0, 0, 0x9E, 0x11),
			 SENSE(ILLEGAL_REQUEST, INVALID_COMMAND_OPERATION_CODE));
}

/* ---- comparing ---- */

static void test_verify_compares(void **state)
{
	struct drive *drive = *state;

	drive_write(drive, 3, 4, 1);
	drive_fill(drive->out, 4 * BLOCK, 1);
	assert_int_equal(drive_range(drive, 0x8F, 0x02, 3, 4, 4 * BLOCK, 0), 0);
	drive->out[2 * BLOCK + 17] ^= 1;
	assert_int_equal(drive_range(drive, 0x8F, 0x02, 3, 4, 4 * BLOCK, 0),
			 SENSE(MISCOMPARE, MISCOMPARE_DURING_VERIFY_OPERATION));
	assert_int_equal(drive->command.sense[0], 0xF0); /* VALID */
	assert_int_equal(get_be32(drive->command.sense + 3), 2 * BLOCK + 17);
	/* BYTCHK 0 compares nothing; 3 each block with one; 2 is reserved. */
	assert_int_equal(drive_range(drive, 0x8F, 0x00, 3, 4, 0, 0), 0);
	assert_int_equal(drive_range(drive, 0x8F, 0x06, 3, 4, BLOCK, 0), 0);
	assert_int_equal(drive_range(drive, 0x8F, 0x06, 3, 5, BLOCK, 0),
			 SENSE(MISCOMPARE, MISCOMPARE_DURING_VERIFY_OPERATION));
	assert_int_equal(drive_range(drive, 0x8F, 0x04, 3, 4, BLOCK, 0),
			 SENSE(ILLEGAL_REQUEST, INVALID_FIELD_IN_CDB));
	/* No blocks are the same as nothing. */
	assert_int_equal(drive_range(drive, 0x8F, 0x06, 3, 0, 0, 0), 0);
	assert_int_equal(drive_range(drive, 0x8F, 0x02, 3, 0, 0, 0), 0);
	/* What did not come is not found to be the same. */
	assert_int_equal(drive_range(drive, 0x8F, 0x02, 3, 4, 2 * BLOCK, 0),
			 SENSE(ILLEGAL_REQUEST, INVALID_FIELD_IN_CDB));
}

static void test_write_and_verify_writes(void **state)
{
	struct drive *drive = *state;

	drive_fill(drive->out, 3 * BLOCK, 4);
	assert_int_equal(drive_range(drive, 0x8E, 0x02, 6, 3, 3 * BLOCK, 0), 0);
	drive_check(drive, 6, 3, 4);
	assert_int_equal(drive_range(drive, 0x8E, 0x00, 9, 3, 3 * BLOCK, 0), 0);
	drive_check(drive, 6, 6, 4);
}

static uint32_t compare_and_write(struct drive *drive, uint64_t block, uint8_t count, size_t out)
{
	memset(drive->cdb, 0, sizeof(drive->cdb));
	drive->cdb[0] = 0x89;
	put_be64(drive->cdb + 2, block);
	drive->cdb[13] = count;
	return drive_run(drive, out, 0);
}

static void test_compare_and_write_is_one(void **state)
{
	struct drive *drive = *state;

	drive_write(drive, 5, 2, 1);
	drive_fill(drive->out, 2 * BLOCK, 1);
	drive_fill(drive->out + 2 * BLOCK, 2 * BLOCK, 2);
	assert_int_equal(compare_and_write(drive, 5, 2, 4 * BLOCK), 0);
	drive_check(drive, 5, 2, 2);
	assert_int_equal(compare_and_write(drive, 5, 2, 4 * BLOCK),
			 SENSE(MISCOMPARE, MISCOMPARE_DURING_VERIFY_OPERATION));
	assert_int_equal(get_be32(drive->command.sense + 3), 3);
	drive_check(drive, 5, 2, 2);
	assert_int_equal(compare_and_write(drive, 5, 2, 3 * BLOCK),
			 SENSE(ILLEGAL_REQUEST, INVALID_FIELD_IN_CDB));
	assert_int_equal(compare_and_write(drive, 5, 1, 4 * BLOCK),
			 SENSE(ILLEGAL_REQUEST, INVALID_FIELD_IN_CDB));
	assert_int_equal(compare_and_write(drive, 5, 0, 0), 0);
}

static void test_orwrite_sets_bits(void **state)
{
	struct drive *drive = *state;

	drive_write(drive, 7, 10, 0x0F0F0000);
	drive_fill(drive->out, 8 * BLOCK, 0x000000FF);
	assert_int_equal(drive_range(drive, 0x8B, 0, 8, 8, 8 * BLOCK, 0), 0);
	drive_check(drive, 7, 1, 0x0F0F0000);
	drive_check(drive, 8, 8, 0x0F0F00FF);
	drive_check(drive, 16, 1, 0x0F0F0000);
}

/* ---- space ---- */

static void test_capacity(void **state)
{
	struct drive *drive = *state;

	assert_int_equal(RUN(drive, 0, 8, 0x25), 0);
	assert_int_equal(get_be32(drive->in), BLOCKS - 1);
	assert_int_equal(get_be32(drive->in + 4), BLOCK);
	assert_int_equal(RUN(drive, 0, 8, 0x25, 0, 0, 0, 0, 1),
			 SENSE(ILLEGAL_REQUEST, INVALID_FIELD_IN_CDB));
	assert_int_equal(RUN(drive, 0, 32, 0x9E, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32), 0);
	assert_int_equal(drive->command.data_in_length, 32);
	assert_int_equal(get_be64(drive->in), BLOCKS - 1);
	assert_int_equal(get_be32(drive->in + 8), BLOCK);
	assert_int_equal(drive->in[13], 3);    /* 8 blocks a page */
	assert_int_equal(drive->in[14], 0xC0); /* LBPME, LBPRZ */
	assert_int_equal(RUN(drive, 0, 32, 0x9E, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12), 0);
	assert_int_equal(drive->command.data_in_length, 12);
}

/* The i-th descriptor of GET LBA STATUS. */
static void check_status(struct drive *drive, uint32_t i, uint64_t block, uint32_t count,
			 uint8_t status)
{
	const uint8_t *descriptor = drive->in + 8 + 16 * (size_t)i;

	assert_true(get_be32(drive->in) >= 4 + 16 * (i + 1));
	assert_int_equal(get_be64(descriptor), block);
	assert_int_equal(get_be32(descriptor + 8), count);
	assert_int_equal(descriptor[12], status);
}

static uint32_t get_status(struct drive *drive, uint64_t block, uint32_t allocated)
{
	return drive_range(drive, 0x9E, 0x12, block, allocated, 0, allocated);
}

static void test_get_lba_status_tells_runs(void **state)
{
	struct drive *drive = *state;

	assert_int_equal(get_status(drive, 5, 1000), 0);
	assert_int_equal(get_be32(drive->in), 20);
	check_status(drive, 0, 5, BLOCKS - 5, 1);
	drive_write(drive, 16, 16, 1);
	drive_write(drive, 16376, 16, 1); /* across two ranges */
	assert_int_equal(get_status(drive, 0, 1000), 0);
	assert_int_equal(get_be32(drive->in), 4 + 5 * 16);
	check_status(drive, 0, 0, 16, 1);
	check_status(drive, 1, 16, 16, 0);
	check_status(drive, 2, 32, 16376 - 32, 1);
	check_status(drive, 3, 16376, 16, 0);
	check_status(drive, 4, 16392, BLOCKS - 16392, 1);
	assert_int_equal(get_status(drive, 20, 24), 0);
	assert_int_equal(get_be32(drive->in), 20);
	check_status(drive, 0, 20, 12, 0);
	for (uint32_t allocated = 4; allocated < 24; allocated++) {
		assert_int_equal(get_status(drive, 20, allocated), 0);
		assert_int_equal(drive->command.data_in_length, allocated);
		assert_int_equal(get_be32(drive->in), 20);
	}
	assert_int_equal(get_be64(drive->in + 8), 20);
	assert_int_equal(get_status(drive, BLOCKS, 24),
			 SENSE(ILLEGAL_REQUEST, LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE));
}

static void test_unmap_frees_pages_and_zeroes_the_rest(void **state)
{
	struct drive *drive = *state;

	drive_write(drive, 0, 64, 3);
	assert_int_equal(drive_unmap(drive, 12, 24), 0);
	drive_check(drive, 0, 12, 3);
	drive_check(drive, 12, 24, 0);
	drive_check(drive, 36, 28, 3);
	assert_int_equal(get_status(drive, 0, 1000), 0);
	check_status(drive, 0, 0, 16, 0);
	check_status(drive, 1, 16, 16, 1);
	check_status(drive, 2, 32, 32, 0);
}

static void test_unmap_does_all_or_nothing(void **state)
{
	struct drive *drive = *state;

	drive_write(drive, 0, 32, 3);
	memset(drive->out, 0, 40);
	put_be16(drive->out, 38);
	put_be16(drive->out + 2, 32);
	put_be32(drive->out + 16, 8);
	put_be64(drive->out + 24, BLOCKS - 1);
	put_be32(drive->out + 32, 2);
	assert_int_equal(RUN(drive, 40, 0, 0x42, 0, 0, 0, 0, 0, 0, 0, 40),
			 SENSE(ILLEGAL_REQUEST, LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE));
	drive_check(drive, 0, 32, 3);
	put_be32(drive->out + 32, 1);
	assert_int_equal(RUN(drive, 40, 0, 0x42, 0, 0, 0, 0, 0, 0, 0, 40), 0);
	drive_check(drive, 0, 8, 0);
	drive_check(drive, 8, 24, 3);
}

static void test_unmap_lists_are_checked(void **state)
{
	struct drive *drive = *state;

	assert_int_equal(RUN(drive, 0, 0, 0x42), 0);
	assert_int_equal(RUN(drive, 8, 0, 0x42, 0, 0, 0, 0, 0, 0, 0, 4),
			 SENSE(ILLEGAL_REQUEST, PARAMETER_LIST_LENGTH_ERROR));
	/* The header says more than there is. */
	memset(drive->out, 0, 24);
	put_be16(drive->out + 2, 32);
	assert_int_equal(RUN(drive, 24, 0, 0x42, 0, 0, 0, 0, 0, 0, 0, 24),
			 SENSE(ILLEGAL_REQUEST, PARAMETER_LIST_LENGTH_ERROR));
	assert_int_equal(RUN(drive, 24, 0, 0x42, 1, 0, 0, 0, 0, 0, 0, 24),
			 SENSE(ILLEGAL_REQUEST, INVALID_FIELD_IN_CDB));
}

static void test_write_same(void **state)
{
	struct drive *drive = *state;

	drive_fill(drive->out, BLOCK, 8);
	assert_int_equal(drive_range(drive, 0x93, 0, 3, 30, BLOCK, 0), 0);
	drive_check(drive, 2, 1, 0);
	drive_check(drive, 3, 30, 8);
	drive_check(drive, 33, 1, 0);
	/* Unmapped blocks read as zeros: so other blocks are written even with UNMAP. */
	assert_int_equal(drive_range(drive, 0x93, 0x08, 8, 8, BLOCK, 0), 0);
	drive_check(drive, 8, 8, 8);
	memset(drive->out, 0, BLOCK);
	assert_int_equal(drive_range(drive, 0x93, 0x08, 8, 8, BLOCK, 0), 0);
	assert_int_equal(get_status(drive, 8, 24), 0);
	check_status(drive, 0, 8, 8, 1);
	/* NDOB: zeros without Data-Out, which take space unless UNMAP is set. */
	assert_int_equal(drive_range(drive, 0x93, 0x01, 16, 8, 0, 0), 0);
	drive_check(drive, 16, 8, 0);
	assert_int_equal(get_status(drive, 16, 24), 0);
	check_status(drive, 0, 16, 24, 0);
	assert_int_equal(drive_range(drive, 0x93, 0x09, 16, 8, 0, 0), 0);
	assert_int_equal(get_status(drive, 8, 24), 0);
	check_status(drive, 0, 8, 16, 1);
	assert_int_equal(drive_range(drive, 0x93, 0, 0, 1, 2 * BLOCK, 0),
			 SENSE(ILLEGAL_REQUEST, INVALID_FIELD_IN_CDB));
	assert_int_equal(drive_range(drive, 0x93, 0, 0, 0, BLOCK, 0),
			 SENSE(ILLEGAL_REQUEST, INVALID_FIELD_IN_CDB));
	assert_int_equal(drive_range(drive, 0x93, 0x10, 0, 1, BLOCK, 0),
			 SENSE(ILLEGAL_REQUEST, INVALID_FIELD_IN_CDB));
}

/* ---- INQUIRY ---- */

static int inquire(struct drive *drive, uint8_t vital, uint8_t page)
{
	const uint8_t cdb[6] = { 0x12, vital, page, 0, 255, 0 };

	return disk_inquiry(drive->disk, cdb, drive->in, 255);
}

static void test_inquiry(void **state)
{
	struct drive *drive = *state;

	assert_int_equal(inquire(drive, 0, 0), 96);
	assert_int_equal(drive->in[0], 0x00);
	assert_int_equal(drive->in[2], 0x06);
	assert_memory_equal(drive->in + 8, "MUNINN  VOLUME          0001", 28);
	assert_int_equal(inquire(drive, 1, 0x00), 10);
	assert_memory_equal(drive->in, "\x00\x00\x00\x06\x00\x80\x83\xB0\xB1\xB2", 10);
	assert_int_equal(inquire(drive, 1, 0x80), 20);
	assert_int_equal(drive->in[4], '3'); /* the name's first digit: NAA 3 */
	assert_int_equal(inquire(drive, 1, 0x83), 4 + 12 + 16 + 12);
	assert_int_equal(drive->in[4 + 12 + 16 + 4] >> 4, 3);
	assert_int_equal(inquire(drive, 1, 0xB0), 64);
	assert_int_equal(drive->in[4], 1);
	assert_int_equal(drive->in[5], 255);
	assert_int_equal(get_be16(drive->in + 6), 8);
	assert_int_equal(get_be32(drive->in + 8), DISK_TRANSFER_MAX / BLOCK);
	assert_int_equal(get_be32(drive->in + 20), DISK_UNMAP_MAX / BLOCK);
	assert_int_equal(get_be32(drive->in + 28), 8);
	assert_int_equal(get_be64(drive->in + 36), DISK_TRANSFER_MAX / BLOCK);
	assert_int_equal(inquire(drive, 1, 0xB1), 64);
	assert_int_equal(get_be16(drive->in + 4), 1);
	assert_int_equal(inquire(drive, 1, 0xB2), 8);
	assert_memory_equal(drive->in, "\x00\xB2\x00\x04\x0B\xE4\x02\x00", 8);
	assert_int_equal(inquire(drive, 1, 0xB9), -22);
	assert_int_equal(inquire(drive, 0, 0x80), -22);
	assert_int_equal(inquire(drive, 2, 0), -22);
}

/* Two volumes of a device, and the same partition of two devices, are different disks. */
static void test_names_differ(void **state)
{
	struct drive *drive = *state;
	static const uint8_t uuids[2][16] = { { 1 }, { 2 } };
	uint8_t names[3][44];

	for (int n = 0; n < 3; n++) {
		const struct disk_options options = { .partition = ENGINE_FIRST_ID + 1 + n % 2,
						      .bytes = 1 << 20 };
		struct error_text error;
		struct disk *disk;

		assert_int_equal(disk_open(drive->engine, uuids[n / 2], &options, &disk, &error),
				 0);
		assert_int_equal(disk_inquiry(disk, (const uint8_t[]){ 0x12, 1, 0x83, 0, 255, 0 },
					      names[n], sizeof(names[n])),
				 sizeof(names[n]));
		disk_close(disk);
	}
	assert_memory_not_equal(names[0], names[1], 44);
	assert_memory_not_equal(names[0], names[2], 44);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* ---- the space below the disk ---- */

static int log_sense(struct drive *drive, uint8_t code, uint8_t first, size_t capacity)
{
	const struct disk_space space = { .used_bytes = 7 << 20, .capacity_bytes = 70 << 20 };
	const uint8_t cdb[10] = { 0x4D, 0, code, 0, 0, 0, first };

	memset(drive->in, 0xEE, 64);
	return disk_log_sense(&space, cdb, drive->in, capacity);
}

static void test_log_sense_tells_what_is_used_and_available(void **state)
{
	struct drive *drive = *state;
	static const uint8_t used[] = "\x00\x02\x03\x08\x00\x00\x00\x07\x02\x00\x00\x00";

	assert_int_equal(log_sense(drive, 0x40, 0, 64), 6);
	assert_memory_equal(drive->in, "\x00\x00\x00\x02\x00\x0C", 6);
	assert_int_equal(log_sense(drive, 0x4C, 0, 64), 28);
	assert_memory_equal(drive->in, "\x0C\x00\x00\x18", 4);
	assert_memory_equal(drive->in + 4, "\x00\x01\x03\x08\x00\x00\x00\x3F\x02\x00\x00\x00", 12);
	assert_memory_equal(drive->in + 16, used, 12);
	assert_int_equal(log_sense(drive, 0x4C, 2, 64), 16);
	assert_memory_equal(drive->in + 4, used, 12);
	/* As far as there is space for it. */
	assert_int_equal(log_sense(drive, 0x4C, 0, 5), 28);
	assert_memory_equal(drive->in, "\x0C\x00\x00\x18\x00\xEE", 6);
	assert_int_equal(log_sense(drive, 0x4C, 0, 0), 28);
	assert_int_equal(drive->in[0], 0xEE);
}

static void test_log_sense_refuses_what_there_is_not(void **state)
{
	const struct disk_space full = { .used_bytes = 71 << 20, .capacity_bytes = 70 << 20 };
	const uint8_t saves[10] = { 0x4D, 1, 0x4C }, subpage[10] = { 0x4D, 0, 0x4C, 1 };
	const uint8_t available[10] = { 0x4D, 0, 0x4C };
	struct drive *drive = *state;

	assert_int_equal(log_sense(drive, 0x4D, 0, 64), -EINVAL);
	assert_int_equal(log_sense(drive, 0x4C, 3, 64), -EINVAL);
	assert_int_equal(log_sense(drive, 0x40, 1, 64), -EINVAL);
	assert_int_equal(disk_log_sense(&full, saves, drive->in, 64), -EINVAL);
	assert_int_equal(disk_log_sense(&full, subpage, drive->in, 64), -EINVAL);
	/* More can be used than is offered: what works on a full device. */
	assert_int_equal(disk_log_sense(&full, available, drive->in, 64), 28);
	assert_int_equal(get_be32(drive->in + 8), 0);
	assert_int_equal(get_be32(drive->in + 20), 70);
}

static void test_the_mode_page_tells_when_initiators_are_warned(void **state)
{
	static const uint8_t thresholds[] = "\x80\x01\x00\x00\x00\x00\x00\x0E"
					    "\x80\x01\x00\x00\xFF\xFF\xFF\xFF";
	const uint64_t available[DISK_THRESHOLDS] = { 14 << 20, UINT64_MAX };
	uint8_t page[DISK_THRESHOLD_PAGE_BYTES];
	const uint8_t zeros[12] = { 0 };

	(void)state;
	memset(page, 0xEE, sizeof(page));
	disk_threshold_page(available, page);
	assert_memory_equal(page, zeros, 12);
	assert_memory_equal(page + 12, thresholds, 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_all_lengths_of_cdbs_name_the_same_blocks),
		TEST(test_read_6_of_0_blocks_reads_256),
		TEST(test_what_nobody_has_written_reads_as_zeros),
		TEST(test_a_block_of_a_page_leaves_the_others_alone),
		TEST(test_a_write_across_ranges_is_one),
		TEST(test_blocks_behind_the_end_are_refused),
		TEST(test_long_transfers_are_refused),
		TEST(test_short_data_moves_whole_blocks),
		TEST(test_protection_information_is_refused),
		TEST(test_a_write_protected_disk_only_reads),
		TEST(test_other_commands_are_unknown),
		TEST(test_verify_compares),
		TEST(test_write_and_verify_writes),
		TEST(test_compare_and_write_is_one),
		TEST(test_orwrite_sets_bits),
		TEST(test_capacity),
		TEST(test_get_lba_status_tells_runs),
		TEST(test_unmap_frees_pages_and_zeroes_the_rest),
		TEST(test_unmap_does_all_or_nothing),
		TEST(test_unmap_lists_are_checked),
		TEST(test_write_same),
		TEST(test_inquiry),
		TEST(test_names_differ),
		cmocka_unit_test_setup_teardown(test_log_sense_tells_what_is_used_and_available,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_log_sense_refuses_what_there_is_not, set_up,
						tear_down),
		cmocka_unit_test(test_the_mode_page_tells_when_initiators_are_warned),
	};

	return cmocka_run_group_tests_name("disk commands", tests, NULL, NULL);
}
