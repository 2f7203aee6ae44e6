/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Full buffers beside what becomes of them: every record is there, where the index is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/muninn/index/ribbon/ribbon_hash.h"
#include "engine/muninn/index/ribbon_arrange.h"
#include "tests/engine/muninn/ribbon_random.h"

enum { PAGES = 256, PAGE_BYTES = 4096, SERIAL = 77, RECORDS_MAX = 8192 };

/* A record of a buffer. */
struct put {
	struct record_key key;
	uint64_t sequence;
	uint32_t length;
	bool seen;
};

struct scene {
	struct muninn_geometry geometry;
	struct ribbon_shape shape;
	uint64_t random, sequence;
	bool moves; /* a merge does: numbers of records are in no order */
	uint8_t *bytes;
	uint8_t large_headers[PAGES][RECORD_HEADER_BYTES];
	struct page_view pages[PAGES];
	struct put *puts;
	uint32_t count;
	struct arrangement *arrangement;
};

static void begin(struct scene *scene, uint64_t seed)
{
	*scene = (struct scene){
		.geometry = { .segment_pages = PAGES, .page_bytes = PAGE_BYTES },
		.shape = ribbon_shape_choose(PAGE_BYTES, PAGES, 1024),
		.random = seed,
		.bytes = calloc(PAGES, PAGE_BYTES),
		.puts = calloc(RECORDS_MAX, sizeof(*scene->puts)),
	};
	assert_true(scene->bytes && scene->puts);
	for (uint32_t page = 0; page < PAGES; page++)
		scene->pages[page] =
			(struct page_view){ .serial = SERIAL,
					    .data = scene->bytes + (uint64_t)page * PAGE_BYTES };
}

static void end(struct scene *scene)
{
	arrangement_destroy(scene->arrangement);
	free(scene->bytes);
	free(scene->puts);
}

/* Puts a record of `length` behind its header to a page. */
static void put_to(struct scene *scene, uint32_t page, uint64_t identifier, uint32_t length)
{
	struct page_view *view = &scene->pages[page];
	bool is_large = RECORD_HEADER_BYTES + length > PAGE_BYTES;
	uint8_t *at = scene->bytes + (uint64_t)page * PAGE_BYTES + view->used, value[PAGE_BYTES];
	struct put *put;
	struct record_header header = {
		.key = { .partition = 1, .identifier = identifier },
		.sequence = scene->moves ? 1 + ++scene->sequence * 1021 % (RECORDS_MAX - 1)
					 : ++scene->sequence,
		.length = (uint16_t)length,
	};

	memset(value, (int)identifier & 0xff, length);
	assert_true(++scene->count < RECORDS_MAX);
	put = &scene->puts[header.sequence];
	assert_int_equal(put->sequence, 0);
	*put = (struct put){ .key = header.key, .sequence = header.sequence, .length = length };
	if (is_large) {
		record_header_encode(&header, SERIAL, value, scene->large_headers[page]);
		view->large_header = scene->large_headers[page];
		memcpy(at, value, length);
		view->used = length;
		return;
	}
	record_header_encode(&header, SERIAL, value, at);
	memcpy(at + RECORD_HEADER_BYTES, value, length);
	view->used += RECORD_HEADER_BYTES + length;
}

/* As a buffer does: to the first page with space, from the last one on that has the key. */
static bool put(struct scene *scene, uint64_t identifier, uint32_t length)
{
	uint32_t bytes = RECORD_HEADER_BYTES + length, page = 0;

	for (uint32_t other = 0; other < PAGES; other++) {
		struct page_record record;

		for (uint32_t offset = 0; page_next(&scene->pages[other], &offset, &record);)
			if (record_has_key(record.header,
					   &(struct record_key){ .partition = 1,
								 .identifier = identifier }))
				page = other;
	}
	for (; page < PAGES; page++) {
		const struct page_view *view = &scene->pages[page];

		if (bytes > PAGE_BYTES ? view->used
				       : view->large_header || view->used + bytes > PAGE_BYTES)
			continue;
		put_to(scene, page, identifier, length);
		return true;
	}
	return false;
}

