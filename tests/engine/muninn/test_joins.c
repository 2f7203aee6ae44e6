/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Groups of the ribbon index of which merging has left little give their place to one: beside a
 * model, with the power cut at every operation, and with NVRAM lost.
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
#include "engine/muninn/emptied.h"
#include "engine/muninn/merge.h"
#include "engine/muninn/merge_run.h"
#include "engine/muninn/roots.h"
#include "engine/muninn/row.h"
#include "engine/muninn/seal.h"
#include "nand/power.h"
#include "tests/engine/flush_now.h"
#include "tests/engine/index_under_test.h"
#include "tests/engine/lost_page.h"
#include "tests/engine/muninn/losses.h"
#include "tests/engine/small_flash.h"

static const struct nand_geometry nand = SMALL_FLASH_WITH_SPARE(600, 256);

static const struct engine_options options = {
	.muninn = { .index = INDEX_RIBBON,
		    .rows = 2,
		    .segment_pages = 16,
		    .record_bytes = 128,
		    .parity = 1 },
};

static const uint8_t first_boot[16] = { 1 }, second_boot[16] = { 2 };

static void say_nothing(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static struct row_index *index_of(const struct model *model, uint32_t row)
{
	return inside(model)->rows[row].index;
}

static uint8_t *entry_of(const struct model *model, uint32_t row, uint32_t group)
{
	return row_index_group_live_word(index_of(model, row), group) - DIRECTORY_LIVE_AT;
}

/* ---- the scene ---- */

static void merge_once(struct model *model)
{
	const struct record_keep keep_nothing = { .bounds = NULL };
	struct record_merge merge = { .segments_wanted = 1, .live_permille_max = 900 };
	int result = model->store->operations->merge(model->store, &keep_nothing, &merge);

	assert_true(result == 0 || result == -EAGAIN || result == -ENOSPC);
}

/* The row of which groups are due, which will be joined before its next segment is programmed. */
static bool find_due(const struct model *model, uint32_t *row, struct index_join *join)
{
	for (*row = 0; *row < inside(model)->geometry.rows; ++*row)
		if (!row_index_is_full(index_of(model, *row)) &&
		    row_index_find_join(index_of(model, *row), join))
			return true;
	return false;
}

/* As long as a row's group has no segment, the last one of the group before it has to stay known.
 */
static void expect_none_due_with_empty_groups(const struct model *model)
{
	for (uint32_t row = 0; row < inside(model)->geometry.rows; row++) {
		struct index_join join;

		if (!row_index_members(index_of(model, row)))
			assert_false(row_index_find_join(index_of(model, row), &join));
	}
}

/* Puts, and merges where there is not much space. */
static void run(struct model *model, uint32_t transactions)
{
	for (uint32_t n = 0; n < transactions; n++) {
		model_transaction(model, model_below(model, 20) > 0, false);
		expect_none_due_with_empty_groups(model);
		if (inside(model)->space.count < inside(model)->geometry.segments / 3)
			merge_once(model);
	}
}

/* Goes on with that until so many are due. */
static void make_due(struct model *model, uint32_t least, uint32_t *row, struct index_join *join)
{
	for (uint32_t n = 0; !find_due(model, row, join) || join->count < least; n++) {
		assert_true(n < 20000);
		run(model, 1);
	}
}

static struct model *make(uint64_t seed, uint32_t least, uint32_t *row, struct index_join *join)
{
	struct model *model = calloc(1, sizeof(*model));
	struct engine_options booted = options;

	assert_non_null(model);
	log_configure(say_nothing, LOG_LEVEL_INFO);
	booted.records.boot_id = first_boot;
	model->random = seed;
	model_open(model, &nand, &booted);
	make_due(model, least, row, join);
	return model;
}

static void end(struct model *model)
{
	model_close(model);
	log_configure(NULL, LOG_LEVEL_INFO);
}

/* Seals what the row has, so that its groups are joined first. */
static int seal(struct model *model, uint32_t row)
{
	if (!row_has_newer(&inside(model)->rows[row]))
		row_take_newer(inside(model), row);
	return seal_row(inside(model), row);
}

/* ---- what must hold ---- */

static void count_finding(void *context, const struct finding *finding)
{
	uint32_t *count = context;

	/* A page that was torn. */
	if (strstr(finding->text, "parity has it"))
		return;
	print_message("%s\n", finding->text);
	++*count;
}

static void check_newest(struct model *model)
{
	for (uint32_t number = 0; number < MODEL_KEYS; number++)
		model_check_key(model, number, RECORD_NEWEST);
}

static void check_sound(struct model *model)
{
	uint32_t count = 0;
	struct findings findings = { .take = count_finding, .context = &count };
	struct record_check check = { .findings = &findings };

	assert_int_equal(model->store->operations->check(model->store, &check), 0);
	assert_int_equal(count, 0);
}

/* Whether one group has the place of those that were due. */
static bool is_joined(const struct model *model, uint32_t row, const struct index_join *join)
{
	const struct row_index *index = index_of(model, row);

	for (uint32_t n = 1; n < join->count; n++)
		if (row_index_has(index, join->numbers[n]))
			return false;
	return row_index_has(index, join->numbers[0]);
}

/* All of them, or the one. */
static void check_whole(const struct model *model, uint32_t row, const struct index_join *join)
{
	uint32_t there = 0;

	for (uint32_t n = 0; n < join->count; n++)
		there += row_index_has(index_of(model, row), join->numbers[n]);
	assert_true(there == join->count || is_joined(model, row, join));
}

static uint64_t segments_of(const struct model *model, uint32_t row)
{
	struct index_walk walk = { 0 };
	struct sealed_segment segment;
	uint64_t count = 0;

	while (row_index_next(index_of(model, row), &walk, &segment))
		count++;
	return count;
}

/* ---- tests ---- */

static void test_groups_that_are_due_give_their_place_to_one(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct index_join join, next;
		struct record_statistics before = { 0 }, after = { 0 };
		uint32_t row, groups, held;
		struct model *model = make(seed, 1 + seed % 2, &row, &join);
		uint64_t segments = segments_of(model, row);

		groups = directory_used(inside(model));
		held = space_held_back(&inside(model)->space);
		model->store->operations->statistics(model->store, &before);
		assert_int_equal(seal(model, row), 0);
		assert_true(is_joined(model, row, &join));
		assert_int_equal(directory_used(inside(model)), groups - join.count + 1);
		assert_int_equal(segments_of(model, row), segments + 1);
		assert_false(row_index_find_join(index_of(model, row), &next) &&
			     next.numbers[0] == join.numbers[0] && next.count == join.count);
		/* What they had is free as soon as a root has followed. */
		assert_true(space_held_back(&inside(model)->space) <= held);
		model->store->operations->statistics(model->store, &after);
		assert_true(after.index_bytes < before.index_bytes);
		check_newest(model);
		check_sound(model);
		model_crash(model);
		assert_true(is_joined(model, row, &join));
		check_newest(model);
		check_sound(model);
		run(model, 1000);
		check_newest(model);
		model_crash(model);
		check_newest(model);
		check_sound(model);
		end(model);
	}
}

