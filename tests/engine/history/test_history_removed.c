/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Removed partitions at points in time of the device: whose policy takes them out of reach, and
 * whose does not.
 */
#include "engine/objects/objects.h"
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

static void test_a_policy_that_keeps_nothing_takes_no_moment_of_before_it(void **state)
{
	struct device *device = *state;

	write_twice(device);
	create(device, CLONE);
	device->now = 11 * SECOND;
	assert_int_equal(try_policy(device, CLONE, ENGINE_RETAIN_NONE, 0), 0);
	device->now = 13 * SECOND;
	remove_partition(device);
	device->now = 15 * SECOND;
	merge_all(device);
	/* While it stands, and when it is gone. */
	assert_int_equal(try_rollback(device, at(5 * SECOND)), 0);
	check_page(device, 0, 0, 'a');
	device->now = 17 * SECOND;
	merge_all(device);
	crash(device);
	assert_int_equal(try_rollback(device, at(10 * SECOND)), 0);
	check_page(device, 0, 0, 'b');
	device->now = 19 * SECOND;
	merge_all(device);
	assert_int_equal(try_rollback(device, at(5 * SECOND)), 0);
	check_page(device, 0, 0, 'a');
}

/* Whoever may set it can't take what it held before from who may roll the device back. */
static void test_neither_does_it_take_what_the_partition_itself_was_then(void **state)
{
	struct device *device = *state;

	write_twice(device);
	assert_int_equal(try_policy(device, PARTITION, ENGINE_RETAIN_NONE, 0), 0);
	write_page(device, 11 * SECOND, 0, 'x');
	device->now = 13 * SECOND;
	merge_all(device);
	assert_int_equal(view_at(device, 5 * SECOND), 0);
	assert_int_equal(try_rollback(device, at(5 * SECOND)), 0);
	check_page(device, 0, 0, 'a');
	device->now = 15 * SECOND;
	merge_all(device);
	remove_partition(device);
	device->now = 17 * SECOND;
	merge_all(device);
	assert_int_equal(try_rollback(device, at(8 * SECOND)), 0);
	check_page(device, 0, 0, 'b');
}

/* Also what is older than all moments of the device, and still showed at the first of them. */
static void test_nor_what_it_had_long_been_then(void **state)
{
	const struct engine_retention while_keeping = { .kind = ENGINE_RETAIN_NONE,
							.keep_all_ms = 100 * SECOND };
	struct device *device = *state;

	begin(device, ENGINE_RESCUE);
	assert_int_equal(end(device, engine_retention_set(device->txn, 0, &while_keeping, false)),
			 0);
	for (uint32_t page = 0; page < 64; page++)
		write_page(device, 2 * SECOND, page, 'a');
	for (uint32_t page = 0; page < 64; page++)
		write_page(device, 150 * SECOND, page, 'b');
	device->now = 160 * SECOND;
	assert_int_equal(try_policy(device, PARTITION, ENGINE_RETAIN_NONE, 0), 0);
	device->now = 200 * SECOND;
	merge_all(device);
	assert_int_equal(try_rollback(device, at(2 * SECOND - 1)), -ENOENT);
	assert_int_equal(try_rollback(device, at(120 * SECOND)), 0);
	for (uint32_t page = 0; page < 64; page++)
		check_page(device, 0, page, 'a');
}

static int stat_at(struct device *device, uint64_t partition, uint64_t ms)
{
	const struct engine_moment moment = at(ms);
	struct engine_stat stat;
	uint32_t version;
	int result;

	begin(device, ENGINE_READ);
	assert_int_equal(engine_view_open(device->txn, 0, moment, &version), 0);
	result = engine_stat(device->txn,
			     (struct engine_address){ .partition = partition, .version = version },
			     &stat);
	commit(device);
	return result;
}

static void check_others(struct device *device, char byte)
{
	check_page_of(device, OTHERS, 0, 0, byte);
}

static void write_others(struct device *device, uint64_t ms, char byte)
{
	const struct engine_address address = { .partition = OTHERS, .object = OBJECT };
	char bytes[PAGE];

	memset(bytes, byte, sizeof(bytes));
	device->now = ms;
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_write(device->txn, address, 0, bytes, sizeof(bytes)), 0);
	commit(device);
}

/*
 * The other partition says 'p' at 3 s and keeps nothing from 9 s on, when it says 'q' at 10 s and
 * 'r' at 14 s; this one 'c' from 12 s on.
 */
static void leave_others_out(struct device *device)
{
	write_others(device, 3 * SECOND, 'p');
	write_twice(device);
	assert_int_equal(try_policy(device, OTHERS, ENGINE_RETAIN_NONE, 0), 0);
	write_others(device, 10 * SECOND, 'q');
	write_page(device, 12 * SECOND, 0, 'c');
	write_others(device, 14 * SECOND, 'r');
	device->now = 16 * SECOND;
}

