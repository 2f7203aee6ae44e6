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
#include "engine/records/access.h"
#include "engine/sets/idset.h"

struct history;
struct partition;

struct history_calls {
	/* ---- what an engine knows of history: engine->past ---- */

	/* Before anything is learnt. -ENOMEM. `close` also ends what was not opened. */
	int (*open)(struct engine *engine);
	void (*close)(struct engine *engine);
	/* Learns from the records where history stands: after opening and after a format. */
	int (*learn)(struct engine *engine);

	/* ---- the history of a current partition: partition->history ---- */

	size_t bytes; /* of its memory */
	/* Of a new partition. */
	void (*begin)(struct partition *partition);
	/* Reads it, and tells the partition its version, which no rollback takes back. */
	int (*load)(struct engine *engine, struct partition *partition);
	int (*put)(const struct record_writer *writer, uint16_t index,
		   const struct history *history);
	/* Where it counts the bytes put in the partition since its last version: written.h. */
	uint64_t *(*written_bytes)(struct history *history);
	/* Whether no moments of a partition are kept but versions. */
	bool (*keeps_nothing)(const struct engine *engine, const struct partition *partition);

	/*
	 * Whether a current partition can be read as of a bound. -ENOENT: the moments of the device
	 * that leave it out tell nothing of it, nor does one of its own.
	 */
	int (*shows)(struct engine *engine, struct partition *partition, uint64_t bound);

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

	/* ---- a thread that merges, if there is one ---- */

	/* -EAGAIN: it can't be started. */
	int (*start)(struct engine *engine);
	/* With the turn: nothing begins any more. Without it: it has ended. */
	void (*end)(struct engine *engine);
	void (*stop)(struct engine *engine);
	/*
	 * Without the turn, before a transaction: waits for room as long as room is short. False:
	 * it would, but the thread may not wait.
	 */
	bool (*await_space)(struct engine *engine, enum engine_mode mode);
	/* Behind that, with the turn: whether others have used that room up, and more may come. */
	bool (*is_behind)(struct engine *engine, enum engine_mode mode);

	/* ---- transactions ---- */

	/* One is about to begin: frees some segments if the store gets low. */
	void (*make_space)(struct engine *engine, enum engine_mode mode);
	/* Whether it would take longer than a look. The caller has the turn alone. */
	bool (*wants_space)(const struct engine *engine);
	/* Puts what is to be known of it and its time, before it is committed. */
	int (*commit)(struct engine_txn *txn);
	void (*committed)(struct engine_txn *txn);
	void (*aborted)(struct engine_txn *txn);
};

#endif
