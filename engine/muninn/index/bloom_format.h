/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Every byte that the Bloom index keeps on flash and in NVRAM: its part of the static header, and
 * table images, whose bytes are the same in NVRAM, on flash and in memory. Described for readers in
 * docs/format.md; little-endian throughout.
 */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_BLOOM_FORMAT_H
#define MUNINN_ENGINE_MUNINN_INDEX_BLOOM_FORMAT_H

#include "engine/muninn/format.h"

/* ---- its part of the static header, INDEX_PART_BYTES ---- */

enum {
	BLOOM_FPR_AT = 0,           /* 4: millionths */
	BLOOM_FACTOR_AT = 4,        /* 4: permille */
	BLOOM_FILTERS_AT = 8,       /* 1: filters of a segment */
	BLOOM_PAGED_FILTERS_AT = 9, /* 1: of them, with a hash function of their own */
	BLOOM_EVEN_AT = 10,         /* 1: filters of equal size */
	BLOOM_HOT_ROWS_AT = 11,     /* 1: enum bloom_hot_rows */
};

/* ---- table image ---- */

#define TABLE_MAGIC UINT32_C(0x5442544d) /* "MTBT" */

enum {
	TABLE_MAGIC_AT = 0,     /* 4 */
	TABLE_VERSION_AT = 4,   /* 4 */
	TABLE_ROW_AT = 8,       /* 4 */
	TABLE_INDEX_AT = 12,    /* 4: number of the table in its row, from 0 */
	TABLE_COLUMNS_AT = 16,  /* 4: columns in use; the store of this word seals a segment */
	TABLE_BITS_AT = 20,     /* 4: bit positions of all filters together */
	TABLE_OVERFLOW_AT = 24, /* 4: entries that a column's overflow map has space for */
	TABLE_CRC_AT =
		28, /* 4: of all bytes of a complete image with this field zero; 0 in NVRAM */
	TABLE_LIVE_AT =
		32, /* 8: in NVRAM, a bit for each column that has not been merged; 0 on flash */
	TABLE_HEADER_BYTES = 64,
};

enum {
	COLUMN_SEGMENT_AT = 0,         /* 4: physical segment */
	COLUMN_RECORDS_AT = 4,         /* 4 */
	COLUMN_SERIAL_AT = 8,          /* 8: of the segment's buffer */
	COLUMN_FIRST_SEQUENCE_AT = 16, /* 8: lowest sequence number in the segment */
	COLUMN_LAST_SEQUENCE_AT = 24,  /* 8: highest */
	COLUMN_RECORD_BYTES_AT = 32,   /* 8: of headers and values */
	COLUMN_OVERFLOW_COUNT_AT = 40, /* 4: entries in use */
	COLUMN_ORDERED_AT =
		44, /* 4: 1 = places of each key are in the order of its sequence numbers */
	COLUMN_BYTES = 48,
};

/*
 * One overflowed key, 48 bits: bits 16-0 a bit for each further hash function that placed it, bits
 * 47-17 its hash.
 */
#define OVERFLOW_ENTRY_BYTES 6
#define OVERFLOW_PLACES_MAX  17
#define OVERFLOW_HASH_BITS   31

static inline uint64_t table_bits_offset(void)
{
	return TABLE_HEADER_BYTES + GROUP_SEGMENTS * COLUMN_BYTES;
}

static inline uint64_t table_overflow_offset(uint32_t bits)
{
	return table_bits_offset() + (uint64_t)bits * 8;
}

static inline uint64_t table_image_bytes(uint32_t bits, uint32_t overflow_entries)
{
	return table_overflow_offset(bits) +
	       (uint64_t)GROUP_SEGMENTS * overflow_entries * OVERFLOW_ENTRY_BYTES;
}

static_assert(TABLE_HEADER_BYTES + GROUP_SEGMENTS * COLUMN_BYTES <= NVRAM_PAGE,
	      "a column and the count that makes it one reach storage together");

#endif
