/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Threads that seal full buffers behind several writers, beside readers, flushes and merges, on
 * flash whose blocks fail now and then: readers see whole transactions, and a crash of the process
 * loses nothing that was committed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>

#include "engine/objects/objects.h"
#include "nand/faults.h"
#include "tests/engine/by_address.h"
#include "tests/engine/small_flash.h"

enum {
	PAGE = 512,
	WRITERS = 3,
	READERS = 2,
	OBJECTS = 8,
	WRITES = 1500,
	PAGES = 3,
	SEGMENT_PAGES = 8,
	SEALING_THREADS = 2
};

enum { READ_IN_PARTS = 1, READ_OLD, NOT_FLUSHED };

static const struct nand_geometry geometry = SMALL_FLASH(6000);
static const uint64_t pid = ENGINE_FIRST_ID;

struct scene {
	struct nand *nand;
	struct engine *engine;
	struct engine_options options;
	uint32_t writing; /* atomic: writers that are not done */
	int bad;          /* atomic: an error, or what readers saw: see above */
};

struct writer {
	struct scene *scene;
	uint32_t number;
	uint32_t committed[OBJECTS]; /* the last value of each of its objects */
};

static struct engine_address object(uint32_t writer, uint32_t number)
{
	return (struct engine_address){ .partition = pid,
					.object = ENGINE_FIRST_ID + writer * OBJECTS + number };
}

static int write_object(struct scene *scene, struct engine_address address, uint32_t value,
			bool aborts)
{
	struct engine_txn *txn;
	uint32_t data[PAGES * PAGE / 4];
	int result;

	for (size_t n = 0; n < sizeof(data) / 4; n++)
		data[n] = value;
	result = engine_begin(scene->engine, ENGINE_WRITE, &txn);
	if (result)
		return result;
	result = engine_write(txn, address, 0, data, sizeof(data));
	if (result || aborts) {
		engine_abort(txn);
		return result;
	}
	return engine_commit(txn, value % 64 == 0);
}

/* The value of all words of an object; UINT32_MAX: they differ, or can't be read. */
static uint32_t value_of(struct engine *engine, struct engine_address address)
{
	struct engine_txn *txn;
	uint32_t data[PAGES * PAGE / 4];
	uint64_t got = 0;
	int result = engine_begin(engine, ENGINE_READ, &txn);

	if (result)
		return UINT32_MAX;
	result = engine_read(txn, address, 0, data, sizeof(data), &got);
	engine_commit(txn, false);
	for (size_t n = 1; n < sizeof(data) / 4; n++)
		if (data[n] != data[0])
			return UINT32_MAX;
	return result || got != sizeof(data) ? UINT32_MAX : data[0];
}

static void *write_all_the_time(void *context)
{
	struct writer *writer = context;
	struct scene *scene = writer->scene;

	for (uint32_t n = 1; n <= WRITES; n++) {
		uint32_t number = n % OBJECTS;
		bool aborts = n % 10 == 0;
		uint32_t value = writer->committed[number] + 1;
		int result = write_object(scene, object(writer->number, number), value, aborts);

		if (result)
			__atomic_store_n(&scene->bad, result, __ATOMIC_RELAXED);
		else if (!aborts)
			__atomic_store_n(&writer->committed[number], value, __ATOMIC_RELEASE);
	}
	__atomic_sub_fetch(&scene->writing, 1, __ATOMIC_RELEASE);
	return NULL;
}

static struct writer writers[WRITERS];

