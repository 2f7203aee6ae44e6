/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Distributions against their formulas. All draws are seeded, so what passes once passes always. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "bench/distribution.h"

enum { PAIRS = 1000, DRAWS = 1000000 };

static struct sampler make(enum distribution distribution, struct sampler_options options)
{
	struct sampler sampler;

	if (!options.pairs)
		options.pairs = PAIRS;
	if (options.pareto_shape == 0)
		options.pareto_shape = PARETO_SHAPE_DEFAULT;
	if (options.zipfian_theta == 0)
		options.zipfian_theta = ZIPFIAN_THETA_DEFAULT;
	sampler_begin(&sampler, distribution, &options);
	return sampler;
}

/* How often each pair is drawn. */
static void draw(const struct sampler *sampler, uint64_t seed, uint32_t *counts)
{
	memset(counts, 0, sampler->pairs * sizeof(*counts));
	for (uint64_t i = 0; i < DRAWS; i++) {
		struct random_state random = random_stream(seed, i);
		uint64_t pair = sampler_pair(sampler, &random, i);

		assert_true(pair < sampler->pairs);
		counts[pair]++;
	}
}

/* `count` of DRAWS is as likely as `probability` says, within five standard deviations. */
static void assert_share(double count, double probability)
{
	double sigma = sqrt(DRAWS * probability * (1 - probability));

	if (fabs(count - DRAWS * probability) > 5 * sigma + 1e-9)
		fail_msg("%g of %d, expected %g +- %g", count, DRAWS, DRAWS * probability, sigma);
}

static int descending(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return left < right ? 1 : left > right ? -1 : 0;
}

static void test_a_permutation_takes_every_number_once(void **state)
{
	static const uint64_t counts[] = { 1, 2, 3, 4, 5, 16, 17, 1000, 4096, 4097, 100003 };

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct permutation permutation = permutation_make(counts[i], 7);
		uint8_t *taken = calloc(counts[i], 1);

		for (uint64_t number = 0; number < counts[i]; number++) {
			uint64_t to = permutation_at(&permutation, number);

			assert_true(to < counts[i]);
			assert_int_equal(taken[to]++, 0);
		}
		free(taken);
	}
}

static void test_permutations_of_two_seeds_have_little_in_common(void **state)
{
	struct permutation one = permutation_make(10000, 1), two = permutation_make(10000, 2);
	uint32_t same = 0, fixed = 0;

	(void)state;
	for (uint64_t number = 0; number < 10000; number++) {
		same += permutation_at(&one, number) == permutation_at(&two, number);
		fixed += permutation_at(&one, number) == number;
	}
	/* Both are 1 on average. */
	assert_true(same < 10);
	assert_true(fixed < 10);
}

static void test_sequential_takes_pairs_in_turn(void **state)
{
	struct sampler sampler = make(DISTRIBUTION_SEQUENTIAL, (struct sampler_options){ 0 });
	struct random_state random = random_stream(1, 1);

	(void)state;
	for (uint64_t i = 0; i < 2 * PAIRS; i++)
		assert_int_equal(sampler_pair(&sampler, &random, i), i % PAIRS);
}

static void test_random_is_uniform(void **state)
{
	struct sampler sampler = make(DISTRIBUTION_RANDOM, (struct sampler_options){ 0 });
	uint32_t counts[PAIRS];
	double chi_squared = 0;

	(void)state;
	draw(&sampler, 3, counts);
	for (uint32_t pair = 0; pair < PAIRS; pair++) {
		double off = counts[pair] - (double)DRAWS / PAIRS;

		chi_squared += off * off / ((double)DRAWS / PAIRS);
	}
	/* 999 degrees of freedom: mean 999, standard deviation 44.7. */
	assert_true(fabs(chi_squared - 999) < 5 * 44.7);
}

static void test_random_deletes_take_each_pair_once(void **state)
{
	struct sampler sampler =
		make(DISTRIBUTION_RANDOM, (struct sampler_options){ .each_once = true });
	uint8_t taken[PAIRS] = { 0 };

	(void)state;
	for (uint64_t i = 0; i < PAIRS; i++) {
		struct random_state random = random_stream(3, i);

		assert_int_equal(taken[sampler_pair(&sampler, &random, i)]++, 0);
	}
}

/* The hottest share p of the pairs takes p^(1 - 1/a). */
static void test_pareto_ranks_follow_the_lorenz_curve(void **state)
{
	static const double shapes[] = { PARETO_SHAPE_DEFAULT, 1.5, 3 };

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct sampler sampler = make(
			DISTRIBUTION_PARETO, (struct sampler_options){ .pareto_shape = shapes[i] });
		uint32_t below[11] = { 0 };

		for (uint64_t n = 0; n < DRAWS; n++) {
			struct random_state random = random_stream(5, n);
			uint64_t rank = sampler_pareto_rank(&sampler, &random);

			assert_true(rank < PAIRS);
			for (uint32_t tenth = rank * 10 / PAIRS + 1; tenth <= 10; tenth++)
				below[tenth]++;
		}
		for (uint32_t tenth = 1; tenth < 10; tenth++)
			assert_share(below[tenth], pow(tenth / 10.0, 1 - 1 / shapes[i]));
	}
}

