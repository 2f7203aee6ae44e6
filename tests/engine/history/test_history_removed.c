/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Removed partitions at points in time of the device: whose policy takes them out of reach, and
 * whose does not.
 */
#include "tests/engine/fixture.h"

enum { YEARS = 1000000000 };

/* A partition that says 'a' at 4 s and 'b' at 8 s. */
static void write_twice(struct fixture *f)
{
	write_page(f, 2 * SECOND, 0, 'a');
	write_page(f, 7 * SECOND, 0, 'b');
	f->now = 9 * SECOND;
}

/* The device goes back to a time, at which the partition's first page had this byte. */
static void check_goes_back(struct fixture *f, uint64_t ms, char byte)
{
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(ms)), 0);
	check_page(f, 0, 0, byte);
}

static void test_a_lock_of_another_partition_leaves_what_was_removed_in_reach(void **state)
{
	struct fixture *f = *state;

	write_twice(f);
	assert_int_equal(try_kind(f, OTHERS, ENGINE_RETAIN_SNAPSHOTS, YEARS), 0);
	f->now = 11 * SECOND;
	remove_partition(f, PARTITION);
	f->now = 13 * SECOND;
	merge_all(f);
	/* Since the lock, and from before it. */
	check_goes_back(f, 10 * SECOND, 'b');
	f->now = 15 * SECOND;
	merge_all(f);
	check_goes_back(f, 5 * SECOND, 'a');
}

static void test_a_policy_that_gives_up_for_room_only_ends_no_moment_of_the_device(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(try_kind(f, 0, ENGINE_RETAIN_ALL, 0), 0);
	write_twice(f);
	assert_int_equal(try_kind(f, OTHERS, ENGINE_RETAIN_SNAPSHOTS, 0), 0);
	remove_partition(f, PARTITION);
	/* Nor does it when the policy goes. */
	f->now = 11 * SECOND;
	assert_int_equal(try_kind(f, OTHERS, ENGINE_RETAIN_ALL, 0), 0);
	f->now = 13 * SECOND;
	merge_all(f);
	check_goes_back(f, 8 * SECOND, 'b');
	/* Which looks at all policies again. */
	f->now = 15 * SECOND;
	merge_all(f);
	check_goes_back(f, 5 * SECOND, 'a');
}

static void test_a_policy_that_keeps_nothing_takes_no_moment_of_before_it(void **state)
{
	struct fixture *f = *state;

	write_twice(f);
	create(f, CLONE);
	f->now = 11 * SECOND;
	assert_int_equal(try_kind(f, CLONE, ENGINE_RETAIN_NONE, 0), 0);
	f->now = 13 * SECOND;
	remove_partition(f, PARTITION);
	f->now = 15 * SECOND;
	merge_all(f);
	/* While it stands, and when it is gone. */
	check_goes_back(f, 5 * SECOND, 'a');
	f->now = 17 * SECOND;
	merge_all(f);
	crash(f);
	check_goes_back(f, 10 * SECOND, 'b');
	f->now = 19 * SECOND;
	merge_all(f);
	check_goes_back(f, 5 * SECOND, 'a');
}

/* Whoever may set it can't take what it held before from who may roll the device back. */
static void test_neither_does_it_take_what_the_partition_itself_was_then(void **state)
{
	struct fixture *f = *state;

	write_twice(f);
	assert_int_equal(try_kind(f, PARTITION, ENGINE_RETAIN_NONE, 0), 0);
	write_page(f, 11 * SECOND, 0, 'x');
	f->now = 13 * SECOND;
	merge_all(f);
	assert_int_equal(view_at(f, 5 * SECOND), 0);
	check_goes_back(f, 5 * SECOND, 'a');
	f->now = 15 * SECOND;
	merge_all(f);
	remove_partition(f, PARTITION);
	f->now = 17 * SECOND;
	merge_all(f);
	check_goes_back(f, 8 * SECOND, 'b');
}

/* Also what is older than all moments of the device, and still showed at the first of them. */
static void test_nor_what_it_had_long_been_then(void **state)
{
	const struct engine_retention while_keeping = { .kind = ENGINE_RETAIN_NONE,
							.keep_all_ms = 100 * SECOND };
	struct fixture *f = *state;

	begin(f, ENGINE_RESCUE);
	assert_int_equal(end(f, engine_retention_set(f->txn, 0, &while_keeping, false)), 0);
	for (uint32_t page = 0; page < 64; page++)
		write_page(f, 2 * SECOND, page, 'a');
	for (uint32_t page = 0; page < 64; page++)
		write_page(f, 150 * SECOND, page, 'b');
	f->now = 160 * SECOND;
	assert_int_equal(try_kind(f, PARTITION, ENGINE_RETAIN_NONE, 0), 0);
	f->now = 200 * SECOND;
	merge_all(f);
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(2 * SECOND - 1)), -ENOENT);
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(120 * SECOND)), 0);
	for (uint32_t page = 0; page < 64; page++)
		check_page(f, 0, page, 'a');
}

