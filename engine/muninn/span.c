/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Sizes of buffers and segments whose records span pages. */
#include "engine/muninn/span.h"

/* Who looks for space in a page of a buffer may have to count its records. */
enum { PAGE_CELLS_MAX = 16 };

/* A segment has to take this part more, and cells be filled but for that part. */
enum { GAIN_PART = 8, EMPTY_PART = 4 };

/* Fewer pages than this part of a buffer don't say what records are like. */
enum { PAGES_PART = 2 };

/* Records up to this part of a page find space beside others. */
enum { SMALL_PART = 8 };

/* ---- pages ---- */

uint32_t span_next_page(const struct muninn_geometry *geometry, uint32_t cell_bytes, bool is_last,
			uint32_t *begin)
{
	uint32_t needed = is_last ? cell_bytes : RECORD_HEADER_BYTES, at = *begin, cells = 0;

	for (; at + needed <= geometry->page_bytes; at += cell_bytes)
		cells++;
	*begin = at > geometry->page_bytes ? at - geometry->page_bytes : 0;
	return cells;
}

/* So that a page and a header, which no record is larger than, reach into one page more. */
uint64_t span_next_header(const struct muninn_geometry *geometry, uint64_t at)
{
	return at % geometry->page_bytes + RECORD_HEADER_BYTES < geometry->page_bytes
		       ? at
		       : align_up(at, geometry->page_bytes);
}

static uint32_t segment_cells(const struct muninn_geometry *geometry, uint32_t cell_bytes)
{
	uint32_t begin = 0, cells = 0;

	for (uint32_t page = 0; page < geometry->segment_pages; page++)
		cells += span_next_page(geometry, cell_bytes, page + 1 == geometry->segment_pages,
					&begin);
	return cells;
}

/*
 * A record takes of the buffer a cell, or all of its bytes, and one of a page a page for itself,
 * which is no smaller. So all records take no more bytes of the segment than they may take of the
 * buffer, but for these: before a header that would be cut, so many of each page; at the end of
 * runs, of larger records, and of all others a page each at most (ribbon_arrange.h); and one for
 * what is left over of these pages.
 */
static uint32_t mixed_pages(const struct muninn_geometry *geometry, const struct span *span)
{
	enum { ENDS = 4 };
	uint64_t page_bytes = geometry->page_bytes - RECORD_HEADER_BYTES;

	if (span->page_bytes < geometry->page_bytes + RECORD_HEADER_BYTES ||
	    geometry->segment_pages <= ENDS)
		return 0;
	return (uint32_t)min_u64(span->pages,
				 (geometry->segment_pages - ENDS) * page_bytes / span->page_bytes);
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
	span = (struct span){
		.cell_bytes = cell_bytes,
		.page_cells = cells,
		.page_bytes = cells * cell_bytes,
		.pages = (uint32_t)min_u64(slots - 1, segment_cells(geometry, cell_bytes) / cells),
	};
	span.mixed_pages = mixed_pages(geometry, &span);
	return span;
}

/* ---- which cells ---- */

bool span_is_full(const struct muninn_geometry *geometry, uint64_t bytes)
{
	uint64_t segment = (uint64_t)geometry->segment_pages * geometry->page_bytes;

	return bytes * (GAIN_PART + 1) > segment * GAIN_PART;
}

void span_count(const struct muninn_geometry *geometry, uint32_t bytes, struct span_sizes *sizes)
{
	uint32_t size =
		(uint32_t)min_u64((uint64_t)bytes * SPAN_SIZES / geometry->page_bytes, SPAN_SIZES);

	sizes->counts[size]++;
	sizes->largest[size] = (uint32_t)max_u64(sizes->largest[size], bytes);
	sizes->bytes += bytes;
}

/* Pages that records take without cells: of each size by itself, as many as fit in a page. */
static uint64_t pages_without(const struct muninn_geometry *geometry,
			      const struct span_sizes *sizes)
{
	uint64_t pages = 0;

	for (uint32_t size = SPAN_SIZES / SMALL_PART; size <= SPAN_SIZES; size++)
		if (sizes->counts[size])
			pages += divide_up(sizes->counts[size],
					   max_u64(geometry->page_bytes / sizes->largest[size], 1));
	return max_u64(pages, sizes->bytes / geometry->page_bytes);
}

/* The cells for records up to a size: a page of the buffer takes the largest ones, too. */
static uint32_t cell_for(const struct muninn_geometry *geometry, uint32_t bytes)
{
	uint64_t cells = divide_up(geometry->page_bytes, bytes);

	return (uint32_t)max_u64(bytes,
				 divide_up(geometry->page_bytes + RECORD_HEADER_BYTES, cells));
}

/* The bytes of a buffer that records take, of those that it has. */
struct part {
	struct span span;
	uint64_t bytes, of;
};

/* With cells for all records up to a class. */
static struct part part_taken(const struct muninn_geometry *geometry,
			      const struct span_sizes *sizes, uint32_t size)
{
	struct part part = { .span = span_of(geometry, cell_for(geometry, sizes->largest[size])) };
	bool is_mixed = false;

	for (uint32_t n = 0; n <= size; n++)
		part.bytes += (uint64_t)sizes->counts[n] * part.span.cell_bytes;
	for (uint32_t n = size + 1; n <= SPAN_SIZES; n++) {
		is_mixed |= sizes->counts[n] > 0;
		part.bytes += (uint64_t)sizes->counts[n] *
			      (n < SPAN_SIZES ? sizes->largest[n] : part.span.page_bytes);
	}
	part.of = (uint64_t)part.span.page_bytes *
		  (is_mixed ? part.span.mixed_pages : part.span.pages);
	return part;
}

static bool is_less(const struct part *a, const struct part *b)
{
	return a->bytes * b->of < b->bytes * a->of;
}

/* Whether cells are worth it to records that take so many pages without them. */
static bool pays(const struct muninn_geometry *geometry, const struct part *part, uint64_t pages,
		 const struct span_sizes *sizes)
{
	return part->bytes * geometry->segment_pages * (GAIN_PART + 1) <=
		       pages * part->of * GAIN_PART &&
	       sizes->bytes * EMPTY_PART >= part->bytes * (EMPTY_PART - 1);
}

uint32_t span_choose(const struct muninn_geometry *geometry, const struct span *now,
		     const struct span_sizes *sizes)
{
	struct part best = { .bytes = 1 }; /* more than any other */
	uint64_t pages = now->cell_bytes ? pages_without(geometry, sizes) : sizes->pages;

	if (sizes->pages * PAGES_PART < now->pages)
		return now->mixed_pages ? now->cell_bytes : 0;
	for (uint32_t size = 0; size < SPAN_SIZES; size++) {
		struct part part;

		if (!sizes->counts[size])
			continue;
		part = part_taken(geometry, sizes, size);
		if (part.span.mixed_pages && is_less(&part, &best))
			best = part;
	}
	return best.of && pays(geometry, &best, pages, sizes) ? best.span.cell_bytes : 0;
}
