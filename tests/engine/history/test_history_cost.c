/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Page programs of single snapshots and rollbacks, whatever the device holds and whatever was done
 * before; page reads of differences.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "engine/history.h"
#include "engine/options.h"
#include "nand/nand.h"
#include "tests/engine/by_address.h"

enum {
	PARTITIONS = 300,
	SEGMENT_PAGES = 16,
	COLUMNS = 64, /* segments of a table */
	PAGE = 4096,
	SNAPSHOT_PROGRAMS_MAX = 2,
	ROLLBACK_PROGRAMS_MAX = 4,
};

#define FIRST  UINT64_C(0x10000)
#define OBJECT UINT64_C(0x10000)

struct device {
	struct nand *nand;
	struct engine *engine;
	uint64_t now;
	uint64_t written; /* pages, chosen one after the other */
};

static uint64_t clock_of(void *context)
{
	return ((struct device *)context)->now;
}

static struct engine_options options_of(struct device *device)
{
	return (struct engine_options){ .muninn.rows = 4,
					.muninn.segment_pages = SEGMENT_PAGES,
					.clock_ms = clock_of,
					.clock_context = device };
}

static int setup(void **state)
{
	const struct nand_geometry geometry = {
		.page_bytes = PAGE,
		.spare_bytes = 128,
		.pages_per_block = SEGMENT_PAGES,
		.blocks = 1000,
		.channels = 1,
		.dies_per_channel = 1,
	};
	struct device *device = calloc(1, sizeof(*device));
	struct error_text error = { "" };
	struct engine_options options;
	uint64_t nvram;

	assert_non_null(device);
	device->now = 1000000;
	options = options_of(device);
	assert_int_equal(engine_nvram_bytes(&geometry, &options, &nvram, &error), 0);
	assert_int_equal(nand_open_memory(&geometry, nvram, &device->nand, &error), 0);
	assert_int_equal(engine_format(device->nand, &options, &error), 0);
	assert_int_equal(engine_open(device->nand, &options, &device->engine, &error), 0);
	*state = device;
	return 0;
}

static int teardown(void **state)
{
	struct device *device = *state;

	assert_int_equal(engine_close(device->engine), 0);
	assert_int_equal(nand_close(device->nand), 0);
	free(device);
	return 0;
}

static struct engine_txn *begin(struct device *device, enum engine_mode mode)
{
	struct engine_txn *txn;

	device->now += 1000;
	assert_int_equal(engine_begin(device->engine, mode, &txn), 0);
	return txn;
}

static void make_partitions(struct device *device, uint32_t count)
{
	for (uint32_t n = 0; n < count; n++) {
		struct engine_txn *txn = begin(device, ENGINE_WRITE);

		assert_int_equal(engine_partition_create(txn, FIRST + n, NULL), 0);
		assert_int_equal(engine_create(txn, FIRST + n, ENGINE_USER_OBJECT, OBJECT, 1, NULL),
				 0);
		assert_int_equal(engine_commit(txn, false), 0);
	}
}

/* A page of the object of one of the partitions, all over its first megabyte. -ENOSPC. */
static int write_page(struct device *device, uint32_t partition)
{
	static const uint8_t page[PAGE] = { 1 };
	const struct engine_address address = { .partition = FIRST + partition, .object = OBJECT };
	struct engine_txn *txn = begin(device, ENGINE_WRITE);
	uint64_t offset = device->written++ * 5077 % 256 * PAGE;
	int result = engine_write(txn, address, offset, page, PAGE);

	if (!result)
		return engine_commit(txn, false);
	engine_abort(txn);
	return result;
}

static uint64_t programs(struct device *device)
{
	struct nand_counters counters;
	uint64_t pages = 0;

	nand_read_counters(device->nand, &counters);
	for (int cause = 0; cause < NAND_CAUSES; cause++)
		pages += counters.by_cause[cause].pages_programmed;
	return pages;
}

static uint64_t sealed(struct device *device)
{
	struct engine_statistics statistics;

	engine_read_statistics(device->engine, &statistics);
	return statistics.segments_sealed;
}

