/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Which pair an operation uses. Pairs are numbered 0..pairs - 1 in the order in which they were
 * first inserted, so the distributions by age need no further bookkeeping.
 *
 * - sequential: operation number modulo pairs.
 * - random: every pair alike; inserts and deletes take each pair once, in random order.
 * - pareto: popularity is Pareto distributed with shape a: the hottest share p of the pairs takes
 *   p^(1 - 1/a) of the operations; a = log 5 / log 4 = 1.161 is the 80/20 rule. The hot pairs are
 *   strewn over all ages.
 * - basho: what basho_bench draws by `pareto_int`, which is another Pareto distribution: see
 *   sampler_basho_value. A value behind the last pair begins again at the first one.
 * - basho-truncated: the same by `truncated_pareto_int`: the last pair stands for all values
 *   behind it, and so takes 11^-1.5 = 2.74 % of the operations.
 * - zipfian: the k-th hottest pair is drawn in proportion to k^-theta; strewn as for pareto.
 * - latest: zipfian by age: the newest pair is the hottest.
 * - oldest, newest: every pair alike of the `window` oldest, or newest, ones.
 */
#ifndef MUNINN_BENCH_DISTRIBUTION_H
#define MUNINN_BENCH_DISTRIBUTION_H

#include <stdbool.h>

#include "bench/random.h"

enum distribution {
	DISTRIBUTION_SEQUENTIAL,
	DISTRIBUTION_RANDOM,
	DISTRIBUTION_PARETO,
	DISTRIBUTION_BASHO,
	DISTRIBUTION_BASHO_TRUNCATED,
	DISTRIBUTION_ZIPFIAN,
	DISTRIBUTION_LATEST,
	DISTRIBUTION_OLDEST,
	DISTRIBUTION_NEWEST,
	DISTRIBUTIONS
};

#define PARETO_SHAPE_DEFAULT  1.1609640474436813 /* log 5 / log 4 */
#define ZIPFIAN_THETA_DEFAULT 0.99

const char *distribution_name(enum distribution distribution);

/* False: there is no such distribution. */
bool distribution_parse(const char *name, enum distribution *distribution);

struct sampler {
	enum distribution distribution;
	bool each_once; /* `random` without replacement */
	uint64_t pairs; /* at least 1 */
	uint64_t window;
	double pareto_exponent;
	double zipfian_theta;
	double zipfian_low, zipfian_high, zipfian_shortcut; /* see distribution.c */
	struct permutation strewn;
};

struct sampler_options {
	uint64_t pairs;
	uint64_t window; /* oldest, newest: 1..pairs */
	uint64_t seed;
	double pareto_shape;  /* greater than 1 */
	double zipfian_theta; /* greater than 0 */
	bool each_once;
};

void sampler_begin(struct sampler *sampler, enum distribution distribution,
		   const struct sampler_options *options);

/* The pair of operation number `operation`. */
uint64_t sampler_pair(const struct sampler *sampler, struct random_state *random,
		      uint64_t operation);

/*
 * May a distribution draw a pair again before all have been drawn? Then an insert draws from all
 * pairs, too.
 */
bool distribution_repeats(enum distribution distribution);

/*
 * A value of basho_bench's generator for `pairs` keys, MaxKey = pairs - 1:
 * trunc((U^(-1/1.5) - 1) * S), S = trunc(0.2 * MaxKey) * 0.5. It has no upper bound; saturates.
 */
uint64_t sampler_basho_value(const struct sampler *sampler, struct random_state *random);

/* The share of the operations that go to the last pair of `basho-truncated`. */
double basho_truncated_share(uint64_t pairs);

/* Ranks 0 (hottest)..pairs - 1 behind `pareto` and `zipfian`, before they are strewn. */
uint64_t sampler_pareto_rank(const struct sampler *sampler, struct random_state *random);
uint64_t sampler_zipfian_rank(const struct sampler *sampler, struct random_state *random);

#endif
