/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What all partitions hold together. The sum is counted when it is asked for the first time, and
 * anew after a rollback; from then on it is kept up to date in memory. Nobody pays for it who does
 * not ask.
 */
#include "engine/objects/objects.h"

void usage_change(struct engine_txn *txn, uint64_t before, uint64_t after)
{
	txn->used_change += (int64_t)(after - before);
}

void usage_commit(struct engine_txn *txn)
{
	struct engine *engine = txn->engine;

	if (txn->rolled_back || txn->formats)
		__atomic_store_n(&engine->used_known, false, __ATOMIC_RELAXED);
	else
		engine->used_bytes += (uint64_t)txn->used_change;
}

/* Counts what current partitions hold, with what the transaction has changed. */
static int count_used(struct engine_txn *txn, uint64_t *bytes)
{
	struct engine *engine = txn->engine;
	struct partition *root, *partition;
	struct idset_walk walk;
	struct idset table;
	uint64_t element;
	int result = partition_get(engine, 0, &root);

	*bytes = 0;
	if (result)
		return result;
	table = partition_set(engine, root, PARTITION_USER_OBJECTS, RECORD_NEWEST);
	walk = idset_walk_from(&table, 0);
	while ((result = idset_walk(&walk, &element)) > 0) {
		result = partition_get(engine, element >> 16, &partition);
		if (result)
			break;
		*bytes += partition->used_bytes;
		partition_release(engine, partition);
	}
	partition_release(engine, root);
	return result;
}

int engine_used(struct engine_txn *txn, uint64_t *bytes, int64_t *change)
{
	struct engine *engine = txn->engine;
	bool kept = !txn->rolled_back && !txn->formats;
	int result = 0;

	*change = kept ? txn->used_change : 0;
	if (kept && __atomic_load_n(&engine->used_known, __ATOMIC_ACQUIRE)) {
		*bytes = __atomic_load_n(&engine->used_bytes, __ATOMIC_RELAXED) +
			 (uint64_t)txn->used_change;
		return 0;
	}
	result = count_used(txn, bytes);
	if (result || !kept)
		return result;
	/* Others that read at the same time come to the same. */
	__atomic_store_n(&engine->used_bytes, *bytes - (uint64_t)txn->used_change,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&engine->used_known, true, __ATOMIC_RELEASE);
	return 0;
}
