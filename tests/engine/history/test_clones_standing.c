/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What clones stand on is kept as long as anything shows them standing there, also when they are
 * gone, and no longer.
 */
#include "tests/engine/fixture.h"

#include "engine/history/standing.h"
#include "engine/objects/objects.h"

enum { CLONE_OF_CLONE = 0x10003, ANOTHER = 0x10004, PAGES = 90 };

static void make_clone(struct fixture *f, uint64_t source, uint64_t clone)
{
	const struct engine_moment now = { .kind = ENGINE_NOW };

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone(f->txn, source, now, clone, true, NULL), 0);
	commit(f);
}

static void remove_one(struct fixture *f, uint64_t partition)
{
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_partition_remove(f->txn, partition, true), 0);
	commit(f);
}

static void refresh(struct fixture *f, uint64_t clone)
{
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone_refresh(f->txn, clone), 0);
	commit(f);
}

static int drop(struct fixture *f, uint64_t partition, uint32_t version)
{
	begin(f, ENGINE_FREE);
	return end(f, engine_version_drop(f->txn, partition, version));
}

static void keep_everything(struct fixture *f)
{
	const struct engine_retention retention = { .kind = ENGINE_RETAIN_ALL };

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(f->txn, 0, &retention, false), 0);
	commit(f);
}

/* Writes all pages of the object. */
static void write_all(struct fixture *f, char byte)
{
	const struct engine_address address = { .partition = PARTITION, .object = OBJECT };
	static char bytes[PAGES * PAGE];

	memset(bytes, byte, sizeof(bytes));
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, address, 0, bytes, sizeof(bytes)), 0);
	commit(f);
}

/* How many indices are those of partitions that are gone. */
static uint64_t gone(struct fixture *f)
{
	struct partition *root;
	uint64_t count;

	assert_int_equal(partition_get(f->engine, 0, &root), 0);
	count = root->history->clones.count - root->sets[PARTITION_USER_OBJECTS].count;
	partition_release(f->engine, root);
	return count;
}

/* How many such bounds a current partition has. */
static uint64_t bounds_of(struct fixture *f, uint64_t id)
{
	struct partition *partition;
	uint64_t count;

	assert_int_equal(partition_get(f->engine, id, &partition), 0);
	count = partition->history->clones.count;
	partition_release(f->engine, partition);
	return count;
}

/* A view of the whole device at a time. 0: that is not to be reached. */
static uint32_t device_view_at(struct fixture *f, uint64_t ms)
{
	const struct engine_moment moment = { .kind = ENGINE_AT_TIME, .value = ms };
	uint32_t version = 0;
	int result;

	begin(f, ENGINE_READ);
	result = engine_view_open(f->txn, 0, moment, &version);
	assert_true(result == 0 || result == -ENOENT);
	commit(f);
	return version;
}

/* ---- clones that vanished ---- */

static void test_vanished_clones_do_not_fill_the_device(void **state)
{
	struct fixture *f = *state;
	uint32_t before;

	set_policy(f, 0, 0, 0, 0);
	remove_partition(f, PARTITION);
	before = take_snapshot(f, 0, NULL);
	/* All of them together would not fit. */
	for (uint64_t round = 1; round <= 60; round++) {
		f->now = round * 10 * SECOND;
		create(f, PARTITION);
		write_all(f, 'a');
		make_clone(f, PARTITION, CLONE);
		write_all(f, 'b');
		roll_back(f, 0, at_number(before));
		merge_all(f);
	}
	assert_int_equal(gone(f), 0);
}

static void test_a_version_of_the_device_keeps_what_a_vanished_clone_stood_on(void **state)
{
	struct fixture *f = *state;
	uint32_t before, after;

	set_policy(f, 0, 0, 0, 0);
	before = take_snapshot(f, 0, NULL);
	write_page(f, 2 * SECOND, 0, 'a');
	make_clone(f, PARTITION, CLONE);
	write_page(f, 3 * SECOND, 0, 'b');
	after = take_snapshot(f, 0, NULL);
	roll_back(f, 0, at_number(before));
	merge_all(f);
	crash(f);
	merge_all(f);
	assert_int_equal(bounds_of(f, PARTITION), 1);
	check_page_of(f, CLONE, after, 0, 'a');
	assert_int_equal(drop(f, 0, after), 0);
	merge_all(f);
	assert_int_equal(bounds_of(f, PARTITION), 0);
	assert_int_equal(gone(f), 0);
}

