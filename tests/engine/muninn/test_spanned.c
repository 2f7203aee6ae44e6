/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Records of one size that fill pages badly span them: segments are full then. Whatever is done
 * with the store, each record is found whole, or with an error if a page that it is on is lost.
 * Where sizes differ, or fit, none spans a page.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>

#include "common/finding.h"
#include "common/log.h"
#include "engine/muninn/index/ribbon/ribbon_hash.h"
#include "engine/muninn/index/ribbon_arrange.h"
#include "engine/muninn/lookup.h"
#include "engine/muninn/row.h"
#include "tests/engine/lost_page.h"
#include "tests/engine/muninn/losses.h"
#include "tests/engine/muninn/spanned.h"
#include "tests/engine/small_flash.h"

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
				assert_false(span_pays(geometry, cell, 1000));
				continue;
			}
			spans++;
			assert_true(span.page_bytes >= page_bytes);
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

static void test_records_span_pages_where_that_pays(void **state)
{
	static const struct {
		uint32_t bytes, cells; /* 0: it does not pay */
	} expected[] = { { 240, 0 },     { 512, 0 },    { 820, 1275 }, { 830, 1260 }, { 1024, 0 },
			 { 1036, 1012 }, { 1200, 872 }, { 1220, 0 },   { 1365, 0 },   { 1366, 765 },
			 { 2060, 508 },  { 3000, 348 }, { 4000, 0 },   { 4096, 0 } };
	const struct muninn_geometry geometry = geometry_of(4096, 256, 1024);
	struct muninn_geometry bloom = geometry;

	(void)state;
	bloom.index = INDEX_BLOOM;
	assert_false(index_spans(&bloom, 1));
	assert_true(index_spans(&geometry, 1012));
	/* The index has space for so many entries of a segment. */
	assert_false(index_spans(&geometry, 4096));
	for (size_t n = 0; n < sizeof(expected) / sizeof(expected[0]); n++) {
		struct span span = span_of(&geometry, expected[n].bytes);

		assert_int_equal(span_pays(&geometry, expected[n].bytes, 1000),
				 expected[n].cells != 0);
		if (expected[n].cells)
			assert_int_equal(span.pages * span.page_cells, expected[n].cells);
	}
	/* Not where many are smaller: they take a cell each. */
	assert_true(span_pays(&geometry, 1036, 900));
	assert_false(span_pays(&geometry, 1036, 800));
}

/* What a full buffer of 4 KiB pages without cells says that the next one should have. */
static uint32_t best_cell(uint32_t largest, uint32_t count, uint32_t small_bytes, uint32_t smalls)
{
	const struct muninn_geometry geometry = geometry_of(4096, 256, 1024);
	uint64_t bytes = (uint64_t)largest * (count - smalls) + (uint64_t)small_bytes * smalls;
	struct buffer buffer = { .geometry = &geometry,
				 .span = span_of(&geometry, 0),
				 .puts = count,
				 .puts_bytes = bytes,
				 .used_bytes = bytes,
				 .largest = largest };
	uint32_t cell = buffer_best_cell(&buffer);

	/* A record that is larger has found no space; most of it is from before opening; not full.
	 */
	buffer.refused_larger = true;
	assert_int_equal(buffer_best_cell(&buffer), 0);
	buffer.refused_larger = false;
	buffer.puts = count / 2;
	buffer.puts_bytes = bytes / 2;
	assert_int_equal(buffer_best_cell(&buffer), 0);
	buffer.used_bytes = bytes / 2;
	assert_int_equal(buffer_best_cell(&buffer), 0);
	return cell;
}

static void test_a_full_buffer_says_whether_the_next_one_has_cells(void **state)
{
	(void)state;
	assert_int_equal(best_cell(1036, 768, 0, 0), 1036);
	/* Sizes that differ by little, and some tombstones. */
	assert_int_equal(best_cell(1067, 768, 1060, 300), 1067);
	assert_int_equal(best_cell(1036, 850, 28, 82), 1036);
	assert_int_equal(best_cell(1036, 960, 28, 192), 0);
	/* Sizes of which more than three find space together. */
	assert_int_equal(best_cell(1100, 1000, 900, 500), 0);
	assert_int_equal(best_cell(1024, 1024, 0, 0), 0);
}

/* ---- a full buffer becomes a segment ---- */

enum { PAGES = 256, PAGE_BYTES = 4096, SERIAL = 77 };

