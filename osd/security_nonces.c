/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Nonces in lists, and lists in partitions. Hash tables find them; heaps in order of timestamps say
 * what is to be forgotten first.
 */
#include "osd/security_nonces.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <xxhash.h>

#include "common/bytes.h"
#include "osd/security_heap.h"

#define NOTHING OSD_HEAP_NOTHING

/* A nonce; its timestamp is the heap's key. */
struct entry {
	struct osd_heap_node node; /* of its list */
	uint32_t list;
	uint32_t next; /* in the chain of its hash, or the next free one */
	uint8_t rest[OSD_NONCE_BYTES - 6];
};

struct list {
	struct osd_heap_node node; /* of its partition, by what `newest_ms` was some time ago */
	uint64_t floor_ms;         /* it takes none that are older */
	uint64_t newest_ms;        /* of all that it has taken */
	uint64_t noted_ms;         /* the bound that is noted for its owner alone */
	uint32_t partition;        /* place in `partitions` */
	uint32_t count, entries;   /* a heap */
	uint32_t next;             /* in the chain of its hash, or the next free one */
	uint32_t before, after;    /* in the ring of its partition */
	uint8_t key[OSD_KEY_BYTES];
};

struct partition {
	uint64_t id;
	uint64_t floor_ms;  /* of new lists */
	uint64_t newest_ms; /* of all its lists, forgotten ones too */
	uint32_t count;     /* nonces */
	uint32_t lists;     /* 0: the place is free */
	uint32_t oldest;    /* a heap of lists */
	uint32_t ring;      /* where the last list was found that has to give something up */
};

struct osd_nonces {
	pthread_mutex_t lock;
	uint64_t floor_ms; /* of new partitions */
	uint64_t noted_ms, newest_ms;
	uint32_t capacity, lists_max, partitions_max;
	uint32_t partitions_used;
	uint64_t seed; /* of hashes, so that nobody can choose nonces that have the same */
	uint32_t free_entry, free_list;
	uint32_t hand; /* where the last partition was found that has more than its share */
	struct osd_heap_array entry_array, list_array;
	struct entry *entries;
	struct list *lists;
	struct partition *partitions;
	uint32_t *entry_chains, *list_chains; /* as many as there are of each */
};

/* ---- making it ---- */

static int allocate(struct osd_nonces *nonces)
{
	nonces->entries = malloc(nonces->capacity * sizeof(*nonces->entries));
	nonces->lists = OPENSSL_malloc(nonces->lists_max * sizeof(*nonces->lists));
	nonces->partitions = calloc(nonces->partitions_max, sizeof(*nonces->partitions));
	nonces->entry_chains = malloc(nonces->capacity * sizeof(*nonces->entry_chains));
	nonces->list_chains = malloc(nonces->lists_max * sizeof(*nonces->list_chains));
	if (!nonces->entries || !nonces->lists || !nonces->partitions || !nonces->entry_chains ||
	    !nonces->list_chains)
		return -ENOMEM;
	return 0;
}

int osd_nonces_create(size_t capacity, uint64_t floor_ms, uint64_t noted_ms,
		      struct osd_nonces **nonces)
{
	struct osd_nonces *created = calloc(1, sizeof(*created));

	assert(capacity >= 2 && capacity <= 1 << 24);
	if (!created)
		return -ENOMEM;
	pthread_mutex_init(&created->lock, NULL);
	created->capacity = (uint32_t)capacity;
	created->lists_max = created->capacity / 2;
	created->partitions_max = (uint32_t)min_u64(created->lists_max, OSD_NONCE_PARTITIONS_MAX);
	created->floor_ms = floor_ms;
	created->noted_ms = noted_ms;
	if (allocate(created) != 0 ||
	    RAND_bytes((uint8_t *)&created->seed, sizeof(created->seed)) != 1) {
		osd_nonces_destroy(created);
		return -ENOMEM;
	}
	created->entry_array = (struct osd_heap_array){ created->entries, sizeof(struct entry) };
	created->list_array = (struct osd_heap_array){ created->lists, sizeof(struct list) };
	for (uint32_t i = 0; i < created->capacity; i++) {
		created->entry_chains[i] = NOTHING;
		created->entries[i].next = i + 1 < created->capacity ? i + 1 : NOTHING;
	}
	for (uint32_t i = 0; i < created->lists_max; i++) {
		created->list_chains[i] = NOTHING;
		created->lists[i].next = i + 1 < created->lists_max ? i + 1 : NOTHING;
	}
	*nonces = created;
	return 0;
}

