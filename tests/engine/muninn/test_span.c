/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Cells of buffers: how long they are, when a buffer has any, and whether whatever a full buffer
 * holds has space in its segment, each record whole and in its place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/muninn/buffer.h"
#include "engine/muninn/index/ribbon/ribbon_hash.h"
#include "engine/muninn/index/ribbon_arrange.h"
#include "tests/engine/muninn/muninn_model.h"
#include "tests/engine/muninn/ribbon_random.h"
#include "tests/repetition.h"

/* ---- sizes ---- */

static struct muninn_geometry geometry_of(uint32_t page_bytes, uint32_t segment_pages,
					  uint32_t record_bytes)
{
	return (struct muninn_geometry){ .page_bytes = page_bytes,
					 .segment_pages = segment_pages,
					 .record_bytes = record_bytes,
					 .index = INDEX_RIBBON };
}

static void test_cells_fill_a_segment_and_their_headers_are_whole(void **state)
{
	const struct muninn_geometry geometries[] = { geometry_of(4096, 256, 1024),
						      geometry_of(512, 8, 128) };
	uint32_t spans = 0;

	(void)state;
	for (int n = 0; n < 2; n++) {
		const struct muninn_geometry *geometry = &geometries[n];
		uint32_t page_bytes = geometry->page_bytes, pages = geometry->segment_pages;

		for (uint32_t cell = 0; cell <= page_bytes + 1; cell++) {
			struct span span = span_of(geometry, cell);
			uint32_t begin = 0, cells = 0, at = 0;

			if (!span.cell_bytes) {
				assert_int_equal(span.page_bytes, page_bytes);
				assert_int_equal(span.pages, pages);
				assert_int_equal(span.mixed_pages, 0);
				continue;
			}
			spans++;
			assert_true(span.page_bytes >= page_bytes);
			assert_true(span.mixed_pages <= span.pages);
			/* The largest record is a page, and its header. */
			assert_true(!span.mixed_pages || span.page_bytes >= page_bytes + 28);
			assert_true((span.pages + 1) * span.page_bytes <=
				    buffer_slots(geometry) * page_bytes);
			for (uint32_t page = 0; page < pages; page++) {
				assert_int_equal(
					begin, at > page * page_bytes ? at - page * page_bytes : 0);
				at = page * page_bytes + begin;
				for (uint32_t more = span_next_page(geometry, cell,
								    page + 1 == pages, &begin);
				     more > 0; more--, cells++) {
					assert_true(at + RECORD_HEADER_BYTES <=
						    (page + 1) * page_bytes);
					at += cell;
				}
			}
			assert_true(at <= pages * page_bytes);
			assert_true(span.pages * span.page_cells <= cells);
		}
	}
	assert_true(spans > 4000);
}

/* The records of a full buffer: so many of so many bytes. */
struct many {
	uint32_t bytes, count;
};

enum { MANY = 4 };

/* What the next buffer should have. `pages`: of the full one, that have records. */
static uint32_t best_cell(uint32_t now_cell, uint32_t pages, const struct many many[MANY])
{
	const struct muninn_geometry geometry = geometry_of(4096, 256, 1024);
	const struct span now = span_of(&geometry, now_cell);
	struct span_sizes sizes = { .pages = pages };

	for (int n = 0; n < MANY; n++)
		for (uint32_t count = 0; count < many[n].count; count++)
			span_count(&geometry, many[n].bytes, &sizes);
	return span_choose(&geometry, &now, &sizes);
}

/* Of a buffer without cells, whose pages have as many as fit. */
static uint32_t best_cell_for(uint32_t bytes)
{
	const struct many many[MANY] = { { bytes, 256 * (4096 / bytes) } };

	return best_cell(0, 256, many);
}

