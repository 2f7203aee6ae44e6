/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What the area of a buffer holds, for those who change it (buffer.c) and check it. */
#ifndef MUNINN_ENGINE_MUNINN_BUFFER_SLOTS_H
#define MUNINN_ENGINE_MUNINN_BUFFER_SLOTS_H

#include "engine/muninn/buffer.h"
#include "engine/muninn/nvram.h"

/* ---- slots ---- */

static inline uint8_t *slot_header(const struct buffer *buffer, uint32_t slot)
{
	return buffer->area + buffer->geometry->slot_headers_at +
	       (uint64_t)slot * SLOT_HEADER_BYTES;
}

static inline uint8_t *slot_data(const struct buffer *buffer, uint32_t slot)
{
	return buffer->area + buffer->geometry->slots_at + (uint64_t)slot * buffer->span.page_bytes;
}

static inline uint8_t *map_entry(const struct buffer *buffer, uint32_t page)
{
	return buffer->area + BUFFER_MAP_AT + 2 * (uint64_t)page;
}

static inline uint32_t page_slot(const struct buffer *buffer, uint32_t page)
{
	return get_le16(map_entry(buffer, page));
}

/* The slot's state word; 0 when its contents are of an earlier segment than `serial`. */
static inline uint64_t slot_word_of(const struct buffer *buffer, uint32_t slot, uint64_t serial)
{
	const uint8_t *header = slot_header(buffer, slot);

	return get_le64(header + SLOT_SERIAL_AT) == serial ? get_le64(header + SLOT_STATE_AT) : 0;
}

static inline uint64_t slot_word(const struct buffer *buffer, uint32_t slot)
{
	return slot_word_of(buffer, slot, buffer->serial);
}

/* Its low half. */
static inline uint32_t slot_state(const struct buffer *buffer, uint32_t slot)
{
	return (uint32_t)slot_word(buffer, slot);
}

static inline void slot_claim(struct buffer *buffer, uint32_t slot)
{
	uint8_t *header = slot_header(buffer, slot);

	nvram_store64(header + SLOT_STATE_AT, 0);
	nvram_store64(header + SLOT_STAMP_AT, 0);
	nvram_store16(header + SLOT_CELL_AT, (uint16_t)buffer->span.cell_bytes);
	nvram_store64(header + SLOT_SERIAL_AT, buffer->serial);
}

/* How many bytes of a page a state word says are used. */
static inline uint32_t word_used(uint64_t word)
{
	return (uint32_t)word & ~SLOT_LARGE;
}

static inline struct page_view slot_view(const struct buffer *buffer, uint32_t slot)
{
	uint32_t state = slot_state(buffer, slot);

	/* Those behind its pages are in no buffer with cells. */
	if (slot > buffer->span.pages)
		return (struct page_view){ .serial = buffer->serial };
	return (struct page_view){
		.serial = buffer->serial,
		.data = slot_data(buffer, slot),
		.used = state & ~SLOT_LARGE,
		.large_header = state & SLOT_LARGE
					? slot_header(buffer, slot) + SLOT_LARGE_HEADER_AT
					: NULL,
	};
}

/* Whether a record with so many bytes of value is larger than a cell. */
static inline bool is_larger(const struct buffer *buffer, uint32_t length)
{
	return buffer->span.cell_bytes && RECORD_HEADER_BYTES + length > buffer->span.cell_bytes;
}

/* What it takes of a page with cells: its bytes, at least those of a cell. */
static inline uint32_t taken_bytes(const struct buffer *buffer, uint32_t length)
{
	return (uint32_t)max_u64(RECORD_HEADER_BYTES + length, buffer->span.cell_bytes);
}

/* How long the pages of what NVRAM has of a slot are. */
static inline void buffer_take_span(struct buffer *buffer, uint32_t slot)
{
	buffer->span =
		span_of(buffer->geometry, get_le16(slot_header(buffer, slot) + SLOT_CELL_AT));
}

/* The same of all slots with the serial of the buffer, which say the same. */
void buffer_find_span(struct buffer *buffer);

static inline uint32_t row_word(const struct buffer *buffer)
{
	return get_le32(buffer->area + BUFFER_ROW_AT);
}

/* Row + 1; 0: no row's. */
static inline uint32_t stored_row(const struct buffer *buffer)
{
	return row_word(buffer) & UINT16_MAX;
}

/* ---- what gathering and cutting are made of (buffer.c) ---- */

/* Whether a flush promised any of a page's records. */
bool buffer_is_promised(const struct buffer *buffer, const struct page_view *page);

