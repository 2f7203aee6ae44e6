/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The NVRAM: bounded, kept by the file, and made stable for several callers at once. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "nand/power.h"
#include "nand/space.h"
#include "tests/nand/fixture.h"

/* ---- a host whose sync waits to be let go, and notes what it was asked for ---- */

enum { CALLERS = 8, SYNCS_MAX = 64 };

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_moved = PTHREAD_COND_INITIALIZER;
static bool open_gate, fails;
static uint32_t asked;
static struct {
	struct nand_nvram_range ranges[NAND_NVRAM_RANGES];
	uint32_t count;
} asked_for[SYNCS_MAX];

static int gated_store(struct nand *nand, const struct nand_nvram_range *ranges, uint32_t count)
{
	int result;

	(void)nand;
	pthread_mutex_lock(&gate);
	memcpy(asked_for[asked].ranges, ranges, count * sizeof(*ranges));
	asked_for[asked].count = count;
	asked++;
	pthread_cond_broadcast(&gate_moved);
	while (!open_gate)
		pthread_cond_wait(&gate_moved, &gate);
	result = fails ? -EIO : 0;
	pthread_mutex_unlock(&gate);
	return result;
}

static struct nand *gated_image(void **state)
{
	struct nand *nand = create_image(*state);

	open_gate = fails = false;
	asked = 0;
	nand->nvram_group.store = gated_store;
	return nand;
}

static void wait_until_asked(uint32_t syncs)
{
	pthread_mutex_lock(&gate);
	while (asked < syncs)
		pthread_cond_wait(&gate_moved, &gate);
	pthread_mutex_unlock(&gate);
}

static void let_go(bool failing)
{
	pthread_mutex_lock(&gate);
	open_gate = true;
	fails = failing;
	pthread_cond_broadcast(&gate_moved);
	pthread_mutex_unlock(&gate);
}

/* Until so many callers are inside nand_nvram_sync. */
static void wait_until_inside(struct nand *nand, uint32_t callers)
{
	bool inside = false;

	while (!inside) {
		pthread_mutex_lock(&nand->nvram_group.lock);
		inside = nand->nvram_group.waiting == callers;
		pthread_mutex_unlock(&nand->nvram_group.lock);
		sched_yield();
	}
}

struct caller {
	struct nand *nand;
	uint64_t offset, length;
	pthread_t thread;
	int result;
};

static void *call(void *context)
{
	struct caller *caller = context;

	caller->result = nand_nvram_sync(caller->nand, caller->offset, caller->length);
	return NULL;
}

static void start(struct caller *caller, struct nand *nand, uint64_t offset, uint64_t length)
{
	*caller = (struct caller){ .nand = nand, .offset = offset, .length = length };
	assert_int_equal(pthread_create(&caller->thread, NULL, call, caller), 0);
}

static void assert_was_asked(uint32_t sync, uint32_t range, uint64_t from, uint64_t to)
{
	assert_in_range(range, 0, asked_for[sync].count - 1);
	assert_int_equal(asked_for[sync].ranges[range].from, from);
	assert_int_equal(asked_for[sync].ranges[range].to, to);
}

static void test_callers_at_the_same_time_share_a_sync(void **state)
{
	struct nand *nand = gated_image(state);
	struct caller callers[CALLERS];
	struct nand_counters counters;

	start(&callers[0], nand, 5000, 100);
	wait_until_asked(1);
	/* One behind the other, neither the first nor the last range at the end. */
	for (uint32_t i = 1; i < CALLERS; i++) {
		start(&callers[i], nand, (i == 1 ? CALLERS - 1 : i - 1) * 1000, 10);
		wait_until_inside(nand, i + 1);
	}
	let_go(false);
	for (uint32_t i = 0; i < CALLERS; i++) {
		pthread_join(callers[i].thread, NULL);
		assert_int_equal(callers[i].result, 0);
	}
	assert_int_equal(asked, 2);
	assert_was_asked(0, 0, 5000, 5100);
	assert_int_equal(asked_for[1].count, 1);
	assert_was_asked(1, 0, 1000, 7010);
	nand_read_counters(nand, &counters);
	assert_int_equal(counters.nvram_sync_requests, CALLERS);
	assert_int_equal(counters.nvram_syncs, 2);
	assert_int_equal(counters.nvram_bytes_synced, 100 + 6010);
	nand_abandon(nand);
}

