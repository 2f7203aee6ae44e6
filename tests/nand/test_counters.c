/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Counters are exact, by cause; syncs reach the host when there is something to sync, and failures
 * stick.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>

#include "tests/nand/fixture.h"

static void program(struct nand *nand, enum nand_cause cause, uint64_t first, size_t count,
		    int result)
{
	static uint8_t data[4096];
	struct nand_page_io io[16];

	for (size_t i = 0; i < count; i++)
		io[i] = (struct nand_page_io){ first + i, data, NULL };
	assert_int_equal(nand_program(nand, cause, io, count), result);
}

static void read_pages(struct nand *nand, enum nand_cause cause, uint64_t first, size_t count,
		       bool want_data, int result)
{
	static uint8_t data[4096];
	struct nand_page_io io[16];

	for (size_t i = 0; i < count; i++)
		io[i] = (struct nand_page_io){ first + i, want_data ? data : NULL, NULL };
	assert_int_equal(nand_read(nand, cause, io, count), result);
}

static void test_counters_are_exact_and_by_cause(void **state)
{
	struct nand *nand = open_small();
	struct nand_counters counters;

	(void)state;
	for (int cause = 0; cause < NAND_CAUSES; cause++) {
		for (int i = 0; i <= cause; i++) {
			program(nand, cause, (uint64_t)cause * 8, 4, 0);
			program(nand, cause, (uint64_t)cause * 8 + 4, 3, 0);
			read_pages(nand, cause, (uint64_t)cause * 8, 5, true, 0);
			read_pages(nand, cause, (uint64_t)cause * 8, 2, false, 0);
			assert_int_equal(nand_erase(nand, cause, (uint32_t)cause), 0);
		}
	}
	nand_read_counters(nand, &counters);
	for (int cause = 0; cause < NAND_CAUSES; cause++) {
		uint64_t rounds = (uint64_t)cause + 1;

		assert_int_equal(counters.by_cause[cause].pages_programmed, rounds * 7);
		assert_int_equal(counters.by_cause[cause].bytes_programmed,
				 rounds * 7 * (4096 + 128));
		assert_int_equal(counters.by_cause[cause].pages_read, rounds * 7);
		assert_int_equal(counters.by_cause[cause].bytes_read,
				 rounds * (5 * 4096 + 7 * 128));
		assert_int_equal(counters.by_cause[cause].blocks_erased, rounds);
	}
	assert_int_equal(counters.rule_violations, 0);
	assert_int_equal(counters.uncorrectable_reads, 0);
	assert_int_equal(nand_close(nand), 0);
}

static void test_only_what_was_done_is_counted(void **state)
{
	struct nand *nand = open_small();
	struct nand_counters counters;

	(void)state;
	program(nand, NAND_CAUSE_USER, 6, 1, -EPERM);
	program(nand, NAND_CAUSE_USER, 0, 3, 0);
	program(nand, NAND_CAUSE_USER, 128, 1, -ERANGE);
	read_pages(nand, NAND_CAUSE_USER, 1, 4, true, -ENODATA);
	read_pages(nand, NAND_CAUSE_USER, 128, 1, true, -ERANGE);
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 16), -ERANGE);
	nand_read_counters(nand, &counters);
	assert_int_equal(counters.by_cause[NAND_CAUSE_USER].pages_programmed, 3);
	assert_int_equal(counters.by_cause[NAND_CAUSE_USER].pages_read, 2);
	assert_int_equal(counters.by_cause[NAND_CAUSE_USER].bytes_read, 2 * (4096 + 128));
	assert_int_equal(counters.by_cause[NAND_CAUSE_USER].blocks_erased, 0);
	assert_int_equal(counters.rule_violations, 1);
	assert_int_equal(nand_close(nand), 0);
}

static uint64_t image_syncs(struct nand *nand)
{
	struct nand_counters counters;

	nand_read_counters(nand, &counters);
	return counters.image_syncs;
}

static void test_an_image_is_synced_when_there_is_something_to_sync(void **state)
{
	struct nand *nand = create_image(*state);

	/* What a process before this one left unsynced is not known. */
	assert_int_equal(nand_sync(nand, 0, 1), 0);
	assert_int_equal(image_syncs(nand), 1);
	assert_int_equal(nand_sync(nand, 0, 16), 0);
	assert_int_equal(image_syncs(nand), 1);
	program(nand, NAND_CAUSE_USER, 0, 1, 0);
	assert_int_equal(nand_sync(nand, 0, 0), 0);
	assert_int_equal(image_syncs(nand), 1);
	assert_int_equal(nand_sync(nand, 0, 1), 0);
	assert_int_equal(image_syncs(nand), 2);
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 3), 0);
	assert_int_equal(nand_sync(nand, 3, 1), 0);
	assert_int_equal(image_syncs(nand), 3);
	assert_int_equal(nand_mark_bad(nand, 4), 0);
	assert_int_equal(nand_sync(nand, 4, 1), 0);
	assert_int_equal(image_syncs(nand), 4);
	assert_int_equal(nand_close(nand), 0);
}