/* What the last root names is not written again before the next one is on flash. */
static void test_what_groups_had_is_held_back_until_a_root_has_followed(void **state)
{
	uint64_t held = 0;

	(void)state;
	for (uint64_t seed = 40; seed < 48; seed++) {
		struct index_join join;
		uint32_t row;
		int taken = -1;
		struct model *model = make(seed, 2, &row, &join);
		struct muninn_store *store = inside(model);
		uint64_t before = store->space.held;

		if (!row_has_newer(&store->rows[row]))
			row_take_newer(store, row);
		while (!is_joined(model, row, &join)) {
			if (taken < 0)
				taken = seal_take(store);
			assert_true(taken >= 0);
			seal_run(store, (uint32_t)taken);
			if (seal_step(store, (uint32_t)taken) != 1)
				taken = -1;
		}
		assert_int_equal(taken, row);
		assert_true(roots_are_under_way(store));
		assert_true(roots_are_expected(store));
		held += store->space.held - before;
		assert_int_equal(space_held_back(&store->space), store->space.held - before);
		while (seal_step(store, row) == 1)
			seal_run(store, row);
		assert_int_equal(space_held_back(&store->space), 0);
		check_newest(model);
		end(model);
	}
	assert_true(held > 0);
}

/* Space that a full device needs is not taken for that, also if it has gone since a join began. */
static void test_joins_wait_for_space(void **state)
{
	struct index_join join;
	uint32_t row;
	struct model *model = make(45, 2, &row, &join);
	struct muninn_store *store = inside(model);
	uint64_t kept = store->geometry.room_kept[RECORD_ROOM_UPKEEP];
	int taken;

	(void)state;
	if (!row_has_newer(&store->rows[row]))
		row_take_newer(store, row);
	taken = seal_take(store);
	assert_int_equal(taken, row);
	assert_int_equal(store->image_writing.join.count, join.count);
	seal_run(store, row);
	store->geometry.room_kept[RECORD_ROOM_UPKEEP] = UINT32_MAX;
	while (seal_step(store, row) == 1)
		seal_run(store, row);
	assert_null(store->image_writing.entry);
	assert_true(row_index_find_join(index_of(model, row), &join));
	check_whole(model, row, &join);
	assert_false(is_joined(model, row, &join));
	/* Nor does one begin. */
	assert_int_equal(seal(model, row), 0);
	assert_false(is_joined(model, row, &join));
	store->geometry.room_kept[RECORD_ROOM_UPKEEP] = kept;
	assert_int_equal(seal(model, row), 0);
	assert_true(is_joined(model, row, &join));
	check_newest(model);
	check_sound(model);
	end(model);
}

