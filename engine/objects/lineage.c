/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Finds what a clone has not got itself in the partitions that it stands on. */
#include "engine/objects/lineage.h"

#include <string.h>

#include "engine/history.h"
#include "engine/objects/keys.h"

void lineage_destroy(struct lineage *lineage)
{
	pthread_mutex_destroy(&lineage->mutex);
}

void lineage_forget(struct lineage *lineage)
{
	pthread_mutex_lock(&lineage->mutex);
	memset(lineage->entries, 0, sizeof(lineage->entries));
	pthread_mutex_unlock(&lineage->mutex);
}

void lineage_note(struct lineage *lineage, uint16_t index)
{
	__atomic_fetch_or(&lineage->clones[index / 8], (uint8_t)(1 << index % 8), __ATOMIC_RELAXED);
}

static bool may_be_clone(const struct lineage *lineage, uint16_t index)
{
	return __atomic_load_n(&lineage->clones[index / 8], __ATOMIC_RELAXED) >> index % 8 & 1;
}

/* What the state of an index says as of `bound`. -ENOENT: there is no partition. */
static int look_up(struct record_store *store, uint16_t index, uint64_t bound,
		   struct lineage_entry *found)
{
	struct lineage *lineage = lineage_of(store);
	struct lineage_entry *entry =
		&lineage->entries[(index * UINT64_C(31) + (bound >> RECORD_SLOT_BITS) + bound) %
				  LINEAGE_ENTRIES];
	struct partition state = { 0 };
	bool known;

	pthread_mutex_lock(&lineage->mutex);
	known = entry->known && entry->index == index && entry->bound == bound;
	*found = *entry;
	pthread_mutex_unlock(&lineage->mutex);
	if (known)
		return found->result;
	*found = (struct lineage_entry){ .known = true, .index = index, .bound = bound };
	found->result = partition_state_of(store, index, bound, &state);
	if (found->result && found->result != -ENOENT)
		return found->result;
	found->created_sequence = state.created_sequence;
	found->origin = state.origin;
	pthread_mutex_lock(&lineage->mutex);
	*entry = *found;
	pthread_mutex_unlock(&lineage->mutex);
	return found->result;
}

int lineage_depth(struct record_store *store, uint16_t index, uint64_t bound)
{
	for (int depth = 0; depth <= ENGINE_CLONE_DEPTH_MAX; depth++) {
		struct lineage_entry entry;
		int result = look_up(store, index, bound, &entry);

		if (result)
			return result;
		if (!entry.origin.index)
			return depth;
		index = entry.origin.index;
		bound = entry.origin.bound;
	}
	return ENGINE_CLONE_DEPTH_MAX + 1;
}

int lineage_owner(struct record_store *store, uint16_t index, uint64_t bound, uint64_t sequence,
		  uint16_t *owner)
{
	for (int depth = 0; depth <= ENGINE_CLONE_DEPTH_MAX; depth++) {
		struct lineage_entry entry = { 0 };
		int result = may_be_clone(lineage_of(store), index)
				     ? look_up(store, index, bound, &entry)
				     : 0;

		if (result)
			return result;
		*owner = index;
		if (!entry.origin.index || sequence >= entry.origin.since)
			return 0;
		index = entry.origin.index;
		bound = entry.origin.bound;
	}
	return -EBADMSG;
}

static bool lineage_concerns(const struct record_store *store, const struct record_key *key)
{
	/* Its own onode and state a partition has got itself, always. */
	return may_be_clone(lineage_of(store), key->partition) && key->identifier != 0 &&
	       key->identifier != RECORD_ID_STATE && !key_is_timeless(key);
}

static int lineage_get(struct record_store *store, struct record_key key, uint64_t bound,
		       void *value, uint32_t capacity, struct record_info *info)
{
	for (int depth = 0; depth <= ENGINE_CLONE_DEPTH_MAX; depth++) {
		struct lineage_entry entry;
		int result = store->operations->get(store, &key, bound, value, capacity, info);
		int known;

		if (result && result != -ENOENT)
			return result;
		known = look_up(store, key.partition, bound, &entry);
		/* Of one that is no clone, or just being made, all is its own. */
		if (depth == 0 && (known == -ENOENT || (!known && !entry.origin.index)))
			return result;
		if (known)
			return known;
		/*
		 * What is older belongs to an earlier partition of this index, or to what a refresh
		 * replaced.
		 */
		if (!result && info->sequence >= (entry.origin.index ? entry.origin.since
								     : entry.created_sequence))
			return 0;
		if (!entry.origin.index)
			return -ENOENT;
		key.partition = entry.origin.index;
		bound = entry.origin.bound;
	}
	return -EBADMSG;
}

void lineage_init(struct lineage *lineage)
{
	memset(lineage, 0, sizeof(*lineage));
	lineage->calls =
		(struct record_lineage){ .concerns = lineage_concerns, .get = lineage_get };
	pthread_mutex_init(&lineage->mutex, NULL);
}
