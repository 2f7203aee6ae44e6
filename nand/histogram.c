/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Records latencies without a lock and reads percentiles out of them. */
#include "nand/histogram.h"

#include "common/bytes.h"

void histogram_clear(struct histogram *histogram)
{
	atomic_store(&histogram->sum_ns, 0);
	atomic_store(&histogram->least_ns, UINT64_MAX);
	atomic_store(&histogram->most_ns, 0);
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		atomic_store_explicit(&histogram->buckets[i], 0, memory_order_relaxed);
}

/*
 * Values below 2^(SUB_BITS + 1) have a bucket each. Above, the highest SUB_BITS + 1 bits of the
 * value choose: the number of bits shifted out is the doubling, the bits below the leading one are
 * the bucket in it.
 */
size_t histogram_bucket_of(uint64_t ns)
{
	unsigned shift;

	if (ns < UINT64_C(1) << (HISTOGRAM_SUB_BITS + 1))
		return (size_t)ns;
	shift = 63 - HISTOGRAM_SUB_BITS - (unsigned)__builtin_clzll(ns);
	return ((size_t)shift << HISTOGRAM_SUB_BITS) + (size_t)(ns >> shift);
}

uint64_t histogram_bucket_most(size_t bucket)
{
	unsigned shift;
	uint64_t top;

	if (bucket < 1U << (HISTOGRAM_SUB_BITS + 1))
		return bucket;
	shift = (unsigned)(bucket >> HISTOGRAM_SUB_BITS) - 1;
	top = bucket - ((size_t)shift << HISTOGRAM_SUB_BITS);
	return (top << shift) + ((UINT64_C(1) << shift) - 1);
}

void histogram_record(struct histogram *histogram, uint64_t ns)
{
	uint64_t seen = atomic_load_explicit(&histogram->least_ns, memory_order_relaxed);

	while (ns < seen &&
	       !atomic_compare_exchange_weak_explicit(&histogram->least_ns, &seen, ns,
						      memory_order_relaxed, memory_order_relaxed))
		;
	seen = atomic_load_explicit(&histogram->most_ns, memory_order_relaxed);
	while (ns > seen &&
	       !atomic_compare_exchange_weak_explicit(&histogram->most_ns, &seen, ns,
						      memory_order_relaxed, memory_order_relaxed))
		;
	atomic_fetch_add_explicit(&histogram->sum_ns, ns, memory_order_relaxed);
	atomic_fetch_add_explicit(&histogram->buckets[histogram_bucket_of(ns)], 1,
				  memory_order_relaxed);
}

void histogram_read(const struct histogram *histogram, struct histogram_snapshot *snapshot)
{
	snapshot->count = 0;
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		snapshot->buckets[i] =
			atomic_load_explicit(&histogram->buckets[i], memory_order_relaxed);
		snapshot->count += snapshot->buckets[i];
	}
	snapshot->sum_ns = atomic_load(&histogram->sum_ns);
	snapshot->least_ns = snapshot->count ? atomic_load(&histogram->least_ns) : 0;
	snapshot->most_ns = atomic_load(&histogram->most_ns);
}

uint64_t histogram_percentile(const struct histogram_snapshot *snapshot, unsigned permille)
{
	uint64_t wanted = snapshot->count / 1000 * permille +
			  divide_up(snapshot->count % 1000 * permille, 1000);
	uint64_t seen = 0;

	if (snapshot->count == 0)
		return 0;
	wanted = max_u64(wanted, 1);
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += snapshot->buckets[i];
		if (seen >= wanted)
			return min_u64(histogram_bucket_most(i), snapshot->most_ns);
	}
	return snapshot->most_ns;
}