static bool arrange(struct scene *scene)
{
	scene->arrangement =
		ribbon_arrange(&scene->geometry, &scene->shape, SERIAL, scene->pages, 0);
	return scene->arrangement != NULL;
}

/* The entry that names the page of a key's newest record; NULL: there is none. */
static const struct tag_entry *entry_of(const struct scene *scene, uint32_t tag, uint32_t page)
{
	uint32_t count, run_pages;
	const struct tag_entry *entries =
		arrangement_entries(scene->arrangement, &count, &run_pages);

	for (uint32_t n = 0; n < count; n++)
		if (entries[n].tag == tag && word_page(entries[n].location) == page)
			return &entries[n];
	return NULL;
}

/* Whether tags say that one may be in a page of runs. */
static bool may_be_in_run(const struct scene *scene, uint32_t tag, uint32_t page)
{
	uint32_t count, run_pages;
	const struct tag_entry *entries =
		arrangement_entries(scene->arrangement, &count, &run_pages);
	const struct tag_entry *runs = entries + count;

	for (uint32_t n = 0; n < run_pages; n++) {
		assert_int_equal(runs[n].location, n);
		assert_true(n == 0 || runs[n].tag >= runs[n - 1].tag);
	}
	return page < run_pages && runs[page].tag <= tag &&
	       (page + 1 == run_pages || runs[page + 1].tag >= tag);
}

/* The index names the newest record of each key, and pages of runs for the others. */
static void check_index(const struct scene *scene, const struct key_hash *hash, bool is_newest,
			uint32_t page)
{
	uint32_t count, run_pages, candidate;
	const struct tag_entry *entry;

	if (!is_newest) {
		assert_true(may_be_in_run(scene, tag_of(hash), page));
		return;
	}
	entry = entry_of(scene, tag_of(hash), page);
	assert_non_null(entry);
	candidate = entry->location >> LOCATION_PAGE_BITS;
	arrangement_entries(scene->arrangement, &count, &run_pages);
	if (candidate)
		assert_int_equal(
			run_pages + candidate_page(hash, SERIAL, candidate - 1, PAGES - run_pages),
			page);
}

static void check_record(struct scene *scene, const struct page_record *record, uint32_t page)
{
	struct record_header header;
	struct key_hash hash;
	struct put *put;
	bool is_newest = true;

	assert_true(record_is_intact(record->header, SERIAL, record->value));
	record_header_decode(record->header, &header);
	assert_in_range(header.sequence, 1, RECORDS_MAX - 1);
	put = &scene->puts[header.sequence];
	assert_true(put->sequence == header.sequence && !put->seen);
	put->seen = true;
	assert_true(record_has_key(record->header, &put->key));
	hash = key_hash(&header.key, PAGES);
	for (uint64_t n = header.sequence + 1; n < RECORDS_MAX; n++)
		is_newest &= !scene->puts[n].sequence ||
			     scene->puts[n].key.identifier != header.key.identifier;
	check_index(scene, &hash, is_newest, page);
}

/* The numbers of a key in the pages that have been looked at. */
struct seen {
	uint32_t page;                  /* the last one that has it */
	uint64_t newest, newest_before; /* in all pages; in those before that one */
};

/* All records are there once, whole, and named; those of a key go up with the pages. */
static void check(struct scene *scene)
{
	struct seen *keys = calloc(RECORDS_MAX, sizeof(*keys));
	uint8_t data[PAGE_BYTES];

	for (uint32_t page = 0; page < PAGES; page++) {
		struct page_view view = arrangement_page(scene->arrangement, page, data);
		struct page_record record;
		uint32_t offset = 0;

		assert_true(view.used <= PAGE_BYTES && view.serial == SERIAL);
		while (page_next(&view, &offset, &record)) {
			struct record_header header;
			struct seen *seen;

			check_record(scene, &record, page);
			record_header_decode(record.header, &header);
			seen = &keys[header.key.identifier];
			if (seen->page != page)
				seen->newest_before = seen->newest;
			seen->page = page;
			seen->newest = max_u64(seen->newest, header.sequence);
			assert_true(header.sequence > seen->newest_before);
		}
		assert_int_equal(offset, view.used);
	}
	for (uint32_t n = 0; n < RECORDS_MAX; n++)
		assert_int_equal(scene->puts[n].seen, scene->puts[n].sequence != 0);
	free(keys);
}