static void test_a_partition_that_keeps_nothing_is_left_out_of_moments(void **state)
{
	struct device *device = *state;

	leave_others_out(device);
	merge_all(device);
	/* merge_all writes there. */
	write_others(device, 18 * SECOND, 'r');
	device->now = 20 * SECOND;
	assert_int_equal(stat_at(device, OTHERS, 8 * SECOND), 0);
	assert_int_equal(stat_at(device, OTHERS, 11 * SECOND), -ENOENT);
	assert_int_equal(stat_at(device, PARTITION, 11 * SECOND), 0);
	/* A rollback leaves it as it is. */
	assert_int_equal(try_rollback(device, at(11 * SECOND)), 0);
	for (int start = 0; start < 2; start++) {
		check_page(device, 0, 0, 'b');
		check_others(device, 'r');
		crash(device);
	}
	write_others(device, 22 * SECOND, 's');
	/* But for one to before. */
	device->now = 24 * SECOND;
	assert_int_equal(try_rollback(device, at(8 * SECOND)), 0);
	check_page(device, 0, 0, 'b');
	check_others(device, 'p');
	/* Which is undone by number or time, but for what was left out. */
	device->now = 26 * SECOND;
	assert_int_equal(try_rollback(device, at(13 * SECOND)), 0);
	check_page(device, 0, 0, 'c');
	check_others(device, 'p');
}

static void test_with_another_policy_it_takes_part_again(void **state)
{
	struct device *device = *state;

	leave_others_out(device);
	assert_int_equal(try_policy(device, OTHERS, ENGINE_RETAIN_ALL, 0), 0);
	write_others(device, 18 * SECOND, 's');
	write_others(device, 20 * SECOND, 't');
	device->now = 22 * SECOND;
	merge_all(device);
	device->now += SECOND;
	assert_int_equal(stat_at(device, OTHERS, 8 * SECOND), 0);
	assert_int_equal(stat_at(device, OTHERS, 13 * SECOND), -ENOENT);
	/* The new policy keeps it as it was last. */
	assert_int_equal(stat_at(device, OTHERS, 15 * SECOND), 0);
	assert_int_equal(stat_at(device, OTHERS, 19 * SECOND), 0);
	assert_int_equal(try_rollback(device, at(19 * SECOND)), 0);
	check_others(device, 's');
	device->now += 2 * SECOND;
	assert_int_equal(try_rollback(device, at(13 * SECOND)), 0);
	check_others(device, 's');
	check_page(device, 0, 0, 'c');
}

/* It has one such stretch, from the first policy of that kind to the last. */
static void test_when_it_keeps_nothing_again_it_is_left_out_in_between_too(void **state)
{
	struct device *device = *state;

	leave_others_out(device);
	assert_int_equal(try_policy(device, OTHERS, ENGINE_RETAIN_ALL, 0), 0);
	write_others(device, 18 * SECOND, 's');
	device->now = 20 * SECOND;
	assert_int_equal(stat_at(device, OTHERS, 19 * SECOND), 0);
	assert_int_equal(try_policy(device, OTHERS, ENGINE_RETAIN_NONE, 0), 0);
	device->now = 22 * SECOND;
	assert_int_equal(stat_at(device, OTHERS, 8 * SECOND), 0);
	assert_int_equal(stat_at(device, OTHERS, 19 * SECOND), -ENOENT);
}

static void test_a_version_of_the_device_has_it(void **state)
{
	struct engine_moment version = { .kind = ENGINE_AT_VERSION };
	struct device *device = *state;

	leave_others_out(device);
	version.value = take_snapshot(device, 0);
	write_others(device, 18 * SECOND, 's');
	device->now = 20 * SECOND;
	merge_all(device);
	device->now += SECOND;
	assert_int_equal(try_rollback(device, version), 0);
	check_others(device, 'r');
	check_page(device, 0, 0, 'c');
}

static int is_there(struct device *device, uint64_t partition)
{
	struct engine_stat stat;
	int result;

	begin(device, ENGINE_READ);
	result = engine_stat(device->txn, (struct engine_address){ .partition = partition }, &stat);
	commit(device);
	return result;
}

/* One that is gone stays so, but for a rollback to a moment that shows it. */
static void test_one_that_was_removed_stays_so(void **state)
{
	struct device *device = *state;

	leave_others_out(device);
	begin(device, ENGINE_FREE);
	assert_int_equal(engine_partition_remove(device->txn, OTHERS, true), 0);
	commit(device);
	write_page(device, 18 * SECOND, 0, 'd');
	device->now = 20 * SECOND;
	assert_int_equal(try_rollback(device, at(13 * SECOND)), 0);
	for (int start = 0; start < 2; start++) {
		check_page(device, 0, 0, 'c');
		assert_int_equal(is_there(device, OTHERS), -ENOENT);
		crash(device);
	}
	device->now = 22 * SECOND;
	assert_int_equal(try_rollback(device, at(8 * SECOND)), 0);
	check_others(device, 'p');
	check_page(device, 0, 0, 'b');
}

