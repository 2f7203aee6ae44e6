/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A version of the device is one instant of all disks on it: a consistency group. Somebody writes a
 * number to one disk and then to another one, again and again, as a database writes its log and its
 * data, and others keep versions meanwhile. In none of them the second disk is ahead of the first.
 */
#include "tests/disk/drive.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "common/bytes.h"

enum { BLOCK = 512, BLOCKS = 4096, VERSIONS = 60, WRITES_BETWEEN = 7 };

struct group {
	struct drive *drive;
	struct disk *second;
	uint32_t written; /* the number that both disks have; atomic */
	bool ends;
	bool failed;
};

/* Is also run on a thread, where nothing may be asserted. */
static bool write_number(struct disk *disk, uint32_t number)
{
	uint8_t block[BLOCK], cdb[16] = { SBC_WRITE_16 };
	struct disk_command command = { .cdb = cdb, .data_out = block, .data_out_length = BLOCK };

	drive_fill(block, BLOCK, number);
	put_be64(cdb + 2, number % BLOCKS);
	put_be32(cdb + 10, 1);
	disk_execute(disk, &command);
	return command.status == SCSI_STATUS_GOOD;
}

static void *write_both(void *context)
{
	struct group *group = context;

	for (uint32_t number = 1; !__atomic_load_n(&group->ends, __ATOMIC_ACQUIRE); number++) {
		if (!write_number(group->drive->disk, number) ||
		    !write_number(group->second, number))
			group->failed = true;
		__atomic_store_n(&group->written, number, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* The highest number that a volume has in a version. */
static uint32_t highest(struct drive *drive, uint64_t partition, uint32_t version)
{
	struct disk *present = drive->disk;
	uint32_t found = 0;

	snprintf(drive->disk_options.version, sizeof(drive->disk_options.version), "%u", version);
	drive->disk_options.bytes = drive->disk_options.block_bytes = 0;
	drive->disk = drive_open_other(drive, partition);
	assert_int_equal(drive_range(drive, SBC_READ_16, 0, 0, BLOCKS, 0, (size_t)BLOCKS * BLOCK),
			 0);
	for (size_t at = 0; at < (size_t)BLOCKS * BLOCK; at += BLOCK)
		if (get_be32(drive->in + at) > found)
			found = get_be32(drive->in + at);
	disk_close(drive->disk);
	drive->disk = present;
	return found;
}

static uint32_t keep_version(struct drive *drive)
{
	struct engine_txn *txn;
	uint32_t version;

	assert_int_equal(engine_begin(drive->engine, ENGINE_HISTORY, &txn), 0);
	assert_int_equal(engine_snapshot(txn, 0, NULL, &version), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	return version;
}

/* Waits until so many more numbers are written, so that no two versions are of one moment. */
static void let_write(struct group *group, uint32_t numbers)
{
	uint32_t from = __atomic_load_n(&group->written, __ATOMIC_ACQUIRE);

	while (__atomic_load_n(&group->written, __ATOMIC_ACQUIRE) - from < numbers)
		sched_yield();
}

static void test_no_version_of_the_device_has_one_disk_ahead_of_the_other(void **state)
{
	struct group group = { .drive = drive_new(64, (uint64_t)BLOCKS * BLOCK, BLOCK) };
	uint32_t versions[VERSIONS], last = 0;
	pthread_t writer;

	(void)state;
	group.second = drive_open_other(group.drive, DRIVE_PARTITION + 1);
	assert_int_equal(pthread_create(&writer, NULL, write_both, &group), 0);
	for (int n = 0; n < VERSIONS; n++) {
		let_write(&group, WRITES_BETWEEN);
		versions[n] = keep_version(group.drive);
	}
	__atomic_store_n(&group.ends, true, __ATOMIC_RELEASE);
	pthread_join(writer, NULL);
	assert_false(group.failed);
	disk_close(group.second);
	for (int n = 0; n < VERSIONS; n++) {
		uint32_t first = highest(group.drive, DRIVE_PARTITION, versions[n]);
		uint32_t second = highest(group.drive, DRIVE_PARTITION + 1, versions[n]);

		assert_true(first == second || first == second + 1);
		assert_true(second > last);
		last = second;
	}
	drive_free(group.drive);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_version_of_the_device_has_one_disk_ahead_of_the_other),
	};

	return cmocka_run_group_tests_name("one instant", tests, NULL, NULL);
}
