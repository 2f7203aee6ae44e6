/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Two units whose rows are full, and calls of both. */
#include "tests/osd/full_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "engine/objects/objects.h"
#include "osd/execute.h"
#include "tests/engine/small_flash.h"

enum { ROWS = 16, SEGMENT_PAGES = 8, FILLERS = 512, FILL_MAX = 100000 };

/* Where the small objects are that fill the rows. */
#define FILLED (P + 1)

/* ---- the units ---- */

static bool is_held; /* atomic */
static const struct record_store_operations *whole;

static int seal_take(struct record_store *store)
{
	return __atomic_load_n(&is_held, __ATOMIC_ACQUIRE) ? -EAGAIN : whole->seal_take(store);
}

static void hold(bool held)
{
	__atomic_store_n(&is_held, held, __ATOMIC_RELEASE);
}

/* No thread has taken anything yet. */
static void get_hold_of_threads(struct unit *unit)
{
	static struct record_store_operations held;

	whole = unit->engine->store->operations;
	held = *whole;
	held.seal_take = seal_take;
	unit->engine->store->operations = &held;
}

static void count_served(void *context)
{
	struct full_rows *rows = context;

	if (++rows->tries == rows->release_at || rows->tries == FULL_ROWS_TRIES_MAX)
		hold(false);
}

static void count_alone(void *context)
{
	struct full_rows *rows = context;

	rows->tries_alone++;
}

