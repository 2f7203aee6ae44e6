/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Keeps the attributes of the root and of partitions that are no part of history. */
#include "engine/objects/lasting.h"

#include <assert.h>
#include <string.h>

#include "common/bytes.h"

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

/*
 * The record may be of an earlier owner of the index: then this one has set nothing yet. Of a later
 * one: then what this one had set is lost.
 */
static int load(const struct target *target, struct onode **loaded)
{
	const struct partition *partition = target->partition;
	struct engine_txn *txn = target->txn;
	struct onode *onode;
	int result = onode_load(txn->engine->store, partition->index, RECORD_ID_LASTING,
				RECORD_NEWEST, 0, txn->sequence, &onode);

	if (!result && onode->head.created_sequence != partition->created_sequence) {
		bool is_later = onode->head.created_sequence > partition->created_sequence;

		onode_free(onode);
		result = is_later && target->old ? -EBADMSG : -ENOENT;
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

/*
 * The view of an address if that shows another partition than the one that has the ID now,
 * `current` (NULL: none has); otherwise NULL. A partition's own versions show no other.
 */
static int find_earlier(struct engine_txn *txn, struct engine_address address,
			const struct partition *current, struct old_view **view)
{
	int result;

	*view = NULL;
	if (!address.partition || !address.version ||
	    (current && address.version <= ENGINE_PARTITION_VERSION_LAST))
		return current ? 0 : -ENOENT;
	result = target_view(txn, address, view);
	if (!result && current && (*view)->partition.index == current->index &&
	    (*view)->partition.created_sequence == current->created_sequence)
		*view = NULL;
	return result;
}

static int open_of_earlier(struct target *target, struct old_view *view)
{
	int result = 0;

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

/* As find_earlier, with the current partition, pinned, or NULL. */
static int find_shown(struct engine_txn *txn, struct engine_address address,
		      struct partition **current, struct old_view **view)
{
	int result = partition_get(txn->engine, address.partition, current);

	*view = NULL;
	if (result)
		*current = NULL;
	if (result && result != -ENOENT)
		return result;
	result = find_earlier(txn, address, *current, view);
	if (result && *current) {
		partition_release(txn->engine, *current);
		*current = NULL;
	}
	return result;
}

int engine_partition_shown(struct engine_txn *txn, struct engine_address address, bool *is_present)
{
	struct partition *current;
	struct old_view *earlier;
	int result = find_shown(txn, address, &current, &earlier);

	*is_present = !result && !earlier;
	if (current)
		partition_release(txn->engine, current);
	return result;
}

int lasting_open(struct engine_txn *txn, struct engine_address address, struct target *target)
{
	struct cache *cache = &txn->engine->onodes;
	struct cache_key key = { .identifier = RECORD_ID_LASTING };
	struct old_view *earlier;
	struct onode *onode;
	int result;

	*target = (struct target){ .txn = txn, .bound = RECORD_NEWEST };
	result = find_shown(txn, address, &target->partition, &earlier);
	if (result)
		return result;
	if (earlier) {
		if (target->partition)
			partition_release(txn->engine, target->partition);
		return open_of_earlier(target, earlier);
	}
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

/* What a partition that is or was a snapshot shows, in the partition that it was made of. */
static int go_up(struct engine *engine, struct partition_origin origin, struct partition *above)
{
	int result;

	if (!origin.index || !origin.associated || origin.writable)
		return -ENODATA;
	*above = (struct partition){ 0 };
	/* It stands there, so the state is kept, whatever has become of that partition. */
	result = partition_state_of(engine->store, origin.index, origin.bound, above);
	return result == -ENOENT ? -EBADMSG : result;
}

static int read_above(struct engine_txn *txn, const struct partition *above, uint32_t page,
		      uint32_t number, void *value, uint32_t capacity, uint32_t *length)
{
	struct partition partition = *above;
	struct target target = { .txn = txn, .partition = &partition, .old = true };
	struct onode *onode;
	const uint8_t *found;
	uint32_t index;
	int result = load(&target, &onode);

	if (result)
		return result;
	if (attribute_set_find(&onode->attributes, page, number, &index)) {
		attribute_set_at(&onode->attributes, index, &page, &number, &found, length);
		memcpy(value, found, min_u64(*length, capacity));
	} else {
		result = -ENOENT;
	}
	onode_free(onode);
	return result;
}

int engine_snapshot_attribute_get(struct engine_txn *txn, struct engine_address address,
				  unsigned above, uint32_t page, uint32_t number, void *value,
				  uint32_t capacity, uint32_t *length)
{
	struct partition *current, source;
	struct partition_origin origin = { 0 };
	struct old_view *earlier;
	int result = find_shown(txn, address, &current, &earlier);

	if (result)
		return result;
	/* An earlier partition may be shown while there is a current one of its ID. */
	if (current) {
		origin = current->origin;
		partition_release(txn->engine, current);
	}
	if (earlier)
		origin = earlier->partition.origin;
	for (unsigned n = 0; n < above && !result; n++) {
		result = go_up(txn->engine, origin, &source);
		origin = source.origin;
	}
	return result ? result : read_above(txn, &source, page, number, value, capacity, length);
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
