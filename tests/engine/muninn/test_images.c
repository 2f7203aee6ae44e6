/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Lost pages of the images of the index: parity gives them back, or the image is made again from
 * the segments of its group; either way all is found, and the image is written anew.
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
#include "engine/muninn/regroup.h"
#include "engine/muninn/repair.h"
#include "engine/muninn/row.h"
#include "nand/power.h"
#include "nand/private.h"
#include "tests/engine/flush_now.h"
#include "tests/engine/index_under_test.h"
#include "tests/engine/lost_page.h"
#include "tests/engine/muninn/losses.h"
#include "tests/engine/small_flash.h"

enum { GROUP = 16, CACHE_BYTES = 65536 };

/* As the model's, with room for parity in the spare areas. */
static const struct nand_geometry nand = SMALL_FLASH_WITH_SPARE(1200, 256);

/* Images are of 20 pages and more, so of two groups. */
static const struct engine_options options = {
	.muninn = { .rows = 2, .segment_pages = GROUP, .record_bytes = 128, .parity = 1 },
};

static uint32_t groups_made_again;

static void count_lines(enum log_level level, const char *line)
{
	(void)level;
	groups_made_again += strstr(line, "is made again from its") != NULL;
}

/* A device with complete groups in its rows. */
static struct model *make(const struct engine_options *own, uint64_t seed)
{
	struct model *model = calloc(1, sizeof(*model));

	assert_non_null(model);
	log_configure(count_lines, LOG_LEVEL_WARNING);
	groups_made_again = 0;
	print_message("seed %llu\n", (unsigned long long)seed);
	model->random = seed;
	model_open(model, &nand, own);
	for (uint32_t n = 0; directory_used(inside(model)) < 3; n++)
		assert_true(model_transaction(model, n % 20, n % 300 == 299));
	for (uint32_t n = 0; n < 100; n++)
		assert_true(model_transaction(model, n % 20, false));
	return model;
}

static void end(struct model *model)
{
	model_close(model);
	log_configure(NULL, LOG_LEVEL_INFO);
}

static uint32_t image_pages(const struct model *model, const uint8_t *entry)
{
	return run_pages(&inside(model)->geometry, get_le32(entry + DIRECTORY_BYTES_AT));
}

/* Loses page `page` of each image that has it; again: they are back. Returns how many. */
static uint32_t lose_of_all(struct model *model, uint32_t page)
{
	uint32_t lost = 0, n = 0;
	const uint8_t *entry;

	while ((entry = directory_next(inside(model), &n)) != NULL)
		if (page < image_pages(model, entry)) {
			lose_page(model->nand,
				  directory_image_page(&inside(model)->geometry, entry, page));
			lost++;
		}
	return lost;
}

static void lose_all_pages(struct model *model)
{
	for (uint32_t page = 0; lose_of_all(model, page); page++)
		;
}

static const struct record_keep keep_nothing = { .bounds = NULL };

static int mend_once(struct model *model)
{
	struct record_merge merge = { .segments_wanted = 1, .choice = RECORD_MERGE_MENDED };

	return model->store->operations->merge(model->store, &keep_nothing, &merge);
}

static uint32_t mend_all(struct model *model)
{
	uint32_t count = 0;

	for (; model->store->operations->damaged(model->store); count++)
		assert_int_equal(mend_once(model), 0);
	return count;
}

/* Nothing is lost any more, on flash neither. */
static void expect_whole(struct model *model)
{
	struct record_scrub scrub = scrub_all(model);

	assert_int_equal(scrub.repaired, 0);
	assert_int_equal(scrub.lost, 0);
	assert_int_equal(model->store->operations->damaged(model->store), 0);
}

/* ---- what parity gives back ---- */

static void test_each_page_of_all_images_can_be_lost_and_parity_has_it(void **state)
{
	struct model *model = make(&options, 1);
	uint32_t pages = 0;

	(void)state;
	while (lose_of_all(model, pages)) {
		model_crash(model);
		model_check_all(model);
		lose_of_all(model, pages++);
	}
	/* Groups of the Bloom index are in several segments. */
	assert_true(pages > (index_under_test() == INDEX_BLOOM ? GROUP : 2));
	assert_int_equal(groups_made_again, 0);
	end(model);
}

