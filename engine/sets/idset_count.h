/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * How many IDs lie below each child of a set's inner nodes: kept in memory only, filled in as
 * somebody counts or lists, and kept right by changes, so that idset_count() need not visit all
 * leaves.
 */
#ifndef MUNINN_ENGINE_SETS_IDSET_COUNT_H
#define MUNINN_ENGINE_SETS_IDSET_COUNT_H

#include <stdint.h>

#include "engine/sets/idset_path.h"

/* Notes what the leaf at the end of `path` holds. */
void idset_counts_note_leaf(const struct idset_path *path);

/*
 * An ID is about to come to the leaf of `path` (`change` 1), or to go (-1). So many nodes, from the
 * leaf upwards, are split: what lies below those is unknown from now on. An aborted transaction
 * takes all of that back.
 */
void idset_counts_change(struct idset *set, const struct idset_path *path, uint32_t split,
			 int change);

#endif
