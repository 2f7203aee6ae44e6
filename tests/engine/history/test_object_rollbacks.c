/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Large objects go back by a note that hides what was put since, whatever their size. */
#include "tests/engine/history/object_pages.h"

static uint64_t length_of(struct fixture *f, uint64_t partition)
{
	struct engine_stat stat;

	begin(f, ENGINE_READ);
	assert_int_equal(engine_stat(f->txn, address_of(partition, OBJECT), &stat), 0);
	commit(f);
	return stat.length;
}

static void test_a_large_object_goes_back_without_its_data_being_put_again(void **state)
{
	struct fixture *f = *state;

	write_all(f, 1);
	write_all(f, 2);
	undo_without_data(f, PARTITION, 1);
	check_all(f, 1);
	/* What was undone is still the modification before. */
	check_pages(f,
		    (struct engine_address){ .partition = PARTITION, .object = OBJECT, .ago = 1 },
		    0, PAGES, 2);
	undo_without_data(f, PARTITION, 1);
	check_all(f, 2);
	undo_without_data(f, PARTITION, 3);
	check_all(f, 1);
	crash(f);
	check_all(f, 1);
	assert_int_equal(f->engine->past->hidden.count, 3);
}

/* Intervals of one object that go back one behind the other, beside some of its neighbours. */
static void test_steps_of_readers_are_counted_up_to_a_limit(void **state)
{
	struct hidden_interval list[] = {
		{ .partition = 7, .identifier = OBJECT - 1, .to = 5, .at = 95 },
		{ .partition = 7, .identifier = OBJECT, .to = 10, .at = 20 },
		{ .partition = 7, .identifier = OBJECT, .to = 30, .at = 40 },
		{ .partition = 7, .identifier = OBJECT, .to = 50, .at = 60 },
		{ .partition = 7, .identifier = OBJECT + 1, .to = 1, .at = 2 },
		{ .partition = 8, .identifier = OBJECT, .to = 1, .at = 2 },
	};
	const struct hidden hidden = { .list = list, .count = 6 };

	(void)state;
	for (uint32_t max = 0; max <= 5; max++) {
		uint32_t most = max < 3 ? max : 3;

		assert_int_equal(hidden_steps(&hidden, 7, OBJECT, RECORD_NEWEST, max), most);
		assert_int_equal(hidden_steps(&hidden, 7, OBJECT, 60, max), most);
		assert_int_equal(hidden_steps(&hidden, 7, OBJECT, 59, max), max < 2 ? max : 2);
		assert_int_equal(hidden_steps(&hidden, 7, OBJECT, 20, max), max < 1 ? max : 1);
		assert_int_equal(hidden_steps(&hidden, 7, OBJECT, 19, max), 0);
		assert_int_equal(hidden_steps(&hidden, 6, OBJECT, RECORD_NEWEST, max), 0);
		assert_int_equal(hidden_steps(&hidden, 7, OBJECT + 2, RECORD_NEWEST, max), 0);
	}
	assert_true(hidden_next_of(&hidden, 7, OBJECT, 19) == 20);
	assert_true(hidden_next_of(&hidden, 7, OBJECT, 20) == 40);
	assert_true(hidden_next_of(&hidden, 7, OBJECT, 60) == RECORD_NEWEST);
}

static void test_a_small_object_is_put_again(void **state)
{
	struct fixture *f = *state;

	write_pages(f, PARTITION, 0, 3, 1);
	write_pages(f, PARTITION, 0, 3, 2);
	undo(f, PARTITION, 1);
	check_pages(f, address_of(PARTITION, OBJECT), 0, 3, 1);
	assert_int_equal(f->engine->past->hidden.count, 0);
}

static void test_what_is_written_behind_it_counts(void **state)
{
	struct fixture *f = *state;

	write_all(f, 1);
	write_all(f, 2);
	undo_without_data(f, PARTITION, 1);
	write_pages(f, PARTITION, 10, 20, 3);
	crash(f);
	for (int after = 0; after < 2; after++) {
		check_pages(f, address_of(PARTITION, OBJECT), 0, 10, 1);
		check_pages(f, address_of(PARTITION, OBJECT), 10, 20, 3);
		check_pages(f, address_of(PARTITION, OBJECT), 20, PAGES, 1);
		set_kind(f, PARTITION, ENGINE_RETAIN_NONE);
		push(f);
		merge_all(f);
	}
}

