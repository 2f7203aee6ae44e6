/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The onode: everything about an object but its data, decoded, and the record that it is stored in.
 * Byte layout in docs/objects.md.
 */
#ifndef MUNINN_ENGINE_OBJECTS_ONODE_H
#define MUNINN_ENGINE_OBJECTS_ONODE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "engine/objects/attribute_set.h"
#include "engine/objects/extents.h"
#include "engine/objects/keys.h"
#include "engine/records/access.h"
#include "engine/records/cache.h"

#define ONODE_FORMAT     2
#define ONODE_HEAD_BYTES 76

/* Times and sequence numbers are stored in 48 bits. */
#define ONODE_TIME_MAX ((UINT64_C(1) << 48) - 1)

/* What the flags byte of the record says. */
enum {
	ONODE_EXTENTS_SPILLED = 1 << 0,
	ONODE_ATTRIBUTES_SPILLED = 1 << 1,
	ONODE_INLINE = 1 << 2, /* the object's data is here; no extents are stored */
};

/* The fixed part of the record. */
struct onode_head {
	enum engine_type type;
	uint8_t flags;
	uint16_t extents;    /* count */
	uint16_t attributes; /* count */
	uint32_t attribute_bytes;
	uint32_t extents_crc, attributes_crc; /* CRC-32C of what is spilled, otherwise 0 */
	uint64_t length;
	uint64_t created_sequence, modified_sequence, void_sequence;
	uint64_t times_ms[ENGINE_TIMES];
};

/*
 * The data of a small object. It stands for the record of piece 0: that one is the object's only
 * piece, which the extents have as any other.
 */
struct inline_data {
	bool here;
	uint32_t length, capacity;
	uint8_t *bytes; /* owned */
};

struct onode {
	struct cache_entry entry; /* key: partition index, identifier, 0 */
	bool absorb;              /* the next put may go in favour of a later one of its slot */
	struct onode_head head;   /* flags, counts and CRCs are as last put, the rest is current */
	struct extents extents;
	struct attribute_set attributes;
	struct inline_data data;
	/*
	 * Data pieces that transaction `written_sequence` has put: written_first..written_end - 1.
	 */
	uint64_t written_sequence, written_first, written_end;
};

/* A new onode with everything zero but its key. NULL: no memory. */
struct onode *onode_new(uint16_t partition, uint64_t identifier);

void onode_free(struct onode *onode);

/* As a cache's destroy function. */
void onode_destroy(struct cache_entry *entry);

/* Memory that an onode takes. */
size_t onode_bytes(const struct onode *onode);

/*
 * Most bytes of data that an onode's record takes along in a store of such records: at least as
 * much is left for extents and attributes.
 */
uint32_t onode_inline_max(uint32_t record_bytes);

/*
 * Makes `length` bytes what piece 0 holds, in the onode; `data` may not be the onode's own.
 * -ENOMEM.
 */
int onode_inline_set(struct onode *onode, const void *data, uint32_t length);

/* Piece 0 is not in the onode any more. */
void onode_inline_end(struct onode *onode);

/* Encodes into ONODE_HEAD_BYTES bytes. */
void onode_head_encode(const struct onode_head *head, uint8_t *to);

/* -EBADMSG when `length` bytes are not a record that begins with a valid head. */
int onode_head_decode(struct onode_head *head, const uint8_t *from, uint32_t length);

/*
 * Reads the onode of an object as of `bound`. One created before sequence number `created_min` is
 * none: it belongs to an earlier partition with this index. `writing` = sequence number of the open
 * writing transaction if that is the caller, otherwise 0. -ENOENT: there is none. -EBADMSG,
 * -ENOMEM. The caller owns *onode.
 */
int onode_load(struct record_store *store, uint16_t partition, uint64_t identifier, uint64_t bound,
	       uint64_t created_min, uint64_t writing, struct onode **onode);

/*
 * Puts the onode's record and those chunks of it that changed. -ENOSPC, -EIO: some of them may have
 * been put.
 */
int onode_put(const struct record_writer *writer, struct onode *onode);

#endif
