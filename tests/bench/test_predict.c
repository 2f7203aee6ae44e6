/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Predicted costs against values computed by hand, and against each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>

#include "bench/predict.h"

static void assert_near(double is, double should_be, double within)
{
	if (!(fabs(is - should_be) <= within))
		fail_msg("%.9g, should be %.9g within %g", is, should_be, within);
}

static struct predict_segment segment_of(uint32_t pages, uint32_t per_page, uint32_t filters,
					 uint32_t paged, double keys_limit)
{
	const struct predict_shape shape = { .pages = pages,
					     .per_page = per_page,
					     .filters = filters,
					     .paged = paged,
					     .keys_limit = keys_limit };
	struct predict_segment segment;

	predict_segment(&shape, &segment);
	return segment;
}

/* ---- a segment ---- */

/*
 * Two pages of one record. The first record fits. The second one does if its only function gives
 * the other page: 1 + 1/2. With two functions, if one of them does: 1 + 3/4, half of it by the
 * first one, a quarter by the second.
 */
static void test_two_pages_are_filled_as_computed_by_hand(void **state)
{
	struct predict_segment one = segment_of(2, 1, 1, 1, INFINITY);
	struct predict_segment two = segment_of(2, 1, 2, 2, INFINITY);

	(void)state;
	assert_near(one.records, 1.5, 1e-12);
	assert_near(two.records, 1.75, 1e-12);
	assert_near(two.keys[0], 1.5, 1e-12);
	assert_near(two.keys[1], 0.25, 1e-12);
}

/*
 * A filter that takes one key is of no use for the second record, which so has one function left.
 */
static void test_a_full_filter_takes_its_function_away(void **state)
{
	struct predict_segment segment = segment_of(2, 1, 2, 2, 1);

	(void)state;
	assert_near(segment.records, 1.5, 1e-12);
	assert_near(segment.keys[0], 1, 1e-12);
	assert_near(segment.keys[1], 0.5, 1e-12);
}

/* With 24 functions: 1 + (1 - 2^-24); all but the first one stand behind the last filter. */
static void test_what_overflows_has_24_functions(void **state)
{
	struct predict_segment segment = segment_of(2, 1, 2, 1, INFINITY);

	(void)state;
	assert_near(segment.records, 2 - 0x1p-24, 1e-12);
	assert_near(segment.keys[0], 1.5, 1e-12);
	assert_near(segment.keys[1], 0.5 - 0x1p-24, 1e-12);
}

/* ---- a filter ---- */

/* log2(e) bits a key for each halving of the rate. */
static void test_a_rate_costs_bits(void **state)
{
	(void)state;
	assert_near(predict_bits_per_key(0.5), 1.442695, 1e-6);
	assert_near(predict_bits_per_key(1.0 / 1024), 14.426950, 1e-6);
}

/*
 * One bit a key, and as many keys as make half of the bits: 1/2. Two bits a key, 100 keys, 1000
 * bits: a bit is not set by a key with x = 0.999^2 = 0.998001, and 1 - 2 e^(-100 (1 - x)) + e^(-100
 * (1 - x^2)) = 1 - 2 * 0.8188127 + 0.6707222.
 */
static void test_a_filter_is_wrong_as_computed_by_hand(void **state)
{
	(void)state;
	assert_near(predict_rate(1000 * M_LN2, 1000, 1), 0.5, 1e-9);
	assert_near(predict_rate(100, 1000, 2), 0.0330968, 2e-6);
	assert_near(predict_rate(0, 1000, 3), 0, 1e-12);
}

/* ---- a store ---- */

static struct bench_options options_of(enum index_kind index)
{
	struct bench_options options = bench_options_default();

	options.index = index;
	options.size = UINT64_C(1) << 30;
	options.rows = 2;
	options.segment_bytes = 1 << 20;
	options.pair_bytes = 1024;
	return options;
}

/*
 * A group of 24 is wrong for a key with chance 2^-7, half of that in every second one, times 3/4
 * candidates, times 24/32 segments: 0.00329590. With 35.5 segments 24 are in groups, on average.
 */
static void test_ribbon_reads_in_vain_as_computed_by_hand(void **state)
{
	const struct bench_options options = options_of(INDEX_RIBBON);
	struct prediction prediction;

	(void)state;
	predict_begin(&prediction, &options);
	assert_near(predict_utilization(&prediction), 1, 0);
	assert_near(predict_absent_reads(&prediction, 35.5), 0.00329590, 1e-7);
	/* The oldest key passes all but its own segment; the newest one none. */
	assert_near(predict_reads(&prediction, 35.5, 0, 1), 1 + 0.00329590 * 23 / 24, 1e-7);
	assert_near(predict_reads(&prediction, 35.5, 35, 35.5), 1, 1e-12);
	/* Half of these are in a buffer. */
	assert_near(predict_reads(&prediction, 35.5, 35, 36), 0.5, 1e-12);
	assert_near(predict_per_second(&prediction, 1.25), 1e9 / 15000 / 1.25, 1e-6);
	/* Segments of 1,024 records, and half of one in each of two buffers. */
	assert_near(predict_sealed(&prediction, 2 * 1024 * 10), 9.5, 1e-12);
}

