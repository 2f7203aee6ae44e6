/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Which free segment is taken, which one that lies still is named, and which are retired. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/records/space.h"
#include "nand/faults.h"

enum { SEGMENTS = 208, BLOCK_PAGES = 8 };

static const struct nand_geometry nand_shape = {
	.page_bytes = 512,
	.spare_bytes = 64,
	.pages_per_block = BLOCK_PAGES,
	.blocks = SEGMENTS,
	.channels = 1,
	.dies_per_channel = 1,
};

static const struct space_shape shape = { .segment_blocks = 1, .segments = SEGMENTS };

static struct nand *open_nand(void)
{
	struct error_text error = { "" };
	struct nand *nand = NULL;

	if (nand_open_memory(&nand_shape, 4096, &nand, &error))
		fail_msg("%s", error.text);
	return nand;
}

static void program(struct nand *nand, uint64_t page)
{
	uint8_t data[512] = { 0 };
	struct nand_page_io io = { .page = page, .data = data };

	assert_int_equal(nand_program(nand, NAND_CAUSE_USER, &io, 1), 0);
}

static void wear_out(struct nand *nand, uint32_t block, int erasures)
{
	for (int i = 0; i < erasures; i++)
		assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, block), 0);
}

static void test_of_segments_as_worn_the_one_that_was_free_longest_is_taken(void **state)
{
	struct nand *nand = open_nand();
	bool in_use[SEGMENTS] = { [0] = true, [3] = true };
	struct space space;
	uint32_t segment;

	(void)state;
	assert_int_equal(space_create(&space, nand, &shape, in_use), 0);
	assert_int_equal(space.count, SEGMENTS - 2);
	space_release(&space, 3);
	for (uint32_t expected = 1; expected < SEGMENTS; expected++) {
		if (expected == 3)
			continue;
		assert_int_equal(space_take(&space, &segment), 0);
		assert_int_equal(segment, expected);
	}
	assert_int_equal(space_take(&space, &segment), 0);
	assert_int_equal(segment, 3);
	assert_int_equal(space_take(&space, &segment), -ENOSPC);
	space_destroy(&space);
	assert_int_equal(nand_close(nand), 0);
}

static uint32_t end_of(struct nand *nand, uint32_t segment)
{
	uint32_t end;

	assert_int_equal(segment_end(nand, 1, segment, &end), 0);
	return end;
}

/* False: there is none. */
static bool trim(struct space *space, uint32_t kept)
{
	uint32_t before = space_free(space);

	if (!space_trim_take(space, kept))
		return false;
	assert_int_equal(space_free(space), before);
	assert_int_equal(space->count, before - 1);
	assert_false(space_trim_take(space, kept));
	space_trim_empty(space);
	space_trim_put_back(space);
	assert_int_equal(space_free(space), before - (space->away_result != 0));
	return true;
}

static void test_what_is_free_and_not_taken_soon_is_emptied(void **state)
{
	bool in_use[SEGMENTS] = { [0] = true };
	struct nand *nand = open_nand();
	struct space space;
	uint32_t segment, trimmed = 0;

	(void)state;
	for (uint32_t block = 0; block < 20; block++)
		program(nand, (uint64_t)block * BLOCK_PAGES);
	assert_int_equal(space_create(&space, nand, &shape, in_use), 0);
	/* A look changes nothing. */
	assert_true(space_trim_look(&space, 5));
	assert_int_equal(end_of(nand, 6), 1);
	while (trim(&space, 5))
		trimmed++;
	/* Segments 1 to 5 come next. */
	assert_int_equal(trimmed, 14);
	for (uint32_t block = 0; block < 20; block++)
		assert_int_equal(end_of(nand, block), block < 6);
	assert_false(space_trim_look(&space, 5));
	/* Nothing is erased twice for it. */
	for (uint32_t n = 0; n < SEGMENTS - 1; n++) {
		struct nand_block_info info;

		assert_int_equal(space_take(&space, &segment), 0);
		assert_int_equal(nand_block_info(nand, segment, &info), 0);
		assert_int_equal(info.erase_count, segment < 20);
	}
	space_destroy(&space);
	assert_int_equal(nand_close(nand), 0);
}

