/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What merging costs a WRITE on a device that is full of history, in pages, and how much history it
 * leaves.
 *
 * Not under sanitizers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/history.h"
#include "engine/options.h"
#include "nand/nand.h"
#include "tests/engine/by_address.h"

#define PARTITION    UINT64_C(0x10000)
#define OBJECT       UINT64_C(0x10000)
#define PAGE         UINT64_C(4096)
#define DEVICE_PAGES UINT64_C(65536)
#define SEED         UINT64_C(1)

struct device {
	struct nand *nand;
	struct engine *engine;
	uint64_t now, live_pages, random;
	uint64_t writes, *newest; /* so far; which one wrote each page last */
};

static uint64_t clock_of(void *context)
{
	return ((struct device *)context)->now;
}

static struct engine_txn *begin(struct device *device, enum engine_mode mode)
{
	struct engine_txn *txn;

	assert_int_equal(engine_begin(device->engine, mode, &txn), 0);
	return txn;
}

static void write_page(struct device *device, uint64_t page)
{
	static uint64_t data[PAGE / sizeof(uint64_t)];
	const struct engine_address address = { .partition = PARTITION, .object = OBJECT };
	struct engine_txn *txn = begin(device, ENGINE_WRITE);

	data[0] = device->newest[page] = ++device->writes;
	assert_int_equal(engine_write(txn, address, page * PAGE, data, PAGE), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	device->now++;
}

/* At random places. The constants are those of MMIX. */
static void overwrite(struct device *device, uint64_t count)
{
	while (count-- > 0) {
		device->random = device->random * UINT64_C(6364136223846793005) +
				 UINT64_C(1442695040888963407);
		write_page(device, (device->random >> 33) % device->live_pages);
	}
}

/* A device with an object, which is to have a part of its pages. */
static void make_device(struct device *device, uint64_t live_permille, enum index_kind index)
{
	const struct nand_geometry geometry = nand_geometry_default(DEVICE_PAGES * PAGE);
	const struct engine_options options = { .muninn.index = index,
						.clock_ms = clock_of,
						.clock_context = device };
	struct error_text error = { "" };
	struct engine_txn *txn;
	uint64_t nvram;

	print_message("seed %llu\n", (unsigned long long)SEED);
	*device = (struct device){ .now = 1000000,
				   .live_pages = DEVICE_PAGES * live_permille / 1000,
				   .random = SEED };
	device->newest = calloc(device->live_pages, sizeof(*device->newest));
	assert_non_null(device->newest);
	assert_int_equal(engine_nvram_bytes(&geometry, &options, &nvram, &error), 0);
	assert_int_equal(nand_open_memory(&geometry, nvram, &device->nand, &error), 0);
	assert_int_equal(engine_format(device->nand, &options, &error), 0);
	assert_int_equal(engine_open(device->nand, &options, &device->engine, &error), 0);
	txn = begin(device, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(txn, PARTITION, NULL), 0);
	assert_int_equal(engine_create(txn, PARTITION, ENGINE_USER_OBJECT, OBJECT, 1, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

static void fill(struct device *device)
{
	for (uint64_t page = 0; page < device->live_pages; page++)
		write_page(device, page);
	overwrite(device, DEVICE_PAGES);
}

/* The object is overwritten so often that history fills the device. */
static void make_full(struct device *device, uint64_t live_permille, enum index_kind index)
{
	make_device(device, live_permille, index);
	fill(device);
}

static void destroy(struct device *device)
{
	assert_int_equal(engine_close(device->engine), 0);
	assert_int_equal(nand_close(device->nand), 0);
	free(device->newest);
}

/* How many WRITEs came after the oldest moment that can be read. */
static uint64_t kept_writes(struct device *device)
{
	struct engine_txn *txn = begin(device, ENGINE_READ);
	struct engine_history history;

	assert_int_equal(engine_history(txn, PARTITION, &history), 0);
	engine_abort(txn);
	assert_true(history.horizon_time_ms > 0);
	return device->now - history.horizon_time_ms;
}

/* What overwriting a full device costs, in pages for each WRITE. */
struct cost {
	double programs, reads;
	double kept, kept_least; /* WRITEs that can be undone, of the device's pages */
};

static struct cost cost_of(uint64_t live_permille, enum index_kind index)
{
	const uint64_t at_once = 1024, times = DEVICE_PAGES / 2 / at_once;
	const double writes = (double)(at_once * times);
	struct nand_counters before, after;
	struct cost cost = { .kept_least = 1 };
	struct device device;

	make_full(&device, live_permille, index);
	nand_read_counters(device.nand, &before);
	for (uint64_t n = 0; n < times; n++) {
		double kept;

		overwrite(&device, at_once);
		kept = (double)kept_writes(&device) / (double)DEVICE_PAGES;
		cost.kept += kept / (double)times;
		cost.kept_least = kept < cost.kept_least ? kept : cost.kept_least;
	}
	nand_read_counters(device.nand, &after);
	cost.programs = (double)(after.by_cause[NAND_CAUSE_USER].pages_programmed -
				 before.by_cause[NAND_CAUSE_USER].pages_programmed) /
			writes;
	cost.reads = (double)(after.by_cause[NAND_CAUSE_MERGE].pages_read -
			      before.by_cause[NAND_CAUSE_MERGE].pages_read) /
		     writes;
	print_message("%s, %llu per mille live: %.2f programs, %.1f reads, %.3f of the device is "
		      "history, %.3f at least\n",
		      index == INDEX_BLOOM ? "bloom" : "ribbon", (unsigned long long)live_permille,
		      cost.programs, cost.reads, cost.kept, cost.kept_least);
	destroy(&device);
	return cost;
}

/*
 * The limits are a tenth beyond what was found. When segments with up to 30 % that was needed were
 * taken until history was a quarter of the device, and then with up to 70 %, the programs were 2.1,
 * 1.6, 1.7, 2.3, 2.5 and 3.2. When only cheap ones were taken, nearly all of history went where 420
 * per mille were live. When the best of many was counted without looking closer at it, the reads
 * were 7.4, 5.1, 5.2, 6.5, 9.6 and 16.6. When each candidate was sampled to the end, they were 5.5,
 * 4.2, 4.2, 5.5, 6.9 and 10.7.
 */
static void test_overwriting_costs_little_and_leaves_history(void **state)
{
	const struct {
		enum index_kind index;
		uint64_t live_permille;
		struct cost limit;
	} cases[] = {
		{ INDEX_BLOOM, 250, { .programs = 2.05, .reads = 6.1, .kept_least = .22 } },
		{ INDEX_RIBBON, 125, { .programs = 1.4, .reads = 4.4, .kept_least = .40 } },
		{ INDEX_RIBBON, 250, { .programs = 1.55, .reads = 4.2, .kept_least = .25 } },
		{ INDEX_RIBBON, 330, { .programs = 1.8, .reads = 5.3, .kept_least = .21 } },
		{ INDEX_RIBBON, 420, { .programs = 2.1, .reads = 7.9, .kept_least = .17 } },
		{ INDEX_RIBBON, 500, { .programs = 2.6, .reads = 11.5, .kept_least = .12 } },
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct cost found = cost_of(cases[n].live_permille, cases[n].index);

		assert_true(found.programs < cases[n].limit.programs);
		assert_true(found.reads < cases[n].limit.reads);
		assert_true(found.kept_least > cases[n].limit.kept_least);
	}
}

/*
 * The device keeps all of its history, so none may go for cheaper segments; but this partition has
 * none, so there is space in dear ones.
 */
static void test_what_is_overwritten_makes_room_where_no_history_may_go(void **state)
{
	const struct engine_retention all = { .kind = ENGINE_RETAIN_ALL };
	const struct engine_retention none = { .kind = ENGINE_RETAIN_NONE };
	struct engine_txn *txn;
	struct device device;

	(void)state;
	make_device(&device, 600, INDEX_RIBBON);
	txn = begin(&device, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(txn, 0, &all, false), 0);
	assert_int_equal(engine_retention_set(txn, PARTITION, &none, false), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	fill(&device);
	destroy(&device);
}

/* ---- many versions of a page that are kept ---- */

#define KEPT_PARTITION UINT64_C(0x20000)

static void write_kept(struct device *device, uint64_t number)
{
	static uint64_t data[PAGE / sizeof(uint64_t)];
	const struct engine_address address = { .partition = KEPT_PARTITION, .object = OBJECT };
	struct engine_txn *txn = begin(device, ENGINE_WRITE);

	data[0] = number;
	assert_int_equal(engine_write(txn, address, 0, data, PAGE), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	device->now++;
}

/*
 * A page of a partition that keeps all of its history is overwritten again and again, and then only
 * others are. Merging has its versions moved, so most are in places newer than the newest. Page
 * reads of merging for each WRITE.
 */
static double reads_behind_versions(uint64_t versions, enum index_kind index)
{
	const struct engine_retention all = { .kind = ENGINE_RETAIN_ALL };
	const struct engine_retention none = { .kind = ENGINE_RETAIN_NONE };
	const uint64_t writes = DEVICE_PAGES;
	struct nand_counters before, after;
	struct engine_txn *txn;
	struct device device;
	double reads;

	make_device(&device, 300, index);
	txn = begin(&device, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(txn, PARTITION, &none, false), 0);
	assert_int_equal(engine_partition_create(txn, KEPT_PARTITION, NULL), 0);
	assert_int_equal(engine_retention_set(txn, KEPT_PARTITION, &all, false), 0);
	assert_int_equal(engine_create(txn, KEPT_PARTITION, ENGINE_USER_OBJECT, OBJECT, 1, NULL),
			 0);
	assert_int_equal(engine_commit(txn, false), 0);
	for (uint64_t page = 0; page < device.live_pages; page++)
		write_page(&device, page);
	for (uint64_t n = 0; n < versions; n++) {
		write_kept(&device, n);
		overwrite(&device, 3);
	}
	nand_read_counters(device.nand, &before);
	overwrite(&device, writes);
	nand_read_counters(device.nand, &after);
	reads = (double)(after.by_cause[NAND_CAUSE_MERGE].pages_read -
			 before.by_cause[NAND_CAUSE_MERGE].pages_read) /
		(double)writes;
	print_message("%s, %llu versions: %.1f page reads of merging for each WRITE\n",
		      index == INDEX_BLOOM ? "bloom" : "ribbon", (unsigned long long)versions,
		      reads);
	destroy(&device);
	return reads;
}

/* When each version was looked for past all newer ones, it was 1,578. */
static void test_many_versions_of_a_page_cost_merging_little(void **state)
{
	(void)state;
	assert_true(reads_behind_versions(16384, INDEX_RIBBON) < 20);
}

/* Reads pages of an object at a version. `newest`: what wrote each last. Page reads of each. */
static double read_version(struct device *device, uint32_t version, const uint64_t *newest)
{
	const struct engine_address address = { .partition = PARTITION,
						.object = OBJECT,
						.version = version };
	const uint64_t reads = 4096, apart = device->live_pages / reads;
	static uint64_t data[PAGE / sizeof(uint64_t)];
	struct nand_counters before, after;

	nand_read_counters(device->nand, &before);
	for (uint64_t n = 0; n < reads; n++) {
		struct engine_txn *txn = begin(device, ENGINE_READ);
		uint64_t got;

		assert_int_equal(engine_read(txn, address, n * apart * PAGE, data, PAGE, &got), 0);
		assert_int_equal(got, PAGE);
		assert_int_equal(data[0], newest[n * apart]);
		engine_abort(txn);
	}
	nand_read_counters(device->nand, &after);
	return (double)(after.by_cause[NAND_CAUSE_USER].pages_read -
			before.by_cause[NAND_CAUSE_USER].pages_read) /
	       (double)reads;
}

/* A version, and which WRITE each page had last then. */
struct version {
	uint32_t number;
	uint64_t *newest;
};

static struct version take_version(struct device *device)
{
	struct engine_txn *txn = begin(device, ENGINE_WRITE);
	struct version version;

	assert_int_equal(engine_snapshot(txn, PARTITION, NULL, &version.number), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	version.newest = calloc(device->live_pages, sizeof(*version.newest));
	assert_non_null(version.newest);
	memcpy(version.newest, device->newest, device->live_pages * sizeof(*version.newest));
	return version;
}

/*
 * Merging has put what the version needs beside what is newer, and the object's onode is put with
 * each WRITE. Found: 16 to 25 page reads with `bloom`, 3.5 to 8.6 with `ribbon`, by where merging
 * has put a few old records; 376 with `bloom` when pages with nothing as old were read, too.
 */
static void check_version(enum index_kind index, double reads_limit)
{
	struct version version;
	struct device device;
	double each;

	make_full(&device, 125, index);
	version = take_version(&device);
	overwrite(&device, 2 * DEVICE_PAGES);
	each = read_version(&device, version.number, version.newest);
	print_message("%.3f page reads for each of the version\n", each);
	assert_true(each < reads_limit);
	free(version.newest);
	destroy(&device);
}

static void test_a_version_is_read_past_newer_pages_by_bloom(void **state)
{
	(void)state;
	check_version(INDEX_BLOOM, 30);
}

static void test_a_version_is_read_past_newer_pages_by_ribbon(void **state)
{
	(void)state;
	check_version(INDEX_RIBBON, 9.5);
}

/*
 * What was put shortly before and behind the versions is in the same segments, beside what was
 * moved. Found: 6.3 page reads, and 6.9 when pages below a moved record were read, too.
 */
static void test_versions_within_segments_are_read_by_ribbon(void **state)
{
	struct version versions[16];
	const size_t count = sizeof(versions) / sizeof(versions[0]);
	struct device device;
	double each = 0;

	(void)state;
	make_full(&device, 125, INDEX_RIBBON);
	overwrite(&device, DEVICE_PAGES);
	for (size_t n = 0; n < count; n++) {
		overwrite(&device, DEVICE_PAGES / 64 + 77);
		versions[n] = take_version(&device);
	}
	overwrite(&device, DEVICE_PAGES / 8);
	for (size_t n = 0; n < count; n++) {
		each += read_version(&device, versions[n].number, versions[n].newest) /
			(double)count;
		free(versions[n].newest);
	}
	print_message("%.3f page reads for each of the versions\n", each);
	assert_true(each < 6.6);
	destroy(&device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_versions_of_a_page_cost_merging_little),
		cmocka_unit_test(test_overwriting_costs_little_and_leaves_history),
		cmocka_unit_test(test_what_is_overwritten_makes_room_where_no_history_may_go),
		cmocka_unit_test(test_a_version_is_read_past_newer_pages_by_bloom),
		cmocka_unit_test(test_a_version_is_read_past_newer_pages_by_ribbon),
		cmocka_unit_test(test_versions_within_segments_are_read_by_ribbon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
