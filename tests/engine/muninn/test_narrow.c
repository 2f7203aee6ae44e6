/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Finding the page of an old version among those of its key: the right one, and by few reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "common/bytes.h"
#include "engine/muninn/index/narrow.h"
#include "tests/engine/muninn/ribbon_random.h"

enum { PAGES_MAX = 1024 };

/* A segment that numbers FIRST to LAST were put to, and the pages of a key in it. */
enum { FIRST = 1000000, LAST = 9000000 };

struct key_pages {
	uint32_t count;
	struct page_numbers pages[PAGES_MAX]; /* of page n; no records: the index is mistaken */
	enum narrow_way way;
	uint32_t probes;
	uint32_t fails_at; /* the probe that fails; 0: none does */
};

static int probe(void *context, uint32_t page, struct page_numbers *numbers)
{
	struct key_pages *key = context;

	assert_true(page < key->count);
	key->probes++;
	if (key->probes == key->fails_at)
		return -EIO;
	*numbers = key->pages[page];
	return numbers->records > 0;
}

/* How many pages are left; the last one is *page. */
static uint32_t find(struct key_pages *key, uint64_t bound, uint32_t *page)
{
	struct narrow narrow = { .first_sequence = FIRST, .last_sequence = LAST };

	for (uint32_t n = key->count; n-- > 0;)
		narrow_add(&narrow, n + 7, n);
	key->probes = 0;
	assert_int_equal(narrow_find(&narrow, bound, key->way, probe, key), 0);
	for (uint32_t n = 0; n < narrow.count; n++)
		assert_int_equal(narrow.places[n], narrow.pages[n] + 7);
	*page = narrow.count ? narrow.pages[narrow.count - 1] : UINT32_MAX;
	return narrow.count;
}

/* The last page that has anything as old; UINT32_MAX: none. */
static uint32_t expected_page(const struct key_pages *key, uint64_t bound)
{
	for (uint32_t n = key->count; n-- > 0;)
		if (key->pages[n].records && key->pages[n].lowest <= bound)
			return n;
	return UINT32_MAX;
}

/* Numbers that ascend by `step` at most, from `at` on; so many in a page. */
static void put_versions(struct key_pages *key, uint32_t pages, uint32_t records, uint64_t at,
			 uint32_t step, uint64_t *rng)
{
	key->count = pages;
	for (uint32_t page = 0; page < pages; page++) {
		struct page_numbers *numbers = &key->pages[page];

		numbers->records = records;
		for (uint32_t n = 0; n < records; n++) {
			at += 1 + below(rng, step);
			if (n == 0)
				numbers->lowest = at;
			numbers->highest = at;
		}
	}
	assert_true(at < LAST);
}

/* ---- the right one ---- */

static void test_the_last_page_that_is_old_enough_is_left_last(void **state)
{
	uint64_t rng = 1;
	struct key_pages key = { 0 };

	(void)state;
	for (uint32_t turn = 0; turn < 20000; turn++) {
		uint32_t pages = 1 + below(&rng, turn % 7 ? 40 : 1000);
		uint64_t begin = FIRST + below(&rng, 1000000);
		uint32_t step = 1 + below(&rng, turn % 3 ? 500 : 3);
		uint64_t bound = below(&rng, 3) ? begin + below(&rng, pages * step * 3)
						: FIRST + below(&rng, LAST - FIRST);
		uint32_t page;

		put_versions(&key, pages, 1 + below(&rng, 5), begin, step, &rng);
		/* Some places are mistaken. */
		for (uint32_t n = 0; turn % 2 && n < pages; n++)
			if (below(&rng, 10) == 0)
				key.pages[n].records = 0;
		bound = min_u64(bound, LAST - 1);
		key.way = turn % 5 == 0   ? NARROW_HALVE
			  : turn % 5 == 1 ? NARROW_MOVED
					  : NARROW_GUESS;
		find(&key, bound, &page);
		if (page != expected_page(&key, bound))
			fail_msg("turn %u: page %u instead of %u", turn, page,
				 expected_page(&key, bound));
		/* One that is mistaken is probed at most once; so no probe is wasted. */
		assert_true(key.probes <= pages);
	}
}

/* A command that puts a key again and again does so with one number, and the last one counts. */
static void test_equal_numbers_in_two_pages_leave_the_later_one(void **state)
{
	struct key_pages key = { .count = 4,
				 .pages = { { FIRST + 1, FIRST + 5, 2 },
					    { FIRST + 5, FIRST + 5, 2 },
					    { FIRST + 5, FIRST + 9, 2 },
					    { FIRST + 10, FIRST + 10, 1 } } };
	uint32_t page;

	(void)state;
	assert_int_equal(find(&key, FIRST + 5, &page), 3);
	assert_int_equal(page, 2);
	assert_int_equal(find(&key, FIRST + 4, &page), 1);
	assert_int_equal(find(&key, FIRST, &page), 0);
	assert_int_equal(find(&key, FIRST + 100, &page), 4);
}

