/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Leaves out what is damaged of an NVRAM. Each record has a checksum with the serial of its
 * segment, so whatever passes that was put there, and may stay. What was beside it may have held
 * newer records of any key that has a place there: look-ups can't know, so those keys are noted.
 */
#include "engine/muninn/mend.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/muninn/buffer_check.h"
#include "engine/muninn/buffer_slots.h"
#include "engine/muninn/header.h"
#include "engine/muninn/outage.h"
#include "engine/muninn/row.h"
#include "engine/muninn/sums.h"

/* Pages of a segment that have a key which may be on any other one, too: less than it takes. */
#define SPREAD_FROM 4

/* ---- what is lost ---- */

/*
 * Whether the key may have been put to a page that is none of its hash functions': on devices whose
 * hot keys are spread, those are put there that have used up some of their functions.
 */
static bool may_be_spread(const struct muninn_store *store, const struct row *row,
			  const struct key_hash *hash, uint64_t serial)
{
	const struct buffer *buffer =
		row_has_newer(row) && row->newer.serial == serial ? &row->newer : &row->buffer;
	uint32_t place = UINT32_MAX, places = 0;
	struct page_view page;

	if (!index_spreads(&store->geometry))
		return false;
	if (!buffer->area || buffer->serial != serial)
		return true;
	while (buffer_next_page(buffer, hash, RECORD_NEWEST, &place, &page))
		places++;
	return places >= SPREAD_FROM;
}

enum record_certainty lost_has(struct record_store *store_, const struct record_key *key)
{
	const struct muninn_store *store = (struct muninn_store *)store_;
	const struct lost *lost = &store->lost;
	struct key_hash hash;
	uint32_t row;

	if (lost->all)
		return RECORD_ALL_UNCERTAIN;
	if (!lost->count)
		return RECORD_CERTAIN;
	hash = key_hash(key, store->geometry.segment_pages);
	row = row_of_key(store, key, &hash);
	for (uint32_t n = 0; n < lost->count; n++) {
		const struct lost_place *place = &lost->places[n];

		if (place->row == row &&
		    (place->page == LOST_ALL_PAGES ||
		     index_may_place(&store->geometry, &hash, place->serial, place->page) ||
		     may_be_spread(store, &store->rows[row], &hash, place->serial)))
			return RECORD_UNCERTAIN;
	}
	return RECORD_CERTAIN;
}

/* ---- buffers ---- */

struct mending {
	struct muninn_store *store;
	struct findings *findings;
	struct lost *lost;
	/* After a failure of the host: what the last flush promised; serials that can't be. */
	uint64_t flushed, serials;
};

/* The row that the records of a buffer belong to, whatever its header says. False: it has none. */
static bool row_by_records(const struct mending *mending, const struct buffer *buffer,
			   uint32_t *row)
{
	const struct muninn_geometry *geometry = &mending->store->geometry;
	struct buffer stored = *buffer;

	for (uint32_t slot = 0; slot < buffer_slots(geometry); slot++) {
		struct record_header header;
		struct page_record record;
		struct page_view view;
		struct key_hash hash;
		uint32_t offset = 0;

		stored.serial = get_le64(slot_header(buffer, slot) + SLOT_SERIAL_AT);
		buffer_take_span(&stored, slot);
		view = slot_view(&stored, slot);
		if (view.used > stored.span.page_bytes || !page_next(&view, &offset, &record) ||
		    !record_is_intact(record.header, view.serial, record.value))
			continue;
		record_header_decode(record.header, &header);
		hash = key_hash(&header.key, geometry->segment_pages);
		*row = row_of_key(mending->store, &header.key, &hash);
		return true;
	}
	return false;
}

static uint64_t number_of(const struct mending *mending, const struct buffer *buffer)
{
	const struct muninn_geometry *geometry = &mending->store->geometry;

	return (buffer->area_at - geometry->buffers_at) / geometry->buffer_bytes;
}

void mend_empty(struct buffer *buffer)
{
	buffer_take_back(buffer);
	buffer_format(buffer);
	nvram_store64(buffer->area + BUFFER_SERIAL_AT, SLOT_SERIAL_NEVER);
}

