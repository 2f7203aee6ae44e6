/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
#include "engine/timeline.h"

#include <stdlib.h>

#include "common/bytes.h"
#include "engine/objects.h"

/* ---- what is hidden ---- */

/* The number of rollbacks that come before (scope, at] in order. */
static uint32_t position(const struct timeline *timeline, uint16_t scope, uint64_t at)
{
	uint32_t low = 0, high = timeline->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct rollback *rollback = &timeline->list[middle];

		if (rollback->scope < scope || (rollback->scope == scope && rollback->at <= at))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The last rollback of a scope at or before `bound`, or NULL. */
static const struct rollback *last_of(const struct timeline *timeline, uint16_t scope,
				      uint64_t bound)
{
	uint32_t index = position(timeline, scope, bound);

	if (index == 0 || timeline->list[index - 1].scope != scope)
		return NULL;
	return &timeline->list[index - 1];
}

const struct rollback *timeline_last(const struct timeline *timeline, uint16_t partition,
				     uint64_t bound)
{
	const struct rollback *device = last_of(timeline, RECORD_ROOT_INDEX, bound);
	const struct rollback *own =
		partition == RECORD_ROOT_INDEX ? NULL : last_of(timeline, partition, bound);

	if (!own || (device && device->at > own->at))
		return device;
	return own;
}

bool timeline_hides(const struct timeline *timeline, uint16_t partition, uint64_t sequence,
		    uint64_t bound)
{
	/* Each step goes to an earlier rollback. */
	while (timeline->count) {
		const struct rollback *rollback = timeline_last(timeline, partition, bound);

		if (!rollback || sequence >= rollback->at)
			return false;
		if (sequence > rollback->to)
			return true;
		bound = rollback->to;
	}
	return false;
}

static bool is_hidden(void *context, const struct record_key *key, uint64_t sequence,
		      uint64_t bound)
{
	const struct timeline *timeline = context;

	return timeline->count && !record_is_timeless(key) &&
	       timeline_hides(timeline, key->partition, sequence, bound);
}

uint64_t timeline_vanished(const struct timeline *timeline, uint64_t sequence)
{
	uint64_t last = 0;

	/* Those of the device come first, in order. */
	for (uint32_t index = 0;
	     index < timeline->count && timeline->list[index].scope == RECORD_ROOT_INDEX; index++)
		if (timeline->list[index].to < sequence && sequence < timeline->list[index].at)
			last = timeline->list[index].at;
	return last;
}

uint32_t timeline_of(const struct timeline *timeline, uint16_t scope, uint32_t *count)
{
	uint32_t first = scope ? position(timeline, scope - 1, UINT64_MAX) : 0;

	*count = position(timeline, scope, UINT64_MAX) - first;
	return first;
}

uint32_t timeline_own(const struct timeline *timeline, uint16_t scope, uint64_t since)
{
	uint32_t count, first = timeline_of(timeline, scope, &count), own = 0;

	for (uint32_t at = first + count; at > first && timeline->list[at - 1].at >= since; at--)
		own++;
	return own;
}

uint32_t timeline_count(const struct timeline *timeline, uint16_t partition, uint64_t since)
{
	uint32_t own = partition == RECORD_ROOT_INDEX ? 0
						      : timeline_own(timeline, partition, since);

	return own + timeline_own(timeline, RECORD_ROOT_INDEX, 0);
}

/* ---- the list ---- */

static int make_room(struct timeline *timeline)
{
	uint32_t capacity = timeline->capacity ? timeline->capacity * 2 : 16;
	struct rollback *list;

	if (timeline->count < timeline->capacity)
		return 0;
	list = realloc(timeline->list, capacity * sizeof(*list));
	if (!list)
		return -ENOMEM;
	timeline->list = list;
	timeline->capacity = capacity;
	return 0;
}

/* There is room. */
static void insert(struct timeline *timeline, struct rollback rollback)
{
	uint32_t index = position(timeline, rollback.scope, rollback.at);

	memmove(&timeline->list[index + 1], &timeline->list[index],
		(timeline->count - index) * sizeof(rollback));
	timeline->list[index] = rollback;
	timeline->count++;
}

/* Takes out all that were at one sequence number. */
static void take_out(struct timeline *timeline, uint64_t at)
{
	uint32_t kept = 0;

	for (uint32_t index = 0; index < timeline->count; index++)
		if (timeline->list[index].at != at)
			timeline->list[kept++] = timeline->list[index];
	timeline->count = kept;
}

static int by_scope_and_at(const void *a, const void *b)
{
	const struct rollback *first = a, *second = b;

	if (first->scope != second->scope)
		return first->scope < second->scope ? -1 : 1;
	return (first->at > second->at) - (first->at < second->at);
}

static struct record_key chunk_key(uint32_t chunk)
{
	return (struct record_key){ .identifier = RECORD_ID_ROLLBACKS, .piece = chunk };
}

int timeline_load(struct engine *engine, uint32_t count)
{
	struct timeline *timeline = &engine->timeline;
	uint8_t record[ROLLBACK_CHUNK_ENTRIES * ROLLBACK_BYTES];

	timeline->asked = (struct record_timeline){ .context = timeline, .is_hidden = is_hidden };
	timeline->count = 0;
	timeline->replaced_by = 0;
	for (uint32_t number = 0; number < count; number++) {
		uint32_t index = number % ROLLBACK_CHUNK_ENTRIES;
		const uint8_t *at = record + (size_t)index * ROLLBACK_BYTES;
		struct record_info info = { .length = sizeof(record) };
		int result = 0;

		if (index == 0)
			result = record_get(engine->store,
					    chunk_key(number / ROLLBACK_CHUNK_ENTRIES),
					    RECORD_NEWEST, record, sizeof(record), &info);
		if (result == -ENOENT ||
		    (!result && index == 0 &&
		     info.length <
			     min_u64(count - number, ROLLBACK_CHUNK_ENTRIES) * ROLLBACK_BYTES))
			result = -EBADMSG;
		if (!result)
			result = make_room(timeline);
		if (result)
			return result;
		timeline->list[timeline->count++] = (struct rollback){
			.scope = get_le16(at),
			.at = get_le48(at + 2),
			.to = get_le48(at + 8),
			.number = number,
		};
	}
	if (count)
		qsort(timeline->list, count, sizeof(*timeline->list), by_scope_and_at);
	return 0;
}

void timeline_free(struct timeline *timeline)
{
	free(timeline->list);
	*timeline = (struct timeline){ 0 };
}

int timeline_add(struct engine_txn *txn, struct rollback rollback, const struct rollback *replaced)
{
	struct timeline *timeline = &txn->engine->timeline;
	uint32_t chunk = rollback.number / ROLLBACK_CHUNK_ENTRIES;
	uint32_t at = rollback.number % ROLLBACK_CHUNK_ENTRIES * ROLLBACK_BYTES;
	uint8_t record[ROLLBACK_CHUNK_ENTRIES * ROLLBACK_BYTES];
	struct record_info info = { 0 };
	bool first = at == 0 && !replaced;
	int result = 0;

	if (!first)
		result = record_get(txn->engine->store, chunk_key(chunk), RECORD_NEWEST, record,
				    sizeof(record), &info);
	if (result == -ENOENT ||
	    (!result && (replaced ? info.length < at + ROLLBACK_BYTES : info.length != at)))
		result = -EBADMSG;
	if (result)
		return result;
	put_le16(record + at, rollback.scope);
	put_le48(record + at + 2, rollback.at);
	put_le48(record + at + 8, rollback.to);
	result = record_put(&txn->writer, chunk_key(chunk), 0, RECORD_ABSORB, record,
			    replaced ? info.length : at + ROLLBACK_BYTES);
	if (!result)
		result = make_room(timeline);
	if (result)
		return result;
	timeline->replaced_by = 0;
	if (replaced) {
		timeline->replaced = *replaced;
		timeline->replaced_by = rollback.at;
		take_out(timeline, replaced->at);
	}
	insert(timeline, rollback);
	return 0;
}

void timeline_undo(struct timeline *timeline, uint64_t at)
{
	take_out(timeline, at);
	if (timeline->replaced_by == at)
		insert(timeline, timeline->replaced);
	timeline->replaced_by = 0;
}