static void test_a_moment_that_can_be_reached_keeps_what_a_vanished_clone_stood_on(void **state)
{
	struct fixture *f = *state;

	set_policy(f, 0, 100 * SECOND, 0, 0);
	write_page(f, 10 * SECOND, 0, 'a');
	make_clone(f, PARTITION, CLONE);
	write_page(f, 20 * SECOND, 0, 'b');
	f->now = 30 * SECOND;
	roll_back(f, 0, at_time(9 * SECOND));
	write_page(f, 40 * SECOND, 0, 'c');
	merge_what_can_be(f); /* so far nothing: all moments are kept */
	assert_int_equal(bounds_of(f, PARTITION), 1);
	check_page_of(f, CLONE, device_view_at(f, 25 * SECOND), 0, 'a');
	/* And back again. */
	roll_back(f, 0, at_time(25 * SECOND));
	check_page_of(f, CLONE, 0, 0, 'a');
	f->now = 50 * SECOND;
	roll_back(f, 0, at_time(9 * SECOND));
	/* Just before the last moment at which it was there is given up, and behind that. */
	f->now = 145 * SECOND;
	merge_all(f);
	assert_int_equal(bounds_of(f, PARTITION), 1);
	f->now = 155 * SECOND;
	merge_what_can_be(f);
	assert_int_equal(bounds_of(f, PARTITION), 0);
}

static void test_a_moment_of_an_interval_keeps_what_a_vanished_clone_stood_on(void **state)
{
	struct fixture *f = *state;

	set_policy(f, 0, 0, 10 * SECOND, 100 * SECOND);
	write_page(f, 12 * SECOND, 0, 'a');
	make_clone(f, PARTITION, CLONE);
	write_page(f, 15 * SECOND, 0, 'b');
	f->now = 25 * SECOND;
	roll_back(f, 0, at_time(10 * SECOND));
	f->now = 60 * SECOND;
	merge_all(f);
	assert_int_equal(bounds_of(f, PARTITION), 1);
	check_page_of(f, CLONE, device_view_at(f, 20 * SECOND), 0, 'a');
	f->now = 135 * SECOND;
	merge_all(f);
	assert_int_equal(bounds_of(f, PARTITION), 0);
}

/* ---- partitions that share an index ---- */

/* Objects that come and go, so that a segment which holds what is put now is worth merging. */
static void make_litter(struct fixture *f)
{
	struct engine_address address = { .partition = OTHERS };

	for (uint64_t n = 1; n <= 200; n++) {
		address.object = OBJECT + n;
		begin(f, ENGINE_WRITE);
		assert_int_equal(
			engine_create(f->txn, OTHERS, ENGINE_USER_OBJECT, address.object, 1, NULL),
			0);
		commit(f);
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_remove(f->txn, address), 0);
		commit(f);
	}
}

/*
 * What was removed in a clone is gone there, though its tombstone ends no record of the clone's
 * own: the source has it.
 */
static void test_what_a_vanished_clone_had_removed_stays_so_when_it_is_back(void **state)
{
	const struct engine_address address = { .partition = CLONE, .object = OBJECT };
	struct fixture *f = *state;
	struct engine_stat stat;
	uint32_t before, after;

	set_policy(f, 0, 0, 0, 0);
	write_page(f, 2 * SECOND, 0, 'a');
	before = take_snapshot(f, 0, NULL);
	make_clone(f, PARTITION, CLONE);
	make_litter(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_remove(f->txn, address), 0);
	commit(f);
	make_litter(f);
	after = take_snapshot(f, 0, NULL);
	roll_back(f, 0, at_number(before));
	for (int round = 0; round < 4; round++)
		merge_what_can_be(f);
	roll_back(f, 0, at_number(after));
	begin(f, ENGINE_READ);
	assert_int_equal(engine_stat(f->txn, address, &stat), -ENOENT);
	commit(f);
}

