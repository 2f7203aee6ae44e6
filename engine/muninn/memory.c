/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Counts heap memory by what it holds: what the allocator gave, not what was asked of it. So its
 * rounding is included, and the sum can be compared with what the allocator says itself.
 */
#include "engine/muninn/memory.h"

#include <malloc.h>

#include "engine/muninn/merge_run.h"
#include "engine/muninn/repair.h"
#include "engine/muninn/sealing.h"

static uint64_t given(const void *memory)
{
	return malloc_usable_size((void *)(uintptr_t)memory);
}

static uint64_t index_memory(const struct buffer *buffer)
{
	return segment_index_memory(buffer->index) + given(buffer->absorbable) +
	       given(buffer->lowest);
}

/* What is known of the old records of segments, and of those that are being sealed. */
static uint64_t older_bytes(const struct muninn_store *store)
{
	uint64_t bytes = given(store->older) + store->older_bytes;

	for (uint32_t number = 0; number < store->geometry.rows; number++)
		bytes += older_memory(&store->rows[number].sealing.older);
	return bytes;
}

enum memory_kind {
	MEMORY_TABLES, /* complete groups of the index, or what of them is not on flash alone */
	MEMORY_TABLE_CACHE, /* pages of groups on flash */
	MEMORY_FILTERS,     /* indices of the active segments */
	MEMORY_ROWS,        /* rows, what their indices hold beside groups, and their buffers */
	MEMORY_SEGMENTS,    /* what is known of each segment: free ones, wear, rows, images */
	MEMORY_SCRATCH,     /* space for programming a segment and for roots */
	MEMORY_KINDS
};

static_assert(MEMORY_KINDS < RECORD_MEMORY_KINDS_MAX, "the list of kinds has an end");

static void count(const struct muninn_store *store, uint64_t bytes[MEMORY_KINDS])
{
	struct index_figures index;

	index_count(store->index, &index);
	bytes[MEMORY_TABLES] = index.groups_memory;
	bytes[MEMORY_TABLE_CACHE] = index.cache_memory;
	bytes[MEMORY_ROWS] = given(store) + given(store->rows) + given(store->free_buffers) +
			     given(store->touched) + index.rows_memory;
	for (uint32_t number = 0; number < store->geometry.rows; number++) {
		const struct row *row = &store->rows[number];

		bytes[MEMORY_FILTERS] += index_memory(&row->buffer) + index_memory(&row->newer);
	}
	for (uint32_t n = 0; n < store->free_buffer_count; n++)
		bytes[MEMORY_FILTERS] += index_memory(&store->free_buffers[n]);
	bytes[MEMORY_SEGMENTS] = given(store->space.ring) + given(store->space.wear) +
				 given(store->images) + given(store->segment_rows) +
				 older_bytes(store) + merge_run_segment_bytes(store);
	bytes[MEMORY_SCRATCH] = given(store->spare) + sealing_memory(store) + given(store->root) +
				given(store->list) + merge_run_scratch_bytes(store) +
				repair_memory(store) + parity_memory(&store->parity);
}

void memory_count(const struct muninn_store *store, struct record_memory *memory)
{
	static const char *const names[] = {
		[MEMORY_TABLES] = "tables",     [MEMORY_TABLE_CACHE] = "table_cache",
		[MEMORY_FILTERS] = "filters",   [MEMORY_ROWS] = "rows",
		[MEMORY_SEGMENTS] = "segments", [MEMORY_SCRATCH] = "scratch",
	};
	uint64_t bytes[MEMORY_KINDS] = { 0 };

	count(store, bytes);
	for (int kind = 0; kind < MEMORY_KINDS; kind++)
		memory[kind] = (struct record_memory){ .name = names[kind], .bytes = bytes[kind] };
}
