/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What policies keep of the past is there after everything else has been merged away, and what they
 * gave up is not promised again, whatever policies and partitions come and go.
 */
#include "tests/engine/fixture.h"

#include "engine/history/retention.h"

/* ---- what is kept ---- */

static void test_moments_of_intervals_are_kept_as_long_as_the_policy_says(void **state)
{
	struct fixture *f = *state;

	set_policy(f, 0, 0, 0, 0);
	set_policy(f, PARTITION, 0, 10 * SECOND, 60 * SECOND);
	for (uint64_t second = 2; second <= 100; second += 3) {
		write_page(f, second * SECOND, 0, (char)second);
		if (second % 4 == 0)
			merge_all(f);
	}
	f->now = 100 * SECOND;
	merge_all(f);
	/* What was written last at 50 s, 60 s ... */
	for (uint64_t second = 50; second <= 90; second += 10) {
		uint32_t version = view_at(f, second * SECOND);

		assert_int_not_equal(version, 0);
		check_page(f, version, 0, (char)((second - 2) / 3 * 3 + 2));
		/* A time between two of them means the one before. */
		assert_int_equal(view_at(f, (second + 7) * SECOND), version);
	}
	assert_int_equal(view_at(f, 30 * SECOND), 0);
	assert_int_equal(view_at(f, 20 * SECOND), 0);
	check_page(f, 0, 0, 98);
}

static void test_every_moment_of_the_last_while_is_kept(void **state)
{
	struct fixture *f = *state;

	set_policy(f, 0, 0, 0, 0);
	set_policy(f, PARTITION, 30 * SECOND, 0, 0);
	for (uint64_t second = 2; second <= 100; second += 3) {
		write_page(f, second * SECOND, 0, (char)second);
		if (second % 4 == 0)
			merge_all(f);
	}
	f->now = 100 * SECOND;
	merge_all(f);
	for (uint64_t second = 70; second <= 100; second++) {
		uint32_t version = view_at(f, second * SECOND);

		assert_int_not_equal(version, 0);
		check_page(f, version, 0, (char)((second - 2) / 3 * 3 + 2));
	}
	for (uint64_t second = 2; second < 65; second++)
		assert_int_equal(view_at(f, second * SECOND), 0);
}

static void test_both_are_kept_together(void **state)
{
	struct fixture *f = *state;

	set_policy(f, PARTITION, 20 * SECOND, 15 * SECOND, 70 * SECOND);
	for (uint64_t second = 2; second <= 100; second += 3)
		write_page(f, second * SECOND, 0, (char)second);
	f->now = 100 * SECOND;
	merge_all(f);
	for (uint64_t second = 45; second <= 75; second += 15) {
		uint32_t version = view_at(f, second * SECOND);

		assert_int_not_equal(version, 0);
		check_page(f, version, 0, (char)((second - 2) / 3 * 3 + 2));
	}
	for (uint64_t second = 80; second <= 100; second++)
		check_page(f, view_at(f, second * SECOND), 0, (char)((second - 2) / 3 * 3 + 2));
}

/*
 * What is noted about ages takes room itself. That is no work for the next step: there is some
 * every few seconds.
 */
static void test_merging_comes_to_an_end_under_a_policy_that_speaks_of_ages(void **state)
{
	struct fixture *f = *state;
	struct engine_merge_result total = { 0 };
	uint32_t futile = 0, steps = 0;

	set_policy(f, OTHERS, 30 * SECOND, 0, 0);
	for (uint64_t second = 2; second <= 100; second++)
		write_page(f, second * SECOND, 0, (char)second);
	merge_all(f);
	/* A step takes a while: here a millisecond. */
	for (; futile < 3000 && steps < 20000; steps++) {
		f->now++;
		futile = engine_merge(f->engine, &total) == -EAGAIN ? futile + 1 : 0;
	}
	assert_int_equal(futile, 3000);
	assert_true(steps < 3000 + 1000);
}

static void test_a_new_policy_is_told_in_the_transaction_that_sets_it(void **state)
{
	const struct engine_retention all = { .kind = ENGINE_RETAIN_ALL, .keep_all_ms = 7 };
	struct engine_retention told;
	struct fixture *f = *state;

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(f->txn, 0, &all, false), 0);
	for (uint64_t partition = 0; partition <= PARTITION; partition += PARTITION) {
		assert_int_equal(engine_retention_get(f->txn, partition, &told), 0);
		assert_int_equal(told.kind, ENGINE_RETAIN_ALL);
		assert_int_equal(told.keep_all_ms, 7);
	}
	engine_abort(f->txn);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_retention_get(f->txn, 0, &told), 0);
	assert_int_equal(told.kind, ENGINE_RETAIN_SNAPSHOTS);
	commit(f);
}

