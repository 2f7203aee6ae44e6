/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Damage to one page of the NVRAM file, while nobody has it open: opening refuses, and says what
 * contradicts what, or everything is as the model says. The page is zeroed, overwritten, has a bit
 * changed, is an older one of the same device, or is exchanged with another one.
 *
 * Each damaged device is opened in a process of its own, which begins with the memory of this one.
 * MUNINN_SEED chooses other devices, MUNINN_DAMAGED how many damaged ones at least.
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
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "tests/engine/muninn/muninn_model.h"
#include "tests/engine/small_flash.h"

enum {
	PAGE = 4096,
	COPIES = 6, /* earlier states of the NVRAM: some old ones, some from the end */
	TRANSACTIONS_MAX = 6000,
	MEMO = 12345,
};

/* How a device comes to its end. */
enum ending {
	CLOSED,
	CLOSED_AND_REBOOTED,
	KILLED,
	KILLED_IN_TRANSACTION,
	ENDINGS,
	HOST_FAILED = ENDINGS, /* some transactions after a flush */
};

enum damage {
	ZEROED,
	OVERWRITTEN,
	BIT_CHANGED,
	EXCHANGED,
	OLDER, /* and so many more, one for each copy */
	NONE = OLDER + COPIES,
};

/* What became of a damaged device. */
enum outcome {
	UNCHANGED = 1, /* the damage left all bytes as they were */
	REFUSED,
	WHOLE,
	OUTCOMES,
};

struct scene {
	struct model *model;
	struct sealers sealers;
	uint8_t boot[16];
	struct muninn_geometry geometry;
	uint8_t *nvram;
	uint64_t bytes;
	enum ending ending;
	uint8_t *copies[COPIES];
	uint64_t flushed; /* up to which number */
	uint64_t merged;  /* up to which number; then only the present can be compared */
};

static const struct nand_geometry flash = SMALL_FLASH(3000);

/* ---- a device with a past ---- */

static uint32_t keep_newest(void *context, const struct record_key *key,
			    const struct record_info *info, uint64_t *bounds, uint32_t max)
{
	(void)context;
	(void)key;
	(void)info;
	if (max)
		bounds[0] = RECORD_NEWEST;
	return 1;
}

static void merge_some(struct scene *scene)
{
	const struct record_keep keep = { .context = scene, .bounds = keep_newest };
	struct record_merge merge = { .live_permille_max = 1000 };
	struct model *model = scene->model;

	for (uint32_t n = 1 + model_below(model, 5); n > 0; n--)
		model->store->operations->merge(model->store, &keep, &merge);
	scene->merged = model->sequence;
}

static void take_copy(struct scene *scene, uint32_t n)
{
	memcpy(scene->copies[n], scene->nvram, scene->bytes);
}

/* To the end of a slot, from the last merge on, which keeps nothing older. */
static void roll_back(struct scene *scene)
{
	struct model *model = scene->model;
	uint64_t slots = (model->sequence - scene->merged) / RECORD_SLOT;
	uint64_t to;

	if (!slots || model->rollback_count == MODEL_ROLLBACKS_MAX)
		return;
	to = (model->sequence / RECORD_SLOT - model_random(model) % slots) * RECORD_SLOT - 1;
	model_roll_back(model, (uint16_t)model_below(model, 3), to);
}

static void flush(struct scene *scene)
{
	const struct record_store_operations *operations = scene->model->store->operations;

	assert_int_equal(operations->flush(scene->model->store,
					   operations->flush_begin(scene->model->store)),
			 0);
	scene->flushed = scene->model->sequence;
}

/* One transaction, and what may happen beside it. */
static bool step(struct scene *scene, bool merges)
{
	struct model *model = scene->model;
	uint32_t dice = model_below(model, 200);
	bool room = model_transaction(model, dice >= 10, dice < 2);

	if (dice == 20)
		model_crash(model);
	if (dice == 21 || dice == 22)
		flush(scene);
	if (dice == 23)
		model_end_slot(model);
	if (dice == 24)
		roll_back(scene);
	if (dice == 25 && merges)
		merge_some(scene);
	return room;
}

static void end(struct scene *scene, enum ending ending)
{
	struct model *model = scene->model;
	const struct record_store_operations *operations = model->store->operations;

	if (ending == KILLED_IN_TRANSACTION) {
		struct model_version version = model_new_version(model, 15, 0);
		struct record_key key = model_key(15);
		uint8_t value[MODEL_VALUE_MAX] = { 1 };

		operations->begin(model->store, model->next);
		for (int n = 0; n < 5; n++, key.piece++)
			if (operations->put(model->store, &key, 0, 0, value, version.length,
					    RECORD_ROOM_WRITE))
				break;
	}
	if (ending == HOST_FAILED) {
		flush(scene);
		for (uint32_t n = model_below(model, 30); n > 0; n--)
			model_transaction(model, true, false);
	}
	assert_int_equal(operations->close(model->store, ending <= CLOSED_AND_REBOOTED), 0);
	if (ending == CLOSED_AND_REBOOTED || ending == HOST_FAILED)
		scene->boot[0]++;
}

