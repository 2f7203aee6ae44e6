/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Lost pages of sealed segments: parity gives back as many of a group as it is for; of more, the
 * records that were on them are answered by an error, and nothing else is. Merging moves away what
 * is beside a lost page.
 *
 * Runs for each index.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>

#include "common/log.h"
#include "engine/muninn/lookup.h"
#include "engine/muninn/repair.h"
#include "engine/muninn/roots.h"
#include "engine/muninn/row.h"
#include "tests/engine/lost_page.h"
#include "tests/engine/muninn/losses.h"
#include "tests/engine/small_flash.h"

enum { GROUP = 16 };

/* As the model's, with room for parity in the spare areas. */
static const struct nand_geometry nand = SMALL_FLASH_WITH_SPARE(1200, 256);

/*
 * Of a key whose filter says that it may be on a lost page nobody knows. So filters that are hardly
 * ever wrong, and where it matters no transaction that is aborted, which leaves its keys in them.
 */
static const struct engine_options options = {
	.muninn = { .rows = 2,
		    .segment_pages = GROUP,
		    .record_bytes = 128,
		    .parity = 1,
		    .bloom.fpr_millionths = 1 },
};

static void no_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static uint64_t sealed_records(struct model *model)
{
	struct record_statistics statistics = { 0 };

	model->store->operations->statistics(model->store, &statistics);
	return statistics.sealed_records;
}

/* ---- a device ---- */

static struct model *make(const struct engine_options *own, uint64_t seed, uint32_t transactions,
			  bool aborts)
{
	struct model *model = calloc(1, sizeof(*model));

	assert_non_null(model);
	log_configure(no_log, LOG_LEVEL_ERROR);
	print_message("seed %llu\n", (unsigned long long)seed);
	model->random = seed;
	model_open(model, &nand, own);
	for (uint32_t n = 0; n < transactions; n++)
		if (!model_transaction(model, !aborts || n % 20, aborts && n % 300 == 299))
			break;
	return model;
}

static void end(struct model *model)
{
	model_close(model);
	log_configure(NULL, LOG_LEVEL_INFO);
}

/* Calls `each` for all segments of records. */
static void for_segments(struct model *model,
			 void (*each)(struct model *model, uint32_t segment, void *context),
			 void *context)
{
	struct muninn_store *store = inside(model);

	for (uint32_t segment = 0; segment < store->geometry.segments; segment++)
		if (store->segment_rows[segment] != NO_ROW)
			each(model, segment, context);
}

static uint64_t page_of(const struct model *model, uint32_t segment, uint32_t page)
{
	return segment_page(&inside(model)->geometry, segment) + page;
}

static void lose_one(struct model *model, uint32_t segment, void *context)
{
	uint32_t *lost = context;

	lose_page(model->nand, page_of(model, segment, model_below(model, GROUP)));
	++*lost;
}

static void lose_all_of(struct model *model, uint32_t segment, void *context)
{
	const uint32_t *page = context;

	lose_page(model->nand, page_of(model, segment, *page));
}

static void check_versions(struct model *model)
{
	for (uint32_t number = 10; number < MODEL_KEYS; number++)
		model_check_versions(model, number, RECORD_NEWEST);
	assert_int_equal(model_check_run(model, model_key(20), 130, RECORD_NEWEST), 0);
}

/* ---- what parity gives back ---- */