static void test_one_page_of_every_group_of_images_is_lost_and_they_are_written_anew(void **state)
{
	struct model *model = make(&options, 2);
	uint32_t entries = directory_used(inside(model));

	(void)state;
	lose_of_every_image(model);
	assert_true(scrub_all(model).repaired >= entries);
	assert_int_equal(mend_all(model), entries);
	expect_whole(model);
	model_check_all(model);
	model_crash(model);
	model_check_all(model);
	expect_whole(model);
	assert_int_equal(groups_made_again, 0);
	end(model);
}

static void test_images_that_lost_pages_are_noted_when_the_device_is_opened(void **state)
{
	struct model *model = make(&options, 3);
	uint32_t entries = directory_used(inside(model));

	(void)state;
	lose_of_all(model, 1);
	model_crash(model);
	assert_int_equal(model->store->operations->damaged(model->store), entries);
	assert_int_equal(mend_all(model), entries);
	expect_whole(model);
	end(model);
}

static void test_images_on_flash_are_read_with_parity_too(void **state)
{
	struct engine_options cached = options;
	struct model *model;

	(void)state;
	if (index_under_test() != INDEX_BLOOM)
		skip();
	cached.muninn.bloom.table_cache_bytes = CACHE_BYTES;
	model = make(&cached, 4);
	model_crash(model);
	lose_of_every_image(model);
	model_check_all(model);
	scrub_all(model);
	assert_true(mend_all(model) > 0);
	expect_whole(model);
	model_check_all(model);
	assert_int_equal(groups_made_again, 0);
	end(model);
}

/* Only the flash's block table says where: a crash costs no space behind the images. */
static void test_images_go_on_after_a_crash_where_they_ended(void **state)
{
	struct model *model = make(&options, 17);
	uint32_t segment, page;

	(void)state;
	while (inside(model)->metadata_page == GROUP) {
		uint32_t used = directory_used(inside(model));

		for (uint32_t n = 0; directory_used(inside(model)) == used; n++)
			assert_true(model_transaction(model, n % 20, false));
	}
	segment = inside(model)->metadata_segment;
	page = inside(model)->metadata_page;
	assert_int_not_equal(segment, NO_SEGMENT);
	model_crash(model);
	assert_int_equal(inside(model)->metadata_segment, segment);
	assert_int_equal(inside(model)->metadata_page, page);
	/* Where programming has failed meanwhile, images stay, and no other follows. */
	assert_int_equal(
		nand_mark_bad(model->nand, segment * inside(model)->geometry.segment_blocks), 0);
	model_crash(model);
	assert_int_not_equal(inside(model)->metadata_segment, segment);
	model_check_all(model);
	end(model);
}

/* ---- nothing is left of an image ---- */

static void check_made_again(const struct engine_options *own, uint64_t seed)
{
	struct model *model = make(own, seed);
	uint32_t entries = directory_used(inside(model));

	lose_all_pages(model);
	model_crash(model);
	assert_int_equal(groups_made_again, entries);
	model_check_all(model);
	assert_int_equal(mend_all(model), entries);
	expect_whole(model);
	model_crash(model);
	assert_int_equal(groups_made_again, entries);
	model_check_all(model);
	for (uint32_t number = 10; number < MODEL_KEYS; number++)
		model_check_versions(model, number, RECORD_NEWEST);
	end(model);
}

static void test_all_images_are_lost_and_made_again_from_their_segments(void **state)
{
	struct engine_options own = options;

	(void)state;
	check_made_again(&own, 5);
	if (index_under_test() == INDEX_BLOOM)
		own.muninn.bloom.table_cache_bytes = CACHE_BYTES;
	check_made_again(&own, 6);
	own.muninn.parity = MUNINN_PARITY_NONE;
	check_made_again(&own, 7);
	own.muninn.bloom.table_cache_bytes = 0;
	own.muninn.bloom.hot_rows = BLOOM_HOT_ROWS_SPREAD;
	check_made_again(&own, 8);
}

static void take_out_every_third_segment(struct model *model)
{
	struct muninn_store *store = inside(model);

	for (uint32_t row = 0; row < store->geometry.rows; row++) {
		struct index_walk walk = { 0 };
		struct sealed_segment segment;

		while (row_index_next(store->rows[row].index, &walk, &segment))
			if (segment.member % 3 == 0 &&
			    row_index_live_word(store->rows[row].index, &segment))
				directory_take_out(store, row, &segment);
	}
}

