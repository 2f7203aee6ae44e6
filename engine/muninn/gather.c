/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Gathering what is left of a full buffer.
 *
 * A key may go to any page from its last one on. So its newer record is seldom on the page of the
 * older one, where putting would drop that. And the pages that dropping makes space in are closed
 * to keys whose last page is behind them. Both are mended when the buffer is full: what is
 * superseded is dropped from all pages, and then the records of each page go behind those of the
 * pages before it, in the same order. The last pages are empty then.
 *
 * A crash in between finds a record on two pages, which is no other than on one.
 */
#include "engine/muninn/gather.h"

#include "engine/muninn/buffer_slots.h"

/* It is tried when this part of the buffer was put meanwhile: so many puts share what it costs. */
enum { PUT_PART = 16 };

static void drop_superseded(struct buffer *buffer, uint64_t committed)
{
	for (uint32_t page = 0; page < buffer->geometry->segment_pages; page++)
		if (!buffer_drop_large(buffer, page, committed))
			buffer_compact(buffer, page, committed, true);
}

/*
 * Puts records of a page behind those of page *to and of the empty pages behind that. Returns the
 * bytes of the first ones, for which there is space below it.
 */
static uint32_t copy_down(struct buffer *buffer, uint32_t from, uint32_t *to)
{
	struct page_view view = buffer_page(buffer, from);
	struct page_record record;
	uint32_t copied = 0;

	for (uint32_t offset = 0; page_next(&view, &offset, &record); copied = offset) {
		uint32_t length = record_length(record.header);

		if (!buffer_page_has_space(buffer, *to, length) && *to + 1 < from)
			++*to;
		if (!buffer_page_has_space(buffer, *to, length))
			break;
		buffer_append(buffer, *to, &record);
	}
	return copied;
}

static void slide_page(struct buffer *buffer, uint32_t from, uint32_t *to)
{
	uint32_t used = buffer_page(buffer, from).used, copied = copy_down(buffer, from, to);

	if (copied == used)
		buffer_empty_page(buffer, from);
	else if (copied)
		buffer_drop_first(buffer, from, copied);
	if (copied < used)
		*to = from;
}

static void slide_large(struct buffer *buffer, uint32_t from, uint32_t *to)
{
	*to += buffer_page(buffer, *to).used > 0;
	if (*to < from)
		buffer_move_large(buffer, from, *to);
}

/*
 * Moves all that is committed to the first pages. What a flush has promised stays where it is, and
 * what comes behind it stays behind.
 */
static void slide(struct buffer *buffer, uint64_t committed)
{
	for (uint32_t from = 1, to = 0; from < buffer->geometry->segment_pages; from++) {
		struct page_view view = buffer_page(buffer, from), before;

		if (!view.used)
			continue;
		before = buffer_page(buffer, to);
		if (!page_is_committed(&view, committed) ||
		    !page_is_committed(&before, committed) || buffer_is_promised(buffer, &view))
			to = from;
		else if (view.large_header)
			slide_large(buffer, from, &to);
		else
			slide_page(buffer, from, &to);
	}
}

bool buffer_gather(struct buffer *buffer, const struct row_index *row, uint32_t ahead,
		   uint64_t committed)
{
	const struct muninn_geometry *geometry = buffer->geometry;
	uint64_t bytes = (uint64_t)geometry->segment_pages * geometry->page_bytes;

	if (!index_places_anywhere(geometry) || !buffer->has_again ||
	    buffer->put_bytes < bytes / PUT_PART)
		return false;
	buffer->put_bytes = 0;
	drop_superseded(buffer, committed);
	slide(buffer, committed);
	buffer_index_again(buffer, row, ahead);
	/* Nothing more can be dropped of them, until something is put again. */
	memset(buffer->absorbable, 0, geometry->segment_pages * sizeof(*buffer->absorbable));
	return true;
}
