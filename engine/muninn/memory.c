/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Heap memory by what it holds. What the allocator gave is counted, not what was asked of it, so
 * that nothing is hidden in its rounding, and the sum can be compared with what the allocator says
 * itself.
 */
#include <malloc.h>

#include "engine/muninn/store.h"

static uint64_t given(const void *memory)
{
	return malloc_usable_size((void *)(uintptr_t)memory);
}

static uint64_t filter_memory(const struct buffer *buffer)
{
	return given(buffer->bits) + given(buffer->overflow) + given(buffer->absorbable);
}

void store_count_memory(const struct muninn_store *store, uint64_t bytes[ENGINE_MEMORY_KINDS])
{
	memset(bytes, 0, ENGINE_MEMORY_KINDS * sizeof(*bytes));
	bytes[ENGINE_MEMORY_ROWS] = given(store) + given(store->rows) + given(store->free_buffers) +
				    given(store->touched);
	for (uint32_t number = 0; number < store->geometry.rows; number++) {
		const struct row *row = &store->rows[number];

		for (uint32_t n = 0; n < row->complete_count; n++)
			bytes[ENGINE_MEMORY_TABLES] += given(row->complete[n].image);
		bytes[ENGINE_MEMORY_ROWS] += given(row->complete) + given(row->versions);
		bytes[ENGINE_MEMORY_FILTERS] +=
			filter_memory(&row->buffer) + filter_memory(&row->newer);
	}
	for (uint32_t n = 0; n < store->free_buffer_count; n++)
		bytes[ENGINE_MEMORY_FILTERS] += filter_memory(&store->free_buffers[n]);
	bytes[ENGINE_MEMORY_TABLE_CACHE] = table_cache_bytes(store->table_cache);
	bytes[ENGINE_MEMORY_SEGMENTS] = given(store->space.ring) + given(store->space.wear) +
					given(store->images) + given(store->segment_rows) +
					given(store->merge_estimates);
	bytes[ENGINE_MEMORY_SCRATCH] = given(store->spares) + given(store->ios) +
				       given(store->root) + given(store->kills) +
				       given(store->merge_needs) + given(store->merge_data) +
				       given(store->merge_list);
}

const char *engine_memory_name(enum engine_memory kind)
{
	static const char *const names[] = {
		[ENGINE_MEMORY_TABLES] = "tables",     [ENGINE_MEMORY_TABLE_CACHE] = "table_cache",
		[ENGINE_MEMORY_FILTERS] = "filters",   [ENGINE_MEMORY_ROWS] = "rows",
		[ENGINE_MEMORY_SEGMENTS] = "segments", [ENGINE_MEMORY_SCRATCH] = "scratch",
	};

	return names[kind];
}
