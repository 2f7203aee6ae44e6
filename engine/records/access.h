/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Reading and putting records, for everything above the store. It has two hooks for what only those
 * above know: struct record_lineage finds records that a partition has not got itself, and struct
 * record_writer is told of each record that is put.
 */
#ifndef MUNINN_ENGINE_RECORDS_ACCESS_H
#define MUNINN_ENGINE_RECORDS_ACCESS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/records/records.h"
#include "engine/records/work.h"

/* Bytes that a record is counted with beside its value. */
#define RECORD_OVERHEAD 28

/* How records of a clone's sources are found: engine/objects/lineage.h. */
struct record_lineage {
	/* Whether a record may be one of a source. Quick where none is. */
	bool (*concerns)(const struct record_store *store, const struct record_key *key);

	/* Finds it wherever it is; otherwise as record_store_operations.get. */
	int (*get)(struct record_store *store, struct record_key key, uint64_t bound, void *value,
		   uint32_t capacity, struct record_info *info);
};

/* What the open writing transaction puts with. */
struct record_writer {
	struct record_store *store;
	uint64_t sequence, epoch;
	uint8_t *page; /* record_bytes_max bytes of scratch space for encoding */
	enum record_room room;

	/* Whether a record's epoch is the one that never ends. NULL: none's. */
	bool (*is_timeless)(const struct record_key *key);

	/* Told of each record that was put, with its overhead. NULL: nobody asks. */
	void (*count)(void *context, const struct record_key *key, uint64_t bytes);
	void *context; /* of `count` */
};

static inline uint32_t record_bytes_max(struct record_store *store)
{
	return store->limits.value_bytes;
}

/*
 * The newest record within `bound`, tombstones too, wherever it is. Otherwise as
 * record_store_operations.get.
 */
static inline int record_get_any(struct record_store *store, struct record_key key, uint64_t bound,
				 void *value, uint32_t capacity, struct record_info *info)
{
	records_worked++;
	if (store->lineage && store->lineage->concerns(store, &key))
		return store->lineage->get(store, key, bound, value, capacity, info);
	return store->operations->get(store, &key, bound, value, capacity, info);
}

/* The same; -ENOENT also for a tombstone. */
static inline int record_get(struct record_store *store, struct record_key key, uint64_t bound,
			     void *value, uint32_t capacity, struct record_info *info)
{
	int result = record_get_any(store, key, bound, value, capacity, info);

	return result == 0 && info->flags & RECORD_TOMBSTONE ? -ENOENT : result;
}

/* record_get for `count` keys in a row; see record_store_operations.get_run. */
static inline void record_get_run(struct record_store *store, struct record_key key, uint32_t count,
				  uint64_t bound, uint8_t *values, uint32_t capacity,
				  struct record_found *found)
{
	bool has_lineage = store->lineage && store->lineage->concerns(store, &key);

	records_worked += count;
	if (!has_lineage)
		store->operations->get_run(store, &key, count, bound, values, capacity, found);
	for (uint32_t n = 0; n < count; n++, key.piece++) {
		if (has_lineage)
			found[n].result = store->lineage->get(store, key, bound,
							      values + (size_t)n * capacity,
							      capacity, &found[n].info);
		if (found[n].result == 0 && found[n].info.flags & RECORD_TOMBSTONE)
			found[n].result = -ENOENT;
	}
}

static inline int record_put(const struct record_writer *writer, struct record_key key,
			     unsigned flags, const void *value, uint32_t length)
{
	bool timeless = writer->is_timeless && writer->is_timeless(&key);
	int result = writer->store->operations->put(writer->store, &key,
						    timeless ? RECORD_EPOCH_ENDLESS : writer->epoch,
						    flags, value, length, writer->room);

	records_worked++;
	if (!result && writer->count)
		writer->count(writer->context, &key, RECORD_OVERHEAD + length);
	return result;
}

#endif
