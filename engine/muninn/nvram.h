/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Stores to NVRAM that commit: everything written before one of these is in NVRAM when it is. The
 * region is memory of the page cache, which survives the process, so the compiler's order (release)
 * is what counts.
 */
#ifndef MUNINN_ENGINE_MUNINN_NVRAM_H
#define MUNINN_ENGINE_MUNINN_NVRAM_H

#include "common/bytes.h"
#include "engine/muninn/hash.h"

static inline void nvram_store64(uint8_t *to, uint64_t value)
{
	__atomic_store_n((uint64_t *)(void *)to, htole64(value), __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void nvram_store32(uint8_t *to, uint32_t value)
{
	__atomic_store_n((uint32_t *)(void *)to, htole32(value), __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void nvram_store16(uint8_t *to, uint16_t value)
{
	__atomic_store_n((uint16_t *)(void *)to, htole16(value), __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* ---- sums ---- */

/*
 * A sum of words is that of what each adds, combined by XOR. So a change of one word changes it in
 * a few instructions, however many there are. `place` says which word of the structure.
 */
static inline uint64_t sum_word(uint64_t place, uint64_t value)
{
	return hash_mix(value + (place + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

/*
 * A structure changes by one store, and its sum is in another page. Before that store, `pair` says
 * what the sum will be, too; sum_end follows it. So one of both is right at every moment. Nobody
 * else may change the same structure meanwhile.
 */
static inline void sum_begin(uint8_t *pair, uint64_t change)
{
	nvram_store64(pair + 8, get_le64(pair) ^ change);
}

static inline void sum_end(uint8_t *pair)
{
	nvram_store64(pair, get_le64(pair + 8));
}

/* The same, with the sum itself. */
static inline void sum_begin_whole(uint8_t *pair, uint64_t sum)
{
	nvram_store64(pair + 8, sum);
}

/*
 * Whether a pair is that of a structure with this sum. If it is neither of both, the structure or
 * the pair is damaged, or one of them is an older one.
 */
static inline bool sum_fits(const uint8_t *pair, uint64_t sum)
{
	return sum == get_le64(pair) || sum == get_le64(pair + 8);
}

/* No change was under way. */
static inline bool sum_is_settled(const uint8_t *pair)
{
	return get_le64(pair) == get_le64(pair + 8);
}

static inline void sum_set(uint8_t *pair, uint64_t sum)
{
	nvram_store64(pair, sum);
	nvram_store64(pair + 8, sum);
}

#endif
