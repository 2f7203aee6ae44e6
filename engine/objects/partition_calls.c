/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The calls of engine.h that are about partitions: create, remove, list. */
#include <stdlib.h>

#include "common/bytes.h"
#include "engine/objects/collections.h"
#include "engine/objects/handles.h"
#include "engine/objects/lasting.h"
#include "engine/objects/objects.h"
#include "engine/sets/free_ids.h"

/* With fewer free indices some are looked for that nothing shows any more. */
#define INDICES_LOW 1024
/* When none is free, up to all that are taken are looked at, a thousand each time. */
#define INDEX_REVIEWS_MAX 66

/* ---- partition indices ---- */

static bool index_taken(const struct engine *engine, uint16_t index)
{
	return engine->indices[index / 8] >> index % 8 & 1;
}

static void index_set(struct engine *engine, uint16_t index)
{
	engine->indices[index / 8] |= (uint8_t)(1 << index % 8);
}

/* Takes the indices that a set's elements end with. */
static int take_indices(struct engine *engine, const struct idset *set)
{
	struct idset_walk walk = idset_walk_from(set, 0);
	uint64_t element;
	int found;

	while ((found = idset_walk(&walk, &element)) > 0)
		index_set(engine, (uint16_t)element);
	return found;
}

/*
 * Learns which indices are taken. Of one that is in the table alone a recovery without NVRAM has
 * lost that it is.
 */
static int learn_indices(struct engine *engine, const struct idset *table,
			 const struct idset *taken)
{
	int result;

	if (engine->indices_known)
		return 0;
	memset(engine->indices, 0, sizeof(engine->indices));
	index_set(engine, RECORD_ROOT_INDEX);
	index_set(engine, UINT16_MAX);
	result = take_indices(engine, table);
	if (!result)
		result = take_indices(engine, taken);
	engine->indices_known = !result;
	return result;
}

/* Chooses the next free index. When few are left, some are looked for before the next command. */
static int choose_index(struct engine *engine, const struct idset *taken, uint16_t *chosen)
{
	uint16_t index = engine->last_index;

	engine->indices_wanted = taken->header->count + INDICES_LOW > UINT16_MAX ? 1 : 0;

	for (uint32_t tried = 0; tried <= UINT16_MAX; tried++) {
		index++;
		if (!index_taken(engine, index)) {
			*chosen = index;
			return 0;
		}
	}
	engine->indices_wanted = INDEX_REVIEWS_MAX;
	return -EFBIG;
}

/* ---- create and remove ---- */

/* Checks `requested` or chooses the ID of a new partition. */
static int choose_id(const struct idset *table, uint64_t requested, uint64_t *id)
{
	uint64_t element;
	int result;

	if (requested) {
		if (requested < ENGINE_FIRST_ID || requested > ENGINE_LAST_PARTITION_ID)
			return -EINVAL;
		*id = requested;
		result = idset_next(table, requested << 16, &element);
		if (!result && element >> 16 == requested)
			return -EEXIST;
		return result == -ENOENT ? 0 : result;
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
	struct partition *partition = partition_new(engine, id);
	struct onode *onode = new_onode(txn, index);

	if (!partition || !onode) {
		free(partition);
		onode_free(onode);
		return -ENOMEM;
	}
	partition->id = id;
	partition->index = index;
	partition->version = 1;
	partition->created_sequence = txn->sequence;
	engine->history->begin(partition);
	partition = (struct partition *)cache_add(&engine->partitions, &partition->entry,
						  partition_bytes(engine));
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
	struct idset taken = engine->history->indices(engine, root);
	uint16_t index = 0;
	uint64_t id;
	int result = choose_id(&table, requested, &id);

	if (!result)
		result = learn_indices(engine, &table, &taken);
	if (!result)
		result = choose_index(engine, &taken, &index);
	if (!result)
		result = partitions_limit_dirty(txn);
	if (!result)
		result = onodes_limit_dirty(txn);
	if (!result)
		result = idset_insert(&taken, &txn->writer, index);
	if (result)
		return result;
	result = idset_insert(&table, &txn->writer, id << 16 | index);
	if (result)
		return result;
	txn->changed = true;
	txn->partitions_created = true;
	index_set(engine, index);
	engine->last_index = index;
	partition_mark(txn, root);
	partition_mark_history(txn, root);
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

int engine_partition_unlog(struct engine_txn *txn, uint64_t id)
{
	struct partition *partition;
	int result;

	if (txn->mode == ENGINE_READ)
		return -EROFS;
	result = id ? partition_get(txn->engine, id, &partition) : -EINVAL;
	if (result)
		return result;
	if (partition->sets[PARTITION_USER_OBJECTS].count)
		result = -ENOTEMPTY;
	if (!result)
		result = partitions_limit_dirty(txn);
	if (!result) {
		txn->changed = true;
		partition->is_unlogged = true;
		partition_mark(txn, partition);
	}
	partition_release(txn->engine, partition);
	return result;
}

static int put_tombstone(struct engine_txn *txn, struct record_key key)
{
	return record_put(&txn->writer, key, RECORD_TOMBSTONE, NULL, 0);
}

/*
 * What the history says of the partition stays, with its sets as the transaction has changed them,
 * and the index is taken still. A recovery without NVRAM may have lost that it is.
 */
static int keep_index(struct engine_txn *txn, struct partition *root, struct partition *partition)
{
	struct idset taken = txn->engine->history->indices(txn->engine, root);
	int result = idset_insert(&taken, &txn->writer, partition->index);

	if (!result)
		partition_mark_history(txn, root);
	if (result == -EEXIST)
		result = 0;
	if (!result && partition->history_changed)
		result = idset_put_dirty(&txn->engine->nodes, &txn->writer);
	return result ? result : partition_put_history(txn, partition);
}

/*
 * Takes a partition out of the table. That is all: moments of before still show what it held, and
 * its index is its own as long as they do.
 */
static int remove_partition(struct engine_txn *txn, struct partition *root,
			    struct partition *partition)
{
	struct engine *engine = txn->engine;
	struct idset table = partition_set(engine, root, PARTITION_USER_OBJECTS, RECORD_NEWEST);
	int result = partitions_limit_dirty(txn);

	if (!result)
		result = engine->history->remove(txn, root, partition);
	if (!result)
		result = lasting_put(txn, partition);
	if (!result)
		result = keep_index(txn, root, partition);
	if (!result)
		result = idset_remove(&table, &txn->writer, partition->id << 16 | partition->index);
	if (result)
		return result == -ENOENT ? -EBADMSG : result;
	txn->changed = txn->partitions_removed = true;
	usage_change(txn, partition->used_bytes, 0);
	partition_mark(txn, root);
	result = put_tombstone(txn, key_of_state(partition->index));
	if (!result)
		result = put_tombstone(txn, key_of_onode(partition->index, 0));
	partition_forget(engine, partition);
	return result;
}

int engine_partition_remove(struct engine_txn *txn, uint64_t id, bool contents)
{
	struct partition_pair pair;
	int result;

	if (txn->mode == ENGINE_READ)
		return -EROFS;
	if (id == 0)
		return -ENOENT;
	result = partition_get_pair(txn->engine, id, &pair);
	if (result)
		return result;
	if (!contents && (pair.partition->sets[PARTITION_USER_OBJECTS].count ||
			  pair.partition->sets[PARTITION_COLLECTIONS].count))
		result = -ENOTEMPTY;
	else
		result = remove_partition(txn, pair.root, pair.partition);
	partition_release_pair(txn->engine, &pair);
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
