/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * How evenly merging makes room beside WRITEs, in virtual time: a writer, the thread that merges
 * and one that seals go on by what their work costs. The costs are about what they were with two
 * processors. Only differences from one way of merging to another mean anything.
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
#include "engine/history/past.h"
#include "engine/options.h"
#include "nand/nand.h"
#include "tests/engine/by_address.h"
#include "tests/engine/merging.h"

#define PARTITION    UINT64_C(0x10000)
#define OBJECT       UINT64_C(0x10000)
#define OBJECTS      4
#define PAGE         UINT64_C(4096)
#define DEVICE_PAGES UINT64_C(65536)
#define LIVE_PAGES   (DEVICE_PAGES / 4 / OBJECTS) /* of each object */
#define DEPTH        32
#define WRITES       UINT64_C(98304)
#define PACE         .8 /* of the highest rate */

/* Microseconds. */
#define WRITE_US      15. /* of the writer ... */
#define WRITE_TURN_US 6.  /* ... of which so much is in turn */
#define READ_US       4.  /* a page that merging reads */
#define RECORD_US     2.  /* a record that it moves or drops */
#define PIECE_US      3.
#define SEAL_STAGE_US 500.
/* A piece sees a command that comes so soon. */
#define AHEAD_US 100.
#define NEVER_US 1e300

struct device {
	struct nand *nand;
	struct engine *engine;
	struct merging merging;
	uint64_t random, writes;
	uint64_t steps, freed; /* steps of merging that freed segments, and how many */
	/* From when on each of them is free, and the turn. */
	double writer_us, merger_us, sealer_us, turn_us;
	int sealing;     /* what the sealing thread is about; < 0: nothing */
	double comes_us; /* the command that goes on next */
	double held_us;  /* until when commands have waited for room */
	double *latencies_us;
};

/* Of a number of WRITEs. */
struct found {
	double each_us, p50_us, p999_us, most_us;
	uint64_t waits; /* for room, and their sum */
	double waited_us;
	double programs, reads; /* pages for each */
};

static struct device *current;

static uint64_t clock_of(void *context)
{
	return 1000000 + ((struct device *)context)->writes;
}

static const struct record_store_operations *operations_of(const struct device *device)
{
	return device->engine->store->operations;
}

