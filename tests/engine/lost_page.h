/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Loses a page of a device in memory, and finds it again. */
#ifndef MUNINN_TESTS_ENGINE_LOST_PAGE_H
#define MUNINN_TESTS_ENGINE_LOST_PAGE_H

#include "nand/private.h"

/* Changes data and spare area beyond what any ECC corrects; a second time: as they were. */
static inline void lose_page(struct nand *nand, uint64_t page)
{
	const struct nand_geometry *geometry = nand_geometry(nand);
	uint8_t *at = nand->pages.at + nand_page_offset(&nand->layout, geometry, page) -
		      nand->layout.data_offset;

	for (uint32_t i = 0; i < geometry->page_bytes + geometry->spare_bytes; i++)
		at[i] ^= (uint8_t)(0x5A + i);
}

#endif
