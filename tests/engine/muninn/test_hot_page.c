/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * One page, or one attribute, that is written again and again until the device has been turned over
 * three times: whatever the policy, no single command costs more than a bounded number of page
 * reads and programs, and history goes as was promised.
 *
 * Runs for each index.
 */
#include <errno.h>
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
#include "engine/open.h"
#include "engine/options.h"
#include "tests/engine/by_address.h"
#include "tests/engine/index_under_test.h"

enum {
	PARTITION = 0x10000,
	OBJECT = 0x10000,
	OTHER = 0x10001,
	PAGE = 512,
	SEGMENT_PAGES = 64,
	SEGMENTS = 96,
	PAGES = SEGMENTS * SEGMENT_PAGES,
	SECOND = 1000,
	TURNS = 3 * PAGES,
	/* Of a single command: a few segments that are looked through and moved, however full the
	   device is. */
	READS_MAX = 28000,
	PROGRAMS_MAX = 8 * SEGMENT_PAGES,
	/* Of a refused one, on average. */
	READS_REFUSED_MAX = 4 * SEGMENT_PAGES,
	/* About what each version of a page takes beside itself. */
	ONODE_BYTES = 120,
	/* Pages that are written beside the hot one. */
	COLD_PAGES = PAGES / 8,
};

static const struct nand_geometry shape = {
	.page_bytes = PAGE,
	.spare_bytes = 64,
	.pages_per_block = 16,
	.blocks = PAGES / 16,
	.channels = 1,
	.dies_per_channel = 1,
};

struct device {
	struct nand *nand;
	struct engine *engine;
	uint64_t now;
	/* The most that one command cost, and all that were refused did. */
	uint64_t reads_most, programs_most, reads_refused;
	uint64_t refused;
};

static uint64_t clock_of(void *context)
{
	return ((struct device *)context)->now;
}

