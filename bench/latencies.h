/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Counts of values (nanoseconds) in buckets whose width grows with the value, like HdrHistogram:
 * 256 buckets for every power of two, so a bucket is never wider than 1/256 of its values. A bucket
 * also keeps the sum of its values. So percentiles are exact where all values of a bucket are
 * equal, as in virtual time.
 */
#ifndef MUNINN_BENCH_LATENCIES_H
#define MUNINN_BENCH_LATENCIES_H

#include <stdint.h>

#define LATENCIES_STEPS_BITS 8
#define LATENCIES_STEPS      (1 << LATENCIES_STEPS_BITS)
/*
 * Values below 2 * LATENCIES_STEPS have a bucket each; every higher power of two has
 * LATENCIES_STEPS.
 */
#define LATENCIES_BUCKETS ((64 - LATENCIES_STEPS_BITS + 1) * LATENCIES_STEPS)

struct latencies {
	uint64_t count;
	uint64_t max;
	struct latencies_bucket {
		uint64_t count;
		uint64_t sum;
	} buckets[LATENCIES_BUCKETS];
};

/* An empty one, to be freed by free(). NULL: out of memory. */
struct latencies *latencies_create(void);

void latencies_add(struct latencies *latencies, uint64_t value);

/* Adds all that is in `from`. */
void latencies_add_all(struct latencies *latencies, const struct latencies *from);

/*
 * The least value that is not below the share `portion` (0..1) of all values. The mean of its
 * bucket stands for it. 0 when empty.
 */
double latencies_percentile(const struct latencies *latencies, double portion);

#endif