static void test_records_span_pages_where_that_pays(void **state)
{
	/* A page of the buffer takes a page of flash and a header, so cells may be larger. */
	static const struct {
		uint32_t bytes, cell_bytes, cells; /* 0: it does not pay */
	} expected[] = {
		{ 240, 0, 0 },  { 512, 0, 0 },        { 820, 825, 1270 },  { 830, 830, 1260 },
		{ 1024, 0, 0 }, { 1036, 1036, 1012 }, { 1200, 1200, 872 }, { 1220, 0, 0 },
		{ 1365, 0, 0 }, { 1366, 1375, 762 },  { 2060, 2062, 508 }, { 3000, 3000, 348 },
		{ 4000, 0, 0 }, { 4096, 0, 0 },
	};
	const struct muninn_geometry geometry = geometry_of(4096, 256, 1024);
	struct muninn_geometry bloom = geometry;

	(void)state;
	bloom.index = INDEX_BLOOM;
	assert_false(index_spans(&bloom, 1));
	assert_true(index_spans(&geometry, 1012));
	/* The index has space for so many entries of a segment. */
	assert_false(index_spans(&geometry, 4096));
	for (size_t n = 0; n < sizeof(expected) / sizeof(expected[0]); n++) {
		struct span span = span_of(&geometry, expected[n].cell_bytes);

		assert_int_equal(best_cell_for(expected[n].bytes), expected[n].cell_bytes);
		if (expected[n].cells)
			assert_int_equal(span.pages * span.page_cells, expected[n].cells);
	}
}

static void test_a_full_buffer_says_whether_the_next_one_has_cells(void **state)
{
	static const struct {
		uint32_t now, pages;
		struct many many[MANY];
		uint32_t cell_bytes;
	} expected[] = {
		/* Sizes that differ by little, and some that are smaller. */
		{ 0, 256, { { 1067, 400 }, { 1060, 368 } }, 1067 },
		{ 0, 256, { { 1036, 768 }, { 28, 80 } }, 1036 },
		{ 0, 256, { { 1036, 768 }, { 28, 300 } }, 0 },
		/* Sizes of which more than three find space together. */
		{ 0, 240, { { 1100, 500 }, { 900, 500 } }, 0 },
		/* Some are larger: they have pages of their own. */
		{ 0, 256, { { 1075, 756 }, { 64, 56 }, { 2076, 6 } }, 1075 },
		{ 0, 256, { { 1075, 612 }, { 4124, 50 }, { 2076, 2 } }, 1075 },
		{ 0, 256, { { 1075, 122 }, { 4124, 214 } }, 0 },
		/* With cells already: what pages would hold without is reckoned. */
		{ 1036, 253, { { 1036, 1012 } }, 1036 },
		{ 1075, 239, { { 1075, 900 }, { 2076, 10 } }, 1075 },
		{ 2062, 254, { { 1075, 508 } }, 1075 },
		{ 1036, 253, { { 1024, 1012 } }, 0 },
		{ 1036, 253, { { 500, 500 }, { 700, 250 }, { 1000, 250 } }, 0 },
		/* There is too little to see; nothing may be larger than an old buffer's cells. */
		{ 1036, 100, { { 600, 300 } }, 1036 },
		{ 0, 100, { { 1036, 300 } }, 0 },
		{ 1366, 100, { { 1366, 300 } }, 0 },
	};

	(void)state;
	for (size_t n = 0; n < sizeof(expected) / sizeof(expected[0]); n++)
		assert_int_equal(best_cell(expected[n].now, expected[n].pages, expected[n].many),
				 expected[n].cell_bytes);
}

/* ---- a full buffer becomes a segment ---- */

enum { PAGES = 256, PAGE_BYTES = 4096, SERIAL = 77 };

struct buffered {
	struct muninn_geometry geometry;
	struct span span;
	uint8_t *bytes;
	struct page_view pages[PAGES];
	uint8_t large_headers[PAGES][RECORD_HEADER_BYTES];
	uint32_t count;
};

static void begin_buffered(struct buffered *buffered, uint32_t cell_bytes)
{
	*buffered = (struct buffered){ .geometry = geometry_of(PAGE_BYTES, PAGES, 1024) };
	buffered->span = span_of(&buffered->geometry, cell_bytes);
	buffered->bytes = calloc(buffered->span.pages, buffered->span.page_bytes);
	assert_non_null(buffered->bytes);
	for (uint32_t page = 0; page < PAGES; page++)
		buffered->pages[page] = (struct page_view){ .serial = SERIAL };
	for (uint32_t page = 0; page < buffered->span.pages; page++)
		buffered->pages[page].data =
			buffered->bytes + (size_t)page * buffered->span.page_bytes;
}

