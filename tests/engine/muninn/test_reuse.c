/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * No segment of flash is written again while NVRAM on the host's storage, or the last root on
 * flash, names it. Merges go on in pieces. Behind every piece sealing threads take all segments
 * that are free, and then the host fails, or the NVRAM is lost.
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

#include "common/log.h"
#include "engine/muninn/directory.h"
#include "engine/muninn/merge_run.h"
#include "engine/muninn/roots.h"
#include "engine/muninn/row.h"
#include "nand/power.h"
#include "tests/engine/flush_now.h"
#include "tests/engine/lost_page.h"
#include "tests/engine/muninn/losses.h"
#include "tests/engine/small_flash.h"

enum {
	GROUPS = 4,
	ENTRIES = 15,
	SEEDS = 4,
	PIECES_MAX = 200,
	MIXTURES = 3,
	OPERATIONS_MAX = 10000,
	ROUNDS_MAX = 6,
	MERGES = 50 /* as many as take all that is sealed */
};

static const struct nand_geometry nand = SMALL_FLASH_WITH_SPARE(2400, 256);

static const uint8_t boots[2][16] = { { 1 }, { 2 } };

static const struct engine_options options = {
	.records.boot_id = boots[0],
	.muninn = { .rows = 2, .segment_pages = 16, .record_bytes = 128, .parity = 1 },
};

static const struct record_keep keep_present = { .bounds = NULL };

/* Of what was written over although something named it. */
static uint32_t complaints;

static void count_lines(enum log_level level, const char *line)
{
	(void)level;
	complaints += strstr(line, "is made again from its") || strstr(line, "is damaged") ||
		      strstr(line, "is not what the index says");
}

/* A device with so many complete groups in its rows, of which little is still needed. */
static struct model *make_with(uint32_t segment_pages, uint32_t groups, uint64_t seed)
{
	struct engine_options own = options;
	struct model *model = calloc(1, sizeof(*model));

	assert_non_null(model);
	log_configure(count_lines, LOG_LEVEL_WARNING);
	complaints = 0;
	print_message("seed %llu\n", (unsigned long long)seed);
	model->random = seed;
	own.muninn.segment_pages = segment_pages;
	model_open(model, &nand, &own);
	while (directory_used(inside(model)) < groups)
		assert_true(model_transaction(model, true, false));
	for (uint32_t n = 0; n < 100; n++)
		assert_true(model_transaction(model, true, false));
	return model;
}

static struct model *make(uint64_t seed)
{
	return make_with(16, GROUPS, seed);
}

static void end(struct model *model)
{
	assert_int_equal(complaints, 0);
	model_close(model);
	log_configure(NULL, LOG_LEVEL_INFO);
}

/* As threads do that seal: all that is free is erased, and written in part. */
static void take_all_that_is_free(struct model *model)
{
	struct muninn_store *store = inside(model);
	uint8_t data[512] = { 0 }, spare[256] = { 0 };
	uint32_t segment;

	while (space_take(&store->space, &segment) == 0) {
		const struct nand_page_io io = { .page = segment_page(&store->geometry, segment),
						 .data = data,
						 .spare = spare };

		assert_int_equal(nand_program(model->nand, NAND_CAUSE_USER, &io, 1), 0);
	}
}

/* Merges so many pieces, or until all is done. Whether there is more to do. */
static bool merge_on(struct model *model, struct record_merge *merge, uint32_t pieces)
{
	const struct record_store_operations *operations = model->store->operations;
	int result = 1;

	for (uint32_t n = 0; n < pieces && result == 1; n++) {
		if (n)
			operations->merge_run(model->store);
		result = operations->merge_step(model->store, &keep_present, merge);
	}
	assert_true(result == 0 || result == 1 || result == -EAGAIN);
	return result == 1;
}

static bool merge_in_part(struct model *model, uint32_t pieces)
{
	struct record_merge merge = { .segments_wanted = 8, .live_permille_max = 1000 };

	return merge_on(model, &merge, pieces);
}

/* ---- the host fails ---- */

static void arm(struct model *model, enum nand_cut_nvram nvram, uint64_t seed)
{
	const struct nand_power_cut cut = { .after = OPERATIONS_MAX, .nvram = nvram, .seed = seed };
	struct error_text error;

	if (nand_arm_power_cut(model->nand, &cut, &error))
		fail_msg("%s", error.text);
}

