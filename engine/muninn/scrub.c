/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Scrubs all that is in use, in the order of its places: the ring of roots, sealed segments, images
 * of the index. A position is the number of a page; page 0 is one of a root, so that 0 means the
 * beginning and the end. Whoever scrubs shares the turn, so that no segment is freed meanwhile.
 */
#include "engine/muninn/scrub.h"

#include "engine/muninn/directory.h"
#include "engine/muninn/image_load.h"
#include "engine/muninn/repair.h"
#include "engine/muninn/root_find.h"
#include "engine/muninn/roots.h"
#include "engine/muninn/row.h"

static bool is_ring(const struct muninn_store *store, uint32_t segment)
{
	return segment < store->geometry.root_segments;
}

/* How many pages of a segment are to be read. */
static uint32_t pages_used(const struct muninn_store *store, uint32_t segment)
{
	const struct muninn_geometry *geometry = &store->geometry;
	uint32_t end;

	if (store->segment_rows[segment] != NO_ROW)
		return geometry->segment_pages;
	if ((!is_ring(store, segment) && !store->images[segment]) ||
	    segment_end(store->nand, geometry->segment_blocks, segment, &end))
		return 0;
	return end;
}

/* The next page in use, from one on; NO_PAGE: there is none. */
static uint64_t next_used(const struct muninn_store *store, uint64_t page)
{
	uint32_t pages = store->geometry.segment_pages;
	uint32_t segment = (uint32_t)(page / pages);

	if (segment < store->geometry.segments && page % pages < pages_used(store, segment))
		return page;
	for (segment++; segment < store->geometry.segments; segment++)
		if (pages_used(store, segment))
			return segment_page(&store->geometry, segment);
	return NO_PAGE;
}

/* ---- a page that can't be read ---- */

static void count(struct record_scrub *scrub, bool repaired)
{
	scrub->repaired += repaired;
	scrub->lost += !repaired;
}

/* The entry whose image has a flash page, as its page *number; NULL: that is left of none. */
static uint8_t *image_with(const struct muninn_store *store, uint64_t page, uint32_t *number)
{
	uint32_t n = 0;
	uint8_t *entry;

	while ((entry = directory_next(store, &n)) != NULL) {
		uint32_t pages = run_pages(&store->geometry, get_le32(entry + DIRECTORY_BYTES_AT));

		for (*number = 0; *number < pages; ++*number)
			if (directory_image_page(&store->geometry, entry, *number) == page)
				return entry;
	}
	return NULL;
}

/* What is in memory as a whole can be written anew without parity. */
static void scrub_image(struct muninn_store *store, uint64_t page, struct record_scrub *scrub)
{
	uint8_t data[MUNINN_PAGE_BYTES_MAX];
	uint32_t number, row, group;
	const uint8_t *entry = image_with(store, page, &number);
	bool repaired;

	if (!entry)
		return;
	row = get_le32(entry + DIRECTORY_ROW_AT);
	group = get_le32(entry + DIRECTORY_GROUP_AT);
	repaired = row_index_is_in_memory(store->rows[row].index, group) ||
		   image_examine_page(store, NAND_CAUSE_SCRUB, entry, number, data) != -EIO;
	if (repaired)
		repair_note_image(store, row, group, page);
	count(scrub, repaired);
}

/*
 * Only the last root matters, and the last list of changes that goes with it. NVRAM says all of it,
 * so it can be written anew.
 */
static void scrub_root(struct muninn_store *store, uint64_t page, struct record_scrub *scrub)
{
	if (roots_are_under_way(store) || roots_last_is_whole(store))
		return;
	repair_note_root(store, page);
	count(scrub, true);
}

static void scrub_page(struct muninn_store *store, uint64_t page, struct record_scrub *scrub)
{
	uint8_t data[MUNINN_PAGE_BYTES_MAX], spare[4096];
	const struct nand_page_io io = { .page = page, .data = data, .spare = spare };
	uint32_t segment = (uint32_t)(page / store->geometry.segment_pages);
	int result = nand_read(store->nand, NAND_CAUSE_SCRUB, &io, 1);

	scrub->read++;
	if (!repair_is_for(result))
		return;
	if (is_ring(store, segment))
		scrub_root(store, page, scrub);
	else if (store->segment_rows[segment] == NO_ROW)
		scrub_image(store, page, scrub);
	else
		count(scrub, repair_page(store, NAND_CAUSE_SCRUB, &io) == 0);
}

void scrub_some(struct muninn_store *store, struct record_scrub *scrub)
{
	uint64_t page = next_used(store, scrub->position);

	for (uint32_t n = 0; page != NO_PAGE && n < scrub->pages; n++) {
		scrub_page(store, page, scrub);
		page = next_used(store, page + 1);
	}
	scrub->position = page == NO_PAGE ? 0 : page;
	scrub->end = segment_page(&store->geometry, store->geometry.segments);
}
