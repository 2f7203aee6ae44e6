/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The active segment of a row in NVRAM: places and finds its records. */
#include "engine/muninn/buffer.h"

#include <errno.h>
#include <stdlib.h>

#include "common/log.h"
#include "engine/muninn/buffer_slots.h"

/* ---- slots ---- */

struct page_view buffer_page(const struct buffer *buffer, uint32_t page)
{
	return slot_view(buffer, page_slot(buffer, page));
}

/* ---- absorbing ---- */

/*
 * Whether a page, from offset `next` on, has a record with a number up to `committed` that makes
 * `old` superfluous.
 */
static bool page_supersedes(const struct page_view *page, uint32_t next,
			    const struct record_header *old, uint64_t committed)
{
	struct record_header later;
	struct page_record other;

	if (!(old->flags & RECORD_ABSORB))
		return false;
	while (page_next(page, &next, &other)) {
		if (!record_has_key(other.header, &old->key))
			continue;
		record_header_decode(other.header, &later);
		if (later.sequence > old->sequence && later.sequence <= committed &&
		    old->sequence >= later.epoch)
			return true;
	}
	return false;
}

/* Whether one of another page does. */
static bool is_superseded_elsewhere(const struct buffer *buffer, const struct page_view *own,
				    const struct record_header *old, uint64_t committed)
{
	struct key_hash hash = key_hash(&old->key, buffer->geometry->segment_pages);
	uint32_t place = UINT32_MAX;
	struct page_view other;

	while (buffer_next_page(buffer, &hash, RECORD_NEWEST, &place, &other))
		if (other.data != own->data && page_supersedes(&other, 0, old, committed))
			return true;
	return false;
}

/* Whether a later committed record of the page, or (`anywhere`) of any, makes it superfluous. */
static bool is_superseded(const struct buffer *buffer, const struct page_view *page, uint32_t next,
			  const struct page_record *record, uint64_t committed, bool anywhere)
{
	struct record_header old;

	record_header_decode(record->header, &old);
	return (old.flags & RECORD_ABSORB) &&
	       (page_supersedes(page, next, &old, committed) ||
		(anywhere && is_superseded_elsewhere(buffer, page, &old, committed)));
}

static int sync_at(const struct buffer *buffer, const uint8_t *from, uint64_t bytes)
{
	return nand_nvram_sync(buffer->nand, buffer->area_at + (uint64_t)(from - buffer->area),
			       bytes);
}

static int sync_slot(const struct buffer *buffer, uint32_t slot)
{
	int result = sync_at(buffer, slot_data(buffer, slot), buffer->span.page_bytes);

	return result ? result : sync_at(buffer, slot_header(buffer, slot), SLOT_HEADER_BYTES);
}

bool buffer_is_promised(const struct buffer *buffer, const struct page_view *page)
{
	struct page_record record;
	uint32_t offset = 0;

	while (buffer->promised && page_next(page, &offset, &record))
		if (record_sequence(record.header) <= buffer->promised)
			return true;
	return false;
}

/* What compaction drops of a page: records with numbers below `void_before`, ... */
struct dropping {
	uint64_t void_before;
	uint64_t committed; /* ... that later ones up to this number supersede, ... */
	bool anywhere;      /* ... which may be on other pages, ... */
	uint32_t first;     /* ... and that begin below this offset */
};

static bool is_dropped(const struct buffer *buffer, const struct page_view *page, uint32_t next,
		       const struct page_record *record, const struct dropping *dropping)
{
	uint32_t bytes = RECORD_HEADER_BYTES + record_length(record->header);

	return record_sequence(record->header) < dropping->void_before ||
	       next - bytes < dropping->first ||
	       is_superseded(buffer, page, next, record, dropping->committed, dropping->anywhere);
}

/*
 * The bytes of a page's records before the first one that is dropped, behind which *offset is then;
 * all that are used when none is. Most pages have none: they need no copy.
 */
static uint32_t bytes_before_dropped(const struct buffer *buffer, const struct page_view *page,
				     uint32_t *offset, const struct dropping *dropping)
{
	struct page_record record;
	uint32_t kept = *offset;

	for (; page_next(page, offset, &record); kept = *offset)
		if (is_dropped(buffer, page, *offset, &record, dropping))
			return kept;
	return kept;
}

