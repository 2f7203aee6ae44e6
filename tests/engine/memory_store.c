/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The reference record store: records in plain memory, every version kept. */
#include "tests/engine/memory_store.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/records/need.h"

/* One version of a record; the chain of a key goes from new to old. */
struct version {
	struct version *older;
	uint64_t sequence;
	uint32_t length;
	uint64_t epoch;
	uint8_t flags;
	uint8_t value[];
};

struct chain {
	struct chain *next;         /* in the bucket */
	struct chain *next_changed; /* by the open transaction */
	struct record_key key;
	struct version *newest;
	bool changed;
};

struct memory_store {
	struct record_store store;
	struct record_store_operations operations;
	struct chain **buckets;
	uint32_t bucket_count;
	uint64_t chains;
	struct chain *changed;
	uint64_t sequence; /* of the last committed transaction, or of the open one */
	uint64_t committed;
	const struct record_hidden *hidden;
	bool writing, open, absorb;
	uint64_t bytes_max[RECORD_ROOMS];
	uint64_t memo;
	int64_t fail_put;
	bool corrupt;
	struct record_key corrupt_key;
	struct memory_store_counters counters;
	uint64_t void_before; /* what is older than a format does not count */
};

static struct memory_store *memory_of(struct record_store *store)
{
	return (struct memory_store *)store;
}

static bool keys_equal(const struct record_key *a, const struct record_key *b)
{
	return a->identifier == b->identifier && a->piece == b->piece &&
	       a->partition == b->partition && a->class == b->class;
}

static uint64_t hash_of(const struct record_key *key)
{
	uint64_t hash = key->identifier * UINT64_C(0x9e3779b97f4a7c15);

	hash ^= ((uint64_t)key->piece << 16 | key->partition) * UINT64_C(0xc2b2ae3d27d4eb4f);
	hash ^= hash >> 29;
	hash *= UINT64_C(0xbf58476d1ce4e5b9);
	return hash ^ hash >> 32;
}

static struct chain *find(const struct memory_store *memory, const struct record_key *key)
{
	struct chain *chain = memory->buckets[hash_of(key) % memory->bucket_count];

	while (chain && !keys_equal(&chain->key, key))
		chain = chain->next;
	return chain;
}

static void grow(struct memory_store *memory)
{
	uint32_t count = memory->bucket_count * 4;
	struct chain **buckets = calloc(count, sizeof(*buckets)), *chain;

	assert(buckets);
	for (uint32_t bucket = 0; bucket < memory->bucket_count; bucket++) {
		while ((chain = memory->buckets[bucket])) {
			memory->buckets[bucket] = chain->next;
			chain->next = buckets[hash_of(&chain->key) % count];
			buckets[hash_of(&chain->key) % count] = chain;
		}
	}
	free(memory->buckets);
	memory->buckets = buckets;
	memory->bucket_count = count;
}

static struct chain *find_or_add(struct memory_store *memory, const struct record_key *key)
{
	struct chain *chain = find(memory, key), **bucket;

	if (chain)
		return chain;
	if (memory->chains++ > memory->bucket_count * UINT64_C(2))
		grow(memory);
	chain = calloc(1, sizeof(*chain));
	assert(chain);
	chain->key = *key;
	bucket = &memory->buckets[hash_of(key) % memory->bucket_count];
	chain->next = *bucket;
	*bucket = chain;
	return chain;
}

static void drop_newest(struct memory_store *memory, struct version **link)
{
	struct version *version = *link;

	*link = version->older;
	memory->counters.records--;
	memory->counters.bytes -= version->length;
	free(version);
}

/* ---- the operations ---- */

static void set_hidden(struct record_store *store, const struct record_hidden *hidden)
{
	memory_of(store)->hidden = hidden;
}

static uint64_t begin(struct record_store *store, uint64_t at_least)
{
	struct memory_store *memory = memory_of(store);

	assert(memory->open && !memory->writing);
	memory->writing = true;
	memory->committed = memory->sequence++;
	if (memory->sequence < at_least)
		memory->sequence = at_least;
	return memory->sequence;
}

