/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * An engine on a small device in memory with a clock of its own, two partitions of an object each,
 * and merging only when a test says so: for what must be there, or need not be, after all that can
 * go has been merged away.
 */
#ifndef MUNINN_TESTS_ENGINE_DEVICE_FIXTURE_H
#define MUNINN_TESTS_ENGINE_DEVICE_FIXTURE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/history.h"
#include "engine/options.h"
#include "tests/engine/by_address.h"

enum {
	PARTITION = 0x10000,
	OTHERS = 0x10001,
	CLONE = 0x10002,
	OBJECT = 0x10000,
	PAGE = 512,
	SECOND = 1000
};

static const struct nand_geometry shape = {
	.page_bytes = PAGE,
	.spare_bytes = 64,
	.pages_per_block = 8,
	.blocks = 600,
	.channels = 1,
	.dies_per_channel = 1,
};

struct device {
	struct nand *nand;
	struct engine *engine;
	struct engine_txn *txn;
	uint64_t now;
};

static inline uint64_t clock_of(void *context)
{
	return ((struct device *)context)->now;
}

static inline void begin(struct device *device, enum engine_mode mode)
{
	assert_int_equal(engine_begin(device->engine, mode, &device->txn), 0);
}

static inline void commit(struct device *device)
{
	assert_int_equal(engine_commit(device->txn, false), 0);
	device->txn = NULL;
}

/* Ends a transaction as its call went: commits, or aborts what failed. Returns that result. */
static inline int end(struct device *device, int result)
{
	if (!result) {
		commit(device);
		return 0;
	}
	engine_abort(device->txn);
	device->txn = NULL;
	return result;
}

static inline void create(struct device *device, uint64_t partition)
{
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(device->txn, partition, NULL), 0);
	assert_int_equal(engine_create(device->txn, partition, ENGINE_USER_OBJECT, OBJECT, 1, NULL),
			 0);
	commit(device);
}

static inline struct engine_options options_of(struct device *device)
{
	return (struct engine_options){ .muninn.rows = 2,
					.muninn.segment_pages = 8,
					.muninn.record_bytes = 128,
					.merge_manual = true,
					.clock_ms = clock_of,
					.clock_context = device };
}

/* Ends the engine as a crash does, and opens what is there. */
static inline void crash(struct device *device)
{
	const struct engine_options options = options_of(device);
	struct error_text error = { "" };

	engine_abandon(device->engine);
	device->txn = NULL;
	assert_int_equal(engine_open(device->nand, &options, &device->engine, &error), 0);
}

static inline int setup(void **state)
{
	struct device *device = calloc(1, sizeof(*device));
	struct error_text error = { "" };
	struct engine_options options;
	uint64_t nvram;

	assert_non_null(device);
	options = options_of(device);
	device->now = SECOND;
	assert_int_equal(engine_nvram_bytes(&shape, &options, &nvram, &error), 0);
	assert_int_equal(nand_open_memory(&shape, nvram, &device->nand, &error), 0);
	assert_int_equal(engine_format(device->nand, &options, &error), 0);
	assert_int_equal(engine_open(device->nand, &options, &device->engine, &error), 0);
	create(device, PARTITION);
	create(device, OTHERS);
	*state = device;
	return 0;
}

static inline int teardown(void **state)
{
	struct device *device = *state;

	if (device->txn) /* a failed test left it */
		engine_abort(device->txn);
	assert_int_equal(engine_close(device->engine), 0);
	assert_int_equal(nand_close(device->nand), 0);
	free(device);
	return 0;
}

/* Writes the object's page number `page`, at a time. */
static inline void write_page(struct device *device, uint64_t ms, uint32_t page, char byte)
{
	const struct engine_address address = { .partition = PARTITION, .object = OBJECT };
	char bytes[PAGE];

	memset(bytes, byte, sizeof(bytes));
	device->now = ms;
	begin(device, ENGINE_WRITE);
	assert_int_equal(
		engine_write(device->txn, address, (uint64_t)page * PAGE, bytes, sizeof(bytes)), 0);
	commit(device);
}

static inline void check_page_of(struct device *device, uint64_t partition, uint32_t version,
				 uint32_t page, char byte)
{
	const struct engine_address address = { .partition = partition,
						.object = OBJECT,
						.version = version };
	char bytes[PAGE], wanted[PAGE];
	uint64_t got;

	memset(wanted, byte, sizeof(wanted));
	begin(device, ENGINE_READ);
	assert_int_equal(engine_read(device->txn, address, (uint64_t)page * PAGE, bytes,
				     sizeof(bytes), &got),
			 0);
	assert_int_equal(got, sizeof(bytes));
	assert_memory_equal(bytes, wanted, sizeof(bytes));
	commit(device);
}

static inline void check_page(struct device *device, uint32_t version, uint32_t page, char byte)
{
	check_page_of(device, PARTITION, version, page, byte);
}

/* A view of the partition at a time. 0: that is not to be reached. */
static inline uint32_t view_at(struct device *device, uint64_t ms)
{
	const struct engine_moment moment = { .kind = ENGINE_AT_TIME, .value = ms };
	uint32_t version = 0;
	int result;

	begin(device, ENGINE_READ);
	result = engine_view_open(device->txn, PARTITION, moment, &version);
	assert_true(result == 0 || result == -ENOENT);
	commit(device);
	return version;
}

static inline uint32_t take_snapshot(struct device *device, uint64_t partition)
{
	uint32_t version = 0;

	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_snapshot(device->txn, partition, NULL, &version), 0);
	commit(device);
	return version;
}

static inline void roll_back_device(struct device *device, enum engine_moment_kind kind,
				    uint64_t value)
{
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_rollback(device->txn, 0,
					 (struct engine_moment){ .kind = kind, .value = value }),
			 0);
	commit(device);
}

static inline void remove_partition(struct device *device)
{
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_partition_remove(device->txn, PARTITION, true), 0);
	commit(device);
}

/* Nothing is kept but what the intervals say. */
static inline void set_policy(struct device *device, uint64_t partition, uint64_t all_ms,
			      uint64_t interval_ms, uint64_t interval_for_ms)
{
	const struct engine_retention retention = { .kind = ENGINE_RETAIN_NONE,
						    .keep_all_ms = all_ms,
						    .keep_interval_ms = interval_ms,
						    .keep_interval_for_ms = interval_for_ms };

	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(device->txn, partition, &retention, false), 0);
	commit(device);
}

/*
 * Seals what is buffered by writing something else again and again, and merges until nothing is
 * worth it. Returns the segments that were freed.
 */
static inline uint64_t merge_what_can_be(struct device *device)
{
	const struct engine_address address = { .partition = OTHERS, .object = OBJECT };
	struct engine_merge_result total = { 0 };
	char bytes[8 * PAGE] = { 0 };

	for (int round = 0; round < 60; round++) {
		begin(device, ENGINE_WRITE);
		assert_int_equal(engine_write(device->txn, address, 0, bytes, sizeof(bytes)), 0);
		commit(device);
	}
	for (int step = 0; step < 200; step++) {
		int result = engine_merge(device->engine, &total);

		assert_true(result == 0 || result == -EAGAIN);
	}
	return total.segments_freed;
}

static inline void merge_all(struct device *device)
{
	assert_true(merge_what_can_be(device) > 0);
}

#endif
