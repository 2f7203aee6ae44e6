/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Several readers and a writer at once: readers see whole transactions only, whatever the caches do
 * meanwhile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "engine/objects/objects.h"
#include "tests/engine/by_address.h"
#include "tests/engine/memory_store.h"

enum { PAGE = 512, OBJECTS = 200, READERS = 3, WRITES = 1500, LENGTH = 3 * PAGE };

struct shared {
	struct engine *engine;
	uint32_t done; /* atomic */
	uint32_t bad;  /* atomic: differences that readers saw */
};

static const uint64_t pid = ENGINE_FIRST_ID;

static struct engine_address object(uint64_t number)
{
	return (struct engine_address){ .partition = pid, .object = ENGINE_FIRST_ID + number };
}

/*
 * Every transaction gives all bytes of two neighbouring objects, and an attribute of theirs, one
 * value.
 */
static void write_pair(struct engine *engine, uint64_t number, uint8_t value)
{
	struct engine_txn *txn;
	uint8_t data[LENGTH];

	memset(data, value, sizeof(data));
	assert_int_equal(engine_begin(engine, ENGINE_WRITE, &txn), 0);
	for (uint64_t which = number; which < number + 2; which++) {
		assert_int_equal(engine_write(txn, object(which), 0, data, LENGTH), 0);
		assert_int_equal(engine_attribute_set(txn, object(which), 1, 1, &value, 1), 0);
	}
	if (value % 10 == 0)
		engine_abort(txn);
	else
		assert_int_equal(engine_commit(txn, false), 0);
}

/* Whether an object has one value throughout; *value = which. */
static bool is_whole(struct engine_txn *txn, uint64_t number, uint8_t *value)
{
	uint8_t data[LENGTH], attribute = 0;
	uint32_t length;
	uint64_t got;

	if (engine_read(txn, object(number), 0, data, LENGTH, &got) || got != LENGTH ||
	    engine_attribute_get(txn, object(number), 1, 1, &attribute, 1, &length))
		return false;
	for (int index = 0; index < LENGTH; index++)
		if (data[index] != attribute)
			return false;
	*value = attribute;
	return true;
}

static bool list_is_whole(struct engine_txn *txn)
{
	struct engine_address partition = { .partition = pid };
	uint64_t ids[OBJECTS + 1], next, counted;
	size_t count;

	return engine_list(txn, partition, ENGINE_LIST_USER_OBJECTS, 0, ids, OBJECTS + 1, &count,
			   &next) == 0 &&
	       count == OBJECTS && ids[OBJECTS - 1] == ENGINE_FIRST_ID + OBJECTS - 1 &&
	       engine_list_count(txn, partition, ENGINE_LIST_USER_OBJECTS, ENGINE_FIRST_ID + 10,
				 &counted) == 0 &&
	       counted == OBJECTS - 10;
}

static void *read_all_the_time(void *context)
{
	struct shared *shared = context;
	uint64_t number = 0;

	do {
		struct engine_txn *txn;
		uint8_t first = 0, second = 0;
		bool good;

		number = (number + 26) % OBJECTS;
		good = engine_begin(shared->engine, ENGINE_READ, &txn) == 0 &&
		       is_whole(txn, number, &first) && is_whole(txn, number + 1, &second) &&
		       first == second && list_is_whole(txn) &&
		       engine_accessed(txn, object(number), true, true) == 0;
		engine_commit(txn, false);
		if (!good)
			__atomic_add_fetch(&shared->bad, 1, __ATOMIC_RELAXED);
	} while (!__atomic_load_n(&shared->done, __ATOMIC_ACQUIRE));
	return NULL;
}

static void prepare(struct engine *engine)
{
	struct engine_txn *txn;

	assert_int_equal(engine_begin(engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_partition_create(txn, pid, NULL), 0);
	assert_int_equal(engine_create(txn, pid, ENGINE_USER_OBJECT, 0, OBJECTS, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	for (uint64_t number = 0; number < OBJECTS; number += 2)
		write_pair(engine, number, 1);
}

static void test_readers_see_whole_transactions(void **state)
{
	/* Fewer onodes in memory than objects, and fewer notes of accesses than readers make. */
	const struct engine_options options = { .onode_cache_entries = 1,
						.directory_cache_nodes = 1 };
	struct memory_store *memory = memory_store_create(PAGE);
	struct shared shared = { 0 };
	pthread_t readers[READERS];
	struct engine_statistics statistics;

	(void)state;
	assert_int_equal(engine_open_on(memory_store_open(memory), &options, &shared.engine, NULL),
			 0);
	prepare(shared.engine);
	for (int reader = 0; reader < READERS; reader++)
		assert_int_equal(pthread_create(&readers[reader], NULL, read_all_the_time, &shared),
				 0);
	for (uint32_t count = 0; count < WRITES; count++) {
		write_pair(shared.engine, (uint64_t)count * 2 % OBJECTS, (uint8_t)(count % 251));
		if (count % 100 == 0)
			assert_int_equal(engine_flush(shared.engine), 0);
	}
	__atomic_store_n(&shared.done, 1, __ATOMIC_RELEASE);
	for (int reader = 0; reader < READERS; reader++)
		pthread_join(readers[reader], NULL);
	assert_int_equal(shared.bad, 0);
	engine_read_statistics(shared.engine, &statistics);
	assert_true(statistics.records_put > WRITES);
	assert_int_equal(engine_close(shared.engine), 0);
	memory_store_destroy(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_readers_see_whole_transactions),
	};

	return cmocka_run_group_tests_name("threads on objects", tests, NULL, NULL);
}
