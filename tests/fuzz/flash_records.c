/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Fuzzes the records that the object layer keeps. */
#include "tests/fuzz/flash_records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/crc32c.h"
#include "engine/history/history.h"
#include "engine/objects/onode.h"
#include "engine/objects/partition.h"
#include "engine/sets/idset_node.h"

#define PAGE_BYTES  512
#define RECORDS_MAX 16
/* Calls on what was decoded. */
#define CALLS_MAX 16

/* ---- a store that holds what the input says ---- */

struct held {
	uint32_t piece, length;
	uint64_t sequence;
	uint8_t bytes[PAGE_BYTES];
};

struct held_store {
	struct record_store store; /* first */
	struct held records[RECORDS_MAX];
	unsigned count;
};

static int get(struct record_store *store, const struct record_key *key, uint64_t bound,
	       void *value, uint32_t capacity, struct record_info *info)
{
	struct held_store *held = (struct held_store *)store;

	(void)bound;
	for (unsigned i = 0; i < held->count; i++) {
		const struct held *record = &held->records[i];

		if (record->piece != key->piece)
			continue;
		*info = (struct record_info){ .sequence = record->sequence,
					      .length = record->length };
		if (capacity > 0)
			memcpy(value, record->bytes, min_u64(record->length, capacity));
		return 0;
	}
	return -ENOENT;
}

static void get_run(struct record_store *store, const struct record_key *key, uint32_t count,
		    uint64_t bound, uint8_t *values, uint32_t capacity, struct record_found *found)
{
	struct record_key piece = *key;

	for (uint32_t n = 0; n < count; n++, piece.piece++)
		found[n].result = get(store, &piece, bound, values + (size_t)n * capacity, capacity,
				      &found[n].info);
}

static const struct record_store_operations operations = {
	.get = get,
	.get_run = get_run,
};

/* Takes a record off the input; NULL: there is no more room. */
static struct held *hold(struct held_store *held, uint32_t piece, uint64_t sequence,
			 struct fuzz_reader *input, size_t length)
{
	struct held *record = &held->records[held->count];
	size_t taken;
	const uint8_t *bytes = fuzz_take(input, min_u64(length, PAGE_BYTES), &taken);

	if (held->count == RECORDS_MAX)
		return NULL;
	record->piece = piece;
	record->sequence = sequence;
	record->length = (uint32_t)taken;
	if (taken > 0)
		memcpy(record->bytes, bytes, taken);
	held->count++;
	return record;
}

/* ---- extents and attributes ---- */

static void use_extents(struct extents *extents, struct fuzz_reader *input)
{
	for (int i = 0; i < CALLS_MAX && input->left > 0; i++) {
		uint8_t call = fuzz_take8(input);
		uint32_t piece = fuzz_take32(input) & (ENGINE_PIECES_MAX - 1);
		const struct extent *found = extents_find(extents, piece);
		uint32_t next = extents_next_piece(extents, piece);

		fuzz_check(!found ||
			   (found->first <= piece && piece - found->first < found->count));
		fuzz_check(next == EXTENTS_NO_PIECE || next >= piece);
		fuzz_check((found != NULL) == (next == piece));
		if (extents->count >= EXTENTS_MAX || extents_reserve(extents, 1) != 0)
			return;
		if (call & 1)
			extents_remove(extents, piece, piece + 1 + (uint64_t)fuzz_take16(input));
	}
}

/* What is encoded again must be the same. */
static void check_extents(const struct extents *extents, const uint8_t *from, uint32_t count)
{
	uint8_t *again = fuzz_exact((size_t)count * EXTENT_BYTES, 0);

	fuzz_check(extents->count == count);
	extents_encode(extents, 0, count, again);
	fuzz_check(memcmp(again, from, (size_t)count * EXTENT_BYTES) == 0);
	free(again);
}

void fuzz_flash_extents(struct fuzz_reader *input)
{
	struct extents extents = { 0 };
	uint32_t count = fuzz_take8(input);
	size_t taken;
	const uint8_t *from = fuzz_take(input, (size_t)count * EXTENT_BYTES, &taken);
	int result;

	if (taken < (size_t)count * EXTENT_BYTES)
		return;
	result = extents_decode(&extents, from, count);
	fuzz_check(result == 0 || result == -EBADMSG);
	if (result == 0) {
		check_extents(&extents, from, count);
		use_extents(&extents, input);
	}
	extents_free(&extents);
}

static void use_attributes(struct attribute_set *set, struct fuzz_reader *input)
{
	static const uint8_t value[300];

	for (int i = 0; i < CALLS_MAX && input->left > 0; i++) {
		uint32_t page = fuzz_take8(input), number = fuzz_take8(input);
		uint32_t length = fuzz_take16(input) % sizeof(value), index;
		uint32_t found_page, found_number, found_length;
		const uint8_t *found_value;

		fuzz_check(attribute_set_change(set, page, number, value, length) == 0);
		fuzz_check(attribute_set_find(set, page, number, &index) == (length > 0));
		if (length == 0)
			continue;
		attribute_set_at(set, index, &found_page, &found_number, &found_value,
				 &found_length);
		fuzz_check(found_page == page && found_number == number && found_length == length);
	}
}