static int put(struct record_store *store, const struct record_key *key, uint64_t epoch,
	       unsigned flags, const void *value, uint32_t length, enum record_room room)
{
	struct memory_store *memory = memory_of(store);
	struct version *version;
	struct chain *chain;

	assert(memory->writing && length <= memory->store.limits.value_bytes);
	assert(!(flags & RECORD_TOMBSTONE) || length == 0);
	if (memory->fail_put >= 0 && memory->fail_put-- == 0)
		return -ENOSPC;
	if (memory->counters.bytes + length > memory->bytes_max[room])
		return -ENOSPC;
	chain = find_or_add(memory, key);
	if (chain->newest && chain->newest->sequence == memory->sequence)
		drop_newest(memory, &chain->newest);
	version = malloc(sizeof(*version) + length);
	assert(version);
	*version = (struct version){ .older = chain->newest,
				     .sequence = memory->sequence,
				     .length = length,
				     .epoch = epoch,
				     .flags = (uint8_t)flags };
	if (length)
		memcpy(version->value, value, length);
	chain->newest = version;
	if (!chain->changed) {
		chain->changed = true;
		chain->next_changed = memory->changed;
		memory->changed = chain;
	}
	memory->counters.puts++;
	memory->counters.put_bytes += length;
	memory->counters.records++;
	memory->counters.bytes += length;
	return 0;
}

/* Frees what is older than a format that is committed; UINT64_MAX: all that is in the store. */
static void drop_void(struct memory_store *memory, uint64_t before)
{
	for (uint32_t bucket = 0; bucket < memory->bucket_count; bucket++) {
		struct chain **at = &memory->buckets[bucket], *chain;

		while ((chain = *at)) {
			struct version **link = &chain->newest;

			while (*link && (*link)->sequence >= before)
				link = &(*link)->older;
			while (*link)
				drop_newest(memory, link);
			if (chain->newest) {
				at = &chain->next;
				continue;
			}
			*at = chain->next;
			memory->chains--;
			free(chain);
		}
	}
}

static void commit(struct record_store *store)
{
	struct memory_store *memory = memory_of(store);
	struct chain *chain;

	assert(memory->writing);
	while ((chain = memory->changed)) {
		struct version *version = chain->newest;

		memory->changed = chain->next_changed;
		chain->changed = false;
		while (memory->absorb && version->older && version->older->flags & RECORD_ABSORB &&
		       version->older->sequence >= version->epoch)
			drop_newest(memory, &version->older);
	}
	if (memory->void_before)
		drop_void(memory, memory->void_before);
	memory->void_before = 0;
	memory->writing = false;
}

static void abort_transaction(struct record_store *store)
{
	struct memory_store *memory = memory_of(store);
	struct chain *chain;

	assert(memory->writing);
	while ((chain = memory->changed)) {
		memory->changed = chain->next_changed;
		chain->changed = false;
		assert(chain->newest->sequence == memory->sequence);
		drop_newest(memory, &chain->newest);
	}
	memory->void_before = 0;
	/*
	 * Numbers of aborted transactions are used again, which is the harder case for the caller.
	 */
	memory->sequence = memory->committed;
	memory->writing = false;
}

static bool is_visible(const struct memory_store *memory, const struct record_key *key,
		       const struct version *version, uint64_t bound)
{
	const struct record_hidden *hidden = memory->hidden;

	return version->sequence <= bound && version->sequence >= memory->void_before &&
	       !(hidden && hidden->is_hidden(hidden->context, key, version->sequence, bound));
}

static struct record_info describe(const struct version *version)
{
	return (struct record_info){ .sequence = version->sequence,
				     .length = version->length,
				     .flags = version->flags };
}

static int take(const struct version *version, void *value, uint32_t capacity,
		struct record_info *info)
{
	*info = describe(version);
	if (version->length && capacity)
		memcpy(value, version->value,
		       version->length < capacity ? version->length : capacity);
	return 0;
}

