/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Merging while operations go on: before a put on a device that gets full, reclaims a few segments,
 * as the object layer does. Keeps the present, and what the store's `keep` says.
 */
#ifndef MUNINN_BENCH_MERGING_H
#define MUNINN_BENCH_MERGING_H

#include "bench/store.h"

/* What merging has cost and brought so far. */
struct merge_costs {
	uint64_t page_reads, segments_freed, records_moved, bytes_moved;
};

/*
 * One step, if the store is short of space. The caller holds the store's lock for writing. 0, or
 * the step's error.
 */
int bench_make_space(struct bench_store *store);

/*
 * Frees `segments` segments of at most `live_permille_max` live bytes, however much space is free;
 * fewer if a walk over all segments finds no more. 0 or -errno.
 */
int bench_merge(struct bench_store *store, uint64_t segments, uint32_t live_permille_max);

struct merge_costs bench_merge_costs(const struct bench_store *store);

#endif
