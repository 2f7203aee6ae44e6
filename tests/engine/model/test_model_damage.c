/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Devices in random states, whose flash and NVRAM are damaged while nobody has them open, opened
 * and salvaged: nothing crashes, and what the copy holds is what the model says, but for what the
 * findings name. Each damaged device is a process of its own, which begins with the memory of this
 * one.
 *
 * MUNINN_SEED chooses other devices, MUNINN_DAMAGED how many damaged ones. MUNINN_DAMAGE repeats
 * the one with the number that a failure says, MUNINN_VERBOSE prints the findings of each.
 *
 * Runs for each index.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/log.h"
#include "engine/salvage.h"
#include "nand/private.h"
#include "nand/salvage.h"
#include "tests/engine/index_under_test.h"
#include "tests/engine/model/model_findings.h"

enum {
	DAMAGES_EACH = 12, /* of a device whenever it is closed */
	NVRAM_PAGE_BYTES = 4096,
};

/* What became of a damaged device. */
enum outcome {
	REFUSED = 1,
	NOTHING_FOUND, /* the damage is where nothing refers to */
	NOTHING_LOST,
	LOST_IN_PART,   /* named objects and partitions */
	LIST_OLDER,     /* the list of partitions may be, or is damaged */
	ROLLBACKS_LOST, /* the newest ones may be: not compared */
	OLDER,          /* all of it may be: not compared */
	OUTCOMES,
};

static uint64_t counts[OUTCOMES], wanted;

/* ---- damage ---- */

static void damage_bytes(struct model_run *run, uint8_t *at, uint64_t bytes)
{
	switch (model_run_below(run, 3)) {
	case 0:
		memset(at, 0, bytes);
		break;
	case 1:
		for (uint64_t n = 0; n < bytes; n++)
			at[n] = (uint8_t)model_run_below(run, 256);
		break;
	default:
		at[model_run_below(run, bytes)] ^= (uint8_t)(1 << model_run_below(run, 8));
	}
}

static void damage_nvram(struct model_run *run, struct nand *nand)
{
	uint64_t bytes;
	uint8_t *nvram = nand_nvram(nand, &bytes);
	uint64_t pages = bytes / NVRAM_PAGE_BYTES;

	if (one_in(run, 20))
		memset(nvram, 0, bytes);
	else
		damage_bytes(run, nvram + model_run_below(run, pages) * NVRAM_PAGE_BYTES,
			     NVRAM_PAGE_BYTES);
}

/* A page that has been programmed, if a few tries find one. */
static uint64_t some_page(struct model_run *run, struct nand *nand)
{
	const struct nand_geometry *geometry = nand_geometry(nand);
	uint64_t page = 0;

	for (int tries = 0; tries < 100; tries++) {
		struct nand_block_info info;
		uint32_t block = (uint32_t)model_run_below(run, geometry->blocks);

		if (nand_block_info(nand, block, &info) == 0 && info.next_page) {
			page = (uint64_t)block * geometry->pages_per_block +
			       model_run_below(run, info.next_page);
			break;
		}
	}
	return page;
}

static void damage_flash(struct model_run *run, struct nand *nand)
{
	const struct nand_geometry *geometry = nand_geometry(nand);
	uint64_t page = some_page(run, nand);
	uint8_t *at = nand->pages.at + nand_page_offset(&nand->layout, geometry, page) -
		      nand->layout.data_offset;

	if (one_in(run, 6))
		damage_bytes(run, nand->table.at + page / geometry->pages_per_block * 8, 8);
	else
		damage_bytes(run, at, geometry->page_bytes + geometry->spare_bytes);
}

static void damage(struct model_run *run, struct nand *nand)
{
	for (uint64_t n = 1 + (one_in(run, 3) ? model_run_below(run, 6) : 0); n > 0; n--)
		if (one_in(run, 2))
			damage_nvram(run, nand);
		else
			damage_flash(run, nand);
}

