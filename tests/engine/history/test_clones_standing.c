/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What clones stand on is kept as long as anything shows them standing there, also when they are
 * gone, and no longer.
 */
#include "tests/engine/device_fixture.h"

#include "engine/history/standing.h"
#include "engine/objects/objects.h"

enum { CLONE_OF_CLONE = 0x10003, ANOTHER = 0x10004, PAGES = 90 };

static void make_clone(struct device *device, uint64_t source, uint64_t clone)
{
	const struct engine_moment now = { .kind = ENGINE_NOW };

	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_clone(device->txn, source, now, clone, true, NULL), 0);
	commit(device);
}

static void remove_one(struct device *device, uint64_t partition)
{
	begin(device, ENGINE_FREE);
	assert_int_equal(engine_partition_remove(device->txn, partition, true), 0);
	commit(device);
}

static void refresh(struct device *device, uint64_t clone)
{
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_clone_refresh(device->txn, clone), 0);
	commit(device);
}

static int drop(struct device *device, uint64_t partition, uint32_t version)
{
	begin(device, ENGINE_FREE);
	return end(device, engine_version_drop(device->txn, partition, version));
}

static void keep_everything(struct device *device)
{
	const struct engine_retention retention = { .kind = ENGINE_RETAIN_ALL };

	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(device->txn, 0, &retention, false), 0);
	commit(device);
}

/* Writes all pages of the object. */
static void write_all(struct device *device, char byte)
{
	const struct engine_address address = { .partition = PARTITION, .object = OBJECT };
	static char bytes[PAGES * PAGE];

	memset(bytes, byte, sizeof(bytes));
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_write(device->txn, address, 0, bytes, sizeof(bytes)), 0);
	commit(device);
}

/* How many indices are those of partitions that are gone. */
static uint64_t gone(struct device *device)
{
	struct partition *root;
	uint64_t count;

	assert_int_equal(partition_get(device->engine, 0, &root), 0);
	count = root->history.clones.count - root->sets[PARTITION_USER_OBJECTS].count;
	partition_release(device->engine, root);
	return count;
}

/* How many such bounds a current partition has. */
static uint64_t bounds_of(struct device *device, uint64_t id)
{
	struct partition *partition;
	uint64_t count;

	assert_int_equal(partition_get(device->engine, id, &partition), 0);
	count = partition->history.clones.count;
	partition_release(device->engine, partition);
	return count;
}

/* A view of the whole device at a time. 0: that is not to be reached. */
static uint32_t device_view_at(struct device *device, uint64_t ms)
{
	const struct engine_moment moment = { .kind = ENGINE_AT_TIME, .value = ms };
	uint32_t version = 0;
	int result;

	begin(device, ENGINE_READ);
	result = engine_view_open(device->txn, 0, moment, &version);
	assert_true(result == 0 || result == -ENOENT);
	commit(device);
	return version;
}

/* ---- clones that vanished ---- */

static void test_vanished_clones_do_not_fill_the_device(void **state)
{
	struct device *device = *state;
	uint32_t before;

	set_policy(device, 0, 0, 0, 0);
	remove_partition(device);
	before = take_snapshot(device, 0);
	/* All of them together would not fit. */
	for (uint64_t round = 1; round <= 60; round++) {
		device->now = round * 10 * SECOND;
		create(device, PARTITION);
		write_all(device, 'a');
		make_clone(device, PARTITION, CLONE);
		write_all(device, 'b');
		roll_back_device(device, ENGINE_AT_VERSION, before);
		merge_all(device);
	}
	assert_int_equal(gone(device), 0);
}

