/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The Muninn record store against a model that keeps every version: random transactions, aborts and crashes on a
 * device so small that segments are sealed, tables completed and places overflowed all the time.
 * MUNINN_SEED and MUNINN_OPERATIONS choose another run; the seed is printed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>

#include "common/bytes.h"
#include "engine/muninn/store.h"

enum { KEYS = 300, VALUE_MAX = 512, PUTS_MAX = 12 };

/* One version of a key as it should be found. */
struct expected {
	uint64_t sequence;
	uint64_t fill;
	uint16_t length;
	uint16_t version;
	uint8_t flags;
};

struct history {
	struct expected *versions;
	size_t count, capacity;
};

struct bench {
	struct nand *nand;
	struct record_store *store;
	uint64_t random;
	struct history keys[KEYS];
	uint64_t sequence;
};

static uint64_t next_random(struct bench *bench)
{
	return hash_mix(bench->random += UINT64_C(0x9e3779b97f4a7c15));
}

static uint32_t below(struct bench *bench, uint32_t limit)
{
	return (uint32_t)(next_random(bench) % limit);
}

/* Onode-like pieces, consecutive pieces of one object, and single keys. */
static struct record_key key_of(uint32_t number)
{
	if (number < 20)
		return (struct record_key){ .partition = 1, .identifier = 0x10000 + number, .piece = UINT32_MAX };
	if (number < 150)
		return (struct record_key){ .partition = 1, .identifier = 0x20000, .piece = number };
	return (struct record_key){ .partition = 2, .identifier = UINT64_C(0x100000000) * number, .piece = 0 };
}

static bool is_absorbed(uint32_t number)
{
	return number < 10;
}

static void fill_value(uint8_t *value, uint16_t length, uint64_t fill)
{
	for (uint16_t i = 0; i < length; i++)
		value[i] = (uint8_t)(hash_mix(fill + i / 8) >> i % 8 * 8);
}

static void add_expected(struct history *history, const struct expected *version)
{
	if (history->count == history->capacity) {
		history->capacity = history->capacity ? history->capacity * 2 : 8;
		history->versions = realloc(history->versions, history->capacity * sizeof(*version));
		assert_non_null(history->versions);
	}
	history->versions[history->count++] = *version;
}

static const struct expected *find_expected(const struct history *history, uint64_t bound)
{
	for (size_t i = history->count; i-- > 0;)
		if (history->versions[i].sequence <= bound)
			return &history->versions[i];
	return NULL;
}

static void check_key(struct bench *bench, uint32_t number, uint64_t bound)
{
	const struct expected *expected = find_expected(&bench->keys[number], bound);
	struct record_key key = key_of(number);
	struct record_info info;
	uint8_t found[VALUE_MAX], wanted[VALUE_MAX];
	int result = bench->store->operations->get(bench->store, &key, bound, found, sizeof(found), &info);

	if (!expected) {
		assert_int_equal(result, -ENOENT);
		return;
	}
	if (result)
		print_error("key %u bound %llu: result %d\n", number, (unsigned long long)bound, result);
	assert_int_equal(result, 0);
	assert_int_equal(info.sequence, expected->sequence);
	assert_int_equal(info.length, expected->length);
	assert_int_equal(info.version, expected->version);
	assert_int_equal(info.flags, expected->flags);
	fill_value(wanted, expected->length, expected->fill);
	assert_memory_equal(found, wanted, expected->length);
}

static void check_all(struct bench *bench)
{
	for (uint32_t number = 0; number < KEYS; number++)
		check_key(bench, number, RECORD_NEWEST);
}

static const struct nand_geometry small_nand = {
	.page_bytes = 512, .spare_bytes = 64, .pages_per_block = 8, .blocks = 6000, .channels = 1, .dies_per_channel = 1,
};

static const struct engine_options small_options = { .rows = 2, .segment_pages = 8, .record_bytes = 128 };

static void open_bench(struct bench *bench, const struct nand_geometry *nand, const struct engine_options *options)
{
	struct error_text error = { "" };
	uint64_t nvram;

	assert_int_equal(muninn_nvram_bytes(nand, options, &nvram, &error), 0);
	assert_int_equal(nand_open_memory(nand, nvram, &bench->nand, &error), 0);
	if (muninn_format(bench->nand, options, &error) || muninn_open(bench->nand, options, &bench->store, &error))
		fail_msg("%s", error.text);
}

static void crash_and_open(struct bench *bench)
{
	struct error_text error = { "" };

	bench->store->operations->close(bench->store, false);
	if (muninn_open(bench->nand, &(struct engine_options){ 0 }, &bench->store, &error))
		fail_msg("%s", error.text);
}