/*
 * A region with nothing but a few bytes at each end asked for is not written as a whole. When there
 * are more requests than ranges, the nearest one grows.
 */
static void test_requests_far_apart_stay_apart(void **state)
{
	enum { FAR = 1 << 20, REQUESTS = NAND_NVRAM_RANGES + 2 };
	struct nand *nand;
	struct caller callers[REQUESTS];
	struct nand_counters counters;
	struct test_directory *directory = *state;

	assert_int_equal(nand_create(directory->image, &small_geometry, REQUESTS * FAR, NULL), 0);
	nand = open_image_ok(directory);
	open_gate = fails = false;
	asked = 0;
	nand->nvram_group.store = gated_store;
	start(&callers[0], nand, 0, 1);
	wait_until_asked(1);
	for (uint32_t i = 1; i < REQUESTS; i++) {
		start(&callers[i], nand, (uint64_t)i * FAR, 10);
		wait_until_inside(nand, i + 1);
	}
	let_go(false);
	for (uint32_t i = 0; i < REQUESTS; i++) {
		pthread_join(callers[i].thread, NULL);
		assert_int_equal(callers[i].result, 0);
	}
	assert_int_equal(asked, 2);
	assert_int_equal(asked_for[1].count, NAND_NVRAM_RANGES);
	for (uint32_t n = 0; n + 1 < NAND_NVRAM_RANGES; n++)
		assert_was_asked(1, n, (n + 1) * FAR, (n + 1) * FAR + 10);
	assert_was_asked(1, NAND_NVRAM_RANGES - 1, NAND_NVRAM_RANGES * FAR,
			 (REQUESTS - 1) * FAR + 10);
	nand_read_counters(nand, &counters);
	assert_int_equal(counters.nvram_bytes_synced, 1 + (NAND_NVRAM_RANGES - 1) * 10 + FAR + 10);
	nand_abandon(nand);
}

/* Many pages take the host long; who asks for a few does not wait for these, nor the other way. */
static void test_small_requests_do_not_wait_for_large_ones(void **state)
{
	enum { LARGE = 1 << 20 };
	struct test_directory *directory = *state;
	struct caller large, small, another;
	struct nand *nand;

	assert_int_equal(nand_create(directory->image, &small_geometry, LARGE, NULL), 0);
	nand = open_image_ok(directory);
	open_gate = fails = false;
	asked = 0;
	nand->nvram_group.store = gated_store;
	start(&large, nand, 0, LARGE);
	wait_until_asked(1);
	start(&small, nand, 0, 8);
	wait_until_asked(2);
	assert_was_asked(1, 0, 0, 8);
	/* It has to wait for the next group of its kind. */
	start(&another, nand, 0, LARGE);
	wait_until_inside(nand, 3);
	let_go(true);
	pthread_join(large.thread, NULL);
	pthread_join(small.thread, NULL);
	pthread_join(another.thread, NULL);
	/* If one fails none is trusted any more. */
	assert_int_equal(large.result, -EIO);
	assert_int_equal(small.result, -EIO);
	assert_int_equal(another.result, -EIO);
	assert_int_equal(asked, 2);
	nand_abandon(nand);
}

/* What was stored after a sync began may not be in it: the caller has to wait for the next one. */
static void test_a_caller_never_joins_a_sync_that_has_begun(void **state)
{
	struct nand *nand = gated_image(state);
	struct caller first, second;

	start(&first, nand, 0, 1);
	wait_until_asked(1);
	start(&second, nand, 0, 1);
	wait_until_inside(nand, 2);
	let_go(false);
	pthread_join(first.thread, NULL);
	pthread_join(second.thread, NULL);
	assert_int_equal(asked, 2);
	nand_abandon(nand);
}

