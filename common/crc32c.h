/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* CRC-32C, the checksum of everything that is stored. */
#ifndef MUNINN_COMMON_CRC32C_H
#define MUNINN_COMMON_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/*
 * CRC-32C (Castagnoli) of `length` bytes, continuing from `crc` (0 to begin): crc32c(crc32c(0, a),
 * b) equals crc32c(0, a followed by b). The check value of "123456789" is 0xe3069283 (RFC 3720,
 * appendix B.4).
 */
uint32_t crc32c(uint32_t crc, const void *data, size_t length);

#endif
