/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Where a clone finds records that it has not written itself: under its source's index, as of the
 * clone's origin. The source may be a clone itself, and so on. All reads go through record_get,
 * which asks here, so no other code knows of it.
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
	 * Indices that clones may have: somebody has seen such a state. Read without the mutex.
	 */
	uint8_t clones[(UINT16_MAX + 1) / 8];
};

void lineage_init(struct lineage *lineage);
void lineage_destroy(struct lineage *lineage);

/* The lineage of a store that has one. */
static inline struct lineage *lineage_of(const struct record_store *store)
{
	return (struct lineage *)store->lineage;
}

/* Forgets what the states said: one of them, or which one is found, has changed. */
void lineage_forget(struct lineage *lineage);

/* Notes that a clone has this index. */
void lineage_note(struct lineage *lineage, uint16_t index);

/* How many sources a partition has behind it as of `bound`; negative errno. */
int lineage_depth(struct record_store *store, uint16_t index, uint64_t bound);

/*
 * Under which index a reader of `index` as of `bound` finds what has the number `sequence`. One
 * transaction may change a clone and its source. So two readers see the same record only if they
 * find its number under the same index. Negative errno.
 */
int lineage_owner(struct record_store *store, uint16_t index, uint64_t bound, uint64_t sequence,
		  uint16_t *owner);

#endif
