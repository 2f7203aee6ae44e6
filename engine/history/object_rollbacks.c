/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Keeps the rollbacks of single objects, in memory and on record. */
#include "engine/history/object_rollbacks.h"

#include <stdlib.h>

#include "common/bytes.h"
#include "engine/history/chunked.h"
#include "engine/objects/objects.h"

static const struct chunked table = { RECORD_ID_OBJECT_ROLLBACKS, OBJECT_ROLLBACKS_CHUNK,
				      OBJECT_ROLLBACK_BYTES };

static int compare(const struct object_rollback *a, const struct object_rollback *b)
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

/* How many are at `wanted` or before it in order. */
static uint32_t position(const struct object_rollbacks *rollbacks,
			 const struct object_rollback *wanted)
{
	uint32_t low = 0, high = rollbacks->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (compare(&rollbacks->list[middle], wanted) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct object_rollback *object_rollbacks_last(const struct object_rollbacks *rollbacks,
						    const struct record_key *key, uint64_t bound)
{
	const struct object_rollback wanted = { .identifier = key->identifier,
						.partition = key->partition,
						.at = bound };
	const struct object_rollback *last;
	uint32_t behind = position(rollbacks, &wanted);

	if (behind == 0)
		return NULL;
	last = &rollbacks->list[behind - 1];
	return last->partition == key->partition && last->identifier == key->identifier ? last
											: NULL;
}

uint32_t object_rollbacks_steps(const struct object_rollbacks *rollbacks,
				const struct record_key *key, uint64_t bound, uint32_t max)
{
	const struct object_rollback *last;
	uint32_t steps = 0;

	while (steps < max && (last = object_rollbacks_last(rollbacks, key, bound))) {
		bound = last->to;
		steps++;
	}
	return steps;
}

uint32_t object_rollbacks_of(const struct object_rollbacks *rollbacks, uint16_t partition,
			     uint64_t identifier, uint32_t *count)
{
	struct object_rollback wanted = { .identifier = identifier, .partition = partition };
	uint32_t first = position(rollbacks, &wanted);

	if (!identifier)
		wanted.identifier = UINT64_MAX;
	wanted.at = UINT64_MAX;
	*count = position(rollbacks, &wanted) - first;
	return first;
}

/* ---- the list ---- */

static int make_room(struct object_rollbacks *rollbacks)
{
	uint32_t capacity = rollbacks->capacity ? rollbacks->capacity * 2 : 16;
	struct object_rollback *list;

	if (rollbacks->count < rollbacks->capacity)
		return 0;
	list = realloc(rollbacks->list, capacity * sizeof(*list));
	if (!list)
		return -ENOMEM;
	rollbacks->list = list;
	rollbacks->capacity = capacity;
	return 0;
}

/* There is room. */
static void insert(struct object_rollbacks *rollbacks, struct object_rollback rollback)
{
	uint32_t index = position(rollbacks, &rollback);

	memmove(&rollbacks->list[index + 1], &rollbacks->list[index],
		(rollbacks->count - index) * sizeof(rollback));
	rollbacks->list[index] = rollback;
	rollbacks->count++;
}

/*
 * Where the one at a sequence number is, of which a transaction makes at most one; `count`: there
 * is none.
 */
static uint32_t find(const struct object_rollbacks *rollbacks, uint64_t at)
{
	uint32_t index = 0;

	while (index < rollbacks->count && rollbacks->list[index].at != at)
		index++;
	return index;
}

static void take_out(struct object_rollbacks *rollbacks, uint64_t at)
{
	uint32_t index = find(rollbacks, at);

	if (index == rollbacks->count)
		return;
	rollbacks->count--;
	memmove(&rollbacks->list[index], &rollbacks->list[index + 1],
		(rollbacks->count - index) * sizeof(*rollbacks->list));
}

/* ---- records ---- */

static int take(void *context, uint32_t number, const uint8_t *entry)
{
	struct object_rollbacks *rollbacks = context;
	int result = make_room(rollbacks);

	if (result)
		return result;
	rollbacks->list[rollbacks->count++] = (struct object_rollback){
		.partition = get_le16(entry),
		.identifier = get_le64(entry + 2),
		.at = get_le48(entry + 10),
		.to = get_le48(entry + 16),
		.number = number,
	};
	return 0;
}

int object_rollbacks_load(struct object_rollbacks *rollbacks, struct record_store *store,
			  uint32_t count)
{
	int result;

	rollbacks->count = rollbacks->looked = 0;
	rollbacks->replaced_by = 0;
	result = chunked_load(store, &table, count, take, rollbacks);
	if (rollbacks->count)
		qsort(rollbacks->list, rollbacks->count, sizeof(*rollbacks->list), compare_entries);
	return result;
}

void object_rollbacks_free(struct object_rollbacks *rollbacks)
{
	free(rollbacks->list);
	*rollbacks = (struct object_rollbacks){ 0 };
}

int object_rollbacks_add(struct engine_txn *txn, struct object_rollback rollback,
			 const struct object_rollback *replaced)
{
	struct object_rollbacks *rollbacks = &txn->engine->timeline.objects;
	uint8_t entry[OBJECT_ROLLBACK_BYTES];
	int result;

	put_le16(entry, rollback.partition);
	put_le64(entry + 2, rollback.identifier);
	put_le48(entry + 10, rollback.at);
	put_le48(entry + 16, rollback.to);
	result = chunked_put(&txn->writer, &table, rollback.number, replaced, entry);
	if (!result)
		result = make_room(rollbacks);
	if (result)
		return result;
	rollbacks->replaced_by = 0;
	if (replaced) {
		rollbacks->replaced = *replaced;
		rollbacks->replaced_by = rollback.at;
		take_out(rollbacks, replaced->at);
	}
	insert(rollbacks, rollback);
	return 0;
}

void object_rollbacks_undo(struct object_rollbacks *rollbacks, uint64_t at)
{
	take_out(rollbacks, at);
	if (rollbacks->replaced_by == at)
		insert(rollbacks, rollbacks->replaced);
	rollbacks->replaced_by = 0;
}

void object_rollbacks_alone(struct object_rollbacks *rollbacks, uint64_t at)
{
	uint32_t index = find(rollbacks, at);

	if (index < rollbacks->count)
		rollbacks->list[index].alone = true;
}
