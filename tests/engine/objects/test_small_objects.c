/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Objects whose data is in their onode: that it is there, and that nothing but the records shows
 * it, whatever becomes of the object, now and in the past.
 */
#include "common/bytes.h"
#include "engine/history/past.h"
#include "engine/objects/objects.h"
#include "tests/engine/fixture.h"

/* Most bytes of data in the onode of a page's size. */
#define SMALL_MAX ((uint32_t)((PAGE - ONODE_HEAD_BYTES) / 2))

/* ---- what an object holds ---- */

/* Bytes that no two offsets close to each other, and no two fills, have alike. */
static void fill(uint8_t *bytes, uint8_t seed, size_t length)
{
	for (size_t n = 0; n < length; n++)
		bytes[n] = (uint8_t)(seed + n * 7 + n / 256);
}

/* In a transaction of its own: the object is these bytes. */
static void put_bytes(struct fixture *f, uint8_t seed, uint32_t length)
{
	uint8_t bytes[4 * PAGE];

	fill(bytes, seed, length);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_truncate(f->txn, object(OBJECT), 0), 0);
	assert_int_equal(engine_write(f->txn, object(OBJECT), 0, bytes, length), 0);
	commit(f);
}

static void check_bytes_of(struct fixture *f, struct engine_address address, uint8_t seed,
			   uint32_t length)
{
	uint8_t bytes[4 * PAGE];

	fill(bytes, seed, length);
	begin(f, ENGINE_READ);
	assert_data(f, address, bytes, length);
	commit(f);
}

static void check_bytes(struct fixture *f, uint8_t seed, uint32_t length)
{
	check_bytes_of(f, object(OBJECT), seed, length);
}

/* So many modifications ago. */
static struct engine_address before(uint32_t ago)
{
	struct engine_address address = object(OBJECT);

	address.ago = ago;
	return address;
}

/* Whether the onode of OBJECT has its data. */
static bool is_small(struct fixture *f)
{
	struct target target;
	bool small;

	begin(f, ENGINE_READ);
	assert_int_equal(target_open(f->txn, object(OBJECT), TARGET_READ, &target), 0);
	small = target.onode->data.here;
	target_close(&target);
	commit(f);
	return small;
}

static uint64_t puts_of(struct fixture *f)
{
	return memory_store_counters(f->memory).puts;
}

/* ---- where the data is ---- */

/* As an import does. Returns how many records it took. */
static uint64_t create_file(struct fixture *f, uint64_t id, uint32_t length)
{
	uint64_t before = puts_of(f);
	uint8_t bytes[PAGE];

	fill(bytes, 1, length);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, id, 1, NULL), 0);
	assert_int_equal(engine_write(f->txn, object(id), 0, bytes, length), 0);
	assert_int_equal(engine_attribute_set(f->txn, object(id), 1, 1, "raven", 5), 0);
	commit(f);
	return puts_of(f) - before;
}

static void test_a_small_object_is_one_record(void **state)
{
	struct fixture *f = *state;
	uint64_t empty;

	create(f, PARTITION);
	create_file(f, OBJECT + 1, 0); /* this one also begins things that are noted once */
	empty = create_file(f, OBJECT + 2, 0);
	assert_int_equal(create_file(f, OBJECT + 3, 1), empty);
	assert_int_equal(create_file(f, OBJECT + 4, SMALL_MAX), empty);
	assert_int_equal(create_file(f, OBJECT + 5, SMALL_MAX + 1), empty + 1);
}

static void test_objects_of_every_length_around_the_limit_are_what_was_written(void **state)
{
	struct fixture *f = *state;

	create(f, PARTITION);
	for (uint32_t length = 0; length < PAGE + 3; length++) {
		put_bytes(f, (uint8_t)length, length);
		check_bytes(f, (uint8_t)length, length);
		if (length)
			assert_int_equal(is_small(f), length <= SMALL_MAX);
	}
	put_bytes(f, 9, SMALL_MAX);
	crash(f);
	check_bytes(f, 9, SMALL_MAX);
	assert_true(is_small(f));
}

