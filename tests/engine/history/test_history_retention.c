/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What policies keep of the past is there after everything else has been merged away, and what they
 * gave up is not promised again, whatever policies and partitions come and go.
 */
#include "tests/engine/device_fixture.h"

#include "engine/history/retention.h"

/* ---- what is kept ---- */

static void test_moments_of_intervals_are_kept_as_long_as_the_policy_says(void **state)
{
	struct device *device = *state;

	set_policy(device, 0, 0, 0, 0);
	set_policy(device, PARTITION, 0, 10 * SECOND, 60 * SECOND);
	for (uint64_t second = 2; second <= 100; second += 3) {
		write_page(device, second * SECOND, 0, (char)second);
		if (second % 4 == 0)
			merge_all(device);
	}
	device->now = 100 * SECOND;
	merge_all(device);
	/* What was written last at 50 s, 60 s ... */
	for (uint64_t second = 50; second <= 90; second += 10) {
		uint32_t version = view_at(device, second * SECOND);

		assert_int_not_equal(version, 0);
		check_page(device, version, 0, (char)((second - 2) / 3 * 3 + 2));
		/* A time between two of them means the one before. */
		assert_int_equal(view_at(device, (second + 7) * SECOND), version);
	}
	assert_int_equal(view_at(device, 30 * SECOND), 0);
	assert_int_equal(view_at(device, 20 * SECOND), 0);
	check_page(device, 0, 0, 98);
}

static void test_every_moment_of_the_last_while_is_kept(void **state)
{
	struct device *device = *state;

	set_policy(device, 0, 0, 0, 0);
	set_policy(device, PARTITION, 30 * SECOND, 0, 0);
	for (uint64_t second = 2; second <= 100; second += 3) {
		write_page(device, second * SECOND, 0, (char)second);
		if (second % 4 == 0)
			merge_all(device);
	}
	device->now = 100 * SECOND;
	merge_all(device);
	for (uint64_t second = 70; second <= 100; second++) {
		uint32_t version = view_at(device, second * SECOND);

		assert_int_not_equal(version, 0);
		check_page(device, version, 0, (char)((second - 2) / 3 * 3 + 2));
	}
	for (uint64_t second = 2; second < 65; second++)
		assert_int_equal(view_at(device, second * SECOND), 0);
}

static void test_both_are_kept_together(void **state)
{
	struct device *device = *state;

	set_policy(device, PARTITION, 20 * SECOND, 15 * SECOND, 70 * SECOND);
	for (uint64_t second = 2; second <= 100; second += 3)
		write_page(device, second * SECOND, 0, (char)second);
	device->now = 100 * SECOND;
	merge_all(device);
	for (uint64_t second = 45; second <= 75; second += 15) {
		uint32_t version = view_at(device, second * SECOND);

		assert_int_not_equal(version, 0);
		check_page(device, version, 0, (char)((second - 2) / 3 * 3 + 2));
	}
	for (uint64_t second = 80; second <= 100; second++)
		check_page(device, view_at(device, second * SECOND), 0,
			   (char)((second - 2) / 3 * 3 + 2));
}

/*
 * What is noted about ages takes room itself. That is no work for the next step: there is some
 * every few seconds.
 */
static void test_merging_comes_to_an_end_under_a_policy_that_speaks_of_ages(void **state)
{
	struct device *device = *state;
	struct engine_merge_result total = { 0 };
	uint32_t futile = 0, steps = 0;

	set_policy(device, OTHERS, 30 * SECOND, 0, 0);
	for (uint64_t second = 2; second <= 100; second++)
		write_page(device, second * SECOND, 0, (char)second);
	merge_all(device);
	/* A step takes a while: here a millisecond. */
	for (; futile < 3000 && steps < 20000; steps++) {
		device->now++;
		futile = engine_merge(device->engine, &total) == -EAGAIN ? futile + 1 : 0;
	}
	assert_int_equal(futile, 3000);
	assert_true(steps < 3000 + 1000);
}

static void test_a_new_policy_is_told_in_the_transaction_that_sets_it(void **state)
{
	const struct engine_retention all = { .kind = ENGINE_RETAIN_ALL, .keep_all_ms = 7 };
	struct engine_retention told;
	struct device *device = *state;

	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(device->txn, 0, &all, false), 0);
	for (uint64_t partition = 0; partition <= PARTITION; partition += PARTITION) {
		assert_int_equal(engine_retention_get(device->txn, partition, &told), 0);
		assert_int_equal(told.kind, ENGINE_RETAIN_ALL);
		assert_int_equal(told.keep_all_ms, 7);
	}
	engine_abort(device->txn);
	begin(device, ENGINE_READ);
	assert_int_equal(engine_retention_get(device->txn, 0, &told), 0);
	assert_int_equal(told.kind, ENGINE_RETAIN_SNAPSHOTS);
	commit(device);
}