static void test_an_error_of_a_probe_ends_it(void **state)
{
	struct key_pages key = { 0 };
	uint64_t rng = 1;

	(void)state;
	put_versions(&key, 256, 4, FIRST, 20, &rng);
	for (uint32_t n = 1; n <= 2; n++) {
		struct narrow narrow = { .first_sequence = FIRST, .last_sequence = LAST };

		for (uint32_t page = key.count; page-- > 0;)
			narrow_add(&narrow, page, page);
		key.probes = 0;
		key.fails_at = n;
		assert_int_equal(narrow_find(&narrow, key.pages[100].highest, key.way, probe, &key),
				 -EIO);
		assert_int_equal(key.probes, n);
	}
}

/* ---- by few reads ---- */

static double mean_probes(struct key_pages *key, uint32_t *most)
{
	uint64_t all = 0, count = 0;
	uint32_t page;

	*most = 0;
	for (uint32_t n = 0; n < key->count; n++)
		for (uint64_t bound = key->pages[n].lowest; bound <= key->pages[n].highest;
		     bound += max_u64(1, key->pages[n].highest - key->pages[n].lowest)) {
			find(key, bound, &page);
			all += key->probes;
			*most = (uint32_t)max_u64(*most, key->probes);
			count++;
		}
	return (double)all / (double)count;
}

/* A thousand versions: over all of the segment, or in a burst anywhere in it. */
static void test_a_thousand_versions_take_few_probes(void **state)
{
	static const struct {
		uint64_t begin;
		uint32_t step;
		double mean;
	} cases[] = { { FIRST, 15900, 3.5 },
		      { FIRST, 1, 3 },
		      { FIRST + 4000000, 1, 3 },
		      { LAST - 1100, 1, 3 },
		      { FIRST + 6000000, 300, 4 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t rng = i + 1;
		struct key_pages key = { 0 };
		uint32_t most;
		double mean;

		put_versions(&key, 250, 4, cases[i].begin, cases[i].step, &rng);
		mean = mean_probes(&key, &most);
		print_message("from %llu on, steps up to %u: %.2f probes, at most %u\n",
			      (unsigned long long)cases[i].begin, cases[i].step, mean, most);
		assert_true(mean <= cases[i].mean);
	}
}

/* Numbers that double from page to page: nothing tells where between two of them the bound is. */
static void test_versions_that_are_not_even_take_twice_what_halving_takes(void **state)
{
	struct key_pages key = { .count = 1000 };
	uint32_t most;

	(void)state;
	for (uint32_t n = 0; n < key.count; n++) {
		/* Close together at first, then ever further apart. */
		uint64_t at = FIRST + n + (n > 980 ? UINT64_C(1) << (n - 979) : 0);

		key.pages[n] = (struct page_numbers){ at, at, 1 };
	}
	mean_probes(&key, &most);
	assert_true(most <= 4 + 2 * 11);
}

/*
 * What merging moved, 64 versions from each of a few segments, beside versions of now: numbers jump
 * from the ones to the others. Too old, all of it: one probe. Otherwise no more than halving takes,
 * and that one.
 */
static void test_moved_versions_take_hardly_more_than_halving_takes(void **state)
{
	struct key_pages key = { .count = 256, .way = NARROW_MOVED };
	uint32_t most, page;

	(void)state;
	for (uint32_t n = 0; n < key.count; n++) {
		uint64_t at = FIRST + n / 16 * 65536 + n % 16 * 4;

		key.pages[n] = (struct page_numbers){ at, at + 3, 4 };
	}
	mean_probes(&key, &most);
	assert_true(most <= 1 + 8);
	find(&key, LAST - 1, &page);
	assert_int_equal(page, key.count - 1);
	assert_int_equal(key.probes, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_last_page_that_is_old_enough_is_left_last),
		cmocka_unit_test(test_equal_numbers_in_two_pages_leave_the_later_one),
		cmocka_unit_test(test_an_error_of_a_probe_ends_it),
		cmocka_unit_test(test_a_thousand_versions_take_few_probes),
		cmocka_unit_test(test_versions_that_are_not_even_take_twice_what_halving_takes),
		cmocka_unit_test(test_moved_versions_take_hardly_more_than_halving_takes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
