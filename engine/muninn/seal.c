/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Seals a row's buffer: programs it to a segment, and adds that to the index. */
#include "engine/muninn/seal.h"

#include <errno.h>

#include "common/log.h"
#include "engine/muninn/image.h"
#include "engine/muninn/nvram.h"
#include "engine/muninn/roots.h"
#include "engine/muninn/row.h"
#include "engine/records/rooms.h"

/*
 * On a device with few rows history's row waits for so many segments, not for one of each row:
 * segments that are programmed half empty shall be few.
 */
enum { SEALED_BESIDE_HISTORY_MIN = 16 };

/* All that the index is told of the buffered segment, except where on flash it is. */
static struct sealed_segment gather_facts(const struct buffer *buffer)
{
	struct sealed_segment facts = sealed_segment_begin(0, buffer->serial);

	for (uint32_t page = 0; page < buffer->geometry->segment_pages; page++) {
		struct page_view view = buffer_page(buffer, page);

		sealed_segment_add(&facts, &view);
	}
	return facts;
}

/* What is programmed to page `page` of the segment, with its spare area in `spare_bytes`. */
static struct nand_page_io page_io(const struct muninn_store *store, uint32_t row,
				   const struct sealing *sealing, uint32_t page,
				   uint8_t *spare_bytes)
{
	const struct buffer *buffer = &store->rows[row].buffer;
	struct page_view view = buffer_page(buffer, page);
	struct page_spare spare = {
		.kind = PAGE_KIND_RECORDS,
		.large = view.large_header != NULL,
		.unfinished = sealing->unfinished,
		.row = (uint16_t)row,
		.used = view.used,
		.serial = buffer->serial,
	};
	uint8_t *data = (uint8_t *)(uintptr_t)view.data;

	/* What earlier segments left in the rest of the page does not go to flash. */
	memset(data + view.used, 0, store->geometry.page_bytes - view.used);
	if (view.large_header)
		memcpy(spare.large_header, view.large_header, RECORD_HEADER_BYTES);
	page_spare_encode(&spare, spare_bytes);
	return (struct nand_page_io){
		.page = segment_page(&store->geometry, sealing->segment) + page,
		.data = data,
		.spare = spare_bytes,
	};
}

/*
 * Programs the next `count` pages of the buffer, empty ones too: pages of a block are programmed in
 * order.
 */
static int program_pages(struct muninn_store *store, uint32_t row, const struct sealing *sealing,
			 uint32_t count)
{
	uint32_t usable = nand_spare_usable(nand_geometry(store->nand));

	for (uint32_t n = 0; n < count; n++)
		store->ios[n] = page_io(store, row, sealing, sealing->pages + n,
					store->spares + (uint64_t)n * usable);
	return nand_program(store->nand, NAND_CAUSE_USER, store->ios, count);
}

static void sealing_begin(struct sealing *sealing)
{
	*sealing = (struct sealing){ .segment = NO_SEGMENT };
}

void seal_give_up(struct muninn_store *store, struct sealing *sealing)
{
	if (sealing->segment != NO_SEGMENT)
		space_release(&store->space, sealing->segment);
	sealing_begin(sealing);
}

/*
 * Programs at most *budget pages of the buffer, and takes them off. Takes a free segment for them,
 * and another one if that fails.
 */
static int write_segment(struct muninn_store *store, uint32_t row, struct sealing *sealing,
			 uint32_t *budget)
{
	uint32_t segment_pages = store->geometry.segment_pages;

	while (sealing->pages < segment_pages && *budget) {
		uint32_t count = (uint32_t)min_u64(segment_pages - sealing->pages, *budget);
		int result = 0;

		if (sealing->segment == NO_SEGMENT)
			result = space_take(&store->space, &sealing->segment);
		if (result) {
			sealing->segment = NO_SEGMENT;
			return result;
		}
		result = program_pages(store, row, sealing, count);
		*budget -= count;
		sealing->pages += count;
		if (!result)
			continue;
		/* The host is full, not the flash broken: the segment is as good as before. */
		if (result == -ENOSPC) {
			seal_give_up(store, sealing);
			return result;
		}
		log_line(LOG_LEVEL_WARNING,
			 "%s: segment %u is retired: programming failed (error %d)",
			 nand_path(store->nand), sealing->segment, -result);
		store->space.retired++;
		sealing->segment = NO_SEGMENT;
		sealing->pages = 0;
	}
	return 0;
}

/*
 * The order in which things reach the host's storage: the segment, then what the index says of it,
 * then the word that makes it count. Only then may the buffer be used again. So the host's power
 * may fail at any moment, and what a flush promised is still found. Where nothing was promised only
 * the segment is synced: an index on storage never names pages that are not there.
 */
static int sync_segment(struct muninn_store *store, uint32_t segment)
{
	uint32_t blocks = store->geometry.segment_blocks;

	return nand_sync(store->nand, segment * blocks, blocks);
}

/* The whole of the growing group, or the page with the word that makes its last segment count. */
static int sync_index(struct muninn_store *store, const struct row *row, bool whole)
{
	uint64_t bytes;
	const uint8_t *group = row_index_nvram(row->index, &bytes);

	if (!row->buffer.promised)
		return 0;
	return nand_nvram_sync(store->nand, (uint64_t)(group - store->nvram),
			       whole ? bytes : NVRAM_PAGE);
}

/*
 * Adds a programmed segment to the growing group of the row's index. Nothing has changed on an
 * error.
 */