enum { MODIFICATIONS = 40 };

/* In the open transaction; returns which modification that was. */
static uint64_t modify(struct device *device, uint64_t ms)
{
	const struct engine_address address = { .partition = PARTITION, .object = OBJECT };
	struct engine_stat stat;

	assert_int_equal(engine_set_time(device->txn, address, ENGINE_TIME_DATA_MODIFIED, ms), 0);
	assert_int_equal(engine_stat(device->txn, address, &stat), 0);
	return stat.modified_sequence;
}

static void keep_all(struct device *device, uint64_t scope)
{
	const struct engine_retention all = { .kind = ENGINE_RETAIN_ALL };

	assert_int_equal(engine_retention_set(device->txn, scope, &all, false), 0);
}

/*
 * Modifies the object many times more, each in a transaction of its own; then every modification as
 * far back as history is said to reach is in the object's log, and the last one before that.
 * Returns the horizon.
 */
static uint64_t check_every_modification_is_there(struct device *device, uint64_t first)
{
	uint64_t modified[1 + MODIFICATIONS] = { first }, below = UINT64_MAX;
	struct engine_modification found;
	struct engine_history history;

	for (uint32_t at = 1; at <= MODIFICATIONS; at++) {
		begin(device, ENGINE_WRITE);
		modified[at] = modify(device, 1 + at);
		commit(device);
	}
	begin(device, ENGINE_READ);
	assert_int_equal(engine_history(device->txn, PARTITION, &history), 0);
	for (uint32_t at = 1 + MODIFICATIONS; at-- > 0 && below >= history.horizon_sequence;) {
		assert_int_equal(engine_log_next(device->txn, PARTITION, OBJECT, below, &found), 0);
		assert_int_equal(found.sequence, modified[at]);
		below = found.sequence - 1;
	}
	commit(device);
	return history.horizon_sequence;
}

/*
 * While nothing is kept, modifications of one slot take each other's place; those that history is
 * said to reach do not.
 */
static void test_every_modification_since_a_policy_that_kept_nothing_is_there(void **state)
{
	struct device *device = *state;

	for (uint64_t scope = 0; scope <= PARTITION; scope += PARTITION) {
		uint64_t before, behind, horizon;

		set_policy(device, scope, 0, 0, 0);
		begin(device, ENGINE_WRITE);
		before = modify(device, 1);
		commit(device);
		begin(device, ENGINE_WRITE);
		keep_all(device, scope);
		commit(device);
		begin(device, ENGINE_WRITE);
		behind = modify(device, 2);
		commit(device);
		horizon = check_every_modification_is_there(device, behind);
		assert_in_range(horizon, before, behind);
	}
}

static void test_so_it_is_when_the_transaction_had_modified_the_object_before(void **state)
{
	struct device *device = *state;
	uint64_t first;

	set_policy(device, PARTITION, 0, 0, 0);
	device->now += 2 * SECOND;
	begin(device, ENGINE_WRITE);
	first = modify(device, 1);
	keep_all(device, PARTITION);
	commit(device);
	check_every_modification_is_there(device, first);
}

static void test_so_it_is_when_the_transaction_modifies_the_object_behind_it(void **state)
{
	struct device *device = *state;
	uint64_t first;

	set_policy(device, 0, 0, 0, 0);
	begin(device, ENGINE_WRITE);
	keep_all(device, 0);
	first = modify(device, 1);
	commit(device);
	assert_true(check_every_modification_is_there(device, first) < first);
}

static void test_an_aborted_policy_of_the_device_counts_for_nothing(void **state)
{
	struct engine_retention told;
	struct device *device = *state;
	uint64_t first;

	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_retention_get(device->txn, 0, &told), 0);
	told.kind = ENGINE_RETAIN_NONE;
	assert_int_equal(engine_retention_set(device->txn, 0, &told, false), 0);
	engine_abort(device->txn);
	begin(device, ENGINE_WRITE);
	first = modify(device, 1);
	commit(device);
	assert_true(check_every_modification_is_there(device, first) < first);
}

static void keep_all_of(struct device *device, uint64_t scope)
{
	begin(device, ENGINE_WRITE);
	keep_all(device, scope);
	commit(device);
}

/* ---- what is not promised again ---- */

/*
 * At a moment that a new policy would have kept, a record of a version may be out of reach: that
 * says nothing.
 */
