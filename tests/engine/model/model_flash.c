/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Runs against the model on the record store on flash, with and without power cuts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/log.h"
#include "engine/check.h"
#include "engine/history/past.h"
#include "engine/open.h"
#include "tests/engine/index_under_test.h"
#include "tests/engine/model/model_power.h"
#include "tests/engine/small_flash.h"
#include "tests/repetition.h"

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

void model_start(struct model_run *run, const char *name, uint64_t otherwise_seed,
		 uint64_t operations)
{
	uint64_t seed = setting("MUNINN_SEED", otherwise_seed);

	run->weights = run->restless                                  ? &model_restless
		       : run->power || getenv("MUNINN_HISTORY_OFTEN") ? &model_historic
								      : &model_usual;
	operations = setting("MUNINN_OPERATIONS", rounds(operations));
	printf("%s: %sMUNINN_SEED=%llu MUNINN_OPERATIONS=%llu\n", name, index_setting(),
	       (unsigned long long)seed, (unsigned long long)operations);
	model_run(run, seed, operations);
}

/* The smallest caches, so that records are read again and again. */
const struct engine_options model_flash_options = {
	.muninn.rows = 2,
	.muninn.segment_pages = 8,
	.muninn.record_bytes = 128,
	.onode_cache_entries = 1,
	.directory_cache_nodes = 1,
};

/* ---- looking for damage, where there is none ---- */

static void false_alarm(void *context, const struct finding *finding)
{
	const struct model_run *run = context;

	/* Without power nothing can be read. */
	if (run->power && model_power_is_off(run->power))
		return;
	fail_msg("%s: partition 0x%llx, object 0x%llx: %s", finding_words(finding->kind)->name,
		 (unsigned long long)finding->partition, (unsigned long long)finding->object,
		 finding->text);
}

static void check_for_damage(struct model_run *run, struct engine *engine)
{
	struct findings findings = { .take = false_alarm, .context = run };
	struct engine_check check = { .findings = &findings, .versions = one_in(run, 4) };
	int result;

	if (!run->checked)
		return;
	engine_examine(run->store.context, &findings);
	result = engine_check(engine, &check);
	assert_true(result == 0 || (run->power && model_power_is_off(run->power)));
}

/* ---- the store ---- */

/* As engine_open does, with points between records at which the power may fail. */
struct engine *model_flash_open(struct model_run *run,
				void (*attach)(struct model_run *run, struct record_store *store))
{
	struct error_text error = { "" };
	struct record_store *store;
	struct engine *engine = NULL;
	int result;

	if (run->closed)
		run->closed(run, run->store.context);
	result = engine_open_records(run->store.context, &run->options, &store, &error);

	if (!result && attach)
		attach(run, store);
	if (!result && run->power)
		model_power_attach(run->power, store);
	if (!result)
		result = engine_open_on(store, &run->options, &engine, NULL);
	if (result && !(run->power && model_power_is_off(run->power)))
		fail_msg("%s (error %d)", error.text, result);
	if (!result)
		engine->past->pieces_put_again = MODEL_PIECES_PUT_AGAIN;
	if (!result)
		check_for_damage(run, engine);
	return engine;
}

static struct engine *open_flash(struct model_run *run)
{
	return model_flash_open(run, NULL);
}

static void discard_line(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

struct nand *model_flash_make(const struct model_flash *flash, const struct engine_options *options)
{
	struct nand_geometry geometry = SMALL_FLASH(flash->blocks);
	struct error_text error = { "" };
	struct nand *nand = NULL;
	uint64_t nvram;

	if (flash->spare_bytes)
		geometry.spare_bytes = flash->spare_bytes;
	if (engine_nvram_bytes(&geometry, options, &nvram, &error) ||
	    nand_open_memory(&geometry, nvram, &nand, &error) ||
	    engine_format(nand, options, &error))
		fail_msg("%s", error.text);
	return nand;
}

void model_run_on_flash(const char *name, const struct model_flash *flash, uint64_t seed,
			uint64_t operations)
{
	/* For room, history is given up. */
	struct model_run run = { .store = { .open = open_flash },
				 .options = model_flash_options,
				 .policies = true,
				 .lossy = true,
				 .restless = flash->restless,
				 .times_free = flash->restless,
				 .checked = flash->checked,
				 .closed = flash->closed };
	static const uint8_t first_boot[16];
	struct nand *nand;

	run.options.muninn.index = index_under_test();
	run.options.merge_manual = flash->merge_manual;
	if (flash->segment_pages)
		run.options.muninn.segment_pages = flash->segment_pages;
	if (flash->power_fails)
		run.options.records.boot_id = first_boot;
	nand = model_flash_make(flash, &run.options);
	run.store.context = nand;
	if (flash->power_fails) {
		run.power = model_power_create(nand);
		run.options.records.boot_id = model_power_boot(run.power);
		log_configure(getenv("MUNINN_VERBOSE") ? NULL : discard_line, LOG_LEVEL_ERROR);
	}
	model_start(&run, name, seed, operations);
	if (flash->power_fails) {
		log_configure(NULL, LOG_LEVEL_WARNING);
		model_power_report(run.power);
		model_power_destroy(run.power);
	}
	nand_close(nand);
}
