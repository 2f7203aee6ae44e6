/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Unlogged partitions: writing into pieces that have data puts these alone. All else is as of any
 * partition: versions, moments, rollbacks, clones and differences, after crashes and merges, too.
 * The random run compares with arrays; MUNINN_SEED chooses another one.
 */
#include "tests/engine/fixture.h"

#include <stdio.h>

#include "common/bytes.h"
#include "engine/objects/objects.h"
#include "nand/nand.h"

enum {
	PIECES = 24,
	OBJECTS = 3,
	VERSIONS = 12,
	STEPS = 2500,
};

/* What objects hold: of each piece a number, 0 in a hole. */
struct contents {
	bool exists[OBJECTS];
	uint32_t piece[OBJECTS][PIECES];
};

struct world {
	struct fixture *f;
	uint64_t random;
	uint32_t last; /* number that was written */
	struct contents now;
	uint32_t versions[VERSIONS]; /* numbers; 0: none */
	struct contents then[VERSIONS];
	uint32_t taken;
};

static void make_unlogged(struct fixture *f)
{
	if (f->nand && !f->merges) /* which begins with it */
		remove_partition(f, PARTITION);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, PARTITION, NULL), 0);
	assert_int_equal(engine_partition_unlog(f->txn, PARTITION), 0);
	commit(f);
}

static void make_object(struct fixture *f, uint64_t id)
{
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, id, 1, NULL), 0);
	assert_int_equal(engine_truncate(f->txn, object(id), (uint64_t)PIECES * PAGE), 0);
	commit(f);
}

static void write_bytes(struct fixture *f, uint64_t offset, int byte, size_t length)
{
	uint8_t data[4 * PAGE];

	memset(data, byte, length);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, object(OBJECT), offset, data, length), 0);
	commit(f);
}

static uint64_t records_put(struct fixture *f)
{
	struct engine_statistics statistics;

	engine_read_statistics(f->engine, &statistics);
	return statistics.records_put;
}

/* How many records a write puts. The clock stands: no history is noted meanwhile. */
static uint64_t records_of_write(struct fixture *f, uint64_t offset, int byte, size_t length)
{
	uint64_t before = records_put(f);

	write_bytes(f, offset, byte, length);
	return records_put(f) - before;
}

static struct engine_stat object_stat(struct fixture *f)
{
	struct engine_stat stat;

	begin(f, ENGINE_READ);
	stat = stat_of(f, object(OBJECT));
	abort_all(f);
	return stat;
}

static void test_a_write_into_data_puts_data_alone(void **state)
{
	struct fixture *f = *state;
	struct engine_stat before, after;

	make_unlogged(f);
	make_object(f, OBJECT);
	write_bytes(f, 0, 'a', 4 * PAGE);
	write_bytes(f, 0, 'b', PAGE);
	before = object_stat(f);
	assert_int_equal(records_of_write(f, 0, 'c', PAGE), 1);
	assert_int_equal(records_of_write(f, 0, 'd', 4 * PAGE), 4);
	assert_int_equal(records_of_write(f, 100, 'e', 10), 1);
	assert_int_equal(records_of_write(f, PAGE - 5, 'f', 10), 2);
	after = object_stat(f);
	assert_int_equal(after.modified_sequence, before.modified_sequence);
	assert_int_equal(after.used_bytes, before.used_bytes);
	/* A piece more changes the onode, and what the partition holds. */
	assert_true(records_of_write(f, 3 * PAGE, 'g', 2 * PAGE) > 2);
	assert_true(object_stat(f).modified_sequence > before.modified_sequence);
}

static void test_a_logged_partition_is_told_of_every_write(void **state)
{
	struct fixture *f = *state;

	write_bytes(f, 0, 'a', 4 * PAGE);
	write_bytes(f, 0, 'b', PAGE);
	assert_int_equal(records_of_write(f, 0, 'c', PAGE), 2);
}

static void test_only_an_empty_partition_becomes_unlogged(void **state)
{
	struct fixture *f = *state;

	create(f, PARTITION);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_unlog(f->txn, PARTITION), -ENOTEMPTY);
	assert_int_equal(engine_partition_unlog(f->txn, OTHERS), -ENOENT);
	assert_int_equal(engine_partition_unlog(f->txn, 0), -EINVAL);
	abort_all(f);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_partition_unlog(f->txn, PARTITION), -EROFS);
	abort_all(f);
}

