/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Scrubs sealed segments, in the order of their places. A position is the number of a page; page 0
 * is one of a root. Whoever scrubs shares the turn, so that no segment is freed meanwhile.
 */
#include "engine/muninn/scrub.h"

#include "engine/muninn/repair.h"

/* Where the next sealed segment begins, from a page on; 0: there is none. */
static uint64_t next_sealed(const struct muninn_store *store, uint64_t page)
{
	uint32_t pages = store->geometry.segment_pages;
	uint32_t segment = (uint32_t)(page / pages);

	if (segment < store->geometry.segments && store->segment_rows[segment] != NO_ROW)
		return page;
	for (segment++; segment < store->geometry.segments; segment++)
		if (store->segment_rows[segment] != NO_ROW)
			return segment_page(&store->geometry, segment);
	return 0;
}

static void scrub_page(struct muninn_store *store, uint64_t page, struct record_scrub *scrub)
{
	uint8_t data[MUNINN_PAGE_BYTES_MAX], spare[4096];
	const struct nand_page_io io = { .page = page, .data = data, .spare = spare };
	int result = nand_read(store->nand, NAND_CAUSE_SCRUB, &io, 1);

	scrub->read++;
	if (!repair_is_for(result))
		return;
	if (repair_page(store, NAND_CAUSE_SCRUB, &io) == 0)
		scrub->repaired++;
	else
		scrub->lost++;
}

void scrub_some(struct muninn_store *store, struct record_scrub *scrub)
{
	uint64_t page = next_sealed(store, scrub->position);

	for (uint32_t n = 0; page && n < scrub->pages; n++) {
		scrub_page(store, page, scrub);
		page = next_sealed(store, page + 1);
	}
	scrub->position = page;
	scrub->end = segment_page(&store->geometry, store->geometry.segments);
}
