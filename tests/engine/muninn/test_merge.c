/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Merging: a device that has been written many times over keeps the present and what its boundaries
 * need, and nothing else keeps its space.
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

#include "tests/engine/index_under_test.h"
#include "tests/engine/muninn/muninn_model.h"
#include "tests/engine/small_flash.h"
#include "tests/repetition.h"

enum { BOUNDARIES_MAX = 12, ENDS_MAX = 400 };

/* What is kept: the state at each boundary, and at every moment from the horizon on. */
struct boundaries {
	const struct model *model;
	uint64_t at[BOUNDARIES_MAX]; /* ascending */
	uint32_t count;
	uint64_t horizon;
	uint64_t ends[ENDS_MAX]; /* of slots, ascending */
	uint32_t end_count;
};

/* The first moment from `sequence` on that is kept. */
static uint64_t first_kept(const struct boundaries *boundaries, uint64_t sequence)
{
	uint64_t first = max_u64(sequence, boundaries->horizon);

	for (uint32_t i = boundaries->count; i-- > 0;)
		if (boundaries->at[i] >= sequence)
			first = min_u64(first, boundaries->at[i]);
	return first;
}

static void add_bound(uint64_t bound, uint64_t *bounds, uint32_t *count, uint32_t max)
{
	if (*count && bounds[*count - 1] == bound)
		return;
	if (*count < max)
		bounds[*count] = bound;
	++*count;
}

static uint32_t kept_bounds(void *context, const struct record_key *key,
			    const struct record_info *info, uint64_t *bounds, uint32_t max)
{
	const struct boundaries *boundaries = context;
	const struct model *model = boundaries->model;
	uint32_t count = 0;

	(void)key;
	add_bound(first_kept(boundaries, info->sequence), bounds, &count, max);
	for (size_t i = 0; model && i < model->rollback_count; i++)
		if (model->rollbacks[i].at > info->sequence)
			add_bound(first_kept(boundaries, model->rollbacks[i].at), bounds, &count,
				  max);
	return count;
}

static int merge_once(struct model *model, struct boundaries *boundaries,
		      struct record_merge *merge)
{
	const struct record_keep keep = { .context = boundaries, .bounds = kept_bounds };

	return model->store->operations->merge(model->store, &keep, merge);
}

static struct record_statistics statistics_of(struct model *model)
{
	struct record_statistics statistics = { 0 };

	model->store->operations->statistics(model->store, &statistics);
	return statistics;
}

static void check_bound(struct model *model, uint64_t bound)
{
	for (uint32_t number = 0; number < MODEL_KEYS; number++)
		model_check_key(model, number, bound);
	/* Keys 20 to 149 are pieces of one object. */
	assert_int_equal(model_check_run(model, model_key(20), 130, bound), 0);
}

static void check_boundaries(struct model *model, const struct boundaries *boundaries)
{
	model_check_all(model);
	check_bound(model, RECORD_NEWEST);
	for (uint32_t i = 0; i < boundaries->count; i++)
		check_bound(model, boundaries->at[i]);
	for (uint32_t i = 0; i < boundaries->end_count; i++)
		if (boundaries->ends[i] >= boundaries->horizon)
			check_bound(model, boundaries->ends[i]);
	for (uint32_t number = 10; number < MODEL_KEYS; number += 1 + model_below(model, 20))
		model_check_versions_since(
			model, number,
			model_below(model, 2) || !boundaries->count
				? RECORD_NEWEST
				: boundaries->at[model_below(model, boundaries->count)],
			boundaries->horizon);
	/* In the midst of a slot what is never absorbed is there all the same. */
	for (uint32_t number = 0; number < MODEL_KEYS; number++) {
		const struct model_history *history = &model->keys[number];

		if (!model_is_absorbed(number) && history->count &&
		    history->versions[history->count / 2].sequence >= boundaries->horizon)
			model_check_key(model, number,
					history->versions[history->count / 2].sequence);
	}
}

static void add_boundary(struct boundaries *boundaries, uint64_t at)
{
	if (boundaries->count && boundaries->at[boundaries->count - 1] == at)
		return;
	if (boundaries->count == BOUNDARIES_MAX)
		memmove(boundaries->at, boundaries->at + 1,
			--boundaries->count * sizeof(boundaries->at[0]));
	boundaries->at[boundaries->count++] = at;
}

static void drop_boundary(struct boundaries *boundaries, uint32_t gone)
{
	boundaries->count--;
	memmove(&boundaries->at[gone], &boundaries->at[gone + 1],
		(boundaries->count - gone) * sizeof(boundaries->at[0]));
}

