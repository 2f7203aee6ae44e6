/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Read-only version tables, the groups of the Bloom index: the filters of up to 64 sealed segments
 * of one row, combined column-wise. For every bit position there is one 64-bit word, a bit for each
 * segment, so one AND a position tests all 64 segments at once.
 *
 * A table grows in NVRAM, a column for each sealed segment. Complete, its image is written to
 * flash, listed in the directory, and kept in memory. The bytes are the same in all three places
 * (format.h).
 */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_BLOOM_TABLE_H
#define MUNINN_ENGINE_MUNINN_INDEX_BLOOM_TABLE_H

#include "engine/muninn/index/bloom_format.h"
#include "engine/muninn/index/index.h"

struct bloom_segment;

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
	uint8_t *sum;        /* the pair of sums of a growing table; NULL: it has none */
	uint64_t column_sum; /* what the column adds that has been written and not committed */
	uint8_t *live_word;  /* in NVRAM: a bit for each column that has not been merged */
	struct filter_geometry filters;
	uint32_t paged_filters;
	uint32_t overflow_entries;
	uint32_t further_places; /* of a key, behind those of hash functions */
	uint32_t segment_pages;
	uint64_t image_bytes;
};

/*
 * Begins table `index` of `row` in NVRAM: no columns. Crash-safe: the store of the index comes
 * last. table->sum has been set, here and before table_attach.
 */
void table_begin(struct table *table, const struct muninn_geometry *geometry, uint8_t *image,
		 uint32_t row, uint32_t index);

/*
 * Takes up an image in NVRAM or memory. False when its header does not name a table of `row` with
 * this geometry. One without columns may have been about to begin; it has to begin again.
 */
bool table_attach(struct table *table, const struct muninn_geometry *geometry, uint8_t *image,
		  uint32_t row);

/* The columns that are in use: added and not merged. */
uint64_t table_live(const struct table *table);

/* The sum of a table in NVRAM: of its number and columns. */
uint64_t table_sum(const struct table *table);

/* Takes a column out of the table, by one store. */
void table_kill_column(struct table *table, uint32_t column);

/* Its number in the row; columns that have been added. */
uint32_t table_index(const struct table *table);
uint32_t table_columns(const struct table *table);

void table_read_column(const struct table *table, uint32_t column, struct sealed_segment *facts);

/* Whether all of an image that was written to flash fits its CRC. */
bool table_image_is_intact(const uint8_t *image, uint64_t length);

/*
 * Writes the index of a segment, which has been programmed to `facts->segment`, into the next
 * column.
 */
void table_write_column(struct table *table, const struct bloom_segment *index,
			const struct sealed_segment *facts);

/* Makes that column count: one store. Header and columns lie within one page of NVRAM. */
void table_commit_column(struct table *table);

/* Bytes of the image that are in memory. */
uint64_t table_memory_bytes(const struct table *table);

#endif