/* Which segments a group still has is as it was, and so is what is found in them. */
static void test_an_image_is_made_again_of_those_segments_that_are_left(void **state)
{
	struct model *model = make(&options, 9);
	struct record_statistics before = { 0 }, after = { 0 };

	(void)state;
	take_out_every_third_segment(model);
	model->store->operations->statistics(model->store, &before);
	lose_all_pages(model);
	model_crash(model);
	model->store->operations->statistics(model->store, &after);
	assert_int_equal(after.segments_sealed, before.segments_sealed);
	assert_int_equal(after.sealed_records, before.sealed_records);
	mend_all(model);
	expect_whole(model);
	model_crash(model);
	model->store->operations->statistics(model->store, &after);
	assert_int_equal(after.sealed_records, before.sealed_records);
	end(model);
}

/* The image is in memory in part only, and too much of the rest is lost. */
static void test_what_is_lost_of_images_on_flash_fails_until_the_device_is_opened_again(
	void **state)
{
	struct engine_options cached = options;
	uint32_t failed = 0;
	struct model *model;

	(void)state;
	if (index_under_test() != INDEX_BLOOM)
		skip();
	cached.muninn.bloom.table_cache_bytes = CACHE_BYTES;
	model = make(&cached, 10);
	model_crash(model);
	lose_all_pages(model);
	for (uint32_t number = 0; number < MODEL_KEYS; number++) {
		const struct record_key key = model_key(number);
		uint8_t value[MODEL_VALUE_MAX];
		struct record_info info;
		int result = model->store->operations->get(model->store, &key, RECORD_NEWEST, value,
							   sizeof(value), &info);

		assert_true(result == 0 || result == -ENOENT || result == -EBADMSG);
		failed += result == -EBADMSG;
	}
	assert_true(failed > 0);
	assert_true(scrub_all(model).lost > 0);
	model_crash(model);
	model_check_all(model);
	mend_all(model);
	expect_whole(model);
	model_check_all(model);
	end(model);
}

/* ---- what can't be made again ---- */

static void expect_refused(struct model *model, const char *words)
{
	struct error_text error = { "" };

	model->store->operations->close(model->store, false);
	assert_int_equal(engine_open_records(model->nand, &model->options, &model->store, &error),
			 -EBADMSG);
	if (!strstr(error.text, words))
		fail_msg("message is: %s", error.text);
}

/* And nothing is changed by that: with pages of the segment back, all is there. */
static void test_an_image_and_pages_of_its_segments_are_lost_and_that_is_refused(void **state)
{
	struct model *model = make(&options, 11);
	uint32_t n = 0, members[GROUP_SEGMENTS];
	const uint8_t *entry = directory_next(inside(model), &n);
	struct error_text error = { "" };
	uint64_t first;

	(void)state;
	assert_true(directory_members(inside(model), entry, members));
	first = segment_page(&inside(model)->geometry,
			     members[__builtin_ctzll(get_le64(entry + DIRECTORY_LIVE_AT))]);
	lose_all_pages(model);
	lose_page(model->nand, first + 3);
	lose_page(model->nand, first + 9);
	expect_refused(model, "can't be made again: 2 pages");
	model->options.records.recover_without_nvram = true;
	assert_int_equal(engine_open_records(model->nand, &model->options, &model->store, &error),
			 -EBADMSG);
	lose_page(model->nand, first + 3);
	if (engine_open_records(model->nand, &model->options, &model->store, &error))
		fail_msg("%s", error.text);
	model->store->operations->set_hidden(model->store, &model->hidden);
	model_check_all(model);
	end(model);
}

/* ---- NVRAM is lost, too ---- */

/* What a slot of NVRAM held may be of the same group of an earlier format. */
static void test_members_of_before_do_not_go_with_entries_of_a_root(void **state)
{
	struct model *model = make(&options, 11);
	struct muninn_store *store = inside(model);
	uint8_t *copy = malloc((size_t)directory_used(store) * store->geometry.root_entry_bytes);
	uint32_t n = 0, count, members[GROUP_SEGMENTS];
	const uint8_t *entry;

	(void)state;
	assert_non_null(copy);
	count = directory_copy(store, copy);
	assert_true(count > 0);
	while ((entry = directory_next(store, &n)) != NULL)
		assert_true(directory_members(store, entry, members));
	directory_restore(store, copy, count);
	for (n = 0; (entry = directory_next(store, &n)) != NULL; count--)
		assert_false(directory_members(store, entry, members));
	assert_int_equal(count, 0);
	free(copy);
	model_crash(model);
	model_check_all(model);
	end(model);
}