static void close_bench(struct bench *bench)
{
	assert_int_equal(bench->store->operations->close(bench->store, true), 0);
	assert_int_equal(nand_close(bench->nand), 0);
	for (uint32_t number = 0; number < KEYS; number++)
		free(bench->keys[number].versions);
	free(bench);
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

static struct expected random_version(struct bench *bench, uint32_t number, uint64_t sequence)
{
	struct expected version = {
		.sequence = sequence,
		.fill = next_random(bench),
		.length = (uint16_t)(below(bench, 10) ? below(bench, 150) : below(bench, VALUE_MAX + 1)),
		.version = (uint16_t)(1 + sequence / 1000),
		.flags = is_absorbed(number) ? RECORD_ABSORB : 0,
	};

	if (below(bench, 15) == 0) {
		version.flags |= RECORD_TOMBSTONE;
		version.length = 0;
	}
	return version;
}

static int put_version(struct bench *bench, uint32_t number, const struct expected *version, bool reserve)
{
	struct record_key key = key_of(number);
	uint8_t value[VALUE_MAX];

	fill_value(value, version->length, version->fill);
	return bench->store->operations->put(bench->store, &key, version->version, version->flags, value,
					     version->length, reserve);
}

/* One transaction of some puts; committed, aborted or cut off by a crash. Returns false when the device is full. */
static bool random_transaction(struct bench *bench, bool commit, bool crash)
{
	const struct record_store_operations *operations = bench->store->operations;
	uint32_t count = below(bench, 20) ? 1 + below(bench, 3) : 1 + below(bench, PUTS_MAX);
	uint64_t sequence = operations->begin(bench->store);
	uint32_t numbers[PUTS_MAX];
	struct expected puts[PUTS_MAX];

	assert_true(sequence > bench->sequence);
	for (uint32_t i = 0; i < count; i++) {
		numbers[i] = below(bench, 4) ? below(bench, KEYS) : below(bench, 12);
		puts[i] = random_version(bench, numbers[i], sequence);
		int result = put_version(bench, numbers[i], &puts[i], false);

		if (result == -ENOSPC) {
			operations->abort(bench->store);
			return false;
		}
		assert_int_equal(result, 0);
	}
	if (crash) {
		crash_and_open(bench);
	} else if (!commit) {
		operations->abort(bench->store);
	} else {
		operations->commit(bench->store);
		bench->sequence = sequence;
		for (uint32_t i = 0; i < count; i++)
			add_expected(&bench->keys[numbers[i]], &puts[i]);
	}
	return true;
}

static void run_model(uint64_t seed, uint64_t transactions, const struct engine_options *options)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	struct engine_statistics statistics = { 0 };
	uint64_t done = 0;
	bool room = true;

	assert_non_null(bench);
	bench->random = seed;
	open_bench(bench, &small_nand, options);
	for (; done < transactions && room; done++) {
		uint32_t dice = below(bench, 200);

		room = random_transaction(bench, dice >= 10, dice < 2);
		check_key(bench, below(bench, KEYS), RECORD_NEWEST);
		check_key(bench, 10 + below(bench, KEYS - 10), next_random(bench) % (bench->sequence + 1));
		if (dice == 50)
			crash_and_open(bench);
		if (dice == 51)
			assert_int_equal(bench->store->operations->flush(bench->store), 0);
		if (done % 1000 == 0)
			check_all(bench);
	}
	check_all(bench);
	crash_and_open(bench);
	check_all(bench);
	bench->store->operations->statistics(bench->store, &statistics);
	print_message("%llu transactions, %llu segments sealed, %llu tables, %.1f %% of their space used\n",
		      (unsigned long long)done, (unsigned long long)statistics.segments_sealed,
		      (unsigned long long)statistics.tables,
		      100.0 * (double)statistics.sealed_record_bytes /
			      ((double)statistics.segments_sealed * options->segment_pages * small_nand.page_bytes));
	assert_true(statistics.tables >= 2);
	close_bench(bench);
}

static void test_store_equals_a_model_under_random_transactions_aborts_and_crashes(void **state)
{
	uint64_t seed = from_environment("MUNINN_SEED", 1);
	uint64_t transactions = from_environment("MUNINN_OPERATIONS", 40000);

	(void)state;
	print_message("MUNINN_SEED=%llu\n", (unsigned long long)seed);
	for (uint64_t n = 0; n < 3; n++)
		run_model(seed + n, transactions, &small_options);
}

static void test_store_equals_a_model_with_every_configuration_of_filters(void **state)
{
	static const struct {
		uint32_t filters, paged;
		bool even;
	} shapes[] = { { 8, 8, false }, { 8, 8, true }, { 8, 7, true }, { 16, 16, false }, { 16, 15, true } };
	uint64_t seed = from_environment("MUNINN_SEED", 10);

	(void)state;
	print_message("MUNINN_SEED=%llu\n", (unsigned long long)seed);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct engine_options options = small_options;

		options.filters = shapes[i].filters;
		options.paged_filters = shapes[i].paged;
		options.even_filters = shapes[i].even;
		run_model(seed + i, 10000, &options);
	}
}

