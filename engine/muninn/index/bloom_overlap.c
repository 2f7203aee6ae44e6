/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * How much of a sealed segment has been put again since, judged by the filters in memory alone: the
 * more bits a segment's filters have in common with those of newer segments of its row, the more
 * keys they share. No page of records is read. The idea is the paper's; what is made of the number
 * of bits is ours:
 *
 *   Two filters of n bits with a and b of them set have a b / n in common by chance. A shared key
 * that is in the same filter in both segments adds k (1 - a / n) (1 - b / n) bits on average, with
 * k hash functions.
 *
 * A key is in the same filter of both only if the same hash function had space for it, which is as
 * likely as the sum of the squares of the filters' shares of the keys. The spread of the chance
 * part limits what can be told: see docs/benchmarks/paper.md.
 */
#include <math.h>

#include "engine/muninn/index/bloom.h"

/* What is gathered of the columns of one table. */
struct gathered {
	double shared[GROUP_SEGMENTS]; /* keys in common with newer segments */
};

/* What can't be read has nothing in common with anything. */
static uint64_t word_at(const struct table *table, uint32_t position)
{
	uint64_t word;

	return table_word(table, position, &word) ? 0 : word;
}

/*
 * The columns with a bit where bit `position` of a filter of `bits` bits would be in this table,
 * whose filter may have another length: the same key's bits lie at the same fraction of the length.
 */
static uint64_t word_at_fraction(const struct table *table, uint32_t filter, uint32_t position,
				 uint32_t bits)
{
	uint64_t own = table->filters.bits[filter];
	uint64_t from = position * own / bits;
	uint64_t to = ((position + 1) * own - 1) / bits;
	uint64_t word = 0;

	for (uint64_t at = from; at <= to; at++)
		word |= word_at(table, table->filters.offset[filter] + (uint32_t)at);
	return word;
}

/*
 * Adds what the columns of `older` share with the live ones of `newer` in one filter. The same
 * table: with those behind.
 *
 * The first loop counts bits: how many each column has set, and how many in common with newer
 * columns. The second solves the formula at the top of this file for the shared keys. With a bits
 * set in the column and b in a newer one, a b / n of the common bits are there by chance
 * (`chance`); each shared key adds k (1 - a / n) (1 - b / n) more, where `space` is the mean of 1 -
 * b / n over the newer columns. The 0.01 keeps full filters from dividing by nothing.
 */
static void compare_filter(const struct table *older, const struct table *newer, uint32_t filter,
			   struct gathered *gathered)
{
	uint64_t live = table_live(older), newer_live = table_live(newer);
	uint32_t bits = older->filters.bits[filter];
	uint64_t common[GROUP_SEGMENTS] = { 0 }, set[GROUP_SEGMENTS] = { 0 };
	uint64_t newer_set[GROUP_SEGMENTS] = { 0 };

	for (uint32_t position = 0; position < bits; position++) {
		uint64_t word = word_at(older, older->filters.offset[filter] + position) & live;
		uint64_t other = older == newer ? word
						: newer_live & word_at_fraction(newer, filter,
										position, bits);

		for (uint64_t rest = word; rest; rest &= rest - 1) {
			uint32_t column = (uint32_t)__builtin_ctzll(rest);
			/* Of the same table, the columns above this one. */
			uint64_t counted = older == newer ? other & ~((UINT64_C(2) << column) - 1)
							  : other;

			set[column]++;
			common[column] += (uint64_t)__builtin_popcountll(counted);
		}
		for (; other; other &= other - 1)
			newer_set[__builtin_ctzll(other)]++;
	}
	for (uint32_t column = 0; column < GROUP_SEGMENTS; column++) {
		double density = (double)set[column] / bits, chance = 0, space = 0;
		uint32_t count = 0;

		if (!(live >> column & 1))
			continue;
		for (uint32_t n = older == newer ? column + 1 : 0; n < GROUP_SEGMENTS; n++) {
			chance += density * (double)newer_set[n];
			space += 1 - (double)newer_set[n] / bits;
			count += newer_live >> n & 1;
		}
		if (!count)
			continue;
		/* `space` counts columns that are not there as empty. */
		space = (space - (GROUP_SEGMENTS - (older == newer ? column + 1 : 0) - count)) /
			count;
		gathered->shared[column] +=
			((double)common[column] - chance) /
			(older->filters.hashes[filter] * fmax((1 - density) * space, 0.01));
	}
}

static void compare_tables(const struct table *older, const struct table *newer,
			   struct gathered *gathered)
{
	for (uint32_t filter = 0; filter < older->filters.filters; filter++)
		compare_filter(older, newer, filter, gathered);
}

/* How often a key that is in two segments is in the same filter of both. */
static double same_filter_share(const struct muninn_geometry *geometry)
{
	double all = 0, squares = 0;

	for (uint32_t filter = 0; filter < geometry->bloom.filters; filter++) {
		all += geometry->bloom.keys_nominal[filter];
		squares += (double)geometry->bloom.keys_nominal[filter] *
			   geometry->bloom.keys_nominal[filter];
	}
	return squares / (all * all);
}

void overlap_estimate(const struct muninn_geometry *geometry, const struct table *tables,
		      uint32_t count, const struct table *growing,
		      uint32_t live_permille[GROUP_SEGMENTS])
{
	const struct table *table = &tables[0];
	struct gathered gathered = { 0 };
	double share = same_filter_share(geometry);

	compare_tables(table, table, &gathered);
	for (uint32_t newer = 1; newer < count; newer++)
		compare_tables(table, &tables[newer], &gathered);
	compare_tables(table, growing, &gathered);
	for (uint32_t column = 0; column < GROUP_SEGMENTS; column++) {
		struct sealed_segment facts;

		live_permille[column] = 1000;
		if (!(table_live(table) >> column & 1))
			continue;
		table_read_column(table, column, &facts);
		/* Keys put again at random: how often each is follows Poisson's law. */
		if (facts.records && gathered.shared[column] > 0)
			live_permille[column] = (uint32_t)(1000 * exp(-gathered.shared[column] /
								      share / facts.records));
	}
}

void overlap_count_bits(const struct table *older, const struct table *newer, uint64_t *set,
			uint64_t *common)
{
	for (uint32_t filter = 0; filter < older->filters.filters; filter++) {
		uint32_t bits = older->filters.bits[filter];

		for (uint32_t position = 0; position < bits; position++) {
			uint64_t word = word_at(older, older->filters.offset[filter] + position) &
					table_live(older);
			uint64_t other = word_at_fraction(newer, filter, position, bits) &
					 table_live(newer);

			*set += (uint64_t)__builtin_popcountll(word);
			*common += (uint64_t)__builtin_popcountll(word & other);
		}
	}
}
