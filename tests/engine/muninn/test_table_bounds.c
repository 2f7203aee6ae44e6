/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Internal versions: which tables a bound points at, and what filters tell of how much of a segment
 * is put again. And the places of a search, of which some are left out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>

#include "engine/muninn/index/bloom.h"
#include "tests/engine/muninn/muninn_model.h"

static const struct muninn_store *store_of(const struct model *model)
{
	return (const struct muninn_store *)(const void *)model->store;
}

static uint64_t first_sequence(const struct table *table)
{
	uint64_t first = RECORD_NEWEST;

	for (uint32_t column = 0; column < table_columns(table); column++) {
		struct sealed_segment facts;

		table_read_column(table, column, &facts);
		if (table_live(table) >> column & 1)
			first = min_u64(first, facts.first_sequence);
	}
	return first;
}

/* Whatever is left out is too new. Returns how many tables are left out, over all rows. */
static uint32_t check_bound(const struct model *model, uint64_t bound)
{
	uint32_t left_out = 0;

	for (uint32_t number = 0; number < store_of(model)->geometry.rows; number++) {
		const struct bloom_row *row = bloom_row_in(store_of(model)->rows[number].index);
		uint32_t count = bounds_find(&row->bounds, row->complete_count, bound);

		assert_true(count <= row->complete_count);
		for (uint32_t n = count; n < row->complete_count; n++, left_out++)
			assert_true(first_sequence(&row->complete[n]) > bound);
	}
	return left_out;
}

static struct record_statistics statistics_of(const struct model *model)
{
	struct record_statistics statistics = { 0 };

	model->store->operations->statistics(model->store, &statistics);
	return statistics;
}

static void merge_some(struct model *model, uint32_t steps)
{
	const struct record_keep keep = { 0 }; /* the present is all */
	struct record_merge merge = { .live_permille_max = 1000 };

	/* The oldest segments come first, and have nothing that is moved. */
	for (uint32_t i = 0; i < steps || (merge.records_moved == 0 && i < 3 * steps); i++)
		model->store->operations->merge(model->store, &keep, &merge);
	assert_true(merge.records_moved > 0);
}

static void test_a_bound_points_at_the_tables_that_are_old_enough(void **state)
{
	static const uint32_t sizes[] = { 1, 2, 5 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct engine_options options = model_options;
		struct model *model = calloc(1, sizeof(*model));

		assert_non_null(model);
		options.muninn.index = INDEX_BLOOM;
		options.muninn.bloom.internal_version_tables = sizes[i];
		model->random = 7;
		model_open(model, &model_nand, &options);
		while (statistics_of(model).tables < 24)
			assert_true(model_transaction(model, true, false));
		assert_in_range(statistics_of(model).internal_versions, 24 / sizes[i],
				24 / sizes[i] + 2);
		/*
		 * In the eldest quarter of history most tables are too new; at the present none is.
		 */
		assert_true(check_bound(model, model->sequence / 4) >= 24 / 2 - 2 * sizes[i]);
		assert_int_equal(check_bound(model, 0), 24);
		assert_int_equal(check_bound(model, RECORD_NEWEST), 0);
		for (uint64_t bound = 0; bound < model->sequence; bound += model->sequence / 50)
			check_bound(model, bound);
		/* Moved records are old ones in new tables. */
		merge_some(model, 700);
		for (uint64_t bound = 0; bound < model->sequence; bound += model->sequence / 50)
			check_bound(model, bound);
		model_check_all(model);
		model_close(model);
	}
}

enum { VALUE_BYTES = 100 };

static void put_key(struct record_store *store, uint32_t number)
{
	struct record_key key = { .partition = 1, .identifier = 0x10000 + number };
	uint8_t value[VALUE_BYTES] = { 0 };

	store->operations->begin(store, 0);
	assert_int_equal(store->operations->put(store, &key, 1, 0, value, sizeof(value), false), 0);
	store->operations->commit(store);
}

/*
 * All keys once, then every one of the first half again: in other words what the first tables hold
 * is half dead.
 */
static void test_filters_tell_segments_that_are_put_again_from_others(void **state)
{
	const struct nand_geometry nand = {
		.page_bytes = 4096,
		.spare_bytes = 64,
		.pages_per_block = 8,
		.blocks = 3000,
		.channels = 1,
		.dies_per_channel = 1,
	};
	const struct engine_options options = { .muninn.rows = 1,
						.muninn.index = INDEX_BLOOM,
						.muninn.segment_pages = 8,
						.muninn.record_bytes = 128 };
	struct model *model = calloc(1, sizeof(*model));
	uint32_t live_permille[GROUP_SEGMENTS];
	uint32_t written = 0, dead = 0, alive = 0;

	(void)state;
	assert_non_null(model);
	model_open(model, &nand, &options);
	while (statistics_of(model).tables < 1)
		put_key(model->store, written++);
	for (uint32_t number = 0; number < written / 2; number++)
		put_key(model->store, number);
	while (statistics_of(model).tables < 2)
		put_key(model->store, 1000000 + written++);
	const struct bloom_row *row = bloom_row_in(store_of(model)->rows[0].index);

	overlap_estimate(&store_of(model)->geometry, row->complete, row->complete_count,
			 &row->growing, live_permille);
	for (uint32_t column = 0; column < GROUP_SEGMENTS; column++) {
		if (column < GROUP_SEGMENTS / 2 - 1)
			dead += live_permille[column];
		else if (column > GROUP_SEGMENTS / 2)
			alive += live_permille[column];
	}
	print_message("put again: %u per mille live by estimate; not: %u\n",
		      dead / (GROUP_SEGMENTS / 2 - 1), alive / (GROUP_SEGMENTS / 2 - 1));
	assert_true(dead * 2 < alive);
	model_close(model);
}

/* Those of hash functions, and further ones: 0, 63, 64, 319 and 383 behind them. */
static void test_places_are_left_out_one_by_one(void **state)
{
	static const uint32_t all[] = { 0,
					5,
					BLOOM_FUNCTIONS - 1,
					BLOOM_FUNCTIONS,
					BLOOM_FUNCTIONS + 63,
					BLOOM_FUNCTIONS + 64,
					BLOOM_FUNCTIONS + 319,
					BLOOM_FUNCTIONS + 383 };
	const uint32_t count = sizeof(all) / sizeof(all[0]);
	struct table_search whole = { .further_end = 6 }, search;

	(void)state;
	for (uint32_t n = 0; n < count; n++)
		if (all[n] < BLOOM_FUNCTIONS)
			whole.places |= 1U << all[n];
		else
			whole.further[(all[n] - BLOOM_FUNCTIONS) / 64] |=
				UINT64_C(1) << (all[n] - BLOOM_FUNCTIONS) % 64;
	search = whole;
	for (uint32_t n = count; n-- > 0;) {
		assert_int_equal(table_search_place(&search), all[n]);
		table_search_leave(&search, all[n]);
	}
	assert_int_equal(table_search_place(&search), UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_bound_points_at_the_tables_that_are_old_enough),
		cmocka_unit_test(test_filters_tell_segments_that_are_put_again_from_others),
		cmocka_unit_test(test_places_are_left_out_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
