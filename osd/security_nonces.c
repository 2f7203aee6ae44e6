/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Finds nonces by a hash table, and forgets the oldest by a heap in order of their timestamps. */
#include "osd/security_nonces.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <xxhash.h>

#include "common/bytes.h"

#define NOTHING UINT32_MAX

struct entry {
	uint8_t nonce[OSD_NONCE_BYTES];
	uint32_t next; /* in the chain of its hash */
};

struct osd_nonces {
	pthread_mutex_t lock;
	size_t capacity, count;
	uint64_t floor_ms; /* nonces with older timestamps are not taken */
	uint64_t noted_ms, newest_ms;
	struct entry *entries;
	uint32_t *chains; /* `capacity` of them */
	uint32_t *heap;   /* indexes of entries; the oldest is first */
};

int osd_nonces_create(size_t capacity, uint64_t floor_ms, uint64_t noted_ms,
		      struct osd_nonces **nonces)
{
	struct osd_nonces *created = calloc(1, sizeof(*created));

	assert(capacity > 0 && capacity <= 1 << 24);
	if (!created)
		return -ENOMEM;
	created->entries = malloc(capacity * sizeof(*created->entries));
	created->chains = malloc(capacity * sizeof(*created->chains));
	created->heap = malloc(capacity * sizeof(*created->heap));
	pthread_mutex_init(&created->lock, NULL);
	if (!created->entries || !created->chains || !created->heap) {
		osd_nonces_destroy(created);
		return -ENOMEM;
	}
	created->capacity = capacity;
	created->floor_ms = floor_ms;
	created->noted_ms = noted_ms;
	for (size_t i = 0; i < capacity; i++)
		created->chains[i] = NOTHING;
	*nonces = created;
	return 0;
}

void osd_nonces_destroy(struct osd_nonces *nonces)
{
	if (!nonces)
		return;
	pthread_mutex_destroy(&nonces->lock);
	free(nonces->entries);
	free(nonces->chains);
	free(nonces->heap);
	free(nonces);
}

static uint32_t *chain_of(struct osd_nonces *nonces, const uint8_t *nonce)
{
	return &nonces->chains[XXH64(nonce, OSD_NONCE_BYTES, 0) % nonces->capacity];
}

static bool is_known(struct osd_nonces *nonces, const uint8_t *nonce)
{
	for (uint32_t i = *chain_of(nonces, nonce); i != NOTHING; i = nonces->entries[i].next)
		if (memcmp(nonces->entries[i].nonce, nonce, OSD_NONCE_BYTES) == 0)
			return true;
	return false;
}

static uint64_t time_at(const struct osd_nonces *nonces, size_t place)
{
	return get_be48(nonces->entries[nonces->heap[place]].nonce);
}

static void swap(uint32_t *a, uint32_t *b)
{
	uint32_t kept = *a;

	*a = *b;
	*b = kept;
}

static void sift_up(struct osd_nonces *nonces, size_t place)
{
	while (place > 0) {
		size_t above = (place - 1) / 2;

		if (time_at(nonces, above) <= time_at(nonces, place))
			return;
		swap(&nonces->heap[above], &nonces->heap[place]);
		place = above;
	}
}

static void sift_down(struct osd_nonces *nonces)
{
	size_t place = 0, below;

	while ((below = 2 * place + 1) < nonces->count) {
		if (below + 1 < nonces->count &&
		    time_at(nonces, below + 1) < time_at(nonces, below))
			below++;
		if (time_at(nonces, place) <= time_at(nonces, below))
			return;
		swap(&nonces->heap[place], &nonces->heap[below]);
		place = below;
	}
}

/*
 * Forgets the oldest nonce and returns its entry, which stays first in the heap. The nonce can't
 * come back: all that are remembered from now on are as new or newer, and a full list takes only
 * nonces that are newer than its oldest.
 */
static uint32_t forget_oldest(struct osd_nonces *nonces)
{
	uint32_t oldest = nonces->heap[0];
	uint32_t *link = chain_of(nonces, nonces->entries[oldest].nonce);

	while (*link != oldest)
		link = &nonces->entries[*link].next;
	*link = nonces->entries[oldest].next;
	return oldest;
}

static void remember(struct osd_nonces *nonces, const uint8_t *nonce)
{
	bool full = nonces->count == nonces->capacity;
	uint32_t *chain = chain_of(nonces, nonce);
	uint32_t index = full ? forget_oldest(nonces) : (uint32_t)nonces->count;
	struct entry *entry = &nonces->entries[index];

	memcpy(entry->nonce, nonce, OSD_NONCE_BYTES);
	entry->next = *chain;
	*chain = index;
	if (full) {
		sift_down(nonces);
		return;
	}
	nonces->heap[nonces->count++] = index;
	sift_up(nonces, nonces->count - 1);
}

int osd_nonces_take(struct osd_nonces *nonces, const uint8_t nonce[OSD_NONCE_BYTES],
		    uint64_t oldest_ms, uint64_t newest_ms)
{
	uint64_t time_ms = get_be48(nonce);
	int result = 0;

	if (time_ms < oldest_ms || time_ms > newest_ms)
		return -ERANGE;
	pthread_mutex_lock(&nonces->lock);
	if (is_known(nonces, nonce))
		result = -EEXIST;
	else if (time_ms < nonces->floor_ms ||
		 (nonces->count == nonces->capacity && time_ms <= time_at(nonces, 0)))
		result = -ERANGE;
	else if (time_ms > nonces->noted_ms)
		result = -EAGAIN;
	else
		remember(nonces, nonce);
	if (result == 0)
		nonces->newest_ms = max_u64(nonces->newest_ms, time_ms);
	pthread_mutex_unlock(&nonces->lock);
	return result;
}

void osd_nonces_noted(struct osd_nonces *nonces, uint64_t noted_ms)
{
	pthread_mutex_lock(&nonces->lock);
	nonces->noted_ms = max_u64(nonces->noted_ms, noted_ms);
	pthread_mutex_unlock(&nonces->lock);
}

uint64_t osd_nonces_newest(struct osd_nonces *nonces)
{
	uint64_t newest_ms;

	pthread_mutex_lock(&nonces->lock);
	newest_ms = nonces->newest_ms;
	pthread_mutex_unlock(&nonces->lock);
	return newest_ms;
}
