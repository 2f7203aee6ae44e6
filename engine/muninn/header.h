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

/*
 * The same of the copy in a root, which may be older than the last growth of the device; the
 * geometry is that of today.
 */
int header_read_of_root(const uint8_t *from, struct nand *nand, struct muninn_geometry *geometry,
			struct error_text *error);

/* The same, for a device of this shape and UUID, which may be one that is still to come. */
int header_read_shape(const uint8_t *from, const struct nand_geometry *nand, const uint8_t uuid[16],
		      struct muninn_geometry *geometry, struct error_text *error);

#endif
