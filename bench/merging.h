/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Merging while operations go on: before a put on a device that gets full a few segments are
 * reclaimed, as the object layer does it. What is kept is the present.
 */
#ifndef MUNINN_BENCH_MERGING_H
#define MUNINN_BENCH_MERGING_H

#include "bench/store.h"

/* What merging has cost and brought so far. */
struct merge_costs {
	uint64_t page_reads, segments_freed, records_moved, bytes_moved;
};

/*
 * One step, where the store is short of space. The caller holds the store's lock for writing. 0, or
 * what the step failed with.
 */
int bench_make_space(struct bench_store *store);

/*
 * Frees `segments` segments of at most `live_permille_max` live bytes, however much room there is;
 * fewer when a walk over all finds no more. 0 or -errno.
 */
int bench_merge(struct bench_store *store, uint64_t segments, uint32_t live_permille_max);

struct merge_costs bench_merge_costs(const struct bench_store *store);

#endif
