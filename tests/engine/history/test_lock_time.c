/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Locks count the time that the device is open. No clock ends one, and what one has kept is there
 * when it has ended, until somebody needs the room.
 */
#include "engine/objects/objects.h"
#include "tests/engine/fixture.h"

enum { DAY = 86400 * SECOND, LOCKED = 20 * DAY };

static void lock(struct fixture *f, uint64_t partition, uint64_t until_ms)
{
	assert_int_equal(try_kind(f, partition, ENGINE_RETAIN_SNAPSHOTS, until_ms), 0);
}

/* The day on which the lock ends; 0: there is none. */
static uint64_t locked_until(struct fixture *f, uint64_t partition)
{
	struct engine_retention retention;

	begin(f, ENGINE_READ);
	assert_int_equal(engine_retention_get(f->txn, partition, &retention), 0);
	commit(f);
	return retention.locked_until_ms;
}

static bool is_locked(struct fixture *f, uint64_t partition)
{
	bool locked = locked_until(f, partition) != 0;

	assert_int_equal(try_kind(f, partition, ENGINE_RETAIN_NONE, 0), locked ? -EPERM : 0);
	return locked;
}

static void unlock(struct fixture *f, uint64_t partition)
{
	struct engine_retention retention;

	begin(f, ENGINE_RESCUE);
	assert_int_equal(engine_retention_get(f->txn, partition, &retention), 0);
	retention.locked_until_ms = 0;
	assert_int_equal(end(f, engine_retention_set(f->txn, partition, &retention, true)), 0);
}

/* The clock is set, and no time passes. */
static void set_clock(struct fixture *f, uint64_t ms)
{
	f->jumped += ms - f->now;
	f->now = ms;
}

static void close_for(struct fixture *f, uint64_t ms)
{
	assert_int_equal(engine_close(f->engine), 0);
	set_clock(f, f->now + ms);
	reopen(f);
}

/* ---- how long it lasts ---- */

static void test_a_clock_that_is_set_ahead_ends_no_lock(void **state)
{
	struct fixture *f = *state;

	lock(f, PARTITION, f->now + LOCKED);
	lock(f, 0, f->now + LOCKED);
	set_clock(f, 1000 * (uint64_t)DAY);
	assert_true(is_locked(f, PARTITION));
	assert_true(is_locked(f, 0));
	assert_int_equal(engine_reformat(f->engine), -EPERM);
	begin(f, ENGINE_FREE);
	assert_int_equal(end(f, engine_partition_remove(f->txn, PARTITION, true)), -EPERM);
	crash(f);
	assert_true(is_locked(f, PARTITION));
	set_clock(f, SECOND);
	assert_true(is_locked(f, PARTITION));
	f->now += LOCKED;
	assert_false(is_locked(f, PARTITION));
}

static void test_a_lock_ends_when_the_device_has_run_so_long(void **state)
{
	struct fixture *f = *state;

	lock(f, PARTITION, f->now + LOCKED);
	f->now += LOCKED - SECOND;
	assert_true(is_locked(f, PARTITION));
	f->now += SECOND;
	assert_false(is_locked(f, PARTITION));
}

static void test_time_while_the_device_is_closed_does_not_count(void **state)
{
	struct fixture *f = *state;
	uint64_t until = f->now + LOCKED;

	lock(f, PARTITION, until);
	f->now += LOCKED / 2;
	close_for(f, 10 * (uint64_t)LOCKED);
	assert_true(is_locked(f, PARTITION));
	/* It ends so much later. */
	assert_int_equal(locked_until(f, PARTITION), until + 10 * (uint64_t)LOCKED);
	f->now += LOCKED / 2 - 1;
	assert_true(is_locked(f, PARTITION));
	f->now += 1;
	assert_false(is_locked(f, PARTITION));
}

/* A device that nobody uses keeps account of the time too. */
static void test_a_crash_takes_back_a_minute_at_most(void **state)
{
	struct fixture *f = *state;
	const uint64_t until = f->now + LOCKED;

	lock(f, PARTITION, until);
	for (int looks = 0; looks < 100000; looks++) {
		f->now += SECOND / 2;
		engine_keep_time(f->engine, ENGINE_KEEP_TIME_MS);
	}
	crash(f);
	assert_in_range(locked_until(f, PARTITION), until, until + ENGINE_KEEP_TIME_MS);
}

static void test_the_account_of_time_takes_no_room(void **state)
{
	struct fixture *f = *state;
	const uint64_t committed = f->engine->committed;

	f->engine->options.merge_manual = false;
	/* Three times what the device holds. Each record takes the place of the one before. */
	for (int looks = 0; looks < 20000; looks++) {
		f->now += ENGINE_KEEP_TIME_MS;
		engine_keep_time(f->engine, ENGINE_KEEP_TIME_MS);
		assert_int_equal(device_time_owed(f->engine), 0);
	}
	assert_int_equal(f->engine->committed, committed);
	write_page(f, f->now, 0, 'a');
}