/* Gives up the oldest `count` ends of slots. */
static void raise_horizon(struct boundaries *boundaries, uint32_t count)
{
	if (count >= boundaries->end_count) {
		boundaries->end_count = 0;
		boundaries->horizon = RECORD_NEWEST;
		return;
	}
	boundaries->end_count -= count;
	memmove(boundaries->ends, boundaries->ends + count,
		boundaries->end_count * sizeof(boundaries->ends[0]));
	boundaries->horizon = boundaries->ends[0];
}

static void add_end(struct boundaries *boundaries, uint64_t end)
{
	if (boundaries->end_count == ENDS_MAX)
		raise_horizon(boundaries, ENDS_MAX / 2);
	if (boundaries->end_count == 0)
		boundaries->horizon = end;
	boundaries->ends[boundaries->end_count++] = end;
}

/* A moment that is kept: a boundary, or the end of a slot behind the horizon. */
static uint64_t some_kept(struct model *model, const struct boundaries *boundaries)
{
	uint32_t pick = model_below(model, boundaries->count + boundaries->end_count);

	return pick < boundaries->count ? boundaries->at[pick]
					: boundaries->ends[pick - boundaries->count];
}

/* Ends a slot; then now and then keeps it, drops a boundary or rolls back. */
static void change_boundaries(struct model *model, struct boundaries *boundaries)
{
	uint32_t dice = model_below(model, 8);

	add_end(boundaries, model_end_slot(model));
	if (dice < 2)
		add_boundary(boundaries, model->sequence);
	else if (dice == 2 && boundaries->count)
		drop_boundary(boundaries, model_below(model, boundaries->count));
	else if (dice > 5 && model->rollback_count < MODEL_ROLLBACKS_MAX)
		model_roll_back(model, (uint16_t)model_below(model, 3),
				some_kept(model, boundaries));
}

/* As in the statistics, but for segments that are only taken; those go through all buffers. */
static uint32_t free_segments(struct model *model)
{
	return space_free(&((struct muninn_store *)(void *)model->store)->space);
}

/* Merges until there is room; when nothing is left to reclaim the oldest history goes. */
static void make_room(struct model *model, struct boundaries *boundaries,
		      struct record_merge *merge, uint32_t low_water)
{
	uint32_t futile = 0;

	while (free_segments(model) < low_water) {
		int result = merge_once(model, boundaries, merge);

		assert_true(result == 0 || result == -EAGAIN);
		futile = result ? futile + 1 : 0;
		if (futile > model->store->operations->merge_calls_max(model->store)) {
			assert_true(boundaries->end_count > 0 || boundaries->count > 0);
			if (boundaries->end_count)
				raise_horizon(boundaries, boundaries->end_count / 8 + 1);
			else
				drop_boundary(boundaries, 0);
		}
	}
}

static const struct nand_geometry nand = SMALL_FLASH(400);

/*
 * Free segments below which the tests merge: so many that live records have to be moved all the
 * time; or few, so that tables grow and much is dropped at once.
 */
enum { LOW_WATER = 245, LOWEST_WATER = 60 };

/*
 * What becomes of rows with hot keys in the run. Where they are spread, segments have more pages
 * than hash functions give most keys.
 */
static enum bloom_hot_rows hot_rows;
static const struct engine_options spreading = { .muninn.rows = 2,
						 .muninn.segment_pages = 32,
						 .muninn.record_bytes = 128,
						 .muninn.bloom.hot_rows = BLOOM_HOT_ROWS_SPREAD };

/* Puts, and look-ups compared with the model. */
struct done {
	uint64_t puts, lookups;
};

