/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The states of partitions: their record, the cache of them. */
#include "engine/objects/partition.h"

#include <assert.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "engine/objects/lineage.h"
#include "engine/objects/objects.h"

enum { ASSOCIATED = 1 << 0, WRITABLE = 1 << 1 };
enum { UNLOGGED = 1 << 0 };

static_assert(PARTITION_STATE_BYTES == 48 + PARTITION_SETS * IDSET_HEADER_BYTES,
	      "the state's parts add up");

uint32_t partition_encode(const struct partition *partition, uint8_t *to)
{
	const struct partition_origin *origin = &partition->origin;
	bool tells_time = origin->index && origin->ms;

	to[0] = PARTITION_FORMAT;
	to[1] = partition->is_unlogged ? UNLOGGED : 0;
	put_le16(to + 2, partition->version);
	put_le32(to + 4, 0);
	put_le64(to + 8, partition->id);
	put_le64(to + 16, partition->used_bytes);
	put_le48(to + 24, partition->created_sequence);
	put_le16(to + 30, 0);
	for (int which = 0; which < PARTITION_SETS; which++)
		idset_header_encode(&partition->sets[which], to + 32 + which * IDSET_HEADER_BYTES);
	to += PARTITION_STATE_BYTES - 16;
	put_le16(to, origin->index);
	to[2] = (origin->associated ? ASSOCIATED : 0) | (origin->writable ? WRITABLE : 0);
	to[3] = 0;
	put_le48(to + 4, origin->bound);
	put_le48(to + 10, origin->since);
	if (!tells_time)
		return PARTITION_STATE_BYTES;
	put_le48(to + 16, origin->ms);
	return PARTITION_CLONE_BYTES;
}

int partition_decode(struct partition *partition, const uint8_t *from, uint32_t length)
{
	int result = 0;

	if ((length != PARTITION_STATE_BYTES && length != PARTITION_CLONE_BYTES) ||
	    from[0] != PARTITION_FORMAT || from[1] & ~UNLOGGED || get_le32(from + 4) != 0 ||
	    get_le16(from + 30) != 0)
		return -EBADMSG;
	partition->is_unlogged = from[1] & UNLOGGED;
	partition->version = get_le16(from + 2);
	partition->id = get_le64(from + 8);
	partition->used_bytes = get_le64(from + 16);
	partition->created_sequence = get_le48(from + 24);
	for (int which = 0; !result && which < PARTITION_SETS; which++)
		result = idset_header_decode(&partition->sets[which],
					     from + 32 + which * IDSET_HEADER_BYTES);
	from += PARTITION_STATE_BYTES - 16;
	partition->origin = (struct partition_origin){
		.index = get_le16(from),
		.associated = from[2] & ASSOCIATED,
		.writable = from[2] & WRITABLE,
		.bound = get_le48(from + 4),
		.since = get_le48(from + 10),
		.ms = length == PARTITION_CLONE_BYTES ? get_le48(from + 16) : 0,
	};
	if (from[2] & ~(ASSOCIATED | WRITABLE) || from[3] != 0 ||
	    (length == PARTITION_CLONE_BYTES && !partition->origin.index))
		return -EBADMSG;
	return result;
}

void partition_destroy(struct cache_entry *entry)
{
	free((struct partition *)entry);
}

int partition_state_of(struct record_store *store, uint16_t index, uint64_t bound,
		       struct partition *partition)
{
	uint8_t record[PARTITION_CLONE_BYTES];
	struct record_info info;
	int result = record_get(store, key_of_state(index), bound, record, sizeof(record), &info);

	partition->index = index;
	/* A root that has never had a partition has no record. */
	if (result)
		return result == -ENOENT && index == RECORD_ROOT_INDEX ? 0 : result;
	result = partition_decode(partition, record, info.length);
	/* They have not changed since. */
	for (int which = 0; !result && which < PARTITION_SETS; which++)
		partition->sets[which].changed_sequence = info.sequence;
	if (!result && (index == RECORD_ROOT_INDEX) != (partition->version == 0))
		result = -EBADMSG;
	if (!result && partition->origin.index && store->lineage)
		lineage_note(lineage_of(store), index);
	return result;
}

