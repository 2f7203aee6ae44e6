/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * How much is put in each partition, for what versions say of it. Counted in memory, by partition
 * index; the sum since the last version is in the partition's history, which is put for it at most
 * once a second: that much a crash may take back.
 */
#ifndef MUNINN_ENGINE_OBJECTS_WRITTEN_H
#define MUNINN_ENGINE_OBJECTS_WRITTEN_H

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct engine_txn;
struct partition;

/* Of one index. */
struct written {
	uint64_t bytes;    /* put and committed since the engine was opened */
	uint64_t saved;    /* of them, those that the history counts which was put last */
	uint64_t saved_ms; /* when that was; 0: not yet */
};

/* A current partition was loaded, or is new: from where on its count goes. */
void written_loaded(const struct engine *engine, struct partition *partition);
void written_begins(const struct engine *engine, struct partition *partition);

/*
 * Bytes put in a partition since its last version, but for the open transaction's; and begins anew.
 */
uint64_t written_since(const struct engine *engine, const struct partition *partition);
void written_restart(const struct engine *engine, struct partition *partition);

/* The history of a pinned, marked partition is about to be put: it counts all so far. */
void written_settle(struct engine_txn *txn, struct partition *partition);

/*
 * Marks the histories that are to be put again. Before the states of partitions are put. -ENOSPC,
 * -EIO, -EBADMSG.
 */
int written_mark(struct engine_txn *txn);

/* The transaction is committed. */
void written_commit(struct engine_txn *txn);

#endif