static void create_fillers(struct unit *unit)
{
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_create(txn, FILLED, ENGINE_USER_OBJECT, 0, FILLERS, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

static void open_unit(struct unit *unit, bool has_threads)
{
	static const struct nand_geometry geometry = SMALL_FLASH(6000);
	const struct engine_options options = {
		.muninn = { .rows = ROWS, .segment_pages = SEGMENT_PAGES, .record_bytes = 256 },
		.sealing_threads = has_threads ? 2 : 0,
		.merging_thread = has_threads,
	};

	unit_open_with(unit, &geometry, &options);
	if (has_threads)
		get_hold_of_threads(unit);
	secured_open(unit, &secured_manager);
	unit_create_partition(unit, P);
	unit_create(unit, P, O);
	secured_set_keys(unit, &secured_manager);
	unit_create_partition(unit, FILLED);
	create_fillers(unit);
}

int full_rows_set_up(void **state)
{
	struct full_rows *rows = calloc(1, sizeof(*rows));

	assert_non_null(rows);
	hold(false);
	open_unit(&rows->alone, false);
	open_unit(&rows->served, true);
	*state = rows;
	return 0;
}

int full_rows_tear_down(void **state)
{
	struct full_rows *rows = *state;

	hold(false);
	unit_close(&rows->served);
	unit_close(&rows->alone);
	free(rows);
	return 0;
}

/* ---- full rows ---- */

static int write_small(struct unit *unit, uint64_t number)
{
	struct engine_address address = { .partition = FILLED, .object = ENGINE_FIRST_ID + number };
	struct engine_txn *txn;
	int result = engine_begin(unit->engine, ENGINE_WRITE, &txn);

	if (result)
		return result;
	result = engine_write(txn, address, 0, "s", 1);
	if (!result)
		return engine_commit(txn, false);
	engine_abort(txn);
	return result;
}

/* Until none of the small objects finds room for one more record. Both units hold the same then. */
static void fill_rows(struct full_rows *rows)
{
	unsigned missed = 0, n;

	hold(true);
	for (n = 0; missed < FILLERS && n < FILL_MAX; n++) {
		int result;

		assert_true(engine_seals_put_off(rows->served.engine));
		result = write_small(&rows->served, n % FILLERS);
		if (engine_seals_awaited(rows->served.engine, 0)) {
			missed++;
			continue;
		}
		missed = 0;
		assert_int_equal(result, 0);
		assert_int_equal(write_small(&rows->alone, n % FILLERS), 0);
	}
	assert_true(n < FILL_MAX);
}

/* ---- the same on both ---- */

static void expect_same(struct full_rows *rows)
{
	const struct osd_command *served = &rows->served.command, *alone = &rows->alone.command;

	assert_int_equal(served->status, alone->status);
	assert_int_equal(served->sense_length, alone->sense_length);
	assert_memory_equal(served->sense, alone->sense, alone->sense_length);
	assert_int_equal(served->data_in_length, alone->data_in_length);
	if (alone->data_in_length > 0)
		assert_memory_equal(rows->served.data_in, rows->alone.data_in,
				    alone->data_in_length);
	assert_int_equal(served->data_out_used, alone->data_out_used);
}

/* Of the root, partition P and object O. */
static void expect_same_stats(struct engine_txn *served, struct engine_txn *alone)
{
	static const struct engine_address addresses[] = { { 0 },
							   { .partition = P },
							   { .partition = P, .object = O } };

	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		struct engine_stat one, other;

		assert_int_equal(engine_stat(served, addresses[i], &one), 0);
		assert_int_equal(engine_stat(alone, addresses[i], &other), 0);
		assert_int_equal(one.length, other.length);
		assert_int_equal(one.used_bytes, other.used_bytes);
		assert_int_equal(one.members, other.members);
		assert_int_equal(one.modified_sequence, other.modified_sequence);
		assert_memory_equal(one.times_ms, other.times_ms, sizeof(one.times_ms));
	}
}

static void expect_same_attributes(struct engine_txn *served, struct engine_txn *alone)
{
	static const struct engine_address object = { .partition = P, .object = O };
	uint8_t values[2][1024];
	uint32_t pages[2] = { 0 }, numbers[2] = { 0 }, lengths[2];

	while (engine_attribute_next(alone, object, &pages[0], &numbers[0], values[0],
				     sizeof(values[0]), &lengths[0]) == 0) {
		assert_int_equal(engine_attribute_next(served, object, &pages[1], &numbers[1],
						       values[1], sizeof(values[1]), &lengths[1]),
				 0);
		assert_int_equal(pages[1], pages[0]);
		assert_int_equal(numbers[1]++, numbers[0]++);
		assert_int_equal(lengths[1], lengths[0]);
		assert_memory_equal(values[1], values[0], lengths[0]);
	}
	assert_int_equal(engine_attribute_next(served, object, &pages[1], &numbers[1], values[1],
					       sizeof(values[1]), &lengths[1]),
			 -ENOENT);
}

static void expect_same_data(struct engine_txn *served, struct engine_txn *alone)
{
	static const struct engine_address object = { .partition = P, .object = O };
	static uint8_t read[2][FULL_ROWS_DATA_MAX];
	uint64_t got[2];

	assert_int_equal(engine_read(served, object, 0, read[0], FULL_ROWS_DATA_MAX, &got[0]), 0);
	assert_int_equal(engine_read(alone, object, 0, read[1], FULL_ROWS_DATA_MAX, &got[1]), 0);
	assert_int_equal(got[0], got[1]);
	assert_memory_equal(read[0], read[1], got[1]);
}

void full_rows_expect_same(struct full_rows *rows)
{
	struct engine_txn *served, *alone;

	assert_int_equal(engine_begin(rows->served.engine, ENGINE_READ, &served), 0);
	assert_int_equal(engine_begin(rows->alone.engine, ENGINE_READ, &alone), 0);
	expect_same_stats(served, alone);
	expect_same_attributes(served, alone);
	expect_same_data(served, alone);
	engine_abort(served);
	engine_abort(alone);
}

void full_rows_begin(struct full_rows *rows, unsigned release_at)
{
	fill_rows(rows);
	rows->tries = rows->tries_alone = 0;
	rows->release_at = release_at;
	rows->served.device->step = count_served;
	rows->alone.device->step = count_alone;
	rows->served.device->step_context = rows->alone.device->step_context = rows;
}

void full_rows_end(struct full_rows *rows)
{
	hold(false);
	rows->served.device->step = rows->alone.device->step = NULL;
	expect_same(rows);
}

void full_rows_run(struct full_rows *rows, struct call *call, unsigned release_at)
{
	full_rows_begin(rows, release_at);
	call_run(&rows->served, call);
	call_run(&rows->alone, call);
	full_rows_end(rows);
}