void osd_nonces_destroy(struct osd_nonces *nonces)
{
	if (!nonces)
		return;
	pthread_mutex_destroy(&nonces->lock);
	free(nonces->entries);
	OPENSSL_clear_free(nonces->lists, nonces->lists_max * sizeof(*nonces->lists));
	free(nonces->partitions);
	free(nonces->entry_chains);
	free(nonces->list_chains);
	free(nonces);
}

/* ---- finding ---- */

static uint32_t *entry_chain(struct osd_nonces *nonces, uint32_t list, uint64_t time_ms,
			     const uint8_t *rest)
{
	const uint64_t place[2] = { time_ms, list };
	uint64_t hash = XXH64(place, sizeof(place), nonces->seed);

	hash = XXH64(rest, sizeof(nonces->entries->rest), hash);
	return &nonces->entry_chains[hash % nonces->capacity];
}

static bool is_known(struct osd_nonces *nonces, uint32_t list, uint64_t time_ms,
		     const uint8_t *rest)
{
	uint32_t i = *entry_chain(nonces, list, time_ms, rest);

	for (; i != NOTHING; i = nonces->entries[i].next) {
		const struct entry *entry = &nonces->entries[i];

		if (entry->list == list && entry->node.key == time_ms &&
		    memcmp(entry->rest, rest, sizeof(entry->rest)) == 0)
			return true;
	}
	return false;
}

static uint32_t *list_chain(struct osd_nonces *nonces, uint64_t partition, const uint8_t *key)
{
	uint64_t hash = XXH64(key, OSD_KEY_BYTES, nonces->seed ^ partition);

	return &nonces->list_chains[hash % nonces->lists_max];
}

static uint32_t find_list(struct osd_nonces *nonces, const struct osd_nonce_owner *owner)
{
	uint32_t i = *list_chain(nonces, owner->partition, owner->key);

	for (; i != NOTHING; i = nonces->lists[i].next) {
		const struct list *list = &nonces->lists[i];

		if (nonces->partitions[list->partition].id == owner->partition &&
		    memcmp(list->key, owner->key, OSD_KEY_BYTES) == 0)
			break;
	}
	return i;
}

static uint32_t find_partition(const struct osd_nonces *nonces, uint64_t id)
{
	for (uint32_t i = 0; i < nonces->partitions_max; i++)
		if (nonces->partitions[i].lists > 0 && nonces->partitions[i].id == id)
			return i;
	return NOTHING;
}

/* ---- forgetting ---- */

/* The oldest nonce of a list that has one. */
static void forget_entry(struct osd_nonces *nonces, uint32_t of)
{
	struct list *list = &nonces->lists[of];
	uint32_t index = osd_heap_pop(&nonces->entry_array, &list->entries);
	struct entry *entry = &nonces->entries[index];
	uint32_t *link = entry_chain(nonces, of, entry->node.key, entry->rest);

	while (*link != index)
		link = &nonces->entries[*link].next;
	*link = entry->next;
	list->floor_ms = max_u64(list->floor_ms, entry->node.key + 1);
	list->count--;
	nonces->partitions[list->partition].count--;
	entry->next = nonces->free_entry;
	nonces->free_entry = index;
}

/* The list of a partition whose newest nonce is the oldest. It comes first in the heap. */
static uint32_t oldest_list(struct osd_nonces *nonces, struct partition *partition)
{
	uint32_t index = partition->oldest;

	/* What has taken newer ones since goes back to where it belongs. */
	while (nonces->lists[index].node.key != nonces->lists[index].newest_ms) {
		osd_heap_pop(&nonces->list_array, &partition->oldest);
		osd_heap_push(&nonces->list_array, &partition->oldest, index,
			      nonces->lists[index].newest_ms);
		index = partition->oldest;
	}
	return index;
}

