/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * An engine with a clock of its own for the tests of this folder, on records in memory or on flash
 * in memory, and short forms of what they do again and again.
 */
#ifndef MUNINN_TESTS_ENGINE_FIXTURE_H
#define MUNINN_TESTS_ENGINE_FIXTURE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "engine/history.h"
#include "engine/options.h"
#include "tests/engine/by_address.h"
#include "tests/engine/memory_store.h"

enum {
	PARTITION = ENGINE_FIRST_ID,
	OTHERS,
	CLONE,
	OBJECT = ENGINE_FIRST_ID,
	PAGE = 512,
	SECOND = 1000 /* of `now`, where it starts */
};

struct fixture {
	struct memory_store *memory; /* NULL: on flash */
	struct nand *nand;           /* NULL: on records in memory */
	struct engine *engine;
	struct engine_txn *txn; /* the open one */
	uint64_t now;
	uint64_t jumped;       /* of `now`: while no time passed, or the device was not open */
	bool merges;           /* by itself */
	uint32_t inline_bytes; /* the option */
};

/* ---- the engine ---- */

/* An empty engine on records in memory. */
int setup_on_memory(void **state);

/*
 * An engine on a small device, which merges only when a test says so, with the partitions PARTITION
 * and OTHERS of one object each.
 */
int setup_on_flash(void **state);

/* For a setup: an empty engine on a device of so many blocks, which merges by itself. */
struct fixture *make_merging(uint32_t blocks);

/* Of each of them. */
int teardown(void **state);

#define TEST(name)       cmocka_unit_test_setup_teardown(name, setup_on_memory, teardown)
#define FLASH_TEST(name) cmocka_unit_test_setup_teardown(name, setup_on_flash, teardown)

/* What the engine is opened with. */
struct engine_options options_of(struct fixture *f);

/* The clock of these options; the context is the fixture. */
uint64_t clock_of(void *fixture);

/* Opens what is there; behind engine_close() and engine_abandon(). */
void reopen(struct fixture *f);

/* Ends the engine as a crash does, and opens what is there. */
void crash(struct fixture *f);

/*
 * Seals what is buffered by writing something else again and again, and merges until nothing is
 * worth it; on flash only. The first returns the segments that were freed, the second expects some.
 */
uint64_t merge_what_can_be(struct fixture *f);
void merge_all(struct fixture *f);

/* ---- transactions ---- */

void begin(struct fixture *f, enum engine_mode mode);
void commit(struct fixture *f);
void abort_all(struct fixture *f);

/*
 * Ends a transaction as its call went: commits, or aborts what failed. Returns how that call or the
 * commit failed.
 */
int end(struct fixture *f, int result);

/* ---- addresses and moments ---- */

extern const struct engine_address the_root, the_partition;

/* Of the_partition. */
static inline struct engine_address object(uint64_t id)
{
	return (struct engine_address){ .partition = PARTITION, .object = id };
}

static inline struct engine_address at_version(struct engine_address address, uint32_t version)
{
	address.version = version;
	return address;
}

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

/* ---- within the open transaction ---- */

/* Opens a writing one, and makes PARTITION with an empty OBJECT. */
void begin_with_object(struct fixture *f);

/* Of OBJECT. */
void write_text(struct fixture *f, uint64_t offset, const char *text);

/* The object has exactly these bytes. */
void assert_data(struct fixture *f, struct engine_address address, const void *wanted,
		 size_t length);

struct engine_stat stat_of(struct fixture *f, struct engine_address address);

/* ---- in a transaction of their own ---- */

/* A partition with an empty OBJECT. */
void create(struct fixture *f, uint64_t partition);
void remove_partition(struct fixture *f, uint64_t partition);

/* A writable clone of a partition as it is now; it becomes its source again. */
void make_clone(struct fixture *f, uint64_t source, uint64_t clone);
void refresh_clone(struct fixture *f, uint64_t clone);

/* The index of a partition, or of a clone. */
uint16_t index_of(struct fixture *f, uint64_t partition);

/* PARTITION with an OBJECT that says "one". */
void make_text_object(struct fixture *f);

/* The text is all that the object has. */
void put_text(struct fixture *f, struct engine_address address, const char *text);
void check_text(struct fixture *f, struct engine_address address, const char *text);

/* The same of OBJECT, with the clock at a time; as it was at a time. */
void put_text_at(struct fixture *f, uint64_t seconds, const char *text);
void check_text_at(struct fixture *f, uint64_t seconds, const char *text);

/* An address that does not name anything. */
void check_absent(struct fixture *f, struct engine_address address);

/* Pages of OBJECT, of one byte again and again; of PARTITION where none is named. */
void write_page(struct fixture *f, uint64_t ms, uint32_t page, char byte);
void check_page(struct fixture *f, uint32_t version, uint32_t page, char byte);
void check_page_of(struct fixture *f, uint64_t partition, uint32_t version, uint32_t page,
		   char byte);

/* ---- history, in a transaction of its own; partition 0: the device ---- */

uint32_t take_snapshot(struct fixture *f, uint64_t partition, const char *name);
void drop_version(struct fixture *f, uint64_t partition, uint32_t version);
void roll_back(struct fixture *f, uint64_t partition, struct engine_moment to);

/* In a transaction of this mode. Returns how it failed. */
int try_rollback(struct fixture *f, enum engine_mode mode, uint64_t partition,
		 struct engine_moment to);

/* A number for a moment. */
uint32_t view_of(struct fixture *f, uint64_t partition, struct engine_moment moment);

/* The same. 0: that is not to be reached. The second is of PARTITION at a time. */
uint32_t try_view_of(struct fixture *f, uint64_t partition, struct engine_moment moment);
uint32_t view_at(struct fixture *f, uint64_t ms);

/* Looks at a partition as the device was at a time. Returns how that failed. */
int stat_of_device_at(struct fixture *f, uint64_t partition, uint64_t ms);

/* Looks up the moment at a time. Returns how that failed. */
int try_time(struct fixture *f, uint64_t partition, uint64_t seconds);

/* The number of the first moment that is in reach. */
uint64_t horizon_of(struct fixture *f, uint64_t partition);

/* A policy of a kind. The second is locked until a time (0: not), and returns how it failed. */
void set_kind(struct fixture *f, uint64_t partition, enum engine_retention_kind kind);
int try_kind(struct fixture *f, uint64_t partition, enum engine_retention_kind kind,
	     uint64_t locked_until_ms);

/* Nothing is kept but what the intervals say. */
void set_policy(struct fixture *f, uint64_t partition, uint64_t all_ms, uint64_t interval_ms,
		uint64_t interval_for_ms);

#endif
