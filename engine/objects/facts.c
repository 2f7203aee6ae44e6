/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Facts: what the caller has made of a partition's attributes, kept with the cached partition. */
#include <string.h>

#include "engine/objects/objects.h"

void engine_set_facts_maker(struct engine *engine, engine_facts_maker *make)
{
	engine->make_facts = make;
}

void partition_forget_facts(struct partition *partition)
{
	__atomic_store_n(&partition->facts_known, false, __ATOMIC_RELAXED);
}

/*
 * Readers that make them side by side make the same. Those that a writing transaction makes may be
 * of attributes that it has set: an abort drops them with the partition.
 */
static void keep(struct engine_txn *txn, struct partition *partition,
		 const struct engine_facts *facts)
{
	struct engine *engine = txn->engine;

	if (txn->mode != ENGINE_READ)
		cache_mark_touched(&engine->partitions, &partition->entry);
	pthread_mutex_lock(&engine->facts_mutex);
	if (!partition->facts_known) {
		partition->facts = *facts;
		__atomic_store_n(&partition->facts_known, true, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&engine->facts_mutex);
}

static int make(struct engine_txn *txn, uint64_t id, struct engine_facts *facts)
{
	const struct engine_address address = { .partition = id };
	struct engine_object *object;
	int result = engine_open_object(txn, address, &object);

	memset(facts, 0, sizeof(*facts));
	if (!result)
		result = txn->engine->make_facts(object, facts);
	engine_close_object(object);
	return result;
}

int engine_facts_of(struct engine_txn *txn, uint64_t id, struct engine_facts *facts)
{
	struct partition *partition;
	int result = partition_get(txn->engine, id, &partition);

	if (result)
		return result;
	if (__atomic_load_n(&partition->facts_known, __ATOMIC_ACQUIRE)) {
		*facts = partition->facts;
	} else {
		result = make(txn, id, facts);
		if (!result)
			keep(txn, partition, facts);
	}
	partition_release(txn->engine, partition);
	return result;
}
