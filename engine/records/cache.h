/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A bounded cache of decoded records (onodes, directory nodes, partitions) that knows about
 * transactions.
 *
 * What the open writing transaction added or changed is remembered: cache_commit keeps it,
 * cache_abort drops it, so that the next look-up reads the store again. Changed entries are "dirty"
 * until their owner has put them into the store and says so with cache_mark_clean; dirty and pinned
 * entries are never evicted.
 *
 * Thread-safe, but from cache_begin to the end of that transaction nobody else may call anything,
 * and nothing is locked: in the engine it has the turn alone. The functions of the writer (marked
 * W) are called by it only.
 */
#ifndef MUNINN_ENGINE_RECORDS_CACHE_H
#define MUNINN_ENGINE_RECORDS_CACHE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cache_key {
	uint64_t identifier;
	uint32_t number;
	uint16_t partition; /* index */
};

enum cache_state {
	CACHE_COMMITTED, /* as in the store, nothing to do with the open transaction */
	CACHE_TOUCHED,   /* added, or changed and put, by the open transaction */
	CACHE_DIRTY,     /* changed by the open transaction, not put yet */
};

/*
 * First member of what is cached. Its fields belong to the cache, but for `key` before cache_add.
 */
struct cache_entry {
	struct cache_key key;
	struct cache_entry *hash_next;
	struct cache_entry *idle_older, *idle_newer; /* unpinned entries that may be evicted */
	struct cache_entry *changed_older, *changed_newer; /* entries of the open transaction */
	size_t bytes;
	uint32_t pins;
	enum cache_state state;
	bool dropped, idle;
};

/* Doubly linked, oldest first. */
struct cache_list {
	struct cache_entry *oldest, *newest;
};

struct cache {
	pthread_mutex_t mutex;
	struct cache_entry **buckets;
	uint32_t bucket_mask;
	uint32_t entries, entries_max;
	size_t bytes, bytes_max;
	struct cache_list idle, touched, dirty;
	uint32_t dirty_entries;
	bool writing; /* a transaction, which has it alone */
	void (*destroy)(struct cache_entry *entry);
};

/*
 * At most `entries_max` entries of together `bytes_max` bytes, but for pinned and dirty ones.
 * `destroy` frees an entry and must not call the cache. -ENOMEM.
 */
int cache_init(struct cache *cache, uint32_t entries_max, size_t bytes_max,
	       void (*destroy)(struct cache_entry *entry));

/* Destroys all entries; none may be pinned. */
void cache_destroy(struct cache *cache);

/* The entry of `key`, pinned, or NULL. */
struct cache_entry *cache_get(struct cache *cache, struct cache_key key);

/*
 * Adds an entry of `bytes` bytes, whose ownership passes to the cache. Returns it pinned, or, when
 * another thread was faster, that thread's entry pinned, with `entry` destroyed.
 */
struct cache_entry *cache_add(struct cache *cache, struct cache_entry *entry, size_t bytes);

/* Gives a pinned entry back. */
void cache_unpin(struct cache *cache, struct cache_entry *entry);

/*
 * Asks about the entry of `key`, which does not count as a use of it. False: it is not there, or
 * `ask` says so. `ask` must not call the cache.
 */
bool cache_ask(struct cache *cache, struct cache_key key,
	       bool (*ask)(void *context, const struct cache_entry *entry), void *context);

/* W: a writing transaction begins; entries added from now on belong to it. */
void cache_begin(struct cache *cache);

/* W: a pinned entry is about to be changed. */
void cache_mark_dirty(struct cache *cache, struct cache_entry *entry);

/*
 * W: a pinned entry is about to change in memory only: there is nothing to put, but an abort has to
 * drop it.
 */
void cache_mark_touched(struct cache *cache, struct cache_entry *entry);

/* W: a dirty entry has been put into the store and takes `bytes` bytes now. */
void cache_mark_clean(struct cache *cache, struct cache_entry *entry, size_t bytes);

/*
 * W: calls `put` for dirty entries, those that were marked first, until no more than `limit` are
 * dirty, or all that are left are pinned. It puts an entry, pinned meanwhile, and marks it clean.
 * Its errors.
 */
int cache_put_dirty(struct cache *cache, uint32_t limit,
		    int (*put)(void *context, struct cache_entry *entry), void *context);

/* W: forgets an entry, dirty or not; it is destroyed when its last pin goes. */
void cache_drop(struct cache *cache, struct cache_entry *entry);

/* W: forgets all entries of a partition; of one identifier in it. */
void cache_drop_partition(struct cache *cache, uint16_t partition);
void cache_drop_identifier(struct cache *cache, uint16_t partition, uint64_t identifier);

/*
 * W: the transaction ends. At commit nothing may be dirty. Nothing may be pinned that the
 * transaction changed.
 */
void cache_commit(struct cache *cache);
void cache_abort(struct cache *cache);

/* Forgets everything; nothing may be pinned. */
void cache_clear(struct cache *cache);

#endif
