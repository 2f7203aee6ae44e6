/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A store of records in plain memory that keeps every version: the reference for what
 * engine/records/records.h promises. It outlives being closed, as a device does, and can be told to
 * fail.
 */
#ifndef MUNINN_TESTS_ENGINE_MEMORY_STORE_H
#define MUNINN_TESTS_ENGINE_MEMORY_STORE_H

#include "engine/records/records.h"

struct memory_store;

struct memory_store *memory_store_create(uint32_t value_bytes_max);
void memory_store_destroy(struct memory_store *memory);

/*
 * Opens it; one user at a time. Closing it, stable or not, drops an uncommitted transaction and
 * keeps what is committed.
 */
struct record_store *memory_store_open(struct memory_store *memory);

/* Makes commits drop what RECORD_ABSORB allows to drop. */
void memory_store_absorb(struct memory_store *memory, bool absorb);

/* From now on it merges, all of it in one call. */
void memory_store_merge(struct memory_store *memory);

/*
 * Puts of each room may take values of at most so many bytes altogether from now on; or those of
 * RECORD_ROOM_WRITE `bytes`, all others `with_reserve`.
 */
void memory_store_limit_rooms(struct memory_store *memory, const uint64_t bytes[RECORD_ROOMS]);
void memory_store_limit(struct memory_store *memory, uint64_t bytes, uint64_t with_reserve);

/* The put after the next `puts` fails with -ENOSPC, once. Negative: none does. */
void memory_store_fail_put(struct memory_store *memory, int64_t puts);

/* The `puts` that are left of that. Negative: it has failed. */
int64_t memory_store_fail_put_left(const struct memory_store *memory);

/* Gets of this key fail with -EBADMSG. NULL: none. */
void memory_store_corrupt(struct memory_store *memory, const struct record_key *key);

/* Overwrites the newest version of a record in place. */
void memory_store_overwrite(struct memory_store *memory, const struct record_key *key,
			    const void *value, uint32_t length);

/* Removes every version of a record, or the newest one. */
void memory_store_lose(struct memory_store *memory, const struct record_key *key);
void memory_store_lose_newest(struct memory_store *memory, const struct record_key *key);

struct memory_store_counters {
	uint64_t puts, put_bytes; /* committed or not */
	uint64_t gets;
	uint64_t records, bytes; /* held */
};
struct memory_store_counters memory_store_counters(const struct memory_store *memory);

#endif
