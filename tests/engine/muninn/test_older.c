/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What is known of a segment's old records passes over no page that has what is looked for, and
 * passes over what is clearly beside it. It takes memory only for what it can say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <malloc.h>

#include "engine/muninn/index/index.h"
#include "engine/muninn/older.h"

enum { PAGES = 256, NUMBERS = 6, ROUNDS = 20000, LEVELS = 65536 };

/* The numbers of the records of each page. */
struct scene {
	uint32_t pages;
	uint32_t counts[MUNINN_SEGMENT_PAGES_MAX];
	uint64_t numbers[MUNINN_SEGMENT_PAGES_MAX][NUMBERS];
	uint64_t below;
	struct older_pages older;
};

static uint64_t random_state = 1;

static uint64_t random_below(uint64_t limit)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (random_state >> 16) % limit;
}

static struct scene *begin(uint32_t pages, uint64_t below)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	assert_non_null(scene);
	scene->pages = pages;
	scene->below = below;
	older_begin(&scene->older, below);
	return scene;
}

static void end(struct scene *scene)
{
	older_forget(&scene->older);
	free(scene);
}

static void put(struct scene *scene, uint32_t page, uint64_t number)
{
	assert_true(scene->counts[page] < NUMBERS);
	scene->numbers[page][scene->counts[page]++] = number;
}

static void note(struct scene *scene, uint32_t page)
{
	uint8_t bytes[NUMBERS * RECORD_HEADER_BYTES];
	struct page_view view = { .data = bytes };

	for (uint32_t n = 0; n < scene->counts[page]; n++) {
		struct record_header header = { .key.identifier = 1,
						.sequence = scene->numbers[page][n] };

		record_header_encode(&header, 0, NULL, bytes + view.used);
		view.used += RECORD_HEADER_BYTES;
	}
	older_note(&scene->older, scene->pages, page, &view);
}

/* As a segment is sealed. `is_ordered`: none of its records has the mark. */
static void seal(struct scene *scene, bool is_ordered)
{
	struct sealed_segment facts = { .first_sequence = UINT64_MAX, .is_ordered = is_ordered };

	for (uint32_t page = 0; page < scene->pages; page++)
		for (uint32_t n = 0; n < scene->counts[page]; n++)
			facts.first_sequence =
				min_u64(facts.first_sequence, scene->numbers[page][n]);
	older_expect(&scene->older, &facts);
	for (uint32_t page = 0; page < scene->pages; page++)
		note(scene, page);
	/* Those that could not be programmed are prepared again. */
	for (uint32_t page = 0; page < scene->pages; page += 3)
		note(scene, page);
	older_end(&scene->older);
}

static bool passes(const struct scene *scene, uint32_t page, uint64_t after, uint64_t bound)
{
	return older_passes(&scene->older, scene->pages, page, after, bound);
}

static bool has_between(const struct scene *scene, uint32_t page, uint64_t after, uint64_t bound)
{
	for (uint32_t n = 0; n < scene->counts[page]; n++)
		if (scene->numbers[page][n] > after && scene->numbers[page][n] <= bound)
			return true;
	return false;
}

/* Old records of a page or two of the past, as a merge moves them, and new ones. */
static void put_some(struct scene *scene, uint32_t page, uint64_t first)
{
	uint64_t near = first + random_below(scene->below - first);

	for (uint64_t n = random_below(NUMBERS + 1); n > 0; n--) {
		if (random_below(3) == 0)
			near = first + random_below(scene->below - first);
		else if (random_below(4) == 0)
			near = scene->below + random_below(1000);
		put(scene, page, near);
	}
}

static uint32_t check_some(struct scene *scene, uint64_t first)
{
	uint32_t passed = 0;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t page = (uint32_t)random_below(scene->pages);
		uint64_t bound = first + random_below(scene->below + 500 - first);
		uint64_t after = random_below(2) ? bound - random_below(bound - first + 1) : 0;

		/* At the ends, too. */
		if (scene->counts[page] && random_below(2)) {
			bound = scene->numbers[page][random_below(scene->counts[page])];
			after = bound - 1;
		}
		if (has_between(scene, page, after, bound))
			assert_false(passes(scene, page, after, bound));
		else
			passed += passes(scene, page, after, bound);
	}
	return passed;
}