static void begin_scene(struct scene *scene, uint64_t seed)
{
	struct engine_options options = model_options;

	*scene = (struct scene){ .model = calloc(1, sizeof(*scene->model)) };
	assert_non_null(scene->model);
	scene->model->random = seed;
	options.records.boot_id = scene->boot;
	if (seed % 3 == 1)
		options.muninn.bloom.hot_rows = BLOOM_HOT_ROWS_SPREAD;
	if (seed % 2)
		scene->model->sealers = &scene->sealers;
	scene->sealers.random = seed;
	model_open(scene->model, &flash, &options);
	scene->nvram = nand_nvram(scene->model->nand, &scene->bytes);
	scene->geometry = ((struct muninn_store *)(void *)scene->model->store)->geometry;
	for (uint32_t n = 0; n < COPIES; n++) {
		scene->copies[n] = malloc(scene->bytes);
		assert_non_null(scene->copies[n]);
		take_copy(scene, n);
	}
	scene->model->store->operations->set_memo(scene->model->store, MEMO);
}

static void make_scene(struct scene *scene, uint64_t seed, enum ending ending)
{
	uint32_t transactions, copied = 1;

	begin_scene(scene, seed);
	transactions = 1 + model_below(scene->model,
				       model_below(scene->model, 4) ? TRANSACTIONS_MAX : 200);
	for (uint32_t n = 0; n < transactions; n++) {
		if (n + 1 == transactions)
			take_copy(scene, COPIES - 1);
		else if (n + 10 == transactions)
			take_copy(scene, COPIES - 2);
		else if (model_below(scene->model, transactions / 4 + 1) == 0)
			take_copy(scene, copied = 1 + copied % (COPIES - 3));
		if (!step(scene, seed % 4 >= 2))
			break;
	}
	scene->ending = ending;
	end(scene, ending);
}

static void end_scene(struct scene *scene)
{
	assert_int_equal(nand_close(scene->model->nand), 0);
	for (uint32_t number = 0; number < MODEL_KEYS; number++)
		free(scene->model->keys[number].versions);
	for (uint32_t n = 0; n < COPIES; n++)
		free(scene->copies[n]);
	free(scene->model);
}

/* ---- damage ---- */

/* False: no byte has changed. */
static bool damage_page(struct scene *scene, uint32_t page, uint32_t damage)
{
	uint8_t *at = scene->nvram + (uint64_t)page * PAGE, before[PAGE];
	uint32_t pages = (uint32_t)(scene->bytes / PAGE);
	struct model *model = scene->model;
	uint32_t other = model_below(model, pages);

	memcpy(before, at, PAGE);
	if (damage == ZEROED) {
		memset(at, 0, PAGE);
	} else if (damage == OVERWRITTEN) {
		for (uint32_t n = 0; n < PAGE; n++)
			at[n] = (uint8_t)model_random(model);
	} else if (damage == BIT_CHANGED) {
		at[model_below(model, PAGE)] ^= (uint8_t)(1 << model_below(model, 8));
	} else if (damage == EXCHANGED) {
		memcpy(at, scene->nvram + (uint64_t)other * PAGE, PAGE);
		memcpy(scene->nvram + (uint64_t)other * PAGE, before, PAGE);
	} else if (damage < NONE) {
		memcpy(at, scene->copies[damage - OLDER] + (uint64_t)page * PAGE, PAGE);
	}
	return damage == NONE || memcmp(before, at, PAGE) != 0;
}

static void check_device(struct scene *scene)
{
	struct model *model = scene->model;

	assert_int_equal(model->store->operations->memo(model->store), MEMO);
	if (scene->ending == HOST_FAILED) {
		for (uint32_t number = 0; number < MODEL_KEYS; number++)
			model_check_key(model, number, scene->flushed);
		return;
	}
	model_check_all(model);
	for (uint32_t number = 10; number < MODEL_KEYS && !scene->merged; number += 7)
		model_check_versions(model, number, RECORD_NEWEST);
}

/* Who is refused can put the right file back, or try again: nothing has changed. */
static void check_unchanged(const struct scene *scene, const uint8_t *before)
{
	assert_true(scene->ending == HOST_FAILED ||
		    memcmp(before, scene->nvram, scene->bytes) == 0);
}

static enum outcome open_damaged(struct scene *scene)
{
	uint8_t *before = malloc(scene->bytes);
	struct error_text error = { "" };
	struct model *model = scene->model;

