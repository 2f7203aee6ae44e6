/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Who looks for an old version passes over those pages of a buffer that have only newer records,
 * and never one that has an older one, whatever has happened to the buffer. Who puts a record
 * passes over those that are full.
 *
 * Runs for each index.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "engine/muninn/row.h"
#include "engine/muninn/store.h"
#include "engine/open.h"
#include "engine/options.h"
#include "tests/engine/index_under_test.h"
#include "tests/engine/muninn/ribbon_random.h"

enum { PAGE = 4096, SMALL = 300, SEGMENT_PAGES = 64, ROWS = 2, KEYS = 40 };

struct device {
	struct nand *nand;
	struct record_store *store;
	struct engine_options options;
	uint64_t random, last; /* number that was committed last */
};

static void open_device(struct device *device)
{
	struct error_text error = { "" };

	if (engine_open_records(device->nand, &device->options, &device->store, &error))
		fail_msg("%s", error.text);
}

static int setup(void **state)
{
	const struct nand_geometry geometry = nand_geometry_default(UINT64_C(64) << 20);
	struct device *device = calloc(1, sizeof(*device));
	struct error_text error = { "" };
	uint64_t nvram;

	assert_non_null(device);
	device->options = (struct engine_options){
		.muninn = { .index = index_under_test(),
			    .rows = ROWS,
			    .segment_pages = SEGMENT_PAGES,
			    .record_bytes = 512,
			    .bloom.hot_rows = BLOOM_HOT_ROWS_SPREAD },
	};
	if (engine_nvram_bytes(&geometry, &device->options, &nvram, &error) ||
	    nand_open_memory(&geometry, nvram, &device->nand, &error) ||
	    engine_format(device->nand, &device->options, &error))
		fail_msg("%s", error.text);
	open_device(device);
	*state = device;
	return 0;
}

static int teardown(void **state)
{
	struct device *device = *state;

	device->store->operations->close(device->store, false);
	assert_int_equal(nand_close(device->nand), 0);
	free(device);
	return 0;
}

/* ---- what happens ---- */

static struct record_key key_of(uint32_t number)
{
	return (struct record_key){ .class = RECORD_CLASS_DATA,
				    .partition = 1,
				    .identifier = 0x10000 + number };
}

/* `absorbs`: it may take the place of older records of its key, all the way back. */
static void put(struct device *device, uint32_t number, uint32_t length, bool absorbs, bool aborts)
{
	const struct record_store_operations *operations = device->store->operations;
	struct record_key key = key_of(number);
	uint8_t value[PAGE] = { 0 };
	uint64_t sequence = operations->begin(device->store, 0);

	assert_int_equal(operations->put(device->store, &key, absorbs ? 0 : sequence,
					 absorbs ? RECORD_ABSORB : 0, value, length,
					 RECORD_ROOM_WRITE),
			 0);
	if (aborts) {
		operations->abort(device->store);
		return;
	}
	operations->commit(device->store);
	device->last = sequence;
}

/* ---- what must hold ---- */

/* The lowest number in a page; UINT64_MAX: it is empty. */
static uint64_t lowest_in(const struct page_view *page)
{
	struct page_record record;
	uint32_t offset = 0;
	uint64_t lowest = UINT64_MAX;

	while (page_next(page, &offset, &record))
		lowest = min_u64(lowest, record_sequence(record.header));
	return lowest;
}

/* Of a key's pages, in a buffer: those that are given up to a bound. Returns how many are not. */
static uint32_t check_key(const struct buffer *buffer, uint32_t number, uint64_t bound)
{
	const struct record_key key = key_of(number);
	struct key_hash hash = key_hash(&key, SEGMENT_PAGES);
	uint32_t all = UINT32_MAX, wanted = UINT32_MAX, passed = 0;
	struct page_view page, given;
	bool has_given = buffer_next_page(buffer, &hash, bound, &wanted, &given);

	while (buffer_next_page(buffer, &hash, RECORD_NEWEST, &all, &page)) {
		if (has_given && given.data == page.data) {
			has_given = buffer_next_page(buffer, &hash, bound, &wanted, &given);
			continue;
		}
		assert_true(lowest_in(&page) > bound);
		passed++;
	}
	assert_false(has_given);
	return passed;
}

