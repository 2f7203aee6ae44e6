/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Keeps the rollbacks of partitions and the device, in memory and on record. */
#include "engine/history/timeline.h"

#include <stdlib.h>

#include "common/bytes.h"
#include "engine/history/chunked.h"
#include "engine/objects/objects.h"

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

/*
 * Goes on from `bound` as of the number that the last rollback before it went back to. False: there
 * is none.
 */
static bool step_back(const struct timeline *timeline, const struct record_key *key, uint64_t bound,
		      uint64_t *at, uint64_t *to)
{
	const struct rollback *rollback = timeline_last(timeline, key->partition, bound);
	const struct object_rollback *object = NULL;

	if (timeline->objects.count && key_is_data(key))
		object = object_rollbacks_last(&timeline->objects, key, bound);
	if (!rollback && !object)
		return false;
	/* One of both may only be of the same command if the object's came behind the other. */
	if (object && (!rollback || object->at >= rollback->at)) {
		*at = object->at;
		*to = object->to;
	} else {
		*at = rollback->at;
		*to = rollback->to;
	}
	return true;
}

static bool is_hidden(void *context, const struct record_key *key, uint64_t sequence,
		      uint64_t bound)
{
	const struct timeline *timeline = context;
	uint64_t at, to;

	if ((!timeline->count && !timeline->objects.count) || key_is_timeless(key))
		return false;
	/* Each step goes to an earlier rollback. */
	while (step_back(timeline, key, bound, &at, &to) && sequence < at) {
		if (sequence > to)
			return true;
		bound = to;
	}
	return false;
}

uint64_t timeline_next(const struct timeline *timeline, uint64_t bound)
{
	/* Those of the device come first, in order. */
	uint32_t index = position(timeline, RECORD_ROOT_INDEX, bound);

	return index < timeline->count && timeline->list[index].scope == RECORD_ROOT_INDEX
		       ? timeline->list[index].at
		       : RECORD_NEWEST;
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

static void take_out_one(struct timeline *timeline, const struct rollback *rollback)
{
	uint32_t index = position(timeline, rollback->scope, rollback->at) - 1;

	timeline->count--;
	memmove(&timeline->list[index], &timeline->list[index + 1],
		(timeline->count - index) * sizeof(*rollback));
}

static int by_scope_and_at(const void *a, const void *b)
{
	const struct rollback *first = a, *second = b;

	if (first->scope != second->scope)
		return first->scope < second->scope ? -1 : 1;
	return (first->at > second->at) - (first->at < second->at);
}

/* ---- records ---- */

static const struct chunked table = { RECORD_ID_ROLLBACKS, ROLLBACKS_CHUNK, ROLLBACK_BYTES };

static int take(void *context, uint32_t number, const uint8_t *entry)
{
	struct timeline *timeline = context;
	int result = make_room(timeline);

	if (result)
		return result;
	timeline->list[timeline->count++] = (struct rollback){
		.scope = get_le16(entry),
		.at = get_le48(entry + 2),
		.to = get_le48(entry + 8),
		.number = number,
	};
	return 0;
}

int timeline_load(struct engine *engine, uint32_t count, uint32_t of_objects)
{
	struct timeline *timeline = &engine->timeline;
	int result;

	timeline->asked = (struct record_timeline){ .context = timeline, .is_hidden = is_hidden };
	timeline->count = 0;
	timeline->replaced_by = 0;
	result = chunked_load(engine->store, &table, count, take, timeline);
	if (timeline->count)
		qsort(timeline->list, timeline->count, sizeof(*timeline->list), by_scope_and_at);
	return result ? result
		      : object_rollbacks_load(&timeline->objects, engine->store, of_objects);
}

void timeline_free(struct timeline *timeline)
{
	free(timeline->list);
	object_rollbacks_free(&timeline->objects);
	*timeline = (struct timeline){ 0 };
}

int timeline_add(struct engine_txn *txn, struct rollback rollback, const struct rollback *replaced)
{
	struct timeline *timeline = &txn->engine->timeline;
	uint8_t entry[ROLLBACK_BYTES];
	int result;

	put_le16(entry, rollback.scope);
	put_le48(entry + 2, rollback.at);
	put_le48(entry + 8, rollback.to);
	result = chunked_put(&txn->writer, &table, rollback.number, replaced, entry);
	if (!result)
		result = make_room(timeline);
	if (result)
		return result;
	timeline->replaced_by = 0;
	if (replaced) {
		timeline->replaced = *replaced;
		timeline->replaced_by = rollback.at;
		take_out_one(timeline, replaced);
	}
	insert(timeline, rollback);
	return 0;
}

void timeline_undo(struct timeline *timeline, uint64_t at)
{
	object_rollbacks_undo(&timeline->objects, at);
	take_out(timeline, at);
	if (timeline->replaced_by == at)
		insert(timeline, timeline->replaced);
	timeline->replaced_by = 0;
}
