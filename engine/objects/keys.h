/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Which keys the object layer uses (docs/objects.md). */
#ifndef MUNINN_ENGINE_OBJECTS_KEYS_H
#define MUNINN_ENGINE_OBJECTS_KEYS_H

#include <stdbool.h>
#include <stdint.h>

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
	RECORD_ID_VERSION_NAMES = 35, /* pieces by hash of the name */
	RECORD_ID_TIMES = 36,         /* of the root: times of the slots */
	RECORD_ID_HIDDEN = 37,        /* of the root: what rollbacks hide */
	RECORD_ID_LASTING = 38,       /* an onode: attributes that are no part of history */
	RECORD_ID_TIMELESS_END = 64,
};

/* ---- the only place that makes keys ---- */

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

/* A part of a set's node. The identifier names a reserved set, or a collection. */
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

/* A chunk of a table of the root. */
static inline struct record_key key_of_table(uint64_t table, uint32_t chunk)
{
	return key_make(RECORD_CLASS_HISTORY, RECORD_ROOT_INDEX, table, chunk);
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

/*
 * What a record with that key is, for people: "partition 3, object 0x10004: data piece 17". The
 * partition is its index. A key that nobody makes is told by its parts.
 */
#define KEY_TEXT 128
const char *key_describe(const struct record_key *key, char text[KEY_TEXT]);

#endif
