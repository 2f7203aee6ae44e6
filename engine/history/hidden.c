/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Keeps the list of what rollbacks hide. */
#include "engine/history/hidden.h"

#include <errno.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "common/log.h"
#include "engine/history/past.h"

/* One transaction drops so many. */
#define DROPPED_AT_ONCE 256

/* ---- order ---- */

static int compare(const struct hidden_interval *a, const struct hidden_interval *b)
{
	if (a->partition != b->partition)
		return a->partition < b->partition ? -1 : 1;
	if (a->identifier != b->identifier)
		return a->identifier < b->identifier ? -1 : 1;
	return (a->at > b->at) - (a->at < b->at);
}

static int compare_entries(const void *a, const void *b)
{
	return compare(a, b);
}

/* How many are at (partition, identifier, at) or before it in order. */
static uint32_t position(const struct hidden *hidden, uint16_t partition, uint64_t identifier,
			 uint64_t at)
{
	const struct hidden_interval wanted = { .partition = partition,
						.identifier = identifier,
						.at = at };
	uint32_t low = 0, high = hidden->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (compare(&hidden->list[middle], &wanted) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- what is hidden ---- */

const struct hidden_interval *hidden_last_of(const struct hidden *hidden, uint16_t partition,
					     uint64_t identifier, uint64_t bound)
{
	uint32_t behind = position(hidden, partition, identifier, bound);
	const struct hidden_interval *last;

	if (behind == 0)
		return NULL;
	last = &hidden->list[behind - 1];
	return last->partition == partition && last->identifier == identifier ? last : NULL;
}

uint64_t hidden_next_of(const struct hidden *hidden, uint16_t partition, uint64_t identifier,
			uint64_t bound)
{
	uint32_t at = position(hidden, partition, identifier, bound);

	return at < hidden->count && hidden->list[at].partition == partition &&
			       hidden->list[at].identifier == identifier
		       ? hidden->list[at].at
		       : RECORD_NEWEST;
}

/* The later one. If one transaction made both: `b`, which has the smaller scope. */
static const struct hidden_interval *later(const struct hidden_interval *a,
					   const struct hidden_interval *b)
{
	return !b || (a && a->at > b->at) ? a : b;
}

const struct hidden_interval *hidden_last(const struct hidden *hidden, uint16_t partition,
					  uint64_t bound)
{
	const struct hidden_interval *last = hidden_last_of(hidden, RECORD_ROOT_INDEX, 0, bound);

	if (partition != RECORD_ROOT_INDEX)
		last = later(last, hidden_last_of(hidden, partition, 0, bound));
	return last;
}

/* The last interval that counts for a reader of the key at `bound`. */
static const struct hidden_interval *last_for(const struct hidden *hidden,
					      const struct record_key *key, uint64_t bound)
{
	const struct hidden_interval *last = hidden_last(hidden, key->partition, bound);

	if (key_is_data(key))
		last = later(last, hidden_last_of(hidden, key->partition, key->identifier, bound));
	return last;
}

static bool is_hidden(void *context, const struct record_key *key, uint64_t sequence,
		      uint64_t bound)
{
	const struct hidden *hidden = context;
	const struct hidden_interval *last;

	if (!hidden->count || key_is_timeless(key))
		return false;
	/* Each step goes to an earlier one. */
	while ((last = last_for(hidden, key, bound)) && sequence < last->at) {
		if (sequence > last->to)
			return true;
		bound = last->to;
	}
	return false;
}

uint32_t hidden_steps(const struct hidden *hidden, uint16_t partition, uint64_t identifier,
		      uint64_t bound, uint32_t max)
{
	const struct hidden_interval *last;
	uint32_t steps = 0;

	while (steps < max && (last = hidden_last_of(hidden, partition, identifier, bound))) {
		bound = last->to;
		steps++;
	}
	return steps;
}

uint32_t hidden_range(const struct hidden *hidden, uint16_t partition, uint64_t first,
		      uint64_t last, uint32_t *count)
{
	/* None is at 0. */
	uint32_t before = position(hidden, partition, first, 0);

	*count = position(hidden, partition, last, UINT64_MAX) - before;
	return before;
}

uint32_t hidden_count(const struct hidden *hidden, uint16_t partition)
{
	uint32_t own = 0, of_device;

	if (partition != RECORD_ROOT_INDEX)
		hidden_range(hidden, partition, 0, 0, &own);
	hidden_range(hidden, RECORD_ROOT_INDEX, 0, 0, &of_device);
	return own + of_device;
}

/* ---- the list ---- */

/* Makes space for one more in an array with `count` elements. */
static int grow(void **array, uint32_t count, uint32_t *capacity, size_t element_bytes)
{
	uint32_t wanted = *capacity ? *capacity * 2 : 16;
	void *grown;

	if (count < *capacity)
		return 0;
	grown = realloc(*array, wanted * element_bytes);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*capacity = wanted;
	return 0;
}

static int grow_list(struct hidden *hidden)
{
	int result = hidden_targets_grow(&hidden->targets);

	return result ? result
		      : grow((void **)&hidden->list, hidden->count, &hidden->capacity,
			     sizeof(*hidden->list));
}

static int grow_chunks(struct hidden *hidden)
{
	return grow((void **)&hidden->lengths, hidden->chunks, &hidden->chunks_capacity,
		    sizeof(*hidden->lengths));
}

static void insert(struct hidden *hidden, const struct hidden_interval *interval)
{
	uint32_t at = position(hidden, interval->partition, interval->identifier, interval->at);

	memmove(&hidden->list[at + 1], &hidden->list[at], (hidden->count - at) * sizeof(*interval));
	hidden->list[at] = *interval;
	hidden->count++;
	hidden_targets_add(&hidden->targets, interval);
}

/* Takes some out of the list, given in its order. They are no longer on record. */
static void take_out(struct hidden *hidden, const struct hidden_interval *dropped, uint32_t count)
{
	uint32_t from, kept;

	from = kept = position(hidden, dropped->partition, dropped->identifier, dropped->at) - 1;
	for (uint32_t taken = 0; taken < count; from++)
		if (compare(&hidden->list[from], &dropped[taken]) != 0) {
			hidden->list[kept++] = hidden->list[from];
		} else {
			hidden->lengths[dropped[taken].chunk] -= hidden_bytes(&dropped[taken]);
			hidden_targets_mark(&hidden->targets, &dropped[taken]);
			taken++;
		}
	hidden_targets_take_out(&hidden->targets);
	memmove(&hidden->list[kept], &hidden->list[from],
		(hidden->count - from) * sizeof(*dropped));
	hidden->count -= count;
}

void hidden_undo(struct hidden *hidden, uint64_t at)
{
	uint32_t kept = 0;

	if (!at || hidden->added_by != at)
		return;
	for (uint32_t from = 0; from < hidden->count; from++) {
		const struct hidden_interval *interval = &hidden->list[from];

		if (interval->at != at) {
			hidden->list[kept++] = *interval;
			continue;
		}
		hidden->lengths[interval->chunk] -= hidden_bytes(interval);
		hidden_targets_mark(&hidden->targets, interval);
	}
	hidden_targets_take_out(&hidden->targets);
	hidden->count = kept;
	hidden->chunks = hidden->chunks_before;
	hidden->added_by = 0;
}

static int take(void *context, const struct hidden_interval *interval)
{
	struct hidden *hidden = context;
	int result = grow_list(hidden);

	if (!result)
		hidden->list[hidden->count++] = *interval;
	return result;
}

/* Of a chunk that is lost. All others have a head. */
#define LENGTH_LOST 0

int hidden_load(struct engine *engine, uint32_t chunks)
{
	struct hidden *hidden = &engine->past->hidden;
	bool may_lack = engine->options.records.recover_without_nvram;
	int result = 0;

	hidden_free(hidden);
	hidden->asked = (struct record_hidden){ .context = hidden, .is_hidden = is_hidden };
	for (uint32_t chunk = 0; !result && chunk < chunks; chunk++) {
		uint32_t length;

		result = hidden_chunk_load(engine->store, chunk, take, hidden, &length);
		if (result == -EBADMSG && may_lack) {
			result = 0;
			length = LENGTH_LOST;
		}
		if (!result)
			result = grow_chunks(hidden);
		if (!result)
			hidden->lengths[hidden->chunks++] = (uint16_t)length;
	}
	if (hidden->count)
		qsort(hidden->list, hidden->count, sizeof(*hidden->list), compare_entries);
	return result ? result : hidden_targets_load(&hidden->targets, hidden->list, hidden->count);
}

/* An aside_work. */
static int put_lost(struct engine_txn *txn, struct partition *root, void *context)
{
	struct hidden *hidden = context;
	int result = 0;

	(void)root;
	for (uint32_t chunk = 0; !result && chunk < hidden->chunks; chunk++)
		if (hidden->lengths[chunk] == LENGTH_LOST)
			result = hidden_chunk_empty(&txn->writer, chunk);
	return result;
}

void hidden_mend(struct engine *engine)
{
	struct hidden *hidden = &engine->past->hidden;
	uint32_t lost = 0;
	int result;

	for (uint32_t chunk = 0; chunk < hidden->chunks; chunk++)
		lost += hidden->lengths[chunk] == LENGTH_LOST;
	if (!lost)
		return;
	result = engine_aside(engine, put_lost, hidden);
	for (uint32_t chunk = 0; chunk < hidden->chunks; chunk++)
		if (hidden->lengths[chunk] == LENGTH_LOST)
			hidden->lengths[chunk] = result ? HIDDEN_CHUNK_BYTES
							: HIDDEN_CHUNK_HEAD_BYTES;
	log_line(LOG_LEVEL_WARNING,
		 "%s: %u of %u parts of the list of rollbacks are lost with the NVRAM: what they "
		 "hid is there again",
		 engine->store->device, lost, hidden->chunks);
}

void hidden_free(struct hidden *hidden)
{
	free(hidden->list);
	free(hidden->lengths);
	hidden_targets_free(&hidden->targets);
	*hidden = (struct hidden){ 0 };
}

/* ---- changes ---- */

/*
 * The first limit of hidden.h: a partition may have as many intervals as are still free, and
 * ENGINE_HIDDEN_OWN in any case. The same holds for all objects of a partition together.
 */
static bool has_space(const struct hidden *hidden, const struct hidden_interval *interval)
{
	uint32_t free = ENGINE_HIDDEN_MAX - (uint32_t)min_u64(hidden->count, ENGINE_HIDDEN_MAX);
	uint32_t own;

	hidden_range(hidden, interval->partition, interval->identifier ? 1 : 0,
		     interval->identifier ? UINT64_MAX : 0, &own);
	return own < max_u64(free, ENGINE_HIDDEN_OWN);
}

/* The second limit. Objects have their own: rollback_object.c puts the data once more instead. */
static bool is_too_deep(const struct hidden *hidden, const struct hidden_interval *interval)
{
	return !interval->identifier && hidden_steps(hidden, interval->partition, 0, interval->to,
						     ENGINE_HIDDEN_STEPS) >= ENGINE_HIDDEN_STEPS;
}

bool hidden_is_beyond(struct hidden *hidden, const struct hidden_interval *interval)
{
	bool has = has_space(hidden, interval);

	hidden->is_short |= !has;
	return !has || is_too_deep(hidden, interval);
}

int hidden_add(struct engine_txn *txn, struct hidden_interval interval)
{
	return hidden_is_beyond(&txn->engine->past->hidden, &interval)
		       ? -EFBIG
		       : hidden_add_beside(txn, interval);
}

/* Puts it into the first chunk with space for it, or into a new one. */
static int put(struct engine_txn *txn, struct hidden_interval *interval)
{
	struct hidden *hidden = &txn->engine->past->hidden;
	uint32_t bytes = hidden_bytes(interval), chunk = 0;
	bool is_new;
	int result;

	while (chunk < hidden->chunks && hidden->lengths[chunk] + bytes > HIDDEN_CHUNK_BYTES)
		chunk++;
	interval->chunk = chunk;
	is_new = chunk == hidden->chunks;
	result = is_new ? grow_chunks(hidden) : hidden_chunk_add(&txn->writer, interval);
	if (is_new && !result)
		result = hidden_chunk_begin(&txn->writer, interval);
	if (result)
		return result;
	if (is_new)
		hidden->lengths[hidden->chunks++] = HIDDEN_CHUNK_HEAD_BYTES;
	hidden->lengths[chunk] += bytes;
	return 0;
}

int hidden_add_beside(struct engine_txn *txn, struct hidden_interval interval)
{
	struct hidden *hidden = &txn->engine->past->hidden;
	int result = grow_list(hidden);

	if (result)
		return result;
	interval.at = txn->sequence;
	interval.is_followed = false;
	if (hidden->added_by != txn->sequence) {
		hidden->added_by = txn->sequence;
		hidden->chunks_before = hidden->chunks;
	}
	result = put(txn, &interval);
	if (!result)
		insert(hidden, &interval);
	return result;
}

int hidden_follow(struct engine_txn *txn)
{
	struct hidden *hidden = &txn->engine->past->hidden;
	int result = 0;

	for (uint32_t at = 0; !result && at < hidden->count; at++)
		if (hidden->list[at].at == txn->sequence && hidden->list[at].identifier) {
			hidden->list[at].is_followed = true;
			result = hidden_chunk_change(&txn->writer, &hidden->list[at]);
		}
	return result;
}

struct dropping {
	const struct hidden_interval *list;
	uint32_t count;
};

static int drop(struct engine_txn *txn, struct partition *root, void *context)
{
	const struct dropping *dropping = context;
	int result = 0;

	(void)root;
	for (uint32_t at = 0; !result && at < dropping->count; at++)
		result = hidden_chunk_remove(&txn->writer, &dropping->list[at]);
	return result;
}

int hidden_drop(struct engine *engine, const struct hidden_interval *dropped, uint32_t count)
{
	struct dropping dropping = { .list = dropped, .count = count };
	int result = count ? engine_aside(engine, drop, &dropping) : 0;

	if (result || !count)
		return result;
	take_out(&engine->past->hidden, dropped, count);
	engine->past->hidden.is_short = false;
	return 0;
}

int hidden_drop_partition(struct engine *engine, uint16_t partition)
{
	struct hidden_interval some[DROPPED_AT_ONCE];
	uint32_t count = 1;
	int result = 0;

	while (!result && count) {
		uint32_t first =
			hidden_range(&engine->past->hidden, partition, 0, UINT64_MAX, &count);

		count = (uint32_t)min_u64(count, DROPPED_AT_ONCE);
		if (count)
			memcpy(some, &engine->past->hidden.list[first], count * sizeof(*some));
		result = hidden_drop(engine, some, count);
	}
	return result;
}
