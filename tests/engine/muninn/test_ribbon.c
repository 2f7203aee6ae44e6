/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The ribbon index by its parts: ribbons, and what groups and searches find in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "engine/muninn/hash.h"
#include "engine/muninn/index/ribbon/group.h"
#include "engine/muninn/index/ribbon/group_format.h"
#include "engine/muninn/index/ribbon/member_walk.h"
#include "engine/muninn/index/ribbon/ribbon_hash.h"
#include "tests/engine/muninn/made_group.h"
#include "tests/engine/muninn/ribbon_random.h"

/* ---- ribbons ---- */

/* A ribbon of random keys, with what it was made from. */
struct ribbon {
	struct band band;
	struct band_key *keys;
	uint32_t count, failed;
	uint8_t *near, *far;
};

static void build_ribbon(struct ribbon *ribbon, uint32_t count, uint32_t fingerprint_bits,
			 uint32_t value_bits, uint64_t seed)
{
	uint32_t columns = (uint32_t)max_u64(fingerprint_bits + value_bits, BAND_NEAR_COLUMNS);
	struct band_shape shape = { .starts = band_starts(count),
				    .columns = columns,
				    .fingerprint_bits = fingerprint_bits };
	struct band_builder *builder = band_builder_create(count);

	assert_non_null(builder);
	ribbon->count = count;
	ribbon->keys = calloc(count + 1, sizeof(*ribbon->keys));
	ribbon->near = malloc(band_near_bytes(&shape));
	ribbon->far = malloc(band_far_bytes(&shape) + 1);
	assert_true(ribbon->keys && ribbon->near && ribbon->far);
	for (uint32_t n = 0; n < count; n++)
		ribbon->keys[n] = (struct band_key){
			.hash = next_random(&seed),
			.value = (uint32_t)next_random(&seed) & ((1U << value_bits) - 1),
		};
	ribbon->failed =
		band_build(builder, &shape, ribbon->keys, count, ribbon->near, ribbon->far);
	ribbon->band = (struct band){ .shape = shape, .near = ribbon->near, .far = ribbon->far };
	band_builder_destroy(builder);
}

static void free_ribbon(struct ribbon *ribbon)
{
	free(ribbon->keys);
	free(ribbon->near);
	free(ribbon->far);
}

/* Whether a ribbon says the same by special instructions and without them. */
static bool ask_both_ways(const struct band *band, uint64_t hash, uint32_t *value)
{
	uint32_t portable;
	bool found = band_find(band, hash, value);

	assert_int_equal(band_find_portably(band, hash, &portable), found);
	if (found)
		assert_int_equal(portable, *value);
	return found;
}

static void test_a_ribbon_has_every_key_that_did_not_fail(void **state)
{
	static const uint32_t counts[] = { 0, 1, 2, 63, 64, 65, 127, 128, 1000, 32768 };
	static const struct {
		uint32_t fingerprint_bits, value_bits;
	} shapes[] = { { 8, 7 }, { 7, 7 }, { 9, 6 },   { 1, 0 },
		       { 8, 0 }, { 3, 2 }, { 16, 16 }, { 12, 13 } };

	(void)state;
	for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++)
		for (size_t shape = 0; shape < sizeof(shapes) / sizeof(shapes[0]); shape++) {
			struct ribbon ribbon;
			uint32_t failed = 0, value;

			build_ribbon(&ribbon, counts[n], shapes[shape].fingerprint_bits,
				     shapes[shape].value_bits, n * 100 + shape);
			for (uint32_t key = 0; key < ribbon.count; key++) {
				failed += ribbon.keys[key].failed;
				if (ribbon.keys[key].failed)
					continue;
				assert_true(
					ask_both_ways(&ribbon.band, ribbon.keys[key].hash, &value));
				assert_int_equal(value & ((1U << shapes[shape].value_bits) - 1),
						 ribbon.keys[key].value);
			}
			assert_int_equal(failed, ribbon.failed);
			free_ribbon(&ribbon);
		}
}

