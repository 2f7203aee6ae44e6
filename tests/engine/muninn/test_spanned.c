/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Records that fill pages badly span them: segments are full then. Few may be larger than the
 * others. Whatever is done with the store, each record is found whole, or with an error if a page
 * that it is on is lost. Where many sizes differ, or fit, none spans a page.
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
#include "engine/muninn/buffer_check.h"
#include "engine/muninn/buffer_slots.h"
#include "engine/muninn/lookup.h"
#include "engine/muninn/row.h"
#include "tests/engine/lost_page.h"
#include "tests/engine/muninn/losses.h"
#include "tests/engine/muninn/ribbon_random.h"
#include "tests/engine/muninn/spanned.h"
#include "tests/engine/small_flash.h"

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

/* Segments of 128 pages: with few pages larger records take too much of them. */
static struct engine_options longer_options(void)
{
	struct engine_options longer = options;

	longer.muninn.segment_pages = 16 * GROUP;
	return longer;
}

/* Of a page, of two thirds of it, and of others in between. */
static void run_with_larger(struct model *model, uint32_t transactions, uint64_t *random)
{
	for (uint32_t n = 0; n < transactions; n++) {
		model->length = (uint16_t)(below(random, 30)  ? LENGTH
					   : below(random, 3) ? 300 + below(random, 150)
							      : 512);
		run(model, 1, false);
	}
}

/* How many buffers of a store have cells and a record that is larger. */
static uint32_t count_mixed(struct model *model)
{
	const struct muninn_store *store = inside(model);
	uint32_t count = 0;

	for (uint32_t row = 0; row < store->geometry.rows; row++)
		count += store->rows[row].buffer.is_mixed + store->rows[row].newer.is_mixed;
	return count;
}

static void test_records_that_are_larger_than_the_cells_are_put_beside_others(void **state)
{
	const struct engine_options longer = longer_options();
	uint64_t random = model_setting("MUNINN_SEED", 1);

	(void)state;
	for (int beside = 0; beside <= 1; beside++) {
		struct sealers sealers = { .random = random };
		struct model *model = make(&longer, random);
		uint32_t mixed = 0;

		model->sealers = beside ? &sealers : NULL;
		for (int round = 0; round < 30; round++) {
			run_with_larger(model, 300, &random);
			mixed += count_mixed(model);
			if (round % 10 == 9) {
				model_crash(model);
				model_check_all(model);
				check_versions(model);
			}
		}
		assert_true(mixed > 10);
		assert_true(count_spanned_pages(model->store) > 300);
		assert_int_equal(findings_of(model), 0);
		end(model);
	}
}

/* What is left of a buffer whose program ended says whether it is mixed, and how far it is used. */
static void test_a_buffer_with_larger_records_keeps_its_last_pages_empty(void **state)
{
	const struct engine_options longer = longer_options();
	struct model *model = make(&longer, 11);
	uint64_t random = 5;
	uint32_t seen = 0;

	(void)state;
	for (int n = 0; n < 400; n++) {
		run_with_larger(model, 5, &random);
		if (n % 20 == 19)
			model_crash(model);
		for (uint32_t number = 0; number < 2; number++) {
			const struct buffer *buffer = &inside(model)->rows[number].buffer;
			const struct span *span = &buffer->span;

			if (!buffer->is_mixed)
				continue;
			assert_true(span->cell_bytes && span->mixed_pages < span->pages);
			for (uint32_t page = span->mixed_pages; page < 16 * GROUP; page++)
				assert_int_equal(buffer_page(buffer, page).used, 0);
			seen++;
		}
	}
	assert_true(seen > 50);
	end(model);
}

/* The first buffer that takes puts, has cells and nothing larger, and is full but for the rest. */
static struct buffer *fill_last_pages(struct model *model)
{
	for (int n = 0; n < 4000; n++) {
		model->length = LENGTH;
		run(model, 1, false);
		for (uint32_t number = 0; number < 2; number++) {
			struct row *row = &inside(model)->rows[number];
			struct buffer *buffer = row_has_newer(row) ? &row->newer : &row->buffer;

			if (buffer->span.cell_bytes && !buffer->is_mixed &&
			    buffer_page(buffer, buffer->span.mixed_pages).used)
				return buffer;
		}
	}
	fail_msg("no buffer is so full");
	return NULL;
}

