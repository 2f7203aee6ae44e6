/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What a lock promises: whatever commands come, until its day is over nothing gets shorter of what
 * could be reached.
 */
#include "tests/engine/fixture.h"

enum { YEARS = 1000000000 };

static int try_policy(struct fixture *f, uint64_t partition, struct engine_retention retention)
{
	begin(f, ENGINE_RESCUE);
	return end(f, engine_retention_set(f->txn, partition, &retention, false));
}

static void lock(struct fixture *f, uint64_t partition, enum engine_retention_kind kind)
{
	const struct engine_retention retention = { .kind = kind, .locked_until_ms = YEARS };

	assert_int_equal(try_policy(f, partition, retention), 0);
}

static void create_at(struct fixture *f, uint64_t ms, uint64_t partition)
{
	f->now = ms;
	create(f, partition);
}

static int try_write(struct fixture *f)
{
	const struct engine_address address = { .partition = PARTITION, .object = OBJECT };
	char bytes[16 * PAGE] = { 0 };
	int result;

	begin(f, ENGINE_WRITE);
	result = engine_write(f->txn, address, 0, bytes, sizeof(bytes));
	if (result)
		engine_abort(f->txn);
	else
		result = engine_commit(f->txn, false);
	f->txn = NULL;
	return result;
}

/*
 * Overwrites a few pages again and again, more than the device can keep. False: it refused one of
 * the writes.
 */
static bool write_much(struct fixture *f)
{
	for (int round = 0; round < 600; round++) {
		int result = try_write(f);

		f->now += SECOND;
		/* Room is made by hand. */
		for (int step = 0; result == -ENOSPC && step < 500; step++) {
			struct engine_merge_result total = { 0 };

			engine_merge(f->engine, &total);
			if (step % 16 == 15)
				result = try_write(f);
		}
		if (result == -ENOSPC)
			return false;
		assert_int_equal(result, 0);
	}
	return true;
}

/* ---- going back before a locked partition was made ---- */

static void test_the_device_does_not_go_back_before_a_locked_partition(void **state)
{
	struct fixture *f = *state;

	write_page(f, 2 * SECOND, 0, 'a');
	create_at(f, 5 * SECOND, CLONE);
	f->now = 6 * SECOND;
	lock(f, CLONE, ENGINE_RETAIN_ALL);
	write_page(f, 8 * SECOND, 0, 'b');
	f->now = 10 * SECOND;
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(3 * SECOND)), -EPERM);
	assert_int_equal(engine_reformat(f->engine), -EPERM);
	/* Nothing has happened; a moment at which it was there already is no harm. */
	check_page(f, 0, 0, 'b');
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(7 * SECOND)), 0);
	check_page(f, 0, 0, 'a');
	assert_int_equal(engine_reformat(f->engine), -EPERM);
	/* The others go back alone, and when the lock is over everything does. */
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, PARTITION, at_time(9 * SECOND)), 0);
	f->now = YEARS + SECOND;
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(3 * SECOND)), 0);
}

static void test_neither_does_it_when_the_partition_takes_its_lock_from_the_device(void **state)
{
	struct fixture *f = *state;

	write_page(f, 2 * SECOND, 0, 'a');
	f->now = 3 * SECOND;
	lock(f, 0, ENGINE_RETAIN_ALL);
	create_at(f, 5 * SECOND, CLONE);
	f->now = 6 * SECOND;
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(3 * SECOND)), -EPERM);
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(5 * SECOND)), 0);
}

/* It was made long ago, removed, and came back: between the two it was not there either. */
static void test_the_device_does_not_go_where_a_locked_partition_was_removed(void **state)
{
	struct fixture *f = *state;

	write_page(f, 2 * SECOND, 0, 'a');
	f->now = 4 * SECOND;
	remove_partition(f, PARTITION);
	f->now = 8 * SECOND;
	roll_back(f, 0, at_time(3 * SECOND));
	lock(f, PARTITION, ENGINE_RETAIN_ALL);
	f->now = 10 * SECOND;
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(6 * SECOND)), -EPERM);
	check_page(f, 0, 0, 'a');
}

/* What comes back has less of its own past than others have of theirs, and they keep it. */
static void test_what_comes_back_costs_nothing_of_what_is_locked(void **state)
{
	const struct engine_retention hourly = { .kind = ENGINE_RETAIN_NONE,
						 .keep_interval_ms = 10 * SECOND,
						 .keep_interval_for_ms = 1000 * SECOND,
						 .locked_until_ms = YEARS };
	struct fixture *f = *state;
	uint32_t version;

	set_policy(f, OTHERS, 0, 0, 0);
	assert_int_equal(try_policy(f, PARTITION, hourly), 0);
	set_policy(f, 0, 0, 10 * SECOND, 1000 * SECOND);
	for (uint64_t second = 2; second <= 50; second += 2)
		write_page(f, second * SECOND, 0, (char)second);
	version = take_snapshot(f, 0, NULL);
	merge_all(f);
	f->now = 51 * SECOND;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_remove(f->txn, OTHERS, true), 0);
	commit(f);
	f->now = 53 * SECOND;
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_number(version)), 0);
	f->now = 54 * SECOND;
	merge_all(f);
	for (uint64_t second = 10; second <= 40; second += 10)
		check_page(f, view_at(f, second * SECOND), 0, (char)second);
}

