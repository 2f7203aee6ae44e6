/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The engine that tests stand on, and their short forms. */
#include "tests/engine/fixture.h"

#include "engine/objects/objects.h"
#include "tests/engine/index_under_test.h"
#include "tests/engine/small_flash.h"

const struct engine_address the_root;
const struct engine_address the_partition = { .partition = PARTITION };

/* ---- the engine ---- */

uint64_t clock_of(void *fixture)
{
	return ((struct fixture *)fixture)->now;
}

static uint64_t running_of(void *context)
{
	const struct fixture *f = context;

	return f->now - f->jumped;
}

struct engine_options options_of(struct fixture *f)
{
	struct engine_options options = { .clock_ms = clock_of,
					  .running_ms = running_of,
					  .clock_context = f,
					  .inline_bytes = f->inline_bytes };

	if (!f->memory) {
		options.muninn.index = index_under_test();
		options.muninn.rows = 2;
		options.muninn.segment_pages = f->merges ? 16 : 8;
		options.muninn.record_bytes = f->merges ? 256 : 128;
		options.merge_manual = !f->merges;
	}
	return options;
}

void reopen(struct fixture *f)
{
	const struct engine_options options = options_of(f);
	struct error_text error = { "" };
	int result;

	if (f->memory)
		result = engine_open_on(memory_store_open(f->memory), &options, &f->engine, &error);
	else
		result = engine_open(f->nand, &options, &f->engine, &error);
	if (result)
		fail_msg("%s", error.text);
}

void crash(struct fixture *f)
{
	engine_abandon(f->engine);
	f->txn = NULL;
	reopen(f);
}

int setup_on_memory(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->memory = memory_store_create(PAGE);
	f->now = SECOND;
	reopen(f);
	*state = f;
	return 0;
}

static struct fixture *make_flash(uint32_t blocks, bool merges)
{
	const struct nand_geometry shape = SMALL_FLASH(blocks);
	struct fixture *f = calloc(1, sizeof(*f));
	struct error_text error = { "" };
	struct engine_options options;
	uint64_t nvram;

	assert_non_null(f);
	f->now = SECOND;
	f->merges = merges;
	options = options_of(f);
	assert_int_equal(engine_nvram_bytes(&shape, &options, &nvram, &error), 0);
	assert_int_equal(nand_open_memory(&shape, nvram, &f->nand, &error), 0);
	assert_int_equal(engine_format(f->nand, &options, &error), 0);
	reopen(f);
	return f;
}

int setup_on_flash(void **state)
{
	struct fixture *f = make_flash(600, false);

	create(f, PARTITION);
	create(f, OTHERS);
	*state = f;
	return 0;
}

struct fixture *make_merging(uint32_t blocks)
{
	return make_flash(blocks, true);
}

int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->txn) /* a failed test left it */
		engine_abort(f->txn);
	assert_int_equal(engine_close(f->engine), 0);
	if (f->memory)
		memory_store_destroy(f->memory);
	if (f->nand)
		assert_int_equal(nand_close(f->nand), 0);
	free(f);
	return 0;
}

uint64_t merge_what_can_be(struct fixture *f)
{
	const struct engine_address address = { .partition = OTHERS, .object = OBJECT };
	struct engine_merge_result total = { 0 };
	char bytes[8 * PAGE] = { 0 };

	for (int round = 0; round < 60; round++) {
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_write(f->txn, address, 0, bytes, sizeof(bytes)), 0);
		commit(f);
	}
	for (int step = 0; step < 200; step++) {
		int result = engine_merge(f->engine, &total);

		assert_true(result == 0 || result == -EAGAIN);
	}
	return total.segments_freed;
}

void merge_all(struct fixture *f)
{
	assert_true(merge_what_can_be(f) > 0);
}

/* ---- transactions ---- */

void begin(struct fixture *f, enum engine_mode mode)
{
	assert_int_equal(engine_begin(f->engine, mode, &f->txn), 0);
}

