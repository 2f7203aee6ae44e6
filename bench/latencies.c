/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Counts latencies in buckets and reads percentiles out of them. */
#include "bench/latencies.h"

#include <math.h>
#include <stdlib.h>

struct latencies *latencies_create(void)
{
	return calloc(1, sizeof(struct latencies));
}

static uint32_t bucket_of(uint64_t value)
{
	uint32_t shift;

	if (value < 2 * LATENCIES_STEPS)
		return (uint32_t)value;
	/* The highest bits, LATENCIES_STEPS_BITS + 1 of them with the leading one. */
	shift = 63 - (uint32_t)__builtin_clzll(value) - LATENCIES_STEPS_BITS;
	return shift * LATENCIES_STEPS + (uint32_t)(value >> shift);
}

void latencies_add(struct latencies *latencies, uint64_t value)
{
	struct latencies_bucket *bucket = &latencies->buckets[bucket_of(value)];

	bucket->count++;
	bucket->sum += value;
	latencies->count++;
	if (value > latencies->max)
		latencies->max = value;
}

void latencies_add_all(struct latencies *latencies, const struct latencies *from)
{
	for (uint32_t i = 0; i < LATENCIES_BUCKETS; i++) {
		latencies->buckets[i].count += from->buckets[i].count;
		latencies->buckets[i].sum += from->buckets[i].sum;
	}
	latencies->count += from->count;
	if (from->max > latencies->max)
		latencies->max = from->max;
}

double latencies_percentile(const struct latencies *latencies, double portion)
{
	double wanted = ceil(portion * (double)latencies->count);
	uint64_t rank = wanted < 1 ? 1 : (uint64_t)wanted, passed = 0;

	for (uint32_t i = 0; i < LATENCIES_BUCKETS; i++) {
		const struct latencies_bucket *bucket = &latencies->buckets[i];

		passed += bucket->count;
		if (passed >= rank && bucket->count)
			return (double)bucket->sum / (double)bucket->count;
	}
	return 0;
}