static void test_it_counts_and_is_mapped_as_a_page(void **state)
{
	struct fixture *f = *state;
	struct engine_extent extent;
	uint32_t budget = 10;

	create(f, PARTITION);
	put_bytes(f, 1, 100);
	begin(f, ENGINE_WRITE);
	assert_int_equal(stat_of(f, object(OBJECT)).used_bytes, PAGE);
	assert_int_equal(stat_of(f, the_partition).used_bytes, PAGE);
	assert_int_equal(engine_truncate(f->txn, object(OBJECT), 3 * PAGE), 0);
	assert_int_equal(engine_map(f->txn, object(OBJECT), 0, true, &budget, &extent), 0);
	assert_int_equal(extent.kind, ENGINE_EXTENT_DATA);
	assert_int_equal(extent.length, PAGE);
	assert_int_equal(engine_map(f->txn, object(OBJECT), PAGE, true, &budget, &extent), 0);
	assert_int_equal(extent.kind, ENGINE_EXTENT_HOLE);
	assert_int_equal(extent.length, 2 * PAGE);
	assert_int_equal(engine_clear(f->txn, object(OBJECT), 0, PAGE), 0);
	assert_int_equal(stat_of(f, object(OBJECT)).used_bytes, 0);
	assert_int_equal(stat_of(f, the_partition).used_bytes, 0);
	commit(f);
	assert_false(is_small(f));
}

/* ---- becoming larger and smaller ---- */

static void test_it_moves_out_when_it_grows_and_back_when_it_is_cut(void **state)
{
	struct fixture *f = *state;
	uint8_t bytes[3 * PAGE] = { 0 };
	uint64_t at;

	create(f, PARTITION);
	put_bytes(f, 5, SMALL_MAX);
	fill(bytes, 5, SMALL_MAX);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_append(f->txn, object(OBJECT), "x", 1, &at), 0);
	bytes[SMALL_MAX] = 'x';
	assert_data(f, object(OBJECT), bytes, SMALL_MAX + 1);
	commit(f);
	assert_false(is_small(f));
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_truncate(f->txn, object(OBJECT), 10), 0);
	commit(f);
	assert_true(is_small(f));
	/* A second piece, and then one piece again. */
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, object(OBJECT), 2 * PAGE, "y", 1), 0);
	memset(bytes + 10, 0, sizeof(bytes) - 10);
	bytes[2 * PAGE] = 'y';
	assert_data(f, object(OBJECT), bytes, 2 * PAGE + 1);
	commit(f);
	assert_false(is_small(f));
	crash(f);
	begin(f, ENGINE_WRITE);
	assert_data(f, object(OBJECT), bytes, 2 * PAGE + 1);
	assert_int_equal(engine_truncate(f->txn, object(OBJECT), 9), 0);
	assert_data(f, object(OBJECT), bytes, 9);
	commit(f);
	assert_true(is_small(f));
	assert_int_equal(at, SMALL_MAX);
	check_bytes_of(f, before(4), 5, SMALL_MAX);
}

/* Punches and clears within it, and moves from behind it into it. */
static void test_ranges_of_it_are_cleared_and_punched(void **state)
{
	struct fixture *f = *state;
	uint8_t bytes[PAGE + 50];

	create(f, PARTITION);
	put_bytes(f, 3, 100);
	fill(bytes, 3, 100);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clear(f->txn, object(OBJECT), 20, 30), 0);
	memset(bytes + 20, 0, 30);
	assert_data(f, object(OBJECT), bytes, 100);
	assert_int_equal(engine_punch(f->txn, object(OBJECT), 10, 50), 0);
	memmove(bytes + 10, bytes + 60, 40);
	assert_data(f, object(OBJECT), bytes, 50);
	commit(f);
	assert_true(is_small(f));
	put_bytes(f, 4, PAGE + 50);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_punch(f->txn, object(OBJECT), 0, PAGE), 0);
	commit(f);
	fill(bytes, 4, PAGE + 50);
	begin(f, ENGINE_READ);
	assert_data(f, object(OBJECT), bytes + PAGE, 50);
	commit(f);
}

/*
 * A record that the transaction put before the object became small does not come back when the
 * piece is a hole again, and lies in a gap between others.
 */
