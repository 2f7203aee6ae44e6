/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A ribbon: a static function from 64-bit hashes to small values (Dillinger and Walzer, "Ribbon
 * filter", 2021; bumping as in BuRR, 2022). Each key is a linear equation over GF(2) in BAND_WIDTH
 * rows that follow each other; a value is the product of its coefficients with these rows.
 *
 * There are as many starting rows as keys, and no second try with another seed. Of so many keys
 * some 0.76 % can't be had: building says which, and the caller keeps them elsewhere.
 *
 * The columns are in two planes. The near plane has the first eight, in one cache line for 64 rows:
 * a fingerprint, which tells most keys that are not there. The far plane has the others.
 */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_RIBBON_BAND_H
#define MUNINN_ENGINE_MUNINN_INDEX_RIBBON_BAND_H

#include <stdbool.h>
#include <stdint.h>

enum {
	BAND_WIDTH = 64,
	BAND_NEAR_COLUMNS = 8,
	BAND_COLUMNS_MAX = 32,
	BAND_FINGERPRINT_MAX = 16,
};

struct band_shape {
	uint32_t starts;           /* rows that a key may begin at: a multiple of BAND_WIDTH */
	uint32_t columns;          /* BAND_NEAR_COLUMNS .. BAND_COLUMNS_MAX */
	uint32_t fingerprint_bits; /* of them, the first ones: 1 .. BAND_FINGERPRINT_MAX */
};

/* ---- sizes ---- */

/* Starting rows for so many keys. */
uint32_t band_starts(uint32_t keys);

/* Bytes of each plane. */
uint64_t band_near_bytes(const struct band_shape *shape);
uint64_t band_far_bytes(const struct band_shape *shape);

/* ---- building ---- */

/* Memory to build from, for up to `keys_max` keys. NULL: out of memory. NULL may be destroyed. */
struct band_builder;
struct band_builder *band_builder_create(uint32_t keys_max);
void band_builder_destroy(struct band_builder *builder);
uint64_t band_builder_bytes(uint32_t keys_max);

struct band_key {
	uint64_t hash;
	uint32_t value; /* below 2^(columns - fingerprint bits); the fingerprint is added to it */
	bool failed;    /* out: the ribbon does not have it */
};

/* Solves for the keys, and writes both planes. Returns how many failed. */
uint32_t band_build(struct band_builder *builder, const struct band_shape *shape,
		    struct band_key *keys, uint32_t count, uint8_t *near, uint8_t *far);

/* ---- asking ---- */

struct band {
	struct band_shape shape;
	const uint8_t *near, *far;
};

/*
 * The value of a hash, if its fingerprint fits. A key that did not fail when the ribbon was built
 * is always found; of others a part of 2^-fingerprint bits seems to be there, with any value.
 */
bool band_find(const struct band *band, uint64_t hash, uint32_t *value);

/* The same without the processor's special instructions. For tests. */
bool band_find_portably(const struct band *band, uint64_t hash, uint32_t *value);

/* Begins to fetch what band_find will read first. */
void band_prefetch(const struct band *band, uint64_t hash);

#endif