static void test_a_ribbon_fails_for_fewer_than_eleven_keys_in_a_thousand(void **state)
{
	uint64_t failed = 0, keys = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct ribbon ribbon;

		build_ribbon(&ribbon, 32768, 8, 7, seed);
		failed += ribbon.failed;
		keys += ribbon.count;
		free_ribbon(&ribbon);
	}
	/* With as many rows as keys some have to. */
	assert_in_range(failed, keys * 6 / 1000, keys * 11 / 1000);
}

static void test_others_are_found_as_often_as_fingerprints_are_equal(void **state)
{
	(void)state;
	for (uint32_t bits = 4; bits <= 10; bits++) {
		const uint32_t questions = 400000;
		uint64_t random = 1000 + bits;
		uint32_t found = 0, value;
		struct ribbon ribbon;

		build_ribbon(&ribbon, 4096, bits, 7, bits);
		for (uint32_t n = 0; n < questions; n++)
			found += ask_both_ways(&ribbon.band, next_random(&random), &value);
		assert_in_range(found, (questions >> bits) * 85 / 100,
				(questions >> bits) * 115 / 100);
		free_ribbon(&ribbon);
	}
}

/* Any key twice, with other values: one of them fails, and the first one is found. */
static void test_of_equal_hashes_with_different_values_one_fails(void **state)
{
	struct band_key keys[2] = { { .hash = 77, .value = 5 }, { .hash = 77, .value = 9 } };
	struct band_shape shape = { .starts = 64, .columns = 15, .fingerprint_bits = 8 };
	struct band_builder *builder = band_builder_create(2);
	uint8_t near[2 * 8 * 8], far[2 * 7 * 8];
	struct band band = { .shape = shape, .near = near, .far = far };
	uint32_t value;

	(void)state;
	assert_int_equal(band_near_bytes(&shape), sizeof(near));
	assert_int_equal(band_far_bytes(&shape), sizeof(far));
	assert_int_equal(band_build(builder, &shape, keys, 2, near, far), 1);
	assert_true(keys[0].failed != keys[1].failed);
	assert_true(band_find(&band, 77, &value));
	assert_int_equal(value, keys[0].failed ? 9 : 5);
	band_builder_destroy(builder);
}

/* ---- groups ---- */

/* Whether the failed entries in the image have one. */
static bool is_failed(const struct made *made, const struct tag_entry *wanted)
{
	for (uint32_t n = 0; n < made->group.failed; n++) {
		struct tag_entry entry = group_failed_entry(&made->group, n);

		if (entry.tag == wanted->tag && entry.segment == wanted->segment &&
		    entry.location == wanted->location)
			return true;
	}
	return false;
}

static bool has_failed(const struct made *made, uint32_t tag)
{
	for (uint32_t n = 0; n < made->group.failed; n++)
		if (group_failed_entry(&made->group, n).tag == tag)
			return true;
	return false;
}

/* Whether counting up finds an entry. */
static bool walk_finds(const struct made *made, const struct tag_entry *wanted)
{
	struct group_walk walk = { .tag = wanted->tag,
				   .has_failed = has_failed(made, wanted->tag) };
	struct tag_entry entry;

	while (group_next(&made->group, &walk, &entry))
		if (entry.segment == wanted->segment && entry.location == wanted->location)
			return true;
	return false;
}

static void test_every_entry_is_in_the_ribbon_or_among_the_failed(void **state)
{
	static const struct {
		uint32_t members, count, tags, locations;
	} cases[] = { { 1, 0, 1, 3 },          { 1, 1, 1, 3 },       { 2, 50, 50, 3 },
		      { 32, 4000, 100000, 3 }, { 32, 4000, 500, 3 }, { 64, 4000, 2000, 256 },
		      { 33, 3000, 40, 4096 },  { 32, 2000, 2, 3 } };

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct made made;
		uint32_t failed = 0;

		made_at_random(&made, cases[n].members, cases[n].count, cases[n].tags,
			       cases[n].locations, n);
		for (uint32_t e = 0; e < cases[n].count; e++) {
			failed += is_failed(&made, &made.entries[e]);
			assert_true(is_failed(&made, &made.entries[e]) ||
				    walk_finds(&made, &made.entries[e]));
		}
		assert_true(failed >= made.group.failed);
		assert_int_equal(made.group.entries, cases[n].count);
		made_end(&made);
	}
}

