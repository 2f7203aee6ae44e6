/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The state of a partition (or the root): what is known about it beside its attributes and times,
 * and where its directories begin. Byte layout in docs/objects.md.
 */
#ifndef MUNINN_ENGINE_OBJECTS_PARTITION_H
#define MUNINN_ENGINE_OBJECTS_PARTITION_H

#include <stdint.h>

#include "engine/engine.h"
#include "engine/records/access.h"
#include "engine/records/cache.h"
#include "engine/sets/idset.h"

struct engine;
struct engine_txn;
struct history;

#define PARTITION_FORMAT      1
#define PARTITION_STATE_BYTES 144
/* Of a clone that knows when what it shows was. */
#define PARTITION_CLONE_BYTES 150

/*
 * The directories of a partition. The root's PARTITION_USER_OBJECTS holds partition ID << 16 |
 * partition index.
 */
enum { PARTITION_USER_OBJECTS, PARTITION_COLLECTIONS, PARTITION_SETS };

/*
 * Where a clone finds what it has not got itself: in partition `index` as of `bound`, but nothing
 * older than `source_since` there; of its own index nothing older than `since`.
 */
struct partition_origin {
	uint16_t index; /* 0: not a clone */
	bool associated, writable;
	uint64_t bound, since;
	uint64_t ms; /* when the bound was; 0: not known */
};

struct partition {
	struct cache_entry entry; /* key: 0, partition ID, 0 */
	uint64_t id;
	uint16_t index;
	uint16_t version; /* current user version; of the root 0 */
	bool is_unlogged; /* as engine_partition_unlog makes it */
	uint64_t created_sequence;
	uint64_t used_bytes; /* sum over its objects */
	struct idset_header sets[PARTITION_SETS];
	struct partition_origin origin; /* of a clone */
	struct history *history;        /* of current ones; of old states NULL */
	uint64_t written_mark; /* the count that the one in its history is as of: see written.h */
	bool state_changed, history_changed;
	/* Atomic; facts are written before it becomes true, under the engine's facts_mutex. */
	bool facts_known;
	struct engine_facts facts;
};

/*
 * Objects of its index that were created before this belong to an earlier partition. A clone's
 * store sees to that itself.
 */
static inline uint64_t partition_objects_since(const struct partition *partition)
{
	return partition->origin.index ? 0 : partition->created_sequence;
}

/* Encodes into `to`, and returns the length: PARTITION_STATE_BYTES, or PARTITION_CLONE_BYTES. */
uint32_t partition_encode(const struct partition *partition, uint8_t *to);

/* Fills in everything but entry and index. -EBADMSG. */
int partition_decode(struct partition *partition, const uint8_t *from, uint32_t length);

/* As a cache's destroy function. */
void partition_destroy(struct cache_entry *entry);

/* Whether it is a clone that only shows its source. */
static inline bool partition_is_read_only(const struct partition *partition)
{
	return partition->origin.index && !partition->origin.writable;
}

/* The memory of a partition in the cache, its history included. */
size_t partition_bytes(const struct engine *engine);

/* One that has just the key of its cache entry; the caller adds it to the cache. NULL: no memory.
 */
struct partition *partition_new(const struct engine *engine, uint64_t id);

/* The current state of partition `id`, 0 = the root, pinned. -ENOENT: no such partition. */
int partition_get(struct engine *engine, uint64_t id, struct partition **partition);
void partition_release(struct engine *engine, struct partition *partition);

/*
 * Makes memory forget a pinned partition, its objects and sets, and what clones find through it:
 * its records have become others. The caller still releases it.
 */
void partition_forget(struct engine *engine, struct partition *partition);

/* The root, and a partition or the root again; both pinned. */
struct partition_pair {
	struct partition *root, *partition;
};

int partition_get_pair(struct engine *engine, uint64_t id, struct partition_pair *pair);
void partition_release_pair(struct engine *engine, const struct partition_pair *pair);

/* The index of the partition that had an ID at `bound`. -ENOENT: none had. -EIO, -EBADMSG. */
int partition_index_as_of(struct engine *engine, uint64_t id, uint64_t bound, uint16_t *index);

/*
 * Reads the state of partition `id`, 0 = the root, as of sequence number `bound`. -ENOENT: it did
 * not exist.
 */
int partition_as_of(struct engine *engine, uint64_t id, uint64_t bound,
		    struct partition *partition);

/* Reads the state under an index as of `bound`, whoever it belonged to. -ENOENT: to nobody. */
int partition_state_of(struct record_store *store, uint16_t index, uint64_t bound,
		       struct partition *partition);

/*
 * What readers at `bound` find under an index, and from which number on it has been so; what lies
 * before that, the number before it tells. After a removal it is a state with ID 0; *since = 0:
 * nothing was ever there. -EIO, -EBADMSG.
 */
int partition_found_at(struct record_store *store, uint16_t index, uint64_t bound,
		       struct partition *partition, uint64_t *since);

/* The directory `which` of a partition, current with `bound` RECORD_NEWEST. */
struct idset partition_set(struct engine *engine, struct partition *partition, int which,
			   uint64_t bound);

/*
 * Puts changed states until there may be one more. -ENOSPC, -EIO: of one that was put.
 */
int partitions_limit_dirty(struct engine_txn *txn);

/* The pinned state is about to be changed, behind partitions_limit_dirty. */
void partition_mark(struct engine_txn *txn, struct partition *partition);

/* The same for what is known of its history. */
void partition_mark_history(struct engine_txn *txn, struct partition *partition);

/* Attributes of a pinned partition have changed: its facts are made anew. */
void partition_forget_facts(struct partition *partition);

/* Puts the state (and history) of a pinned partition at once. */
int partition_put_now(struct engine_txn *txn, struct partition *partition);

/* The same for the history alone. */
int partition_put_history(struct engine_txn *txn, struct partition *partition);

/* Puts the states that the transaction changed. */
int partition_put_dirty(struct engine_txn *txn);

#endif
