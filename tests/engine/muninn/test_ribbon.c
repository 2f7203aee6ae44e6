/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The ribbon index by its parts: ribbons, and the images of groups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>

#include "common/bytes.h"
#include "common/crc32c.h"
#include "engine/muninn/hash.h"
#include "engine/muninn/index/ribbon/group.h"
#include "engine/muninn/index/ribbon/group_format.h"
#include "engine/muninn/index/ribbon/member_walk.h"
#include "engine/muninn/index/ribbon/ribbon_hash.h"
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

struct made {
	struct group_member members[GROUP_SEGMENTS];
	struct tag_entry *entries;
	struct group_plan plan;
	uint8_t *image;
	uint64_t length;
	struct group group;
	bool with_runs;
};

enum { FIRST_RUN_TAG = 0x61626364 };

static struct group_member member_of(uint32_t n)
{
	return (struct group_member){
		.segment = 0x01020304 + n,
		.records = 0x0a0b0 + n,
		.run_pages = n * 7 % 4096,
		.serial = UINT64_C(0x1112131415161718) + n,
		.first_sequence = UINT64_C(0x212223242526) + n,
		.last_sequence = UINT64_C(0x313233343536) + n,
		.record_bytes = 0x00fedcb0 + n,
		.has_runs = n % 4 == 1,
		.by_candidates = n % 2,
		.is_ordered = n % 3 == 0,
	};
}

static void build(struct made *made)
{
	struct group_builder *builder = group_builder_create(made->plan.entry_count);
	uint32_t *tags, pages = 0;

	assert_non_null(builder);
	for (uint32_t n = 0; n < made->plan.member_count; n++) {
		made->members[n] = member_of(n);
		made->members[n].has_runs &= made->with_runs;
		pages += group_member_runs(&made->members[n]);
	}
	tags = calloc(pages + UINT64_C(1), sizeof(*tags));
	assert_non_null(tags);
	for (uint32_t n = 0; n < pages; n++)
		tags[n] = FIRST_RUN_TAG + n;
	made->plan.members = made->members;
	made->plan.run_tags = tags;
	made->plan.entries = made->entries;
	assert_int_equal(group_build(builder, &made->plan, &made->image, &made->length), 0);
	assert_true(group_attach(&made->group, made->image, made->length));
	assert_true(group_is_intact(&made->group, made->length));
	assert_in_range(made->length - made->group.tag_bytes, made->group.kept,
			group_image_bytes_max(made->plan.member_count,
					      made->plan.entry_count + pages,
					      made->group.band.shape.columns));
	group_builder_destroy(builder);
	free(tags);
}

static void unmake(struct made *made)
{
	free(made->entries);
	free(made->image);
}

/*
 * Every entry is of one of `tags` tags. A key has one head in a segment, so each tag comes up to
 * once in a member, unless two keys share it.
 */
static void make_group(struct made *made, uint32_t members, uint32_t count, uint32_t tags,
		       uint32_t locations, uint64_t seed)
{
	*made = (struct made){
		.plan = { .row = 5,
			  .number = 9,
			  .fingerprint_bits = 8,
			  .locations = locations,
			  .member_count = members,
			  .entry_count = count },
		.entries = calloc(count + 1, sizeof(struct tag_entry)),
	};
	for (uint32_t n = 0; n < count; n++)
		made->entries[n] = (struct tag_entry){
			.tag = (uint32_t)hash_mix(below(&seed, tags) + 1),
			.segment = below(&seed, members),
			.location = below(&seed, locations),
		};
	build(made);
}

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

		make_group(&made, cases[n].members, cases[n].count, cases[n].tags,
			   cases[n].locations, n);
		for (uint32_t e = 0; e < cases[n].count; e++) {
			failed += is_failed(&made, &made.entries[e]);
			assert_true(is_failed(&made, &made.entries[e]) ||
				    walk_finds(&made, &made.entries[e]));
		}
		assert_true(failed >= made.group.failed);
		assert_int_equal(made.group.entries, cases[n].count);
		unmake(&made);
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
	build(&made);
	for (uint32_t tag = 0; tag < TAGS; tag++) {
		struct group_walk walk = { .tag = (uint32_t)hash_mix(tag + 1), .has_failed = true };
		struct tag_entry entry;

		for (uint32_t below_it = MEMBERS; group_next(&made.group, &walk, &entry); found++) {
			assert_true(entry.segment < below_it);
			below_it = entry.segment;
		}
	}
	assert_int_equal(found + made.group.failed, MEMBERS * TAGS);
	unmake(&made);
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
		make_group(&made, 64, 16384, 300, 256, seed);
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
		unmake(&made);
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
	make_group(&made, 32, 32768, UINT32_MAX, 3, 1);
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
	unmake(&made);
}

