/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Short forms of what the tests of history do again and again, on top of object_fixture.h. */
#ifndef MUNINN_TESTS_ENGINE_HISTORY_FIXTURE_H
#define MUNINN_TESTS_ENGINE_HISTORY_FIXTURE_H

#include "tests/engine/object_fixture.h"

static inline struct engine_moment at_number(uint32_t version)
{
	return (struct engine_moment){ .kind = ENGINE_AT_VERSION, .value = version };
}

static inline struct engine_moment at_time(uint64_t ms)
{
	return (struct engine_moment){ .kind = ENGINE_AT_TIME, .value = ms };
}

static inline struct engine_moment at_sequence(uint64_t sequence)
{
	return (struct engine_moment){ .kind = ENGINE_AT_SEQUENCE, .value = sequence };
}

/* One transaction for each of these. */

/* A partition with one object that says "one". */
static inline void make_text_object(struct fixture *f)
{
	begin_with_object(f);
	write_text(f, 0, "one");
	commit(f);
}

static inline void put_text(struct fixture *f, struct engine_address address, const char *text)
{
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_truncate(f->txn, address, 0), 0);
	assert_int_equal(engine_write(f->txn, address, 0, text, strlen(text)), 0);
	commit(f);
}

static inline void check_text(struct fixture *f, struct engine_address address, const char *text)
{
	begin(f, ENGINE_READ);
	assert_data(f, address, text, strlen(text));
	commit(f);
}

/* An address that does not name anything. */
static inline void check_absent(struct fixture *f, struct engine_address address)
{
	struct engine_stat stat;

	begin(f, ENGINE_READ);
	assert_int_equal(engine_stat(f->txn, address, &stat), -ENOENT);
	commit(f);
}

static inline uint32_t take_snapshot(struct fixture *f, uint64_t partition_id, const char *name)
{
	uint32_t version = 0;

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_snapshot(f->txn, partition_id, name, &version), 0);
	commit(f);
	return version;
}

static inline void roll_back(struct fixture *f, uint64_t partition_id, struct engine_moment to)
{
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_rollback(f->txn, partition_id, to), 0);
	commit(f);
}

/* A number for a moment. */
static inline uint32_t view_of(struct fixture *f, uint64_t partition_id,
			       struct engine_moment moment)
{
	uint32_t version = 0;

	begin(f, ENGINE_READ);
	assert_int_equal(engine_view_open(f->txn, partition_id, moment, &version), 0);
	commit(f);
	return version;
}

#endif