static void test_an_aborted_write_leaves_what_was_there(void **state)
{
	struct fixture *f = *state;
	uint8_t page[PAGE];

	make_unlogged(f);
	make_object(f, OBJECT);
	write_page(f, f->now, 3, 'a');
	memset(page, 'b', PAGE);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, object(OBJECT), 3 * PAGE, page, PAGE), 0);
	abort_all(f);
	check_page(f, 0, 3, 'a');
}

/* Opens the engine again, with room for so few onodes. */
static void open_with_onodes(struct fixture *f, uint32_t count)
{
	struct engine_options options = options_of(f);
	struct error_text error = { "" };

	options.onode_cache_entries = count;
	assert_int_equal(engine_close(f->engine), 0);
	assert_int_equal(engine_open_on(memory_store_open(f->memory), &options, &f->engine, &error),
			 0);
}

/* The transaction has put pieces of an object that the cache has given away meanwhile. */
static void test_what_a_transaction_overwrites_it_may_clear(void **state)
{
	struct fixture *f = *state;
	uint8_t page[PAGE], zeros[PAGE] = { 0 };
	uint64_t got;

	open_with_onodes(f, 4);
	make_unlogged(f);
	for (uint64_t id = OBJECT; id < OBJECT + 400; id++)
		make_object(f, id);
	write_page(f, f->now, 1, 'a');
	memset(page, 'b', PAGE);
	begin(f, ENGINE_WRITE);
	for (uint64_t id = OBJECT; id < OBJECT + 400; id++)
		assert_int_equal(engine_write(f->txn, object(id), PAGE, page, PAGE), 0);
	assert_int_equal(engine_clear(f->txn, object(OBJECT), PAGE, PAGE), 0);
	commit(f);
	/* So many extents that the hole is bridged. */
	for (uint32_t piece = 0; piece <= 2 * EXTENTS_MAX; piece += 2)
		write_page(f, f->now, piece, 'c');
	begin(f, ENGINE_READ);
	assert_int_equal(engine_read(f->txn, object(OBJECT), PAGE, page, PAGE, &got), 0);
	assert_memory_equal(page, zeros, PAGE);
	abort_all(f);
}

/* A piece that is the object's only one may go into the onode, which then has to be put. */
static void test_a_write_into_the_only_piece_is_kept(void **state)
{
	struct fixture *f = *state;

	make_unlogged(f);
	make_object(f, OBJECT);
	write_bytes(f, 0, 'a', 100);
	write_bytes(f, PAGE, 'b', PAGE);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clear(f->txn, object(OBJECT), PAGE, PAGE), 0);
	commit(f);
	write_bytes(f, 0, 'c', 100);
	crash(f);
	begin(f, ENGINE_READ);
	for (int n = 0; n < 100; n++) {
		char byte;
		uint64_t got;

		assert_int_equal(engine_read(f->txn, object(OBJECT), (uint64_t)n, &byte, 1, &got),
				 0);
		assert_int_equal(byte, 'c');
	}
	abort_all(f);
}

static void test_differences_are_found(void **state)
{
	struct fixture *f = *state;
	struct engine_diff_cursor cursor = { 0 };
	struct engine_difference difference;
	uint32_t version;
	int result;

	make_unlogged(f);
	make_object(f, OBJECT);
	write_bytes(f, 0, 'a', 4 * PAGE);
	version = take_snapshot(f, PARTITION, NULL);
	write_bytes(f, PAGE + 7, 'b', 3);
	begin(f, ENGINE_READ);
	do
		result = engine_diff_next(f->txn, PARTITION, at_number(version),
					  (struct engine_moment){ 0 }, &cursor, &difference);
	while (result == -EAGAIN);
	assert_int_equal(result, 0);
	assert_int_equal(difference.kind, ENGINE_DATA_DIFFERS);
	assert_int_equal(difference.offset, PAGE + 7);
	assert_int_equal(difference.length, 3);
	abort_all(f);
}

