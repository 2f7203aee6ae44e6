/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The power fails at every operation of a mixed scenario, in every way: what was acknowledged is
 * there, what was in flight is whole, absent or detected. And scenarios that are wrong are found
 * out.
 */
#include <errno.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/nand/fixture.h"

#include "nand/rehearsal.h"

static const struct nand_geometry geometry = {
	.page_bytes = 512,
	.spare_bytes = 64,
	.pages_per_block = 8,
	.blocks = 4,
	.channels = 1,
	.dies_per_channel = 1,
};

enum { NVRAM_BYTES = 3 * 4096, STEPS = 70 };

/* ---- the scenario: a log that goes round the blocks ---- */

/*
 * Step n programs page n mod 32 with generation n / 32 + 1, after erasing the block when it comes
 * round to it again, and notes n + 1 in the NVRAM as the number of steps done, which every fourth
 * step it syncs.
 */
struct rounds {
	uint64_t acknowledged;      /* steps */
	uint64_t flushed;           /* steps noted when an NVRAM sync last succeeded */
	bool notes_too_early;       /* the bug that the rehearsal must find */
	uint64_t wrong;             /* checks that found something wrong */
	uint64_t lost_acknowledged; /* of these: steps that were acknowledged */
};

static void prepare(struct nand *nand, void *context)
{
	struct rounds *rounds = context;

	nand_set_violation_policy(nand, NAND_VIOLATION_FAILS);
	rounds->acknowledged = rounds->flushed = 0;
}

static int step(struct nand *nand, struct rounds *rounds, uint64_t n)
{
	uint8_t *nvram = nand_nvram(nand, NULL);
	int result = 0;

	if (rounds->notes_too_early)
		put_le64(nvram, n + 1);
	if (n % 32 % 8 == 0 && n >= 32)
		result = nand_erase(nand, NAND_CAUSE_USER, (uint32_t)(n % 32 / 8));
	if (result == 0)
		result = program_filled(nand, n % 32, (uint32_t)(n / 32) + 1);
	if (result < 0)
		return result;
	put_le64(nvram, n + 1);
	rounds->acknowledged = n + 1;
	if (n % 4 == 3) {
		result = nand_nvram_sync(nand, 0, 8);
		if (result == 0)
			rounds->flushed = n + 1;
	}
	if (result == 0 && n % 16 == 15)
		result = nand_sync(nand, 0, 4);
	return result;
}

static void run(struct nand *nand, void *context)
{
	int result = 0;

	for (uint64_t n = 0; n < STEPS && result == 0; n++)
		result = step(nand, context, n);
}

/* The steps whose pages are to be found, of those that are noted: what they erased is gone. */
static bool is_overwritten(uint64_t n, uint64_t noted)
{
	return noted >= 32 && n / 8 <= (noted - 32) / 8;
}

static bool holds(struct nand *nand, uint64_t page, uint32_t generation)
{
	uint8_t data[512], spare[64], expected_data[512], expected_spare[64];
	struct nand_page_io io = { page, data, spare };

	fill_page(nand, page, generation, expected_data, expected_spare);
	return nand_read(nand, NAND_CAUSE_USER, &io, 1) == 0 &&
	       memcmp(data, expected_data, sizeof(data)) == 0 &&
	       memcmp(spare, expected_spare, nand_spare_usable(&geometry)) == 0;
}

static void check_pages(struct nand *nand, struct rounds *rounds, uint64_t noted)
{
	for (uint64_t n = 0; n < noted; n++) {
		if (!is_overwritten(n, noted))
			rounds->wrong += !holds(nand, n % 32, (uint32_t)(n / 32) + 1);
	}
}

static void check(struct nand *nand, void *context, const struct nand_power_cut *cut)
{
	struct rounds *rounds = context;
	uint64_t noted = get_le64(nand_nvram(nand, NULL));
	enum nand_cut_nvram mode = cut ? cut->nvram : NAND_CUT_NVRAM_KEPT;

	if (mode == NAND_CUT_NVRAM_KEPT && noted != rounds->acknowledged)
		rounds->lost_acknowledged++;
	if (mode == NAND_CUT_NVRAM_FLUSHED && noted != rounds->flushed)
		rounds->lost_acknowledged++;
	if (mode == NAND_CUT_NVRAM_LOST && noted != 0)
		rounds->wrong++;
	if (mode == NAND_CUT_NVRAM_MIXED && noted != rounds->acknowledged &&
	    noted != rounds->flushed)
		rounds->wrong++;
	check_pages(nand, rounds, rounds->acknowledged);
	if (mode == NAND_CUT_NVRAM_KEPT)
		check_pages(nand, rounds, noted);
	/* Whatever is on the flash, no read returns what was never programmed there. */
	for (uint64_t page = 0; page < 32; page++) {
		uint8_t data[512];
		struct nand_page_io io = { page, data, NULL };

		if (nand_read(nand, NAND_CAUSE_USER, &io, 1) == 0)
			rounds->wrong += !holds(nand, page, 1) && !holds(nand, page, 2) &&
					 !holds(nand, page, 3);
	}
}