static void test_records_from_before_it_was_small_do_not_come_back(void **state)
{
	struct fixture *f = *state;
	uint8_t page[PAGE], got[PAGE], zeros[PAGE] = { 0 };
	uint64_t count;

	create(f, PARTITION);
	memset(page, 'p', sizeof(page));
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, object(OBJECT), 0, page, PAGE), 0);
	assert_int_equal(engine_truncate(f->txn, object(OBJECT), 10), 0);
	assert_int_equal(engine_truncate(f->txn, object(OBJECT), 0), 0);
	/* So many extents that some are bridged. */
	for (uint32_t n = 0; n <= EXTENTS_MAX; n++)
		assert_int_equal(
			engine_write(f->txn, object(OBJECT), n ? (2 * n + 1) * PAGE : PAGE, "z", 1),
			0);
	assert_int_equal(engine_read(f->txn, object(OBJECT), 0, got, PAGE, &count), 0);
	assert_memory_equal(got, zeros, PAGE);
	commit(f);
}

/* ---- the past ---- */

static void test_each_modification_is_kept_in_one_slot_too(void **state)
{
	struct fixture *f = *state;
	enum { TIMES = 20 };

	for (uint32_t n = 0; n < TIMES; n++) {
		put_bytes(f, (uint8_t)n, 30 + n);
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_accessed(f->txn, object(OBJECT), true, true), 0);
		commit(f);
	}
	for (uint32_t n = 1; n < TIMES; n++)
		check_bytes_of(f, before(n), (uint8_t)(TIMES - 1 - n), 30 + TIMES - 1 - n);
	/* Also when the records are on flash, and some have been merged. */
	merge_all(f);
	for (uint32_t n = 1; n < TIMES; n++)
		check_bytes_of(f, before(n), (uint8_t)(TIMES - 1 - n), 30 + TIMES - 1 - n);
}

/* The record of its page from before it was small goes, as far as no moment shows it. */
static void test_a_merge_drops_what_it_has_moved_in(void **state)
{
	struct fixture *f = *state;
	struct record_key key = key_of_data(index_of(f, PARTITION), OBJECT, 0);
	struct record_info info;

	set_kind(f, 0, ENGINE_RETAIN_NONE);
	f->now += 10 * SECOND;
	put_bytes(f, 1, PAGE);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_truncate(f->txn, object(OBJECT), 50), 0);
	commit(f);
	f->now += 10 * SECOND;
	assert_int_equal(record_get(f->engine->store, key, RECORD_NEWEST, NULL, 0, &info), 0);
	/* Of each row, what is buffered is sealed. */
	for (uint32_t n = 1; n < 100; n++) {
		uint8_t page[PAGE] = { 0 };

		begin(f, ENGINE_WRITE);
		assert_int_equal(
			engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, OBJECT + n, 1, NULL),
			0);
		assert_int_equal(engine_write(f->txn, object(OBJECT + n), 0, page, PAGE), 0);
		assert_int_equal(engine_remove(f->txn, object(OBJECT + n)), 0);
		commit(f);
	}
	merge_all(f);
	assert_int_equal(record_get(f->engine->store, key, RECORD_NEWEST, NULL, 0, &info), -ENOENT);
	check_bytes(f, 1, 50);
}

static void test_versions_show_it_small_and_large(void **state)
{
	struct fixture *f = *state;
	uint32_t versions[6];

	for (uint32_t n = 0; n < 6; n++) {
		put_bytes(f, (uint8_t)n, n % 2 ? 2 * PAGE : 50);
		versions[n] = take_snapshot(f, PARTITION, NULL);
	}
	put_bytes(f, 99, 60);
	for (int round = 0; round < 2; round++) {
		for (uint32_t n = 0; n < 6; n++)
			check_bytes_of(f, at_version(object(OBJECT), versions[n]), (uint8_t)n,
				       n % 2 ? 2 * PAGE : 50);
		check_bytes(f, 99, 60);
		merge_all(f);
		crash(f);
	}
	/* The partition goes back, and forth. */
	roll_back(f, PARTITION, at_number(versions[2]));
	check_bytes(f, 2, 50);
	roll_back(f, PARTITION, at_number(versions[3]));
	check_bytes(f, 3, 2 * PAGE);
}

