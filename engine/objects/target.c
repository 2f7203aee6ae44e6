/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* How a call gets at the object that it is about, and how changed onodes get into the store. */
#include <assert.h>

#include "engine/objects/objects.h"

/* ---- changed onodes ---- */

/* As of cache_put_dirty; the context is the transaction. */
static int put_onode(void *txn_, struct cache_entry *entry)
{
	struct engine_txn *txn = txn_;
	struct onode *onode = (struct onode *)entry;
	int result = onode_put(&txn->writer, onode);

	if (!result)
		cache_mark_clean(&txn->engine->onodes, entry, onode_bytes(onode));
	return result;
}

int onodes_limit_dirty(struct engine_txn *txn)
{
	return cache_put_dirty(&txn->engine->onodes, ENGINE_DIRTY_ONODES_MAX - 1, put_onode, txn);
}

int onodes_put_dirty(struct engine_txn *txn)
{
	return cache_put_dirty(&txn->engine->onodes, 0, put_onode, txn);
}

void onode_born(struct onode *onode, const struct engine_txn *txn)
{
	struct onode_head *head = &onode->head;

	head->created_sequence = head->modified_sequence = txn->sequence;
	/*
	 * Records of earlier objects with this ID are older; those of this transaction were
	 * emptied.
	 */
	head->void_sequence = txn->sequence - 1;
	for (int which = 0; which < ENGINE_TIMES; which++)
		head->times_ms[which] = txn->time_ms;
}

/* ---- onodes ---- */

static void count_lookup(struct engine *engine)
{
	__atomic_fetch_add(&engine->object_lookups, 1, __ATOMIC_RELAXED);
}

/* Reads an onode of `partition`. The root has one even if nothing was ever stored in it. */
static int load(struct target *target, uint64_t identifier, struct onode **onode)
{
	const struct partition *partition = target->partition;
	struct engine_txn *txn = target->txn;
	int result = onode_load(txn->engine->store, partition->index, identifier, target->bound,
				partition_objects_since(partition), txn->sequence, onode);

	if (result == -ENOENT && partition->index == RECORD_ROOT_INDEX) {
		*onode = onode_new(RECORD_ROOT_INDEX, 0);
		return *onode ? 0 : -ENOMEM;
	}
	/* Which pieces the transaction has put of it is forgotten, so assume all. */
	if (!result && !target->old && partition->is_unlogged && txn->data_put) {
		(*onode)->written_sequence = txn->sequence;
		(*onode)->written_end = ENGINE_PIECES_MAX;
	}
	return result;
}

static int get_current(struct target *target, uint64_t identifier)
{
	struct cache *cache = &target->txn->engine->onodes;
	struct cache_key key = { .identifier = identifier, .partition = target->partition->index };
	struct onode *onode = (struct onode *)cache_get(cache, key);
	int result = 0;

	count_lookup(target->txn->engine);
	if (!onode) {
		result = load(target, identifier, &onode);
		if (!result)
			onode = (struct onode *)cache_add(cache, &onode->entry, onode_bytes(onode));
	}
	target->onode = onode;
	return result;
}

/* ---- moments of the past ---- */

static bool is_same_moment(const struct old_view *view, const struct engine_address *address)
{
	const struct engine_address *shown = &view->address;

	/* A view of one object does not show the directories of then. */
	return shown->partition == address->partition && shown->version == address->version &&
	       shown->ago == address->ago &&
	       (address->ago == 0 || shown->object == address->object) &&
	       (address->object || !view->one_object);
}

/* The state of a partition as of a bound. */
static int state_as_of(struct engine *engine, uint64_t id, uint64_t bound, struct partition *state)
{
	int result;

	if (kept_find_state(&engine->kept, id, bound, state))
		return 0;
	result = partition_as_of(engine, id, bound, state);
	if (!result)
		kept_add_state(&engine->kept, bound, state);
	return result;
}

/* The bound of a version that is no view. */
static int bound_of_version(struct engine_txn *txn, uint64_t id, uint32_t version, uint64_t *bound)
{
	struct kept *kept = &txn->engine->kept;
	int result;

	if (kept_find_bound(kept, id, version, bound))
		return 0;
	result = txn->engine->history->bound_of_version(txn, id, version, bound);
	if (!result)
		kept_add_bound(kept, id, version, *bound);
	return result;
}

/*
 * Makes the transaction's view show partition `address.partition` as of `bound`. For one object any
 * bound will do, but the partition is the one of now: its state is known at the ends of slots only.
 */
static int view_bound(struct engine_txn *txn, struct engine_address address, uint64_t bound,
		      bool one_object)
{
	struct old_view *view = &txn->old;
	struct partition *current;
	int result;

	if (view->bound != bound || view->objects_bound != bound ||
	    view->one_object != one_object || view->address.partition != address.partition) {
		onode_free(view->onode);
		*view = (struct old_view){ 0 };
		if (one_object) {
			result = partition_get(txn->engine, address.partition, &current);
			if (result)
				return result;
			view->partition = *current;
			view->partition.history = NULL;
			partition_release(txn->engine, current);
		} else {
			result = state_as_of(txn->engine, address.partition, bound,
					     &view->partition);
			if (result)
				return result;
		}
	}
	view->address = address;
	view->bound = view->objects_bound = bound;
	view->one_object = one_object;
	return 0;
}

/* Objects are shown as of another bound than the partition. */
static void view_objects(struct engine_txn *txn, uint64_t bound)
{
	struct old_view *view = &txn->old;

	if (view->objects_bound == bound)
		return;
	onode_free(view->onode);
	view->onode = NULL;
	view->objects_bound = bound;
}