static void test_a_failed_sync_fails_everyone_until_the_image_is_opened_again(void **state)
{
	struct nand *nand = gated_image(state);
	struct caller first, second;

	start(&first, nand, 0, 1);
	wait_until_asked(1);
	start(&second, nand, 0, 1);
	wait_until_inside(nand, 2);
	let_go(true);
	pthread_join(first.thread, NULL);
	pthread_join(second.thread, NULL);
	assert_int_equal(first.result, -EIO);
	assert_int_equal(second.result, -EIO);
	let_go(false);
	assert_int_equal(nand_nvram_sync(nand, 0, 1), -EIO);
	assert_int_equal(asked, 1);
	assert_non_null(strstr(log_captured(), "image.nvram: the host could not store the NVRAM"));
	nand_abandon(nand);
	nand = open_image_ok(*state);
	assert_int_equal(nand_nvram_sync(nand, 0, 1), 0);
	assert_int_equal(nand_close(nand), 0);
}

static void *call_often(void *context)
{
	struct caller *caller = context;
	uint8_t *nvram = nand_nvram(caller->nand, NULL);

	for (int i = 1; i <= 200 && caller->result == 0; i++) {
		nvram[caller->offset] = (uint8_t)i;
		caller->result = nand_nvram_sync(caller->nand, caller->offset, 1);
	}
	return NULL;
}

/* By a real host, with ranges far apart. */
/* As the host tells it to one of two syncs at once: this one's own call went well. */
static void test_an_error_that_another_sync_was_told_of_fails_this_one(void **state)
{
	struct nand *nand = create_image(*state);
	int ends[2];

	assert_int_equal(nand_nvram_sync(nand, 0, 8), 0);
	assert_true(nand->nvram_group.small.witness >= 0);
	assert_true(nand->nvram_group.large.witness >= 0);
	/* A pipe has nothing to be told of, and the host says so. */
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(dup2(ends[0], nand->nvram_group.small.witness),
			 nand->nvram_group.small.witness);
	assert_int_equal(nand_nvram_sync(nand, 0, 8), -EIO);
	assert_int_equal(nand_nvram_sync(nand, 0, 8), -EIO);
	close(ends[0]);
	close(ends[1]);
	nand_abandon(nand);
}

static void test_many_callers_are_all_served(void **state)
{
	enum { FAR = 1 << 20 };
	struct test_directory *directory = *state;
	struct nand *nand;
	struct caller callers[CALLERS];
	struct nand_counters counters;

	assert_int_equal(nand_create(directory->image, &small_geometry, CALLERS * FAR, NULL), 0);
	nand = open_image_ok(directory);
	for (uint32_t i = 0; i < CALLERS; i++) {
		callers[i] = (struct caller){ .nand = nand, .offset = (uint64_t)i * FAR };
		assert_int_equal(pthread_create(&callers[i].thread, NULL, call_often, &callers[i]),
				 0);
	}
	for (uint32_t i = 0; i < CALLERS; i++) {
		pthread_join(callers[i].thread, NULL);
		assert_int_equal(callers[i].result, 0);
	}
	nand_read_counters(nand, &counters);
	assert_int_equal(counters.nvram_sync_requests, CALLERS * 200);
	assert_in_range(counters.nvram_syncs, 200, CALLERS * 200);
	assert_int_equal(nand_close(nand), 0);
}

static void test_requests_are_bounded_by_the_region(void **state)
{
	struct nand *nand = gated_image(state);
	uint64_t bytes = 0;

	let_go(false);
	assert_non_null(nand_nvram(nand, &bytes));
	assert_int_equal(bytes, TEST_NVRAM_BYTES);
	assert_int_equal(nand_nvram_sync(nand, 0, bytes + 1), -ERANGE);
	assert_int_equal(nand_nvram_sync(nand, UINT64_MAX, 1), -ERANGE);
	assert_int_equal(nand_nvram_sync(nand, bytes, 0), 0);
	assert_int_equal(asked, 0);
	assert_int_equal(nand_nvram_sync(nand, bytes - 1, 1), 0);
	assert_int_equal(asked, 1);
	nand_abandon(nand);
}

