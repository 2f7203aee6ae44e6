/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* From a row's buffer to flash, and from the host's caches to its storage. */
#include <errno.h>

#include "common/log.h"
#include "engine/muninn/nvram.h"
#include "engine/muninn/store.h"

/* What the column will say of the buffered segment, but where on flash it is. */
static struct table_column gather_facts(const struct buffer *buffer)
{
	struct table_column facts = table_column_begin(0, buffer->serial);

	for (uint32_t page = 0; page < buffer->geometry->segment_pages; page++) {
		struct page_view view = buffer_page(buffer, page);

		table_column_add(&facts, &view);
	}
	return facts;
}

/* Programs every page of the buffer, empty ones too: pages of a block are programmed in order. */
static int program_segment(struct muninn_store *store, uint32_t row, bool unfinished,
			   uint32_t segment)
{
	const struct buffer *buffer = &store->rows[row].buffer;
	const struct muninn_geometry *geometry = &store->geometry;
	uint32_t usable = nand_spare_usable(nand_geometry(store->nand));

	for (uint32_t page = 0; page < geometry->segment_pages; page++) {
		struct page_view view = buffer_page(buffer, page);
		struct page_spare spare = {
			.kind = PAGE_KIND_RECORDS,
			.large = view.large_header != NULL,
			.unfinished = unfinished,
			.row = (uint16_t)row,
			.used = view.used,
			.serial = buffer->serial,
		};
		uint8_t *bytes = store->spares + (uint64_t)page * usable;
		uint8_t *data = (uint8_t *)(uintptr_t)view.data;

		/* What earlier segments left behind the records does not go to flash. */
		memset(data + view.used, 0, geometry->page_bytes - view.used);
		if (view.large_header)
			memcpy(spare.large_header, view.large_header, RECORD_HEADER_BYTES);
		page_spare_encode(&spare, bytes);
		store->ios[page] = (struct nand_page_io){
			.page = segment_page(geometry, segment) + page,
			.data = data,
			.spare = bytes,
		};
	}
	return nand_program(store->nand, NAND_CAUSE_USER, store->ios, geometry->segment_pages);
}

/* Takes a segment and programs the buffer to it; a segment that fails is given up for another one. */
static int write_segment(struct muninn_store *store, uint32_t row, bool unfinished,
			 uint32_t *segment)
{
	int result;

	while ((result = space_take(&store->space, segment)) == 0) {
		result = program_segment(store, row, unfinished, *segment);
		if (result == 0)
			return 0;
		log_line(LOG_LEVEL_WARNING, "segment %u is retired: programming failed (error %d)",
			 *segment, -result);
		store->space.retired++;
	}
	return result;
}

/*
 * The order in which things reach the host's storage, so that its power may fail at any moment and what a flush
 * promised is still found: the segment, then the column that describes it, then the count that makes it one. Only
 * then may the buffer be used again. Where nothing was promised only the segment is synced: a column that is on
 * storage never names pages that are not.
 */
static int sync_segment(struct muninn_store *store, uint32_t segment)
{
	uint32_t blocks = store->geometry.segment_blocks;

	return nand_sync(store->nand, segment * blocks, blocks);
}

static int sync_table(struct muninn_store *store, const struct row *row, uint64_t bytes)
{
	if (!row->buffer.promised)
		return 0;
	return nand_nvram_sync(store->nand, (uint64_t)(row->growing.image - store->nvram), bytes);
}

