/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Which keys the object layer uses (docs/objects.md), and short forms of the calls of records.h.
 */
#ifndef MUNINN_ENGINE_OBJECTS_RECORD_ACCESS_H
#define MUNINN_ENGINE_OBJECTS_RECORD_ACCESS_H

#include <errno.h>

#include "engine/history/written.h"
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
	/* What is said about history is not itself history: see record_is_timeless. */
	RECORD_ID_HISTORY = 32, /* piece 0: what is kept */
	RECORD_ID_VERSION_SET =
		33,               /* set of boundary << 16 | number of the versions that are kept */
	RECORD_ID_CLONE_SET = 34, /* set of bound << 16 | index of the clones that stand on it */
	RECORD_ID_VERSION_NAMES = 35,    /* pieces by hash of the name */
	RECORD_ID_TIMES = 36,            /* of the root: times of the slots */
	RECORD_ID_ROLLBACKS = 37,        /* of the root */
	RECORD_ID_LASTING = 38,          /* an onode: attributes that are no part of history */
	RECORD_ID_CLOCK = 39,            /* of the root: times in doubt, see clock.h */
	RECORD_ID_OBJECT_ROLLBACKS = 40, /* of the root */
};

/* Bytes that a record is counted with beside its value. */
#define RECORD_OVERHEAD 28

/* What the open writing transaction puts with. */
struct record_writer {
	struct record_store *store;
	uint64_t sequence;
	uint8_t *page;       /* value_bytes_max bytes of scratch space for encoding */
	uint64_t *put_bytes; /* of the records that were put, is counted up; NULL: nobody asks */
	struct written_parts *written; /* the same by partition, of what is not timeless */
	enum record_room room;
};

static inline uint32_t record_bytes_max(struct record_store *store)
{
	return store->operations->value_bytes_max(store);
}

/* lineage.c: whether a record may be one of a clone's source, and the search that goes there. */
bool lineage_concerns(const struct record_store *store, const struct record_key *key);
int lineage_get(struct record_store *store, struct record_key key, uint64_t bound, void *value,
		uint32_t capacity, struct record_info *info);

/*
 * The newest record within `bound`, tombstones too, wherever it is. Otherwise as
 * record_store_operations.get.
 */
static inline int record_get_any(struct record_store *store, struct record_key key, uint64_t bound,
				 void *value, uint32_t capacity, struct record_info *info)
{
	if (store->lineage && lineage_concerns(store, &key))
		return lineage_get(store, key, bound, value, capacity, info);
	return store->operations->get(store, &key, bound, value, capacity, info);
}

/* The same; -ENOENT also for a tombstone. */
static inline int record_get(struct record_store *store, struct record_key key, uint64_t bound,
			     void *value, uint32_t capacity, struct record_info *info)
{
	int result = record_get_any(store, key, bound, value, capacity, info);

	return result == 0 && info->flags & RECORD_TOMBSTONE ? -ENOENT : result;
}

static inline int record_put(const struct record_writer *writer, struct record_key key,
			     uint16_t version, unsigned flags, const void *value, uint32_t length)
{
	int result = writer->store->operations->put(writer->store, &key, version, flags, value,
						    length, writer->room);

	if (!result && writer->put_bytes)
		*writer->put_bytes += RECORD_OVERHEAD + length;
	if (!result && writer->written && !record_is_timeless(&key))
		written_add(writer->written, key.partition, RECORD_OVERHEAD + length);
	return result;
}

#endif