static bool is_off(struct model *model)
{
	struct nand_power_status status;

	nand_power_status(model->nand, &status);
	return status.off;
}

static void fail_host(struct model *model)
{
	for (uint32_t point = 0; !is_off(model) && point <= OPERATIONS_MAX; point++)
		nand_power_point(model->nand);
	assert_true(is_off(model));
	assert_int_equal(nand_power_on(model->nand), 0);
	model->options.records.boot_id = model->options.records.boot_id == boots[0] ? boots[1]
										    : boots[0];
}

/* The host fails behind so many pieces of a merge. Whether there was more to do. */
static bool fail_behind(struct model *model, uint32_t pieces, enum nand_cut_nvram nvram,
			uint64_t seed)
{
	bool more;

	assert_int_equal(flush_now(model->store), 0);
	arm(model, nvram, seed);
	more = merge_in_part(model, pieces);
	take_all_that_is_free(model);
	fail_host(model);
	model_crash(model);
	model_check_all(model);
	return more;
}

/* Behind each piece of a merge. Returns how often. */
static uint32_t fail_behind_each_piece(struct model *model)
{
	uint32_t pieces = 0;
	bool more = true;

	while (more && pieces++ < PIECES_MAX) {
		more = fail_behind(model, pieces, NAND_CUT_NVRAM_FLUSHED, pieces);
		for (uint64_t seed = 0; seed < MIXTURES; seed++)
			more |= fail_behind(model, pieces, NAND_CUT_NVRAM_MIXED, seed);
	}
	assert_in_range(pieces, 3, PIECES_MAX);
	return pieces * (1 + MIXTURES);
}

static void test_the_host_fails_behind_each_piece_of_merges(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct model *model = make(seed);
		uint32_t failures = 0;

		/* What was moved until a failure stays on the flash, so space ends some time. */
		for (uint32_t n = 0; n < ROUNDS_MAX && directory_used(inside(model)); n++) {
			failures += fail_behind_each_piece(model);
			merge_in_part(model, UINT32_MAX);
		}
		print_message("%u failures\n", failures);
		end(model);
	}
}

/* ---- an entry of the directory is taken for another image ---- */

/* Whether a row's group is full, and a buffer waits for the next one. */
static bool needs_image(const struct model *model)
{
	const struct muninn_store *store = inside(model);
	bool any = false;

	for (uint32_t row = 0; row < store->geometry.hashed_rows; row++)
		any |= row_index_is_full(store->rows[row].index) &&
		       row_has_newer(&store->rows[row]);
	return any;
}

/* The first entry that is in two pages of NVRAM. All before it are in use. */
static uint8_t *entry_in_two_pages(const struct model *model)
{
	const struct muninn_store *store = inside(model);
	uint32_t bytes = store->geometry.directory_entry_bytes, n = 0;
	uint8_t *entry;

	do
		entry = directory_next(store, &n);
	while (entry && (uint64_t)(entry - store->nvram) / NVRAM_PAGE ==
				(uint64_t)(entry + bytes - 1 - store->nvram) / NVRAM_PAGE);
	assert_non_null(entry);
	return entry;
}

/* All pages of an entry's image: only its members tell which segments it is of. */
static void lose_image(struct model *model, const uint8_t *entry)
{
	const struct muninn_store *store = inside(model);
	uint32_t pages = run_pages(&store->geometry, get_le32(entry + DIRECTORY_BYTES_AT));

	for (uint32_t page = 0; page < pages; page++)
		lose_page(model->nand, directory_image_page(&store->geometry, entry, page));
}

/* Takes all segments of an entry's group out but one, which has lost a page and is to be moved. */
static void leave_one_segment(struct model *model, const uint8_t *entry)
{
	struct muninn_store *store = inside(model);
	uint32_t row = get_le32(entry + DIRECTORY_ROW_AT);
	uint32_t group = get_le32(entry + DIRECTORY_GROUP_AT);
	struct index_walk walk = { 0 };
	struct sealed_segment segment;

	while (row_index_next(store->rows[row].index, &walk, &segment)) {
		if (segment.group != group)
			continue;
		if (__builtin_popcountll(get_le64(entry + DIRECTORY_LIVE_AT)) > 1)
			directory_take_out(store, row, &segment);
		else
			lose_page(model->nand, segment_page(&store->geometry, segment.segment));
	}
	scrub_all(model);
	assert_int_equal(model->store->operations->damaged(model->store), 1);
}