static uint16_t index_of(struct fixture *f, uint64_t id)
{
	struct partition *partition;
	uint16_t index;

	assert_int_equal(partition_get(f->engine, id, &partition), 0);
	index = partition->index;
	partition_release(f->engine, partition);
	return index;
}

/*
 * Removes the partition and makes it again; the index stays that of the old one, after a restart
 * too.
 */
static void make_again(struct fixture *f)
{
	uint16_t index = index_of(f, PARTITION);

	remove_partition(f, PARTITION);
	crash(f);
	create(f, PARTITION);
	assert_int_not_equal(index_of(f, PARTITION), index);
}

static void test_an_earlier_partition_that_comes_back_keeps_what_clones_of_a_later_stand_on(
	void **state)
{
	struct engine_moment of_later = { .kind = ENGINE_AT_SEQUENCE };
	struct fixture *f = *state;
	struct engine_clone facts;
	uint32_t before, after;

	set_policy(f, 0, 0, 0, 0);
	write_page(f, 2 * SECOND, 0, 'z');
	before = take_snapshot(f, 0, NULL);
	make_again(f);
	write_page(f, 3 * SECOND, 0, 'a');
	make_clone(f, PARTITION, CLONE);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_clone_get(f->txn, CLONE, &facts), 0);
	of_later.value = facts.sequence;
	assert_int_equal(engine_moment_resolve(f->txn, PARTITION, of_later, &facts.sequence), 0);
	commit(f);
	write_page(f, 4 * SECOND, 0, 'b');
	after = take_snapshot(f, 0, NULL);
	remove_one(f, PARTITION);
	roll_back(f, 0, at_number(before));
	check_page(f, 0, 0, 'z');
	/* What the later one's clone stands on is none of its moments. */
	begin(f, ENGINE_READ);
	assert_int_equal(engine_moment_resolve(f->txn, PARTITION, of_later, &facts.sequence),
			 -ENOENT);
	commit(f);
	/* It has a history of its own from now on. */
	take_snapshot(f, PARTITION, NULL);
	write_page(f, 5 * SECOND, 0, 'y');
	merge_all(f);
	check_page(f, after, 0, 'b');
	check_page_of(f, CLONE, after, 0, 'a');
	assert_int_equal(bounds_of(f, PARTITION), 0);
	assert_int_equal(gone(f), 2);
	assert_int_equal(drop(f, 0, after), 0);
	merge_all(f);
	assert_int_equal(gone(f), 0);
}

static void test_a_later_partition_that_comes_back_keeps_what_clones_of_an_earlier_stand_on(
	void **state)
{
	struct fixture *f = *state;
	uint32_t earlier, later, after;

	set_policy(f, 0, 0, 0, 0);
	write_page(f, 2 * SECOND, 0, 'a');
	earlier = take_snapshot(f, 0, NULL);
	make_again(f);
	write_page(f, 3 * SECOND, 0, 'z');
	later = take_snapshot(f, 0, NULL);
	roll_back(f, 0, at_number(earlier));
	make_clone(f, PARTITION, CLONE);
	write_page(f, 4 * SECOND, 0, 'b');
	after = take_snapshot(f, 0, NULL);
	roll_back(f, 0, at_number(later));
	assert_int_equal(drop(f, 0, earlier), 0);
	write_page(f, 5 * SECOND, 0, 'y');
	merge_all(f);
	crash(f);
	merge_all(f);
	check_page(f, later, 0, 'z');
	check_page(f, after, 0, 'b');
	check_page_of(f, CLONE, after, 0, 'a');
}

/*
 * Versions of another partition, enough to fill segments of what is put of history. They are kept,
 * or dropped again.
 */