static void test_a_group_takes_two_bytes_a_key(void **state)
{
	struct made made;

	(void)state;
	make_group(&made, 32, 32768, UINT32_MAX, 3, 1);
	/* 15 columns, an empty block at the end, the members, 8 bytes for each that failed. */
	assert_in_range(made.group.kept, 32768 * 15 / 8, 32768 * 15 / 8 + 15 * 8 + 64 + 32 * 32);
	assert_in_range(made.group.failed, 32768 * 6 / 1000, 32768 * 11 / 1000);
	assert_int_equal(made.length, made.group.kept + 8 * made.group.failed);
	assert_in_range(group_builder_bytes(32768), 1 << 20, 2 << 20);
	unmake(&made);
}

static void test_what_is_kept_of_an_image_answers_like_all_of_it(void **state)
{
	struct made made;
	struct group kept;
	uint8_t *part;

	(void)state;
	make_group(&made, 32, 4000, 3000, 256, 5);
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
	unmake(&made);
}

static void test_the_members_come_back_as_they_were(void **state)
{
	uint32_t runs = 0;
	struct made made;

	(void)state;
	make_group(&made, 64, 100, 100, 3, 1);
	free(made.image);
	made.with_runs = true;
	build(&made);
	assert_int_equal(made.group.row, 5);
	assert_int_equal(made.group.number, 9);
	assert_int_equal(made.group.members, 64);
	for (uint32_t n = 0; n < 64; n++) {
		struct group_member member, expected = member_of(n);

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
	unmake(&made);
}

/* ---- bytes and damage ---- */

/* The example of docs/explanation/ribbon.md. */
static void test_an_image_has_the_documented_bytes(void **state)
{
	static const uint8_t documented[] = {
		0x4d, 0x52, 0x42, 0x4e, 0x06, 0x00, 0x00, 0x00, 0x02, 0x01, 0x00, 0x00, 0x03, 0x00,
		0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x44, 0x6b, 0x2d, 0xdc, 0x03, 0x00, 0x00, 0x00, 0x0b, 0x08, 0x03, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x03, 0x02, 0x01, 0xb0, 0xa0,
		0x00, 0x00, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 0x26, 0x25, 0x24, 0x23,
		0x22, 0x21, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31, 0xb0, 0xdc, 0xfe, 0x80, 0x05, 0x03,
		0x02, 0x01, 0xb1, 0xa0, 0x70, 0x00, 0x19, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,
		0x27, 0x25, 0x24, 0x23, 0x22, 0x21, 0x37, 0x35, 0x34, 0x33, 0x32, 0x31, 0xb1, 0xdc,
		0xfe, 0x60, 0x64, 0x63, 0x62, 0x61, 0x65, 0x63, 0x62, 0x61, 0x66, 0x63, 0x62, 0x61,
		0x67, 0x63, 0x62, 0x61, 0x68, 0x63, 0x62, 0x61, 0x69, 0x63, 0x62, 0x61, 0x6a, 0x63,
		0x62, 0x61, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00,
		0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x40,
		0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x40, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x04, 0x40, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x40,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00,
		0x04, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00,
	};
	struct made made = { .plan = { .row = 0x0102,
				       .number = 3,
				       .fingerprint_bits = 8,
				       .locations = 3,
				       .member_count = 2,
				       .entry_count = 3 },
			     .with_runs = true };

	(void)state;
	made.entries = calloc(3, sizeof(*made.entries));
	made.entries[0] = (struct tag_entry){ 0x01020304, 0, 2 };
	made.entries[1] = (struct tag_entry){ 0x01020304, 1, 0 };
	made.entries[2] = (struct tag_entry){ 0xf1f2f3f4, 1, 1 };
	build(&made);
	assert_int_equal(made.length, sizeof(documented));
	for (size_t n = 0; n < sizeof(documented); n++)
		if (made.image[n] != documented[n])
			print_error("byte %zu is %02x\n", n, made.image[n]);
	assert_memory_equal(made.image, documented, sizeof(documented));
	unmake(&made);
}

/* The same with tags, which the header counts. */
static void test_tags_have_the_documented_bytes(void **state)
{
	static const uint8_t documented[] = {
		0x5a, 0xae, 0xd4, 0xb5,       /* CRC of what follows */
		0x88, 0x8c, 0x90, 0x10,       /* 2 * 0x01020304 */
		0x00,                         /* the same tag again */
		0xe0, 0xc3, 0x87, 0x8f, 0x1e, /* 2 * (0xf1f2f3f4 - 0x01020304) */
	};
	struct made made = { .plan = { .row = 0x0102,
				       .number = 3,
				       .joins = 5,
				       .fingerprint_bits = 8,
				       .locations = 3,
				       .member_count = 2,
				       .entry_count = 3,
				       .tagged_max = UINT64_MAX } };
	uint64_t without;

	(void)state;
	made.entries = calloc(3, sizeof(*made.entries));
	made.entries[0] = (struct tag_entry){ 0x01020304, 0, 2 };
	made.entries[1] = (struct tag_entry){ 0x01020304, 1, 0 };
	made.entries[2] = (struct tag_entry){ 0xf1f2f3f4, 1, 1 };
	build(&made);
	without = made.length - sizeof(documented);
	assert_int_equal(get_le32(made.image + 44), sizeof(documented));
	assert_int_equal(get_le32(made.image + 48), 5);
	assert_int_equal(made.group.joins, 5);
	assert_int_equal(group_whole_bytes(&made.group), made.length);
	assert_memory_equal(made.image + without, documented, sizeof(documented));
	/* A byte more than the image may have: none. */
	free(made.image);
	made.plan.tagged_max = made.length - 1;
	build(&made);
	assert_int_equal(made.length, without);
	assert_int_equal(made.group.tag_bytes, 0);
	unmake(&made);
}

static int compare_entries(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct tag_entry));
}

