/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A device grows, empty, full, in the middle of anything: every version of every record is there as
 * before, and there is more space.
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
#include <unistd.h>

#include "common/bytes.h"
#include "common/log.h"
#include "engine/muninn/store.h"
#include "nand/format.h"
#include "tests/engine/flush_now.h"
#include "tests/engine/index_under_test.h"
#include "tests/engine/muninn/muninn_model.h"
#include "tests/engine/small_flash.h"

/* 200 segments, large enough that their roots can speak of some thousands. */
enum { BLOCKS = 1600, SEGMENT_PAGES = 64, BLOCK_BYTES = 8 * 512 };

static const struct nand_geometry first_shape = SMALL_FLASH(BLOCKS);

/* A device in a file, in the host's memory where there is some, and its model. */
struct scene {
	struct model *model;
	enum nand_backend_kind backend;
	char folder[32], image[64], nvram[80], grown[96];
};

static void discard_line(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void open_nand(struct scene *scene)
{
	const struct nand_options options = { .backend = scene->backend };
	struct error_text error = { "" };

	if (nand_open_with(scene->image, &options, &scene->model->nand, &error))
		fail_msg("%s", error.text);
}

static struct scene *begin_with(enum nand_backend_kind backend, uint32_t segment_pages)
{
	const char *parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	struct scene *scene = calloc(1, sizeof(*scene));
	struct engine_options options = model_options;
	struct error_text error = { "" };
	uint64_t nvram_bytes;

	assert_non_null(scene);
	scene->model = calloc(1, sizeof(*scene->model));
	assert_non_null(scene->model);
	scene->model->random = 1;
	scene->backend = backend;
	snprintf(scene->folder, sizeof(scene->folder), "%s/muninn-grow-XXXXXX", parent);
	assert_non_null(mkdtemp(scene->folder));
	snprintf(scene->image, sizeof(scene->image), "%s/image", scene->folder);
	snprintf(scene->nvram, sizeof(scene->nvram), "%s.nvram", scene->image);
	snprintf(scene->grown, sizeof(scene->grown), "%s.grown", scene->nvram);
	options.muninn.index = index_under_test();
	options.muninn.segment_pages = segment_pages;
	if (engine_nvram_bytes(&first_shape, &options, &nvram_bytes, &error) ||
	    nand_create(scene->image, &first_shape, nvram_bytes, &error))
		fail_msg("%s", error.text);
	open_nand(scene);
	model_open_on(scene->model, scene->model->nand, &options);
	return scene;
}

static struct scene *begin(enum nand_backend_kind backend)
{
	return begin_with(backend, SEGMENT_PAGES);
}

static void end(struct scene *scene)
{
	model_close(scene->model);
	unlink(scene->image);
	unlink(scene->nvram);
	assert_int_equal(rmdir(scene->folder), 0); /* so nothing else was left in it */
	free(scene);
}

static void open_store(struct scene *scene)
{
	struct model *model = scene->model;
	struct error_text error = { "" };

	open_nand(scene);
	if (engine_open_records(model->nand, &model->options, &model->store, &error))
		fail_msg("%s", error.text);
	model->store->operations->set_hidden(model->store, &model->hidden);
}

static void close_store(struct scene *scene, bool cleanly)
{
	struct model *model = scene->model;

	model->store->operations->close(model->store, cleanly);
	if (cleanly)
		assert_int_equal(nand_close(model->nand), 0);
	else
		nand_abandon(model->nand);
}

/* Of a device that is closed. */
static int try_to_grow(struct scene *scene, uint64_t blocks, struct error_text *error)
{
	int checked, result;

	open_nand(scene);
	checked = engine_grow_check(scene->model->nand, blocks * BLOCK_BYTES, error);
	result = engine_grow(scene->model->nand, blocks * BLOCK_BYTES, error);
	assert_int_equal(result, checked);
	assert_int_equal(nand_close(scene->model->nand), 0);
	return result;
}

static void grow(struct scene *scene, uint32_t blocks)
{
	struct error_text error = { "" };

	if (try_to_grow(scene, blocks, &error))
		fail_msg("%u blocks: %s", blocks, error.text);
	open_store(scene);
	assert_int_equal(nand_geometry(scene->model->nand)->blocks, blocks);
}

static uint64_t capacity(const struct scene *scene)
{
	return scene->model->store->limits.capacity_bytes;
}

/* Until it is full, or so many transactions have been done. Returns how many. */
static unsigned fill(struct scene *scene, unsigned transactions)
{
	struct model *model = scene->model;
	unsigned done = 0;

	while (done < transactions && model_transaction(model, model_below(model, 20) != 0, false))
		done++;
	return done;
}

/* Until not even small transactions of any row have room. */
static unsigned fill_up(struct scene *scene)
{
	unsigned done = 0, refused = 0;

	while (refused < 50) {
		if (model_transaction(scene->model, true, false))
			done++;
		else
			refused++;
	}
	return done;
}

static void check(struct scene *scene)
{
	struct model *model = scene->model;
	uint64_t bound = 0;

	model_check_all(model);
	for (uint32_t number = 0; number < MODEL_KEYS; number += 7) {
		const struct model_history *history = &model->keys[number];

		if (number >= 10)
			model_check_versions(model, number, RECORD_NEWEST);
		if (!history->count)
			continue;
		bound = history->versions[history->count / 2].sequence;
		model_check_key(model, 10 + model_below(model, MODEL_KEYS - 10), bound);
	}
	assert_int_equal(model_check_run(model, model_key(20), 130, bound), 0);
}

static void say_finding(void *context, const struct finding *finding)
{
	(void)context;
	fail_msg("%s", finding->text);
}

static void pass_over_record(void *context, const struct record_key *key,
			     const struct record_info *info)
{
	(void)context;
	(void)key;
	(void)info;
}

static void pass_over_progress(void *context, uint64_t done, uint64_t total)
{
	(void)context;
	(void)done;
	(void)total;
}

/* Nothing is wrong with all that is stored. */
static void examine(struct scene *scene)
{
	struct findings findings = { .take = say_finding };
	struct record_check look = { .findings = &findings,
				     .record = pass_over_record,
				     .progress = pass_over_progress };
	struct record_store *store = scene->model->store;

	assert_int_equal(store->operations->check(store, &look), 0);
	assert_true(look.segments > 0);
}

/* ---- */

static void test_a_full_device_takes_more_when_it_has_grown(void **state)
{
	(void)state;
	for (int backend = NAND_BACKEND_MMAP; backend <= NAND_BACKEND_FILE; backend++) {
		struct scene *scene = begin((enum nand_backend_kind)backend);
		const uint32_t sizes[] = { BLOCKS + 100, 2 * BLOCKS, 7 * BLOCKS };
		unsigned at_first = fill_up(scene), more = 0;
		uint64_t before = capacity(scene);

		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			close_store(scene, i % 2);
			grow(scene, sizes[i]);
			assert_true(capacity(scene) > before);
			check(scene);
			more = fill_up(scene);
			assert_true(more > at_first / 20);
			check(scene);
			before = capacity(scene);
		}
		/* From twice to seven times the size: five times as much goes in. */
		assert_true(more > 4 * at_first);
		model_crash(scene->model);
		check(scene);
		examine(scene);
		end(scene);
	}
}

