/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Merging: a device that has been written many times over keeps the present and what its boundaries need, and nothing
 * else keeps its space.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>

#include "tests/engine/muninn_model.h"

enum { BOUNDARIES_MAX = 12 };

struct boundaries {
	uint64_t at[BOUNDARIES_MAX]; /* ascending */
	uint32_t count;
};

static uint64_t lowest_boundary(void *context, const struct record_key *key, uint16_t version,
				uint64_t sequence)
{
	const struct boundaries *boundaries = context;

	(void)key;
	(void)version;
	for (uint32_t i = 0; i < boundaries->count; i++)
		if (boundaries->at[i] >= sequence)
			return boundaries->at[i];
	return RECORD_NEWEST;
}

static int merge_once(struct model *model, struct boundaries *boundaries,
		      struct record_merge *merge)
{
	const struct record_keep keep = { .context = boundaries, .boundary = lowest_boundary };

	return model->store->operations->merge(model->store, &keep, merge);
}

static struct engine_statistics statistics_of(struct model *model)
{
	struct engine_statistics statistics = { 0 };

	model->store->operations->statistics(model->store, &statistics);
	return statistics;
}

static void check_boundaries(struct model *model, const struct boundaries *boundaries)
{
	model_check_all(model);
	/* Keys that may be absorbed in the buffer have no history. */
	for (uint32_t i = 0; i < boundaries->count; i++)
		for (uint32_t number = 0; number < MODEL_KEYS; number++)
			if (!model_is_absorbed(number))
				model_check_key(model, number, boundaries->at[i]);
}

static void change_boundaries(struct model *model, struct boundaries *boundaries)
{
	if (boundaries->count == BOUNDARIES_MAX ||
	    (boundaries->count && model_below(model, 3) == 0)) {
		uint32_t gone = model_below(model, boundaries->count);

		memmove(&boundaries->at[gone], &boundaries->at[gone + 1],
			(boundaries->count - gone - 1) * sizeof(boundaries->at[0]));
		boundaries->count--;
	} else {
		boundaries->at[boundaries->count++] = model->sequence;
	}
}

static const struct nand_geometry nand = {
	.page_bytes = 512,
	.spare_bytes = 64,
	.pages_per_block = 8,
	.blocks = 400,
	.channels = 1,
	.dies_per_channel = 1,
};

/* Free segments below which the test merges: so many that live records have to be moved. */
enum { LOW_WATER = 245 };

static void test_a_device_written_many_times_over_keeps_the_present_and_every_boundary(void **state)
{
	uint64_t seed = model_setting("MUNINN_SEED", 100);
	uint64_t transactions = model_setting("MUNINN_OPERATIONS", 8000);
	struct boundaries boundaries = { .count = 0 };
	struct record_merge merge = { .live_permille_max = 950 };
	struct model *model = calloc(1, sizeof(*model));

	(void)state;
	print_message("MUNINN_SEED=%llu\n", (unsigned long long)seed);
	assert_non_null(model);
	model->random = seed;
	model_open(model, &nand, &model_options);
	for (uint64_t done = 0; done < transactions; done++) {
		uint32_t dice = model_below(model, 1000);

		if (!model_transaction(model, dice >= 20, dice < 3))
			fail_msg("full after %llu transactions", (unsigned long long)done);
		while (statistics_of(model).segments_free < LOW_WATER) {
			int result = merge_once(model, &boundaries, &merge);

			assert_true(result == 0 || result == -EAGAIN);
		}
		if (dice == 500)
			model_crash(model);
		if (done % 500 == 0) {
			change_boundaries(model, &boundaries);
			check_boundaries(model, &boundaries);
		}
	}
	check_boundaries(model, &boundaries);
	model_crash(model);
	check_boundaries(model, &boundaries);
	print_message("%llu segments freed, %llu records moved, %llu dropped; %llu tables\n",
		      (unsigned long long)merge.segments_freed,
		      (unsigned long long)merge.records_moved,
		      (unsigned long long)merge.records_dropped,
		      (unsigned long long)statistics_of(model).tables);
	assert_true(merge.segments_freed > 300);
	assert_true(merge.records_moved > 100);
	model_close(model);
}

static void test_space_is_accounted_for_exactly_before_and_after_merging(void **state)
{
	struct boundaries none = { .count = 0 };
	struct record_merge merge = { .live_permille_max = 1000 };
	struct model *model = calloc(1, sizeof(*model));
	struct engine_statistics before, after;

	(void)state;
	assert_non_null(model);
	model_open(model, &nand, &model_options);
	for (int i = 0; i < 4500; i++)
		assert_true(model_transaction(model, true, false));
	before = statistics_of(model);
	assert_int_equal(before.segments,
			 before.segments_free + before.segments_sealed + before.segments_metadata);
	for (int i = 0; i < 100; i++)
		assert_int_equal(merge_once(model, &none, &merge), 0);
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
	struct boundaries none = { .count = 0 };
	const struct record_keep keep = {
		.context = &none,
		.boundary = lowest_boundary,
		.is_reachable = nothing_is_reachable,
	};
	struct record_merge merge = { .live_permille_max = 1000 };
	struct model *model = calloc(1, sizeof(*model));
	uint32_t gone = 0;

	(void)state;
	assert_non_null(model);
	model_open(model, &nand, &model_options);
	for (int i = 0; i < 4000; i++)
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
	struct boundaries none = { .count = 0 };
	struct record_merge merge = { .live_permille_max = 1000 };
	struct model *model = calloc(1, sizeof(*model));
	struct muninn_store *store;
	struct table_column facts;
	uint64_t sealed;

	(void)state;
	assert_non_null(model);
	model_open(model, &nand, &model_options);
	while (statistics_of(model).segments_sealed < 2)
		assert_true(model_transaction(model, true, false));
	/* Erasing a block under the engine's feet stands for a page that can't be read any more. */
	store = (struct muninn_store *)(void *)model->store;
	sealed = statistics_of(model).segments_sealed;
	for (uint32_t row = 0; row < store->geometry.rows; row++)
		for (uint32_t column = 0; column < table_columns(&store->rows[row].growing);
		     column++) {
			table_read_column(&store->rows[row].growing, column, &facts);
			assert_int_equal(nand_erase(model->nand, NAND_CAUSE_USER, facts.segment),
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
		cmocka_unit_test(test_space_is_accounted_for_exactly_before_and_after_merging),
		cmocka_unit_test(test_unreachable_records_are_dropped_and_others_kept),
		cmocka_unit_test(test_a_corrupt_page_stops_the_merge_and_nothing_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