/* Puts a larger record in place of what a page has, as if it had been put before that was. */
static void put_larger_back(struct model *model, struct buffer *buffer, uint32_t page)
{
	const struct record_header header = {
		.key = { .partition = 9, .identifier = 1 },
		.sequence = inside(model)->committed,
		.length = 400,
	};
	uint8_t bytes[RECORD_HEADER_BYTES], value[400] = { 1 };

	record_header_encode(&header, buffer->serial, value, bytes);
	buffer_empty_page(buffer, page);
	buffer_append(buffer, page, &(struct page_record){ .header = bytes, .value = value });
}

/*
 * A failure of the host brings back a larger record that was dropped, or pages that were emptied
 * before there was one. Only the other, which a flush may have promised, stays, and the segment has
 * space for it.
 */
static void test_what_a_failure_of_the_host_brings_back_beside_larger_records_is_dropped(
	void **state)
{
	const struct engine_options longer = longer_options();

	(void)state;
	for (int are_promised = 0; are_promised <= 1; are_promised++) {
		struct model *model = make(&longer, 12);
		struct buffer *buffer = fill_last_pages(model);
		uint32_t first = buffer->span.mixed_pages, last_pages = 0;
		struct row *row = &inside(model)->rows[buffer_row(buffer)];

		if (are_promised)
			buffer_promise(buffer, inside(model)->committed, true);
		put_larger_back(model, buffer, 3);
		assert_true(buffer->is_mixed);
		assert_int_equal(buffer_recover(buffer, row->index, row_has_newer(row),
						inside(model)->committed),
				 1);
		assert_int_equal(buffer->is_mixed, !are_promised);
		for (uint32_t page = first; page < buffer->span.pages; page++)
			last_pages += buffer_page(buffer, page).used > 0;
		assert_int_equal(last_pages > 0, are_promised);
		assert_int_equal(buffer_page(buffer, 3).used > 0, !are_promised);
		end(model);
	}
}

/* What is cut closes no page to what comes: of records that are gone the index knows nothing. */
static void test_a_cut_that_opens_pages_begins_the_index_again(void **state)
{
	const struct engine_options longer = longer_options();
	struct model *model = make(&longer, 13);
	struct buffer *buffer = fill_last_pages(model);
	uint32_t place, page, known = 0;
	struct page_view view = buffer_page(buffer, 0);

	(void)state;
	row_cut(inside(model), buffer_row(buffer), record_sequence(view.data));
	assert_in_range(buffer_used_bytes(buffer), 1, 4 * 512);
	for (uint32_t number = 0; number < MODEL_KEYS; number++) {
		const struct record_key key = model_key(number);
		const struct key_hash hash = key_hash(&key, buffer->geometry->segment_pages);

		place = UINT32_MAX;
		known += segment_index_find(buffer->index, &hash, NULL, &place, &page);
	}
	assert_in_range(known, 1, 4 * 3);
	end(model);
}

static int put_larger(struct model *model, struct buffer *buffer)
{
	const uint8_t value[400] = { 1 };
	const struct new_record record = {
		.header = { .key = { .partition = 9, .identifier = 2 },
			    .sequence = inside(model)->committed,
			    .length = sizeof(value) },
		.value = value,
	};
	const struct key_hash hash = key_hash(&record.header.key, buffer->geometry->segment_pages);

	return buffer_put(buffer, &hash, &record, inside(model)->committed);
}

/* Although there is space for it: the segment may not have that. */
static void test_no_larger_record_is_put_while_the_last_pages_have_any(void **state)
{
	const struct engine_options longer = longer_options();
	struct model *model = make(&longer, 14);
	struct buffer *buffer = fill_last_pages(model);
	struct row *row = &inside(model)->rows[buffer_row(buffer)];

	(void)state;
	buffer_empty_page(buffer, 3);
	buffer_index_again(buffer, row->index, row_has_newer(row));
	assert_int_equal(put_larger(model, buffer), -ENOSPC);
	for (uint32_t page = buffer->span.mixed_pages; page < buffer->span.pages; page++)
		if (buffer_page(buffer, page).used)
			buffer_empty_page(buffer, page);
	buffer_index_again(buffer, row->index, row_has_newer(row));
	assert_int_equal(put_larger(model, buffer), 0);
	assert_true(buffer->is_mixed);
	end(model);
}

