/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Going back: partitions and the device by a note that hides what came after, single objects by putting the state of then again. */
#include "common/bytes.h"
#include "engine/collections.h"
#include "engine/data.h"
#include "engine/locks.h"
#include "engine/retention.h"
#include "engine/times.h"
#include "engine/unseen.h"

/* ---- partitions, the device ---- */

/* Forgets all that is known of a partition (or of everything) as it was before the rollback. */
static void forget(struct engine *engine, struct partition *partition)
{
	lineage_forget(&engine->lineage);
	if (partition->index == RECORD_ROOT_INDEX) {
		partition_release(engine, partition);
		cache_clear(&engine->onodes);
		cache_clear(&engine->nodes);
		cache_clear(&engine->partitions);
		return;
	}
	cache_drop_partition(&engine->onodes, partition->index);
	cache_drop_partition(&engine->nodes, partition->index);
	cache_drop(&engine->partitions, &partition->entry);
	partition_release(engine, partition);
}

/*
 * A partition that is there again after a rollback of the device has of its past what was kept of it as that of nobody, and
 * nothing of what its policy gave up before it went. What it is about to say is what any partition says that inherits its
 * policy. Where that may be more, in moments or in intervals, the past of all of them ends with that of nobody.
 */
static int raise_floor(struct engine_txn *txn, struct partition *root)
{
	struct device_history *device = &root->history.device;
	uint64_t floor = 0;
	int result;

	/* While anything is locked none comes back for which it would have to rise: that was checked. */
	if (device->locked_until_ms > txn->time_ms)
		return 0;
	result = locks_floor_of_returned(txn->engine, &root->history, &floor);
	if (!result)
		device->all_floor = max_u64(device->all_floor, floor);
	return result;
}

/*
 * Notes the rollback, as the root's next one, or it replaces one that nobody sees any more. How many there are then the caller
 * tells the root, which is about to be forgotten.
 */
static int add_rollback(struct engine_txn *txn, struct partition *partition,
			struct rollback rollback, bool *replaces)
{
	struct rollback unseen;
	struct partition *root;
	int result = unseen_find(txn->engine, partition, rollback.to, &unseen, replaces);

	if (result)
		return result;
	if (*replaces) {
		rollback.number = unseen.number;
		return timeline_add(txn, rollback, &unseen);
	}
	result = partition_get(txn->engine, 0, &root);
	if (result)
		return result;
	rollback.number = root->history.device.rollbacks;
	partition_release(txn->engine, root);
	return timeline_add(txn, rollback, NULL);
}

/*
 * The rollbacks of what is locked are few, each of them being kept: other ones, of which any number can take one another's place,
 * leave them their room.
 */
static int take_room(struct engine_txn *txn, const struct partition *partition)
{
	struct partition *root;
	int result = partition_get(txn->engine, 0, &root);

	if (result)
		return result;
	txn_raise_room(txn, history_policy(&partition->history, &root->history)->locked_until_ms >
					    txn->time_ms
				    ? RECORD_ROOM_RESCUE
				    : RECORD_ROOM_RETURN);
	partition_release(txn->engine, root);
	return 0;
}

/* Rolls back what `partition` stands for, which is released. */
static int roll_back(struct engine_txn *txn, struct partition *partition, uint64_t bound)
{
	struct engine *engine = txn->engine;
	const struct rollback rollback = { .at = txn->sequence,
					   .to = bound,
					   .scope = partition->index };
	bool of_device = rollback.scope == RECORD_ROOT_INDEX, replaces;
	struct partition *root;
	int result;

	txn->changed = txn->rolled_back = txn->forgets_accesses = true;
	txn->forgets_states = true;
	txn->accesses_of = partition->id;
	result = add_rollback(txn, partition, rollback, &replaces);
	/* From here on everything reads otherwise than before, the root too. */
	forget(engine, partition);
	if (!result)
		result = partition_get(engine, 0, &root);
	if (result)
		return result;
	root->history.device.rollbacks += !replaces;
	partition_mark_history(txn, root);
	if (of_device) {
		result = raise_floor(txn, root);
		engine->indices_known = false;
	}
	/* Which policies there are hangs on the table of partitions. */
	if (!result && of_device)
		result = retention_recount(txn, root);
	partition_release(engine, root);
	return result;
}

int engine_rollback(struct engine_txn *txn, uint64_t id, struct engine_moment to)
{
	struct partition *partition;
	uint64_t bound;
	int result = txn_begin_slot(txn);

	if (!result && txn->put_bytes)
		result = -EINVAL;
	if (result)
		return result;
	result = partition_get(txn->engine, id, &partition);
	if (result)
		return result;
	result = partition_is_read_only(partition) ? -EROFS
						   : moment_resolve(txn, partition, to, &bound);
	if (!result && id == 0)
		result = locks_check_rollback(txn, bound);
	if (!result)
		result = take_room(txn, partition);
	onode_free(txn->old.onode);
	txn->old = (struct old_view){ 0 };
	if (!result)
		return roll_back(txn, partition, bound);
	partition_release(txn->engine, partition);
	return result;
}

