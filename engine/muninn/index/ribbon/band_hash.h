/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What a hash is to a ribbon: where its equation begins, its coefficients and its fingerprint. */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_RIBBON_BAND_HASH_H
#define MUNINN_ENGINE_MUNINN_INDEX_RIBBON_BAND_HASH_H

#include <stdint.h>

#include "engine/muninn/hash.h"

/* The upper half chooses the row, so that rows in the order of hashes are in order. */
static inline uint32_t band_start(uint64_t hash, uint32_t starts)
{
	return (uint32_t)((hash >> 32) * starts >> 32);
}

/* Bit n belongs to row start + n. The first one is always set: that row can be the pivot. */
static inline uint64_t band_coefficients(uint64_t hash)
{
	return hash_mix(hash ^ UINT64_C(0x9e3779b97f4a7c15)) | 1;
}

static inline uint32_t band_fingerprint(uint64_t hash, uint32_t bits)
{
	return (uint32_t)hash & ((1U << bits) - 1);
}

#endif
