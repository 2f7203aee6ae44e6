/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The index of a row by its interface alone: groups, their order in age, what replaces them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "engine/muninn/index/index.h"
#include "engine/muninn/nvram.h"
#include "tests/engine/small_flash.h"

enum {
	GROUPS = 4,
	ALSO = 1000000,        /* a key in the first segment of each group */
	NUMBERS = 1000,        /* sequence numbers of a group's segments */
	MERGED_SEGMENT = 1000, /* first of those that a merge has written */
};

struct fixture {
	struct muninn_geometry geometry;
	uint8_t *nvram;
	struct index *index;
	struct row_index *row;
	struct segment_index *active;
	uint8_t live[GROUPS + 1][8]; /* as in the directory */
};

static struct row_index *make_row(struct fixture *f, uint8_t **nvram, struct index **index)
{
	*nvram = calloc(1, f->geometry.nvram_bytes);
	assert_non_null(*nvram);
	*index = index_create(&f->geometry, *nvram);
	assert_non_null(*index);
	return index_row(*index, 0);
}

static int setup(void **state)
{
	const struct nand_geometry nand = SMALL_FLASH(3000);
	const struct record_options records = { 0 };
	const struct muninn_options options = {
		.rows = 1, .index = INDEX_BLOOM, .segment_pages = 8, .record_bytes = 128
	};
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(muninn_geometry_choose(&nand, &records, &options, &f->geometry, NULL), 0);
	f->active = segment_index_create(&f->geometry);
	assert_non_null(f->active);
	f->row = make_row(f, &f->nvram, &f->index);
	for (uint32_t row = 0; row < f->geometry.rows; row++)
		row_index_begin(index_row(f->index, row), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	segment_index_destroy(f->active);
	index_destroy(f->index);
	free(f->nvram);
	free(f);
	return 0;
}

static struct key_hash hash_of(const struct fixture *f, uint32_t key)
{
	const struct record_key record = { .partition = 1, .identifier = 0x10000 + key };

	return key_hash(&record, f->geometry.segment_pages);
}

/* Puts a key as a buffer with space everywhere would. */
static void note_key(struct fixture *f, uint32_t key)
{
	struct key_hash hash = hash_of(f, key);
	uint32_t place = segment_index_first(f->active, &hash), page;

	assert_true(segment_index_next(f->active, &hash, &place, &page));
	segment_index_note(f->active, &hash, place);
}

/* Seals a segment with two keys, one of which is `also`, and numbers around `sequence`. */
static void seal(struct fixture *f, struct row_index *row, uint32_t segment, uint32_t key,
		 uint32_t also, uint64_t sequence)
{
	struct sealed_segment facts = sealed_segment_begin(segment, segment + 1);

	segment_index_begin(f->active, row, 0, facts.serial);
	note_key(f, key);
	note_key(f, also);
	facts.records = 2;
	facts.record_bytes = 256;
	facts.first_sequence = sequence;
	facts.last_sequence = sequence + 1;
	assert_int_equal(row_index_write(row, f->active, NULL, &facts), 0);
	row_index_commit(row);
}

/* Segments from `first` on; the key of a segment is its number. */
static void fill_group(struct fixture *f, struct row_index *row, uint32_t first, uint64_t sequence)
{
	for (uint32_t n = 0; n < GROUP_SEGMENTS; n++)
		seal(f, row, first + n, first + n, n == 0 ? ALSO : first + n, sequence + 2 * n);
	assert_int_equal(row_index_members(row), GROUP_SEGMENTS);
}

/* Makes the image of a full group count in the row, with a live word of its own. */
static void replace(struct fixture *f, const struct row_index *from, uint32_t first, uint32_t last,
		    uint8_t *live)
{
	struct index_image image;

	assert_int_equal(row_index_make_image(from, &image), 0);
	image.live = live;
	assert_int_equal(row_index_replace(f->row, first, last, &image), 0);
	nvram_store64(live, UINT64_MAX);
	row_index_refresh(f->row);
}

/* Segment n of group g is g * GROUP_SEGMENTS + n. */
static void make_groups(struct fixture *f)
{
	for (uint32_t group = 0; group < GROUPS; group++) {
		fill_group(f, f->row, group * GROUP_SEGMENTS, 1 + group * NUMBERS);
		assert_int_equal(row_index_growing(f->row), group);
		replace(f, f->row, group, group, f->live[group]);
		row_index_begin(f->row, group + 1);
	}
	assert_int_equal(row_index_groups(f->row), GROUPS);
}

/*
 * Whether a search gives these segments in this order, each with a page. It may give others, but
 * none from `gone` to `gone_end`.
 */
static bool finds(const struct fixture *f, uint32_t key, uint64_t bound, uint64_t after,
		  const uint32_t *wanted, uint32_t count, uint32_t gone, uint32_t gone_end)
{
	struct key_hash hash = hash_of(f, key);
	struct index_search search;
	uint32_t segment, page, found = 0;

	index_search_begin(&search, f->row, &hash, bound);
	while (index_search_segment(&search, after, &segment)) {
		assert_true(segment < gone || segment >= gone_end);
		if (found < count && segment == wanted[found] && index_search_page(&search, &page))
			found++;
	}
	assert_int_equal(search.result, 0);
	return found == count;
}

static void test_a_row_is_searched_from_its_newest_segment_to_the_oldest(void **state)
{
	struct fixture *f = *state;
	const uint32_t all[] = { GROUPS * GROUP_SEGMENTS, 3 * GROUP_SEGMENTS, 2 * GROUP_SEGMENTS,
				 GROUP_SEGMENTS, 0 };

	make_groups(f);
	seal(f, f->row, all[0], ALSO, ALSO, 1 + GROUPS * NUMBERS);
	assert_true(finds(f, ALSO, RECORD_NEWEST, 0, all, 5, 0, 0));
	for (uint32_t segment = 0; segment < all[0]; segment++)
		assert_true(finds(f, segment, RECORD_NEWEST, 0, &segment, 1, 0, 0));
	/* What is too new for the bound, or too old, is left out. */
	assert_true(finds(f, ALSO, 2 * NUMBERS, 0, all + 3, 2, 2 * GROUP_SEGMENTS, UINT32_MAX));
	assert_true(finds(f, ALSO, RECORD_NEWEST, 2 * NUMBERS, all, 3, 0, 2 * GROUP_SEGMENTS));
}

/* As a merge does that seals what it keeps of two groups into segments of their own. */
static void test_what_replaces_groups_takes_their_place_in_age(void **state)
{
	struct fixture *f = *state;
	const uint32_t wanted[] = { 3 * GROUP_SEGMENTS, MERGED_SEGMENT, 0 };
	const uint32_t merged_key = MERGED_SEGMENT + 5;
	struct index_walk walk = { 0 };
	struct sealed_segment segment;
	struct index *aside;
	uint8_t *nvram;
	uint32_t newest, walked = 0;

	make_groups(f);
	struct row_index *made = make_row(f, &nvram, &aside);

	row_index_begin(made, 1);
	fill_group(f, made, MERGED_SEGMENT, 1 + NUMBERS);
	replace(f, made, 1, 2, f->live[GROUPS]);
	index_destroy(aside);
	free(nvram);

	assert_int_equal(row_index_groups(f->row), GROUPS - 1);
	assert_true(row_index_has(f->row, 1) && !row_index_has(f->row, 2));
	assert_true(row_index_newest(f->row, &newest) && newest == 3);
	assert_true(
		finds(f, ALSO, RECORD_NEWEST, 0, wanted, 3, GROUP_SEGMENTS, 3 * GROUP_SEGMENTS));
	assert_true(finds(f, merged_key, RECORD_NEWEST, 0, &merged_key, 1, 0, 0));
	/* Bounds know the new segments by their numbers, not by when they were written. */
	assert_true(finds(f, ALSO, NUMBERS, 0, wanted + 2, 1, GROUP_SEGMENTS, UINT32_MAX));
	assert_true(
		finds(f, ALSO, RECORD_NEWEST, 3 * NUMBERS, wanted, 1, MERGED_SEGMENT, UINT32_MAX));
	while (row_index_next(f->row, &walk, &segment)) {
		uint32_t group = walked / GROUP_SEGMENTS, n = walked % GROUP_SEGMENTS;

		assert_int_equal(segment.segment, n + (group == 0   ? 0
						       : group == 1 ? MERGED_SEGMENT
								    : 3 * GROUP_SEGMENTS));
		assert_int_equal(segment.member, n);
		walked++;
	}
	assert_int_equal(walked, (GROUPS - 1) * GROUP_SEGMENTS);
}

static void test_a_segment_that_is_taken_out_is_found_no_more(void **state)
{
	struct fixture *f = *state;
	const uint32_t of_complete = GROUP_SEGMENTS + 7, of_growing = GROUPS * GROUP_SEGMENTS;
	struct index_walk walk = { .all = true };
	struct index_figures figures;
	struct sealed_segment segment;
	uint32_t walked = 0;

	make_groups(f);
	seal(f, f->row, of_growing, of_growing, of_growing, 1 + GROUPS * NUMBERS);
	row_index_find(f->row, of_complete, &segment);
	assert_int_equal(segment.group, 1);
	assert_int_equal(segment.member, 7);
	assert_int_equal(segment.serial, of_complete + 1);
	row_index_take_out(f->row, &segment);
	row_index_find(f->row, of_growing, &segment);
	assert_int_equal(segment.group, GROUPS);
	row_index_take_out(f->row, &segment);
	assert_int_equal(row_index_live(f->row), 0);
	assert_false(finds(f, of_complete, RECORD_NEWEST, 0, &of_complete, 1, of_complete,
			   of_complete + 1));
	assert_false(
		finds(f, of_growing, RECORD_NEWEST, 0, &of_growing, 1, of_growing, of_growing + 1));
	index_count(f->index, &figures);
	assert_int_equal(figures.segments, GROUPS * GROUP_SEGMENTS - 1);
	assert_int_equal(figures.groups, GROUPS);
	/* What it was stays known. */
	while (row_index_next(f->row, &walk, &segment))
		walked++;
	assert_int_equal(walked, GROUPS * GROUP_SEGMENTS + 1);
	assert_int_equal(row_index_last_serial(f->row), of_growing + 1);
	assert_int_equal(row_index_read_last(f->row, &segment, 1), 1);
	assert_int_equal(segment.segment, of_growing);
}

static void test_a_group_without_segments_is_replaced_by_nothing(void **state)
{
	struct fixture *f = *state;
	struct sealed_segment segment;
	uint32_t group = 0;

	make_groups(f);
	assert_false(row_index_find_sparse(f->row, &segment));
	for (uint32_t n = 0; n < GROUP_SEGMENTS; n++) {
		assert_null(row_index_empty_group(f->row, &group));
		row_index_find(f->row, 2 * GROUP_SEGMENTS + n, &segment);
		row_index_take_out(f->row, &segment);
		if (n + 1 < GROUP_SEGMENTS)
			assert_int_equal(row_index_find_sparse(f->row, &segment),
					 GROUP_SEGMENTS - 1 - n <= index_sparse(&f->geometry));
	}
	assert_ptr_equal(row_index_empty_group(f->row, &group), f->live[2]);
	assert_int_equal(group, 2);
	assert_int_equal(row_index_replace(f->row, group, group, NULL), 0);
	row_index_refresh(f->row);
	assert_int_equal(row_index_groups(f->row), GROUPS - 1);
	assert_null(row_index_empty_group(f->row, &group));
	assert_true(finds(f, ALSO, RECORD_NEWEST, 0,
			  (const uint32_t[]){ 3 * GROUP_SEGMENTS, GROUP_SEGMENTS, 0 }, 3,
			  2 * GROUP_SEGMENTS, 3 * GROUP_SEGMENTS));
}

static void test_an_image_that_is_not_the_row_s_is_refused(void **state)
{
	struct fixture *f = *state;
	struct error_text error = { "" };
	struct index_image image;

	fill_group(f, f->row, 0, 1);
	assert_int_equal(row_index_make_image(f->row, &image), 0);
	assert_int_equal(row_index_check_image(f->row, &image, &error), 0);
	assert_int_equal(row_index_check_image(index_row(f->index, 1), &image, &error), -EINVAL);
	image.group = 1;
	assert_int_equal(row_index_check_image(f->row, &image, &error), -EINVAL);
	image.group = 0;
	image.bytes[image.length - 1] ^= 1;
	assert_int_equal(row_index_check_image(f->row, &image, &error), -EINVAL);
	image.bytes[image.length - 1] ^= 1;
	image.length--;
	assert_int_equal(row_index_check_image(f->row, &image, &error), -EINVAL);
	free(image.bytes);
}

/* What flash has of an image. */
struct stored {
	uint8_t *bytes;
	uint64_t length;
	uint32_t page_bytes, reads;
};

static int read_stored(void *context, uint32_t row, uint32_t group, const uint8_t *live,
		       uint32_t page, uint8_t *data)
{
	struct stored *stored = context;
	uint64_t from = (uint64_t)page * stored->page_bytes;

	(void)row;
	(void)group;
	(void)live;
	assert_true(from < stored->length);
	memset(data, 0, stored->page_bytes);
	memcpy(data, stored->bytes + from, min_u64(stored->page_bytes, stored->length - from));
	stored->reads++;
	return 0;
}

/* Makes the growing group a complete one, of which flash has `stored`. Returns what it takes. */
static uint64_t complete_on_flash(struct fixture *f, struct stored *stored, bool stays)
{
	uint32_t group = row_index_growing(f->row);
	struct index_figures before, after;
	struct index_image image;

	assert_int_equal(row_index_make_image(f->row, &image), 0);
	stored->length = image.length;
	stored->bytes = realloc(stored->bytes, image.length);
	assert_non_null(stored->bytes);
	memcpy(stored->bytes, image.bytes, image.length);
	image.live = f->live[group];
	image.stays = stays;
	index_count(f->index, &before);
	assert_int_equal(row_index_replace(f->row, group, group, &image), 0);
	index_count(f->index, &after);
	nvram_store64(f->live[group], UINT64_MAX);
	row_index_begin(f->row, group + 1);
	row_index_refresh(f->row);
	return after.groups_memory - before.groups_memory;
}

/* With a cache only the head of a table is kept, if flash has the rest. */
static void test_what_flash_has_of_an_image_is_not_kept_in_memory(void **state)
{
	const struct muninn_options options = { .bloom.table_cache_bytes = BLOOM_TABLE_CACHE_MIN };
	struct fixture *f = *state;
	struct stored stored = { .page_bytes = f->geometry.page_bytes };
	struct error_text error = { "" };

	assert_int_equal(index_prepare(f->index, &options, read_stored, &stored, &error), 0);
	fill_group(f, f->row, 0, 1);
	assert_true(complete_on_flash(f, &stored, true) >= stored.length);
	assert_true(row_index_is_in_memory(f->row, 0));
	assert_true(finds(f, 5, RECORD_NEWEST, 0, (const uint32_t[]){ 5 }, 1, 0, 0));
	assert_int_equal(stored.reads, 0);

	fill_group(f, f->row, GROUP_SEGMENTS, 1 + NUMBERS);
	assert_true(complete_on_flash(f, &stored, false) < stored.length / 2);
	assert_false(row_index_is_in_memory(f->row, 1));
	assert_true(finds(f, GROUP_SEGMENTS + 5, RECORD_NEWEST, 0,
			  (const uint32_t[]){ GROUP_SEGMENTS + 5 }, 1, 0, 0));
	assert_true(stored.reads > 0);
	free(stored.bytes);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_row_is_searched_from_its_newest_segment_to_the_oldest),
		TEST(test_what_replaces_groups_takes_their_place_in_age),
		TEST(test_a_segment_that_is_taken_out_is_found_no_more),
		TEST(test_a_group_without_segments_is_replaced_by_nothing),
		TEST(test_an_image_that_is_not_the_row_s_is_refused),
		TEST(test_what_flash_has_of_an_image_is_not_kept_in_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
