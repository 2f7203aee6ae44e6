/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Read-only version tables: the filters of up to 64 sealed segments of one row, combined
 * column-wise. For every bit position there is one 64-bit word, a bit for each segment, so one AND
 * a position tests all 64 segments at once.
 *
 * A table grows in NVRAM, a column for each sealed segment. Complete, its image is written to
 * flash, listed in the directory, and kept in memory. The bytes are the same in all three places
 * (format.h).
 */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_TABLE_H
#define MUNINN_ENGINE_MUNINN_INDEX_TABLE_H

#include "engine/muninn/geometry.h"
#include "engine/muninn/hash.h"
#include "engine/muninn/index/bloom_format.h"
#include "engine/muninn/page.h"

struct table;
struct segment_index;

/* Filters of the segments of one table. */
struct filter_geometry {
	uint32_t filters;                   /* in use */
	uint32_t hashes[BLOOM_FILTERS_MAX]; /* bits that a key sets in each filter */
	uint32_t bits[BLOOM_FILTERS_MAX];   /* length of each filter */
	uint32_t offset[BLOOM_FILTERS_MAX]; /* its first bit position in the table */
	uint32_t bits_total;
};

/* Where the bytes of a table come from that are not in memory. */
struct table_source {
	/* 0, -EBADMSG, -EIO. */
	int (*read)(const struct table_source *source, const struct table *table, uint64_t offset,
		    void *to, uint32_t bytes);
};

struct table {
	uint8_t *image; /* with a source, of a complete table only the header and the columns */
	const struct table_source *source; /* NULL: all of the image is in memory */
	uint8_t *live_word; /* in NVRAM: a bit for each column that has not been merged */
	struct filter_geometry filters;
	uint32_t paged_filters;
	uint32_t overflow_entries;
	uint32_t further_places; /* of a key, behind those of hash functions */
	uint32_t segment_pages;
	uint64_t image_bytes;
	bool unsynced; /* changed since the last flush; of a growing table */
};

/*
 * Begins table `index` of `row` in NVRAM: no columns. Crash-safe: the store of the index comes
 * last.
 */
void table_begin(struct table *table, const struct muninn_geometry *geometry, uint8_t *image,
		 uint32_t row, uint32_t index);

/*
 * Takes up an image in NVRAM or memory. False when its header is not that of table of `row` with
 * this geometry.
 */
bool table_attach(struct table *table, const struct muninn_geometry *geometry, uint8_t *image,
		  uint32_t row);

/* The columns that are in use: added and not merged. */
uint64_t table_live(const struct table *table);

/* Takes a column out of the table, by one store. */
void table_kill_column(struct table *table, uint32_t column);

uint32_t table_index(const struct table *table);
uint32_t table_columns(const struct table *table);

/* What is known of a sealed segment. */
struct table_column {
	uint32_t segment;
	uint32_t records;
	uint64_t serial;
	uint64_t first_sequence, last_sequence;
	uint64_t record_bytes;
	uint32_t overflow_count;
	bool is_ordered; /* no record in it is one that merge moved, so the places of a key are in
			    the order of its numbers */
};

/* What is known of a segment without records; takes those of a page into account. */
struct table_column table_column_begin(uint32_t segment, uint64_t serial);
void table_column_add(struct table_column *facts, const struct page_view *page);

void table_read_column(const struct table *table, uint32_t column, struct table_column *facts);

/*
 * Writes the index of a segment, which has been programmed to `facts->segment`, into the next
 * column.
 */
void table_write_column(struct table *table, const struct segment_index *index,
			const struct table_column *facts);

/* Makes that column count: one store. Header and columns lie within one page of NVRAM. */
void table_commit_column(struct table *table);

/* Bytes of the image that are in memory. */
uint64_t table_memory_bytes(const struct table *table);

/* Walks the flash pages that may hold a key, newest first. */
struct table_search {
	const struct table *table;
	const struct key_hash *hash;
	uint64_t bound;
	uint64_t after; /* columns with nothing above it are left out; 0 to begin with: none are */
	uint64_t columns;                    /* still to visit */
	uint64_t matches[BLOOM_FILTERS_MAX]; /* columns whose filter matches */
	uint32_t column;                     /* being visited */
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

/* Goes on to the next page of that segment, the newest first. False: there are no more. */
bool table_search_page(struct table_search *search, uint32_t *page);

/*
 * Leaves out pages of the segment that hold only what is newer than `bound`, as far as few probes
 * tell. `probe` reads a page: 1: it has a record of the key up to the bound, 0: only newer ones, 2:
 * none of the key, or an error, which ends this.
 */
int table_search_narrow(struct table_search *search, uint64_t bound,
			int (*probe)(void *context, uint32_t page), void *context);

#endif