static uint64_t rehearse(struct rounds *rounds, enum nand_cut_nvram nvram)
{
	struct nand_power_cut ends[NAND_REHEARSAL_ENDS];
	struct nand_rehearsal rehearsal = {
		.geometry = &geometry,
		.nvram_bytes = NVRAM_BYTES,
		.context = rounds,
		.prepare = prepare,
		.run = run,
		.check = check,
		.ends = ends,
		.ends_count = NAND_REHEARSAL_ENDS,
	};
	struct error_text error;
	uint64_t runs = 0;

	log_capture();
	nand_rehearsal_ends(&geometry, nvram, ends);
	if (nand_rehearse(&rehearsal, &runs, &error) < 0)
		fail_msg("%s", error.text);
	return runs;
}

/* Operations of the whole scenario: programs, erases, NVRAM syncs, image syncs. */
enum { OPERATIONS = STEPS + 5 + STEPS / 4 + STEPS / 16 };

static void test_every_operation_is_cut_in_every_way_and_nothing_acknowledged_is_lost(void **state)
{
	(void)state;
	for (int nvram = 0; nvram < NAND_CUT_NVRAMS; nvram++) {
		struct rounds rounds = { 0 };

		assert_int_equal(rehearse(&rounds, nvram), (OPERATIONS + 1) * NAND_REHEARSAL_ENDS);
		assert_int_equal(rounds.wrong, 0);
		assert_int_equal(rounds.lost_acknowledged, 0);
	}
}

static void test_a_scenario_that_notes_before_it_has_done_is_found_out(void **state)
{
	struct rounds rounds = { .notes_too_early = true };

	(void)state;
	rehearse(&rounds, NAND_CUT_NVRAM_KEPT);
	assert_true(rounds.lost_acknowledged > 0);
	assert_true(rounds.wrong > 0);
}

static uint64_t runs_seen, hits_seen, last_after;

static void one_point(struct nand *nand, void *context)
{
	(void)context;
	for (int i = 0; i < 10; i++)
		if (nand_power_point(nand) < 0)
			break;
}

static void count_runs(struct nand *nand, void *context, const struct nand_power_cut *cut)
{
	(void)nand;
	(void)context;
	runs_seen++;
	hits_seen += cut != NULL;
	last_after = cut ? cut->after : last_after;
}

static void test_stride_and_limit_thin_a_long_series(void **state)
{
	const struct nand_power_cut end = { 0 };
	struct nand_rehearsal rehearsal = {
		.geometry = &geometry,
		.run = one_point,
		.check = count_runs,
		.ends = &end,
		.ends_count = 1,
	};
	uint64_t runs = 0;

	(void)state;
	log_capture();
	assert_int_equal(nand_rehearse(&rehearsal, &runs, NULL), 0);
	assert_int_equal(runs, 11);
	assert_int_equal(runs_seen, 11);
	assert_int_equal(hits_seen, 10);
	assert_int_equal(last_after, 9);
	rehearsal.stride = 4;
	runs = hits_seen = 0;
	assert_int_equal(nand_rehearse(&rehearsal, &runs, NULL), 0);
	assert_int_equal(runs, 4);
	assert_int_equal(hits_seen, 3);
	assert_int_equal(last_after, 8);
	rehearsal.points_max = 2;
	runs = 0;
	assert_int_equal(nand_rehearse(&rehearsal, &runs, NULL), 0);
	assert_int_equal(runs, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_every_operation_is_cut_in_every_way_and_nothing_acknowledged_is_lost),
		cmocka_unit_test(test_a_scenario_that_notes_before_it_has_done_is_found_out),
		cmocka_unit_test(test_stride_and_limit_thin_a_long_series),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
