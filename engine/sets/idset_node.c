/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Loads, changes and puts one node of a set of IDs. */
#include "engine/sets/idset_node.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"

static_assert(IDSET_OPERATIONS_MAX / IDSET_OPERATIONS_PER_PART < 1 << IDSET_PART_BITS,
	      "all operations fit in the parts");

/* A node takes a half of a page at most, so that it finds space beside other small records. */
#define NODE_OF_PAGE 2

/* What an inner node keeps in memory of each child, beside its key. */
#define CHILD_BYTES (sizeof(uint64_t) + sizeof(uint32_t))

uint32_t idset_node_capacity(enum idset_kind kind, uint32_t record_bytes)
{
	return (record_bytes / NODE_OF_PAGE - IDSET_BASE_HEAD_BYTES) /
	       (kind == IDSET_LEAF ? IDSET_LEAF_ENTRY_BYTES : IDSET_INNER_ENTRY_BYTES);
}

struct cache_key idset_node_cache_key(const struct record_key *first, uint32_t number)
{
	return (struct cache_key){ .identifier = first->identifier,
				   .number = number,
				   .partition = first->partition };
}

struct idset_node *idset_node_new(const struct record_key *first, uint32_t number,
				  enum idset_kind kind, uint32_t record_bytes)
{
	uint32_t capacity = idset_node_capacity(kind, record_bytes);
	size_t children = kind == IDSET_INNER ? capacity * CHILD_BYTES : 0;
	struct idset_node *node;

	node = calloc(1, sizeof(*node) + capacity * sizeof(node->keys[0]) + children);
	if (!node)
		return NULL;
	node->entry.key = idset_node_cache_key(first, number);
	node->first = *first;
	node->kind = kind;
	node->capacity = capacity;
	if (children) {
		node->counts = node->keys + capacity;
		node->children = (uint32_t *)(node->counts + capacity);
	}
	return node;
}

size_t idset_node_bytes(const struct idset_node *node)
{
	return sizeof(*node) +
	       node->capacity * (sizeof(node->keys[0]) + (node->children ? CHILD_BYTES : 0));
}

void idset_node_destroy(struct cache_entry *entry)
{
	free((struct idset_node *)entry);
}

