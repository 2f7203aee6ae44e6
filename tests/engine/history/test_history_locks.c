/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What a lock promises: whatever commands come, until its day is over nothing gets shorter of what
 * could be reached.
 */
#include "tests/engine/device_fixture.h"

enum { YEARS = 1000000000 };

static int try_policy(struct device *device, uint64_t partition, struct engine_retention retention)
{
	begin(device, ENGINE_RESCUE);
	return end(device, engine_retention_set(device->txn, partition, &retention, false));
}

static void lock(struct device *device, uint64_t partition, enum engine_retention_kind kind)
{
	const struct engine_retention retention = { .kind = kind, .locked_until_ms = YEARS };

	assert_int_equal(try_policy(device, partition, retention), 0);
}

static int try_rollback_to(struct device *device, uint64_t partition, struct engine_moment to)
{
	begin(device, ENGINE_RESCUE);
	return end(device, engine_rollback(device->txn, partition, to));
}

static int try_rollback(struct device *device, uint64_t partition, uint64_t ms)
{
	return try_rollback_to(device, partition,
			       (struct engine_moment){ .kind = ENGINE_AT_TIME, .value = ms });
}

static uint64_t horizon_of(struct device *device, uint64_t partition)
{
	struct engine_history history;

	begin(device, ENGINE_READ);
	assert_int_equal(engine_history(device->txn, partition, &history), 0);
	commit(device);
	return history.horizon_sequence;
}

static void create_at(struct device *device, uint64_t ms, uint64_t partition)
{
	device->now = ms;
	create(device, partition);
}

static int try_write(struct device *device)
{
	const struct engine_address address = { .partition = PARTITION, .object = OBJECT };
	char bytes[16 * PAGE] = { 0 };
	int result;

	begin(device, ENGINE_WRITE);
	result = engine_write(device->txn, address, 0, bytes, sizeof(bytes));
	if (result)
		engine_abort(device->txn);
	else
		result = engine_commit(device->txn, false);
	device->txn = NULL;
	return result;
}

/*
 * Overwrites a few pages again and again, more than the device can keep. False: it refused one of
 * the writes.
 */
