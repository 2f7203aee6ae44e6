/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The ribbon index by the interface of an index: segments whose records were arranged, some of them
 * those of one key alone, in a growing and in a complete group.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/muninn/index/index.h"
#include "engine/muninn/index/ribbon/growing_format.h"
#include "engine/muninn/nvram.h"

enum {
	PAGE_RECORDS = 4,
	HOT = 1,       /* the key that fills a segment now and then */
	HOT_EVERY = 6, /* so many segments */
	FIRST_KEY = 1000,
	ABSENT = 1U << 30,
};

/* Of the group: the first ones of a row have fewer segments. */
enum { NUMBER = 2 };

struct scene {
	struct muninn_geometry geometry;
	uint8_t *nvram;
	struct index *index;
	struct row_index *row;
	struct segment_index *active;
	uint8_t *bytes;
	struct page_view *pages;
	uint64_t sequence;
	uint32_t next_key;
	uint8_t live[8]; /* of the complete group */
};

static void begin(struct scene *scene, uint32_t segment_pages, uint32_t page_bytes)
{
	const struct nand_geometry nand = { .page_bytes = page_bytes,
					    .spare_bytes = 64,
					    .pages_per_block = 8,
					    .blocks = 64 * segment_pages / 8,
					    .channels = 1,
					    .dies_per_channel = 1 };
	const struct record_options records = { 0 };
	const struct muninn_options options = { .rows = 1,
						.segment_pages = segment_pages,
						.record_bytes = page_bytes / PAGE_RECORDS,
						.index = INDEX_RIBBON };

	*scene = (struct scene){ .next_key = FIRST_KEY };
	assert_int_equal(muninn_geometry_choose(&nand, &records, &options, &scene->geometry, NULL),
			 0);
	scene->nvram = calloc(1, scene->geometry.nvram_bytes);
	assert_non_null(scene->nvram);
	scene->index = index_create(&scene->geometry, scene->nvram);
	scene->active = segment_index_create(&scene->geometry);
	scene->bytes = calloc(segment_pages, page_bytes);
	scene->pages = calloc(segment_pages, sizeof(*scene->pages));
	assert_true(scene->index && scene->active && scene->bytes && scene->pages);
	scene->row = index_row(scene->index, 0);
	row_index_begin(scene->row, NUMBER);
}

static void end(struct scene *scene)
{
	index_destroy(scene->index);
	segment_index_destroy(scene->active);
	free(scene->pages);
	free(scene->bytes);
	free(scene->nvram);
}

static struct record_key key_of(uint32_t number)
{
	return (struct record_key){ .partition = 1, .identifier = number };
}

static bool is_hot(uint32_t segment)
{
	return segment % HOT_EVERY == 2;
}

/* ---- sealing ---- */

/* Fills a page to the last byte with records of the hot key, or of a new one each. */
static void fill_page(struct scene *scene, uint32_t page, uint64_t serial, bool hot)
{
	uint32_t page_bytes = scene->geometry.page_bytes, bytes = page_bytes / PAGE_RECORDS;
	uint8_t *data = scene->bytes + (uint64_t)page * page_bytes;

	scene->pages[page] =
		(struct page_view){ .serial = serial, .data = data, .used = page_bytes };
	for (uint32_t n = 0; n < PAGE_RECORDS; n++) {
		uint8_t *at = data + (uint64_t)n * bytes;
		struct record_header header = {
			.key = key_of(hot ? HOT : scene->next_key++),
			.sequence = ++scene->sequence,
			.length = (uint16_t)(bytes - RECORD_HEADER_BYTES),
		};

		record_header_encode(&header, serial, at + RECORD_HEADER_BYTES, at);
	}
}

/* What the growing group in NVRAM says of a segment. */
static struct group_member member_of(const struct scene *scene, uint32_t member)
{
	uint64_t bytes;
	const uint8_t *nvram = row_index_nvram(scene->row, &bytes);
	struct group_member facts;

	group_get_member(nvram + GROWING_HEADER_BYTES + (uint64_t)member * GROWING_MEMBER_BYTES,
			 &facts);
	return facts;
}