static void check_shape(uint32_t pages, uint64_t first, uint64_t below)
{
	struct scene *scene = begin(pages, below);

	put(scene, 0, first);
	for (uint32_t page = 1; page < pages; page++)
		put_some(scene, page, first);
	seal(scene, false);
	assert_non_null(scene->older.ranges);
	assert_true(check_some(scene, first) > 0);
	end(scene);
}

static void test_no_page_with_what_is_looked_for_is_passed_over(void **state)
{
	(void)state;
	check_shape(PAGES, 1000, 100000);
	check_shape(8, 1000, 100000);
	/* A level of one number; of many; the highest numbers that there are; the lowest one. */
	check_shape(PAGES, 5000, 5001);
	check_shape(PAGES, 5000, 5000 + LEVELS);
	check_shape(PAGES, 5000, 5001 + LEVELS);
	check_shape(PAGES, 1, RECORD_NEWEST - 1000);
	check_shape(PAGES, RECORD_NEWEST - 4000, RECORD_NEWEST - 1000);
	check_shape(PAGES, 1, 300000);
	/* Pages share what is known of them. */
	check_shape(MUNINN_SEGMENT_PAGES_MAX, 1000, 10000000);
}

/* Levels of 10 numbers. */
static void test_pages_whose_old_records_are_beside_what_is_looked_for_are_passed_over(void **state)
{
	struct scene *scene = begin(PAGES, 100 + 10 * LEVELS);
	struct older_range range;

	(void)state;
	put(scene, 0, 100);
	for (uint32_t n = 0; n < 2; n++) {
		put(scene, 7, 1000 + 10 * n);
		put(scene, 7, 2000 + 10 * n);
	}
	put(scene, 7, scene->below + 5);
	put(scene, 8, scene->below + 6);
	seal(scene, false);
	assert_true(passes(scene, 7, 0, 999));
	assert_false(passes(scene, 7, 0, 1000));
	assert_true(passes(scene, 7, 1019, 1999));
	assert_false(passes(scene, 7, 1019, 2000));
	assert_false(passes(scene, 7, 1018, 1999));
	assert_false(passes(scene, 7, 2000, scene->below - 1));
	assert_true(passes(scene, 7, 2019, scene->below - 1));
	/* New ones are told by no range. */
	assert_false(passes(scene, 7, 2019, scene->below));
	assert_true(passes(scene, 8, 0, scene->below - 1));
	assert_false(passes(scene, 8, 0, scene->below));
	range = older_range(&scene->older, PAGES, 7, 1999);
	assert_int_equal(range.lowest, 1000);
	assert_int_equal(range.highest, 1019);
	range = older_range(&scene->older, PAGES, 7, 2000);
	assert_int_equal(range.lowest, 2000);
	assert_int_equal(range.highest, 2019);
	range = older_range(&scene->older, PAGES, 7, 50);
	assert_int_equal(range.lowest, 1000);
	end(scene);
}

/* Of more than two places in the past the widest gap stays, in whatever order they come. */
static void test_the_widest_gap_is_kept(void **state)
{
	static const uint64_t numbers[] = { 300, 500, 1900, 2100 };

	(void)state;
	for (uint32_t first = 0; first < 4; first++)
		for (uint32_t step = 1; step < 4; step += 2) {
			struct scene *scene = begin(PAGES, 100 + 10 * LEVELS);

			put(scene, 0, 100);
			for (uint32_t n = 0; n < 4; n++)
				put(scene, 9, numbers[(first + n * step) % 4]);
			seal(scene, false);
			assert_true(passes(scene, 9, 509, 1899));
			assert_false(passes(scene, 9, 509, 1900));
			assert_false(passes(scene, 9, 499, 1899));
			end(scene);
		}
}