static int get(struct record_store *store, const struct record_key *key, uint64_t bound,
	       void *value, uint32_t capacity, struct record_info *info)
{
	struct memory_store *memory = memory_of(store);
	const struct version *version;
	const struct chain *chain;

	__atomic_fetch_add(&memory->counters.gets, 1, __ATOMIC_RELAXED);
	if (memory->corrupt && keys_equal(key, &memory->corrupt_key))
		return -EBADMSG;
	chain = find(memory, key);
	for (version = chain ? chain->newest : NULL; version; version = version->older) {
		if (is_visible(memory, key, version, bound))
			return take(version, value, capacity, info);
	}
	return -ENOENT;
}

static void get_run(struct record_store *store, const struct record_key *key, uint32_t count,
		    uint64_t bound, uint8_t *values, uint32_t capacity, struct record_found *found)
{
	struct record_key piece = *key;

	for (uint32_t n = 0; n < count; n++, piece.piece++)
		found[n].result = get(store, &piece, bound, values + (size_t)n * capacity, capacity,
				      &found[n].info);
}

/* Negative, 0 or positive, as `a` comes before, is, or comes behind `b`. */
static int compare_keys(const struct record_key *a, const struct record_key *b)
{
	if (a->partition != b->partition)
		return a->partition < b->partition ? -1 : 1;
	if (a->identifier != b->identifier)
		return a->identifier < b->identifier ? -1 : 1;
	if (a->piece != b->piece)
		return a->piece < b->piece ? -1 : 1;
	return a->class - b->class;
}

static int next(struct record_store *store, struct record_key *key, uint64_t bound)
{
	struct memory_store *memory = memory_of(store);
	const struct chain *best = NULL;
	struct record_info info;

	for (uint32_t bucket = 0; bucket < memory->bucket_count; bucket++)
		for (const struct chain *chain = memory->buckets[bucket]; chain;
		     chain = chain->next)
			if (compare_keys(&chain->key, key) >= 0 &&
			    (!best || compare_keys(&chain->key, &best->key) < 0) &&
			    get(store, &chain->key, bound, NULL, 0, &info) == 0)
				best = chain;
	if (!best)
		return -ENOENT;
	*key = best->key;
	return 0;
}

static int list(struct record_store *store, const struct record_key *key, uint64_t bound,
		uint64_t below, struct record_info *infos, uint32_t max)
{
	struct memory_store *memory = memory_of(store);
	const struct chain *chain = find(memory, key);
	uint32_t count = 0;

	if (memory->corrupt && keys_equal(key, &memory->corrupt_key))
		return -EBADMSG;
	for (const struct version *version = chain ? chain->newest : NULL; version && count < max;
	     version = version->older)
		if (version->sequence < below && is_visible(memory, key, version, bound))
			infos[count++] = describe(version);
	return (int)count;
}

static int has_between(struct record_store *store, const struct record_key *key, uint64_t after,
		       uint64_t bound)
{
	struct memory_store *memory = memory_of(store);
	const struct chain *chain = find(memory, key);

	if (memory->corrupt && keys_equal(key, &memory->corrupt_key))
		return -EBADMSG;
	for (const struct version *version = chain ? chain->newest : NULL; version;
	     version = version->older)
		if (version->sequence > after && version->sequence <= bound &&
		    version->sequence >= memory->void_before)
			return 1;
	return 0;
}

/* A bucket is a page. */
static int sample(struct record_store *store, struct record_sample *sample)
{
	const struct memory_store *memory = memory_of(store);

	sample->segment = RECORD_NO_SEGMENT;
	sample->pages = memory->bucket_count;
	sample->device_bytes = memory->bytes_max[RECORD_ROOMS - 1];
	sample->bytes = memory->counters.bytes;
	if (sample->page >= sample->pages)
		return 0;
	for (const struct chain *chain = memory->buckets[sample->page]; chain; chain = chain->next)
		for (const struct version *version = chain->newest; version;
		     version = version->older) {
			const struct record_info info = describe(version);

			sample->record(sample->context, &chain->key, &info, version->length,
				       version->sequence >= memory->void_before);
		}
	return 0;
}

