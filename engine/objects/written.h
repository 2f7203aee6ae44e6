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

/*
 * Partitions that are counted in one transaction: as many as it may put the access times of objects
 * in, which are the most that any puts something in, and the root. What it would put in further
 * ones is not counted.
 */
#define WRITTEN_PARTS 65

struct engine;
struct engine_txn;
struct partition;

/* Of one index. */
struct written {
	uint64_t bytes;    /* put and committed since the engine was opened */
	uint64_t saved;    /* of them, those that the history counts which was put last */
	uint64_t saved_ms; /* when that was; 0: not yet */
};

/* What one transaction has put. */
struct written_parts {
	uint32_t count;
	struct {
		uint16_t index;
		bool saves; /* the history is put again and counts up to `saved` */
		uint64_t bytes, saved;
	} list[WRITTEN_PARTS];
};

/* Counts a record of an index. */
void written_add(struct written_parts *parts, uint16_t index, uint64_t bytes);

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