/* Merges until segments are out, but that is not stable. */
static void take_out(struct model *model, struct record_merge merge)
{
	while (inside(model)->merge_run->emptied.stage != EMPTIED_OUT) {
		model->store->operations->merge_run(model->store);
		assert_int_equal(
			model->store->operations->merge_step(model->store, &keep_present, &merge),
			1);
	}
}

/* Whether what is sealed is a row's buffer, and its image about to be noted. */
static bool is_noting_image(const struct model *model, int number)
{
	const struct muninn_store *store = inside(model);

	return (uint32_t)number < store->geometry.rows &&
	       store->rows[number].sealing.stage == SEAL_ENTRY;
}

/* Seals what waits, until an image is noted in the directory. */
static void note_next_image(struct model *model)
{
	const struct record_store_operations *operations = model->store->operations;
	int number = operations->seal_take(model->store);

	while (number >= 0 && !is_noting_image(model, number)) {
		operations->seal_run(model->store, number);
		if (operations->seal_step(model->store, number) != 1)
			number = operations->seal_take(model->store);
	}
	assert_true(number >= 0);
}

/*
 * Its image has no segments left, but that is not stable. If the host's storage had one page of the
 * entry as it was, and one that speaks of the next image, nothing would say which segments it is
 * of.
 */
static void test_the_host_fails_when_an_entry_has_been_taken_for_another_image(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4 * SEEDS; seed++) {
		struct model *model = make_with(8, ENTRIES, seed);
		uint8_t *entry = entry_in_two_pages(model);

		while (!needs_image(model))
			assert_true(model_transaction(model, true, false));
		leave_one_segment(model, entry);
		assert_int_equal(flush_now(model->store), 0);
		lose_image(model, entry);
		arm(model, NAND_CUT_NVRAM_MIXED, seed);
		take_out(model, (struct record_merge){ .segments_wanted = 1,
						       .choice = RECORD_MERGE_MENDED });
		assert_ptr_equal(directory_free_entry(inside(model)), entry);
		note_next_image(model);
		assert_ptr_equal(inside(model)->image_writing.entry, entry);
		fail_host(model);
		/* It is not refused. */
		model_crash(model);
		model_close(model);
	}
	log_configure(NULL, LOG_LEVEL_INFO);
}

/* ---- numbers that were aborted ---- */

/* A command that is aborted when some of its records have been sealed. */
static void abort_what_is_sealed(struct model *model)
{
	const struct record_store_operations *operations = model->store->operations;
	uint8_t value[MODEL_VALUE_MAX] = { 0 };

	operations->begin(model->store, 0);
	for (uint32_t n = 0; !inside(model)->sealed_running; n++) {
		struct record_key key = model_key(20 + n % 200);

		assert_int_equal(
			operations->put(model->store, &key, 1, 0, value, sizeof(value), false), 0);
	}
	operations->abort(model->store);
}

/* So that a root has space for no range of aborted numbers. */
static void limit_roots(struct muninn_store *store)
{
	struct muninn_geometry *geometry = &store->geometry;

	geometry->root_bytes_max = ROOT_HEADER_BYTES + ROOT_STATIC_BYTES +
				   geometry->directory_entries * geometry->root_entry_bytes +
				   geometry->rows * (ROOT_ROW_BYTES + 4 * GROUP_SEGMENTS);
}

/*
 * A merge has taken the segments out that held them, so a root that is short of space drops them
 * from the list. It must be stable first that these are out.
 */
static void test_what_was_aborted_does_not_come_back_with_a_segment_that_was_out(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4 * SEEDS; seed++) {
		struct model *model = make_with(16, 0, seed);
		struct muninn_store *store = inside(model);
		uint32_t limit = store->geometry.root_bytes_max;

		abort_what_is_sealed(model);
		assert_int_equal(flush_now(model->store), 0);
		arm(model, NAND_CUT_NVRAM_MIXED, seed);
		take_out(model, (struct record_merge){ .segments_wanted = MERGE_SEGMENTS_MAX,
						       .live_permille_max = 1000 });
		limit_roots(store);
		assert_int_equal(roots_write(store), 0);
		assert_int_equal(state_read(store, STATE_ABORTED_COUNT_AT), 0);
		store->geometry.root_bytes_max = limit;
		fail_host(model);
		model_crash(model);
		model_check_all(model);
		end(model);
	}
}