/* Returns how many that were. */
static struct done write_many_times_over(enum record_merge_choice choice, uint64_t seed,
					 uint64_t transactions, uint64_t check_every,
					 uint32_t low_water)
{
	const struct engine_options *options = hot_rows == BLOOM_HOT_ROWS_SPREAD ? &spreading
										 : &model_options;
	struct nand_geometry geometry = nand;

	struct boundaries boundaries = { .horizon = RECORD_NEWEST };
	struct record_merge merge = { .live_permille_max = 950, .choice = choice };
	struct model *model = calloc(1, sizeof(*model));

	print_message("MUNINN_SEED=%llu\n", (unsigned long long)seed);
	assert_non_null(model);
	model->random = seed;
	boundaries.model = model;
	/* As many segments, whatever they hold. */
	geometry.blocks = nand.blocks * options->muninn.segment_pages / nand.pages_per_block;
	model_open(model, &geometry, options);
	for (uint64_t done = 0; done < transactions; done++) {
		uint32_t dice = model_below(model, 1000);

		if (!model_transaction(model, dice >= 20, dice < 3))
			fail_msg("full after %llu transactions", (unsigned long long)done);
		make_room(model, &boundaries, &merge, low_water);
		if (dice == 500)
			model_crash(model);
		if (done % 50 == 0)
			change_boundaries(model, &boundaries);
		if (done % check_every == 0)
			check_boundaries(model, &boundaries);
	}
	check_boundaries(model, &boundaries);
	model_crash(model);
	check_boundaries(model, &boundaries);
	print_message("%zu rollbacks, %llu segments freed, %llu records moved, %llu dropped; %llu "
		      "tables\n",
		      model->rollback_count, (unsigned long long)merge.segments_freed,
		      (unsigned long long)merge.records_moved,
		      (unsigned long long)merge.records_dropped,
		      (unsigned long long)statistics_of(model).tables);
	assert_true(merge.segments_freed > 200);
	assert_true(merge.records_moved > 100);
	struct done counts = { model->puts, model->lookups };

	model_close(model);
	return counts;
}

/*
 * MUNINN_SOAK=N goes on with further seeds, choosing segments by turns, until there were N puts and
 * compared look-ups: `make soak`.
 */
static void test_as_many_operations_as_wanted(void **state)
{
	uint64_t wanted = model_setting("MUNINN_SOAK", 0);
	uint64_t seed = model_setting("MUNINN_SEED", 1000);
	struct done all = { 0, 0 };

	(void)state;
	for (; all.puts + all.lookups < wanted; seed++) {
		struct done some = write_many_times_over(
			seed % 2 ? RECORD_MERGE_SAMPLED : RECORD_MERGE_ESTIMATED, seed,
			model_setting("MUNINN_OPERATIONS", 8000), 4000,
			seed % 8 == 0 ? LOW_WATER : LOWEST_WATER);

		all.puts += some.puts;
		all.lookups += some.lookups;
		print_message("%llu puts, %llu look-ups\n", (unsigned long long)all.puts,
			      (unsigned long long)all.lookups);
	}
}

/* Transactions that fill the device and have freed hundreds of segments, and further ones. */
enum { FIRST = 2700, LATER = 5300 };

static void test_a_device_written_many_times_over_keeps_the_present_and_every_boundary(void **state)
{
	(void)state;
	write_many_times_over(RECORD_MERGE_SAMPLED, model_setting("MUNINN_SEED", 100),
			      model_setting("MUNINN_OPERATIONS", FIRST + rounds(LATER)), 500,
			      LOW_WATER);
}

static void test_it_does_so_when_hot_keys_are_spread(void **state)
{
	(void)state;
	/* There is nothing of the kind with another index. */
	if (index_under_test() != INDEX_BLOOM)
		skip();
	hot_rows = BLOOM_HOT_ROWS_SPREAD;
	write_many_times_over(RECORD_MERGE_SAMPLED, 31, 17000, 4000, LOW_WATER);
	hot_rows = BLOOM_HOT_ROWS_FINALISE;
}

static void test_it_does_so_when_segments_are_chosen_by_their_filters(void **state)
{
	(void)state;
	write_many_times_over(RECORD_MERGE_ESTIMATED, model_setting("MUNINN_SEED", 200),
			      model_setting("MUNINN_OPERATIONS", FIRST + rounds(LATER)), 500,
			      LOW_WATER);
}

enum { LARGE_SEGMENTS = 40, LARGE_FREED = 8, LARGE_KEYS = 20000, LARGE_BYTES = 200 };

static struct record_key large_key(uint32_t number)
{
	return (struct record_key){ .partition = 1, .identifier = 0x10000 + number };
}

/* Puts a number, which is the newest of its key then. */
static void put_number(struct model *model, uint64_t number, uint64_t *newest)
{
	/* Some keys all the time: they are on many pages of each segment. */
	uint32_t chosen = model_below(model, model_below(model, 32) ? LARGE_KEYS : 2);
	struct record_key key = large_key(chosen);
	uint8_t value[LARGE_BYTES] = { 0 };

	put_le64(value, number);
	model->store->operations->begin(model->store, 0);
	assert_int_equal(model->store->operations->put(model->store, &key, 1, 0, value,
						       sizeof(value), RECORD_ROOM_WRITE),
			 0);
	model->store->operations->commit(model->store);
	newest[chosen] = number;
}