/* Equal rates in all tables: so reads in vain are proportional to the segments that are passed. */
static void test_bloom_reads_in_vain_for_each_segment_that_is_passed(void **state)
{
	struct bench_options options = options_of(INDEX_BLOOM);
	struct prediction prediction;
	double each;

	(void)state;
	options.fpr_factor_permille = 1000;
	predict_begin(&prediction, &options);
	each = predict_absent_reads(&prediction, 1);
	/*
	 * The rates are in proportion to the keys: e^0.91 times 0.0005 together, of which the map
	 * catches 2 %: 0.00122. Filters whose keys vary add up to a third.
	 */
	assert_true(each > 0.00120 && each < 0.00163);
	assert_near(predict_absent_reads(&prediction, 100), 100 * each, 1e-9);
	assert_near(predict_reads(&prediction, 100, 0, 100), 1 + 49.5 * each, 1e-9);
}

/* A table is there for 64 segments. A third one begins with the 129th. */
static void test_bytes_and_pages_are_those_of_whole_tables(void **state)
{
	struct bench_options options = options_of(INDEX_BLOOM);
	struct prediction prediction;
	double table, each;

	(void)state;
	options.fpr_factor_permille = 1000;
	predict_begin(&prediction, &options);
	table = predict_index_bytes(&prediction, 1);
	assert_near(predict_index_bytes(&prediction, 64), table, 1e-6);
	assert_near(predict_index_bytes(&prediction, 129), 3 * table, 1e-6);
	/* Two rows, 256 pages a segment; an image is written with the 64th. */
	assert_near(predict_page_writes(&prediction, 63), 2 * 63 * 256, 1e-6);
	assert_near(predict_page_writes(&prediction, 64), 2 * 64 * 256 + table / 4096, 1e-6);
	/* 979 keys in a column with 15.8 bits each, a map and 48 bytes. */
	each = table / (2 * 64) / prediction.segment.records;
	assert_true(each > 2.1 && each < 2.4);
}

/* The default: 24 functions, seven of them with a filter. The fluid limit of the engine's fill. */
static void test_filters_and_functions_fill_segments_in_their_order(void **state)
{
	static const char *const filters[] = { "N8/8", "N16/16", "S8/8", "S16/16", "S8/7" };
	double before = 0;

	(void)state;
	for (size_t n = 0; n < sizeof(filters) / sizeof(filters[0]); n++) {
		struct bench_options options = options_of(INDEX_BLOOM);
		struct prediction prediction;

		assert_int_equal(bench_filters_parse(&options, filters[n], NULL), 0);
		predict_begin(&prediction, &options);
		assert_true(predict_utilization(&prediction) > before);
		before = predict_utilization(&prediction);
	}
	assert_true(before > 0.94 && before < 0.96);
}

/*
 * Ribbon, whose segments have 1,024 records: with two rows, half of the puts of one key and 64
 * versions a segment, the other row has 1/4 of the puts: 2,048 puts are half a segment there, and
 * 16 in the row of that key.
 */
static void test_a_hot_key_takes_as_many_segments_as_it_needs(void **state)
{
	const struct bench_options options = options_of(INDEX_RIBBON);
	struct prediction prediction;

	(void)state;
	predict_begin(&prediction, &options);
	assert_near(predict_hot_utilization(&prediction, 2048, 0.5, 64), 2.0 / 16.5, 1e-9);
	/* Any number of versions: as if there were no such key. */
	assert_near(predict_hot_utilization(&prediction, 2048, 0.5, 1e9), 1, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_pages_are_filled_as_computed_by_hand),
		cmocka_unit_test(test_a_full_filter_takes_its_function_away),
		cmocka_unit_test(test_what_overflows_has_24_functions),
		cmocka_unit_test(test_a_rate_costs_bits),
		cmocka_unit_test(test_a_filter_is_wrong_as_computed_by_hand),
		cmocka_unit_test(test_ribbon_reads_in_vain_as_computed_by_hand),
		cmocka_unit_test(test_bloom_reads_in_vain_for_each_segment_that_is_passed),
		cmocka_unit_test(test_bytes_and_pages_are_those_of_whole_tables),
		cmocka_unit_test(test_filters_and_functions_fill_segments_in_their_order),
		cmocka_unit_test(test_a_hot_key_takes_as_many_segments_as_it_needs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
