/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Indices of partitions: one owner at a time, as long as something shows it; and what clones of an
 * earlier owner stand on.
 */
#include "engine/history/standing.h"
#include "tests/engine/history/standing_marks.h"

enum { ANOTHER = 0x10004 };

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
	remove_partition(f, PARTITION);
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
	assert_int_equal(try_drop(f, 0, after), 0);
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
	assert_int_equal(try_drop(f, 0, earlier), 0);
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
			assert_int_equal(try_drop(f, OTHERS, version), 0);
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
	remove_partition(f, CLONE);
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
	assert_int_equal(try_drop(f, 0, version), 0);
	merge_all(f);
	assert_int_equal(gone(f), 0);
}

/* What a clone stood on is forgotten; what a version of the device shows is not. */
static void test_an_index_stays_taken_when_only_the_bound_of_a_clone_goes(void **state)
{
	const struct engine_address elsewhere = { .partition = OTHERS, .object = OBJECT };
	struct fixture *f = *state;
	uint32_t version;

	write_page(f, 10 * SECOND, 0, 'a');
	version = take_snapshot(f, 0, NULL);
	write_page(f, 20 * SECOND, 0, 'b');
	make_clone(f, PARTITION, CLONE);
	assert_int_equal(bounds_of(f, PARTITION), 1);
	set_kind(f, 0, ENGINE_RETAIN_NONE);
	f->now = 30 * SECOND;
	remove_partition(f, PARTITION);
	remove_partition(f, CLONE);
	f->now = 40 * SECOND;
	put_text(f, elsewhere, "later");
	f->now = 50 * SECOND;
	for (int call = 0; call < 4; call++)
		standing_review(f->engine);
	assert_int_equal(gone(f), 1);
	check_page(f, version, 0, 'a');
	roll_back(f, 0, at_number(version));
	check_page(f, 0, 0, 'a');
	assert_int_equal(bounds_of(f, PARTITION), 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLASH_TEST(test_what_a_vanished_clone_had_removed_stays_so_when_it_is_back),
		FLASH_TEST(
			test_an_earlier_partition_that_comes_back_keeps_what_clones_of_a_later_stand_on),
		FLASH_TEST(
			test_a_later_partition_that_comes_back_keeps_what_clones_of_an_earlier_stand_on),
		FLASH_TEST(test_what_clones_stood_on_stays_forgotten_while_nobody_has_the_index),
		FLASH_TEST(test_what_clones_of_an_earlier_owner_stood_on_stays_forgotten_too),
		FLASH_TEST(test_an_index_stays_taken_while_a_version_of_before_a_rollback_shows_it),
		FLASH_TEST(test_an_index_stays_taken_when_only_the_bound_of_a_clone_goes),
		FLASH_TEST(test_the_next_owner_of_an_index_has_nothing_of_the_earlier_one),
		FLASH_TEST(test_what_only_one_that_is_gone_keeps_is_given_up),
	};

	return cmocka_run_group_tests_name("index_owners", tests, NULL, NULL);
}
