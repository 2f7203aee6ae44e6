/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The pages of a segment that may hold a key, in the order in which they are tried. */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_BLOOM_PLACES_H
#define MUNINN_ENGINE_MUNINN_INDEX_BLOOM_PLACES_H

#include "engine/muninn/hash.h"
#include "engine/muninn/index/bloom_geometry.h"

/* Places of metadata that lie in the first part of a segment. */
#define HASH_METADATA_PLACES 2

/*
 * Page of the segment that hash function `place` (from 0) gives. Metadata records are small, and a
 * page that holds one is lost for a piece of a page's size; so their first places are in the first
 * pages, so many eighths of them: see serial_eighths.
 */
static inline uint32_t hash_page(const struct key_hash *hash, uint32_t place,
				 uint32_t segment_pages, uint32_t eighths)
{
	uint64_t base = hash_mix(hash->group + (place + 1) * UINT64_C(0x9e3779b97f4a7c15));

	if (hash->metadata && place < HASH_METADATA_PLACES)
		return ((uint32_t)base + hash->offset) % (segment_pages / 8 * eighths);
	return ((uint32_t)base + hash->offset) & (segment_pages - 1);
}

/*
 * Further places of a key are the pages behind the last hash function's page, all of a segment.
 */
static inline uint32_t hash_run_page(const struct key_hash *hash, uint32_t number,
				     uint32_t segment_pages)
{
	return (hash_page(hash, BLOOM_FUNCTIONS - 1, segment_pages, 1) + 1 + number) &
	       (segment_pages - 1);
}

/*
 * The page of a place, or UINT32_MAX when an earlier function gives the same page: each page stands
 * for one place of a key, so that the order of places is the order of writing. Puts and searches
 * leave such places out alike.
 */
static inline uint32_t hash_own_page(const struct key_hash *hash, uint32_t place,
				     uint32_t segment_pages, uint32_t eighths)
{
	uint32_t functions = place < BLOOM_FUNCTIONS ? place : BLOOM_FUNCTIONS;
	uint32_t page = place < BLOOM_FUNCTIONS
				? hash_page(hash, place, segment_pages, eighths)
				: hash_run_page(hash, place - BLOOM_FUNCTIONS, segment_pages);

	for (uint32_t earlier = 0; earlier < functions; earlier++)
		if (hash_page(hash, earlier, segment_pages, eighths) == page)
			return UINT32_MAX;
	return page;
}

/* The place that a page is for a key: the inverse. */
static inline uint32_t hash_place(const struct key_hash *hash, uint32_t page,
				  uint32_t segment_pages, uint32_t eighths)
{
	for (uint32_t place = 0; place < BLOOM_FUNCTIONS; place++)
		if (hash_page(hash, place, segment_pages, eighths) == page)
			return place;
	return BLOOM_FUNCTIONS +
	       ((page - hash_run_page(hash, 0, segment_pages)) & (segment_pages - 1));
}

/* The 31 bits that stand for the key in an overflow map. */
static inline uint32_t hash_overflow(const struct key_hash *hash)
{
	return (uint32_t)(hash->key >> 33);
}

#endif