static int add_segment(struct muninn_store *store, struct row *row,
		       const struct sealed_segment *facts)
{
	int result;

	/*
	 * Before the segment counts, so that recovery knows of records that were never committed.
	 */
	if (facts->last_sequence > state_read(store, STATE_SEALED_AT))
		nvram_store64(store->nvram + STATE_SEALED_AT, facts->last_sequence);
	row_index_write(row->index, row->buffer.index, facts);
	result = sync_index(store, row, true);
	if (!result && row->buffer.promised)
		result = nand_nvram_sync(store->nand, 0, NVRAM_PAGE);
	if (result)
		return result;
	if (facts->last_sequence > store->committed)
		store->sealed_running = true;
	row_index_commit(row->index);
	result = sync_index(store, row, false);
	if (result)
		log_line(
			LOG_LEVEL_ERROR,
			"%s: NVRAM can't be made stable (error %d); flushed data may not survive a "
			"power failure of this host",
			nand_path(store->nand), -result);
	count_up(&store->counters.sealed_records, facts->records);
	count_up(&store->counters.sealed_record_bytes, facts->record_bytes);
	return 0;
}

/* Makes space for one more segment in the growing group. *budget may be used up before that. */
static int make_space(struct muninn_store *store, uint32_t number, uint32_t *budget)
{
	bool of_history = number == history_row(&store->geometry);

	if (row_index_members(store->rows[number].index) == GROUP_SEGMENTS) {
		bool completed = false;
		int result = image_complete_group(store, number, budget, &completed);

		/* What fails of a root is logged: NVRAM says it all. */
		if (completed && of_history)
			roots_begin(store);
		else if (completed)
			roots_write(store);
		if (result)
			return result;
	}
	/*
	 * Before the next group gets a segment, so that no root lacks more than one group can hold.
	 */
	if (of_history)
		roots_go_on(store, budget);
	return 0;
}

/* Makes a segment that has been programmed a sealed one. */
static int end_sealing(struct muninn_store *store, uint32_t number, struct sealing *sealing)
{
	struct row *row = &store->rows[number];
	struct sealed_segment facts = gather_facts(&row->buffer);
	int result = sync_segment(store, sealing->segment);

	facts.segment = sealing->segment;
	if (!result)
		result = add_segment(store, row, &facts);
	if (result)
		return result;
	sealing_begin(sealing);
	store->segment_rows[facts.segment] = (uint16_t)number;
	store->root_outdated = true;
	store->sealed_beside_history =
		number == history_row(&store->geometry) ? 0 : store->sealed_beside_history + 1;
	row_end_buffer(store, number);
	return 0;
}

/* Goes on sealing a row's older buffer, with at most *budget page programs. */
static int seal(struct muninn_store *store, uint32_t number, struct sealing *sealing,
		uint32_t *budget)
{
	int result = make_space(store, number, budget);

	if (result || !*budget)
		return result;
	if (sealing->pages == 0)
		sealing->unfinished = gather_facts(&store->rows[number].buffer).last_sequence >
				      store->committed;
	result = write_segment(store, number, sealing, budget);
	if (!result && sealing->pages == store->geometry.segment_pages)
		result = end_sealing(store, number, sealing);
	return result;
}

int seal_row(struct muninn_store *store, uint32_t number)
{
	bool of_history = number == history_row(&store->geometry);
	struct sealing sealing, *at = of_history ? &store->history_sealing : &sealing;
	uint32_t budget = UINT32_MAX;
	int result;

	sealing_begin(&sealing);
	result = seal(store, number, at, &budget);
	/* The transaction will abort, and take its records out of the buffer again. */
	if (result && (!of_history || at->unfinished))
		seal_give_up(store, at);
	return result;
}

/* Whether history's row may fill up before small steps have sealed its older buffer. */
static bool is_urgent(const struct row *row)
{
	const struct muninn_geometry *geometry = row->newer.geometry;

	return buffer_used_bytes(&row->newer) * 2 >
	       (uint64_t)geometry->segment_pages * geometry->page_bytes;
}

/* Whether history's row is to be sealed although it is not full. */
static bool is_due(const struct muninn_store *store)
{
	const struct row *row = &store->rows[history_row(&store->geometry)];

	return store->sealed_beside_history >=
		       max_u64(store->geometry.hashed_rows, SEALED_BESIDE_HISTORY_MIN) &&
	       !row_has_newer(row) && store->free_buffer_count && buffer_used_bytes(&row->buffer);
}

void seal_catch_up(struct muninn_store *store, uint32_t pages)
{
	uint32_t number = history_row(&store->geometry);
	struct row *row = &store->rows[number];
	int result = 0;

	assert(store->sequence == 0);
	if (pages > RECORD_CATCH_UP_FEW && is_due(store))
		row_take_newer(store, number);
	if (!row_has_newer(row))
		return;
	if (pages > RECORD_CATCH_UP_FEW && is_urgent(row))
		pages = UINT32_MAX;
	/* From here on only commands that put something seal it, each from its own room. */
	if (store->history_sealing.segment == NO_SEGMENT &&
	    !room_has_segment(store->geometry.room_kept, RECORD_ROOM_FREE, store->space.count))
		return;
	result = seal(store, number, &store->history_sealing, &pages);
	if (result && result != store->history_error_logged)
		log_line(LOG_LEVEL_WARNING,
			 "%s: records of snapshots and rollbacks can't be written to flash yet "
			 "(error %d); they stay in NVRAM",
			 nand_path(store->nand), -result);
	store->history_error_logged = result;
}