enum { MODIFICATIONS = 40 };

/* In the open transaction; returns which modification that was. */
static uint64_t modify(struct fixture *f, uint64_t ms)
{
	const struct engine_address address = { .partition = PARTITION, .object = OBJECT };
	struct engine_stat stat;

	assert_int_equal(engine_set_time(f->txn, address, ENGINE_TIME_DATA_MODIFIED, ms), 0);
	assert_int_equal(engine_stat(f->txn, address, &stat), 0);
	return stat.modified_sequence;
}

static void keep_all(struct fixture *f, uint64_t scope)
{
	const struct engine_retention all = { .kind = ENGINE_RETAIN_ALL };

	assert_int_equal(engine_retention_set(f->txn, scope, &all, false), 0);
}

/*
 * Modifies the object many times more, each in a transaction of its own; then every modification as
 * far back as history is said to reach is in the object's log, and the last one before that.
 * Returns the horizon.
 */
static uint64_t check_every_modification_is_there(struct fixture *f, uint64_t first)
{
	uint64_t modified[1 + MODIFICATIONS] = { first }, below = UINT64_MAX;
	struct engine_modification found;
	struct engine_history history;

	for (uint32_t at = 1; at <= MODIFICATIONS; at++) {
		begin(f, ENGINE_WRITE);
		modified[at] = modify(f, 1 + at);
		commit(f);
	}
	begin(f, ENGINE_READ);
	assert_int_equal(engine_history(f->txn, PARTITION, &history), 0);
	for (uint32_t at = 1 + MODIFICATIONS; at-- > 0 && below >= history.horizon_sequence;) {
		assert_int_equal(engine_log_next(f->txn, PARTITION, OBJECT, below, &found), 0);
		assert_int_equal(found.sequence, modified[at]);
		below = found.sequence - 1;
	}
	commit(f);
	return history.horizon_sequence;
}

/*
 * While nothing is kept, modifications of one slot take each other's place; those that history is
 * said to reach do not.
 */
static void test_every_modification_since_a_policy_that_kept_nothing_is_there(void **state)
{
	struct fixture *f = *state;

	for (uint64_t scope = 0; scope <= PARTITION; scope += PARTITION) {
		uint64_t before, behind, horizon;

		set_policy(f, scope, 0, 0, 0);
		begin(f, ENGINE_WRITE);
		before = modify(f, 1);
		commit(f);
		begin(f, ENGINE_WRITE);
		keep_all(f, scope);
		commit(f);
		begin(f, ENGINE_WRITE);
		behind = modify(f, 2);
		commit(f);
		horizon = check_every_modification_is_there(f, behind);
		assert_in_range(horizon, before, behind);
	}
}

static void test_so_it_is_when_the_transaction_had_modified_the_object_before(void **state)
{
	struct fixture *f = *state;
	uint64_t first;

	set_policy(f, PARTITION, 0, 0, 0);
	f->now += 2 * SECOND;
	begin(f, ENGINE_WRITE);
	first = modify(f, 1);
	keep_all(f, PARTITION);
	commit(f);
	check_every_modification_is_there(f, first);
}

static void test_so_it_is_when_the_transaction_modifies_the_object_behind_it(void **state)
{
	struct fixture *f = *state;
	uint64_t first;

	set_policy(f, 0, 0, 0, 0);
	begin(f, ENGINE_WRITE);
	keep_all(f, 0);
	first = modify(f, 1);
	commit(f);
	assert_true(check_every_modification_is_there(f, first) < first);
}

static void test_an_aborted_policy_of_the_device_counts_for_nothing(void **state)
{
	struct engine_retention told;
	struct fixture *f = *state;
	uint64_t first;

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_get(f->txn, 0, &told), 0);
	told.kind = ENGINE_RETAIN_NONE;
	assert_int_equal(engine_retention_set(f->txn, 0, &told, false), 0);
	engine_abort(f->txn);
	begin(f, ENGINE_WRITE);
	first = modify(f, 1);
	commit(f);
	assert_true(check_every_modification_is_there(f, first) < first);
}