/* A full device: what waits to be written anew holds up nothing else. */
static void test_images_that_wait_for_space_let_segments_be_moved(void **state)
{
	const struct record_keep keep = { .bounds = NULL };
	struct model *model = make(&options, 12);
	struct muninn_store *store = inside(model);
	struct record_merge merge = { .choice = RECORD_MERGE_MENDED };
	uint32_t kept = store->geometry.room_kept[RECORD_ROOM_UPKEEP], entries, segment = 0;

	(void)state;
	entries = lose_of_every_image(model);
	while (store->segment_rows[segment] == NO_ROW)
		segment++;
	lose_page(model->nand, segment_page(&store->geometry, segment));
	scrub_all(model);
	assert_int_equal(repair_waiting(store), entries + 1);
	store->geometry.room_kept[RECORD_ROOM_UPKEEP] = store->space.count;
	assert_int_equal(model->store->operations->merge(model->store, &keep, &merge), 0);
	assert_int_equal(repair_waiting(store), entries);
	/* That has freed a segment. */
	store->geometry.room_kept[RECORD_ROOM_UPKEEP] = store->space.count;
	assert_int_equal(model->store->operations->merge(model->store, &keep, &merge), -ENOSPC);
	store->geometry.room_kept[RECORD_ROOM_UPKEEP] = kept;
	assert_int_equal(mend_all(model), entries);
	model_check_all(model);
	end(model);
}

/* What was taken for an image that has no place as a whole is free again. */
static void test_an_image_that_finds_too_few_segments_takes_none(void **state)
{
	struct model *model = make(&options, 21);
	struct muninn_store *store = inside(model);
	uint32_t taken[1200], count = 0, entries = lose_of_every_image(model);
	uint32_t kept = store->geometry.room_kept[RECORD_ROOM_UPKEEP], page;

	(void)state;
	scrub_all(model);
	store->geometry.room_kept[RECORD_ROOM_UPKEEP] = 0;
	/* As if the segment of images were nearly full. */
	page = store->metadata_page;
	store->metadata_page = GROUP - 1;
	while (store->space.count > (index_under_test() == INDEX_BLOOM))
		assert_int_equal(space_take(&store->space, &taken[count++]), 0);
	for (int n = 0; n < 3; n++) {
		uint32_t before = store->space.count;

		assert_int_equal(mend_once(model), -ENOSPC);
		assert_int_equal(store->space.count, before);
	}
	while (count)
		space_release(&store->space, taken[--count]);
	store->geometry.room_kept[RECORD_ROOM_UPKEEP] = kept;
	if (store->metadata_segment != NO_SEGMENT)
		store->metadata_page = page;
	assert_int_equal(mend_all(model), entries);
	expect_whole(model);
	end(model);
}

/* Opens it without NVRAM: all that was sealed before is there. */
static void recover(struct model *model, const struct record_statistics *before)
{
	open_without_nvram(model);
	assert_int_equal(figures(model).segments_sealed, before->segments_sealed);
	assert_int_equal(figures(model).sealed_records, before->sealed_records);
}

static void lose_nvram(struct model *model, bool stable)
{
	struct record_statistics before = figures(model);

	model->store->operations->close(model->store, stable);
	recover(model, &before);
}

static void test_nvram_is_lost_and_a_page_of_every_group_of_images_too(void **state)
{
	struct model *model = make(&options, 12);
	uint32_t entries = directory_used(inside(model)), known = 0, members[GROUP_SEGMENTS];
	const uint8_t *entry;

	(void)state;
	lose_of_every_image(model);
	lose_nvram(model, true);
	/* The directory knows again which segments each group has. */
	for (uint32_t n = 0; (entry = directory_next(inside(model), &n)) != NULL;)
		known += directory_members(inside(model), entry, members);
	assert_int_equal(known, entries);
	mend_all(model);
	scrub_all(model);
	mend_all(model);
	expect_whole(model);
	end(model);
}

static void write_anew_and_lose_nvram(const struct engine_options *own, bool stable, uint64_t seed)
{
	struct model *model = make(own, seed);
	uint32_t entries = directory_used(inside(model));

	lose_all_pages(model);
	model_crash(model);
	assert_int_equal(mend_all(model), entries);
	lose_nvram(model, stable);
	assert_int_equal(groups_made_again, entries);
	assert_int_equal(directory_used(inside(model)), entries);
	expect_whole(model);
	end(model);
}