static void test_moments_that_an_older_policy_gave_up_do_not_count(void **state)
{
	const struct engine_address address = { .partition = PARTITION, .object = OBJECT };
	struct device *device = *state;
	uint32_t version;

	set_policy(device, 0, 0, 0, 0);
	set_policy(device, PARTITION, 0, 0, 0);
	write_page(device, 12 * SECOND, 1, 'a');
	write_page(device, 15 * SECOND, 0, 'c');
	/* So the onode of 20 s is not kept. */
	write_page(device, 23 * SECOND, 0, 'b');
	device->now = 35 * SECOND;
	version = take_snapshot(device, PARTITION);
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_truncate(device->txn, address, 0), 0);
	commit(device);
	merge_all(device);
	device->now = 50 * SECOND;
	set_policy(device, PARTITION, 0, 10 * SECOND, 1000 * SECOND);
	merge_all(device);
	merge_all(device);
	assert_int_equal(view_at(device, 20 * SECOND), 0);
	check_page(device, version, 0, 'b');
	check_page(device, version, 1, 'a');
}

static void test_a_partition_that_comes_back_has_what_its_policy_kept(void **state)
{
	struct device *device = *state;
	uint32_t version;

	set_policy(device, PARTITION, 0, 0, 0);
	write_page(device, 12 * SECOND, 0, 'a');
	write_page(device, 15 * SECOND, 0, 'b');
	device->now = 16 * SECOND;
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(
				 device->txn, PARTITION,
				 &(struct engine_retention){ .kind = ENGINE_RETAIN_ALL }, false),
			 0);
	commit(device);
	set_policy(device, 0, 0, 10 * SECOND, 1000 * SECOND);
	write_page(device, 23 * SECOND, 0, 'c');
	write_page(device, 26 * SECOND, 0, 'd');
	device->now = 28 * SECOND;
	version = take_snapshot(device, 0);
	write_page(device, 33 * SECOND, 0, 'e');
	device->now = 50 * SECOND;
	remove_partition(device);
	merge_all(device);
	device->now = 60 * SECOND;
	roll_back_device(device, ENGINE_AT_VERSION, version);
	check_page(device, 0, 0, 'd');
	check_page(device, version, 0, 'd');
	for (uint64_t second = 26; second < 50; second++)
		check_page(device, view_at(device, second * SECOND), 0, second < 33 ? 'd' : 'e');
}

/* What it kept by itself was kept while it was gone, and its removal was merged away. */
static void test_a_partition_that_comes_back_has_policy_and_versions_of_before(void **state)
{
	struct engine_retention found;
	struct engine_version version;
	struct device *device = *state;
	uint32_t own, between;

	write_page(device, 12 * SECOND, 0, 'a');
	device->now = 20 * SECOND;
	remove_partition(device);
	device->now = 40 * SECOND;
	roll_back_device(device, ENGINE_AT_TIME, 15 * SECOND);
	keep_all_of(device, PARTITION);
	device->now = 45 * SECOND;
	own = take_snapshot(device, PARTITION);
	write_page(device, 46 * SECOND, 0, 'b');
	between = take_snapshot(device, 0);
	device->now = 50 * SECOND;
	roll_back_device(device, ENGINE_AT_TIME, 30 * SECOND);
	set_policy(device, 0, 0, 0, 0);
	merge_all(device);
	device->now = 60 * SECOND;
	roll_back_device(device, ENGINE_AT_VERSION, between);
	merge_all(device);
	crash(device);
	merge_all(device);
	crash(device);
	check_page(device, 0, 0, 'b');
	check_page(device, own, 0, 'a');
	begin(device, ENGINE_READ);
	assert_int_equal(engine_retention_get(device->txn, PARTITION, &found), 0);
	assert_int_equal(found.kind, ENGINE_RETAIN_ALL);
	assert_int_equal(engine_version_next(device->txn, PARTITION, 0, &version), 0);
	assert_int_equal(version.version, own);
	assert_int_equal(
		engine_version_next(device->txn, PARTITION, version.position + 1, &version), 0);
	assert_int_equal(version.version, between);
	commit(device);
}

static void test_the_device_goes_back_to_an_interval_with_all_that_was_removed(void **state)
{
	struct device *device = *state;

	set_policy(device, 0, 0, 10 * SECOND, 1000 * SECOND);
	write_page(device, 12 * SECOND, 0, 'a');
	write_page(device, 15 * SECOND, 0, 'b');
	write_page(device, 23 * SECOND, 0, 'c');
	device->now = 25 * SECOND;
	remove_partition(device);
	device->now = 40 * SECOND;
	merge_all(device);
	device->now = 50 * SECOND;
	roll_back_device(device, ENGINE_AT_TIME, 20 * SECOND);
	check_page(device, 0, 0, 'b');
	device->now = 60 * SECOND;
	merge_all(device);
	check_page(device, 0, 0, 'b');
}

