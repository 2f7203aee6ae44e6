/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Histograms of latencies: exact ends and sum, percentiles within a bucket of the truth. */
#include "tests/nand/fixture.h"

#include "nand/histogram.h"

static struct histogram histogram;
static struct histogram_snapshot snapshot;

static void take(void)
{
	histogram_read(&histogram, &snapshot);
}

static void test_an_empty_histogram_is_all_zero(void **state)
{
	(void)state;
	histogram_clear(&histogram);
	take();
	assert_int_equal(snapshot.count, 0);
	assert_int_equal(snapshot.sum_ns, 0);
	assert_int_equal(snapshot.least_ns, 0);
	assert_int_equal(snapshot.most_ns, 0);
	assert_int_equal(histogram_percentile(&snapshot, 500), 0);
}

static void test_buckets_follow_one_another_without_gap_or_overlap(void **state)
{
	(void)state;
	for (size_t bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
		uint64_t most = histogram_bucket_most(bucket);

		assert_int_equal(histogram_bucket_of(most), bucket);
		if (bucket + 1 < HISTOGRAM_BUCKETS)
			assert_int_equal(histogram_bucket_of(most + 1), bucket + 1);
		else
			assert_true(most == UINT64_MAX);
	}
}

static void test_a_bucket_is_at_most_a_sixteenth_of_its_values_wide(void **state)
{
	(void)state;
	for (size_t bucket = 1; bucket < HISTOGRAM_BUCKETS; bucket++) {
		uint64_t least = histogram_bucket_most(bucket - 1) + 1;

		assert_true(histogram_bucket_most(bucket) - least <= least / 16);
	}
}

static void test_count_sum_and_ends_are_exact(void **state)
{
	(void)state;
	histogram_clear(&histogram);
	for (uint64_t ns = 1000; ns <= 9000; ns++)
		histogram_record(&histogram, ns);
	take();
	assert_int_equal(snapshot.count, 8001);
	assert_int_equal(snapshot.sum_ns, (uint64_t)8001 * 5000);
	assert_int_equal(snapshot.least_ns, 1000);
	assert_int_equal(snapshot.most_ns, 9000);
}

static void test_percentiles_are_never_below_the_truth_and_little_above(void **state)
{
	(void)state;
	histogram_clear(&histogram);
	for (uint64_t ns = 1; ns <= 100000; ns++)
		histogram_record(&histogram, ns);
	take();
	for (unsigned permille = 1; permille <= 1000; permille++) {
		uint64_t truth = 100 * (uint64_t)permille;
		uint64_t found = histogram_percentile(&snapshot, permille);

		assert_true(found >= truth && found <= truth + truth / 16);
	}
	assert_int_equal(histogram_percentile(&snapshot, 1000), 100000);
}

static void test_small_values_have_a_bucket_each(void **state)
{
	(void)state;
	histogram_clear(&histogram);
	for (uint64_t ns = 0; ns < 32; ns++)
		histogram_record(&histogram, ns);
	take();
	for (size_t bucket = 0; bucket < 32; bucket++)
		assert_int_equal(snapshot.buckets[bucket], 1);
	assert_int_equal(histogram_percentile(&snapshot, 500), 15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_empty_histogram_is_all_zero),
		cmocka_unit_test(test_buckets_follow_one_another_without_gap_or_overlap),
		cmocka_unit_test(test_a_bucket_is_at_most_a_sixteenth_of_its_values_wide),
		cmocka_unit_test(test_count_sum_and_ends_are_exact),
		cmocka_unit_test(test_percentiles_are_never_below_the_truth_and_little_above),
		cmocka_unit_test(test_small_values_have_a_bucket_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
