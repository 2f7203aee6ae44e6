/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Maps, comparisons and copies of objects. */
#include "common/log.h"
#include "engine/objects/objects.h"
#include "tests/engine/fixture.h"

static const struct engine_address the_object = { .partition = PARTITION, .object = OBJECT },
				   other = { .partition = PARTITION, .object = OBJECT + 1 };

static uint32_t budget;

static void no_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

/* One partition with two empty user objects, in an open writing transaction. */
static int setup(void **state)
{
	struct fixture *f;

	log_configure(no_log, LOG_LEVEL_ERROR);
	budget = 1000;
	setup_on_memory(state);
	f = *state;
	begin_with_object(f);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, OBJECT + 1, 1, NULL),
			 0);
	return 0;
}

static void next(struct fixture *f)
{
	commit(f);
	begin(f, ENGINE_WRITE);
}

static void fill(struct fixture *f, struct engine_address address, uint64_t offset, uint64_t length,
		 int value)
{
	uint8_t *data = malloc(length);

	memset(data, value, length);
	assert_int_equal(engine_write(f->txn, address, offset, data, length), 0);
	free(data);
}

static void expect_run(struct engine_extent extent, enum engine_extent_kind kind, uint64_t offset,
		       uint64_t length)
{
	assert_int_equal(extent.kind, kind);
	assert_int_equal(extent.offset, offset);
	assert_int_equal(extent.length, length);
}

static struct engine_extent map_at(struct fixture *f, uint64_t offset, bool verify)
{
	struct engine_extent extent;

	assert_int_equal(engine_map(f->txn, the_object, offset, verify, &budget, &extent), 0);
	return extent;
}

static struct engine_extent compare_at(struct fixture *f, uint64_t offset)
{
	struct engine_extent extent;

	assert_int_equal(engine_compare(f->txn, the_object, other, offset, &budget, &extent), 0);
	return extent;
}

/* ---- maps ---- */

static void test_a_map_alternates_between_data_and_holes_up_to_the_end(void **state)
{
	struct fixture *f = *state;
	struct engine_extent extent;

	fill(f, the_object, 2 * PAGE, 3 * PAGE, 'a');
	fill(f, the_object, 7 * PAGE + 5, 10, 'b');
	assert_int_equal(engine_truncate(f->txn, the_object, 20 * PAGE + 7), 0);
	for (int verify = 0; verify <= 1; verify++) {
		expect_run(map_at(f, 0, verify), ENGINE_EXTENT_HOLE, 0, 2 * PAGE);
		expect_run(map_at(f, 2 * PAGE, verify), ENGINE_EXTENT_DATA, 2 * PAGE, 3 * PAGE);
		expect_run(map_at(f, 3 * PAGE + 1, verify), ENGINE_EXTENT_DATA, 3 * PAGE + 1,
			   2 * PAGE - 1);
		expect_run(map_at(f, 5 * PAGE, verify), ENGINE_EXTENT_HOLE, 5 * PAGE, 2 * PAGE);
		expect_run(map_at(f, 7 * PAGE, verify), ENGINE_EXTENT_DATA, 7 * PAGE, PAGE);
		expect_run(map_at(f, 8 * PAGE, verify), ENGINE_EXTENT_HOLE, 8 * PAGE,
			   12 * PAGE + 7);
	}
	assert_int_equal(engine_map(f->txn, the_object, 20 * PAGE + 7, true, &budget, &extent),
			 -ENOENT);
	assert_int_equal(engine_map(f->txn, other, 0, true, &budget, &extent), -ENOENT);
	assert_int_equal(engine_map(f->txn, (struct engine_address){ .partition = PARTITION }, 0,
				    true, &budget, &extent),
			 -EINVAL);
}

static void test_only_verifying_reads_and_never_beyond_its_budget(void **state)
{
	struct fixture *f = *state;
	struct engine_extent extent;

	fill(f, the_object, 0, 10 * PAGE, 'a');
	budget = 0;
	expect_run(map_at(f, 0, false), ENGINE_EXTENT_DATA, 0, 10 * PAGE);
	assert_int_equal(engine_map(f->txn, the_object, 0, true, &budget, &extent), -EAGAIN);
	budget = 4;
	expect_run(map_at(f, 0, true), ENGINE_EXTENT_DATA, 0, 4 * PAGE);
	assert_int_equal(budget, 0);
	budget = 7;
	expect_run(map_at(f, 4 * PAGE, true), ENGINE_EXTENT_DATA, 4 * PAGE, 6 * PAGE);
	assert_int_equal(budget, 1);
}

