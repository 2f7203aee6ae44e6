/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Volumes: what they are made as, which partitions are none, clones of them. */
#include "tests/disk/drive.h"

#include <stdio.h>

#include "common/bytes.h"

enum { OTHER = 0x10001, CLONE = 0x10002, BYTES = 20 << 20 };

static int set_up(void **state)
{
	*state = drive_new(256, BYTES, 512);
	return 0;
}

static int tear_down(void **state)
{
	drive_free(*state);
	return 0;
}

static const uint8_t uuid[16];

/* Opens a disk beside the drive's own. Returns how that failed, with a sentence. */
static int open_disk(struct drive *drive, const struct disk_options *options, struct disk **disk,
		     struct error_text *error)
{
	return disk_open(drive->engine, uuid, options, disk, error);
}

static void assert_refused(struct drive *drive, const struct disk_options *options,
			   const char *reason)
{
	struct error_text error = { "" };
	struct disk *disk;

	assert_int_equal(open_disk(drive, options, &disk, &error), -22);
	if (!strstr(error.text, reason))
		fail_msg("refused with '%s'", error.text);
}

static struct engine_txn *begin(struct drive *drive)
{
	struct engine_txn *txn;

	assert_int_equal(engine_begin(drive->engine, ENGINE_WRITE, &txn), 0);
	return txn;
}

static void test_a_new_volume_has_three_quarters_of_the_device(void **state)
{
	struct drive *drive = *state;
	const struct disk_options options = { .partition = OTHER };
	struct engine_statistics statistics;
	struct error_text error;
	struct disk *disk;

	engine_read_statistics(drive->engine, &statistics);
	assert_int_equal(open_disk(drive, &options, &disk, &error), 0);
	assert_int_equal(disk_block_bytes(disk), 512);
	assert_in_range(disk_bytes(disk), statistics.capacity_bytes / 4 * 3 - (1 << 20),
			statistics.capacity_bytes / 4 * 3);
	disk_close(disk);
}

static void test_a_volume_stays_what_it_was_made_as(void **state)
{
	struct drive *drive = *state;
	struct disk_options options = { .partition = DRIVE_PARTITION };
	struct error_text error;
	struct disk *disk;

	assert_int_equal(open_disk(drive, &options, &disk, &error), 0);
	assert_int_equal(disk_bytes(disk), BYTES);
	disk_close(disk);
	options.bytes = BYTES - 512;
	assert_int_equal(open_disk(drive, &options, &disk, &error), 0);
	assert_int_equal(disk_bytes(disk), BYTES);
	disk_close(disk);
	options.bytes = 0;
	options.block_bytes = 4096;
	assert_refused(drive, &options, "has blocks of 512 bytes, which do not change");
	options = (struct disk_options){ .partition = DRIVE_PARTITION, .bytes = BYTES + 4096 };
	assert_int_equal(open_disk(drive, &options, &disk, &error), 0);
	assert_int_equal(disk_bytes(disk), BYTES + 4096);
	disk_close(disk);
	/* Also for who has it open: the size is read with each command. */
	drive_write(drive, BYTES / 512, 8, 1);
}

/* The disk is open meanwhile: the next command finds its size. */
static void test_a_rollback_brings_back_the_size_of_then(void **state)
{
	struct drive *drive = *state;
	uint64_t then = disk_bytes(drive->disk), bytes = then + (UINT64_C(4) << 20);
	uint32_t version = drive_snapshot(drive), blocks = (uint32_t)(then / 512);
	struct error_text error = { "" };

	assert_int_equal(disk_volume_grow(drive->engine, DRIVE_PARTITION, &bytes, &error), 0);
	drive_write(drive, blocks, 8, 1);
	assert_true(disk_bytes(drive->disk) == then + (UINT64_C(4) << 20));
	drive_roll_back(drive, version);
	assert_int_equal(drive_range(drive, SBC_READ_16, 0, blocks, 8, 0, 4096),
			 SENSE(ILLEGAL_REQUEST, LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE));
	assert_true(disk_bytes(drive->disk) == then);
}