static void test_nobody_gets_what_is_being_emptied(void **state)
{
	bool in_use[SEGMENTS] = { [0] = true };
	struct nand *nand = open_nand();
	struct space space;
	uint32_t segment;

	(void)state;
	program(nand, 9 * BLOCK_PAGES);
	assert_int_equal(space_create(&space, nand, &shape, in_use), 0);
	space_hold(&space, 0);
	assert_true(space_trim_take(&space, 5));
	assert_int_equal(space.away, 9);
	for (uint32_t n = 0; n < SEGMENTS - 2; n++) {
		assert_int_equal(space_reserve(&space, &segment), 0);
		assert_int_equal(segment, n < 8 ? n + 1 : n + 2);
	}
	assert_int_equal(space_reserve(&space, &segment), -ENOSPC);
	space_trim_empty(&space);
	space_trim_put_back(&space);
	space_let_go(&space, space.held);
	/* The less worn one comes first. */
	for (uint32_t n = 0; n < 2; n++) {
		assert_int_equal(space_reserve(&space, &segment), 0);
		assert_int_equal(segment, n ? 9 : 0);
		assert_int_equal(end_of(nand, segment), 0);
	}
	space_destroy(&space);
	assert_int_equal(nand_close(nand), 0);
}

static blkcnt_t allocated(const char *path)
{
	struct stat status;

	assert_int_equal(stat(path, &status), 0);
	return status.st_blocks;
}

/* As segments are that were taken ahead for their neighbours, or erased and released again. */
static void test_what_is_erased_and_has_space_gives_it_back(void **state)
{
	char path[] = "/tmp/test_space.XXXXXX", nvram[sizeof(path) + sizeof(".nvram")];
	const bool in_use[SEGMENTS] = { [0] = true };
	const struct nand_options options = { .space = NAND_SPACE_KEPT };
	struct error_text error = { "" };
	struct space space;
	struct nand *nand;
	blkcnt_t full;

	(void)state;
	close(mkstemp(path));
	unlink(path);
	snprintf(nvram, sizeof(nvram), "%s.nvram", path);
	if (nand_create(path, &nand_shape, 4096, &error) ||
	    nand_open_with(path, &options, &nand, &error))
		fail_msg("%s", error.text);
	for (uint32_t block = 1; block < SEGMENTS; block++) {
		program(nand, (uint64_t)block * BLOCK_PAGES);
		assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, block), 0);
	}
	full = allocated(path);
	assert_int_equal(space_create(&space, nand, &shape, in_use), 0);
	for (int round = 0; round < 2; round++)
		while (trim(&space, 7))
			;
	/* A part of it, as the host's file system has larger pieces than this flash. */
	assert_in_range(allocated(path), 0, full - (SEGMENTS - 8) * BLOCK_PAGES * 512 / 512 / 2);
	assert_false(space_trim_look(&space, 7));
	/* Those that are taken next have it, or get it ahead. */
	for (uint32_t n = 0; n < 7; n++)
		assert_true(nand_may_give_back(nand, space.ring[(space.first + n) % SEGMENTS]));
	space_destroy(&space);
	assert_int_equal(nand_close(nand), 0);
	unlink(path);
	unlink(nvram);
}

static void fail_erases(struct nand *nand, uint64_t at)
{
	struct nand_faults faults = nand_faults_default();
	struct error_text error;

	faults.erase_fails_at = at;
	faults.on = 1U << NAND_FAULT_ERASE;
	assert_int_equal(nand_set_faults(nand, &faults, &error), 0);
}

static void test_what_can_t_be_emptied_is_retired(void **state)
{
	bool in_use[SEGMENTS] = { [0] = true };
	struct nand *nand = open_nand();
	struct space space;
	uint32_t segment;

	(void)state;
	for (uint32_t block = 8; block < 12; block++)
		program(nand, (uint64_t)block * BLOCK_PAGES);
	assert_int_equal(space_create(&space, nand, &shape, in_use), 0);
	fail_erases(nand, 2);
	while (trim(&space, 0))
		;
	assert_int_equal(space.retired, 1);
	assert_int_equal(space.count, SEGMENTS - 2);
	for (uint32_t n = 0; n < SEGMENTS - 2; n++) {
		assert_int_equal(space_take(&space, &segment), 0);
		assert_int_not_equal(segment, 9);
	}
	space_destroy(&space);
	assert_int_equal(nand_close(nand), 0);
}