static void test_a_verified_map_shows_damage_where_it_is(void **state)
{
	struct fixture *f = *state;
	struct record_key key = key_of_data(1, OBJECT, 2);

	fill(f, the_object, 0, 4 * PAGE, 'a');
	next(f);
	memory_store_corrupt(f->memory, &key);
	expect_run(map_at(f, 0, false), ENGINE_EXTENT_DATA, 0, 4 * PAGE);
	expect_run(map_at(f, 0, true), ENGINE_EXTENT_DATA, 0, 2 * PAGE);
	expect_run(map_at(f, 2 * PAGE, true), ENGINE_EXTENT_DAMAGED, 2 * PAGE, PAGE);
	expect_run(map_at(f, 3 * PAGE, true), ENGINE_EXTENT_DATA, 3 * PAGE, PAGE);
	memory_store_corrupt(f->memory, NULL);
}

/* More runs than an onode keeps: what lies between them is told apart by reading. */
static void test_holes_inside_bridged_extents_are_found(void **state)
{
	struct fixture *f = *state;
	uint64_t offset = 0;
	uint32_t runs = 0;

	for (uint32_t i = 0; i < EXTENTS_MAX + 100; i++)
		fill(f, the_object, 2 * i * PAGE, PAGE, 'a');
	next(f);
	budget = 100000;
	while (offset < (2 * (EXTENTS_MAX + 100) - 1) * PAGE) {
		struct engine_extent extent = map_at(f, offset, false);

		expect_run(extent, runs % 2 ? ENGINE_EXTENT_HOLE : ENGINE_EXTENT_DATA, offset,
			   PAGE);
		offset += extent.length;
		runs++;
	}
	assert_int_equal(runs, 2 * (EXTENTS_MAX + 100) - 1);
}

/* ---- comparisons ---- */

static void test_a_comparison_tells_what_differs_and_what_is_there(void **state)
{
	struct fixture *f = *state;
	struct engine_extent extent;

	fill(f, the_object, 0, 6 * PAGE, 'a');
	fill(f, other, 0, 6 * PAGE, 'a');
	fill(f, other, 2 * PAGE + 9, 1, 'b');
	assert_int_equal(engine_clear(f->txn, the_object, 4 * PAGE, PAGE), 0);
	assert_int_equal(engine_truncate(f->txn, the_object, 50 * PAGE), 0);
	assert_int_equal(engine_truncate(f->txn, other, 60 * PAGE), 0);
	expect_run(compare_at(f, 0), ENGINE_EXTENT_SAME, 0, 2 * PAGE);
	expect_run(compare_at(f, 2 * PAGE), ENGINE_EXTENT_DATA, 2 * PAGE, PAGE);
	expect_run(compare_at(f, 3 * PAGE), ENGINE_EXTENT_SAME, 3 * PAGE, PAGE);
	expect_run(compare_at(f, 4 * PAGE), ENGINE_EXTENT_HOLE, 4 * PAGE, PAGE);
	expect_run(compare_at(f, 5 * PAGE), ENGINE_EXTENT_SAME, 5 * PAGE, 45 * PAGE);
	expect_run(compare_at(f, 50 * PAGE), ENGINE_EXTENT_HOLE, 50 * PAGE, 10 * PAGE);
	assert_int_equal(engine_compare(f->txn, the_object, other, 60 * PAGE, &budget, &extent),
			 -ENOENT);
	/* From inside a page. */
	expect_run(compare_at(f, 2 * PAGE + 10), ENGINE_EXTENT_SAME, 2 * PAGE + 10, 2 * PAGE - 10);
}

static void test_written_zeros_and_a_hole_are_the_same(void **state)
{
	struct fixture *f = *state;

	fill(f, the_object, 0, 2 * PAGE, 0);
	assert_int_equal(engine_truncate(f->txn, other, 2 * PAGE), 0);
	expect_run(compare_at(f, 0), ENGINE_EXTENT_SAME, 0, 2 * PAGE);
}

