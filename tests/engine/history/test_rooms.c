/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The rooms of a full device: what is done with one of them, however often, leaves those behind it
 * to what they are for. A partition whose history is locked can be gone back to from each of these
 * states.
 *
 * Runs for each index.
 */
#include "engine/history/slow_lane.h"
#include "engine/objects/objects.h"
#include "tests/engine/fixture.h"

enum { YEARS = 1000000000, GOOD = 5 * SECOND, OFTEN = 60000 };

/* What fails for room, and for nothing else. */
static int end_full(struct fixture *f, int result)
{
	result = end(f, result);
	assert_true(result == 0 || result == -ENOSPC);
	return result;
}

static int set_kind_full(struct fixture *f, uint64_t partition, enum engine_retention_kind kind,
			 uint64_t locked_until_ms, bool administrator)
{
	const struct engine_retention retention = { .kind = kind,
						    .locked_until_ms = locked_until_ms };

	begin(f, ENGINE_RESCUE);
	return end_full(f, engine_retention_set(f->txn, partition, &retention, administrator));
}

static int go_back(struct fixture *f, uint64_t partition, uint64_t ms)
{
	const struct engine_moment to = { .kind = ENGINE_AT_TIME, .value = ms };

	begin(f, ENGINE_HISTORY);
	return end_full(f, engine_rollback(f->txn, partition, to));
}

static int go_back_to_version(struct fixture *f, uint64_t partition, uint32_t version)
{
	const struct engine_moment to = { .kind = ENGINE_AT_VERSION, .value = version };

	begin(f, ENGINE_HISTORY);
	return end_full(f, engine_rollback(f->txn, partition, to));
}

static int take_version(struct fixture *f, uint64_t partition)
{
	begin(f, ENGINE_HISTORY);
	return end_full(f, engine_snapshot(f->txn, partition, NULL, NULL));
}

static int drop_first_version(struct fixture *f, uint64_t partition)
{
	struct engine_version version;
	int result;

	begin(f, ENGINE_RESCUE);
	result = engine_version_next(f->txn, partition, 0, &version);
	assert_int_equal(result, 0);
	return end_full(f, engine_version_drop(f->txn, partition, version.version));
}

static int try_write(struct fixture *f, uint64_t partition, uint64_t length)
{
	const struct engine_address address = { .partition = partition, .object = OBJECT };
	static char bytes[16 * PAGE];

	begin(f, ENGINE_WRITE);
	return end_full(f, engine_write(f->txn, address, 0, bytes, length));
}

static int try_truncate(struct fixture *f, uint64_t length)
{
	const struct engine_address address = { .partition = PARTITION, .object = OBJECT };

	begin(f, ENGINE_FREE);
	return end_full(f, engine_truncate(f->txn, address, length));
}

/* Locks what PARTITION has at GOOD, and overwrites it until nothing can be written. */
static void fill(struct fixture *f)
{
	write_page(f, 2 * SECOND, 0, 'a');
	f->now = GOOD + SECOND;
	assert_int_equal(set_kind_full(f, PARTITION, ENGINE_RETAIN_SNAPSHOTS, YEARS, false), 0);
	for (uint64_t bytes = 16 * PAGE; bytes; bytes /= 2) {
		int written = 0;

		while (try_write(f, PARTITION, bytes) == 0) {
			f->now += SECOND;
			assert_true(written++ < OFTEN);
		}
	}
}

/* Removing, so that it leaves what came before to be kept. */
static void use_up_removing(struct fixture *f)
{
	int refused = 0;

	for (uint32_t n = 0; refused < 20; n++, f->now += SECOND) {
		assert_true(n < OFTEN);
		refused += try_truncate(f, n % 2 ? 100 : PAGE * 40) != 0;
	}
}

/*
 * Rollbacks of OTHERS, of whose past nothing is kept but a version, and policies that begin to keep
 * and end it.
 */
static void use_up_other_ways_back(struct fixture *f, uint32_t version)
{
	int rollbacks_refused = 0, policies_refused = 0;

	for (uint32_t n = 0; rollbacks_refused < 20 || policies_refused < 20; n++) {
		assert_true(n < OFTEN);
		if (n % 3 == 0)
			rollbacks_refused += go_back_to_version(f, OTHERS, version) != 0;
		else if (n % 3 == 1)
			policies_refused += set_kind_full(f, OTHERS, ENGINE_RETAIN_ALL, 0, false) !=
					    0;
		else
			assert_int_equal(set_kind_full(f, OTHERS, ENGINE_RETAIN_NONE, 0, false), 0);
	}
	/* The room is used up, and not the rollbacks that there may be. */
	assert_int_equal(go_back_to_version(f, OTHERS, version), -ENOSPC);
}

/*
 * Going back to what was locked, a longer lock, dropping; then what is done on the host, and room
 * for others.
 */
static void expect_the_way_out(struct fixture *f)
{
	uint32_t refused = 0;

	assert_int_equal(go_back(f, PARTITION, GOOD), 0);
	check_page(f, 0, 0, 'a');
	assert_int_equal(
		set_kind_full(f, PARTITION, ENGINE_RETAIN_SNAPSHOTS, YEARS + SECOND, false), 0);
	assert_int_equal(go_back(f, PARTITION, GOOD), 0);
	assert_int_equal(drop_first_version(f, OTHERS), 0);
	assert_int_equal(set_kind_full(f, OTHERS, ENGINE_RETAIN_NONE, 0, false), 0);
	assert_int_equal(set_kind_full(f, PARTITION, ENGINE_RETAIN_NONE, 0, true), 0);
	/* Moments of the device show what it was until now: the oldest go as room is needed. */
	f->engine->options.merge_manual = false;
	check_page(f, 0, 0, 'a');
	/* Space is made bit by bit, so the first writes may be refused. */
	while (try_write(f, OTHERS, 16 * PAGE))
		assert_true(refused++ < 50);
	for (int n = 0; n < 50; n++)
		assert_int_equal(try_write(f, OTHERS, 16 * PAGE), 0);
	assert_int_equal(try_truncate(f, 0), 0);
}

