/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Stores to NVRAM that commit: everything written before one of these is in NVRAM when it is. The
 * region is memory of the page cache, which survives the process, so the compiler's order (release)
 * is what counts.
 */
#ifndef MUNINN_ENGINE_MUNINN_NVRAM_H
#define MUNINN_ENGINE_MUNINN_NVRAM_H

#include <endian.h>
#include <stdint.h>

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

#endif
