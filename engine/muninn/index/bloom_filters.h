/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Bloom filter bits of a key, the same in the active segment's bit set and in a table's columns. */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_BLOOM_FILTERS_H
#define MUNINN_ENGINE_MUNINN_INDEX_BLOOM_FILTERS_H

#include "engine/muninn/index/bloom_table.h"

/*
 * Walks the bit positions of one key in one filter. The positions come from a linear congruential
 * generator (Knuth's constants) seeded with the key: double hashing, which is usual, triples the
 * false-positive rate of the small filters.
 */
struct filter_cursor {
	uint64_t next;
	uint32_t bits, offset;
};

static inline struct filter_cursor filter_begin(const struct filter_geometry *filters,
						uint32_t filter, const struct key_hash *hash)
{
	return (struct filter_cursor){
		.next = hash_mix(hash->key + (filter + 1) * UINT64_C(0xa0761d6478bd642f)),
		.bits = filters->bits[filter],
		.offset = filters->offset[filter],
	};
}

/* The next bit position, counted over all filters of the table. */
static inline uint32_t filter_next(struct filter_cursor *cursor)
{
	uint32_t position = cursor->offset + (uint32_t)((cursor->next >> 32) * cursor->bits >> 32);

	cursor->next = cursor->next * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return position;
}

/* ---- one segment: a plain bit set of bits_total bits ---- */

static inline bool filter_test(const uint64_t *set, const struct filter_geometry *filters,
			       uint32_t filter, const struct key_hash *hash)
{
	struct filter_cursor cursor = filter_begin(filters, filter, hash);

	for (uint32_t i = 0; i < filters->hashes[filter]; i++) {
		uint32_t position = filter_next(&cursor);

		if (!(set[position / 64] >> (position % 64) & 1))
			return false;
	}
	return true;
}

static inline void filter_add(uint64_t *set, const struct filter_geometry *filters, uint32_t filter,
			      const struct key_hash *hash)
{
	struct filter_cursor cursor = filter_begin(filters, filter, hash);

	for (uint32_t i = 0; i < filters->hashes[filter]; i++) {
		uint32_t position = filter_next(&cursor);

		set[position / 64] |= UINT64_C(1) << (position % 64);
	}
}

/* ---- a table: a 64-bit word for each bit position, a bit for each column ---- */

/*
 * The columns among `columns` whose filter may hold the key. `words` is the image's filter part
 * (little-endian).
 */
static inline uint64_t filter_columns(const uint8_t *words, const struct filter_geometry *filters,
				      uint32_t filter, const struct key_hash *hash,
				      uint64_t columns)
{
	struct filter_cursor cursor = filter_begin(filters, filter, hash);

	for (uint32_t i = 0; i < filters->hashes[filter] && columns; i++)
		columns &= get_le64(words + (uint64_t)filter_next(&cursor) * 8);
	return columns;
}

#endif
