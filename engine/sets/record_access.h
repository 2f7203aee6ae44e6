/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Which keys the object layer uses (docs/objects.md), and short forms of the calls of records.h.
 */
#ifndef MUNINN_ENGINE_SETS_RECORD_ACCESS_H
#define MUNINN_ENGINE_SETS_RECORD_ACCESS_H

#include <errno.h>

#include "engine/engine.h"
#include "engine/records/records.h"

/* Partition index 0 is the root; identifier 0 is the partition (or the root) itself. */
#define RECORD_ROOT_INDEX 0

/* Pieces. Data pieces are 0..ENGINE_PIECES_MAX - 1. */
#define RECORD_EXTENTS_PIECE    UINT32_C(0x80000000) /* first chunk of a long extent list */
#define RECORD_ATTRIBUTES_PIECE UINT32_C(0x80010000) /* first chunk of a long attribute set */
#define RECORD_MEMBERS_PIECE    UINT32_C(0x80020000) /* nodes of a collection's set of members */
#define RECORD_ONODE_PIECE      UINT32_C(0xffffffff)

/* Reserved identifiers of a partition. */
enum {
	RECORD_ID_USER_OBJECTS =
		1,                 /* directory of user objects; of the root: table of partitions */
	RECORD_ID_COLLECTIONS = 2, /* directory of collections */
	RECORD_ID_VERSIONS = 3,    /* one piece for each ended user version */
	RECORD_ID_STATE = 4,       /* piece 0: the partition's state */
	/* What is said about history is not itself history: see key_is_timeless. */
	RECORD_ID_HISTORY = 32, /* piece 0: what is kept */
	RECORD_ID_VERSION_SET =
		33,               /* set of boundary << 16 | number of the versions that are kept */
	RECORD_ID_CLONE_SET = 34, /* set of bound << 16 | index of the clones that stand on it */
	RECORD_ID_VERSION_NAMES = 35,    /* pieces by hash of the name */
	RECORD_ID_TIMES = 36,            /* of the root: times of the slots */
	RECORD_ID_ROLLBACKS = 37,        /* of the root */
	RECORD_ID_LASTING = 38,          /* an onode: attributes that are no part of history */
	RECORD_ID_OBJECT_ROLLBACKS = 40, /* of the root */
	RECORD_ID_TIMELESS_END = 64,
};

/* ---- keys: the only place that makes them ---- */

static inline struct record_key key_make(enum record_class class, uint16_t partition,
					 uint64_t identifier, uint32_t piece)
{
	return (struct record_key){ .identifier = identifier,
				    .piece = piece,
				    .partition = partition,
				    .class = (uint8_t) class };
}

/* A page of an object's data. */
static inline struct record_key key_of_data(uint16_t partition, uint64_t object, uint32_t piece)
{
	return key_make(RECORD_CLASS_DATA, partition, object, piece);
}

/* The onode of an object, of a partition (0), or with lasting attributes (RECORD_ID_LASTING). */
static inline struct record_key key_of_onode(uint16_t partition, uint64_t object)
{
	return key_make(RECORD_CLASS_METADATA, partition, object, RECORD_ONODE_PIECE);
}

/* A chunk of an onode's extents or attributes. */
static inline struct record_key key_of_onode_chunk(uint16_t partition, uint64_t object,
						   uint32_t piece)
{
	return key_make(RECORD_CLASS_METADATA, partition, object, piece);
}

/* A part of a set's node. The identifier is that of a reserved set, or of a collection. */
static inline struct record_key key_of_node(uint16_t partition, uint64_t set, uint32_t part)
{
	bool of_history = set == RECORD_ID_VERSION_SET || set == RECORD_ID_CLONE_SET;

	return key_make(of_history ? RECORD_CLASS_HISTORY : RECORD_CLASS_NODE, partition, set,
			set < ENGINE_FIRST_ID ? part : RECORD_MEMBERS_PIECE + part);
}

static inline struct record_key key_of_state(uint16_t partition)
{
	return key_make(RECORD_CLASS_METADATA, partition, RECORD_ID_STATE, 0);
}

static inline struct record_key key_of_history(uint16_t partition)
{
	return key_make(RECORD_CLASS_HISTORY, partition, RECORD_ID_HISTORY, 0);
}

static inline struct record_key key_of_version(uint16_t partition, uint32_t number)
{
	return key_make(RECORD_CLASS_HISTORY, partition, RECORD_ID_VERSIONS, number);
}

static inline struct record_key key_of_version_name(uint16_t partition, uint32_t piece)
{
	return key_make(RECORD_CLASS_HISTORY, partition, RECORD_ID_VERSION_NAMES, piece);
}

/*
 * A chunk of a table of the root. Users put those of objects' rollbacks at will,
 * so they do not lie with what snapshots put.
 */
static inline struct record_key key_of_table(uint64_t table, uint32_t chunk)
{
	bool apart = table == RECORD_ID_TIMES || table == RECORD_ID_ROLLBACKS;

	return key_make(apart ? RECORD_CLASS_HISTORY : RECORD_CLASS_METADATA, RECORD_ROOT_INDEX,
			table, chunk);
}

