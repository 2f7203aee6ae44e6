/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * How closely metadata is gathered in a segment: small records fill segments where there are many
 * of them, and take few pages from large records where there are few. Whatever was chosen for a
 * segment, its records are found.
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

#include "common/bytes.h"
#include "common/log.h"
#include "engine/muninn/store.h"
#include "engine/open.h"
#include "engine/options.h"
#include "tests/engine/index_under_test.h"

enum { PAGE = 4096, SMALL = 500, SEGMENT_BYTES = 64 * PAGE, ROWS = 4, SEGMENTS_SKIPPED = 4 };

struct device {
	struct nand *nand;
	struct record_store *store;
	struct engine_options options;
};

static void open_device(struct device *device, bool recover)
{
	struct engine_options options = device->options;
	struct error_text error = { "" };

	options.records.recover_without_nvram = recover;
	if (engine_open_records(device->nand, &options, &device->store, &error))
		fail_msg("%s", error.text);
}

static int setup(void **state)
{
	struct nand_geometry geometry = nand_geometry_default(UINT64_C(256) << 20);
	struct device *device = calloc(1, sizeof(*device));
	struct error_text error = { "" };
	uint64_t nvram;

	assert_non_null(device);
	device->options = (struct engine_options){
		.muninn = { .index = index_under_test(),
			    .rows = ROWS,
			    .segment_pages = 64,
			    .record_bytes = 512,
			    .bloom.hot_rows = BLOOM_HOT_ROWS_SPREAD },
	};
	if (engine_nvram_bytes(&geometry, &device->options, &nvram, &error) ||
	    nand_open_memory(&geometry, nvram, &device->nand, &error) ||
	    engine_format(device->nand, &device->options, &error))
		fail_msg("%s", error.text);
	open_device(device, false);
	*state = device;
	return 0;
}

static int teardown(void **state)
{
	struct device *device = *state;

	device->store->operations->close(device->store, false);
	assert_int_equal(nand_close(device->nand), 0);
	log_configure(NULL, LOG_LEVEL_WARNING);
	free(device);
	return 0;
}

/* ---- records ---- */

/* The n-th key of each class; data has a page each, all others a small record. */
static struct record_key key_of(enum record_class class, uint32_t number)
{
	return (struct record_key){ .class = (uint8_t) class,
				    .partition = 1,
				    .identifier = 0x10000 + number,
				    .piece = class == RECORD_CLASS_DATA ? 0 : UINT32_MAX };
}

static uint32_t length_of(enum record_class class)
{
	return class == RECORD_CLASS_DATA ? PAGE : SMALL;
}

static void put(struct device *device, enum record_class class, uint32_t number)
{
	const struct record_store_operations *operations = device->store->operations;
	struct record_key key = key_of(class, number);
	uint8_t value[PAGE] = { 0 };

	put_le32(value, number);
	operations->begin(device->store, 0);
	assert_int_equal(operations->put(device->store, &key, 1, 0, value, length_of(class),
					 RECORD_ROOM_WRITE),
			 0);
	operations->commit(device->store);
}

static void check(struct device *device, enum record_class class, uint32_t number)
{
	struct record_key key = key_of(class, number);
	struct record_info info;
	uint8_t value[PAGE];

	assert_int_equal(device->store->operations->get(device->store, &key, RECORD_NEWEST, value,
							sizeof(value), &info),
			 0);
	assert_int_equal(info.length, length_of(class));
	assert_int_equal(get_le32(value), number);
}

/* ---- what a segment holds ---- */

struct filling {
	uint32_t segments;
	double used;                              /* part of their bytes */
	uint32_t eighths[SERIAL_EIGHTHS_MAX + 1]; /* segments with each value */
};

/* Of the segments of the rows, but for the first ones of each. */
static struct filling filling_of(struct device *device)
{
	struct muninn_store *store = (struct muninn_store *)(void *)device->store;
	struct filling filling = { 0 };