struct buffered {
	struct muninn_geometry geometry;
	struct span span;
	uint8_t *bytes;
	struct page_view pages[PAGES];
	uint32_t count;
};

/* `keys` in turn; every tenth record is smaller than a cell if `mixed`. */
static void fill(struct buffered *buffered, uint32_t cell_bytes, uint32_t keys, bool mixed)
{
	*buffered = (struct buffered){ .geometry = geometry_of(PAGE_BYTES, PAGES, 1024) };
	buffered->span = span_of(&buffered->geometry, cell_bytes);
	buffered->bytes = calloc(buffered->span.pages, buffered->span.page_bytes);
	assert_non_null(buffered->bytes);
	for (uint32_t page = 0; page < PAGES; page++)
		buffered->pages[page] = (struct page_view){ .serial = SERIAL };
	for (uint32_t page = 0; page < buffered->span.pages; page++) {
		struct page_view *view = &buffered->pages[page];

		view->data = buffered->bytes + (size_t)page * buffered->span.page_bytes;
		for (uint32_t n = 0; n < buffered->span.page_cells; n++) {
			struct record_header header = {
				.key = { .partition = 1, .identifier = buffered->count % keys },
				.sequence = ++buffered->count,
				.length = (uint16_t)(cell_bytes - RECORD_HEADER_BYTES),
			};
			uint8_t value[PAGE_BYTES];
			uint8_t *to = (uint8_t *)(uintptr_t)view->data + view->used;

			if (mixed && buffered->count % 10 == 0)
				header.length = (uint16_t)(buffered->count % header.length);
			memset(value, (int)buffered->count, sizeof(value));
			record_header_encode(&header, SERIAL, value, to);
			memcpy(to + RECORD_HEADER_BYTES, value, header.length);
			view->used += RECORD_HEADER_BYTES + header.length;
		}
	}
}

/* Whether an entry names the page of the newest record of each key. */
static void check_entries(const struct arrangement *arrangement, const uint32_t *pages,
			  const struct buffered *buffered, uint32_t keys)
{
	uint32_t count, run_pages;
	const struct tag_entry *entries = arrangement_entries(arrangement, &count, &run_pages);

	for (uint32_t key = 0; key < keys && key < buffered->count; key++) {
		const struct record_key record_key = { .partition = 1, .identifier = key };
		const struct key_hash hash = key_hash(&record_key, PAGES);
		uint32_t newest = buffered->count - (buffered->count - 1 - key) % keys;
		bool named = false;

		for (uint32_t n = 0; n < count && !named; n++)
			named = entries[n].tag == tag_of(&hash) &&
				word_page(entries[n].location) == pages[newest];
		assert_true(named);
	}
}

