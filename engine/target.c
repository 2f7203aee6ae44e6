/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* How a call gets at the object that it is about, and how changed onodes get into the store. */
#include <assert.h>

#include "engine/objects.h"

/* ---- changed onodes ---- */

static int put_onode(struct engine_txn *txn, struct onode *onode)
{
	struct cache *cache = &txn->engine->onodes;
	int result = onode_put(&txn->writer, onode);

	if (!result)
		cache_mark_clean(cache, &onode->entry, onode_bytes(onode));
	cache_unpin(cache, &onode->entry);
	return result;
}

static int put_dirty_above(struct engine_txn *txn, uint32_t limit)
{
	struct cache *cache = &txn->engine->onodes;
	int result = 0;

	while (!result && cache->dirty_entries > limit) {
		struct cache_entry *entry = cache_oldest_dirty(cache);

		if (!entry)
			break; /* all that are left are pinned by this very call */
		result = put_onode(txn, (struct onode *)entry);
	}
	return result;
}

int onodes_room(struct engine_txn *txn)
{
	return put_dirty_above(txn, ENGINE_DIRTY_ONODES_MAX - 1);
}

int onodes_put_dirty(struct engine_txn *txn)
{
	return put_dirty_above(txn, 0);
}

void onode_born(struct onode *onode, const struct engine_txn *txn)
{
	struct onode_head *head = &onode->head;

	head->created_sequence = head->modified_sequence = txn->sequence;
	/* Records of earlier objects with this ID are older; those of this transaction were emptied. */
	head->void_sequence = txn->sequence - 1;
	for (int which = 0; which < ENGINE_TIMES; which++)
		head->times_ms[which] = txn->time_ms;
}

/* ---- onodes ---- */

/* Reads an onode of `partition`. The root has one even if nothing was ever stored in it. */
static int load(struct target *target, uint64_t identifier, struct onode **onode)
{
	const struct partition *partition = target->partition;
	struct engine_txn *txn = target->txn;
	int result = onode_load(txn->engine->store, partition->index, identifier, target->bound,
				partition->created_sequence, txn->sequence, onode);

	if (result == -ENOENT && partition->index == RECORD_ROOT_INDEX) {
		*onode = onode_new(RECORD_ROOT_INDEX, 0);
		return *onode ? 0 : -ENOMEM;
	}
	return result;
}

static int get_current(struct target *target, uint64_t identifier)
{
	struct cache *cache = &target->txn->engine->onodes;
	struct cache_key key = { .identifier = identifier, .partition = target->partition->index };
	struct onode *onode = (struct onode *)cache_get(cache, key);
	int result = 0;

	if (!onode) {
		result = load(target, identifier, &onode);
		if (!result)
			onode = (struct onode *)cache_add(cache, &onode->entry, onode_bytes(onode));
	}
	target->onode = onode;
	return result;
}

/* ---- versions of old ---- */

/* Makes the transaction's view of old show `version` of the target's partition. */
static int view_version(struct target *target, uint32_t version)
{
	struct engine_txn *txn = target->txn;
	struct old_view *view = &txn->old;
	uint64_t bound = 0;
	int result;

	if (view->version == version && view->partition.id == target->partition->id)
		return 0;
	onode_free(view->onode);
	*view = (struct old_view){ 0 };
	result = partition_boundary(txn->engine, target->partition, version, &bound);
	if (!result)
		result = partition_as_of(txn->engine, target->partition, bound, &view->partition);
	if (result)
		return result;
	view->version = version;
	view->bound = bound;
	return 0;
}

static int get_old(struct target *target, uint64_t identifier, uint32_t version)
{
	struct old_view *view = &target->txn->old;
	int result;

	if (target->partition->index == RECORD_ROOT_INDEX)
		return -ENOENT;
	result = view_version(target, version);
	if (result)
		return result;
	partition_release(target->txn->engine, target->partition);
	target->partition = &view->partition;
	target->bound = view->bound;
	target->old = true;
	if (view->onode && view->onode->entry.key.identifier != identifier) {
		onode_free(view->onode);
		view->onode = NULL;
	}
	if (!view->onode)
		result = load(target, identifier, &view->onode);
	target->onode = view->onode;
	return result;
}

/* ---- targets ---- */

int target_open(struct engine_txn *txn, struct engine_address address, enum target_use use,
		struct target *target)
{
	int result;

	*target = (struct target){ .txn = txn, .bound = RECORD_NEWEST };
	if (use == TARGET_CHANGE && (txn->mode == ENGINE_READ || address.version))
		return -EROFS;
	if (address.object && (address.object < ENGINE_FIRST_ID || address.partition == 0))
		return -ENOENT;
	result = partition_get(txn->engine, address.partition, &target->partition);
	if (result)
		return result;
	if (address.version)
		result = get_old(target, address.object, address.version);
	else
		result = get_current(target, address.object);
	if (!result) {
		enum engine_type type = target->onode->head.type;
		bool member = type == ENGINE_USER_OBJECT || type == ENGINE_COLLECTION;

		/* What is stored under an identifier is what belongs there. */
		if (member != (address.object != 0))
			result = -EBADMSG;
	}
	if (result)
		target_close(target);
	return result;
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

int target_open_user_object(struct engine_txn *txn, struct engine_address address,
			    enum target_use use, struct target *target)
{
	int result = target_open(txn, address, use, target);

	if (result || target->onode->head.type == ENGINE_USER_OBJECT)
		return result;
	target_close(target);
	return -EINVAL;
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
	onode->version = target->partition->version;
}

int target_touch(struct target *target)
{
	int result = 0;

	assert(!target->old && target->txn->mode != ENGINE_READ);
	if (target->onode->entry.state != CACHE_DIRTY)
		result = onodes_room(target->txn);
	if (!result)
		result = partition_room(target->txn);
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