	for (uint32_t row = 0; row < ROWS; row++) {
		struct index_walk walk = { 0 };
		struct sealed_segment segment;

		for (uint32_t n = 0; row_index_next(store->rows[row].index, &walk, &segment); n++) {
			if (n < SEGMENTS_SKIPPED)
				continue;
			filling.segments++;
			filling.used += (double)segment.record_bytes / SEGMENT_BYTES;
			filling.eighths[serial_eighths(segment.serial)]++;
		}
	}
	assert_true(filling.segments > 20);
	filling.used /= filling.segments;
	print_message("%u segments, %.3f of them used\n", filling.segments, filling.used);
	return filling;
}

static void test_segments_of_small_records_are_filled(void **state)
{
	struct device *device = *state;
	struct filling filling;

	for (uint32_t n = 0; n < 40000; n++)
		put(device, RECORD_CLASS_METADATA, n);
	filling = filling_of(device);
	assert_true(filling.used > 0.75);
	assert_int_equal(filling.eighths[SERIAL_EIGHTHS_MAX], filling.segments);
}

static void test_few_small_records_take_few_pages_from_large_ones(void **state)
{
	struct device *device = *state;
	struct filling filling;

	for (uint32_t n = 0; n < 12000; n++) {
		put(device, RECORD_CLASS_DATA, n);
		if (n % 4 == 0)
			put(device, RECORD_CLASS_METADATA, n);
	}
	filling = filling_of(device);
	assert_true(filling.used > 0.85);
	assert_int_equal(filling.eighths[1], filling.segments);
}

/* ---- records are found in segments of each kind ---- */

/* Few small records among large ones, then more and more, then few again. */
static void put_changing_shares(struct device *device)
{
	uint32_t data = 0, metadata = 0;

	for (uint32_t share = 0; share < 10; share++)
		for (uint32_t n = 0; n < 1000; n++) {
			put(device, RECORD_CLASS_DATA, data++);
			for (uint32_t small = 0; small < (share < 7 ? share * 2 : 1); small++)
				put(device, RECORD_CLASS_METADATA, metadata++);
		}
}

static void check_all(struct device *device)
{
	uint32_t data = 0, metadata = 0;

	for (uint32_t share = 0; share < 10; share++)
		for (uint32_t n = 0; n < 1000; n++) {
			check(device, RECORD_CLASS_DATA, data++);
			for (uint32_t small = 0; small < (share < 7 ? share * 2 : 1); small++)
				check(device, RECORD_CLASS_METADATA, metadata++);
		}
}

static void discard_line(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void test_all_are_found_whatever_was_chosen_for_a_segment(void **state)
{
	struct device *device = *state;
	struct filling filling;

	put_changing_shares(device);
	filling = filling_of(device);
	for (uint32_t eighths = 1; eighths < SERIAL_EIGHTHS_MAX; eighths++)
		assert_true(filling.eighths[eighths] > 0);
	check_all(device);
	/* After a crash, from the buffers and tables in NVRAM. */
	device->store->operations->close(device->store, false);
	open_device(device, false);
	check_all(device);
}

/* The tables are made again from the pages, each in the way of its segment. */
static void test_all_that_is_sealed_is_found_without_nvram(void **state)
{
	struct device *device = *state;
	struct record_statistics before = { 0 }, after = { 0 };
	uint64_t bytes;
	uint8_t *nvram;

	put_changing_shares(device);
	device->store->operations->statistics(device->store, &before);
	device->store->operations->close(device->store, false);
	nvram = nand_nvram(device->nand, &bytes);
	memset(nvram, 0, bytes);
	log_configure(discard_line, LOG_LEVEL_ERROR);
	open_device(device, true);
	device->store->operations->statistics(device->store, &after);
	assert_int_equal(after.sealed_records, before.sealed_records);
	/* The first ones were sealed long ago. */
	for (uint32_t n = 0; n < 1000; n++) {
		check(device, RECORD_CLASS_DATA, n);
		check(device, RECORD_CLASS_METADATA, n);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_segments_of_small_records_are_filled),
		TEST(test_few_small_records_take_few_pages_from_large_ones),
		TEST(test_all_are_found_whatever_was_chosen_for_a_segment),
		TEST(test_all_that_is_sealed_is_found_without_nvram),
	};

	return cmocka_run_group_tests_name("gathered metadata", tests, NULL, NULL);
}