static void test_a_fifth_of_the_pairs_takes_four_fifths_of_pareto_operations(void **state)
{
	struct sampler sampler = make(DISTRIBUTION_PARETO, (struct sampler_options){ 0 });
	uint32_t counts[PAIRS];
	double hottest = 0;

	(void)state;
	draw(&sampler, 6, counts);
	qsort(counts, PAIRS, sizeof(counts[0]), descending);
	for (uint32_t i = 0; i < PAIRS / 5; i++)
		hottest += counts[i];
	assert_true(fabs(hottest / DRAWS - 0.8) < 0.005);
}

/*
 * What basho_bench's Pareto generator says of itself: a fifth of the keys has 1 - 3^-1.5 = 0.8075
 * of the operations, and 11^-1.5 = 0.0274 of the values lie behind the last key. Between them
 * P(value >= v) = (1 + v / S)^-1.5.
 */
static void test_basho_draws_what_basho_bench_does(void **state)
{
	struct sampler open = make(DISTRIBUTION_BASHO, (struct sampler_options){ .pairs = 1001 });
	double at_least[12] = { 0 };

	(void)state;
	for (uint64_t n = 0; n < DRAWS; n++) {
		struct random_state random = random_stream(7, n);
		uint64_t value = sampler_basho_value(&open, &random);

		for (uint32_t k = 1; k < 12 && value >= 100 * k; k++)
			at_least[k]++;
	}
	assert_share(DRAWS - at_least[2], 0.8075);
	assert_share(at_least[10], 0.0274);
	for (uint32_t k = 1; k < 12; k++)
		assert_share(at_least[k], pow(1 + k, -1.5));
}

static void test_the_last_pair_takes_what_a_truncated_basho_cuts_off(void **state)
{
	struct sampler_options options = { .pairs = 1001 };
	struct sampler cut = make(DISTRIBUTION_BASHO_TRUNCATED, options);
	struct sampler open = make(DISTRIBUTION_BASHO, options);
	uint32_t counts[1001], hottest = 0;

	(void)state;
	draw(&cut, 11, counts);
	assert_share(counts[1000], 0.0274);
	assert_true(fabs(basho_truncated_share(1001) - pow(11, -1.5)) < 1e-9);
	assert_share(counts[0], 1 - pow(1.01, -1.5));
	for (uint32_t pair = 0; pair < 200; pair++)
		hottest += counts[pair];
	assert_share(hottest, 0.8075);
	/* Without the cut no pair is far above its neighbours. */
	draw(&open, 11, counts);
	for (uint32_t pair = 1; pair < 1001; pair++)
		assert_true(counts[pair] < counts[0] * 1.1);
	assert_true(counts[1000] < DRAWS / 1000);
}

/* The largest value that a generator of 53 bits can draw is far beyond any pair. */
static void test_basho_stays_among_the_pairs(void **state)
{
	struct sampler open =
		make(DISTRIBUTION_BASHO, (struct sampler_options){ .pairs = UINT32_MAX });
	struct sampler cut =
		make(DISTRIBUTION_BASHO_TRUNCATED, (struct sampler_options){ .pairs = UINT32_MAX });

	(void)state;
	for (uint64_t n = 0; n < DRAWS; n++) {
		struct random_state one = random_stream(12, n), two = one;

		assert_true(sampler_pair(&open, &one, n) < UINT32_MAX);
		assert_true(sampler_pair(&cut, &two, n) < UINT32_MAX);
	}
}

/* P(k) = k^-theta / sum over all pairs. */
static void test_zipfian_ranks_follow_their_weights(void **state)
{
	static const double thetas[] = { 0.5, ZIPFIAN_THETA_DEFAULT, 1, 1.5 };
	uint32_t counts[PAIRS];

	(void)state;
	for (size_t i = 0; i < sizeof(thetas) / sizeof(thetas[0]); i++) {
		struct sampler sampler =
			make(DISTRIBUTION_LATEST,
			     (struct sampler_options){ .zipfian_theta = thetas[i] });
		double total = 0, tail = 0, tail_count = 0;

		for (uint32_t k = 1; k <= PAIRS; k++)
			total += pow(k, -thetas[i]);
		draw(&sampler, 8 + i, counts);
		/* latest: rank k is the k-th newest pair. */
		for (uint32_t k = 1; k <= 20; k++)
			assert_share(counts[PAIRS - k], pow(k, -thetas[i]) / total);
		for (uint32_t k = PAIRS / 2; k <= PAIRS; k++) {
			tail += pow(k, -thetas[i]) / total;
			tail_count += counts[PAIRS - k];
		}
		assert_share(tail_count, tail);
	}
}