static void test_a_partition_of_objects_is_no_volume(void **state)
{
	struct drive *drive = *state;
	const struct disk_options options = { .partition = OTHER };
	struct engine_txn *txn = begin(drive);

	assert_int_equal(engine_partition_create(txn, OTHER, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	assert_refused(drive, &options, "partition 0x10001 is not a volume");
}

static void test_a_volume_that_is_removed_is_not_ready(void **state)
{
	const uint32_t not_ready = SENSE(NOT_READY, MANUAL_INTERVENTION_REQUIRED);
	struct drive *drive = *state;
	struct engine_txn *txn;

	drive_write(drive, 0, 1, 1);
	txn = begin(drive);
	assert_int_equal(engine_partition_remove(txn, DRIVE_PARTITION, true), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	assert_int_equal(drive_range(drive, SBC_READ_16, 0, 0, 1, 0, 512), not_ready);
	assert_int_equal(drive_range(drive, SBC_WRITE_16, 0, 0, 1, 512, 0), not_ready);
	assert_int_equal(drive_unmap(drive, 0, 1), not_ready);
	/* What has its ID afterwards is something else. */
	txn = begin(drive);
	assert_int_equal(engine_partition_create(txn, DRIVE_PARTITION, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	assert_int_equal(drive_range(drive, SBC_READ_16, 0, 0, 1, 0, 512), not_ready);
}

/* As an initiator of an OSD unit on the same device may do. */
static void truncate_range(struct drive *drive, uint64_t length)
{
	const struct engine_address first = { .partition = DRIVE_PARTITION,
					      .object = ENGINE_FIRST_ID };
	struct engine_txn *txn = begin(drive);
	struct engine_object *object;

	assert_int_equal(engine_open_object(txn, first, &object), 0);
	assert_int_equal(engine_object_truncate(object, length), 0);
	engine_close_object(object);
	assert_int_equal(engine_commit(txn, false), 0);
}

/* Its blocks behind the end read as zeros, take no space, and can be written. */
static void test_an_object_that_is_truncated_has_a_hole_behind_its_end(void **state)
{
	struct drive *drive = *state;

	drive_write(drive, 0, 64, 1);
	truncate_range(drive, 12 * 512);
	drive_check(drive, 0, 12, 1);
	drive_check(drive, 12, 52, 0);
	assert_int_equal(
		drive_range(drive, SBC_SERVICE_ACTION_IN_16, SBC_GET_LBA_STATUS, 32, 24, 0, 24), 0);
	assert_int_equal(drive->in[8 + 12], 1);
	assert_int_equal(drive_unmap(drive, 32, 8), 0);
	assert_int_equal(drive_unmap(drive, 8, 24), 0);
	memset(drive->out, 0, 512);
	assert_int_equal(drive_range(drive, SBC_WRITE_SAME_16, 0x08, 40, 8, 512, 0), 0);
	drive_check(drive, 0, 8, 1);
	drive_check(drive, 8, 56, 0);
	drive_write(drive, 48, 8, 2);
	drive_check(drive, 40, 8, 0);
	drive_check(drive, 48, 8, 2);
}

static void give_back(struct drive *drive, struct disk *own)
{
	disk_close(drive->disk);
	drive->disk = own;
}

static void test_a_version_is_a_disk_that_can_only_be_read(void **state)
{
	struct drive *drive = *state;
	struct disk *own = drive->disk;
	struct disk_options options = { .partition = DRIVE_PARTITION };
	const uint32_t refused = SENSE(DATA_PROTECT, WRITE_PROTECTED);
	struct error_text error = { "" };

	drive_write(drive, 0, 64, 1);
	snprintf(options.version, sizeof(options.version), "%u", drive_snapshot(drive));
	drive_write(drive, 0, 8, 2);
	assert_int_equal(drive_unmap(drive, 8, 8), 0);
	if (open_disk(drive, &options, &drive->disk, &error))
		fail_msg("%s", error.text);
	assert_true(disk_is_version(drive->disk));
	assert_int_equal(disk_bytes(drive->disk), BYTES);
	drive_check(drive, 0, 64, 1);
	drive_check(drive, 64, 64, 0);
	assert_int_equal(drive_range(drive, SBC_WRITE_16, 0, 0, 1, 512, 0), refused);
	/* Also where there was nothing then: it would be made in the present. */
	assert_int_equal(drive_range(drive, SBC_WRITE_16, 0, 20000, 1, 512, 0), refused);
	assert_int_equal(drive_unmap(drive, 0, 8), refused);
	assert_int_equal(drive_range(drive, SBC_WRITE_SAME_16, 0x01, 0, 8, 0, 0), refused);
	assert_int_equal(
		drive_range(drive, SBC_SERVICE_ACTION_IN_16, SBC_GET_LBA_STATUS, 8, 24, 0, 24), 0);
	assert_int_equal(drive->in[8 + 12], 0);
	assert_int_equal(drive_range(drive, SBC_SYNCHRONIZE_CACHE_16, 0, 0, 0, 0, 0), 0);
	give_back(drive, own);
	drive_check(drive, 0, 8, 2);
	drive_check(drive, 8, 8, 0);
	drive_check(drive, 20000, 8, 0);
}

/* Such a disk can be opened, and is not ready. */
static void assert_missing(struct drive *drive, const struct disk_options *options)
{
	const uint32_t not_ready = SENSE(NOT_READY, MANUAL_INTERVENTION_REQUIRED);
	struct disk *own = drive->disk;

	assert_int_equal(open_disk(drive, options, &drive->disk, &(struct error_text){ "" }), 0);
	assert_true(disk_is_version(drive->disk));
	assert_int_equal(drive_range(drive, SBC_READ_16, 0, 0, 1, 0, 512), not_ready);
	assert_int_equal(
		drive_range(drive, SBC_SERVICE_ACTION_IN_16, SBC_READ_CAPACITY_16, 0, 32, 0, 32),
		not_ready);
	assert_int_equal(drive_range(drive, SBC_WRITE_16, 0, 0, 1, 512, 0),
			 SENSE(DATA_PROTECT, WRITE_PROTECTED));
	give_back(drive, own);
}

static void test_a_version_that_is_dropped_is_not_ready(void **state)
{
	struct drive *drive = *state;
	struct disk *own = drive->disk;
	struct disk_options options = { .partition = DRIVE_PARTITION, .version = "before" };
	struct error_text error = { "" };
	uint32_t version;
	struct engine_txn *txn;

	drive_write(drive, 0, 8, 1);
	drive->now += 2000;
	assert_missing(drive, &options);
	assert_int_equal(engine_begin(drive->engine, ENGINE_HISTORY, &txn), 0);
	assert_int_equal(engine_snapshot(txn, DRIVE_PARTITION, "before", &version), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	assert_int_equal(open_disk(drive, &options, &drive->disk, &error), 0);
	drive_check(drive, 0, 8, 1);
	assert_int_equal(engine_begin(drive->engine, ENGINE_RESCUE, &txn), 0);
	assert_int_equal(engine_version_drop(txn, DRIVE_PARTITION, version), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	assert_int_equal(drive_range(drive, SBC_READ_16, 0, 0, 1, 0, 512),
			 SENSE(NOT_READY, MANUAL_INTERVENTION_REQUIRED));
	give_back(drive, own);
	snprintf(options.version, sizeof(options.version), "%u", version);
	assert_missing(drive, &options);
}

/* Another disk by its name: initiators would take it for a second path to the present. */
static void test_a_version_has_a_name_of_its_own(void **state)
{
	struct drive *drive = *state;
	struct disk *own = drive->disk;
	struct disk_options options = { .partition = DRIVE_PARTITION };
	const uint8_t cdb[6] = { 0x12, 1, 0x83, 0, 255, 0 };
	uint8_t names[2][44];

	snprintf(options.version, sizeof(options.version), "%u", drive_snapshot(drive));
	assert_int_equal(open_disk(drive, &(struct disk_options){ .partition = DRIVE_PARTITION },
				   &drive->disk, &(struct error_text){ "" }),
			 0);
	assert_int_equal(disk_inquiry(drive->disk, cdb, names[0], 44), 44);
	give_back(drive, own);
	assert_int_equal(open_disk(drive, &options, &drive->disk, &(struct error_text){ "" }), 0);
	assert_int_equal(disk_inquiry(drive->disk, cdb, names[1], 44), 44);
	give_back(drive, own);
	assert_memory_not_equal(names[0], names[1], 44);
}

/* Puts another disk in the place of the drive's; returns that. */
static struct disk *use_clone(struct drive *drive, bool writable)
{
	const struct engine_moment now = { .kind = ENGINE_NOW };
	const struct disk_options options = { .partition = CLONE };
	struct disk *own = drive->disk;
	struct error_text error = { "" };
	struct engine_txn *txn;

	drive->now += 5000;
	txn = begin(drive);
	assert_int_equal(engine_clone(txn, DRIVE_PARTITION, now, CLONE, writable, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	if (open_disk(drive, &options, &drive->disk, &error))
		fail_msg("%s", error.text);
	return own;
}

static void test_a_clone_is_a_disk_of_its_own(void **state)
{
	struct drive *drive = *state;
	struct disk *own;

	drive_write(drive, 0, 64, 1);
	own = use_clone(drive, true);
	drive_check(drive, 0, 64, 1);
	drive_write(drive, 8, 8, 2);
	assert_int_equal(drive_unmap(drive, 16, 8), 0);
	give_back(drive, own);
	drive_check(drive, 0, 64, 1);
	drive_write(drive, 32, 8, 3);
	assert_int_equal(open_disk(drive, &(struct disk_options){ .partition = CLONE },
				   &drive->disk, &(struct error_text){ "" }),
			 0);
	drive_check(drive, 8, 8, 2);
	drive_check(drive, 16, 8, 0);
	drive_check(drive, 32, 8, 1);
	give_back(drive, own);
}

static void test_a_clone_that_only_shows_its_source_is_write_protected(void **state)
{
	struct drive *drive = *state;
	struct disk *own;

	drive_write(drive, 0, 64, 1);
	own = use_clone(drive, false);
	drive_check(drive, 0, 64, 1);
	assert_int_equal(drive_range(drive, SBC_WRITE_16, 0, 0, 1, 512, 0),
			 SENSE(DATA_PROTECT, WRITE_PROTECTED));
	assert_int_equal(drive_unmap(drive, 0, 8), SENSE(DATA_PROTECT, WRITE_PROTECTED));
	drive_check(drive, 0, 64, 1);
	give_back(drive, own);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_new_volume_has_three_quarters_of_the_device),
		TEST(test_a_volume_stays_what_it_was_made_as),
		TEST(test_a_rollback_brings_back_the_size_of_then),
		TEST(test_a_partition_of_objects_is_no_volume),
		TEST(test_a_volume_that_is_removed_is_not_ready),
		TEST(test_an_object_that_is_truncated_has_a_hole_behind_its_end),
		TEST(test_a_version_is_a_disk_that_can_only_be_read),
		TEST(test_a_version_that_is_dropped_is_not_ready),
		TEST(test_a_version_has_a_name_of_its_own),
		TEST(test_a_clone_is_a_disk_of_its_own),
		TEST(test_a_clone_that_only_shows_its_source_is_write_protected),
	};

	return cmocka_run_group_tests_name("volumes", tests, NULL, NULL);
}