/* Puts a record behind the others of a page; one that is larger than a page has that for itself. */
static void put_record(struct buffered *buffered, uint32_t page, uint64_t key, uint32_t bytes)
{
	struct page_view *view = &buffered->pages[page];
	struct record_header header = {
		.key = { .partition = 1, .identifier = key },
		.sequence = ++buffered->count,
		.length = (uint16_t)(bytes - RECORD_HEADER_BYTES),
	};
	bool is_large = bytes > PAGE_BYTES;
	uint8_t *to = (uint8_t *)(uintptr_t)view->data + view->used;
	uint8_t *own = is_large ? buffered->large_headers[page] : to;
	uint8_t value[PAGE_BYTES] = { 0 };

	for (uint32_t n = 0; n < header.length; n++)
		value[n] = (uint8_t)(buffered->count + n / 256);
	record_header_encode(&header, SERIAL, value, own);
	memcpy(is_large ? to : to + RECORD_HEADER_BYTES, value, header.length);
	view->used += is_large ? header.length : bytes;
	view->large_header = is_large ? own : NULL;
}

/* `keys` in turn; every tenth record is smaller than a cell if `mixed`. */
static void fill(struct buffered *buffered, uint32_t cell_bytes, uint32_t keys, bool mixed)
{
	begin_buffered(buffered, cell_bytes);
	for (uint32_t page = 0; page < buffered->span.pages; page++)
		for (uint32_t n = 0; n < buffered->span.page_cells; n++) {
			uint32_t most = cell_bytes - RECORD_HEADER_BYTES;
			uint32_t length = mixed && (buffered->count + 1) % 10 == 0
						  ? (buffered->count + 1) % most
						  : most;

			put_record(buffered, page, buffered->count % keys,
				   RECORD_HEADER_BYTES + length);
		}
}

/*
 * As many records as the pages take, so many per mille of them larger, mostly up to `largest`. The
 * sizes of all of them are such that headers meet ends of pages.
 */
static void fill_mixed(struct buffered *buffered, uint32_t cell_bytes, uint32_t keys,
		       uint32_t permille, uint32_t largest, uint64_t *random)
{
	const struct span *span;

	begin_buffered(buffered, cell_bytes);
	span = &buffered->span;
	for (uint32_t page = 0; page < span->mixed_pages; page++)
		for (uint32_t left = span->page_bytes, taken = 0; left >= cell_bytes;
		     left -= taken) {
			bool is_larger = below(random, 1000) < permille;
			uint32_t bytes = is_larger ? largest : cell_bytes;

			bytes -= below(random, below(random, 8) ? 3 : 40);
			if (is_larger)
				bytes = (uint32_t)max_u64(bytes, cell_bytes + 1);
			/* One that is larger than a page has it for itself; others as they fit. */
			if (bytes > PAGE_BYTES ? left < span->page_bytes : bytes > left)
				bytes = cell_bytes;
			taken = (uint32_t)max_u64(bytes, cell_bytes);
			if (bytes > PAGE_BYTES)
				taken = left;
			put_record(buffered, page, below(random, keys), bytes);
		}
}

/* Where each record is in the segment: its page, and its key. */
struct placed {
	uint32_t page;
	uint64_t key;
	bool key_is_known, is_larger;
};

static bool is_named(const struct arrangement *arrangement, const struct placed *record)
{
	const struct record_key key = { .partition = 1, .identifier = record->key };
	const struct key_hash hash = key_hash(&key, PAGES);
	uint32_t count, run_pages;
	const struct tag_entry *entries = arrangement_entries(arrangement, &count, &run_pages);

	for (uint32_t n = 0; n < count; n++)
		if (entries[n].tag == tag_of(&hash) &&
		    word_page(entries[n].location) == record->page)
			return true;
	return false;
}

/*
 * Whether an entry names the page of the newest record of each key, and of all of those that are
 * larger; and whether the newest is met first, from the last page on.
 */
static void check_places(const struct arrangement *arrangement, const struct placed *placed,
			 uint32_t count, uint32_t keys)
{
	uint32_t *newest = calloc(keys, sizeof(*newest));

	assert_non_null(newest);
	for (uint32_t n = 1; n <= count; n++) {
		uint32_t *before = &newest[placed[n].key];

		assert_true(!*before || placed[n].page >= placed[*before].page);
		*before = n;
		if (placed[n].is_larger)
			assert_true(is_named(arrangement, &placed[n]));
	}
	for (uint32_t key = 0; key < keys; key++)
		if (newest[key])
			assert_true(is_named(arrangement, &placed[newest[key]]));
	free(newest);
}