static void check_numbers(struct model *model, const uint64_t *newest)
{
	for (uint32_t n = 0; n < LARGE_KEYS; n++) {
		struct record_key key = large_key(n);
		struct record_info info;
		uint8_t value[LARGE_BYTES];
		int result = model->store->operations->get(model->store, &key, RECORD_NEWEST, value,
							   sizeof(value), &info);

		assert_int_equal(result, newest[n] ? 0 : -ENOENT);
		if (newest[n])
			assert_int_equal(get_le64(value), newest[n]);
	}
}

/* The largest segments that a device may have. */
static void test_segments_of_most_pages_are_filled_searched_and_merged(void **state)
{
	struct boundaries none = { .horizon = RECORD_NEWEST };
	struct record_merge merge = { .live_permille_max = 950, .choice = RECORD_MERGE_SAMPLED };
	struct engine_options options = model_options;
	struct nand_geometry geometry = nand;
	struct model *model = calloc(1, sizeof(*model));
	uint64_t *newest = calloc(LARGE_KEYS, sizeof(*newest)), puts = 0;

	(void)state;
	assert_true(model && newest);
	model->random = model_setting("MUNINN_SEED", 300);
	print_message("MUNINN_SEED=%llu\n", (unsigned long long)model->random);
	options.muninn.rows = 1;
	options.muninn.segment_pages = MUNINN_SEGMENT_PAGES_MAX;
	geometry.blocks = LARGE_SEGMENTS * MUNINN_SEGMENT_PAGES_MAX / nand.pages_per_block;
	model_open(model, &geometry, &options);
	/* Until some of the segments have been merged, and a group is complete. */
	while (merge.segments_freed < LARGE_FREED || statistics_of(model).tables == 0) {
		put_number(model, ++puts, newest);
		make_room(model, &none, &merge, LARGE_SEGMENTS / 2);
		if (puts % 50000 == 0)
			check_numbers(model, newest);
	}
	model_crash(model);
	check_numbers(model, newest);
	print_message("%llu puts, %llu segments freed, %llu records moved\n",
		      (unsigned long long)puts, (unsigned long long)merge.segments_freed,
		      (unsigned long long)merge.records_moved);
	assert_true(merge.records_moved > 100);
	free(newest);
	model_close(model);
}

/* Adds what the pages of a sealed segment hold. */
static void count_segment(struct model *model, uint32_t segment, uint64_t *records, uint64_t *bytes)
{
	const struct muninn_store *store = (const void *)model->store;
	uint8_t data[MUNINN_PAGE_BYTES_MAX], spare_bytes[256];

	for (uint32_t page = 0; page < store->geometry.segment_pages; page++) {
		struct nand_page_io io = {
			.page = segment_page(&store->geometry, segment) + page,
			.data = data,
			.spare = spare_bytes,
		};
		struct page_record record;
		struct page_spare spare;
		uint32_t offset = 0;

		assert_int_equal(nand_read(model->nand, NAND_CAUSE_USER, &io, 1), 0);
		assert_true(page_spare_decode(spare_bytes, store->geometry.page_bytes, &spare));
		struct page_view view = page_view_of(&spare, io.page, data);

		for (; page_next(&view, &offset, &record); ++*records)
			*bytes += RECORD_HEADER_BYTES + record_length(record.header);
	}
}

/* What the statistics say is what a walk over the tables and all sealed pages finds. */
static void check_accounts(struct model *model)
{
	const struct muninn_store *store = (const void *)model->store;
	struct record_statistics said = statistics_of(model);
	uint64_t sealed = 0, records = 0, bytes = 0;

	for (uint32_t number = 0; number < store->geometry.rows; number++) {
		struct index_walk walk = { 0 };
		struct sealed_segment segment;

		while (row_index_next(store->rows[number].index, &walk, &segment)) {
			assert_int_equal(store->segment_rows[segment.segment], number);
			count_segment(model, segment.segment, &records, &bytes);
			sealed++;
		}
	}
	assert_int_equal(said.segments_sealed, sealed);
	assert_int_equal(said.sealed_records, records);
	assert_int_equal(said.sealed_record_bytes, bytes);
	assert_int_equal(said.segments, said.segments_free + said.segments_sealed +
						said.segments_metadata + store->space.retired);
}

