/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The state of a partition (or the root): what is known about it beside its attributes and times, and where its
 * directories begin. Byte layout in docs/objects.md.
 */
#ifndef MUNINN_ENGINE_PARTITION_H
#define MUNINN_ENGINE_PARTITION_H

#include <stdint.h>

#include "engine/cache.h"
#include "engine/idset.h"

struct engine;
struct engine_txn;

#define PARTITION_FORMAT      1
#define PARTITION_STATE_BYTES 128
/* An ended version: sequence number of its last transaction 6, time of its end in ms 6 bytes. */
#define VERSION_RECORD_BYTES 12
/* User versions are numbered 1..65535; the root has only version 0. */
#define PARTITION_VERSIONS_MAX 65535

/* The directories of a partition. The root's PARTITION_USER_OBJECTS holds partition ID << 16 | partition index. */
enum { PARTITION_USER_OBJECTS, PARTITION_COLLECTIONS, PARTITION_SETS };

struct partition {
	struct cache_entry entry; /* key: 0, partition ID, 0 */
	uint64_t id;
	uint16_t index;
	uint16_t version; /* current user version */
	uint64_t
		created_sequence; /* objects of this index that are older belong to an earlier partition */
	uint64_t used_bytes; /* sum over its objects */
	struct idset_header sets[PARTITION_SETS];
};

/* Encodes into PARTITION_STATE_BYTES bytes. */
void partition_encode(const struct partition *partition, uint8_t *to);

/* Fills in everything but entry and index. -EBADMSG. */
int partition_decode(struct partition *partition, const uint8_t *from, uint32_t length);

/* As a cache's destroy function. */
void partition_destroy(struct cache_entry *entry);

/* The current state of partition `id`, 0 = the root, pinned. -ENOENT: no such partition. */
int partition_get(struct engine *engine, uint64_t id, struct partition **partition);
void partition_release(struct engine *engine, struct partition *partition);

/* Reads the state of old: `partition` is `current` as of sequence number `bound`. -EBADMSG if it is not there. */
int partition_as_of(struct engine *engine, const struct partition *current, uint64_t bound,
		    struct partition *partition);

/*
 * Where user version `version` of a partition ended: everything up to *boundary belongs to it. -ENOENT: it has
 * not ended, or there is none.
 */
int partition_boundary(struct engine *engine, const struct partition *partition, uint32_t version,
		       uint64_t *boundary);

/* The directory `which` of a partition, current with `bound` RECORD_NEWEST. */
struct idset partition_set(struct engine *engine, struct partition *partition, int which,
			   uint64_t bound);

/* Makes room for one more changed state. -ENOSPC, -EIO: of another one that had to be put for it. */
int partition_room(struct engine_txn *txn);

/* The pinned state is about to be changed; there is room. */
void partition_mark(struct engine_txn *txn, struct partition *partition);

/* Puts the states that the transaction changed. */
int partition_put_dirty(struct engine_txn *txn);

#endif
