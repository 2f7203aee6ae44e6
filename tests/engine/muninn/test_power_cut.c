/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The power of the flash fails at every operation of a load that seals segments, completes a table,
 * flushes, inside transactions too, and merges, and between the stores to NVRAM of every command;
 * the page in flight is absent, torn or garbage.
 *
 * With the NVRAM kept, which is what the store is made for, every committed transaction is there
 * and the one in flight is whole or absent. With the NVRAM lost, the store refuses to open. With
 * the host failed too, so that the NVRAM is back at its last syncs or a mixture of old and new
 * pages, the state is that of some transaction between the last flush and the last commit, whole.
 * No value is ever wrong.
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
#include "tests/engine/index_under_test.h"
#include "tests/engine/muninn/power_cut_load.h"
#include "tests/repetition.h"

/* ---- the rehearsals ---- */

static void discard_line(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

/* As threads would do it: see sealers.h. */
static bool seals_beside, flushes_beside;

static struct load *rehearse(enum nand_cut_nvram nvram, size_t ends_first, size_t ends_count,
			     bool points, uint64_t every)
{
	struct nand_power_cut ends[NAND_REHEARSAL_ENDS];
	struct load *load = calloc(1, sizeof(*load));
	struct error_text error = { "" };
	uint64_t runs = 0;

	assert_non_null(load);
	log_configure(discard_line, LOG_LEVEL_ERROR);
	load_set_stage(load);
	assert_int_equal(load->spanned > 0, load_value_bytes == SPANNED_BYTES);
	load->points = points;
	load->seals_beside = seals_beside;
	load->flushes_beside = flushes_beside;
	nand_rehearsal_ends(&load_geometry, nvram, ends);
	struct nand_rehearsal rehearsal = {
		.geometry = &load_geometry,
		.nvram_bytes = load->nvram_bytes,
		.context = load,
		.prepare = load_prepare,
		.run = load_run,
		.check = load_check,
		.ends = ends + ends_first,
		.ends_count = ends_count,
		/* Few cuts meet each of the parts that flushes beside the load have. */
		.stride = flushes_beside ? every : cut_stride(every),
	};

	if (nand_rehearse(&rehearsal, &runs, &error))
		fail_msg("%s", error.text);
	print_message("%llu runs: %llu all present, %llu older, %llu refused, %llu damage "
		      "reported, %llu flushed data"
		      " lost, %llu torn, %llu wrong\n",
		      (unsigned long long)runs, (unsigned long long)load->outcomes.present,
		      (unsigned long long)load->outcomes.older,
		      (unsigned long long)load->outcomes.refused,
		      (unsigned long long)load->outcomes.detected,
		      (unsigned long long)load->outcomes.lost,
		      (unsigned long long)load->outcomes.torn,
		      (unsigned long long)load->outcomes.wrong);
	print_message("in flight: %llu programs, %llu erases, %llu syncs; between stores to NVRAM: "
		      "%llu\n",
		      (unsigned long long)load->in_flight.programs,
		      (unsigned long long)load->in_flight.erases,
		      (unsigned long long)load->in_flight.syncs,
		      (unsigned long long)load->in_flight.points);
	assert_true(load->in_flight.programs > 0 && load->in_flight.erases > 0 &&
		    load->in_flight.syncs > 0);
	if (load->refusal[0])
		print_message("a refusal: %s\n", load->refusal);
	nand_abandon(load->stage);
	log_configure(NULL, LOG_LEVEL_WARNING);
	return load;
}

static void test_nvram_kept_cut_between_any_two_stores_of_a_command(void **state)
{
	(void)state;
	free(rehearse(NAND_CUT_NVRAM_KEPT, 0, 1, true, 1));
}

static void test_with_parity_a_page_of_each_segment_is_lost_besides(void **state)
{
	const uint32_t spare_bytes = load_geometry.spare_bytes;

	(void)state;
	load_geometry.spare_bytes = SPARE_BYTES_PARITY;
	load_options.muninn.parity = 1;
	free(rehearse(NAND_CUT_NVRAM_KEPT, 0, NAND_REHEARSAL_ENDS, false, 1));
	/* Segments that are programmed in parts. */
	load_class_of_keys = RECORD_CLASS_HISTORY;
	free(rehearse(NAND_CUT_NVRAM_KEPT, 0, 1, false, 2));
	load_class_of_keys = RECORD_CLASS_DATA;
	load_options.muninn.parity = MUNINN_PARITY_NONE;
	load_geometry.spare_bytes = spare_bytes;
}

static void test_nvram_kept_with_the_page_in_flight_torn_or_garbage(void **state)
{
	(void)state;
	free(rehearse(NAND_CUT_NVRAM_KEPT, 1, NAND_REHEARSAL_ENDS - 1, false, 1));
}

/* History's row has two buffers most of the time, and segments that are programmed in parts. */
static void test_nvram_kept_with_records_of_history_in_a_row_of_two_buffers(void **state)
{
	(void)state;
	load_class_of_keys = RECORD_CLASS_HISTORY;
	free(rehearse(NAND_CUT_NVRAM_KEPT, 0, 1, true, 1));
	load_class_of_keys = RECORD_CLASS_DATA;
}

static void seal_beside(void)
{
	seals_beside = true;
	load_options.muninn.rows = 4;
	load_stage_space = 1;
}

static void seal_at_once(void)
{
	seals_beside = false;
	load_options.muninn.rows = 1;
	load_stage_space = 6;
}

static void test_nvram_kept_while_several_full_buffers_are_sealed_behind_commands(void **state)
{
	struct load *load;

	(void)state;
	seal_beside();
	load = rehearse(NAND_CUT_NVRAM_KEPT, 0, 1, true, 1);
	seal_at_once();
	assert_in_range(load->most_at_once, 2, SEALERS);
	free(load);
}

/* One operation of some twenty is an erase. With fewer cuts, sanitized, none may meet any. */
static void test_nvram_lost_is_refused_with_a_clear_message(void **state)
{
	struct load *load = rehearse(NAND_CUT_NVRAM_LOST, 0, 2, false, 2);

	(void)state;
	assert_int_equal(load->outcomes.present, 2); /* the runs without a cut */
	assert_true(load->outcomes.refused > 0);
	assert_int_equal(load->outcomes.older + load->outcomes.lost + load->outcomes.detected, 0);
	assert_int_equal(load->outcomes.torn + load->outcomes.wrong, 0);
	assert_non_null(strstr(load->refusal, "recover_without_nvram"));
	free(load);
}

/*
 * The state is that of a flush or of a later transaction, whole: nothing flushed is missing,
 * nothing else is there in part.
 */
static void expect_whole_transactions(const struct load *load)
{
	assert_true(load->outcomes.older > 0);
	assert_int_equal(load->outcomes.torn, 0);
	assert_int_equal(load->outcomes.wrong, 0);
	assert_int_equal(load->outcomes.lost, 0);
	assert_int_equal(load->outcomes.detected, 0);
	assert_int_equal(load->outcomes.refused, 0);
}

static void test_the_host_fails_and_its_nvram_is_as_last_flushed(void **state)
{
	struct load *load = rehearse(NAND_CUT_NVRAM_FLUSHED, 0, 3, true, 1);

	(void)state;
	expect_whole_transactions(load);
	free(load);
}

static void test_the_host_fails_and_its_nvram_is_a_mixture_of_old_and_new_pages(void **state)
{
	struct load *load = rehearse(NAND_CUT_NVRAM_MIXED, 0, 3, true, 1);

	(void)state;
	expect_whole_transactions(load);
	free(load);
}

static void test_the_host_fails_with_records_of_history_in_a_row_of_two_buffers(void **state)
{
	static const enum nand_cut_nvram nvram[] = { NAND_CUT_NVRAM_FLUSHED, NAND_CUT_NVRAM_MIXED };

	(void)state;
	load_class_of_keys = RECORD_CLASS_HISTORY;
	for (size_t i = 0; i < 2; i++) {
		struct load *load = rehearse(nvram[i], 0, 3, true, 2);

		expect_whole_transactions(load);
		free(load);
	}
	load_class_of_keys = RECORD_CLASS_DATA;
}

static void test_the_host_fails_while_several_full_buffers_are_sealed_behind_commands(void **state)
{
	static const enum nand_cut_nvram nvram[] = { NAND_CUT_NVRAM_FLUSHED, NAND_CUT_NVRAM_MIXED };

	(void)state;
	seal_beside();
	for (size_t i = 0; i < 2; i++) {
		struct load *load = rehearse(nvram[i], 0, 3, true, 2);

		expect_whole_transactions(load);
		assert_in_range(load->most_at_once, 2, SEALERS);
		free(load);
	}
	seal_at_once();
}

/*
 * The number of a flush is taken between any two puts, and the NVRAM gets to the host's storage in
 * parts, while puts, seals and a merge in pieces go on.
 */
static void test_the_host_fails_while_a_flush_goes_on_beside_commands(void **state)
{
	static const enum nand_cut_nvram nvram[] = { NAND_CUT_NVRAM_FLUSHED, NAND_CUT_NVRAM_MIXED };

	(void)state;
	flushes_beside = true;
	for (size_t i = 0; i < 4; i++) {
		struct load *load;

		if (i >= 2)
			seal_beside();
		load = rehearse(nvram[i % 2], 0, 3, true, i < 2 ? 3 : 4);
		seal_at_once();
		print_message("%llu flushes ended, %llu merges\n",
			      (unsigned long long)load->flushes, (unsigned long long)load->merges);
		assert_true(load->flushes > 1000 && load->merges > 500);
		expect_whole_transactions(load);
		free(load);
	}
	flushes_beside = false;
}

/*
 * With consent the store opens all the same. What was in the buffers is gone, so commands are there
 * in part, or not at all; no value is wrong, and nothing is damaged.
 */
static void test_nvram_lost_is_recovered_from_flash_with_consent(void **state)
{
	struct load *load;

	(void)state;
	load_options.records.recover_without_nvram = true;
	load = rehearse(NAND_CUT_NVRAM_LOST, 0, 3, false, 2);
	load_options.records.recover_without_nvram = false;
	assert_int_equal(load->outcomes.refused, 0);
	assert_int_equal(load->outcomes.detected + load->outcomes.wrong, 0);
	free(load);
}

static void test_the_same_with_records_that_span_pages(void **state)
{
	const uint32_t space = load_stage_space;

	if (load_options.muninn.index != INDEX_RIBBON)
		skip();
	load_value_bytes = SPANNED_BYTES;
	load_stage_space = 3;
	test_nvram_kept_cut_between_any_two_stores_of_a_command(state);
	test_nvram_kept_with_the_page_in_flight_torn_or_garbage(state);
	test_with_parity_a_page_of_each_segment_is_lost_besides(state);
	test_nvram_lost_is_recovered_from_flash_with_consent(state);
	test_the_host_fails_and_its_nvram_is_as_last_flushed(state);
	test_the_host_fails_and_its_nvram_is_a_mixture_of_old_and_new_pages(state);
	test_nvram_kept_while_several_full_buffers_are_sealed_behind_commands(state);
	test_the_host_fails_while_several_full_buffers_are_sealed_behind_commands(state);
	load_stage_space = space;
	load_value_bytes = VALUE_BYTES;
}

/* Segments are longer: of few pages larger records take too much. */
static void test_the_same_where_some_of_these_are_larger_than_the_others(void **state)
{
	const uint32_t blocks = load_geometry.blocks, pages = load_options.muninn.segment_pages;
	const uint32_t space = load_stage_space;

	if (load_options.muninn.index != INDEX_RIBBON)
		skip();
	load_value_bytes = SPANNED_BYTES;
	load_has_larger = true;
	load_geometry.blocks = 4 * blocks;
	load_options.muninn.segment_pages = 8 * pages;
	load_stage_space = 1;
	test_nvram_kept_cut_between_any_two_stores_of_a_command(state);
	test_the_host_fails_and_its_nvram_is_a_mixture_of_old_and_new_pages(state);
	load_stage_space = space;
	load_options.muninn.segment_pages = pages;
	load_geometry.blocks = blocks;
	load_has_larger = false;
	load_value_bytes = VALUE_BYTES;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nvram_kept_cut_between_any_two_stores_of_a_command),
		cmocka_unit_test(test_nvram_kept_with_the_page_in_flight_torn_or_garbage),
		cmocka_unit_test(test_with_parity_a_page_of_each_segment_is_lost_besides),
		cmocka_unit_test(test_nvram_kept_with_records_of_history_in_a_row_of_two_buffers),
		cmocka_unit_test(
			test_nvram_kept_while_several_full_buffers_are_sealed_behind_commands),
		cmocka_unit_test(test_nvram_lost_is_refused_with_a_clear_message),
		cmocka_unit_test(test_nvram_lost_is_recovered_from_flash_with_consent),
		cmocka_unit_test(test_the_host_fails_and_its_nvram_is_as_last_flushed),
		cmocka_unit_test(
			test_the_host_fails_and_its_nvram_is_a_mixture_of_old_and_new_pages),
		cmocka_unit_test(
			test_the_host_fails_with_records_of_history_in_a_row_of_two_buffers),
		cmocka_unit_test(
			test_the_host_fails_while_several_full_buffers_are_sealed_behind_commands),
		cmocka_unit_test(test_the_host_fails_while_a_flush_goes_on_beside_commands),
		cmocka_unit_test(test_the_same_with_records_that_span_pages),
		cmocka_unit_test(test_the_same_where_some_of_these_are_larger_than_the_others),
	};

	load_options.muninn.index = index_under_test();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