/* The object goes back by putting its pages again, or by hiding what came since. */
static void check_going_back(struct fixture *f, uint64_t pieces_put_again)
{
	f->engine->past->pieces_put_again = pieces_put_again;
	put_bytes(f, 1, 50);
	put_bytes(f, 2, 3 * PAGE);
	put_bytes(f, 3, 70);
	for (int round = 0; round < 2; round++) {
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_undo(f->txn, PARTITION, OBJECT, 1), 0);
		commit(f);
		check_bytes(f, 2, 3 * PAGE);
		assert_false(is_small(f));
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_undo(f->txn, PARTITION, OBJECT, 1), 0);
		commit(f);
		check_bytes(f, 3, 70);
		assert_true(is_small(f));
	}
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_undo(f->txn, PARTITION, OBJECT, 6), 0);
	commit(f);
	check_bytes(f, 1, 50);
	crash(f);
	f->engine->past->pieces_put_again = pieces_put_again;
	check_bytes(f, 1, 50);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, object(OBJECT), PAGE, "tail", 4), 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_truncate(f->txn, object(OBJECT), 50), 0);
	commit(f);
	check_bytes(f, 1, 50);
}

static void test_it_goes_back_with_its_onode(void **state)
{
	check_going_back(*state, 64);
}

static void test_it_goes_back_where_data_is_hidden(void **state)
{
	check_going_back(*state, 0);
}

static void test_a_clone_has_it_and_writes_its_own(void **state)
{
	const struct engine_address in_clone = { .partition = CLONE, .object = OBJECT };
	struct fixture *f = *state;

	put_bytes(f, 1, 50);
	make_clone(f, PARTITION, CLONE);
	put_bytes(f, 2, 40);
	check_bytes_of(f, in_clone, 1, 50);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, in_clone, 0, "clone", 5), 0);
	commit(f);
	check_bytes(f, 2, 40);
	refresh_clone(f, CLONE);
	check_bytes_of(f, in_clone, 2, 40);
}

/* ---- the option ---- */

static void test_another_limit_holds_from_the_next_write_on(void **state)
{
	struct fixture *f = *state;

	create(f, PARTITION);
	put_bytes(f, 1, 100);
	assert_true(is_small(f));
	assert_int_equal(engine_close(f->engine), 0);
	f->inline_bytes = ENGINE_INLINE_NONE;
	reopen(f);
	check_bytes(f, 1, 100);
	assert_true(is_small(f));
	put_bytes(f, 2, 10);
	assert_false(is_small(f));
	assert_int_equal(engine_close(f->engine), 0);
	f->inline_bytes = 12;
	reopen(f);
	check_bytes(f, 2, 10);
	put_bytes(f, 3, 12);
	assert_true(is_small(f));
	put_bytes(f, 4, 13);
	assert_false(is_small(f));
	check_bytes(f, 4, 13);
	check_bytes_of(f, before(3), 1, 100);
	/* Never more than leaves space for extents and attributes. */
	assert_int_equal(engine_close(f->engine), 0);
	f->inline_bytes = 100000;
	reopen(f);
	put_bytes(f, 5, SMALL_MAX);
	assert_true(is_small(f));
	put_bytes(f, 6, SMALL_MAX + 1);
	assert_false(is_small(f));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_small_object_is_one_record),
		TEST(test_objects_of_every_length_around_the_limit_are_what_was_written),
		TEST(test_it_counts_and_is_mapped_as_a_page),
		TEST(test_it_moves_out_when_it_grows_and_back_when_it_is_cut),
		TEST(test_ranges_of_it_are_cleared_and_punched),
		TEST(test_records_from_before_it_was_small_do_not_come_back),
		FLASH_TEST(test_each_modification_is_kept_in_one_slot_too),
		FLASH_TEST(test_a_merge_drops_what_it_has_moved_in),
		FLASH_TEST(test_versions_show_it_small_and_large),
		FLASH_TEST(test_it_goes_back_with_its_onode),
		FLASH_TEST(test_it_goes_back_where_data_is_hidden),
		FLASH_TEST(test_a_clone_has_it_and_writes_its_own),
		TEST(test_another_limit_holds_from_the_next_write_on),
	};

	return cmocka_run_group_tests_name("small objects", tests, NULL, NULL);
}
