/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Options of the Bloom index; 0 = default everywhere. */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_BLOOM_OPTIONS_H
#define MUNINN_ENGINE_MUNINN_INDEX_BLOOM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What becomes of a row's active segment in which a key has no place left, while others still have.
 */
enum bloom_hot_rows {
	BLOOM_HOT_ROWS_FINALISE, /* it is sealed as it is */
	BLOOM_HOT_ROWS_SPREAD,   /* the key goes on page by page wherever there is space, and the
				    segment is filled */
};

/* finalise, spread; and back. -EINVAL: another word. */
const char *bloom_hot_rows_name(enum bloom_hot_rows hot_rows);
int bloom_hot_rows_parse(const char *name, enum bloom_hot_rows *hot_rows);

/* The least fpr_factor_permille: of many tables, those at the end take bits without use. */
#define BLOOM_FACTOR_MIN 900

#define BLOOM_TABLE_CACHE_MIN (UINT64_C(64) << 10)

struct bloom_options {
	/* Fixed at format; stored in the device. */
	uint32_t fpr_millionths;      /* false-positive rate of the newest table, 10^-6; default 500
					 (0.0005) */
	uint32_t fpr_factor_permille; /* growth of the rate per older table; default 1010 (1.01);
					 below 1000 the rate grows towards newer ones */
	uint32_t filters;             /* of a segment, 8..16; default 8 */
	uint32_t paged_filters; /* of them, with a hash function of their own: filters, or filters -
				   1 and the last for overflowed keys; default 7 ("8/7") */
	bool even_filters;      /* of equal size ("N"); default skewed ("S") */
	enum bloom_hot_rows hot_rows; /* default: finalise */
	/* Run time. */
	/*
	 * Complete tables stay on flash and are read a page at a time as they are needed, through a
	 * cache of so many bytes (at least BLOOM_TABLE_CACHE_MIN); 0: they are kept in memory.
	 */
	uint64_t table_cache_bytes;
	uint32_t internal_version_tables; /* complete tables of a row that make an internal version;
					     default 1 */
};

#endif
