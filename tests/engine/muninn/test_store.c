/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The Muninn record store against a model that keeps every version: random transactions, aborts and
 * crashes. MUNINN_SEED and MUNINN_OPERATIONS choose another run; the seed is printed.
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

#include "engine/muninn/index/bloom.h"
#include "engine/muninn/index/ribbon/ribbon_shape.h"
#include "nand/faults.h"
#include "nand/timing.h"
#include "tests/engine/flush_now.h"
#include "tests/engine/index_under_test.h"
#include "tests/engine/muninn/muninn_model.h"
#include "tests/repetition.h"

/*
 * Sequence numbers leave gaps, so a moment is that of some version; half of the time a recent one.
 */
static uint64_t some_bound(struct model *model)
{
	const struct model_history *history = &model->keys[model_below(model, MODEL_KEYS)];
	size_t newest = history->count < 8 || model_below(model, 2) ? history->count : 8;

	if (!newest)
		return 0;
	return history->versions[history->count - 1 - model_random(model) % newest].sequence;
}

/* The last moment before the slot of `bound`: 0 is before everything. */
static uint64_t end_of_slot_before(uint64_t bound)
{
	return bound < RECORD_SLOT ? 0 : bound / RECORD_SLOT * RECORD_SLOT - 1;
}

static void run_model(uint64_t seed, uint64_t transactions, const struct engine_options *options,
		      struct sealers *sealers)
{
	struct model *model = calloc(1, sizeof(*model));
	struct record_statistics statistics = { 0 };
	uint64_t done = 0;
	bool room = true;

	assert_non_null(model);
	model->random = seed;
	model->sealers = sealers;
	model_open(model, &model_nand, options);
	for (; done < transactions && room; done++) {
		uint32_t dice = model_below(model, 200);

		room = model_transaction(model, dice >= 10, dice < 2);
		model_check_key(model, model_below(model, MODEL_KEYS), RECORD_NEWEST);
		model_check_key(model, 10 + model_below(model, MODEL_KEYS - 10), some_bound(model));
		if (done % 20 == 0) /* keys 20 to 149 are pieces of one object */
			assert_int_equal(
				model_check_run(model, model_key(20), 130,
						done % 40 ? RECORD_NEWEST : some_bound(model)),
				0);
		if (dice == 52)
			model_end_slot(model);
		if (done % 200 == 0)
			model_check_versions(model, 10 + model_below(model, MODEL_KEYS - 10),
					     done % 400 ? RECORD_NEWEST : some_bound(model));
		if (dice == 53 && model->rollback_count < MODEL_ROLLBACKS_MAX)
			model_roll_back(model, (uint16_t)model_below(model, 3),
					end_of_slot_before(some_bound(model)));
		if (dice == 50)
			model_crash(model);
		if (dice == 51)
			assert_int_equal(flush_now(model->store), 0);
		if (done % 1000 == 0)
			model_check_all(model);
	}
	model_check_all(model);
	model_crash(model);
	model_check_all(model);
	model->store->operations->statistics(model->store, &statistics);
	print_message(
		"%llu transactions, %zu rollbacks, %llu segments sealed, %llu tables, %.1f %% "
		"of their space used\n",
		(unsigned long long)done, model->rollback_count,
		(unsigned long long)statistics.segments_sealed,
		(unsigned long long)statistics.tables,
		100.0 * (double)statistics.sealed_record_bytes /
			((double)statistics.segments_sealed * options->muninn.segment_pages *
			 model_nand.page_bytes));
	assert_true(statistics.tables >= 2);
	assert_int_equal(statistics.index, index_under_test());
	model_close(model);
}

static void test_store_equals_a_model_under_random_transactions_aborts_and_crashes(void **state)
{
	uint64_t seed = model_setting("MUNINN_SEED", 1);
	uint64_t transactions = model_setting("MUNINN_OPERATIONS", rounds(40000));

	(void)state;
	print_message("MUNINN_SEED=%llu\n", (unsigned long long)seed);
	for (uint64_t n = 0; n < 3; n++)
		run_model(seed + n, transactions, &model_options, NULL);
}

/* There is nothing of the kind with another index. */
static void of_bloom_only(void)
{
	if (index_under_test() != INDEX_BLOOM)
		skip();
}