/* One that was made behind the moment goes, as any other. */
static void test_one_that_was_made_later_goes(void **state)
{
	struct device *device = *state;

	write_twice(device);
	device->now = 11 * SECOND;
	create(device, CLONE);
	device->now = 13 * SECOND;
	assert_int_equal(try_policy(device, CLONE, ENGINE_RETAIN_NONE, 0), 0);
	device->now = 15 * SECOND;
	assert_int_equal(try_rollback(device, at(8 * SECOND)), 0);
	assert_int_equal(is_there(device, CLONE), -ENOENT);
}

static void test_a_rollback_that_is_aborted_leaves_nothing_behind(void **state)
{
	struct device *device = *state;

	leave_others_out(device);
	begin(device, ENGINE_RESCUE);
	assert_int_equal(engine_rollback(device->txn, 0, at(11 * SECOND)), 0);
	engine_abort(device->txn);
	device->txn = NULL;
	check_page(device, 0, 0, 'c');
	check_others(device, 'r');
	assert_int_equal(device->engine->hidden.count, 0);
}

/*
 * It keeps none of the room that a partition takes which keeps nothing, also when everything else
 * is kept.
 */
static void test_what_a_partition_held_that_kept_nothing_goes_with_it(void **state)
{
	struct engine_statistics before, behind;
	struct device *device = *state;

	assert_int_equal(try_policy(device, PARTITION, ENGINE_RETAIN_NONE, 0), 0);
	assert_int_equal(try_policy(device, 0, ENGINE_RETAIN_ALL, 0), 0);
	for (uint32_t page = 0; page < 1000; page++)
		write_page(device, 2 * SECOND + page, page, 'a');
	engine_read_statistics(device->engine, &before);
	device->now = 11 * SECOND;
	remove_partition(device);
	device->now = 13 * SECOND;
	merge_all(device);
	engine_read_statistics(device->engine, &behind);
	/* What merging wrote meanwhile is half of it. */
	assert_true(behind.used_bytes < before.used_bytes);
}

/* Writes more than there is room for, so that the oldest history goes. */
static void write_over(struct device *device)
{
	const struct engine_address address = { .partition = OTHERS, .object = OBJECT };
	struct engine_merge_result total = { 0 };
	char bytes[8 * PAGE] = { 0 };

	for (int round = 0; round < 900; round++) {
		int result;

		device->now += SECOND;
		begin(device, ENGINE_WRITE);
		result = engine_write(device->txn, address, 0, bytes, sizeof(bytes));
		if (result)
			engine_abort(device->txn);
		else
			result = engine_commit(device->txn, false);
		device->txn = NULL;
		assert_true(result == 0 || result == -ENOSPC);
		for (int step = 0; result && step < 64; step++)
			engine_merge(device->engine, &total);
	}
	assert_true(total.segments_freed > 0);
}

static void test_what_was_given_up_for_room_does_not_come_back_with_another_policy(void **state)
{
	struct device *device = *state;
	uint64_t horizon;

	write_twice(device);
	assert_int_equal(try_policy(device, 0, ENGINE_RETAIN_ALL, 0), 0);
	assert_int_equal(try_policy(device, OTHERS, ENGINE_RETAIN_SNAPSHOTS, 0), 0);
	write_over(device);
	horizon = horizon_of_device(device);
	assert_int_equal(try_rollback(device, at(8 * SECOND)), -ENOENT);
	assert_int_equal(try_policy(device, OTHERS, ENGINE_RETAIN_ALL, 0), 0);
	assert_int_equal(horizon_of_device(device), horizon);
	assert_int_equal(try_rollback(device, at(8 * SECOND)), -ENOENT);
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

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_lock_of_another_partition_leaves_what_was_removed_in_reach),
		TEST(test_a_policy_that_gives_up_for_room_only_ends_no_moment_of_the_device),
		TEST(test_a_policy_that_keeps_nothing_takes_no_moment_of_before_it),
		TEST(test_neither_does_it_take_what_the_partition_itself_was_then),
		TEST(test_nor_what_it_had_long_been_then),
		TEST(test_a_partition_that_keeps_nothing_is_left_out_of_moments),
		TEST(test_with_another_policy_it_takes_part_again),
		TEST(test_when_it_keeps_nothing_again_it_is_left_out_in_between_too),
		TEST(test_a_version_of_the_device_has_it),
		TEST(test_one_that_was_removed_stays_so),
		TEST(test_one_that_was_made_later_goes),
		TEST(test_a_rollback_that_is_aborted_leaves_nothing_behind),
		TEST(test_what_a_partition_held_that_kept_nothing_goes_with_it),
		TEST(test_what_was_given_up_for_room_does_not_come_back_with_another_policy),
		TEST(test_under_a_locked_device_no_policy_ends_its_moments),
	};

	return cmocka_run_group_tests_name("history_removed", tests, NULL, NULL);
}