/*
 * It keeps none of the room that a partition takes which keeps nothing, also when everything else
 * is kept.
 */
static void test_what_a_partition_held_that_kept_nothing_goes_with_it(void **state)
{
	struct engine_statistics before, behind;
	struct fixture *f = *state;

	assert_int_equal(try_kind(f, PARTITION, ENGINE_RETAIN_NONE, 0), 0);
	assert_int_equal(try_kind(f, 0, ENGINE_RETAIN_ALL, 0), 0);
	for (uint32_t page = 0; page < 1000; page++)
		write_page(f, 2 * SECOND + page, page, 'a');
	engine_read_statistics(f->engine, &before);
	f->now = 11 * SECOND;
	remove_partition(f, PARTITION);
	f->now = 13 * SECOND;
	merge_all(f);
	engine_read_statistics(f->engine, &behind);
	/* What merging wrote meanwhile is half of it. */
	assert_true(behind.used_bytes < before.used_bytes);
}

/* Writes more than there is room for, so that the oldest history goes. */
static void write_over(struct fixture *f)
{
	const struct engine_address address = { .partition = OTHERS, .object = OBJECT };
	struct engine_merge_result total = { 0 };
	char bytes[8 * PAGE] = { 0 };

	for (int round = 0; round < 900; round++) {
		int result;

		f->now += SECOND;
		begin(f, ENGINE_WRITE);
		result = engine_write(f->txn, address, 0, bytes, sizeof(bytes));
		if (result)
			engine_abort(f->txn);
		else
			result = engine_commit(f->txn, false);
		f->txn = NULL;
		assert_true(result == 0 || result == -ENOSPC);
		for (int step = 0; result && step < 64; step++)
			engine_merge(f->engine, &total);
	}
	assert_true(total.segments_freed > 0);
}

static void test_what_was_given_up_for_room_does_not_come_back_with_another_policy(void **state)
{
	struct fixture *f = *state;
	uint64_t horizon;

	write_twice(f);
	assert_int_equal(try_kind(f, 0, ENGINE_RETAIN_ALL, 0), 0);
	assert_int_equal(try_kind(f, OTHERS, ENGINE_RETAIN_SNAPSHOTS, 0), 0);
	write_over(f);
	horizon = horizon_of(f, 0);
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(8 * SECOND)), -ENOENT);
	assert_int_equal(try_kind(f, OTHERS, ENGINE_RETAIN_ALL, 0), 0);
	assert_int_equal(horizon_of(f, 0), horizon);
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(8 * SECOND)), -ENOENT);
}

static void test_under_a_locked_device_no_policy_ends_its_moments(void **state)
{
	struct fixture *f = *state;
	uint64_t horizon;

	write_twice(f);
	assert_int_equal(try_kind(f, OTHERS, ENGINE_RETAIN_SNAPSHOTS, 0), 0);
	assert_int_equal(try_kind(f, 0, ENGINE_RETAIN_SNAPSHOTS, YEARS), 0);
	horizon = horizon_of(f, 0);
	f->now = 11 * SECOND;
	assert_int_equal(try_kind(f, OTHERS, ENGINE_RETAIN_NONE, 0), -EPERM);
	assert_int_equal(try_kind(f, OTHERS, ENGINE_RETAIN_ALL, 0), 0);
	assert_int_equal(try_kind(f, OTHERS, ENGINE_RETAIN_SNAPSHOTS, 0), -EPERM);
	assert_int_equal(horizon_of(f, 0), horizon);
	create(f, PARTITION + 0x1000);
	assert_int_equal(try_kind(f, PARTITION + 0x1000, ENGINE_RETAIN_NONE, 0), -EPERM);
	assert_int_equal(horizon_of(f, 0), horizon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLASH_TEST(test_a_lock_of_another_partition_leaves_what_was_removed_in_reach),
		FLASH_TEST(test_a_policy_that_gives_up_for_room_only_ends_no_moment_of_the_device),
		FLASH_TEST(test_a_policy_that_keeps_nothing_takes_no_moment_of_before_it),
		FLASH_TEST(test_neither_does_it_take_what_the_partition_itself_was_then),
		FLASH_TEST(test_nor_what_it_had_long_been_then),
		FLASH_TEST(test_what_a_partition_held_that_kept_nothing_goes_with_it),
		FLASH_TEST(test_what_was_given_up_for_room_does_not_come_back_with_another_policy),
		FLASH_TEST(test_under_a_locked_device_no_policy_ends_its_moments),
	};

	return cmocka_run_group_tests_name("history_removed", tests, NULL, NULL);
}
