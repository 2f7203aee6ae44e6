/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Whether a buffer holds what was put there: all of it, or what a flush has promised. */
#include "engine/muninn/buffer_check.h"

#include "engine/muninn/buffer_slots.h"

/* ---- all of it ---- */

uint64_t buffer_sum(const struct buffer *buffer)
{
	uint64_t serial = buffer_stored_serial(buffer);
	uint64_t sum = sum_empty(serial, row_word(buffer));

	if (!stored_row(buffer))
		return sum;
	for (uint32_t page = 0; page < buffer->geometry->segment_pages; page++) {
		uint32_t slot = page_slot(buffer, page);

		if (slot < buffer_slots(buffer->geometry))
			sum ^= sum_page(page, slot, slot_word_of(buffer, slot, serial));
	}
	return sum;
}

/* Whether the records of a page are those that its slot's state word speaks of. */
static bool page_is_whole(const struct page_view *page, uint32_t fold)
{
	struct page_record record;
	uint32_t offset = 0;

	while (page_next(page, &offset, &record)) {
		if (!record_is_intact(record.header, page->serial, record.value))
			return false;
	}
	return offset == page->used && fold_until(page, page->used) == fold;
}

static struct buffer_damage damage_of(const struct buffer *buffer, uint32_t slot, uint32_t bytes)
{
	const uint8_t *header = slot_header(buffer, slot), *data = slot_data(buffer, slot);

	return (struct buffer_damage){
		.at = buffer->area_at + (uint64_t)(data - buffer->area),
		.bytes = bytes,
		.header_at = buffer->area_at + (uint64_t)(header - buffer->area),
	};
}

bool buffer_is_whole(const struct buffer *buffer, struct buffer_damage *damage)
{
	struct buffer stored = buffer_stored(buffer);

	for (uint32_t page = 0; page < buffer->geometry->segment_pages; page++) {
		uint32_t slot = page_slot(&stored, page);

		/* An entry of an empty page that names no slot is buffer_recover's. */
		if (slot >= buffer_slots(stored.geometry) || !slot_state(&stored, slot))
			continue;
		struct page_view view = slot_view(&stored, slot);

		*damage = damage_of(&stored, slot, view.used);
		if (view.used > stored.span.page_bytes ||
		    !page_is_whole(&view, (uint32_t)(slot_word(&stored, slot) >> 32)))
			return false;
	}
	return true;
}

/* ---- what flushes promise ---- */

static void stamp_page(struct buffer *buffer, uint32_t page, uint64_t sequence)
{
	uint8_t *stamp = slot_header(buffer, page_slot(buffer, page)) + SLOT_STAMP_AT;
	struct page_view view = buffer_page(buffer, page);
	bool damaged = false;
	uint32_t end = page_end_at(&view, sequence, false, &damaged);

	if (view.used && end != (get_le64(stamp) & UINT16_MAX))
		nvram_store64(stamp, slot_stamp(end, sequence));
	buffer->unstamped[page] = end != view.used;
}

void buffer_promise(struct buffer *buffer, uint64_t sequence, bool stamps)
{
	uint32_t pages = buffer->geometry->segment_pages;
	const bool *at = buffer->unstamped;

	buffer->promised = sequence;
	if (!stamps)
		return;
	/* Few of them have changed since the last flush. */
	while ((at = memchr(at, 1, pages - (size_t)(at - buffer->unstamped))) != NULL)
		stamp_page(buffer, (uint32_t)(at++ - buffer->unstamped), sequence);
}

bool buffer_is_sound(const struct buffer *buffer, uint64_t serials, struct buffer_damage *damage)
{
	uint32_t row = stored_row(buffer);

	*damage = (struct buffer_damage){ .at = buffer->area_at,
					  .bytes = buffer->geometry->slots_at,
					  .header_at = buffer->area_at + BUFFER_ROW_AT };
	if (row_word(buffer) != buffer_row_word(row) || buffer_stored_serial(buffer) >= serials)
		return false;
	for (uint32_t slot = 0; slot < buffer_slots(buffer->geometry); slot++) {
		uint64_t serial = get_le64(slot_header(buffer, slot) + SLOT_SERIAL_AT);

		damage->header_at = damage_of(buffer, slot, 0).header_at;
		if (serial == 0 || serial >= serials)
			return false;
	}
	return true;
}

/* Whether the records of a page are intact up to `end`. */
static bool page_reaches(const struct page_view *page, uint32_t end)
{
	struct page_record record;
	uint32_t offset = 0;

	while (offset < end && page_next(page, &offset, &record))
		if (!record_is_intact(record.header, page->serial, record.value))
			return false;
	return offset >= end;
}

bool buffer_keeps_promise(const struct buffer *buffer, uint64_t flushed,
			  struct buffer_damage *damage)
{
	struct buffer stored = buffer_stored(buffer);

	for (uint32_t page = 0; page < buffer->geometry->segment_pages; page++) {
		uint32_t slot = page_slot(&stored, page);

		if (slot >= buffer_slots(stored.geometry) ||
		    get_le64(slot_header(&stored, slot) + SLOT_SERIAL_AT) != stored.serial)
			continue;
		uint64_t stamp = get_le64(slot_header(&stored, slot) + SLOT_STAMP_AT);
		uint32_t end = stamp & UINT16_MAX;
		struct page_view view = slot_view(&stored, slot);

		*damage = damage_of(&stored, slot, end);
		if (end && stamp >> 16 <= flushed &&
		    (view.used > stored.span.page_bytes || !page_reaches(&view, end)))
			return false;
	}
	return true;
}