static void test_space_is_accounted_for_exactly_before_during_and_after_merging(void **state)
{
	struct boundaries none = { .horizon = RECORD_NEWEST };
	struct record_merge merge = { .live_permille_max = 1000 };
	struct model *model = calloc(1, sizeof(*model));
	struct record_statistics before, after;

	(void)state;
	assert_non_null(model);
	model_open(model, &nand, &model_options);
	for (int i = 0; i < 3500; i++)
		assert_true(model_transaction(model, true, false));
	before = statistics_of(model);
	assert_int_equal(before.segments,
			 before.segments_free + before.segments_sealed + before.segments_metadata);
	check_accounts(model);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(merge_once(model, &none, &merge), 0);
		check_accounts(model);
		/* Foreground goes on between the steps. */
		if (i % 10 == 9)
			assert_true(model_transaction(model, true, false));
	}
	after = statistics_of(model);
	assert_int_equal(merge.segments_freed, 100);
	assert_int_equal(after.segments,
			 after.segments_free + after.segments_sealed + after.segments_metadata);
	assert_true(after.segments_free > before.segments_free + 50);
	model_check_all(model);
	model_crash(model);
	before = statistics_of(model);
	assert_int_equal(before.segments_free, after.segments_free);
	assert_int_equal(before.segments_sealed, after.segments_sealed);
	assert_int_equal(before.segments_metadata, after.segments_metadata);
	assert_int_equal(before.sealed_records, after.sealed_records);
	assert_int_equal(before.sealed_record_bytes, after.sealed_record_bytes);
	model_check_all(model);
	model_close(model);
}

static bool nothing_is_reachable(void *context, const struct record_key *key,
				 const struct record_info *info, uint64_t bound)
{
	(void)context;
	(void)info;
	(void)bound;
	return key->partition != 2;
}

static void test_unreachable_records_are_dropped_and_others_kept(void **state)
{
	struct boundaries none = { .horizon = RECORD_NEWEST };
	const struct record_keep keep = {
		.context = &none,
		.bounds = kept_bounds,
		.is_reachable = nothing_is_reachable,
	};
	struct record_merge merge = { .live_permille_max = 1000 };
	struct model *model = calloc(1, sizeof(*model));
	uint32_t gone = 0;

	(void)state;
	assert_non_null(model);
	model_open(model, &nand, &model_options);
	for (int i = 0; i < 3300; i++)
		assert_true(model_transaction(model, true, false));
	for (int i = 0;
	     i < 3000 && model->store->operations->merge(model->store, &keep, &merge) == 0; i++)
		;
	for (uint32_t number = 0; number < MODEL_KEYS; number++) {
		struct record_key key = model_key(number);
		struct record_info info;

		if (key.partition != 2)
			model_check_key(model, number, RECORD_NEWEST);
		else
			gone += model->store->operations->get(model->store, &key, RECORD_NEWEST,
							      NULL, 0, &info) == -ENOENT;
	}
	/* The last ones put are still in the buffers. */
	assert_true(gone > 100);
	model_close(model);
}

static void test_a_corrupt_page_stops_the_merge_and_nothing_is_lost(void **state)
{
	struct boundaries none = { .horizon = RECORD_NEWEST };
	struct record_merge merge = { .live_permille_max = 1000 };
	struct model *model = calloc(1, sizeof(*model));
	struct muninn_store *store;
	struct sealed_segment segment;
	uint64_t sealed;

	(void)state;
	assert_non_null(model);
	model_open(model, &nand, &model_options);
	while (statistics_of(model).segments_sealed < 2)
		assert_true(model_transaction(model, true, false));
	/* Erasing a block under the engine's feet stands for a page that can't be read any more. */
	store = (struct muninn_store *)(void *)model->store;
	sealed = statistics_of(model).segments_sealed;
	for (uint32_t row = 0; row < store->geometry.rows; row++) {
		struct index_walk walk = { 0 };

		while (row_index_next(store->rows[row].index, &walk, &segment))
			assert_int_equal(nand_erase(model->nand, NAND_CAUSE_USER, segment.segment),
					 0);
	}
	for (int i = 0; i < 20; i++)
		assert_int_not_equal(merge_once(model, &none, &merge), 0);
	assert_int_equal(statistics_of(model).segments_sealed, sealed);
	assert_int_equal(merge.segments_freed, 0);
	model_close(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_a_device_written_many_times_over_keeps_the_present_and_every_boundary),
		cmocka_unit_test(test_it_does_so_when_segments_are_chosen_by_their_filters),
		cmocka_unit_test(test_segments_of_most_pages_are_filled_searched_and_merged),
		cmocka_unit_test(test_it_does_so_when_hot_keys_are_spread),
		cmocka_unit_test(test_as_many_operations_as_wanted),
		cmocka_unit_test(
			test_space_is_accounted_for_exactly_before_during_and_after_merging),
		cmocka_unit_test(test_unreachable_records_are_dropped_and_others_kept),
		cmocka_unit_test(test_a_corrupt_page_stops_the_merge_and_nothing_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
