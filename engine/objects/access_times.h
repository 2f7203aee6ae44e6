/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Accessed times that are not in any onode yet. Reading transactions note them here; writing ones
 * take them into the onode when the object changes, or when the table gets full. Bounded and
 * thread-safe: when it is full all the same, the oldest note is lost.
 */
#ifndef MUNINN_ENGINE_OBJECTS_ACCESS_TIMES_H
#define MUNINN_ENGINE_OBJECTS_ACCESS_TIMES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which object. The sequence number tells it from earlier objects with its ID. */
struct access_key {
	uint64_t partition, object;
	uint64_t created_sequence;
};

struct access_note {
	struct access_key key;
	uint64_t data_ms, attributes_ms;
	bool data, attributes; /* which of the two were accessed */
	uint32_t hash_next;    /* notes refer to each other by number; ACCESS_NONE ends */
	uint32_t older, newer;
	bool taken;
};

#define ACCESS_NONE UINT32_MAX

struct access_times {
	pthread_mutex_t mutex;
	struct access_note *notes;
	uint32_t *buckets;
	uint32_t bucket_mask, capacity;
	uint32_t count; /* of waiting notes; atomic: it is also read without the mutex */
	uint32_t free, oldest, newest; /* lists of unused and of waiting notes */
	uint32_t taken; /* list (by `newer`) of those in an onode of the open transaction */
};

/* -ENOMEM. */
int access_times_init(struct access_times *times, uint32_t capacity);
void access_times_destroy(struct access_times *times);

/* Notes an access at `ms`. */
void access_times_note(struct access_times *times, struct access_key key, bool data,
		       bool attributes, uint64_t ms);

/*
 * Overwrites the accessed times among `times_ms` (indexed by enum engine_time) with what is noted.
 */
void access_times_apply(struct access_times *times, struct access_key key, uint64_t *times_ms);

/*
 * The same, and the note goes when the writing transaction commits. Returns whether there was one.
 */
bool access_times_take(struct access_times *times, struct access_key key, uint64_t *times_ms);

void access_times_commit(struct access_times *times);
void access_times_abort(struct access_times *times);

/* The note that waits longest; false: none waits. */
bool access_times_oldest(struct access_times *times, struct access_key *key);

/* Drops a note, if it is there. */
void access_times_forget(struct access_times *times, struct access_key key);

/* Drops all notes of a partition, 0: of all partitions; none is taken. */
void access_times_forget_partition(struct access_times *times, uint64_t partition);

/* Notes that wait. */
uint32_t access_times_count(const struct access_times *times);

void access_times_clear(struct access_times *times);

size_t access_times_bytes(const struct access_times *times);

#endif