static void forget_list(struct osd_nonces *nonces, struct partition *partition)
{
	uint32_t index = oldest_list(nonces, partition);
	struct list *list = &nonces->lists[index];
	uint32_t *link = list_chain(nonces, partition->id, list->key);

	while (list->count > 0)
		forget_entry(nonces, index);
	osd_heap_pop(&nonces->list_array, &partition->oldest);
	while (*link != index)
		link = &nonces->lists[*link].next;
	*link = list->next;
	nonces->lists[list->before].after = list->after;
	nonces->lists[list->after].before = list->before;
	partition->ring = list->after;
	partition->floor_ms =
		max_u64(partition->floor_ms, max_u64(list->floor_ms, list->newest_ms + 1));
	partition->lists--;
	OPENSSL_cleanse(list->key, sizeof(list->key));
	list->next = nonces->free_list;
	nonces->free_list = index;
}

/*
 * A partition that has more than its share, the `total`-th part, of what `of` counts. There is one
 * when all is used and somebody has less.
 */
static uint32_t find_rich(struct osd_nonces *nonces, uint32_t (*of)(const struct partition *),
			  uint32_t total)
{
	for (;; nonces->hand = (nonces->hand + 1) % nonces->partitions_max) {
		const struct partition *partition = &nonces->partitions[nonces->hand];

		if ((uint64_t)of(partition) * nonces->partitions_used > total)
			return nonces->hand;
	}
}

static uint32_t count_of(const struct partition *partition)
{
	return partition->count;
}

static uint32_t lists_of(const struct partition *partition)
{
	return partition->lists;
}

static bool has_its_share(const struct osd_nonces *nonces, uint32_t count, uint32_t total)
{
	return (uint64_t)count * nonces->partitions_used >= total;
}

static bool has_the_average(const struct osd_nonces *nonces, uint32_t index)
{
	const struct list *list = &nonces->lists[index];
	const struct partition *partition = &nonces->partitions[list->partition];

	return list->count > 0 && (uint64_t)list->count * partition->lists >= partition->count;
}

/* ---- making room ---- */

/* Forgets a nonce for a new one of `index`. -ERANGE: that would be the one to forget. */
static int make_room_for_entry(struct osd_nonces *nonces, uint32_t index, uint64_t time_ms)
{
	const struct list *list = &nonces->lists[index];
	struct partition *rich = &nonces->partitions[list->partition];

	if (nonces->free_entry != NOTHING)
		return 0;
	if (!has_its_share(nonces, rich->count, nonces->capacity))
		rich = &nonces->partitions[find_rich(nonces, count_of, nonces->capacity)];
	else if (has_the_average(nonces, index))
		rich->ring = index;
	while (!has_the_average(nonces, rich->ring))
		rich->ring = nonces->lists[rich->ring].after;
	if (rich->ring == index && time_ms <= nonces->entries[list->entries].node.key)
		return -ERANGE;
	forget_entry(nonces, rich->ring);
	return 0;
}

/* Forgets a list for a new one of partition `index`. -ERANGE: the nonce is older than that. */
static int make_room_for_list(struct osd_nonces *nonces, uint32_t index, uint64_t time_ms)
{
	struct partition *rich = &nonces->partitions[index];

	if (nonces->free_list != NOTHING)
		return 0;
	if (!has_its_share(nonces, rich->lists, nonces->lists_max))
		rich = &nonces->partitions[find_rich(nonces, lists_of, nonces->lists_max)];
	else if (time_ms <= nonces->lists[oldest_list(nonces, rich)].newest_ms)
		return -ERANGE;
	forget_list(nonces, rich);
	return 0;
}

/* The same of a partition. */
static int make_room_for_partition(struct osd_nonces *nonces, uint64_t time_ms)
{
	struct partition *oldest = &nonces->partitions[0];

	if (nonces->partitions_used < nonces->partitions_max)
		return 0;
	for (uint32_t i = 1; i < nonces->partitions_max; i++)
		if (nonces->partitions[i].newest_ms < oldest->newest_ms)
			oldest = &nonces->partitions[i];
	if (time_ms <= oldest->newest_ms)
		return -ERANGE;
	while (oldest->lists > 0)
		forget_list(nonces, oldest);
	nonces->floor_ms = max_u64(nonces->floor_ms, oldest->floor_ms);
	nonces->partitions_used--;
	return 0;
}

/* ---- taking ---- */

static int open_partition(struct osd_nonces *nonces, uint64_t id, uint64_t time_ms, uint32_t *index)
{
	*index = find_partition(nonces, id);
	if (*index != NOTHING)
		return time_ms < nonces->partitions[*index].floor_ms ? -ERANGE : 0;
	if (time_ms < nonces->floor_ms)
		return -ERANGE;
	if (make_room_for_partition(nonces, time_ms) != 0)
		return -ERANGE;
	for (*index = 0; nonces->partitions[*index].lists > 0;)
		++*index;
	nonces->partitions[*index] = (struct partition){
		.id = id, .floor_ms = nonces->floor_ms, .oldest = NOTHING, .ring = NOTHING
	};
	nonces->partitions_used++;
	return 0;
}

