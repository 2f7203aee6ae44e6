/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Loads and puts onodes: all that the engine knows about an object but its data. */
#include "engine/objects/onode.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/crc32c.h"

static_assert(ENGINE_ATTRIBUTE_SET_BYTES_MAX / (ATTRIBUTE_OVERHEAD + 1) <= UINT16_MAX,
	      "the number of attributes fits in its field");

struct onode *onode_new(uint16_t partition, uint64_t identifier)
{
	struct onode *onode = calloc(1, sizeof(*onode));

	if (onode)
		onode->entry.key =
			(struct cache_key){ .identifier = identifier, .partition = partition };
	return onode;
}

void onode_free(struct onode *onode)
{
	if (!onode)
		return;
	extents_free(&onode->extents);
	attribute_set_free(&onode->attributes);
	free(onode->data.bytes);
	free(onode);
}

void onode_destroy(struct cache_entry *entry)
{
	onode_free((struct onode *)entry);
}

size_t onode_bytes(const struct onode *onode)
{
	return sizeof(*onode) + onode->extents.capacity * sizeof(struct extent) +
	       onode->attributes.bytes_capacity + onode->data.capacity +
	       onode->attributes.offsets_capacity * sizeof(uint32_t);
}

/* ---- data in the onode ---- */

uint32_t onode_inline_max(uint32_t record_bytes)
{
	return (record_bytes - ONODE_HEAD_BYTES) / 2;
}

int onode_inline_set(struct onode *onode, const void *data, uint32_t length)
{
	struct inline_data *own = &onode->data;

	if (length > own->capacity) {
		uint8_t *bytes = realloc(own->bytes, length);

		if (!bytes)
			return -ENOMEM;
		own->bytes = bytes;
		own->capacity = length;
	}
	if (length)
		memcpy(own->bytes, data, length);
	own->length = length;
	own->here = true;
	return 0;
}

void onode_inline_end(struct onode *onode)
{
	onode->data.here = false;
	onode->data.length = 0;
}

/* ---- the head ---- */

void onode_head_encode(const struct onode_head *head, uint8_t *to)
{
	to[0] = ONODE_FORMAT;
	to[1] = (uint8_t)head->type;
	to[2] = head->flags;
	to[3] = 0;
	put_le16(to + 4, head->extents);
	put_le16(to + 6, head->attributes);
	put_le32(to + 8, head->attribute_bytes);
	put_le32(to + 12, head->extents_crc);
	put_le32(to + 16, head->attributes_crc);
	put_le64(to + 20, head->length);
	put_le48(to + 28, head->created_sequence);
	put_le48(to + 34, head->modified_sequence);
	put_le48(to + 40, head->void_sequence);
	for (int which = 0; which < ENGINE_TIMES; which++)
		put_le48(to + 46 + 6 * which, head->times_ms[which]);
}

int onode_head_decode(struct onode_head *head, const uint8_t *from, uint32_t length)
{
	uint64_t wanted = ONODE_HEAD_BYTES;

	if (length < ONODE_HEAD_BYTES || from[0] != ONODE_FORMAT || from[1] > ENGINE_USER_OBJECT ||
	    from[2] & ~(ONODE_EXTENTS_SPILLED | ONODE_ATTRIBUTES_SPILLED | ONODE_INLINE) ||
	    from[3] != 0)
		return -EBADMSG;
	*head = (struct onode_head){
		.type = (enum engine_type)from[1],
		.flags = from[2],
		.extents = get_le16(from + 4),
		.attributes = get_le16(from + 6),
		.attribute_bytes = get_le32(from + 8),
		.extents_crc = get_le32(from + 12),
		.attributes_crc = get_le32(from + 16),
		.length = get_le64(from + 20),
		.created_sequence = get_le48(from + 28),
		.modified_sequence = get_le48(from + 34),
		.void_sequence = get_le48(from + 40),
	};
	for (int which = 0; which < ENGINE_TIMES; which++)
		head->times_ms[which] = get_le48(from + 46 + 6 * which);
	if (head->extents > EXTENTS_MAX || head->attribute_bytes > ENGINE_ATTRIBUTE_SET_BYTES_MAX)
		return -EBADMSG;
	if (!(head->flags & ONODE_EXTENTS_SPILLED))
		wanted += head->extents * EXTENT_BYTES;
	if (!(head->flags & ONODE_ATTRIBUTES_SPILLED))
		wanted += head->attribute_bytes;
	if (!(head->flags & ONODE_INLINE))
		return length == wanted ? 0 : -EBADMSG;
	return length >= wanted && head->type == ENGINE_USER_OBJECT && head->extents == 0 &&
			       !(head->flags & ONODE_EXTENTS_SPILLED)
		       ? 0
		       : -EBADMSG;
}

/* ---- reading ---- */

static struct record_key key_of(const struct onode *onode, uint32_t piece)
{
	return key_of_onode_chunk(onode->entry.key.partition, onode->entry.key.identifier, piece);
}