static uint32_t count_candidates(const struct scene *scene, uint32_t *entries)
{
	uint32_t run_pages, with = 0;
	const struct tag_entry *all = arrangement_entries(scene->arrangement, entries, &run_pages);

	for (uint32_t n = 0; n < *entries; n++)
		with += all[n].location >> LOCATION_PAGE_BITS != 0;
	return with;
}

static void test_records_of_one_size_fill_a_segment_by_candidates(void **state)
{
	uint32_t with = 0, entries = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct scene scene;
		uint32_t count;

		begin(&scene, seed);
		for (uint64_t key = 1; put(&scene, key, 1024 - RECORD_HEADER_BYTES);)
			key++;
		assert_int_equal(scene.count, 1024);
		assert_true(arrange(&scene));
		check(&scene);
		with += count_candidates(&scene, &count);
		entries += count;
		assert_int_equal(count, 1024);
		end(&scene);
	}
	print_message("%u of %u keys have a candidate\n", with, entries);
	assert_true(with > entries / 1000 * 995);
}

/* Keys of which some are put again and again, until nothing fits; of one size. */
static void test_all_records_are_there_and_numbers_of_a_key_go_up_with_the_pages(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		uint32_t keys = 1U << (2 + seed), length = seed % 2 ? 484 : 100;
		struct scene scene;

		begin(&scene, seed);
		scene.moves = seed > 5;
		while (put(&scene, 1 + below(&scene.random, below(&scene.random, 2) ? keys : 8000),
			   length) &&
		       scene.count < scene.shape.segment_entries)
			continue;
		assert_true(arrange(&scene));
		check(&scene);
		end(&scene);
	}
}

/* Without an arrangement there is one entry for nearly each record. */
static void test_a_key_that_is_put_again_and_again_takes_one_entry(void **state)
{
	struct scene scene;
	uint32_t entries, with;

	(void)state;
	begin(&scene, 1);
	for (uint64_t n = 0; put(&scene, 1 + n % 64, 1024 - RECORD_HEADER_BYTES);)
		n++;
	assert_int_equal(scene.count, 1024);
	assert_true(arrange(&scene));
	check(&scene);
	with = count_candidates(&scene, &entries);
	assert_int_equal(entries, 64);
	assert_true(with >= 60);
	end(&scene);
}

static bool page_has(const struct page_view *page, const struct record_key *key)
{
	struct page_record record;

	for (uint32_t offset = 0; page_next(page, &offset, &record);)
		if (record_has_key(record.header, key))
			return true;
	return false;
}

/*
 * Runs that begin where a page does, behind a record of a page or behind other runs, and runs that
 * don't: the page before is named only for the latter.
 */
static void test_tags_name_no_page_that_a_run_is_not_on(void **state)
{
	uint32_t count, run_pages, at_begin = 0, keys = 24;
	uint8_t data[PAGE_BYTES];
	struct scene scene;

	(void)state;
	begin(&scene, 1);
	for (uint64_t n = 0; n < 6 * keys; n++)
		assert_true(put(&scene, 1 + n % (2 * keys),
				n % 8 ? 1024 - RECORD_HEADER_BYTES : PAGE_BYTES));
	while (scene.count < 900)
		assert_true(
			put(&scene, 1 + below(&scene.random, keys), 1024 - RECORD_HEADER_BYTES));
	assert_true(arrange(&scene));
	check(&scene);
	arrangement_entries(scene.arrangement, &count, &run_pages);
	for (uint64_t identifier = 1; identifier <= 2 * keys; identifier++) {
		const struct record_key key = { .partition = 1, .identifier = identifier };
		struct key_hash hash = key_hash(&key, PAGES);
		bool before = false;

		for (uint32_t page = 0; page < run_pages; page++) {
			struct page_view view = arrangement_page(scene.arrangement, page, data);
			bool has = page_has(&view, &key);

			assert_int_equal(may_be_in_run(&scene, tag_of(&hash), page), has);
			at_begin +=
				has && !before && page &&
				record_has_key(view.large_header ? view.large_header : view.data,
					       &key);
			before = has;
		}
	}
	print_message("%u of %u runs begin where a page does\n", at_begin, 2 * keys);
	assert_true(at_begin > keys / 2 && at_begin < 2 * keys - 8);
	end(&scene);
}

