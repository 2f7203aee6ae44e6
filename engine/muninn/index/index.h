/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What the store needs from an index: where the records of a key may be. One index is built in, the
 * published one (bloom*.c); README.md says what a second one has to provide.
 *
 * Placement: a key has pages in a segment that it may be put to, in a fixed order. The index of an
 * active segment says which of them come next and which hold the key. When the segment is sealed,
 * its index becomes a column of its row's growing table (table.h). Tables are searched segment by
 * segment, newest first.
 */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_INDEX_H
#define MUNINN_ENGINE_MUNINN_INDEX_INDEX_H

#include "engine/muninn/index/table.h"

/* ---- sizes ---- */

/*
 * Chooses the sizes of the index, geometry->bloom, for a geometry with pages, segments and rows.
 * -EINVAL with a sentence.
 */
int index_choose(const struct muninn_options *options, struct muninn_geometry *geometry,
		 struct error_text *error);

/* What the static header says of the index; its options as they are there. */
void index_put_part(const struct muninn_geometry *geometry, uint8_t part[INDEX_PART_BYTES]);
void index_get_part(const uint8_t part[INDEX_PART_BYTES], struct muninn_options *options);

/* Bytes of the largest table's image. */
uint64_t index_table_bytes_max(const struct muninn_geometry *geometry);

/* Most pages of a segment that the records of one key can be in. */
uint32_t index_key_pages_max(const struct muninn_geometry *geometry);

/* ---- the index of an active segment ---- */

struct segment_index;

/* NULL: out of memory. NULL may be destroyed. */
struct segment_index *segment_index_create(const struct muninn_geometry *geometry);
void segment_index_destroy(struct segment_index *index);

/* Empties it, for a segment that table number `table` of its row will take. */
void segment_index_begin(struct segment_index *index, uint32_t table);

/*
 * The pages that a key may be put to, oldest first: *place begins with segment_index_first and is
 * added one to for each further call. False: there are no more.
 */
uint32_t segment_index_first(const struct segment_index *index, const struct key_hash *hash);
bool segment_index_next(const struct segment_index *index, const struct key_hash *hash,
			uint32_t *place, uint32_t *page);

/* The key has been put to the page of `place`. */
void segment_index_note(struct segment_index *index, const struct key_hash *hash, uint32_t place);

/* The key is found in a page, in any order of pages. False: that is none of its pages. */
bool segment_index_note_page(struct segment_index *index, const struct key_hash *hash,
			     uint32_t page);

/*
 * The pages that may hold the key, newest first: *place begins with UINT32_MAX. False: there are no
 * more.
 */
bool segment_index_find(const struct segment_index *index, const struct key_hash *hash,
			uint32_t *place, uint32_t *page);

/* Bytes that it needs; bytes that the allocator gave, 0 for NULL. */
uint64_t segment_index_bytes(const struct segment_index *index);
uint64_t segment_index_memory(const struct segment_index *index);

/* ---- table_bounds.c: which tables are old enough for a bound, and new enough ---- */

/* A few consecutive tables of a row. */
struct internal_version {
	uint32_t number;     /* index of its tables / tables of a version */
	uint32_t tables_end; /* of the row's complete tables, the first that is newer */
	uint64_t floor;      /* no record in it or in a newer one has a lower sequence number */
	uint64_t ceiling;    /* none in it or in an older one has a higher one */
};

struct table_bounds {
	struct internal_version *versions; /* oldest first */
	uint32_t count;
};

/* Finds the bounds again, after the complete tables have changed. */
void bounds_refresh(struct table_bounds *bounds, const struct table *tables, uint32_t table_count,
		    uint32_t tables_each);

/* How many of the tables, from the oldest on, may hold records with numbers up to `bound`. */
uint32_t bounds_find(const struct table_bounds *bounds, uint32_t table_count, uint64_t bound);

/* How many of them, from the oldest on, hold nothing with a number above `after`. */
uint32_t bounds_find_after(const struct table_bounds *bounds, uint64_t after);

/* ---- bloom_overlap.c: what the index in memory says of how much has been put again ---- */

/*
 * The live part of each segment of the first of `count` consecutive tables, as far as those behind
 * it and the growing one tell; 1000 for columns that are not live. Reads no flash.
 */
void overlap_estimate(const struct muninn_geometry *geometry, const struct table *tables,
		      uint32_t count, const struct table *growing,
		      uint32_t live_permille[MUNINN_COLUMNS]);

/* Adds the bits that are set in the combined filters of `older`, and in those of both. */
void overlap_count_bits(const struct table *older, const struct table *newer, uint64_t *set,
			uint64_t *common);

#endif