static void test_a_version_of_the_device_keeps_what_a_vanished_clone_stood_on(void **state)
{
	struct device *device = *state;
	uint32_t before, after;

	set_policy(device, 0, 0, 0, 0);
	before = take_snapshot(device, 0);
	write_page(device, 2 * SECOND, 0, 'a');
	make_clone(device, PARTITION, CLONE);
	write_page(device, 3 * SECOND, 0, 'b');
	after = take_snapshot(device, 0);
	roll_back_device(device, ENGINE_AT_VERSION, before);
	merge_all(device);
	crash(device);
	merge_all(device);
	assert_int_equal(bounds_of(device, PARTITION), 1);
	check_page_of(device, CLONE, after, 0, 'a');
	assert_int_equal(drop(device, 0, after), 0);
	merge_all(device);
	assert_int_equal(bounds_of(device, PARTITION), 0);
	assert_int_equal(gone(device), 0);
}

static void test_a_moment_that_can_be_reached_keeps_what_a_vanished_clone_stood_on(void **state)
{
	struct device *device = *state;

	set_policy(device, 0, 100 * SECOND, 0, 0);
	write_page(device, 10 * SECOND, 0, 'a');
	make_clone(device, PARTITION, CLONE);
	write_page(device, 20 * SECOND, 0, 'b');
	device->now = 30 * SECOND;
	roll_back_device(device, ENGINE_AT_TIME, 9 * SECOND);
	write_page(device, 40 * SECOND, 0, 'c');
	merge_what_can_be(device); /* so far nothing: all moments are kept */
	assert_int_equal(bounds_of(device, PARTITION), 1);
	check_page_of(device, CLONE, device_view_at(device, 25 * SECOND), 0, 'a');
	/* And back again. */
	roll_back_device(device, ENGINE_AT_TIME, 25 * SECOND);
	check_page_of(device, CLONE, 0, 0, 'a');
	device->now = 50 * SECOND;
	roll_back_device(device, ENGINE_AT_TIME, 9 * SECOND);
	/* Just before the last moment at which it was there is given up, and behind that. */
	device->now = 145 * SECOND;
	merge_all(device);
	assert_int_equal(bounds_of(device, PARTITION), 1);
	device->now = 155 * SECOND;
	merge_what_can_be(device);
	assert_int_equal(bounds_of(device, PARTITION), 0);
}

static void test_a_moment_of_an_interval_keeps_what_a_vanished_clone_stood_on(void **state)
{
	struct device *device = *state;

	set_policy(device, 0, 0, 10 * SECOND, 100 * SECOND);
	write_page(device, 12 * SECOND, 0, 'a');
	make_clone(device, PARTITION, CLONE);
	write_page(device, 15 * SECOND, 0, 'b');
	device->now = 25 * SECOND;
	roll_back_device(device, ENGINE_AT_TIME, 10 * SECOND);
	device->now = 60 * SECOND;
	merge_all(device);
	assert_int_equal(bounds_of(device, PARTITION), 1);
	check_page_of(device, CLONE, device_view_at(device, 20 * SECOND), 0, 'a');
	device->now = 135 * SECOND;
	merge_all(device);
	assert_int_equal(bounds_of(device, PARTITION), 0);
}

/* ---- partitions that share an index ---- */

/* Objects that come and go, so that a segment which holds what is put now is worth merging. */
static void make_litter(struct device *device)
{
	struct engine_address address = { .partition = OTHERS };

	for (uint64_t n = 1; n <= 200; n++) {
		address.object = OBJECT + n;
		begin(device, ENGINE_WRITE);
		assert_int_equal(engine_create(device->txn, OTHERS, ENGINE_USER_OBJECT,
					       address.object, 1, NULL),
				 0);
		commit(device);
		begin(device, ENGINE_WRITE);
		assert_int_equal(engine_remove(device->txn, address), 0);
		commit(device);
	}
}

/*
 * What was removed in a clone is gone there, though its tombstone ends no record of the clone's
 * own: the source has it.
 */