/* What was found of a tag that is there goes from new to old, false hits apart. */
static void test_counting_up_goes_from_the_newest_to_the_oldest(void **state)
{
	enum { MEMBERS = 64, TAGS = 60 };
	struct made made = { .plan = { .fingerprint_bits = 16,
				       .locations = 3,
				       .member_count = MEMBERS,
				       .entry_count = MEMBERS * TAGS } };
	uint32_t found = 0;

	(void)state;
	made.entries = calloc(MEMBERS * TAGS, sizeof(*made.entries));
	for (uint32_t n = 0; n < MEMBERS * TAGS; n++)
		made.entries[n] = (struct tag_entry){ .tag = (uint32_t)hash_mix(n % TAGS + 1),
						      .segment = n / TAGS,
						      .location = n % 3 };
	made_build(&made);
	for (uint32_t tag = 0; tag < TAGS; tag++) {
		struct group_walk walk = { .tag = (uint32_t)hash_mix(tag + 1), .has_failed = true };
		struct tag_entry entry;

		for (uint32_t below_it = MEMBERS; group_next(&made.group, &walk, &entry); found++) {
			assert_true(entry.segment < below_it);
			below_it = entry.segment;
		}
	}
	assert_int_equal(found + made.group.failed, MEMBERS * TAGS);
	made_end(&made);
}

/*
 * An entry that failed leaves a gap in the numbers of its tag, so that a search by halves would
 * take what is older for absent. Behind two gaps in a row everything is among the failed.
 */
static void test_gaps_in_the_numbers_lose_nothing(void **state)
{
	uint32_t gaps = 0, ends = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct made made;

		/* As many rows as entries, and many entries of a tag. */
		made_at_random(&made, 64, 16384, 300, 256, seed);
		for (uint32_t e = 0; e < made.plan.entry_count; e++) {
			bool failed = is_failed(&made, &made.entries[e]);

			assert_true(failed || walk_finds(&made, &made.entries[e]));
			gaps += failed;
		}
		for (uint32_t n = 0; n + 1 < made.group.failed; n++) {
			struct tag_entry one = group_failed_entry(&made.group, n);
			struct tag_entry next = group_failed_entry(&made.group, n + 1);

			ends += one.tag == next.tag;
		}
		made_end(&made);
	}
	assert_true(gaps > 100);
	assert_true(ends > 0);
}

static void test_an_absent_tag_costs_one_question_and_is_rarely_found(void **state)
{
	const uint32_t questions = 200000;
	struct tag_entry entry;
	struct made made;
	uint64_t random = 99;
	uint32_t found = 0;

	(void)state;
	made_at_random(&made, 32, 32768, UINT32_MAX, 3, 1);
	for (uint32_t n = 0; n < questions; n++) {
		struct group_walk walk = { .tag = (uint32_t)next_random(&random) };

		if (!group_next(&made.group, &walk, &entry)) {
			assert_int_equal(walk.number, 0);
			continue;
		}
		found++;
		/* The fourth candidate gives a false hit away, so a quarter of them is left out. */
		assert_true(entry.location < 3 && entry.segment < 32);
	}
	assert_in_range(found, questions / 256 * 3 / 4 * 8 / 10, questions / 256 * 3 / 4 * 12 / 10);
	made_end(&made);
}

static void test_a_group_takes_two_bytes_a_key(void **state)
{
	struct made made;

	(void)state;
	made_at_random(&made, 32, 32768, UINT32_MAX, 3, 1);
	/* 15 columns, an empty block at the end, the members, 8 bytes for each that failed. */
	assert_in_range(made.group.kept, 32768 * 15 / 8, 32768 * 15 / 8 + 15 * 8 + 64 + 32 * 32);
	assert_in_range(made.group.failed, 32768 * 6 / 1000, 32768 * 11 / 1000);
	assert_int_equal(made.length, made.group.kept + 8 * made.group.failed);
	assert_in_range(group_builder_bytes(32768), 1 << 20, 2 << 20);
	made_end(&made);
}

