/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The active segment of a row in NVRAM: how it begins, is cut, and is recovered. */
#include "engine/muninn/buffer.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/muninn/buffer_slots.h"

int buffer_create(struct buffer *buffer, const struct muninn_geometry *geometry, struct nand *nand,
		  uint32_t number)
{
	uint64_t area_at = geometry->buffers_at + number * geometry->buffer_bytes;
	uint8_t *nvram = nand_nvram(nand, NULL);

	*buffer = (struct buffer){
		.geometry = geometry,
		.nand = nand,
		.area = nvram + area_at,
		.area_at = area_at,
		.sum = nvram + buffer_sum_pair_at(geometry, number),
		.span = span_of(geometry, 0),
	};
	buffer->index = segment_index_create(geometry);
	buffer->absorbable =
		calloc(2 * (size_t)geometry->segment_pages, sizeof(*buffer->absorbable));
	buffer->unstamped = buffer->absorbable + geometry->segment_pages;
	buffer->lowest = malloc(geometry->segment_pages * sizeof(*buffer->lowest));
	if (buffer->index && buffer->absorbable && buffer->lowest)
		return 0;
	buffer_destroy(buffer);
	return -ENOMEM;
}

void buffer_destroy(struct buffer *buffer)
{
	segment_index_destroy(buffer->index);
	free(buffer->absorbable);
	free(buffer->lowest);
	*buffer = (struct buffer){ 0 };
}

void buffer_format(struct buffer *buffer)
{
	for (uint32_t page = 0; page < buffer->geometry->segment_pages; page++)
		put_le16(map_entry(buffer, page), (uint16_t)page);
	for (uint32_t slot = 0; slot < buffer_slots(buffer->geometry); slot++) {
		memset(slot_header(buffer, slot), 0, SLOT_HEADER_BYTES);
		put_le64(slot_header(buffer, slot) + SLOT_SERIAL_AT, SLOT_SERIAL_NEVER);
	}
	buffer->spare_slot = (uint16_t)buffer->geometry->segment_pages;
	buffer->span = span_of(buffer->geometry, 0);
}

static void forget_index(struct buffer *buffer, const struct row_index *row, uint32_t ahead,
			 uint64_t serial)
{
	segment_index_begin(buffer->index, row, ahead, serial);
	memset(buffer->absorbable, 0,
	       buffer->geometry->segment_pages * sizeof(*buffer->absorbable));
	for (uint32_t page = 0; page < buffer->geometry->segment_pages; page++)
		buffer->lowest[page] = UINT64_MAX;
	buffer->is_mixed = false;
	/* Whatever it will hold, now or later. */
	memset(buffer->unstamped, true,
	       buffer->geometry->segment_pages * sizeof(*buffer->unstamped));
}

/* Gives a page the spare slot. Both have nothing that counts. */
static void take_spare(struct buffer *buffer, uint32_t page)
{
	uint32_t slot = page_slot(buffer, page);

	slot_clear(buffer, buffer->spare_slot);
	slot_clear(buffer, slot);
	nvram_store16(map_entry(buffer, page), buffer->spare_slot);
	buffer->spare_slot = (uint16_t)slot;
}

/*
 * Where pages are longer there are fewer slots. Gives the first ones to pages that have others, and
 * one remains spare: with each store the map is one of all pages.
 */
static void take_first_slots(struct buffer *buffer)
{
	uint32_t pages = buffer->span.pages, low = 0, high = pages;

	while (low < pages || buffer->spare_slot > pages) {
		if (buffer->spare_slot > pages) {
			while (page_slot(buffer, high) > pages)
				high++;
			take_spare(buffer, high);
		}
		while (low < pages && page_slot(buffer, low) <= pages)
			low++;
		if (low < pages)
			take_spare(buffer, low);
	}
}

void buffer_start(struct buffer *buffer, uint64_t serial, uint32_t cell_bytes,
		  const struct row_index *row, uint32_t ahead)
{
	assert(serial > buffer->serial);
	buffer->serial = serial;
	sum_begin_whole(buffer->sum, sum_empty(serial, row_word(buffer)));
	nvram_store64(buffer->area + BUFFER_SERIAL_AT, serial);
	sum_end(buffer->sum);
	buffer->span = span_of(buffer->geometry, cell_bytes);
	take_first_slots(buffer);
	forget_index(buffer, row, ahead, serial);
	buffer->promised = 0;
	buffer->put_bytes = 0;
	buffer->used_bytes = 0;
	buffer->has_again = false;
	buffer->has_metadata = false;
}

uint32_t buffer_row(const struct buffer *buffer)
{
	return stored_row(buffer) - 1;
}

/* It is empty, or what it holds does not count from then on. */
static void store_row(struct buffer *buffer, uint32_t row)
{
	uint32_t word = buffer_row_word(row);

	sum_begin_whole(buffer->sum, sum_empty(buffer_stored_serial(buffer), word));
	nvram_store32(buffer->area + BUFFER_ROW_AT, word);
	sum_end(buffer->sum);
}

void buffer_give(struct buffer *buffer, uint32_t row)
{
	store_row(buffer, row + 1);
}