static bool was_never_used(const struct buffer *buffer)
{
	for (uint32_t slot = 0; slot < buffer_slots(buffer->geometry); slot++)
		if (get_le64(slot_header(buffer, slot) + SLOT_SERIAL_AT) != SLOT_SERIAL_NEVER)
			return false;
	return true;
}

/*
 * A buffer whose header is none. What its slots hold may be of an earlier segment. Without a record
 * in them it may have been any row's.
 */
static void drop_buffer(struct mending *mending, struct buffer *buffer)
{
	uint32_t row;

	if (row_by_records(mending, buffer, &row)) {
		findings_add(mending->findings, FINDING_BUFFER,
			     "the header of buffer %llu in NVRAM, of row %u, is damaged (byte %llu "
			     "of its file)",
			     (unsigned long long)number_of(mending, buffer), row,
			     (unsigned long long)(NAND_NVRAM_FILE_AT + buffer->area_at));
		lost_note(mending->lost, row, LOST_ALL_PAGES, 0);
	} else if (!was_never_used(buffer)) {
		findings_add(mending->findings, FINDING_BUFFER,
			     "the headers of buffer %llu in NVRAM are damaged, and nothing tells "
			     "whose it was (byte %llu of its file)",
			     (unsigned long long)number_of(mending, buffer),
			     (unsigned long long)(NAND_NVRAM_FILE_AT + buffer->area_at));
		mending->lost->all = true;
	}
	mend_empty(buffer);
}

/*
 * After a failure of the host what no flush has promised may be missing, and opening cuts it off.
 * Returns whether more of a page is missing.
 */
static bool breaks_promise(struct buffer *stored, uint32_t slot, uint64_t flushed)
{
	uint64_t stamp = get_le64(slot_header(stored, slot) + SLOT_STAMP_AT);
	struct page_view view = slot_view(stored, slot);
	bool damaged = false;
	uint32_t end = 0;

	if (get_le64(slot_header(stored, slot) + SLOT_SERIAL_AT) != stored->serial ||
	    stamp >> 16 > flushed)
		return false;
	if (view.used <= stored->span.page_bytes)
		end = page_end_at(&view, RECORD_NEWEST, true, &damaged);
	if (end >= (stamp & UINT16_MAX))
		return false;
	nvram_store64(slot_header(stored, slot) + SLOT_STAMP_AT, 0);
	return true;
}

/* Ends a page of a buffer where its records stop being whole. Returns whether it had more. */
static bool mend_page(struct buffer *stored, uint32_t slot)
{
	uint8_t *header = slot_header(stored, slot);
	struct page_view view = slot_view(stored, slot);
	uint32_t end = 0, large = view.large_header ? SLOT_LARGE : 0;
	bool damaged = view.used > stored->span.page_bytes;

	if (!damaged)
		end = page_end_at(&view, RECORD_NEWEST, true, &damaged);
	if (!damaged && fold_until(&view, end) == (uint32_t)(slot_word(stored, slot) >> 32))
		return false;
	/* All of it: which of its records are missing can't be told. */
	nvram_store64(header + SLOT_STATE_AT,
		      end ? state_word(end | large, fold_until(&view, end)) : 0);
	nvram_store64(header + SLOT_STAMP_AT, 0);
	return true;
}

/* The slots of a buffer with a sound header. */
static void mend_slots(struct mending *mending, struct buffer *buffer, uint32_t row)
{
	struct buffer stored = buffer_stored(buffer);

	for (uint32_t page = 0; page < stored.geometry->segment_pages; page++) {
		uint32_t slot = page_slot(&stored, page);

		bool has = slot < buffer_slots(stored.geometry);

		if (has && mending->store->host_failed)
			has = breaks_promise(&stored, slot, mending->flushed);
		else if (has)
			has = mend_page(&stored, slot);
		if (!has)
			continue;
		findings_add(
			mending->findings, FINDING_BUFFER,
			"page %u of the buffer of row %u is damaged (byte %llu of the NVRAM "
			"file)",
			page, row,
			(unsigned long long)(NAND_NVRAM_FILE_AT + buffer->area_at +
					     (uint64_t)(slot_data(&stored, slot) - buffer->area)));
		lost_note(mending->lost, row, page, stored.serial);
	}
}