static void test_a_comparison_reads_no_more_than_its_budget(void **state)
{
	struct fixture *f = *state;
	struct engine_extent extent;

	fill(f, the_object, 0, 10 * PAGE, 'a');
	fill(f, other, 0, 10 * PAGE, 'a');
	budget = 3;
	expect_run(compare_at(f, 0), ENGINE_EXTENT_SAME, 0, 3 * PAGE);
	assert_int_equal(engine_compare(f->txn, the_object, other, 3 * PAGE, &budget, &extent),
			 -EAGAIN);
}

static void test_damage_in_either_object_is_told(void **state)
{
	struct fixture *f = *state;
	struct record_key key = key_of_data(1, other.object, 1);

	fill(f, the_object, 0, 3 * PAGE, 'a');
	fill(f, other, 0, 3 * PAGE, 'a');
	next(f);
	memory_store_corrupt(f->memory, &key);
	expect_run(compare_at(f, PAGE), ENGINE_EXTENT_DAMAGED, PAGE, PAGE);
	memory_store_corrupt(f->memory, NULL);
}

static void test_an_object_is_compared_with_its_past(void **state)
{
	struct fixture *f = *state;
	struct engine_address past = the_object;
	struct engine_extent extent;

	fill(f, the_object, 0, 4 * PAGE, 'a');
	next(f);
	assert_int_equal(engine_snapshot(f->txn, PARTITION, NULL, &past.version), 0);
	next(f);
	fill(f, the_object, PAGE, PAGE, 'b');
	assert_int_equal(engine_compare(f->txn, the_object, past, 0, &budget, &extent), 0);
	expect_run(extent, ENGINE_EXTENT_SAME, 0, PAGE);
	assert_int_equal(engine_compare(f->txn, the_object, past, PAGE, &budget, &extent), 0);
	expect_run(extent, ENGINE_EXTENT_DATA, PAGE, PAGE);
	assert_int_equal(engine_compare(f->txn, the_object, past, 2 * PAGE, &budget, &extent), 0);
	expect_run(extent, ENGINE_EXTENT_SAME, 2 * PAGE, 2 * PAGE);
}

/* ---- copies ---- */

static void test_a_copy_has_the_same_bytes_holes_and_length(void **state)
{
	struct fixture *f = *state;
	struct engine_stat stat;

	fill(f, other, 0, 9 * PAGE, 'x');
	fill(f, the_object, 2 * PAGE, 3 * PAGE + 17, 'a');
	assert_int_equal(engine_truncate(f->txn, the_object, 30 * PAGE + 3), 0);
	assert_int_equal(engine_copy_data(f->txn, the_object, other), 0);
	expect_run(compare_at(f, 0), ENGINE_EXTENT_SAME, 0, 30 * PAGE + 3);
	assert_int_equal(engine_stat(f->txn, other, &stat), 0);
	assert_int_equal(stat.length, 30 * PAGE + 3);
	assert_int_equal(stat.used_bytes, 4 * PAGE);
	/* They are two objects. */
	fill(f, the_object, 2 * PAGE, 1, 'b');
	expect_run(compare_at(f, 2 * PAGE), ENGINE_EXTENT_DATA, 2 * PAGE, PAGE);
}

static void test_damaged_data_is_not_copied(void **state)
{
	struct fixture *f = *state;
	struct record_key key = key_of_data(1, OBJECT, 1);

	fill(f, the_object, 0, 3 * PAGE, 'a');
	next(f);
	memory_store_corrupt(f->memory, &key);
	assert_int_equal(engine_copy_data(f->txn, the_object, other), -EBADMSG);
	memory_store_corrupt(f->memory, NULL);
	assert_int_equal(
		engine_copy_data(f->txn,
				 (struct engine_address){ .partition = PARTITION, .object = 99999 },
				 other),
		-ENOENT);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(test_a_map_alternates_between_data_and_holes_up_to_the_end),
		WITH(test_only_verifying_reads_and_never_beyond_its_budget),
		WITH(test_a_verified_map_shows_damage_where_it_is),
		WITH(test_holes_inside_bridged_extents_are_found),
		WITH(test_a_comparison_tells_what_differs_and_what_is_there),
		WITH(test_written_zeros_and_a_hole_are_the_same),
		WITH(test_a_comparison_reads_no_more_than_its_budget),
		WITH(test_damage_in_either_object_is_told),
		WITH(test_an_object_is_compared_with_its_past),
		WITH(test_a_copy_has_the_same_bytes_holes_and_length),
		WITH(test_damaged_data_is_not_copied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
