/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* How many pages of a store end in a record that goes on in the page behind. */
#ifndef MUNINN_TESTS_ENGINE_MUNINN_SPANNED_H
#define MUNINN_TESTS_ENGINE_MUNINN_SPANNED_H

#include "engine/muninn/repair.h"
#include "engine/muninn/store.h"

static inline bool page_is_spanned(struct muninn_store *store, uint64_t page)
{
	uint8_t spare_bytes[4096];
	struct nand_page_io io = { .page = page, .spare = spare_bytes };
	struct page_spare spare;

	return repair_read(store, NAND_CAUSE_USER, &io) == 0 &&
	       page_spare_decode(spare_bytes, store->geometry.page_bytes, &spare) && spare.beyond;
}

static inline uint32_t count_spanned_pages(struct record_store *base)
{
	struct muninn_store *store = (struct muninn_store *)(void *)base;
	uint32_t count = 0;

	for (uint32_t segment = 0; segment < store->geometry.segments; segment++)
		for (uint32_t page = 0;
		     store->segment_rows[segment] != NO_ROW && page < store->geometry.segment_pages;
		     page++)
			count += page_is_spanned(store,
						 segment_page(&store->geometry, segment) + page);
	return count;
}

#endif