/* ---- what a lock keeps ---- */

static void test_a_lock_without_more_keeps_every_moment(void **state)
{
	struct fixture *f = *state;
	uint64_t horizon;

	write_page(f, 2 * SECOND, 0, 'a');
	f->now = 4 * SECOND;
	lock(f, PARTITION, ENGINE_RETAIN_SNAPSHOTS);
	horizon = horizon_of(f, PARTITION);
	assert_false(write_much(f));
	assert_int_equal(horizon_of(f, PARTITION), horizon);
	check_page(f, view_at(f, 3 * SECOND), 0, 'a');
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, PARTITION, at_time(3 * SECOND)), 0);
	check_page(f, 0, 0, 'a');
}

static void test_a_locked_device_keeps_every_moment(void **state)
{
	struct fixture *f = *state;

	write_page(f, 2 * SECOND, 0, 'a');
	f->now = 4 * SECOND;
	lock(f, 0, ENGINE_RETAIN_SNAPSHOTS);
	assert_false(write_much(f));
	check_page(f, view_at(f, 3 * SECOND), 0, 'a');
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(3 * SECOND)), 0);
	check_page(f, 0, 0, 'a');
}

/* Small changes are still possible, each of which looks for room. */
static void test_what_was_locked_makes_room_bit_by_bit_when_the_lock_is_over(void **state)
{
	const struct engine_address address = { .partition = PARTITION, .object = OBJECT };
	struct fixture *f = *state;
	uint64_t full;

	write_page(f, 2 * SECOND, 0, 'a');
	f->now = 4 * SECOND;
	lock(f, 0, ENGINE_RETAIN_SNAPSHOTS);
	assert_false(write_much(f));
	full = f->now;
	for (uint64_t change = 0; change < 60; change++) {
		struct engine_merge_result total = { 0 };

		f->now += SECOND;
		begin(f, ENGINE_FREE);
		assert_int_equal(
			engine_set_time(f->txn, address, ENGINE_TIME_DATA_ACCESSED, change), 0);
		commit(f);
		engine_merge(f->engine, &total);
	}
	f->now = YEARS + SECOND;
	assert_int_equal(
		try_policy(f, OTHERS, (struct engine_retention){ .kind = ENGINE_RETAIN_ALL }), 0);
	engine_merge(f->engine, &(struct engine_merge_result){ 0 });
	assert_int_not_equal(view_at(f, full / 2), 0);
	assert_true(write_much(f));
	assert_int_equal(view_at(f, 3 * SECOND), 0);
	assert_int_not_equal(view_at(f, f->now - 20 * SECOND), 0);
}

static void test_an_unlocked_default_gives_up_the_oldest(void **state)
{
	struct fixture *f = *state;

	write_page(f, 2 * SECOND, 0, 'a');
	assert_true(write_much(f));
	assert_int_equal(view_at(f, 3 * SECOND), 0);
}

/* ---- what may follow a lock ---- */

static void test_a_lock_without_limit_takes_none_later(void **state)
{
	struct engine_retention retention = { .kind = ENGINE_RETAIN_SNAPSHOTS,
					      .locked_until_ms = YEARS };
	struct fixture *f = *state;

	lock(f, PARTITION, ENGINE_RETAIN_SNAPSHOTS);
	retention.keep_all_ms = 100 * SECOND;
	assert_int_equal(try_policy(f, PARTITION, retention), -EPERM);
	retention.kind = ENGINE_RETAIN_ALL;
	assert_int_equal(try_policy(f, PARTITION, retention), 0);
}

/* The moments of the device are those that every partition keeps. */
static void test_under_a_locked_device_no_partition_begins_to_keep_less_than_all(void **state)
{
	struct engine_retention retention = { .kind = ENGINE_RETAIN_SNAPSHOTS,
					      .keep_all_ms = 200 * SECOND,
					      .locked_until_ms = YEARS };
	struct fixture *f = *state;
	uint64_t horizon;

	retention.keep_all_ms = 100 * SECOND;
	assert_int_equal(try_policy(f, 0, retention), 0);
	horizon = horizon_of(f, 0);
	retention.keep_all_ms = 200 * SECOND;
	assert_int_equal(try_policy(f, PARTITION, retention), -EPERM);
	retention.kind = ENGINE_RETAIN_ALL;
	assert_int_equal(try_policy(f, PARTITION, retention), 0);
	assert_int_equal(horizon_of(f, 0), horizon);
}

/* ---- clones ---- */

static void clone_at(struct fixture *f, uint64_t ms)
{
	f->now = ms;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone(f->txn, PARTITION,
				      (struct engine_moment){ .kind = ENGINE_NOW }, CLONE, true,
				      NULL),
			 0);
	commit(f);
}