/*
 * Returns the bytes that became free. What a flush promised stays as it is until the buffer is
 * sealed: otherwise somebody would have to wait for the host here. Only a format, which nobody gets
 * round, waits.
 */
static uint32_t compact_page(struct buffer *buffer, uint32_t page, const struct dropping *dropping)
{
	uint32_t slot = page_slot(buffer, page);
	struct page_view view = slot_view(buffer, slot);
	uint8_t *to = slot_data(buffer, buffer->spare_slot);
	struct page_record record;
	uint32_t offset = 0, used, fold;
	uint64_t word;

	if (view.large_header)
		return 0;
	if (!dropping->void_before && buffer_is_promised(buffer, &view)) {
		buffer->absorbable[page] = false;
		return 0;
	}
	used = bytes_before_dropped(buffer, &view, &offset, dropping);
	if (used == view.used) {
		buffer->absorbable[page] = false; /* until the next such record comes */
		return 0;
	}
	slot_claim(buffer, buffer->spare_slot);
	memcpy(to, view.data, used);
	fold = fold_until(&view, used);
	while (page_next(&view, &offset, &record)) {
		uint32_t bytes = RECORD_HEADER_BYTES + record_length(record.header);

		if (is_dropped(buffer, &view, offset, &record, dropping))
			continue;
		memcpy(to + used, record.header, bytes);
		used += bytes;
		fold = slot_fold(fold, record_crc_of(record.header));
	}
	memset(to + used, 0, buffer->span.page_bytes - used);
	word = state_word(used, fold);
	nvram_store64(slot_header(buffer, buffer->spare_slot) + SLOT_STATE_AT, word);
	if (dropping->void_before && sync_slot(buffer, buffer->spare_slot)) {
		slot_clear(buffer, buffer->spare_slot);
		return 0;
	}
	sum_begin(buffer->sum, sum_page(page, slot, slot_word(buffer, slot)) ^
				       sum_page(page, buffer->spare_slot, word));
	nvram_store16(map_entry(buffer, page), buffer->spare_slot);
	sum_end(buffer->sum);
	/*
	 * Only now may the old slot be written again: no map on stable storage names it any more.
	 * Of pages that nothing was promised of it may name any.
	 */
	if (dropping->void_before && sync_at(buffer, map_entry(buffer, page), 2))
		log_line(LOG_LEVEL_ERROR,
			 "%s: NVRAM can't be made stable; flushed data may not survive a power "
			 "failure of this host",
			 nand_path(buffer->nand));
	used = view.used - used;
	buffer->used_bytes -= used;
	slot_clear(buffer, slot);
	buffer->spare_slot = (uint16_t)slot;
	buffer->unstamped[page] = true;
	return used;
}

uint32_t buffer_compact(struct buffer *buffer, uint32_t page, uint64_t committed, bool anywhere)
{
	const struct dropping superseded = { .committed = committed, .anywhere = anywhere };

	return compact_page(buffer, page, &superseded);
}

void buffer_drop_first(struct buffer *buffer, uint32_t page, uint32_t bytes)
{
	compact_page(buffer, page, &(struct dropping){ .first = bytes });
}

void buffer_compact_void(struct buffer *buffer, uint32_t page, uint64_t before)
{
	compact_page(buffer, page, &(struct dropping){ .void_before = before });
}

/* ---- absorbing large records, which have a page each ---- */

void buffer_empty_page(struct buffer *buffer, uint32_t page)
{
	uint32_t slot = page_slot(buffer, page);

	slot_store(buffer, page, slot, slot_word(buffer, slot), 0);
	memset(slot_data(buffer, slot), 0, buffer->span.page_bytes);
}

bool buffer_drop_large(struct buffer *buffer, uint32_t page, uint64_t committed)
{
	struct page_view view = buffer_page(buffer, page);
	struct record_header old;

	if (!view.large_header || buffer_is_promised(buffer, &view))
		return false;
	record_header_decode(view.large_header, &old);
	if (!(old.flags & RECORD_ABSORB) ||
	    !is_superseded_elsewhere(buffer, &view, &old, committed))
		return false;
	buffer_empty_page(buffer, page);
	return true;
}

