/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Copies page data into and out of a device's memory, which is larger than any cache.
 *
 * In: past the caches, because what is programmed is seldom read soon. That is a third faster than
 * memcpy(3), and leaves in the caches what the caller has there. Out: with vector registers. memcpy
 * takes string instructions for this size, which start slowly (measured by `muninn-bench nand`).
 *
 * `bytes` is a multiple of 64. The device's side begins at a multiple of 64, the caller's anywhere.
 */
#ifndef MUNINN_NAND_COPY_H
#define MUNINN_NAND_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#include <emmintrin.h>

static inline void nand_copy_in(void *device, const void *from, size_t bytes)
{
	const __m128i *source = from;
	__m128i *target = device;

	for (size_t i = 0; i < bytes / sizeof(*target); i += 4) {
		__m128i a = _mm_loadu_si128(source + i), b = _mm_loadu_si128(source + i + 1);
		__m128i c = _mm_loadu_si128(source + i + 2), d = _mm_loadu_si128(source + i + 3);

		_mm_stream_si128(target + i, a);
		_mm_stream_si128(target + i + 1, b);
		_mm_stream_si128(target + i + 2, c);
		_mm_stream_si128(target + i + 3, d);
	}
	/*
	 * These stores are not ordered by themselves; what says that the page is there must come
	 * after them.
	 */
	_mm_sfence();
}

static inline void nand_copy_out(void *to, const void *device, size_t bytes)
{
	const __m128i *source = device;
	__m128i *target = to;

	for (size_t i = 0; i < bytes / sizeof(*target); i += 4) {
		__m128i a = _mm_load_si128(source + i), b = _mm_load_si128(source + i + 1);
		__m128i c = _mm_load_si128(source + i + 2), d = _mm_load_si128(source + i + 3);

		_mm_storeu_si128(target + i, a);
		_mm_storeu_si128(target + i + 1, b);
		_mm_storeu_si128(target + i + 2, c);
		_mm_storeu_si128(target + i + 3, d);
	}
}
#else
static inline void nand_copy_in(void *device, const void *from, size_t bytes)
{
	memcpy(device, from, bytes);
}

static inline void nand_copy_out(void *to, const void *device, size_t bytes)
{
	memcpy(to, device, bytes);
}
#endif

#endif