static void keep_all_of(struct fixture *f, uint64_t scope)
{
	begin(f, ENGINE_WRITE);
	keep_all(f, scope);
	commit(f);
}

/* ---- what is not promised again ---- */

/*
 * At a moment that a new policy would have kept, a record of a version may be out of reach: that
 * says nothing.
 */
static void test_moments_that_an_older_policy_gave_up_do_not_count(void **state)
{
	const struct engine_address address = { .partition = PARTITION, .object = OBJECT };
	struct fixture *f = *state;
	uint32_t version;

	set_policy(f, 0, 0, 0, 0);
	set_policy(f, PARTITION, 0, 0, 0);
	write_page(f, 12 * SECOND, 1, 'a');
	write_page(f, 15 * SECOND, 0, 'c');
	/* So the onode of 20 s is not kept. */
	write_page(f, 23 * SECOND, 0, 'b');
	f->now = 35 * SECOND;
	version = take_snapshot(f, PARTITION, NULL);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_truncate(f->txn, address, 0), 0);
	commit(f);
	merge_all(f);
	f->now = 50 * SECOND;
	set_policy(f, PARTITION, 0, 10 * SECOND, 1000 * SECOND);
	merge_all(f);
	merge_all(f);
	assert_int_equal(view_at(f, 20 * SECOND), 0);
	check_page(f, version, 0, 'b');
	check_page(f, version, 1, 'a');
}

static void test_a_partition_that_comes_back_has_what_its_policy_kept(void **state)
{
	struct fixture *f = *state;
	uint32_t version;

	set_policy(f, PARTITION, 0, 0, 0);
	write_page(f, 12 * SECOND, 0, 'a');
	write_page(f, 15 * SECOND, 0, 'b');
	f->now = 16 * SECOND;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(
				 f->txn, PARTITION,
				 &(struct engine_retention){ .kind = ENGINE_RETAIN_ALL }, false),
			 0);
	commit(f);
	set_policy(f, 0, 0, 10 * SECOND, 1000 * SECOND);
	write_page(f, 23 * SECOND, 0, 'c');
	write_page(f, 26 * SECOND, 0, 'd');
	f->now = 28 * SECOND;
	version = take_snapshot(f, 0, NULL);
	write_page(f, 33 * SECOND, 0, 'e');
	f->now = 50 * SECOND;
	remove_partition(f, PARTITION);
	merge_all(f);
	f->now = 60 * SECOND;
	roll_back(f, 0, at_number(version));
	check_page(f, 0, 0, 'd');
	check_page(f, version, 0, 'd');
	for (uint64_t second = 26; second < 50; second++)
		check_page(f, view_at(f, second * SECOND), 0, second < 33 ? 'd' : 'e');
}

/* What it kept by itself was kept while it was gone, and its removal was merged away. */
static void test_a_partition_that_comes_back_has_policy_and_versions_of_before(void **state)
{
	struct engine_retention found;
	struct engine_version version;
	struct fixture *f = *state;
	uint32_t own, between;

	write_page(f, 12 * SECOND, 0, 'a');
	f->now = 20 * SECOND;
	remove_partition(f, PARTITION);
	f->now = 40 * SECOND;
	roll_back(f, 0, at_time(15 * SECOND));
	keep_all_of(f, PARTITION);
	f->now = 45 * SECOND;
	own = take_snapshot(f, PARTITION, NULL);
	write_page(f, 46 * SECOND, 0, 'b');
	between = take_snapshot(f, 0, NULL);
	f->now = 50 * SECOND;
	roll_back(f, 0, at_time(30 * SECOND));
	set_policy(f, 0, 0, 0, 0);
	merge_all(f);
	f->now = 60 * SECOND;
	roll_back(f, 0, at_number(between));
	merge_all(f);
	crash(f);
	merge_all(f);
	crash(f);
	check_page(f, 0, 0, 'b');
	check_page(f, own, 0, 'a');
	begin(f, ENGINE_READ);
	assert_int_equal(engine_retention_get(f->txn, PARTITION, &found), 0);
	assert_int_equal(found.kind, ENGINE_RETAIN_ALL);
	assert_int_equal(engine_version_next(f->txn, PARTITION, 0, &version), 0);
	assert_int_equal(version.version, own);
	assert_int_equal(engine_version_next(f->txn, PARTITION, version.position + 1, &version), 0);
	assert_int_equal(version.version, between);
	commit(f);
}