/* ---- objects ---- */

/* A user object as it is, and as it was. */
struct pair {
	struct target now, then;
	uint64_t pieces; /* that it had when it began */
};

/* Whether a piece has the same record now as then. Errors count as no. */
static bool is_same_record(const struct pair *pair, uint32_t piece)
{
	struct record_store *store = pair->now.txn->engine->store;
	struct record_key key = { .identifier = pair->now.onode->entry.key.identifier,
				  .piece = piece,
				  .partition = pair->now.partition->index };
	const struct extent *now = extents_find(&pair->now.onode->extents, piece);
	const struct extent *then = extents_find(&pair->then.onode->extents, piece);
	struct record_info now_info, then_info;

	return now && then && record_get(store, key, RECORD_NEWEST, NULL, 0, &now_info) == 0 &&
	       record_get(store, key, pair->then.bound, NULL, 0, &then_info) == 0 &&
	       now_info.sequence == then_info.sequence && now_info.sequence >= now->min_sequence &&
	       then_info.sequence >= then->min_sequence;
}

/* How many of then's pieces have to be put. */
static uint64_t differing_pieces(const struct pair *pair)
{
	const struct extents *then = &pair->then.onode->extents;
	uint64_t count = 0;

	for (uint64_t piece = extents_next_piece(then, 0); piece < ENGINE_PIECES_MAX;
	     piece = extents_next_piece(then, piece + 1))
		count += !is_same_record(pair, (uint32_t)piece);
	return count;
}

/*
 * Whether there would be room if all history but the moment that is gone back to were given up: then and now are both kept until
 * the end, and what differs is put once more. A clone's bytes may be its source's.
 */
static bool may_get_room(const struct pair *pair, uint64_t bytes)
{
	const struct partition *partition = pair->now.partition;
	uint64_t present = partition->origin.index ? 0 : partition->used_bytes;

	return engine_fits(pair->now.txn->engine, present + 2 * bytes);
}

/* Of what is large it is known before whether there is room: finding out by putting it would leave less to everybody. */
static int check_room(struct pair *pair)
{
	struct engine_txn *txn = pair->now.txn;
	uint64_t page_bytes = txn->engine->page_bytes, bytes;

	if (engine_has_room(txn->engine, pair->then.onode->extents.pieces * page_bytes))
		return 0;
	bytes = differing_pieces(pair) * page_bytes;
	if (engine_has_room(txn->engine, bytes))
		return 0;
	if (may_get_room(pair, bytes))
		txn->room_wanted =
			(struct engine_room){ .bytes = bytes, .moment = pair->then.bound };
	return -ENOSPC;
}

bool engine_room_wanted(const struct engine_txn *txn, struct engine_room *wanted)
{
	*wanted = txn->room_wanted;
	return wanted->bytes != 0;
}

/* Makes one piece that had data then what it was. */
static int restore_piece(struct pair *pair, uint32_t piece)
{
	uint8_t *page = txn_page(pair->now.txn, 0);
	uint32_t length;
	int result;

	if (!page)
		return -ENOMEM;
	if (is_same_record(pair, piece))
		return 0;
	result = data_get(&pair->then, piece, page, pair->now.txn->engine->page_bytes, &length);
	if (!result)
		result = data_put(&pair->now, piece, page, length);
	return result ? result : data_limit_extents(&pair->now);
}

/* Makes holes where there were holes, piece by extent, and puts the pieces that differ. */
static int restore_pieces(struct pair *pair)
{
	const struct extents *then = &pair->then.onode->extents;
	uint64_t piece = 0;
	int result = 0;

	while (!result && piece < ENGINE_PIECES_MAX) {
		const struct extent *extent = extents_find(then, (uint32_t)piece);
		uint64_t end = extent ? (uint64_t)extent->first + extent->count
				      : extents_next_piece(then, piece);

		end = min_u64(end, ENGINE_PIECES_MAX);
		if (!extent)
			result = data_void(&pair->now, piece, end);
		for (; extent && !result && piece < end; piece++)
			result = restore_piece(pair, (uint32_t)piece);
		piece = end;
	}
	return result;
}