void buffer_take_back(struct buffer *buffer)
{
	store_row(buffer, 0);
	buffer->promised = 0;
}

uint64_t buffer_stored_serial(const struct buffer *buffer)
{
	return get_le64(buffer->area + BUFFER_SERIAL_AT);
}

/*
 * Ends a page at `end`, and leaves nothing behind it. Otherwise a failure of the host could bring
 * back the slot's header with records that were put there later, but not their bytes. What was cut
 * off would be taken for these records, though its numbers may be lower than those that a flush
 * promised.
 */
static void end_page(struct buffer *buffer, uint32_t page, uint32_t end)
{
	uint32_t slot = page_slot(buffer, page), state = slot_state(buffer, slot);
	struct page_view view = slot_view(buffer, slot);
	uint8_t *stamp = slot_header(buffer, slot) + SLOT_STAMP_AT;

	/* A format takes out what was promised. */
	if (end < (get_le64(stamp) & UINT16_MAX))
		nvram_store64(stamp, slot_stamp(end, get_le64(stamp) >> 16));
	slot_store(buffer, page, slot, slot_word(buffer, slot),
		   state_word(end, end ? fold_until(&view, end) : 0));
	if (!(state & SLOT_LARGE) && end < state)
		memset(slot_data(buffer, slot) + end, 0, state - end);
}

static bool cut_page(struct buffer *buffer, uint32_t page, uint64_t last, bool check)
{
	struct page_view view = buffer_page(buffer, page);
	bool damaged = false;
	uint32_t end = page_end_at(&view, last, check, &damaged);

	/* A large record ends at 0 or at `used`: once it is cut the page is simply empty. */
	if (end != view.used)
		end_page(buffer, page, end);
	return damaged;
}

/* Whether a page has a record that is larger than a cell. */
static bool has_larger(const struct buffer *buffer, const struct page_view *page)
{
	struct page_record record;

	for (uint32_t offset = 0; buffer->is_mixed && page_next(page, &offset, &record);)
		if (is_larger(buffer, record_length(record.header)))
			return true;
	return false;
}

/* Whether what a page has decides which pages may be used. */
static bool page_decides(const struct buffer *buffer, uint32_t page, const struct page_view *view)
{
	return buffer->span.cell_bytes && view->used &&
	       (page >= buffer->span.mixed_pages || has_larger(buffer, view));
}

bool buffer_cut(struct buffer *buffer, uint64_t last)
{
	bool is_outdated = false;

	for (uint32_t page = 0; page < buffer->geometry->segment_pages; page++) {
		struct page_view view = buffer_page(buffer, page);
		bool decides = page_decides(buffer, page, &view);

		cut_page(buffer, page, last, false);
		is_outdated |= decides && buffer_page(buffer, page).used != view.used;
	}
	return is_outdated;
}

/* How many records of a page have numbers below `before`, and how many have others. */
static uint32_t count_void(const struct page_view *page, uint64_t before, uint32_t *others)
{
	struct page_record record;
	uint32_t offset = 0, count = 0;

	*others = 0;
	while (page_next(page, &offset, &record)) {
		bool is_void = record_sequence(record.header) < before;

		count += is_void;
		*others += !is_void;
	}
	return count;
}

void buffer_drop_void(struct buffer *buffer, uint64_t before)
{
	for (uint32_t page = 0; page < buffer->geometry->segment_pages; page++) {
		struct page_view view = buffer_page(buffer, page);
		uint32_t others;

		if (count_void(&view, before, &others) == 0)
			continue;
		if (others)
			buffer_compact_void(buffer, page, before);
		else
			end_page(buffer, page, 0);
	}
}

void buffer_index_again(struct buffer *buffer, const struct row_index *row, uint32_t ahead)
{
	forget_index(buffer, row, ahead, buffer->serial);
	for (uint32_t page = 0; page < buffer->geometry->segment_pages; page++) {
		struct page_view view = buffer_page(buffer, page);

		buffer_index_page(buffer, page, &view);
	}
}

static bool is_zero(const uint8_t *bytes, uint32_t length)
{
	return length == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0);
}

void buffer_clear_rest(struct buffer *buffer)
{
	for (uint32_t slot = 0; slot <= buffer->span.pages; slot++) {
		bool counts = slot != buffer->spare_slot;
		uint32_t end = counts ? slot_state(buffer, slot) & ~SLOT_LARGE : 0;
		uint8_t *rest = slot_data(buffer, slot) + end;
		uint32_t length = buffer->span.page_bytes - end;

		/* What is zero already need not be made stable once more. */
		if (!is_zero(rest, length))
			memset(rest, 0, length);
	}
}

/*
 * Finds the spare slot: the one that the map does not name. -EINVAL when the map is no permutation.
 */
static int recover_map(struct buffer *buffer)
{
	uint32_t slots = buffer_slots(buffer->geometry);
	bool *named = calloc(slots, sizeof(*named));
	int result = named ? 0 : -ENOMEM;

	for (uint32_t page = 0; !result && page < buffer->geometry->segment_pages; page++) {
		uint32_t slot = page_slot(buffer, page);

		if (slot >= slots || named[slot])
			result = -EINVAL;
		else
			named[slot] = true;
	}
	for (uint32_t slot = 0; !result && slot < slots; slot++)
		if (!named[slot])
			buffer->spare_slot = (uint16_t)slot;
	free(named);
	return result;
}

