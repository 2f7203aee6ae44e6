/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What an emptied store begins with. The records of a transaction that empties the store are
 * gathered in memory, as pages; its commit programs them to free segments, notes these in NVRAM,
 * and then stores the word that the store is being emptied. From then on it is: a crash leaves the
 * word, and opening empties the store again and puts the records, which are read from the flash, to
 * the rows. Before the word nothing has happened.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/log.h"
#include "engine/muninn/nvram.h"
#include "engine/muninn/store.h"

/* A page of records. */
struct carry_page {
	uint8_t *data; /* page_bytes */
	uint32_t used;
	bool large;
	uint8_t large_header[RECORD_HEADER_BYTES];
};

struct carry {
	struct carry_page *pages;
	uint32_t count, room;   /* of pages */
	struct carry_note note; /* `pages` is set when it is written */
};

/* ---- in memory ---- */

int carry_begin(struct muninn_store *store)
{
	store->carry = calloc(1, sizeof(*store->carry));
	return store->carry ? 0 : -ENOMEM;
}

void carry_end(struct muninn_store *store)
{
	struct carry *carry = store->carry;

	for (uint32_t page = 0; carry && page < carry->count; page++)
		free(carry->pages[page].data);
	if (carry)
		free(carry->pages);
	free(carry);
	store->carry = NULL;
}

/*
 * Pages that the segments have room for. An emptied device has room for them once more, in its
 * rows.
 */
static uint32_t pages_max(const struct muninn_store *store)
{
	uint64_t segments = min_u64(CARRY_SEGMENTS_MAX, store->geometry.segments / 8 + 1);

	return (uint32_t)(segments * store->geometry.segment_pages);
}

/* A new page behind the last one, zeroed. */
static int add_page(struct muninn_store *store, struct carry_page **added)
{
	struct carry *carry = store->carry;

	if (carry->count == pages_max(store))
		return -ENOSPC;
	if (carry->count == carry->room) {
		uint32_t room = carry->room ? carry->room * 2 : 8;
		struct carry_page *pages = realloc(carry->pages, room * sizeof(*pages));

		if (!pages)
			return -ENOMEM;
		carry->pages = pages;
		carry->room = room;
	}
	*added = &carry->pages[carry->count];
	**added = (struct carry_page){ .data = calloc(1, store->geometry.page_bytes) };
	if (!(*added)->data)
		return -ENOMEM;
	carry->count++;
	return 0;
}

int carry_put(struct muninn_store *store, const struct new_record *record)
{
	struct carry *carry = store->carry;
	uint32_t length = record->header.length, bytes = RECORD_HEADER_BYTES + length;
	bool large = bytes > store->geometry.page_bytes;
	struct carry_page *page = carry->count ? &carry->pages[carry->count - 1] : NULL;
	uint8_t *header;
	int result;

	if (!page || large || page->large || page->used + bytes > store->geometry.page_bytes) {
		result = add_page(store, &page);
		if (result)
			return result;
	}
	page->large = large;
	header = large ? page->large_header : page->data + page->used;
	record_header_encode(&record->header, carry->note.serial, record->value, header);
	if (length)
		memcpy(large ? page->data : header + RECORD_HEADER_BYTES, record->value, length);
	page->used += large ? length : bytes;
	return 0;
}

static struct page_view view_of(const struct carry *carry, uint32_t page)
{
	const struct carry_page *at = &carry->pages[page];

	return (struct page_view){ .serial = carry->note.serial,
				   .data = at->data,
				   .used = at->used,
				   .large_header = at->large ? at->large_header : NULL };
}

int carry_get(const struct muninn_store *store, const struct record_key *key, uint64_t bound,
	      void *value, uint32_t capacity, struct record_info *info)
{
	const struct visibility visibility = { .bound = bound, .below = RECORD_NEWEST + 1 };
	const struct carry *carry = store->carry;

	/* What was put last counts. */
	for (uint32_t page = carry->count; page-- > 0;) {
		struct page_view view = view_of(carry, page);
		struct record_header header;
		struct page_record found;

		if (!page_find(&view, key, &visibility, &found))
			continue;
		record_header_decode(found.header, &header);
		*info = (struct record_info){ .sequence = header.sequence,
					      .length = header.length,
					      .flags = header.flags };
		if (header.length && capacity)
			memcpy(value, found.value, min_u64(header.length, capacity));
		return 0;
	}
	return -ENOENT;
}

/* ---- on flash ---- */

/* Programs the pages from `first` on to a segment; as many as fit. */
static int program_pages(struct muninn_store *store, uint32_t first, uint32_t segment)
{
	const struct muninn_geometry *geometry = &store->geometry;
	const struct carry *carry = store->carry;
	uint32_t count = (uint32_t)min_u64(carry->count - first, geometry->segment_pages);
	uint32_t usable = nand_spare_usable(nand_geometry(store->nand));

	for (uint32_t n = 0; n < count; n++) {
		const struct carry_page *page = &carry->pages[first + n];
		struct page_spare spare = { .kind = PAGE_KIND_CARRY,
					    .large = page->large,
					    .used = page->used,
					    .serial = carry->note.serial };
		uint8_t *bytes = store->spares + (uint64_t)n * usable;

		memcpy(spare.large_header, page->large_header, RECORD_HEADER_BYTES);
		page_spare_encode(&spare, bytes);
		store->ios[n] = (struct nand_page_io){ .page = segment_page(geometry, segment) + n,
						       .data = page->data,
						       .spare = bytes };
	}
	return nand_program(store->nand, NAND_CAUSE_METADATA, store->ios, count);
}

