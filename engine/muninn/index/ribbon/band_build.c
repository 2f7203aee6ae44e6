/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Builds a ribbon: Gaussian elimination in a band, then back substitution. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "engine/muninn/index/ribbon/band.h"
#include "engine/muninn/index/ribbon/band_hash.h"

struct band_builder {
	uint32_t keys_max;
	uint64_t *coefficients; /* of each row; 0: no equation has it as its pivot */
	uint32_t *values;
	uint32_t *order;  /* keys in the order of their blocks */
	uint32_t *blocks; /* where the keys of a block of 64 rows begin in it */
};

/* ---- sizes ---- */

uint32_t band_starts(uint32_t keys)
{
	return (uint32_t)align_up(keys ? keys : 1, BAND_WIDTH);
}

/* The last starts reach into one block more. */
static uint32_t block_count(uint32_t starts)
{
	return starts / BAND_WIDTH + 1;
}

uint64_t band_near_bytes(const struct band_shape *shape)
{
	return (uint64_t)block_count(shape->starts) * BAND_NEAR_COLUMNS * 8;
}

uint64_t band_far_bytes(const struct band_shape *shape)
{
	return (uint64_t)block_count(shape->starts) * (shape->columns - BAND_NEAR_COLUMNS) * 8;
}

/* ---- memory ---- */

static uint64_t rows_max(uint32_t keys_max)
{
	return (uint64_t)block_count(band_starts(keys_max)) * BAND_WIDTH;
}

struct band_builder *band_builder_create(uint32_t keys_max)
{
	struct band_builder *builder = calloc(1, sizeof(*builder));
	uint64_t rows = rows_max(keys_max);

	if (!builder)
		return NULL;
	builder->keys_max = keys_max;
	builder->coefficients = malloc(rows * sizeof(*builder->coefficients));
	builder->values = malloc(rows * sizeof(*builder->values));
	builder->order = malloc(rows * sizeof(*builder->order));
	builder->blocks = malloc((rows / BAND_WIDTH + 1) * sizeof(*builder->blocks));
	if (builder->coefficients && builder->values && builder->order && builder->blocks)
		return builder;
	band_builder_destroy(builder);
	return NULL;
}

void band_builder_destroy(struct band_builder *builder)
{
	if (!builder)
		return;
	free(builder->coefficients);
	free(builder->values);
	free(builder->order);
	free(builder->blocks);
	free(builder);
}

uint64_t band_builder_bytes(uint32_t keys_max)
{
	uint64_t rows = rows_max(keys_max);

	return sizeof(struct band_builder) + rows * (sizeof(uint64_t) + 2 * sizeof(uint32_t)) +
	       (rows / BAND_WIDTH + 1) * sizeof(uint32_t);
}

/* ---- elimination ---- */

/*
 * Keys go in from the first rows to the last, block by block, as they lie in memory. Which of them
 * fail depends on the order, how many hardly.
 */
static void sort_by_block(struct band_builder *builder, uint32_t starts,
			  const struct band_key *keys, uint32_t count)
{
	uint32_t blocks = block_count(starts);

	memset(builder->blocks, 0, (blocks + 1) * sizeof(*builder->blocks));
	for (uint32_t n = 0; n < count; n++)
		builder->blocks[band_start(keys[n].hash, starts) / BAND_WIDTH + 1]++;
	for (uint32_t block = 1; block <= blocks; block++)
		builder->blocks[block] += builder->blocks[block - 1];
	for (uint32_t n = 0; n < count; n++)
		builder->order[builder->blocks[band_start(keys[n].hash, starts) / BAND_WIDTH]++] =
			n;
}

enum { KEYS_AHEAD = 8 }; /* are fetched: they lie anywhere */

/* False: the equation contradicts the others. */
static bool add_equation(struct band_builder *builder, uint32_t row, uint64_t coefficients,
			 uint32_t value)
{
	for (;;) {
		uint64_t pivot = builder->coefficients[row];
		uint32_t step;

		if (!pivot) {
			builder->coefficients[row] = coefficients;
			builder->values[row] = value;
			return true;
		}
		coefficients ^= pivot;
		value ^= builder->values[row];
		/* It follows from the others; once in 2^columns they say the same. */
		if (!coefficients)
			return value == 0;
		step = (uint32_t)__builtin_ctzll(coefficients);
		coefficients >>= step;
		row += step;
	}
}

/* ---- substitution ---- */

/*
 * Rows are solved from the last to the first, all columns of one at once: a word. Of each four rows
 * that have been solved there is a table of all 16 sums. So a product takes a look at a table for
 * four coefficients, whatever the number of columns.
 */
enum {
	QUAD = 4, /* rows of a table */
	QUAD_SUMS = 1 << QUAD,
	QUADS = BAND_WIDTH / QUAD, /* what coefficients reach, behind their own */
};