/* Those of a ribbon that fails for many, too, and those that it was not given. */
static void test_tags_give_all_entries_back(void **state)
{
	static const struct {
		uint32_t members, count, tags, apart;
	} cases[] = { { 1, 1, 1, 0 },          { 2, 50, 50, 7 },    { 24, 4000, 100000, 900 },
		      { 24, 4000, 500, 0 },    { 24, 3000, 40, 5 }, { 24, 2000, 2, 0 },
		      { 8, 20000, 1000000, 1 } };
	uint32_t failed = 0;

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct tag_entry apart[1000], *listed;
		uint32_t all = cases[n].count + cases[n].apart;
		struct made made;

		make_group(&made, cases[n].members, cases[n].count, cases[n].tags, 3, n);
		free(made.image);
		for (uint32_t e = 0; e < cases[n].apart; e++)
			apart[e] = (struct tag_entry){ .tag = e * 77,
						       .segment = e % cases[n].members,
						       .location = 3 + e % 200 };
		made.plan.apart = apart;
		made.plan.apart_count = cases[n].apart;
		made.plan.tagged_max = UINT64_MAX;
		build(&made);
		failed += made.group.failed - cases[n].apart;
		listed = calloc(all, sizeof(*listed));
		made.entries = realloc(made.entries, all * sizeof(*made.entries));
		memcpy(made.entries + cases[n].count, apart, cases[n].apart * sizeof(*apart));
		assert_int_equal(made.group.entries, all);
		assert_int_equal(group_list(&made.group, made.length, listed), 0);
		for (uint32_t e = 1; e < cases[n].count; e++)
			assert_true(listed[e - 1].tag <= listed[e].tag);
		qsort(listed, all, sizeof(*listed), compare_entries);
		qsort(made.entries, all, sizeof(*listed), compare_entries);
		assert_memory_equal(listed, made.entries, all * sizeof(*listed));
		free(listed);
		unmake(&made);
	}
	assert_true(failed > 100);
}