/*
 * What is said about history itself: only ever read as of now. No rollback hides it, its epoch
 * never ends, and a clone does not share it with its source.
 */
static inline bool key_is_timeless(const struct record_key *key)
{
	return key->identifier == RECORD_ID_VERSIONS ||
	       (key->identifier >= RECORD_ID_HISTORY && key->identifier < RECORD_ID_TIMELESS_END);
}

static inline bool key_is_data(const struct record_key *key)
{
	return key->class == RECORD_CLASS_DATA;
}

/* ---- access ---- */

/* Bytes that a record is counted with beside its value. */
#define RECORD_OVERHEAD 28

/*
 * Partitions that are counted in one transaction: as many as it may put the access times of objects
 * in, which are the most that any puts something in, and the root. What it would put in further
 * ones is not counted.
 */
#define WRITTEN_PARTS 65

/* What one transaction has put, by partition. */
struct written_parts {
	uint32_t count;
	struct {
		uint16_t index;
		bool saves; /* the history is put again and counts up to `saved` */
		uint64_t bytes, saved;
	} list[WRITTEN_PARTS];
};

/* The place of an index, made if there is room; WRITTEN_PARTS: there is none. */
static inline uint32_t written_place(struct written_parts *parts, uint16_t index)
{
	uint32_t at = 0;

	while (at < parts->count && parts->list[at].index != index)
		at++;
	if (at == parts->count && at < WRITTEN_PARTS) {
		parts->list[at].index = index;
		parts->count++;
	}
	return at;
}

/* Counts a record of an index. */
static inline void written_add(struct written_parts *parts, uint16_t index, uint64_t bytes)
{
	uint32_t at = written_place(parts, index);

	if (at < WRITTEN_PARTS)
		parts->list[at].bytes += bytes;
}

/* What the open writing transaction puts with. */
struct record_writer {
	struct record_store *store;
	uint64_t sequence, epoch;
	uint8_t *page;       /* value_bytes_max bytes of scratch space for encoding */
	uint64_t *put_bytes; /* of the records that were put, is counted up; NULL: nobody asks */
	struct written_parts *written; /* the same by partition, of what is not timeless */
	enum record_room room;
};

static inline uint32_t record_bytes_max(struct record_store *store)
{
	return store->limits.value_bytes;
}

/* How records of a clone's sources are found: the object layer's (engine/objects/lineage.h). */
struct record_lineage {
	/* Whether a record may be one of a source; and the search that goes there. */
	bool (*concerns)(const struct record_store *store, const struct record_key *key);
	int (*get)(struct record_store *store, struct record_key key, uint64_t bound, void *value,
		   uint32_t capacity, struct record_info *info);
};

/*
 * The newest record within `bound`, tombstones too, wherever it is. Otherwise as
 * record_store_operations.get.
 */
static inline int record_get_any(struct record_store *store, struct record_key key, uint64_t bound,
				 void *value, uint32_t capacity, struct record_info *info)
{
	if (store->lineage && store->lineage->concerns(store, &key))
		return store->lineage->get(store, key, bound, value, capacity, info);
	return store->operations->get(store, &key, bound, value, capacity, info);
}

/* The same; -ENOENT also for a tombstone. */
static inline int record_get(struct record_store *store, struct record_key key, uint64_t bound,
			     void *value, uint32_t capacity, struct record_info *info)
{
	int result = record_get_any(store, key, bound, value, capacity, info);

	return result == 0 && info->flags & RECORD_TOMBSTONE ? -ENOENT : result;
}

/* record_get for `count` keys in a row; see record_store_operations.get_run. */
static inline void record_get_run(struct record_store *store, struct record_key key, uint32_t count,
				  uint64_t bound, uint8_t *values, uint32_t capacity,
				  struct record_found *found)
{
	bool has_lineage = store->lineage && store->lineage->concerns(store, &key);

	if (!has_lineage)
		store->operations->get_run(store, &key, count, bound, values, capacity, found);
	for (uint32_t n = 0; n < count; n++, key.piece++) {
		if (has_lineage)
			found[n].result = store->lineage->get(store, key, bound,
							      values + (size_t)n * capacity,
							      capacity, &found[n].info);
		if (found[n].result == 0 && found[n].info.flags & RECORD_TOMBSTONE)
			found[n].result = -ENOENT;
	}
}

static inline int record_put(const struct record_writer *writer, struct record_key key,
			     unsigned flags, const void *value, uint32_t length)
{
	uint64_t epoch = key_is_timeless(&key) ? RECORD_EPOCH_ENDLESS : writer->epoch;
	int result = writer->store->operations->put(writer->store, &key, epoch, flags, value,
						    length, writer->room);

	if (!result && writer->put_bytes)
		*writer->put_bytes += RECORD_OVERHEAD + length;
	if (!result && writer->written && !key_is_timeless(&key))
		written_add(writer->written, key.partition, RECORD_OVERHEAD + length);
	return result;
}

#endif