static void test_store_equals_a_model_with_every_configuration_of_filters(void **state)
{
	static const struct {
		uint32_t filters, paged;
		bool even;
	} shapes[] = {
		{ 8, 8, false }, { 8, 8, true }, { 8, 7, true }, { 16, 16, false }, { 16, 15, true }
	};
	uint64_t seed = model_setting("MUNINN_SEED", 10);

	(void)state;
	of_bloom_only();
	print_message("MUNINN_SEED=%llu\n", (unsigned long long)seed);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct engine_options options = model_options;

		options.muninn.bloom.filters = shapes[i].filters;
		options.muninn.bloom.paged_filters = shapes[i].paged;
		options.muninn.bloom.even_filters = shapes[i].even;
		run_model(seed + i, 10000, &options, NULL);
	}
}

static void test_store_equals_a_model_with_tables_read_on_demand(void **state)
{
	uint64_t seed = model_setting("MUNINN_SEED", 30);
	struct engine_options options = model_options;

	(void)state;
	of_bloom_only();
	print_message("MUNINN_SEED=%llu\n", (unsigned long long)seed);
	options.muninn.bloom.table_cache_bytes = BLOOM_TABLE_CACHE_MIN;
	for (uint64_t n = 0; n < 2; n++)
		run_model(seed + n, 20000, &options, NULL);
}

/* The device has more rows, so that several buffers are under way at once. */
static void test_store_equals_a_model_while_full_buffers_are_sealed_behind_transactions(
	void **state)
{
	uint64_t seed = model_setting("MUNINN_SEED", 40);
	struct engine_options options = model_options;

	(void)state;
	print_message("MUNINN_SEED=%llu\n", (unsigned long long)seed);
	for (uint64_t n = 0; n < 4; n++) {
		struct sealers sealers = { .random = seed + n };

		options.muninn.rows = n % 2 ? 4 : 1;
		if (index_under_test() == INDEX_BLOOM)
			options.muninn.bloom.table_cache_bytes = n / 2 ? BLOOM_TABLE_CACHE_MIN : 0;
		run_model(seed + n, rounds(20000), &options, &sealers);
		print_message("%llu taken, %llu sealed, up to %llu at once\n",
			      (unsigned long long)sealers.taken, (unsigned long long)sealers.sealed,
			      (unsigned long long)sealers.most_at_once);
		assert_true(sealers.sealed > rounds(200) && sealers.most_at_once > n % 2);
	}
}

static void put_new_key(struct model *model, uint64_t number)
{
	struct record_key key = { .partition = 1, .identifier = 0x10000 + number };
	uint8_t value[100] = { 0 };

	model->store->operations->begin(model->store, 0);
	put_le64(value, number);
	assert_int_equal(model->store->operations->put(model->store, &key, 1, 0, value,
						       sizeof(value), false),
			 0);
	model->store->operations->commit(model->store);
}

/* Opening makes sections of the growing group as sealing does, but for what the last seal began. */
static void test_opening_needs_as_much_memory_for_the_index_as_sealing_left(void **state)
{
	struct model *model;
	struct record_statistics sealed = { 0 }, opened = { 0 };
	uint64_t number = 0;

	(void)state;
	if (index_under_test() != INDEX_RIBBON)
		skip();
	model = calloc(1, sizeof(*model));
	assert_non_null(model);
	model_open(model, &model_nand, &model_options);
	for (;;) {
		const struct muninn_store *store =
			(const struct muninn_store *)(const void *)model->store;
		uint32_t members = row_index_members(store->rows[0].index);

		if (members > 2 * RIBBON_SECTION_MEMBERS && members % RIBBON_SECTION_MEMBERS == 1)
			break;
		put_new_key(model, number++);
	}
	model->store->operations->statistics(model->store, &sealed);
	model_crash(model);
	model->store->operations->statistics(model->store, &opened);
	print_message("%llu and %llu bytes\n", (unsigned long long)sealed.index_bytes,
		      (unsigned long long)opened.index_bytes);
	assert_in_range(sealed.index_bytes, opened.index_bytes * 95 / 100,
			opened.index_bytes * 105 / 100);
	model_close(model);
}

