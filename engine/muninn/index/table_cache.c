/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Reads the parts of complete tables that are on flash through a cache of fixed size. */
#include "engine/muninn/index/table_cache.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

enum { WAYS = 8, LOCKS = 64 };

/* Which page a place holds: row, number of the table, page of the image; 0 = none. */
struct tag {
	uint64_t key;
	uint64_t used; /* when it was last asked for, counted in the set */
};

struct set {
	struct tag tags[WAYS];
	uint64_t clock;
};

struct table_cache {
	struct table_source source; /* first: a source is its cache */
	table_page_reader *read;
	void *context;
	uint32_t page_bytes;
	uint32_t set_count;
	struct set *sets;
	uint8_t *pages; /* WAYS of each set */
	pthread_mutex_t locks[LOCKS];
	uint64_t asked, missed;
};

/*
 * Rows are fewer than 2^16, images shorter than 2^16 pages; a store does not come to 2^31 tables in
 * a row.
 */
static uint64_t key_of(const struct table *table, uint32_t page)
{
	uint64_t row = get_le32(table->image + TABLE_ROW_AT);

	return UINT64_C(1) << 63 | row << 47 | (uint64_t)table_index(table) << 16 | page;
}

static uint8_t *page_at(struct table_cache *cache, uint32_t set, uint32_t way)
{
	return cache->pages + ((uint64_t)set * WAYS + way) * cache->page_bytes;
}

static bool copy_cached(struct table_cache *cache, uint32_t number, uint64_t key, uint32_t at,
			void *to, uint32_t bytes)
{
	struct set *set = &cache->sets[number];

	for (uint32_t way = 0; way < WAYS; way++) {
		if (set->tags[way].key != key)
			continue;
		set->tags[way].used = ++set->clock;
		memcpy(to, page_at(cache, number, way) + at, bytes);
		return true;
	}
	return false;
}

static void insert(struct table_cache *cache, uint32_t number, uint64_t key, const uint8_t *data)
{
	struct set *set = &cache->sets[number];
	uint32_t oldest = 0;

	for (uint32_t way = 0; way < WAYS; way++) {
		if (set->tags[way].key == key)
			return; /* another thread was faster */
		if (set->tags[way].used < set->tags[oldest].used)
			oldest = way;
	}
	set->tags[oldest] = (struct tag){ .key = key, .used = ++set->clock };
	memcpy(page_at(cache, number, oldest), data, cache->page_bytes);
}

/* Bytes within one page. */
static int read_part(struct table_cache *cache, const struct table *table, uint32_t page,
		     uint32_t at, void *to, uint32_t bytes)
{
	uint64_t key = key_of(table, page);
	uint32_t number = (uint32_t)(hash_mix(key) % cache->set_count);
	pthread_mutex_t *lock = &cache->locks[number % LOCKS];
	uint8_t data[MUNINN_PAGE_BYTES_MAX];

	__atomic_fetch_add(&cache->asked, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(lock);
	bool cached = copy_cached(cache, number, key, at, to, bytes);
	pthread_mutex_unlock(lock);
	if (cached)
		return 0;
	__atomic_fetch_add(&cache->missed, 1, __ATOMIC_RELAXED);
	int result = cache->read(cache->context, table, page, data);

	if (result)
		return result;
	memcpy(to, data + at, bytes);
	pthread_mutex_lock(lock);
	insert(cache, number, key, data);
	pthread_mutex_unlock(lock);
	return 0;
}

static int cache_read(const struct table_source *source, const struct table *table, uint64_t offset,
		      void *to, uint32_t bytes)
{
	struct table_cache *cache = (struct table_cache *)(uintptr_t)source;
	uint8_t *at = to;
	int result = 0;

	while (bytes && !result) {
		uint32_t within = (uint32_t)(offset % cache->page_bytes);
		uint32_t part = (uint32_t)min_u64(bytes, cache->page_bytes - within);

		result = read_part(cache, table, (uint32_t)(offset / cache->page_bytes), within, at,
				   part);
		at += part;
		offset += part;
		bytes -= part;
	}
	return result;
}

struct table_cache *table_cache_create(uint64_t bytes, uint32_t page_bytes, table_page_reader *read,
				       void *context)
{
	struct table_cache *cache = calloc(1, sizeof(*cache));
	uint64_t set_bytes = sizeof(struct set) + (uint64_t)WAYS * page_bytes;

	if (!cache)
		return NULL;
	cache->source.read = cache_read;
	cache->read = read;
	cache->context = context;
	cache->page_bytes = page_bytes;
	cache->set_count = (uint32_t)min_u64(max_u64(bytes / set_bytes, 1), UINT32_MAX);
	cache->sets = calloc(cache->set_count, sizeof(*cache->sets));
	cache->pages = malloc((uint64_t)cache->set_count * WAYS * page_bytes);
	for (int n = 0; n < LOCKS; n++)
		pthread_mutex_init(&cache->locks[n], NULL);
	if (!cache->sets || !cache->pages) {
		table_cache_destroy(cache);
		return NULL;
	}
	return cache;
}

void table_cache_destroy(struct table_cache *cache)
{
	if (!cache)
		return;
	for (int n = 0; n < LOCKS; n++)
		pthread_mutex_destroy(&cache->locks[n]);
	free(cache->sets);
	free(cache->pages);
	free(cache);
}

const struct table_source *table_cache_source(const struct table_cache *cache)
{
	return cache ? &cache->source : NULL;
}

uint64_t table_cache_bytes(const struct table_cache *cache)
{
	return cache ? malloc_usable_size((void *)(uintptr_t)cache) +
			       malloc_usable_size(cache->sets) + malloc_usable_size(cache->pages)
		     : 0;
}

void table_cache_counters(const struct table_cache *cache, uint64_t *asked, uint64_t *read)
{
	*asked = cache ? __atomic_load_n(&cache->asked, __ATOMIC_RELAXED) : 0;
	*read = cache ? __atomic_load_n(&cache->missed, __ATOMIC_RELAXED) : 0;
}