static void check_segment(const struct buffered *buffered, uint32_t keys)
{
	const struct ribbon_shape shape = ribbon_shape_choose(PAGE_BYTES, PAGES, 1024);
	struct arrangement *arrangement = ribbon_arrange(
		&buffered->geometry, &shape, SERIAL, buffered->pages, buffered->span.cell_bytes);
	uint8_t *segment = calloc(PAGES, PAGE_BYTES);
	uint32_t *pages = calloc(buffered->count + UINT32_C(1), sizeof(*pages));
	struct page_view views[PAGES];
	uint32_t count = 0, spanned = 0;

	assert_true(arrangement && segment && pages);
	/* In any order: a page is composed by itself. */
	for (uint32_t n = 0; n < PAGES; n++) {
		uint32_t page = (n * 37 + 11) % PAGES;

		views[page] =
			arrangement_page(arrangement, page, segment + (size_t)page * PAGE_BYTES);
	}
	for (uint32_t page = 0; page < PAGES; page++) {
		struct page_view *view = &views[page];
		struct page_record record;

		assert_true(view->used <= PAGE_BYTES);
		assert_int_equal(view->begin, page ? views[page - 1].beyond : 0);
		view->follows = page + 1 < PAGES;
		for (uint32_t offset = 0; page_next(view, &offset, &record); count++) {
			assert_int_equal(record.cut, 0);
			assert_true(record_is_intact(record.header, SERIAL, record.value));
			assert_int_equal(pages[record_sequence(record.header)], 0);
			pages[record_sequence(record.header)] = page;
		}
		spanned += view->beyond > 0;
	}
	assert_int_equal(views[PAGES - 1].beyond, 0);
	assert_int_equal(count, buffered->count);
	assert_true(spanned > PAGES / 8);
	check_entries(arrangement, pages, buffered, keys);
	arrangement_destroy(arrangement);
	free(segment);
	free(pages);
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
				check_segment(&buffered, keys[n]);
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
	check_segment(&buffered, 0);
	free(buffered.bytes);
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

/* ---- a store ---- */

/* With 188 bytes each, two records fit in a page, and 21 in a segment of eight. */
enum { LENGTH = 160, GROUP = 8 };

static const struct nand_geometry nand = SMALL_FLASH_WITH_SPARE(2000, 256);
static const struct engine_options options = { .muninn = { .index = INDEX_RIBBON,
							   .rows = 2,
							   .segment_pages = GROUP,
							   .record_bytes = 128,
							   .parity = 1 } };

static void no_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static struct model *make(const struct engine_options *own, uint64_t seed)
{
	struct model *model = calloc(1, sizeof(*model));

	assert_non_null(model);
	log_configure(no_log, LOG_LEVEL_ERROR);
	model->random = seed;
	model->length = LENGTH;
	model_open(model, &nand, own);
	return model;
}

static void run(struct model *model, uint32_t transactions, bool ends)
{
	for (uint32_t n = 0; n < transactions; n++)
		assert_true(model_transaction(model, !ends || n % 20, ends && n % 200 == 199));
}

static void check_versions(struct model *model)
{
	for (uint32_t number = 10; number < MODEL_KEYS; number++)
		model_check_versions(model, number, RECORD_NEWEST);
	assert_int_equal(model_check_run(model, model_key(20), 130, RECORD_NEWEST), 0);
}

static void pass_over(void *context, const struct finding *finding)
{
	(void)context;
	(void)finding;
}

/* What a check of all that is stored finds. */
static uint64_t findings_of(struct model *model)
{
	struct findings findings = { .take = pass_over };
	struct record_check check = { .findings = &findings };

	assert_int_equal(model->store->operations->check(model->store, &check), 0);
	return findings.count;
}

static void end(struct model *model)
{
	model_close(model);
	log_configure(NULL, LOG_LEVEL_INFO);
}

static void test_what_spans_pages_is_found_whole_and_as_it_was(void **state)
{
	const uint64_t seed = model_setting("MUNINN_SEED", 1);
	struct sealers sealers = { .random = seed };

	(void)state;
	for (int beside = 0; beside <= 1; beside++) {
		struct model *model = make(&options, seed);

		model->sealers = beside ? &sealers : NULL;
		for (int round = 0; round < 8; round++) {
			run(model, 250, true);
			model_check_all(model);
			check_versions(model);
		}
		assert_true(count_spanned_pages(model->store) > 400);
		assert_int_equal(findings_of(model), 0);
		model_crash(model);
		check_versions(model);
		end(model);
	}
}

/* As docs/format.md says: the slots of a buffer with cells tell how long these are. */
static void test_slots_say_how_long_a_cell_is(void **state)
{
	struct model *model = make(&options, 9);
	struct buffer *buffer;
	uint32_t claimed = 0;

	(void)state;
	do {
		struct row *row = &inside(model)->rows[0];

		run(model, 1, false);
		buffer = row_has_newer(row) ? &row->newer : &row->buffer;
	} while (!buffer->span.cell_bytes || !buffer_used_bytes(buffer));
	for (uint32_t slot = 0; slot < buffer_slots(buffer->geometry); slot++) {
		const uint8_t *header =
			buffer->area + buffer->geometry->slot_headers_at + 64 * (uint64_t)slot;

		if (get_le64(header + 8) != buffer->serial)
			continue;
		assert_int_equal(get_le16(header + 56), 28 + LENGTH);
		assert_in_range(slot, 0, buffer->span.pages);
		claimed++;
	}
	assert_true(claimed > 0);
	/* Nine pages of 512 bytes are eight slots of three cells. */
	assert_int_equal(buffer->span.pages, 7);
	assert_int_equal(buffer->span.page_bytes, 3 * 188);
	end(model);
}

static void test_segments_whose_records_span_pages_are_full(void **state)
{
	struct model *model = make(&options, 2);
	struct record_statistics statistics = { 0 };

	(void)state;
	run(model, 1500, false);
	model->store->operations->statistics(model->store, &statistics);
	/* Of 4,096 bytes without that 2 records of 188 in each page: 73 %. */
	end(model);
}

/* A larger one ends the segment, and the next one takes it. */
static void test_a_record_that_is_larger_than_the_cells_is_put_all_the_same(void **state)
{
	struct model *model = make(&options, 3);

	(void)state;
	run(model, 200, false);
	for (int n = 0; n < 300; n++) {
		/* Of a page, and of two thirds of it. */
		model->length = n % 3 ? LENGTH : n % 2 ? 512 : 300;
		run(model, n % 3 ? 20 : 1, false);
	}
	assert_true(count_spanned_pages(model->store) > 100);
	model_check_all(model);
	check_versions(model);
	assert_int_equal(findings_of(model), 0);
	end(model);
}

static void test_where_sizes_differ_or_fit_no_record_spans_a_page(void **state)
{
	(void)state;
	for (int fits = 0; fits <= 1; fits++) {
		struct model *model = make(&options, 4);

		/* 28 + 142: three in a page. */
		model->length = fits ? 142 : 0;
		run(model, 800, true);
		assert_int_equal(count_spanned_pages(model->store), 0);
		end(model);
	}
}

static uint32_t keep_all(void *context, const struct record_key *key,
			 const struct record_info *info, uint64_t *bounds, uint32_t max)
{
	(void)context;
	(void)key;
	if (max)
		bounds[0] = info->sequence;
	return 1;
}

static void test_merging_moves_what_spans_pages(void **state)
{
	const struct record_keep all = { .bounds = keep_all }, present = { 0 };

	(void)state;
	for (int in_pieces = 0; in_pieces <= 1; in_pieces++) {
		struct model *model = make(&options, 5);
		const struct record_store_operations *operations = model->store->operations;
		uint64_t freed = 0, horizon;

		inside(model)->merge_run->fetches_all = in_pieces;
		run(model, 1000, false);
		horizon = model->sequence;
		for (int n = 0; n < 300; n++) {
			struct record_merge merge = { .live_permille_max = 1000,
						      .segments_wanted = 2 };
			const struct record_keep *keep = n % 5 == 4 ? &all : &present;
			int result = in_pieces ? 1 : operations->merge(model->store, keep, &merge);

			while (result == 1) {
				result = operations->merge_step(model->store, keep, &merge);
				if (result == 1)
					operations->merge_run(model->store);
			}
			assert_true(result == 0 || result == -EAGAIN);
			freed += merge.segments_freed;
			if (n % 50 == 0)
				model_check_all(model);
		}
		assert_true(freed > 100);
		assert_true(count_spanned_pages(model->store) > 50);
		model_check_all(model);
		for (uint32_t number = 10; number < MODEL_KEYS; number++)
			model_check_versions_since(model, number, RECORD_NEWEST, horizon);
		assert_int_equal(findings_of(model), 0);
		model_crash(model);
		model_check_all(model);
		end(model);
	}
}

/* ---- lost pages ---- */

static void lose_everywhere(struct model *model, uint32_t page)
{
	const struct muninn_store *store = inside(model);

	for (uint32_t segment = 0; segment < store->geometry.segments; segment++)
		if (store->segment_rows[segment] != NO_ROW)
			lose_page(model->nand, segment_page(&store->geometry, segment) + page);
}

static void test_parity_gives_each_page_back(void **state)
{
	struct model *model = make(&options, 6);

	(void)state;
	run(model, 600, false);
	assert_true(count_spanned_pages(model->store) > 100);
	for (uint32_t page = 0; page < GROUP; page++) {
		lose_everywhere(model, page);
		model_check_all(model);
		check_versions(model);
		lose_everywhere(model, page);
	}
	end(model);
}

/* Notes the keys of records that are on a page, whole or not. */
static void note_page(struct model *model, uint64_t page, bool only_last, bool *lost)
{
	uint8_t data[512], spare_bytes[256];
	const struct nand_page_io io = { .page = page, .data = data, .spare = spare_bytes };
	struct page_record record;
	struct page_spare spare;
	uint32_t offset = 0;

	assert_int_equal(nand_read(model->nand, NAND_CAUSE_USER, &io, 1), 0);
	assert_true(page_spare_decode(spare_bytes, sizeof(data), &spare));
	const struct page_view view = page_view_of(&spare, page, data);

	while (page_next(&view, &offset, &record))
		for (uint32_t number = 0; number < MODEL_KEYS; number++) {
			const struct record_key key = model_key(number);
			const struct model_version *version =
				model_find(model, number, RECORD_NEWEST);

			lost[number] |= version && (!only_last || record.cut) &&
					record_has_key(record.header, &key) &&
					record_sequence(record.header) == version->sequence;
		}
	if (!only_last && view.begin)
		note_page(model, page - 1, true, lost);
}

/* Whether a look-up ends with an error; if not, it finds what the model says. */
static bool is_refused(struct model *model, uint32_t number)
{
	const struct record_key key = model_key(number);
	uint8_t value[MODEL_VALUE_MAX];
	struct record_info info;
	int result = model->store->operations->get(model->store, &key, RECORD_NEWEST, value,
						   sizeof(value), &info);

	if (result != -EBADMSG)
		model_check_key(model, number, RECORD_NEWEST);
	return result == -EBADMSG;
}

/* Exactly what was on a page, or had its end there, can't be read; a check says what is wrong. */
static void test_without_parity_a_record_is_lost_with_either_of_its_pages(void **state)
{
	struct engine_options none = options;
	uint32_t refused = 0, by_their_end = 0;

	(void)state;
	none.muninn.parity = MUNINN_PARITY_NONE;
	struct model *model = make(&none, 7);
	struct sealed_segment last;

	run(model, 400, false);
	assert_int_equal(row_index_read_last(inside(model)->rows[0].index, &last, 1), 1);
	for (uint32_t page = 0; page < GROUP; page++) {
		uint64_t number = segment_page(&inside(model)->geometry, last.segment) + page;
		bool lost[MODEL_KEYS] = { false }, ends[MODEL_KEYS] = { false };

		note_page(model, number, false, lost);
		if (page)
			note_page(model, number - 1, true, ends);
		lose_page(model->nand, number);
		for (uint32_t key = 0; key < MODEL_KEYS; key++) {
			assert_int_equal(is_refused(model, key), lost[key]);
			refused += lost[key];
			by_their_end += ends[key];
		}
		assert_true(findings_of(model) > 0);
		lose_page(model->nand, number);
	}
	assert_true(refused > 10 && by_their_end >= 2);
	assert_int_equal(findings_of(model), 0);
	end(model);
}

/* Each sealed record is found without NVRAM, too. */
static void test_without_nvram_all_that_is_sealed_is_found(void **state)
{
	struct model *model = make(&options, 8);
	struct record_statistics before = { 0 }, behind = { 0 };
	struct error_text error = { "" };
	uint8_t *nvram;
	uint64_t bytes;

	(void)state;
	run(model, 600, true);
	model->store->operations->statistics(model->store, &before);
	nvram = nand_nvram(model->nand, &bytes);
	model->store->operations->close(model->store, true);
	memset(nvram, 0, bytes);
	model->options.records.recover_without_nvram = true;
	if (engine_open_records(model->nand, &model->options, &model->store, &error))
		fail_msg("%s", error.text);
	model->store->operations->statistics(model->store, &behind);
	assert_int_equal(behind.sealed_records, before.sealed_records);
	assert_true(count_spanned_pages(model->store) > 100);
	assert_int_equal(findings_of(model), 0);
	end(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cells_fill_a_segment_and_their_headers_are_whole),
		cmocka_unit_test(test_records_span_pages_where_that_pays),
		cmocka_unit_test(test_a_full_buffer_says_whether_the_next_one_has_cells),
		cmocka_unit_test(test_every_record_of_a_full_buffer_is_in_the_segment),
		cmocka_unit_test(test_runs_that_fill_all_pages_leave_space_for_heads),
		cmocka_unit_test(test_an_empty_buffer_with_cells_becomes_an_empty_segment),
		cmocka_unit_test(test_what_spans_pages_is_found_whole_and_as_it_was),
		cmocka_unit_test(test_slots_say_how_long_a_cell_is),
		cmocka_unit_test(test_segments_whose_records_span_pages_are_full),
		cmocka_unit_test(test_a_record_that_is_larger_than_the_cells_is_put_all_the_same),
		cmocka_unit_test(test_where_sizes_differ_or_fit_no_record_spans_a_page),
		cmocka_unit_test(test_merging_moves_what_spans_pages),
		cmocka_unit_test(test_parity_gives_each_page_back),
		cmocka_unit_test(test_without_parity_a_record_is_lost_with_either_of_its_pages),
		cmocka_unit_test(test_without_nvram_all_that_is_sealed_is_found),
	};

	return cmocka_run_group_tests_name("muninn, records that span pages", tests, NULL, NULL);
}