static void test_each_page_of_all_segments_can_be_lost(void **state)
{
	struct model *model = make(&options, 1, 600, true);
	uint64_t repaired, lost;

	(void)state;
	for (uint32_t page = 0; page < GROUP; page++) {
		for_segments(model, lose_all_of, &page);
		model_check_all(model);
		check_versions(model);
		for_segments(model, lose_all_of, &page);
	}
	repair_count(inside(model), &repaired, &lost);
	assert_true(repaired > 1000);
	assert_int_equal(lost, 0);
	end(model);
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

/* Moves what is beside lost pages. Returns how many segments. */
static uint32_t mend_all(struct model *model, bool in_pieces)
{
	const struct record_store_operations *operations = model->store->operations;
	const struct record_keep keep = { .bounds = keep_all };
	uint32_t moved = 0, in_vain = 0;

	while (operations->damaged(model->store)) {
		struct record_merge merge = { .segments_wanted = 1,
					      .live_permille_max = 1000,
					      .choice = RECORD_MERGE_MENDED };
		int result = in_pieces ? 1 : operations->merge(model->store, &keep, &merge);

		while (result == 1) {
			result = operations->merge_step(model->store, &keep, &merge);
			if (result == 1)
				operations->merge_run(model->store);
		}
		/* With so many lost pages a step may have read as much as it may. */
		in_vain = result == -EAGAIN ? in_vain + 1 : 0;
		assert_true(result == 0 || (result == -EAGAIN && in_vain < 16));
		/* Images and the root are written anew, which frees nothing. */
		assert_true(merge.segments_freed <= 1);
		moved += merge.segments_freed;
	}
	return moved;
}

/* The device is full: so many segments that another transaction gets no space. */
static void test_one_page_of_every_group_is_lost_and_all_is_read_and_moved(void **state)
{
	(void)state;
	for (int in_pieces = 0; in_pieces <= 1; in_pieces++) {
		struct model *model = make(&options, 2, UINT32_MAX, true);
		struct record_scrub scrub;
		uint32_t lost = 0, moved = 0;

		for_segments(model, lose_one, &lost);
		assert_true(lost > 400);
		assert_true(lose_of_every_image(model) > 4);
		lose_of_last_root(model);
		model_check_all(model);
		check_versions(model);
		do {
			scrub = scrub_all(model);
			assert_int_equal(scrub.lost, 0);
			moved += mend_all(model, in_pieces);
		} while (scrub.repaired);
		assert_int_equal(moved, lost);
		assert_true(roots_last_is_whole(inside(model)));
		model_check_all(model);
		model_crash(model);
		model_check_all(model);
		end(model);
	}
}

/* Pages that are programmed: of the ring of roots, and of segments that images are in. */
static uint64_t pages_of_no_row(struct model *model)
{
	struct muninn_store *store = inside(model);
	uint64_t pages = 0;

	for (uint32_t segment = 0; segment < store->geometry.segments; segment++) {
		uint32_t end;

		if (segment >= store->geometry.root_segments && !store->images[segment])
			continue;
		assert_int_equal(
			segment_end(store->nand, store->geometry.segment_blocks, segment, &end), 0);
		pages += end;
	}
	return pages;
}

static void test_scrubbing_reads_all_that_is_in_use_and_nothing_else(void **state)
{
	struct model *model = make(&options, 3, UINT32_MAX, true);
	struct record_statistics statistics = { 0 };
	struct record_scrub scrub;

	(void)state;
	model->store->operations->statistics(model->store, &statistics);
	assert_true(statistics.tables > 0);
	scrub = scrub_all(model);
	assert_int_equal(scrub.read, statistics.segments_sealed * GROUP + pages_of_no_row(model));
	assert_int_equal(scrub.repaired + scrub.lost, 0);
	assert_int_equal(model->store->operations->damaged(model->store), 0);
	end(model);
}

static void test_nvram_is_lost_and_one_page_of_every_group_too(void **state)
{
	struct model *model = make(&options, 4, 800, true);
	struct error_text error = { "" };
	uint64_t before = sealed_records(model), bytes;
	uint8_t *nvram = nand_nvram(model->nand, &bytes);
	uint32_t lost = 0;

	(void)state;
	for_segments(model, lose_one, &lost);
	model->store->operations->close(model->store, true);
	memset(nvram, 0, bytes);
	model->options.records.recover_without_nvram = true;
	if (engine_open_records(model->nand, &model->options, &model->store, &error))
		fail_msg("%s", error.text);
	assert_int_equal(sealed_records(model), before);
	assert_int_equal(inside(model)->geometry.parity.losses, 1);
	end(model);
}

/* ---- what is lost for good ---- */

/* Of each key whether a look-up ends with an error, as it must where the newest was lost. */
struct losses {
	bool expected[MODEL_KEYS];
};

/* Whether the version that a reader finds is on a page. */
static bool is_on_page(struct model *model, uint64_t page, const struct record_key *key,
		       uint64_t sequence)
{
	uint8_t data[512], spare_bytes[256];
	const struct nand_page_io io = { .page = page, .data = data, .spare = spare_bytes };
	struct page_spare spare;
	struct page_record record;
	uint32_t offset = 0;

	assert_int_equal(nand_read(model->nand, NAND_CAUSE_USER, &io, 1), 0);
	assert_true(page_spare_decode(spare_bytes, 512, &spare));
	const struct page_view view = page_view_of(&spare, page, data);

	while (page_next(&view, &offset, &record))
		if (record_has_key(record.header, key) &&
		    record_sequence(record.header) == sequence)
			return true;
	return false;
}

static void expect_losses(struct model *model, const uint64_t *pages, uint32_t count,
			  struct losses *losses)
{
	*losses = (struct losses){ 0 };
	for (uint32_t number = 0; number < MODEL_KEYS; number++) {
		const struct model_version *version = model_find(model, number, RECORD_NEWEST);
		const struct record_key key = model_key(number);

		for (uint32_t n = 0; version && n < count; n++)
			losses->expected[number] |=
				is_on_page(model, pages[n], &key, version->sequence);
	}
}

/* What a look-up of the newest gives is what the model says. */
static void check_found(const struct model *model, uint32_t number, int result,
			const struct record_info *info, const uint8_t *value)
{
	const struct model_version *version = model_find(model, number, RECORD_NEWEST);
	uint8_t wanted[MODEL_VALUE_MAX];

	if (!version || (result == -ENOENT && version->flags & RECORD_TOMBSTONE)) {
		assert_int_equal(result, -ENOENT);
		return;
	}
	assert_int_equal(result, 0);
	assert_int_equal(info->sequence, version->sequence);
	assert_int_equal(info->length, version->length);
	model_fill(wanted, version->length, version->fill);
	assert_memory_equal(value, wanted, version->length);
}

/* Exactly those keys that were on the pages end with an error. Returns how many. */
static uint32_t check_losses(struct model *model, const struct losses *losses)
{
	uint32_t count = 0;

	for (uint32_t number = 0; number < MODEL_KEYS; number++) {
		const struct record_key key = model_key(number);
		uint8_t value[MODEL_VALUE_MAX];
		struct record_info info;
		int result = model->store->operations->get(model->store, &key, RECORD_NEWEST, value,
							   sizeof(value), &info);

		if (losses->expected[number])
			assert_int_equal(result, -EBADMSG);
		else
			check_found(model, number, result, &info, value);
		count += losses->expected[number];
	}
	return count;
}

static uint32_t newest_segment(struct model *model)
{
	struct muninn_store *store = inside(model);
	struct sealed_segment last;

	assert_int_equal(row_index_read_last(store->rows[0].index, &last, 1), 1);
	return last.segment;
}

static void test_two_pages_of_a_group_are_lost_and_what_was_on_them_alone(void **state)
{
	struct model *model = make(&options, 5, 300, false);
	uint32_t segment = newest_segment(model), affected = 0;
	struct losses losses;
	uint64_t pages[2];

	(void)state;
	for (uint32_t first = 0; first < GROUP; first++) {
		pages[0] = page_of(model, segment, first);
		pages[1] = page_of(model, segment,
				   (first + 1 + model_below(model, GROUP - 1)) % GROUP);
		expect_losses(model, pages, 2, &losses);
		for (int n = 0; n < 2; n++)
			lose_page(model->nand, pages[n]);
		affected += check_losses(model, &losses);
		for (int n = 0; n < 2; n++)
			lose_page(model->nand, pages[n]);
	}
	assert_true(affected > 20);
	end(model);
}

static void test_without_parity_what_was_on_a_lost_page_is_lost_alone(void **state)
{
	struct engine_options none = options;
	struct losses losses;

	(void)state;
	none.muninn.parity = MUNINN_PARITY_NONE;
	struct model *model = make(&none, 6, 300, false);
	uint64_t page = page_of(model, newest_segment(model), 3);

	expect_losses(model, &page, 1, &losses);
	lose_page(model->nand, page);
	check_losses(model, &losses);
	assert_int_equal(model->store->operations->damaged(model->store), 0);
	end(model);
}

/* Other segments are merged, and that one stays, however often somebody merges. */
static void test_a_segment_with_pages_lost_for_good_stays_and_others_are_merged(void **state)
{
	struct model *model = make(&options, 7, UINT32_MAX, false);
	const struct record_keep keep = { .bounds = NULL };
	struct record_merge merge = { .live_permille_max = 900 };
	uint32_t segment = newest_segment(model);
	const uint64_t pages[2] = { page_of(model, segment, 2), page_of(model, segment, 9) };
	struct losses losses;

	(void)state;
	expect_losses(model, pages, 2, &losses);
	for (int n = 0; n < 2; n++)
		lose_page(model->nand, pages[n]);
	check_losses(model, &losses);
	for (uint32_t n = 0; n < 1000; n++) {
		int result = model->store->operations->merge(model->store, &keep, &merge);

		assert_true(result == 0 || result == -EAGAIN || result == -ENOSPC);
	}
	assert_true(merge.segments_freed > 100);
	assert_int_equal(inside(model)->segment_rows[segment], 0);
	check_losses(model, &losses);
	end(model);
}

/* One page that can be made again, and in the same segment two of another group that can't. */
static void test_what_is_to_be_moved_and_can_t_is_given_up(void **state)
{
	struct model *model = make(&options, 8, 300, false);
	const struct record_store_operations *operations = model->store->operations;
	const struct record_keep keep = { .bounds = keep_all };
	uint32_t segment = newest_segment(model);
	struct record_merge merge = { .live_permille_max = 1000, .choice = RECORD_MERGE_MENDED };

	(void)state;
	lose_page(model->nand, page_of(model, segment, 1));
	scrub_all(model);
	assert_int_equal(operations->damaged(model->store), 1);
	lose_page(model->nand, page_of(model, segment, 4));
	assert_int_equal(operations->merge(model->store, &keep, &merge), -EBADMSG);
	assert_int_equal(operations->damaged(model->store), 0);
	assert_int_equal(operations->merge(model->store, &keep, &merge), -EAGAIN);
	assert_true(repair_is_lost(inside(model), segment));
	end(model);
}

/* ---- what was given up ---- */

static int merge_one(struct model *model, uint64_t *freed)
{
	const struct record_keep keep = { .bounds = NULL };
	struct record_merge merge = { .segments_wanted = 1, .live_permille_max = 1000 };
	int result = model->store->operations->merge(model->store, &keep, &merge);

	*freed = merge.segments_freed;
	return result;
}

static void give_up(struct model *model, uint32_t segment, void *context)
{
	const uint32_t *except = context;

	if (segment != *except)
		repair_give_up(inside(model), segment);
}

static void count_given_up(struct model *model, uint32_t segment, void *context)
{
	uint32_t *count = context;

	*count += repair_is_lost(inside(model), segment);
}

/* Segments that were given up as damaged are tried again, but not before there is nothing else. */
static void test_what_was_given_up_is_merged_when_nothing_else_is_left(void **state)
{
	struct model *model = make(&options, 21, 600, false);
	struct muninn_store *store = inside(model);
	uint32_t except = 0, before = 0, after = 0;
	uint64_t freed;

	(void)state;
	while (store->segment_rows[except] == NO_ROW)
		except++;
	for_segments(model, give_up, &except);
	for_segments(model, count_given_up, &before);
	assert_true(before > 10);
	assert_int_equal(merge_one(model, &freed), 0);
	assert_int_equal(freed, 1);
	assert_int_equal(store->segment_rows[except], NO_ROW);
	for_segments(model, count_given_up, &after);
	assert_int_equal(after, before);
	/* Each run may try once more. */
	except = NO_SEGMENT;
	for (int run = 0; run < 3; run++) {
		for_segments(model, give_up, &except);
		assert_int_equal(merge_one(model, &freed), 0);
		assert_int_equal(freed, 1);
	}
	model_check_all(model);
	end(model);
}

static void note(struct model *model, uint32_t segment, void *context)
{
	bool *noted = context;

	(void)model;
	noted[segment] = true;
}

/* How many of them are no more in use. */
static uint32_t count_gone(const struct model *model, const bool *noted)
{
	const struct muninn_store *store = inside(model);
	uint32_t gone = 0;

	for (uint32_t segment = 0; segment < store->geometry.segments; segment++)
		gone += noted[segment] && store->segment_rows[segment] == NO_ROW;
	return gone;
}

/* What is lost stays, however often that is tried, and goes when it can be read after all. */
static void test_what_is_still_lost_stays_and_is_tried_again(void **state)
{
	struct model *model = make(&options, 22, 600, false);
	bool noted[600] = { false };
	uint32_t pages[] = { 3, 9 };
	uint64_t freed;

	(void)state;
	for_segments(model, note, noted);
	for (int n = 0; n < 2; n++)
		for_segments(model, lose_all_of, &pages[n]);
	for (int n = 0; n < 50; n++)
		merge_one(model, &freed);
	assert_int_equal(count_gone(model, noted), 0);
	for (uint32_t segment = 0; segment < 600; segment++)
		for (int n = 0; noted[segment] && n < 2; n++)
			lose_page(model->nand, page_of(model, segment, pages[n]));
	for (int n = 0; n < 50; n++)
		merge_one(model, &freed);
	assert_true(count_gone(model, noted) > 10);
	model_check_all(model);
	end(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_page_of_all_segments_can_be_lost),
		cmocka_unit_test(test_one_page_of_every_group_is_lost_and_all_is_read_and_moved),
		cmocka_unit_test(test_scrubbing_reads_all_that_is_in_use_and_nothing_else),
		cmocka_unit_test(test_nvram_is_lost_and_one_page_of_every_group_too),
		cmocka_unit_test(test_two_pages_of_a_group_are_lost_and_what_was_on_them_alone),
		cmocka_unit_test(test_without_parity_what_was_on_a_lost_page_is_lost_alone),
		cmocka_unit_test(
			test_a_segment_with_pages_lost_for_good_stays_and_others_are_merged),
		cmocka_unit_test(test_what_is_to_be_moved_and_can_t_is_given_up),
		cmocka_unit_test(test_what_was_given_up_is_merged_when_nothing_else_is_left),
		cmocka_unit_test(test_what_is_still_lost_stays_and_is_tried_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