/* The flash says where the new ones are: the old ones may be written over. */
static void test_nvram_is_lost_behind_images_that_were_written_anew(void **state)
{
	struct engine_options own = options;

	(void)state;
	write_anew_and_lose_nvram(&own, false, 16);
	write_anew_and_lose_nvram(&own, true, 17);
	own.muninn.parity = MUNINN_PARITY_NONE;
	write_anew_and_lose_nvram(&own, false, 18);
	write_anew_and_lose_nvram(&own, true, 19);
}

/* ---- crashes ---- */

static const uint8_t first_boot[16] = { 1 }, second_boot[16] = { 2 };

/* Writes images anew until the power fails at operation `after`. False: it did not. */
static bool mend_and_cut(struct model *model, uint64_t after, enum nand_cut_nvram nvram)
{
	const struct nand_power_cut cut = { .after = after,
					    .page = (enum nand_cut_page)(after % NAND_CUT_PAGES),
					    .nvram = nvram,
					    .seed = after };
	struct nand_power_status status;
	struct error_text error;
	int result = 0;

	assert_int_equal(flush_now(model->store), 0);
	if (nand_arm_power_cut(model->nand, &cut, &error))
		fail_msg("%s", error.text);
	while (!result && model->store->operations->damaged(model->store))
		result = mend_once(model);
	nand_power_status(model->nand, &status);
	if (!status.off) {
		nand_disarm_power_cut(model->nand);
		return false;
	}
	assert_int_equal(nand_power_on(model->nand), 0);
	return true;
}

/* ---- which segments an image may be made of ---- */

/* The members of the oldest complete group of row 0, and which of them are there. */
static uint32_t members_of(const struct model *model, uint32_t members[GROUP_SEGMENTS],
			   uint64_t *live)
{
	const struct row_index *index = inside(model)->rows[0].index;
	struct index_walk walk = { .all = true };
	struct sealed_segment segment;
	uint32_t count = 0;

	for (uint32_t n = 0; n < GROUP_SEGMENTS; n++)
		members[n] = NO_SEGMENT;
	while (row_index_next(index, &walk, &segment) && walk.at == 0) {
		*live = get_le64(row_index_live_word(index, &segment));
		members[segment.member] = segment.segment;
		count++;
	}
	return count;
}

static int make_image_of(struct model *model, const uint32_t members[GROUP_SEGMENTS],
			 uint64_t wanted)
{
	struct index_image image = { .group = 0 };
	struct error_text error = { "" };
	uint64_t live = wanted;
	int result = regroup_image(inside(model), 0, members, &live, &image, &error);

	if (result < 0)
		assert_non_null(strstr(error.text, "can't be made again"));
	else
		assert_int_equal(live, wanted);
	free(image.bytes);
	return result;
}

static void exchange(uint32_t *a, uint32_t *b)
{
	uint32_t was = *a;

	*a = *b;
	*b = was;
}

/* There can't be more, but what is noted may be of ended ones. */
static void test_no_more_images_are_noted_than_the_directory_has_entries(void **state)
{
	struct model *model = make(&options, 26);
	uint32_t most = inside(model)->geometry.directory_entries, row, group, count = 0;

	(void)state;
	log_configure(NULL, LOG_LEVEL_ERROR);
	for (int twice = 0; twice < 2; twice++)
		for (uint32_t n = 0; n < most + 5; n++)
			repair_note_image(inside(model), 0, 1000 + n, 1);
	for (; repair_next_image(inside(model), &row, &group); count++) {
		assert_int_equal(row, 0);
		assert_in_range(group, 1000, 1000 + most - 1);
		repair_end_image(inside(model), row, group);
	}
	assert_int_equal(count, most);
	end(model);
}

static void test_an_image_is_made_of_segments_in_the_order_of_their_age_alone(void **state)
{
	struct model *model = make(&options, 25);
	uint32_t members[GROUP_SEGMENTS], count, was;
	uint64_t live = 0;

	(void)state;
	count = members_of(model, members, &live);
	assert_true(count > 2);
	assert_int_equal(make_image_of(model, members, live), 0);
	for (uint32_t n = 0; n + 1 < count; n++) {
		/* Two that changed places, and the same one twice. */
		exchange(&members[n], &members[n + 1]);
		assert_int_equal(make_image_of(model, members, live), -EBADMSG);
		exchange(&members[n], &members[n + 1]);
		was = members[n];
		members[n] = members[n + 1];
		assert_int_equal(make_image_of(model, members, live), -EBADMSG);
		members[n] = was;
	}
	/* One that is not there need not be known; nothing is made of none. */
	was = members[1];
	members[1] = NO_SEGMENT;
	assert_int_equal(make_image_of(model, members, live), -EBADMSG);
	assert_int_equal(make_image_of(model, members, live & ~UINT64_C(2)), 0);
	assert_int_equal(make_image_of(model, members, 0), 1);
	end(model);
}

