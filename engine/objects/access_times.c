/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Notes accessed times until the onode of their object is put. */
#include "engine/objects/access_times.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/engine.h"

static bool keys_equal(const struct access_key *a, const struct access_key *b)
{
	return a->object == b->object && a->partition == b->partition &&
	       a->created_sequence == b->created_sequence;
}

static uint32_t *bucket_of(struct access_times *times, const struct access_key *key)
{
	uint64_t hash = (key->object ^ key->partition << 32 ^ key->created_sequence << 16) *
			UINT64_C(0x9e3779b97f4a7c15);

	return &times->buckets[(uint32_t)(hash >> 32) & times->bucket_mask];
}

static struct access_note *find(struct access_times *times, const struct access_key *key)
{
	uint32_t number = *bucket_of(times, key);

	while (number != ACCESS_NONE && !keys_equal(&times->notes[number].key, key))
		number = times->notes[number].hash_next;
	return number == ACCESS_NONE ? NULL : &times->notes[number];
}

static uint32_t number_of(const struct access_times *times, const struct access_note *note)
{
	return (uint32_t)(note - times->notes);
}

static void waiting_add(struct access_times *times, struct access_note *note)
{
	uint32_t number = number_of(times, note);

	note->taken = false;
	note->newer = ACCESS_NONE;
	note->older = times->newest;
	*(times->newest == ACCESS_NONE ? &times->oldest : &times->notes[times->newest].newer) =
		number;
	times->newest = number;
	__atomic_store_n(&times->count, times->count + 1, __ATOMIC_RELAXED);
}

static void waiting_remove(struct access_times *times, struct access_note *note)
{
	*(note->older == ACCESS_NONE ? &times->oldest : &times->notes[note->older].newer) =
		note->newer;
	*(note->newer == ACCESS_NONE ? &times->newest : &times->notes[note->newer].older) =
		note->older;
	__atomic_store_n(&times->count, times->count - 1, __ATOMIC_RELAXED);
}

/* Gives a note that is in neither list back. */
static void discard(struct access_times *times, struct access_note *note)
{
	uint32_t *link = bucket_of(times, &note->key), number = number_of(times, note);

	while (*link != number)
		link = &times->notes[*link].hash_next;
	*link = note->hash_next;
	note->newer = times->free;
	times->free = number;
}

static void reset(struct access_times *times)
{
	for (uint32_t bucket = 0; bucket <= times->bucket_mask; bucket++)
		times->buckets[bucket] = ACCESS_NONE;
	for (uint32_t number = 0; number < times->capacity; number++)
		times->notes[number].newer = number + 1 < times->capacity ? number + 1
									  : ACCESS_NONE;
	times->free = 0;
	times->oldest = times->newest = times->taken = ACCESS_NONE;
	__atomic_store_n(&times->count, 0, __ATOMIC_RELAXED);
}

int access_times_init(struct access_times *times, uint32_t capacity)
{
	uint32_t buckets = 16;

	while (buckets < capacity)
		buckets *= 2;
	*times = (struct access_times){
		.notes = calloc(capacity, sizeof(*times->notes)),
		.buckets = calloc(buckets, sizeof(*times->buckets)),
		.bucket_mask = buckets - 1,
		.capacity = capacity,
	};
	pthread_mutex_init(&times->mutex, NULL);
	if (!times->notes || !times->buckets) {
		access_times_destroy(times);
		return -ENOMEM;
	}
	reset(times);
	return 0;
}

void access_times_destroy(struct access_times *times)
{
	free(times->notes);
	free(times->buckets);
	pthread_mutex_destroy(&times->mutex);
}

static struct access_note *make(struct access_times *times, const struct access_key *key)
{
	struct access_note *note;
	uint32_t *bucket;

	if (times->free == ACCESS_NONE) {
		note = &times->notes[times->oldest];
		waiting_remove(times, note);
		discard(times, note);
	}
	note = &times->notes[times->free];
	times->free = note->newer;
	*note = (struct access_note){ .key = *key };
	bucket = bucket_of(times, key);
	note->hash_next = *bucket;
	*bucket = number_of(times, note);
	waiting_add(times, note);
	return note;
}