/* Takes over the attributes of then, but not memberships, which are the collections' too. */
static int restore_attributes(struct pair *pair)
{
	const struct attribute_set *from = &pair->then.onode->attributes;
	struct attribute_set *to = &pair->now.onode->attributes;
	const uint8_t *value;
	uint32_t page, number, length;
	int result = 0;

	for (uint32_t index = to->count; !result && index-- > 0;) {
		attribute_set_at(to, index, &page, &number, &value, &length);
		if (page != ENGINE_MEMBERSHIPS_PAGE && page != ENGINE_PRIVATE_PAGE)
			result = attribute_set_change(to, page, number, NULL, 0);
	}
	for (uint32_t index = 0; !result && index < from->count; index++) {
		attribute_set_at(from, index, &page, &number, &value, &length);
		if (page != ENGINE_MEMBERSHIPS_PAGE && page != ENGINE_PRIVATE_PAGE)
			result = attribute_set_change(to, page, number, value, length);
	}
	return result;
}

static int restore_pair(struct pair *pair)
{
	struct engine_txn *txn = pair->now.txn;
	uint64_t length = pair->then.onode->head.length;
	int result = check_room(pair);

	if (!result)
		result = target_change(&pair->now);
	if (!result && length < pair->now.onode->head.length)
		result = data_cut(&pair->now, length);
	if (!result)
		result = restore_pieces(pair);
	data_account(&pair->now, pair->pieces);
	if (!result)
		result = restore_attributes(pair);
	if (result)
		return result;
	pair->now.onode->head.length = length;
	data_modified_now(&pair->now);
	if (!txn->bypass)
		pair->now.onode->head.times_ms[ENGINE_TIME_ATTRIBUTES_MODIFIED] = txn->time_ms;
	return 0;
}

static bool is_unchanged(const struct pair *pair)
{
	return pair->now.onode->head.modified_sequence == pair->then.onode->head.modified_sequence;
}

/* Restores an object that exists now to what it was then. */
static int restore_existing(struct pair *pair, struct engine_address address)
{
	int result = target_open(pair->then.txn, address, TARGET_CHANGE, &pair->now);

	if (result)
		return result;
	pair->pieces = pair->now.onode->extents.pieces;
	if (pair->now.onode->head.type != ENGINE_USER_OBJECT)
		result = -EINVAL;
	else if (!is_unchanged(pair))
		result = restore_pair(pair);
	/* Also of one that is unchanged: its collections may have been emptied. */
	if (!result)
		result = memberships_restore(&pair->now, &pair->then);
	target_close(&pair->now);
	return result;
}

/* Restores an object to `bound`. */
static int restore(struct engine_txn *txn, struct engine_address address, uint64_t bound)
{
	struct pair pair = { 0 };
	struct engine_stat stat;
	int exists = engine_stat(txn, address, &stat), result;

	if (exists && exists != -ENOENT)
		return exists;
	result = target_open_at(txn, address.partition, address.object, bound, &pair.then);
	if (result == -ENOENT && !exists)
		return stat.type == ENGINE_USER_OBJECT ? engine_remove(txn, address) : -EINVAL;
	if (!result && pair.then.onode->head.type != ENGINE_USER_OBJECT)
		result = -EINVAL;
	if (!result && exists)
		result = engine_create(txn, address.partition, ENGINE_USER_OBJECT, address.object,
				       1, NULL);
	return result ? result : restore_existing(&pair, address);
}

/* Finds the partition that an object is to go back in. -EROFS: it only shows its source. */
static int open_writable(struct engine_txn *txn, uint64_t id, struct partition **partition)
{
	int result = txn->mode == ENGINE_READ ? -EROFS : partition_get(txn->engine, id, partition);

	if (!result && partition_is_read_only(*partition)) {
		partition_release(txn->engine, *partition);
		result = -EROFS;
	}
	return result;
}

int engine_rollback_object(struct engine_txn *txn, uint64_t id, uint64_t object,
			   struct engine_moment to)
{
	struct engine_address address = { .partition = id, .object = object };
	struct partition *partition;
	uint64_t bound = 0;
	int result = open_writable(txn, id, &partition);

	if (result)
		return result;
	result = object < ENGINE_FIRST_ID ? -ENOENT
					  : moment_resolve_object(txn, partition, to, &bound);
	partition_release(txn->engine, partition);
	return result ? result : restore(txn, address, bound);
}

int engine_undo(struct engine_txn *txn, uint64_t id, uint64_t object, uint32_t modifications)
{
	struct engine_address address = { .partition = id, .object = object };
	struct partition *partition;
	uint64_t bound = 0;
	int result = open_writable(txn, id, &partition);

	if (result)
		return result;
	partition_release(txn->engine, partition);
	if (modifications == 0)
		return -EINVAL;
	result = moment_ago(txn, id, object, modifications, &bound);
	return result ? result : restore(txn, address, bound);
}