/* Returns how many cuts there were. */
static uint32_t cut_at_every_operation(enum nand_cut_nvram nvram)
{
	struct engine_options booted = options;
	struct model *model;
	uint32_t cuts = 0;

	booted.records.boot_id = first_boot;
	model = make(&booted, 13 + nvram);
	for (bool cut = true; cut; cuts += cut) {
		uint32_t entries = directory_used(inside(model));

		scrub_all(model);
		mend_all(model);
		lose_of_all(model, 2);
		scrub_all(model);
		cut = mend_and_cut(model, cuts, nvram);
		if (cut && nvram != NAND_CUT_NVRAM_KEPT)
			model->options.records.boot_id = cuts % 2 ? first_boot : second_boot;
		model_crash(model);
		model_check_all(model);
		assert_int_equal(directory_used(inside(model)), entries);
	}
	mend_all(model);
	model_crash(model);
	expect_whole(model);
	end(model);
	return cuts;
}

static void test_the_power_fails_while_images_are_written_anew(void **state)
{
	static const enum nand_cut_nvram kinds[] = { NAND_CUT_NVRAM_KEPT, NAND_CUT_NVRAM_FLUSHED,
						     NAND_CUT_NVRAM_MIXED };

	(void)state;
	for (size_t n = 0; n < sizeof(kinds) / sizeof(kinds[0]); n++) {
		uint32_t cuts = cut_at_every_operation(kinds[n]);

		print_message("%u cuts\n", cuts);
		assert_true(cuts > 30);
	}
}

/* The NVRAM is lost, too; what the last root says is whole all the time. */
static void test_the_power_fails_with_nvram_lost_while_images_are_written_anew(void **state)
{
	struct model *model = make(&options, 20);
	uint32_t cuts = 0;

	(void)state;
	lose_nvram(model, true);
	for (bool cut = true; cut; cuts += cut) {
		uint32_t entries = directory_used(inside(model));
		struct record_statistics before = figures(model);

		scrub_all(model);
		mend_all(model);
		lose_of_all(model, 2);
		scrub_all(model);
		cut = mend_and_cut(model, cuts, NAND_CUT_NVRAM_LOST);
		model->store->operations->close(model->store, false);
		recover(model, &before);
		assert_int_equal(directory_used(inside(model)), entries);
	}
	assert_int_equal(groups_made_again, 0);
	print_message("%u cuts\n", cuts);
	assert_true(cuts > 40);
	end(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_page_of_all_images_can_be_lost_and_parity_has_it),
		cmocka_unit_test(
			test_one_page_of_every_group_of_images_is_lost_and_they_are_written_anew),
		cmocka_unit_test(test_images_that_lost_pages_are_noted_when_the_device_is_opened),
		cmocka_unit_test(test_images_on_flash_are_read_with_parity_too),
		cmocka_unit_test(test_images_go_on_after_a_crash_where_they_ended),
		cmocka_unit_test(test_all_images_are_lost_and_made_again_from_their_segments),
		cmocka_unit_test(test_an_image_is_made_again_of_those_segments_that_are_left),
		cmocka_unit_test(
			test_what_is_lost_of_images_on_flash_fails_until_the_device_is_opened_again),
		cmocka_unit_test(
			test_an_image_and_pages_of_its_segments_are_lost_and_that_is_refused),
		cmocka_unit_test(test_members_of_before_do_not_go_with_entries_of_a_root),
		cmocka_unit_test(test_no_more_images_are_noted_than_the_directory_has_entries),
		cmocka_unit_test(test_an_image_is_made_of_segments_in_the_order_of_their_age_alone),
		cmocka_unit_test(test_images_that_wait_for_space_let_segments_be_moved),
		cmocka_unit_test(test_an_image_that_finds_too_few_segments_takes_none),
		cmocka_unit_test(test_nvram_is_lost_and_a_page_of_every_group_of_images_too),
		cmocka_unit_test(test_nvram_is_lost_behind_images_that_were_written_anew),
		cmocka_unit_test(test_the_power_fails_while_images_are_written_anew),
		cmocka_unit_test(
			test_the_power_fails_with_nvram_lost_while_images_are_written_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
