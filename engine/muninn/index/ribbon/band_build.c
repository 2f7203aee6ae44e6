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
 * From the last row to the first. `window[j]`: 64 rows of column j from this row on, the next bit
 * to be found is its lowest.
 */
static void substitute(const struct band_builder *builder, const struct band_shape *shape,
		       uint8_t *near, uint8_t *far)
{
	uint32_t far_columns = shape->columns - BAND_NEAR_COLUMNS;
	uint64_t window[BAND_COLUMNS_MAX] = { 0 };

	for (uint32_t row = block_count(shape->starts) * BAND_WIDTH; row-- > 0;) {
		uint64_t coefficients = builder->coefficients[row];
		uint32_t value = coefficients ? builder->values[row] : 0;
		uint64_t block = row / BAND_WIDTH;

		for (uint32_t j = 0; j < shape->columns; j++) {
			uint64_t above = window[j] << 1;
			uint64_t bit = (uint64_t)__builtin_parityll(above & coefficients) ^
				       (value >> j & 1);

			window[j] = above | bit;
		}
		if (row % BAND_WIDTH)
			continue;
		for (uint32_t j = 0; j < BAND_NEAR_COLUMNS; j++)
			put_le64(near + (block * BAND_NEAR_COLUMNS + j) * 8, window[j]);
		for (uint32_t j = 0; j < far_columns; j++)
			put_le64(far + (block * far_columns + j) * 8,
				 window[BAND_NEAR_COLUMNS + j]);
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

		key->failed = !add_equation(builder, band_start(key->hash, shape->starts),
					    band_coefficients(key->hash), value);
		failed += key->failed;
	}
	substitute(builder, shape, near, far);
	return failed;
}
