/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The whole of engine.h against a model, by random operations: on the record store in memory, and
 * on the one on flash with a device so small that it turns over its segments and tables all the
 * time. MUNINN_SEED and MUNINN_OPERATIONS choose another run; the seed is printed.
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

#include "engine/history/past.h"
#include "tests/engine/memory_store.h"
#include "tests/engine/model/model_run.h"

/* ---- in memory ---- */

static struct engine *open_memory(struct model_run *run)
{
	struct engine *engine;

	assert_int_equal(
		engine_open_on(memory_store_open(run->store.context), &run->options, &engine, NULL),
		0);
	engine->past->pieces_put_again = MODEL_PIECES_PUT_AGAIN;
	return engine;
}

static void disturb_memory(struct model_run *run)
{
	memory_store_fail_put(run->store.context, (int64_t)model_run_below(run, 40));
}

static void calm_memory(struct model_run *run)
{
	memory_store_fail_put(run->store.context, -1);
}

static void run_on_memory(const char *name, uint32_t page_bytes, bool absorb, uint64_t seed,
			  uint64_t operations)
{
	struct model_run run = {
		.store = { .open = open_memory, .disturb = disturb_memory, .calm = calm_memory },
		.options = { .onode_cache_entries = 1, .directory_cache_nodes = 1 },
	};

	run.store.context = memory_store_create(page_bytes);
	memory_store_absorb(run.store.context, absorb);
	model_start(&run, name, seed, operations);
	memory_store_destroy(run.store.context);
}

static void test_the_engine_does_what_the_model_does_in_memory(void **state)
{
	(void)state;
	run_on_memory("all versions kept", 512, false, 1, 200000);
}

static void test_absorbed_records_are_not_missed(void **state)
{
	(void)state;
	run_on_memory("metadata absorbed", 512, true, 2, 200000);
}

static void test_pages_of_4096_bytes(void **state)
{
	(void)state;
	run_on_memory("pages of 4096 bytes", 4096, true, 3, 50000);
}

/* ---- on flash ---- */

static void test_the_engine_does_what_the_model_does_on_flash(void **state)
{
	(void)state;
	model_run_on_flash("flash", &(struct model_flash){ .blocks = 6000 }, 4, 100000);
}

static void test_a_device_that_is_merged_all_the_time_keeps_what_it_has(void **state)
{
	(void)state;
	model_run_on_flash("flash that is merged", &(struct model_flash){ .blocks = 500 }, 5,
			   25000);
}

static void test_a_device_that_runs_full_keeps_what_it_has(void **state)
{
	(void)state;
	model_run_on_flash("flash that runs full",
			   &(struct model_flash){ .blocks = 900, .merge_manual = true }, 6, 50000);
}

static void test_partitions_that_come_and_go_keep_what_is_shown_of_them(void **state)
{
	(void)state;
	model_run_on_flash("restless", &(struct model_flash){ .blocks = 6000, .restless = true }, 9,
			   20000);
}

static void test_they_do_so_on_a_device_that_is_merged_all_the_time(void **state)
{
	(void)state;
	model_run_on_flash("restless, on flash that is merged",
			   &(struct model_flash){ .blocks = 500, .restless = true }, 21, 15000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_engine_does_what_the_model_does_in_memory),
		cmocka_unit_test(test_absorbed_records_are_not_missed),
		cmocka_unit_test(test_pages_of_4096_bytes),
		cmocka_unit_test(test_the_engine_does_what_the_model_does_on_flash),
		cmocka_unit_test(test_a_device_that_is_merged_all_the_time_keeps_what_it_has),
		cmocka_unit_test(test_a_device_that_runs_full_keeps_what_it_has),
		cmocka_unit_test(test_partitions_that_come_and_go_keep_what_is_shown_of_them),
		cmocka_unit_test(test_they_do_so_on_a_device_that_is_merged_all_the_time),
	};

	return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