/* An entry of a page that has the key of a tag, for each page of runs with it. */
static void check_runs(const struct arrangement *arrangement, const struct placed *placed,
		       uint32_t count)
{
	uint32_t key_entries, run_pages;
	const struct tag_entry *tags =
		arrangement_entries(arrangement, &key_entries, &run_pages) + key_entries;

	for (uint32_t page = 1; page < run_pages; page++)
		assert_true(tags[page].tag >= tags[page - 1].tag);
	for (uint32_t n = 1; n <= count; n++) {
		const struct record_key key = { .partition = 1, .identifier = placed[n].key };
		const struct key_hash hash = key_hash(&key, PAGES);

		if (is_named(arrangement, &placed[n]))
			continue;
		/* It is in a run: from the page whose tag is not above it, up to the next one. */
		assert_true(placed[n].page < run_pages);
		assert_true(tags[placed[n].page].tag <= tag_of(&hash));
		assert_true(placed[n].page + 1 == run_pages ||
			    tags[placed[n].page + 1].tag + UINT64_C(1) >= tag_of(&hash));
	}
}

/* How many pages end in a record that goes on. `keys`: all are below. */
static uint32_t check_segment(const struct buffered *buffered, uint32_t keys)
{
	const struct ribbon_shape shape = ribbon_shape_choose(PAGE_BYTES, PAGES, 1024);
	struct arrangement *arrangement = ribbon_arrange(
		&buffered->geometry, &shape, SERIAL, buffered->pages, buffered->span.cell_bytes);
	uint8_t *segment = calloc(PAGES, PAGE_BYTES);
	struct placed *placed = calloc(buffered->count + UINT32_C(1), sizeof(*placed));
	struct page_view views[PAGES];
	uint32_t count = 0, spanned = 0;

	assert_true(arrangement && segment && placed);
	/* In any order: a page is composed by itself. */
	for (uint32_t n = 0; n < PAGES; n++) {
		uint32_t page = (n * 37 + 11) % PAGES;

		views[page] =
			arrangement_page(arrangement, page, segment + (size_t)page * PAGE_BYTES);
	}
	for (uint32_t page = 0; page < PAGES; page++) {
		struct page_view *view = &views[page];
		struct page_record record;

		assert_true(view->used <= PAGE_BYTES && view->beyond < PAGE_BYTES);
		assert_int_equal(view->begin, page ? views[page - 1].beyond : 0);
		view->follows = page + 1 < PAGES;
		for (uint32_t offset = 0; page_next(view, &offset, &record); count++) {
			struct record_header header;
			struct placed *to = &placed[record_sequence(record.header)];

			assert_int_equal(record.cut, 0);
			assert_true(record_is_intact(record.header, SERIAL, record.value));
			record_header_decode(record.header, &header);
			assert_false(to->key_is_known);
			*to = (struct placed){ .page = page,
					       .key = header.key.identifier,
					       .key_is_known = true,
					       .is_larger = header.length + UINT32_C(28) >
							    buffered->span.cell_bytes };
		}
		spanned += view->beyond > 0;
	}
	assert_int_equal(views[PAGES - 1].beyond, 0);
	assert_int_equal(count, buffered->count);
	check_places(arrangement, placed, count, keys);
	check_runs(arrangement, placed, count);
	arrangement_destroy(arrangement);
	free(segment);
	free(placed);
	return spanned;
}

static void test_every_record_of_a_full_buffer_is_in_the_segment(void **state)
{
	static const uint32_t sizes[] = { 560, 1036, 1200, 1366, 1500, 2060, 3000 };
	static const uint32_t keys[] = { 1, 2, 3, 50, 200, 400, 5000 };

	(void)state;
	for (size_t size = 0; size < sizeof(sizes) / sizeof(sizes[0]); size++)
		for (size_t n = 0; n < sizeof(keys) / sizeof(keys[0]); n++)
			for (int mixed = 0; mixed <= 1; mixed++) {
				struct buffered buffered;

				fill(&buffered, sizes[size], keys[n], mixed);
				assert_true(check_segment(&buffered, keys[n]) > PAGES / 8);
				free(buffered.bytes);
			}
}

/* Any mixture fits: whatever may be put, if it is put to the last page that may be used. */
static void test_larger_records_have_space_in_the_segment(void **state)
{
	static const uint32_t cells[] = { 275, 560, 1036, 1075, 1200, 1375, 1500, 2062, 3000 };
	static const uint32_t largest[] = { 700, 1200, 2076, 4067, 4068, 4069, 4096, 4124 };
	static const uint32_t keys[] = { 1, 3, 60, 300, 3000 };
	static const uint32_t permilles[] = { 10, 100, 500, 1000 };
	uint64_t random = model_setting("MUNINN_SEED", 1);

	(void)state;
	for (size_t cell = 0; cell < sizeof(cells) / sizeof(cells[0]); cell++)
		for (size_t size = 0; size < sizeof(largest) / sizeof(largest[0]); size++)
			for (uint64_t round = 0; round < rounds(20); round++) {
				uint32_t some = keys[below(&random, 5)];
				struct buffered buffered;

				if (largest[size] <= cells[cell])
					continue;
				fill_mixed(&buffered, cells[cell], some,
					   permilles[below(&random, 4)], largest[size], &random);
				check_segment(&buffered, some);
				free(buffered.bytes);
			}
}

