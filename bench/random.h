/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Repeatable random numbers and random permutations. Each operation of a phase has a generator of
 * its own, so its numbers do not depend on which thread runs it.
 */
#ifndef MUNINN_BENCH_RANDOM_H
#define MUNINN_BENCH_RANDOM_H

#include <stdint.h>

/* The finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA'14). */
static inline uint64_t random_mix(uint64_t x)
{
	x ^= x >> 30;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

#define RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15)

struct random_state {
	uint64_t state;
};

/* Generator number `stream` of those that belong to `seed`. */
static inline struct random_state random_stream(uint64_t seed, uint64_t stream)
{
	return (struct random_state){ random_mix(seed ^ random_mix(stream + RANDOM_STEP)) };
}

static inline uint64_t random_next(struct random_state *random)
{
	return random_mix(random->state += RANDOM_STEP);
}

/* 0..limit - 1. Off from uniform by less than limit / 2^64. */
static inline uint64_t random_below(struct random_state *random, uint64_t limit)
{
	return (uint64_t)((unsigned __int128)random_next(random) * limit >> 64);
}

/* In (0, 1], in steps of 2^-53. */
static inline double random_unit(struct random_state *random)
{
	return (double)((random_next(random) >> 11) + 1) * 0x1p-53;
}

/* A permutation of 0..count - 1, chosen by `seed`, that takes no memory. */
struct permutation {
	uint64_t count;
	uint64_t seed;
	uint32_t half_bits;
};

static inline struct permutation permutation_make(uint64_t count, uint64_t seed)
{
	struct permutation permutation = { .count = count, .seed = seed, .half_bits = 1 };

	while (permutation.half_bits < 32 && count > UINT64_C(1) << (2 * permutation.half_bits))
		permutation.half_bits++;
	return permutation;
}

/*
 * Where `number` (0..count - 1) goes: a Feistel network over the next power of four, repeated until
 * the result is in range (Black and Rogaway's cycle walking; fewer than four rounds of it on
 * average).
 */
static inline uint64_t permutation_at(const struct permutation *permutation, uint64_t number)
{
	uint64_t mask = (UINT64_C(1) << permutation->half_bits) - 1;

	do {
		uint64_t left = number >> permutation->half_bits, right = number & mask;

		for (uint64_t round = 0; round < 4; round++) {
			uint64_t mixed = random_mix(
				right + random_mix(permutation->seed + round * RANDOM_STEP));
			uint64_t next = left ^ (mixed & mask);

			left = right;
			right = next;
		}
		number = left << permutation->half_bits | right;
	} while (number >= permutation->count);
	return number;
}

#endif