static void test_what_a_vanished_clone_had_removed_stays_so_when_it_is_back(void **state)
{
	const struct engine_address address = { .partition = CLONE, .object = OBJECT };
	struct device *device = *state;
	struct engine_stat stat;
	uint32_t before, after;

	set_policy(device, 0, 0, 0, 0);
	write_page(device, 2 * SECOND, 0, 'a');
	before = take_snapshot(device, 0);
	make_clone(device, PARTITION, CLONE);
	make_litter(device);
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_remove(device->txn, address), 0);
	commit(device);
	make_litter(device);
	after = take_snapshot(device, 0);
	roll_back_device(device, ENGINE_AT_VERSION, before);
	for (int round = 0; round < 4; round++)
		merge_what_can_be(device);
	roll_back_device(device, ENGINE_AT_VERSION, after);
	begin(device, ENGINE_READ);
	assert_int_equal(engine_stat(device->txn, address, &stat), -ENOENT);
	commit(device);
}

static uint16_t index_of(struct device *device, uint64_t id)
{
	struct partition *partition;
	uint16_t index;

	assert_int_equal(partition_get(device->engine, id, &partition), 0);
	index = partition->index;
	partition_release(device->engine, partition);
	return index;
}

/* Removes the partition and makes it again; the index stays that of the old one, after a restart
 * too. */
static void make_again(struct device *device)
{
	uint16_t index = index_of(device, PARTITION);

	remove_partition(device);
	crash(device);
	create(device, PARTITION);
	assert_int_not_equal(index_of(device, PARTITION), index);
}

static void test_an_earlier_partition_that_comes_back_keeps_what_clones_of_a_later_stand_on(
	void **state)
{
	struct engine_moment of_later = { .kind = ENGINE_AT_SEQUENCE };
	struct device *device = *state;
	struct engine_clone facts;
	uint32_t before, after;

	set_policy(device, 0, 0, 0, 0);
	write_page(device, 2 * SECOND, 0, 'z');
	before = take_snapshot(device, 0);
	make_again(device);
	write_page(device, 3 * SECOND, 0, 'a');
	make_clone(device, PARTITION, CLONE);
	begin(device, ENGINE_READ);
	assert_int_equal(engine_clone_get(device->txn, CLONE, &facts), 0);
	of_later.value = facts.sequence;
	assert_int_equal(engine_moment_resolve(device->txn, PARTITION, of_later, &facts.sequence),
			 0);
	commit(device);
	write_page(device, 4 * SECOND, 0, 'b');
	after = take_snapshot(device, 0);
	remove_one(device, PARTITION);
	roll_back_device(device, ENGINE_AT_VERSION, before);
	check_page(device, 0, 0, 'z');
	/* What the later one's clone stands on is none of its moments. */
	begin(device, ENGINE_READ);
	assert_int_equal(engine_moment_resolve(device->txn, PARTITION, of_later, &facts.sequence),
			 -ENOENT);
	commit(device);
	/* It has a history of its own from now on. */
	take_snapshot(device, PARTITION);
	write_page(device, 5 * SECOND, 0, 'y');
	merge_all(device);
	check_page(device, after, 0, 'b');
	check_page_of(device, CLONE, after, 0, 'a');
	assert_int_equal(bounds_of(device, PARTITION), 0);
	assert_int_equal(gone(device), 2);
	assert_int_equal(drop(device, 0, after), 0);
	merge_all(device);
	assert_int_equal(gone(device), 0);
}

static void test_a_later_partition_that_comes_back_keeps_what_clones_of_an_earlier_stand_on(
	void **state)
{
	struct device *device = *state;
	uint32_t earlier, later, after;

	set_policy(device, 0, 0, 0, 0);
	write_page(device, 2 * SECOND, 0, 'a');
	earlier = take_snapshot(device, 0);
	make_again(device);
	write_page(device, 3 * SECOND, 0, 'z');
	later = take_snapshot(device, 0);
	roll_back_device(device, ENGINE_AT_VERSION, earlier);
	make_clone(device, PARTITION, CLONE);
	write_page(device, 4 * SECOND, 0, 'b');
	after = take_snapshot(device, 0);
	roll_back_device(device, ENGINE_AT_VERSION, later);
	assert_int_equal(drop(device, 0, earlier), 0);
	write_page(device, 5 * SECOND, 0, 'y');
	merge_all(device);
	crash(device);
	merge_all(device);
	check_page(device, later, 0, 'z');
	check_page(device, after, 0, 'b');
	check_page_of(device, CLONE, after, 0, 'a');
}