static void test_a_format_goes_on_with_device_time(void **state)
{
	struct fixture *f = *state;
	uint64_t passed;

	f->now += DAY;
	passed = device_time_now(f->engine);
	assert_int_equal(engine_reformat(f->engine), 0);
	assert_true(device_time_now(f->engine) >= passed);
	crash(f);
	assert_true(device_time_now(f->engine) >= passed);
}

static void test_the_same_day_by_a_clock_that_differs_a_little_is_no_shorter_lock(void **state)
{
	struct fixture *f = *state;
	const uint64_t until = f->now + LOCKED;

	lock(f, PARTITION, until);
	/* The clock gains some seconds. */
	set_clock(f, f->now + 50 * SECOND);
	lock(f, PARTITION, until);
	assert_int_equal(locked_until(f, PARTITION), until + 50 * SECOND);
	set_clock(f, f->now + 50 * SECOND);
	assert_int_equal(try_kind(f, PARTITION, ENGINE_RETAIN_SNAPSHOTS, until), -EPERM);
}

/* ---- what it has kept ---- */

static int try_write(struct fixture *f, uint64_t partition)
{
	const struct engine_address address = { .partition = partition, .object = OBJECT };
	static const char bytes[16 * PAGE];

	begin(f, ENGINE_WRITE);
	return end(f, engine_write(f->txn, address, 0, bytes, sizeof(bytes)));
}

/* Writes to a partition until the device takes no more, which merges by itself. */
static void fill(struct fixture *f, uint64_t partition)
{
	int refused = 0;

	f->engine->options.merge_manual = false;
	for (int n = 0; refused < 50; n++) {
		int result = try_write(f, partition);

		assert_true(result == 0 || result == -ENOSPC);
		assert_true(n < 100000);
		refused = result ? refused + 1 : 0;
		f->now += SECOND;
	}
}

/* All that comes from who looks, keeps and goes back, and stores nothing. */
static void do_all_but_store(struct fixture *f)
{
	struct engine_stat stat;

	for (int n = 0; n < 2000; n++) {
		f->now += SECOND;
		begin(f, ENGINE_READ);
		assert_int_equal(engine_accessed(f->txn, object(OBJECT), true, true), 0);
		assert_int_equal(engine_stat(f->txn, object(OBJECT), &stat), 0);
		commit(f);
		begin(f, ENGINE_HISTORY);
		end(f, engine_snapshot(f->txn, OTHERS, NULL, NULL));
		begin(f, ENGINE_HISTORY);
		end(f, engine_rollback(f->txn, OTHERS, at_time(f->now - 2 * SECOND)));
		assert_int_equal(try_kind(f, OTHERS, ENGINE_RETAIN_ALL, 0), 0);
		if (n % 100 == 0)
			engine_flush(f->engine);
	}
}

static void write_until_given_up(struct fixture *f, uint64_t ms)
{
	for (int n = 0; view_at(f, ms); n++) {
		int result = try_write(f, OTHERS);

		assert_true(result == 0 || result == -ENOSPC);
		assert_true(n < 100000);
		f->now += SECOND;
	}
}

/* Space is made bit by bit, so some are refused. */
static void write_much(struct fixture *f)
{
	for (int written = 0, n = 0; written < 200; n++) {
		written += try_write(f, OTHERS) == 0;
		f->now += SECOND;
		assert_true(n < 10000);
	}
}

static void test_unlock_keeps_the_past_until_room_is_needed(void **state)
{
	struct fixture *f = *state;

	write_page(f, 5 * SECOND, 0, 'a');
	f->now = 10 * SECOND;
	lock(f, 0, f->now + LOCKED);
	fill(f, PARTITION);
	unlock(f, 0);
	do_all_but_store(f);
	assert_int_equal(try_rollback(f, ENGINE_HISTORY, PARTITION, at_time(7 * SECOND)), 0);
	check_page(f, 0, 0, 'a');
	assert_int_equal(try_kind(f, OTHERS, ENGINE_RETAIN_SNAPSHOTS, 0), 0);
	write_until_given_up(f, 7 * SECOND);
	write_much(f);
}

/* While only one is locked, others give up theirs, and that goes far beyond what is locked. */
static void keep_while_others_give_up(struct fixture *f)
{
	write_page(f, 5 * SECOND, 0, 'a');
	write_page(f, 7 * SECOND, 0, 'b');
	f->now = 10 * SECOND;
	lock(f, PARTITION, f->now + LOCKED);
	f->engine->options.merge_manual = false;
	for (int n = 0; horizon_of(f, OTHERS) <= horizon_of(f, PARTITION); n++) {
		int result = try_write(f, OTHERS);

		assert_true(result == 0 || result == -ENOSPC);
		assert_true(n < 100000);
		f->now += SECOND;
	}
}