static void test_tables_read_on_demand_take_the_memory_of_the_cache_and_are_counted(void **state)
{
	struct model *model;
	struct engine_options options = model_options;
	struct record_statistics in_memory = { 0 }, on_demand = { 0 };
	struct nand_counters counters;
	struct record_info info;
	struct muninn_store *store;
	uint8_t value[100];

	(void)state;
	of_bloom_only();
	model = calloc(1, sizeof(*model));
	assert_non_null(model);
	model_open(model, &model_nand, &options);
	for (uint64_t number = 0; number < 40000; number++)
		put_new_key(model, number);
	model->store->operations->statistics(model->store, &in_memory);
	assert_true(in_memory.tables > 10);
	assert_int_equal(in_memory.table_cache_bytes + in_memory.table_reads, 0);
	model->options.muninn.bloom.table_cache_bytes = BLOOM_TABLE_CACHE_MIN;
	model_crash(model);
	for (uint64_t number = 0; number < 40000; number += 7) {
		struct record_key key = { .partition = 1, .identifier = 0x10000 + number };

		assert_int_equal(model->store->operations->get(model->store, &key, RECORD_NEWEST,
							       value, sizeof(value), &info),
				 0);
		assert_int_equal(get_le64(value), number);
	}
	model->store->operations->statistics(model->store, &on_demand);
	nand_read_counters(model->nand, &counters);
	assert_int_equal(on_demand.tables, in_memory.tables);
	assert_true(on_demand.index_bytes < in_memory.index_bytes * 2 / 3);
	assert_true(on_demand.table_cache_bytes <= BLOOM_TABLE_CACHE_MIN + 8192);
	assert_true(on_demand.table_page_reads > 0 &&
		    on_demand.table_page_reads < on_demand.table_reads);
	assert_true(counters.by_cause[NAND_CAUSE_INDEX].pages_read >= on_demand.table_page_reads);
	/* A table that can't be read is an error, not an absent key. */
	store = (struct muninn_store *)(void *)model->store;
	for (uint32_t segment = 0; segment < store->geometry.segments; segment++)
		if (store->images[segment])
			assert_int_equal(nand_erase(model->nand, NAND_CAUSE_USER, segment), 0);
	struct record_key first = { .partition = 1, .identifier = 0x10000 };

	assert_int_equal(model->store->operations->get(model->store, &first, RECORD_NEWEST, value,
						       sizeof(value), &info),
			 -EBADMSG);
	model_close(model);
}

/* In segments of more pages than hash functions give places. */
static const struct engine_options spreading_options = { .muninn.rows = 1,
							 .muninn.segment_pages = 64,
							 .muninn.record_bytes = 128,
							 .muninn.bloom.hot_rows =
								 BLOOM_HOT_ROWS_SPREAD };

static void test_store_equals_a_model_with_hot_keys_spread(void **state)
{
	uint64_t seed = model_setting("MUNINN_SEED", 30);
	/* With another index it is only a device with more pages in a segment. */
	uint64_t seeds = index_under_test() == INDEX_BLOOM ? 3 : 1;

	(void)state;
	print_message("MUNINN_SEED=%llu\n", (unsigned long long)seed);
	for (uint64_t n = 0; n < seeds; n++)
		run_model(seed + n, 20000, &spreading_options, NULL);
}

/*
 * One key takes a quarter of the puts, the others are new ones. Returns the part of the sealed
 * segments that is used.
 */
static double utilization_with_a_hot_key(enum bloom_hot_rows policy)
{
	const struct nand_geometry nand = nand_geometry_default(UINT64_C(512) << 20);
	const struct engine_options options = { .muninn.rows = 8,
						.muninn.record_bytes = 1024,
						.muninn.bloom.hot_rows = policy };
	struct model *model = calloc(1, sizeof(*model));
	struct record_statistics statistics = { 0 };
	struct record_info info;
	uint8_t value[990] = { 0 };

	assert_non_null(model);
	model_open(model, &nand, &options);
	for (uint64_t n = 0; n < 150000; n++) {
		struct record_key key = { .partition = 1, .identifier = 0x10000 + n };

		if (n % 100 < 2)
			key.identifier = 1 << 30;
		model->store->operations->begin(model->store, 0);
		put_le64(value, n);
		assert_int_equal(model->store->operations->put(model->store, &key, 1, 0, value,
							       sizeof(value), false),
				 0);
		model->store->operations->commit(model->store);
		if (n % 1000 != 1)
			continue;
		/* The newest, and one of a hundred puts ago. */
		assert_int_equal(model->store->operations->get(model->store, &key, RECORD_NEWEST,
							       value, sizeof(value), &info),
				 0);
		assert_int_equal(get_le64(value), n);
		if (n > 1000) {
			assert_int_equal(model->store->operations->get(model->store, &key,
								       info.sequence - 100, value,
								       sizeof(value), &info),
					 0);
			assert_int_equal(get_le64(value), n - 100);
		}
	}
	model->store->operations->statistics(model->store, &statistics);
	model_close(model);
	return (double)statistics.sealed_record_bytes /
	       ((double)statistics.segments_sealed * (1 << 20));
}

