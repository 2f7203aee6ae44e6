/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Pages of data, and records that share one, are overwritten within an epoch: while they are
 * buffered, the newer one takes the place of the older. How much that saves, and that a crash or a
 * reader before the commit finds the older one.
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

#include "common/bytes.h"
#include "engine/muninn/format.h"
#include "engine/muninn/hash.h"
#include "engine/open.h"
#include "engine/options.h"
#include "tests/engine/flush_now.h"
#include "tests/engine/index_under_test.h"

enum { PAGE = 4096, SEGMENT_PAGES = 64, ROWS = 4, KEYS = 4000 };

/* What is put: a page of its own, or so many bytes of one. */
static uint32_t value_bytes = PAGE, page_records = 1;

struct device {
	struct nand *nand;
	struct record_store *store;
	struct engine_options options;
	unsigned flags;    /* of what is put */
	uint64_t at_least; /* its number */
	uint64_t random;
	uint64_t puts[KEYS]; /* the put that wrote it last; 0: none */
};

static uint32_t below(struct device *device, uint32_t limit)
{
	return (uint32_t)(hash_mix(++device->random) % limit);
}

static void open_device(struct device *device)
{
	struct error_text error = { "" };

	if (engine_open_records(device->nand, &device->options, &device->store, &error))
		fail_msg("%s", error.text);
}

static struct device *new_device(unsigned flags)
{
	const struct nand_geometry geometry = nand_geometry_default(UINT64_C(256) << 20);
	struct device *device = calloc(1, sizeof(*device));
	struct error_text error = { "" };
	uint64_t nvram;

	assert_non_null(device);
	device->flags = flags;
	device->options = (struct engine_options){
		.muninn = { .index = index_under_test(),
			    .rows = ROWS,
			    .segment_pages = SEGMENT_PAGES,
			    .bloom.hot_rows = BLOOM_HOT_ROWS_SPREAD },
	};
	if (engine_nvram_bytes(&geometry, &device->options, &nvram, &error) ||
	    nand_open_memory(&geometry, nvram, &device->nand, &error) ||
	    engine_format(device->nand, &device->options, &error))
		fail_msg("%s", error.text);
	open_device(device);
	return device;
}

static uint64_t used_bytes(struct device *device)
{
	struct record_statistics statistics = { 0 };

	device->store->operations->statistics(device->store, &statistics);
	return statistics.used_bytes;
}

/* Without a transaction. Opening counts again what the store has kept count of. */
static void open_again(struct device *device)
{
	uint64_t used = used_bytes(device);

	device->store->operations->close(device->store, false);
	open_device(device);
	assert_int_equal(used_bytes(device), used);
}

static void free_device(struct device *device)
{
	device->store->operations->close(device->store, false);
	assert_int_equal(nand_close(device->nand), 0);
	free(device);
}

/* ---- puts ---- */

static struct record_key key_of(uint32_t number)
{
	return (struct record_key){ .class = RECORD_CLASS_DATA,
				    .partition = 1,
				    .identifier = 0x10000 + number };
}

static void fill(uint8_t page[PAGE], uint32_t number, uint64_t put)
{
	memset(page, (int)(put * 31 + number), PAGE);
	put_le64(page, put);
}

/* Puts a page in the open transaction, which has a number. */
static void put_page(struct device *device, uint64_t sequence, uint32_t number, uint64_t put)
{
	struct record_key key = key_of(number);
	uint8_t page[PAGE];

	fill(page, number, put);
	assert_int_equal(
		device->store->operations->put(device->store, &key, sequence & ~(RECORD_SLOT - 1),
					       device->flags, page, value_bytes, RECORD_ROOM_WRITE),
		0);
}

static uint64_t begin(struct device *device)
{
	return device->store->operations->begin(device->store, device->at_least);
}

static void put(struct device *device, uint32_t number, uint64_t put)
{
	put_page(device, begin(device), number, put);
	device->store->operations->commit(device->store);
	device->puts[number] = put;
}

static void check(struct device *device, uint32_t number)
{
	struct record_key key = key_of(number);
	uint8_t page[PAGE], wanted[PAGE];
	struct record_info info;
	int result = device->store->operations->get(device->store, &key, RECORD_NEWEST, page, PAGE,
						    &info);

	if (!device->puts[number]) {
		assert_int_equal(result, -ENOENT);
		return;
	}
	fill(wanted, number, device->puts[number]);
	assert_int_equal(result, 0);
	assert_int_equal(info.length, value_bytes);
	assert_memory_equal(page, wanted, value_bytes);
}

static void check_all(struct device *device)
{
	for (uint32_t number = 0; number < KEYS; number++)
		check(device, number);
}

static uint64_t programs(struct device *device)
{
	struct nand_counters counters;

	nand_read_counters(device->nand, &counters);
	return counters.by_cause[NAND_CAUSE_USER].pages_programmed;
}

/* ---- what it saves ---- */

static void test_one_page_that_is_written_for_ever_is_never_programmed(void **state)
{
	struct device *device = new_device(RECORD_ABSORB);

	(void)state;
	for (uint64_t n = 1; n <= 20000; n++)
		put(device, 7, n);
	check(device, 7);
	assert_int_equal(programs(device), 0);
	free_device(device);
}

/* A quarter of the pages takes three quarters of the writes, and so on within that quarter. */
static uint32_t some_hot_key(struct device *device)
{
	uint32_t range = KEYS;

	while (range > 1 && below(device, 4))
		range = range / 4 + 1;
	return below(device, range);
}