	assert_non_null(before);
	memcpy(before, scene->nvram, scene->bytes);
	if (engine_open_records(model->nand, &model->options, &model->store, &error)) {
		assert_true(strstr(error.text, "nvram") || strstr(error.text, "NVRAM"));
		check_unchanged(scene, before);
		return REFUSED;
	}
	if (model->sealers)
		sealers_forget(model->sealers);
	model->store->operations->set_hidden(model->store, &model->hidden);
	check_device(scene);
	if (scene->ending == HOST_FAILED)
		return WHOLE;
	/* Nor does it come out later. */
	for (uint32_t n = model_below(model, 4) ? 0 : 200; n > 0; n--)
		model_transaction(model, true, false);
	model_crash(model);
	check_device(scene);
	return WHOLE;
}

/* In a process of its own. */
static enum outcome try_damage(struct scene *scene, uint64_t seed, uint32_t page, uint32_t damage)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		/* What fails ends the process, with the signal that tells. */
		setenv("CMOCKA_TEST_ABORT", "1", 1);
		scene->model->random = seed * 1000003 + page * 131 + damage;
		_exit(damage_page(scene, page, damage) ? (int)open_damaged(scene) : UNCHANGED);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) > 0 && WEXITSTATUS(status) < OUTCOMES)
		return (enum outcome)WEXITSTATUS(status);
	fail_msg("MUNINN_SEED=%llu: page %u, damage %u: wrong data, or the end (status %#x)",
		 (unsigned long long)seed, page, damage, (unsigned)status);
	return UNCHANGED;
}

static void quiet(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

/*
 * After a failure of the host pages need not fit together. So only damage to row buffers is told:
 * of their headers, when the page is no such thing; of records, all that a flush had promised.
 */
static bool is_told_after_failure(const struct scene *scene, uint32_t page, uint32_t damage)
{
	const struct muninn_geometry *geometry = &scene->geometry;
	uint64_t at = (uint64_t)page * PAGE;

	if (at < geometry->buffers_at || at >= geometry->groups_at)
		return false;
	return (at - geometry->buffers_at) % geometry->buffer_bytes < geometry->slots_at
		       ? damage <= OVERWRITTEN
		       : damage != EXCHANGED;
}

/* Damages pages of one device, every `stride`-th combination. Adds up what became of them. */
static void damage_device(uint64_t seed, enum ending ending, uint32_t stride,
			  uint64_t counts[OUTCOMES])
{
	struct scene scene;

	make_scene(&scene, seed, ending);
	uint32_t pages = (uint32_t)(scene.bytes / PAGE), damages = NONE;

	assert_int_equal(try_damage(&scene, seed, 0, NONE), WHOLE);
	for (uint32_t n = (uint32_t)seed % stride; n < pages * damages; n += stride)
		if (ending != HOST_FAILED ||
		    is_told_after_failure(&scene, n / damages, n % damages))
			counts[try_damage(&scene, seed, n / damages, n % damages)]++;
	print_message("seed %llu: %u pages, ending %d: %llu refused, %llu whole in all\n",
		      (unsigned long long)seed, pages, (int)ending,
		      (unsigned long long)counts[REFUSED], (unsigned long long)counts[WHOLE]);
	end_scene(&scene);
}

static void test_a_damaged_page_is_refused_or_gives_what_the_model_says(void **state)
{
	uint64_t wanted = model_setting("MUNINN_DAMAGED", 400);
	uint64_t seed = model_setting("MUNINN_SEED", 1), counts[OUTCOMES] = { 0 };
	uint32_t stride = wanted > 400 ? 1 : 11;

	(void)state;
	log_configure(quiet, LOG_LEVEL_ERROR);
	for (uint64_t first = seed;
	     seed < first + 2 * ENDINGS || counts[REFUSED] + counts[WHOLE] < wanted; seed++)
		damage_device(seed, seed % ENDINGS, stride, counts);
	log_configure(NULL, LOG_LEVEL_INFO);
	assert_true(counts[REFUSED] && counts[WHOLE]);
}

static void test_after_a_failure_of_the_host_what_was_flushed_is_there_or_is_refused(void **state)
{
	uint64_t wanted = model_setting("MUNINN_DAMAGED", 400) / 4;
	uint64_t seed = model_setting("MUNINN_SEED", 1), counts[OUTCOMES] = { 0 };

	(void)state;
	log_configure(quiet, LOG_LEVEL_ERROR);
	for (; counts[REFUSED] + counts[WHOLE] < wanted; seed++)
		damage_device(seed, HOST_FAILED, wanted > 100 ? 1 : 11, counts);
	log_configure(NULL, LOG_LEVEL_INFO);
	assert_true(counts[REFUSED] && counts[WHOLE]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_after_a_failure_of_the_host_what_was_flushed_is_there_or_is_refused),
		cmocka_unit_test(test_a_damaged_page_is_refused_or_gives_what_the_model_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
