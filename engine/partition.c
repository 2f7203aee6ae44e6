/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The states of partitions: their record, the cache of them, the boundaries of user versions. */
#include "engine/partition.h"

#include <assert.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "engine/objects.h"

static_assert(PARTITION_STATE_BYTES == 32 + PARTITION_SETS * IDSET_HEADER_BYTES,
	      "the state's parts add up");

void partition_encode(const struct partition *partition, uint8_t *to)
{
	to[0] = PARTITION_FORMAT;
	to[1] = 0;
	put_le16(to + 2, partition->version);
	put_le32(to + 4, 0);
	put_le64(to + 8, partition->id);
	put_le64(to + 16, partition->used_bytes);
	put_le48(to + 24, partition->created_sequence);
	put_le16(to + 30, 0);
	for (int which = 0; which < PARTITION_SETS; which++)
		idset_header_encode(&partition->sets[which], to + 32 + which * IDSET_HEADER_BYTES);
}

int partition_decode(struct partition *partition, const uint8_t *from, uint32_t length)
{
	int result = 0;

	if (length != PARTITION_STATE_BYTES || from[0] != PARTITION_FORMAT || from[1] != 0 ||
	    get_le32(from + 4) != 0 || get_le16(from + 30) != 0)
		return -EBADMSG;
	partition->version = get_le16(from + 2);
	partition->id = get_le64(from + 8);
	partition->used_bytes = get_le64(from + 16);
	partition->created_sequence = get_le48(from + 24);
	for (int which = 0; !result && which < PARTITION_SETS; which++)
		result = idset_header_decode(&partition->sets[which],
					     from + 32 + which * IDSET_HEADER_BYTES);
	return result;
}

void partition_destroy(struct cache_entry *entry)
{
	free((struct partition *)entry);
}

static struct record_key state_key(uint16_t index)
{
	return (struct record_key){ .identifier = RECORD_ID_STATE, .piece = 0, .partition = index };
}

/* Fills in all but the cache entry. A root that has never had a partition has no record. */
static int state_load(struct engine *engine, uint64_t id, uint16_t index, uint64_t bound,
		      struct partition *partition)
{
	uint8_t record[PARTITION_STATE_BYTES];
	struct record_info info;
	int result =
		record_get(engine->store, state_key(index), bound, record, sizeof(record), &info);

	partition->index = index;
	if (result == -ENOENT && index == RECORD_ROOT_INDEX)
		return 0;
	if (result == -ENOENT)
		return -EBADMSG;
	if (!result)
		result = partition_decode(partition, record, info.length);
	if (!result &&
	    (partition->id != id || (index == RECORD_ROOT_INDEX) != (partition->version == 0)))
		result = -EBADMSG;
	return result;
}

/* The index of partition `id` from the root's table. */
static int find_index(struct engine *engine, uint64_t id, uint16_t *index)
{
	struct partition *root;
	struct idset table;
	uint64_t element = 0, next;
	size_t count = 0;
	bool more;
	int result = partition_get(engine, 0, &root);

	if (result)
		return result;
	table = partition_set(engine, root, PARTITION_USER_OBJECTS, RECORD_NEWEST);
	result = idset_list(&table, id << 16, &element, 1, &count, &more, &next);
	partition_release(engine, root);
	if (result)
		return result;
	if (count == 0 || element >> 16 != id)
		return -ENOENT;
	*index = (uint16_t)element;
	return *index == RECORD_ROOT_INDEX ? -EBADMSG : 0;
}

int partition_get(struct engine *engine, uint64_t id, struct partition **found)
{
	struct cache_key key = { .identifier = id };
	struct partition *partition = (struct partition *)cache_get(&engine->partitions, key);
	uint16_t index = RECORD_ROOT_INDEX;
	int result = 0;

	*found = partition;
	if (partition)
		return 0;
	if (id != 0 && (id < ENGINE_FIRST_ID || id > ENGINE_LAST_PARTITION_ID))
		return -ENOENT;
	if (id != 0)
		result = find_index(engine, id, &index);
	if (result)
		return result;
	partition = calloc(1, sizeof(*partition));
	if (!partition)
		return -ENOMEM;
	partition->entry.key = key;
	result = state_load(engine, id, index, RECORD_NEWEST, partition);
	if (result) {
		free(partition);
		return result;
	}
	*found = (struct partition *)cache_add(&engine->partitions, &partition->entry,
					       sizeof(*partition));
	return 0;
}

void partition_release(struct engine *engine, struct partition *partition)
{
	cache_unpin(&engine->partitions, &partition->entry);
}

int partition_as_of(struct engine *engine, const struct partition *current, uint64_t bound,
		    struct partition *partition)
{
	*partition = (struct partition){ 0 };
	return state_load(engine, current->id, current->index, bound, partition);
}

int partition_boundary(struct engine *engine, const struct partition *partition, uint32_t version,
		       uint64_t *boundary)
{
	struct record_key key = { .identifier = RECORD_ID_VERSIONS,
				  .piece = version,
				  .partition = partition->index };
	uint8_t record[VERSION_RECORD_BYTES];
	struct record_info info;
	int result;

	if (version == 0 || version >= partition->version)
		return -ENOENT;
	result = record_get(engine->store, key, RECORD_NEWEST, record, sizeof(record), &info);
	if (result == -ENOENT || (!result && info.length != sizeof(record)))
		return -EBADMSG;
	if (!result)
		*boundary = get_le48(record);
	return result;
}

struct idset partition_set(struct engine *engine, struct partition *partition, int which,
			   uint64_t bound)
{
	assert(which < PARTITION_SETS);
	return (struct idset){
		.store = engine->store,
		.nodes = &engine->nodes,
		.header = &partition->sets[which],
		.identifier = RECORD_ID_USER_OBJECTS + (uint64_t)which,
		.bound = bound,
		.partition = partition->index,
		.version = partition->version,
	};
}

/* ---- changed states ---- */

static int put_state(struct engine_txn *txn, struct partition *partition)
{
	uint8_t record[PARTITION_STATE_BYTES];
	int result;

	partition_encode(partition, record);
	result = record_put(&txn->writer, state_key(partition->index), partition->version,
			    RECORD_ABSORB, record, sizeof(record));
	if (!result)
		cache_mark_clean(&txn->engine->partitions, &partition->entry, sizeof(*partition));
	partition_release(txn->engine, partition);
	return result;
}

static int put_dirty_above(struct engine_txn *txn, uint32_t limit)
{
	struct cache *cache = &txn->engine->partitions;
	int result = 0;

	while (!result && cache->dirty_entries > limit) {
		struct cache_entry *entry = cache_oldest_dirty(cache);

		if (!entry)
			break; /* all that are left are pinned by this very call */
		result = put_state(txn, (struct partition *)entry);
	}
	return result;
}

int partition_room(struct engine_txn *txn)
{
	return put_dirty_above(txn, ENGINE_DIRTY_PARTITIONS_MAX);
}

int partition_put_dirty(struct engine_txn *txn)
{
	return put_dirty_above(txn, 0);
}

void partition_mark(struct engine_txn *txn, struct partition *partition)
{
	cache_mark_dirty(&txn->engine->partitions, &partition->entry);
}