int end(struct fixture *f, int result)
{
	struct engine_txn *txn = f->txn;

	f->txn = NULL;
	if (!result)
		return engine_commit(txn, false);
	engine_abort(txn);
	return result;
}

void commit(struct fixture *f)
{
	assert_int_equal(end(f, 0), 0);
}

void abort_all(struct fixture *f)
{
	engine_abort(f->txn);
	f->txn = NULL;
}

/* ---- within the open transaction ---- */

static void create_with_object(struct fixture *f, uint64_t partition)
{
	assert_int_equal(engine_partition_create(f->txn, partition, NULL), 0);
	assert_int_equal(engine_create(f->txn, partition, ENGINE_USER_OBJECT, OBJECT, 1, NULL), 0);
}

void begin_with_object(struct fixture *f)
{
	begin(f, ENGINE_WRITE);
	create_with_object(f, PARTITION);
}

void write_text(struct fixture *f, uint64_t offset, const char *text)
{
	assert_int_equal(engine_write(f->txn, object(OBJECT), offset, text, strlen(text)), 0);
}

void assert_data(struct fixture *f, struct engine_address address, const void *wanted,
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

struct engine_stat stat_of(struct fixture *f, struct engine_address address)
{
	struct engine_stat stat;

	assert_int_equal(engine_stat(f->txn, address, &stat), 0);
	return stat;
}

/* ---- in a transaction of their own ---- */

void create(struct fixture *f, uint64_t partition)
{
	begin(f, ENGINE_WRITE);
	create_with_object(f, partition);
	commit(f);
}

void remove_partition(struct fixture *f, uint64_t partition)
{
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_partition_remove(f->txn, partition, true), 0);
	commit(f);
}

void make_clone(struct fixture *f, uint64_t source, uint64_t clone)
{
	const struct engine_moment now = { .kind = ENGINE_NOW };

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone(f->txn, source, now, clone, true, NULL), 0);
	commit(f);
}

void refresh_clone(struct fixture *f, uint64_t clone)
{
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone_refresh(f->txn, clone), 0);
	commit(f);
}

uint16_t index_of(struct fixture *f, uint64_t partition)
{
	struct partition *found;
	uint16_t index;

	assert_int_equal(partition_get(f->engine, partition, &found), 0);
	index = found->index;
	partition_release(f->engine, found);
	return index;
}

void make_text_object(struct fixture *f)
{
	begin_with_object(f);
	write_text(f, 0, "one");
	commit(f);
}

void put_text(struct fixture *f, struct engine_address address, const char *text)
{
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_truncate(f->txn, address, 0), 0);
	assert_int_equal(engine_write(f->txn, address, 0, text, strlen(text)), 0);
	commit(f);
}

void check_text(struct fixture *f, struct engine_address address, const char *text)
{
	begin(f, ENGINE_READ);
	assert_data(f, address, text, strlen(text));
	commit(f);
}

void put_text_at(struct fixture *f, uint64_t seconds, const char *text)
{
	f->now = seconds * SECOND;
	put_text(f, object(OBJECT), text);
}

void check_text_at(struct fixture *f, uint64_t seconds, const char *text)
{
	check_text(f, at_version(object(OBJECT), view_of(f, PARTITION, at_time(seconds * SECOND))),
		   text);
}

void check_absent(struct fixture *f, struct engine_address address)
{
	struct engine_stat stat;

	begin(f, ENGINE_READ);
	assert_int_equal(engine_stat(f->txn, address, &stat), -ENOENT);
	commit(f);
}

void write_page(struct fixture *f, uint64_t ms, uint32_t page, char byte)
{
	char bytes[PAGE];

	memset(bytes, byte, sizeof(bytes));
	f->now = ms;
	begin(f, ENGINE_WRITE);
	assert_int_equal(
		engine_write(f->txn, object(OBJECT), (uint64_t)page * PAGE, bytes, sizeof(bytes)),
		0);
	commit(f);
}