/*
 * Drops from a page what later committed records of it, or (`anywhere`) of any page, supersede, and
 * no flush has promised. Returns the bytes that became free.
 */
uint32_t buffer_compact(struct buffer *buffer, uint32_t page, uint64_t committed, bool anywhere);

/* Drops the first bytes of a page, which are records that no flush has promised. */
void buffer_drop_first(struct buffer *buffer, uint32_t page, uint32_t bytes);

/* Drops records with numbers below `before`, also those that a flush has promised. */
void buffer_compact_void(struct buffer *buffer, uint32_t page, uint64_t before);

/* Empties the page of a large record that is superfluous and not promised. False: it is not. */
bool buffer_drop_large(struct buffer *buffer, uint32_t page, uint64_t committed);

void buffer_empty_page(struct buffer *buffer, uint32_t page);

/* Whether a page has space for a record with `length` bytes of value. */
bool buffer_page_has_space(const struct buffer *buffer, uint32_t page, uint32_t length);

/* Puts a record of the buffer behind those of a page, or on an empty one. There is space for it. */
void buffer_append(struct buffer *buffer, uint32_t page, const struct page_record *record);

/* Moves a large record to a page that is empty, or has one: one store makes the copy that page. */
void buffer_move_large(struct buffer *buffer, uint32_t from, uint32_t to);

/* ---- its sum ---- */

/* Words of the sum behind those of pages. */
enum { SUM_SERIAL = 1 << 30, SUM_ROW };

/* Of a buffer without records. */
static inline uint64_t sum_empty(uint64_t serial, uint32_t row_word)
{
	return sum_word(SUM_SERIAL, serial) ^ sum_word(SUM_ROW, row_word);
}

/* What a page adds: nothing while it has no records. So a new serial takes out all of them. */
static inline uint64_t sum_page(uint32_t page, uint32_t slot, uint64_t word)
{
	static_assert(MUNINN_SEGMENT_PAGES_MAX < 1 << 14, "a slot's number fits below the page's");

	return word ? sum_word((uint64_t)page << 14 | slot, word) : 0;
}

/* Changes the state word of the slot that a page has, which was `before`. */
static inline void slot_store(struct buffer *buffer, uint32_t page, uint32_t slot, uint64_t before,
			      uint64_t word)
{
	sum_begin(buffer->sum, sum_page(page, slot, before) ^ sum_page(page, slot, word));
	nvram_store64(slot_header(buffer, slot) + SLOT_STATE_AT, word);
	sum_end(buffer->sum);
	buffer->used_bytes += word_used(word);
	buffer->used_bytes -= word_used(before);
}

/*
 * Leaves nothing in a slot that no page has. A failure of the host may bring back a map that gives
 * it to a page without what was put there then; records of this very segment that were in it before
 * would be taken for the page's, and shadow newer ones in other pages.
 */
static inline void slot_clear(struct buffer *buffer, uint32_t slot)
{
	uint8_t *header = slot_header(buffer, slot);

	nvram_store64(header + SLOT_STATE_AT, 0);
	nvram_store64(header + SLOT_STAMP_AT, 0);
	if (slot <= buffer->span.pages)
		memset(slot_data(buffer, slot), 0, buffer->span.page_bytes);
}

static inline uint64_t state_word(uint32_t state, uint32_t fold)
{
	return (uint64_t)fold << 32 | state;
}

/*
 * Where the page's records with sequence numbers up to `last` end. `*damaged`: a record there fails
 * its CRC.
 */
static inline uint32_t page_end_at(const struct page_view *page, uint64_t last, bool check,
				   bool *damaged)
{
	struct page_record record;
	uint32_t offset = 0, end = 0;

	while (page_next(page, &offset, &record)) {
		if (record_sequence(record.header) > last)
			return end;
		if (check && !record_is_intact(record.header, page->serial, record.value)) {
			*damaged = true;
			return end;
		}
		end = offset;
	}
	if (end != page->used)
		*damaged = true;
	return end;
}

/* Whether nothing on a page may have to be cut off. */
static inline bool page_is_committed(const struct page_view *page, uint64_t committed)
{
	struct page_record record;

	for (uint32_t offset = 0; page_next(page, &offset, &record);)
		if (record_sequence(record.header) > committed)
			return false;
	return true;
}

/* What slot_fold makes of the records that end at or before `end`. */
static inline uint32_t fold_until(const struct page_view *page, uint32_t end)
{
	struct page_record record;
	uint32_t offset = 0, fold = 0;

	while (page_next(page, &offset, &record) && offset <= end)
		fold = slot_fold(fold, record_crc_of(record.header));
	return fold;
}

#endif