/* Records of one key begin in all pages, and leave one cell to another key: no candidate has it. */
static void test_runs_that_fill_all_pages_leave_space_for_heads(void **state)
{
	struct record_header header;
	struct buffered buffered;
	uint8_t *last;

	(void)state;
	fill(&buffered, 1036, 1, false);
	last = buffered.bytes + (buffered.count - 1) * (size_t)1036;
	record_header_decode(last, &header);
	header.key.identifier = 1;
	record_header_encode(&header, SERIAL, last + RECORD_HEADER_BYTES, last);
	check_segment(&buffered, 2);
	free(buffered.bytes);
}

/* Entries of a key with the tag of pages of larger records, which has eight records. */
static uint32_t count_entries_of_highest_tag(bool with_larger)
{
	const struct ribbon_shape shape = ribbon_shape_choose(PAGE_BYTES, PAGES, 1024);
	const struct record_key key = { .partition = 1, .identifier = UINT64_C(4167670618) };
	const struct key_hash hash = key_hash(&key, PAGES);
	const struct tag_entry *entries;
	struct arrangement *arrangement;
	uint32_t count, run_pages, found = 0;
	struct buffered buffered;

	assert_int_equal(tag_of(&hash), UINT32_MAX);
	begin_buffered(&buffered, 1036);
	for (uint32_t n = 0; n < 8; n++)
		put_record(&buffered, n / 4, key.identifier, 1036);
	put_record(&buffered, 2, 1, with_larger ? 2000 : 1000);
	arrangement = ribbon_arrange(&buffered.geometry, &shape, SERIAL, buffered.pages, 1036);
	assert_non_null(arrangement);
	entries = arrangement_entries(arrangement, &count, &run_pages);
	for (uint32_t n = 0; n < count; n++)
		found += entries[n].tag == UINT32_MAX;
	arrangement_destroy(arrangement);
	free(buffered.bytes);
	return found;
}

/* No run of that tag is among pages of larger records, which would be taken for pages of it. */
static void test_the_tag_of_pages_of_larger_records_has_no_run_beside_them(void **state)
{
	(void)state;
	assert_int_equal(count_entries_of_highest_tag(false), 1);
	/* One for each page that it is on. */
	assert_true(count_entries_of_highest_tag(true) >= 2);
}

static void test_an_empty_buffer_with_cells_becomes_an_empty_segment(void **state)
{
	const struct muninn_geometry geometry = geometry_of(PAGE_BYTES, PAGES, 1024);
	const struct ribbon_shape shape = ribbon_shape_choose(PAGE_BYTES, PAGES, 1024);
	struct page_view pages[PAGES] = { { .serial = SERIAL } };
	struct arrangement *arrangement = ribbon_arrange(&geometry, &shape, SERIAL, pages, 1036);
	uint8_t data[PAGE_BYTES];
	uint32_t count, run_pages;

	(void)state;
	assert_non_null(arrangement);
	arrangement_entries(arrangement, &count, &run_pages);
	assert_int_equal(count + run_pages, 0);
	for (uint32_t page = 0; page < PAGES; page++)
		assert_int_equal(arrangement_page(arrangement, page, data).used, 0);
	arrangement_destroy(arrangement);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cells_fill_a_segment_and_their_headers_are_whole),
		cmocka_unit_test(test_records_span_pages_where_that_pays),
		cmocka_unit_test(test_a_full_buffer_says_whether_the_next_one_has_cells),
		cmocka_unit_test(test_every_record_of_a_full_buffer_is_in_the_segment),
		cmocka_unit_test(test_larger_records_have_space_in_the_segment),
		cmocka_unit_test(test_runs_that_fill_all_pages_leave_space_for_heads),
		cmocka_unit_test(test_the_tag_of_pages_of_larger_records_has_no_run_beside_them),
		cmocka_unit_test(test_an_empty_buffer_with_cells_becomes_an_empty_segment),
	};

	return cmocka_run_group_tests_name("muninn, cells", tests, NULL, NULL);
}
