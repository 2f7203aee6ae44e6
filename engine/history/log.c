/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The modifications of one object, newest first. Each left an onode (or a tombstone), so going from
 * one to the one before is one look-up, whatever else was done meanwhile.
 */
#include <errno.h>

#include "common/bytes.h"
#include "engine/history/moments.h"
#include "engine/history/times.h"

struct walk {
	struct engine_txn *txn;
	struct partition *partition;
	struct record_key key;
	uint64_t bound; /* the next modification is not newer */
};

/* A clone's objects have no past of their own before it began, or was refreshed. */
static uint64_t since(const struct partition *partition)
{
	return partition->origin.index ? partition->origin.since : partition->created_sequence;
}

/* The newest modification that left its mark within the bound. -ENOENT. */
static int find(const struct walk *walk, struct engine_modification *modification)
{
	uint8_t record[ONODE_HEAD_BYTES];
	struct record_store *store = walk->txn->engine->store;
	struct onode_head head;
	struct record_info info;
	int result = record_get_any(store, walk->key, walk->bound, record, sizeof(record), &info);

	if (result)
		return result;
	*modification = (struct engine_modification){ .sequence = info.sequence };
	if (info.flags & RECORD_TOMBSTONE) {
		modification->removed = true;
		return info.sequence < since(walk->partition) ? -ENOENT : 0;
	}
	result = onode_head_decode(&head, record, info.length);
	if (result)
		return result;
	if (head.created_sequence < partition_objects_since(walk->partition))
		return -ENOENT;
	modification->sequence = head.modified_sequence;
	modification->length = head.length;
	modification->created = head.created_sequence == head.modified_sequence;
	for (int which = 0; which < ENGINE_TIMES; which++)
		if (which != ENGINE_TIME_DATA_ACCESSED && which != ENGINE_TIME_ATTRIBUTES_ACCESSED)
			modification->time_ms =
				max_u64(modification->time_ms, head.times_ms[which]);
	return 0;
}

static int begin(struct walk *walk, struct engine_txn *txn, uint64_t partition, uint64_t object)
{
	int result;

	if (object < ENGINE_FIRST_ID)
		return -ENOENT;
	result = partition_get(txn->engine, partition, &walk->partition);
	if (result)
		return result;
	walk->txn = txn;
	walk->bound = RECORD_NEWEST;
	walk->key = key_of_onode(walk->partition->index, object);
	return 0;
}

static void end(struct walk *walk)
{
	partition_release(walk->txn->engine, walk->partition);
}

/* Whether the walk can go on from its bound. */
static int reaches(const struct walk *walk)
{
	if (walk->bound < since(walk->partition))
		return -ENOENT;
	return history_reaches(walk->txn->engine, walk->partition, walk->bound);
}

/*
 * When a modification was: its own time if that fits its slot, or when the slot began. Times can be
 * set to anything.
 */
static int set_time(const struct walk *walk, struct engine_modification *modification)
{
	struct engine *engine = walk->txn->engine;
	struct partition *root;
	uint64_t from_ms, own_ms = modification->time_ms;
	int result = partition_get(engine, 0, &root);

	if (result)
		return result;
	result = times_of(engine, root->history, modification->sequence, &from_ms);
	partition_release(engine, root);
	if (result)
		return result;
	if (modification->removed || own_ms < from_ms ||
	    (from_ms && own_ms - from_ms > engine->options.history_interval_ms))
		modification->time_ms = from_ms;
	return 0;
}

/* A removal leaves no time. It was not before the modification that it followed. */
static int set_time_of_removal(struct walk *walk, struct engine_modification *removal)
{
	struct engine_modification before;
	int result;

	walk->bound = removal->sequence - 1;
	result = reaches(walk);
	if (!result)
		result = find(walk, &before);
	if (!result)
		result = set_time(walk, &before);
	if (!result)
		removal->time_ms = max_u64(removal->time_ms, before.time_ms);
	/* Behind the horizon nobody knows. */
	return result == -ENOENT ? 0 : result;
}

int engine_log_next(struct engine_txn *txn, uint64_t partition, uint64_t object, uint64_t below,
		    struct engine_modification *modification)
{
	struct walk walk;
	int result = begin(&walk, txn, partition, object);

	if (result)
		return result;
	if (below < txn->engine->committed) {
		walk.bound = below;
		result = reaches(&walk);
	}
	if (!result)
		result = find(&walk, modification);
	if (!result)
		result = set_time(&walk, modification);
	if (!result && modification->removed)
		result = set_time_of_removal(&walk, modification);
	end(&walk);
	return result;
}

/* Where `undo` was when the object has not been modified since, otherwise at the beginning. */
static int resume(const struct walk *walk, struct engine_undo *undo)
{
	struct engine_modification newest;
	int result = find(walk, &newest);

	if (result || (undo->counted && newest.sequence == undo->newest))
		return result;
	*undo = (struct engine_undo){ .newest = newest.sequence, .bound = RECORD_NEWEST };
	return 0;
}

/* Counts from undo->bound on. */
static int count_back(struct walk *walk, uint32_t modifications, struct engine_undo *undo)
{
	int result = 0;

	walk->bound = undo->bound;
	for (uint32_t done = 0; !result && undo->counted < modifications; done++) {
		struct engine_modification modification;

		if (done == ENGINE_AGO_AT_ONCE)
			return -EAGAIN;
		result = find(walk, &modification);
		if (result)
			break;
		undo->bound = walk->bound = modification.sequence - 1;
		undo->counted++;
		result = reaches(walk);
	}
	return result;
}

int moment_count_back(struct engine_txn *txn, uint64_t partition, uint64_t object,
		      uint32_t modifications, struct engine_undo *undo)
{
	struct walk walk;
	int result;

	if (modifications > ENGINE_AGO_MAX)
		return -E2BIG;
	result = begin(&walk, txn, partition, object);
	if (result)
		return result;
	result = resume(&walk, undo);
	if (!result)
		result = count_back(&walk, modifications, undo);
	end(&walk);
	return result;
}

int moment_ago(struct engine_txn *txn, uint64_t partition, uint64_t object, uint32_t modifications,
	       uint64_t *bound)
{
	struct engine_undo undo = { 0 };
	int result = modifications > ENGINE_AGO_AT_ONCE
			     ? -E2BIG
			     : moment_count_back(txn, partition, object, modifications, &undo);

	*bound = undo.bound;
	return result;
}