static bool map_is_sound(const struct buffer *buffer)
{
	struct buffer copy = *buffer;
	bool named[MUNINN_SEGMENT_PAGES_MAX + 1] = { false };

	for (uint32_t page = 0; page < copy.geometry->segment_pages; page++) {
		uint32_t slot = page_slot(&copy, page);

		if (slot >= buffer_slots(copy.geometry) || named[slot])
			return false;
		named[slot] = true;
	}
	return true;
}

static void mend_buffer(struct mending *mending, struct buffer *buffer)
{
	struct muninn_store *store = mending->store;
	uint32_t row = buffer_row(buffer);
	bool fits = store->host_failed || sum_fits(buffer->sum, buffer_sum(buffer));
	struct buffer_damage damage;

	if (row_word(buffer) != buffer_row_word(stored_row(buffer)) || !map_is_sound(buffer) ||
	    (store->host_failed && !buffer_is_sound(buffer, mending->serials, &damage))) {
		drop_buffer(mending, buffer);
		return;
	}
	if (row >= store->geometry.rows) {
		if (!fits)
			drop_buffer(mending, buffer);
		return;
	}
	if (!fits) {
		findings_add(mending->findings, FINDING_BUFFER,
			     "the headers of buffer %llu in NVRAM, of row %u, contradict their sum "
			     "(byte %llu of its file)",
			     (unsigned long long)number_of(mending, buffer), row,
			     (unsigned long long)(NAND_NVRAM_FILE_AT + buffer->area_at));
		lost_note(mending->lost, row, LOST_ALL_PAGES, 0);
	}
	mend_slots(mending, buffer, row);
}

/* A row without a buffer had one. */
static void note_rows_without(struct mending *mending)
{
	struct muninn_store *store = mending->store;

	for (uint32_t row = 0; row < store->geometry.rows; row++) {
		bool has = false;

		for (uint32_t n = 0; n < store->free_buffer_count; n++)
			has |= buffer_row(&store->free_buffers[n]) == row;
		if (!has)
			lost_note(mending->lost, row, LOST_ALL_PAGES, 0);
	}
}

/* ---- what is beside the buffers ---- */

static bool attach_groups(const struct muninn_store *store)
{
	for (uint32_t number = 0; number < store->geometry.rows; number++)
		if (row_index_attach(store->rows[number].index))
			return false;
	return true;
}

static int mend(struct mending *mending, const struct record_options *records)
{
	struct muninn_store *store = mending->store;
	struct error_text error;
	bool others_fit = attach_groups(store);

	outage_look(store, records);
	mending->flushed = state_read(store, STATE_FLUSHED_AT);
	mending->serials = state_read(store, STATE_NEXT_SERIAL_AT) + SERIALS_AHEAD_MAX;
	if (others_fit && !store->host_failed)
		others_fit = sums_check_others(store, &error) == 0;
	for (uint32_t n = 0; n < store->free_buffer_count; n++)
		mend_buffer(mending, &store->free_buffers[n]);
	note_rows_without(mending);
	if (!others_fit)
		return -EINVAL;
	if (!store->host_failed) {
		sums_set(store);
		outage_note_boot(store);
	}
	return 0;
}

int mend_nvram(struct nand *nand, const struct record_options *records,
	       const struct muninn_options *options, struct lost *lost)
{
	struct muninn_store *store = calloc(1, sizeof(*store));
	struct mending mending = { .store = store, .findings = records->salvage, .lost = lost };
	struct error_text error;
	uint64_t bytes;
	int result;

	if (!store)
		return -ENOMEM;
	store->nand = nand;
	store->records = records;
	store->options = options;
	store->nvram = nand_nvram(nand, &bytes);
	result = bytes < NVRAM_PAGE ? -EINVAL
				    : header_read(store->nvram, nand, &store->geometry, &error);
	if (!result)
		result = store_allocate(store, &error);
	if (!result)
		result = mend(&mending, records);
	else
		lost->all = true;
	store_free(store);
	return result;
}
