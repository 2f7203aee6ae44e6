/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The calls of engine.h that are about whole objects: create, remove, facts, times. */
#include <assert.h>

#include "common/bytes.h"
#include "engine/objects/collections.h"
#include "engine/objects/data.h"
#include "engine/objects/handles.h"
#include "engine/objects/lasting.h"
#include "engine/sets/free_ids.h"

/* ---- create ---- */

static int set_of_type(enum engine_type type)
{
	return type == ENGINE_COLLECTION ? PARTITION_COLLECTIONS : PARTITION_USER_OBJECTS;
}

/* Whether an ID is taken by an object of any type: -EEXIST. */
static int check_free(struct engine *engine, struct partition *partition, uint64_t id)
{
	for (int which = 0; which < PARTITION_SETS; which++) {
		struct idset set = partition_set(engine, partition, which, RECORD_NEWEST);
		int result = idset_contains(&set, id);

		if (result)
			return result < 0 ? result : -EEXIST;
	}
	return 0;
}

static int choose_ids(struct engine *engine, struct partition *partition, uint64_t last,
		      uint32_t count, uint64_t *first)
{
	struct idset sets[PARTITION_SETS];

	for (int which = 0; which < PARTITION_SETS; which++)
		sets[which] = partition_set(engine, partition, which, RECORD_NEWEST);
	return free_ids_find(&(struct free_ids){ .sets = sets,
						 .count_of_sets = PARTITION_SETS,
						 .lowest = ENGINE_FIRST_ID,
						 .highest = last },
			     count, first);
}

static int create_one(struct engine_txn *txn, struct partition *partition, enum engine_type type,
		      uint64_t id)
{
	struct engine *engine = txn->engine;
	struct idset set = partition_set(engine, partition, set_of_type(type), RECORD_NEWEST);
	struct onode *onode;
	int result = onodes_limit_dirty(txn);

	if (!result)
		result = partitions_limit_dirty(txn);
	if (result)
		return result;
	onode = onode_new(partition->index, id);
	if (!onode)
		return -ENOMEM;
	result = idset_insert(&set, &txn->writer, id);
	if (result) {
		onode_free(onode);
		return result;
	}
	partition_mark(txn, partition);
	onode->head.type = type;
	onode->absorb = engine->history->keeps_nothing(engine, partition);
	onode_born(onode, txn);
	onode = (struct onode *)cache_add(&engine->onodes, &onode->entry, onode_bytes(onode));
	assert(onode->head.created_sequence == txn->sequence);
	cache_mark_dirty(&engine->onodes, &onode->entry);
	cache_unpin(&engine->onodes, &onode->entry);
	txn->changed = true;
	return 0;
}

/* `requested` 0: IDs up to `last`. */
static int create(struct engine_txn *txn, uint64_t partition_id, enum engine_type type,
		  uint64_t requested, uint64_t last, uint32_t count, uint64_t *first)
{
	struct engine *engine = txn->engine;
	struct partition *partition;
	uint64_t id = requested;
	int result;

	if (txn->mode == ENGINE_READ)
		return -EROFS;
	if ((type != ENGINE_USER_OBJECT && type != ENGINE_COLLECTION) || count == 0)
		return -EINVAL;
	if (partition_id == 0)
		return -ENOENT;
	result = partition_get(engine, partition_id, &partition);
	if (result)
		return result;
	if (partition_is_read_only(partition))
		result = -EROFS;
	else if (requested)
		result = check_free(engine, partition, requested);
	else
		result = choose_ids(engine, partition, last, count, &id);
	for (uint32_t made = 0; !result && made < count; made++)
		result = create_one(txn, partition, type, id + made);
	partition_release(engine, partition);
	if (!result && first)
		*first = id;
	return result;
}

int engine_create(struct engine_txn *txn, uint64_t partition, enum engine_type type,
		  uint64_t requested, uint32_t count, uint64_t *first)
{
	if (requested && (count != 1 || requested < ENGINE_FIRST_ID))
		return -EINVAL;
	return create(txn, partition, type, requested, UINT64_MAX, count, first);
}

int engine_create_up_to(struct engine_txn *txn, uint64_t partition, enum engine_type type,
			uint64_t last, uint32_t count, uint64_t *first)
{
	if (last < ENGINE_FIRST_ID)
		return -EINVAL;
	return create(txn, partition, type, 0, last, count, first);
}

/* ---- remove ---- */