static void fill_history(struct fixture *f, bool drops)
{
	for (int n = 0; n < 100; n++) {
		uint32_t version = take_snapshot(f, OTHERS, NULL);

		if (drops)
			assert_int_equal(drop(f, OTHERS, version), 0);
	}
}

/*
 * A partition has had a clone, and has none any more. What was recorded while it had one lies in a
 * segment that is not worth merging, unlike the one in which the history of its index is recorded
 * last. Returns a version of the device with the partition, but no clone.
 */
static uint32_t let_a_clone_come_and_go(struct fixture *f)
{
	create(f, ANOTHER);
	make_clone(f, ANOTHER, CLONE);
	fill_history(f, false);
	remove_one(f, CLONE);
	standing_review(f->engine);
	assert_int_equal(bounds_of(f, ANOTHER), 0);
	return take_snapshot(f, 0, NULL);
}

static void check_that_it_can_be_cloned(struct fixture *f)
{
	assert_int_equal(bounds_of(f, ANOTHER), 0);
	make_clone(f, ANOTHER, CLONE);
	assert_int_equal(bounds_of(f, ANOTHER), 1);
}

static void test_what_clones_stood_on_stays_forgotten_while_nobody_has_the_index(void **state)
{
	struct fixture *f = *state;
	uint32_t before, after;

	set_policy(f, 0, 0, 0, 0);
	before = take_snapshot(f, 0, NULL);
	after = let_a_clone_come_and_go(f);
	fill_history(f, true);
	roll_back(f, 0, at_number(before));
	merge_all(f);
	roll_back(f, 0, at_number(after));
	check_that_it_can_be_cloned(f);
}

static void test_what_clones_of_an_earlier_owner_stood_on_stays_forgotten_too(void **state)
{
	struct fixture *f = *state;
	uint32_t before, later;
	uint16_t index;

	set_policy(f, 0, 0, 0, 0);
	before = take_snapshot(f, 0, NULL);
	let_a_clone_come_and_go(f);
	index = index_of(f, ANOTHER);
	roll_back(f, 0, at_number(before));
	crash(f); /* indices are given from the first again */
	create(f, ANOTHER);
	assert_int_not_equal(index_of(f, ANOTHER), index);
	later = take_snapshot(f, 0, NULL);
	fill_history(f, true);
	roll_back(f, 0, at_number(before));
	merge_all(f);
	roll_back(f, 0, at_number(later));
	check_that_it_can_be_cloned(f);
}

/* ---- partitions that are gone ---- */

/* Creates an object and removes it, so that the state of its partition is put. */
static void put_states(struct fixture *f, uint64_t ms)
{
	struct engine_address address = { .partition = PARTITION, .object = OBJECT + 1 };

	f->now = ms;
	begin(f, ENGINE_WRITE);
	assert_int_equal(
		engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, address.object, 1, NULL), 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_remove(f->txn, address), 0);
	commit(f);
}

/*
 * It went back to a moment that is given up, so no state is left of before it that a reader behind
 * the rollback finds. But the version is of before the rollback.
 */
static void test_an_index_stays_taken_while_a_version_of_before_a_rollback_shows_it(void **state)
{
	const struct engine_moment then = { .kind = ENGINE_AT_TIME, .value = 15 * SECOND };
	struct fixture *f = *state;
	uint32_t version;

	set_policy(f, 0, 100 * SECOND, 0, 0);
	put_states(f, 10 * SECOND);
	write_page(f, 20 * SECOND, 0, 'a');
	put_states(f, 25 * SECOND);
	version = take_snapshot(f, 0, NULL);
	f->now = 30 * SECOND;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_rollback(f->txn, PARTITION, then), 0);
	commit(f);
	f->now = 40 * SECOND;
	remove_partition(f, PARTITION);
	make_litter(f);
	for (uint64_t round = 1; round <= 4; round++) {
		f->now = round * 1000 * SECOND;
		make_litter(f);
		merge_all(f);
	}
	assert_int_equal(gone(f), 1);
	check_page(f, version, 0, 'a');
	assert_int_equal(drop(f, 0, version), 0);
	merge_all(f);
	assert_int_equal(gone(f), 0);
}

