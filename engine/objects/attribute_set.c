/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Finds and changes the encoded attributes of one object in memory. */
#include "engine/objects/attribute_set.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "engine/engine.h"

static uint64_t order_of(uint32_t page, uint32_t number)
{
	return (uint64_t)page << 32 | number;
}

static uint64_t order_at(const struct attribute_set *set, uint32_t index)
{
	const uint8_t *entry = set->bytes + set->offsets[index];

	return order_of(get_le32(entry), get_le32(entry + 4));
}

static uint32_t entry_bytes(const struct attribute_set *set, uint32_t index)
{
	return ATTRIBUTE_HEAD_BYTES + get_le16(set->bytes + set->offsets[index] + 8);
}

void attribute_set_free(struct attribute_set *set)
{
	free(set->bytes);
	free(set->offsets);
	*set = (struct attribute_set){ 0 };
}

uint32_t attribute_set_position(const struct attribute_set *set, uint32_t page, uint32_t number)
{
	uint64_t wanted = order_of(page, number);
	uint32_t low = 0, high = set->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (order_at(set, middle) < wanted)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void attribute_set_at(const struct attribute_set *set, uint32_t index, uint32_t *page,
		      uint32_t *number, const uint8_t **value, uint32_t *length)
{
	const uint8_t *entry = set->bytes + set->offsets[index];

	assert(index < set->count);
	*page = get_le32(entry);
	*number = get_le32(entry + 4);
	*length = get_le16(entry + 8);
	*value = entry + ATTRIBUTE_HEAD_BYTES;
}

bool attribute_set_find(const struct attribute_set *set, uint32_t page, uint32_t number,
			uint32_t *index)
{
	*index = attribute_set_position(set, page, number);
	return *index < set->count && order_at(set, *index) == order_of(page, number);
}

static int grow(void **array, uint32_t *capacity, uint32_t wanted, size_t element)
{
	uint32_t larger = *capacity ? *capacity : 64;
	void *moved;

	if (wanted <= *capacity)
		return 0;
	while (larger < wanted)
		larger *= 2;
	moved = realloc(*array, larger * element);
	if (!moved)
		return -ENOMEM;
	*array = moved;
	*capacity = larger;
	return 0;
}

static int reserve(struct attribute_set *set, uint32_t bytes, uint32_t count)
{
	void *array = set->bytes;
	int result = grow(&array, &set->bytes_capacity, bytes, 1);

	set->bytes = array;
	if (result)
		return result;
	array = set->offsets;
	result = grow(&array, &set->offsets_capacity, count, sizeof(*set->offsets));
	set->offsets = array;
	return result;
}

static void changed(struct attribute_set *set, uint32_t from, uint32_t end)
{
	if (set->changed_from >= set->changed_end) {
		set->changed_from = from;
		set->changed_end = end;
		return;
	}
	set->changed_from = from < set->changed_from ? from : set->changed_from;
	set->changed_end = end > set->changed_end ? end : set->changed_end;
}

/*
 * Makes the entry at `index` `to` bytes long instead of `from` (0: none yet) and moves those behind
 * it.
 */
static void resize(struct attribute_set *set, uint32_t index, uint32_t offset, uint32_t from,
		   uint32_t to)
{
	uint32_t behind = from ? index + 1 : index;

	memmove(set->bytes + offset + to, set->bytes + offset + from, set->length - offset - from);
	set->length += to - from;
	if (!from) {
		memmove(&set->offsets[index + 1], &set->offsets[index],
			(set->count - index) * sizeof(*set->offsets));
		set->offsets[index] = offset;
		set->count++;
		behind = index + 1;
	} else if (!to) {
		memmove(&set->offsets[index], &set->offsets[index + 1],
			(set->count - index - 1) * sizeof(*set->offsets));
		set->count--;
		behind = index;
	}
	for (; from != to && behind < set->count; behind++)
		set->offsets[behind] += to - from;
	changed(set, offset, from == to ? offset + to : UINT32_MAX);
}

int attribute_set_change(struct attribute_set *set, uint32_t page, uint32_t number,
			 const void *value, uint32_t length)
{
	uint32_t index, offset, from, to = length ? ATTRIBUTE_HEAD_BYTES + length : 0;
	bool found = attribute_set_find(set, page, number, &index);
	uint64_t count, bytes;
	int result;

	if (length > ENGINE_ATTRIBUTE_BYTES_MAX)
		return -EFBIG;
	if (!found && !length)
		return 0;
	offset = index < set->count ? set->offsets[index] : set->length;
	from = found ? entry_bytes(set, index) : 0;
	count = set->count + (uint64_t)!found;
	bytes = (uint64_t)set->length - from + to;
	if (length && bytes + count * (ATTRIBUTE_OVERHEAD - ATTRIBUTE_HEAD_BYTES) >
			      ENGINE_ATTRIBUTE_SET_BYTES_MAX)
		return -EFBIG;
	result = reserve(set, (uint32_t)bytes, (uint32_t)count);
	if (result)
		return result;
	resize(set, index, offset, from, to);
	if (length) {
		uint8_t *entry = set->bytes + offset;

		put_le32(entry, page);
		put_le32(entry + 4, number);
		put_le16(entry + 8, (uint16_t)length);
		memcpy(entry + ATTRIBUTE_HEAD_BYTES, value, length);
	}
	return 0;
}

int attribute_set_add_all(struct attribute_set *set, const struct attribute_set *from)
{
	int result = 0;

	for (uint32_t index = 0; !result && index < from->count; index++) {
		const uint8_t *value;
		uint32_t page, number, length;

		attribute_set_at(from, index, &page, &number, &value, &length);
		result = attribute_set_change(set, page, number, value, length);
	}
	return result;
}

int attribute_set_decode(struct attribute_set *set, const uint8_t *from, uint32_t length,
			 uint32_t count)
{
	uint32_t offset = 0;
	int result;

	if (length > ENGINE_ATTRIBUTE_SET_BYTES_MAX || count > length / ATTRIBUTE_HEAD_BYTES)
		return -EBADMSG;
	set->count = set->length = 0;
	result = reserve(set, length, count);
	if (result)
		return result;
	if (length)
		memcpy(set->bytes, from, length);
	set->length = length;
	while (set->count < count) {
		uint32_t value_length;

		if (length - offset < ATTRIBUTE_HEAD_BYTES)
			return -EBADMSG;
		value_length = get_le16(set->bytes + offset + 8);
		if (value_length == 0 || value_length > ENGINE_ATTRIBUTE_BYTES_MAX ||
		    value_length > length - offset - ATTRIBUTE_HEAD_BYTES)
			return -EBADMSG;
		set->offsets[set->count++] = offset;
		if (set->count > 1 &&
		    order_at(set, set->count - 2) >= order_at(set, set->count - 1))
			return -EBADMSG;
		offset += ATTRIBUTE_HEAD_BYTES + value_length;
	}
	attribute_set_mark_put(set);
	return offset == length ? 0 : -EBADMSG;
}

void attribute_set_mark_put(struct attribute_set *set)
{
	set->changed_from = set->changed_end = 0;
}