static bool write_much(struct device *device)
{
	for (int round = 0; round < 600; round++) {
		int result = try_write(device);

		device->now += SECOND;
		/* Room is made by hand. */
		for (int step = 0; result == -ENOSPC && step < 500; step++) {
			struct engine_merge_result total = { 0 };

			engine_merge(device->engine, &total);
			if (step % 16 == 15)
				result = try_write(device);
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
	struct device *device = *state;

	write_page(device, 2 * SECOND, 0, 'a');
	create_at(device, 5 * SECOND, CLONE);
	device->now = 6 * SECOND;
	lock(device, CLONE, ENGINE_RETAIN_ALL);
	write_page(device, 8 * SECOND, 0, 'b');
	device->now = 10 * SECOND;
	assert_int_equal(try_rollback(device, 0, 3 * SECOND), -EPERM);
	assert_int_equal(engine_reformat(device->engine), -EPERM);
	/* Nothing has happened; a moment at which it was there already is no harm. */
	check_page(device, 0, 0, 'b');
	assert_int_equal(try_rollback(device, 0, 7 * SECOND), 0);
	check_page(device, 0, 0, 'a');
	assert_int_equal(engine_reformat(device->engine), -EPERM);
	/* The others go back alone, and when the lock is over everything does. */
	assert_int_equal(try_rollback(device, PARTITION, 9 * SECOND), 0);
	device->now = YEARS + SECOND;
	assert_int_equal(try_rollback(device, 0, 3 * SECOND), 0);
}

static void test_neither_does_it_when_the_partition_takes_its_lock_from_the_device(void **state)
{
	struct device *device = *state;

	write_page(device, 2 * SECOND, 0, 'a');
	device->now = 3 * SECOND;
	lock(device, 0, ENGINE_RETAIN_ALL);
	create_at(device, 5 * SECOND, CLONE);
	device->now = 6 * SECOND;
	assert_int_equal(try_rollback(device, 0, 3 * SECOND), -EPERM);
	assert_int_equal(try_rollback(device, 0, 5 * SECOND), 0);
}

/* It was made long ago, removed, and came back: between the two it was not there either. */
static void test_the_device_does_not_go_where_a_locked_partition_was_removed(void **state)
{
	struct device *device = *state;

	write_page(device, 2 * SECOND, 0, 'a');
	device->now = 4 * SECOND;
	remove_partition(device);
	device->now = 8 * SECOND;
	roll_back_device(device, ENGINE_AT_TIME, 3 * SECOND);
	lock(device, PARTITION, ENGINE_RETAIN_ALL);
	device->now = 10 * SECOND;
	assert_int_equal(try_rollback(device, 0, 6 * SECOND), -EPERM);
	check_page(device, 0, 0, 'a');
}

/* What comes back has less of its own past than others have of theirs, and they keep it. */
static void test_what_comes_back_costs_nothing_of_what_is_locked(void **state)
{
	const struct engine_retention hourly = { .kind = ENGINE_RETAIN_NONE,
						 .keep_interval_ms = 10 * SECOND,
						 .keep_interval_for_ms = 1000 * SECOND,
						 .locked_until_ms = YEARS };
	struct device *device = *state;
	uint32_t version;

	set_policy(device, OTHERS, 0, 0, 0);
	assert_int_equal(try_policy(device, PARTITION, hourly), 0);
	set_policy(device, 0, 0, 10 * SECOND, 1000 * SECOND);
	for (uint64_t second = 2; second <= 50; second += 2)
		write_page(device, second * SECOND, 0, (char)second);
	version = take_snapshot(device, 0);
	merge_all(device);
	device->now = 51 * SECOND;
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_partition_remove(device->txn, OTHERS, true), 0);
	commit(device);
	device->now = 53 * SECOND;
	assert_int_equal(try_rollback_to(device, 0,
					 (struct engine_moment){ .kind = ENGINE_AT_VERSION,
								 .value = version }),
			 0);
	device->now = 54 * SECOND;
	merge_all(device);
	for (uint64_t second = 10; second <= 40; second += 10)
		check_page(device, view_at(device, second * SECOND), 0, (char)second);
}

/* ---- what a lock keeps ---- */

static void test_a_lock_without_more_keeps_every_moment(void **state)
{
	struct device *device = *state;
	uint64_t horizon;

	write_page(device, 2 * SECOND, 0, 'a');
	device->now = 4 * SECOND;
	lock(device, PARTITION, ENGINE_RETAIN_SNAPSHOTS);
	horizon = horizon_of(device, PARTITION);
	assert_false(write_much(device));
	assert_int_equal(horizon_of(device, PARTITION), horizon);
	check_page(device, view_at(device, 3 * SECOND), 0, 'a');
	assert_int_equal(try_rollback(device, PARTITION, 3 * SECOND), 0);
	check_page(device, 0, 0, 'a');
}

static void test_a_locked_device_keeps_every_moment(void **state)
{
	struct device *device = *state;

	write_page(device, 2 * SECOND, 0, 'a');
	device->now = 4 * SECOND;
	lock(device, 0, ENGINE_RETAIN_SNAPSHOTS);
	assert_false(write_much(device));
	check_page(device, view_at(device, 3 * SECOND), 0, 'a');
	assert_int_equal(try_rollback(device, 0, 3 * SECOND), 0);
	check_page(device, 0, 0, 'a');
}

/* Small changes are still possible, each of which looks for room. */
static void test_what_was_locked_makes_room_bit_by_bit_when_the_lock_is_over(void **state)
{
	const struct engine_address address = { .partition = PARTITION, .object = OBJECT };
	struct device *device = *state;
	uint64_t full;

	write_page(device, 2 * SECOND, 0, 'a');
	device->now = 4 * SECOND;
	lock(device, 0, ENGINE_RETAIN_SNAPSHOTS);
	assert_false(write_much(device));
	full = device->now;
	for (uint64_t change = 0; change < 60; change++) {
		struct engine_merge_result total = { 0 };

		device->now += SECOND;
		begin(device, ENGINE_FREE);
		assert_int_equal(
			engine_set_time(device->txn, address, ENGINE_TIME_DATA_ACCESSED, change),
			0);
		commit(device);
		engine_merge(device->engine, &total);
	}
	device->now = YEARS + SECOND;
	assert_int_equal(
		try_policy(device, OTHERS, (struct engine_retention){ .kind = ENGINE_RETAIN_ALL }),
		0);
	engine_merge(device->engine, &(struct engine_merge_result){ 0 });
	assert_int_not_equal(view_at(device, full / 2), 0);
	assert_true(write_much(device));
	assert_int_equal(view_at(device, 3 * SECOND), 0);
	assert_int_not_equal(view_at(device, device->now - 20 * SECOND), 0);
}

static void test_an_unlocked_default_gives_up_the_oldest(void **state)
{
	struct device *device = *state;

	write_page(device, 2 * SECOND, 0, 'a');
	assert_true(write_much(device));
	assert_int_equal(view_at(device, 3 * SECOND), 0);
}

/* ---- what may follow a lock ---- */

static void test_a_lock_without_limit_takes_none_later(void **state)
{
	struct engine_retention retention = { .kind = ENGINE_RETAIN_SNAPSHOTS,
					      .locked_until_ms = YEARS };
	struct device *device = *state;

	lock(device, PARTITION, ENGINE_RETAIN_SNAPSHOTS);
	retention.keep_all_ms = 100 * SECOND;
	assert_int_equal(try_policy(device, PARTITION, retention), -EPERM);
	retention.kind = ENGINE_RETAIN_ALL;
	assert_int_equal(try_policy(device, PARTITION, retention), 0);
}

/* The moments of the device are those that every partition keeps. */
static void test_under_a_locked_device_no_partition_begins_to_keep_less_than_all(void **state)
{
	struct engine_retention retention = { .kind = ENGINE_RETAIN_SNAPSHOTS,
					      .keep_all_ms = 200 * SECOND,
					      .locked_until_ms = YEARS };
	struct device *device = *state;
	uint64_t horizon;

	retention.keep_all_ms = 100 * SECOND;
	assert_int_equal(try_policy(device, 0, retention), 0);
	horizon = horizon_of(device, 0);
	retention.keep_all_ms = 200 * SECOND;
	assert_int_equal(try_policy(device, PARTITION, retention), -EPERM);
	retention.kind = ENGINE_RETAIN_ALL;
	assert_int_equal(try_policy(device, PARTITION, retention), 0);
	assert_int_equal(horizon_of(device, 0), horizon);
}

/* ---- clones ---- */

static void clone_at(struct device *device, uint64_t ms)
{
	device->now = ms;
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_clone(device->txn, PARTITION,
				      (struct engine_moment){ .kind = ENGINE_NOW }, CLONE, true,
				      NULL),
			 0);
	commit(device);
}