static void test_an_object_goes_back(void **state)
{
	struct fixture *f = *state;
	uint32_t version;

	make_unlogged(f);
	make_object(f, OBJECT);
	write_page(f, f->now, 3, 'a');
	version = take_snapshot(f, PARTITION, NULL);
	write_page(f, f->now + 2000, 3, 'b');
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_rollback_object(f->txn, PARTITION, OBJECT, at_number(version)), 0);
	commit(f);
	check_page(f, 0, 3, 'a');
	write_page(f, f->now + 2000, 3, 'c');
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_rollback_object(f->txn, PARTITION, OBJECT, at_number(version)), 0);
	commit(f);
	check_page(f, 0, 3, 'a');
}

static void test_a_clone_is_unlogged_and_apart(void **state)
{
	struct fixture *f = *state;
	const struct engine_address cloned = { .partition = CLONE, .object = OBJECT };
	uint8_t page[PAGE];
	uint64_t before;

	make_unlogged(f);
	make_object(f, OBJECT);
	write_page(f, f->now, 3, 'a');
	make_clone(f, PARTITION, CLONE);
	memset(page, 'b', PAGE);
	/* The first write puts its onode, too. */
	for (int n = 0; n < 2; n++) {
		before = records_put(f);
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_write(f->txn, cloned, 3 * PAGE, page, PAGE), 0);
		commit(f);
		assert_in_range(records_put(f) - before, n ? 1 : 2, n ? 1 : 10);
	}
	check_page(f, 0, 3, 'a');
	check_page_of(f, CLONE, 0, 3, 'b');
	write_page(f, f->now, 3, 'c');
	check_page_of(f, CLONE, 0, 3, 'b');
	refresh_clone(f, CLONE);
	check_page_of(f, CLONE, 0, 3, 'c');
}

/* ---- a random run ---- */

static uint32_t below(struct world *world, uint32_t limit)
{
	uint64_t z = world->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((z ^ z >> 31) % limit);
}

static void fill(uint8_t page[PAGE], uint32_t number)
{
	for (size_t at = 0; at < PAGE; at += sizeof(number))
		memcpy(page + at, &number, sizeof(number));
}

static void check_contents(struct world *world, uint32_t version, const struct contents *wanted)
{
	struct fixture *f = world->f;
	uint8_t page[PAGE], expected[PAGE];

	begin(f, ENGINE_READ);
	for (uint32_t n = 0; n < OBJECTS; n++)
		for (uint32_t piece = 0; piece < PIECES; piece++) {
			uint64_t got = 0;
			int result = engine_read(f->txn, at_version(object(OBJECT + n), version),
						 (uint64_t)piece * PAGE, page, PAGE, &got);

			assert_int_equal(result, wanted->exists[n] ? 0 : -ENOENT);
			if (result)
				break;
			assert_int_equal(got, PAGE);
			fill(expected, wanted->piece[n][piece]);
			assert_memory_equal(page, expected, PAGE);
		}
	abort_all(f);
}

static void write_some(struct world *world, bool keep)
{
	struct fixture *f = world->f;
	struct contents before = world->now;
	uint32_t writes = 1 + below(world, 3);

	begin(f, ENGINE_WRITE);
	while (writes--) {
		uint32_t n = below(world, OBJECTS), first = below(world, PIECES);
		uint32_t count = 1 + below(world, min_u64(4, PIECES - first));
		uint64_t offset = (uint64_t)first * PAGE, length = (uint64_t)count * PAGE;
		bool clears = below(world, 5) == 0;
		uint8_t data[4 * PAGE];

		if (!world->now.exists[n]) {
			assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT,
						       OBJECT + n, 1, NULL),
					 0);
			assert_int_equal(engine_truncate(f->txn, object(OBJECT + n),
							 (uint64_t)PIECES * PAGE),
					 0);
			world->now.exists[n] = true;
			memset(world->now.piece[n], 0, sizeof(world->now.piece[n]));
		}
		for (uint32_t piece = 0; piece < count; piece++) {
			world->now.piece[n][first + piece] = clears ? 0 : ++world->last;
			fill(data + (size_t)piece * PAGE, world->last);
		}
		assert_int_equal(
			clears ? engine_clear(f->txn, object(OBJECT + n), offset, length)
			       : engine_write(f->txn, object(OBJECT + n), offset, data, length),
			0);
	}
	if (keep) {
		commit(f);
	} else {
		abort_all(f);
		world->now = before;
	}
}

