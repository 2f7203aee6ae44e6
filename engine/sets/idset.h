/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Ordered sets of 64-bit IDs on records: a B+ tree whose nodes are records (idset_node.h). Adding
 * or removing an ID costs one small record; a leaf's base record is rewritten after some dozens of
 * them. The set's header is kept by its owner, who stores it whenever `changed` is set. Because
 * records have versions, a header of old with the bound of its time shows the set of old.
 *
 * Sets with equal node caches share a bound on memory. Any number of threads may read; see cache.h
 * for writing.
 */
#ifndef MUNINN_ENGINE_SETS_IDSET_H
#define MUNINN_ENGINE_SETS_IDSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/records/access.h"
#include "engine/records/cache.h"

#define IDSET_HEIGHT_MAX   12
#define IDSET_FREE_NODES   6
#define IDSET_HEADER_BYTES 48

/* All zero = empty set. */
struct idset_header {
	uint64_t count;      /* IDs */
	uint32_t root;       /* node number; counts if height > 0 */
	uint32_t next_node;  /* nodes from here on were never used since the set was empty */
	uint32_t generation; /* of the base record written last */
	uint8_t height;      /* 0: empty, 1: the root is a leaf */
	uint8_t free_count;
	uint32_t free_nodes[IDSET_FREE_NODES]; /* some that can be used again */
	/*
	 * Not encoded, the owner's to fill in: sequence number of the last change, or of a later
	 * one since when it is as it is.
	 */
	uint64_t changed_sequence;
};

/* One set, seen by one caller. */
struct idset {
	struct record_store *store;
	struct cache *nodes;         /* of struct idset_node; not used when `bound` is one of old */
	struct idset_header *header; /* the owner's */
	struct record_key first;     /* key of its first record; others differ by their piece */
	uint64_t bound; /* reads see the set as of this sequence number; RECORD_NEWEST: now */
};

/* Encodes into IDSET_HEADER_BYTES bytes. */
void idset_header_encode(const struct idset_header *header, uint8_t *to);

/* -EBADMSG when the bytes are not a header. */
int idset_header_decode(struct idset_header *header, const uint8_t *from);

/*
 * Adds an ID; -EEXIST: it is there. -EFBIG: no node numbers left. Others as those of records,
 * and -ENOMEM. After an error other than -ENOSPC and -EIO the set is as before. Changed nodes wait
 * in the cache for idset_put_dirty.
 */
int idset_insert(struct idset *set, const struct record_writer *writer, uint64_t id);

/* Removes an ID; -ENOENT: it is not there. Errors as above. */
int idset_remove(struct idset *set, const struct record_writer *writer, uint64_t id);

/* 1: it is there, 0: it is not; negative: error. */
int idset_contains(const struct idset *set, uint64_t id);

/* The highest ID. -ENOENT: the set is empty. */
int idset_last(const struct idset *set, uint64_t *id);

/* The highest ID below `id`. -ENOENT: there is none. */
int idset_before(const struct idset *set, uint64_t id, uint64_t *before);

/*
 * IDs >= `first` in ascending order, at most `capacity` of them. *more = whether there are further
 * ones, then *next is the first of them.
 */
int idset_list(const struct idset *set, uint64_t first, uint64_t *ids, size_t capacity,
	       size_t *count, bool *more, uint64_t *next);

/* The lowest ID >= `first`. -ENOENT: there is none. */
int idset_next(const struct idset *set, uint64_t first, uint64_t *id);

/* A walk through the IDs >= `next`, in order. */
struct idset_walk {
	const struct idset *set;
	uint64_t next;
	bool more;
	size_t at, count;
	uint64_t ids[64];
};

static inline struct idset_walk idset_walk_from(const struct idset *set, uint64_t first)
{
	return (struct idset_walk){ .set = set, .next = first, .more = true };
}

/* 1: *id is the next ID; 0: there are no more; negative: error. */
int idset_walk(struct idset_walk *walk, uint64_t *id);

/*
 * How many IDs >= `first` there are. Of the present: visits each leaf at most once for all calls as
 * long as inner nodes stay in the cache, and none that idset_list has passed; of old: those before
 * or behind `first`, whatever is less.
 */
int idset_count(const struct idset *set, uint64_t first, uint64_t *count);

/* Puts all nodes that wait in a cache. -ENOSPC, -EIO. */
int idset_put_dirty(struct cache *nodes, const struct record_writer *writer);

#endif
