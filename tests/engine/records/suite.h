/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What the conformance suite of record stores stands on: an open store, and short forms of its
 * calls. */
#ifndef MUNINN_TESTS_ENGINE_RECORDS_SUITE_H
#define MUNINN_TESTS_ENGINE_RECORDS_SUITE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "tests/engine/records/stores.h"

struct store_fixture {
	const struct tested_store *tested;
	void *device;
	struct record_store *store;
	const struct record_store_operations *operations;
	uint64_t sequence; /* of the running transaction, or the last one */
	uint64_t epoch;    /* of puts; 0: each transaction begins one */
};

/* An empty store on a device that is big enough for all tests, or soon full. */
int suite_setup(void **state);
int suite_setup_small(void **state);
int suite_teardown(void **state);

#define TEST(name)       cmocka_unit_test_setup_teardown(name, suite_setup, suite_teardown)
#define TEST_SMALL(name) cmocka_unit_test_setup_teardown(name, suite_setup_small, suite_teardown)

/* Runs the tests on each store of stores.c. Returns how many failed. */
int suite_run(struct CMUnitTest *tests, size_t count);

/* Opens what is on the device, closed or not. */
void suite_open(struct store_fixture *f);

/* ---- transactions and values ---- */

static inline void crash(struct store_fixture *f)
{
	f->operations->close(f->store, false);
	suite_open(f);
}

static inline struct record_key key(uint32_t number)
{
	return (struct record_key){ .partition = 1, .identifier = 0x10000 + number };
}

static inline void begin(struct store_fixture *f)
{
	f->sequence = f->operations->begin(f->store, 0);
}

static inline void commit(struct store_fixture *f)
{
	f->operations->commit(f->store);
}

static inline int try_put(struct store_fixture *f, struct record_key at, uint64_t value,
			  unsigned flags, uint32_t length, enum record_room room)
{
	uint8_t bytes[STORES_VALUE_BYTES] = { 0 };

	put_le64(bytes, value);
	return f->operations->put(f->store, &at, f->epoch ? f->epoch : f->sequence, flags, bytes,
				  length, room);
}

static inline void put(struct store_fixture *f, struct record_key at, uint64_t value)
{
	assert_int_equal(try_put(f, at, value, 0, 40, RECORD_ROOM_WRITE), 0);
}

static inline void put_alone(struct store_fixture *f, struct record_key at, uint64_t value)
{
	begin(f);
	put(f, at, value);
	commit(f);
}

/* The value at a bound; UINT64_MAX: there is none. */
static inline uint64_t get(struct store_fixture *f, struct record_key at, uint64_t bound)
{
	uint8_t bytes[STORES_VALUE_BYTES] = { 0 };
	struct record_info info;
	int result = f->operations->get(f->store, &at, bound, bytes, sizeof(bytes), &info);

	if (result == -ENOENT)
		return UINT64_MAX;
	assert_int_equal(result, 0);
	assert_true(info.sequence <= bound);
	return get_le64(bytes);
}

static inline uint64_t get_newest(struct store_fixture *f, struct record_key at)
{
	return get(f, at, RECORD_NEWEST);
}

/* ---- rollbacks ---- */

enum { ROLLBACKS_MAX = 40 };

/* From `at` on a reader sees what one at `to` saw, and what was put since `at`. */
struct rollbacks {
	struct rollback {
		uint64_t at, to;
	} list[ROLLBACKS_MAX];
	uint32_t count;
};

/* The record_hidden of them. */
bool is_hidden(void *rollbacks, const struct record_key *at, uint64_t sequence, uint64_t bound);

/* Goes back to a moment. What is put from now on has higher numbers than the rollback. */
void go_back(struct store_fixture *f, struct rollbacks *rollbacks, uint64_t to);

/* ---- merging ---- */

/* Merges until it is not worth it; what is dropped counts. */
uint64_t suite_merge(struct store_fixture *f, const struct record_keep *keep);

#endif
