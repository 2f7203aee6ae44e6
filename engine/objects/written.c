/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Counts how much is put in each partition. */
#include "engine/objects/written.h"

#include <assert.h>

#include "engine/objects/objects.h"

#define SAVE_INTERVAL_MS 1000

static_assert(WRITTEN_PARTS > ENGINE_DIRTY_ONODES_MAX, "partitions of access times, and the root");

/* The place of an index, made if there is space; WRITTEN_PARTS: there is none. */
static uint32_t place_of(struct written_parts *parts, uint16_t index)
{
	uint32_t at = 0;

	while (at < parts->count && parts->list[at].index != index)
		at++;
	if (at == parts->count && at < WRITTEN_PARTS) {
		parts->list[at].index = index;
		parts->count++;
	}
	return at;
}

void written_add(struct written_parts *parts, uint16_t index, uint64_t bytes)
{
	uint32_t at = place_of(parts, index);

	if (at < WRITTEN_PARTS)
		parts->list[at].bytes += bytes;
}

void written_loaded(const struct engine *engine, struct partition *partition)
{
	partition->written_mark = engine->written[partition->index].saved;
}

void written_begins(const struct engine *engine, struct partition *partition)
{
	partition->written_mark = engine->written[partition->index].bytes;
}

uint64_t written_since(const struct engine *engine, const struct partition *partition)
{
	return *engine->history->written_bytes(partition->history) +
	       engine->written[partition->index].bytes - partition->written_mark;
}

void written_restart(const struct engine *engine, struct partition *partition)
{
	*engine->history->written_bytes(partition->history) = 0;
	written_begins(engine, partition);
}

void written_settle(struct engine_txn *txn, struct partition *partition)
{
	uint32_t at = place_of(&txn->written, partition->index);
	uint64_t now;

	if (partition->index == RECORD_ROOT_INDEX || at == WRITTEN_PARTS)
		return;
	now = txn->engine->written[partition->index].bytes + txn->written.list[at].bytes;
	*txn->engine->history->written_bytes(partition->history) += now - partition->written_mark;
	partition->written_mark = now;
	txn->written.list[at].saves = true;
	txn->written.list[at].saved = now;
}

/*
 * Marks the history of the partition that has an index now, so that the commit puts it with the new
 * count. Nobody has it opened, so this looks for its ID first.
 */
static int mark(struct engine_txn *txn, uint16_t index)
{
	struct engine *engine = txn->engine;
	struct partition state = { 0 }, *partition;
	int result = partition_state_of(engine->store, index, RECORD_NEWEST, &state);

	/* The transaction has just removed or made it: then its history is put anyway. */
	if (result)
		return result == -ENOENT ? 0 : result;
	result = partition_get(engine, state.id, &partition);
	if (result)
		return result == -ENOENT ? 0 : result;
	result = partitions_limit_dirty(txn);
	if (!result && partition->index == index)
		partition_mark_history(txn, partition);
	partition_release(engine, partition);
	return result;
}

int written_mark(struct engine_txn *txn)
{
	int result = 0;

	for (uint32_t at = 0; !result && at < txn->written.count; at++) {
		uint16_t index = txn->written.list[at].index;
		const struct written *written = &txn->engine->written[index];
		bool recent = written->saved_ms <= txn->time_ms &&
			      txn->time_ms - written->saved_ms < SAVE_INTERVAL_MS;

		if (index != RECORD_ROOT_INDEX && txn->written.list[at].bytes && !recent)
			result = mark(txn, index);
	}
	return result;
}

void written_commit(struct engine_txn *txn)
{
	for (uint32_t at = 0; at < txn->written.count; at++) {
		struct written *written = &txn->engine->written[txn->written.list[at].index];

		written->bytes += txn->written.list[at].bytes;
		if (!txn->written.list[at].saves)
			continue;
		written->saved = txn->written.list[at].saved;
		written->saved_ms = txn->time_ms;
	}
}