static uint32_t version_of_others(struct fixture *f)
{
	uint32_t version = take_snapshot(f, OTHERS, NULL);

	assert_int_equal(set_kind_full(f, OTHERS, ENGINE_RETAIN_NONE, 0, false), 0);
	return version;
}

static void test_writing_leaves_room_to_remove(void **state)
{
	version_of_others(*state);
	fill(*state);
	assert_int_equal(try_truncate(*state, 100), 0);
	expect_the_way_out(*state);
}

static void test_removing_leaves_room_to_go_back(void **state)
{
	version_of_others(*state);
	fill(*state);
	use_up_removing(*state);
	expect_the_way_out(*state);
}

static void test_snapshots_leave_room_to_go_back(void **state)
{
	struct fixture *f = *state;
	uint32_t n = 0;

	version_of_others(f);
	fill(f);
	while (take_version(f, OTHERS) == 0)
		assert_true(n++ < OFTEN);
	use_up_removing(f);
	expect_the_way_out(f);
}

static void test_going_back_elsewhere_leaves_room_to_go_back_in_what_is_locked(void **state)
{
	uint32_t version = version_of_others(*state);

	fill(*state);
	use_up_removing(*state);
	use_up_other_ways_back(*state, version);
	assert_int_equal(try_truncate(*state, 100), -ENOSPC);
	expect_the_way_out(*state);
}

static int try_back(struct fixture *f)
{
	return try_rollback(f, ENGINE_HISTORY, PARTITION, at_time(GOOD));
}

/*
 * Somebody who may go back in what is locked does so as fast as it goes, and looks at each present,
 * so that each takes an end of a slot; with all other rooms used up, until only the slow lane is
 * left. Then the owner is alone.
 */
static void test_going_back_in_what_is_locked_leaves_room_for_its_owner(void **state)
{
	const struct engine_moment now = { .kind = ENGINE_NOW };
	struct fixture *f = *state;
	uint32_t version = version_of_others(f), slowed = 0, written = 0;
	uint64_t sequence;

	fill(f);
	use_up_removing(f);
	use_up_other_ways_back(f, version);
	f->engine->options.merge_manual = false;
	for (uint32_t n = 0; slowed < 1000; n++) {
		int result;

		f->now += 2;
		begin(f, ENGINE_READ);
		assert_int_equal(engine_moment_resolve(f->txn, 0, now, &sequence), 0);
		commit(f);
		result = try_back(f);
		assert_true(n < OFTEN && (result == 0 || result == -ETIME));
		slowed += result != 0;
	}
	for (int n = 0; n < 50; n++) {
		f->now += SLOW_LANE_OF_ONE_MS;
		assert_int_equal(try_back(f), 0);
		check_page(f, 0, 0, 'a');
	}
	crash(f);
	f->engine->options.merge_manual = false;
	f->now += SLOW_LANE_OF_ONE_MS;
	assert_int_equal(try_back(f), 0);
	check_page(f, 0, 0, 'a');
	/* And there is a way out. Space is made bit by bit, so some writes are refused. */
	assert_int_equal(set_kind_full(f, PARTITION, ENGINE_RETAIN_NONE, 0, true), 0);
	for (int n = 0; written < 50; n++) {
		assert_true(n < OFTEN);
		written += try_write(f, OTHERS, 16 * PAGE) == 0;
		f->now += SECOND;
	}
}

/* What is noted of the times while there is no room takes none, however often it is. */
static void test_waiting_takes_no_room(void **state)
{
	struct fixture *f = *state;
	struct engine_merge_result total = { 0 };
	struct engine_statistics before, after;

	version_of_others(f);
	fill(f);
	use_up_removing(f);
	for (int n = 0; n < 500; n++)
		engine_merge(f->engine, &total);
	engine_read_statistics(f->engine, &before);
	for (int n = 0; n < 10000; n++) {
		f->now += SECOND;
		engine_merge(f->engine, &total);
	}
	engine_read_statistics(f->engine, &after);
	/* A few that hold what was noted before wait to be merged. */
	assert_true(after.segments_free + 16 >= before.segments_free);
	expect_the_way_out(f);
}

static void test_a_crash_leaves_the_rooms_as_they_were(void **state)
{
	struct fixture *f = *state;
	uint32_t version = version_of_others(f);

	fill(f);
	use_up_removing(f);
	engine_keep_time(f->engine, 0);
	crash(f);
	use_up_other_ways_back(f, version);
	engine_keep_time(f->engine, 0);
	crash(f);
	expect_the_way_out(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLASH_TEST(test_writing_leaves_room_to_remove),
		FLASH_TEST(test_removing_leaves_room_to_go_back),
		FLASH_TEST(test_snapshots_leave_room_to_go_back),
		FLASH_TEST(test_going_back_elsewhere_leaves_room_to_go_back_in_what_is_locked),
		FLASH_TEST(test_going_back_in_what_is_locked_leaves_room_for_its_owner),
		FLASH_TEST(test_waiting_takes_no_room),
		FLASH_TEST(test_a_crash_leaves_the_rooms_as_they_were),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