static void add_list(struct osd_nonces *nonces, uint32_t of, const uint8_t *key, uint32_t index)
{
	struct partition *partition = &nonces->partitions[of];
	struct list *list = &nonces->lists[index];
	uint32_t *chain = list_chain(nonces, partition->id, key);

	nonces->free_list = list->next;
	*list = (struct list){ .floor_ms = partition->floor_ms,
			       .partition = of,
			       .entries = NOTHING,
			       .next = *chain,
			       .before = index,
			       .after = index };
	memcpy(list->key, key, OSD_KEY_BYTES);
	*chain = index;
	if (partition->lists > 0) {
		list->after = partition->ring;
		list->before = nonces->lists[partition->ring].before;
		nonces->lists[list->before].after = index;
		nonces->lists[list->after].before = index;
	}
	partition->ring = index;
	partition->lists++;
	osd_heap_push(&nonces->list_array, &partition->oldest, index, 0);
}

static int open_list(struct osd_nonces *nonces, const struct osd_nonce_owner *owner,
		     uint64_t time_ms, uint32_t *index)
{
	uint32_t partition;
	int result;

	*index = find_list(nonces, owner);
	if (*index != NOTHING)
		return 0;
	result = open_partition(nonces, owner->partition, time_ms, &partition);
	if (result == 0)
		result = make_room_for_list(nonces, partition, time_ms);
	if (result != 0)
		return result;
	*index = nonces->free_list;
	add_list(nonces, partition, owner->key, *index);
	return 0;
}

static void add_entry(struct osd_nonces *nonces, uint32_t of, uint64_t time_ms, const uint8_t *rest)
{
	struct list *list = &nonces->lists[of];
	struct partition *partition = &nonces->partitions[list->partition];
	uint32_t index = nonces->free_entry;
	struct entry *entry = &nonces->entries[index];
	uint32_t *chain = entry_chain(nonces, of, time_ms, rest);

	nonces->free_entry = entry->next;
	entry->list = of;
	entry->next = *chain;
	memcpy(entry->rest, rest, sizeof(entry->rest));
	*chain = index;
	osd_heap_push(&nonces->entry_array, &list->entries, index, time_ms);
	list->count++;
	partition->count++;
	list->newest_ms = max_u64(list->newest_ms, time_ms);
	partition->newest_ms = max_u64(partition->newest_ms, time_ms);
	nonces->newest_ms = max_u64(nonces->newest_ms, time_ms);
}

/* Under lock. */
static int take(struct osd_nonces *nonces, const struct osd_nonce_owner *owner, uint64_t time_ms,
		const uint8_t *rest)
{
	uint32_t list = find_list(nonces, owner);
	uint64_t noted_ms = max_u64(nonces->noted_ms, owner->noted_ms);
	int result;

	if (list != NOTHING && is_known(nonces, list, time_ms, rest))
		return -EEXIST;
	if (list != NOTHING && time_ms < nonces->lists[list].floor_ms)
		return -ERANGE;
	if (list != NOTHING)
		noted_ms = max_u64(noted_ms, nonces->lists[list].noted_ms);
	if (time_ms > noted_ms)
		return -EAGAIN;
	result = open_list(nonces, owner, time_ms, &list);
	if (result == 0)
		nonces->lists[list].noted_ms =
			max_u64(nonces->lists[list].noted_ms, owner->noted_ms);
	if (result == 0)
		result = make_room_for_entry(nonces, list, time_ms);
	if (result == 0)
		add_entry(nonces, list, time_ms, rest);
	return result;
}

int osd_nonces_take(struct osd_nonces *nonces, const struct osd_nonce_owner *owner,
		    const uint8_t nonce[OSD_NONCE_BYTES], uint64_t oldest_ms, uint64_t newest_ms)
{
	uint64_t time_ms = get_be48(nonce);
	int result;

	if (time_ms < oldest_ms || time_ms > newest_ms)
		return -ERANGE;
	pthread_mutex_lock(&nonces->lock);
	result = take(nonces, owner, time_ms, nonce + 6);
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
