/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The published Bloom index. Private to this folder. */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_BLOOM_H
#define MUNINN_ENGINE_MUNINN_INDEX_BLOOM_H

#include "engine/muninn/index/bloom_filters.h"
#include "engine/muninn/index/bloom_places.h"
#include "engine/muninn/index/index_type.h"
#include "engine/muninn/index/table_bounds.h"
#include "engine/muninn/index/table_cache.h"

struct overflow_entry {
	uint32_t hash;
	/*
	 * Bit n: of the first entry of a hash, hash function paged_filters + n placed the key; of
	 * the m-th one behind it, the place BLOOM_FUNCTIONS + OVERFLOW_PLACES_MAX (m - 1) + n.
	 */
	uint32_t places;
};

struct bloom_segment {
	struct segment_index base;
	struct filter_geometry filters;
	uint64_t *bits;      /* filters.bits_total bits */
	uint64_t bits_bytes; /* allocated */
	uint32_t keys[BLOOM_FILTERS_MAX];
	struct overflow_entry *overflow;
	uint32_t overflow_count;
	uint32_t eighths; /* serial_eighths of the segment */
};

struct bloom_row {
	struct row_index base;
	uint8_t *nvram;         /* of the growing table */
	struct table growing;   /* takes sealed segments */
	struct table *complete; /* oldest first; their images are on the heap */
	uint32_t complete_count;
	struct table_bounds bounds; /* of the complete tables */
};

struct bloom_store {
	struct index base;
	struct bloom_row *rows;
	struct table_cache *cache; /* of complete tables; NULL: they are in memory */
	uint32_t version_tables;   /* of an internal version */
	index_page_reader *read;   /* for the cache ... */
	void *context;             /* ... with this */
};

static inline struct bloom_store *bloom_store_of(struct index *index)
{
	return (struct bloom_store *)index;
}

static inline const struct bloom_store *bloom_store_in(const struct index *index)
{
	return (const struct bloom_store *)index;
}

static inline struct bloom_row *bloom_row_of(struct row_index *row)
{
	return (struct bloom_row *)row;
}

static inline const struct bloom_row *bloom_row_in(const struct row_index *row)
{
	return (const struct bloom_row *)row;
}

static inline struct bloom_segment *bloom_segment_of(struct segment_index *index)
{
	return (struct bloom_segment *)index;
}

static inline const struct bloom_segment *bloom_segment_in(const struct segment_index *index)
{
	return (const struct bloom_segment *)index;
}

/*
 * Filters of table number `index` of a row. The first (in the end oldest) table has the highest
 * false-positive rate, or the lowest one if the factor is below 1. Then its filters, and not those
 * of the last table, are the largest: bloom_largest_filters.
 */
void bloom_filter_geometry(const struct muninn_geometry *geometry, uint32_t index,
			   struct filter_geometry *filters);
void bloom_largest_filters(const struct muninn_geometry *geometry, struct filter_geometry *filters);

/* ---- bloom_geometry.c and bloom_segment.c: functions of struct index_type ---- */

int bloom_choose(const struct muninn_options *options, struct muninn_geometry *geometry,
		 struct error_text *error);
void bloom_put_part(const struct muninn_geometry *geometry, uint8_t part[INDEX_PART_BYTES]);
int bloom_get_part(const uint8_t part[INDEX_PART_BYTES], struct muninn_options *options,
		   struct error_text *error);
uint64_t bloom_image_bytes_max(const struct muninn_geometry *geometry);
uint32_t bloom_key_pages_max(const struct muninn_geometry *geometry);

struct segment_index *bloom_segment_create(const struct muninn_geometry *geometry);
void bloom_segment_destroy(struct segment_index *base);
void bloom_segment_begin(struct segment_index *base, const struct row_index *row, uint32_t ahead,
			 uint64_t serial);
uint32_t bloom_segment_first(const struct segment_index *base, const struct key_hash *hash);
bool bloom_segment_next(const struct segment_index *base, const struct key_hash *hash,
			uint32_t *place, uint32_t *page);
void bloom_segment_note(struct segment_index *base, const struct key_hash *hash, uint32_t place);
bool bloom_segment_note_page(struct segment_index *base, const struct key_hash *hash,
			     uint32_t page);
bool bloom_segment_find(const struct segment_index *base, const struct key_hash *hash,
			const struct pages_up_to *wanted, uint32_t *place, uint32_t *page);
bool bloom_may_place(const struct muninn_geometry *geometry, const struct key_hash *hash,
		     uint64_t serial, uint32_t page);
bool bloom_spreads(const struct muninn_geometry *geometry);
uint64_t bloom_segment_bytes(const struct segment_index *base);
uint64_t bloom_segment_memory(const struct segment_index *base);

/* ---- bloom_table.c ---- */

/* Function of struct index_type. */
bool bloom_tell_image(const struct muninn_geometry *geometry, uint8_t *image, uint64_t length,
		      uint64_t live, const struct fields *to);

/* The word of a bit position of all filters. Errors of the source. */
int table_word(const struct table *table, uint32_t position, uint64_t *word);

/* Bytes of a table's image, from its source when they are not in memory. Errors of the source. */
int table_read_bytes(const struct table *table, uint64_t offset, void *to, uint32_t bytes);

/* ---- bloom_overlap.c: what the index in memory says of how much has been put again ---- */

/*
 * The live part of each segment of the first of `count` consecutive tables, as far as those behind
 * it and the growing one tell; 1000 for columns that are not live. Reads no flash.
 */
void overlap_estimate(const struct muninn_geometry *geometry, const struct table *tables,
		      uint32_t count, const struct table *growing,
		      uint32_t live_permille[GROUP_SEGMENTS]);

/* Adds the bits that are set in the combined filters of `older`, and in those of both. */
void overlap_count_bits(const struct table *older, const struct table *newer, uint64_t *set,
			uint64_t *common);

/* ---- bloom_search.c ---- */

/* The last place in the column that is left; UINT32_MAX: there is none. Leaves one out. */
uint32_t table_search_place(const struct table_search *search);
void table_search_leave(struct table_search *search, uint32_t place);

#endif
