/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The simulation of merging: against the engine, and what `muninn-bench merging` prints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "bench/merge_model.h"
#include "bench/merge_model_bench.h"
#include "bench/phase.h"
#include "common/bytes.h"
#include "tests/bench/part.h"

static struct merge_model_options options_of(enum merge_way way, enum merge_updates updates)
{
	return (struct merge_model_options){
		.way = way,
		.updates = updates,
		.segments = 256,
		.rows = 2,
		.page_records = 4,
		.live_permille = 550,
		.turns = 3,
		.seed = 1,
	};
}

static struct merge_model_report simulate(enum merge_way way, enum merge_updates updates)
{
	const struct merge_model_options options = options_of(way, updates);
	struct merge_model_report report;

	assert_int_equal(merge_model_run(&options, &report), 0);
	assert_false(report.full);
	return report;
}

static void run_phase(struct bench_store *store, const struct bench_phase *phase, uint32_t number,
		      struct phase_report *report)
{
	struct error_text error;

	if (bench_phase_run(store, phase, number, report, &error))
		fail_msg("%s", error.text);
}

/* The second half of as many updates. */
static struct merge_model_report ask_engine(enum distribution distribution)
{
	const struct merge_model_options model = options_of(0, 0);
	const struct bench_phase insert = { .operation = OPERATION_INSERT,
					    .distribution = DISTRIBUTION_SEQUENTIAL };
	const struct bench_phase update = { .operation = OPERATION_UPDATE,
					    .distribution = distribution,
					    .operations = UINT64_C(256) * 1024 * model.turns / 2 };
	struct bench_options options = bench_options_default();
	struct merge_model_report found = { 0 };
	struct phase_report report;
	struct bench_store *store;
	struct error_text error;

	options.nand = BENCH_NAND_HEADERS;
	options.size = (uint64_t)model.segments << 20;
	options.rows = model.rows;
	options.pairs = (uint64_t)model.segments * 1024 * model.live_permille / 1000;
	options.merge = BENCH_MERGE_SAMPLED;
	options.history = false;
	if (bench_store_open(&store, &options, &error))
		fail_msg("%s", error.text);
	run_phase(store, &insert, 0, &report);
	phase_report_free(&report);
	for (uint32_t half = 1; half <= 2; half++) {
		run_phase(store, &update, half, &report);
		found.programs = (double)report.page_writes / (double)report.operations;
		found.reads = (double)report.merge.page_reads /
			      (double)max_u64(1, report.merge.segments_freed);
		phase_report_free(&report);
	}
	bench_store_close(store);
	return found;
}

/* Found: at most 3 % from the engine's programs, and 4 % from its reads. */
static void test_the_engines_way_costs_what_the_engine_does(void **state)
{
	static const struct {
		enum merge_updates updates;
		enum distribution distribution;
	} cases[] = { { MERGE_UPDATES_RANDOM, DISTRIBUTION_RANDOM },
		      { MERGE_UPDATES_PARETO, DISTRIBUTION_PARETO } };

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct merge_model_report model = simulate(MERGE_WAY_ACTIVE, cases[n].updates);
		struct merge_model_report engine = ask_engine(cases[n].distribution);

		print_message("programs %.4f, the engine %.4f; reads %.0f, the engine %.0f\n",
			      model.programs, engine.programs, model.reads, engine.reads);
		assert_true(fabs(model.programs / engine.programs - 1) < 0.06);
		assert_true(fabs(model.reads / engine.reads - 1) < 0.08);
	}
}

/* Two runs of a seed are alike, and not those of two seeds. */
static void test_a_seed_repeats(void **state)
{
	struct merge_model_options options = options_of(MERGE_WAY_BATCH, MERGE_UPDATES_HOT);
	struct merge_model_report first, second, other;

	(void)state;
	assert_int_equal(merge_model_run(&options, &first), 0);
	assert_int_equal(merge_model_run(&options, &second), 0);
	options.seed = 2;
	assert_int_equal(merge_model_run(&options, &other), 0);
	assert_true(first.programs == second.programs && first.reads == second.reads);
	assert_true(first.programs != other.programs);
}

/* Where some keys are hot, it pays to keep what was moved apart; where all are alike, it does not.
 */
static void test_apart_saves_programs_only_where_keys_are_hot(void **state)
{
	double hot = simulate(MERGE_WAY_APART, MERGE_UPDATES_HOT).programs /
		     simulate(MERGE_WAY_ACTIVE, MERGE_UPDATES_HOT).programs;
	double alike = simulate(MERGE_WAY_APART, MERGE_UPDATES_RANDOM).programs /
		       simulate(MERGE_WAY_ACTIVE, MERGE_UPDATES_RANDOM).programs;

	(void)state;
	assert_true(hot < 0.95);
	assert_true(alike > 0.97);
}

static void test_a_device_that_is_too_full_says_so(void **state)
{
	struct merge_model_options options = options_of(MERGE_WAY_ACTIVE, MERGE_UPDATES_RANDOM);
	struct merge_model_report report;

	(void)state;
	options.live_permille = 780;
	assert_int_equal(merge_model_run(&options, &report), 0);
	assert_true(report.full);
}

static void test_each_way_has_a_line(void **state)
{
	char *json, *text;
	uint32_t lines = 0;

	(void)state;
	assert_int_equal(run_part(merge_model_bench_main, "merging",
				  "--segments 128 --rows 1 --turns 1 --live 500 --history", &json,
				  &text),
			 0);
	for (const char *at = json; (at = strchr(at, '\n')); at++)
		lines++;
	assert_int_equal(lines, MERGE_WAYS * MERGE_UPDATES_KINDS);
	assert_non_null(strstr(json, "\"way\":\"two groups\",\"updates\":\"hot\""));
	assert_non_null(strstr(text, "entries/key"));
	free(json);
	free(text);
}

static void test_wrong_options_are_refused(void **state)
{
	static const char *const lines[] = { "--rows 3",   "--segments 64 --rows 4",
					     "--live 900", "--page-records 5",
					     "--ways",     "batch" };
	char *json, *text;

	(void)state;
	for (size_t n = 0; n < sizeof(lines) / sizeof(lines[0]); n++) {
		assert_int_equal(
			run_part(merge_model_bench_main, "merging", lines[n], &json, &text), 2);
		assert_non_null(strstr(text, "muninn-bench merging: "));
		free(json);
		free(text);
	}
	assert_int_equal(run_part(merge_model_bench_main, "merging", "--help", &json, &text), 0);
	free(json);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_engines_way_costs_what_the_engine_does),
		cmocka_unit_test(test_a_seed_repeats),
		cmocka_unit_test(test_apart_saves_programs_only_where_keys_are_hot),
		cmocka_unit_test(test_a_device_that_is_too_full_says_so),
		cmocka_unit_test(test_each_way_has_a_line),
		cmocka_unit_test(test_wrong_options_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