/* Programs the pages from `first` on to the next free segment that takes them. */
static int write_segment(struct muninn_store *store, uint32_t first)
{
	const struct muninn_geometry *geometry = &store->geometry;
	struct carry *carry = store->carry;
	uint32_t segment;
	int result;

	while ((result = space_take(&store->space, &segment)) == 0) {
		result = program_pages(store, first, segment);
		if (result == 0) {
			carry->note.segments[carry->note.segment_count++] = segment;
			return nand_sync(store->nand, segment * geometry->segment_blocks,
					 geometry->segment_blocks);
		}
		log_line(LOG_LEVEL_WARNING, "segment %u is retired: programming failed (error %d)",
			 segment, -result);
		store->space.retired++;
	}
	return result;
}

void carry_release(struct muninn_store *store)
{
	struct carry *carry = store->carry;

	while (carry->note.segment_count)
		space_release(&store->space, carry->note.segments[--carry->note.segment_count]);
}

int carry_write(struct muninn_store *store, uint64_t sequence)
{
	uint32_t pages_each = store->geometry.segment_pages;
	struct carry *carry = store->carry;
	int result = 0;

	carry->note.sequence = sequence;
	for (uint32_t first = 0; !result && first < carry->count; first += pages_each)
		result = write_segment(store, first);
	if (result) {
		carry_release(store);
		return result;
	}
	carry->note.pages = carry->count;
	carry_note_encode(&carry->note, store->nvram + NVRAM_CARRY_AT);
	return 0;
}

void carry_set_serial(struct muninn_store *store, uint64_t serial)
{
	store->carry->note.serial = serial;
}

/* Reads one page back and checks all of it. */
static int read_page(struct muninn_store *store, uint64_t number, struct carry_page *page)
{
	struct nand_page_io io = { .page = number, .data = page->data, .spare = store->spares };
	struct page_record record;
	struct page_spare spare;
	struct page_view view;
	uint32_t offset = 0;
	int result = nand_read(store->nand, NAND_CAUSE_RECOVERY, &io, 1);

	if (result)
		return result == -ENODATA ? -EBADMSG : result;
	if (!page_spare_decode(store->spares, store->geometry.page_bytes, &spare) ||
	    spare.kind != PAGE_KIND_CARRY || spare.serial != store->carry->note.serial)
		return -EBADMSG;
	page->used = spare.used;
	page->large = spare.large;
	memcpy(page->large_header, spare.large_header, RECORD_HEADER_BYTES);
	view = view_of(store->carry, (uint32_t)(page - store->carry->pages));
	while (page_next(&view, &offset, &record))
		if (!record_is_intact(record.header, view.serial, record.value))
			return -EBADMSG;
	return offset == view.used ? 0 : -EBADMSG;
}

/* Whether the note can be of this device. */
static bool is_possible(const struct muninn_store *store, const struct carry_note *note)
{
	const struct muninn_geometry *geometry = &store->geometry;

	for (uint32_t n = 0; n < note->segment_count; n++)
		if (note->segments[n] >= geometry->segments)
			return false;
	return note->segment_count == divide_up(note->pages, geometry->segment_pages);
}

int carry_load(struct muninn_store *store, struct error_text *error)
{
	const struct muninn_geometry *geometry = &store->geometry;
	struct carry_note *note;
	int result = carry_begin(store);

	if (result)
		return error_set(error, result, "out of memory for what a format carries");
	note = &store->carry->note;
	if (!carry_note_decode(note, store->nvram + NVRAM_CARRY_AT) || !is_possible(store, note))
		return error_set(error, -EBADMSG, "the note of it in NVRAM is damaged");
	for (uint32_t n = 0; !result && n < note->pages; n++) {
		uint32_t segment = note->segments[n / geometry->segment_pages];
		uint64_t number = segment_page(geometry, segment) + n % geometry->segment_pages;
		struct carry_page *page;

		result = add_page(store, &page);
		if (!result)
			result = read_page(store, number, page);
		if (result)
			error_set(error, result,
				  "page %llu of the flash is damaged or unreadable (error %d)",
				  (unsigned long long)number, -result);
	}
	return result;
}

void carry_mark(const struct muninn_store *store, bool *in_use)
{
	for (uint32_t n = 0; store->carry && n < store->carry->note.segment_count; n++)
		in_use[store->carry->note.segments[n]] = true;
}

/* ---- to the rows ---- */

int carry_place(struct muninn_store *store)
{
	const struct carry *carry = store->carry;
	int result = 0;

	for (uint32_t n = 0; !result && n < carry->count; n++) {
		struct page_view view = view_of(carry, n);
		struct page_record found;
		uint32_t offset = 0;

		while (!result && page_next(&view, &offset, &found)) {
			struct new_record record = { .value = found.value };

			record_header_decode(found.header, &record.header);
			result = store_place(store, &record, true);
		}
	}
	rows_end_touched(store);
	if (result || carry->note.sequence <= store->committed)
		return result;
	nvram_store64(store->nvram + STATE_COMMITTED_AT, carry->note.sequence);
	store->committed = carry->note.sequence;
	return 0;
}