static void test_what_was_stored_is_there_again(void **state)
{
	struct nand *nand = create_image(*state);
	uint8_t *nvram = nand_nvram(nand, NULL);

	for (uint32_t i = 0; i < TEST_NVRAM_BYTES; i++)
		assert_int_equal(nvram[i], 0);
	memset(nvram, 0xA5, TEST_NVRAM_BYTES);
	nand_abandon(nand);
	nand = open_image_ok(*state);
	nvram = nand_nvram(nand, NULL);
	for (uint32_t i = 0; i < TEST_NVRAM_BYTES; i++)
		assert_int_equal(nvram[i], 0xA5);
	assert_int_equal(nand_close(nand), 0);
}

/* What this process has had written to drives, by the host's count; 0 where it does not tell. */
static uint64_t written_bytes(void)
{
	FILE *file = fopen("/proc/self/io", "re");
	unsigned long long bytes = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "write_bytes: %llu", &bytes) == 1)
			break;
	if (file)
		fclose(file);
	return bytes;
}

/* Stores a byte to every 16th page of the region, and makes that stable. */
static uint64_t bytes_for_scattered_stores(struct nand *nand, uint32_t stores)
{
	uint8_t *nvram = nand_nvram(nand, NULL);
	uint64_t before = written_bytes();

	for (uint32_t i = 0; i < stores; i++)
		nvram[i * UINT64_C(65536) + 100]++;
	assert_int_equal(nand_nvram_sync(nand, 0, stores * UINT64_C(65536)), 0);
	return written_bytes() - before;
}

