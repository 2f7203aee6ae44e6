/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Which commits wait for the host's storage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "engine/objects/objects.h"
#include "engine/options.h"
#include "nand/private.h"
#include "tests/engine/by_address.h"
#include "tests/engine/small_flash.h"

enum { PARTITION = 0x10000, FIRST = 0x10000, THREADS = 4, COMMITS = 100 };

static const struct nand_geometry shape = SMALL_FLASH(2000);

struct device {
	struct nand *nand;
	struct engine *engine;
	struct engine_options options;
	char directory[32], path[64];
};

static void begin_commit(struct engine *engine, uint64_t object, bool stable)
{
	struct engine_address address = { .partition = PARTITION, .object = object };
	struct engine_txn *txn = NULL;

	assert_int_equal(engine_begin(engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_write(txn, address, 0, "data", 4), 0);
	assert_int_equal(engine_commit(txn, stable), 0);
}

static int open_device(void **state, bool stable_commits)
{
	struct device *device = calloc(1, sizeof(*device));
	struct error_text error = { "" };
	struct engine_txn *txn = NULL;
	uint64_t nvram;

	assert_non_null(device);
	device->options = (struct engine_options){ .muninn.rows = 2, .muninn.segment_pages = 16 };
	device->options.muninn.record_bytes = 256;
	device->options.stable_commits = stable_commits;
	assert_int_equal(engine_nvram_bytes(&shape, &device->options, &nvram, &error), 0);
	strcpy(device->directory, "/tmp/muninn-durability-XXXXXX");
	assert_non_null(mkdtemp(device->directory));
	snprintf(device->path, sizeof(device->path), "%s/image", device->directory);
	assert_int_equal(nand_create(device->path, &shape, nvram, &error), 0);
	assert_int_equal(nand_open(device->path, &device->nand, &error), 0);
	assert_int_equal(engine_format(device->nand, &device->options, &error), 0);
	assert_int_equal(engine_open(device->nand, &device->options, &device->engine, &error), 0);
	assert_int_equal(engine_begin(device->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_partition_create(txn, PARTITION, NULL), 0);
	assert_int_equal(engine_create(txn, PARTITION, ENGINE_USER_OBJECT, 0, THREADS, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	*state = device;
	return 0;
}

static uint64_t last_opening(const struct nand *nand)
{
	return nand->opening.number;
}

/* In both files: so one that is put back without the other is refused. What failed is none. */
static void test_each_opening_of_an_engine_is_noted_and_what_fails_is_not(void **state)
{
	struct device *device = *state;
	struct error_text error = { "" };
	uint64_t first = last_opening(device->nand), bytes;
	struct engine_options unknown = device->options;

	assert_int_not_equal(first, 0);
	assert_int_equal(engine_close(device->engine), 0);
	unknown.store = "no such store";
	assert_int_equal(engine_open(device->nand, &unknown, &device->engine, &error), -EINVAL);
	assert_int_equal(last_opening(device->nand), first);
	assert_int_equal(engine_open(device->nand, &device->options, &device->engine, &error), 0);
	assert_int_equal(last_opening(device->nand), first + 1);
	assert_int_equal(engine_close(device->engine), 0);
	memset(nand_nvram(device->nand, &bytes), 0, 4096);
	assert_int_equal(engine_open(device->nand, &device->options, &device->engine, &error),
			 -EINVAL);
	assert_int_equal(last_opening(device->nand), first + 1);
	device->options.records.recover_without_nvram = true;
	assert_int_equal(engine_open(device->nand, &device->options, &device->engine, &error), 0);
	assert_int_equal(last_opening(device->nand), first + 2);
}

static void test_the_time_that_opening_took_is_that_of_the_engine(void **state)
{
	struct device *device = *state;
	struct engine_statistics statistics;

	assert_true(device->engine->open_microseconds > 0);
	device->engine->open_microseconds = 123456789;
	engine_read_statistics(device->engine, &statistics);
	assert_int_equal(statistics.open_microseconds, 123456789);
}

static int setup(void **state)
{
	return open_device(state, false);
}

static int setup_stable(void **state)
{
	return open_device(state, true);
}

static int teardown(void **state)
{
	struct device *device = *state;

	assert_int_equal(engine_close(device->engine), 0);
	assert_int_equal(nand_close(device->nand), 0);
	unlink(device->path);
	strcat(device->path, ".nvram");
	unlink(device->path);
	rmdir(device->directory);
	free(device);
	return 0;
}

static uint64_t nvram_syncs(struct device *device)
{
	struct nand_counters counters;

	nand_read_counters(device->nand, &counters);
	return counters.nvram_syncs;
}

static void test_a_commit_waits_for_the_host_only_when_asked_to(void **state)
{
	struct device *device = *state;
	uint64_t before = nvram_syncs(device);

	begin_commit(device->engine, FIRST, false);
	assert_int_equal(nvram_syncs(device), before);
	begin_commit(device->engine, FIRST, true);
	assert_true(nvram_syncs(device) > before);
}

static void test_with_stable_commits_every_commit_waits(void **state)
{
	struct device *device = *state;

	for (int i = 0; i < 5; i++) {
		uint64_t before = nvram_syncs(device);

		begin_commit(device->engine, FIRST, false);
		assert_true(nvram_syncs(device) > before);
	}
}

static void test_the_memo_waits_for_the_host_as_commits_do(void **state)
{
	struct device *device = *state;
	bool always = device->options.stable_commits;
	uint64_t before = nvram_syncs(device);

	assert_int_equal(engine_set_memo(device->engine, 1, false), 0);
	assert_int_equal(nvram_syncs(device) - before, always);
	before = nvram_syncs(device);
	assert_int_equal(engine_set_memo(device->engine, 2, true), 0);
	assert_int_equal(nvram_syncs(device) - before, 1);
}

static void test_a_reading_transaction_never_waits(void **state)
{
	struct device *device = *state;
	uint64_t before = nvram_syncs(device);
	struct engine_txn *txn = NULL;

	assert_int_equal(engine_begin(device->engine, ENGINE_READ, &txn), 0);
	assert_int_equal(engine_commit(txn, true), 0);
	assert_int_equal(nvram_syncs(device), before);
}

struct worker {
	pthread_t thread;
	struct engine *engine;
	uint64_t object;
};

static void *work(void *argument)
{
	struct worker *worker = argument;

	for (int i = 0; i < COMMITS; i++)
		begin_commit(worker->engine, worker->object, true);
	return NULL;
}

/*
 * How many waits are shared depends on the machine; that every thread's last commit is there does
 * not.
 */
static void test_threads_commit_stably_side_by_side(void **state)
{
	struct device *device = *state;
	struct worker workers[THREADS];
	uint64_t before = nvram_syncs(device);

	for (int i = 0; i < THREADS; i++) {
		workers[i].engine = device->engine;
		workers[i].object = FIRST + (uint64_t)i;
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
	print_message("%llu syncs for %d stable commits\n",
		      (unsigned long long)(nvram_syncs(device) - before), THREADS * COMMITS);
	assert_true(nvram_syncs(device) > before);
	for (int i = 0; i < THREADS; i++) {
		struct engine_address address = { .partition = PARTITION };
		struct engine_txn *txn = NULL;
		uint8_t data[8];
		uint64_t got;

		address.object = FIRST + (uint64_t)i;
		assert_int_equal(engine_begin(device->engine, ENGINE_READ, &txn), 0);
		assert_int_equal(engine_read(txn, address, 0, data, sizeof(data), &got), 0);
		assert_int_equal(got, 4);
		assert_memory_equal(data, "data", 4);
		assert_int_equal(engine_commit(txn, false), 0);
	}
}

/* ---- flushes share ---- */

enum { FLUSHES = 8 };

struct flusher {
	struct engine *engine;
	unsigned arrived; /* atomic */
};

static void *flush_once(void *argument)
{
	struct flusher *flusher = argument;

	__atomic_add_fetch(&flusher->arrived, 1, __ATOMIC_SEQ_CST);
	return engine_flush(flusher->engine) ? argument : NULL;
}

static void test_flushes_that_come_together_are_one_or_two(void **state)
{
	struct device *device = *state;
	struct flusher flusher = { .engine = device->engine };
	uint64_t before = nvram_syncs(device), one;
	pthread_t threads[FLUSHES];
	struct engine_txn *txn = NULL;
	void *failed;

	/* Each that comes alone is one, also when nothing was committed between. */
	begin_commit(device->engine, FIRST, false);
	assert_int_equal(engine_flush(device->engine), 0);
	one = nvram_syncs(device) - before;
	assert_true(one > 0);
	before = nvram_syncs(device);
	assert_int_equal(engine_flush(device->engine), 0);
	assert_true(nvram_syncs(device) > before);

	/* The first one waits for the writer, the others for it. */
	begin_commit(device->engine, FIRST, false);
	assert_int_equal(engine_begin(device->engine, ENGINE_WRITE, &txn), 0);
	before = nvram_syncs(device);
	for (int i = 0; i < FLUSHES; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, flush_once, &flusher), 0);
	while (__atomic_load_n(&flusher.arrived, __ATOMIC_SEQ_CST) < FLUSHES)
		usleep(1000);
	usleep(300000);
	assert_int_equal(nvram_syncs(device), before);
	engine_abort(txn);
	for (int i = 0; i < FLUSHES; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	assert_in_range(nvram_syncs(device) - before, 1, 2 * one);
}

static void test_a_flush_stores_a_memo_although_nothing_was_committed(void **state)
{
	struct device *device = *state;
	uint64_t before;

	assert_int_equal(engine_flush(device->engine), 0);
	assert_int_equal(engine_set_memo(device->engine, 5, false), 0);
	before = nvram_syncs(device);
	assert_int_equal(engine_flush(device->engine), 0);
	assert_true(nvram_syncs(device) > before);
}

/* ---- while the host stores the NVRAM ---- */

/* A host that takes as long as the test wants. */
static struct {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool holds;
	unsigned arrived; /* syncs */
} host = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0 };

static int store_when_told(struct nand *nand, const struct nand_nvram_range *ranges, uint32_t count)
{
	(void)nand;
	(void)ranges;
	(void)count;
	pthread_mutex_lock(&host.mutex);
	host.arrived++;
	pthread_cond_broadcast(&host.changed);
	while (host.holds)
		pthread_cond_wait(&host.changed, &host.mutex);
	pthread_mutex_unlock(&host.mutex);
	return 0;
}

/* Starts a flush, which waits for the host from now on. */
static void begin_held_flush(struct device *device, struct flusher *flusher, pthread_t *thread)
{
	*flusher = (struct flusher){ .engine = device->engine };
	device->nand->nvram_group.store = store_when_told;
	host.holds = true;
	host.arrived = 0;
	assert_int_equal(pthread_create(thread, NULL, flush_once, flusher), 0);
	pthread_mutex_lock(&host.mutex);
	while (!host.arrived)
		pthread_cond_wait(&host.changed, &host.mutex);
	pthread_mutex_unlock(&host.mutex);
	/* What waits for the host would wait for ever. */
	alarm(60);
}

static void end_held_flush(pthread_t thread)
{
	void *failed;

	pthread_mutex_lock(&host.mutex);
	host.holds = false;
	pthread_cond_broadcast(&host.changed);
	pthread_mutex_unlock(&host.mutex);
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	alarm(0);
}

static void assert_object(struct device *device, uint64_t object, const char *data);

static void test_readers_and_writers_go_on_while_a_flush_waits_for_the_host(void **state)
{
	struct device *device = *state;
	struct flusher flusher;
	pthread_t thread;

	begin_held_flush(device, &flusher, &thread);
	for (int n = 0; n < 80; n++)
		begin_commit(device->engine, FIRST + (uint64_t)(n % THREADS), false);
	assert_object(device, FIRST, "data");
	assert_int_equal(host.arrived, 1);
	end_held_flush(thread);
}

static void *commit_once(void *argument)
{
	struct worker *worker = argument;

	begin_commit(worker->engine, worker->object, true);
	return NULL;
}

static uint64_t committed(struct device *device)
{
	struct engine_statistics statistics;

	engine_read_statistics(device->engine, &statistics);
	return statistics.committed_sequence;
}

static void test_commits_that_come_during_a_flush_share_the_next_one(void **state)
{
	struct device *device = *state;
	struct worker workers[THREADS];
	struct flusher flusher;
	pthread_t thread;
	uint64_t before = nvram_syncs(device), one, number;

	assert_int_equal(engine_flush(device->engine), 0);
	one = nvram_syncs(device) - before;
	before = nvram_syncs(device);
	number = committed(device);
	begin_held_flush(device, &flusher, &thread);
	for (int i = 0; i < THREADS; i++) {
		workers[i] =
			(struct worker){ .engine = device->engine, .object = FIRST + (uint64_t)i };
		assert_int_equal(pthread_create(&workers[i].thread, NULL, commit_once, &workers[i]),
				 0);
	}
	while (committed(device) < number + THREADS)
		usleep(1000);
	end_held_flush(thread);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
	assert_int_equal(nvram_syncs(device) - before, 2 * one);
}

/* ---- flushes beside a transaction ---- */

struct beside {
	struct device *device;
	pthread_t thread;
	int result;
	bool done; /* atomic */
};

static void *flush_beside(void *context)
{
	struct beside *beside = context;

	beside->result = engine_flush_beside(beside->device->engine);
	__atomic_store_n(&beside->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static bool is_done(const struct beside *beside)
{
	return __atomic_load_n(&beside->done, __ATOMIC_ACQUIRE);
}

/* The host fails: the engine comes back as of its last flush. */
static void fail_host(struct device *device)
{
	static const uint8_t next_boot[16] = { 7 };
	struct error_text error = { "" };

	engine_abandon(device->engine);
	device->options.records.boot_id = next_boot;
	assert_int_equal(engine_open(device->nand, &device->options, &device->engine, &error), 0);
}

static void assert_object(struct device *device, uint64_t object, const char *data)
{
	struct engine_address address = { .partition = PARTITION, .object = object };
	struct engine_txn *txn = NULL;
	char found[8] = "";
	uint64_t length = 0;

	assert_int_equal(engine_begin(device->engine, ENGINE_READ, &txn), 0);
	assert_int_equal(engine_read(txn, address, 0, found, 4, &length), 0);
	assert_int_equal(length, strlen(data));
	assert_memory_equal(found, data, length);
	engine_abort(txn);
}

static void test_a_flush_does_not_wait_for_the_end_of_a_long_command(void **state)
{
	struct device *device = *state;
	struct engine_address other = { .partition = PARTITION, .object = FIRST + 1 };
	struct beside beside = { .device = device };
	struct engine_txn *txn = NULL;

	begin_commit(device->engine, FIRST, false);
	assert_int_equal(engine_begin(device->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(pthread_create(&beside.thread, NULL, flush_beside, &beside), 0);
	for (uint64_t n = 0; !is_done(&beside); n++)
		assert_int_equal(engine_write(txn, other, n % 16 * 512, "page", 4), 0);
	assert_int_equal(beside.result, 0);
	pthread_join(beside.thread, NULL);
	/* The transaction has not ended, and is not part of what was flushed. */
	fail_host(device);
	assert_object(device, FIRST, "data");
	assert_object(device, FIRST + 1, "");
}

static void test_a_flush_goes_on_beside_readers_and_alone(void **state)
{
	struct device *device = *state;
	struct engine_txn *txn = NULL;

	begin_commit(device->engine, FIRST, false);
	assert_int_equal(engine_begin(device->engine, ENGINE_READ, &txn), 0);
	assert_int_equal(engine_flush_beside(device->engine), 0);
	engine_abort(txn);
	begin_commit(device->engine, FIRST + 1, false);
	assert_int_equal(engine_flush_beside(device->engine), 0);
	fail_host(device);
	assert_object(device, FIRST, "data");
	assert_object(device, FIRST + 1, "data");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_commit_waits_for_the_host_only_when_asked_to,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_with_stable_commits_every_commit_waits,
						setup_stable, teardown),
		cmocka_unit_test_setup_teardown(test_the_memo_waits_for_the_host_as_commits_do,
						setup, teardown),
		{ "test_the_memo_waits_for_the_host_as_commits_do (stable commits)",
		  test_the_memo_waits_for_the_host_as_commits_do, setup_stable, teardown, NULL },
		cmocka_unit_test_setup_teardown(
			test_each_opening_of_an_engine_is_noted_and_what_fails_is_not, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			test_the_time_that_opening_took_is_that_of_the_engine, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_reading_transaction_never_waits,
						setup_stable, teardown),
		cmocka_unit_test_setup_teardown(test_flushes_that_come_together_are_one_or_two,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_flush_stores_a_memo_although_nothing_was_committed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_threads_commit_stably_side_by_side, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			test_readers_and_writers_go_on_while_a_flush_waits_for_the_host, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			test_commits_that_come_during_a_flush_share_the_next_one, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_flush_does_not_wait_for_the_end_of_a_long_command, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_flush_goes_on_beside_readers_and_alone,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