/*
 * Whether the partition of now will do. It has kept its own versions since it was made, under the
 * same index; the device's may show another partition of that ID.
 */
static bool shows_one_object(const struct engine_address *address)
{
	return address->ago ||
	       (address->object && address->version <= ENGINE_PARTITION_VERSION_LAST);
}

int target_view(struct engine_txn *txn, struct engine_address address, struct old_view **view)
{
	uint64_t bound = 0, objects_bound = 0;
	int result;

	*view = &txn->old;
	if (address.version && address.ago)
		return -EINVAL;
	if (txn->old.bound && (address.version || address.ago) &&
	    is_same_moment(&txn->old, &address))
		return 0;
	if (address.ago)
		result = txn->engine->history->bound_ago(txn, address.partition, address.object,
							 address.ago, &bound);
	else if (address.version >= ENGINE_VIEW_FIRST && address.version <= ENGINE_VIEW_LAST)
		result = txn->engine->history->bound_of_view(
			txn, address.partition, address.version, &bound, &objects_bound);
	else
		result = bound_of_version(txn, address.partition, address.version, &bound);
	if (!result)
		result = view_bound(txn, address, bound, shows_one_object(&address));
	if (!result && objects_bound)
		view_objects(txn, objects_bound);
	return result;
}

/* Opens an object in the transaction's view. */
static int open_in_view(struct target *target, uint64_t identifier)
{
	struct old_view *view = &target->txn->old;
	int result = 0;

	target->partition = &view->partition;
	target->bound = identifier ? view->objects_bound : view->bound;
	target->old = true;
	if (view->onode && view->onode->entry.key.identifier != identifier) {
		onode_free(view->onode);
		view->onode = NULL;
	}
	if (!view->onode) {
		count_lookup(target->txn->engine);
		result = load(target, identifier, &view->onode);
	}
	target->onode = view->onode;
	return result;
}

/* ---- targets ---- */

/* What is stored under an identifier is what belongs there. */
static int check_type(const struct target *target, uint64_t identifier)
{
	enum engine_type type = target->onode->head.type;
	bool member = type == ENGINE_USER_OBJECT || type == ENGINE_COLLECTION;

	return member == (identifier != 0) ? 0 : -EBADMSG;
}

static bool names_nothing(struct engine_address address)
{
	return address.object && (address.object < ENGINE_FIRST_ID || address.partition == 0);
}

static int open_old(struct target *target, struct engine_address address)
{
	struct old_view *view;
	int result = target_view(target->txn, address, &view);

	if (!result)
		result = open_in_view(target, address.object);
	return result ? result : check_type(target, address.object);
}

int target_check_writable(const struct target *target)
{
	const struct partition *partition = target->partition;

	/* The command that makes a snapshot may still give it attributes. */
	return partition_is_read_only(partition) &&
			       partition->created_sequence != target->txn->sequence
		       ? -EROFS
		       : 0;
}

static int open_current(struct target *target, struct engine_address address, enum target_use use)
{
	int result = partition_get(target->txn->engine, address.partition, &target->partition);

	if (!result && use == TARGET_CHANGE)
		result = target_check_writable(target);
	if (!result)
		result = get_current(target, address.object);
	if (!result)
		result = check_type(target, address.object);
	if (result)
		target_close(target);
	return result;
}

int target_open(struct engine_txn *txn, struct engine_address address, enum target_use use,
		struct target *target)
{
	bool old = address.version || address.ago;

	*target = (struct target){ .txn = txn, .bound = RECORD_NEWEST };
	if (use == TARGET_CHANGE && (txn->mode == ENGINE_READ || old))
		return -EROFS;
	if (names_nothing(address))
		return -ENOENT;
	return old ? open_old(target, address) : open_current(target, address, use);
}

int target_open_at(struct engine_txn *txn, uint64_t partition, uint64_t object, uint64_t bound,
		   struct target *target)
{
	struct engine_address address = { .partition = partition, .object = object };
	int result;

	*target = (struct target){ .txn = txn, .bound = bound };
	if (names_nothing(address))
		return -ENOENT;
	result = view_bound(txn, address, bound, object != 0);
	if (!result)
		result = open_in_view(target, object);
	return result ? result : check_type(target, object);
}

void target_close(struct target *target)
{
	struct engine *engine = target->txn->engine;

	if (target->old)
		return;
	if (target->onode)
		cache_unpin(&engine->onodes, &target->onode->entry);
	if (target->partition)
		partition_release(engine, target->partition);
}

void target_mark(struct target *target)
{
	struct engine *engine = target->txn->engine;
	struct onode *onode = target->onode;
	struct access_key key = { .partition = target->partition->id,
				  .object = onode->entry.key.identifier,
				  .created_sequence = onode->head.created_sequence };

	access_times_take(&engine->accesses, key, onode->head.times_ms);
	cache_mark_dirty(&engine->onodes, &onode->entry);
	onode->absorb = engine->history->keeps_nothing(engine, target->partition);
}

int target_touch(struct target *target)
{
	int result = 0;

	assert(!target->old && target->txn->mode != ENGINE_READ);
	if (target->onode->entry.state != CACHE_DIRTY)
		result = onodes_limit_dirty(target->txn);
	if (!result)
		result = partitions_limit_dirty(target->txn);
	if (result)
		return result;
	target->txn->changed = true;
	target_mark(target);
	return 0;
}

void target_modified(struct target *target)
{
	target->onode->head.modified_sequence = target->txn->sequence;
}

int target_change(struct target *target)
{
	int result = target_touch(target);

	if (!result)
		target_modified(target);
	return result;
}