static void test_a_locked_clone_that_is_refreshed_loses_nothing(void **state)
{
	const struct engine_address address = { .partition = CLONE, .object = OBJECT };
	struct fixture *f = *state;
	uint64_t horizon;

	write_page(f, 2 * SECOND, 0, 'a');
	clone_at(f, 4 * SECOND);
	lock(f, CLONE, ENGINE_RETAIN_ALL);
	horizon = horizon_of(f, CLONE);
	f->now = 6 * SECOND;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, address, 0, "mine", 4), 0);
	commit(f);
	write_page(f, 8 * SECOND, 0, 'b');
	f->now = 10 * SECOND;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone_refresh(f->txn, CLONE), 0);
	commit(f);
	merge_all(f);
	check_page_of(f, CLONE, 0, 0, 'b');
	assert_int_equal(horizon_of(f, CLONE), horizon);
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, CLONE, at_time(7 * SECOND)), 0);
	begin(f, ENGINE_READ);
	{
		char bytes[5] = "";
		uint64_t got;

		assert_int_equal(engine_read(f->txn, address, 0, bytes, 4, &got), 0);
		assert_string_equal(bytes, "mine");
	}
	commit(f);
}

static void test_a_refresh_leaves_the_history_of_a_locked_device(void **state)
{
	struct fixture *f = *state;
	uint64_t horizon;

	write_page(f, 2 * SECOND, 0, 'a');
	clone_at(f, 4 * SECOND);
	lock(f, 0, ENGINE_RETAIN_ALL);
	horizon = horizon_of(f, 0);
	write_page(f, 8 * SECOND, 0, 'b');
	f->now = 10 * SECOND;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone_refresh(f->txn, CLONE), 0);
	commit(f);
	merge_all(f);
	assert_int_equal(horizon_of(f, 0), horizon);
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(7 * SECOND)), 0);
	check_page_of(f, CLONE, 0, 0, 'a');
	check_page(f, 0, 0, 'a');
}

/*
 * Not that of a partition which was removed when its lock was over, even if the clock that said so
 * was ahead.
 */
static void test_a_format_waits_for_the_locks_of_what_is_there(void **state)
{
	struct fixture *f = *state;

	write_page(f, 2 * SECOND, 0, 'a');
	lock(f, PARTITION, ENGINE_RETAIN_ALL);
	assert_int_equal(engine_reformat(f->engine), -EPERM);
	f->now = YEARS + SECOND;
	remove_partition(f, PARTITION);
	f->now = 4 * SECOND;
	lock(f, OTHERS, ENGINE_RETAIN_ALL);
	assert_int_equal(engine_reformat(f->engine), -EPERM);
	f->now = YEARS + 2 * SECOND;
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_partition_remove(f->txn, OTHERS, true), 0);
	commit(f);
	f->now = 5 * SECOND;
	assert_int_equal(engine_reformat(f->engine), 0);
}

/* It had another index: what is locked is not the one that was there then. */
static void test_nor_where_its_id_was_that_of_an_earlier_one(void **state)
{
	struct fixture *f = *state;

	write_page(f, 5 * SECOND, 0, 'a');
	f->now = 10 * SECOND;
	remove_partition(f, PARTITION);
	create_at(f, 20 * SECOND, PARTITION);
	write_page(f, 25 * SECOND, 0, 'b');
	f->now = 30 * SECOND;
	lock(f, PARTITION, ENGINE_RETAIN_SNAPSHOTS);
	f->now = 40 * SECOND;
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(7 * SECOND)), -EPERM);
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(28 * SECOND)), 0);
	check_page(f, 0, 0, 'b');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLASH_TEST(test_the_device_does_not_go_back_before_a_locked_partition),
		FLASH_TEST(test_neither_does_it_when_the_partition_takes_its_lock_from_the_device),
		FLASH_TEST(test_the_device_does_not_go_where_a_locked_partition_was_removed),
		FLASH_TEST(test_nor_where_its_id_was_that_of_an_earlier_one),
		FLASH_TEST(test_what_comes_back_costs_nothing_of_what_is_locked),
		FLASH_TEST(test_a_lock_without_more_keeps_every_moment),
		FLASH_TEST(test_a_locked_device_keeps_every_moment),
		FLASH_TEST(test_what_was_locked_makes_room_bit_by_bit_when_the_lock_is_over),
		FLASH_TEST(test_an_unlocked_default_gives_up_the_oldest),
		FLASH_TEST(test_a_lock_without_limit_takes_none_later),
		FLASH_TEST(test_under_a_locked_device_no_partition_begins_to_keep_less_than_all),
		FLASH_TEST(test_a_locked_clone_that_is_refreshed_loses_nothing),
		FLASH_TEST(test_a_refresh_leaves_the_history_of_a_locked_device),
		FLASH_TEST(test_a_format_waits_for_the_locks_of_what_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
