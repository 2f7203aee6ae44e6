/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Threads on one device: different blocks are independent, readers run beside writers, counters
 * stay exact.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "tests/nand/fixture.h"

enum { WRITERS = 4, BLOCKS_EACH = 4, LIVES = 6 };

struct worker {
	struct nand *nand;
	uint32_t number;
	_Atomic int failures;
};

/* cmocka's asserts belong to the main thread; workers count. */
static void expect(struct worker *worker, int result, int expected)
{
	if (result != expected)
		atomic_fetch_add(&worker->failures, 1);
}

/* Blocks of different writers lie side by side, so their states share cache lines. */
static void *write_own_blocks(void *argument)
{
	struct worker *worker = argument;
	struct nand *nand = worker->nand;

	for (uint32_t life = 1; life <= LIVES; life++) {
		for (uint32_t i = 0; i < BLOCKS_EACH; i++) {
			uint32_t block = i * WRITERS + worker->number;

			expect(worker, nand_erase(nand, NAND_CAUSE_MERGE, block), 0);
			for (uint64_t page = 0; page < 8; page++)
				expect(worker,
				       program_filled(nand, block * UINT64_C(8) + page, life), 0);
			expect(worker, nand_sync(nand, block, 1), 0);
			for (uint64_t page = 0; page < 8; page++)
				expect(worker, read_filled(nand, block * UINT64_C(8) + page, life),
				       0);
		}
	}
	return NULL;
}

static void churn_from_threads(struct nand *nand)
{
	const uint64_t pages = (uint64_t)WRITERS * BLOCKS_EACH * LIVES * 8;
	struct worker workers[WRITERS];
	pthread_t threads[WRITERS];
	struct nand_counters counters;

	for (uint32_t i = 0; i < WRITERS; i++) {
		workers[i] = (struct worker){ .nand = nand, .number = i };
		assert_int_equal(pthread_create(&threads[i], NULL, write_own_blocks, &workers[i]),
				 0);
	}
	for (uint32_t i = 0; i < WRITERS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(workers[i].failures, 0);
	}
	nand_read_counters(nand, &counters);
	assert_int_equal(counters.by_cause[NAND_CAUSE_USER].pages_programmed, pages);
	assert_int_equal(counters.by_cause[NAND_CAUSE_USER].pages_read, pages);
	assert_int_equal(counters.by_cause[NAND_CAUSE_USER].bytes_read, pages * (4096 + 128));
	assert_int_equal(counters.by_cause[NAND_CAUSE_MERGE].blocks_erased,
			 WRITERS * BLOCKS_EACH * LIVES);
	assert_int_equal(counters.rule_violations, 0);
	assert_int_equal(counters.uncorrectable_reads, 0);
}

static void test_threads_program_different_blocks_of_a_device_in_memory(void **state)
{
	struct nand *nand = open_small();

	(void)state;
	churn_from_threads(nand);
	assert_int_equal(nand_close(nand), 0);
}

static void test_threads_program_different_blocks_of_an_image(void **state)
{
	struct nand *nand = create_image(*state);

	churn_from_threads(nand);
	assert_int_equal(nand_close(nand), 0);
	nand = open_image_ok(*state);
	for (uint64_t page = 0; page < 128; page++)
		assert_int_equal(read_filled(nand, page, LIVES), 0);
	assert_int_equal(nand_close(nand), 0);
}

/* Follows a writer through a block: what it sees programmed must read back whole. */
static void *read_behind_the_writer(void *argument)
{
	struct worker *worker = argument;
	struct nand_block_info info;

	for (uint64_t page = 0; page < 128; page++) {
		do
			expect(worker, nand_block_info(worker->nand, (uint32_t)(page / 8), &info),
			       0);
		while (info.next_page <= page % 8);
		expect(worker, read_filled(worker->nand, page, 1), 0);
	}
	return NULL;
}

static void test_a_page_that_counts_as_programmed_reads_on_any_thread(void **state)
{
	struct nand *nand = open_small();
	struct worker reader = { .nand = nand };
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, read_behind_the_writer, &reader), 0);
	for (uint64_t page = 0; page < 128; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(reader.failures, 0);
	assert_int_equal(nand_close(nand), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_program_different_blocks_of_a_device_in_memory),
		cmocka_unit_test_setup_teardown(test_threads_program_different_blocks_of_an_image,
						directory_setup, directory_teardown),
		cmocka_unit_test(test_a_page_that_counts_as_programmed_reads_on_any_thread),
	};

	return RUN_ON_ALL_DEVICES(tests, NULL, NULL);
}