static void test_the_device_goes_back_to_an_interval_with_all_that_was_removed(void **state)
{
	struct fixture *f = *state;

	set_policy(f, 0, 0, 10 * SECOND, 1000 * SECOND);
	write_page(f, 12 * SECOND, 0, 'a');
	write_page(f, 15 * SECOND, 0, 'b');
	write_page(f, 23 * SECOND, 0, 'c');
	f->now = 25 * SECOND;
	remove_partition(f, PARTITION);
	f->now = 40 * SECOND;
	merge_all(f);
	f->now = 50 * SECOND;
	roll_back(f, 0, at_time(20 * SECOND));
	check_page(f, 0, 0, 'b');
	f->now = 60 * SECOND;
	merge_all(f);
	check_page(f, 0, 0, 'b');
}

static void test_the_devices_intervals_leave_out_a_partition_that_keeps_nothing(void **state)
{
	struct fixture *f = *state;

	set_policy(f, 0, 0, 10 * SECOND, 1000 * SECOND);
	set_policy(f, PARTITION, 0, 0, 0);
	write_page(f, 12 * SECOND, 0, 'a');
	write_page(f, 23 * SECOND, 0, 'b');
	f->now = 40 * SECOND;
	for (int round = 0; round < 2; round++) {
		merge_all(f);
		f->now += SECOND;
		assert_int_equal(stat_of_device_at(f, PARTITION, 20 * SECOND), -ENOENT);
		assert_int_equal(stat_of_device_at(f, OTHERS, 20 * SECOND), 0);
		/* Nor when that one is gone. */
		if (round == 0)
			remove_partition(f, PARTITION);
	}
}

/* Policies of single partitions come and go, of which one keeps nothing for a while. */
static void test_the_device_keeps_its_intervals_whatever_one_partition_does(void **state)
{
	struct fixture *f = *state;

	create(f, CLONE);
	set_policy(f, 0, 0, 10 * SECOND, 1000 * SECOND);
	for (uint64_t second = 12; second <= 80; second += 3) {
		write_page(f, second * SECOND, 0, (char)second);
		if (second == 33 || second == 63)
			set_policy(f, CLONE, 0, 0, 0);
		if (second == 48 || second == 66)
			keep_all_of(f, CLONE);
		if (second % 4 == 0)
			merge_all(f);
	}
	remove_partition(f, PARTITION);
	merge_all(f);
	f->now += SECOND;
	assert_int_equal(stat_of_device_at(f, CLONE, 30 * SECOND), 0);
	assert_int_equal(stat_of_device_at(f, CLONE, 40 * SECOND), -ENOENT);
	assert_int_equal(stat_of_device_at(f, CLONE, 70 * SECOND), 0);
	for (uint64_t second = 20; second <= 70; second += 10) {
		f->now += 5 * SECOND;
		roll_back(f, 0, at_time(second * SECOND));
		check_page(f, 0, 0, (char)((second - 12) / 3 * 3 + 12));
		merge_all(f);
	}
}

/*
 * A partition vanishes and comes back, and has of its own past what the device kept of it
 * meanwhile.
 */