static void test_unlock_of_one_partition_keeps_what_others_have_given_up(void **state)
{
	struct fixture *f = *state;

	keep_while_others_give_up(f);
	unlock(f, PARTITION);
	crash(f);
	assert_int_equal(try_rollback(f, ENGINE_HISTORY, PARTITION, at_time(6 * SECOND)), 0);
	check_page(f, 0, 0, 'a');
}

static void test_so_does_a_lock_that_ends(void **state)
{
	struct fixture *f = *state;

	keep_while_others_give_up(f);
	f->now += LOCKED;
	engine_keep_time(f->engine, 0);
	crash(f);
	assert_int_equal(locked_until(f, PARTITION), 0);
	/* A policy that says the same takes nothing either. */
	assert_int_equal(try_kind(f, PARTITION, ENGINE_RETAIN_SNAPSHOTS, 0), 0);
	check_page(f, view_at(f, 6 * SECOND), 0, 'a');
	f->engine->options.merge_manual = false;
	write_until_given_up(f, 6 * SECOND);
	check_page(f, 0, 0, 'b');
}

/* ---- what others use up ---- */

static void expect_the_way_back(struct fixture *f, uint64_t partition, uint64_t ms)
{
	assert_int_equal(try_rollback(f, ENGINE_HISTORY, partition, at_time(ms)), 0);
	check_text(f, object(OBJECT), "one");
	assert_int_not_equal(try_view_of(f, partition, at_time(ms)), 0);
}

/* Nobody can drop them before the lock ends, but each moment is there without a number. */
static void test_versions_that_others_make_leave_the_way_back(void **state)
{
	struct fixture *f = *state;
	uint32_t made = 0;
	int result;

	put_text_at(f, 10, "unused");
	f->now = 12 * SECOND;
	lock(f, PARTITION, f->now + LOCKED);
	do {
		begin(f, ENGINE_HISTORY);
		result = end(f, engine_snapshot(f->txn, PARTITION, NULL, NULL));
	} while (result == 0 && ++made);
	assert_int_equal(result, -EFBIG);
	assert_int_equal(made, ENGINE_PARTITION_VERSION_LAST);
	put_text_at(f, 20, "encrypted");
	expect_the_way_back(f, PARTITION, 5 * SECOND);
}

/* As many partitions as there may be: no clone can be made, and all else is as before. */
static void test_partitions_that_others_make_leave_the_way_back(void **state)
{
	const struct engine_moment now = { .kind = ENGINE_NOW };
	struct fixture *f = *state;
	uint64_t made = 0;
	int result;

	lock(f, 0, f->now + LOCKED);
	put_text_at(f, 20, "encrypted");
	do {
		begin(f, ENGINE_WRITE);
		result = end(f, engine_partition_create(f->txn, CLONE + made, NULL));
		f->now += 1;
	} while (result == 0 && ++made);
	assert_int_equal(result, -EFBIG);
	assert_true(made > 65000);
	begin(f, ENGINE_WRITE);
	assert_int_equal(end(f, engine_clone(f->txn, PARTITION, now, 0, true, NULL)), -EFBIG);
	expect_the_way_back(f, PARTITION, 5 * SECOND);
}

static int setup_with_text(void **state)
{
	struct fixture *f;

	setup_on_memory(state);
	f = *state;
	f->now = 2 * SECOND;
	make_text_object(f);
	f->now = 8 * SECOND;
	return 0;
}

#define TEXT_TEST(name) cmocka_unit_test_setup_teardown(name, setup_with_text, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLASH_TEST(test_a_clock_that_is_set_ahead_ends_no_lock),
		FLASH_TEST(test_a_lock_ends_when_the_device_has_run_so_long),
		FLASH_TEST(test_time_while_the_device_is_closed_does_not_count),
		FLASH_TEST(test_a_crash_takes_back_a_minute_at_most),
		FLASH_TEST(test_the_account_of_time_takes_no_room),
		FLASH_TEST(test_a_format_goes_on_with_device_time),
		FLASH_TEST(test_the_same_day_by_a_clock_that_differs_a_little_is_no_shorter_lock),
		FLASH_TEST(test_unlock_keeps_the_past_until_room_is_needed),
		FLASH_TEST(test_unlock_of_one_partition_keeps_what_others_have_given_up),
		FLASH_TEST(test_so_does_a_lock_that_ends),
		TEXT_TEST(test_versions_that_others_make_leave_the_way_back),
		TEXT_TEST(test_partitions_that_others_make_leave_the_way_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
