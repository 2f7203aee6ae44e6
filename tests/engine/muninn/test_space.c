/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Erasures spread over all segments, those of data that never change too, and what an aborted
 * transaction leaves. Which free segment is taken is in tests/engine/records/test_space.c.
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
#include "engine/open.h"
#include "tests/engine/small_flash.h"

enum { SEGMENTS = 208, COLD_KEYS = 1600, HOT_KEYS = 200, VALUE_BYTES = 200, FREE_MIN = 45 };

static const struct nand_geometry nand_shape = SMALL_FLASH(SEGMENTS);
static const struct engine_options options = { .muninn.rows = 2,
					       .muninn.segment_pages = 8,
					       .muninn.record_bytes = 256 };

static struct nand *open_nand(uint64_t nvram_bytes)
{
	struct error_text error = { "" };
	struct nand *nand = NULL;

	if (nand_open_memory(&nand_shape, nvram_bytes, &nand, &error))
		fail_msg("%s", error.text);
	return nand;
}

/* ---- a store with data that never change ---- */

static void put(struct record_store *store, uint32_t number, uint64_t stamp)
{
	struct record_key key = { .partition = 1, .identifier = 0x10000 + number };
	uint8_t value[VALUE_BYTES] = { 0 };

	put_le64(value, stamp);
	store->operations->begin(store, 0);
	assert_int_equal(store->operations->put(store, &key, 1, 0, value, sizeof(value), false), 0);
	store->operations->commit(store);
}

static void check(struct record_store *store, uint32_t number, uint64_t stamp)
{
	struct record_key key = { .partition = 1, .identifier = 0x10000 + number };
	struct record_info info;
	uint8_t value[VALUE_BYTES];

	assert_int_equal(
		store->operations->get(store, &key, RECORD_NEWEST, value, sizeof(value), &info), 0);
	assert_int_equal(get_le64(value), stamp);
}

static void merge_when_low(struct record_store *store)
{
	const struct record_keep keep = { 0 }; /* the present is all */
	struct record_merge merge = { .live_permille_max = 800 };
	struct record_statistics statistics = { 0 };

	for (int i = 0; i < 100; i++) {
		store->operations->statistics(store, &statistics);
		if (statistics.segments_free >= FREE_MIN)
			return;
		int result = store->operations->merge(store, &keep, &merge);

		assert_true(result == 0 || result == -EAGAIN);
	}
	fail_msg("a hundred merges free nothing");
}

/* The ring of roots before the first block is apart from that. */
static void erasures(struct nand *nand, uint32_t first, uint32_t *least, uint32_t *most)
{
	*least = UINT32_MAX;
	*most = 0;
	for (uint32_t block = first; block < nand_shape.blocks; block++) {
		struct nand_block_info info;

		assert_int_equal(nand_block_info(nand, block, &info), 0);
		*least = info.erase_count < *least ? info.erase_count : *least;
		*most = info.erase_count > *most ? info.erase_count : *most;
	}
}

static void test_erasures_spread_over_segments_of_data_that_never_change(void **state)
{
	struct error_text error = { "" };
	struct record_store *store = NULL;
	uint64_t nvram_bytes, stamps[HOT_KEYS] = { 0 }, random = 1;
	uint32_t least, most;
	struct nand *nand;

	(void)state;
	assert_int_equal(engine_nvram_bytes(&nand_shape, &options, &nvram_bytes, &error), 0);
	nand = open_nand(nvram_bytes);
	assert_int_equal(engine_format(nand, &options, &error), 0);
	assert_int_equal(engine_open_records(nand, &options, &store, &error), 0);
	for (uint32_t number = 0; number < COLD_KEYS; number++) {
		put(store, HOT_KEYS + number, number);
		merge_when_low(store);
	}
	for (uint64_t stamp = 1; stamp < 400000; stamp++) {
		uint32_t number = (uint32_t)(hash_mix(random++) % HOT_KEYS);

		put(store, number, stamps[number] = stamp);
		merge_when_low(store);
	}
	erasures(nand, ((struct muninn_store *)(void *)store)->geometry.root_segments, &least,
		 &most);
	print_message("erasures of a block: %u to %u\n", least, most);
	assert_true(most > 150);
	assert_true(most - least < 64);
	for (uint32_t number = 0; number < HOT_KEYS; number++)
		check(store, number, stamps[number]);
	for (uint32_t number = 0; number < COLD_KEYS; number++)
		check(store, HOT_KEYS + number, number);
	store->operations->close(store, true);
	assert_int_equal(nand_close(nand), 0);
}

/* ---- what a transaction leaves that is aborted ---- */

/* Begins a transaction of `records` records and aborts it. */
static void put_and_abort(struct record_store *store, uint32_t records)
{
	const uint8_t value[VALUE_BYTES] = { 0 };

	store->operations->begin(store, 0);
	for (uint32_t number = 0; number < records; number++) {
		struct record_key key = { .partition = 2, .identifier = 0x10000 + number };

		assert_int_equal(
			store->operations->put(store, &key, 1, 0, value, sizeof(value), false), 0);
	}
	store->operations->abort(store);
}

static uint64_t used_bytes(struct record_store *store)
{
	struct record_statistics statistics = { 0 };

	store->operations->statistics(store, &statistics);
	return statistics.used_bytes;
}

static void test_an_aborted_transaction_leaves_no_more_than_the_segments_that_it_filled(
	void **state)
{
	const uint64_t segment_bytes =
		(uint64_t)options.muninn.segment_pages * nand_shape.page_bytes;
	struct error_text error = { "" };
	struct record_store *store;
	uint64_t nvram_bytes, before;
	struct nand *nand;

	(void)state;
	assert_int_equal(engine_nvram_bytes(&nand_shape, &options, &nvram_bytes, &error), 0);
	nand = open_nand(nvram_bytes);
	assert_int_equal(engine_format(nand, &options, &error), 0);
	assert_int_equal(engine_open_records(nand, &options, &store, &error), 0);
	put(store, 0, 1);
	before = used_bytes(store);
	put_and_abort(store, 12);
	assert_int_equal(used_bytes(store), before);
	put_and_abort(store, 200);
	assert_true(used_bytes(store) >= before + segment_bytes);
	assert_true(used_bytes(store) <= before + 200 * (VALUE_BYTES + 64));
	store->operations->close(store, false);
	assert_int_equal(nand_close(nand), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_erasures_spread_over_segments_of_data_that_never_change),
		cmocka_unit_test(
			test_an_aborted_transaction_leaves_no_more_than_the_segments_that_it_filled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
