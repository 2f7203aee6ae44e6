/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Computes CRC-32C, with the processor's instruction where there is one. */
#include "common/crc32c.h"

#include <isa-l/crc.h>
#include <limits.h>
#include <stdbool.h>

/*
 * For up to this many bytes the processor's own instruction is quicker than ISA-L's vectors, the
 * more so if the bytes have just been stored: the store serves a load of 8 bytes, but a load of 64
 * waits until all stores before it have reached memory.
 */
#define SHORT_BYTES 512

#if defined(__x86_64__)
#include <nmmintrin.h>
#include <string.h>

__attribute__((target("sse4.2"))) static uint32_t crc32c_short(uint32_t crc, const uint8_t *next,
							       size_t length)
{
	uint64_t reg = (uint32_t)~crc;

	for (; length >= sizeof(uint64_t); length -= sizeof(uint64_t), next += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, next, sizeof(word));
		reg = _mm_crc32_u64(reg, word);
	}
	if (length >= sizeof(uint32_t)) {
		uint32_t word;

		memcpy(&word, next, sizeof(word));
		reg = _mm_crc32_u32((uint32_t)reg, word);
		length -= sizeof(word);
		next += sizeof(word);
	}
	for (; length > 0; length--)
		reg = _mm_crc32_u8((uint32_t)reg, *next++);
	return ~(uint32_t)reg;
}

static bool has_instruction(void)
{
	return __builtin_cpu_supports("sse4.2");
}
#else
static uint32_t crc32c_short(uint32_t crc, const uint8_t *next, size_t length)
{
	(void)next;
	(void)length;
	return crc;
}

static bool has_instruction(void)
{
	return false;
}
#endif

uint32_t crc32c(uint32_t crc, const void *data, size_t length)
{
	/* ISA-L takes an int length, a non-const pointer and the raw register. */
	unsigned char *next = (unsigned char *)data;
	uint32_t reg = ~crc;

	if (length <= SHORT_BYTES && has_instruction())
		return crc32c_short(crc, data, length);
	while (length > INT_MAX) {
		reg = crc32_iscsi(next, INT_MAX, reg);
		next += INT_MAX;
		length -= INT_MAX;
	}
	return ~crc32_iscsi(next, (int)length, reg);
}
