/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The power of the flash fails at every operation while snapshots are taken and dropped, partitions and the device rolled
 * back, objects undone, partitions cloned and refreshed, and segments merged. After it the device is as before or as after
 * the step that was under way: what it shows is always what one of the steps left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "common/crc32c.h"
#include "common/log.h"
#include "engine/engine.h"
#include "nand/nand.h"
#include "nand/power.h"
#include "nand/rehearsal.h"

enum { PARTITION = 0x10000, CLONE = 0x10001, OBJECT = 0x10000, OBJECTS = 3, BYTES = 700 };
enum { STEPS = 40 };

static const struct nand_geometry geometry = {
	.page_bytes = 512,
	.spare_bytes = 64,
	.pages_per_block = 8,
	.blocks = 200,
	.channels = 1,
	.dies_per_channel = 1,
};

struct load {
	uint64_t now_ms;
	uint32_t left[STEPS + 1]; /* what is shown after that many steps */
	uint32_t steps;           /* that were committed in this run */
	uint64_t before, after;   /* runs that showed the step under way as not, and as done */
};

static uint64_t clock_of(void *context)
{
	return ((struct load *)context)->now_ms;
}

static struct engine_options options_of(struct load *load)
{
	return (struct engine_options){ .rows = 1,
					.segment_pages = 8,
					.record_bytes = 256,
					.clock_ms = clock_of,
					.clock_context = load };
}

static int open_engine(struct nand *nand, struct load *load, struct engine **engine)
{
	struct engine_options options = options_of(load);
	struct error_text error;

	return engine_open(nand, &options, engine, &error);
}

/* ---- what is shown ---- */

static uint32_t add(uint32_t crc, const void *data, size_t length)
{
	return crc32c(crc, data, length);
}

static uint32_t add_partition(struct engine_txn *txn, uint64_t partition, uint32_t version,
			      uint32_t crc)
{
	struct engine_address address = { .partition = partition, .version = version };
	uint8_t bytes[BYTES];
	uint64_t got;

	for (uint64_t object = 0; object < OBJECTS; object++) {
		int result;

		address.object = OBJECT + object;
		result = engine_read(txn, address, 0, bytes, sizeof(bytes), &got);
		assert_true(result == 0 || result == -ENOENT);
		crc = add(crc, &result, sizeof(result));
		crc = add(crc, &got, sizeof(got));
		if (result == 0)
			crc = add(crc, bytes, got);
	}
	return crc;
}

/* A sum over all objects, now and at all versions, and over what is said of versions. */
static uint32_t look(struct engine *engine)
{
	static const uint64_t partitions[] = { PARTITION, CLONE };
	struct engine_version version;
	struct engine_txn *txn;
	uint32_t crc = 0;

	assert_int_equal(engine_begin(engine, ENGINE_READ, &txn), 0);
	for (int n = 0; n < 2; n++) {
		crc = add_partition(txn, partitions[n], 0, crc);
		for (uint64_t from = 0;
		     engine_version_next(txn, partitions[n], from, &version) == 0;
		     from = version.position + 1) {
			crc = add(crc, &version.version, sizeof(version.version));
			crc = add(crc, version.name, sizeof(version.name));
			crc = add_partition(txn, partitions[n], version.version, crc);
		}
	}
	engine_abort(txn);
	return crc;
}

/* ---- the steps ---- */

static int write_some(struct engine_txn *txn, uint32_t step)
{
	struct engine_address address = { .partition = PARTITION,
					  .object = OBJECT + step % OBJECTS };
	uint8_t bytes[BYTES];

	memset(bytes, (int)step, sizeof(bytes));
	return engine_write(txn, address, 0, bytes, 100 + step * 13 % (BYTES - 100));
}

static int change(struct engine_txn *txn, uint32_t step)
{
	struct engine_moment moment = { .kind = ENGINE_AT_VERSION, .value = 1 };
	struct engine_moment now = { .kind = ENGINE_NOW };
	char name[16];
	uint64_t id;

	snprintf(name, sizeof(name), "step %u", step);
	switch (step % 10) {
	case 1:
		return engine_snapshot(txn, PARTITION, name, NULL);
	case 3:
		return engine_snapshot(txn, 0, name, NULL);
	case 4:
		return step < 10 ? engine_clone(txn, PARTITION, now, CLONE, true, &id)
				 : engine_clone_refresh(txn, CLONE);
	case 5:
		return engine_rollback(txn, PARTITION, moment);
	case 6:
		return engine_undo(txn, PARTITION, OBJECT, 1);
	case 7:
		moment.value = ENGINE_DEVICE_VERSION_FIRST;
		return step < 10 ? write_some(txn, step) : engine_rollback(txn, 0, moment);
	case 8:
		return step < 10 ? write_some(txn, step)
				 : engine_version_drop(txn, PARTITION, step / 10 + 1);
	case 9:
		return engine_rollback_object(txn, PARTITION, OBJECT + 1, moment);
	default:
		return write_some(txn, step);
	}
}