static void test_an_empty_device_grows(void **state)
{
	struct scene *scene = begin(NAND_BACKEND_MMAP);

	(void)state;
	close_store(scene, true);
	grow(scene, 2 * BLOCKS);
	check(scene);
	assert_true(fill(scene, 3000) == 3000);
	check(scene);
	end(scene);
}

/* Buffers, growing groups, aborted numbers, half of a transaction: all moves as it is. */
static void test_what_a_crash_left_is_recovered_after_the_growth(void **state)
{
	struct scene *scene = begin(NAND_BACKEND_MMAP);
	uint32_t blocks = BLOCKS;

	(void)state;
	for (unsigned round = 0; round < 30; round++) {
		const struct record_store_operations *operations;

		fill(scene, 20 + model_below(scene->model, 60));
		if (round % 3 == 0)
			assert_int_equal(flush_now(scene->model->store), 0);
		operations = scene->model->store->operations;
		/* Cut off in the middle of a transaction. */
		if (round % 2) {
			struct record_key key = model_key(model_below(scene->model, MODEL_KEYS));
			uint8_t value[100] = { 1 };

			operations->begin(scene->model->store, scene->model->next);
			operations->put(scene->model->store, &key, 1, 0, value, sizeof(value),
					false);
		}
		close_store(scene, false);
		blocks += 1 + model_below(scene->model, 200);
		grow(scene, blocks);
		check(scene);
	}
	end(scene);
}

