/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What keys mean, for people. */
#include "engine/objects/keys.h"

#include <inttypes.h>
#include <stdio.h>

#include "engine/sets/idset_node.h"

/* What stands behind the colon. */
#define PART_TEXT 72

/* Records of reserved identifiers that are numbered by their piece. */
static const struct {
	uint64_t identifier;
	const char *partition, *root; /* before the number; NULL: it has none */
} numbered[] = {
	{ RECORD_ID_VERSIONS, "version", "version of the device" },
	{ RECORD_ID_TIMES, NULL, "table of times, chunk" },
	{ RECORD_ID_HIDDEN, NULL, "hidden intervals, chunk" },
};

/* Sets, each a tree of nodes. */
static const struct {
	uint64_t identifier;
	const char *partition, *root;
} sets[] = {
	{ RECORD_ID_USER_OBJECTS, "user objects", "partitions" },
	{ RECORD_ID_COLLECTIONS, "collections", NULL },
	{ RECORD_ID_VERSION_SET, "kept versions", "kept versions of the device" },
	{ RECORD_ID_CLONE_SET, "clones", "taken partition indices" },
};

static bool equals(const struct record_key *key, struct record_key other)
{
	return key->class == other.class && key->piece == other.piece &&
	       key->identifier == other.identifier && key->partition == other.partition;
}

static void put_node(char text[PART_TEXT], const char *set, uint32_t piece)
{
	uint32_t node = piece >> IDSET_PART_BITS, part = piece & ((1U << IDSET_PART_BITS) - 1);

	if (part)
		snprintf(text, PART_TEXT, "%s, node %u, operations %u", set, node, part);
	else
		snprintf(text, PART_TEXT, "%s, node %u", set, node);
}

/* Of the root, a partition, an object or a collection; lasting attributes are an onode too. */
static bool describe_onode(const struct record_key *key, char text[PART_TEXT])
{
	bool is_lasting = key->identifier == RECORD_ID_LASTING;
	const char *of = is_lasting ? "lasting attributes" : "onode";
	uint32_t piece = key->piece;

	if (key->class != RECORD_CLASS_METADATA ||
	    (key->identifier > 0 && key->identifier < ENGINE_FIRST_ID && !is_lasting))
		return false;
	if (piece == RECORD_ONODE_PIECE)
		snprintf(text, PART_TEXT, "%s", of);
	else if (piece >= RECORD_ATTRIBUTES_PIECE && piece < RECORD_MEMBERS_PIECE)
		snprintf(text, PART_TEXT, "%s, chunk %u of its attributes", of,
			 piece - RECORD_ATTRIBUTES_PIECE);
	else if (piece >= RECORD_EXTENTS_PIECE && piece < RECORD_ATTRIBUTES_PIECE)
		snprintf(text, PART_TEXT, "%s, chunk %u of its extents", of,
			 piece - RECORD_EXTENTS_PIECE);
	else
		return false;
	return true;
}

static bool describe_set(const struct record_key *key, char text[PART_TEXT])
{
	bool is_collection = key->identifier >= ENGINE_FIRST_ID;
	uint32_t first = is_collection ? RECORD_MEMBERS_PIECE : 0;
	const char *set = is_collection ? "members" : NULL;

	for (size_t n = 0; n < sizeof(sets) / sizeof(sets[0]); n++)
		if (sets[n].identifier == key->identifier)
			set = key->partition == RECORD_ROOT_INDEX ? sets[n].root
								  : sets[n].partition;
	if (!set || key->piece < first || key->piece == RECORD_ONODE_PIECE ||
	    !equals(key, key_of_node(key->partition, key->identifier, key->piece - first)))
		return false;
	put_node(text, set, key->piece - first);
	return true;
}

static bool describe_reserved(const struct record_key *key, char text[PART_TEXT])
{
	bool is_root = key->partition == RECORD_ROOT_INDEX;

	for (size_t n = 0; n < sizeof(numbered) / sizeof(numbered[0]); n++) {
		const char *name = is_root ? numbered[n].root : numbered[n].partition;

		if (numbered[n].identifier != key->identifier || !name ||
		    key->class != RECORD_CLASS_HISTORY)
			continue;
		snprintf(text, PART_TEXT, "%s %u", name, key->piece);
		return true;
	}
	if (equals(key, key_of_state(key->partition)))
		snprintf(text, PART_TEXT, "state");
	else if (equals(key, key_of_history(key->partition)))
		snprintf(text, PART_TEXT, "what is kept of its history");
	else if (equals(key, key_of_version_name(key->partition, key->piece)))
		snprintf(text, PART_TEXT, "name of a version, hash 0x%x, place %u", key->piece / 8,
			 key->piece % 8);
	else
		return false;
	return true;
}

static bool describe_data(const struct record_key *key, char text[PART_TEXT])
{
	if (key->class != RECORD_CLASS_DATA || key->identifier < ENGINE_FIRST_ID ||
	    key->piece >= ENGINE_PIECES_MAX)
		return false;
	snprintf(text, PART_TEXT, "data piece %u", key->piece);
	return true;
}

const char *key_describe(const struct record_key *key, char text[KEY_TEXT])
{
	char of[48] = "root", part[PART_TEXT];
	int length = 0;

	if (!describe_data(key, part) && !describe_onode(key, part) && !describe_set(key, part) &&
	    !describe_reserved(key, part)) {
		snprintf(text, KEY_TEXT,
			 "unknown: partition %u, identifier 0x%" PRIx64 ", class %u, piece 0x%x",
			 key->partition, key->identifier, key->class, key->piece);
		return text;
	}
	if (key->partition != RECORD_ROOT_INDEX)
		length = snprintf(of, sizeof(of), "partition %u", key->partition);
	if (key->identifier >= ENGINE_FIRST_ID)
		snprintf(of + length, sizeof(of) - (size_t)length, "%sobject 0x%" PRIx64,
			 length ? ", " : "", key->identifier);
	snprintf(text, KEY_TEXT, "%s: %s", of, part);
	return text;
}