/* In the order in which they came, behind those that are free. */
static void test_what_is_held_back_is_taken_when_it_has_been_let_go(void **state)
{
	const bool in_use[SEGMENTS] = { true, true, true, true };
	struct nand *nand = open_nand();
	uint64_t held[3];
	struct space space;
	uint32_t segment, others;

	(void)state;
	assert_int_equal(space_create(&space, nand, &shape, in_use), 0);
	others = space.count;
	for (uint32_t n = 0; n < 3; n++) {
		space_hold(&space, n);
		held[n] = space.held;
	}
	space_release(&space, 3);
	assert_int_equal(space.count, others + 1);
	assert_int_equal(space_held_back(&space), 3);
	for (uint32_t n = 0; n <= others; n++) {
		assert_int_equal(space_take(&space, &segment), 0);
		assert_int_equal(segment, n < others ? 4 + n : 3);
	}
	assert_int_equal(space_take(&space, &segment), -ENOSPC);
	space_let_go(&space, held[1]);
	assert_int_equal(space_held_back(&space), 1);
	for (uint32_t n = 0; n < 2; n++) {
		assert_int_equal(space_take(&space, &segment), 0);
		assert_int_equal(segment, n);
	}
	assert_int_equal(space_take(&space, &segment), -ENOSPC);
	/* Those have gone already. */
	space_let_go(&space, held[0]);
	assert_int_equal(space.count, 0);
	space_let_go(&space, held[2]);
	assert_int_equal(space_take(&space, &segment), 0);
	assert_int_equal(segment, 2);
	space_destroy(&space);
	assert_int_equal(nand_close(nand), 0);
}

/* As an opening does that has to look at the segments again, and fails then. */
static void test_what_was_destroyed_may_be_destroyed_again(void **state)
{
	const bool in_use[SEGMENTS] = { false };
	struct nand *nand = open_nand();
	struct space space;

	(void)state;
	assert_int_equal(space_create(&space, nand, &shape, in_use), 0);
	space_destroy(&space);
	space_destroy(&space);
	assert_int_equal(nand_close(nand), 0);
}

static void test_a_worn_segment_waits_while_less_worn_ones_are_near(void **state)
{
	struct nand *nand = open_nand();
	bool in_use[SEGMENTS] = { false };
	struct space space;
	uint32_t segment;

	(void)state;
	wear_out(nand, 0, 5);
	wear_out(nand, 1, 3);
	wear_out(nand, 2, 3);
	assert_int_equal(space_create(&space, nand, &shape, in_use), 0);
	for (uint32_t expected = 3; expected < SEGMENTS; expected++) {
		assert_int_equal(space_take(&space, &segment), 0);
		assert_int_equal(segment, expected);
	}
	for (uint32_t n = 0; n < 3; n++) {
		assert_int_equal(space_take(&space, &segment), 0);
		assert_int_equal(segment, n == 2 ? 0 : n + 1);
	}
	space_destroy(&space);
	assert_int_equal(nand_close(nand), 0);
}

static void test_taking_a_written_segment_erases_it_and_counts_that(void **state)
{
	struct nand *nand = open_nand();
	bool in_use[SEGMENTS] = { false };
	struct space space;
	uint32_t segment;

	(void)state;
	program(nand, 0);
	assert_int_equal(space_create(&space, nand, &shape, in_use), 0);
	/* Taken, it is erased, and that counts. */
	assert_int_equal(space_take(&space, &segment), 0);
	assert_int_equal(segment, 0);
	assert_int_equal(space.wear[0], 1);
	assert_int_equal(space.wear_most, 1);
	assert_int_equal(space.retired, 0);
	space_destroy(&space);
	assert_int_equal(nand_close(nand), 0);
}

/* Segments of two blocks; the first three of the device are not to be given out. */
static void test_a_segment_of_more_blocks_is_as_worn_as_its_most_worn_one(void **state)
{
	const struct space_shape wide = { .segment_blocks = 2, .first = 3, .segments = 8 };
	struct nand *nand = open_nand();
	bool in_use[8] = { [6] = true };
	uint32_t segment, end;
	struct space space;

	(void)state;
	wear_out(nand, 0, 9);
	wear_out(nand, 3 * 2 + 1, 4);
	assert_int_equal(space_create(&space, nand, &wide, in_use), 0);
	assert_int_equal(space.count, 4);
	assert_int_equal(space.wear_most, 4);
	assert_int_equal(space_take(&space, &segment), 0);
	assert_int_equal(segment, 4);
	assert_int_equal(segment_end(nand, 2, segment, &end), 0);
	assert_int_equal(end, 0);
	for (uint32_t page = 0; page < BLOCK_PAGES + 3; page++)
		program(nand, segment * UINT64_C(2) * BLOCK_PAGES + page);
	assert_int_equal(segment_end(nand, 2, segment, &end), 0);
	assert_int_equal(end, BLOCK_PAGES + 3);
	space_destroy(&space);
	assert_int_equal(nand_close(nand), 0);
}

