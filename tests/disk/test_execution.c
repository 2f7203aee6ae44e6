/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* How commands are executed: in one transaction each, stable or not, at once or not. */
#include "tests/disk/drive.h"

#include "common/bytes.h"

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

/* ---- one command is one transaction ---- */

/* What an aligned command of 8 blocks looks up. */
static void count_lookups(struct drive *drive, uint8_t operation, uint8_t bits,
			  struct engine_statistics *counted)
{
	struct engine_statistics before;
	bool reads = operation == SBC_READ_16;

	engine_read_statistics(drive->engine, &before);
	assert_int_equal(drive_range(drive, operation, bits, 0, 8, reads ? 0 : 8 * BLOCK,
				     reads ? 8 * BLOCK : 0),
			 0);
	engine_read_statistics(drive->engine, counted);
	counted->object_lookups -= before.object_lookups;
	counted->records_got -= before.records_got;
}

/*
 * What others write in between is no error of the medium. Every transaction looks for the volume
 * first: this one does so once, and otherwise no more than a WRITE and a READ together.
 */
static void test_write_and_verify_reads_back_in_the_transaction_of_the_write(void **state)
{
	static const uint8_t checks[] = { 0x00, 0x02 };
	struct drive *drive = *state;
	struct engine_statistics write, read, both;

	drive_write(drive, 0, 8, 1);
	count_lookups(drive, SBC_WRITE_16, 0, &write);
	count_lookups(drive, SBC_READ_16, 0, &read);
	assert_true(read.records_got > 0);
	for (size_t i = 0; i < sizeof(checks); i++) {
		count_lookups(drive, SBC_WRITE_AND_VERIFY_16, checks[i], &both);
		assert_true(both.object_lookups < write.object_lookups + read.object_lookups);
		assert_int_equal(both.records_got, write.records_got + read.records_got);
	}
}

/* ---- what is stable at the end of a command ---- */

/* Whether a command asks the host to make something stable. */
static bool syncs(struct drive *drive, uint8_t operation, uint8_t bits, size_t out, size_t in)
{
	struct nand_counters before, after;

	/* So that there is something that is not stable yet. */
	drive->command.write_through = false;
	drive_write(drive, 8, 8, 1);
	nand_read_counters(drive->nand, &before);
	drive_fill(drive->out, DRIVE_BUFFER_BYTES, 0);
	assert_int_equal(drive_range(drive, operation, bits, 0, 8, out, in), 0);
	nand_read_counters(drive->nand, &after);
	return after.nvram_sync_requests != before.nvram_sync_requests;
}

enum { FUA = 0x08, DATA = 8 * BLOCK };

static void test_plain_commands_do_not_wait_for_the_host(void **state)
{
	struct drive *drive = *state;

	assert_false(syncs(drive, SBC_WRITE_16, 0, DATA, 0));
	assert_false(syncs(drive, SBC_READ_16, 0, 0, DATA));
	assert_false(syncs(drive, SBC_ORWRITE_16, 0, DATA, 0));
	assert_false(syncs(drive, SBC_WRITE_SAME_16, 0, BLOCK, 0));
	assert_false(syncs(drive, SBC_VERIFY_16, 0, 0, 0));
	assert_false(syncs(drive, SBC_PRE_FETCH_16, 0, 0, 0));
}

static void test_what_says_so_is_stable_at_its_end(void **state)
{
	struct drive *drive = *state;

	assert_true(syncs(drive, SBC_SYNCHRONIZE_CACHE_16, 0, 0, 0));
	assert_true(syncs(drive, SBC_WRITE_AND_VERIFY_16, 0, DATA, 0));
	assert_true(syncs(drive, SBC_WRITE_16, FUA, DATA, 0));
	assert_true(syncs(drive, SBC_ORWRITE_16, FUA, DATA, 0));
	/* What the blocks hold may be another's write. */
	assert_true(syncs(drive, SBC_READ_16, FUA, 0, DATA));
}

