/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
#include "engine/history/returned.h"

#include "common/bytes.h"

/*
 * Whether the partition that has an index now had it before the rollback, at `bound`, too. One of
 * which the state can't be read counts as such: going back may be what mends it.
 */
static bool was_there(struct engine *engine, uint16_t index, uint64_t bound)
{
	struct partition now = { 0 }, before = { 0 };
	int result = partition_state_of(engine->store, index, RECORD_NEWEST, &now);

	if (!result)
		result = partition_state_of(engine->store, index, bound, &before);
	else if (result == -ENOENT)
		result = -EBADMSG;
	return result ? result != -ENOENT : before.created_sequence == now.created_sequence;
}

/*
 * Begins anew what is known of a partition. Clones stand on an index, whoever has it: on an earlier
 * or a later owner, or on this one.
 */
static void begin_anew(struct engine_txn *txn, struct partition *partition, uint64_t floor)
{
	struct history *history = &partition->history;
	struct history anew = history_new(partition->index, partition->created_sequence);

	anew.valid_sequence = txn->sequence;
	anew.floor = floor;
	anew.clones = history->clones;
	anew.versions.generation = history->versions.generation;
	*history = anew;
	partition->version = (uint16_t)anew.next_version;
	written_restart(txn->engine, partition);
	partition_mark_history(txn, partition);
}

static int note_one(struct engine_txn *txn, uint64_t element, uint64_t floor)
{
	struct engine *engine = txn->engine;
	struct partition *partition;
	int result;

	if (was_there(engine, (uint16_t)element, txn->sequence - 1))
		return 0;
	result = partition_room(txn);
	if (!result)
		result = partition_get(engine, element >> 16, &partition);
	if (result)
		return result == -ENOENT ? -EBADMSG : result;
	begin_anew(txn, partition, floor);
	partition_release(engine, partition);
	return 0;
}

/* Whether the table of partitions is the same as before the rollback: then nobody went or came. */
static int has_same_table(struct engine_txn *txn, const struct partition *root, bool *same)
{
	struct partition before = { 0 };
	int result = partition_state_of(txn->engine->store, RECORD_ROOT_INDEX, txn->sequence - 1,
					&before);

	*same = before.sets[PARTITION_USER_OBJECTS].changed_sequence ==
		root->sets[PARTITION_USER_OBJECTS].changed_sequence;
	return result;
}

int returned_note(struct engine_txn *txn, struct partition *root)
{
	struct idset table =
		partition_set(txn->engine, root, PARTITION_USER_OBJECTS, RECORD_NEWEST);
	uint64_t elements[64], next = 0, floor;
	bool more = false, same;
	int result = has_same_table(txn, root, &same);

	if (!result)
		result = history_horizon(txn->engine, &root->history, &root->history, 0, &floor);
	more = !result && !same;
	while (more) {
		size_t count;

		result = idset_list(&table, next, elements, 64, &count, &more, &next);
		for (size_t at = 0; !result && at < count; at++)
			result = note_one(txn, elements[at], floor);
		if (result)
			return result;
	}
	return result;
}