/* In the transaction that goes back, too. */
static void test_a_transaction_may_write_behind_it(void **state)
{
	struct fixture *f = *state;
	uint8_t page[PAGE] = { 7 };
	const struct engine_address address = address_of(PARTITION, OBJECT);

	write_all(f, 1);
	write_all(f, 2);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_undo(f->txn, PARTITION, OBJECT, 1), 0);
	page[PAGE - 1] = 9;
	assert_int_equal(engine_write(f->txn, address, 0, page, PAGE), 0);
	commit(f);
	check_pages(f, address, 1, PAGES, 1);
	/* And one that wrote before has pages of its own number, which nothing hides. */
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, address, PAGE, page, PAGE), 0);
	assert_int_equal(engine_rollback_object(f->txn, PARTITION, OBJECT, at_time(f->now)), 0);
	engine_abort(f->txn);
	f->now += 5 * SECOND;
	write_all(f, 3);
	f->now += 5 * SECOND;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, address, PAGE, page, PAGE), 0);
	assert_int_equal(
		engine_rollback_object(f->txn, PARTITION, OBJECT, at_time(f->now - SECOND)), 0);
	commit(f);
	check_all(f, 3);
}

static void test_an_abort_leaves_all_as_it_was(void **state)
{
	struct fixture *f = *state;

	write_all(f, 1);
	write_all(f, 2);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_undo(f->txn, PARTITION, OBJECT, 1), 0);
	engine_abort(f->txn);
	assert_int_equal(f->engine->past->hidden.count, 0);
	check_all(f, 2);
	crash(f);
	check_all(f, 2);
}

static void test_an_object_that_was_removed_comes_back_without_its_data_being_put_again(
	void **state)
{
	struct fixture *f = *state;
	uint64_t before;

	write_all(f, 1);
	f->now += 5 * SECOND;
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_remove(f->txn, address_of(PARTITION, OBJECT)), 0);
	commit(f);
	/* Another one has its ID for a while. */
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, OBJECT, 1, NULL), 0);
	commit(f);
	write_pages(f, PARTITION, 50, PAGES + 50, 2);
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_remove(f->txn, address_of(PARTITION, OBJECT)), 0);
	commit(f);
	before = put_so_far(f);
	assert_int_equal(object_go_back(f, PARTITION, SECOND + 1), 0);
	assert_in_range(put_so_far(f) - before, 1, 2 * RECORDS_PUT_MAX);
	check_all(f, 1);
	assert_int_equal(length_of(f, PARTITION), BYTES);
	set_kind(f, PARTITION, ENGINE_RETAIN_NONE);
	push(f);
	merge_all(f);
	crash(f);
	check_all(f, 1);
}

static void test_holes_and_ends_are_those_of_then(void **state)
{
	struct fixture *f = *state;
	const struct engine_address address = address_of(PARTITION, OBJECT);
	struct engine_extent extent;
	uint32_t budget = UINT32_MAX;
	uint8_t byte;
	uint64_t got;

	write_all(f, 1);
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_punch(f->txn, address, 20 * PAGE, 60 * PAGE), 0);
	commit(f);
	write_pages(f, PARTITION, 10, PAGES + 100, 2);
	undo_without_data(f, PARTITION, 1);
	assert_int_equal(length_of(f, PARTITION), BYTES - 60 * PAGE);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_truncate(f->txn, address, 5 * PAGE), 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_truncate(f->txn, address, 400 * PAGE), 0);
	commit(f);
	undo_without_data(f, PARTITION, 2);
	for (int after = 0; after < 2; after++) {
		check_pages(f, address, 0, 20, 1);
		assert_int_equal(length_of(f, PARTITION), BYTES - 60 * PAGE);
		begin(f, ENGINE_READ);
		assert_int_equal(engine_map(f->txn, address, 0, true, &budget, &extent), 0);
		assert_int_equal(extent.length, BYTES - 60 * PAGE);
		assert_int_equal(extent.kind, ENGINE_EXTENT_DATA);
		commit(f);
		set_kind(f, PARTITION, ENGINE_RETAIN_NONE);
		push(f);
		merge_all(f);
	}
	/* What is cut and written again beyond is not what had been there. */
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, address, 300 * PAGE, "x", 1), 0);
	commit(f);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_read(f->txn, address, 299 * PAGE, &byte, 1, &got), 0);
	assert_int_equal(got, 1);
	assert_int_equal(byte, 0);
	commit(f);
}