/* So a search from the last page on meets the newest record first, with a candidate or without. */
static void test_newest_records_are_behind_older_ones(void **state)
{
	uint32_t without = 0, arranged = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 24; seed++) {
		uint32_t most = PAGES * PAGE_BYTES / 100 * (90 + (uint32_t)seed % 8), used = 0,
			 length;
		struct scene scene;
		uint32_t entries;

		begin(&scene, seed);
		do {
			length = 20 + below(&scene.random, 1500);
			used += length + RECORD_HEADER_BYTES;
		} while (used < most && put(&scene, 1 + below(&scene.random, 600), length));
		if (arrange(&scene)) {
			check(&scene);
			without -= count_candidates(&scene, &entries);
			without += entries;
			arranged++;
		}
		end(&scene);
	}
	print_message("%u arranged, %u keys without a candidate\n", arranged, without);
	assert_true(arranged > 12 && without > 12);
}

/* They are whole, or as they were; with some space left they are arranged. */
static void test_records_of_different_sizes_are_arranged_if_they_fit(void **state)
{
	uint32_t arranged = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		uint64_t used = 0, key = 1, most = PAGES * PAGE_BYTES;
		struct scene scene;
		uint32_t length;

		begin(&scene, seed);
		if (seed % 2)
			most -= most / 16;
		do {
			/* Few large ones. */
			length = below(&scene.random, 100) ? below(&scene.random, 600) : 4096;
			used += length + RECORD_HEADER_BYTES;
		} while (used < most && put(&scene, key++, length));
		if (arrange(&scene)) {
			check(&scene);
			arranged += seed % 2;
		}
		end(&scene);
	}
	assert_int_equal(arranged, 6);
}

static void test_records_of_a_page_each_stay_where_they_are(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene, 1);
	for (uint64_t key = 1; key <= PAGES; key++)
		assert_true(put(&scene, key, PAGE_BYTES));
	assert_false(arrange(&scene));
	end(&scene);
	begin(&scene, 1);
	assert_false(arrange(&scene));
	end(&scene);
}

static void test_the_same_buffer_gives_the_same_segment(void **state)
{
	uint8_t data[2][PAGE_BYTES];
	struct arrangement *first;
	struct scene scene;

	(void)state;
	begin(&scene, 3);
	while (put(&scene, 1 + below(&scene.random, 2000), 484))
		continue;
	assert_true(arrange(&scene));
	first = scene.arrangement;
	assert_true(arrange(&scene));
	for (uint32_t page = 0; page < PAGES; page++) {
		struct page_view a = arrangement_page(first, page, data[0]);
		struct page_view b = arrangement_page(scene.arrangement, page, data[1]);

		assert_int_equal(a.used, b.used);
		assert_memory_equal(a.data, b.data, a.used);
	}
	arrangement_destroy(first);
	end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records_of_one_size_fill_a_segment_by_candidates),
		cmocka_unit_test(
			test_all_records_are_there_and_numbers_of_a_key_go_up_with_the_pages),
		cmocka_unit_test(test_a_key_that_is_put_again_and_again_takes_one_entry),
		cmocka_unit_test(test_tags_name_no_page_that_a_run_is_not_on),
		cmocka_unit_test(test_newest_records_are_behind_older_ones),
		cmocka_unit_test(test_records_of_different_sizes_are_arranged_if_they_fit),
		cmocka_unit_test(test_records_of_a_page_each_stay_where_they_are),
		cmocka_unit_test(test_the_same_buffer_gives_the_same_segment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