static bool page_has_key(const struct page_view *page, const struct record_key *key)
{
	struct page_record record;

	for (uint32_t offset = 0; page_next(page, &offset, &record);)
		if (record_has_key(record.header, key))
			return true;
	return false;
}

/*
 * The next lower place of a key where it has anything, and what. False: there is none, or not a
 * large record that no flush has promised.
 */
static bool next_large(const struct buffer *buffer, const struct key_hash *hash,
		       const struct record_key *key, uint32_t *place, uint32_t *page,
		       struct record_header *header)
{
	while (segment_index_find(buffer->index, hash, NULL, place, page)) {
		struct page_view view = buffer_page(buffer, *page);

		if (!page_has_key(&view, key))
			continue;
		if (!view.large_header)
			return false;
		record_header_decode(view.large_header, header);
		return !buffer_is_promised(buffer, &view);
	}
	return false;
}

void buffer_move_large(struct buffer *buffer, uint32_t from, uint32_t to)
{
	struct page_view view = buffer_page(buffer, from);
	uint32_t spare = buffer->spare_slot, old = page_slot(buffer, to);
	uint64_t word = slot_word(buffer, page_slot(buffer, from));
	uint8_t *data = slot_data(buffer, spare);

	assert(view.large_header);
	slot_claim(buffer, spare);
	memcpy(data, view.data, view.used);
	memset(data + view.used, 0, buffer->span.page_bytes - view.used);
	memcpy(slot_header(buffer, spare) + SLOT_LARGE_HEADER_AT, view.large_header,
	       RECORD_HEADER_BYTES);
	nvram_store64(slot_header(buffer, spare) + SLOT_STATE_AT, word);
	sum_begin(buffer->sum,
		  sum_page(to, old, slot_word(buffer, old)) ^ sum_page(to, spare, word));
	nvram_store16(map_entry(buffer, to), (uint16_t)spare);
	sum_end(buffer->sum);
	buffer->used_bytes += word_used(word);
	buffer->used_bytes -= word_used(slot_word(buffer, old));
	buffer->lowest[to] = record_sequence(view.large_header);
	slot_clear(buffer, old);
	buffer->spare_slot = (uint16_t)old;
	buffer_empty_page(buffer, from);
}

/*
 * Makes space for a new large record of a key at its last place. If the one there is committed and
 * has superseded the one before it, it takes that one's page. So a page that is written again and
 * again takes two pages of the buffer, whose places are in the order of the numbers.
 */
static void move_down(struct buffer *buffer, const struct key_hash *hash,
		      const struct record_key *key, uint64_t committed)
{
	uint32_t place = UINT32_MAX, last, before;
	struct record_header newest, old;
	struct page_view view;

	if (!next_large(buffer, hash, key, &place, &last, &newest) ||
	    !next_large(buffer, hash, key, &place, &before, &old))
		return;
	view = buffer_page(buffer, last);
	if (page_supersedes(&view, 0, &old, committed))
		buffer_move_large(buffer, last, before);
}

/* ---- putting ---- */

/* Whether one more record has space among the cells of a page. */
static bool has_cells(const struct buffer *buffer, uint32_t page, uint32_t length)
{
	struct page_view view = buffer_page(buffer, page);
	uint32_t taken = taken_bytes(buffer, length);
	struct page_record record;

	for (uint32_t offset = 0; page_next(&view, &offset, &record);)
		taken += taken_bytes(buffer, record_length(record.header));
	return taken <= buffer->span.page_bytes;
}

bool buffer_page_has_space(const struct buffer *buffer, uint32_t page, uint32_t length)
{
	const struct span *span = &buffer->span;
	bool is_mixed = buffer->is_mixed || is_larger(buffer, length);
	uint32_t state = slot_state(buffer, page_slot(buffer, page));

	if (page >= (is_mixed ? span->mixed_pages : span->pages))
		return false;
	if (record_is_large(buffer->geometry, length))
		return state == 0;
	return !(state & SLOT_LARGE) &&
	       state + RECORD_HEADER_BYTES + length <= buffer->span.page_bytes &&
	       (!span->cell_bytes || has_cells(buffer, page, length));
}