static int stat_of_device_at(struct device *device, uint64_t partition, uint64_t ms)
{
	const struct engine_moment moment = { .kind = ENGINE_AT_TIME, .value = ms };
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

static void test_the_devices_intervals_leave_out_a_partition_that_keeps_nothing(void **state)
{
	struct device *device = *state;

	set_policy(device, 0, 0, 10 * SECOND, 1000 * SECOND);
	set_policy(device, PARTITION, 0, 0, 0);
	write_page(device, 12 * SECOND, 0, 'a');
	write_page(device, 23 * SECOND, 0, 'b');
	device->now = 40 * SECOND;
	for (int round = 0; round < 2; round++) {
		merge_all(device);
		device->now += SECOND;
		assert_int_equal(stat_of_device_at(device, PARTITION, 20 * SECOND), -ENOENT);
		assert_int_equal(stat_of_device_at(device, OTHERS, 20 * SECOND), 0);
		/* Nor when that one is gone. */
		if (round == 0)
			remove_partition(device);
	}
}

/* Policies of single partitions come and go, of which one keeps nothing for a while. */
static void test_the_device_keeps_its_intervals_whatever_one_partition_does(void **state)
{
	struct device *device = *state;

	create(device, CLONE);
	set_policy(device, 0, 0, 10 * SECOND, 1000 * SECOND);
	for (uint64_t second = 12; second <= 80; second += 3) {
		write_page(device, second * SECOND, 0, (char)second);
		if (second == 33 || second == 63)
			set_policy(device, CLONE, 0, 0, 0);
		if (second == 48 || second == 66)
			keep_all_of(device, CLONE);
		if (second % 4 == 0)
			merge_all(device);
	}
	remove_partition(device);
	merge_all(device);
	device->now += SECOND;
	assert_int_equal(stat_of_device_at(device, CLONE, 30 * SECOND), 0);
	assert_int_equal(stat_of_device_at(device, CLONE, 40 * SECOND), -ENOENT);
	assert_int_equal(stat_of_device_at(device, CLONE, 70 * SECOND), 0);
	for (uint64_t second = 20; second <= 70; second += 10) {
		device->now += 5 * SECOND;
		roll_back_device(device, ENGINE_AT_TIME, second * SECOND);
		check_page(device, 0, 0, (char)((second - 12) / 3 * 3 + 12));
		merge_all(device);
	}
}

/*
 * A partition vanishes and comes back, and has of its own past what the device kept of it
 * meanwhile.
 */
static void check_the_device_of_a_partition_that_comes_back(struct device *device,
							    uint64_t interval_ms, uint64_t ms)
{
	remove_partition(device);
	set_policy(device, 0, 100 * SECOND, interval_ms, interval_ms ? 1000 * SECOND : 0);
	device->now = 10 * SECOND;
	create(device, PARTITION);
	write_page(device, 12 * SECOND, 0, 'a');
	write_page(device, 23 * SECOND, 0, 'b');
	device->now = 40 * SECOND;
	roll_back_device(device, ENGINE_AT_TIME, 9 * SECOND);
	device->now = 50 * SECOND;
	roll_back_device(device, ENGINE_AT_TIME, 20 * SECOND);
	device->now = ms;
	merge_all(device);
	check_page(device, 0, 0, 'a');
	check_page(device, view_at(device, 30 * SECOND), 0, 'b');
	roll_back_device(device, ENGINE_AT_TIME, 30 * SECOND);
	check_page(device, 0, 0, 'b');
}

static void test_a_partition_that_came_back_shows_what_the_device_has_kept(void **state)
{
	check_the_device_of_a_partition_that_comes_back(*state, 0, 60 * SECOND);
}

static void test_so_it_does_of_the_intervals_that_the_device_has_kept(void **state)
{
	check_the_device_of_a_partition_that_comes_back(*state, 10 * SECOND, 300 * SECOND);
}

/*
 * Source and clone are of a time that the device was rolled back behind. What versions of the
 * device show of them stays.
 */
static void test_clones_that_vanished_keep_what_they_stand_on(void **state)
{
	const struct engine_moment now = { .kind = ENGINE_NOW };
	struct device *device = *state;
	uint32_t before, after;
	uint64_t id;

	set_policy(device, 0, 0, 0, 0);
	remove_partition(device);
	before = take_snapshot(device, 0);
	create(device, PARTITION);
	write_page(device, 10 * SECOND, 0, 'a');
	device->now = 12 * SECOND;
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_clone(device->txn, PARTITION, now, CLONE, true, &id), 0);
	commit(device);
	write_page(device, 15 * SECOND, 0, 'b');
	after = take_snapshot(device, 0);
	device->now = 20 * SECOND;
	roll_back_device(device, ENGINE_AT_VERSION, before);
	merge_all(device);
	/* Others do not get their indices. */
	create(device, PARTITION);
	write_page(device, 21 * SECOND, 0, 'c');
	remove_partition(device);
	merge_all(device);
	check_page_of(device, PARTITION, after, 0, 'b');
	check_page_of(device, CLONE, after, 0, 'a');
	roll_back_device(device, ENGINE_AT_VERSION, after);
	write_page(device, 30 * SECOND, 0, 'd');
	merge_all(device);
	check_page_of(device, PARTITION, after, 0, 'b');
	check_page_of(device, CLONE, after, 0, 'a');
	check_page_of(device, CLONE, 0, 0, 'a');
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/*
 * What a partition gave up by a policy of its own, no interval of the device's policy brings back
 * that is set later.
 */
static void test_intervals_of_the_device_begin_where_all_partitions_have_everything(void **state)
{
	const struct engine_retention all = { .kind = ENGINE_RETAIN_ALL };
	const struct engine_retention some = { .kind = ENGINE_RETAIN_SNAPSHOTS };
	const struct engine_retention every = { .kind = ENGINE_RETAIN_ALL,
						.keep_interval_ms = 10 * SECOND,
						.keep_interval_for_ms = 1000 * SECOND };
	struct device *device = *state;
	uint64_t sequence;

	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(device->txn, 0, &all, false), 0);
	assert_int_equal(engine_retention_set(device->txn, PARTITION, &some, false), 0);
	commit(device);
	for (uint64_t second = 2; second <= 100; second++)
		write_page(device, second * SECOND, 0, (char)second);
	assert_int_equal(retention_reclaim(device->engine, UINT32_MAX, RECORD_NEWEST), 0);
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(device->txn, 0, &every, false), 0);
	commit(device);
	for (uint64_t second = 101; second <= 140; second++)
		write_page(device, second * SECOND, 0, (char)second);
	begin(device, ENGINE_READ);
	for (uint64_t second = 10; second <= 90; second += 10)
		assert_int_equal(engine_moment_resolve(
					 device->txn, 0,
					 (struct engine_moment){ ENGINE_AT_TIME, second * SECOND },
					 &sequence),
				 -ENOENT);
	assert_int_equal(engine_moment_resolve(
				 device->txn, 0,
				 (struct engine_moment){ ENGINE_AT_TIME, 130 * SECOND }, &sequence),
			 0);
	commit(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_intervals_of_the_device_begin_where_all_partitions_have_everything),
		TEST(test_moments_of_intervals_are_kept_as_long_as_the_policy_says),
		TEST(test_every_moment_of_the_last_while_is_kept),
		TEST(test_both_are_kept_together),
		TEST(test_merging_comes_to_an_end_under_a_policy_that_speaks_of_ages),
		TEST(test_every_modification_since_a_policy_that_kept_nothing_is_there),
		TEST(test_so_it_is_when_the_transaction_had_modified_the_object_before),
		TEST(test_so_it_is_when_the_transaction_modifies_the_object_behind_it),
		TEST(test_an_aborted_policy_of_the_device_counts_for_nothing),
		TEST(test_a_new_policy_is_told_in_the_transaction_that_sets_it),
		TEST(test_moments_that_an_older_policy_gave_up_do_not_count),
		TEST(test_a_partition_that_comes_back_has_what_its_policy_kept),
		TEST(test_a_partition_that_comes_back_has_policy_and_versions_of_before),
		TEST(test_the_device_goes_back_to_an_interval_with_all_that_was_removed),
		TEST(test_the_devices_intervals_leave_out_a_partition_that_keeps_nothing),
		TEST(test_the_device_keeps_its_intervals_whatever_one_partition_does),
		TEST(test_a_partition_that_came_back_shows_what_the_device_has_kept),
		TEST(test_so_it_does_of_the_intervals_that_the_device_has_kept),
		TEST(test_clones_that_vanished_keep_what_they_stand_on),
	};

	return cmocka_run_group_tests_name("history_retention", tests, NULL, NULL);
}