/* Of a short segment larger records leave few pages: that these are used says enough. */
static void test_a_short_buffer_that_larger_records_fill_asks_for_no_cells(void **state)
{
	struct model *model = make(&options, 15);
	struct buffer *buffer = &inside(model)->rows[0].buffer;
	uint64_t serial = state_read(inside(model), STATE_NEXT_SERIAL_AT);

	(void)state;
	state_write(inside(model), STATE_NEXT_SERIAL_AT, serial + SERIAL_STEP);
	buffer_start(buffer, serial, 28 + LENGTH, inside(model)->rows[0].index, 0);
	assert_in_range(buffer->span.mixed_pages * 2, 1, buffer->span.pages - 1);
	assert_int_equal(buffer_best_cell(buffer), 28 + LENGTH);
	for (uint32_t page = 0; page < buffer->span.mixed_pages; page++)
		put_larger_back(model, buffer, page);
	assert_int_equal(buffer_best_cell(buffer), 0);
	end(model);
}

/*
 * Cells so long that a page of the buffer takes no page of flash with its header, as an earlier
 * program may have left: the record goes to the next buffer.
 */
static void test_a_record_that_a_page_of_the_buffer_is_too_short_for_goes_to_the_next(void **state)
{
	const struct record_key key = { .partition = 7, .identifier = 1 };
	struct model *model = make(&options, 3);
	struct row *row;
	uint8_t value[512], found[512];
	struct record_info info;

	(void)state;
	memset(value, 7, sizeof(value));
	for (uint32_t number = 0; number < 2; number++) {
		uint64_t serial = state_read(inside(model), STATE_NEXT_SERIAL_AT);

		row = &inside(model)->rows[number];
		state_write(inside(model), STATE_NEXT_SERIAL_AT, serial + SERIAL_STEP);
		buffer_start(&row->buffer, serial, 171, row->index, 0);
		assert_int_equal(row->buffer.span.page_bytes, 513);
		assert_int_equal(row->buffer.span.mixed_pages, 0);
	}
	model->store->operations->begin(model->store, 0);
	assert_int_equal(model->store->operations->put(model->store, &key, 1, 0, value,
						       sizeof(value), RECORD_ROOM_WRITE),
			 0);
	model->store->operations->commit(model->store);
	assert_int_equal(model->store->operations->get(model->store, &key, RECORD_NEWEST, found,
						       sizeof(found), &info),
			 0);
	assert_memory_equal(found, value, sizeof(value));
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
	for (int round = 0; round < 4; round++) {
		const struct engine_options longer = longer_options();
		bool in_pieces = round % 2, with_larger = round / 2;
		struct model *model = make(with_larger ? &longer : &options, 5);
		uint64_t random = 6;
		const struct record_store_operations *operations = model->store->operations;
		uint64_t freed = 0, horizon;
		uint32_t spanned = 0;

		inside(model)->merge_run->fetches_all = in_pieces;
		if (with_larger)
			run_with_larger(model, 6000, &random);
		else
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
			/* Else all that is left is in few of the longer segments. */
			if (with_larger) {
				run_with_larger(model, 60, &random);
				horizon = model->sequence;
			}
			spanned = (uint32_t)max_u64(spanned, count_spanned_pages(model->store));
		}
		assert_true(freed > (with_larger ? 40 : 100));
		assert_true(spanned > 50);
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
		cmocka_unit_test(test_what_spans_pages_is_found_whole_and_as_it_was),
		cmocka_unit_test(test_slots_say_how_long_a_cell_is),
		cmocka_unit_test(test_segments_whose_records_span_pages_are_full),
		cmocka_unit_test(test_records_that_are_larger_than_the_cells_are_put_beside_others),
		cmocka_unit_test(test_a_buffer_with_larger_records_keeps_its_last_pages_empty),
		cmocka_unit_test(
			test_what_a_failure_of_the_host_brings_back_beside_larger_records_is_dropped),
		cmocka_unit_test(test_no_larger_record_is_put_while_the_last_pages_have_any),
		cmocka_unit_test(test_a_short_buffer_that_larger_records_fill_asks_for_no_cells),
		cmocka_unit_test(test_a_cut_that_opens_pages_begins_the_index_again),
		cmocka_unit_test(
			test_a_record_that_a_page_of_the_buffer_is_too_short_for_goes_to_the_next),
		cmocka_unit_test(test_where_sizes_differ_or_fit_no_record_spans_a_page),
		cmocka_unit_test(test_merging_moves_what_spans_pages),
		cmocka_unit_test(test_parity_gives_each_page_back),
		cmocka_unit_test(test_without_parity_a_record_is_lost_with_either_of_its_pages),
		cmocka_unit_test(test_without_nvram_all_that_is_sealed_is_found),
	};

	return cmocka_run_group_tests_name("muninn, records that span pages", tests, NULL, NULL);
}