int partition_found_at(struct record_store *store, uint16_t index, uint64_t bound,
		       struct partition *partition, uint64_t *since)
{
	uint8_t record[PARTITION_CLONE_BYTES];
	struct record_info info;
	int result =
		record_get_any(store, key_of_state(index), bound, record, sizeof(record), &info);

	*partition = (struct partition){ .index = index };
	*since = 0;
	if (result)
		return result == -ENOENT ? 0 : result;
	*since = info.sequence;
	if (info.flags & RECORD_TOMBSTONE)
		return 0;
	result = partition_decode(partition, record, info.length);
	*since = max_u64(partition->created_sequence, partition->origin.since);
	return result;
}

/* The element of partition `id` in a table of partitions. -ENOENT. */
static int find_index(const struct idset *table, uint64_t id, uint16_t *index)
{
	uint64_t element = 0;
	int result = idset_next(table, id << 16, &element);

	if (result)
		return result;
	if (element >> 16 != id)
		return -ENOENT;
	*index = (uint16_t)element;
	return *index == RECORD_ROOT_INDEX ? -EBADMSG : 0;
}

static int find_current(struct engine *engine, uint64_t id, uint16_t *index)
{
	struct partition *root;
	struct idset table;
	int result = partition_get(engine, 0, &root);

	if (result)
		return result;
	table = partition_set(engine, root, PARTITION_USER_OBJECTS, RECORD_NEWEST);
	result = find_index(&table, id, index);
	partition_release(engine, root);
	return result;
}

/* Fills in all of a current partition but the cache entry. */
static int load_current(struct engine *engine, uint64_t id, struct partition *partition)
{
	uint16_t index = RECORD_ROOT_INDEX;
	int result = id ? find_current(engine, id, &index) : 0;

	if (result)
		return result;
	result = partition_state_of(engine->store, index, RECORD_NEWEST, partition);
	if (result == -ENOENT || (!result && partition->id != id))
		return -EBADMSG;
	if (!result)
		result = engine->history->load(engine, partition);
	written_loaded(engine, partition);
	return result;
}

size_t partition_bytes(const struct engine *engine)
{
	return sizeof(struct partition) + engine->history->bytes;
}

struct partition *partition_new(const struct engine *engine, uint64_t id)
{
	struct partition *partition = calloc(1, partition_bytes(engine));

	if (partition) {
		partition->entry.key = (struct cache_key){ .identifier = id };
		partition->history = (struct history *)(partition + 1);
	}
	return partition;
}

int partition_get(struct engine *engine, uint64_t id, struct partition **found)
{
	struct cache_key key = { .identifier = id };
	struct partition *partition = (struct partition *)cache_get(&engine->partitions, key);
	int result;

	*found = partition;
	if (partition)
		return 0;
	if (id != 0 && (id < ENGINE_FIRST_ID || id > ENGINE_LAST_PARTITION_ID))
		return -ENOENT;
	partition = partition_new(engine, id);
	if (!partition)
		return -ENOMEM;
	result = load_current(engine, id, partition);
	if (result) {
		free(partition);
		return result;
	}
	*found = (struct partition *)cache_add(&engine->partitions, &partition->entry,
					       partition_bytes(engine));
	return 0;
}

void partition_release(struct engine *engine, struct partition *partition)
{
	cache_unpin(&engine->partitions, &partition->entry);
}

void partition_forget(struct engine *engine, struct partition *partition)
{
	cache_drop_partition(&engine->onodes, partition->index);
	cache_drop_partition(&engine->nodes, partition->index);
	cache_drop(&engine->partitions, &partition->entry);
	lineage_forget(&engine->lineage);
}

int partition_get_pair(struct engine *engine, uint64_t id, struct partition_pair *pair)
{
	int result = partition_get(engine, 0, &pair->root);

	if (result)
		return result;
	result = partition_get(engine, id, &pair->partition);
	if (result)
		partition_release(engine, pair->root);
	return result;
}

void partition_release_pair(struct engine *engine, const struct partition_pair *pair)
{
	partition_release(engine, pair->partition);
	partition_release(engine, pair->root);
}