/* ---- one damaged device ---- */

static struct engine *make_copy(const struct nand *from, const struct engine *engine,
				struct nand **nand)
{
	struct engine_options options = { 0 };
	struct error_text error = { "" };
	struct engine *copy = NULL;
	uint64_t bytes;

	engine_formatted_options(engine, &options);
	if (engine_nvram_bytes(nand_geometry(from), &options, &bytes, &error) ||
	    nand_open_memory(nand_geometry(from), bytes, nand, &error) ||
	    engine_format(*nand, &options, &error) || engine_open(*nand, &options, &copy, &error))
		fail_msg("%s", error.text);
	return copy;
}

static enum outcome outcome_of(const struct model_findings *found)
{
	enum outcome outcome = found->count ? NOTHING_LOST : NOTHING_FOUND;

	for (uint32_t n = 0; n < found->count; n++)
		if (finding_words(found->list[n].kind)->is_loss)
			outcome = LOST_IN_PART;
	if (model_findings_say(found, MODEL_ALL_OLDER))
		return OLDER;
	if (model_findings_say(found, MODEL_NO_ROLLBACKS))
		return ROLLBACKS_LOST;
	return model_findings_say(found, MODEL_OLDER_LIST) ? LIST_OLDER : outcome;
}

static enum outcome salvage(struct model_run *run, struct nand *nand)
{
	struct model_findings found;
	struct findings findings = { .take = model_findings_take, .context = &found };
	struct engine_options options = run->options;
	struct engine_salvage work = { .check = { .findings = &findings } };
	struct error_text error = { "" };
	struct engine *engine, *copy;
	struct nand *to;
	int result;

	model_findings_create(&found);
	options.records.salvage = &findings;
	options.merge_manual = true;
	nand->violation_policy = NAND_VIOLATION_FAILS;
	nand_mend_blocks(nand, &findings);
	engine_examine(nand, &findings);
	if (engine_open(nand, &options, &engine, &error)) {
		assert_true(error.text[0]);
		if (getenv("MUNINN_VERBOSE"))
			printf("  refused: %s\n", error.text);
		return REFUSED;
	}
	copy = make_copy(nand, engine, &to);
	result = engine_salvage(engine, copy, &work);
	if (result == -EBADMSG)
		return REFUSED;
	assert_int_equal(result, 0);
	model_findings_compare(run, copy, &found);
	engine_abandon(engine);
	engine_abandon(copy);
	return outcome_of(&found);
}

/* In a process of its own. */
static void try_one(struct model_run *run, struct nand *nand)
{
	uint64_t seed = model_run_below(run, UINT64_MAX);
	const char *only = getenv("MUNINN_DAMAGE");
	int status;
	pid_t child;

	if (only && strtoull(only, NULL, 0) != seed) {
		counts[0]++;
		return;
	}
	child = fork();
	if (child == 0) {
		/* What fails ends the process, with the signal that tells. */
		setenv("CMOCKA_TEST_ABORT", "1", 1);
		run->random = seed;
		if (getenv("MUNINN_VERBOSE"))
			printf("damage %llu\n", (unsigned long long)seed);
		damage(run, nand);
		_exit((int)salvage(run, nand));
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFEXITED(status) || !WEXITSTATUS(status) || WEXITSTATUS(status) >= OUTCOMES)
		fail_msg("%sMUNINN_SEED=%s MUNINN_DAMAGE=%llu: wrong data, or the end (status %#x)",
			 index_setting(), getenv("MUNINN_SEED"), (unsigned long long)seed,
			 (unsigned)status);
	counts[WEXITSTATUS(status)]++;
}

static uint64_t tried(void)
{
	uint64_t sum = 0;

	for (int outcome = 0; outcome < OUTCOMES; outcome++)
		sum += counts[outcome];
	return sum;
}

