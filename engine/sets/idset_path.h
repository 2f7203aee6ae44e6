/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The way from the root of an ID set (idset.h) to one of its leaves.
 */
#ifndef MUNINN_ENGINE_SETS_IDSET_PATH_H
#define MUNINN_ENGINE_SETS_IDSET_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/sets/idset.h"
#include "engine/sets/idset_node.h"

/* The nodes from the root to a leaf, pinned. */
struct idset_path {
	struct idset_node *nodes[IDSET_HEIGHT_MAX];
	uint32_t indexes[IDSET_HEIGHT_MAX]; /* of the child taken in inner nodes */
	uint32_t depth;                     /* nodes held; the leaf is the last */
	uint64_t lower;                     /* IDs from here on; 0: the leaf is the first one */
	bool bounded;                       /* there are leaves behind this one: */
	uint64_t upper;                     /* ... for IDs from here on */
};

/* The present: its nodes are in the cache. Those of old belong to who reads them. */
static inline bool idset_is_current(const struct idset *set)
{
	return set->bound == RECORD_NEWEST;
}

/* A node, pinned. -EBADMSG, -EIO, -ENOMEM. */
int idset_node_get(const struct idset *set, uint32_t number, struct idset_node **node);

void idset_node_release(const struct idset *set, struct idset_node *node);

/*
 * Pins the way to the leaf where `id` is or belongs; the set is not empty. On an error nothing
 * stays pinned.
 */
int idset_descend(const struct idset *set, uint64_t id, struct idset_path *path);

void idset_path_release(const struct idset *set, struct idset_path *path);

static inline struct idset_node *idset_leaf_of(const struct idset_path *path)
{
	return path->nodes[path->depth - 1];
}

#endif
