/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A bounded cache of decoded records that knows about transactions. */
#include "engine/records/cache.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "common/quick_mutex.h"

/* Nobody else uses it while a transaction writes. */
static void lock(struct cache *cache)
{
	if (!cache->writing)
		pthread_mutex_lock(&cache->mutex);
}

static void unlock(struct cache *cache)
{
	if (!cache->writing)
		pthread_mutex_unlock(&cache->mutex);
}

static uint64_t mix(uint64_t value)
{
	value ^= value >> 30;
	value *= UINT64_C(0xbf58476d1ce4e5b9);
	value ^= value >> 27;
	value *= UINT64_C(0x94d049bb133111eb);
	return value ^ value >> 31;
}

static uint32_t bucket_of(const struct cache *cache, struct cache_key key)
{
	uint64_t hash = mix(key.identifier ^ mix((uint64_t)key.number << 16 | key.partition));

	return (uint32_t)hash & cache->bucket_mask;
}

static bool keys_equal(struct cache_key a, struct cache_key b)
{
	return a.identifier == b.identifier && a.number == b.number && a.partition == b.partition;
}

/* ---- the two kinds of lists ---- */

static void idle_add(struct cache *cache, struct cache_entry *entry)
{
	struct cache_list *list = &cache->idle;

	assert(!entry->idle);
	entry->idle = true;
	entry->idle_newer = NULL;
	entry->idle_older = list->newest;
	*(list->newest ? &list->newest->idle_newer : &list->oldest) = entry;
	list->newest = entry;
}

static void idle_remove(struct cache *cache, struct cache_entry *entry)
{
	struct cache_list *list = &cache->idle;

	if (!entry->idle)
		return;
	entry->idle = false;
	*(entry->idle_older ? &entry->idle_older->idle_newer : &list->oldest) = entry->idle_newer;
	*(entry->idle_newer ? &entry->idle_newer->idle_older : &list->newest) = entry->idle_older;
}

static struct cache_list *list_of(struct cache *cache, enum cache_state state)
{
	return state == CACHE_DIRTY ? &cache->dirty : &cache->touched;
}

static void changed_add(struct cache *cache, struct cache_entry *entry, enum cache_state state)
{
	struct cache_list *list = list_of(cache, state);

	assert(state != CACHE_COMMITTED && entry->state == CACHE_COMMITTED);
	entry->state = state;
	entry->changed_newer = NULL;
	entry->changed_older = list->newest;
	*(list->newest ? &list->newest->changed_newer : &list->oldest) = entry;
	list->newest = entry;
	cache->dirty_entries += state == CACHE_DIRTY;
}

static void changed_remove(struct cache *cache, struct cache_entry *entry)
{
	struct cache_list *list = list_of(cache, entry->state);

	if (entry->state == CACHE_COMMITTED)
		return;
	*(entry->changed_older ? &entry->changed_older->changed_newer : &list->oldest) =
		entry->changed_newer;
	*(entry->changed_newer ? &entry->changed_newer->changed_older : &list->newest) =
		entry->changed_older;
	cache->dirty_entries -= entry->state == CACHE_DIRTY;
	entry->state = CACHE_COMMITTED;
}

/* ---- entries ---- */

/* Takes an entry out of the table; destroys it unless it is pinned. */
static void forget(struct cache *cache, struct cache_entry *entry)
{
	struct cache_entry **link = &cache->buckets[bucket_of(cache, entry->key)];

	while (*link != entry)
		link = &(*link)->hash_next;
	*link = entry->hash_next;
	idle_remove(cache, entry);
	changed_remove(cache, entry);
	cache->entries--;
	cache->bytes -= entry->bytes;
	entry->dropped = true;
	if (entry->pins == 0)
		cache->destroy(entry);
}

static void evict(struct cache *cache)
{
	while (cache->idle.oldest &&
	       (cache->entries > cache->entries_max || cache->bytes > cache->bytes_max))
		forget(cache, cache->idle.oldest);
}

static struct cache_entry *find(struct cache *cache, struct cache_key key)
{
	struct cache_entry *entry = cache->buckets[bucket_of(cache, key)];

	while (entry && !keys_equal(entry->key, key))
		entry = entry->hash_next;
	return entry;
}

static struct cache_entry *pin(struct cache *cache, struct cache_entry *entry)
{
	entry->pins++;
	idle_remove(cache, entry);
	return entry;
}

static void settle(struct cache *cache, struct cache_entry *entry)
{
	if (entry->pins == 0 && !entry->idle && entry->state != CACHE_DIRTY)
		idle_add(cache, entry);
}

int cache_init(struct cache *cache, uint32_t entries_max, size_t bytes_max,
	       void (*destroy)(struct cache_entry *entry))
{
	uint32_t buckets = 16;

	while (buckets < entries_max && buckets < UINT32_C(1) << 24)
		buckets *= 2;
	*cache = (struct cache){
		.buckets = calloc(buckets, sizeof(*cache->buckets)),
		.bucket_mask = buckets - 1,
		.entries_max = entries_max,
		.bytes_max = bytes_max,
		.destroy = destroy,
	};
	if (!cache->buckets)
		return -ENOMEM;
	quick_mutex_init(&cache->mutex);
	return 0;
}

void cache_clear(struct cache *cache)
{
	lock(cache);
	for (uint32_t bucket = 0; bucket <= cache->bucket_mask; bucket++) {
		while (cache->buckets[bucket]) {
			assert(cache->buckets[bucket]->pins == 0);
			forget(cache, cache->buckets[bucket]);
		}
	}
	unlock(cache);
}