static uint64_t flush_begin(struct record_store *store)
{
	return memory_of(store)->committed;
}

static int flush(struct record_store *store, uint64_t number)
{
	assert(number <= memory_of(store)->committed);
	return 0;
}

static int begin_format(struct record_store *store, uint64_t at_least, uint64_t *sequence)
{
	*sequence = begin(store, at_least);
	memory_of(store)->void_before = *sequence;
	return 0;
}

static void statistics(struct record_store *store, struct record_statistics *statistics)
{
	const struct memory_store *memory = memory_of(store);

	statistics->records_put = memory->counters.puts;
	statistics->record_bytes_put = memory->counters.put_bytes;
	statistics->records_got = memory->counters.gets;
	statistics->used_bytes = memory->counters.bytes;
	statistics->committed_sequence = memory->sequence;
}

static uint64_t memo(struct record_store *store)
{
	return memory_of(store)->memo;
}

static void set_memo(struct record_store *store, uint64_t memo)
{
	memory_of(store)->memo = memo;
}

static int sync_memo(struct record_store *store)
{
	(void)store;
	return 0;
}

static int close_store(struct record_store *store, bool stable)
{
	struct memory_store *memory = memory_of(store);

	assert(memory->open && !(stable && memory->writing));
	if (memory->writing)
		abort_transaction(store);
	memory->open = false;
	memory->hidden = NULL;
	return 0;
}

/* ---- merging ---- */

/* A version whose need is judged. */
struct candidate {
	struct memory_store *memory;
	const struct chain *chain;
	const struct version *version;
};

static int is_found(void *context, uint64_t bound, bool hides, uint64_t *sequence)
{
	const struct candidate *candidate = context;
	const struct version *found = candidate->chain->newest;

	while (found &&
	       (found->sequence > bound ||
		(hides && !is_visible(candidate->memory, &candidate->chain->key, found, bound))))
		found = found->older;
	*sequence = found ? found->sequence : 0;
	return found == candidate->version;
}

static int has_older(void *context)
{
	const struct candidate *candidate = context;

	return candidate->version->older != NULL;
}

static int judge(struct memory_store *memory, const struct chain *chain,
		 const struct version *version, const struct record_keep *keep)
{
	struct candidate candidate = { memory, chain, version };
	const struct record_info info = describe(version);

	return record_judge(&(struct record_judged){
		.keep = keep,
		.hidden = memory->hidden,
		.key = &chain->key,
		.info = &info,
		.context = &candidate,
		.is_found = is_found,
		.has_older = has_older,
	});
}

static uint32_t shortage(struct record_store *store, enum record_room room)
{
	const struct memory_store *memory = memory_of(store);
	uint64_t bytes_max = memory->bytes_max[room];

	return memory->counters.bytes > (room == RECORD_ROOM_WRITE ? bytes_max / 2 : bytes_max);
}

static uint32_t merge_calls_max(struct record_store *store)
{
	(void)store;
	return 1;
}

static int merge(struct record_store *store, const struct record_keep *keep,
		 struct record_merge *result)
{
	struct memory_store *memory = memory_of(store);
	uint64_t dropped = 0;

	assert(memory->open && !memory->writing);
	for (uint32_t bucket = 0; bucket < memory->bucket_count; bucket++)
		for (struct chain *chain = memory->buckets[bucket]; chain; chain = chain->next)
			for (struct version **link = &chain->newest; *link;) {
				if (judge(memory, chain, *link, keep) != RECORD_NEED_NONE) {
					link = &(*link)->older;
					continue;
				}
				drop_newest(memory, link);
				dropped++;
			}
	result->records_dropped += dropped;
	result->segments_freed += dropped != 0;
	return dropped ? 0 : -EAGAIN;
}

