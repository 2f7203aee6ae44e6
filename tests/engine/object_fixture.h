/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * An engine on a record store in memory, with short forms of what the tests of the object layer do
 * again and again.
 */
#ifndef MUNINN_TESTS_ENGINE_OBJECT_FIXTURE_H
#define MUNINN_TESTS_ENGINE_OBJECT_FIXTURE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/objects/objects.h"
#include "tests/engine/by_address.h"
#include "tests/engine/memory_store.h"

#define PAGE 512
#define PID  ENGINE_FIRST_ID
#define OID  ENGINE_FIRST_ID

struct fixture {
	struct memory_store *memory;
	struct engine *engine;
	struct engine_txn *txn;
	uint64_t now;
};

static inline uint64_t clock_of(void *context)
{
	return ((struct fixture *)context)->now;
}

static inline void reopen(struct fixture *f)
{
	struct engine_options options = { .clock_ms = clock_of, .clock_context = f };

	assert_int_equal(engine_open_on(memory_store_open(f->memory), &options, &f->engine, NULL),
			 0);
}

static inline int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->memory = memory_store_create(PAGE);
	f->now = 1000;
	reopen(f);
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->txn) /* a failed test left it */
		engine_abort(f->txn);
	assert_int_equal(engine_close(f->engine), 0);
	memory_store_destroy(f->memory);
	free(f);
	return 0;
}

static inline void begin(struct fixture *f, enum engine_mode mode)
{
	assert_int_equal(engine_begin(f->engine, mode, &f->txn), 0);
}

/* Ends the open transaction, whatever comes of it. */
static inline int end(struct fixture *f)
{
	struct engine_txn *txn = f->txn;

	f->txn = NULL;
	return engine_commit(txn, false);
}

static inline void commit(struct fixture *f)
{
	assert_int_equal(end(f), 0);
}

static inline void abort_all(struct fixture *f)
{
	engine_abort(f->txn);
	f->txn = NULL;
}

static inline void crash(struct fixture *f)
{
	engine_abandon(f->engine);
	f->txn = NULL;
	reopen(f);
}

static inline struct engine_address object(uint64_t id)
{
	return (struct engine_address){ .partition = PID, .object = id };
}

static inline struct engine_address at_version(struct engine_address address, uint32_t version)
{
	address.version = version;
	return address;
}

static const struct engine_address partition = { .partition = PID };
static const struct engine_address root = { 0 };

/* A partition with one empty user object, in an open writing transaction. */
static inline void begin_with_object(struct fixture *f)
{
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, 0, NULL), 0);
	assert_int_equal(engine_create(f->txn, PID, ENGINE_USER_OBJECT, 0, 1, NULL), 0);
}

static inline void write_text(struct fixture *f, uint64_t offset, const char *text)
{
	assert_int_equal(engine_write(f->txn, object(OID), offset, text, strlen(text)), 0);
}

/* The object has exactly these bytes. */
static inline void assert_data(struct fixture *f, struct engine_address address, const void *wanted,
			       size_t length)
{
	uint8_t *data = malloc(length + 2 * PAGE);
	uint64_t got;

	memset(data, 0xee, length + 2 * PAGE);
	assert_int_equal(engine_read(f->txn, address, 0, data, length + 2 * PAGE, &got), 0);
	assert_int_equal(got, length);
	assert_memory_equal(data, wanted, length);
	free(data);
}

static inline struct engine_stat stat_of(struct fixture *f, struct engine_address address)
{
	struct engine_stat stat;

	assert_int_equal(engine_stat(f->txn, address, &stat), 0);
	return stat;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