/* What a merge does, too. */
static void look_at_versions(struct fixture *f, uint16_t index)
{
	struct source source;
	struct idset versions;
	uint64_t bound;

	assert_int_equal(source_open(f->engine, index, &source), 0);
	versions = history_versions(f->engine, source.partition);
	assert_int_equal(history_next_kept(&versions, 0, &bound, NULL), 0);
	source_close(f->engine, &source);
}

/* Not even in memory: what was looked at of the earlier one's versions. */
static void test_the_next_owner_of_an_index_has_nothing_of_the_earlier_one(void **state)
{
	struct fixture *f = *state;
	uint16_t index = index_of(f, PARTITION);

	set_policy(f, 0, 0, 0, 0);
	take_snapshot(f, PARTITION, NULL);
	remove_partition(f, PARTITION);
	look_at_versions(f, index);
	standing_review(f->engine);
	assert_int_equal(gone(f), 0);
	f->engine->last_index = (uint16_t)(index - 1);
	create(f, PARTITION);
	assert_int_equal(index_of(f, PARTITION), index);
	write_page(f, 2 * SECOND, 0, 'a');
	assert_int_equal(take_snapshot(f, PARTITION, NULL), 1);
	write_page(f, 3 * SECOND, 0, 'b');
	crash(f);
	check_page(f, 1, 0, 'a');
}

/* Its versions and its policy go when room is short; the device's hold when it comes back. */
static void test_what_only_one_that_is_gone_keeps_is_given_up(void **state)
{
	const struct engine_retention all = { .kind = ENGINE_RETAIN_ALL };
	struct fixture *f = *state;
	struct engine_retention found;
	struct engine_version version;
	uint16_t index = index_of(f, PARTITION);
	uint32_t of_device;

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(f->txn, PARTITION, &all, false), 0);
	commit(f);
	write_page(f, 2 * SECOND, 0, 'a');
	take_snapshot(f, PARTITION, NULL);
	of_device = take_snapshot(f, 0, NULL);
	assert_int_equal(standing_give_up(f->engine), -EAGAIN);
	remove_partition(f, PARTITION);
	look_at_versions(f, index);
	assert_int_equal(standing_give_up(f->engine), 0);
	assert_int_equal(standing_give_up(f->engine), -EAGAIN);
	roll_back(f, 0, at_number(of_device));
	check_page(f, 0, 0, 'a');
	begin(f, ENGINE_READ);
	assert_int_equal(engine_retention_get(f->txn, PARTITION, &found), 0);
	assert_int_equal(found.kind, ENGINE_RETAIN_SNAPSHOTS);
	assert_int_equal(engine_version_next(f->txn, PARTITION, 0, &version), 0);
	assert_int_equal(version.version, of_device);
	commit(f);
	take_snapshot(f, PARTITION, NULL);
	write_page(f, 3 * SECOND, 0, 'b');
	crash(f);
	check_page(f, of_device, 0, 'a');
	check_page(f, 0, 0, 'b');
}

/* ---- clones that were removed or refreshed ---- */

static void test_the_past_of_a_removed_clone_can_be_reached(void **state)
{
	struct fixture *f = *state;

	keep_everything(f);
	write_page(f, 10 * SECOND, 0, 'a');
	make_clone(f, PARTITION, CLONE);
	write_page(f, 20 * SECOND, 0, 'b');
	f->now = 30 * SECOND;
	remove_one(f, CLONE);
	f->now = 40 * SECOND;
	merge_all(f);
	crash(f);
	check_page_of(f, CLONE, device_view_at(f, 25 * SECOND), 0, 'a');
	set_policy(f, 0, 0, 0, 0);
	merge_all(f);
	assert_int_equal(device_view_at(f, 25 * SECOND), 0);
	assert_int_equal(gone(f), 0);
}