/* Also when the host has read it from its drive. */
static void test_a_sync_writes_the_pages_that_were_stored_to_and_not_more(void **state)
{
	enum { STORES = 32 };
	struct test_directory *directory = *state;
	struct nand *nand;
	int fd;

	assert_int_equal(nand_create(directory->image, &small_geometry, STORES * 65536, NULL), 0);
	nand = open_image_ok(directory);
	assert_in_range(bytes_for_scattered_stores(nand, STORES), 0, STORES * 4096);
	assert_int_equal(nand_close(nand), 0);
	fd = open(directory->nvram, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	close(fd);
	nand = open_image_ok(directory);
	assert_in_range(bytes_for_scattered_stores(nand, STORES), 0, STORES * 4096);
	assert_int_equal(nand_close(nand), 0);
}

/* ---- stores while the host takes pages out of the mapping ---- */

enum {
	BUSY_BYTES = 1 << 20,
	BUSY_WORDS = BUSY_BYTES / 8,
	BUSY_SYNCS = 200,
	BUSY_SYNCS_MOST = 20000,
	CUTS = 20
};

struct busy {
	struct nand *nand;
	uint64_t *stored;                 /* what each word was given last */
	_Atomic uint64_t stores, strange; /* finds what it did not store */
	atomic_bool ends;
};

static void *store_all_the_time(void *context)
{
	struct busy *busy = context;
	uint64_t *words = (uint64_t *)nand_nvram(busy->nand, NULL);
	uint64_t random = 1;

	for (; !atomic_load(&busy->ends); atomic_fetch_add(&busy->stores, 1)) {
		uint64_t n;

		random = random * 6364136223846793005u + 1442695040888963407u;
		n = (random >> 33) % BUSY_WORDS;
		busy->stored[n] = words[n] = words[n] + random;
	}
	return NULL;
}

static void test_no_store_is_lost_while_pages_are_made_stable(void **state)
{
	struct test_directory *directory = *state;
	struct busy busy = { .stored = calloc(BUSY_WORDS, sizeof(uint64_t)) };
	uint64_t *found = calloc(BUSY_WORDS, sizeof(uint64_t));
	pthread_t thread;
	int fd;

	assert_true(busy.stored && found);
	assert_int_equal(nand_create(directory->image, &small_geometry, BUSY_BYTES, NULL), 0);
	busy.nand = open_image_ok(directory);
	assert_int_equal(pthread_create(&thread, NULL, store_all_the_time, &busy), 0);
	for (int n = 0; n < BUSY_SYNCS || (!busy.stores && n < BUSY_SYNCS_MOST); n++)
		assert_int_equal(nand_nvram_sync(busy.nand, 0, BUSY_BYTES), 0);
	atomic_store(&busy.ends, true);
	pthread_join(thread, NULL);
	assert_true(busy.stores > 0);
	assert_memory_equal(nand_nvram(busy.nand, NULL), busy.stored, BUSY_BYTES);
	fd = open(directory->nvram, O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(fd, found, BUSY_BYTES, NAND_NVRAM_FILE_AT), BUSY_BYTES);
	assert_memory_equal(found, busy.stored, BUSY_BYTES);
	close(fd);
	free(found);
	free(busy.stored);
	assert_int_equal(nand_close(busy.nand), 0);
}

static long faults_so_far(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
	return usage.ru_minflt;
}

/* Pages that are taken out would be brought back one by one, and nothing would be gained. */
static void test_a_sync_takes_nothing_out_of_an_nvram_in_memory(void **state)
{
	enum { PAGES = 64, PAGE = 4096 };
	struct test_directory *directory = *state;
	char in_memory[] = "/dev/shm/muninn-nvram-XXXXXX";
	int fd = mkstemp(in_memory);
	struct nand *nand;
	uint8_t *nvram;
	long faults;

	if (fd < 0 || !nand_space_is_memory(fd)) {
		if (fd >= 0)
			unlink(in_memory);
		skip();
	}
	close(fd);
	unlink(in_memory);
	assert_int_equal(symlink(in_memory, directory->nvram), 0);
	assert_int_equal(
		nand_create(directory->image, &small_geometry, (uint64_t)PAGES * PAGE, NULL), 0);
	nand = open_image_ok(directory);
	nvram = nand_nvram(nand, NULL);
	memset(nvram, 1, (size_t)PAGES * PAGE);
	assert_int_equal(nand_nvram_sync(nand, 0, (uint64_t)PAGES * PAGE), 0);
	faults = faults_so_far();
	for (size_t n = 0; n < PAGES; n++)
		nvram[n * PAGE] = 2;
	assert_true(faults_so_far() - faults < PAGES / 4);
	assert_int_equal(nand_close(nand), 0);
	unlink(in_memory);
}

/* ---- a power cut while threads store ---- */

static void cut_power(struct nand *nand)
{
	struct nand_power_status status;

	while (nand_power_point(nand) == 0)
		;
	nand_power_status(nand, &status);
	assert_true(status.off);
}

/* A sync of another thread began before the cut and goes on behind it. */
static void test_a_sync_takes_nothing_away_behind_a_power_cut(void **state)
{
	const struct nand_power_cut cut = { .nvram = NAND_CUT_NVRAM_LOST };
	const struct nand_nvram_range all = { 0, BUSY_BYTES };
	struct test_directory *directory = *state;
	struct nand *nand;
	uint8_t *nvram;

	assert_int_equal(nand_create(directory->image, &small_geometry, BUSY_BYTES, NULL), 0);
	nand = open_image_ok(directory);
	nvram = nand_nvram(nand, NULL);
	assert_int_equal(nand_arm_power_cut(nand, &cut, NULL), 0);
	cut_power(nand);
	memset(nvram, 0xA5, BUSY_BYTES);
	assert_int_equal(nand->nvram_group.store(nand, &all, 1), 0);
	for (uint32_t i = 0; i < BUSY_BYTES; i++)
		assert_int_equal(nvram[i], 0xA5);
	nand_abandon(nand);
}

/* Whom a sync answers after the cut must not believe that it is stable. */
static void *cut_in_a_sync(void *context)
{
	wait_until_asked(1);
	cut_power(context);
	let_go(false);
	return NULL;
}

static void test_a_sync_that_a_power_cut_overtakes_fails(void **state)
{
	const struct nand_power_cut cut = { .after = 1, .nvram = NAND_CUT_NVRAM_FLUSHED };
	struct nand *nand = gated_image(state);
	pthread_t thread;

	assert_int_equal(nand_arm_power_cut(nand, &cut, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, cut_in_a_sync, nand), 0);
	assert_int_equal(nand_nvram_sync(nand, 0, 8), -EIO);
	pthread_join(thread, NULL);
	nand_abandon(nand);
}

/* Counts in a word near the end, and then in the first. */
static void *count_in_order(void *context)
{
	struct busy *busy = context;
	volatile uint64_t *words = nand_nvram(busy->nand, NULL);
	uint64_t number = 0;

	for (; !atomic_load(&busy->ends); atomic_store(&busy->stores, ++number)) {
		if (words[BUSY_WORDS - 1] != number || words[0] != number)
			atomic_fetch_add(&busy->strange, 1);
		words[BUSY_WORDS - 1] = number + 1;
		words[0] = number + 1;
	}
	return NULL;
}

static void cut_while_counting(const struct test_directory *directory)
{
	const struct nand_power_cut cut = { .nvram = NAND_CUT_NVRAM_KEPT };
	struct busy busy = { .nand = open_image_ok(directory) };
	uint64_t *words = nand_nvram(busy.nand, NULL), before;
	pthread_t thread;

	words[BUSY_WORDS - 1] = words[0] = 0;
	assert_int_equal(nand_arm_power_cut(busy.nand, &cut, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, count_in_order, &busy), 0);
	while (atomic_load(&busy.stores) == 0)
		sched_yield();
	cut_power(busy.nand);
	before = atomic_load(&busy.stores);
	while (atomic_load(&busy.stores) == before)
		sched_yield();
	atomic_store(&busy.ends, true);
	pthread_join(thread, NULL);
	assert_int_equal(busy.strange, 0);
	nand_abandon(busy.nand);

	busy.nand = open_image_ok(directory);
	words = nand_nvram(busy.nand, NULL);
	assert_in_range(words[BUSY_WORDS - 1] - words[0], 0, 1);
	nand_abandon(busy.nand);
}

static void test_a_power_cut_meets_all_of_the_nvram_at_one_instant(void **state)
{
	struct test_directory *directory = *state;

	assert_int_equal(nand_create(directory->image, &small_geometry, BUSY_BYTES, NULL), 0);
	for (int n = 0; n < CUTS; n++)
		cut_while_counting(directory);
}

#define IN_DIRECTORY(test) \
	cmocka_unit_test_setup_teardown(test, directory_setup, directory_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_DIRECTORY(test_callers_at_the_same_time_share_a_sync),
		IN_DIRECTORY(test_requests_far_apart_stay_apart),
		IN_DIRECTORY(test_small_requests_do_not_wait_for_large_ones),
		IN_DIRECTORY(test_a_caller_never_joins_a_sync_that_has_begun),
		IN_DIRECTORY(test_a_failed_sync_fails_everyone_until_the_image_is_opened_again),
		IN_DIRECTORY(test_an_error_that_another_sync_was_told_of_fails_this_one),
		IN_DIRECTORY(test_many_callers_are_all_served),
		IN_DIRECTORY(test_requests_are_bounded_by_the_region),
		IN_DIRECTORY(test_what_was_stored_is_there_again),
		IN_DIRECTORY(test_a_sync_takes_nothing_away_behind_a_power_cut),
		IN_DIRECTORY(test_a_sync_that_a_power_cut_overtakes_fails),
		IN_DIRECTORY(test_a_power_cut_meets_all_of_the_nvram_at_one_instant),
		IN_DIRECTORY(test_a_sync_takes_nothing_out_of_an_nvram_in_memory),
		IN_DIRECTORY(test_no_store_is_lost_while_pages_are_made_stable),
		IN_DIRECTORY(test_a_sync_writes_the_pages_that_were_stored_to_and_not_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