static void test_ranges_take_memory_only_where_a_merge_moved_old_versions(void **state)
{
	struct scene *scene = begin(PAGES, 1000);
	uint32_t old = 0;

	(void)state;
	for (uint32_t page = 0; page < PAGES; page += 2, old++)
		put(scene, page, 500 + page);
	/* The newest records of their keys: it is known which pages have them, and no more. */
	seal(scene, true);
	assert_null(scene->older.ranges);
	assert_false(passes(scene, 2, 0, 1));
	assert_true(passes(scene, 3, 0, 999));
	older_begin(&scene->older, scene->below);
	seal(scene, false);
	assert_non_null(scene->older.ranges);
	/* Each page has one old record; an allocator rounds up. */
	assert_in_range(malloc_usable_size(scene->older.ranges), 1,
			sizeof(struct older_ranges) + (old + 16) * sizeof(uint16_t));
	assert_true(passes(scene, 2, 0, 1));
	assert_true(passes(scene, 2, 502, 999));
	assert_false(passes(scene, 2, 501, 999));
	assert_true(passes(scene, 254, 0, 753));
	assert_false(passes(scene, 254, 0, 754));
	/* Nothing is known of the segment before it. */
	older_begin(&scene->older, 0);
	seal(scene, false);
	assert_null(scene->older.ranges);
	assert_false(passes(scene, 3, 0, 1));
	end(scene);
}

/* ---- storing ---- */

/* What is stored and taken up again says the same of every page. */
static void check_stored(struct scene *scene)
{
	uint32_t bytes = older_stored(&scene->older);
	uint8_t *stored = malloc(bytes), *again = malloc(bytes);

	assert_in_range(bytes, RANGES_BYTES, OLDER_STORED_MAX);
	older_put(&scene->older, 23, stored);
	assert_int_equal(older_stored_at(stored, bytes), bytes);
	assert_int_equal(older_stored_at(stored, bytes + 100), bytes);
	for (uint32_t shorter = 0; shorter < bytes; shorter++)
		assert_int_equal(older_stored_at(stored, shorter), 0);
	older_forget(&scene->older);
	assert_int_equal(older_get(&scene->older, stored), 23);
	assert_int_equal(scene->older.below, scene->below);
	older_put(&scene->older, 23, again);
	assert_int_equal(older_stored(&scene->older), bytes);
	assert_memory_equal(again, stored, bytes);
	free(stored);
	free(again);
}

static void check_shape_stored(uint32_t pages, uint64_t first, uint64_t below, bool is_ordered)
{
	struct scene *scene = begin(pages, below);

	put(scene, 0, first);
	for (uint32_t page = 1; page < pages; page++)
		put_some(scene, page, first);
	seal(scene, is_ordered);
	check_stored(scene);
	assert_int_equal(scene->older.ranges != NULL, !is_ordered);
	assert_true(check_some(scene, first) > 0 || is_ordered);
	end(scene);
}

static void test_what_is_stored_passes_over_the_same_pages_when_it_is_taken_up_again(void **state)
{
	(void)state;
	for (int is_ordered = 0; is_ordered < 2; is_ordered++) {
		check_shape_stored(PAGES, 1000, 100000, is_ordered);
		check_shape_stored(8, 1000, 100000, is_ordered);
		check_shape_stored(PAGES, 5000, 5001 + LEVELS, is_ordered);
		check_shape_stored(PAGES, 1, RECORD_NEWEST - 1000, is_ordered);
		check_shape_stored(PAGES, RECORD_NEWEST - 4000, RECORD_NEWEST - 1000, is_ordered);
		check_shape_stored(MUNINN_SEGMENT_PAGES_MAX, 1000, 10000000, is_ordered);
	}
}