static void remove_one(struct world *world)
{
	uint32_t n = below(world, OBJECTS);

	if (!world->now.exists[n])
		return;
	begin(world->f, ENGINE_FREE);
	assert_int_equal(engine_remove(world->f->txn, object(OBJECT + n)), 0);
	commit(world->f);
	world->now.exists[n] = false;
}

static void keep_version(struct world *world)
{
	uint32_t place = world->taken++ % VERSIONS;

	if (world->versions[place])
		drop_version(world->f, PARTITION, world->versions[place]);
	world->f->now += 5000;
	world->versions[place] = take_snapshot(world->f, PARTITION, NULL);
	world->then[place] = world->now;
}

static void go_back(struct world *world)
{
	uint32_t place = below(world, VERSIONS), n = below(world, OBJECTS);

	if (!world->versions[place])
		return;
	world->f->now += 5000;
	if (below(world, 2)) {
		roll_back(world->f, PARTITION, at_number(world->versions[place]));
		world->now = world->then[place];
		return;
	}
	if (!world->now.exists[n] && !world->then[place].exists[n])
		return;
	begin(world->f, ENGINE_WRITE);
	assert_int_equal(engine_rollback_object(world->f->txn, PARTITION, OBJECT + n,
						at_number(world->versions[place])),
			 0);
	commit(world->f);
	world->now.exists[n] = world->then[place].exists[n];
	memcpy(world->now.piece[n], world->then[place].piece[n], sizeof(world->now.piece[n]));
}

static void check_all(struct world *world)
{
	check_contents(world, 0, &world->now);
	for (uint32_t place = 0; place < VERSIONS; place++)
		if (world->versions[place])
			check_contents(world, world->versions[place], &world->then[place]);
}

static void step(struct world *world)
{
	uint32_t what = below(world, 100);

	if (what < 80)
		write_some(world, what < 74);
	else if (what < 84)
		remove_one(world);
	else if (what < 90)
		keep_version(world);
	else if (what < 95)
		go_back(world);
	else if (what < 97)
		crash(world->f);
	else if (what < 98 && world->f->merges)
		merge_what_can_be(world->f);
	world->f->now += below(world, 400);
}

static void test_a_random_run_matches_the_model(void **state)
{
	const char *seed = getenv("MUNINN_SEED");
	struct world world = { .f = *state, .random = seed ? strtoull(seed, NULL, 0) : 1 };

	print_message("MUNINN_SEED=%llu\n", (unsigned long long)world.random);
	make_unlogged(world.f);
	for (uint32_t n = 0; n < STEPS; n++) {
		step(&world);
		if (n % 20 == 0)
			check_all(&world);
	}
	check_all(&world);
}

static int set_up_merging(void **state)
{
	struct fixture *f = make_merging(600);

	create(f, OTHERS); /* what merge_what_can_be writes to */
	*state = f;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLASH_TEST(test_a_write_into_data_puts_data_alone),
		FLASH_TEST(test_a_logged_partition_is_told_of_every_write),
		TEST(test_only_an_empty_partition_becomes_unlogged),
		TEST(test_an_aborted_write_leaves_what_was_there),
		TEST(test_what_a_transaction_overwrites_it_may_clear),
		TEST(test_a_write_into_the_only_piece_is_kept),
		TEST(test_differences_are_found),
		FLASH_TEST(test_differences_are_found),
		TEST(test_an_object_goes_back),
		FLASH_TEST(test_an_object_goes_back),
		FLASH_TEST(test_a_clone_is_unlogged_and_apart),
		TEST(test_a_random_run_matches_the_model),
		cmocka_unit_test_setup_teardown(test_a_random_run_matches_the_model, set_up_merging,
						teardown),
	};

	return cmocka_run_group_tests_name("unlogged", tests, NULL, NULL);
}