static void test_a_growth_whose_last_step_did_not_happen_counts(void **state)
{
	struct scene *scene = begin(NAND_BACKEND_MMAP);
	struct error_text error = { "" };
	char kept[96];

	(void)state;
	fill(scene, 1500);
	close_store(scene, false);
	snprintf(kept, sizeof(kept), "%s.kept", scene->nvram);
	assert_int_equal(link(scene->nvram, kept), 0);
	assert_int_equal(try_to_grow(scene, 3 * BLOCKS, &error), 0);
	assert_int_equal(rename(scene->nvram, scene->grown), 0);
	assert_int_equal(rename(kept, scene->nvram), 0);
	open_store(scene);
	assert_int_equal(nand_geometry(scene->model->nand)->blocks, 3 * BLOCKS);
	check(scene);
	end(scene);
}

/* How many keys are found; each as some version of it was. */
static uint32_t count_found(struct scene *scene)
{
	struct model *model = scene->model;
	uint8_t value[MODEL_VALUE_MAX];
	struct record_info info;
	uint32_t found = 0;

	for (uint32_t number = 0; number < MODEL_KEYS; number++) {
		const struct model_history *history = &model->keys[number];
		struct record_key key = model_key(number);
		bool known = false;
		int result = model->store->operations->get(model->store, &key, RECORD_NEWEST, value,
							   sizeof(value), &info);

		if (result == -ENOENT)
			continue;
		assert_int_equal(result, 0);
		for (size_t n = 0; n < history->count && !known; n++)
			known = history->versions[n].sequence == info.sequence &&
				history->versions[n].length == info.length;
		assert_true(known);
		found++;
	}
	return found;
}

/* The last root is from before the growth, or from behind it. */
static void test_without_nvram_a_grown_device_has_what_is_on_flash(void **state)
{
	(void)state;
	for (int written_since = 0; written_since < 2; written_since++) {
		struct scene *scene = begin(NAND_BACKEND_MMAP);
		struct error_text error = { "" };

		fill(scene, 100000);
		close_store(scene, true);
		grow(scene, 3 * BLOCKS);
		if (written_since)
			fill(scene, 2500);
		close_store(scene, true);
		assert_int_equal(unlink(scene->nvram), 0);
		assert_int_equal(nand_create_nvram(scene->image, &error), 0);
		scene->model->options.records.recover_without_nvram = true;
		open_store(scene);
		assert_true(count_found(scene) > MODEL_KEYS / 2);
		assert_int_equal(nand_geometry(scene->model->nand)->blocks, 3 * BLOCKS);
		end(scene);
	}
}

static void test_what_can_t_be_is_refused_and_changes_nothing(void **state)
{
	struct scene *scene = begin(NAND_BACKEND_MMAP);
	struct error_text error = { "" };

	(void)state;
	fill(scene, 500);
	close_store(scene, true);
	assert_int_equal(try_to_grow(scene, BLOCKS, &error), -EINVAL);
	assert_non_null(strstr(error.text, "can only become larger"));
	assert_int_equal(try_to_grow(scene, BLOCKS / 2, &error), -EINVAL);
	assert_int_equal(try_to_grow(scene, BLOCKS * 64 + 1, &error), -EINVAL);
	assert_non_null(strstr(error.text, "can grow to at most"));
	open_store(scene);
	assert_int_equal(nand_geometry(scene->model->nand)->blocks, BLOCKS);
	check(scene);
	end(scene);
}

/* Roots name all segments in use, and their place does not grow. */
static void test_a_device_of_small_segments_grows_as_far_as_its_roots_reach(void **state)
{
	struct scene *scene = begin_with(NAND_BACKEND_MMAP, 8);
	struct error_text error = { "" };

	(void)state;
	close_store(scene, true);
	assert_int_equal(try_to_grow(scene, 40 * BLOCKS, &error), -EINVAL);
	assert_non_null(strstr(error.text, "segments for roots"));
	open_store(scene);
	assert_int_equal(fill(scene, 500), 500);
	check(scene);
	end(scene);
}