/* The example of docs/format.md. */
static void test_ranges_have_the_documented_bytes(void **state)
{
	static const uint8_t head[] = { 0x05, 0x00, 0x06, 0x00, 0x64, 0x00, 0x0a, 0x00,
					0x00, 0x00, 0x64, 0x00, 0x00, 0x00, 0x00, 0x00 };
	static const uint8_t map[] = { 0x81, 0x00, 0x02 }, wide[] = { 0x80, 0x00, 0x00 };
	static const uint8_t levels[] = { 0x00, 0x00, 0x5a, 0x00, 0x5b, 0x00,
					  0xbe, 0x00, 0xbf, 0x00, 0x14, 0x00 };
	struct scene *scene = begin(PAGES, 100 + 10 * LEVELS);
	uint8_t stored[OLDER_STORED_MAX], documented[RANGES_BYTES + sizeof(levels)] = { 0 };

	(void)state;
	memcpy(documented, head, sizeof(head));
	memcpy(documented + 16, map, sizeof(map));
	memcpy(documented + 48, wide, sizeof(wide));
	memcpy(documented + 80, levels, sizeof(levels));
	put(scene, 0, 100);
	for (uint32_t n = 0; n < 2; n++) {
		put(scene, 7, 1000 + 10 * n);
		put(scene, 7, 2000 + 10 * n);
	}
	put(scene, 17, 300);
	put(scene, 18, scene->below);
	seal(scene, false);
	assert_int_equal(older_stored(&scene->older), sizeof(documented));
	older_put(&scene->older, 5, stored);
	assert_memory_equal(stored, documented, sizeof(documented));
	end(scene);
}

static void test_nothing_is_stored_where_nothing_is_known_and_where_nothing_is_old(void **state)
{
	struct scene *scene = begin(PAGES, 1000);

	(void)state;
	put(scene, 3, 1000);
	seal(scene, false);
	assert_int_equal(older_stored(&scene->older), 0);
	put(scene, 4, 999);
	older_begin(&scene->older, 0);
	seal(scene, false);
	assert_int_equal(older_stored(&scene->older), 0);
	older_begin(&scene->older, 1000);
	seal(scene, true);
	assert_int_equal(older_stored(&scene->older), RANGES_BYTES);
	end(scene);
}

/* Whatever bytes there are, no level is looked for outside of them. */
static void test_bytes_that_contradict_each_other_are_no_ranges(void **state)
{
	struct scene *scene = begin(PAGES, 100000);
	uint8_t stored[OLDER_STORED_MAX], copy[OLDER_STORED_MAX];
	uint32_t bytes, taken = 0;

	(void)state;
	put(scene, 0, 1000);
	for (uint32_t page = 1; page < PAGES; page++)
		put_some(scene, page, 1000);
	seal(scene, false);
	bytes = older_stored(&scene->older);
	older_put(&scene->older, 0, stored);
	for (uint32_t bit = 0; bit < RANGES_BYTES * 8; bit++) {
		bool is_of_levels = bit / 8 == 2 || bit / 8 == 3 || bit / 8 >= RANGES_MAP_AT;
		uint32_t page = 0, used;

		memcpy(copy, stored, bytes);
		copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
		used = older_stored_at(copy, bytes);
		assert_true(used == 0 || (used == bytes && !is_of_levels));
		if (!used)
			continue;
		older_forget(&scene->older);
		older_get(&scene->older, copy);
		for (taken++; page < PAGES; page++)
			passes(scene, page, 0, scene->older.below - 1);
	}
	assert_true(taken > 0);
	end(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_page_with_what_is_looked_for_is_passed_over),
		cmocka_unit_test(
			test_pages_whose_old_records_are_beside_what_is_looked_for_are_passed_over),
		cmocka_unit_test(test_the_widest_gap_is_kept),
		cmocka_unit_test(test_ranges_take_memory_only_where_a_merge_moved_old_versions),
		cmocka_unit_test(
			test_what_is_stored_passes_over_the_same_pages_when_it_is_taken_up_again),
		cmocka_unit_test(test_ranges_have_the_documented_bytes),
		cmocka_unit_test(
			test_nothing_is_stored_where_nothing_is_known_and_where_nothing_is_old),
		cmocka_unit_test(test_bytes_that_contradict_each_other_are_no_ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
