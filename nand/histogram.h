/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Histograms of latencies in nanoseconds: exact to 32 ns, beyond that 16 buckets to each doubling,
 * so a percentile is never more than 6.25 % above the truth. Count, sum, least and most are exact.
 * Recording takes no lock.
 *
 * Sub-bucketed powers of two are an old idea; HdrHistogram (Gil Tene) made it common for latencies.
 */
#ifndef MUNINN_NAND_HISTOGRAM_H
#define MUNINN_NAND_HISTOGRAM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_SUB_BITS 4
#define HISTOGRAM_BUCKETS  ((64 - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS)

/* All zeroes is an empty one, but for `least_ns`: use histogram_clear. */
struct histogram {
	_Atomic uint64_t sum_ns;
	_Atomic uint64_t least_ns;
	_Atomic uint64_t most_ns;
	_Atomic uint64_t buckets[HISTOGRAM_BUCKETS];
};

/* A copy that stands still. */
struct histogram_snapshot {
	uint64_t count;
	uint64_t sum_ns;
	uint64_t least_ns; /* 0 when count is */
	uint64_t most_ns;
	uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_clear(struct histogram *histogram);
void histogram_record(struct histogram *histogram, uint64_t ns);
void histogram_read(const struct histogram *histogram, struct histogram_snapshot *snapshot);

/* The highest value that falls in a bucket, and the bucket of a value. */
uint64_t histogram_bucket_most(size_t bucket);
size_t histogram_bucket_of(uint64_t ns);

/*
 * The smallest value that at least `permille` thousandths of the recorded ones do not exceed,
 * rounded up to the end of its bucket, at most `most_ns`; 0 when nothing was recorded. 500 is the
 * median, 1000 the largest.
 */
uint64_t histogram_percentile(const struct histogram_snapshot *snapshot, unsigned permille);

#endif