/* As if not all of them had ended when the host failed. Opening meets either of the two first. */
static void test_groups_that_have_not_ended_end_at_opening(void **state)
{
	(void)state;
	for (uint64_t seed = 50; seed < 58; seed++) {
		struct index_join join;
		uint32_t row, groups;
		struct model *model = make(seed, 2, &row, &join);
		struct muninn_store *store = inside(model);
		uint32_t bytes = store->geometry.directory_entry_bytes;
		uint8_t was[1024], *part, *joined;
		uint64_t roots;

		part = entry_of(model, row, join.numbers[seed / 2 % 2]);
		assert_in_range(bytes, 1, sizeof(was));
		memcpy(was, part, bytes);
		assert_int_equal(seal(model, row), 0);
		assert_true(is_joined(model, row, &join));
		groups = directory_used(store);
		joined = entry_of(model, row, join.numbers[0]);
		/* Nothing but the part that has not ended asks for another root. */
		assert_int_equal(roots_write(store), 0);
		state_write(store, STATE_KILLS_AHEAD_AT, 0);
		roots = state_read(store, STATE_ROOT_SERIAL_AT);
		if (seed % 2) {
			memcpy(part, joined, bytes);
			memcpy(joined, was, bytes);
		} else {
			memcpy(part, was, bytes);
		}
		sum_set(store_sum(store, SUM_DIRECTORY), directory_sum(store));
		model_crash(model);
		assert_true(is_joined(model, row, &join));
		assert_int_equal(directory_used(inside(model)), groups);
		assert_true(state_read(inside(model), STATE_ROOT_SERIAL_AT) > roots);
		check_newest(model);
		check_sound(model);
		end(model);
	}
}

/* Cuts the power at operation `after` of that. False: it was over before. */
static bool cut(struct model *model, uint32_t row, uint64_t after, enum nand_cut_nvram nvram)
{
	const struct nand_power_cut power_cut = { .after = after,
						  .page = (enum nand_cut_page)(after %
									       NAND_CUT_PAGES),
						  .nvram = nvram,
						  .seed = after };
	struct nand_power_status status;
	struct error_text error;

	assert_int_equal(flush_now(model->store), 0);
	if (nand_arm_power_cut(model->nand, &power_cut, &error))
		fail_msg("%s", error.text);
	seal(model, row);
	nand_power_status(model->nand, &status);
	if (!status.off) {
		nand_disarm_power_cut(model->nand);
		return false;
	}
	assert_int_equal(nand_power_on(model->nand), 0);
	return true;
}

static void test_the_power_fails_while_groups_are_joined(void **state)
{
	static const enum nand_cut_nvram kinds[] = { NAND_CUT_NVRAM_KEPT, NAND_CUT_NVRAM_FLUSHED,
						     NAND_CUT_NVRAM_MIXED };

	(void)state;
	for (uint32_t kind = 0; kind < 3; kind++) {
		uint32_t cuts = 0, joined = 0;

		for (bool off = true; off; cuts += off) {
			struct index_join join;
			uint32_t row;
			struct model *model = make(7, 2, &row, &join);

			off = cut(model, row, cuts, kinds[kind]);
			if (off && kinds[kind] != NAND_CUT_NVRAM_KEPT)
				model->options.records.boot_id = second_boot;
			model_crash(model);
			check_whole(model, row, &join);
			joined += is_joined(model, row, &join);
			check_newest(model);
			check_sound(model);
			/* Nobody stumbles over it later. */
			run(model, 40);
			check_newest(model);
			model_crash(model);
			check_sound(model);
			end(model);
		}
		print_message("%u cuts, %u behind the join\n", cuts, joined);
		assert_true(joined > 10 && cuts > joined + 10);
	}
}