/* What is read is never older than what was committed before. */
static void *read_all_the_time(void *context)
{
	struct scene *scene = context;

	for (uint32_t n = 0; __atomic_load_n(&scene->writing, __ATOMIC_ACQUIRE); n++) {
		uint32_t who = n % WRITERS, number = n / WRITERS % OBJECTS;
		uint32_t before =
			__atomic_load_n(&writers[who].committed[number], __ATOMIC_ACQUIRE);
		uint32_t value = value_of(scene->engine, object(who, number));

		if (value == UINT32_MAX)
			__atomic_store_n(&scene->bad, READ_IN_PARTS, __ATOMIC_RELAXED);
		else if (value < before)
			__atomic_store_n(&scene->bad, READ_OLD, __ATOMIC_RELAXED);
		if (n % 50 == 0 && engine_flush(scene->engine))
			__atomic_store_n(&scene->bad, NOT_FLUSHED, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void open_engine(struct scene *scene, uint32_t threads)
{
	struct error_text error = { "" };

	scene->options.sealing_threads = threads;
	scene->options.merging_thread = threads > 0;
	if (engine_open(scene->nand, &scene->options, &scene->engine, &error))
		fail_msg("%s", error.text);
}

static struct scene *make_scene(uint32_t rows, uint32_t segment_pages)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct error_text error = { "" };
	struct engine_txn *txn;
	uint64_t nvram;

	assert_non_null(scene);
	scene->options.muninn.rows = rows;
	scene->options.muninn.segment_pages = segment_pages;
	scene->options.muninn.record_bytes = 256;
	if (engine_nvram_bytes(&geometry, &scene->options, &nvram, &error) ||
	    nand_open_memory(&geometry, nvram, &scene->nand, &error) ||
	    engine_format(scene->nand, &scene->options, &error))
		fail_msg("%s", error.text);
	open_engine(scene, SEALING_THREADS);
	assert_int_equal(engine_begin(scene->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_partition_create(txn, pid, NULL), 0);
	assert_int_equal(engine_create(txn, pid, ENGINE_USER_OBJECT, 0, WRITERS * OBJECTS, NULL),
			 0);
	assert_int_equal(engine_commit(txn, false), 0);
	for (uint32_t who = 0; who < WRITERS; who++)
		for (uint32_t number = 0; number < OBJECTS; number++) {
			writers[who].committed[number] = 1;
			assert_int_equal(write_object(scene, object(who, number), 1, false), 0);
		}
	return scene;
}

static void run_threads(struct scene *scene)
{
	pthread_t threads[WRITERS + READERS];

	scene->writing = WRITERS;
	for (uint32_t n = 0; n < WRITERS + READERS; n++) {
		if (n < WRITERS) {
			writers[n].scene = scene;
			writers[n].number = n;
		}
		assert_int_equal(
			pthread_create(&threads[n], NULL,
				       n < WRITERS ? write_all_the_time : read_all_the_time,
				       n < WRITERS ? (void *)&writers[n] : scene),
			0);
	}
	for (uint32_t n = 0; n < WRITERS + READERS; n++)
		pthread_join(threads[n], NULL);
	assert_int_equal(scene->bad, 0);
}

static void check_all(struct scene *scene)
{
	for (uint32_t who = 0; who < WRITERS; who++)
		for (uint32_t number = 0; number < OBJECTS; number++)
			assert_int_equal(value_of(scene->engine, object(who, number)),
					 writers[who].committed[number]);
}

static void go_through(uint32_t rows, const struct nand_faults *faults)
{
	struct scene *scene = make_scene(rows, SEGMENT_PAGES);
	struct engine_statistics statistics;
	struct error_text error;

	assert_int_equal(nand_set_faults(scene->nand, faults, &error), 0);
	for (int round = 0; round < 3; round++) {
		run_threads(scene);
		check_all(scene);
		/* As kill -9, wherever the threads are. */
		if (round < 2)
			engine_abandon(scene->engine);
		else
			assert_int_equal(engine_close(scene->engine), 0);
		open_engine(scene, round ? SEALING_THREADS : 0);
		check_all(scene);
	}
	engine_read_statistics(scene->engine, &statistics);
	assert_true(statistics.segments_sealed > 300 && statistics.tables > 0);
	assert_int_equal(engine_close(scene->engine), 0);
	assert_int_equal(nand_close(scene->nand), 0);
	free(scene);
}

static void test_buffers_are_sealed_behind_writers_and_beside_readers(void **state)
{
	(void)state;
	go_through(4, NULL);
}

static void test_so_they_are_where_one_row_takes_all(void **state)
{
	(void)state;
	go_through(1, NULL);
}

static void test_a_segment_that_fails_behind_the_writers_is_replaced(void **state)
{
	struct nand_faults faults = nand_faults_default();

	(void)state;
	faults.on = 1U << NAND_FAULT_PROGRAM | 1U << NAND_FAULT_ERASE;
	faults.program_failure = 0.001;
	faults.erase_failure = 0.01;
	go_through(4, &faults);
}

/* ---- transactions that leave sealing to the threads ---- */

/* Whether threads begin to program full buffers. */
static bool threads_rest;

struct muninn_store;

void __real_seal_run(struct muninn_store *store, uint32_t number);
void __wrap_seal_run(struct muninn_store *store, uint32_t number);
void __wrap_seal_run(struct muninn_store *store, uint32_t number)
{
	while (__atomic_load_n(&threads_rest, __ATOMIC_ACQUIRE))
		sched_yield();
	__real_seal_run(store, number);
}

static void let_rest(bool rest)
{
	__atomic_store_n(&threads_rest, rest, __ATOMIC_RELEASE);
}

enum { ROWS = 16, SMALL_OBJECTS = 400, LARGE_PAGES = 200, ROUNDS = 40 };

static const struct engine_address large = { .partition = ENGINE_FIRST_ID,
					     .object = ENGINE_FIRST_ID + 1000 };

static void put_small_objects(struct scene *scene, uint64_t first)
{
	struct engine_address address = { .partition = pid };
	struct engine_txn *txn;

	assert_int_equal(engine_begin(scene->engine, ENGINE_WRITE, &txn), 0);
	for (uint64_t n = 0; n < SMALL_OBJECTS; n++) {
		address.object = first + n;
		assert_int_equal(
			engine_create(txn, pid, ENGINE_USER_OBJECT, address.object, 1, NULL), 0);
		assert_int_equal(engine_write(txn, address, 0, "small", 5), 0);
	}
	assert_int_equal(engine_commit(txn, false), 0);
}

static void create_large(struct scene *scene)
{
	struct engine_txn *txn;

	assert_int_equal(engine_begin(scene->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_create(txn, pid, ENGINE_USER_OBJECT, large.object, 1, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

static int write_large(struct scene *scene, uint8_t value)
{
	static uint8_t data[LARGE_PAGES * PAGE];
	struct engine_txn *txn;
	int result = engine_begin(scene->engine, ENGINE_WRITE, &txn);

	memset(data, value, sizeof(data));
	/* However busy the machine is, buffers stay full meanwhile. */
	let_rest(true);
	if (!result)
		result = engine_write(txn, large, 0, data, sizeof(data));
	let_rest(false);
	if (!result)
		return engine_commit(txn, false);
	engine_abort(txn);
	return result;
}

/* The value of all bytes of it; -1: they differ. */
static int value_of_large(struct scene *scene)
{
	static uint8_t data[LARGE_PAGES * PAGE];
	struct engine_txn *txn;
	uint64_t got = 0;

	assert_int_equal(engine_begin(scene->engine, ENGINE_READ, &txn), 0);
	assert_int_equal(engine_read(txn, large, 0, data, sizeof(data), &got), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	for (size_t n = 1; n < got; n++)
		if (data[n] != data[0])
			return -1;
	return got == sizeof(data) ? data[0] : got == 0 ? 0 : -1;
}

static uint64_t segments_sealed(struct scene *scene)
{
	struct engine_statistics statistics;

	engine_read_statistics(scene->engine, &statistics);
	return statistics.segments_sealed;
}

/* Until it is done. Returns how often it had to be done again. */
static uint32_t write_large_again_and_again(struct scene *scene, uint8_t value)
{
	uint64_t sealed = segments_sealed(scene);
	int before = value_of_large(scene), result;
	uint32_t missed = 0;

	for (;;) {
		assert_true(engine_seals_put_off(scene->engine));
		result = write_large(scene, value);
		if (!engine_seals_awaited(scene->engine, 0))
			break;
		assert_in_range(++missed, 1, ROWS);
		assert_int_equal(result, -EINPROGRESS);
		assert_int_equal(value_of_large(scene), before);
		/*
		 * It gets further each time. But a thread tells that it has sealed a segment a
		 * little later than that counts: one of each thread may have counted before.
		 */
		assert_true(segments_sealed(scene) + SEALING_THREADS >= sealed + missed);
	}
	assert_int_equal(result, 0);
	assert_int_equal(value_of_large(scene), value);
	return missed;
}

/*
 * Rows are as full as they happen to be, and threads as quick: it goes on until one try has found a
 * buffer full.
 */
static void test_a_transaction_of_many_records_is_done_again_until_threads_have_made_space(
	void **state)
{
	struct scene *scene = make_scene(ROWS, 64);
	uint32_t missed = 0;
	int round;

	(void)state;
	create_large(scene);
	for (round = 1; round <= ROUNDS || (!missed && round <= UINT8_MAX); round++) {
		put_small_objects(scene, large.object + (uint64_t)round * SMALL_OBJECTS);
		missed += write_large_again_and_again(scene, (uint8_t)round);
	}
	assert_int_not_equal(missed, 0);
	assert_int_equal(engine_close(scene->engine), 0);
	open_engine(scene, 0);
	assert_int_equal(value_of_large(scene), round - 1);
	/* Without threads a transaction has to do it itself. */
	assert_false(engine_seals_put_off(scene->engine));
	assert_int_equal(write_large(scene, 1), 0);
	assert_int_equal(engine_close(scene->engine), 0);
	assert_int_equal(nand_close(scene->nand), 0);
	free(scene);
}

/* Most of what it finds full is its own, so no thread can make space for it. */
static void test_a_transaction_that_fills_the_buffers_alone_leaves_them_as_they_were(void **state)
{
	struct scene *scene = make_scene(1, SEGMENT_PAGES);
	uint64_t sealed = segments_sealed(scene);

	(void)state;
	create_large(scene);
	for (int n = 0; n < 5; n++) {
		assert_true(engine_seals_put_off(scene->engine));
		assert_int_equal(write_large(scene, 1), -EINPROGRESS);
		assert_true(engine_seals_awaited(scene->engine, 0));
	}
	assert_in_range(segments_sealed(scene), sealed, sealed + 3);
	assert_int_equal(write_large(scene, 1), 0);
	assert_int_equal(value_of_large(scene), 1);
	assert_int_equal(engine_close(scene->engine), 0);
	assert_int_equal(nand_close(scene->nand), 0);
	free(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buffers_are_sealed_behind_writers_and_beside_readers),
		cmocka_unit_test(test_so_they_are_where_one_row_takes_all),
		cmocka_unit_test(test_a_segment_that_fails_behind_the_writers_is_replaced),
		cmocka_unit_test(
			test_a_transaction_of_many_records_is_done_again_until_threads_have_made_space),
		cmocka_unit_test(
			test_a_transaction_that_fills_the_buffers_alone_leaves_them_as_they_were),
	};

	return cmocka_run_group_tests_name("sealing threads", tests, NULL, NULL);
}
