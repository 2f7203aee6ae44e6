/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The volumes of a device as an administrator has them: made, listed, grown, cloned, removed. */
#include "tests/disk/drive.h"

#include <errno.h>

enum { BYTES = 16 << 20, OBJECTS = 0x10100, FAR = 0x20000 };

static struct error_text error;

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

static void assert_why(const char *reason)
{
	if (!strstr(error.text, reason))
		fail_msg("refused with '%s'", error.text);
}

/* A partition that is none. */
static void make_partition(struct drive *drive, uint64_t partition)
{
	struct engine_txn *txn;

	assert_int_equal(engine_begin(drive->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_partition_create(txn, partition, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

static void test_volumes_are_listed_and_other_partitions_are_not(void **state)
{
	struct drive *drive = *state;
	struct disk_volume made, volume;

	/* More than one look takes. */
	for (uint64_t i = 0; i < 300; i++)
		make_partition(drive, OBJECTS + i);
	assert_int_equal(disk_volume_create(drive->engine, FAR, 1 << 20, 4096, &made, &error), 0);
	assert_int_equal(disk_volume_next(drive->engine, 1, &volume), 0);
	assert_int_equal(volume.partition, DRIVE_PARTITION);
	assert_int_equal(volume.bytes, BYTES);
	assert_int_equal(volume.block_bytes, 512);
	assert_int_equal(volume.used_bytes, 0);
	assert_false(volume.is_read_only);
	drive_write(drive, 0, 16, 1);
	assert_int_equal(disk_volume_next(drive->engine, 1, &volume), 0);
	assert_int_equal(volume.used_bytes, 8192);
	assert_int_equal(disk_volume_next(drive->engine, DRIVE_PARTITION + 1, &volume), 0);
	assert_int_equal(volume.partition, FAR);
	assert_int_equal(volume.bytes, 1 << 20);
	assert_int_equal(volume.block_bytes, 4096);
	assert_int_equal(disk_volume_next(drive->engine, FAR + 1, &volume), -ENOENT);
}

static void test_a_volume_is_made_where_nothing_is(void **state)
{
	struct drive *drive = *state;
	struct disk_volume made;

	assert_int_equal(disk_volume_create(drive->engine, 0, 1 << 20, 0, &made, &error), 0);
	assert_int_equal(made.partition, DRIVE_PARTITION + 1);
	assert_int_equal(made.block_bytes, 512);
	assert_int_equal(
		disk_volume_create(drive->engine, DRIVE_PARTITION, 1 << 20, 0, &made, &error),
		-EEXIST);
	assert_why("there is a partition 0x10000 already");
}

static void test_a_volume_grows_and_does_not_shrink(void **state)
{
	struct drive *drive = *state;
	uint64_t bytes = BYTES + 4096 + 1;
	struct disk_volume volume;

	assert_int_equal(disk_volume_grow(drive->engine, DRIVE_PARTITION, &bytes, &error), 0);
	assert_int_equal(bytes, BYTES + 4096);
	assert_int_equal(disk_volume_next(drive->engine, 1, &volume), 0);
	assert_int_equal(volume.bytes, BYTES + 4096);
	/* A disk that is open has the space at once. */
	drive_write(drive, BYTES / 512, 8, 1);
	bytes = BYTES;
	assert_int_equal(disk_volume_grow(drive->engine, DRIVE_PARTITION, &bytes, &error), -EINVAL);
	assert_why("it can grow, not shrink");
	bytes = BYTES;
	assert_int_equal(disk_volume_grow(drive->engine, FAR, &bytes, &error), -ENOENT);
	make_partition(drive, OBJECTS);
	assert_int_equal(disk_volume_grow(drive->engine, OBJECTS, &bytes, &error), -ENODEV);
	assert_why("partition 0x10100 is not a volume");
}

static void test_only_volumes_are_removed(void **state)
{
	struct drive *drive = *state;
	struct disk_volume volume;

	drive_write(drive, 0, 16, 1);
	make_partition(drive, OBJECTS);
	assert_int_equal(disk_volume_remove(drive->engine, OBJECTS, &error), -ENODEV);
	assert_int_equal(disk_volume_remove(drive->engine, FAR, &error), -ENOENT);
	assert_why("there is no partition 0x20000");
	assert_int_equal(disk_volume_remove(drive->engine, DRIVE_PARTITION, &error), 0);
	assert_int_equal(disk_volume_next(drive->engine, 1, &volume), -ENOENT);
}

static void test_a_clone_keeps_a_moment_and_may_be_read_only(void **state)
{
	struct drive *drive = *state;
	const struct engine_moment now = { .kind = ENGINE_NOW };
	const struct engine_moment never = { .kind = ENGINE_AT_VERSION, .value = 9 };
	struct disk_options options = { 0 };
	static const uint8_t uuid[16];
	struct disk_volume volume;
	struct disk *disk;

	drive_write(drive, 0, 16, 1);
	for (int writable = 0; writable < 2; writable++) {
		assert_int_equal(disk_volume_clone(drive->engine, DRIVE_PARTITION, &now, writable,
						   &options.partition, &error),
				 0);
		assert_int_equal(disk_volume_next(drive->engine, options.partition, &volume), 0);
		assert_int_equal(volume.source, DRIVE_PARTITION);
		assert_int_equal(volume.used_bytes, 8192);
		assert_int_equal(volume.is_read_only, !writable);
		assert_int_equal(disk_open(drive->engine, uuid, &options, &disk, &error), 0);
		assert_int_equal(disk_is_read_only(disk), !writable);
		assert_false(disk_is_version(disk));
		disk_close(disk);
	}
	assert_false(disk_is_read_only(drive->disk));
	assert_int_equal(disk_volume_clone(drive->engine, DRIVE_PARTITION, &never, true,
					   &options.partition, &error),
			 -ENOENT);
	assert_why("has no such moment");
}

static void test_a_version_is_found_by_number_and_name(void **state)
{
	struct drive *drive = *state;
	struct engine_txn *txn;
	uint32_t made, version = 0;

	assert_int_equal(engine_begin(drive->engine, ENGINE_HISTORY, &txn), 0);
	assert_int_equal(engine_snapshot(txn, DRIVE_PARTITION, "before", &made), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	assert_int_equal(
		disk_volume_version(drive->engine, DRIVE_PARTITION, "before", &version, &error), 0);
	assert_int_equal(version, made);
	assert_int_equal(disk_volume_version(drive->engine, DRIVE_PARTITION, "1", &version, &error),
			 0);
	assert_int_equal(version, 1);
	assert_int_equal(
		disk_volume_version(drive->engine, DRIVE_PARTITION, "never", &version, &error),
		-ENOENT);
	assert_why("has no version 'never'");
	assert_int_equal(disk_volume_version(drive->engine, DRIVE_PARTITION, "7", &version, &error),
			 -ENOENT);
	assert_int_equal(disk_volume_version(drive->engine, FAR, "1", &version, &error), -ENOENT);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_volumes_are_listed_and_other_partitions_are_not),
		TEST(test_a_volume_is_made_where_nothing_is),
		TEST(test_a_volume_grows_and_does_not_shrink),
		TEST(test_only_volumes_are_removed),
		TEST(test_a_clone_keeps_a_moment_and_may_be_read_only),
		TEST(test_a_version_is_found_by_number_and_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
