/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Draws the pair that an operation uses: the same one for the same seed and operation number. */
#include "bench/distribution.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/bytes.h"

static const char *const names[DISTRIBUTIONS] = {
	[DISTRIBUTION_SEQUENTIAL] = "sequential",
	[DISTRIBUTION_RANDOM] = "random",
	[DISTRIBUTION_PARETO] = "pareto",
	[DISTRIBUTION_BASHO] = "basho",
	[DISTRIBUTION_BASHO_TRUNCATED] = "basho-truncated",
	[DISTRIBUTION_ZIPFIAN] = "zipfian",
	[DISTRIBUTION_LATEST] = "latest",
	[DISTRIBUTION_OLDEST] = "oldest",
	[DISTRIBUTION_NEWEST] = "newest",
};

const char *distribution_name(enum distribution distribution)
{
	return names[distribution];
}

bool distribution_parse(const char *name, enum distribution *distribution)
{
	for (int i = 0; i < DISTRIBUTIONS; i++) {
		if (strcmp(name, names[i]) == 0) {
			*distribution = (enum distribution)i;
			return true;
		}
	}
	return false;
}

/*
 * ---- zipfian: rejection-inversion (Hormann and Derflinger, 1996), exact without summing all
 * weights ----
 */

/* The integral of x^-theta, with 0 at x = 1; theta = 1 is the limit, log x. */
static double weight_integral(double theta, double x)
{
	double log_x = log(x), exponent = (1 - theta) * log_x;

	return fabs(exponent) < 1e-8 ? log_x * (1 + exponent / 2) : expm1(exponent) / (1 - theta);
}

static double weight_integral_inverse(double theta, double y)
{
	double scaled = y * (1 - theta);

	if (scaled < -1)
		scaled = -1;
	return fabs(scaled) < 1e-8 ? exp(y * (1 - scaled / 2)) : exp(log1p(scaled) / (1 - theta));
}

static void zipfian_begin(struct sampler *sampler)
{
	double theta = sampler->zipfian_theta;

	sampler->zipfian_low = weight_integral(theta, 1.5) - 1;
	sampler->zipfian_high = weight_integral(theta, (double)sampler->pairs + 0.5);
	sampler->zipfian_shortcut =
		2 - weight_integral_inverse(theta, weight_integral(theta, 2.5) - pow(2, -theta));
}

/*
 * Draws under the integral, which lies above the steps of the weights, and rejects what is above
 * its step. It accepts a draw with a probability above 0.7, so the bound on the tries is never
 * reached in practice; after it comes the hottest rank.
 */
uint64_t sampler_zipfian_rank(const struct sampler *sampler, struct random_state *random)
{
	double theta = sampler->zipfian_theta;

	for (int tries = 0; tries < 200; tries++) {
		double drawn = sampler->zipfian_high +
			       random_unit(random) * (sampler->zipfian_low - sampler->zipfian_high);
		double x = weight_integral_inverse(theta, drawn);
		double k = fmin(fmax(floor(x + 0.5), 1), (double)sampler->pairs);

		if (k - x <= sampler->zipfian_shortcut ||
		    drawn >= weight_integral(theta, k + 0.5) - pow(k, -theta))
			return (uint64_t)k - 1;
	}
	return 0;
}

/* ---- pareto ---- */

/*
 * The share p of the pairs takes p^(1 - 1/a), so the rank of an operation is pairs * u^(1 / (1 -
 * 1/a)) for uniform u.
 */
uint64_t sampler_pareto_rank(const struct sampler *sampler, struct random_state *random)
{
	double rank =
		floor((double)sampler->pairs * pow(random_unit(random), sampler->pareto_exponent));

	return rank < (double)sampler->pairs ? (uint64_t)rank : sampler->pairs - 1;
}

/* ---- basho ---- */

/* basho_bench's shape, and the share of its keys whose mean it takes. Both are constants there. */
#define BASHO_SHAPE 1.5
#define BASHO_SHARE 0.2

static double basho_scale(uint64_t pairs)
{
	return floor(BASHO_SHARE * (double)(pairs - 1)) * (BASHO_SHAPE - 1);
}

double basho_truncated_share(uint64_t pairs)
{
	return pow(1 + (double)(pairs - 1) / basho_scale(pairs), -BASHO_SHAPE);
}

uint64_t sampler_basho_value(const struct sampler *sampler, struct random_state *random)
{
	double value =
		(pow(random_unit(random), -1 / BASHO_SHAPE) - 1) * basho_scale(sampler->pairs);

	return value < 0x1p63 ? (uint64_t)value : UINT64_C(1) << 63;
}

/* ---- all of them ---- */

bool distribution_repeats(enum distribution distribution)
{
	return distribution == DISTRIBUTION_PARETO || distribution == DISTRIBUTION_BASHO ||
	       distribution == DISTRIBUTION_BASHO_TRUNCATED || distribution == DISTRIBUTION_ZIPFIAN;
}

void sampler_begin(struct sampler *sampler, enum distribution distribution,
		   const struct sampler_options *options)
{
	assert(options->pairs > 0 && options->pareto_shape > 1 && options->zipfian_theta > 0);
	*sampler = (struct sampler){
		.distribution = distribution,
		.each_once = options->each_once,
		.pairs = options->pairs,
		.window = options->window,
		.pareto_exponent = 1 / (1 - 1 / options->pareto_shape),
		.zipfian_theta = options->zipfian_theta,
		.strewn = permutation_make(options->pairs, random_mix(options->seed + 1)),
	};
	if (distribution == DISTRIBUTION_OLDEST || distribution == DISTRIBUTION_NEWEST)
		assert(options->window > 0 && options->window <= options->pairs);
	if (distribution == DISTRIBUTION_ZIPFIAN || distribution == DISTRIBUTION_LATEST)
		zipfian_begin(sampler);
}

uint64_t sampler_pair(const struct sampler *sampler, struct random_state *random,
		      uint64_t operation)
{
	switch (sampler->distribution) {
	case DISTRIBUTION_SEQUENTIAL:
		return operation % sampler->pairs;
	case DISTRIBUTION_RANDOM:
		if (sampler->each_once)
			return permutation_at(&sampler->strewn, operation % sampler->pairs);
		return random_below(random, sampler->pairs);
	case DISTRIBUTION_PARETO:
		return permutation_at(&sampler->strewn, sampler_pareto_rank(sampler, random));
	case DISTRIBUTION_BASHO:
		return sampler_basho_value(sampler, random) % sampler->pairs;
	case DISTRIBUTION_BASHO_TRUNCATED:
		return min_u64(sampler_basho_value(sampler, random), sampler->pairs - 1);
	case DISTRIBUTION_ZIPFIAN:
		return permutation_at(&sampler->strewn, sampler_zipfian_rank(sampler, random));
	case DISTRIBUTION_LATEST:
		return sampler->pairs - 1 - sampler_zipfian_rank(sampler, random);
	case DISTRIBUTION_OLDEST:
		return random_below(random, sampler->window);
	case DISTRIBUTION_NEWEST:
		return sampler->pairs - 1 - random_below(random, sampler->window);
	case DISTRIBUTIONS:
		break;
	}
	assert(!"a distribution that exists");
	return 0;
}