void cache_destroy(struct cache *cache)
{
	if (!cache->buckets)
		return;
	cache_clear(cache);
	free(cache->buckets);
	cache->buckets = NULL;
	pthread_mutex_destroy(&cache->mutex);
}

struct cache_entry *cache_get(struct cache *cache, struct cache_key key)
{
	struct cache_entry *entry;

	lock(cache);
	entry = find(cache, key);
	if (entry)
		pin(cache, entry);
	unlock(cache);
	return entry;
}

struct cache_entry *cache_add(struct cache *cache, struct cache_entry *entry, size_t bytes)
{
	struct cache_entry *found, **bucket;

	lock(cache);
	found = find(cache, entry->key);
	if (found) {
		pin(cache, found);
		unlock(cache);
		cache->destroy(entry);
		return found;
	}
	bucket = &cache->buckets[bucket_of(cache, entry->key)];
	entry->hash_next = *bucket;
	*bucket = entry;
	entry->state = CACHE_COMMITTED;
	entry->dropped = entry->idle = false;
	entry->pins = 1;
	entry->bytes = bytes;
	cache->entries++;
	cache->bytes += bytes;
	if (cache->writing)
		changed_add(cache, entry, CACHE_TOUCHED);
	evict(cache);
	unlock(cache);
	return entry;
}

void cache_unpin(struct cache *cache, struct cache_entry *entry)
{
	lock(cache);
	assert(entry->pins > 0);
	entry->pins--;
	if (!entry->dropped) {
		settle(cache, entry);
		evict(cache);
	} else if (entry->pins == 0) {
		cache->destroy(entry);
	}
	unlock(cache);
}

bool cache_ask(struct cache *cache, struct cache_key key,
	       bool (*ask)(void *context, const struct cache_entry *entry), void *context)
{
	struct cache_entry *entry;
	bool answer;

	lock(cache);
	entry = find(cache, key);
	answer = entry && ask(context, entry);
	unlock(cache);
	return answer;
}

void cache_begin(struct cache *cache)
{
	assert(!cache->writing);
	cache->writing = true;
}

void cache_mark_dirty(struct cache *cache, struct cache_entry *entry)
{
	lock(cache);
	assert(cache->writing && entry->pins > 0 && !entry->dropped);
	if (entry->state != CACHE_DIRTY) {
		changed_remove(cache, entry);
		changed_add(cache, entry, CACHE_DIRTY);
	}
	unlock(cache);
}

void cache_mark_touched(struct cache *cache, struct cache_entry *entry)
{
	lock(cache);
	assert(cache->writing && entry->pins > 0 && !entry->dropped);
	if (entry->state == CACHE_COMMITTED)
		changed_add(cache, entry, CACHE_TOUCHED);
	unlock(cache);
}

void cache_mark_clean(struct cache *cache, struct cache_entry *entry, size_t bytes)
{
	lock(cache);
	assert(entry->state == CACHE_DIRTY && !entry->dropped);
	changed_remove(cache, entry);
	changed_add(cache, entry, CACHE_TOUCHED);
	cache->bytes += bytes - entry->bytes;
	entry->bytes = bytes;
	settle(cache, entry);
	evict(cache);
	unlock(cache);
}

static struct cache_entry *oldest_dirty(struct cache *cache)
{
	struct cache_entry *entry;

	lock(cache);
	entry = cache->dirty.oldest;
	while (entry && entry->pins > 0)
		entry = entry->changed_newer;
	if (entry)
		pin(cache, entry);
	unlock(cache);
	return entry;
}

int cache_put_dirty(struct cache *cache, uint32_t limit,
		    int (*put)(void *context, struct cache_entry *entry), void *context)
{
	int result = 0;

	while (!result && cache->dirty_entries > limit) {
		struct cache_entry *entry = oldest_dirty(cache);

		if (!entry)
			break;
		result = put(context, entry);
		cache_unpin(cache, entry);
	}
	return result;
}

void cache_drop(struct cache *cache, struct cache_entry *entry)
{
	lock(cache);
	if (!entry->dropped)
		forget(cache, entry);
	unlock(cache);
}

/* Forgets what is in a partition and, if `identifier` is given, under that. */
static void drop_matching(struct cache *cache, uint16_t partition, const uint64_t *identifier)
{
	lock(cache);
	for (uint32_t bucket = 0; bucket <= cache->bucket_mask; bucket++) {
		struct cache_entry *entry = cache->buckets[bucket], *next;

		for (; entry; entry = next) {
			next = entry->hash_next;
			if (entry->key.partition == partition &&
			    (!identifier || entry->key.identifier == *identifier))
				forget(cache, entry);
		}
	}
	unlock(cache);
}

void cache_drop_partition(struct cache *cache, uint16_t partition)
{
	drop_matching(cache, partition, NULL);
}

void cache_drop_identifier(struct cache *cache, uint16_t partition, uint64_t identifier)
{
	drop_matching(cache, partition, &identifier);
}

void cache_commit(struct cache *cache)
{
	assert(cache->writing && cache->dirty_entries == 0);
	while (cache->touched.oldest)
		changed_remove(cache, cache->touched.oldest);
	cache->writing = false;
}

void cache_abort(struct cache *cache)
{
	assert(cache->writing);
	while (cache->dirty.oldest)
		forget(cache, cache->dirty.oldest);
	while (cache->touched.oldest)
		forget(cache, cache->touched.oldest);
	cache->writing = false;
}