/* What segments would take of which no page is lost. */
struct ideal {
	uint64_t programs;
	uint32_t records[ROWS];  /* of the row's segment so far */
	uint32_t segments[ROWS]; /* of the row */
	uint32_t in[KEYS];       /* number of the segment of its row that has the key; 0: none */
};

static void note_ideal(struct ideal *ideal, uint32_t number)
{
	const struct record_key key = key_of(number);
	const struct key_hash hash = key_hash(&key, SEGMENT_PAGES);
	uint32_t row = hash_row(&hash, ROWS);

	if (ideal->in[number] == ideal->segments[row] + 1)
		return;
	if (ideal->records[row] == SEGMENT_PAGES * page_records) {
		ideal->programs += SEGMENT_PAGES;
		ideal->segments[row]++;
		ideal->records[row] = 0;
	}
	ideal->in[number] = ideal->segments[row] + 1;
	ideal->records[row]++;
}

enum { PUTS = 30000 };

static uint64_t programs_of_puts(unsigned flags, struct ideal *ideal)
{
	struct device *device = new_device(flags);
	uint64_t made;

	for (uint64_t n = 1; n <= PUTS; n++) {
		uint32_t number = some_hot_key(device);

		put(device, number, n);
		note_ideal(ideal, number);
	}
	check_all(device);
	made = programs(device);
	free_device(device);
	return made;
}

static void test_overwrites_take_few_more_programs_than_segments_without_a_lost_page(void **state)
{
	struct ideal ideal = { 0 }, again = { 0 };
	uint64_t kept = programs_of_puts(0, &again);
	uint64_t absorbed = programs_of_puts(RECORD_ABSORB, &ideal);

	(void)state;
	print_message("programs of %d puts: %llu all kept, %llu absorbed, %llu at least\n", PUTS,
		      (unsigned long long)kept, (unsigned long long)absorbed,
		      (unsigned long long)ideal.programs);
	assert_true(kept > PUTS / page_records * 9 / 10);
	/* The Bloom index drops a small record only where its page has the newer one. */
	assert_true(absorbed < ideal.programs * 6 / 5 ||
		    (page_records > 1 && index_under_test() == INDEX_BLOOM));
	assert_true(absorbed < kept * 4 / 5);
}

/* ---- who sees what ---- */

static void test_an_abort_and_a_crash_bring_back_what_was_committed(void **state)
{
	struct device *device = new_device(RECORD_ABSORB);
	uint64_t n = 0;

	(void)state;
	for (uint32_t round = 0; round < 1500; round++) {
		uint32_t numbers[40], count = 1 + below(device, 40);
		uint64_t sequence;

		put(device, some_hot_key(device), ++n);
		sequence = begin(device);
		for (uint32_t at = 0; at < count; at++) {
			numbers[at] = some_hot_key(device);
			put_page(device, sequence, numbers[at], ++n);
		}
		if (round % 50) {
			device->store->operations->abort(device->store);
		} else {
			device->store->operations->close(device->store, false);
			open_device(device);
		}
		for (uint32_t at = 0; at < count; at++)
			check(device, numbers[at]);
		if (round % 50 == 1)
			open_again(device);
	}
	check_all(device);
	free_device(device);
}

/* Numbers of another epoch stay, whatever comes later. */
static void test_another_epoch_is_not_absorbed(void **state)
{
	struct device *device = new_device(RECORD_ABSORB);
	uint8_t page[PAGE], wanted[PAGE];

	(void)state;
	for (uint64_t n = 0; n < 30; n++) {
		device->at_least = (n + 1) * RECORD_SLOT;
		for (uint64_t again = 1; again <= 10; again++)
			put(device, 3, n * 10 + again);
	}
	for (uint64_t n = 0; n < 30; n++) {
		struct record_key key = key_of(3);
		struct record_info info;

		assert_int_equal(device->store->operations->get(device->store, &key,
								(n + 2) * RECORD_SLOT - 1, page,
								PAGE, &info),
				 0);
		fill(wanted, 3, n * 10 + 10);
		assert_memory_equal(page, wanted, value_bytes);
	}
	free_device(device);
}

/* What a flush has promised stays until the next one has promised more. */
static void test_after_flushes_all_is_found(void **state)
{
	struct device *device = new_device(RECORD_ABSORB);
	uint64_t n = 0;

	(void)state;
	for (uint32_t round = 0; round < 6000; round++) {
		put(device, some_hot_key(device), ++n);
		if (below(device, 50) == 0)
			assert_int_equal(flush_now(device->store), 0);
		if (below(device, 500) == 0)
			open_again(device);
		check(device, some_hot_key(device));
	}
	check_all(device);
	free_device(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_page_that_is_written_for_ever_is_never_programmed),
		cmocka_unit_test(
			test_overwrites_take_few_more_programs_than_segments_without_a_lost_page),
		cmocka_unit_test(test_an_abort_and_a_crash_bring_back_what_was_committed),
		cmocka_unit_test(test_another_epoch_is_not_absorbed),
		cmocka_unit_test(test_after_flushes_all_is_found),
	};

	int failed = cmocka_run_group_tests_name("absorbed pages", tests, NULL, NULL);

	page_records = 4;
	value_bytes = PAGE / page_records - RECORD_HEADER_BYTES;
	return failed + cmocka_run_group_tests_name("absorbed parts of pages", tests, NULL, NULL);
}