/*
 * Versions of another partition, enough to fill segments of what is put of history. They are kept,
 * or dropped again.
 */
static void fill_history(struct device *device, bool drops)
{
	for (int n = 0; n < 100; n++) {
		uint32_t version = take_snapshot(device, OTHERS);

		if (drops)
			assert_int_equal(drop(device, OTHERS, version), 0);
	}
}

/*
 * A partition has had a clone, and has none any more. What was recorded while it had one lies in a
 * segment that is not worth merging, unlike the one in which the history of its index is recorded
 * last. Returns a version of the device with the partition, but no clone.
 */
static uint32_t let_a_clone_come_and_go(struct device *device)
{
	create(device, ANOTHER);
	make_clone(device, ANOTHER, CLONE);
	fill_history(device, false);
	remove_one(device, CLONE);
	standing_review(device->engine);
	assert_int_equal(bounds_of(device, ANOTHER), 0);
	return take_snapshot(device, 0);
}

static void check_that_it_can_be_cloned(struct device *device)
{
	assert_int_equal(bounds_of(device, ANOTHER), 0);
	make_clone(device, ANOTHER, CLONE);
	assert_int_equal(bounds_of(device, ANOTHER), 1);
}

static void test_what_clones_stood_on_stays_forgotten_while_nobody_has_the_index(void **state)
{
	struct device *device = *state;
	uint32_t before, after;

	set_policy(device, 0, 0, 0, 0);
	before = take_snapshot(device, 0);
	after = let_a_clone_come_and_go(device);
	fill_history(device, true);
	roll_back_device(device, ENGINE_AT_VERSION, before);
	merge_all(device);
	roll_back_device(device, ENGINE_AT_VERSION, after);
	check_that_it_can_be_cloned(device);
}

static void test_what_clones_of_an_earlier_owner_stood_on_stays_forgotten_too(void **state)
{
	struct device *device = *state;
	uint32_t before, later;
	uint16_t index;

	set_policy(device, 0, 0, 0, 0);
	before = take_snapshot(device, 0);
	let_a_clone_come_and_go(device);
	index = index_of(device, ANOTHER);
	roll_back_device(device, ENGINE_AT_VERSION, before);
	crash(device); /* indices are given from the first again */
	create(device, ANOTHER);
	assert_int_not_equal(index_of(device, ANOTHER), index);
	later = take_snapshot(device, 0);
	fill_history(device, true);
	roll_back_device(device, ENGINE_AT_VERSION, before);
	merge_all(device);
	roll_back_device(device, ENGINE_AT_VERSION, later);
	check_that_it_can_be_cloned(device);
}

/* ---- partitions that are gone ---- */

/* Creates an object and removes it, so that the state of its partition is put. */
static void put_states(struct device *device, uint64_t ms)
{
	struct engine_address address = { .partition = PARTITION, .object = OBJECT + 1 };

	device->now = ms;
	begin(device, ENGINE_WRITE);
	assert_int_equal(
		engine_create(device->txn, PARTITION, ENGINE_USER_OBJECT, address.object, 1, NULL),
		0);
	commit(device);
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_remove(device->txn, address), 0);
	commit(device);
}

/*
 * It went back to a moment that is given up, so no state is left of before it that a reader behind
 * the rollback finds. But the version is of before the rollback.
 */
static void test_an_index_stays_taken_while_a_version_of_before_a_rollback_shows_it(void **state)
{
	const struct engine_moment then = { .kind = ENGINE_AT_TIME, .value = 15 * SECOND };
	struct device *device = *state;
	uint32_t version;

	set_policy(device, 0, 100 * SECOND, 0, 0);
	put_states(device, 10 * SECOND);
	write_page(device, 20 * SECOND, 0, 'a');
	put_states(device, 25 * SECOND);
	version = take_snapshot(device, 0);
	device->now = 30 * SECOND;
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_rollback(device->txn, PARTITION, then), 0);
	commit(device);
	device->now = 40 * SECOND;
	remove_partition(device);
	make_litter(device);
	for (uint64_t round = 1; round <= 4; round++) {
		device->now = round * 1000 * SECOND;
		make_litter(device);
		merge_all(device);
	}
	assert_int_equal(gone(device), 1);
	check_page(device, version, 0, 'a');
	assert_int_equal(drop(device, 0, version), 0);
	merge_all(device);
	assert_int_equal(gone(device), 0);
}

