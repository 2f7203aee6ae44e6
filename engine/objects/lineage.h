/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Where clones find what they have not got themselves. A record that a clone's index does not have
 * is that of its source's index as of the clone's origin, and so on. Everything that reads goes
 * through record_get, which asks here, so that nobody else knows of it.
 */
#ifndef MUNINN_ENGINE_OBJECTS_LINEAGE_H
#define MUNINN_ENGINE_OBJECTS_LINEAGE_H

#include <pthread.h>
#include <stdbool.h>

#include "engine/objects/partition.h"
#include "engine/records/access.h"

#define LINEAGE_ENTRIES 256

/* What the state of a partition says, kept by index and bound. */
struct lineage_entry {
	bool known;
	int result; /* of reading the state: 0 or -ENOENT */
	uint16_t index;
	uint64_t bound, created_sequence;
	struct partition_origin origin;
};

/* Behind a store: record_store.lineage points at `calls`. */
struct lineage {
	struct record_lineage calls; /* must be first */
	pthread_mutex_t mutex;
	struct lineage_entry entries[LINEAGE_ENTRIES];
	/*
	 * Indices that may be those of clones: somebody has seen such a state. Read without the
	 * mutex.
	 */
	uint8_t clones[(UINT16_MAX + 1) / 8];
};

void lineage_init(struct lineage *lineage);
void lineage_destroy(struct lineage *lineage);

/* That of a store, which has one. */
static inline struct lineage *lineage_of(const struct record_store *store)
{
	return (struct lineage *)store->lineage;
}

/* Forgets what the states said: one of them, or which one is found, has changed. */
void lineage_forget(struct lineage *lineage);

/* Notes that an index is that of a clone. */
void lineage_note(struct lineage *lineage, uint16_t index);

/* How many sources a partition has behind it as of `bound`; negative errno. */
int lineage_depth(struct record_store *store, uint16_t index, uint64_t bound);

#endif