/* Opens it without NVRAM: all that was sealed before is there, and perhaps what was being sealed.
 */
static void recover(struct model *model, const struct record_statistics *before)
{
	model->store->operations->close(model->store, false);
	open_without_nvram(model);
	assert_in_range(figures(model).segments_sealed, before->segments_sealed,
			before->segments_sealed + 1);
	assert_true(figures(model).sealed_records >= before->sealed_records);
	assert_int_equal(figures(model).sealed_records == before->sealed_records,
			 figures(model).segments_sealed == before->segments_sealed);
}

static void test_the_power_fails_with_nvram_lost_while_groups_are_joined(void **state)
{
	uint32_t cuts = 0, joined = 0;

	(void)state;
	for (bool off = true; off; cuts += off) {
		struct record_statistics before;
		struct index_join join;
		uint32_t row;
		struct model *model = make(8, 2, &row, &join);

		before = figures(model);
		off = cut(model, row, cuts, NAND_CUT_NVRAM_LOST);
		recover(model, &before);
		check_whole(model, row, &join);
		joined += is_joined(model, row, &join);
		check_sound(model);
		/* Again, from what it has written then. */
		before = figures(model);
		recover(model, &before);
		check_sound(model);
		end(model);
	}
	print_message("%u cuts, %u behind the join\n", cuts, joined);
	assert_true(joined > 10 && cuts > joined + 10);
}

/*
 * Merges a segment, until it is out of its group and that is to become stable. Whether it was of
 * the first one of groups that are due then.
 */
static bool take_out_of_due(struct model *model, uint32_t *row, struct index_join *join)
{
	const struct record_keep keep_nothing = { .bounds = NULL };
	struct record_merge merge = { .segments_wanted = 1,
				      .segments_least = 1,
				      .live_permille_max = 900,
				      .frees_behind = true };
	struct muninn_store *store = inside(model);
	const struct emptied *emptied = &store->merge_run->emptied;
	int result;

	while ((result = merge_piece(store, &keep_nothing, &merge)) == 1)
		merge_run_beside(store);
	assert_true(result == 0 || result == -EAGAIN);
	if (!emptied_take(store))
		return false;
	emptied_run(store);
	assert_int_equal(emptied_step(store), 1);
	assert_int_equal(emptied->stage, EMPTIED_OUT);
	return find_due(model, row, join) && emptied->kills[0].row == *row &&
	       emptied->kills[0].group == join->numbers[0];
}

static void let_go_what_is_out(struct model *model)
{
	if (!emptied_are_under_way(inside(model)))
		return;
	emptied_run(inside(model));
	assert_int_equal(emptied_step(inside(model)), 0);
}

/*
 * What is noted of a segment that went just before a join has its number in a group that is not
 * there any more.
 */
static void test_what_went_before_a_join_is_not_taken_out_of_the_joined_group(void **state)
{
	(void)state;
	for (uint64_t seed = 30; seed < 36; seed++) {
		struct record_statistics before;
		struct index_join join;
		uint32_t row = 0, tries = 0;
		struct model *model = make(seed, 1, &row, &join);

		while (!take_out_of_due(model, &row, &join)) {
			assert_true(++tries < 5000);
			let_go_what_is_out(model);
			for (uint32_t n = 0; n < 8; n++)
				model_transaction(model, true, false);
		}
		assert_int_equal(seal(model, row), 0);
		assert_true(is_joined(model, row, &join));
		let_go_what_is_out(model);
		/* Images of the groups, too: nothing else waits behind what has gone now. */
		assert_int_equal(space_held_back(&inside(model)->space), 0);
		before = figures(model);
		recover(model, &before);
		assert_int_equal(figures(model).segments_sealed, before.segments_sealed);
		assert_int_equal(figures(model).sealed_records, before.sealed_records);
		check_sound(model);
		end(model);
	}
}

