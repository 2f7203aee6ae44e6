/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Data of objects in unusual shapes: scattered, huge and sparse, damaged; and what they cost.
 *
 * Runs for each index.
 */
#include "common/log.h"
#include "engine/objects/objects.h"
#include "tests/engine/fixture.h"

static const struct engine_address the_object = { .partition = PARTITION, .object = OBJECT };

static void next(struct fixture *f)
{
	commit(f);
	begin(f, ENGINE_WRITE);
}

static void no_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void create_object(struct fixture *f)
{
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, OBJECT, 1, NULL), 0);
}

/* One partition with an empty user the_object, in an open writing transaction. */
static int setup(void **state)
{
	log_configure(no_log, LOG_LEVEL_ERROR);
	setup_on_memory(state);
	create(*state, PARTITION);
	begin(*state, ENGINE_WRITE);
	return 0;
}

static void write_piece(struct fixture *f, uint64_t piece, uint8_t value)
{
	uint8_t page[PAGE];

	memset(page, value, PAGE);
	assert_int_equal(engine_write(f->txn, the_object, piece * PAGE, page, PAGE), 0);
}

static void assert_piece(struct fixture *f, uint64_t piece, uint8_t value)
{
	uint8_t page[PAGE];
	uint64_t got;

	assert_int_equal(engine_read(f->txn, the_object, piece * PAGE, page, PAGE, &got), 0);
	assert_int_equal(got, PAGE);
	for (uint32_t index = 0; index < PAGE; index++)
		assert_int_equal(page[index], value);
}

/*
 * Every second page up to 2 * `pages`, so that each is an extent of its own; page 2 n has value n.
 */
static void write_scattered(struct fixture *f, uint32_t pages)
{
	for (uint32_t page = 0; page < pages; page++)
		write_piece(f, 2 * page, (uint8_t)(page | 1));
}

static void assert_scattered(struct fixture *f, uint32_t pages)
{
	for (uint32_t page = 0; page < pages; page++) {
		assert_piece(f, 2 * page, (uint8_t)(page | 1));
		if (page + 1 < pages)
			assert_piece(f, 2 * page + 1, 0);
	}
}

/* Pages that are written now are all that the object has, here and in the next transaction. */
static void check_scattered_stays(struct fixture *f)
{
	write_scattered(f, EXTENTS_MAX + 20);
	assert_scattered(f, EXTENTS_MAX + 20);
	next(f);
	assert_scattered(f, EXTENTS_MAX + 20);
}

static void test_any_number_of_scattered_pages_can_be_written(void **state)
{
	struct fixture *f = *state;

	write_scattered(f, 3 * EXTENTS_MAX);
	next(f);
	assert_scattered(f, 3 * EXTENTS_MAX);
	assert_true(stat_of(f, the_object).used_bytes <= stat_of(f, the_object).length);
	write_piece(f, 1, 77);
	write_piece(f, 4 * EXTENTS_MAX + 1, 78);
	next(f);
	assert_piece(f, 1, 77);
	assert_piece(f, 3, 0);
	assert_piece(f, 4 * EXTENTS_MAX + 1, 78);
	commit(f);
	/* All of it can be read again after a crash. */
	engine_abandon(f->engine);
	assert_int_equal(engine_open_on(memory_store_open(f->memory), NULL, &f->engine, NULL), 0);
	begin(f, ENGINE_WRITE);
	assert_piece(f, 0, 1);
	assert_piece(f, 4 * EXTENTS_MAX - 2, (uint8_t)((2 * EXTENTS_MAX - 1) | 1));
}

static void test_bridged_gaps_do_not_show_what_was_voided(void **state)
{
	struct fixture *f = *state;

	for (uint32_t piece = 0; piece < 4 * EXTENTS_MAX; piece++)
		write_piece(f, piece, 0xee);
	next(f);
	for (int times = 0; times < 3; times++) {
		/* Voided in this very transaction at first, then in earlier ones. */
		assert_int_equal(engine_truncate(f->txn, the_object, 0), 0);
		if (times)
			next(f);
		write_scattered(f, EXTENTS_MAX + 50);
		assert_scattered(f, EXTENTS_MAX + 50);
		next(f);
		assert_scattered(f, EXTENTS_MAX + 50);
	}
}

static void test_clearing_every_second_page_keeps_the_others(void **state)
{
	struct fixture *f = *state;

	for (uint32_t piece = 0; piece < 3 * EXTENTS_MAX; piece++)
		write_piece(f, piece, 0x11);
	next(f);
	for (uint32_t piece = 1; piece < 3 * EXTENTS_MAX; piece += 2) {
		assert_int_equal(engine_clear(f->txn, the_object, (uint64_t)piece * PAGE, PAGE), 0);
		if (piece % 101 == 0)
			next(f);
	}
	next(f);
	for (uint32_t piece = 0; piece < 3 * EXTENTS_MAX; piece++)
		assert_piece(f, piece, piece % 2 ? 0 : 0x11);
}

static void test_an_object_removed_and_made_again_in_one_transaction_shows_nothing_old(void **state)
{
	struct fixture *f = *state;

	for (uint32_t piece = 0; piece < 100; piece++)
		write_piece(f, piece, 0xee);
	assert_int_equal(engine_remove(f->txn, the_object), 0);
	create_object(f);
	check_scattered_stays(f);
}

static void test_an_object_made_again_later_shows_nothing_old(void **state)
{
	struct fixture *f = *state;

	for (uint32_t piece = 0; piece < 3 * EXTENTS_MAX; piece++)
		write_piece(f, piece, 0xee);
	next(f);
	assert_int_equal(engine_remove(f->txn, the_object), 0);
	next(f);
	create_object(f);
	check_scattered_stays(f);
}

