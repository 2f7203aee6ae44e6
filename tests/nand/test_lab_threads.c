/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Timing, faults and power are switched while threads use the device; a cut stops all of them at
 * once.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "tests/nand/fixture.h"

#include "nand/faults.h"
#include "nand/power.h"
#include "nand/timing.h"

enum { THREADS = 4, ROUNDS = 60 };

static struct nand *open_shared(void)
{
	struct nand_geometry geometry = small_geometry;
	struct nand *nand;

	geometry.page_bytes = 512;
	geometry.spare_bytes = 64;
	assert_int_equal(nand_open_memory(&geometry, TEST_NVRAM_BYTES, &nand, NULL), 0);
	nand_set_violation_policy(nand, NAND_VIOLATION_FAILS);
	log_capture();
	return nand;
}

struct worker {
	struct nand *nand;
	uint32_t block;      /* its own */
	uint64_t programmed; /* pages that were acknowledged */
	int result;          /* that it ended with */
	uint64_t behind;     /* reads after which the clock was behind */
	pthread_t thread;
};

/*
 * Fills and erases its block, reading what it wrote; ends at the first failure, or after `ROUNDS`.
 */
static void *work(void *context)
{
	struct worker *worker = context;
	struct nand *nand = worker->nand;
	uint8_t data[512];

	for (uint32_t round = 0; round < ROUNDS && worker->result == 0; round++) {
		for (uint64_t page = 0; page < 8 && worker->result == 0; page++) {
			struct nand_page_io io = { worker->block * 8 + page, data, NULL };

			memset(data, (int)(round + page), sizeof(data));
			worker->result = nand_program(nand, NAND_CAUSE_USER, &io, 1);
			worker->programmed += worker->result == 0;
			if (worker->result == 0)
				worker->result = nand_read(nand, NAND_CAUSE_USER, &io, 1);
		}
		if (worker->result == 0)
			worker->result = nand_nvram_sync(nand, 0, 100);
		if (worker->result == 0)
			worker->result = nand_erase(nand, NAND_CAUSE_USER, worker->block);
	}
	return NULL;
}

static void start(struct nand *nand, struct worker workers[THREADS], void *(*run)(void *))
{
	for (uint32_t i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .nand = nand, .block = i };
		assert_int_equal(pthread_create(&workers[i].thread, NULL, run, &workers[i]), 0);
	}
}

static void join(struct worker workers[THREADS])
{
	for (uint32_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
}

static void test_everything_can_be_switched_while_threads_work(void **state)
{
	static const char *const timings[] = { "tlc,mode=virtual", "none", "slc,mode=measured",
					       "muninn,mode=virtual", "none,mode=real,read=1us" };
	static const char *const faults[] = { "rber=1e-4", "off", "rber=1e-5,wear=1e-6", "off" };
	struct nand *nand = open_shared();
	struct worker workers[THREADS];
	struct histogram_snapshot latency;
	struct nand_fault_counters fault_counters;
	struct nand_usage usage;

	(void)state;
	start(nand, workers, work);
	for (size_t i = 0; i < 40; i++) {
		struct nand_timing timing;
		struct nand_faults wanted;

		assert_int_equal(nand_timing_parse(timings[i % 5], &timing, NULL), 0);
		assert_int_equal(nand_set_timing(nand, &timing, NULL), 0);
		assert_int_equal(nand_faults_parse(faults[i % 4], &wanted, NULL), 0);
		assert_int_equal(nand_set_faults(nand, &wanted, NULL), 0);
		assert_int_equal(nand_arm_power_cut(
					 nand, &(struct nand_power_cut){ .after = 1 << 30 }, NULL),
				 0);
		nand_latency(nand, NAND_READ, &latency);
		nand_read_usage(nand, &usage);
		nand_read_fault_counters(nand, &fault_counters);
		nand_age(nand, 1);
		nand_disarm_power_cut(nand);
	}
	join(workers);
	for (uint32_t i = 0; i < THREADS; i++) {
		assert_int_equal(workers[i].result, 0);
		assert_int_equal(workers[i].programmed, ROUNDS * 8);
	}
	assert_int_equal(nand_close(nand), 0);
}

/*
 * Reads a page many times, every second worker its spare area only. Counts after how many the
 * clock is behind what the read took.
 */
static void *watch_clock(void *context)
{
	struct worker *worker = context;
	uint8_t data[512];
	bool whole = worker->block % 2 == 0;
	struct nand_page_io io = { worker->block * UINT64_C(8), whole ? data : NULL,
				   whole ? NULL : data };
	uint64_t takes_ns = whole ? 512 + 64 : 64;

	for (uint32_t i = 0; i < 50000; i++) {
		uint64_t before = nand_now_ns(worker->nand);

		worker->result |= nand_read(worker->nand, NAND_CAUSE_USER, &io, 1);
		worker->behind += nand_now_ns(worker->nand) < before + takes_ns;
	}
	return NULL;
}

static void test_virtual_time_is_past_every_call_that_has_ended(void **state)
{
	const struct nand_timing timing = { .mode = NAND_TIMING_VIRTUAL,
					    .transfer_ps_per_byte = 1000 };
	struct nand *nand = open_shared();
	struct worker workers[THREADS];

	(void)state;
	for (uint32_t i = 0; i < THREADS; i++) {
		uint8_t data[512] = { 0 };
		struct nand_page_io io = { i * UINT64_C(8), data, NULL };

		assert_int_equal(nand_program(nand, NAND_CAUSE_USER, &io, 1), 0);
	}
	assert_int_equal(nand_set_timing(nand, &timing, NULL), 0);
	start(nand, workers, watch_clock);
	join(workers);
	for (uint32_t i = 0; i < THREADS; i++) {
		assert_int_equal(workers[i].result, 0);
		assert_int_equal(workers[i].behind, 0);
	}
	assert_int_equal(nand_close(nand), 0);
}

static void test_a_cut_stops_every_thread_after_exactly_so_many_operations(void **state)
{
	struct nand *nand = open_shared();
	struct worker workers[THREADS];
	struct nand_power_status status;
	struct nand_counters counters;
	uint64_t operations;

	(void)state;
	assert_int_equal(nand_arm_power_cut(nand, &(struct nand_power_cut){ .after = 500 }, NULL),
			 0);
	start(nand, workers, work);
	join(workers);
	nand_power_status(nand, &status);
	assert_true(status.off);
	assert_int_equal(status.operations, 500);
	for (uint32_t i = 0; i < THREADS; i++)
		assert_int_equal(workers[i].result, -EIO);
	nand_read_counters(nand, &counters);
	operations = counters.by_cause[NAND_CAUSE_USER].pages_programmed +
		     counters.by_cause[NAND_CAUSE_USER].blocks_erased +
		     counters.nvram_sync_requests;
	assert_int_equal(operations, 500);
	nand_abandon(nand);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything_can_be_switched_while_threads_work),
		cmocka_unit_test(test_virtual_time_is_past_every_call_that_has_ended),
		cmocka_unit_test(test_a_cut_stops_every_thread_after_exactly_so_many_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