/* ---- beside others ---- */

/* The stages go on between transactions and merges, and in the midst of them. */
static void test_groups_are_joined_beside_transactions_and_merges(void **state)
{
	uint32_t joins = 0;

	(void)state;
	for (uint64_t seed = 20; seed < 24; seed++) {
		struct sealers sealers = { .random = seed };
		struct index_join join;
		uint32_t row;
		struct model *model = make(seed, 1, &row, &join);

		model->sealers = &sealers;
		for (uint32_t n = 0; n < 3000; n++) {
			bool was = inside(model)->image_writing.join.count > 0;

			run(model, 1);
			joins += !was && inside(model)->image_writing.join.count > 0;
			if (n % 500 != 499)
				continue;
			model_crash(model);
			check_newest(model);
			check_sound(model);
		}
		assert_true(sealers.most_at_once > 1);
		model->sealers = NULL;
		end(model);
	}
	print_message("%u joins\n", joins);
	assert_true(joins > 8);
}

/* ---- lost pages ---- */

/* Loses page `page` of the images of groups that are due, or have been joined. */
static void lose_page_of(const struct model *model, uint32_t row, const struct index_join *join,
			 uint32_t page)
{
	for (uint32_t n = 0; n < join->count; n++) {
		const uint8_t *entry;

		if (!row_index_has(index_of(model, row), join->numbers[n]))
			continue;
		entry = entry_of(model, row, join->numbers[n]);
		lose_page(model->nand, directory_image_page(&inside(model)->geometry, entry, page));
	}
}

/* What can't be read is not joined. Parity has it, and it is written anew, without tags. */
static void test_groups_whose_images_are_damaged_stay(void **state)
{
	struct index_join join, later;
	uint32_t row;
	struct model *model = make(9, 2, &row, &join);

	(void)state;
	lose_page_of(model, row, &join, 1);
	assert_int_equal(seal(model, row), 0);
	assert_false(is_joined(model, row, &join));
	check_whole(model, row, &join);
	check_newest(model);
	assert_true(inside(model)->rows[row].keeps_groups);
	assert_true(row_index_find_join(index_of(model, row), &later));
	/* It is not tried again before the device is opened. */
	assert_int_equal(seal(model, row), 0);
	check_whole(model, row, &join);
	assert_false(is_joined(model, row, &join));
	model_crash(model);
	check_newest(model);
	end(model);
}

static void mend_once(struct model *model)
{
	const struct record_keep keep_nothing = { .bounds = NULL };
	struct record_merge merge = { .segments_wanted = 1, .choice = RECORD_MERGE_MENDED };

	assert_int_equal(model->store->operations->merge(model->store, &keep_nothing, &merge), 0);
}

/* A group that was joined is made again from its segments like any other. */
static void test_a_joined_group_is_made_again(void **state)
{
	struct index_join join;
	uint32_t row;
	struct model *model = make(10, 2, &row, &join);

	(void)state;
	assert_int_equal(seal(model, row), 0);
	assert_true(is_joined(model, row, &join));
	for (uint32_t page = 0; page < 4; page++)
		lose_page_of(model, row, &join, page);
	model_crash(model);
	assert_true(is_joined(model, row, &join));
	check_newest(model);
	assert_true(model->store->operations->damaged(model->store) > 0);
	while (model->store->operations->damaged(model->store))
		mend_once(model);
	check_sound(model);
	run(model, 300);
	check_newest(model);
	end(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups_that_are_due_give_their_place_to_one),
		cmocka_unit_test(test_what_groups_had_is_held_back_until_a_root_has_followed),
		cmocka_unit_test(test_joins_wait_for_space),
		cmocka_unit_test(test_groups_that_have_not_ended_end_at_opening),
		cmocka_unit_test(test_the_power_fails_while_groups_are_joined),
		cmocka_unit_test(test_the_power_fails_with_nvram_lost_while_groups_are_joined),
		cmocka_unit_test(test_what_went_before_a_join_is_not_taken_out_of_the_joined_group),
		cmocka_unit_test(test_groups_are_joined_beside_transactions_and_merges),
		cmocka_unit_test(test_groups_whose_images_are_damaged_stay),
		cmocka_unit_test(test_a_joined_group_is_made_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
