/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What overwriting pages of an object programs to flash: with history each of them, without it what
 * the buffers do not absorb. The present is the same, and versions show what was there then.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "engine/history.h"
#include "engine/options.h"
#include "nand/nand.h"
#include "tests/engine/by_address.h"

enum { PAGE = 4096, PAGES = 1500, WRITES = 30000 };

#define PARTITION UINT64_C(0x10000)

struct device {
	struct nand *nand;
	struct engine *engine;
	uint64_t now, random;
	uint64_t written[PAGES]; /* the write that was the last of each page */
};

static uint64_t clock_of(void *context)
{
	return ((struct device *)context)->now;
}

static struct engine_options options_of(struct device *device)
{
	return (struct engine_options){ .muninn.rows = 4,
					.muninn.segment_pages = 64,
					.muninn.bloom.hot_rows = BLOOM_HOT_ROWS_SPREAD,
					.clock_ms = clock_of,
					.clock_context = device };
}

static void open_device(struct device *device)
{
	const struct engine_options options = options_of(device);
	struct error_text error = { "" };

	if (engine_open(device->nand, &options, &device->engine, &error))
		fail_msg("%s", error.text);
}

static struct engine_txn *begin(struct device *device, enum engine_mode mode)
{
	struct engine_txn *txn;

	assert_int_equal(engine_begin(device->engine, mode, &txn), 0);
	return txn;
}

/* A partition with a policy and an object of so many pages' place. */
static struct device *new_device(enum engine_retention_kind kind)
{
	const struct nand_geometry geometry = nand_geometry_default(UINT64_C(256) << 20);
	const struct engine_retention policy = { .kind = kind };
	struct device *device = calloc(1, sizeof(*device));
	struct engine_options options;
	struct error_text error = { "" };
	struct engine_txn *txn;
	uint64_t nvram;

	assert_non_null(device);
	device->now = 1000000;
	options = options_of(device);
	if (engine_nvram_bytes(&geometry, &options, &nvram, &error) ||
	    nand_open_memory(&geometry, nvram, &device->nand, &error) ||
	    engine_format(device->nand, &options, &error))
		fail_msg("%s", error.text);
	open_device(device);
	txn = begin(device, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(txn, PARTITION, NULL), 0);
	assert_int_equal(engine_create(txn, PARTITION, ENGINE_USER_OBJECT, PARTITION, 1, NULL), 0);
	assert_int_equal(engine_retention_set(txn, PARTITION, &policy, false), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	device->now += 10000;
	return device;
}

static void free_device(struct device *device)
{
	assert_int_equal(engine_close(device->engine), 0);
	assert_int_equal(nand_close(device->nand), 0);
	free(device);
}

/* ---- writes ---- */

static uint32_t below(struct device *device, uint32_t limit)
{
	uint64_t z = device->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	return (uint32_t)((z ^ z >> 31) % limit);
}

/* Few pages take most of the writes, as by pareto. */
static uint32_t some_page(struct device *device)
{
	uint32_t range = PAGES;

	while (range > 1 && below(device, 4))
		range = range / 4 + 1;
	return below(device, range);
}

static void fill(uint8_t page[PAGE], uint64_t write)
{
	memset(page, (int)(write * 13), PAGE);
	put_le64(page, write);
}

static struct engine_address object_at(uint32_t version)
{
	return (struct engine_address){ .partition = PARTITION,
					.object = PARTITION,
					.version = version };
}

static void overwrite(struct device *device, uint64_t write)
{
	struct engine_txn *txn = begin(device, ENGINE_WRITE);
	uint32_t number = some_page(device);
	uint8_t page[PAGE];

	fill(page, write);
	assert_int_equal(engine_write(txn, object_at(0), (uint64_t)number * PAGE, page, PAGE), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	device->written[number] = write;
	device->now += write % 16 == 0;
}

static void check(struct device *device, uint32_t version, const uint64_t written[PAGES])
{
	struct engine_txn *txn = begin(device, ENGINE_READ);

	for (uint32_t number = 0; number < PAGES; number++) {
		uint8_t page[PAGE], wanted[PAGE] = { 0 };
		uint64_t got;

		if (!written[number])
			continue;
		fill(wanted, written[number]);
		assert_int_equal(engine_read(txn, object_at(version), (uint64_t)number * PAGE, page,
					     PAGE, &got),
				 0);
		assert_int_equal(got, PAGE);
		assert_memory_equal(page, wanted, PAGE);
	}
	engine_abort(txn);
}

static uint64_t programs(struct device *device)
{
	struct nand_counters counters;

	nand_read_counters(device->nand, &counters);
	return counters.by_cause[NAND_CAUSE_USER].pages_programmed;
}

static double programs_per_write(enum engine_retention_kind kind)
{
	struct device *device = new_device(kind);
	double per_write;

	for (uint64_t write = 1; write <= WRITES; write++)
		overwrite(device, write);
	per_write = (double)programs(device) / WRITES;
	check(device, 0, device->written);
	engine_abandon(device->engine);
	open_device(device);
	check(device, 0, device->written);
	free_device(device);
	return per_write;
}

static void test_without_history_the_buffers_absorb_overwritten_pages(void **state)
{
	double kept = programs_per_write(ENGINE_RETAIN_ALL);
	double absorbed = programs_per_write(ENGINE_RETAIN_NONE);

	(void)state;
	print_message("page programs per write of a page: %.3f with history, %.3f without\n", kept,
		      absorbed);
	assert_true(kept > 1.0);
	assert_true(absorbed < kept * 0.65);
}

/* Its pages belong to an earlier slot, so nothing absorbs them. */
static void test_a_version_keeps_the_pages_of_its_time(void **state)
{
	struct device *device = new_device(ENGINE_RETAIN_NONE);
	uint64_t then[3][PAGES], write = 0;
	uint32_t versions[3];

	(void)state;
	for (uint32_t n = 0; n < 3; n++) {
		struct engine_txn *txn;

		for (uint32_t count = 0; count < 500; count++)
			overwrite(device, ++write);
		txn = begin(device, ENGINE_HISTORY);
		assert_int_equal(engine_snapshot(txn, PARTITION, NULL, &versions[n]), 0);
		assert_int_equal(engine_commit(txn, false), 0);
		memcpy(then[n], device->written, sizeof(then[n]));
	}
	for (uint32_t count = 0; count < 3000; count++)
		overwrite(device, ++write);
	for (uint32_t n = 0; n < 3; n++)
		check(device, versions[n], then[n]);
	check(device, 0, device->written);
	free_device(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_history_the_buffers_absorb_overwritten_pages),
		cmocka_unit_test(test_a_version_keeps_the_pages_of_its_time),
	};

	return cmocka_run_group_tests_name("overwrites", tests, NULL, NULL);
}