static void test_rows_with_a_hot_key_that_is_spread_are_filled(void **state)
{
	double finalised = utilization_with_a_hot_key(BLOOM_HOT_ROWS_FINALISE);
	double spread = utilization_with_a_hot_key(BLOOM_HOT_ROWS_SPREAD);

	(void)state;
	print_message("finalised: %.3f, spread: %.3f\n", finalised, spread);
	if (index_under_test() == INDEX_BLOOM)
		assert_true(finalised < 0.9 && spread > 0.9);
	else /* A key may go to any page. */
		assert_true(finalised > 0.95 && spread > 0.95);
}

/* Its versions are on as many pages of a segment. */
static void test_an_old_version_of_a_hot_page_is_found_with_few_page_reads(void **state)
{
	enum { VERSIONS = 1300, READS_MAX = 10 };
	const struct nand_geometry nand = nand_geometry_default(UINT64_C(64) << 20);
	const struct engine_options options = { .muninn.rows = 1,
						.muninn.bloom.hot_rows = BLOOM_HOT_ROWS_SPREAD };
	const struct record_key key = { .partition = 1, .identifier = 0x10000 };
	struct model *model = calloc(1, sizeof(*model));
	struct record_statistics before = { 0 }, after = { 0 };
	static uint8_t value[4096];
	struct record_info info;

	(void)state;
	assert_non_null(model);
	model_open(model, &nand, &options);
	for (uint64_t n = 1; n <= VERSIONS; n++) {
		assert_int_equal(model->store->operations->begin(model->store, n), n);
		put_le64(value, n);
		assert_int_equal(model->store->operations->put(model->store, &key, 1, 0, value,
							       sizeof(value), RECORD_ROOM_WRITE),
				 0);
		model->store->operations->commit(model->store);
	}
	for (uint64_t n = 1; n <= VERSIONS; n++) {
		model->store->operations->statistics(model->store, &before);
		assert_int_equal(model->store->operations->get(model->store, &key, n, value,
							       sizeof(value), &info),
				 0);
		model->store->operations->statistics(model->store, &after);
		assert_true(info.sequence == n && get_le64(value) == n);
		assert_in_range(after.user_page_reads - before.user_page_reads, 0, READS_MAX);
	}
	/* Each segment holds hardly less than it has pages. */
	assert_true(after.segments_sealed >= 3 &&
		    after.sealed_records >= after.segments_sealed * 240);
	model_close(model);
}

static void test_many_versions_of_one_absorbed_key_do_not_fill_the_device(void **state)
{
	struct model *model = calloc(1, sizeof(*model));
	struct record_statistics statistics = { 0 };
	struct record_key key = model_key(0);
	struct record_info info;
	uint8_t value[100] = { 7 };

	(void)state;
	assert_non_null(model);
	model_open(model, &model_nand, &model_options);
	for (uint32_t i = 0; i < 100000; i++) {
		model->store->operations->begin(model->store, 0);
		put_le32(value, i);
		assert_int_equal(model->store->operations->put(model->store, &key, 1, RECORD_ABSORB,
							       value, sizeof(value), false),
				 0);
		model->store->operations->commit(model->store);
	}
	model->store->operations->statistics(model->store, &statistics);
	assert_int_equal(statistics.segments_sealed, 0);
	assert_int_equal(model->store->operations->get(model->store, &key, RECORD_NEWEST, value,
						       sizeof(value), &info),
			 0);
	assert_int_equal(get_le32(value), 99999);
	model_close(model);
}

/*
 * Twenty whole megabytes, each of consecutive pieces of one object: each fills a segment to the
 * last page.
 */
static struct model *with_twenty_megabytes(void)
{
	const struct nand_geometry nand = nand_geometry_default(UINT64_C(128) << 20);
	const struct engine_options options = { .muninn.rows = 1 };
	struct model *model = calloc(1, sizeof(*model));
	uint8_t value[4096] = { 0 };

