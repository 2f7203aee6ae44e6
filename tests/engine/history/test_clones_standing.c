/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What clones stand on is kept as long as anything shows them standing there, also when they are
 * gone, and no longer.
 */
#include "engine/history/standing.h"
#include "tests/engine/history/standing_marks.h"

enum { CLONE_OF_CLONE = 0x10003, ANOTHER = 0x10004, PAGES = 90 };

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
	assert_int_equal(try_drop(f, 0, after), 0);
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
	check_page_of(f, CLONE, try_view_of(f, 0, at_time(25 * SECOND)), 0, 'a');
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
	check_page_of(f, CLONE, try_view_of(f, 0, at_time(20 * SECOND)), 0, 'a');
	f->now = 135 * SECOND;
	merge_all(f);
	assert_int_equal(bounds_of(f, PARTITION), 0);
}

/* ---- clones that were removed or refreshed ---- */

static void test_the_past_of_a_removed_clone_can_be_reached(void **state)
{
	struct fixture *f = *state;

	set_kind(f, 0, ENGINE_RETAIN_ALL);
	write_page(f, 10 * SECOND, 0, 'a');
	make_clone(f, PARTITION, CLONE);
	write_page(f, 20 * SECOND, 0, 'b');
	f->now = 30 * SECOND;
	remove_partition(f, CLONE);
	f->now = 40 * SECOND;
	merge_all(f);
	crash(f);
	check_page_of(f, CLONE, try_view_of(f, 0, at_time(25 * SECOND)), 0, 'a');
	set_policy(f, 0, 0, 0, 0);
	merge_all(f);
	assert_int_equal(try_view_of(f, 0, at_time(25 * SECOND)), 0);
	assert_int_equal(gone(f), 0);
}

static void test_the_past_of_a_refreshed_clone_can_be_reached(void **state)
{
	struct fixture *f = *state;
	uint32_t version;

	set_kind(f, 0, ENGINE_RETAIN_ALL);
	write_page(f, 10 * SECOND, 0, 'a');
	make_clone(f, PARTITION, CLONE);
	write_page(f, 20 * SECOND, 0, 'b');
	f->now = 30 * SECOND;
	version = take_snapshot(f, CLONE, NULL);
	refresh_clone(f, CLONE);
	f->now = 40 * SECOND;
	merge_all(f);
	check_page_of(f, CLONE, try_view_of(f, 0, at_time(25 * SECOND)), 0, 'a');
	set_policy(f, 0, 0, 0, 0);
	merge_all(f);
	assert_int_equal(try_view_of(f, 0, at_time(25 * SECOND)), 0);
	assert_int_equal(bounds_of(f, PARTITION), 2);
	check_page_of(f, CLONE, version, 0, 'a');
	check_page_of(f, CLONE, 0, 0, 'b');
	assert_int_equal(try_drop(f, CLONE, version), 0);
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
	remove_partition(f, CLONE);
	remove_partition(f, PARTITION);
	merge_all(f);
	crash(f);
	merge_all(f);
	assert_int_equal(gone(f), 2);
	check_page_of(f, CLONE_OF_CLONE, 0, 0, 'a');
	remove_partition(f, CLONE_OF_CLONE);
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
	remove_partition(f, CLONE);
	after = take_snapshot(f, 0, NULL);
	roll_back(f, 0, at_number(before));
	assert_int_equal(bounds_of(f, PARTITION), 1);
	merge_all(f);
	merge_all(f);
	check_page_of(f, CLONE_OF_CLONE, after, 0, 'a');
	assert_int_equal(try_drop(f, 0, after), 0);
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
	assert_int_equal(try_drop(f, PARTITION, version), -EBUSY);
	remove_partition(f, CLONE);
	assert_int_equal(try_drop(f, PARTITION, version), -EBUSY);
	merge_all(f);
	check_page_of(f, CLONE, of_device, 0, 'a');
	assert_int_equal(try_drop(f, 0, of_device), 0);
	assert_int_equal(try_drop(f, PARTITION, version), 0);
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
	remove_partition(f, CLONE);
	remove_partition(f, ANOTHER);
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
