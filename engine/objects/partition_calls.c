/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The calls of engine.h that are about partitions: create, remove, list. */
#include <stdlib.h>

#include "common/bytes.h"
#include "engine/objects/collections.h"
#include "engine/objects/handles.h"
#include "engine/objects/lasting.h"
#include "engine/objects/objects.h"
#include "engine/sets/free_ids.h"

/* ---- partition indices ---- */

static bool index_taken(const struct engine *engine, uint16_t index)
{
	return engine->indices[index / 8] >> index % 8 & 1;
}

static void index_set(struct engine *engine, uint16_t index, bool taken)
{
	uint8_t bit = (uint8_t)(1 << index % 8);

	if (taken)
		engine->indices[index / 8] |= bit;
	else
		engine->indices[index / 8] &= (uint8_t)~bit;
}

/* Takes the indices that a set's elements end with. */
static int take_indices(struct engine *engine, const struct idset *set)
{
	uint64_t elements[64], next = 0;
	bool more = true;

	while (more) {
		size_t count;
		int result = idset_list(set, next, elements, 64, &count, &more, &next);

		if (result)
			return result;
		while (count)
			index_set(engine, (uint16_t)elements[--count], true);
	}
	return 0;
}

/*
 * Learns which indices are taken: by those in the table of partitions, and by removed ones that
 * clones stand on.
 */
static int learn_indices(struct engine *engine, struct partition *root)
{
	struct idset table = partition_set(engine, root, PARTITION_USER_OBJECTS, RECORD_NEWEST);
	struct idset reserved = engine->history->reserved(engine, root);
	int result;

	if (engine->indices_known)
		return 0;
	memset(engine->indices, 0, sizeof(engine->indices));
	index_set(engine, RECORD_ROOT_INDEX, true);
	index_set(engine, UINT16_MAX, true);
	result = take_indices(engine, &table);
	if (!result)
		result = take_indices(engine, &reserved);
	engine->indices_known = !result;
	return result;
}

/*
 * Chooses the next free index. One that this transaction removed counts as taken until it is
 * committed: reused under one sequence number it could not tell its old records from its new ones.
 */
static int choose_index(const struct engine *engine, uint16_t *chosen)
{
	uint16_t index = engine->last_index;

	for (uint32_t tried = 0; tried <= UINT16_MAX; tried++) {
		index++;
		if (!index_taken(engine, index)) {
			*chosen = index;
			return 0;
		}
	}
	return -EFBIG;
}

/* ---- create and remove ---- */

/* Checks `requested` or chooses the ID of a new partition. */
static int choose_id(const struct idset *table, uint64_t requested, uint64_t *id)
{
	uint64_t element, next;
	size_t count;
	bool more;
	int result;

	if (requested) {
		if (requested < ENGINE_FIRST_ID || requested > ENGINE_LAST_PARTITION_ID)
			return -EINVAL;
		*id = requested;
		result = idset_list(table, requested << 16, &element, 1, &count, &more, &next);
		if (!result && count && element >> 16 == requested)
			result = -EEXIST;
		return result;
	}
	return free_ids_find(&(struct free_ids){ .sets = table,
						 .count_of_sets = 1,
						 .shift = 16,
						 .lowest = ENGINE_FIRST_ID,
						 .highest = ENGINE_LAST_PARTITION_ID },
			     1, id);
}

static struct onode *new_onode(const struct engine_txn *txn, uint16_t index)
{
	struct onode *onode = onode_new(index, 0);

	if (!onode)
		return NULL;
	onode->head.type = ENGINE_PARTITION;
	onode->absorb = true;
	onode_born(onode, txn);
	return onode;
}

/* Adds state and onode of a new partition to the caches. */
static int add_partition(struct engine_txn *txn, uint64_t id, uint16_t index)
{
	struct engine *engine = txn->engine;
	struct partition *partition = calloc(1, sizeof(*partition));
	struct onode *onode = new_onode(txn, index);

	if (!partition || !onode) {
		free(partition);
		onode_free(onode);
		return -ENOMEM;
	}
	partition->entry.key = (struct cache_key){ .identifier = id };
	partition->id = id;
	partition->index = index;
	partition->version = 1;
	partition->created_sequence = txn->sequence;
	partition->history = engine->history->begin(index, txn->sequence);
	partition = (struct partition *)cache_add(&engine->partitions, &partition->entry,
						  sizeof(*partition));
	written_begins(engine, partition);
	partition_mark(txn, partition);
	partition_mark_history(txn, partition);
	partition_release(engine, partition);
	onode = (struct onode *)cache_add(&engine->onodes, &onode->entry, onode_bytes(onode));
	cache_mark_dirty(&engine->onodes, &onode->entry);
	cache_unpin(&engine->onodes, &onode->entry);
	return 0;
}

static int create_partition(struct engine_txn *txn, struct partition *root, uint64_t requested,
			    uint64_t *chosen)
{
	struct engine *engine = txn->engine;
	struct idset table = partition_set(engine, root, PARTITION_USER_OBJECTS, RECORD_NEWEST);
	uint16_t index = 0;
	uint64_t id;
	int result = choose_id(&table, requested, &id);

	if (!result)
		result = learn_indices(engine, root);
	if (!result)
		result = choose_index(engine, &index);
	if (!result)
		result = partition_room(txn);
	if (!result)
		result = onodes_room(txn);
	if (!result)
		result = idset_insert(&table, &txn->writer, id << 16 | index);
	if (result)
		return result;
	txn->changed = true;
	txn->partitions_created = true;
	index_set(engine, index, true);
	engine->last_index = index;
	partition_mark(txn, root);
	lineage_forget(&engine->lineage);
	result = add_partition(txn, id, index);
	if (!result && chosen)
		*chosen = id;
	return result;
}