static uint64_t tables(struct device *device)
{
	struct engine_statistics statistics;

	engine_read_statistics(device->engine, &statistics);
	return statistics.tables;
}

/* From its beginning to its end; 0: of the device. */
static uint32_t cheap_snapshot(struct device *device, uint64_t partition, const char *name)
{
	uint64_t before = programs(device);
	struct engine_txn *txn = begin(device, ENGINE_HISTORY);
	uint32_t version;

	assert_int_equal(engine_snapshot(txn, partition, name, &version), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	assert_in_range(programs(device) - before, 0, SNAPSHOT_PROGRAMS_MAX);
	return version;
}

static void cheap_rollback(struct device *device, uint64_t partition, uint32_t version)
{
	const struct engine_moment to = { .kind = ENGINE_AT_VERSION, .value = version };
	uint64_t before = programs(device);
	struct engine_txn *txn = begin(device, ENGINE_HISTORY);

	assert_int_equal(engine_rollback(txn, partition, to), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	assert_in_range(programs(device) - before, 0, ROLLBACK_PROGRAMS_MAX);
}

/* So many that history's row completes a table, which is written in their time too. */
static void test_snapshots_one_after_the_other_program_two_pages_each_at_most(void **state)
{
	struct device *device = *state;
	uint64_t sealed_before, tables_before;
	char name[64];

	make_partitions(device, 2);
	sealed_before = sealed(device);
	tables_before = tables(device);
	for (uint32_t n = 0; n < 24000; n++) {
		snprintf(name, sizeof(name), "a snapshot that has a rather long name, %u", n);
		cheap_snapshot(device, n % 3 == 2 ? 0 : FIRST + n % 3, n % 3 ? name : NULL);
	}
	assert_true(sealed(device) >= sealed_before + COLUMNS);
	assert_true(tables(device) > tables_before);
}

static void test_snapshots_of_many_partitions_program_two_pages_each_at_most(void **state)
{
	struct device *device = *state;
	uint64_t before;

	make_partitions(device, PARTITIONS);
	before = sealed(device);
	for (uint32_t n = 0; n < 30 * PARTITIONS; n++)
		cheap_snapshot(device, FIRST + n % PARTITIONS, NULL);
	assert_true(sealed(device) > before);
}

/* Each write makes the room that it needs; a snapshot leaves that to the next write. */
static void test_snapshots_of_a_device_that_is_merged_all_the_time_do_so_too(void **state)
{
	struct device *device = *state;

	make_partitions(device, 3);
	for (uint32_t n = 0; n < 40000; n++) {
		assert_int_equal(write_page(device, n % 3), 0);
		if (n > 20000 && n % 4 == 0)
			cheap_snapshot(device, n % 8 ? FIRST : 0, NULL);
		/* Versions are not given up for room. */
		if (n > 22000 && n % 4 == 1) {
			struct engine_txn *txn = begin(device, ENGINE_FREE);
			struct engine_version version;
			uint64_t of = n % 8 == 1 ? 0 : FIRST;

			assert_int_equal(engine_version_next(txn, of, 0, &version), 0);
			of = version.version >= ENGINE_DEVICE_VERSION_FIRST ? 0 : FIRST;
			assert_int_equal(engine_version_drop(txn, of, version.version), 0);
			assert_int_equal(engine_commit(txn, false), 0);
		}
	}
}

static void test_snapshots_and_rollbacks_of_a_full_device_do_so_too(void **state)
{
	struct device *device = *state;
	uint32_t first, n;

	make_partitions(device, 1);
	first = cheap_snapshot(device, FIRST, NULL);
	for (n = 0; n < 100000 && write_page(device, 0) == 0; n++)
		cheap_snapshot(device, FIRST, NULL);
	assert_in_range(n, 1000, 99999); /* until there was no room */
	for (n = 0; n < 3000; n++)
		cheap_snapshot(device, n % 2 ? 0 : FIRST, NULL);
	for (n = 0; n < 50; n++)
		cheap_rollback(device, FIRST, first);
}

static void test_rollbacks_program_four_pages_each_at_most(void **state)
{
	struct device *device = *state;
	uint32_t versions[16];
	uint64_t before;

	make_partitions(device, 2);
	for (uint32_t n = 0; n < 16; n++) {
		assert_int_equal(write_page(device, 0), 0);
		versions[n] = cheap_snapshot(device, FIRST, NULL);
	}
	before = sealed(device);
	for (uint32_t n = 0; n < 3000; n++) {
		if (n % 3 == 0)
			assert_int_equal(write_page(device, 0), 0);
		cheap_rollback(device, FIRST, versions[n % 16]);
	}
	assert_true(sealed(device) > before);
}

static uint64_t pages_read(struct device *device)
{
	struct nand_counters counters;
	uint64_t pages = 0;

	nand_read_counters(device->nand, &counters);
	for (int cause = 0; cause < NAND_CAUSES; cause++)
		pages += counters.by_cause[cause].pages_read;
	return pages;
}

/* All that differs between two versions of the first partition. */
static uint32_t count_differences(struct device *device, uint32_t from, uint32_t to)
{
	const struct engine_moment moments[2] = {
		{ .kind = ENGINE_AT_VERSION, .value = from },
		{ .kind = ENGINE_AT_VERSION, .value = to },
	};
	struct engine_diff_cursor cursor = { 0 };
	struct engine_difference found;
	uint32_t count = 0;

	while (cursor.state != ENGINE_DIFF_DONE) {
		struct engine_txn *txn = begin(device, ENGINE_READ);
		int result = engine_diff_next(txn, FIRST, moments[0], moments[1], &cursor, &found);

		assert_true(result == 0 || result == -EAGAIN || result == -ENOENT);
		count += result == 0;
		engine_abort(txn);
	}
	return count;
}

/*
 * Filters tell of what nothing was put: hardly a page is read for it, whichever of both moments is
 * the earlier one.
 */
static void test_differences_cost_what_was_changed(void **state)
{
	enum { OBJECTS = 20000, CHANGES = 5 };
	struct device *device = *state;
	uint32_t versions[2];
	uint64_t before;

	make_partitions(device, 1);
	for (uint64_t id = OBJECT + 1; id <= OBJECT + OBJECTS; id += 500) {
		struct engine_txn *txn = begin(device, ENGINE_WRITE);

		for (uint64_t at = 0; at < 500; at++)
			assert_int_equal(
				engine_create(txn, FIRST, ENGINE_USER_OBJECT, id + at, 1, NULL), 0);
		assert_int_equal(engine_commit(txn, false), 0);
	}
	for (uint32_t n = 0; n < 2; n++) {
		for (uint64_t at = 1; n && at <= CHANGES; at++) {
			struct engine_txn *txn = begin(device, ENGINE_WRITE);
			const struct engine_address address = { .partition = FIRST,
								.object = OBJECT + at * 3000 };

			assert_int_equal(engine_write(txn, address, 0, "x", 1), 0);
			assert_int_equal(engine_commit(txn, false), 0);
		}
		versions[n] = cheap_snapshot(device, FIRST, NULL);
	}
	before = pages_read(device);
	assert_int_equal(count_differences(device, versions[0], versions[1]), 2 * CHANGES);
	/* Where there is nothing any more, only the length differs. */
	assert_int_equal(count_differences(device, versions[1], versions[0]), CHANGES);
	assert_in_range(pages_read(device) - before, 1, OBJECTS / 10);
	/* Where a rollback lies between them, what was put says nothing, and all is looked at. */
	cheap_rollback(device, FIRST, versions[0]);
	assert_int_equal(
		count_differences(device, versions[1], cheap_snapshot(device, FIRST, NULL)),
		CHANGES);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_snapshots_one_after_the_other_program_two_pages_each_at_most),
		TEST(test_snapshots_of_many_partitions_program_two_pages_each_at_most),
		TEST(test_snapshots_of_a_device_that_is_merged_all_the_time_do_so_too),
		TEST(test_snapshots_and_rollbacks_of_a_full_device_do_so_too),
		TEST(test_rollbacks_program_four_pages_each_at_most),
		TEST(test_differences_cost_what_was_changed),
	};

	return cmocka_run_group_tests_name("history_cost", tests, NULL, NULL);
}