/* Reads `length` spilled bytes from the chunks that begin at `piece`. The caller frees *bytes. */
static int chunks_load(struct record_store *store, const struct onode *onode, uint32_t piece,
		       uint64_t bound, uint32_t length, uint32_t crc, uint8_t **bytes)
{
	uint32_t chunk_bytes = record_bytes_max(store);
	uint8_t *buffer = malloc(length ? length : 1);
	int result = buffer ? 0 : -ENOMEM;

	for (uint32_t at = 0; !result && at < length; at += chunk_bytes, piece++) {
		uint32_t wanted = (uint32_t)min_u64(length - at, chunk_bytes);
		struct record_info info;

		result = record_get(store, key_of(onode, piece), bound, buffer + at, wanted, &info);
		if (result == -ENOENT || (!result && info.length < wanted))
			result = -EBADMSG;
	}
	if (!result && crc32c(0, buffer, length) != crc)
		result = -EBADMSG;
	if (result) {
		free(buffer);
		buffer = NULL;
	}
	*bytes = buffer;
	return result;
}

static int extents_load(struct record_store *store, struct onode *onode, uint64_t bound,
			const uint8_t *record)
{
	const struct onode_head *head = &onode->head;
	uint8_t *bytes = NULL;
	int result = 0;

	if (head->flags & ONODE_EXTENTS_SPILLED)
		result = chunks_load(store, onode, RECORD_EXTENTS_PIECE, bound,
				     head->extents * EXTENT_BYTES, head->extents_crc, &bytes);
	if (!result)
		result = extents_decode(&onode->extents, bytes ? bytes : record, head->extents);
	free(bytes);
	return result;
}

static int attributes_load(struct record_store *store, struct onode *onode, uint64_t bound,
			   const uint8_t *record)
{
	const struct onode_head *head = &onode->head;
	uint8_t *bytes = NULL;
	int result = 0;

	if (head->flags & ONODE_ATTRIBUTES_SPILLED)
		result = chunks_load(store, onode, RECORD_ATTRIBUTES_PIECE, bound,
				     head->attribute_bytes, head->attributes_crc, &bytes);
	if (!result)
		result = attribute_set_decode(&onode->attributes, bytes ? bytes : record,
					      head->attribute_bytes, head->attributes);
	free(bytes);
	return result;
}

/* The data of a small object, which is the rest of its record. */
static int inline_load(struct onode *onode, const uint8_t *record, uint32_t length)
{
	const struct onode_head *head = &onode->head;
	uint32_t at = ONODE_HEAD_BYTES;
	int result;

	if (!(head->flags & ONODE_INLINE))
		return 0;
	if (!(head->flags & ONODE_ATTRIBUTES_SPILLED))
		at += head->attribute_bytes;
	if (length - at > head->length)
		return -EBADMSG;
	result = extents_reserve(&onode->extents, 1);
	if (result)
		return result;
	extents_add(&onode->extents, 0, head->void_sequence);
	onode->extents.changed_from = onode->extents.count;
	return onode_inline_set(onode, record + at, length - at);
}

static int decode(struct record_store *store, struct onode *onode, uint64_t bound,
		  const uint8_t *record, uint32_t length, uint64_t created_min)
{
	const uint8_t *attributes = record + ONODE_HEAD_BYTES;
	int result = onode_head_decode(&onode->head, record, length);

	if (result)
		return result;
	/* Its chunks need not be there any more. */
	if (onode->head.created_sequence < created_min)
		return -ENOENT;
	if (!(onode->head.flags & ONODE_EXTENTS_SPILLED))
		attributes += onode->head.extents * EXTENT_BYTES;
	result = extents_load(store, onode, bound, record + ONODE_HEAD_BYTES);
	if (!result)
		result = attributes_load(store, onode, bound, attributes);
	return result ? result : inline_load(onode, record, length);
}

int onode_load(struct record_store *store, uint16_t partition, uint64_t identifier, uint64_t bound,
	       uint64_t created_min, uint64_t writing, struct onode **loaded)
{
	uint32_t capacity = record_bytes_max(store);
	struct onode *onode = onode_new(partition, identifier);
	uint8_t *record = malloc(capacity);
	struct record_info info;
	int result = -ENOMEM;

	if (onode && record)
		result = record_get(store, key_of(onode, RECORD_ONODE_PIECE), bound, record,
				    capacity, &info);
	if (!result)
		result = decode(store, onode, bound, record, info.length, created_min);
	if (!result && writing && info.sequence == writing) {
		/* Which pieces the transaction has put so far is forgotten, so assume all. */
		onode->written_sequence = writing;
		onode->written_end = ENGINE_PIECES_MAX;
	}
	free(record);
	if (result) {
		onode_free(onode);
		onode = NULL;
	}
	*loaded = onode;
	return result;
}

/* ---- writing ---- */

/* Extents of the record: the data of a small object needs none to be found. */
static uint32_t stored_extents(const struct onode *onode)
{
	return onode->data.here ? 0 : onode->extents.count;
}

