/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What a row's ribbons do not have, exactly: the keys of segments that are in no complete group
 * yet, and those that a ribbon could not take. A table of packed entries, by tag, in buckets
 * without gaps. It does not change: it is written anew, with entries added and others left out.
 */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_RIBBON_EXACT_H
#define MUNINN_ENGINE_MUNINN_INDEX_RIBBON_EXACT_H

#include <stdbool.h>
#include <stdint.h>

/* An entry of an index: a key is at `location` of a segment. */
struct tag_entry {
	uint32_t tag;
	uint32_t segment;  /* the row's own number of it: later ones of a group are higher */
	uint32_t location; /* in the segment */
};

struct exact_shape {
	uint32_t bucket_bits;   /* 1 .. 20: upper bits of the tag, which choose the bucket */
	uint32_t segment_bits;  /* 1 .. 20 */
	uint32_t location_bits; /* 1 .. 16 */
};

struct exact;

/* An empty table. NULL: out of memory. NULL may be destroyed. */
struct exact *exact_create(const struct exact_shape *shape);
void exact_destroy(struct exact *exact);

/* The new number of a segment; EXACT_DROP: its entries are left out. */
#define EXACT_DROP UINT32_MAX
typedef uint32_t exact_renumber(void *context, uint32_t segment);

/*
 * A table of another shape (with as many buckets) that has the old entries, their segments
 * renumbered, and `count` entries `added`. `renumber` NULL: the old entries stay as they are. NULL:
 * out of memory.
 */
struct exact *exact_rewrite(const struct exact *exact, const struct exact_shape *shape,
			    const struct tag_entry *added, uint32_t count, exact_renumber *renumber,
			    void *context);

/*
 * Renumbers segments in the table itself, which takes no memory. No number may become higher, and
 * their order has to stay.
 */
void exact_reduce(struct exact *exact, exact_renumber *renumber, void *context);
const struct exact_shape *exact_shape_of(const struct exact *exact);

/* The order of a tag's entries: by segment, then by location. */
static inline uint64_t exact_rank(const struct exact_shape *shape, uint32_t segment,
				  uint32_t location)
{
	return (uint64_t)segment << shape->location_bits | location;
}

/*
 * The entries of a tag with a rank from `from` on that is below `below`, in no order: *at begins
 * with 0. False: there are no more.
 */
bool exact_find(const struct exact *exact, uint32_t tag, uint64_t from, uint64_t below,
		uint32_t *at, struct tag_entry *entry);

uint32_t exact_count(const struct exact *exact);

/* Entries one after the other, by bucket: *at begins with 0. False: the end. */
bool exact_next(const struct exact *exact, uint32_t *at, struct tag_entry *entry);

/* Bytes of an entry; bytes that the whole table needs. */
uint32_t exact_entry_bytes(const struct exact_shape *shape);
uint64_t exact_bytes(const struct exact *exact);

/* What the allocator gave for a table; 0 for NULL. */
uint64_t exact_memory(const struct exact *exact);

/* Begins to fetch what exact_find will read first. */
void exact_prefetch(const struct exact *exact, uint32_t tag);

#endif
