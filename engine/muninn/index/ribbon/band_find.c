/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Asks a ribbon: the products of a key's coefficients with eight columns at a time, or with one.
 *
 * The coefficients lie across two blocks of 64 rows. A block has a word for each column, and the
 * blocks follow each other.
 */
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "common/bytes.h"
#include "engine/muninn/index/ribbon/band.h"
#include "engine/muninn/index/ribbon/band_hash.h"

/* The coefficients of a key, as they fall on its first block and on the next one. */
struct halves {
	uint64_t block;
	uint64_t low, high;
};

static inline struct halves halves_of(const struct band *band, uint64_t hash)
{
	uint32_t start = band_start(hash, band->shape.starts), shift = start % BAND_WIDTH;
	uint64_t coefficients = band_coefficients(hash);

	return (struct halves){
		.block = start / BAND_WIDTH,
		.low = coefficients << shift,
		.high = shift ? coefficients >> (BAND_WIDTH - shift) : 0,
	};
}

/* The products with `columns` columns of a plane, a bit each. */
static inline uint32_t multiply(const uint8_t *plane, uint32_t columns, const struct halves *halves)
{
	const uint8_t *first = plane + halves->block * columns * 8, *next = first + columns * 8;
	uint32_t products = 0;

	for (uint32_t j = 0; j < columns; j++) {
		uint64_t word = (get_le64(first + j * 8) & halves->low) ^
				(get_le64(next + j * 8) & halves->high);

		products |= (uint32_t)__builtin_parityll(word) << j;
	}
	return products;
}

/* Whether the first columns are the fingerprint, as far as the near plane tells. */
static inline bool near_fits(const struct band *band, uint64_t hash, uint32_t near)
{
	uint32_t bits = band->shape.fingerprint_bits;
	uint32_t seen = bits < BAND_NEAR_COLUMNS ? bits : BAND_NEAR_COLUMNS;

	return ((near ^ (uint32_t)hash) & ((1U << seen) - 1)) == 0;
}

static inline bool take_value(const struct band *band, uint64_t hash, uint32_t near, uint32_t far,
			      uint32_t *value)
{
	uint32_t bits = band->shape.fingerprint_bits;
	uint32_t all = near | far << BAND_NEAR_COLUMNS;

	*value = all >> bits;
	return (all & ((1U << bits) - 1)) == band_fingerprint(hash, bits);
}

static inline bool find_by_words(const struct band *band, uint64_t hash, uint32_t *value)
{
	struct halves halves = halves_of(band, hash);
	uint32_t near = multiply(band->near, BAND_NEAR_COLUMNS, &halves);

	if (!near_fits(band, hash, near))
		return false;
	return take_value(band, hash, near,
			  multiply(band->far, band->shape.columns - BAND_NEAR_COLUMNS, &halves),
			  value);
}

bool band_find_portably(const struct band *band, uint64_t hash, uint32_t *value)
{
	return find_by_words(band, hash, value);
}

void band_prefetch(const struct band *band, uint64_t hash)
{
	uint64_t block = band_start(hash, band->shape.starts) / BAND_WIDTH;
	const uint8_t *line = band->near + block * BAND_NEAR_COLUMNS * 8;

	__builtin_prefetch(line);
	__builtin_prefetch(line + BAND_NEAR_COLUMNS * 8);
}

#ifdef __x86_64__

__attribute__((target("popcnt"))) static bool find_by_popcnt(const struct band *band, uint64_t hash,
							     uint32_t *value)
{
	struct halves halves = halves_of(band, hash);
	const uint8_t *first = band->near + halves.block * BAND_NEAR_COLUMNS * 8;
	const uint8_t *next = first + BAND_NEAR_COLUMNS * 8;
	uint32_t near = 0;

	for (uint32_t j = 0; j < BAND_NEAR_COLUMNS; j++) {
		uint64_t word = (get_le64(first + j * 8) & halves.low) ^
				(get_le64(next + j * 8) & halves.high);

		near |= ((uint32_t)__builtin_popcountll(word) & 1) << j;
	}
	if (!near_fits(band, hash, near))
		return false;
	return take_value(band, hash, near,
			  multiply(band->far, band->shape.columns - BAND_NEAR_COLUMNS, &halves),
			  value);
}

/* Eight columns with one instruction each. */
__attribute__((target("avx512f,avx512vpopcntdq"))) static bool find_by_avx512(
	const struct band *band, uint64_t hash, uint32_t *value)
{
	struct halves halves = halves_of(band, hash);
	const uint8_t *first = band->near + halves.block * BAND_NEAR_COLUMNS * 8;
	__m512i low = _mm512_set1_epi64((long long)halves.low);
	__m512i high = _mm512_set1_epi64((long long)halves.high);
	__m512i words = _mm512_xor_si512(
		_mm512_and_si512(_mm512_loadu_si512(first), low),
		_mm512_and_si512(_mm512_loadu_si512(first + BAND_NEAR_COLUMNS * 8), high));
	uint32_t near = _mm512_test_epi64_mask(_mm512_popcnt_epi64(words), _mm512_set1_epi64(1));

	if (!near_fits(band, hash, near))
		return false;
	return take_value(band, hash, near,
			  multiply(band->far, band->shape.columns - BAND_NEAR_COLUMNS, &halves),
			  value);
}

bool band_find(const struct band *band, uint64_t hash, uint32_t *value)
{
	if (__builtin_cpu_supports("avx512vpopcntdq"))
		return find_by_avx512(band, hash, value);
	if (__builtin_cpu_supports("popcnt"))
		return find_by_popcnt(band, hash, value);
	return find_by_words(band, hash, value);
}

#else

bool band_find(const struct band *band, uint64_t hash, uint32_t *value)
{
	return find_by_words(band, hash, value);
}

#endif
