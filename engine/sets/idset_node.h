/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * One node of an ID set (idset.h): in memory, and as a base record with the operations that were
 * put since. Byte layout in docs/objects.md.
 */
#ifndef MUNINN_ENGINE_SETS_IDSET_NODE_H
#define MUNINN_ENGINE_SETS_IDSET_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/records/access.h"
#include "engine/records/cache.h"

/*
 * A node's records are the pieces node << 7 | part, counted from the piece of the set's first key:
 * part 0 the base, 1.. the operations since. There are a few nodes less than pieces, so that an
 * owner can let a set begin behind piece 0, and keep some pieces behind it.
 */
#define IDSET_PART_BITS           7
#define IDSET_NODES_MAX           ((UINT32_C(1) << 24) - 1025)
#define IDSET_OPERATIONS_MAX      64
#define IDSET_OPERATIONS_PER_PART 8

#define IDSET_BASE_HEAD_BYTES   8
#define IDSET_PART_HEAD_BYTES   4
#define IDSET_OPERATION_BYTES   9
#define IDSET_LEAF_ENTRY_BYTES  8
#define IDSET_INNER_ENTRY_BYTES 12

enum idset_kind { IDSET_LEAF = 1, IDSET_INNER = 2 };
enum idset_operation_kind { IDSET_INSERT = 1, IDSET_REMOVE = 2 };

struct idset_operation {
	uint64_t id;
	enum idset_operation_kind kind;
};

struct idset_node {
	struct cache_entry entry; /* key: partition index, identifier of the set, node number */
	struct record_key first;  /* of the set's records */
	enum idset_kind kind;
	uint32_t generation; /* of the base record and the operations that belong to it */
	uint32_t count, capacity;
	bool whole; /* the next put rewrites the base; `operations` is not kept up to date */
	uint32_t operations_count, operations_put;
	struct idset_operation operations[IDSET_OPERATIONS_MAX]; /* on leaves, since the base */
	uint64_t *counts;   /* inner nodes: IDs below each child, in memory only; 0: not known
			       (idset_count.h) */
	uint32_t *children; /* inner nodes: capacity node numbers */
	uint64_t
		keys[]; /* leaves: the IDs. Inner nodes: where each child begins, 0 for the first */
};

/* Most entries of a node. */
uint32_t idset_node_capacity(enum idset_kind kind, uint32_t record_bytes);

/* An empty node of a set, not in any cache. NULL: no memory. */
struct idset_node *idset_node_new(const struct record_key *first, uint32_t number,
				  enum idset_kind kind, uint32_t record_bytes);

/* The key under which caches have a node of the set whose records begin with `first`. */
struct cache_key idset_node_cache_key(const struct record_key *first, uint32_t number);

/* Memory that a node takes. */
size_t idset_node_bytes(const struct idset_node *node);

/* As a cache's destroy function. */
void idset_node_destroy(struct cache_entry *entry);

/* Index of the first key >= id; node->count when there is none. */
uint32_t idset_node_position(const struct idset_node *node, uint64_t id);

/* Inserts or removes the entry at `index`, in memory only. `child` counts on inner nodes. */
void idset_node_insert(struct idset_node *node, uint32_t index, uint64_t key, uint32_t child);
void idset_node_remove(struct idset_node *node, uint32_t index);

/* Moves entries `from`.. to the empty node `right`. */
void idset_node_split(struct idset_node *node, uint32_t from, struct idset_node *right);

/* Notes an operation for the next put. false: there is no room; the base has to be rewritten. */
bool idset_node_log(struct idset_node *node, enum idset_operation_kind kind, uint64_t id);

/*
 * Reads a node as of `bound`. -EBADMSG when it is not there or breaks the rules; -ENOMEM. The
 * caller owns *node.
 */
int idset_node_load(struct record_store *store, const struct record_key *first, uint32_t number,
		    uint64_t bound, struct idset_node **node);

/* Puts what changed. -ENOSPC, -EIO. */
int idset_node_put(const struct record_writer *writer, struct idset_node *node);

#endif
