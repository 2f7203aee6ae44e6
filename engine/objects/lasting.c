/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Keeps the attributes of the root and of partitions that are no part of history. */
#include "engine/objects/lasting.h"

#include <assert.h>
#include <string.h>

void engine_set_lasting_pages(struct engine *engine, const uint32_t *pages, uint32_t count)
{
	assert(count <= ENGINE_LASTING_PAGES_MAX);
	memcpy(engine->lasting_pages, pages, count * sizeof(*pages));
	engine->lasting_count = count;
}

bool lasting_has(const struct engine *engine, struct engine_address address, uint32_t page)
{
	for (uint32_t n = 0; address.object == 0 && n < engine->lasting_count; n++)
		if (engine->lasting_pages[n] == page)
			return true;
	return false;
}

/* The record may be of an earlier owner of the index: then this one has set nothing yet. */
static int load(const struct target *target, struct onode **loaded)
{
	const struct partition *partition = target->partition;
	struct engine_txn *txn = target->txn;
	struct onode *onode;
	int result = onode_load(txn->engine->store, partition->index, RECORD_ID_LASTING,
				RECORD_NEWEST, 0, txn->sequence, &onode);

	if (!result && onode->head.created_sequence != partition->created_sequence) {
		onode_free(onode);
		result = -ENOENT;
	}
	if (result == -ENOENT) {
		onode = onode_new(partition->index, RECORD_ID_LASTING);
		result = onode ? 0 : -ENOMEM;
		if (!result) {
			onode->head.type = partition->index ? ENGINE_PARTITION : ENGINE_ROOT;
			onode->head.created_sequence = partition->created_sequence;
		}
	}
	*loaded = result ? NULL : onode;
	return result;
}

/* Of a partition that is not there any more, but is shown by a version of the device. */
static int open_of_removed(struct target *target, struct engine_address address)
{
	struct old_view *view;
	int result = target_view(target->txn, address, &view);

	if (result)
		return result;
	target->partition = &view->partition;
	target->old = true;
	if (view->onode && view->onode->entry.key.identifier != RECORD_ID_LASTING) {
		onode_free(view->onode);
		view->onode = NULL;
	}
	if (!view->onode)
		result = load(target, &view->onode);
	target->onode = view->onode;
	return result;
}

int lasting_open(struct engine_txn *txn, struct engine_address address, struct target *target)
{
	struct cache *cache = &txn->engine->onodes;
	struct cache_key key = { .identifier = RECORD_ID_LASTING };
	struct onode *onode;
	int result;

	*target = (struct target){ .txn = txn, .bound = RECORD_NEWEST };
	result = partition_get(txn->engine, address.partition, &target->partition);
	if (result == -ENOENT && address.version)
		return open_of_removed(target, address);
	if (result)
		return result;
	key.partition = target->partition->index;
	onode = (struct onode *)cache_get(cache, key);
	if (!onode) {
		result = load(target, &onode);
		if (!result)
			onode = (struct onode *)cache_add(cache, &onode->entry, onode_bytes(onode));
	}
	target->onode = onode;
	if (result)
		target_close(target);
	return result;
}

int lasting_put(struct engine_txn *txn, const struct partition *partition)
{
	struct cache *cache = &txn->engine->onodes;
	struct cache_key key = { .identifier = RECORD_ID_LASTING, .partition = partition->index };
	struct onode *onode = (struct onode *)cache_get(cache, key);
	int result = 0;

	if (!onode)
		return 0;
	if (onode->entry.state == CACHE_DIRTY) {
		result = onode_put(&txn->writer, onode);
		if (!result)
			cache_mark_clean(cache, &onode->entry, onode_bytes(onode));
	}
	cache_unpin(cache, &onode->entry);
	return result;
}

int lasting_copy(struct engine_txn *txn, struct attribute_set *copy)
{
	const struct engine_address root = { 0 };
	const struct attribute_set *from;
	struct target target;
	int result = txn->engine->lasting_count ? lasting_open(txn, root, &target) : -ENOENT;

	*copy = (struct attribute_set){ 0 };
	if (result)
		return result == -ENOENT ? 0 : result;
	from = &target.onode->attributes;
	result = attribute_set_decode(copy, from->bytes, from->length, from->count);
	target_close(&target);
	return result;
}

int lasting_give(struct engine_txn *txn, struct attribute_set *copy)
{
	const struct engine_address root = { 0 };
	struct target target;
	int result = copy->count ? lasting_open(txn, root, &target) : -ENOENT;

	if (result)
		return result == -ENOENT ? 0 : result;
	result = target_change(&target);
	if (!result)
		result = attribute_set_add_all(&target.onode->attributes, copy);
	target_close(&target);
	return result;
}

uint64_t engine_memo(const struct engine *engine)
{
	return engine->store->operations->memo(engine->store);
}

int engine_set_memo(struct engine *engine, uint64_t memo, bool stable)
{
	const struct record_store_operations *operations = engine->store->operations;

	operations->set_memo(engine->store, memo);
	return stable || engine->options.stable_commits ? operations->sync_memo(engine->store) : 0;
}