/* ---- the process ends, and later the NVRAM is lost ---- */

static uint64_t segments_sealed(const struct model *model)
{
	struct record_statistics statistics = { 0 };

	model->store->operations->statistics(model->store, &statistics);
	return statistics.segments_sealed;
}

/* All that is sealed is found, and nothing comes back. */
static void lose_nvram(struct model *model)
{
	uint64_t bytes, sealed = segments_sealed(model);
	uint8_t *nvram = nand_nvram(model->nand, &bytes);
	struct error_text error = { "" };

	model->store->operations->close(model->store, false);
	memset(nvram, 0, bytes);
	model->options.records.recover_without_nvram = true;
	if (engine_open_records(model->nand, &model->options, &model->store, &error))
		fail_msg("%s", error.text);
	model->store->operations->set_hidden(model->store, &model->hidden);
	model->options.records.recover_without_nvram = false;
	assert_int_equal(segments_sealed(model), sealed);
}

/*
 * The process ends behind so many pieces of a merge, before which somebody else writes a root
 * behind `root` of them. Whether there was more to do.
 */
static bool end_behind(struct model *model, uint32_t pieces, uint32_t root)
{
	const struct record_store_operations *operations = model->store->operations;
	struct record_merge merge = { .segments_wanted = 8, .live_permille_max = 1000 };
	bool more;

	more = merge_on(model, &merge, root);
	assert_int_equal(roots_write(inside(model)), 0);
	if (more && pieces > root) {
		operations->merge_run(model->store);
		more = merge_on(model, &merge, pieces - root);
	}
	model_crash(model);
	take_all_that_is_free(model);
	lose_nvram(model);
	return more;
}

static void test_the_process_ends_behind_each_piece_of_merges_and_nvram_is_lost(void **state)
{
	(void)state;
	for (uint32_t behind = 1; behind <= 2; behind++) {
		struct model *model = make(SEEDS + behind);

		while (directory_used(inside(model))) {
			for (uint32_t pieces = behind; end_behind(model, pieces, pieces - behind);
			     pieces++)
				assert_true(pieces < PIECES_MAX);
		}
		end(model);
	}
}

/* Not what belongs to Muninn, with high numbers wherever serials are. All buffers are used then. */
static void test_another_file_in_the_place_of_the_nvram_is_used_like_an_empty_one(void **state)
{
	struct model *model = make(SEEDS + 4);
	uint64_t bytes;
	uint8_t *nvram = nand_nvram(model->nand, &bytes);
	struct error_text error = { "" };

	(void)state;
	model->store->operations->close(model->store, false);
	memset(nvram, 0x7f, bytes);
	model->options.records.recover_without_nvram = true;
	if (engine_open_records(model->nand, &model->options, &model->store, &error))
		fail_msg("%s", error.text);
	model->store->operations->set_hidden(model->store, &model->hidden);
	for (uint32_t n = 0; n < 200; n++)
		assert_true(model_transaction(model, true, false));
	model->options.records.recover_without_nvram = false;
	model_crash(model);
	end(model);
}

/* ---- what an error has left ---- */

static void test_the_next_merge_lets_go_what_an_error_has_left_held_back(void **state)
{
	struct model *model = make(SEEDS + 3);
	struct muninn_store *store = inside(model);
	uint32_t segment, count = store->space.count;

	(void)state;
	assert_int_equal(space_take(&store->space, &segment), 0);
	space_hold(&store->space, segment);
	merge_in_part(model, 1);
	assert_int_equal(space_held_back(&store->space), 0);
	assert_int_equal(store->space.count, count);
	/* The root before that may name it. */
	assert_int_equal(store->list_kills, 0);
	assert_true(roots_last_is_whole(store));
	end(model);
}

/* ---- a segment that counts, while a thread still makes that stable ---- */

/*
 * Seals a buffer that a flush has promised, up to where its segment is in the index and the buffer
 * not yet given back. Returns the row.
 */
static uint32_t seal_until_it_counts(struct model *model)
{
	const struct record_store_operations *operations = model->store->operations;
	struct muninn_store *store = inside(model);
	int number;

	while (!store->waiting)
		assert_true(model_transaction(model, true, false));
	assert_int_equal(flush_now(model->store), 0);
	number = operations->seal_take(model->store);
	assert_in_range(number, 0, store->geometry.hashed_rows - 1);
	while (store->rows[number].sealing.stage != SEAL_MEMBER) {
		operations->seal_run(model->store, number);
		assert_int_equal(operations->seal_step(model->store, number), 1);
	}
	return (uint32_t)number;
}