static void test_a_locked_clone_that_is_refreshed_loses_nothing(void **state)
{
	const struct engine_address address = { .partition = CLONE, .object = OBJECT };
	struct device *device = *state;
	uint64_t horizon;

	write_page(device, 2 * SECOND, 0, 'a');
	clone_at(device, 4 * SECOND);
	lock(device, CLONE, ENGINE_RETAIN_ALL);
	horizon = horizon_of(device, CLONE);
	device->now = 6 * SECOND;
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_write(device->txn, address, 0, "mine", 4), 0);
	commit(device);
	write_page(device, 8 * SECOND, 0, 'b');
	device->now = 10 * SECOND;
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_clone_refresh(device->txn, CLONE), 0);
	commit(device);
	merge_all(device);
	check_page_of(device, CLONE, 0, 0, 'b');
	assert_int_equal(horizon_of(device, CLONE), horizon);
	assert_int_equal(try_rollback(device, CLONE, 7 * SECOND), 0);
	begin(device, ENGINE_READ);
	{
		char bytes[5] = "";
		uint64_t got;

		assert_int_equal(engine_read(device->txn, address, 0, bytes, 4, &got), 0);
		assert_string_equal(bytes, "mine");
	}
	commit(device);
}

static void test_a_refresh_leaves_the_history_of_a_locked_device(void **state)
{
	struct device *device = *state;
	uint64_t horizon;

	write_page(device, 2 * SECOND, 0, 'a');
	clone_at(device, 4 * SECOND);
	lock(device, 0, ENGINE_RETAIN_ALL);
	horizon = horizon_of(device, 0);
	write_page(device, 8 * SECOND, 0, 'b');
	device->now = 10 * SECOND;
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_clone_refresh(device->txn, CLONE), 0);
	commit(device);
	merge_all(device);
	assert_int_equal(horizon_of(device, 0), horizon);
	assert_int_equal(try_rollback(device, 0, 7 * SECOND), 0);
	check_page_of(device, CLONE, 0, 0, 'a');
	check_page(device, 0, 0, 'a');
}

/*
 * Not that of a partition which was removed when its lock was over, even if the clock that said so
 * was ahead.
 */
static void test_a_format_waits_for_the_locks_of_what_is_there(void **state)
{
	struct device *device = *state;

	write_page(device, 2 * SECOND, 0, 'a');
	lock(device, PARTITION, ENGINE_RETAIN_ALL);
	assert_int_equal(engine_reformat(device->engine), -EPERM);
	device->now = YEARS + SECOND;
	remove_partition(device);
	device->now = 4 * SECOND;
	lock(device, OTHERS, ENGINE_RETAIN_ALL);
	assert_int_equal(engine_reformat(device->engine), -EPERM);
	device->now = YEARS + 2 * SECOND;
	begin(device, ENGINE_FREE);
	assert_int_equal(engine_partition_remove(device->txn, OTHERS, true), 0);
	commit(device);
	device->now = 5 * SECOND;
	assert_int_equal(engine_reformat(device->engine), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_device_does_not_go_back_before_a_locked_partition),
		TEST(test_neither_does_it_when_the_partition_takes_its_lock_from_the_device),
		TEST(test_the_device_does_not_go_where_a_locked_partition_was_removed),
		TEST(test_what_comes_back_costs_nothing_of_what_is_locked),
		TEST(test_a_lock_without_more_keeps_every_moment),
		TEST(test_a_locked_device_keeps_every_moment),
		TEST(test_what_was_locked_makes_room_bit_by_bit_when_the_lock_is_over),
		TEST(test_an_unlocked_default_gives_up_the_oldest),
		TEST(test_a_lock_without_limit_takes_none_later),
		TEST(test_under_a_locked_device_no_partition_begins_to_keep_less_than_all),
		TEST(test_a_locked_clone_that_is_refreshed_loses_nothing),
		TEST(test_a_refresh_leaves_the_history_of_a_locked_device),
		TEST(test_a_format_waits_for_the_locks_of_what_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