/* 0: committed. -ENOENT counts as a step that changed nothing. */
static int run_step(struct engine *engine, struct load *load, uint32_t step)
{
	struct engine_txn *txn;
	int result = engine_begin(engine, ENGINE_WRITE, &txn);

	load->now_ms += 400;
	if (result)
		return result;
	result = change(txn, step);
	if (result == 0)
		return engine_commit(txn, step % 4 == 0);
	engine_abort(txn);
	return result == -ENOENT ? 0 : result;
}

static int make_objects(struct engine *engine)
{
	struct engine_txn *txn;
	int result = engine_begin(engine, ENGINE_WRITE, &txn);

	if (!result)
		result = engine_partition_create(txn, PARTITION, NULL);
	if (!result)
		result = engine_create(txn, PARTITION, ENGINE_USER_OBJECT, 0, OBJECTS, NULL);
	return result ? result : engine_commit(txn, true);
}

static void prepare(struct nand *nand, void *context)
{
	struct load *load = context;
	struct engine_options options = options_of(load);
	struct error_text error = { "" };
	struct engine *engine;

	load->now_ms = 1000;
	load->steps = 0;
	if (engine_format(nand, &options, &error))
		fail_msg("%s", error.text);
	assert_int_equal(open_engine(nand, load, &engine), 0);
	assert_int_equal(make_objects(engine), 0);
	assert_int_equal(engine_close(engine), 0);
}

static void run(struct nand *nand, void *context)
{
	struct engine_merge_result total = { 0 };
	struct nand_power_status status;
	struct load *load = context;
	struct engine *engine;

	if (open_engine(nand, load, &engine))
		return;
	for (uint32_t step = 1; step <= STEPS; step++) {
		if (run_step(engine, load, step))
			break;
		nand_power_status(nand, &status);
		if (status.off)
			break;
		load->steps = step;
		if (step % 6 == 0)
			engine_merge(engine, &total);
	}
	engine_abandon(engine);
}

static void check(struct nand *nand, void *context, const struct nand_power_cut *cut)
{
	struct load *load = context;
	struct engine *engine;
	char text[NAND_POWER_CUT_TEXT] = "none";
	uint32_t found;

	if (cut)
		nand_power_cut_format(cut, text);
	if (open_engine(nand, load, &engine))
		fail_msg("does not open after the cut %s", text);
	found = look(engine);
	assert_int_equal(engine_close(engine), 0);
	load->before += found == load->left[load->steps];
	if (found == load->left[load->steps])
		return;
	load->after++;
	if (load->steps == STEPS || found != load->left[load->steps + 1])
		fail_msg("after the cut %s in step %u neither before nor after it", text,
			 load->steps + 1);
}

/* What each step leaves when nothing fails. */
static void learn(struct load *load, uint64_t nvram_bytes)
{
	struct error_text error = { "" };
	struct engine *engine;
	struct nand *nand;

	assert_int_equal(nand_open_memory(&geometry, nvram_bytes, &nand, &error), 0);
	prepare(nand, load);
	assert_int_equal(open_engine(nand, load, &engine), 0);
	load->left[0] = look(engine);
	for (uint32_t step = 1; step <= STEPS; step++) {
		assert_int_equal(run_step(engine, load, step), 0);
		load->left[step] = look(engine);
	}
	assert_int_equal(engine_close(engine), 0);
	assert_int_equal(nand_close(nand), 0);
}

static void discard_line(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void test_every_change_of_history_is_before_or_after_a_power_cut(void **state)
{
	struct nand_power_cut ends[NAND_REHEARSAL_ENDS];
	struct load load = { 0 };
	struct engine_options options = options_of(&load);
	struct error_text error = { "" };
	struct nand_rehearsal rehearsal = { .geometry = &geometry,
					    .context = &load,
					    .prepare = prepare,
					    .run = run,
					    .check = check,
					    .ends = ends,
					    .ends_count = 3 };
	uint64_t runs = 0;

	(void)state;
	assert_int_equal(engine_nvram_bytes(&geometry, &options, &rehearsal.nvram_bytes, &error),
			 0);
	learn(&load, rehearsal.nvram_bytes);
	nand_rehearsal_ends(&geometry, NAND_CUT_NVRAM_KEPT, ends);
	log_configure(discard_line, LOG_LEVEL_ERROR);
	if (nand_rehearse(&rehearsal, &runs, &error))
		fail_msg("%s", error.text);
	log_configure(NULL, LOG_LEVEL_WARNING);
	print_message("%llu cuts: %llu before, %llu after the step under way\n",
		      (unsigned long long)runs, (unsigned long long)load.before,
		      (unsigned long long)load.after);
	assert_true(load.before > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_change_of_history_is_before_or_after_a_power_cut),
	};

	return cmocka_run_group_tests_name("history, power cuts", tests, NULL, NULL);
}