static void seal(struct scene *scene, uint32_t segment)
{
	struct sealed_segment facts = sealed_segment_begin(segment, segment + UINT64_C(1));
	struct arrangement *arrangement;
	struct group_member member;

	for (uint32_t page = 0; page < scene->geometry.segment_pages; page++) {
		fill_page(scene, page, facts.serial, is_hot(segment));
		sealed_segment_add(&facts, &scene->pages[page]);
	}
	segment_index_begin(scene->active, scene->row, 0, facts.serial);
	arrangement = index_arrange(&scene->geometry, facts.serial, scene->pages);
	assert_non_null(arrangement);
	assert_int_equal(row_index_write(scene->row, scene->active, arrangement, &facts), 0);
	row_index_commit(scene->row);
	arrangement_destroy(arrangement);
	member = member_of(scene, segment);
	assert_int_equal(member.by_candidates, !is_hot(segment));
	assert_true(member.tail_pages < scene->geometry.segment_pages / 8);
}

/* Seals a full group. Returns how many segments that are. */
static uint32_t seal_group(struct scene *scene)
{
	uint32_t segments = 0;

	while (!row_index_is_full(scene->row))
		seal(scene, segments++);
	assert_true(segments > 2 * HOT_EVERY);
	return segments;
}

/* Its image has candidates for locations. */
static void complete(struct scene *scene)
{
	struct index_image image;
	struct group group;

	assert_int_equal(row_index_make_image(scene->row, &image), 0);
	image.live = scene->live;
	assert_true(group_attach(&group, image.bytes, image.length));
	assert_int_equal(group.locations, PLACEMENT_CANDIDATES);
	assert_int_equal(row_index_replace(scene->row, NUMBER, NUMBER, &image), 0);
	nvram_store64(scene->live, UINT64_MAX);
	row_index_begin(scene->row, NUMBER + 1);
	assert_int_equal(row_index_refresh(scene->row), 0);
}

/* ---- searching ---- */

/*
 * All pages that a search for a key names, the last one of a segment first. Returns how many
 * segments it names that have the hot key alone; `pages`: how many pages of these.
 */
static uint32_t search(const struct scene *scene, uint32_t number, uint32_t *pages)
{
	const struct record_key key = key_of(number);
	struct key_hash hash = key_hash(&key, scene->geometry.segment_pages);
	uint32_t segment, page, found = 0;
	struct index_search search;

	index_search_begin(&search, scene->row, &hash, RECORD_NEWEST);
	while (index_search_segment(&search, 0, &segment)) {
		found += is_hot(segment);
		while (index_search_page(&search, &page)) {
			assert_true(page < scene->geometry.segment_pages);
			*pages += is_hot(segment);
		}
	}
	return found;
}

/* A segment of one key has all of its pages in the tail, and so none for candidates. */
static void check_segments_of_one_key(uint32_t segment_pages, uint32_t page_bytes)
{
	struct scene scene;
	uint32_t segments, hot = 0, vain = 0, pages;

	begin(&scene, segment_pages, page_bytes);
	segments = seal_group(&scene);
	for (uint32_t segment = 0; segment < segments; segment++)
		hot += is_hot(segment);
	for (uint32_t turn = 0; turn < 2; turn++) {
		pages = 0;
		assert_int_equal(search(&scene, HOT, &pages), hot);
		assert_int_equal(pages, hot * segment_pages);
		if (turn == 0)
			complete(&scene);
	}
	/* A false hit names no page of it. */
	pages = 0;
	for (uint32_t n = 0; n < 40000; n++)
		vain += search(&scene, ABSENT + n, &pages);
	print_message("%u segments, %u of one key, which %u of 40000 absent keys hit\n", segments,
		      hot, vain);
	assert_true(vain > 0);
	assert_int_equal(pages, 0);
	end(&scene);
}

static void test_a_segment_of_one_key_has_no_candidates_for_any_other(void **state)
{
	(void)state;
	check_segments_of_one_key(256, 4096);
}

static void test_nor_has_one_of_most_pages(void **state)
{
	(void)state;
	check_segments_of_one_key(MUNINN_SEGMENT_PAGES_MAX, 512);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_segment_of_one_key_has_no_candidates_for_any_other),
		cmocka_unit_test(test_nor_has_one_of_most_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
