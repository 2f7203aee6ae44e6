/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A disk on flash in memory. */
#include "tests/disk/drive.h"

#include "common/bytes.h"

static uint64_t clock_of(void *context)
{
	return ((struct drive *)context)->now;
}

static const uint8_t uuid[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };

struct disk *drive_open_other(struct drive *drive, uint64_t partition)
{
	struct disk_options options = drive->disk_options;
	struct error_text error = { "" };
	struct disk *disk = NULL;

	options.partition = partition;
	if (disk_open(drive->engine, uuid, &options, &disk, &error))
		fail_msg("%s", error.text);
	return disk;
}

void drive_open(struct drive *drive)
{
	struct error_text error = { "" };

	if (engine_open(drive->nand, &drive->options, &drive->engine, &error) ||
	    disk_open(drive->engine, uuid, &drive->disk_options, &drive->disk, &error))
		fail_msg("%s", error.text);
}

struct drive *drive_new(uint64_t flash_mib, uint64_t bytes, uint32_t block_bytes)
{
	struct nand_geometry geometry = nand_geometry_default(flash_mib << 20);
	struct drive *drive = calloc(1, sizeof(*drive));
	struct error_text error = { "" };
	uint64_t nvram;

	assert_non_null(drive);
	/* Small segments, so that few commands fill one. */
	geometry.blocks *= geometry.pages_per_block / 16;
	geometry.pages_per_block = 16;
	drive->now = 1000000;
	drive->options = (struct engine_options){ .muninn.rows = 2,
						  .muninn.segment_pages = 16,
						  .muninn.bloom.hot_rows = BLOOM_HOT_ROWS_SPREAD,
						  .clock_ms = clock_of,
						  .clock_context = drive };
	drive->disk_options = (struct disk_options){ .bytes = bytes, .block_bytes = block_bytes };
	if (engine_nvram_bytes(&geometry, &drive->options, &nvram, &error) ||
	    nand_open_memory(&geometry, nvram, &drive->nand, &error) ||
	    engine_format(drive->nand, &drive->options, &error))
		fail_msg("%s", error.text);
	drive_open(drive);
	return drive;
}

void drive_free(struct drive *drive)
{
	disk_close(drive->disk);
	assert_int_equal(engine_close(drive->engine), 0);
	assert_int_equal(nand_close(drive->nand), 0);
	free(drive);
}

void drive_crash(struct drive *drive)
{
	disk_close(drive->disk);
	engine_abandon(drive->engine);
	drive_open(drive);
}

uint32_t drive_run(struct drive *drive, size_t out, size_t in)
{
	struct disk_command *command = &drive->command;

	command->cdb = drive->cdb;
	command->data_out = out ? drive->out : NULL;
	command->data_out_length = out;
	command->data_in = in ? drive->in : NULL;
	command->data_in_capacity = in;
	disk_execute(drive->disk, command);
	if (command->status == SCSI_STATUS_GOOD)
		return 0;
	assert_int_equal(command->status, SCSI_STATUS_CHECK_CONDITION);
	assert_int_equal(command->sense_length, 18);
	assert_int_equal(command->sense[0] & 0x7F, 0x70);
	assert_int_equal(command->data_in_length, 0);
	return (uint32_t)command->sense[2] << 16 | get_be16(command->sense + 12);
}

uint32_t drive_range(struct drive *drive, uint8_t operation, uint8_t bits, uint64_t block,
		     uint32_t count, size_t out, size_t in)
{
	memset(drive->cdb, 0, sizeof(drive->cdb));
	drive->cdb[0] = operation;
	drive->cdb[1] = bits;
	put_be64(drive->cdb + 2, block);
	put_be32(drive->cdb + 10, count);
	return drive_run(drive, out, in);
}

uint32_t drive_unmap(struct drive *drive, uint64_t block, uint32_t count)
{
	memset(drive->out, 0, 24);
	put_be16(drive->out, 22);
	put_be16(drive->out + 2, 16);
	put_be64(drive->out + 8, block);
	put_be32(drive->out + 16, count);
	memset(drive->cdb, 0, sizeof(drive->cdb));
	drive->cdb[0] = SBC_UNMAP;
	put_be16(drive->cdb + 7, 24);
	return drive_run(drive, 24, 0);
}

void drive_fill(uint8_t *bytes, size_t length, uint32_t number)
{
	for (size_t at = 0; at < length; at += sizeof(number))
		put_be32(bytes + at, number);
}

void drive_write(struct drive *drive, uint64_t block, uint32_t count, uint32_t number)
{
	size_t bytes = (size_t)count * disk_block_bytes(drive->disk);

	drive_fill(drive->out, bytes, number);
	assert_int_equal(drive_range(drive, SBC_WRITE_16, 0, block, count, bytes, 0), 0);
	assert_int_equal(drive->command.data_out_used, bytes);
}

void drive_check(struct drive *drive, uint64_t block, uint32_t count, uint32_t number)
{
	size_t bytes = (size_t)count * disk_block_bytes(drive->disk);

	assert_int_equal(drive_range(drive, SBC_READ_16, 0, block, count, 0, bytes), 0);
	assert_int_equal(drive->command.data_in_length, bytes);
	for (size_t at = 0; at < bytes; at += sizeof(number))
		assert_int_equal(get_be32(drive->in + at), number);
}

uint32_t drive_snapshot(struct drive *drive)
{
	struct engine_txn *txn;
	uint32_t version;

	drive->now += 2000;
	assert_int_equal(engine_begin(drive->engine, ENGINE_HISTORY, &txn), 0);
	assert_int_equal(engine_snapshot(txn, DRIVE_PARTITION, NULL, &version), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	return version;
}

void drive_roll_back(struct drive *drive, uint32_t version)
{
	const struct engine_moment to = { .kind = ENGINE_AT_VERSION, .value = version };
	struct engine_txn *txn;

	drive->now += 2000;
	assert_int_equal(engine_begin(drive->engine, ENGINE_HISTORY, &txn), 0);
	assert_int_equal(engine_rollback(txn, DRIVE_PARTITION, to), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}
