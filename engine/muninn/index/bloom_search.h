/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A search through one table. Only the index looks into it. */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_BLOOM_SEARCH_H
#define MUNINN_ENGINE_MUNINN_INDEX_BLOOM_SEARCH_H

#include "engine/muninn/format.h"
#include "engine/muninn/hash.h"
#include "engine/muninn/index/bloom_geometry.h"
#include "engine/muninn/index/narrow.h"

struct table;

/* Walks the pages of the table's segments that may hold a key, newest first. */
struct table_search {
	const struct table *table;
	const struct key_hash *hash;
	uint64_t bound;
	uint64_t after; /* columns with nothing above it are left out; 0 to begin with: none are */
	uint64_t columns;                    /* still to visit */
	uint64_t matches[BLOOM_FILTERS_MAX]; /* columns whose filter matches */
	uint32_t column;                     /* being visited */
	uint32_t eighths;                    /* serial_eighths of its segment */
	uint32_t places;                     /* of it, still to visit: bit n = hash function n */
	/*
	 * Further ones, behind these; bit n of word m = place BLOOM_FUNCTIONS + 64 m + n. Words
	 * from `further_end` on are not set.
	 */
	uint64_t further[MUNINN_SEGMENT_PAGES_MAX / 64];
	uint32_t further_end;
	int result; /* 0, or the error of the source that ended the walk */
};

void table_search_begin(struct table_search *search, const struct table *table,
			const struct key_hash *hash, uint64_t bound);

/*
 * Goes on to the next column, and says which segment that is. False: there are no more, or `result`
 * says why not.
 */
bool table_search_segment(struct table_search *search, uint32_t *segment);

/* The highest number in that segment. */
uint64_t table_search_last(const struct table_search *search);

/* Goes on to the next page of that segment, the newest first. False: there are no more. */
bool table_search_page(struct table_search *search, uint32_t *page);

/* See index_search_narrow. */
int table_search_narrow(struct table_search *search, enum narrow_way way, index_probe *probe,
			void *context);

#endif