/* What a merge does, too. */
static void look_at_versions(struct device *device, uint16_t index)
{
	struct source source;
	struct idset versions;
	uint64_t bound;

	assert_int_equal(source_open(device->engine, index, &source), 0);
	versions = history_versions(device->engine, source.partition);
	assert_int_equal(history_next_kept(&versions, 0, &bound, NULL), 0);
	source_close(device->engine, &source);
}

/* Not even in memory: what was looked at of the earlier one's versions. */
static void test_the_next_owner_of_an_index_has_nothing_of_the_earlier_one(void **state)
{
	struct device *device = *state;
	uint16_t index = index_of(device, PARTITION);

	set_policy(device, 0, 0, 0, 0);
	take_snapshot(device, PARTITION);
	remove_partition(device);
	look_at_versions(device, index);
	standing_review(device->engine);
	assert_int_equal(gone(device), 0);
	device->engine->last_index = (uint16_t)(index - 1);
	create(device, PARTITION);
	assert_int_equal(index_of(device, PARTITION), index);
	write_page(device, 2 * SECOND, 0, 'a');
	assert_int_equal(take_snapshot(device, PARTITION), 1);
	write_page(device, 3 * SECOND, 0, 'b');
	crash(device);
	check_page(device, 1, 0, 'a');
}

/* Its versions and its policy go when room is short; the device's hold when it comes back. */
static void test_what_only_one_that_is_gone_keeps_is_given_up(void **state)
{
	const struct engine_retention all = { .kind = ENGINE_RETAIN_ALL };
	struct device *device = *state;
	struct engine_retention found;
	struct engine_version version;
	uint16_t index = index_of(device, PARTITION);
	uint32_t of_device;

	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(device->txn, PARTITION, &all, false), 0);
	commit(device);
	write_page(device, 2 * SECOND, 0, 'a');
	take_snapshot(device, PARTITION);
	of_device = take_snapshot(device, 0);
	assert_int_equal(standing_give_up(device->engine), -EAGAIN);
	remove_partition(device);
	look_at_versions(device, index);
	assert_int_equal(standing_give_up(device->engine), 0);
	assert_int_equal(standing_give_up(device->engine), -EAGAIN);
	roll_back_device(device, ENGINE_AT_VERSION, of_device);
	check_page(device, 0, 0, 'a');
	begin(device, ENGINE_READ);
	assert_int_equal(engine_retention_get(device->txn, PARTITION, &found), 0);
	assert_int_equal(found.kind, ENGINE_RETAIN_SNAPSHOTS);
	assert_int_equal(engine_version_next(device->txn, PARTITION, 0, &version), 0);
	assert_int_equal(version.version, of_device);
	commit(device);
	take_snapshot(device, PARTITION);
	write_page(device, 3 * SECOND, 0, 'b');
	crash(device);
	check_page(device, of_device, 0, 'a');
	check_page(device, 0, 0, 'b');
}

/* ---- clones that were removed or refreshed ---- */

static void test_the_past_of_a_removed_clone_can_be_reached(void **state)
{
	struct device *device = *state;

	keep_everything(device);
	write_page(device, 10 * SECOND, 0, 'a');
	make_clone(device, PARTITION, CLONE);
	write_page(device, 20 * SECOND, 0, 'b');
	device->now = 30 * SECOND;
	remove_one(device, CLONE);
	device->now = 40 * SECOND;
	merge_all(device);
	crash(device);
	check_page_of(device, CLONE, device_view_at(device, 25 * SECOND), 0, 'a');
	set_policy(device, 0, 0, 0, 0);
	merge_all(device);
	assert_int_equal(device_view_at(device, 25 * SECOND), 0);
	assert_int_equal(gone(device), 0);
}

