/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The exact table of a row of the ribbon index, beside a plain list of entries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "engine/muninn/index/ribbon/exact.h"
#include "tests/engine/muninn/ribbon_random.h"

static const struct exact_shape shapes[] = {
	{ .bucket_bits = 11, .segment_bits = 9, .location_bits = 2 },
	{ .bucket_bits = 11, .segment_bits = 12, .location_bits = 8 },
	{ .bucket_bits = 1, .segment_bits = 16, .location_bits = 16 },
	{ .bucket_bits = 14, .segment_bits = 10, .location_bits = 12 },
};

enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static struct tag_entry random_entry(const struct exact_shape *shape, uint32_t tags,
				     uint64_t *random)
{
	uint32_t tag = below(random, tags);

	return (struct tag_entry){
		/* Few tags, spread over all buckets. */
		.tag = tags ? (uint32_t)hash_mix(tag) : (uint32_t)next_random(random),
		.segment = below(random, 1U << shape->segment_bits),
		.location = below(random, 1U << shape->location_bits),
	};
}

static uint64_t rank_of(const struct exact_shape *shape, const struct tag_entry *entry)
{
	return exact_rank(shape, entry->segment, entry->location);
}

/* All entries of a tag between two ranks are found, in any order, as a plain list has them. */
static void compare_tag(const struct exact *exact, const struct exact_shape *shape,
			const struct tag_entry *entries, uint32_t count, uint32_t tag,
			uint64_t from, uint64_t to)
{
	uint64_t expected = 0, found = 0;
	struct tag_entry entry;
	uint32_t at = 0;

	for (uint32_t n = 0; n < count; n++) {
		uint64_t rank = rank_of(shape, &entries[n]);

		if (entries[n].tag == tag && rank >= from && rank < to)
			expected += hash_mix(rank + 1);
	}
	while (exact_find(exact, tag, from, to, &at, &entry)) {
		assert_int_equal(entry.tag, tag);
		found += hash_mix(rank_of(shape, &entry) + 1);
	}
	assert_int_equal(found, expected);
}

/* Leaves out segments with odd numbers, and halves the others; half of them are free then. */
static uint32_t halve(void *context, uint32_t segment)
{
	(void)context;
	return segment % 2 ? EXACT_DROP : segment / 2;
}

static void test_a_table_has_what_was_added_and_not_dropped(void **state)
{
	enum { ROUNDS = 6, ADDED = 200 };
	static struct tag_entry entries[ROUNDS * ADDED];

	(void)state;
	for (uint64_t seed = 0; seed < 4 * SHAPES; seed++) {
		const struct exact_shape *shape = &shapes[seed % SHAPES];
		struct exact *exact = exact_create(shape);
		uint64_t random = seed;
		uint32_t count = 0;

		for (uint32_t round = 0; round < ROUNDS; round++) {
			bool drops = below(&random, 2), in_place = drops && below(&random, 2);
			struct exact *next;
			uint32_t left = 0;

			for (uint32_t n = 0; drops && n < count; n++)
				if (entries[n].segment % 2 == 0) {
					entries[left] = entries[n];
					entries[left++].segment /= 2;
				}
			count = drops ? left : count;
			for (uint32_t n = 0; n < ADDED; n++)
				entries[count + n] = random_entry(shape, 50, &random);
			if (in_place)
				exact_reduce(exact, halve, NULL);
			next = exact_rewrite(exact, shape, entries + count, ADDED,
					     drops && !in_place ? halve : NULL, NULL);
			assert_non_null(next);
			exact_destroy(exact);
			exact = next;
			count += ADDED;
			assert_int_equal(exact_count(exact), count);
			for (uint32_t n = 0; n < count; n += 7)
				compare_tag(exact, shape, entries, count, entries[n].tag,
					    below(&random, 1U << shape->location_bits),
					    exact_rank(shape, 1U << shape->segment_bits, 0));
			compare_tag(exact, shape, entries, count, 12345, 0, UINT64_MAX);
		}
		exact_destroy(exact);
	}
}

static int by_tag(const void *a, const void *b)
{
	const struct tag_entry *first = a, *second = b;

	return first->tag < second->tag ? -1 : first->tag > second->tag;
}

/* Rows with small records, or many segments that wait for their group. */
static void test_a_table_takes_more_than_65536_entries(void **state)
{
	enum { COUNT = 200000 };
	const struct exact_shape *shape = &shapes[0];
	struct exact *empty = exact_create(shape), *exact;
	struct tag_entry *entries = calloc(COUNT, sizeof(*entries)), entry;
	uint64_t random = 3;
	uint32_t at, seen = 0;

	(void)state;
	for (uint32_t n = 0; n < COUNT; n++)
		entries[n] = (struct tag_entry){ .tag = (uint32_t)hash_mix(n),
						 .segment = below(&random, 512),
						 .location = below(&random, 4) };
	exact = exact_rewrite(empty, shape, entries, COUNT, NULL, NULL);
	for (uint32_t n = 0; n < COUNT; n++) {
		uint64_t rank = rank_of(shape, &entries[n]);

		at = 0;
		assert_true(exact_find(exact, entries[n].tag, rank, rank + 1, &at, &entry));
		assert_int_equal(entry.tag, entries[n].tag);
	}
	qsort(entries, COUNT, sizeof(*entries), by_tag);
	for (at = 0; exact_next(exact, &at, &entry);)
		assert_non_null(bsearch(&entry, entries, COUNT, sizeof(entry), by_tag));
	for (at = 0; exact_next(exact, &at, &entry);)
		seen++;
	assert_int_equal(seen, COUNT);
	/* 11 bits of the tag are the bucket's, so the rest, segment and candidate take 4 bytes. */
	assert_int_equal(exact_entry_bytes(shape), 4);
	assert_in_range(exact_bytes(exact), 4 * COUNT, 4 * COUNT + 4 * 2048 + 100);
	exact_destroy(exact);
	exact_destroy(empty);
	free(entries);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_table_has_what_was_added_and_not_dropped),
		cmocka_unit_test(test_a_table_takes_more_than_65536_entries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