uint32_t idset_node_position(const struct idset_node *node, uint64_t id)
{
	uint32_t low = 0, high = node->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (node->keys[middle] < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void idset_node_insert(struct idset_node *node, uint32_t index, uint64_t key, uint32_t child)
{
	assert(node->count < node->capacity && index <= node->count);
	memmove(&node->keys[index + 1], &node->keys[index],
		(node->count - index) * sizeof(node->keys[0]));
	node->keys[index] = key;
	if (node->children) {
		memmove(&node->children[index + 1], &node->children[index],
			(node->count - index) * sizeof(node->children[0]));
		node->children[index] = child;
		memmove(&node->counts[index + 1], &node->counts[index],
			(node->count - index) * sizeof(node->counts[0]));
		node->counts[index] = 0;
	}
	node->count++;
}

void idset_node_remove(struct idset_node *node, uint32_t index)
{
	uint32_t behind = node->count - index - 1;

	assert(index < node->count);
	memmove(&node->keys[index], &node->keys[index + 1], behind * sizeof(node->keys[0]));
	if (node->children) {
		memmove(&node->children[index], &node->children[index + 1],
			behind * sizeof(node->children[0]));
		memmove(&node->counts[index], &node->counts[index + 1],
			behind * sizeof(node->counts[0]));
	}
	node->count--;
	if (node->children && index == 0 && node->count)
		node->keys[0] = 0;
}

void idset_node_split(struct idset_node *node, uint32_t from, struct idset_node *right)
{
	uint32_t moved = node->count - from;

	assert(from <= node->count && right->count == 0 && right->kind == node->kind);
	memcpy(right->keys, &node->keys[from], moved * sizeof(node->keys[0]));
	if (node->children) {
		memcpy(right->children, &node->children[from], moved * sizeof(node->children[0]));
		memcpy(right->counts, &node->counts[from], moved * sizeof(node->counts[0]));
	}
	right->count = moved;
	node->count = from;
}

/* So few that reading them does not cost more than the page they save. */
static uint32_t operations_max(const struct idset_node *node)
{
	return (uint32_t)min_u64(IDSET_OPERATIONS_MAX, node->capacity / 2);
}

bool idset_node_log(struct idset_node *node, enum idset_operation_kind kind, uint64_t id)
{
	if (node->whole)
		return true;
	if (node->kind != IDSET_LEAF || node->operations_count >= operations_max(node))
		return false;
	node->operations[node->operations_count++] =
		(struct idset_operation){ .id = id, .kind = kind };
	return true;
}

/* ---- records ---- */

static struct record_key key_of(const struct record_key *first, uint32_t number, uint32_t part)
{
	struct record_key key = *first;

	key.piece += number << IDSET_PART_BITS | part;
	return key;
}

/* Fills in an empty node from its base record. */
static int decode_base(struct idset_node *node, const uint8_t *from)
{
	const uint8_t *at = from + IDSET_BASE_HEAD_BYTES;

	node->generation = get_le32(from + 4);
	node->count = get_le16(from + 2);
	for (uint32_t index = 0; index < node->count; index++) {
		node->keys[index] = get_le64(at);
		at += sizeof(uint64_t);
		if (index && node->keys[index] <= node->keys[index - 1])
			return -EBADMSG;
		if (node->kind == IDSET_LEAF)
			continue;
		node->children[index] = get_le32(at);
		at += sizeof(uint32_t);
		if (node->children[index] >= IDSET_NODES_MAX)
			return -EBADMSG;
	}
	if (node->kind == IDSET_INNER && (node->count == 0 || node->keys[0] != 0))
		return -EBADMSG;
	return 0;
}

/* Whether `length` bytes look like a base record; its kind and that its count fits. */
static int check_base(const uint8_t *from, uint32_t length, uint32_t record_bytes,
		      enum idset_kind *kind)
{
	uint32_t entry_bytes, count;

	if (length < IDSET_BASE_HEAD_BYTES || from[1] != 0 ||
	    (from[0] != IDSET_LEAF && from[0] != IDSET_INNER))
		return -EBADMSG;
	*kind = (enum idset_kind)from[0];
	entry_bytes = *kind == IDSET_LEAF ? IDSET_LEAF_ENTRY_BYTES : IDSET_INNER_ENTRY_BYTES;
	count = get_le16(from + 2);
	if (count > idset_node_capacity(*kind, record_bytes) ||
	    length != IDSET_BASE_HEAD_BYTES + count * entry_bytes)
		return -EBADMSG;
	return 0;
}

static int apply(struct idset_node *node, struct idset_operation operation)
{
	uint32_t index = idset_node_position(node, operation.id);
	bool found = index < node->count && node->keys[index] == operation.id;

	if (operation.kind == IDSET_INSERT && !found && node->count < node->capacity)
		idset_node_insert(node, index, operation.id, 0);
	else if (operation.kind == IDSET_REMOVE && found)
		idset_node_remove(node, index);
	else
		return -EBADMSG;
	return idset_node_log(node, operation.kind, operation.id) ? 0 : -EBADMSG;
}

/* Applies the operations of one part's record. */
static int apply_part(struct idset_node *node, const uint8_t *from, uint32_t length)
{
	uint32_t count = (length - IDSET_PART_HEAD_BYTES) / IDSET_OPERATION_BYTES;
	int result = 0;

	if (count == 0 || count > IDSET_OPERATIONS_PER_PART ||
	    length != IDSET_PART_HEAD_BYTES + count * IDSET_OPERATION_BYTES)
		return -EBADMSG;
	from += IDSET_PART_HEAD_BYTES;
	for (uint32_t index = 0; !result && index < count; index++, from += IDSET_OPERATION_BYTES)
		result = apply(node, (struct idset_operation){
					     .id = get_le64(from + 1),
					     .kind = (enum idset_operation_kind)from[0] });
	return result;
}

/* Reads the parts in order until one is missing or belongs to an earlier base. */
static int load_parts(struct record_store *store, struct idset_node *node, uint64_t bound,
		      uint64_t base_sequence)
{
	uint8_t record[IDSET_PART_HEAD_BYTES + IDSET_OPERATIONS_PER_PART * IDSET_OPERATION_BYTES];
	struct record_info info;
	int result = 0;

	for (uint32_t part = 1; part <= IDSET_OPERATIONS_MAX / IDSET_OPERATIONS_PER_PART; part++) {
		result = record_get(store, key_of(&node->first, node->entry.key.number, part),
				    bound, record, sizeof(record), &info);
		if (result == -ENOENT)
			return 0;
		if (result)
			return result;
		if (info.length < IDSET_PART_HEAD_BYTES)
			return -EBADMSG;
		if (info.sequence < base_sequence || get_le32(record) != node->generation)
			return 0;
		result = apply_part(node, record, info.length);
		if (result)
			return result;
		if (node->operations_count < part * IDSET_OPERATIONS_PER_PART)
			return 0;
	}
	return 0;
}

int idset_node_load(struct record_store *store, const struct record_key *first, uint32_t number,
		    uint64_t bound, struct idset_node **loaded)
{
	uint32_t capacity = record_bytes_max(store);
	uint8_t *record = malloc(capacity);
	struct idset_node *node = NULL;
	struct record_info info;
	enum idset_kind kind;
	int result = -ENOMEM;

	if (record)
		result =
			record_get(store, key_of(first, number, 0), bound, record, capacity, &info);
	if (result == -ENOENT)
		result = -EBADMSG;
	if (!result)
		result = check_base(record, info.length, capacity, &kind);
	if (!result) {
		node = idset_node_new(first, number, kind, capacity);
		result = node ? decode_base(node, record) : -ENOMEM;
	}
	if (!result && kind == IDSET_LEAF)
		result = load_parts(store, node, bound, info.sequence);
	if (!result)
		node->operations_put = node->operations_count;
	free(record);
	if (result) {
		free(node);
		node = NULL;
	}
	*loaded = node;
	return result;
}

static int put_base(const struct record_writer *writer, struct idset_node *node)
{
	uint8_t *at = writer->page;

	at[0] = (uint8_t)node->kind;
	at[1] = 0;
	put_le16(at + 2, (uint16_t)node->count);
	put_le32(at + 4, node->generation);
	at += IDSET_BASE_HEAD_BYTES;
	for (uint32_t index = 0; index < node->count; index++) {
		put_le64(at, node->keys[index]);
		at += sizeof(uint64_t);
		if (node->kind == IDSET_INNER) {
			put_le32(at, node->children[index]);
			at += sizeof(uint32_t);
		}
	}
	return record_put(writer, key_of(&node->first, node->entry.key.number, 0), RECORD_ABSORB,
			  writer->page, (uint32_t)(at - writer->page));
}

static int put_part(const struct record_writer *writer, struct idset_node *node, uint32_t part)
{
	uint32_t first = (part - 1) * IDSET_OPERATIONS_PER_PART;
	uint32_t end = (uint32_t)min_u64(node->operations_count, part * IDSET_OPERATIONS_PER_PART);
	uint8_t *at = writer->page;

	put_le32(at, node->generation);
	at += IDSET_PART_HEAD_BYTES;
	for (uint32_t index = first; index < end; index++, at += IDSET_OPERATION_BYTES) {
		at[0] = (uint8_t)node->operations[index].kind;
		put_le64(at + 1, node->operations[index].id);
	}
	return record_put(writer, key_of(&node->first, node->entry.key.number, part), RECORD_ABSORB,
			  writer->page, (uint32_t)(at - writer->page));
}

int idset_node_put(const struct record_writer *writer, struct idset_node *node)
{
	uint32_t part = node->operations_put / IDSET_OPERATIONS_PER_PART + 1;
	int result = 0;

	if (node->whole) {
		result = put_base(writer, node);
		if (result)
			return result;
		node->whole = false;
		node->operations_count = node->operations_put = 0;
		return 0;
	}
	for (; !result && (part - 1) * IDSET_OPERATIONS_PER_PART < node->operations_count; part++)
		result = put_part(writer, node, part);
	if (!result)
		node->operations_put = node->operations_count;
	return result;
}