/* Returns how many pages were passed over, of all keys at some bounds. */
static uint32_t check(struct device *device)
{
	const struct muninn_store *store = (const struct muninn_store *)(void *)device->store;
	uint32_t passed = 0;

	for (uint32_t row = 0; row < ROWS; row++) {
		const struct buffer *buffers[] = { &store->rows[row].buffer,
						   &store->rows[row].newer };

		for (uint32_t n = 0; n < 1U + row_has_newer(&store->rows[row]); n++)
			for (uint32_t key = 0; key < KEYS; key++)
				passed += check_key(
					buffers[n], key,
					below(&device->random, (uint32_t)device->last + 1));
	}
	return passed;
}

/* ---- */

enum { QUARTER = PAGE / 4 - RECORD_HEADER_BYTES };

/* The first page that a key of row 0 that is nowhere is offered. */
static uint32_t first_page(const struct device *device)
{
	const struct muninn_store *store = (const struct muninn_store *)(void *)device->store;
	struct record_key key;
	struct key_hash hash;
	uint32_t number = 1000;

	do {
		key = key_of(number++);
		hash = key_hash(&key, SEGMENT_PAGES);
	} while (hash_row(&hash, ROWS) != 0);
	return segment_index_first(store->rows[0].buffer.index, &hash);
}

/* Puts `count` keys of row 0, from *number on, four to a page. */
static void put_quarters(struct device *device, uint32_t *number, uint32_t count)
{
	const struct record_store_operations *operations = device->store->operations;
	const uint8_t value[QUARTER] = { 0 };

	while (count) {
		struct record_key key = key_of((*number)++);
		struct key_hash hash = key_hash(&key, SEGMENT_PAGES);

		if (hash_row(&hash, ROWS) != 0)
			continue;
		assert_int_equal(operations->put(device->store, &key, 0, RECORD_ABSORB, value,
						 QUARTER, RECORD_ROOM_WRITE),
				 0);
		count--;
	}
}

/* One key that passes a full page by is enough, unless an abort may still take records out of it.
 */
static void test_full_pages_are_passed_over_when_they_are_committed(void **state)
{
	struct device *device = *state;
	const struct record_store_operations *operations = device->store->operations;
	uint32_t number = 0;

	if (index_under_test() != INDEX_RIBBON)
		skip();
	operations->begin(device->store, 0);
	put_quarters(device, &number, 9);
	operations->abort(device->store);
	assert_int_equal(first_page(device), 0);
	operations->begin(device->store, 0);
	put_quarters(device, &number, 9);
	operations->commit(device->store);
	assert_int_equal(first_page(device), 0);
	operations->begin(device->store, 0);
	put_quarters(device, &number, 1);
	operations->commit(device->store);
	assert_int_equal(first_page(device), 2);
}

static void test_pages_with_newer_records_alone_are_passed_over(void **state)
{
	struct device *device = *state;
	const struct muninn_store *store;
	const struct record_key key = key_of(0);
	struct key_hash hash = key_hash(&key, SEGMENT_PAGES);
	const struct buffer *buffer;
	uint64_t middle = 0;
	uint32_t passed;

	for (uint32_t n = 0; n < 300; n++) {
		put(device, 0, SMALL, false, false);
		middle = n == 150 ? device->last : middle;
	}
	for (uint32_t turn = 0; turn < 2; turn++) {
		store = (const struct muninn_store *)(void *)device->store;
		buffer = &store->rows[hash_row(&hash, ROWS)].buffer;
		/* 12 records a page. */
		passed = check_key(buffer, 0, middle);
		assert_in_range(passed, 10, 15);
		assert_int_equal(check_key(buffer, 0, RECORD_NEWEST), 0);
		assert_in_range(check_key(buffer, 0, 0), 24, 30);
		device->store->operations->close(device->store, false);
		open_device(device);
	}
}

static void test_no_page_with_an_older_record_is_passed_over(void **state)
{
	struct device *device = *state;
	uint32_t passed = 0;

	for (uint32_t n = 0; n < 6000; n++) {
		uint32_t dice = below(&device->random, 100);

		put(device, below(&device->random, dice % 2 ? 4 : KEYS), dice % 3 ? SMALL : PAGE,
		    dice<70, dice> 90);
		if (n % 10 == 0)
			passed += check(device);
		if (n % 500 == 499) {
			device->store->operations->close(device->store, n % 1000 == 999);
			open_device(device);
		}
	}
	assert_true(passed > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_full_pages_are_passed_over_when_they_are_committed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pages_with_newer_records_alone_are_passed_over,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_page_with_an_older_record_is_passed_over,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