static void write_page(struct device *device, uint64_t object, uint64_t page)
{
	static const uint64_t data[PAGE / sizeof(uint64_t)];
	const struct engine_address address = { .partition = PARTITION, .object = OBJECT + object };
	struct engine_txn *txn;

	device->writes++;
	assert_int_equal(engine_begin(device->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_write(txn, address, page * PAGE, data, PAGE), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

/* First each page, then at random places. The constants are those of MMIX. */
static void write_next(struct device *device)
{
	if (device->writes < OBJECTS * LIVE_PAGES) {
		write_page(device, device->writes % OBJECTS, device->writes / OBJECTS);
		return;
	}
	device->random =
		device->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	write_page(device, (device->random >> 33) % OBJECTS, (device->random >> 36) % LIVE_PAGES);
}

static double later(double one, double other)
{
	return one > other ? one : other;
}

/* ---- what goes on beside the writer ---- */

/* The sealing thread takes what there is. */
static bool seals(struct device *device, double now_us)
{
	if (device->sealing < 0) {
		device->sealing = operations_of(device)->seal_take(device->engine->store);
		if (device->sealing >= 0)
			device->sealer_us = later(device->sealer_us, now_us);
	}
	return device->sealing >= 0;
}

static void seal_stage(struct device *device)
{
	struct record_store *store = device->engine->store;

	operations_of(device)->seal_run(store, (uint32_t)device->sealing);
	if (operations_of(device)->seal_step(store, (uint32_t)device->sealing) != 1)
		device->sealing = -1;
	device->sealer_us += SEAL_STAGE_US;
	/* Writers wait for a spare buffer. */
	if (device->engine->sealer.pressed)
		device->writer_us = later(device->writer_us, device->sealer_us);
	sealer_look(device->engine);
}

static bool merges(const struct device *device)
{
	const struct merger *merger = &device->engine->past->merger;

	return merger->wanted || merger->busy;
}

static uint64_t merge_reads(const struct device *device)
{
	struct nand_counters counters;

	nand_read_counters(device->nand, &counters);
	return counters.by_cause[NAND_CAUSE_MERGE].pages_read;
}

/* What is read beside others, and a piece; `wanted_us`: when the next command wants the turn. */
static void merge_piece(struct device *device, double wanted_us)
{
	const struct record_merge *merge = &device->merging.job.merge;
	double begun_us = later(device->merger_us, device->turn_us);
	uint64_t reads = merge_reads(device), records;
	bool is_wanted = wanted_us < begun_us + AHEAD_US;

	if (!device->merging.job.under_way)
		device->merging.job.merge = (struct record_merge){ 0 };
	records = merge->records_moved + merge->records_dropped;
	device->engine->turn.wanted += is_wanted;
	merging_go_on(&device->merging);
	device->engine->turn.wanted -= is_wanted;
	records = merge->records_moved + merge->records_dropped - records;
	if (!device->merging.job.under_way && merge->segments_freed) {
		device->steps++;
		device->freed += merge->segments_freed;
	}
	device->merger_us = begun_us + PIECE_US + READ_US * (double)(merge_reads(device) - reads) +
			    RECORD_US * (double)records;
	device->turn_us = device->merger_us;
}

/* What the threads do until a command may begin that comes at `write_us`. */
static void let_threads(struct device *device, double write_us)
{
	const struct sealer *sealer = &device->engine->sealer;

	for (;;) {
		bool held = merges(device) && !merger_lets_on(device->engine);
		double until_us = held || sealer->pressed ? NEVER_US : write_us;
		bool merges_first = !sealer->pressed && merges(device);

		if (held)
			device->held_us = device->merger_us;
		if (seals(device, write_us) && device->sealer_us <= until_us &&
		    !(merges_first && device->merger_us < device->sealer_us))
			seal_stage(device);
		else if (merges(device) && device->merger_us <= until_us)
			merge_piece(device, held ? NEVER_US : write_us);
		else
			break;
	}
	if (!merges(device))
		device->merger_us = later(device->merger_us, write_us);
}

/* As merger_await. */
static bool await_space(struct engine *engine, enum engine_mode mode)
{
	(void)mode;
	if (!merger_lets_on(engine))
		let_threads(current, current->comes_us);
	return true;
}

/* ---- the writer ---- */

static void command(struct device *device, double arrival_us, struct found *found)
{
	double begun_us;

	device->comes_us = later(arrival_us, device->writer_us);
	let_threads(device, device->comes_us);
	write_next(device);
	if (device->held_us > device->comes_us) {
		found->waits++;
		found->waited_us += device->held_us - device->comes_us;
	}
	begun_us = later(device->comes_us, later(device->writer_us, device->turn_us));
	device->turn_us = begun_us + WRITE_TURN_US;
	device->writer_us = begun_us + WRITE_US;
}

static int compare(const void *one, const void *other)
{
	double a = *(const double *)one, b = *(const double *)other;

	return (a > b) - (a < b);
}

/* `count` WRITEs, `apart_us` from each other, or 0: 32 at a time. */
static struct found load(struct device *device, const char *name, uint64_t count, double apart_us)
{
	double begun_us = device->writer_us, ended_us[DEPTH], *latencies = device->latencies_us;
	struct nand_counters before, after;
	struct found found = { 0 };

	for (uint32_t n = 0; n < DEPTH; n++)
		ended_us[n] = begun_us;
	nand_read_counters(device->nand, &before);
	for (uint64_t n = 0; n < count; n++) {
		double arrival_us = apart_us > 0 ? begun_us + (double)n * apart_us
						 : ended_us[n % DEPTH];

		command(device, arrival_us, &found);
		ended_us[n % DEPTH] = device->writer_us;
		latencies[n] = device->writer_us - arrival_us;
	}
	nand_read_counters(device->nand, &after);
	qsort(latencies, count, sizeof(*latencies), compare);
	found.each_us = (device->writer_us - begun_us) / (double)count;
	found.p50_us = latencies[count / 2];
	found.p999_us = latencies[count * 999 / 1000];
	found.most_us = latencies[count - 1];
	found.programs = (double)(after.by_cause[NAND_CAUSE_USER].pages_programmed -
				  before.by_cause[NAND_CAUSE_USER].pages_programmed) /
			 (double)count;
	found.reads = (double)(after.by_cause[NAND_CAUSE_MERGE].pages_read -
			       before.by_cause[NAND_CAUSE_MERGE].pages_read) /
		      (double)count;
	print_message("%s: %.0f/s, p50 %.0f us, p99.9 %.0f, most %.0f; %llu waits for room, %.0f "
		      "ms in all; %.2f programs, %.1f reads\n",
		      name, 1e6 / found.each_us, found.p50_us, found.p999_us, found.most_us,
		      (unsigned long long)found.waits, found.waited_us / 1e3, found.programs,
		      found.reads);
	return found;
}

/* `rows`: 0: by default. */
static void make_device(struct device *device, uint32_t rows)
{
	const struct nand_geometry geometry = nand_geometry_default(DEVICE_PAGES * PAGE);
	const struct engine_options options = { .muninn.rows = rows,
						.clock_ms = clock_of,
						.clock_context = device };
	struct error_text error = { "" };
	struct engine_txn *txn;
	uint64_t nvram;

	*device = (struct device){ .random = 1, .sealing = -1 };
	device->latencies_us = calloc(WRITES, sizeof(*device->latencies_us));
	assert_non_null(device->latencies_us);
	assert_int_equal(engine_nvram_bytes(&geometry, &options, &nvram, &error), 0);
	assert_int_equal(nand_open_memory(&geometry, nvram, &device->nand, &error), 0);
	assert_int_equal(engine_format(device->nand, &options, &error), 0);
	assert_int_equal(engine_open(device->nand, &options, &device->engine, &error), 0);
	assert_int_equal(engine_begin(device->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_partition_create(txn, PARTITION, NULL), 0);
	for (uint64_t n = 0; n < OBJECTS; n++)
		assert_int_equal(
			engine_create(txn, PARTITION, ENGINE_USER_OBJECT, OBJECT + n, 1, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	/* As if a thread sealed: this test does what it would. */
	device->engine->sealer.count = 1;
	merging_begin(&device->merging, device->engine);
	device->merging.calls.await_space = await_space;
	current = device;
}

static void destroy(struct device *device)
{
	/* A piece waits while buffers are short. */
	while (seals(device, 0))
		seal_stage(device);
	merging_end_step(&device->merging);
	merging_end(&device->merging);
	while (seals(device, 0))
		seal_stage(device);
	device->engine->sealer.count = 0;
	assert_int_equal(engine_close(device->engine), 0);
	assert_int_equal(nand_close(device->nand), 0);
	free(device->latencies_us);
}

static struct found load_full(struct device *device, struct found *paced)
{
	struct found highest;

	load(device, "filling", DEVICE_PAGES + DEVICE_PAGES / 4, 0);
	highest = load(device, "highest", WRITES, 0);
	*paced = load(device, "paced", WRITES, highest.each_us / PACE);
	return highest;
}

/* As many rows as a device of 1 GiB has. */
static void test_writes_seldom_wait_for_room(void **state)
{
	struct device device;
	struct found highest, paced;

	(void)state;
	make_device(&device, 8);
	highest = load_full(&device, &paced);
	assert_true(highest.waited_us < 80e3 && paced.waited_us < 40e3);
	assert_true(highest.p999_us < 10e3 && paced.p999_us < 6e3);
	assert_true(highest.programs < 1.5 && highest.reads < 4.2);
	/* Steps share flushes. */
	assert_true(device.freed > 2 * device.steps && device.freed < 5 * device.steps);
	destroy(&device);
}

/* Few rows leave little between the mark where merging begins and the end of room. */
static void test_a_small_device_merges_ahead_too(void **state)
{
	struct device device;
	struct found highest, paced;

	(void)state;
	make_device(&device, 0);
	assert_int_equal(device.engine->store->limits.segments_open, 2);
	highest = load_full(&device, &paced);
	assert_true(highest.waited_us < 120e3 && paced.waited_us < 60e3);
	assert_true(highest.programs < 1.5 && highest.reads < 4.4);
	destroy(&device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_writes_seldom_wait_for_room),
		cmocka_unit_test(test_a_small_device_merges_ahead_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