/* Makes a programmed segment a column of the row's growing table. Nothing has changed on an error. */
static int add_column(struct muninn_store *store, struct row *row, const struct table_column *facts)
{
	int result;

	/* Before the segment counts, so that recovery knows of records that were never committed. */
	if (facts->last_sequence > state_read(store, STATE_SEALED_AT))
		nvram_store64(store->nvram + STATE_SEALED_AT, facts->last_sequence);
	table_write_column(&row->growing, &row->buffer, facts);
	result = sync_table(store, row, row->growing.image_bytes);
	if (!result && row->buffer.promised)
		result = nand_nvram_sync(store->nand, 0, NVRAM_PAGE);
	if (result)
		return result;
	if (facts->last_sequence > store->committed)
		store->sealed_running = true;
	table_commit_column(&row->growing);
	result = sync_table(store, row, NVRAM_PAGE);
	if (result)
		log_line(LOG_LEVEL_ERROR,
			 "NVRAM can't be made stable (error %d); flushed data may not survive a "
			 "power "
			 "failure of this host",
			 -result);
	count_up(&store->counters.sealed_records, facts->records);
	count_up(&store->counters.sealed_record_bytes, facts->record_bytes);
	return 0;
}

int store_seal_row(struct muninn_store *store, uint32_t number)
{
	struct row *row = &store->rows[number];
	struct table_column facts = gather_facts(&row->buffer);
	bool unfinished = facts.last_sequence > store->committed;
	int result = 0;

	if (table_columns(&row->growing) == MUNINN_COLUMNS) {
		result = store_complete_table(store, number);
		versions_refresh(store, row);
	}
	if (!result)
		result = write_segment(store, number, unfinished, &facts.segment);
	if (!result)
		result = sync_segment(store, facts.segment);
	if (!result)
		result = add_column(store, row, &facts);
	if (result)
		return result;
	store->segment_rows[facts.segment] = (uint16_t)number;
	store->root_outdated = true;
	row_end_buffer(store, number);
	return 0;
}

static int flush_buffer(struct muninn_store *store, struct buffer *buffer)
{
	return nand_nvram_sync(store->nand, buffer->area_at, store->geometry.buffer_bytes);
}

/* A row's buffers, and its growing table where that has changed. */
static int flush_row(struct muninn_store *store, struct row *row)
{
	int result = 0;

	if (row->growing.unsynced)
		result = nand_nvram_sync(store->nand, (uint64_t)(row->growing.image - store->nvram),
					 row->growing.image_bytes);
	if (result)
		return result;
	row->growing.unsynced = false;
	result = flush_buffer(store, &row->buffer);
	if (!result && row_has_newer(row))
		result = flush_buffer(store, &row->newer);
	if (result)
		return result;
	row->unsynced = false;
	row->buffer.promised = true;
	row->newer.promised = row_has_newer(row);
	return 0;
}

/* That a buffer is no row's any more: otherwise it would come back when the columns that it became have been merged. */
static int flush_free_buffers(struct muninn_store *store)
{
	int result = 0;

	for (uint32_t n = 0; !result && n < store->free_buffer_count; n++) {
		struct buffer *buffer = &store->free_buffers[n];

		if (!buffer->unsynced)
			continue;
		result = nand_nvram_sync(store->nand, buffer->area_at, NVRAM_PAGE);
		buffer->unsynced = result != 0;
	}
	return result;
}

int store_flush(struct muninn_store *store)
{
	int result = 0;

	for (uint32_t number = 0; !result && number < store->geometry.rows; number++)
		if (store->rows[number].unsynced)
			result = flush_row(store, &store->rows[number]);
	if (!result)
		result = flush_free_buffers(store);
	if (!result)
		result = nand_nvram_sync(store->nand, NVRAM_PAGE,
					 store->geometry.buffers_at - NVRAM_PAGE);
	/* Everything that this number speaks of is stable now. */
	if (!result) {
		nvram_store64(store->nvram + STATE_FLUSHED_AT, store->committed);
		result = nand_nvram_sync(store->nand, 0, NVRAM_PAGE);
	}
	for (uint32_t number = 0; !result && number < store->geometry.rows; number++) {
		struct row *row = &store->rows[number];

		if (row->buffer.promised)
			buffer_promise(&row->buffer, store->committed);
		if (row->newer.promised)
			buffer_promise(&row->newer, store->committed);
	}
	return result;
}