static bool is_in_index(struct model *model, uint32_t row, uint32_t segment)
{
	struct index_walk walk = { 0 };
	struct sealed_segment found;

	while (row_index_next(inside(model)->rows[row].index, &walk, &found))
		if (found.segment == segment)
			return true;
	return false;
}

static bool reaches_nothing(void *context, const struct record_key *key,
			    const struct record_info *info, uint64_t bound)
{
	(void)context;
	(void)key;
	(void)info;
	(void)bound;
	return false;
}

/* So it puts next to nothing, and no buffer is sealed for it. */
static void merge_what_nobody_needs(struct model *model)
{
	const struct record_keep nothing = { .is_reachable = reaches_nothing };
	struct record_merge merge = { .segments_wanted = 1, .live_permille_max = 1000 };

	model->store->operations->merge(model->store, &nothing, &merge);
}

/*
 * A merge that takes it out would leave the thread to note a segment that the row no longer has,
 * and the next merge that looks for it there would end the process.
 */
static void test_no_merge_takes_a_segment_whose_buffer_is_not_given_back_yet(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct model *model = make_with(16, 0, seed);
		struct muninn_store *store = inside(model);
		uint32_t row = seal_until_it_counts(model);
		uint32_t segment = store->rows[row].sealing.segment;

		for (int n = 0; n < MERGES; n++)
			merge_what_nobody_needs(model);
		assert_int_equal(store->rows[row].sealing.stage, SEAL_MEMBER);
		assert_true(is_in_index(model, row, segment));
		do
			model->store->operations->seal_run(model->store, (int)row);
		while (model->store->operations->seal_step(model->store, (int)row) == 1);
		assert_int_equal(store->segment_rows[segment], row);
		for (int n = 0; n < MERGES; n++)
			merge_what_nobody_needs(model);
		assert_false(is_in_index(model, row, segment));
		end(model);
	}
}

/* The root has the segment, and a row's buffer whose serial is that of the segment. */
static void test_a_root_that_is_written_then_leads_to_it_once(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct model *model = make_with(16, 0, seed);
		uint32_t row = seal_until_it_counts(model);
		uint32_t segment = inside(model)->rows[row].sealing.segment;

		assert_int_equal(roots_write(inside(model)), 0);
		lose_nvram(model);
		assert_true(is_in_index(model, row, segment));
		assert_int_equal(inside(model)->segment_rows[segment], row);
		end(model);
	}
}

/* The root before that lists the whole group, and no place for what has followed it. */
static void test_what_follows_a_group_of_which_nothing_was_left_is_found_without_nvram(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct model *model = make_with(16, 0, seed);
		const struct muninn_store *store = inside(model);

		while (!row_index_is_full(store->rows[0].index))
			assert_true(model_transaction(model, true, false));
		assert_int_equal(roots_write(inside(model)), 0);
		while (row_index_live(store->rows[0].index))
			merge_what_nobody_needs(model);
		while (row_index_growing(store->rows[0].index) == 0 ||
		       row_index_members(store->rows[0].index) < 2)
			assert_true(model_transaction(model, true, false));
		lose_nvram(model);
		end(model);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_host_fails_behind_each_piece_of_merges),
		cmocka_unit_test(test_no_merge_takes_a_segment_whose_buffer_is_not_given_back_yet),
		cmocka_unit_test(test_a_root_that_is_written_then_leads_to_it_once),
		cmocka_unit_test(
			test_what_follows_a_group_of_which_nothing_was_left_is_found_without_nvram),
		cmocka_unit_test(
			test_another_file_in_the_place_of_the_nvram_is_used_like_an_empty_one),
		cmocka_unit_test(
			test_the_host_fails_when_an_entry_has_been_taken_for_another_image),
		cmocka_unit_test(
			test_what_was_aborted_does_not_come_back_with_a_segment_that_was_out),
		cmocka_unit_test(
			test_the_process_ends_behind_each_piece_of_merges_and_nvram_is_lost),
		cmocka_unit_test(test_the_next_merge_lets_go_what_an_error_has_left_held_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
