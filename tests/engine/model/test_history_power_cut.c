/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The power of the flash fails at every operation, and between any two records, while snapshots are
 * taken and dropped, partitions and the device rolled back, objects undone, policies set,
 * partitions cloned, refreshed, detached and removed, and segments merged; the page in flight ends
 * in each of its ways. With the NVRAM kept the device is as before or as after the step that was
 * under way. When the host fails too, so that the NVRAM is as of the last flush or a mixture of
 * that and newer pages, it is as after the last flush or a later step. What it shows is always what
 * one of the steps left.
 *
 * Some of the cuts are tried; with MUNINN_EVERY_CUT all of them.
 *
 * Runs for each index.
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
#include "engine/history.h"
#include "engine/history/past.h"
#include "engine/open.h"
#include "engine/options.h"
#include "nand/nand.h"
#include "nand/power.h"
#include "nand/rehearsal.h"
#include "tests/engine/by_address.h"
#include "tests/engine/index_under_test.h"
#include "tests/engine/model/model_power.h"
#include "tests/engine/small_flash.h"
#include "tests/repetition.h"

enum { PARTITION = 0x10000, CLONE = 0x10001, OBJECT = 0x10000, OBJECTS = 3, BYTES = 700 };
enum { ROUND = 14, STEPS = 4 * ROUND };
/* Operations from one cut to the next, but for MUNINN_EVERY_CUT. */
enum { STRIDE = 13 };

static const struct nand_geometry geometry = SMALL_FLASH(200);

struct load {
	uint64_t now_ms;
	uint32_t left[STEPS + 1]; /* what is shown after that many steps */
	uint32_t steps;           /* that were committed in this run */
	uint32_t flushed;         /* the last of them that was flushed */
	uint64_t before, after;   /* runs that showed the step under way as not, and as done */
	uint64_t flush, later; /* host failed: runs that showed the last flush, and a later step */
	uint8_t boot[16];
};

static uint64_t clock_of(void *context)
{
	return ((struct load *)context)->now_ms;
}

static struct engine_options options_of(struct load *load)
{
	return (struct engine_options){ .muninn.index = index_under_test(),
					.muninn.rows = 1,
					.muninn.segment_pages = 8,
					.muninn.record_bytes = 256,
					.records.boot_id = load->boot,
					.clock_ms = clock_of,
					.clock_context = load };
}

static int open_engine(struct nand *nand, struct load *load, struct engine **engine)
{
	struct engine_options options = options_of(load);
	struct error_text error;

	return engine_open(nand, &options, engine, &error);
}

/* The same, with points between records at which the power may fail. */
static int open_with_points(struct nand *nand, struct load *load, struct model_power *power,
			    struct engine **engine)
{
	struct engine_options options = options_of(load);
	struct record_store *store;
	struct error_text error;
	int result = engine_open_records(nand, &options, &store, &error);