/* What says where something is, or how it is read, is that of the device at its creation. */
static void test_places_and_sizes_of_what_is_stored_do_not_follow_the_size(void **state)
{
	const struct engine_options options = { .muninn.index = index_under_test() };

	(void)state;
	for (uint64_t bytes = UINT64_C(64) << 20; bytes <= UINT64_C(1) << 41; bytes *= 2) {
		struct nand_geometry shape = nand_geometry_default(bytes);
		struct muninn_geometry before, grown;
		struct error_text error = { "" };

		assert_int_equal(muninn_geometry_choose(&shape, &options.records, &options.muninn,
							&before, &error),
				 0);
		shape.grown_from = shape.blocks;
		shape.blocks *= NAND_GROWTH_MAX;
		if (muninn_geometry_choose(&shape, &options.records, &options.muninn, &grown,
					   &error))
			fail_msg("%s", error.text);
		assert_int_equal(grown.segments, before.segments * NAND_GROWTH_MAX);
		assert_int_equal(grown.rows, before.rows);
		assert_int_equal(grown.root_segments, before.root_segments);
		assert_int_equal(grown.bloom.tables_expected, before.bloom.tables_expected);
		assert_int_equal(grown.group_bytes, before.group_bytes);
		assert_true(grown.nvram_bytes > before.nvram_bytes);
	}
}

/* NVRAM of the largest device that one of so many blocks grows to; 0: there is no such device. */
static uint64_t most_nvram(uint32_t block_pages, uint32_t segment_pages, uint32_t blocks)
{
	const struct engine_options options = {
		.muninn = { .index = index_under_test(),
			    .rows = 4096,
			    .record_bytes = 64,
			    .segment_pages = segment_pages },
	};
	const struct nand_geometry shape = {
		.page_bytes = MUNINN_PAGE_BYTES_MAX,
		.spare_bytes = 256,
		.pages_per_block = block_pages,
		.channels = 1,
		.dies_per_channel = 1,
		.blocks = (uint32_t)nand_growth_limit(blocks),
		.grown_from = blocks,
	};
	struct muninn_geometry grown;
	struct error_text error;

	return muninn_geometry_choose(&shape, &options.records, &options.muninn, &grown, &error)
		       ? 0
		       : grown.nvram_bytes;
}

/* So no growth fails at that limit. Many rows take the most, and many or large segments. */
static void test_no_device_grows_to_more_nvram_than_an_image_may_have(void **state)
{
	uint64_t most = 0;

	(void)state;
	for (uint32_t block_pages = 8; block_pages <= 1024; block_pages *= 2)
		for (uint32_t pages = block_pages; pages <= MUNINN_SEGMENT_PAGES_MAX; pages *= 2)
			for (uint32_t blocks = 1 << 12; blocks < 1 << 28; blocks *= 2)
				most = max_u64(most, most_nvram(block_pages, pages, blocks));
	assert_in_range(most, UINT64_C(1) << 36, NAND_NVRAM_BYTES_MAX / 16);
}

/* A format makes a device of the grown size. */
static void test_a_grown_device_can_be_formatted(void **state)
{
	struct scene *scene = begin(NAND_BACKEND_MMAP);
	struct error_text error = { "" };
	uint64_t grown;

	(void)state;
	fill(scene, 1000);
	close_store(scene, true);
	grow(scene, 2 * BLOCKS);
	grown = capacity(scene);
	close_store(scene, true);
	open_nand(scene);
	if (engine_format(scene->model->nand, &scene->model->options, &error))
		fail_msg("%s", error.text);
	assert_int_equal(nand_close(scene->model->nand), 0);
	open_store(scene);
	assert_int_equal(capacity(scene), grown);
	assert_int_equal(count_found(scene), 0);
	end(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_full_device_takes_more_when_it_has_grown),
		cmocka_unit_test(test_an_empty_device_grows),
		cmocka_unit_test(test_what_a_crash_left_is_recovered_after_the_growth),
		cmocka_unit_test(test_a_growth_whose_last_step_did_not_happen_counts),
		cmocka_unit_test(test_without_nvram_a_grown_device_has_what_is_on_flash),
		cmocka_unit_test(test_what_can_t_be_is_refused_and_changes_nothing),
		cmocka_unit_test(test_a_device_of_small_segments_grows_as_far_as_its_roots_reach),
		cmocka_unit_test(test_places_and_sizes_of_what_is_stored_do_not_follow_the_size),
		cmocka_unit_test(test_no_device_grows_to_more_nvram_than_an_image_may_have),
		cmocka_unit_test(test_a_grown_device_can_be_formatted),
	};

	log_configure(discard_line, LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