static void test_the_past_of_a_refreshed_clone_can_be_reached(void **state)
{
	struct fixture *f = *state;
	uint32_t version;

	keep_everything(f);
	write_page(f, 10 * SECOND, 0, 'a');
	make_clone(f, PARTITION, CLONE);
	write_page(f, 20 * SECOND, 0, 'b');
	f->now = 30 * SECOND;
	version = take_snapshot(f, CLONE, NULL);
	refresh(f, CLONE);
	f->now = 40 * SECOND;
	merge_all(f);
	check_page_of(f, CLONE, device_view_at(f, 25 * SECOND), 0, 'a');
	set_policy(f, 0, 0, 0, 0);
	merge_all(f);
	assert_int_equal(device_view_at(f, 25 * SECOND), 0);
	assert_int_equal(bounds_of(f, PARTITION), 2);
	check_page_of(f, CLONE, version, 0, 'a');
	check_page_of(f, CLONE, 0, 0, 'b');
	assert_int_equal(drop(f, CLONE, version), 0);
	merge_all(f);
	assert_int_equal(bounds_of(f, PARTITION), 1);
	check_page_of(f, CLONE, 0, 0, 'b');
}

static void test_clones_of_a_removed_clone_keep_what_both_stand_on(void **state)
{
	struct fixture *f = *state;

	set_policy(f, 0, 0, 0, 0);
	write_page(f, 10 * SECOND, 0, 'a');
	make_clone(f, PARTITION, CLONE);
	make_clone(f, CLONE, CLONE_OF_CLONE);
	write_page(f, 20 * SECOND, 0, 'b');
	remove_one(f, CLONE);
	remove_one(f, PARTITION);
	merge_all(f);
	crash(f);
	merge_all(f);
	assert_int_equal(gone(f), 2);
	check_page_of(f, CLONE_OF_CLONE, 0, 0, 'a');
	remove_one(f, CLONE_OF_CLONE);
	/* One after the other. */
	merge_all(f);
	merge_all(f);
	assert_int_equal(gone(f), 0);
}

/* A clone of the removed clone shows that it stood on its source. */
static void test_clones_of_a_removed_clone_keep_what_that_stood_on(void **state)
{
	struct fixture *f = *state;
	uint32_t before, after;

	set_policy(f, 0, 0, 0, 0);
	before = take_snapshot(f, 0, NULL);
	write_page(f, 2 * SECOND, 0, 'a');
	make_clone(f, PARTITION, CLONE);
	write_page(f, 3 * SECOND, 0, 'b');
	make_clone(f, CLONE, CLONE_OF_CLONE);
	remove_one(f, CLONE);
	after = take_snapshot(f, 0, NULL);
	roll_back(f, 0, at_number(before));
	assert_int_equal(bounds_of(f, PARTITION), 1);
	merge_all(f);
	merge_all(f);
	check_page_of(f, CLONE_OF_CLONE, after, 0, 'a');
	assert_int_equal(drop(f, 0, after), 0);
	merge_all(f);
	merge_all(f);
	assert_int_equal(gone(f), 0);
}

static void test_a_version_that_a_clone_stands_on_is_dropped_when_nothing_shows_that(void **state)
{
	const struct engine_address address = { .partition = PARTITION, .object = OBJECT };
	struct engine_moment moment = { .kind = ENGINE_AT_VERSION };
	struct fixture *f = *state;
	uint32_t version, of_device;

	set_policy(f, 0, 0, 0, 0);
	write_page(f, 10 * SECOND, 0, 'a');
	version = take_snapshot(f, PARTITION, NULL);
	moment.value = version;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone(f->txn, PARTITION, moment, CLONE, true, NULL), 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_truncate(f->txn, address, 0), 0);
	commit(f);
	of_device = take_snapshot(f, 0, NULL);
	assert_int_equal(drop(f, PARTITION, version), -EBUSY);
	remove_one(f, CLONE);
	assert_int_equal(drop(f, PARTITION, version), -EBUSY);
	merge_all(f);
	check_page_of(f, CLONE, of_device, 0, 'a');
	assert_int_equal(drop(f, 0, of_device), 0);
	assert_int_equal(drop(f, PARTITION, version), 0);
	merge_all(f);
	assert_int_equal(gone(f), 0);
}