static void test_an_object_of_a_clone_goes_back(void **state)
{
	struct fixture *f = *state;

	write_all(f, 1);
	make_clone(f, PARTITION, CLONE);
	f->now += 5 * SECOND;
	write_pages(f, CLONE, 0, PAGES / 2, 2);
	f->now += 5 * SECOND;
	write_pages(f, CLONE, 0, PAGES, 3);
	undo_without_data(f, CLONE, 1);
	write_all(f, 9);
	check_pages(f, address_of(CLONE, OBJECT), 0, PAGES / 2, 2);
	check_pages(f, address_of(CLONE, OBJECT), PAGES / 2, PAGES, 1);
	/* A refresh makes it its source again, of which nothing is hidden. */
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone_refresh(f->txn, CLONE), 0);
	commit(f);
	check_pages(f, address_of(CLONE, OBJECT), 0, PAGES, 9);
	/* Across it the data has to be put again: what is older is read in another source. */
	assert_int_equal(object_go_back(f, CLONE, 7 * SECOND), 0);
	for (int after = 0; after < 2; after++) {
		check_pages(f, address_of(CLONE, OBJECT), 0, PAGES / 2, 2);
		check_pages(f, address_of(CLONE, OBJECT), PAGES / 2, PAGES, 1);
		set_kind(f, PARTITION, ENGINE_RETAIN_NONE);
		set_kind(f, CLONE, ENGINE_RETAIN_NONE);
		push(f);
		merge_all(f);
	}
	assert_int_equal(f->engine->past->hidden.count, 1);
}

/*
 * A moment that came behind a refresh may show the clone as before it, when it had been rolled back
 * meanwhile.
 */
static void test_an_object_of_a_clone_goes_back_to_a_line_of_history_without_a_refresh(void **state)
{
	struct fixture *f = *state;

	write_all(f, 1);
	make_clone(f, PARTITION, CLONE);
	f->now = 10 * SECOND;
	write_pages(f, CLONE, 0, PAGES / 2, 2);
	write_all(f, 9);
	f->now = 20 * SECOND;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone_refresh(f->txn, CLONE), 0);
	commit(f);
	f->now = 30 * SECOND;
	roll_back_to_time(f, CLONE, 15 * SECOND);
	f->now = 40 * SECOND;
	roll_back_to_time(f, CLONE, 25 * SECOND);
	check_pages(f, address_of(CLONE, OBJECT), 0, PAGES, 9);
	assert_int_equal(object_go_back(f, CLONE, 35 * SECOND), 0);
	check_pages(f, address_of(CLONE, OBJECT), 0, PAGES / 2, 2);
	check_pages(f, address_of(CLONE, OBJECT), PAGES / 2, PAGES, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps_of_readers_are_counted_up_to_a_limit),
		FLASH_TEST(test_a_large_object_goes_back_without_its_data_being_put_again),
		FLASH_TEST(test_a_small_object_is_put_again),
		FLASH_TEST(test_what_is_written_behind_it_counts),
		FLASH_TEST(test_a_transaction_may_write_behind_it),
		FLASH_TEST(test_an_abort_leaves_all_as_it_was),
		FLASH_TEST(
			test_an_object_that_was_removed_comes_back_without_its_data_being_put_again),
		FLASH_TEST(test_holes_and_ends_are_those_of_then),
		FLASH_TEST(test_an_object_of_a_clone_goes_back),
		FLASH_TEST(
			test_an_object_of_a_clone_goes_back_to_a_line_of_history_without_a_refresh),
	};

	return cmocka_run_group_tests_name("object_rollbacks", tests, NULL, NULL);
}