/* Chooses what is spilled: the longer part first, the other one only if it still does not fit. */
static uint8_t choose_spilling(const struct onode *onode, uint32_t space)
{
	uint32_t extents = stored_extents(onode) * EXTENT_BYTES;
	uint32_t attributes = onode->attributes.length;

	if (onode->data.here)
		return ONODE_INLINE |
		       (attributes > space - onode->data.length ? ONODE_ATTRIBUTES_SPILLED : 0);
	if ((uint64_t)extents + attributes <= space)
		return 0;
	if (extents > attributes)
		return ONODE_EXTENTS_SPILLED | (attributes > space ? ONODE_ATTRIBUTES_SPILLED : 0);
	return ONODE_ATTRIBUTES_SPILLED | (extents > space ? ONODE_EXTENTS_SPILLED : 0);
}

/*
 * Every modification of a user object is a moment of it, so its records stay. A newer record may
 * absorb one in which only the accessed time is new. It may also absorb a collection's, because
 * nobody asks for single modifications of collections.
 */
static unsigned flags_of(const struct record_writer *writer, const struct onode *onode)
{
	bool modified = onode->head.modified_sequence == writer->sequence;

	return onode->absorb || !modified || onode->head.type != ENGINE_USER_OBJECT ? RECORD_ABSORB
										    : 0;
}

static int spill_extents(const struct record_writer *writer, struct onode *onode, bool all)
{
	const struct extents *extents = &onode->extents;
	uint32_t per_chunk = record_bytes_max(writer->store) / EXTENT_BYTES;
	uint32_t changed_from = all ? 0 : extents->changed_from;
	uint32_t piece = RECORD_EXTENTS_PIECE;
	uint32_t crc = 0;
	int result = 0;

	for (uint32_t first = 0; !result && first < extents->count; first += per_chunk, piece++) {
		uint32_t count = (uint32_t)min_u64(extents->count - first, per_chunk);

		extents_encode(extents, first, count, writer->page);
		crc = crc32c(crc, writer->page, count * EXTENT_BYTES);
		if (first + count > changed_from)
			result = record_put(writer, key_of(onode, piece), flags_of(writer, onode),
					    writer->page, count * EXTENT_BYTES);
	}
	onode->head.extents_crc = crc;
	return result;
}

static int spill_attributes(const struct record_writer *writer, struct onode *onode, bool all)
{
	const struct attribute_set *set = &onode->attributes;
	uint32_t chunk_bytes = record_bytes_max(writer->store);
	uint32_t piece = RECORD_ATTRIBUTES_PIECE;
	int result = 0;

	for (uint32_t at = 0; !result && at < set->length; at += chunk_bytes, piece++) {
		uint32_t bytes = (uint32_t)min_u64(set->length - at, chunk_bytes);

		if (all || (at < set->changed_end && at + bytes > set->changed_from))
			result = record_put(writer, key_of(onode, piece), flags_of(writer, onode),
					    set->bytes + at, bytes);
	}
	onode->head.attributes_crc = crc32c(0, set->bytes, set->length);
	return result;
}

/* Appends what is not in chunks to the head. Returns the length of the record. */
static uint32_t encode_parts(const struct onode *onode, uint8_t *record)
{
	uint32_t length = ONODE_HEAD_BYTES;

	if (!(onode->head.flags & ONODE_EXTENTS_SPILLED)) {
		extents_encode(&onode->extents, 0, onode->head.extents, record + length);
		length += onode->head.extents * EXTENT_BYTES;
	}
	if (!(onode->head.flags & ONODE_ATTRIBUTES_SPILLED) && onode->attributes.length) {
		memcpy(record + length, onode->attributes.bytes, onode->attributes.length);
		length += onode->attributes.length;
	}
	if (onode->data.here && onode->data.length) {
		memcpy(record + length, onode->data.bytes, onode->data.length);
		length += onode->data.length;
	}
	return length;
}

int onode_put(const struct record_writer *writer, struct onode *onode)
{
	uint8_t spilled =
		choose_spilling(onode, record_bytes_max(writer->store) - ONODE_HEAD_BYTES);
	uint8_t before = onode->head.flags;
	uint8_t *record = writer->page;
	uint32_t length;
	int result = 0;

	assert(!onode->data.here || onode->extents.pieces == 1);
	onode->head.extents_crc = onode->head.attributes_crc = 0;
	if (spilled & ONODE_EXTENTS_SPILLED)
		result = spill_extents(writer, onode, !(before & ONODE_EXTENTS_SPILLED));
	if (!result && spilled & ONODE_ATTRIBUTES_SPILLED)
		result = spill_attributes(writer, onode, !(before & ONODE_ATTRIBUTES_SPILLED));
	if (result)
		return result;
	onode->head.flags = spilled;
	onode->head.extents = (uint16_t)stored_extents(onode);
	onode->head.attributes = (uint16_t)onode->attributes.count;
	onode->head.attribute_bytes = onode->attributes.length;
	onode_head_encode(&onode->head, record);
	length = encode_parts(onode, record);
	result = record_put(writer, key_of(onode, RECORD_ONODE_PIECE), flags_of(writer, onode),
			    record, length);
	if (result) {
		onode->head.flags = before;
		return result;
	}
	onode->extents.changed_from = onode->extents.count;
	attribute_set_mark_put(&onode->attributes);
	return 0;
}