static void test_the_past_of_a_refreshed_clone_can_be_reached(void **state)
{
	struct device *device = *state;
	uint32_t version;

	keep_everything(device);
	write_page(device, 10 * SECOND, 0, 'a');
	make_clone(device, PARTITION, CLONE);
	write_page(device, 20 * SECOND, 0, 'b');
	device->now = 30 * SECOND;
	version = take_snapshot(device, CLONE);
	refresh(device, CLONE);
	device->now = 40 * SECOND;
	merge_all(device);
	check_page_of(device, CLONE, device_view_at(device, 25 * SECOND), 0, 'a');
	set_policy(device, 0, 0, 0, 0);
	merge_all(device);
	assert_int_equal(device_view_at(device, 25 * SECOND), 0);
	assert_int_equal(bounds_of(device, PARTITION), 2);
	check_page_of(device, CLONE, version, 0, 'a');
	check_page_of(device, CLONE, 0, 0, 'b');
	assert_int_equal(drop(device, CLONE, version), 0);
	merge_all(device);
	assert_int_equal(bounds_of(device, PARTITION), 1);
	check_page_of(device, CLONE, 0, 0, 'b');
}

static void test_clones_of_a_removed_clone_keep_what_both_stand_on(void **state)
{
	struct device *device = *state;

	set_policy(device, 0, 0, 0, 0);
	write_page(device, 10 * SECOND, 0, 'a');
	make_clone(device, PARTITION, CLONE);
	make_clone(device, CLONE, CLONE_OF_CLONE);
	write_page(device, 20 * SECOND, 0, 'b');
	remove_one(device, CLONE);
	remove_one(device, PARTITION);
	merge_all(device);
	crash(device);
	merge_all(device);
	assert_int_equal(gone(device), 2);
	check_page_of(device, CLONE_OF_CLONE, 0, 0, 'a');
	remove_one(device, CLONE_OF_CLONE);
	/* One after the other. */
	merge_all(device);
	merge_all(device);
	assert_int_equal(gone(device), 0);
}

/* A clone of the removed clone shows that it stood on its source. */
static void test_clones_of_a_removed_clone_keep_what_that_stood_on(void **state)
{
	struct device *device = *state;
	uint32_t before, after;

	set_policy(device, 0, 0, 0, 0);
	before = take_snapshot(device, 0);
	write_page(device, 2 * SECOND, 0, 'a');
	make_clone(device, PARTITION, CLONE);
	write_page(device, 3 * SECOND, 0, 'b');
	make_clone(device, CLONE, CLONE_OF_CLONE);
	remove_one(device, CLONE);
	after = take_snapshot(device, 0);
	roll_back_device(device, ENGINE_AT_VERSION, before);
	assert_int_equal(bounds_of(device, PARTITION), 1);
	merge_all(device);
	merge_all(device);
	check_page_of(device, CLONE_OF_CLONE, after, 0, 'a');
	assert_int_equal(drop(device, 0, after), 0);
	merge_all(device);
	merge_all(device);
	assert_int_equal(gone(device), 0);
}