static void damage_some(struct model_run *run, struct nand *nand)
{
	uint64_t random = run->random;

	/* Not before the first opening. */
	if (!run->buffer)
		return;
	for (int n = 0; n < DAMAGES_EACH && tried() < wanted; n++)
		try_one(run, nand);
	/* The run goes on as without it. */
	run->random = random;
}

static void quiet(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

/* One run after the other, each with a seed of its own, until enough devices have been damaged. */
static void run_damaged(const char *name, struct model_flash flash, uint64_t otherwise_seed)
{
	const char *given = getenv("MUNINN_SEED");
	uint64_t first = setting("MUNINN_SEED", otherwise_seed);
	bool repeats = getenv("MUNINN_DAMAGE");

	/* The one to be repeated may be any of its seed. */
	wanted = repeats ? UINT64_MAX : setting("MUNINN_DAMAGED", 320) / 5;
	memset(counts, 0, sizeof(counts));
	flash.closed = damage_some;
	if (!repeats)
		log_configure(quiet, LOG_LEVEL_ERROR);
	for (uint64_t seed = first; tried() < wanted && (!repeats || seed == first); seed++) {
		char text[24];

		snprintf(text, sizeof(text), "%llu", (unsigned long long)seed);
		setenv("MUNINN_SEED", text, 1);
		model_run_on_flash(name, &flash, seed, 6000);
	}
	log_configure(NULL, LOG_LEVEL_WARNING);
	if (given) {
		char text[24];

		snprintf(text, sizeof(text), "%llu", (unsigned long long)first);
		setenv("MUNINN_SEED", text, 1);
	} else {
		unsetenv("MUNINN_SEED");
	}
	printf("%s: %llu damaged devices: %llu refused, %llu without a finding, %llu without "
	       "loss, %llu with named losses, %llu with an older list of partitions, %llu without "
	       "the newest rollbacks, %llu as they were before\n",
	       name, (unsigned long long)tried(), (unsigned long long)counts[REFUSED],
	       (unsigned long long)counts[NOTHING_FOUND], (unsigned long long)counts[NOTHING_LOST],
	       (unsigned long long)counts[LOST_IN_PART], (unsigned long long)counts[LIST_OLDER],
	       (unsigned long long)counts[ROLLBACKS_LOST], (unsigned long long)counts[OLDER]);
}

static void test_what_is_salvaged_of_a_roomy_device_is_right_or_named(void **state)
{
	(void)state;
	run_damaged("roomy", (struct model_flash){ .blocks = 3000 }, 1);
}

static void test_what_is_salvaged_of_a_merged_device_is_right_or_named(void **state)
{
	(void)state;
	run_damaged("merged", (struct model_flash){ .blocks = 500 }, 2);
}

static void test_what_is_salvaged_of_a_full_device_is_right_or_named(void **state)
{
	(void)state;
	run_damaged("full", (struct model_flash){ .blocks = 900, .merge_manual = true }, 3);
}

static void test_what_is_salvaged_of_clones_is_right_or_named(void **state)
{
	(void)state;
	run_damaged("clones", (struct model_flash){ .blocks = 1500, .restless = true }, 4);
}

/* As on devices of real size, a key has a place on some pages only, and parity makes up for some.
 */
static void test_what_is_salvaged_of_large_segments_is_right_or_named(void **state)
{
	(void)state;
	run_damaged("large segments",
		    (struct model_flash){ .blocks = 4000, .segment_pages = 64, .spare_bytes = 256 },
		    5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_salvaged_of_a_roomy_device_is_right_or_named),
		cmocka_unit_test(test_what_is_salvaged_of_a_merged_device_is_right_or_named),
		cmocka_unit_test(test_what_is_salvaged_of_a_full_device_is_right_or_named),
		cmocka_unit_test(test_what_is_salvaged_of_clones_is_right_or_named),
		cmocka_unit_test(test_what_is_salvaged_of_large_segments_is_right_or_named),
	};

	/* In whole lines, from whatever process. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests_name("model, damaged", tests, NULL, NULL);
}
