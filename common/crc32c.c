/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
#include "common/crc32c.h"

#include <isa-l/crc.h>
#include <limits.h>

uint32_t crc32c(uint32_t crc, const void *data, size_t length)
{
	/* ISA-L takes an int length, a non-const pointer and the raw register. */
	unsigned char *next = (unsigned char *)data;
	uint32_t reg = ~crc;

	while (length > INT_MAX) {
		reg = crc32_iscsi(next, INT_MAX, reg);
		next += INT_MAX;
		length -= INT_MAX;
	}
	return ~crc32_iscsi(next, (int)length, reg);
}
