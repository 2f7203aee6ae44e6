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
#ifndef MUNINN_ENGINE_MUNINN_TABLE_H
#define MUNINN_ENGINE_MUNINN_TABLE_H

#include "engine/muninn/buffer.h"

struct table;

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
 * Writes the index of `buffer`, whose pages have been programmed to `facts->segment`, into the next
 * column.
 */
void table_write_column(struct table *table, const struct buffer *buffer,
			const struct table_column *facts);

/* Makes that column count: one store. Header and columns lie within one page of NVRAM. */
void table_commit_column(struct table *table);

/* Bytes of the image that are in memory. */
uint64_t table_memory_bytes(const struct table *table);

/* The word of a bit position of all filters. Errors of the source. */
int table_word(const struct table *table, uint32_t position, uint64_t *word);

/* Walks the flash pages that may hold a key, newest first. */
struct table_search {
	const struct table *table;
	const struct key_hash *hash;
	uint64_t bound;
	uint64_t after; /* columns with nothing above it are left out; 0 to begin with: none are */
	uint64_t columns;                     /* still to visit */
	uint64_t matches[MUNINN_FILTERS_MAX]; /* columns whose filter matches */
	uint32_t column;                      /* being visited */
	uint32_t places;                      /* of it, still to visit: bit n = hash function n */
	/*
	 * Further ones, behind these; bit n of word m = place HASH_FUNCTIONS + 64 m + n. Words from
	 * `further_end` on are not set.
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
bool table_search_column(struct table_search *search, uint32_t *segment);

/* The last place in the column that is left, of those up to `most`; UINT32_MAX: there is none. */
uint32_t table_search_place(const struct table_search *search, uint32_t most);

/* Leaves out a place; those behind it. */
void table_search_leave(struct table_search *search, uint32_t place);
void table_search_leave_behind(struct table_search *search, uint32_t place);

/* How many are left, and whether the numbers of a key rise with its places, up to what. */
uint32_t table_search_count(const struct table_search *search);
bool table_search_is_ordered(const struct table_search *search, uint64_t *last_sequence);

#endif
