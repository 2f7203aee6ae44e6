/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What objects ask of history: the one way from here up to engine/history/, which fills the table.
 * Errors are those of records, and those named.
 */
#ifndef MUNINN_ENGINE_OBJECTS_HISTORY_CALLS_H
#define MUNINN_ENGINE_OBJECTS_HISTORY_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "engine/history/history.h"
#include "engine/sets/idset.h"

struct partition;

struct history_calls {
	/* ---- the history that a partition has beside its state: history.h ---- */

	struct history (*begin)(uint16_t index, uint64_t created_sequence);
	int (*load)(struct engine *engine, uint16_t index, uint64_t created_sequence,
		    struct history *history);
	int (*put)(const struct record_writer *writer, uint16_t index,
		   const struct history *history);
	bool (*keeps_nothing)(const struct engine_retention *policy);

	/* ---- partitions that go ---- */

	/* Indices that are taken: history gives them free when nothing shows their owners. */
	struct idset (*indices)(struct engine *engine, struct partition *root);
	/* One is about to be removed. -EPERM: it is locked. */
	int (*remove)(struct engine_txn *txn, struct partition *root, struct partition *partition);
	/* Everything is. -EPERM: something is locked. */
	int (*format)(struct engine_txn *txn);

	/* ---- what addresses of the past mean; -ENOENT ---- */

	int (*bound_of_version)(struct engine_txn *txn, uint64_t partition, uint32_t version,
				uint64_t *bound);
	int (*bound_of_view)(struct engine_txn *txn, uint64_t partition, uint32_t version,
			     uint64_t *bound, uint64_t *objects_bound);
	int (*bound_ago)(struct engine_txn *txn, uint64_t partition, uint64_t object,
			 uint32_t modifications, uint64_t *bound);

	/* ---- transactions ---- */

	/* One is about to begin: frees some segments if the store gets low. */
	void (*make_room)(struct engine *engine, enum engine_mode mode);
	/* Puts what is to be known of it and its time, before it is committed. */
	int (*commit)(struct engine_txn *txn);
	void (*aborted)(struct engine_txn *txn);
	/* Learns from the records where history stands: after opening and after a format. */
	int (*learn)(struct engine *engine);
};

#endif
