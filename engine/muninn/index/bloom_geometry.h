/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Sizes of the Bloom index: its part of the store's geometry. */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_BLOOM_GEOMETRY_H
#define MUNINN_ENGINE_MUNINN_INDEX_BLOOM_GEOMETRY_H

#include "engine/muninn/index/bloom_options.h"

#define BLOOM_FILTERS_MAX 16 /* of a segment */
#define BLOOM_FUNCTIONS   24 /* hash functions, and so places of most keys in a segment */

struct bloom_geometry {
	/* As configured. */
	uint32_t fpr_millionths;
	uint32_t fpr_factor_permille;
	uint32_t filters;       /* of a segment */
	uint32_t paged_filters; /* that stand for a hash function each; one less than filters: the
				   last is for overflow */
	bool even_filters; /* of equal size; otherwise skewed, each made for the keys that reach it
			    */
	enum bloom_hot_rows hot_rows;
	/* Derived. */
	uint32_t places; /* of a key in a segment: hash functions, and the further ones that a hot
			    key may have */
	uint32_t keys_nominal[BLOOM_FILTERS_MAX]; /* keys that each filter is made for */
	uint32_t keys_limit[BLOOM_FILTERS_MAX];   /* keys that it takes before it counts as full */
	uint32_t overflow_entries;                /* space of a segment's overflow map */
	uint32_t tables_expected; /* complete tables of a row when the device is full */
};

#endif
