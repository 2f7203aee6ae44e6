/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Rolls back single objects. It puts the old onode once more. For the data it notes a hidden
 * interval, which hides the newer pieces. If there are few old pieces, or no interval can be had,
 * it puts the old pieces once more instead.
 */
#include "common/bytes.h"
#include "engine/history/merge.h"
#include "engine/history/moments.h"
#include "engine/objects/collections.h"
#include "engine/objects/data.h"

/*
 * A reader of an old piece follows the object's intervals one by one. When it would follow so many
 * (STEPS_MANY), the rollback puts the data once more. An object that is too large for that gets
 * further intervals up to STEPS_MAX; then the rollback is refused.
 */
#define STEPS_MANY 512
#define STEPS_MAX  4096

/* A user object as it is, and as it was. */
struct pair {
	struct target now, then;
	uint64_t pieces; /* that it had when it began */
	bool is_first;   /* the transaction had not changed anything before */
};

/* ---- putting the data of then again ---- */

/* How many of then's pieces have to be put. */
static uint64_t differing_pieces(const struct pair *pair)
{
	const struct extents *then = &pair->then.onode->extents;
	uint64_t count = 0;

	for (uint64_t piece = extents_next_piece(then, 0); piece < ENGINE_PIECES_MAX;
	     piece = extents_next_piece(then, piece + 1))
		count += !data_is_same_record(&pair->now, &pair->then, (uint32_t)piece);
	return count;
}

/*
 * Whether there would be space if all history but the moment that is gone back to were given up:
 * then and now are both kept until the end, and what differs is put once more. A clone's bytes may
 * be its source's.
 */
static bool may_get_space(const struct pair *pair, uint64_t bytes)
{
	const struct partition *partition = pair->now.partition;
	uint64_t present = partition->origin.index ? 0 : partition->used_bytes;

	return merge_fits(pair->now.txn->engine, present + 2 * bytes);
}

/*
 * Of what is large it is known before whether there is space: finding out by putting it would leave
 * less to everybody.
 */
static int check_space(struct pair *pair)
{
	struct engine_txn *txn = pair->now.txn;
	uint64_t page_bytes = txn->engine->page_bytes, bytes;

	if (merge_has_space(txn->engine, pair->then.onode->extents.pieces * page_bytes))
		return 0;
	bytes = differing_pieces(pair) * page_bytes;
	if (merge_has_space(txn->engine, bytes))
		return 0;
	if (may_get_space(pair, bytes))
		txn->space_wanted =
			(struct engine_space){ .bytes = bytes, .moment = pair->then.bound };
	return -ENOSPC;
}

bool engine_space_wanted(const struct engine_txn *txn, struct engine_space *wanted)
{
	*wanted = txn->space_wanted;
	return wanted->bytes != 0;
}

