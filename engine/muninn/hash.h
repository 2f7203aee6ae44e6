/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The hashes of a key. The pieces of an object are hashed in groups as large as a segment has
 * pages: the group chooses the row and, in the index, the page of its first piece; the following
 * pieces go to the following pages. A large object that is written in order is thus read in order,
 * and small keys are spread as in the paper.
 */
#ifndef MUNINN_ENGINE_MUNINN_HASH_H
#define MUNINN_ENGINE_MUNINN_HASH_H

#include <stdint.h>

#include "engine/muninn/format.h"

struct key_hash {
	uint64_t group;  /* of (partition, identifier, piece / segment pages): row and pages */
	uint64_t key;    /* of the whole key: for the index */
	uint32_t offset; /* piece % segment pages */
	bool metadata;   /* of any class but data: most of its records are small */
};

/* `segment_pages` is a power of two. */
struct key_hash key_hash(const struct record_key *key, uint32_t segment_pages);

/* A 64-bit finaliser (splitmix64): every input bit changes every output bit. */
static inline uint64_t hash_mix(uint64_t x)
{
	x ^= x >> 30;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Row 0..rows - 1; `rows` is a power of two. */
static inline uint32_t hash_row(const struct key_hash *hash, uint32_t rows)
{
	return (uint32_t)(hash->group >> 40) & (rows - 1);
}

#endif