void check_page_of(struct fixture *f, uint64_t partition, uint32_t version, uint32_t page,
		   char byte)
{
	const struct engine_address address = { .partition = partition,
						.object = OBJECT,
						.version = version };
	char bytes[PAGE], wanted[PAGE];
	uint64_t got;

	memset(wanted, byte, sizeof(wanted));
	begin(f, ENGINE_READ);
	assert_int_equal(
		engine_read(f->txn, address, (uint64_t)page * PAGE, bytes, sizeof(bytes), &got), 0);
	assert_int_equal(got, sizeof(bytes));
	assert_memory_equal(bytes, wanted, sizeof(bytes));
	commit(f);
}

void check_page(struct fixture *f, uint32_t version, uint32_t page, char byte)
{
	check_page_of(f, PARTITION, version, page, byte);
}

/* ---- history ---- */

uint32_t take_snapshot(struct fixture *f, uint64_t partition, const char *name)
{
	uint32_t version = 0;

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_snapshot(f->txn, partition, name, &version), 0);
	commit(f);
	return version;
}

void drop_version(struct fixture *f, uint64_t partition, uint32_t version)
{
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_version_drop(f->txn, partition, version), 0);
	commit(f);
}

int try_rollback(struct fixture *f, enum engine_mode mode, uint64_t partition,
		 struct engine_moment to)
{
	begin(f, mode);
	return end(f, engine_rollback(f->txn, partition, to));
}

void roll_back(struct fixture *f, uint64_t partition, struct engine_moment to)
{
	assert_int_equal(try_rollback(f, ENGINE_WRITE, partition, to), 0);
}

uint32_t try_view_of(struct fixture *f, uint64_t partition, struct engine_moment moment)
{
	uint32_t version = 0;
	int result;

	begin(f, ENGINE_READ);
	result = engine_view_open(f->txn, partition, moment, &version);
	assert_true(result == 0 || result == -ENOENT);
	commit(f);
	return version;
}

uint32_t view_of(struct fixture *f, uint64_t partition, struct engine_moment moment)
{
	uint32_t version = try_view_of(f, partition, moment);

	assert_int_not_equal(version, 0);
	return version;
}

int stat_of_device_at(struct fixture *f, uint64_t partition, uint64_t ms)
{
	const struct engine_address address = { .partition = partition,
						.version = view_of(f, 0, at_time(ms)) };
	struct engine_stat stat;
	int result;

	begin(f, ENGINE_READ);
	result = engine_stat(f->txn, address, &stat);
	commit(f);
	return result;
}

uint32_t view_at(struct fixture *f, uint64_t ms)
{
	return try_view_of(f, PARTITION, at_time(ms));
}

int try_time(struct fixture *f, uint64_t partition, uint64_t seconds)
{
	uint64_t sequence;
	int result;

	begin(f, ENGINE_READ);
	result = engine_moment_resolve(f->txn, partition, at_time(seconds * SECOND), &sequence);
	commit(f);
	return result;
}

uint64_t horizon_of(struct fixture *f, uint64_t partition)
{
	struct engine_history history;

	begin(f, ENGINE_READ);
	assert_int_equal(engine_history(f->txn, partition, &history), 0);
	commit(f);
	return history.horizon_sequence;
}

int try_kind(struct fixture *f, uint64_t partition, enum engine_retention_kind kind,
	     uint64_t locked_until_ms)
{
	const struct engine_retention retention = { .kind = kind,
						    .locked_until_ms = locked_until_ms };

	begin(f, ENGINE_RESCUE);
	return end(f, engine_retention_set(f->txn, partition, &retention, false));
}

void set_kind(struct fixture *f, uint64_t partition, enum engine_retention_kind kind)
{
	assert_int_equal(try_kind(f, partition, kind, 0), 0);
}

void set_policy(struct fixture *f, uint64_t partition, uint64_t all_ms, uint64_t interval_ms,
		uint64_t interval_for_ms)
{
	const struct engine_retention retention = { .kind = ENGINE_RETAIN_NONE,
						    .keep_all_ms = all_ms,
						    .keep_interval_ms = interval_ms,
						    .keep_interval_for_ms = interval_for_ms };

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(f->txn, partition, &retention, false), 0);
	commit(f);
}