struct solved {
	uint32_t sums[QUADS][QUAD_SUMS]; /* of quad q at q % QUADS */
	uint32_t words[BAND_WIDTH];      /* of the rows of a block */
};

static void add_sums(uint32_t sums[QUAD_SUMS], const uint32_t words[QUAD])
{
	sums[0] = 0;
	for (uint32_t n = 0; n < QUAD; n++)
		for (uint32_t below = 0; below < 1U << n; below++)
			sums[(1U << n) + below] = sums[below] ^ words[n];
}

/* The word of a row: what its equation makes of those behind it. Of none it is 0. */
static uint32_t solve(const struct solved *solved, uint32_t row, uint64_t coefficients,
		      uint32_t value)
{
	uint32_t place = row % QUAD, own = row % BAND_WIDTH;

	for (uint32_t n = 1; n < QUAD - place; n++)
		value ^= solved->words[own + n] & -(uint32_t)(coefficients >> n & 1);
	coefficients >>= QUAD - place;
	for (uint32_t n = 0; n < QUADS; n++)
		value ^= solved->sums[(row / QUAD + 1 + n) % QUADS]
				     [coefficients >> n * QUAD & (QUAD_SUMS - 1)];
	return value;
}

/* Bits n * 8 + j become bits j * 8 + n. */
static uint64_t transpose(uint64_t bits)
{
	uint64_t swap = (bits ^ bits >> 7) & UINT64_C(0x00aa00aa00aa00aa);

	bits ^= swap ^ swap << 7;
	swap = (bits ^ bits >> 14) & UINT64_C(0x0000cccc0000cccc);
	bits ^= swap ^ swap << 14;
	swap = (bits ^ bits >> 28) & UINT64_C(0x00000000f0f0f0f0);
	return bits ^ swap ^ swap << 28;
}

/* Up to eight columns from `first` on, of which each has 64 bits at `to`. */
static void put_columns(const uint32_t words[BAND_WIDTH], uint32_t first, uint32_t columns,
			uint8_t *to)
{
	for (uint32_t row = 0; row < BAND_WIDTH; row += 8) {
		uint64_t bits = 0;

		for (uint32_t n = 0; n < 8; n++)
			bits |= (uint64_t)(words[row + n] >> first & 255) << n * 8;
		bits = transpose(bits);
		for (uint32_t j = 0; j < columns; j++)
			to[j * 8 + row / 8] = (uint8_t)(bits >> j * 8);
	}
}

static void substitute(const struct band_builder *builder, const struct band_shape *shape,
		       uint8_t *near, uint8_t *far)
{
	uint32_t far_columns = shape->columns - BAND_NEAR_COLUMNS;
	struct solved solved = { 0 };

	for (uint32_t row = block_count(shape->starts) * BAND_WIDTH; row-- > 0;) {
		uint64_t block = row / BAND_WIDTH, coefficients = builder->coefficients[row];
		uint32_t *word = &solved.words[row % BAND_WIDTH];

		*word = solve(&solved, row, coefficients, coefficients ? builder->values[row] : 0);
		if (row % QUAD == 0)
			add_sums(solved.sums[row / QUAD % QUADS], word);
		if (row % BAND_WIDTH)
			continue;
		put_columns(solved.words, 0, BAND_NEAR_COLUMNS,
			    near + block * BAND_NEAR_COLUMNS * 8);
		for (uint32_t j = 0; j < far_columns; j += 8)
			put_columns(solved.words, BAND_NEAR_COLUMNS + j,
				    (uint32_t)min_u64(far_columns - j, 8),
				    far + (block * far_columns + j) * 8);
	}
}

uint32_t band_build(struct band_builder *builder, const struct band_shape *shape,
		    struct band_key *keys, uint32_t count, uint8_t *near, uint8_t *far)
{
	uint32_t rows = block_count(shape->starts) * BAND_WIDTH, failed = 0;

	assert(count <= builder->keys_max && rows <= rows_max(builder->keys_max));
	assert(shape->columns >= BAND_NEAR_COLUMNS && shape->columns <= BAND_COLUMNS_MAX &&
	       shape->starts % BAND_WIDTH == 0);
	memset(builder->coefficients, 0, rows * sizeof(*builder->coefficients));
	sort_by_block(builder, shape->starts, keys, count);
	for (uint32_t n = 0; n < count; n++) {
		struct band_key *key = &keys[builder->order[n]];
		uint32_t value = key->value << shape->fingerprint_bits |
				 band_fingerprint(key->hash, shape->fingerprint_bits);

		if (n + KEYS_AHEAD < count)
			__builtin_prefetch(&keys[builder->order[n + KEYS_AHEAD]], 1);
		key->failed = !add_equation(builder, band_start(key->hash, shape->starts),
					    band_coefficients(key->hash), value);
		failed += key->failed;
	}
	substitute(builder, shape, near, far);
	return failed;
}
