/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What a device was formatted with. */
#ifndef MUNINN_ENGINE_MUNINN_HEADER_H
#define MUNINN_ENGINE_MUNINN_HEADER_H

#include "engine/muninn/geometry.h"
#include "nand/nand.h"

/*
 * The static header of a device, NVRAM_HEADER_CRC_AT + 4 bytes. header_read: -ENODEV, -EPROTO
 * (another version), -EINVAL.
 */
void header_write(uint8_t *to, const struct muninn_geometry *geometry, const uint8_t uuid[16]);
int header_read(const uint8_t *from, struct nand *nand, struct muninn_geometry *geometry,
		struct error_text *error);

#endif