	assert_non_null(model);
	model_open(model, &nand, &options);
	for (uint32_t piece = 0; piece < 20 * 256; piece++) {
		struct record_key key = { .partition = 1, .identifier = 0x10000, .piece = piece };

		model->store->operations->begin(model->store, 0);
		put_le32(value, piece);
		assert_int_equal(model->store->operations->put(model->store, &key, 1, 0, value,
							       sizeof(value), false),
				 0);
		model->store->operations->commit(model->store);
	}
	return model;
}

static void test_a_record_of_a_whole_page_costs_one_program(void **state)
{
	struct model *model = with_twenty_megabytes();
	struct record_statistics statistics = { 0 };
	struct nand_counters counters;

	(void)state;
	model->store->operations->statistics(model->store, &statistics);
	nand_read_counters(model->nand, &counters);
	/* The row has two buffers. */
	assert_int_equal(statistics.segments_sealed, 18);
	assert_int_equal(statistics.sealed_records, 18 * 256);
	assert_int_equal(counters.by_cause[NAND_CAUSE_USER].pages_programmed, 18 * 256);
	model_close(model);
}

/* By the model of time: a request occupies all dies that it needs at once. */
static void test_a_megabyte_is_read_in_few_requests(void **state)
{
	const struct nand_timing timing = { .mode = NAND_TIMING_VIRTUAL, .page_read_ns = 1000000 };
	struct record_key key = { .partition = 1, .identifier = 0x10000, .piece = 3 * 256 };
	struct model *model = with_twenty_megabytes();
	uint8_t *values = malloc(256 * 4096);
	struct record_found found[256];

	(void)state;
	assert_non_null(values);
	assert_int_equal(nand_set_timing(model->nand, &timing, NULL), 0);
	model->store->operations->get_run(model->store, &key, 256, RECORD_NEWEST, values, 4096,
					  found);
	/* Its segment is on four dies, with 64 pages each; some pieces need a second request. */
	assert_in_range(nand_now_ns(model->nand) / 1000000, 64, 70);
	for (uint32_t n = 0; n < 256; n++) {
		assert_int_equal(found[n].result, 0);
		assert_int_equal(get_le32(values + (size_t)n * 4096), key.piece + n);
	}
	free(values);
	model_close(model);
}

static void test_damaged_pages_of_a_run_do_not_hide_the_others(void **state)
{
	struct record_key key = { .partition = 1, .identifier = 0x10000, .piece = 3 * 256 };
	struct model *model = with_twenty_megabytes();
	struct nand_faults faults;
	uint32_t damaged = 0;

	(void)state;
	assert_int_equal(nand_faults_parse("seed=5,unreadable=0.01", &faults, NULL), 0);
	assert_int_equal(nand_set_faults(model->nand, &faults, NULL), 0);
	for (; key.piece < 12 * 256; key.piece += 256)
		damaged += model_check_run(model, key, 256, RECORD_NEWEST);
	assert_in_range(damaged, 1, 100);
	model_close(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opening_needs_as_much_memory_for_the_index_as_sealing_left),
		cmocka_unit_test(
			test_store_equals_a_model_under_random_transactions_aborts_and_crashes),
		cmocka_unit_test(test_store_equals_a_model_with_every_configuration_of_filters),
		cmocka_unit_test(test_store_equals_a_model_with_tables_read_on_demand),
		cmocka_unit_test(
			test_store_equals_a_model_while_full_buffers_are_sealed_behind_transactions),
		cmocka_unit_test(
			test_tables_read_on_demand_take_the_memory_of_the_cache_and_are_counted),
		cmocka_unit_test(test_store_equals_a_model_with_hot_keys_spread),
		cmocka_unit_test(test_an_old_version_of_a_hot_page_is_found_with_few_page_reads),
		cmocka_unit_test(test_rows_with_a_hot_key_that_is_spread_are_filled),
		cmocka_unit_test(test_many_versions_of_one_absorbed_key_do_not_fill_the_device),
		cmocka_unit_test(test_a_record_of_a_whole_page_costs_one_program),
		cmocka_unit_test(test_a_megabyte_is_read_in_few_requests),
		cmocka_unit_test(test_damaged_pages_of_a_run_do_not_hide_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
