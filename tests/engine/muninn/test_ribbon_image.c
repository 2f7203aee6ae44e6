/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Images of groups of the ribbon index: their bytes, their tags, and what is damaged of them. */
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
#include "engine/muninn/index/ribbon/group_format.h"
#include "tests/engine/muninn/made_group.h"
#include "tests/engine/muninn/ribbon_random.h"

/* ---- bytes ---- */

/* Two members and three entries, to be built. */
static struct made example(void)
{
	struct made made = {
		.plan = { .row = 0x0102,
			  .number = 3,
			  .fingerprint_bits = 8,
			  .locations = 3,
			  .member_count = 2,
			  .entry_count = 3 },
		.entries = calloc(3, sizeof(struct tag_entry)),
	};

	assert_non_null(made.entries);
	made.entries[0] = (struct tag_entry){ 0x01020304, 0, 2 };
	made.entries[1] = (struct tag_entry){ 0x01020304, 1, 0 };
	made.entries[2] = (struct tag_entry){ 0xf1f2f3f4, 1, 1 };
	return made;
}

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
	struct made made = example();

	(void)state;
	made.with_runs = true;
	made_build(&made);
	assert_int_equal(made.length, sizeof(documented));
	for (size_t n = 0; n < sizeof(documented); n++)
		if (made.image[n] != documented[n])
			print_error("byte %zu is %02x\n", n, made.image[n]);
	assert_memory_equal(made.image, documented, sizeof(documented));
	made_end(&made);
}

/* ---- tags ---- */

/* The same with tags, which the header counts. */
static void test_tags_have_the_documented_bytes(void **state)
{
	static const uint8_t documented[] = {
		0x5a, 0xae, 0xd4, 0xb5,       /* CRC of what follows */
		0x88, 0x8c, 0x90, 0x10,       /* 2 * 0x01020304 */
		0x00,                         /* the same tag again */
		0xe0, 0xc3, 0x87, 0x8f, 0x1e, /* 2 * (0xf1f2f3f4 - 0x01020304) */
	};
	struct made made = example();
	uint64_t without;

	(void)state;
	made.plan.joins = 5;
	made.plan.tagged_max = UINT64_MAX;
	made_build(&made);
	without = made.length - sizeof(documented);
	assert_int_equal(get_le32(made.image + 44), sizeof(documented));
	assert_int_equal(get_le32(made.image + 48), 5);
	assert_int_equal(made.group.joins, 5);
	assert_int_equal(group_whole_bytes(&made.group), made.length);
	assert_memory_equal(made.image + without, documented, sizeof(documented));
	/* A byte more than the image may have: none. */
	free(made.image);
	made.plan.tagged_max = made.length - 1;
	made_build(&made);
	assert_int_equal(made.length, without);
	assert_int_equal(made.group.tag_bytes, 0);
	made_end(&made);
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

		made_at_random(&made, cases[n].members, cases[n].count, cases[n].tags, 3, n);
		free(made.image);
		for (uint32_t e = 0; e < cases[n].apart; e++)
			apart[e] = (struct tag_entry){ .tag = e * 77,
						       .segment = e % cases[n].members,
						       .location = 3 + e % 200 };
		made.plan.apart = apart;
		made.plan.apart_count = cases[n].apart;
		made.plan.tagged_max = UINT64_MAX;
		made_build(&made);
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
		made_end(&made);
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
	made_at_random(&made, 3, 200, 100, 3, 1);
	assert_int_equal(group_list(&made.group, made.length, listed), -EINVAL);
	free(made.image);
	made.plan.tagged_max = UINT64_MAX;
	made_build(&made);
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
	made_end(&made);
}

/* ---- other images, and damaged ones ---- */

/* They are the same, without runs, and without records that span pages. */
static void test_an_image_of_the_versions_before_is_taken(void **state)
{
	struct made made;
	struct group group;

	(void)state;
	made_at_random(&made, 3, 200, 100, 3, 1);
	for (uint32_t version = 0; version < 10; version++) {
		put_le32(made.image + GROUP_VERSION_AT, version);
		group_put_crc(made.image, made.length);
		assert_int_equal(group_attach(&group, made.image, made.length) &&
					 group_is_intact(&group, made.length),
				 version >= 3 && version <= 6);
	}
	made_end(&made);
}

static void test_every_changed_bit_of_an_image_is_noticed(void **state)
{
	struct made made;

	(void)state;
	made_at_random(&made, 3, 200, 100, 3, 1);
	for (uint64_t bit = 0; bit < made.length * 8; bit++) {
		struct group group;

		made.image[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_true(!group_attach(&group, made.image, made.length) ||
			    !group_is_intact(&group, made.length));
		made.image[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	made_end(&made);
}

/* Bytes behind an image are covered by its checksum, and not kept. */
static void test_what_is_appended_to_an_image_is_the_end_of_it(void **state)
{
	static const uint8_t bytes[] = { 1, 2, 3, 4, 5 };
	struct made made;
	struct group group;
	uint64_t before;

	(void)state;
	made_at_random(&made, 3, 200, 100, 3, 1);
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
	made_end(&made);
}

/* Whatever bytes there are, nothing is read outside of them. */
static void test_random_headers_are_refused_or_can_be_asked(void **state)
{
	uint64_t random = 1;
	struct made made;
	uint32_t attached = 0;

	(void)state;
	made_at_random(&made, 3, 200, 100, 3, 1);
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
	made_end(&made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
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