static void test_a_segment_that_cannot_be_erased_is_retired(void **state)
{
	bool in_use[SEGMENTS] = { false };
	struct nand *nand = open_nand();
	struct space space;
	uint32_t segment;

	(void)state;
	program(nand, 0);
	assert_int_equal(space_create(&space, nand, &shape, in_use), 0);
	fail_erases(nand, 1);
	assert_int_equal(space_take(&space, &segment), 0);
	assert_int_equal(segment, 1);
	assert_int_equal(space.retired, 1);
	assert_int_equal(space.count, SEGMENTS - 2);
	space_destroy(&space);
	assert_int_equal(nand_close(nand), 0);
}

/* ---- levelling ---- */

static bool is_in_use(const void *context, uint32_t segment)
{
	const bool *in_use = context;

	return in_use[segment];
}

/* Takes and releases so many segments. */
static void turn_over(struct space *space, uint32_t segments)
{
	for (uint32_t n = 0; n < segments; n++) {
		uint32_t segment;

		assert_int_equal(space_take(space, &segment), 0);
		space_release(space, segment);
	}
}

static void test_what_lies_still_on_a_hardly_worn_segment_is_named_now_and_then(void **state)
{
	bool in_use[SEGMENTS] = { [0] = true, [1] = true, [2] = true };
	struct nand *nand = open_nand();
	struct space space;

	(void)state;
	wear_out(nand, 0, 2);
	wear_out(nand, 1, 1);
	wear_out(nand, 2, SPACE_WEAR_SPREAD);
	assert_int_equal(space_create(&space, nand, &shape, in_use), 0);
	/* Not before enough has been written, nor twice for it. */
	turn_over(&space, SPACE_LEVEL_EVERY - 1);
	assert_int_equal(space_level(&space, is_in_use, in_use), NO_SEGMENT);
	turn_over(&space, 1);
	/* Nothing in use is so far behind yet: what is free levels itself. */
	assert_int_equal(space_level(&space, is_in_use, in_use), NO_SEGMENT);
	space_destroy(&space);
	wear_out(nand, 2, 1);
	assert_int_equal(space_create(&space, nand, &shape, in_use), 0);
	turn_over(&space, SPACE_LEVEL_EVERY);
	assert_int_equal(space_level(&space, is_in_use, in_use), 1);
	assert_int_equal(space_level(&space, is_in_use, in_use), NO_SEGMENT);
	/* What can't be moved is left alone. */
	turn_over(&space, SPACE_LEVEL_EVERY);
	assert_int_equal(space_level(&space, is_in_use, in_use), 1);
	space_leave(&space, 1);
	turn_over(&space, SPACE_LEVEL_EVERY);
	assert_int_equal(space_level(&space, is_in_use, in_use), NO_SEGMENT);
	space_destroy(&space);
	assert_int_equal(nand_close(nand), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_segments_as_worn_the_one_that_was_free_longest_is_taken),
		cmocka_unit_test(test_what_is_held_back_is_taken_when_it_has_been_let_go),
		cmocka_unit_test(test_what_is_free_and_not_taken_soon_is_emptied),
		cmocka_unit_test(test_nobody_gets_what_is_being_emptied),
		cmocka_unit_test(test_what_is_erased_and_has_space_gives_it_back),
		cmocka_unit_test(test_what_can_t_be_emptied_is_retired),
		cmocka_unit_test(test_what_was_destroyed_may_be_destroyed_again),
		cmocka_unit_test(test_a_worn_segment_waits_while_less_worn_ones_are_near),
		cmocka_unit_test(test_taking_a_written_segment_erases_it_and_counts_that),
		cmocka_unit_test(test_a_segment_of_more_blocks_is_as_worn_as_its_most_worn_one),
		cmocka_unit_test(test_a_segment_that_cannot_be_erased_is_retired),
		cmocka_unit_test(
			test_what_lies_still_on_a_hardly_worn_segment_is_named_now_and_then),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
