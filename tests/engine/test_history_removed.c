/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Removed partitions at points in time of the device: whose policy takes them out of reach, and whose does not. */
#include "engine/history.h"
#include "tests/engine/device_fixture.h"

enum { YEARS = 1000000000 };

static int try_policy(struct device *device, uint64_t partition, enum engine_retention_kind kind,
		      uint64_t locked_until_ms)
{
	const struct engine_retention retention = { .kind = kind,
						    .locked_until_ms = locked_until_ms };

	begin(device, ENGINE_RESCUE);
	return end(device, engine_retention_set(device->txn, partition, &retention, false));
}

static int try_rollback(struct device *device, struct engine_moment to)
{
	begin(device, ENGINE_RESCUE);
	return end(device, engine_rollback(device->txn, 0, to));
}

static struct engine_moment at(uint64_t ms)
{
	return (struct engine_moment){ .kind = ENGINE_AT_TIME, .value = ms };
}

static uint64_t horizon_of_device(struct device *device)
{
	struct engine_history history;

	begin(device, ENGINE_READ);
	assert_int_equal(engine_history(device->txn, 0, &history), 0);
	commit(device);
	return history.horizon_sequence;
}

/* A partition that says 'a' at 4 s and 'b' at 8 s. */
static void write_twice(struct device *device)
{
	write_page(device, 2 * SECOND, 0, 'a');
	write_page(device, 7 * SECOND, 0, 'b');
	device->now = 9 * SECOND;
}

static void test_a_lock_of_another_partition_leaves_what_was_removed_in_reach(void **state)
{
	struct device *device = *state;

	write_twice(device);
	assert_int_equal(try_policy(device, OTHERS, ENGINE_RETAIN_SNAPSHOTS, YEARS), 0);
	device->now = 11 * SECOND;
	remove_partition(device);
	device->now = 13 * SECOND;
	merge_all(device);
	/* Since the lock, and from before it. */
	assert_int_equal(try_rollback(device, at(10 * SECOND)), 0);
	check_page(device, 0, 0, 'b');
	device->now = 15 * SECOND;
	merge_all(device);
	assert_int_equal(try_rollback(device, at(5 * SECOND)), 0);
	check_page(device, 0, 0, 'a');
}

static void test_a_policy_that_gives_up_for_room_only_ends_no_moment_of_the_device(void **state)
{
	struct device *device = *state;

	assert_int_equal(try_policy(device, 0, ENGINE_RETAIN_ALL, 0), 0);
	write_twice(device);
	assert_int_equal(try_policy(device, OTHERS, ENGINE_RETAIN_SNAPSHOTS, 0), 0);
	remove_partition(device);
	/* Nor does it when the policy goes. */
	device->now = 11 * SECOND;
	assert_int_equal(try_policy(device, OTHERS, ENGINE_RETAIN_ALL, 0), 0);
	device->now = 13 * SECOND;
	merge_all(device);
	assert_int_equal(try_rollback(device, at(8 * SECOND)), 0);
	check_page(device, 0, 0, 'b');
	/* Which looks at all policies again. */
	device->now = 15 * SECOND;
	merge_all(device);
	assert_int_equal(try_rollback(device, at(5 * SECOND)), 0);
	check_page(device, 0, 0, 'a');
}

static void test_a_policy_that_keeps_nothing_ends_the_moments_of_the_device(void **state)
{
	struct engine_moment version = { .kind = ENGINE_AT_VERSION };
	struct device *device = *state;

	write_twice(device);
	version.value = take_snapshot(device, 0);
	device->now = 10 * SECOND;
	assert_int_equal(try_policy(device, OTHERS, ENGINE_RETAIN_NONE, 0), 0);
	device->now = 11 * SECOND;
	remove_partition(device);
	device->now = 13 * SECOND;
	merge_all(device);
	assert_int_equal(try_rollback(device, at(5 * SECOND)), -ENOENT);
	/* Nor do they come back with another policy. */
	assert_int_equal(try_policy(device, OTHERS, ENGINE_RETAIN_SNAPSHOTS, 0), 0);
	device->now = 15 * SECOND;
	assert_int_equal(try_rollback(device, at(5 * SECOND)), -ENOENT);
	/* But its versions. */
	assert_int_equal(try_rollback(device, version), 0);
	check_page(device, 0, 0, 'b');
}

static void test_under_a_locked_device_no_policy_ends_its_moments(void **state)
{
	struct device *device = *state;
	uint64_t horizon;

	write_twice(device);
	assert_int_equal(try_policy(device, OTHERS, ENGINE_RETAIN_SNAPSHOTS, 0), 0);
	assert_int_equal(try_policy(device, 0, ENGINE_RETAIN_SNAPSHOTS, YEARS), 0);
	horizon = horizon_of_device(device);
	device->now = 11 * SECOND;
	assert_int_equal(try_policy(device, OTHERS, ENGINE_RETAIN_NONE, 0), -EPERM);
	assert_int_equal(try_policy(device, OTHERS, ENGINE_RETAIN_ALL, 0), 0);
	assert_int_equal(try_policy(device, OTHERS, ENGINE_RETAIN_SNAPSHOTS, 0), -EPERM);
	assert_int_equal(horizon_of_device(device), horizon);
	create(device, PARTITION + 0x1000);
	assert_int_equal(try_policy(device, PARTITION + 0x1000, ENGINE_RETAIN_NONE, 0), -EPERM);
	assert_int_equal(horizon_of_device(device), horizon);
}

static void test_of_older_programs_all_that_gave_up_count_as_keeping_nothing(void **state)
{
	struct history history = history_new(RECORD_ROOT_INDEX, 0), found;
	uint8_t record[HISTORY_DEVICE_BYTES];
	uint32_t length;

	(void)state;
	history.device.lossy = 3;
	history.device.losing = 1;
	length = history_encode(&history, RECORD_ROOT_INDEX, record);
	assert_int_equal(history_decode(&found, RECORD_ROOT_INDEX, record, length), 0);
	assert_int_equal(found.device.losing, 1);
	record[0] = HISTORY_FORMAT_2;
	memset(record + 252, 0, 4);
	assert_int_equal(history_decode(&found, RECORD_ROOT_INDEX, record, length), -EBADMSG);
	assert_int_equal(
		history_decode(&found, RECORD_ROOT_INDEX, record, HISTORY_DEVICE_BYTES_OLD), 0);
	assert_int_equal(found.device.lossy, 3);
	assert_int_equal(found.device.losing, 3);
	record[0] = HISTORY_FORMAT;
	record[252] = 4;
	assert_int_equal(history_decode(&found, RECORD_ROOT_INDEX, record, length), -EBADMSG);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_lock_of_another_partition_leaves_what_was_removed_in_reach),
		TEST(test_a_policy_that_gives_up_for_room_only_ends_no_moment_of_the_device),
		TEST(test_a_policy_that_keeps_nothing_ends_the_moments_of_the_device),
		TEST(test_under_a_locked_device_no_policy_ends_its_moments),
		cmocka_unit_test(test_of_older_programs_all_that_gave_up_count_as_keeping_nothing),
	};

	return cmocka_run_group_tests_name("history_removed", tests, NULL, NULL);
}