void fuzz_flash_attributes(struct fuzz_reader *input)
{
	struct attribute_set set = { 0 };
	uint32_t count = fuzz_take8(input);
	size_t length;
	const uint8_t *from = fuzz_take(input, fuzz_take16(input), &length);
	int result = attribute_set_decode(&set, from, (uint32_t)length, count);

	fuzz_check(result == 0 || result == -EBADMSG);
	if (result == 0) {
		fuzz_check(set.count == count && set.length == length);
		fuzz_check(length == 0 || memcmp(set.bytes, from, length) == 0);
		use_attributes(&set, input);
	}
	attribute_set_free(&set);
}

/* ---- onodes ---- */

/*
 * Lengths of the onode's record, of its spilled extents and attributes (2 each), then these, at
 * most 7 pages each. The checksums of what is spilled are put right.
 */
void fuzz_flash_onode(struct fuzz_reader *input)
{
	static struct held_store held;
	uint16_t lengths[3] = { fuzz_take16(input), fuzz_take16(input) % (7 * PAGE_BYTES),
				fuzz_take16(input) % (7 * PAGE_BYTES) };
	static const uint32_t pieces[] = { RECORD_ONODE_PIECE, RECORD_EXTENTS_PIECE,
					   RECORD_ATTRIBUTES_PIECE };
	struct held *onode_record = NULL;
	struct onode *onode;
	int result;

	held.store.operations = &operations;
	held.store.limits.value_bytes = PAGE_BYTES;
	held.count = 0;
	for (int part = 0; part < 3; part++) {
		uint32_t crc = 0;

		for (uint32_t at = 0, n = 0; at < lengths[part]; at += PAGE_BYTES, n++) {
			struct held *record =
				hold(&held, pieces[part] + n, 5, input, lengths[part] - at);

			if (!record)
				break;
			if (part == 0) {
				onode_record = record;
				break;
			}
			crc = crc32c(crc, record->bytes, record->length);
		}
		if (part > 0 && onode_record && onode_record->length >= ONODE_HEAD_BYTES)
			put_le32(onode_record->bytes + 8 + 4 * part, crc);
	}
	result = onode_load(&held.store, 1, ENGINE_FIRST_ID, RECORD_NEWEST, 0, 0, &onode);
	fuzz_check(result == 0 || result == -EBADMSG || result == -ENOENT);
	fuzz_check((result == 0) == (onode != NULL));
	if (result != 0)
		return;
	fuzz_check(onode->head.type <= ENGINE_USER_OBJECT);
	use_extents(&onode->extents, input);
	use_attributes(&onode->attributes, input);
	onode_free(onode);
}

/* ---- directory nodes ---- */

static void check_node(const struct idset_node *node)
{
	fuzz_check(node->count <= node->capacity);
	fuzz_check(node->operations_count <= IDSET_OPERATIONS_MAX);
	for (uint32_t i = 1; i < node->count; i++)
		fuzz_check(node->keys[i - 1] < node->keys[i]);
	for (uint32_t i = 0; i < node->count; i++)
		fuzz_check(idset_node_position(node, node->keys[i]) == i);
}

/* Length of the base record (2), then it; then for each slot its length (1) and it. */
void fuzz_flash_idset(struct fuzz_reader *input)
{
	static struct held_store held;
	const struct record_key first = key_of_node(1, RECORD_ID_USER_OBJECTS, 0);
	struct idset_node *node;
	int result;

	held.store.operations = &operations;
	held.store.limits.value_bytes = PAGE_BYTES;
	held.count = 0;
	hold(&held, 1 << IDSET_PART_BITS, 5, input, fuzz_take16(input));
	for (uint32_t slot = 1; slot < RECORDS_MAX && input->left > 0; slot++) {
		uint8_t head = fuzz_take8(input);

		hold(&held, 1 << IDSET_PART_BITS | slot, head & 0x80 ? 4 : 6, input, head & 0x7F);
	}
	result = idset_node_load(&held.store, &first, 1, RECORD_NEWEST, &node);
	fuzz_check(result == 0 || result == -EBADMSG);
	fuzz_check((result == 0) == (node != NULL));
	if (result != 0)
		return;
	check_node(node);
	idset_node_destroy(&node->entry);
}

/* ---- states of partitions ---- */

void fuzz_flash_partition(struct fuzz_reader *input)
{
	uint8_t how = fuzz_take8(input);
	struct partition partition = { 0 };
	uint32_t length;
	uint8_t *again;
	int result;

	result = partition_decode(&partition, input->data, (uint32_t)input->left);
	fuzz_check(result == 0 || result == -EBADMSG);
	if (result == 0) {
		again = fuzz_exact(
			partition.origin.ms ? PARTITION_CLONE_BYTES : PARTITION_STATE_BYTES, how);
		length = partition_encode(&partition, again);
		fuzz_check(partition_decode(&partition, again, length) == 0);
		free(again);
	}
}