static void test_what_is_kept_of_an_image_answers_like_all_of_it(void **state)
{
	struct made made;
	struct group kept;
	uint8_t *part;

	(void)state;
	made_at_random(&made, 32, 4000, 3000, 256, 5);
	part = malloc(made.group.kept);
	memcpy(part, made.image, made.group.kept);
	assert_true(group_attach(&kept, part, made.group.kept));
	for (uint32_t n = 0; n < 20000; n++) {
		struct group_walk walk = { .tag = (uint32_t)hash_mix(n), .has_failed = true };
		struct group_walk other = walk;
		struct tag_entry entry, same;

		while (group_next(&made.group, &walk, &entry)) {
			assert_true(group_next(&kept, &other, &same));
			assert_memory_equal(&same, &entry, sizeof(same));
		}
		assert_false(group_next(&kept, &other, &same));
	}
	free(part);
	made_end(&made);
}

static void test_the_members_come_back_as_they_were(void **state)
{
	uint32_t runs = 0;
	struct made made;

	(void)state;
	made_at_random(&made, 64, 100, 100, 3, 1);
	free(made.image);
	made.with_runs = true;
	made_build(&made);
	assert_int_equal(made.group.row, 5);
	assert_int_equal(made.group.number, 9);
	assert_int_equal(made.group.members, 64);
	for (uint32_t n = 0; n < 64; n++) {
		struct group_member member, expected = made_member(n);

		group_read_member(&made.group, n, &member);
		assert_int_equal(member.segment, expected.segment);
		assert_int_equal(member.records, expected.records);
		assert_int_equal(member.run_pages, expected.run_pages);
		assert_int_equal(member.serial, expected.serial);
		assert_int_equal(member.first_sequence, expected.first_sequence);
		assert_int_equal(member.last_sequence, expected.last_sequence);
		assert_int_equal(member.record_bytes, expected.record_bytes);
		assert_int_equal(member.has_runs, expected.has_runs);
		assert_int_equal(member.by_candidates, expected.by_candidates);
		assert_int_equal(member.is_ordered, expected.is_ordered);
		for (uint32_t page = 0; page < group_member_runs(&member); page++)
			assert_int_equal(get_le32(group_run_tags(&made.group, n) +
						  (uint64_t)page * RUN_TAG_BYTES),
					 FIRST_RUN_TAG + runs++);
	}
	made_end(&made);
}

/* ---- the order of segments in a search ---- */

/* All locations of a tag in a member, among the entries that a group was made from. */
static bool true_locations(const struct made *made, uint32_t tag, uint32_t member, bool *all)
{
	bool any = false;

	memset(all, false, made->plan.locations * sizeof(*all));
	for (uint32_t n = 0; n < made->plan.entry_count; n++) {
		const struct tag_entry *entry = &made->entries[n];

		if (entry->tag != tag || entry->segment != member)
			continue;
		all[entry->location] = true;
		any = true;
	}
	return any;
}

/* A walk goes down through the members, and leaves out no entry. */
static void check_walk(const struct made *made, const struct exact *exact, uint32_t first,
		       const struct group *group, uint32_t tag)
{
	bool all[MUNINN_SEGMENT_PAGES_MAX];
	uint32_t member, next = made->plan.member_count, last = UINT32_MAX;
	struct locations locations;
	struct member_walk walk;

	member_walk_begin(&walk, group, 0, exact, first, made->plan.member_count, tag);
	while (member_walk_next(&walk, &member, &locations)) {
		uint32_t location, above = UINT32_MAX;

		assert_true(member < last);
		last = member;
		/* What was passed over has nothing. */
		while (--next > member)
			assert_false(true_locations(made, tag, next, all));
		true_locations(made, tag, member, all);
		while (locations_take_last(&locations, &location)) {
			assert_true(location < above && location < made->plan.locations);
			above = location;
			all[location] = false;
		}
		for (uint32_t n = 0; n < made->plan.locations; n++)
			assert_false(all[n]);
	}
	while (next-- > 0)
		assert_false(true_locations(made, tag, next, all));
}

enum { FIRST = 128 }; /* of the group's segments in the exact table */