enum { LINE_BYTES = 64 }; /* of a cache, mostly */

void buffer_append(struct buffer *buffer, uint32_t page, const struct page_record *record)
{
	uint32_t slot = page_slot(buffer, page);
	uint64_t word = slot_word(buffer, slot);
	uint32_t state = (uint32_t)word, fold = (uint32_t)(word >> 32);
	uint32_t length = record_length(record->header);
	uint8_t *header, *value;

	if (state == 0)
		slot_claim(buffer, slot);
	if (record_is_large(buffer->geometry, length)) {
		header = slot_header(buffer, slot) + SLOT_LARGE_HEADER_AT;
		value = slot_data(buffer, slot);
		state = SLOT_LARGE | length;
	} else {
		header = slot_data(buffer, slot) + state;
		value = header + RECORD_HEADER_BYTES;
		state += RECORD_HEADER_BYTES + length;
	}
	memcpy(header, record->header, RECORD_HEADER_BYTES);
	buffer->is_mixed |= is_larger(buffer, length);
	buffer->lowest[page] = min_u64(buffer->lowest[page], record_sequence(record->header));
	buffer->has_metadata |= record_class(record->header) != RECORD_CLASS_DATA;
	if (length)
		memcpy(value, record->value, length);
	slot_store(buffer, page, slot, word,
		   state_word(state, slot_fold(fold, record_crc_of(header))));
	buffer->unstamped[page] = true;
	/* The next record is mostly as long, and its memory in no cache. */
	for (uint32_t at = 0; at < RECORD_HEADER_BYTES + length; at += LINE_BYTES)
		__builtin_prefetch(value + length + at, 1);
}

static void append_to_page(struct buffer *buffer, uint32_t page, const struct new_record *record)
{
	uint8_t header[RECORD_HEADER_BYTES];

	record_header_encode(&record->header, buffer->serial, record->value, header);
	buffer_append(buffer, page,
		      &(struct page_record){ .header = header, .value = record->value });
	if (record->header.flags & RECORD_ABSORB)
		buffer->absorbable[page] = true;
}

/* What buffer_gather goes by; before the record is noted. */
static void count_put(struct buffer *buffer, const struct key_hash *hash,
		      const struct new_record *record)
{
	uint32_t place = UINT32_MAX, page;

	buffer->put_bytes += RECORD_HEADER_BYTES + record->header.length;
	if (!buffer->has_again && record->header.flags & RECORD_ABSORB)
		buffer->has_again = segment_index_find(buffer->index, hash, NULL, &place, &page);
}

/* Drops what is superseded in a page. Whether a record has space there then. */
static bool make_page_space(struct buffer *buffer, uint32_t page, uint32_t length,
			    uint64_t committed)
{
	if (!buffer->absorbable[page])
		return false;
	if (buffer_drop_large(buffer, page, committed))
		return buffer_page_has_space(buffer, page, length);
	return !record_is_large(buffer->geometry, length) &&
	       buffer_compact(buffer, page, committed, false) &&
	       buffer_page_has_space(buffer, page, length);
}

/*
 * Whether no record fits on a page, and none of it will be dropped before one of its keys is put
 * again.
 */
static bool page_is_full(const struct buffer *buffer, uint32_t page, uint64_t committed)
{
	struct page_view view = buffer_page(buffer, page);

	return !view.large_header && !buffer->absorbable[page] &&
	       !buffer_page_has_space(buffer, page, 0) && page_is_committed(&view, committed);
}

/* Whether the pages are empty that have to be so if any record is larger than a cell. */
static bool may_be_mixed(const struct buffer *buffer)
{
	for (uint32_t page = buffer->span.mixed_pages; page < buffer->span.pages; page++)
		if (slot_state(buffer, page_slot(buffer, page)))
			return false;
	return true;
}