static void check_the_device_of_a_partition_that_comes_back(struct fixture *f, uint64_t interval_ms,
							    uint64_t ms)
{
	remove_partition(f, PARTITION);
	set_policy(f, 0, 100 * SECOND, interval_ms, interval_ms ? 1000 * SECOND : 0);
	f->now = 10 * SECOND;
	create(f, PARTITION);
	write_page(f, 12 * SECOND, 0, 'a');
	write_page(f, 23 * SECOND, 0, 'b');
	f->now = 40 * SECOND;
	roll_back(f, 0, at_time(9 * SECOND));
	f->now = 50 * SECOND;
	roll_back(f, 0, at_time(20 * SECOND));
	f->now = ms;
	merge_all(f);
	check_page(f, 0, 0, 'a');
	check_page(f, view_at(f, 30 * SECOND), 0, 'b');
	roll_back(f, 0, at_time(30 * SECOND));
	check_page(f, 0, 0, 'b');
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
	struct fixture *f = *state;
	uint32_t before, after;
	uint64_t id;

	set_policy(f, 0, 0, 0, 0);
	remove_partition(f, PARTITION);
	before = take_snapshot(f, 0, NULL);
	create(f, PARTITION);
	write_page(f, 10 * SECOND, 0, 'a');
	f->now = 12 * SECOND;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone(f->txn, PARTITION, now, CLONE, true, &id), 0);
	commit(f);
	write_page(f, 15 * SECOND, 0, 'b');
	after = take_snapshot(f, 0, NULL);
	f->now = 20 * SECOND;
	roll_back(f, 0, at_number(before));
	merge_all(f);
	/* Others do not get their indices. */
	create(f, PARTITION);
	write_page(f, 21 * SECOND, 0, 'c');
	remove_partition(f, PARTITION);
	merge_all(f);
	check_page_of(f, PARTITION, after, 0, 'b');
	check_page_of(f, CLONE, after, 0, 'a');
	roll_back(f, 0, at_number(after));
	write_page(f, 30 * SECOND, 0, 'd');
	merge_all(f);
	check_page_of(f, PARTITION, after, 0, 'b');
	check_page_of(f, CLONE, after, 0, 'a');
	check_page_of(f, CLONE, 0, 0, 'a');
}

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
	struct fixture *f = *state;
	uint64_t sequence;

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(f->txn, 0, &all, false), 0);
	assert_int_equal(engine_retention_set(f->txn, PARTITION, &some, false), 0);
	commit(f);
	for (uint64_t second = 2; second <= 100; second++)
		write_page(f, second * SECOND, 0, (char)second);
	assert_int_equal(retention_reclaim(f->engine, UINT32_MAX, RECORD_NEWEST), 0);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(f->txn, 0, &every, false), 0);
	commit(f);
	for (uint64_t second = 101; second <= 140; second++)
		write_page(f, second * SECOND, 0, (char)second);
	begin(f, ENGINE_READ);
	for (uint64_t second = 10; second <= 90; second += 10)
		assert_int_equal(
			engine_moment_resolve(f->txn, 0, at_time(second * SECOND), &sequence),
			-ENOENT);
	assert_int_equal(engine_moment_resolve(f->txn, 0, at_time(130 * SECOND), &sequence), 0);
	commit(f);
}

/* Records that were looked up, for what is kept. */
static uint64_t gets_for_kept(struct fixture *f, uint64_t *bytes)
{
	struct record_statistics before = { 0 }, after = { 0 };

	f->engine->store->operations->statistics(f->engine->store, &before);
	assert_int_equal(retention_kept_bytes(f->engine, bytes), 0);
	f->engine->store->operations->statistics(f->engine->store, &after);
	return after.records_got - before.records_got;
}

/* The same, found anew. */
static void check_kept(struct fixture *f, uint64_t bytes)
{
	uint64_t anew;

	f->engine->past->kept_since.known = false;
	gets_for_kept(f, &anew);
	assert_int_equal(anew, bytes);
}

static void test_how_much_is_kept_is_looked_up_once_for_each_end(void **state)
{
	struct fixture *f = *state;
	uint64_t all, more, less, put;

	for (uint64_t second = 2; second <= 100; second++)
		write_page(f, second * SECOND, 0, (char)second);
	assert_true(gets_for_kept(f, &all) > 0);
	put = f->engine->put_bytes;
	write_page(f, 101 * SECOND, 0, 'm');
	assert_int_equal(gets_for_kept(f, &more), 0);
	assert_int_equal(more - all, f->engine->put_bytes - put);
	check_kept(f, more);
	assert_int_equal(retention_reclaim(f->engine, more / 2, RECORD_NEWEST), 0);
	assert_true(gets_for_kept(f, &less) > 0);
	assert_in_range(less, 1, more / 2 + more / 8);
	check_kept(f, less);
	/* Behind the last end nothing has been put, then something. */
	assert_int_equal(retention_reclaim(f->engine, UINT32_MAX, RECORD_NEWEST), 0);
	gets_for_kept(f, &less);
	check_kept(f, less);
	put = f->engine->put_bytes;
	write_page(f, 102 * SECOND, 0, 'n');
	write_page(f, 103 * SECOND, 0, 'o');
	gets_for_kept(f, &more);
	assert_in_range(more, 1, f->engine->put_bytes - put + less);
	check_kept(f, more);
}