static void open_device(struct device *device, enum bloom_hot_rows hot_rows)
{
	const struct engine_options options = { .muninn.index = index_under_test(),
						.muninn.rows = 2,
						.muninn.segment_pages = SEGMENT_PAGES,
						.muninn.record_bytes = 256,
						.muninn.bloom.hot_rows = hot_rows,
						.clock_ms = clock_of,
						.clock_context = device };
	struct error_text error = { "" };
	struct engine_txn *txn;
	uint64_t nvram;

	/* There is nothing of the kind with another index: its devices are all the same. */
	if (hot_rows == BLOOM_HOT_ROWS_FINALISE && options.muninn.index != INDEX_BLOOM)
		skip();
	*device = (struct device){ .now = SECOND };
	assert_int_equal(engine_nvram_bytes(&shape, &options, &nvram, &error), 0);
	assert_int_equal(nand_open_memory(&shape, nvram, &device->nand, &error), 0);
	assert_int_equal(engine_format(device->nand, &options, &error), 0);
	assert_int_equal(engine_open(device->nand, &options, &device->engine, &error), 0);
	assert_int_equal(engine_begin(device->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_partition_create(txn, PARTITION, NULL), 0);
	assert_int_equal(engine_create(txn, PARTITION, ENGINE_USER_OBJECT, OBJECT, 1, NULL), 0);
	assert_int_equal(engine_create(txn, PARTITION, ENGINE_USER_OBJECT, OTHER, 1, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

static void close_device(struct device *device)
{
	assert_int_equal(engine_close(device->engine), 0);
	assert_int_equal(nand_close(device->nand), 0);
}

static void retain(struct device *device, const struct engine_retention *retention)
{
	struct engine_txn *txn;

	assert_int_equal(engine_begin(device->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_retention_set(txn, PARTITION, retention, false), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

static uint32_t snapshot(struct device *device)
{
	struct engine_txn *txn;
	uint32_t version;

	assert_int_equal(engine_begin(device->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_snapshot(txn, PARTITION, NULL, &version), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	return version;
}

/* What a command does. */
typedef int command(struct engine_txn *txn, struct engine_address address, uint64_t number);

static int write_hot_page(struct engine_txn *txn, struct engine_address address, uint64_t number)
{
	uint64_t words[PAGE / 8] = { number, ~number };

	return engine_write(txn, address, 0, words, sizeof(words));
}

static int set_attribute(struct engine_txn *txn, struct engine_address address, uint64_t number)
{
	return engine_attribute_set(txn, address, 0x10000, 1, &number, sizeof(number));
}

/* Runs it as a command of its own and notes what it cost. */
static int run(struct device *device, command *work, uint64_t object, uint64_t number)
{
	struct engine_address address = { .partition = PARTITION, .object = object };
	struct nand_counters before, after;
	struct engine_txn *txn;
	uint64_t reads = 0, programs = 0;
	int result;

	device->now += SECOND;
	nand_read_counters(device->nand, &before);
	assert_int_equal(engine_begin(device->engine, ENGINE_WRITE, &txn), 0);
	result = work(txn, address, number);
	if (!result)
		result = engine_commit(txn, false);
	else
		engine_abort(txn);
	nand_read_counters(device->nand, &after);
	for (int cause = 0; cause < NAND_CAUSES; cause++) {
		reads += after.by_cause[cause].pages_read - before.by_cause[cause].pages_read;
		programs += after.by_cause[cause].pages_programmed -
			    before.by_cause[cause].pages_programmed;
	}
	device->reads_most = max_u64(device->reads_most, reads);
	device->programs_most = max_u64(device->programs_most, programs);
	if (result) {
		assert_int_equal(result, -ENOSPC);
		device->refused++;
		device->reads_refused += reads;
	}
	return result;
}

static void check_costs(const struct device *device)
{
	print_message("a command reads %llu pages at most and programs %llu; %llu refused\n",
		      (unsigned long long)device->reads_most,
		      (unsigned long long)device->programs_most,
		      (unsigned long long)device->refused);
	assert_true(device->reads_most <= READS_MAX);
	assert_true(device->programs_most <= PROGRAMS_MAX);
	assert_true(device->reads_refused <= READS_REFUSED_MAX * device->refused);
}

static uint64_t read_hot_page(struct device *device, uint32_t version)
{
	struct engine_address address = { .partition = PARTITION,
					  .object = OBJECT,
					  .version = version };
	uint64_t words[PAGE / 8] = { 0 }, got;
	struct engine_txn *txn;

	assert_int_equal(engine_begin(device->engine, ENGINE_READ, &txn), 0);
	assert_int_equal(engine_read(txn, address, 0, words, sizeof(words), &got), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	assert_true(got == sizeof(words) && words[1] == ~words[0]);
	return words[0];
}

/* The moment from which on there is all of the partition's history. */
static uint64_t horizon_ms(struct device *device)
{
	struct engine_history history;
	struct engine_txn *txn;

	assert_int_equal(engine_begin(device->engine, ENGINE_READ, &txn), 0);
	assert_int_equal(engine_history(txn, PARTITION, &history), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	return history.horizon_time_ms;
}

/* The page as of a time, which is to be reached. */
static uint64_t read_hot_page_at(struct device *device, uint64_t ms)
{
	const struct engine_moment moment = { .kind = ENGINE_AT_TIME, .value = ms };
	struct engine_txn *txn;
	uint32_t version;

	assert_int_equal(engine_begin(device->engine, ENGINE_READ, &txn), 0);
	assert_int_equal(engine_view_open(txn, PARTITION, moment, &version), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	return read_hot_page(device, version);
}

/*
 * Runs a command again and again until the device has been turned over. Returns how many were not
 * refused.
 */
static uint64_t turn_over(struct device *device, command *work)
{
	uint64_t done = 0;

	for (uint64_t number = 1; number <= TURNS; number++)
		done += run(device, work, OBJECT, number) == 0;
	check_costs(device);
	return done;
}

static void turn_over_and_close(struct device *device, command *work)
{
	assert_int_equal(turn_over(device, work), TURNS);
	close_device(device);
}

/* ---- one page ---- */

static void test_a_hot_page_gives_up_its_oldest_history(void **state)
{
	struct device device;
	uint64_t horizon;

	open_device(&device, *(const enum bloom_hot_rows *)*state);
	assert_int_equal(turn_over(&device, write_hot_page), TURNS);
	/* The n-th write was at the time n + 1. */
	assert_int_equal(read_hot_page(&device, 0), TURNS);
	horizon = horizon_ms(&device);
	assert_true(horizon > SECOND && horizon < device.now);
	for (uint64_t ms = horizon; ms < device.now; ms += 97 * SECOND)
		assert_int_equal(read_hot_page_at(&device, ms), ms / SECOND - 1);
	close_device(&device);
}

static void test_a_hot_page_keeps_its_versions(void **state)
{
	enum { VERSIONS = 8, APART = TURNS / VERSIONS };
	struct device device;
	uint32_t versions[VERSIONS];

	open_device(&device, *(const enum bloom_hot_rows *)*state);
	for (uint32_t number = 1; number <= TURNS; number++) {
		assert_int_equal(run(&device, write_hot_page, OBJECT, number), 0);
		if (number % APART == 0)
			versions[number / APART - 1] = snapshot(&device);
	}
	check_costs(&device);
	for (uint32_t n = 0; n < VERSIONS; n++)
		assert_int_equal(read_hot_page(&device, versions[n]), (n + 1) * APART);
	close_device(&device);
}

static void test_a_hot_page_without_history_needs_little_work(void **state)
{
	const struct engine_retention none = { .kind = ENGINE_RETAIN_NONE };
	struct device device;

	open_device(&device, *(const enum bloom_hot_rows *)*state);
	retain(&device, &none);
	turn_over_and_close(&device, write_hot_page);
}

static void test_a_hot_page_keeps_all_of_the_time_that_was_asked_for(void **state)
{
	const uint64_t kept_ms = 500 * SECOND;
	const struct engine_retention hour = { .kind = ENGINE_RETAIN_NONE, .keep_all_ms = kept_ms };
	struct device device;

	open_device(&device, *(const enum bloom_hot_rows *)*state);
	retain(&device, &hour);
	assert_int_equal(turn_over(&device, write_hot_page), TURNS);
	for (uint64_t ms = device.now - kept_ms; ms < device.now; ms += 7 * SECOND)
		assert_int_equal(read_hot_page_at(&device, ms), ms / SECOND - 1);
	close_device(&device);
}

/*
 * Versions of a page, each with its onode, fill a full device: what is left over is what a device
 * has beside its capacity.
 */
static void check_space(struct device *device, uint64_t versions)
{
	struct engine_statistics statistics;

	engine_read_statistics(device->engine, &statistics);
	print_message("%llu versions of a page of %d bytes in %llu\n", (unsigned long long)versions,
		      PAGE, (unsigned long long)statistics.capacity_bytes);
	assert_true(versions * (PAGE + ONODE_BYTES) > statistics.capacity_bytes * 9 / 10);
}

/* Fills the device, and looks whether all is there that was not refused. */
static void refuse(struct device *device, enum bloom_hot_rows hot_rows)
{
	static uint64_t written_ms[TURNS + 1];
	uint64_t done = 0;

	for (uint64_t tries = 0; tries < TURNS; tries++)
		if (run(device, write_hot_page, OBJECT, done + 1) == 0)
			written_ms[++done] = device->now;
	check_costs(device);
	assert_true(done > 0 && done < TURNS);
	if (hot_rows == BLOOM_HOT_ROWS_SPREAD)
		check_space(device, done);
	assert_int_equal(read_hot_page(device, 0), done);
	for (uint64_t number = 1; number <= done; number += 41)
		assert_int_equal(read_hot_page_at(device, written_ms[number]), number);
	close_device(device);
}

static void test_a_hot_page_all_of_which_is_kept_is_refused_soon(void **state)
{
	const struct engine_retention all = { .kind = ENGINE_RETAIN_ALL };
	struct device device;

	open_device(&device, *(const enum bloom_hot_rows *)*state);
	retain(&device, &all);
	refuse(&device, *(const enum bloom_hot_rows *)*state);
}

static void test_a_hot_page_whose_history_is_locked_is_refused_soon(void **state)
{
	const struct engine_retention locked = { .kind = ENGINE_RETAIN_SNAPSHOTS,
						 .keep_all_ms = 10 * TURNS * (uint64_t)SECOND,
						 .locked_until_ms = 10 * TURNS * (uint64_t)SECOND };
	struct device device;

	open_device(&device, *(const enum bloom_hot_rows *)*state);
	retain(&device, &locked);
	refuse(&device, *(const enum bloom_hot_rows *)*state);
}

/* ---- an attribute ---- */

static void test_a_hot_attribute_gives_up_its_oldest_history(void **state)
{
	struct device device;

	open_device(&device, *(const enum bloom_hot_rows *)*state);
	turn_over_and_close(&device, set_attribute);
}

static void test_a_hot_attribute_all_of_which_is_kept_is_refused_soon(void **state)
{
	const struct engine_retention all = { .kind = ENGINE_RETAIN_ALL };
	struct device device;

	open_device(&device, *(const enum bloom_hot_rows *)*state);
	retain(&device, &all);
	assert_true(turn_over(&device, set_attribute) < TURNS);
	close_device(&device);
}

/* ---- among others ---- */

static int write_cold_page(struct engine_txn *txn, struct engine_address address, uint64_t number)
{
	uint64_t words[PAGE / 8] = { number };

	return engine_write(txn, address, number * UINT64_C(7919) % COLD_PAGES * PAGE, words,
			    sizeof(words));
}

static void test_a_page_that_a_third_of_all_writes_go_to_holds_up_nobody(void **state)
{
	struct device device;

	open_device(&device, *(const enum bloom_hot_rows *)*state);
	for (uint64_t number = 1; number <= TURNS; number++)
		assert_int_equal(run(&device, number % 3 ? write_cold_page : write_hot_page,
				     number % 3 ? OTHER : OBJECT, number),
				 0);
	check_costs(&device);
	assert_int_equal(read_hot_page(&device, 0), TURNS / 3 * 3);
	close_device(&device);
}

/*
 * What becomes of rows with hot keys: by default, and as in devices that were formatted before
 * there was that.
 */
static enum bloom_hot_rows spread = BLOOM_HOT_ROWS_SPREAD, finalise = BLOOM_HOT_ROWS_FINALISE;

#define SPREAD(test)   cmocka_unit_test_prestate(test, &spread)
#define FINALISE(test) cmocka_unit_test_prestate(test, &finalise)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPREAD(test_a_hot_page_gives_up_its_oldest_history),
		SPREAD(test_a_hot_page_keeps_its_versions),
		SPREAD(test_a_hot_page_without_history_needs_little_work),
		SPREAD(test_a_hot_page_keeps_all_of_the_time_that_was_asked_for),
		SPREAD(test_a_hot_page_all_of_which_is_kept_is_refused_soon),
		SPREAD(test_a_hot_page_whose_history_is_locked_is_refused_soon),
		SPREAD(test_a_hot_attribute_gives_up_its_oldest_history),
		SPREAD(test_a_hot_attribute_all_of_which_is_kept_is_refused_soon),
		SPREAD(test_a_page_that_a_third_of_all_writes_go_to_holds_up_nobody),
		FINALISE(test_a_hot_page_gives_up_its_oldest_history),
		FINALISE(test_a_hot_page_keeps_its_versions),
		FINALISE(test_a_hot_page_all_of_which_is_kept_is_refused_soon),
		FINALISE(test_a_page_that_a_third_of_all_writes_go_to_holds_up_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
