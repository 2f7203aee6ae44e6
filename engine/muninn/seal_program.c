/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Programs a full buffer to its segment: what goes to each page, and the parity of a group. */
#include "engine/muninn/seal_program.h"

#include <errno.h>

#include "common/thread.h"
#include "engine/muninn/row.h"
#include "engine/muninn/sealing.h"

/*
 * A thread that seals lets others have the processor after so many pages: some tens of
 * microseconds. While they are programmed less often, since the host takes as many at once.
 */
enum { REST_PAGES = 4, REST_PROGRAMS = 64 };

/* All that the index is told of the buffered segment, except where on flash it is. */
static struct sealed_segment gather_facts(const struct buffer *buffer)
{
	struct sealed_segment facts = sealed_segment_begin(0, buffer->serial);

	for (uint32_t page = 0; page < buffer->geometry->segment_pages; page++) {
		struct page_view view = buffer_page(buffer, page);

		sealed_segment_add(&facts, &view);
	}
	return facts;
}

/*
 * Asks the index where the records go. What it was told before does not count any more. -ENOMEM:
 * the pages of the buffer are longer than those of flash.
 */
static int arrange(struct muninn_store *store, uint32_t number)
{
	struct row *row = &store->rows[number];
	uint32_t cell_bytes = row->buffer.span.cell_bytes;
	struct seal_scratch *scratch;

	arrangement_destroy(row->sealing.arrangement);
	row->sealing.arrangement = NULL;
	if (!index_arranges(&store->geometry))
		return 0;
	scratch = sealing_take_scratch(store, &row->sealing);
	for (uint32_t page = 0; page < store->geometry.segment_pages; page++)
		scratch->views[page] = buffer_page(&row->buffer, page);
	row->sealing.arrangement =
		index_arrange(&store->geometry, row->buffer.serial, scratch->views, cell_bytes);
	sealing_give_scratch(store, scratch);
	return cell_bytes && !row->sealing.arrangement ? -ENOMEM : 0;
}

static uint8_t *page_memory(const struct muninn_store *store, uint32_t page,
			    const struct seal_scratch *scratch)
{
	return scratch->pages + (uint64_t)page * nand_page_stride(store->nand);
}

static uint8_t *spare_memory(const struct muninn_store *store, uint32_t page,
			     const struct seal_scratch *scratch)
{
	uint32_t usable = nand_spare_usable(nand_geometry(store->nand));

	return scratch->pages ? page_memory(store, page, scratch) + store->geometry.page_bytes
			      : scratch->spares + (uint64_t)page * usable;
}

/* What page `page` of the segment holds. */
static struct page_view sealed_page(const struct muninn_store *store, uint32_t number,
				    uint32_t page, const struct seal_scratch *scratch)
{
	const struct row *row = &store->rows[number];

	return row->sealing.arrangement ? arrangement_page(row->sealing.arrangement, page,
							   page_memory(store, page, scratch))
					: buffer_page(&row->buffer, page);
}

/* What earlier segments left in the rest of the page does not go to flash. */
static void clear_rest(struct muninn_store *store, const struct row *row,
		       const struct page_view *view, uint8_t *data)
{
	bool is_in_nvram = !row->sealing.arrangement;

	/* Somebody may copy the NVRAM just now. */
	if (is_in_nvram)
		pthread_mutex_lock(&store->seal_lock);
	memset(data + view->used, 0, store->geometry.page_bytes - view->used);
	if (is_in_nvram)
		pthread_mutex_unlock(&store->seal_lock);
}

/* What is programmed to page `page` of the segment. */
static struct nand_page_io page_io(struct muninn_store *store, uint32_t number, uint32_t page,
				   const struct seal_scratch *scratch)
{
	const struct row *row = &store->rows[number];
	struct page_view view = sealed_page(store, number, page, scratch);
	struct page_spare spare = {
		.kind = PAGE_KIND_RECORDS,
		.large = view.large_header != NULL,
		.unfinished = row->sealing.facts.last_sequence > row->sealing.committed,
		.row = (uint16_t)number,
		.used = view.used,
		.begin = (uint16_t)view.begin,
		.beyond = (uint16_t)view.beyond,
		.serial = row->buffer.serial,
	};
	uint8_t *data = (uint8_t *)(uintptr_t)view.data;
	uint8_t *spare_bytes = spare_memory(store, page, scratch);

	memset(spare_bytes, 0, nand_spare_usable(nand_geometry(store->nand)));
	older_note(&store->rows[number].sealing.older, store->geometry.segment_pages, page, &view);
	clear_rest(store, row, &view, data);
	if (view.large_header)
		memcpy(spare.large_header, view.large_header, RECORD_HEADER_BYTES);
	page_spare_encode(&spare, spare_bytes);
	return (struct nand_page_io){
		.page = segment_page(&store->geometry, row->sealing.segment) + page,
		.data = data,
		.spare = spare_bytes,
	};
}