static const struct record_store_operations operations = {
	.set_hidden = set_hidden,
	.begin = begin,
	.put = put,
	.commit = commit,
	.abort = abort_transaction,
	.get = get,
	.get_run = get_run,
	.next = next,
	.list = list,
	.has_between = has_between,
	.sample = sample,
	.flush_begin = flush_begin,
	.flush = flush,
	.begin_format = begin_format,
	.memo = memo,
	.set_memo = set_memo,
	.sync_memo = sync_memo,
	.statistics = statistics,
	.close = close_store,
};

/* ---- life and faults ---- */

struct memory_store *memory_store_create(uint32_t bytes_max)
{
	struct memory_store *memory = calloc(1, sizeof(*memory));

	assert(memory);
	memory->operations = operations;
	memory->store.operations = &memory->operations;
	memory->store.device = "memory";
	memory->store.limits =
		(struct record_limits){ .value_bytes = bytes_max, .capacity_bytes = UINT64_MAX };
	for (int room = 0; room < RECORD_ROOMS; room++)
		memory->bytes_max[room] = UINT64_MAX;
	memory->fail_put = -1;
	memory->bucket_count = 1024;
	memory->buckets = calloc(memory->bucket_count, sizeof(*memory->buckets));
	assert(memory->buckets);
	return memory;
}

void memory_store_destroy(struct memory_store *memory)
{
	assert(!memory->open);
	drop_void(memory, UINT64_MAX);
	free(memory->buckets);
	free(memory);
}

struct record_store *memory_store_open(struct memory_store *memory)
{
	assert(!memory->open);
	memory->open = true;
	return &memory->store;
}

void memory_store_absorb(struct memory_store *memory, bool absorb)
{
	memory->absorb = absorb;
}

void memory_store_merge(struct memory_store *memory)
{
	memory->operations.shortage = shortage;
	memory->operations.merge_calls_max = merge_calls_max;
	memory->operations.merge = merge;
	memory->store.limits.segment_bytes = 4096;
}

void memory_store_limit_rooms(struct memory_store *memory, const uint64_t bytes[RECORD_ROOMS])
{
	memcpy(memory->bytes_max, bytes, sizeof(memory->bytes_max));
	memory->store.limits.capacity_bytes = bytes[RECORD_ROOM_WRITE];
}

void memory_store_limit(struct memory_store *memory, uint64_t bytes, uint64_t with_reserve)
{
	const uint64_t rooms[RECORD_ROOMS] = { bytes,        with_reserve, with_reserve,
					       with_reserve, with_reserve, with_reserve };

	memory_store_limit_rooms(memory, rooms);
}

void memory_store_fail_put(struct memory_store *memory, int64_t puts)
{
	memory->fail_put = puts;
}

int64_t memory_store_fail_put_left(const struct memory_store *memory)
{
	return memory->fail_put;
}

void memory_store_corrupt(struct memory_store *memory, const struct record_key *key)
{
	memory->corrupt = key;
	if (key)
		memory->corrupt_key = *key;
}

void memory_store_overwrite(struct memory_store *memory, const struct record_key *key,
			    const void *value, uint32_t length)
{
	struct chain *chain = find(memory, key);
	struct version *changed;

	assert(chain && chain->newest);
	changed = malloc(sizeof(*changed) + length);
	assert(changed);
	*changed = *chain->newest;
	changed->length = length;
	memcpy(changed->value, value, length);
	memory->counters.bytes += length - chain->newest->length;
	free(chain->newest);
	chain->newest = changed;
}

void memory_store_lose(struct memory_store *memory, const struct record_key *key)
{
	struct chain *chain = find(memory, key);

	assert(chain);
	while (chain->newest)
		drop_newest(memory, &chain->newest);
}

void memory_store_lose_newest(struct memory_store *memory, const struct record_key *key)
{
	struct chain *chain = find(memory, key);

	assert(chain && chain->newest);
	drop_newest(memory, &chain->newest);
}

struct memory_store_counters memory_store_counters(const struct memory_store *memory)
{
	return memory->counters;
}
