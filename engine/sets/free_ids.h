/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Choosing IDs for what is created without a requested one. */
#ifndef MUNINN_ENGINE_SETS_FREE_IDS_H
#define MUNINN_ENGINE_SETS_FREE_IDS_H

#include "engine/sets/idset.h"

/* Where free IDs are looked for: among lowest..highest, in none of the sets. */
struct free_ids {
	const struct idset *sets;
	unsigned count_of_sets;
	unsigned shift; /* elements of the sets are IDs with so many more bits at their low end */
	uint64_t lowest, highest;
};

/*
 * The first of `count` (>= 1) consecutive free IDs.
 *
 * They are behind the highest ID that is taken. Where that leaves too few, they are in a gap below:
 * of those around the IDs lowest + 2^n - 1 the lowest that is large enough, from its start
 * on. So IDs that follow each other go on doing so when one at the far end has been taken, at the
 * cost of some look-ups, however many IDs there are. -EFBIG: none of these 64 gaps is large enough.
 */
int free_ids_find(const struct free_ids *ids, uint32_t count, uint64_t *first);

#endif