	if (result)
		return result;
	model_power_attach(power, store);
	result = engine_open_on(store, &options, engine, NULL);
	/* So small an object is put again otherwise, which is writing like any other. */
	if (!result)
		(*engine)->past->pieces_put_again = 0;
	return result;
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

static uint32_t add_policy(struct engine_txn *txn, uint64_t partition, uint32_t crc)
{
	struct engine_retention retention = { 0 };
	struct engine_clone clone = { 0 };
	int result = engine_retention_get(txn, partition, &retention);

	crc = add(crc, &result, sizeof(result));
	crc = add(crc, &retention.keep_all_ms, sizeof(retention.keep_all_ms));
	result = engine_clone_get(txn, partition, &clone);
	crc = add(crc, &result, sizeof(result));
	return add(crc, &clone.sequence, sizeof(clone.sequence));
}

/*
 * A sum over all objects, now and at all versions, and over what is said of versions, policies and
 * clones.
 */
static uint32_t look(struct engine *engine)
{
	static const uint64_t partitions[] = { PARTITION, CLONE };
	struct engine_version version;
	struct engine_txn *txn;
	uint32_t crc = 0;

	assert_int_equal(engine_begin(engine, ENGINE_READ, &txn), 0);
	for (int n = 0; n < 2; n++) {
		crc = add_partition(txn, partitions[n], 0, crc);
		crc = add_policy(txn, partitions[n], crc);
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

static int write_some(struct engine_txn *txn, uint64_t partition, uint32_t step)
{
	struct engine_address address = { .partition = partition,
					  .object = OBJECT + step % OBJECTS };
	uint8_t bytes[BYTES];

	memset(bytes, (int)step, sizeof(bytes));
	return engine_write(txn, address, 0, bytes, 100 + step * 13 % (BYTES - 100));
}

static int set_policy(struct engine_txn *txn, uint32_t step)
{
	const struct engine_retention retention = { .kind = ENGINE_RETAIN_SNAPSHOTS,
						    .keep_all_ms = 1000 * step };

	return engine_retention_set(txn, PARTITION, &retention, false);
}

/* Makes the clone, or lets it begin anew. */
static int clone_or_refresh(struct engine_txn *txn)
{
	const struct engine_moment now = { .kind = ENGINE_NOW };
	uint64_t id;
	int result = engine_clone_refresh(txn, CLONE);

	return result == -ENOENT ? engine_clone(txn, PARTITION, now, CLONE, true, &id) : result;
}

static int change(struct engine_txn *txn, uint32_t step)
{
	struct engine_moment moment = { .kind = ENGINE_AT_VERSION, .value = 1 };
	uint32_t round = step / ROUND;
	/*
	 * To before the clone was made, or, when that is gone and another one has its place, to
	 * where it was there.
	 */
	struct engine_moment device = { .kind = ENGINE_AT_VERSION,
					.value = ENGINE_DEVICE_VERSION_FIRST + (round == 3) };
	char name[16];

	snprintf(name, sizeof(name), "step %u", step);
	switch (step % ROUND) {
	case 1:
		return engine_snapshot(txn, PARTITION, name, NULL);
	case 3:
		return engine_snapshot(txn, 0, name, NULL);
	case 4:
		return clone_or_refresh(txn);
	case 5:
		return engine_rollback(txn, PARTITION, moment);
	case 6:
		return engine_undo(txn, PARTITION, OBJECT, 1);
	case 7:
		return round % 2 == 0 ? write_some(txn, PARTITION, step)
				      : engine_rollback(txn, 0, device);
	case 8:
		return engine_version_drop(txn, PARTITION, round + 2);
	case 9:
		return engine_rollback_object(txn, PARTITION, OBJECT + 1, moment);
	case 10:
		return set_policy(txn, step);
	case 11:
		return write_some(txn, CLONE, step);
	case 12:
		if (round < 2)
			return round ? engine_clone_detach(txn, CLONE)
				     : write_some(txn, PARTITION, step);
		return engine_version_drop(txn, 0, ENGINE_DEVICE_VERSION_FIRST + round);
	case 13:
		return round == 2 ? engine_partition_remove(txn, CLONE, true)
				  : write_some(txn, PARTITION, step);
	default:
		return write_some(txn, PARTITION, step);
	}
}

/* What is not there, is there already, or must stay, makes a step that changes nothing. */
static bool changes_nothing(int result)
{
	return result == -ENOENT || result == -EEXIST || result == -EBUSY;
}

/* 0: committed, or there was nothing to change. */
static int run_step(struct engine *engine, struct load *load, uint32_t step)
{
	/*
	 * Most commands leave the rest of a segment to the next ones, as snapshots do: the power
	 * fails between two of its pages.
	 */
	enum engine_mode mode = step % 16 < 12 ? ENGINE_HISTORY : ENGINE_WRITE;
	struct engine_txn *txn;
	int result = engine_begin(engine, mode, &txn);

	load->now_ms += 400;
	if (result)
		return result;
	result = change(txn, step);
	if (result == 0)
		return engine_commit(txn, step % 4 == 0);
	engine_abort(txn);
	return changes_nothing(result) ? 0 : result;
}

/*
 * Now and then flushes and merges, which drops of versions may wait for. Whether it flushed, or the
 * error of that.
 */
static int settle(struct engine *engine, uint32_t step)
{
	struct engine_merge_result total = { 0 };
	int result = step % 8 == 0 ? engine_flush(engine) : 0;

	if (!result && step % 3 == 0)
		engine_merge(engine, &total);
	return result ? result : step % 8 == 0;
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
	load->steps = load->flushed = 0;
	if (engine_format(nand, &options, &error))
		fail_msg("%s", error.text);
	assert_int_equal(open_engine(nand, load, &engine), 0);
	assert_int_equal(make_objects(engine), 0);
	assert_int_equal(engine_close(engine), 0);
}

static bool is_off(struct nand *nand)
{
	struct nand_power_status status;

	nand_power_status(nand, &status);
	return status.off;
}

static void run_steps(struct nand *nand, struct load *load, struct engine *engine)
{
	int result;

	for (uint32_t step = 1; step <= STEPS; step++) {
		if (run_step(engine, load, step) || is_off(nand))
			return;
		load->steps = step;
		result = settle(engine, step);
		if (result < 0 || is_off(nand))
			return;
		load->flushed = result ? step : load->flushed;
	}
}

static void run(struct nand *nand, void *context)
{
	struct model_power *power = model_power_create(nand);
	struct load *load = context;
	struct engine *engine;

	if (open_with_points(nand, load, power, &engine) == 0) {
		run_steps(nand, load, engine);
		engine_abandon(engine);
	}
	model_power_destroy(power);
}

/* With the NVRAM kept: before or after the step under way. */
static void judge_kept(struct load *load, uint32_t found, const char *text)
{
	load->before += found == load->left[load->steps];
	if (found == load->left[load->steps])
		return;
	load->after++;
	if (load->steps == STEPS || found != load->left[load->steps + 1])
		fail_msg("after the cut %s in step %u neither before nor after it", text,
			 load->steps + 1);
}

/* Otherwise as after the last flush, or a step from then on. */
static void judge_failed(struct load *load, uint32_t found, const char *text)
{
	uint32_t step = load->flushed;

	while (step <= STEPS && step <= load->steps + 1 && found != load->left[step])
		step++;
	if (step > STEPS || step > load->steps + 1)
		fail_msg("after the cut %s in step %u, with %u flushed, there is what no step left",
			 text, load->steps + 1, load->flushed);
	load->flush += step == load->flushed;
	load->later += step != load->flushed;
}

static void check(struct nand *nand, void *context, const struct nand_power_cut *cut)
{
	bool kept = !cut || cut->nvram == NAND_CUT_NVRAM_KEPT;
	struct load *load = context;
	struct engine *engine;
	char text[NAND_POWER_CUT_TEXT] = "none";
	uint32_t found;

	if (cut)
		nand_power_cut_format(cut, text);
	load->boot[0] += !kept;
	if (open_engine(nand, load, &engine))
		fail_msg("does not open after the cut %s", text);
	found = look(engine);
	assert_int_equal(engine_close(engine), 0);
	if (kept)
		judge_kept(load, found, text);
	else
		judge_failed(load, found, text);
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
		settle(engine, step);
	}
	assert_int_equal(engine_close(engine), 0);
	assert_int_equal(nand_close(nand), 0);
}

static void discard_line(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

/* Cuts with this fate of the NVRAM, in all ways in which the page in flight may end. */
static void rehearse(struct load *load, enum nand_cut_nvram nvram)
{
	struct nand_power_cut ends[NAND_REHEARSAL_ENDS];
	struct engine_options options = options_of(load);
	struct error_text error = { "" };
	struct nand_rehearsal rehearsal = { .geometry = &geometry,
					    .context = load,
					    .prepare = prepare,
					    .run = run,
					    .check = check,
					    .ends_count = 1 };
	uint64_t runs = 0;

	assert_int_equal(engine_nvram_bytes(&geometry, &options, &rehearsal.nvram_bytes, &error),
			 0);
	learn(load, rehearsal.nvram_bytes);
	nand_rehearsal_ends(&geometry, nvram, ends);
	log_configure(discard_line, LOG_LEVEL_ERROR);
	for (uint64_t end = 0; end < NAND_REHEARSAL_ENDS; end++) {
		rehearsal.ends = &ends[end];
		/* A stride of its own for each, so that they do not cut at the same places. */
		rehearsal.stride = getenv("MUNINN_EVERY_CUT") ? 1 : cut_stride(STRIDE + 2 * end);
		if (nand_rehearse(&rehearsal, &runs, &error))
			fail_msg("%s", error.text);
	}
	log_configure(NULL, LOG_LEVEL_WARNING);
	print_message("%llu cuts: %llu before, %llu after the step under way; with the host: %llu "
		      "as flushed, %llu later\n",
		      (unsigned long long)runs, (unsigned long long)load->before,
		      (unsigned long long)load->after, (unsigned long long)load->flush,
		      (unsigned long long)load->later);
}

static void test_every_change_of_history_is_before_or_after_a_power_cut(void **state)
{
	struct load load = { 0 };

	(void)state;
	rehearse(&load, NAND_CUT_NVRAM_KEPT);
	assert_true(load.before > 0 && load.after > 0);
}

static void test_history_is_as_flushed_when_the_host_fails(void **state)
{
	struct load load = { 0 };

	(void)state;
	rehearse(&load, NAND_CUT_NVRAM_FLUSHED);
	assert_true(load.flush > 0);
}

static void test_history_is_whole_when_pages_of_nvram_are_old_and_new(void **state)
{
	struct load load = { 0 };

	(void)state;
	rehearse(&load, NAND_CUT_NVRAM_MIXED);
	assert_true(load.flush > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_change_of_history_is_before_or_after_a_power_cut),
		cmocka_unit_test(test_history_is_as_flushed_when_the_host_fails),
		cmocka_unit_test(test_history_is_whole_when_pages_of_nvram_are_old_and_new),
	};

	return cmocka_run_group_tests_name("history, power cuts", tests, NULL, NULL);
}