static void test_what_a_long_transaction_wrote_and_cut_does_not_come_back(void **state)
{
	struct fixture *f = *state;

	for (uint32_t piece = 0; piece < 3 * EXTENTS_MAX; piece++)
		write_piece(f, piece, 0xee);
	/*
	 * So many others that the object's onode is put and forgotten in the middle of the
	 * transaction.
	 */
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0, 10000, NULL), 0);
	assert_int_equal(engine_truncate(f->txn, the_object, 0), 0);
	check_scattered_stays(f);
}

/* ---- costs ---- */

static void test_sequential_and_random_writes_of_a_run_leave_one_extent(void **state)
{
	struct fixture *f = *state;
	uint64_t bytes;

	for (uint32_t piece = 0; piece < 500; piece++) {
		write_piece(f, piece * 37 % 500, 1);
		if (piece % 7 == 0)
			next(f);
	}
	next(f);
	bytes = memory_store_counters(f->memory).put_bytes;
	write_piece(f, 500, 1);
	commit(f);
	/* The page, an onode with one extent, the partition's state. */
	assert_int_equal(memory_store_counters(f->memory).put_bytes - bytes,
			 PAGE + ONODE_HEAD_BYTES + EXTENT_BYTES + PARTITION_STATE_BYTES);
}

static void test_huge_holes_cost_nothing(void **state)
{
	const uint64_t most = (uint64_t)ENGINE_PIECES_MAX * PAGE;
	struct memory_store_counters before, after;
	struct fixture *f = *state;

	write_piece(f, 5, 1);
	write_piece(f, ENGINE_PIECES_MAX - 1, 2);
	next(f);
	before = memory_store_counters(f->memory);
	assert_int_equal(engine_punch(f->txn, the_object, 6 * PAGE, most - 8 * PAGE), 0);
	assert_piece(f, 5, 1);
	assert_piece(f, 6, 0);
	assert_piece(f, 7, 2);
	assert_int_equal(stat_of(f, the_object).length, 8 * PAGE);
	assert_int_equal(engine_truncate(f->txn, the_object, most), 0);
	assert_int_equal(engine_clear(f->txn, the_object, 6 * PAGE, most - 6 * PAGE), 0);
	assert_int_equal(stat_of(f, the_object).used_bytes, PAGE);
	assert_int_equal(engine_punch(f->txn, the_object, 1, most - 2), 0);
	assert_int_equal(stat_of(f, the_object).used_bytes, 0);
	after = memory_store_counters(f->memory);
	assert_true(after.gets - before.gets < 30);
	assert_true(after.puts - before.puts < 10);
}

/* ---- damage ---- */

static void test_a_damaged_page_fails_the_read_and_nothing_is_returned(void **state)
{
	struct record_key key = key_of_data(1, OBJECT, 1);
	struct fixture *f = *state;
	uint8_t data[3 * PAGE];
	uint64_t got = 9;

	for (uint32_t piece = 0; piece < 3; piece++)
		write_piece(f, piece, 1);
	next(f);
	memory_store_corrupt(f->memory, &key);
	assert_int_equal(engine_read(f->txn, the_object, 0, data, sizeof(data), &got), -EBADMSG);
	assert_int_equal(got, 0);
	assert_piece(f, 2, 1);
	assert_int_equal(engine_write(f->txn, the_object, PAGE + 1, "x", 1), -EBADMSG);
	/* A new page heals it. */
	write_piece(f, 1, 3);
	memory_store_corrupt(f->memory, NULL);
	next(f);
	assert_piece(f, 1, 3);
}

static void test_a_lost_page_is_noticed(void **state)
{
	struct record_key key = key_of_data(1, OBJECT, 1);
	struct fixture *f = *state;
	uint8_t data[PAGE];
	uint64_t got;

	write_piece(f, 1, 1);
	next(f);
	memory_store_lose(f->memory, &key);
	assert_int_equal(engine_read(f->txn, the_object, PAGE, data, PAGE, &got), -EBADMSG);
	assert_int_equal(engine_read(f->txn, the_object, 0, data, PAGE, &got), 0);
}

static void test_a_damaged_onode_hurts_nothing_else(void **state)
{
	struct record_key key = key_of_onode(1, OBJECT);
	struct engine_address other = { .partition = PARTITION, .object = OBJECT + 1 };
	struct fixture *f = *state;
	struct engine_stat stat;

	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0, 1, NULL), 0);
	commit(f);
	memory_store_corrupt(f->memory, &key);
	cache_clear(&f->engine->onodes);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_stat(f->txn, the_object, &stat), -EBADMSG);
	assert_int_equal(engine_stat(f->txn, other, &stat), 0);
	assert_int_equal(engine_remove(f->txn, other), 0);
	assert_int_equal(engine_partition_remove(f->txn, PARTITION, true), 0);
	memory_store_corrupt(f->memory, NULL);
}

#define WITH(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(test_any_number_of_scattered_pages_can_be_written),
		WITH(test_bridged_gaps_do_not_show_what_was_voided),
		WITH(test_clearing_every_second_page_keeps_the_others),
		WITH(test_an_object_removed_and_made_again_in_one_transaction_shows_nothing_old),
		WITH(test_an_object_made_again_later_shows_nothing_old),
		WITH(test_what_a_long_transaction_wrote_and_cut_does_not_come_back),
		WITH(test_sequential_and_random_writes_of_a_run_leave_one_extent),
		WITH(test_huge_holes_cost_nothing),
		WITH(test_a_damaged_page_fails_the_read_and_nothing_is_returned),
		WITH(test_a_lost_page_is_noticed),
		WITH(test_a_damaged_onode_hurts_nothing_else),
	};

	return cmocka_run_group_tests_name("data of objects", tests, NULL, NULL);
}
