/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The parts of complete tables that are not in memory, read from flash a page at a time through a
 * cache of fixed size. Eight pages share a set, and the one of them that was not asked for longest
 * makes space. Thread-safe.
 */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_TABLE_CACHE_H
#define MUNINN_ENGINE_MUNINN_INDEX_TABLE_CACHE_H

#include "engine/muninn/index/bloom_table.h"

struct table_cache;

/* Reads page `page` of a table's image into `data`. 0, -EBADMSG, -EIO. */
typedef int table_page_reader(void *context, const struct table *table, uint32_t page,
			      uint8_t *data);

/*
 * `bytes`: of memory, BLOOM_TABLE_CACHE_MIN at least. NULL: out of memory. NULL may be destroyed.
 */
struct table_cache *table_cache_create(uint64_t bytes, uint32_t page_bytes, table_page_reader *read,
				       void *context);
void table_cache_destroy(struct table_cache *cache);

/* What tables that go through the cache have as their source. */
const struct table_source *table_cache_source(const struct table_cache *cache);

/* Allocated; pages asked for, and those of them that were read. */
uint64_t table_cache_bytes(const struct table_cache *cache);
void table_cache_counters(const struct table_cache *cache, uint64_t *asked, uint64_t *read);

#endif