/* Not for who seals in turn: all others wait for that. */
static void rest(const struct sealing *sealing)
{
	if (sealing->running == SEAL_RUNNING)
		thread_rest();
}

/* A group of pages, and their parity as they are made: then they are still in the nearest cache. */
static void prepare_group(struct muninn_store *store, uint32_t number, uint32_t first,
			  uint32_t group, struct seal_scratch *scratch)
{
	bool with_parity = store->geometry.parity.losses > 0;

	if (with_parity)
		parity_begin(&store->parity, scratch->parity);
	for (uint32_t page = first; page < first + group; page++) {
		scratch->ios[page] = page_io(store, number, page, scratch);
		if (with_parity)
			parity_add(&store->parity, page - first, &scratch->ios[page],
				   scratch->parity);
		if (page % REST_PAGES == 0)
			rest(&store->rows[number].sealing);
	}
	if (with_parity)
		parity_end(&store->parity, &scratch->ios[first], scratch->parity);
}

/* Prepares the next `count` pages; with parity, the whole groups that they are in. */
static void prepare_pages(struct muninn_store *store, uint32_t number, uint32_t count,
			  struct seal_scratch *scratch)
{
	const struct parity_shape *parity = &store->geometry.parity;
	uint32_t group = parity->losses ? parity->group_pages : 1;
	uint32_t next = store->rows[number].sealing.pages;
	uint32_t end = (uint32_t)align_up(next + count, group);

	for (uint32_t first = next - next % group; first < end; first += group)
		prepare_group(store, number, first, group, scratch);
}

/* Programs up to REST_PROGRAMS prepared pages: from where they are, if they have been composed. */
static int program_some(struct muninn_store *store, const struct nand_page_io *ios, uint32_t count)
{
	bool whole = true;

	for (uint32_t n = 0; n < count; n++)
		whole &= (uint8_t *)ios[n].data + store->geometry.page_bytes == ios[n].spare;
	return whole ? nand_program_whole(store->nand, NAND_CAUSE_USER, ios, count)
		     : nand_program(store->nand, NAND_CAUSE_USER, ios, count);
}

/*
 * Programs the next `count` pages of the buffer, empty ones too: pages of a block are programmed in
 * order.
 */
static int program_pages(struct muninn_store *store, uint32_t number, uint32_t count)
{
	struct sealing *sealing = &store->rows[number].sealing;
	struct seal_scratch *scratch = sealing_take_scratch(store, sealing);
	int result = 0;

	prepare_pages(store, number, count, scratch);
	for (uint32_t done = 0; !result && done < count; done += REST_PROGRAMS) {
		result = program_some(store, &scratch->ios[sealing->pages + done],
				      (uint32_t)min_u64(count - done, REST_PROGRAMS));
		rest(sealing);
	}
	sealing_give_scratch(store, scratch);
	if (!result)
		sealing->pages += count;
	return result;
}

int seal_program(struct muninn_store *store, uint32_t number, uint32_t *budget, bool *complete)
{
	const struct muninn_geometry *geometry = &store->geometry;
	struct sealing *sealing = &store->rows[number].sealing;
	int result = 0;

	if (!sealing->erased) {
		result = segment_erase(store->nand, geometry->segment_blocks, NAND_CAUSE_USER,
				       sealing->segment, &sealing->erasures);
		if (!result)
			result = arrange(store, number);
		sealing->erased = !result;
		sealing->pages = 0;
		sealing->facts = gather_facts(&store->rows[number].buffer);
		older_expect(&sealing->older, &sealing->facts);
		row_index_condense(store->rows[number].index);
	}
	while (!result && sealing->pages < geometry->segment_pages && *budget) {
		uint32_t count =
			(uint32_t)min_u64(geometry->segment_pages - sealing->pages, *budget);

		result = program_pages(store, number, count);
		*budget -= count;
	}
	if (result || sealing->pages < geometry->segment_pages)
		return result;
	*complete = true;
	return nand_sync(store->nand, sealing->segment * geometry->segment_blocks,
			 geometry->segment_blocks);
}