int engine_partition_create(struct engine_txn *txn, uint64_t requested, uint64_t *chosen)
{
	struct partition *root;
	int result;

	if (txn->mode == ENGINE_READ)
		return -EROFS;
	result = partition_get(txn->engine, 0, &root);
	if (result)
		return result;
	result = create_partition(txn, root, requested, chosen);
	partition_release(txn->engine, root);
	return result;
}

static int put_tombstone(struct engine_txn *txn, struct record_key key)
{
	return record_put(&txn->writer, key, RECORD_TOMBSTONE, NULL, 0);
}

/*
 * Takes a partition out of the table. That is all: what it held is older than any later partition
 * of its index, and nobody looks at it again.
 */
static int remove_partition(struct engine_txn *txn, struct partition *root,
			    struct partition *partition)
{
	struct engine *engine = txn->engine;
	struct idset table = partition_set(engine, root, PARTITION_USER_OBJECTS, RECORD_NEWEST);
	bool kept = false;
	int result = learn_indices(engine, root);

	if (!result)
		result = partition_room(txn);
	if (!result)
		result = engine->history->remove(txn, root, partition, &kept);
	if (!result)
		result = lasting_put(txn, partition);
	if (!result)
		result = idset_remove(&table, &txn->writer, partition->id << 16 | partition->index);
	if (result)
		return result == -ENOENT ? -EBADMSG : result;
	txn->changed = txn->partitions_removed = true;
	usage_change(txn, partition->used_bytes, 0);
	partition_mark(txn, root);
	cache_drop_partition(&engine->onodes, partition->index);
	cache_drop_partition(&engine->nodes, partition->index);
	cache_drop(&engine->partitions, &partition->entry);
	result = put_tombstone(txn, key_of_state(partition->index));
	if (!result)
		result = put_tombstone(txn, key_of_onode(partition->index, 0));
	if (!result && !kept)
		result = put_tombstone(txn, key_of_history(partition->index));
	return result;
}

int engine_partition_remove(struct engine_txn *txn, uint64_t id, bool contents)
{
	struct partition *root, *partition;
	int result;

	if (txn->mode == ENGINE_READ)
		return -EROFS;
	if (id == 0)
		return -ENOENT;
	result = partition_get(txn->engine, 0, &root);
	if (result)
		return result;
	result = partition_get(txn->engine, id, &partition);
	if (!result) {
		uint64_t members = partition->sets[PARTITION_USER_OBJECTS].count +
				   partition->sets[PARTITION_COLLECTIONS].count;

		result = members && !contents ? -ENOTEMPTY : remove_partition(txn, root, partition);
		partition_release(txn->engine, partition);
	}
	partition_release(txn->engine, root);
	return result;
}

/* ---- lists ---- */

/* The set that a list is about, and its header. -EINVAL: the object has no such list. */
static int open_list(struct engine_object *object, enum engine_list what, struct idset *set,
		     struct idset_header *header)
{
	int which = what == ENGINE_LIST_COLLECTIONS ? PARTITION_COLLECTIONS
						    : PARTITION_USER_OBJECTS;
	struct engine_address address = object->address;
	struct target *target;
	int result;

	if (what == ENGINE_LIST_MEMBERS)
		return collection_set(object, set, header);
	if ((what != ENGINE_LIST_PARTITIONS && what != ENGINE_LIST_USER_OBJECTS &&
	     what != ENGINE_LIST_COLLECTIONS) ||
	    address.object || (what == ENGINE_LIST_PARTITIONS) != (address.partition == 0))
		return -EINVAL;
	result = object_use(object, TARGET_READ, &target);
	if (result)
		return result;
	*set = partition_set(object->txn->engine, target->partition, which, target->bound);
	*header = *set->header;
	set->header = header;
	return 0;
}

int engine_object_list(struct engine_object *object, enum engine_list what, uint64_t first,
		       uint64_t *ids, size_t capacity, size_t *count, uint64_t *next)
{
	bool partitions = what == ENGINE_LIST_PARTITIONS, more = false;
	struct idset_header header;
	struct idset set;
	int result = open_list(object, what, &set, &header);

	*count = 0;
	*next = 0;
	if (result || (partitions && first > ENGINE_LAST_PARTITION_ID))
		return result;
	result = idset_list(&set, partitions ? first << 16 : first, ids, capacity, count, &more,
			    next);
	if (result || !more)
		*next = 0;
	if (partitions) {
		*next >>= 16;
		for (size_t index = 0; index < *count; index++)
			ids[index] >>= 16;
	}
	return result;
}

int engine_object_list_count(struct engine_object *object, enum engine_list what, uint64_t first,
			     uint64_t *count)
{
	bool partitions = what == ENGINE_LIST_PARTITIONS;
	struct idset_header header;
	struct idset set;
	int result = open_list(object, what, &set, &header);

	*count = 0;
	if (result || (partitions && first > ENGINE_LAST_PARTITION_ID))
		return result;
	return idset_count(&set, partitions ? first << 16 : first, count);
}

int engine_object_list_sequence(struct engine_object *object, enum engine_list what,
				uint64_t *sequence)
{
	struct idset_header header;
	struct idset set;
	int result = open_list(object, what, &set, &header);

	if (!result)
		*sequence = header.changed_sequence;
	return result;
}
