/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* How much of a segment is live, for who chooses one to merge. */
#ifndef MUNINN_ENGINE_MUNINN_LIVENESS_H
#define MUNINN_ENGINE_MUNINN_LIVENESS_H

#include "engine/muninn/merge_run.h"

static inline uint64_t segment_bytes(const struct muninn_store *store)
{
	return (uint64_t)store->geometry.segment_pages * store->geometry.page_bytes;
}

/* Pages that tell how much of a segment is live. */
struct sample {
	uint32_t first, pages; /* so many, spread over the segment */
	uint32_t limit;        /* with more that is live, per mille, it is of no use */
	/* The results: how many records were judged; whether some pages were left out. */
	uint32_t records;
	bool is_cut;
};

/*
 * The part of a segment that is still needed, judged by a few of its pages. In a segment that is
 * nearly empty more pages are read, until some have records. A segment that can't be read counts as
 * all needed. If it has more than the limit even if all pages that are left are full of what is not
 * needed, these are left out.
 */
uint32_t liveness_sample(struct merge_run *run, const struct victim *victim, struct sample *sample);

/*
 * Counts the part of the best segment that is needed by all its records, noting what is found for
 * each. `seems_cheap`: little of it seems to be needed. 0, -EINPROGRESS.
 */
int liveness_count(struct merge_run *run, bool seems_cheap);

#endif