void access_times_note(struct access_times *times, struct access_key key, bool data,
		       bool attributes, uint64_t ms)
{
	struct access_note *note;

	pthread_mutex_lock(&times->mutex);
	note = find(times, &key);
	if (!note)
		note = make(times, &key);
	if (data) {
		note->data = true;
		note->data_ms = ms;
	}
	if (attributes) {
		note->attributes = true;
		note->attributes_ms = ms;
	}
	pthread_mutex_unlock(&times->mutex);
}

static void apply(const struct access_note *note, uint64_t *times_ms)
{
	if (note->data)
		times_ms[ENGINE_TIME_DATA_ACCESSED] = note->data_ms;
	if (note->attributes)
		times_ms[ENGINE_TIME_ATTRIBUTES_ACCESSED] = note->attributes_ms;
}

void access_times_apply(struct access_times *times, struct access_key key, uint64_t *times_ms)
{
	const struct access_note *note;

	pthread_mutex_lock(&times->mutex);
	note = find(times, &key);
	if (note && !note->taken)
		apply(note, times_ms);
	pthread_mutex_unlock(&times->mutex);
}

bool access_times_take(struct access_times *times, struct access_key key, uint64_t *times_ms)
{
	struct access_note *note;
	bool take;

	/* Nobody notes anything beside a writing transaction. */
	if (!access_times_count(times))
		return false;
	pthread_mutex_lock(&times->mutex);
	note = find(times, &key);
	take = note && !note->taken;
	if (take) {
		apply(note, times_ms);
		waiting_remove(times, note);
		note->taken = true;
		note->newer = times->taken;
		times->taken = number_of(times, note);
	}
	pthread_mutex_unlock(&times->mutex);
	return take;
}

static void settle_taken(struct access_times *times,
			 void (*settle)(struct access_times *, struct access_note *))
{
	/* Only writing transactions take any. */
	if (times->taken == ACCESS_NONE)
		return;
	pthread_mutex_lock(&times->mutex);
	while (times->taken != ACCESS_NONE) {
		struct access_note *note = &times->notes[times->taken];

		times->taken = note->newer;
		settle(times, note);
	}
	pthread_mutex_unlock(&times->mutex);
}

void access_times_commit(struct access_times *times)
{
	settle_taken(times, discard);
}

void access_times_abort(struct access_times *times)
{
	settle_taken(times, waiting_add);
}

bool access_times_oldest(struct access_times *times, struct access_key *key)
{
	bool any;

	pthread_mutex_lock(&times->mutex);
	any = times->oldest != ACCESS_NONE;
	if (any)
		*key = times->notes[times->oldest].key;
	pthread_mutex_unlock(&times->mutex);
	return any;
}

void access_times_forget(struct access_times *times, struct access_key key)
{
	struct access_note *note;

	pthread_mutex_lock(&times->mutex);
	note = find(times, &key);
	if (note && !note->taken) {
		waiting_remove(times, note);
		discard(times, note);
	}
	pthread_mutex_unlock(&times->mutex);
}

void access_times_forget_partition(struct access_times *times, uint64_t partition)
{
	uint32_t number, newer;

	pthread_mutex_lock(&times->mutex);
	for (number = times->oldest; number != ACCESS_NONE; number = newer) {
		struct access_note *note = &times->notes[number];

		newer = note->newer;
		if (partition && note->key.partition != partition)
			continue;
		waiting_remove(times, note);
		discard(times, note);
	}
	pthread_mutex_unlock(&times->mutex);
}

uint32_t access_times_count(const struct access_times *times)
{
	return __atomic_load_n(&times->count, __ATOMIC_RELAXED);
}

void access_times_clear(struct access_times *times)
{
	pthread_mutex_lock(&times->mutex);
	reset(times);
	pthread_mutex_unlock(&times->mutex);
}

size_t access_times_bytes(const struct access_times *times)
{
	return times->capacity * sizeof(*times->notes) +
	       (times->bucket_mask + (size_t)1) * sizeof(*times->buckets);
}