int buffer_put(struct buffer *buffer, const struct key_hash *hash, const struct new_record *record,
	       uint64_t committed)
{
	uint32_t length = record->header.length;

	if (is_larger(buffer, length) && !buffer->is_mixed && !may_be_mixed(buffer))
		return -ENOSPC;
	if (record_is_large(buffer->geometry, length) && record->header.flags & RECORD_ABSORB)
		move_down(buffer, hash, &record->header.key, committed);
	for (uint32_t page, place = segment_index_first(buffer->index, hash);
	     segment_index_next(buffer->index, hash, &place, &page); place++) {
		if (!buffer_page_has_space(buffer, page, length) &&
		    !make_page_space(buffer, page, length, committed)) {
			if (page_is_full(buffer, page, committed))
				segment_index_fill(buffer->index, page);
			continue;
		}
		append_to_page(buffer, page, record);
		count_put(buffer, hash, record);
		segment_index_note(buffer->index, hash, place);
		return 0;
	}
	return -ENOSPC;
}

/* Counts the records of a page by their sizes. */
static void count_sizes(const struct buffer *buffer, uint32_t page, struct span_sizes *sizes)
{
	struct page_view view = buffer_page(buffer, page);
	struct page_record record;

	sizes->pages += view.used > 0;
	for (uint32_t offset = 0; page_next(&view, &offset, &record);)
		span_count(buffer->geometry, RECORD_HEADER_BYTES + record_length(record.header),
			   sizes);
}

/* From so many pages ahead the first header is fetched: nobody has used it for long. */
enum { PAGES_AHEAD = 4 };

uint32_t buffer_best_cell(const struct buffer *buffer)
{
	const struct muninn_geometry *geometry = buffer->geometry;
	uint32_t pages = geometry->segment_pages;
	struct span_sizes sizes = { 0 };
	struct span now = buffer->span, span;

	/* Mostly pages are well filled, and nobody has to look at the records. */
	if (!index_arranges(geometry) ||
	    (!buffer->span.cell_bytes && span_is_full(geometry, buffer->used_bytes)))
		return 0;
	for (uint32_t page = 0; page < pages; page++) {
		uint32_t ahead = (uint32_t)min_u64(page + PAGES_AHEAD, pages - 1);

		__builtin_prefetch(buffer_page(buffer, ahead).data);
		count_sizes(buffer, page, &sizes);
	}
	if (buffer->is_mixed)
		now.pages = now.mixed_pages;
	span = span_of(geometry, span_choose(geometry, &now, &sizes));
	return index_spans(geometry, span.pages * span.page_cells) ? span.cell_bytes : 0;
}

uint64_t buffer_used_bytes(const struct buffer *buffer)
{
	return buffer->used_bytes;
}

uint64_t buffer_metadata_bytes(const struct buffer *buffer)
{
	struct page_record record;
	uint64_t bytes = 0;

	for (uint32_t page = 0; buffer->has_metadata && page < buffer->geometry->segment_pages;
	     page++) {
		struct page_view view = buffer_page(buffer, page);

		for (uint32_t offset = 0; page_next(&view, &offset, &record);)
			if (record_class(record.header) != RECORD_CLASS_DATA)
				bytes += RECORD_HEADER_BYTES + record_length(record.header);
	}
	return bytes;
}

bool buffer_is_half_full(const struct buffer *buffer)
{
	const struct muninn_geometry *geometry = buffer->geometry;

	return buffer_used_bytes(buffer) * 2 >
	       (uint64_t)geometry->segment_pages * geometry->page_bytes;
}

bool buffer_is_half_used(const struct buffer *buffer)
{
	uint32_t pages = buffer->geometry->segment_pages, used = 0;

	for (uint32_t page = 0; page < pages; page++)
		used += word_used(slot_word(buffer, page_slot(buffer, page))) > 0;
	return 2 * used >= pages;
}

/* ---- finding ---- */

bool buffer_next_page(const struct buffer *buffer, const struct key_hash *hash, uint64_t bound,
		      uint32_t *place, struct page_view *page)
{
	const struct pages_up_to wanted = { buffer->lowest, bound };
	uint32_t number;

	if (!segment_index_find(buffer->index, hash, &wanted, place, &number))
		return false;
	*page = buffer_page(buffer, number);
	return true;
}