/* An exact table with the failed entries of a group, or with all, beside those of other groups. */
static struct exact *exact_of(const struct made *made, bool all)
{
	static const struct exact_shape shape = { .bucket_bits = 4,
						  .segment_bits = 9,
						  .location_bits = 12 };
	struct exact *empty = exact_create(&shape), *exact;
	uint32_t count = all ? made->plan.entry_count : made->group.failed;
	struct tag_entry *entries = calloc(2 * (size_t)count + 1, sizeof(*entries));

	for (uint32_t n = 0; n < count; n++) {
		entries[n] = all ? made->entries[n] : group_failed_entry(&made->group, n);
		entries[n].segment += FIRST;
		/* The same tags in the groups before and behind. */
		entries[count + n] = entries[n];
		entries[count + n].segment += n % 2 ? GROUP_SEGMENTS : -GROUP_SEGMENTS;
	}
	exact = exact_rewrite(empty, &shape, entries, 2 * count, NULL, NULL);
	assert_non_null(exact);
	exact_destroy(empty);
	free(entries);
	return exact;
}

static void test_a_search_meets_segments_from_the_newest_on_and_all_of_them(void **state)
{
	(void)state;
	/* Tags with many entries, so that some fail, and one fingerprint bit: many false hits. */
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct exact *exact, *growing;
		struct made made = {
			.plan = { .fingerprint_bits = 1 + seed % 3 * 7,
				  .locations = seed % 2 ? 3 : 256,
				  .member_count = 64,
				  .entry_count = 8192 },
			.entries = calloc(8192, sizeof(struct tag_entry)),
		};
		uint64_t random = seed;

		for (uint32_t n = 0; n < made.plan.entry_count; n++)
			made.entries[n] = (struct tag_entry){
				.tag = (uint32_t)hash_mix(below(&random, 200) + 1),
				.segment = below(&random, 64),
				.location = below(&random, made.plan.locations),
			};
		made_build(&made);
		assert_true(made.group.failed > 10);
		exact = exact_of(&made, false);
		growing = exact_of(&made, true);
		for (uint32_t tag = 0; tag < 210; tag++) {
			check_walk(&made, exact, FIRST, &made.group, (uint32_t)hash_mix(tag + 1));
			check_walk(&made, growing, FIRST, NULL, (uint32_t)hash_mix(tag + 1));
		}
		exact_destroy(exact);
		exact_destroy(growing);
		made_end(&made);
	}
}

/* Locations that are far apart: whole words between them have none. */
static void test_locations_are_found_across_words_that_have_none(void **state)
{
	static const uint16_t all[] = { 0, 63, 64, 319, 320, 383 };
	const uint32_t count = sizeof(all) / sizeof(all[0]);
	struct locations locations = { .words = { UINT64_MAX }, .end = 1 };
	uint32_t last;

	(void)state;
	locations_set(&locations, all, count);
	for (uint32_t n = count; n-- > 0;) {
		assert_true(locations_take_last(&locations, &last));
		assert_int_equal(last, all[n]);
	}
	assert_false(locations_take_last(&locations, &last));
	locations_set(&locations, all, 0);
	assert_false(locations_take_last(&locations, &last));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_ribbon_has_every_key_that_did_not_fail),
		cmocka_unit_test(test_a_ribbon_fails_for_fewer_than_eleven_keys_in_a_thousand),
		cmocka_unit_test(test_others_are_found_as_often_as_fingerprints_are_equal),
		cmocka_unit_test(test_of_equal_hashes_with_different_values_one_fails),
		cmocka_unit_test(test_every_entry_is_in_the_ribbon_or_among_the_failed),
		cmocka_unit_test(test_counting_up_goes_from_the_newest_to_the_oldest),
		cmocka_unit_test(test_gaps_in_the_numbers_lose_nothing),
		cmocka_unit_test(test_an_absent_tag_costs_one_question_and_is_rarely_found),
		cmocka_unit_test(test_a_group_takes_two_bytes_a_key),
		cmocka_unit_test(test_what_is_kept_of_an_image_answers_like_all_of_it),
		cmocka_unit_test(test_the_members_come_back_as_they_were),
		cmocka_unit_test(test_a_search_meets_segments_from_the_newest_on_and_all_of_them),
		cmocka_unit_test(test_locations_are_found_across_words_that_have_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
