/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The Muninn record store, as seen from outside of its folder: the published algorithm. */
#ifndef MUNINN_ENGINE_MUNINN_MUNINN_H
#define MUNINN_ENGINE_MUNINN_MUNINN_H

#include "engine/muninn/options.h"
#include "engine/records/records.h"

extern const struct record_store_type muninn_store_type;

/* What a store of this type was formatted with. */
void muninn_formatted_options(const struct record_store *store, struct record_options *records,
			      struct muninn_options *options);

/*
 * Takes page bytes, pages of a block and blocks from the static header at the beginning of the
 * NVRAM. False: it is damaged.
 */
bool muninn_header_geometry(const uint8_t *header, struct nand_geometry *geometry);

/* The name of the index that the same header speaks of. NULL: it is damaged, or knows another. */
const char *muninn_header_index(const uint8_t *header);

#endif