static void test_nvram_syncs_are_counted_and_bounded(void **state)
{
	struct nand *nand = create_image(*state);
	struct nand_counters counters;

	assert_int_equal(nand_nvram_sync(nand, 0, TEST_NVRAM_BYTES), 0);
	assert_int_equal(nand_nvram_sync(nand, TEST_NVRAM_BYTES - 1, 1), 0);
	assert_int_equal(nand_nvram_sync(nand, 4095, 2), 0);
	assert_int_equal(nand_nvram_sync(nand, 17, 0), 0);
	assert_int_equal(nand_nvram_sync(nand, TEST_NVRAM_BYTES, 1), -ERANGE);
	assert_int_equal(nand_nvram_sync(nand, 1, TEST_NVRAM_BYTES), -ERANGE);
	assert_int_equal(nand_nvram_sync(nand, UINT64_MAX, 2), -ERANGE);
	assert_int_equal(nand_nvram_sync(nand, 2, UINT64_MAX), -ERANGE);
	nand_read_counters(nand, &counters);
	assert_int_equal(counters.nvram_syncs, 3);
	assert_int_equal(nand_close(nand), 0);
}

static int failures_left;
static const struct nand_backend *intact;

static int failing_sync(struct nand *nand)
{
	return failures_left-- > 0 ? -EIO : intact->sync(nand);
}

static void test_a_failed_sync_stays_failed_until_the_image_is_opened_again(void **state)
{
	struct nand *nand = create_image(*state);
	struct nand_backend failing = *nand->backend;

	intact = nand->backend;
	failing.sync = failing_sync;
	failures_left = 1;
	nand->backend = &failing;
	program(nand, NAND_CAUSE_USER, 0, 1, 0);
	assert_int_equal(nand_sync(nand, 0, 1), -EIO);
	assert_int_equal(nand_sync(nand, 0, 1), -EIO);
	assert_int_equal(nand_close(nand), -EIO);
	nand = open_image_ok(*state);
	assert_int_equal(nand_sync(nand, 0, 1), 0);
	assert_int_equal(nand_close(nand), 0);
}

/* ---- callers that wait ---- */

enum { CALLERS = 4 };

static sem_t first_began, first_goes_on;
static int syncs;

/* The first one waits to be let go. Somebody programs during each of them. */
static int busy_sync(struct nand *nand)
{
	if (syncs++ == 0) {
		sem_post(&first_began);
		sem_wait(&first_goes_on);
	}
	atomic_store(&nand->dirty, true);
	return 0;
}

static void *call_sync(void *context)
{
	return (void *)(intptr_t)nand_sync(context, 0, 1);
}

static void test_a_sync_serves_all_who_waited_when_it_began(void **state)
{
	struct nand_backend busy;
	pthread_t threads[CALLERS];
	struct nand *nand = create_image(*state);
	void *result;

	busy = *nand->backend;
	busy.sync = busy_sync;
	nand->backend = &busy;
	syncs = 0;
	sem_init(&first_began, 0, 0);
	sem_init(&first_goes_on, 0, 0);
	atomic_store(&nand->dirty, true);
	assert_int_equal(pthread_create(&threads[0], NULL, call_sync, nand), 0);
	sem_wait(&first_began);
	/* What these have programmed may not be in it. */
	for (int n = 1; n < CALLERS; n++)
		assert_int_equal(pthread_create(&threads[n], NULL, call_sync, nand), 0);
	while (atomic_load(&nand->sync_callers) < CALLERS)
		sched_yield();
	sem_post(&first_goes_on);
	for (int n = 0; n < CALLERS; n++) {
		pthread_join(threads[n], &result);
		assert_null(result);
	}
	assert_int_equal(syncs, 2);
	assert_int_equal(nand_sync(nand, 0, 1), 0);
	assert_int_equal(syncs, 3);
	sem_destroy(&first_goes_on);
	sem_destroy(&first_began);
	nand_abandon(nand);
}

#define IN_DIRECTORY(test) \
	cmocka_unit_test_setup_teardown(test, directory_setup, directory_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counters_are_exact_and_by_cause),
		cmocka_unit_test(test_only_what_was_done_is_counted),
		IN_DIRECTORY(test_an_image_is_synced_when_there_is_something_to_sync),
		IN_DIRECTORY(test_nvram_syncs_are_counted_and_bounded),
		IN_DIRECTORY(test_a_failed_sync_stays_failed_until_the_image_is_opened_again),
		IN_DIRECTORY(test_a_sync_serves_all_who_waited_when_it_began),
	};

	return RUN_ON_ALL_DEVICES(tests, NULL, NULL);
}