/* ---- damage ---- */

/* Makes the state of a partition say that it is the one of another ID. */
static void put_state_with_id(struct fixture *f, uint64_t partition, uint64_t id)
{
	uint8_t record[PARTITION_STATE_BYTES];
	struct partition *found, changed;

	begin(f, ENGINE_WRITE);
	assert_int_equal(partition_get(f->engine, partition, &found), 0);
	changed = *found;
	partition_release(f->engine, found);
	changed.id = id;
	partition_encode(&changed, record);
	assert_int_equal(
		record_put(&f->txn->writer, key_of_state(changed.index), 0, record, sizeof(record)),
		0);
	commit(f);
}

static void test_a_source_that_is_damaged_holds_up_no_other(void **state)
{
	struct fixture *f = *state;

	set_policy(f, 0, 0, 0, 0);
	make_clone(f, PARTITION, CLONE);
	make_clone(f, OTHERS, ANOTHER);
	remove_one(f, CLONE);
	remove_one(f, ANOTHER);
	assert_int_equal(bounds_of(f, PARTITION), 1);
	assert_int_equal(bounds_of(f, OTHERS), 1);
	put_state_with_id(f, PARTITION, 0x12345);
	for (int call = 0; call < 3; call++)
		standing_review(f->engine);
	assert_int_equal(f->engine->past->warned_review, -EBADMSG);
	assert_int_equal(bounds_of(f, PARTITION), 1);
	assert_int_equal(bounds_of(f, OTHERS), 0);
	put_state_with_id(f, PARTITION, PARTITION);
	for (int call = 0; call < 3; call++)
		standing_review(f->engine);
	assert_int_equal(f->engine->past->warned_review, 0);
	assert_int_equal(bounds_of(f, PARTITION), 0);
	assert_int_equal(gone(f), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLASH_TEST(test_vanished_clones_do_not_fill_the_device),
		FLASH_TEST(test_a_version_of_the_device_keeps_what_a_vanished_clone_stood_on),
		FLASH_TEST(test_a_moment_that_can_be_reached_keeps_what_a_vanished_clone_stood_on),
		FLASH_TEST(test_a_moment_of_an_interval_keeps_what_a_vanished_clone_stood_on),
		FLASH_TEST(
			test_an_earlier_partition_that_comes_back_keeps_what_clones_of_a_later_stand_on),
		FLASH_TEST(
			test_a_later_partition_that_comes_back_keeps_what_clones_of_an_earlier_stand_on),
		FLASH_TEST(test_what_a_vanished_clone_had_removed_stays_so_when_it_is_back),
		FLASH_TEST(test_what_clones_stood_on_stays_forgotten_while_nobody_has_the_index),
		FLASH_TEST(test_what_clones_of_an_earlier_owner_stood_on_stays_forgotten_too),
		FLASH_TEST(test_an_index_stays_taken_while_a_version_of_before_a_rollback_shows_it),
		FLASH_TEST(test_the_next_owner_of_an_index_has_nothing_of_the_earlier_one),
		FLASH_TEST(test_what_only_one_that_is_gone_keeps_is_given_up),
		FLASH_TEST(test_the_past_of_a_removed_clone_can_be_reached),
		FLASH_TEST(test_the_past_of_a_refreshed_clone_can_be_reached),
		FLASH_TEST(test_clones_of_a_removed_clone_keep_what_both_stand_on),
		FLASH_TEST(test_clones_of_a_removed_clone_keep_what_that_stood_on),
		FLASH_TEST(
			test_a_version_that_a_clone_stands_on_is_dropped_when_nothing_shows_that),
		FLASH_TEST(test_a_source_that_is_damaged_holds_up_no_other),
	};

	return cmocka_run_group_tests_name("clones_standing", tests, NULL, NULL);
}