/* Makes one piece that had data then what it was. */
static int restore_piece(struct pair *pair, uint32_t piece)
{
	uint8_t *page = txn_page(pair->now.txn, TXN_PIECE);
	uint32_t length;
	int result;

	if (data_is_same_record(&pair->now, &pair->then, piece))
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

/* Now and then together. */
static uint64_t pieces_of(const struct pair *pair)
{
	return pair->pieces + pair->then.onode->extents.pieces;
}

/* Puts what differs. */
static int put_data(struct pair *pair)
{
	uint64_t length = pair->then.onode->head.length;
	int result = 0;

	/* What can't be had otherwise must not take long, since everybody waits for it. */
	if (pieces_of(pair) > pair->now.txn->engine->past->pieces_put_max)
		result = -EFBIG;
	if (!result)
		result = check_space(pair);
	if (!result)
		result = target_change(&pair->now);
	if (!result && length < pair->now.onode->head.length)
		result = data_cut(&pair->now, length);
	return result ? result : restore_pieces(pair);
}

/* ---- hiding what came since ---- */

/*
 * Whether a clone stood where it stands now: then is not before a refresh, nor on a line of history
 * before it. Errors count as no.
 */
static bool stood_here(const struct pair *pair)
{
	const struct partition *partition = pair->now.partition;
	struct partition then;

	if (!partition->origin.index)
		return true;
	return partition_state_of(pair->now.txn->engine->store, partition->index, pair->then.bound,
				  &then) == 0 &&
	       then.origin.index == partition->origin.index &&
	       then.origin.since == partition->origin.since;
}

/*
 * Whether the data of then can be found again by hiding what came since. Not in a transaction that
 * may have put pieces itself, which have its number; nor across a refresh of a clone, since what is
 * older than that is its source's.
 */
static bool can_hide(const struct pair *pair)
{
	return pair->is_first && pair->then.bound < pair->now.txn->sequence && stood_here(pair);
}

/*
 * The number that the data of then is found by. Where then is what another rollback left, that
 * one's number is the same data, and readers are spared a step: however often what was undone is
 * undone again, they take one.
 */
static uint64_t number_of_data(const struct pair *pair, const struct record_key *key)
{
	const struct hidden_interval *last = hidden_last_of(&pair->now.txn->engine->past->hidden,
							    key->partition, key->identifier,
							    pair->then.bound);

	return last && !last->is_followed && !pair->now.partition->is_unlogged &&
			       last->at == pair->then.onode->head.modified_sequence
		       ? last->to
		       : pair->then.bound;
}

/* Notes the rollback. -EFBIG: it can't be noted. */
static int note_rollback(struct pair *pair)
{
	struct engine_txn *txn = pair->now.txn;
	struct engine *engine = txn->engine;
	const struct record_key key =
		key_of_data(pair->now.partition->index, pair->now.onode->entry.key.identifier, 0);
	const struct hidden_interval interval = { .identifier = key.identifier,
						  .partition = key.partition,
						  .to = number_of_data(pair, &key) };
	uint32_t steps = pieces_of(pair) > engine->past->pieces_put_max ? STEPS_MAX : STEPS_MANY;
	struct partition *root;
	int result;

	if (hidden_steps(&engine->past->hidden, key.partition, key.identifier, interval.to,
			 steps) >= steps)
		return -EFBIG;
	result = hidden_add(txn, interval);
	if (result)
		return result;
	txn->changed = txn->object_rolled_back = true;
	result = partition_get(engine, 0, &root);
	if (result)
		return result;
	if (root->history->device.hidden_chunks != engine->past->hidden.chunks) {
		root->history->device.hidden_chunks = engine->past->hidden.chunks;
		partition_mark_history(txn, root);
	}
	partition_release(engine, root);
	return 0;
}

static int hide_data(struct pair *pair)
{
	struct onode *now = pair->now.onode;
	const struct onode *then = pair->then.onode;
	int result = partitions_limit_dirty(pair->now.txn);

	if (!result)
		result = extents_reserve(&now->extents, then->extents.count);
	if (!result)
		result = note_rollback(pair);
	if (!result)
		result = target_change(&pair->now);
	if (result)
		return result;
	onode_inline_end(now);
	if (then->data.here)
		result = onode_inline_set(now, then->data.bytes, then->data.length);
	if (result)
		return result;
	extents_copy(&now->extents, &then->extents);
	now->head.void_sequence = then->head.void_sequence;
	return 0;
}

/* ---- all of an object ---- */

static int restore_data(struct pair *pair)
{
	int result = -EFBIG;

	if (can_hide(pair) && pieces_of(pair) > pair->now.txn->engine->past->pieces_put_again)
		result = hide_data(pair);
	if (result == -EFBIG)
		result = put_data(pair);
	data_account(&pair->now, pair->pieces);
	return result;
}

static int restore_pair(struct pair *pair)
{
	struct engine_txn *txn = pair->now.txn;
	int result = restore_data(pair);

	if (!result)
		result = restore_attributes(pair);
	if (result)
		return result;
	pair->now.onode->head.length = pair->then.onode->head.length;
	data_modified_now(&pair->now);
	if (!txn->bypass)
		pair->now.onode->head.times_ms[ENGINE_TIME_ATTRIBUTES_MODIFIED] = txn->time_ms;
	return 0;
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
	else if (!data_is_unmodified(&pair->now, &pair->then))
		result = restore_pair(pair);
	/* Also of one that is unchanged: its collections may have been emptied. */
	if (!result)
		result = memberships_restore(&pair->now, &pair->then);
	target_close(&pair->now);
	return result;
}

/* It was not there then. */
static int remove_now(struct engine_txn *txn, struct engine_address address)
{
	struct target target;
	int result = target_open(txn, address, TARGET_CHANGE, &target);

	if (result)
		return result;
	result = target.onode->head.type == ENGINE_USER_OBJECT ? object_remove(&target) : -EINVAL;
	target_close(&target);
	return result;
}

/* Restores an object to `bound`. */
static int restore(struct engine_txn *txn, struct engine_address address, uint64_t bound)
{
	struct pair pair = { .is_first = !txn->changed && !txn->put_bytes };
	int exists = target_open(txn, address, TARGET_READ, &pair.now), result;

	if (exists && exists != -ENOENT)
		return exists;
	if (!exists)
		target_close(&pair.now);
	result = target_open_at(txn, address.partition, address.object, bound, &pair.then);
	if (result == -ENOENT && !exists)
		return remove_now(txn, address);
	if (!result && pair.then.onode->head.type != ENGINE_USER_OBJECT)
		result = -EINVAL;
	if (!result && exists)
		result = engine_create(txn, address.partition, ENGINE_USER_OBJECT, address.object,
				       1, NULL);
	return result ? result : restore_existing(&pair, address);
}

/* -EROFS: the transaction only reads, or the partition only shows its source. */
static int check_writable(struct engine_txn *txn, uint64_t id)
{
	struct partition *partition;
	int result = txn->mode == ENGINE_READ ? -EROFS : partition_get(txn->engine, id, &partition);

	if (result)
		return result;
	result = partition_is_read_only(partition) ? -EROFS : 0;
	partition_release(txn->engine, partition);
	return result;
}

int engine_rollback_object(struct engine_txn *txn, uint64_t id, uint64_t object,
			   struct engine_moment to)
{
	struct engine_address address = { .partition = id, .object = object };
	uint64_t bound = 0;
	int result = check_writable(txn, id);

	if (!result)
		result = object < ENGINE_FIRST_ID
				 ? -ENOENT
				 : engine_object_moment_resolve(txn, id, to, &bound);
	return result ? result : restore(txn, address, bound);
}

int engine_undo(struct engine_txn *txn, uint64_t id, uint64_t object, uint32_t modifications)
{
	struct engine_undo undo = { 0 };

	return modifications > ENGINE_AGO_AT_ONCE
		       ? -E2BIG
		       : engine_undo_on(txn, id, object, modifications, &undo);
}

int engine_undo_on(struct engine_txn *txn, uint64_t id, uint64_t object, uint32_t modifications,
		   struct engine_undo *undo)
{
	struct engine_address address = { .partition = id, .object = object };
	int result = check_writable(txn, id);

	if (!result)
		result = modifications ? moment_count_back(txn, id, object, modifications, undo)
				       : -EINVAL;
	return result ? result : restore(txn, address, undo->bound);
}
