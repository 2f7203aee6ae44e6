/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Tags: 32 bits that stand for a key within its row. Everything that the ribbon index keeps of a
 * key follows from its tag, so a group can be built from tags, without a read of records. Two keys
 * of a row may have the same one. Nothing may be dropped because tags are equal.
 */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_RIBBON_HASH_H
#define MUNINN_ENGINE_MUNINN_INDEX_RIBBON_HASH_H

#include <stdint.h>

#include "engine/muninn/hash.h"

/* The row takes bits of hash->group, so that all bits of hash->key are left for the tag. */
static inline uint32_t tag_of(const struct key_hash *hash)
{
	return (uint32_t)(hash->key >> 32);
}

/* Of the n-th newest entry of a tag in a group, from 0, what the group's ribbon is asked for. */
static inline uint64_t tag_hash(uint32_t tag, uint32_t n)
{
	return hash_mix(((uint64_t)n << 32 | tag) + UINT64_C(0x632be59bd9b4e019));
}

/* Candidate page `candidate` of a key in a segment whose head pages are so many. */
static inline uint32_t candidate_page(const struct key_hash *hash, uint64_t serial,
				      uint32_t candidate, uint32_t head_pages)
{
	uint64_t mixed =
		hash_mix(hash->group + (serial + candidate + 1) * UINT64_C(0x9e3779b97f4a7c15));

	/* Pieces of an object that are written together follow each other. */
	return (uint32_t)(((mixed >> 32) * head_pages >> 32) + hash->offset) % head_pages;
}

#endif