static void test_a_full_device_refuses_puts_keeps_everything_and_still_takes_reserved_ones(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	const struct nand_geometry nand = {
		.page_bytes = 512, .spare_bytes = 64, .pages_per_block = 8, .blocks = 120, .channels = 1,
		.dies_per_channel = 1,
	};
	uint64_t transactions = 0;
	int result = 0;

	(void)state;
	assert_non_null(bench);
	open_bench(bench, &nand, &small_options);
	while (random_transaction(bench, true, false))
		assert_true(++transactions < 100000);
	check_all(bench);
	crash_and_open(bench);
	check_all(bench);
	/* Reserved puts go on for a while, then are refused too, and nothing is lost. */
	for (uint32_t puts = 0; result == 0; puts++) {
		struct expected version = { .length = 100, .version = 9, .fill = puts };

		assert_true(puts < 100000);
		version.sequence = bench->store->operations->begin(bench->store);
		result = put_version(bench, 200, &version, true);
		if (result == 0) {
			bench->store->operations->commit(bench->store);
			add_expected(&bench->keys[200], &version);
		} else {
			assert_int_equal(result, -ENOSPC);
			assert_true(puts > 30);
			bench->store->operations->abort(bench->store);
		}
	}
	check_all(bench);
	crash_and_open(bench);
	check_all(bench);
	close_bench(bench);
}

static void test_format_empties_the_store_and_sequence_numbers_go_on(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	struct record_info info;
	uint64_t before;

	(void)state;
	assert_non_null(bench);
	open_bench(bench, &small_nand, &small_options);
	for (uint32_t i = 0; i < 5000; i++)
		assert_true(random_transaction(bench, true, false));
	before = bench->sequence;
	assert_int_equal(bench->store->operations->format(bench->store), 0);
	for (uint32_t number = 0; number < KEYS; number++)
		bench->keys[number].count = 0;
	check_all(bench);
	crash_and_open(bench);
	check_all(bench);
	for (uint32_t i = 0; i < 5000; i++)
		assert_true(random_transaction(bench, true, false));
	assert_true(bench->sequence > before);
	check_all(bench);
	assert_int_equal(bench->store->operations->get(bench->store, &(struct record_key){ .partition = 9 },
						       RECORD_NEWEST, NULL, 0, &info), -ENOENT);
	close_bench(bench);
}

static void test_many_versions_of_one_absorbed_key_do_not_fill_the_device(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	struct engine_statistics statistics = { 0 };
	struct record_key key = key_of(0);
	struct record_info info;
	uint8_t value[100] = { 7 };

	(void)state;
	assert_non_null(bench);
	open_bench(bench, &small_nand, &small_options);
	for (uint32_t i = 0; i < 100000; i++) {
		bench->store->operations->begin(bench->store);
		put_le32(value, i);
		assert_int_equal(bench->store->operations->put(bench->store, &key, 1, RECORD_ABSORB, value, sizeof(value),
							       false), 0);
		bench->store->operations->commit(bench->store);
	}
	bench->store->operations->statistics(bench->store, &statistics);
	assert_int_equal(statistics.segments_sealed, 0);
	assert_int_equal(bench->store->operations->get(bench->store, &key, RECORD_NEWEST, value, sizeof(value), &info), 0);
	assert_int_equal(get_le32(value), 99999);
	close_bench(bench);
}

static void test_a_record_of_a_whole_page_costs_one_program(void **state)
{
	const struct nand_geometry nand = nand_geometry_default(UINT64_C(128) << 20);
	const struct engine_options options = { .rows = 1 };
	struct bench *bench = calloc(1, sizeof(*bench));
	struct engine_statistics statistics = { 0 };
	struct nand_counters counters;
	uint8_t value[4096] = { 0 };

	(void)state;
	assert_non_null(bench);
	open_bench(bench, &nand, &options);
	/* Twenty whole megabytes, each of consecutive pieces of one object: each fills a segment to the last page. */
	for (uint32_t piece = 0; piece < 20 * 256; piece++) {
		struct record_key key = { .partition = 1, .identifier = 0x10000, .piece = piece };

		bench->store->operations->begin(bench->store);
		put_le32(value, piece);
		assert_int_equal(bench->store->operations->put(bench->store, &key, 1, 0, value, sizeof(value), false), 0);
		bench->store->operations->commit(bench->store);
	}
	bench->store->operations->statistics(bench->store, &statistics);
	nand_read_counters(bench->nand, &counters);
	assert_int_equal(statistics.segments_sealed, 19);
	assert_int_equal(statistics.sealed_records, 19 * 256);
	assert_int_equal(counters.by_cause[NAND_CAUSE_USER].pages_programmed, 19 * 256);
	close_bench(bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_store_equals_a_model_under_random_transactions_aborts_and_crashes),
		cmocka_unit_test(test_store_equals_a_model_with_every_configuration_of_filters),
		cmocka_unit_test(test_a_full_device_refuses_puts_keeps_everything_and_still_takes_reserved_ones),
		cmocka_unit_test(test_format_empties_the_store_and_sequence_numbers_go_on),
		cmocka_unit_test(test_many_versions_of_one_absorbed_key_do_not_fill_the_device),
		cmocka_unit_test(test_a_record_of_a_whole_page_costs_one_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
