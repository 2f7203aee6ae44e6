/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* From the host's caches to its storage: what a flush promises. */
#include "engine/muninn/flush.h"

#include "engine/muninn/nvram.h"
#include "engine/muninn/row.h"

static int flush_buffer(struct muninn_store *store, struct buffer *buffer)
{
	return nand_nvram_sync(store->nand, buffer->area_at, store->geometry.buffer_bytes);
}

/* A row's buffers, and the growing group of its index where that has changed. */
static int flush_row(struct muninn_store *store, struct row *row)
{
	uint64_t bytes;
	const uint8_t *group = row_index_nvram(row->index, &bytes);
	int result = 0;

	if (!row_index_is_synced(row->index))
		result = nand_nvram_sync(store->nand, (uint64_t)(group - store->nvram), bytes);
	if (result)
		return result;
	row_index_set_synced(row->index);
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

/*
 * Makes it stable that no row has these buffers any more. Otherwise they would come back when the
 * segments that they became have been merged.
 */
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

int flush_all(struct muninn_store *store)
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