static void test_zipfian_is_strewn_over_all_ages(void **state)
{
	struct sampler sampler = make(DISTRIBUTION_ZIPFIAN, (struct sampler_options){ 0 });
	uint32_t counts[PAIRS], sorted[PAIRS];
	double total = 0, newer_half = 0;

	(void)state;
	draw(&sampler, 9, counts);
	memcpy(sorted, counts, sizeof(sorted));
	qsort(sorted, PAIRS, sizeof(sorted[0]), descending);
	for (uint32_t k = 1; k <= PAIRS; k++)
		total += pow(k, -ZIPFIAN_THETA_DEFAULT);
	for (uint32_t k = 1; k <= 5; k++)
		assert_share(sorted[k - 1], pow(k, -ZIPFIAN_THETA_DEFAULT) / total);
	for (uint32_t pair = PAIRS / 2; pair < PAIRS; pair++)
		newer_half += counts[pair];
	assert_true(newer_half > 0.2 * DRAWS && newer_half < 0.8 * DRAWS);
}

static void test_one_pair_is_enough_for_every_distribution(void **state)
{
	(void)state;
	for (int i = 0; i < DISTRIBUTIONS; i++) {
		struct sampler sampler = make((enum distribution)i,
					      (struct sampler_options){ .pairs = 1, .window = 1 });

		for (uint64_t n = 0; n < 100; n++) {
			struct random_state random = random_stream(1, n);

			assert_int_equal(sampler_pair(&sampler, &random, n), 0);
		}
	}
}

static void test_oldest_and_newest_stay_in_their_windows(void **state)
{
	struct sampler_options options = { .window = 100 };
	struct sampler oldest = make(DISTRIBUTION_OLDEST, options);
	struct sampler newest = make(DISTRIBUTION_NEWEST, options);
	uint32_t counts[PAIRS];

	(void)state;
	draw(&oldest, 1, counts);
	for (uint32_t pair = 0; pair < PAIRS; pair++)
		assert_int_equal(counts[pair] > 0, pair < 100);
	draw(&newest, 1, counts);
	for (uint32_t pair = 0; pair < PAIRS; pair++)
		assert_int_equal(counts[pair] > 0, pair >= PAIRS - 100);
}

static void test_a_seed_gives_the_same_pairs_again(void **state)
{
	(void)state;
	for (int i = 0; i < DISTRIBUTIONS; i++) {
		struct sampler_options options = { .window = 500, .seed = 42 };
		struct sampler one = make((enum distribution)i, options);
		struct sampler two = make((enum distribution)i, options);
		uint32_t other = 0;

		for (uint64_t n = 0; n < 1000; n++) {
			struct random_state a = random_stream(42, n), b = a;
			struct random_state c = random_stream(43, n);
			uint64_t pair = sampler_pair(&one, &a, n);

			assert_int_equal(pair, sampler_pair(&two, &b, n));
			other += pair != sampler_pair(&two, &c, n);
		}
		if (i != DISTRIBUTION_SEQUENTIAL)
			assert_true(other > 500);
	}
}

static void test_names_are_read_back(void **state)
{
	enum distribution distribution;

	(void)state;
	for (int i = 0; i < DISTRIBUTIONS; i++) {
		assert_true(
			distribution_parse(distribution_name((enum distribution)i), &distribution));
		assert_int_equal(distribution, i);
	}
	assert_false(distribution_parse("", &distribution));
	assert_false(distribution_parse("rand", &distribution));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_permutation_takes_every_number_once),
		cmocka_unit_test(test_permutations_of_two_seeds_have_little_in_common),
		cmocka_unit_test(test_sequential_takes_pairs_in_turn),
		cmocka_unit_test(test_random_is_uniform),
		cmocka_unit_test(test_random_deletes_take_each_pair_once),
		cmocka_unit_test(test_pareto_ranks_follow_the_lorenz_curve),
		cmocka_unit_test(test_a_fifth_of_the_pairs_takes_four_fifths_of_pareto_operations),
		cmocka_unit_test(test_basho_draws_what_basho_bench_does),
		cmocka_unit_test(test_the_last_pair_takes_what_a_truncated_basho_cuts_off),
		cmocka_unit_test(test_basho_stays_among_the_pairs),
		cmocka_unit_test(test_zipfian_ranks_follow_their_weights),
		cmocka_unit_test(test_zipfian_is_strewn_over_all_ages),
		cmocka_unit_test(test_one_pair_is_enough_for_every_distribution),
		cmocka_unit_test(test_oldest_and_newest_stay_in_their_windows),
		cmocka_unit_test(test_a_seed_gives_the_same_pairs_again),
		cmocka_unit_test(test_names_are_read_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
