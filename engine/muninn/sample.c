/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Shows the records of one page, of all pages of buffers and sealed segments: buffers come first,
 * by row, then segments, by number. So whoever goes through all of them sees each record once.
 */
#include "engine/muninn/sample.h"

#include "engine/muninn/repair.h"
#include "engine/muninn/row.h"

static bool is_sealed(const struct muninn_store *store, uint32_t segment)
{
	return store->segment_rows[segment] != NO_ROW;
}

/* What a record takes of its page's data. One that has a page for itself has its header beside. */
static uint32_t page_share(const struct muninn_geometry *geometry, uint32_t length)
{
	return record_is_large(geometry, length) ? geometry->page_bytes
						 : RECORD_HEADER_BYTES + length;
}

static void show(struct muninn_store *store, const struct page_view *view,
		 struct record_sample *sample)
{
	const struct visibility everything = store_visibility(store, RECORD_NEWEST);
	struct page_record record;
	uint32_t offset = 0;

	while (page_next(view, &offset, &record)) {
		struct record_header header;
		struct record_info info;

		record_header_decode(record.header, &header);
		info = (struct record_info){
			.sequence = header.sequence,
			.length = header.length,
			.flags = header.flags & (RECORD_TOMBSTONE | RECORD_ABSORB),
		};
		sample->record(sample->context, &header.key, &info,
			       page_share(&store->geometry, header.length),
			       sequence_is_visible(&everything, header.sequence));
	}
}

/* A page of the buffers, of which there are *buffers. False: it is none of theirs. */
static bool show_buffered(struct muninn_store *store, uint64_t page, struct record_sample *sample,
			  uint32_t *buffers)
{
	uint32_t pages = store->geometry.segment_pages;
	bool found = false;

	*buffers = 0;
	for (uint32_t number = 0; number < store->geometry.rows; number++) {
		const struct row *row = &store->rows[number];
		const struct buffer *both[] = { &row->buffer, &row->newer };

		for (uint32_t n = 0; n < 1u + row_has_newer(row); n++, ++*buffers) {
			if (page / pages != *buffers)
				continue;
			struct page_view view = buffer_page(both[n], (uint32_t)(page % pages));

			show(store, &view, sample);
			found = true;
		}
	}
	return found;
}

/* A page that is lost has nothing to show. */
static int show_sealed(struct muninn_store *store, uint32_t segment, uint32_t page,
		       struct record_sample *sample)
{
	uint8_t data[MUNINN_PAGE_BYTES_MAX], bytes[4096];
	const struct nand_page_io io = { .page = segment_page(&store->geometry, segment) + page,
					 .data = data,
					 .spare = bytes };
	int result = repair_read(store, NAND_CAUSE_SCRUB, &io);
	struct page_spare spare;

	if (repair_is_for(result))
		return 0;
	if (result || !page_spare_decode(bytes, store->geometry.page_bytes, &spare) ||
	    spare.kind != PAGE_KIND_RECORDS)
		return result;
	struct page_view view = page_view_of(&spare, io.page, data);

	show(store, &view, sample);
	return 0;
}

int sample_page(struct muninn_store *store, struct record_sample *sample)
{
	uint32_t pages = store->geometry.segment_pages, buffers, sealed = 0, wanted;
	bool found = show_buffered(store, sample->page, sample, &buffers);
	uint32_t segment, place = NO_SEGMENT;

	wanted = (uint32_t)(sample->page / pages) - buffers;
	for (segment = 0; segment < store->geometry.segments; segment++) {
		if (!is_sealed(store, segment))
			continue;
		if (!found && sealed == wanted)
			place = segment;
		sealed++;
	}
	sample->segment = place == NO_SEGMENT ? RECORD_NO_SEGMENT : place;
	sample->pages = ((uint64_t)buffers + sealed) * pages;
	sample->device_bytes =
		(uint64_t)store->geometry.segments * pages * store->geometry.page_bytes;
	sample->bytes =
		rows_buffered_bytes(store) + (uint64_t)sealed * pages * store->geometry.page_bytes;
	if (place == NO_SEGMENT)
		return 0;
	return show_sealed(store, place, (uint32_t)(sample->page % pages), sample);
}

static struct record_stretch *stretch_of(struct record_stretch *stretches, uint32_t count,
					 uint32_t segments, uint32_t segment)
{
	return &stretches[(uint64_t)segment * count / segments];
}

void sample_map(const struct muninn_store *store, struct record_stretch *stretches, uint32_t count)
{
	const struct space *space = &store->space;
	uint32_t segments = store->geometry.segments;

	memset(stretches, 0, count * sizeof(*stretches));
	for (uint32_t segment = 0; segment < segments; segment++) {
		struct record_stretch *stretch = stretch_of(stretches, count, segments, segment);

		stretch->segments++;
		stretch->sealed += is_sealed(store, segment);
	}
	for (uint32_t n = 0; n < space_free(space); n++)
		stretch_of(stretches, count, segments,
			   n < space->count ? *space_ring_at(space, n) : space->away)
			->free++;
	/* What is only taken counts with its buffer. */
	for (uint32_t number = 0; number < store->geometry.rows; number++)
		if (store->rows[number].sealing.segment != NO_SEGMENT)
			stretch_of(stretches, count, segments, store->rows[number].sealing.segment)
				->free++;
}