/* A disk whose write cache is off: WCE = 0. */
static void test_without_a_write_cache_every_change_is_stable(void **state)
{
	struct drive *drive = *state;
	struct nand_counters before, after;

	drive_write(drive, 0, 64, 1);
	drive->command.write_through = true;
	for (int command = 0; command < 4; command++) {
		nand_read_counters(drive->nand, &before);
		if (command == 0)
			drive_write(drive, 0, 8, 2);
		else if (command == 1)
			assert_int_equal(drive_unmap(drive, 0, 8), 0);
		else if (command == 2)
			assert_int_equal(drive_range(drive, SBC_WRITE_SAME_16, 0, 0, 8, BLOCK, 0),
					 0);
		else
			drive_check(drive, 16, 8, 1);
		nand_read_counters(drive->nand, &after);
		/* A READ changes nothing. */
		assert_int_equal(after.nvram_sync_requests != before.nvram_sync_requests,
				 command < 3);
	}
}

/* ---- at once ---- */

/* Tries a command, and nothing else. */
static bool try_range(struct drive *drive, uint8_t operation, uint8_t bits, uint32_t count,
		      size_t out, size_t in)
{
	struct disk_command *command = &drive->command;

	memset(drive->cdb, 0, sizeof(drive->cdb));
	drive->cdb[0] = operation;
	drive->cdb[1] = bits;
	put_be32(drive->cdb + 10, count);
	command->cdb = drive->cdb;
	command->data_out = drive->out;
	command->data_out_length = out;
	command->data_in = drive->in;
	command->data_in_capacity = in;
	return disk_execute_at_once(drive->disk, command, NULL);
}

static void test_short_commands_are_executed_at_once(void **state)
{
	struct drive *drive = *state;

	drive_write(drive, 0, 256, 1);
	drive_fill(drive->out, DATA, 5);
	assert_true(try_range(drive, SBC_WRITE_16, 0, 8, DATA, 0));
	assert_int_equal(drive->command.status, SCSI_STATUS_GOOD);
	assert_int_equal(drive->command.data_out_used, DATA);
	assert_true(try_range(drive, SBC_READ_16, 0, 8, 0, DATA));
	assert_int_equal(drive->command.status, SCSI_STATUS_GOOD);
	assert_int_equal(drive->command.data_in_length, DATA);
	assert_int_equal(get_be32(drive->in + DATA - 4), 5);
	drive_check(drive, 0, 8, 5);
	/* Up to 64 KiB. */
	assert_true(try_range(drive, SBC_READ_16, 0, 128, 0, 128 * BLOCK));
}

/* Those leave everything as it was, too. */
static void test_other_commands_are_left_to_a_thread(void **state)
{
	struct drive *drive = *state;

	drive_write(drive, 0, 256, 1);
	drive_fill(drive->out, 256 * BLOCK, 6);
	assert_false(try_range(drive, SBC_WRITE_16, 0, 129, 129 * BLOCK, 0));
	assert_false(try_range(drive, SBC_READ_16, 0, 129, 0, 129 * BLOCK));
	assert_false(try_range(drive, SBC_WRITE_16, FUA, 8, DATA, 0));
	assert_false(try_range(drive, SBC_WRITE_AND_VERIFY_16, 0, 8, DATA, 0));
	assert_false(try_range(drive, SBC_WRITE_SAME_16, 0, 8, BLOCK, 0));
	assert_false(try_range(drive, SBC_SYNCHRONIZE_CACHE_16, 0, 8, 0, 0));
	/* How it fails is a thread's to say, and so is what no disk knows. */
	assert_false(try_range(drive, SBC_READ_16, 0x20, 8, 0, DATA));
	assert_false(try_range(drive, 0x04, 0, 8, 0, 0));
	drive->command.write_through = true;
	assert_false(try_range(drive, SBC_WRITE_16, 0, 8, DATA, 0));
	drive->command.write_through = false;
	drive_check(drive, 0, 256, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_write_and_verify_reads_back_in_the_transaction_of_the_write),
		TEST(test_plain_commands_do_not_wait_for_the_host),
		TEST(test_what_says_so_is_stable_at_its_end),
		TEST(test_without_a_write_cache_every_change_is_stable),
		TEST(test_short_commands_are_executed_at_once),
		TEST(test_other_commands_are_left_to_a_thread),
	};

	return cmocka_run_group_tests_name("execution", tests, NULL, NULL);
}