static void test_how_much_is_kept_is_looked_up_anew_behind_a_format(void **state)
{
	struct fixture *f = *state;
	uint64_t before, bytes;

	for (uint64_t second = 2; second <= 20; second++)
		write_page(f, second * SECOND, 0, (char)second);
	gets_for_kept(f, &before);
	/* As much as if it were of a store in which more had been put when history began. */
	f->engine->past->kept_since.put_bytes += before / 2;
	assert_int_equal(engine_begin_format(f->engine, &f->txn), 0);
	commit(f);
	f->now = 30 * SECOND;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, PARTITION, NULL), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, OBJECT, 1, NULL), 0);
	commit(f);
	for (uint64_t second = 31; second <= 60; second++)
		write_page(f, second * SECOND, 0, (char)second);
	gets_for_kept(f, &bytes);
	check_kept(f, bytes);
}

static void test_what_makes_no_policy_is_refused(void **state)
{
	const uint64_t most = ONODE_TIME_MAX;
	const struct {
		struct engine_retention retention;
		int result;
	} cases[] = {
		{ { .kind = ENGINE_RETAIN_ALL, .keep_all_ms = most }, 0 },
		{ { .kind = ENGINE_RETAIN_ALL, .keep_all_ms = most + 1 }, -EINVAL },
		{ { .keep_interval_ms = most, .keep_interval_for_ms = most }, 0 },
		{ { .keep_interval_ms = most + 1, .keep_interval_for_ms = most }, -EINVAL },
		{ { .keep_interval_ms = most, .keep_interval_for_ms = most + 1 }, -EINVAL },
		{ { .keep_interval_ms = 1, .keep_interval_for_ms = 1 }, 0 },
		{ { .keep_interval_ms = 1 }, -EINVAL },
		{ { .keep_interval_for_ms = 1 }, -EINVAL },
		{ { .kind = ENGINE_RETAIN_NONE }, 0 },
		{ { .kind = ENGINE_RETAIN_NONE + 1 }, -EINVAL },
	};
	struct fixture *f = *state;

	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++)
		for (int inherit = 0; inherit <= 1; inherit++) {
			begin(f, ENGINE_WRITE);
			assert_int_equal(
				end(f, engine_retention_set(f->txn, inherit ? 0 : PARTITION,
							    &cases[n].retention, false)),
				cases[n].result);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLASH_TEST(test_how_much_is_kept_is_looked_up_anew_behind_a_format),
		FLASH_TEST(test_how_much_is_kept_is_looked_up_once_for_each_end),
		FLASH_TEST(test_what_makes_no_policy_is_refused),
		FLASH_TEST(test_intervals_of_the_device_begin_where_all_partitions_have_everything),
		FLASH_TEST(test_moments_of_intervals_are_kept_as_long_as_the_policy_says),
		FLASH_TEST(test_every_moment_of_the_last_while_is_kept),
		FLASH_TEST(test_both_are_kept_together),
		FLASH_TEST(test_merging_comes_to_an_end_under_a_policy_that_speaks_of_ages),
		FLASH_TEST(test_every_modification_since_a_policy_that_kept_nothing_is_there),
		FLASH_TEST(test_so_it_is_when_the_transaction_had_modified_the_object_before),
		FLASH_TEST(test_so_it_is_when_the_transaction_modifies_the_object_behind_it),
		FLASH_TEST(test_an_aborted_policy_of_the_device_counts_for_nothing),
		FLASH_TEST(test_a_new_policy_is_told_in_the_transaction_that_sets_it),
		FLASH_TEST(test_moments_that_an_older_policy_gave_up_do_not_count),
		FLASH_TEST(test_a_partition_that_comes_back_has_what_its_policy_kept),
		FLASH_TEST(test_a_partition_that_comes_back_has_policy_and_versions_of_before),
		FLASH_TEST(test_the_device_goes_back_to_an_interval_with_all_that_was_removed),
		FLASH_TEST(test_the_devices_intervals_leave_out_a_partition_that_keeps_nothing),
		FLASH_TEST(test_the_device_keeps_its_intervals_whatever_one_partition_does),
		FLASH_TEST(test_a_partition_that_came_back_shows_what_the_device_has_kept),
		FLASH_TEST(test_so_it_does_of_the_intervals_that_the_device_has_kept),
		FLASH_TEST(test_clones_that_vanished_keep_what_they_stand_on),
	};

	return cmocka_run_group_tests_name("history_retention", tests, NULL, NULL);
}