static int take_away(struct target *target)
{
	struct engine_txn *txn = target->txn;
	struct engine *engine = txn->engine;
	struct onode *onode = target->onode;
	struct partition *partition = target->partition;
	uint64_t id = onode->entry.key.identifier, pieces = onode->extents.pieces;
	struct idset set =
		partition_set(engine, partition, set_of_type(onode->head.type), RECORD_NEWEST);
	int result = onode->head.type == ENGINE_COLLECTION ? collection_drop(target)
							   : memberships_end(target);

	if (!result)
		result = target_change(target);
	if (!result)
		result = idset_remove(&set, &txn->writer, id);
	if (result)
		return result == -ENOENT ? -EBADMSG : result;
	partition_mark(txn, partition);
	result = data_void(target, 0, ENGINE_PIECES_MAX);
	data_account(target, pieces);
	if (!result)
		result = record_put(&txn->writer, key_of_onode(partition->index, id),
				    RECORD_TOMBSTONE, NULL, 0);
	if (!result)
		cache_drop(&engine->onodes, &onode->entry);
	return result;
}

int object_remove(struct target *target)
{
	int has_members = target->onode->head.type == ENGINE_COLLECTION
				  ? collection_has_members(target->onode)
				  : 0;

	if (target->onode->entry.key.identifier == 0)
		return -EINVAL;
	if (has_members)
		return has_members < 0 ? has_members : -ENOTEMPTY;
	return take_away(target);
}

int engine_object_remove(struct engine_object *object)
{
	struct target *target;
	int result = object_use(object, TARGET_CHANGE, &target);

	return result ? result : object_remove(target);
}

/* ---- facts ---- */

static struct access_key access_key_of(const struct target *target)
{
	return (struct access_key){ .partition = target->partition->id,
				    .object = target->onode->entry.key.identifier,
				    .created_sequence = target->onode->head.created_sequence };
}

/* What is known of the lasting attributes; of a partition that was removed, nothing. */
static int stat_lasting(struct engine_txn *txn, struct engine_address address,
			struct engine_stat *stat)
{
	struct target lasting;
	int result = lasting_open(txn, address, &lasting);

	if (result)
		return result == -ENOENT ? 0 : result;
	stat->lasting_sequence = lasting.onode->head.modified_sequence;
	target_close(&lasting);
	return 0;
}

int engine_object_stat(struct engine_object *object, struct engine_stat *stat)
{
	struct engine_address address = object->address;
	struct engine_txn *txn = object->txn;
	const struct partition *partition;
	const struct onode_head *head;
	struct target *target;
	int result = object_use(object, TARGET_READ, &target);

	if (result)
		return result;
	partition = target->partition;
	head = &target->onode->head;
	*stat = (struct engine_stat){
		.type = head->type,
		.length = head->length,
		.created_sequence = head->created_sequence,
		.modified_sequence = head->modified_sequence,
		.is_unlogged = address.object && partition->is_unlogged,
		.is_between = target->old && txn->old.bound != txn->old.objects_bound,
	};
	if (address.object) {
		stat->used_bytes = target->onode->extents.pieces * txn->engine->page_bytes;
	} else {
		stat->collections = partition->sets[PARTITION_COLLECTIONS].count;
		stat->members = partition->sets[PARTITION_USER_OBJECTS].count + stat->collections;
		stat->used_bytes = partition->used_bytes;
		/* The state of a version does not say which one it is. */
		stat->version = address.version && address.version <= ENGINE_PARTITION_VERSION_LAST
					? address.version
					: partition->version;
	}
	if (head->type == ENGINE_COLLECTION)
		result = collection_stat(target->onode, stat);
	memcpy(stat->times_ms, head->times_ms, sizeof(stat->times_ms));
	if (!target->old)
		access_times_apply(&txn->engine->accesses, access_key_of(target), stat->times_ms);
	if (!result && !address.object && txn->engine->lasting_count)
		result = stat_lasting(txn, address, stat);
	return result;
}

int engine_object_set_time(struct engine_object *object, enum engine_time which, uint64_t ms)
{
	struct target *target;
	int result;

	if (which <= ENGINE_TIME_CREATED || which >= ENGINE_TIMES || ms > ONODE_TIME_MAX)
		return -EINVAL;
	result = object_use(object, TARGET_CHANGE, &target);
	if (!result)
		result = target_change(target);
	if (!result)
		target->onode->head.times_ms[which] = ms;
	return result;
}

int engine_object_accessed(struct engine_object *object, bool data, bool attributes)
{
	struct engine_txn *txn = object->txn;
	struct target *target;
	uint64_t *times_ms;
	int result;

	if (object->address.version || object->address.ago)
		return 0;
	result = object_use(object, TARGET_READ, &target);
	if (result)
		return result;
	if (txn->bypass || (!data && !attributes) || partition_is_read_only(target->partition))
		return 0;
	if (txn->mode == ENGINE_READ) {
		access_times_note(&txn->engine->accesses, access_key_of(target), data, attributes,
				  txn->time_ms);
		return 0;
	}
	result = target_touch(target);
	if (result)
		return result;
	times_ms = target->onode->head.times_ms;
	if (data)
		times_ms[ENGINE_TIME_DATA_ACCESSED] = txn->time_ms;
	if (attributes)
		times_ms[ENGINE_TIME_ATTRIBUTES_ACCESSED] = txn->time_ms;
	return 0;
}