void buffer_find_span(struct buffer *buffer)
{
	buffer->span = span_of(buffer->geometry, 0);
	for (uint32_t slot = 0; slot < buffer_slots(buffer->geometry); slot++)
		if (get_le64(slot_header(buffer, slot) + SLOT_SERIAL_AT) == buffer->serial) {
			buffer_take_span(buffer, slot);
			return;
		}
}

struct buffer buffer_stored(const struct buffer *buffer)
{
	struct buffer stored = *buffer;

	stored.serial = buffer_stored_serial(buffer);
	buffer_find_span(&stored);
	return stored;
}

void buffer_index_begin(struct buffer *buffer, const struct row_index *row, uint64_t serial)
{
	forget_index(buffer, row, 0, serial);
}

uint32_t buffer_index_page(struct buffer *buffer, uint32_t page, const struct page_view *view)
{
	struct page_record record;
	uint32_t offset = 0, indexed = 0;

	for (; page_next(view, &offset, &record); indexed = offset) {
		struct record_header header;

		record_header_decode(record.header, &header);
		struct key_hash hash = key_hash(&header.key, buffer->geometry->segment_pages);

		if (!segment_index_note_page(buffer->index, &hash, page))
			return indexed;
		if (header.flags & RECORD_ABSORB)
			buffer->absorbable[page] = true;
		buffer->has_metadata |= header.key.class != RECORD_CLASS_DATA;
		buffer->lowest[page] = min_u64(buffer->lowest[page], header.sequence);
		buffer->is_mixed |= is_larger(buffer, header.length);
	}
	return offset;
}

int buffer_rest(struct buffer *buffer)
{
	int result = recover_map(buffer);

	if (result == -EINVAL) {
		buffer_format(buffer);
		result = 0;
	}
	buffer->serial = buffer_stored_serial(buffer);
	return result;
}

static void count_used(struct buffer *buffer)
{
	buffer->used_bytes = 0;
	for (uint32_t page = 0; page < buffer->geometry->segment_pages; page++)
		buffer->used_bytes += word_used(slot_word(buffer, page_slot(buffer, page)));
}

/* How many bytes of a page a flush has promised. */
static uint32_t promised_bytes(const struct buffer *buffer, uint32_t page)
{
	const uint8_t *header = slot_header(buffer, page_slot(buffer, page));

	return get_le64(header + SLOT_STAMP_AT) & UINT16_MAX;
}

/*
 * A buffer with larger records has nothing on its last pages. If it has, a failure of the host has
 * brought back one or the other as it was before, which no flush has promised: what is promised of
 * a page stays where it is. Returns how many pages that were.
 */
static uint32_t drop_outdated(struct buffer *buffer)
{
	uint32_t first = buffer->span.mixed_pages, dropped = 0;
	bool are_promised = false;

	for (uint32_t page = first; buffer->is_mixed && page < buffer->span.pages; page++)
		are_promised |= buffer_page(buffer, page).used && promised_bytes(buffer, page);
	for (uint32_t page = 0; buffer->is_mixed && page < buffer->span.pages; page++) {
		struct page_view view = buffer_page(buffer, page);
		uint32_t end = promised_bytes(buffer, page);

		if (are_promised != (page < first) || view.used <= end ||
		    (are_promised && !has_larger(buffer, &view)))
			continue;
		end_page(buffer, page, end);
		dropped++;
	}
	return dropped;
}

int buffer_recover(struct buffer *buffer, const struct row_index *row, uint32_t ahead,
		   uint64_t committed)
{
	int result = recover_map(buffer);
	int damaged = 0;

	if (result)
		return result;
	buffer->serial = buffer_stored_serial(buffer);
	buffer_find_span(buffer);
	/* All pages have some, but that the host failed between two stores. */
	take_first_slots(buffer);
	slot_clear(buffer, buffer->spare_slot);
	forget_index(buffer, row, ahead, buffer->serial);
	count_used(buffer);
	for (uint32_t page = 0; page < buffer->geometry->segment_pages; page++) {
		uint32_t state = slot_state(buffer, page_slot(buffer, page));

		if ((state & ~SLOT_LARGE) > buffer->span.page_bytes)
			return -EINVAL;
		damaged += cut_page(buffer, page, committed, true);
		struct page_view view = buffer_page(buffer, page);
		bool is_there = page < buffer->span.pages;
		uint32_t indexed = is_there ? buffer_index_page(buffer, page, &view) : 0;

		/*
		 * The record is of another page: slots and map did not reach the host's storage
		 * together, so no flush had promised it.
		 */
		if (indexed != view.used) {
			end_page(buffer, page, indexed);
			damaged++;
		}
		/* A flush may have promised it. */
		if (indexed)
			buffer->promised = committed;
	}
	uint32_t outdated = drop_outdated(buffer);

	if (outdated)
		buffer_index_again(buffer, row, ahead);
	return damaged + (int)outdated;
}
