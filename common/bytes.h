/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Integers in byte buffers, big-endian (SCSI, OSD, iSCSI) and little-endian (flash, NVRAM).
 *
 * Nothing in this project overlays a C struct on wire or flash bytes; everything goes through
 * these.
 */
#ifndef MUNINN_COMMON_BYTES_H
#define MUNINN_COMMON_BYTES_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BYTES_ACCESSORS(bits, order)                                         \
	static inline uint##bits##_t get_##order##bits(const void *from)     \
	{                                                                    \
		uint##bits##_t raw;                                          \
		memcpy(&raw, from, sizeof(raw));                             \
		return order##bits##toh(raw);                                \
	}                                                                    \
	static inline void put_##order##bits(void *to, uint##bits##_t value) \
	{                                                                    \
		uint##bits##_t raw = hto##order##bits(value);                \
		memcpy(to, &raw, sizeof(raw));                               \
	}

BYTES_ACCESSORS(16, be)
BYTES_ACCESSORS(32, be)
BYTES_ACCESSORS(64, be)
BYTES_ACCESSORS(16, le)
BYTES_ACCESSORS(32, le)
BYTES_ACCESSORS(64, le)
#undef BYTES_ACCESSORS

/* 48-bit values: OSD timestamps (big-endian), modification sequence numbers (little-endian). */
static inline uint64_t get_be48(const void *from)
{
	return (uint64_t)get_be16(from) << 32 | get_be32((const uint8_t *)from + 2);
}

static inline void put_be48(void *to, uint64_t value)
{
	put_be16(to, (uint16_t)(value >> 32));
	put_be32((uint8_t *)to + 2, (uint32_t)value);
}

static inline uint64_t get_le48(const void *from)
{
	return get_le32(from) | (uint64_t)get_le16((const uint8_t *)from + 4) << 32;
}

static inline void put_le48(void *to, uint64_t value)
{
	put_le32(to, (uint32_t)value);
	put_le16((uint8_t *)to + 4, (uint16_t)(value >> 32));
}

/* Rounds up to a multiple of `unit`, a power of two. */
static inline uint64_t align_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) & ~(unit - 1);
}

/* Rounds down to a multiple of `unit`, a power of two. */
static inline uint64_t align_down(uint64_t value, uint64_t unit)
{
	return value & ~(unit - 1);
}

static inline uint64_t divide_up(uint64_t value, uint64_t unit)
{
	return value / unit + (value % unit != 0);
}

static inline bool is_power_of_two(uint64_t value)
{
	return value != 0 && (value & (value - 1)) == 0;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* A step that visits each of `count` before one comes again: both have no common divisor. */
static inline uint32_t walk_step(uint32_t count)
{
	for (uint32_t step = (uint32_t)(count * 0.618);; step++) {
		uint32_t a = count, b = step;

		while (b) {
			uint32_t rest = a % b;

			a = b;
			b = rest;
		}
		if (a == 1)
			return step;
	}
}

#endif