int partition_index_as_of(struct engine *engine, uint64_t id, uint64_t bound, uint16_t *index)
{
	struct partition root = { 0 };
	int result = partition_state_of(engine->store, RECORD_ROOT_INDEX, bound, &root);
	struct idset table = partition_set(engine, &root, PARTITION_USER_OBJECTS, bound);

	return result ? result : find_index(&table, id, index);
}

int partition_as_of(struct engine *engine, uint64_t id, uint64_t bound, struct partition *partition)
{
	uint16_t index = RECORD_ROOT_INDEX;
	struct partition *current;
	int result = 0;

	*partition = (struct partition){ 0 };
	/*
	 * Most of them have the index that they had, and the table need not be read. An earlier
	 * owner of the index may have had the ID, too. Where a moment leaves it out, its states may
	 * not tell that it was gone.
	 */
	if (id && partition_get(engine, id, &current) == 0) {
		uint64_t created_sequence = current->created_sequence;

		index = current->index;
		result = engine->history->shows(engine, current, bound);
		partition_release(engine, current);
		if (!result)
			result = partition_state_of(engine->store, index, bound, partition);
		if (!result && partition->id == id &&
		    partition->created_sequence == created_sequence)
			return 0;
		if (result && result != -ENOENT)
			return result;
	}
	if (id)
		result = partition_index_as_of(engine, id, bound, &index);
	if (!result)
		result = partition_state_of(engine->store, index, bound, partition);
	return !result && partition->id != id ? -EBADMSG : result;
}

struct idset partition_set(struct engine *engine, struct partition *partition, int which,
			   uint64_t bound)
{
	assert(which < PARTITION_SETS);
	return (struct idset){
		.store = engine->store,
		.nodes = &engine->nodes,
		.header = &partition->sets[which],
		.first = key_of_node(partition->index, RECORD_ID_USER_OBJECTS + (uint64_t)which, 0),
		.bound = bound,
	};
}

/* ---- changed states ---- */

int partition_put_history(struct engine_txn *txn, struct partition *partition)
{
	written_settle(txn, partition);
	return txn->engine->history->put(&txn->writer, partition->index, partition->history);
}

static void note_put(struct engine_txn *txn, struct partition *partition)
{
	partition->state_changed = partition->history_changed = false;
	cache_mark_clean(&txn->engine->partitions, &partition->entry, partition_bytes(txn->engine));
}

int partition_put_now(struct engine_txn *txn, struct partition *partition)
{
	uint8_t record[PARTITION_CLONE_BYTES];
	uint32_t length;
	/* From when on a clone reads where is told exactly. */
	bool begins = partition->origin.index && partition->origin.since == txn->sequence;
	int result;

	partition_mark(txn, partition);
	length = partition_encode(partition, record);
	result = record_put(&txn->writer, key_of_state(partition->index),
			    begins ? 0 : RECORD_ABSORB, record, length);
	if (!result && partition->history_changed)
		result = partition_put_history(txn, partition);
	if (!result)
		note_put(txn, partition);
	return result;
}

/* As of cache_put_dirty; the context is the transaction. */
static int put_changed(void *txn, struct cache_entry *entry)
{
	struct partition *partition = (struct partition *)entry;
	int result;

	if (partition->state_changed)
		return partition_put_now(txn, partition);
	result = partition_put_history(txn, partition);
	if (!result)
		note_put(txn, partition);
	return result;
}

int partitions_limit_dirty(struct engine_txn *txn)
{
	return cache_put_dirty(&txn->engine->partitions, ENGINE_DIRTY_PARTITIONS_MAX, put_changed,
			       txn);
}

int partition_put_dirty(struct engine_txn *txn)
{
	return cache_put_dirty(&txn->engine->partitions, 0, put_changed, txn);
}

void partition_mark(struct engine_txn *txn, struct partition *partition)
{
	partition->state_changed = txn->is_moment = true;
	cache_mark_dirty(&txn->engine->partitions, &partition->entry);
}

void partition_mark_history(struct engine_txn *txn, struct partition *partition)
{
	partition->history_changed = true;
	cache_mark_dirty(&txn->engine->partitions, &partition->entry);
}
