/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Percentiles of the histogram against the same values sorted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>

#include "bench/latencies.h"
#include "bench/random.h"

enum { VALUES = 20000 };

static const double portions[] = { 0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999, 1 };
enum { PORTIONS = sizeof(portions) / sizeof(portions[0]) };

static int ascending(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right ? 1 : 0;
}

/* The definition: the least value that the share `portion` of the values does not exceed. */
static uint64_t sorted_percentile(const uint64_t *sorted, size_t count, double portion)
{
	size_t rank = (size_t)ceil(portion * (double)count);

	return sorted[rank ? rank - 1 : 0];
}

static struct latencies *filled(const uint64_t *values, size_t count)
{
	struct latencies *latencies = latencies_create();

	assert_non_null(latencies);
	for (size_t i = 0; i < count; i++)
		latencies_add(latencies, values[i]);
	return latencies;
}

static void test_small_values_are_exact(void **state)
{
	uint64_t values[VALUES];
	struct random_state random = random_stream(1, 0);

	(void)state;
	for (size_t i = 0; i < VALUES; i++)
		values[i] = random_below(&random, 2 * LATENCIES_STEPS);
	struct latencies *latencies = filled(values, VALUES);

	qsort(values, VALUES, sizeof(values[0]), ascending);
	for (size_t i = 0; i < PORTIONS; i++)
		assert_true(latencies_percentile(latencies, portions[i]) ==
			    (double)sorted_percentile(values, VALUES, portions[i]));
	free(latencies);
}

/*
 * As in virtual time: multiples of a page access, so far apart that each has a bucket of its own.
 */
static void test_multiples_of_a_page_access_are_exact(void **state)
{
	uint64_t values[VALUES];
	struct random_state random = random_stream(2, 0);

	(void)state;
	for (size_t i = 0; i < VALUES; i++)
		values[i] = random_below(&random, 16) ? random_below(&random, 64) * 15000
						      : 256 * 15000;
	struct latencies *latencies = filled(values, VALUES);

	qsort(values, VALUES, sizeof(values[0]), ascending);
	for (size_t i = 0; i < PORTIONS; i++)
		assert_true(latencies_percentile(latencies, portions[i]) ==
			    (double)sorted_percentile(values, VALUES, portions[i]));
	free(latencies);
}

static void test_values_of_any_size_are_within_one_in_256(void **state)
{
	uint64_t values[VALUES];
	struct random_state random = random_stream(3, 0);

	(void)state;
	for (size_t i = 0; i < VALUES; i++)
		values[i] = random_next(&random) >> (1 + random_below(&random, 63));
	struct latencies *latencies = filled(values, VALUES);

	qsort(values, VALUES, sizeof(values[0]), ascending);
	for (size_t i = 0; i < PORTIONS; i++) {
		double exact = (double)sorted_percentile(values, VALUES, portions[i]);

		assert_true(fabs(latencies_percentile(latencies, portions[i]) - exact) <=
			    exact / LATENCIES_STEPS);
	}
	free(latencies);
}

static void test_the_largest_values_have_a_bucket(void **state)
{
	static const uint64_t values[] = { UINT64_MAX, 0 };
	struct latencies *latencies = filled(values, 2);

	(void)state;
	assert_true(latencies_percentile(latencies, 1) == (double)UINT64_MAX);
	assert_true(latencies_percentile(latencies, 0.5) == 0);
	assert_true(latencies->max == UINT64_MAX);
	free(latencies);
}

static void test_merging_is_adding_all_values(void **state)
{
	uint64_t values[VALUES];
	struct random_state random = random_stream(4, 0);

	(void)state;
	for (size_t i = 0; i < VALUES; i++)
		values[i] = random_below(&random, 1 << 30);
	struct latencies *whole = filled(values, VALUES);
	struct latencies *half = filled(values, VALUES / 2);
	struct latencies *rest = filled(values + VALUES / 2, VALUES - VALUES / 2);

	latencies_add_all(half, rest);
	assert_memory_equal(half, whole, sizeof(*whole));
	free(whole);
	free(half);
	free(rest);
}

static void test_nothing_has_percentile_zero(void **state)
{
	struct latencies *latencies = latencies_create();

	(void)state;
	assert_true(latencies_percentile(latencies, 0.5) == 0);
	free(latencies);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_values_are_exact),
		cmocka_unit_test(test_multiples_of_a_page_access_are_exact),
		cmocka_unit_test(test_values_of_any_size_are_within_one_in_256),
		cmocka_unit_test(test_the_largest_values_have_a_bucket),
		cmocka_unit_test(test_merging_is_adding_all_values),
		cmocka_unit_test(test_nothing_has_percentile_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