/* Whatever bytes there are. */
static void test_tags_that_are_not_those_of_the_ribbon_are_refused(void **state)
{
	struct tag_entry listed[200];
	struct made made;
	uint32_t at, refused = 0;

	(void)state;
	make_group(&made, 3, 200, 100, 3, 1);
	assert_int_equal(group_list(&made.group, made.length, listed), -EINVAL);
	free(made.image);
	made.plan.tagged_max = UINT64_MAX;
	build(&made);
	assert_int_equal(group_list(&made.group, made.length, listed), 0);
	at = (uint32_t)(made.length - made.group.tag_bytes);
	for (uint32_t bit = 0; bit < made.group.tag_bytes * 8; bit++) {
		made.image[at + bit / 8] ^= (uint8_t)(1 << bit % 8);
		refused += group_list(&made.group, made.length, listed) == -EINVAL;
		made.image[at + bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_int_equal(refused, made.group.tag_bytes * 8);
	/* With a checksum that fits: all but other tags that the ribbon takes for its own. */
	refused = 0;
	for (uint32_t bit = 32; bit < made.group.tag_bytes * 8; bit++) {
		made.image[at + bit / 8] ^= (uint8_t)(1 << bit % 8);
		put_le32(made.image + at, crc32c(0, made.image + at + 4, made.group.tag_bytes - 4));
		refused += group_list(&made.group, made.length, listed) == -EINVAL;
		made.image[at + bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_true(refused > made.group.tag_bytes * 8 * 8 / 10);
	unmake(&made);
}

/* They are the same, without runs, and without records that span pages. */
static void test_an_image_of_the_versions_before_is_taken(void **state)
{
	struct made made;
	struct group group;

	(void)state;
	make_group(&made, 3, 200, 100, 3, 1);
	for (uint32_t version = 0; version < 10; version++) {
		put_le32(made.image + GROUP_VERSION_AT, version);
		group_put_crc(made.image, made.length);
		assert_int_equal(group_attach(&group, made.image, made.length) &&
					 group_is_intact(&group, made.length),
				 version >= 3 && version <= 6);
	}
	unmake(&made);
}

static void test_every_changed_bit_of_an_image_is_noticed(void **state)
{
	struct made made;

	(void)state;
	make_group(&made, 3, 200, 100, 3, 1);
	for (uint64_t bit = 0; bit < made.length * 8; bit++) {
		struct group group;

		made.image[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_true(!group_attach(&group, made.image, made.length) ||
			    !group_is_intact(&group, made.length));
		made.image[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	unmake(&made);
}

/* Bytes behind an image are covered by its checksum, and not kept. */
static void test_what_is_appended_to_an_image_is_the_end_of_it(void **state)
{
	static const uint8_t bytes[] = { 1, 2, 3, 4, 5 };
	struct made made;
	struct group group;
	uint64_t before;

	(void)state;
	make_group(&made, 3, 200, 100, 3, 1);
	before = made.length;
	assert_int_equal(made.group.appended, 0);
	group_append(&made.image, &made.length, bytes, sizeof(bytes));
	assert_int_equal(made.length, before + sizeof(bytes));
	assert_int_equal(get_le32(made.image + 40), sizeof(bytes));
	assert_memory_equal(made.image + before, bytes, sizeof(bytes));
	assert_true(group_attach(&group, made.image, made.length));
	assert_true(group_is_intact(&group, made.length));
	assert_int_equal(group.appended, sizeof(bytes));
	assert_int_equal(group.kept, made.group.kept);
	assert_int_equal(group.failed, made.group.failed);
	assert_int_equal(group_whole_bytes(&group), made.length);
	for (uint64_t n = 0; n < sizeof(bytes); n++) {
		made.image[before + n] ^= 1;
		assert_false(group_is_intact(&group, made.length));
		made.image[before + n] ^= 1;
	}
	assert_false(group_attach(&group, made.image, before) && group_is_intact(&group, before));
	assert_false(group_attach(&group, made.image, made.length - 1));
	assert_true(group_attach(&group, made.image, made.group.kept));
	unmake(&made);
}

/* Whatever bytes there are, nothing is read outside of them. */
static void test_random_headers_are_refused_or_can_be_asked(void **state)
{
	uint64_t random = 1;
	struct made made;
	uint32_t attached = 0;

	(void)state;
	make_group(&made, 3, 200, 100, 3, 1);
	for (uint32_t n = 0; n < 20000; n++) {
		uint8_t *copy = malloc(made.length);
		struct group_walk walk = { .tag = n, .has_failed = true };
		struct tag_entry entry;
		struct group group;

		memcpy(copy, made.image, made.length);
		for (uint32_t change = below(&random, 3); change < 3; change++)
			copy[16 + below(&random, 28)] = (uint8_t)next_random(&random);
		if (group_attach(&group, copy, made.length)) {
			attached++;
			while (group_next(&group, &walk, &entry))
				assert_true(entry.segment < group.members);
		}
		free(copy);
	}
	assert_true(attached > 0);
	unmake(&made);
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
		build(&made);
		assert_true(made.group.failed > 10);
		exact = exact_of(&made, false);
		growing = exact_of(&made, true);
		for (uint32_t tag = 0; tag < 210; tag++) {
			check_walk(&made, exact, FIRST, &made.group, (uint32_t)hash_mix(tag + 1));
			check_walk(&made, growing, FIRST, NULL, (uint32_t)hash_mix(tag + 1));
		}
		exact_destroy(exact);
		exact_destroy(growing);
		unmake(&made);
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
		cmocka_unit_test(test_an_image_has_the_documented_bytes),
		cmocka_unit_test(test_tags_have_the_documented_bytes),
		cmocka_unit_test(test_tags_give_all_entries_back),
		cmocka_unit_test(test_tags_that_are_not_those_of_the_ribbon_are_refused),
		cmocka_unit_test(test_an_image_of_the_versions_before_is_taken),
		cmocka_unit_test(test_every_changed_bit_of_an_image_is_noticed),
		cmocka_unit_test(test_what_is_appended_to_an_image_is_the_end_of_it),
		cmocka_unit_test(test_random_headers_are_refused_or_can_be_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
