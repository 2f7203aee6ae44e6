/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Sizes of buffers and segments whose records span pages. */
#include "engine/muninn/span.h"

/* Who looks for space in a page of a buffer may have to count its records. */
enum { PAGE_CELLS_MAX = 16 };

/* A segment has to take this part more, and its cells have to be as full as that. */
enum { GAIN_PART = 8, FILLED_PERMILLE = 875 };

uint32_t span_next_page(const struct muninn_geometry *geometry, uint32_t cell_bytes, bool is_last,
			uint32_t *begin)
{
	uint32_t needed = is_last ? cell_bytes : RECORD_HEADER_BYTES, at = *begin, cells = 0;

	for (; at + needed <= geometry->page_bytes; at += cell_bytes)
		cells++;
	*begin = at > geometry->page_bytes ? at - geometry->page_bytes : 0;
	return cells;
}

static uint32_t segment_cells(const struct muninn_geometry *geometry, uint32_t cell_bytes)
{
	uint32_t begin = 0, cells = 0;

	for (uint32_t page = 0; page < geometry->segment_pages; page++)
		cells += span_next_page(geometry, cell_bytes, page + 1 == geometry->segment_pages,
					&begin);
	return cells;
}

struct span span_of(const struct muninn_geometry *geometry, uint32_t cell_bytes)
{
	struct span span = { .page_bytes = geometry->page_bytes, .pages = geometry->segment_pages };
	uint64_t slots;
	uint32_t cells;

	if (cell_bytes < RECORD_HEADER_BYTES || cell_bytes > geometry->page_bytes)
		return span;
	cells = (uint32_t)divide_up(geometry->page_bytes, cell_bytes);
	slots = (uint64_t)buffer_slots(geometry) * geometry->page_bytes / (cells * cell_bytes);
	if (cells > PAGE_CELLS_MAX || slots < 2)
		return span;
	return (struct span){
		.cell_bytes = cell_bytes,
		.page_cells = cells,
		.page_bytes = cells * cell_bytes,
		.pages = (uint32_t)min_u64(slots - 1, segment_cells(geometry, cell_bytes) / cells),
	};
}

bool span_pays(const struct muninn_geometry *geometry, uint32_t cell_bytes, uint32_t permille)
{
	struct span span = span_of(geometry, cell_bytes);
	uint64_t cells = (uint64_t)span.pages * span.page_cells, others;

	if (!span.cell_bytes || permille < FILLED_PERMILLE)
		return false;
	others = (uint64_t)geometry->segment_pages * (geometry->page_bytes / cell_bytes);
	return cells * permille / 1000 >= others + others / GAIN_PART;
}