static void test_a_version_that_a_clone_stands_on_is_dropped_when_nothing_shows_that(void **state)
{
	const struct engine_address address = { .partition = PARTITION, .object = OBJECT };
	struct engine_moment moment = { .kind = ENGINE_AT_VERSION };
	struct device *device = *state;
	uint32_t version, of_device;

	set_policy(device, 0, 0, 0, 0);
	write_page(device, 10 * SECOND, 0, 'a');
	version = take_snapshot(device, PARTITION);
	moment.value = version;
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_clone(device->txn, PARTITION, moment, CLONE, true, NULL), 0);
	commit(device);
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_truncate(device->txn, address, 0), 0);
	commit(device);
	of_device = take_snapshot(device, 0);
	assert_int_equal(drop(device, PARTITION, version), -EBUSY);
	remove_one(device, CLONE);
	assert_int_equal(drop(device, PARTITION, version), -EBUSY);
	merge_all(device);
	check_page_of(device, CLONE, of_device, 0, 'a');
	assert_int_equal(drop(device, 0, of_device), 0);
	assert_int_equal(drop(device, PARTITION, version), 0);
	merge_all(device);
	assert_int_equal(gone(device), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* ---- damage ---- */

/* Makes the state of a partition say that it is the one of another ID. */
static void put_state_with_id(struct device *device, uint64_t partition, uint64_t id)
{
	uint8_t record[PARTITION_STATE_BYTES];
	struct partition *found, changed;

	begin(device, ENGINE_WRITE);
	assert_int_equal(partition_get(device->engine, partition, &found), 0);
	changed = *found;
	partition_release(device->engine, found);
	changed.id = id;
	partition_encode(&changed, record);
	assert_int_equal(record_put(&device->txn->writer, key_of_state(changed.index), 0, record,
				    sizeof(record)),
			 0);
	commit(device);
}

static void test_a_source_that_is_damaged_holds_up_no_other(void **state)
{
	struct device *device = *state;

	set_policy(device, 0, 0, 0, 0);
	make_clone(device, PARTITION, CLONE);
	make_clone(device, OTHERS, ANOTHER);
	remove_one(device, CLONE);
	remove_one(device, ANOTHER);
	assert_int_equal(bounds_of(device, PARTITION), 1);
	assert_int_equal(bounds_of(device, OTHERS), 1);
	put_state_with_id(device, PARTITION, 0x12345);
	for (int call = 0; call < 3; call++)
		standing_review(device->engine);
	assert_int_equal(device->engine->review_told, -EBADMSG);
	assert_int_equal(bounds_of(device, PARTITION), 1);
	assert_int_equal(bounds_of(device, OTHERS), 0);
	put_state_with_id(device, PARTITION, PARTITION);
	for (int call = 0; call < 3; call++)
		standing_review(device->engine);
	assert_int_equal(device->engine->review_told, 0);
	assert_int_equal(bounds_of(device, PARTITION), 0);
	assert_int_equal(gone(device), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_vanished_clones_do_not_fill_the_device),
		TEST(test_a_version_of_the_device_keeps_what_a_vanished_clone_stood_on),
		TEST(test_a_moment_that_can_be_reached_keeps_what_a_vanished_clone_stood_on),
		TEST(test_a_moment_of_an_interval_keeps_what_a_vanished_clone_stood_on),
		TEST(test_an_earlier_partition_that_comes_back_keeps_what_clones_of_a_later_stand_on),
		TEST(test_a_later_partition_that_comes_back_keeps_what_clones_of_an_earlier_stand_on),
		TEST(test_what_a_vanished_clone_had_removed_stays_so_when_it_is_back),
		TEST(test_what_clones_stood_on_stays_forgotten_while_nobody_has_the_index),
		TEST(test_what_clones_of_an_earlier_owner_stood_on_stays_forgotten_too),
		TEST(test_an_index_stays_taken_while_a_version_of_before_a_rollback_shows_it),
		TEST(test_the_next_owner_of_an_index_has_nothing_of_the_earlier_one),
		TEST(test_what_only_one_that_is_gone_keeps_is_given_up),
		TEST(test_the_past_of_a_removed_clone_can_be_reached),
		TEST(test_the_past_of_a_refreshed_clone_can_be_reached),
		TEST(test_clones_of_a_removed_clone_keep_what_both_stand_on),
		TEST(test_clones_of_a_removed_clone_keep_what_that_stood_on),
		TEST(test_a_version_that_a_clone_stands_on_is_dropped_when_nothing_shows_that),
		TEST(test_a_source_that_is_damaged_holds_up_no_other),
	};

	return cmocka_run_group_tests_name("clones_standing", tests, NULL, NULL);
}
