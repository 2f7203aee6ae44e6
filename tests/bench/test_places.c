/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The simulation of placement: against numbers by hand, and against the engine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>

#include "bench/phase.h"
#include "bench/places.h"

static struct places_options options_of(uint64_t pairs, uint64_t puts)
{
	return (struct places_options){
		.rows = 4,
		.pages = 256,
		.per_page = 4,
		.places = 24,
		.paged = 7,
		.paged_versions = 4,
		.further_versions = 4,
		.distribution = DISTRIBUTION_BASHO_TRUNCATED,
		.pairs = pairs,
		.puts = puts,
		.seed = 1,
	};
}

static struct places_report simulate(const struct places_options *options)
{
	struct places_report report;

	assert_int_equal(places_simulate(options, &report), 0);
	return report;
}

/* One key, again and again: a segment has its versions and nothing else. */
static void test_a_single_key_fills_its_places(void **state)
{
	static const struct {
		uint32_t paged_versions, further_versions, versions;
	} readings[] = { { 4, 4, 96 }, { 1, 1, 24 }, { 1, 4, 75 }, { 4, 1, 45 } };

	(void)state;
	for (size_t n = 0; n < sizeof(readings) / sizeof(readings[0]); n++) {
		struct places_options options = options_of(1, 10 * 96 + 1);
		struct places_report report;

		options.distribution = DISTRIBUTION_SEQUENTIAL;
		options.paged_versions = readings[n].paged_versions;
		options.further_versions = readings[n].further_versions;
		assert_int_equal(places_versions(&options), readings[n].versions);
		report = simulate(&options);
		/* Two places may give one page, which then counts once. */
		assert_true(report.utilization <= readings[n].versions / 1024.0);
		assert_true(report.utilization >= (readings[n].versions - 8) / 1024.0);
		assert_true(report.segments >= 10 * 96 / readings[n].versions);
	}
}

/* Two runs of a seed are alike, and not those of two seeds. */
static void test_a_seed_repeats(void **state)
{
	struct places_options options = options_of(20000, 40000), other = options;
	struct places_report first = simulate(&options), second = simulate(&options);

	(void)state;
	other.seed = 2;
	assert_true(first.utilization == second.utilization);
	assert_true(first.utilization != simulate(&other).utilization);
}

/* As full as those of an engine with the same load. */
static void test_it_fills_segments_as_the_engine_does(void **state)
{
	static const enum distribution distributions[] = { DISTRIBUTION_BASHO_TRUNCATED,
							   DISTRIBUTION_BASHO };

	(void)state;
	for (size_t n = 0; n < 2; n++) {
		struct places_options options = options_of(100000, 100000);
		struct bench_options store_options = bench_options_default();
		const struct bench_phase put = { .operation = OPERATION_INSERT,
						 .distribution = distributions[n] };
		struct bench_store *store;
		struct phase_report report;
		struct error_text error;
		double engine;

		options.distribution = distributions[n];
		store_options.index = INDEX_BLOOM;
		store_options.nand = BENCH_NAND_HEADERS;
		store_options.size = UINT64_C(1) << 30;
		store_options.rows = options.rows;
		store_options.pairs = options.pairs;
		if (bench_store_open(&store, &store_options, &error) ||
		    bench_phase_run(store, &put, 0, &report, &error))
			fail_msg("%s", error.text);
		engine = phase_utilization(&report, store);
		phase_report_free(&report);
		bench_store_close(store);
		if (fabs(simulate(&options).utilization - engine) > 0.02)
			fail_msg("%g, the engine %g", simulate(&options).utilization, engine);
	}
}

/* Fewer versions of the hot key in a segment: more of its segments are sealed early. */
static void test_fewer_versions_a_place_fill_less(void **state)
{
	struct places_options options = options_of(200000, 200000);
	double four = simulate(&options).utilization, further, one;

	(void)state;
	options.paged_versions = 1;
	further = simulate(&options).utilization;
	options.further_versions = 1;
	one = simulate(&options).utilization;
	assert_true(four > further + 0.01);
	assert_true(further > one + 0.01);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_single_key_fills_its_places),
		cmocka_unit_test(test_a_seed_repeats),
		cmocka_unit_test(test_it_fills_segments_as_the_engine_does),
		cmocka_unit_test(test_fewer_versions_a_place_fill_less),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
