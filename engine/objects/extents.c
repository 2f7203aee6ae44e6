/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Keeps the sorted list of runs of pieces that hold data. */
#include "engine/objects/extents.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "engine/engine.h"

static uint64_t end_of(const struct extent *extent)
{
	return (uint64_t)extent->first + extent->count;
}

/* Index of the first extent that ends behind `piece`; extents->count when there is none. */
static uint32_t position(const struct extents *extents, uint64_t piece)
{
	uint32_t low = 0, high = extents->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (end_of(&extents->list[middle]) > piece)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void changed(struct extents *extents, uint32_t index)
{
	if (index < extents->changed_from)
		extents->changed_from = index;
}

static void insert(struct extents *extents, uint32_t index, struct extent extent)
{
	assert(extents->count < extents->capacity && index <= extents->count);
	memmove(&extents->list[index + 1], &extents->list[index],
		(extents->count - index) * sizeof(extent));
	extents->list[index] = extent;
	extents->count++;
	changed(extents, index);
}

static void erase(struct extents *extents, uint32_t index, uint32_t count)
{
	assert(index + count <= extents->count);
	memmove(&extents->list[index], &extents->list[index + count],
		(extents->count - index - count) * sizeof(*extents->list));
	extents->count -= count;
	changed(extents, index);
}

/*
 * Joins extents `index` and `index` + 1 if they touch and one min_sequence can serve both. It may
 * not be newer than any live record, so it is the lower of the two; that is right for the gaps
 * inside a loose extent only if it is that extent's own or newer than everything voided.
 */
static void join_if_allowed(struct extents *extents, uint32_t index, uint64_t void_sequence)
{
	struct extent *left = &extents->list[index], *right = left + 1;
	uint64_t min_sequence;

	if (index + 1 >= extents->count || end_of(left) != right->first)
		return;
	min_sequence = min_u64(left->min_sequence, right->min_sequence);
	if (min_sequence <= void_sequence &&
	    ((left->loose && left->min_sequence != min_sequence) ||
	     (right->loose && right->min_sequence != min_sequence)))
		return;
	left->count += right->count;
	left->min_sequence = min_sequence;
	left->loose |= right->loose;
	erase(extents, index + 1, 1);
	changed(extents, index);
}

void extents_free(struct extents *extents)
{
	free(extents->list);
	*extents = (struct extents){ 0 };
}

int extents_reserve(struct extents *extents, uint32_t more)
{
	uint32_t capacity = extents->capacity ? extents->capacity : 2;
	struct extent *list;

	if (extents->count + more <= extents->capacity)
		return 0;
	while (capacity < extents->count + more)
		capacity *= 2;
	list = realloc(extents->list, capacity * sizeof(*list));
	if (!list)
		return -ENOMEM;
	extents->list = list;
	extents->capacity = capacity;
	return 0;
}

void extents_copy(struct extents *extents, const struct extents *from)
{
	assert(from->count <= extents->capacity);
	if (from->count)
		memcpy(extents->list, from->list, from->count * sizeof(*from->list));
	extents->count = from->count;
	extents->pieces = from->pieces;
	extents->changed_from = 0;
}

const struct extent *extents_find(const struct extents *extents, uint32_t piece)
{
	uint32_t index = position(extents, piece);

	if (index == extents->count || extents->list[index].first > piece)
		return NULL;
	return &extents->list[index];
}

uint32_t extents_next_piece(const struct extents *extents, uint64_t piece)
{
	uint32_t index = position(extents, piece);

	if (index == extents->count)
		return EXTENTS_NO_PIECE;
	return (uint32_t)max_u64(extents->list[index].first, piece);
}

uint64_t extents_count_from(const struct extents *extents, uint64_t piece)
{
	uint64_t count = 0;

	for (uint32_t index = position(extents, piece); index < extents->count; index++) {
		const struct extent *extent = &extents->list[index];

		count += end_of(extent) - max_u64(extent->first, piece);
	}
	return count;
}

void extents_add(struct extents *extents, uint32_t piece, uint64_t void_sequence)
{
	uint32_t index = position(extents, piece);
	struct extent *next = &extents->list[index];

	if (index < extents->count && next->first <= piece)
		return;
	extents->pieces++;
	if (index > 0 && end_of(next - 1) == piece) {
		/* The new record is newer than any min_sequence, so it may join any extent. */
		next[-1].count++;
		changed(extents, index - 1);
		join_if_allowed(extents, index - 1, void_sequence);
	} else if (index < extents->count && next->first == piece + 1) {
		next->first--;
		next->count++;
		changed(extents, index);
	} else {
		insert(extents, index,
		       (struct extent){
			       .min_sequence = void_sequence + 1, .first = piece, .count = 1 });
	}
}

void extents_remove(struct extents *extents, uint64_t first, uint64_t end)
{
	uint32_t index = position(extents, first), last;
	struct extent *extent;

	if (first >= end || index == extents->count || extents->list[index].first >= end)
		return;
	extent = &extents->list[index];
	if (extent->first < first && end_of(extent) > end) {
		struct extent rest = *extent;

		rest.first = (uint32_t)end;
		rest.count = (uint32_t)(end_of(extent) - end);
		extent->count = (uint32_t)(first - extent->first);
		extents->pieces -= end - first;
		insert(extents, index + 1, rest);
		changed(extents, index);
		return;
	}
	if (extent->first < first) {
		extents->pieces -= end_of(extent) - first;
		extent->count = (uint32_t)(first - extent->first);
		changed(extents, index);
		index++;
	}
	for (last = index; last < extents->count && end_of(&extents->list[last]) <= end; last++)
		extents->pieces -= extents->list[last].count;
	erase(extents, index, last - index);
	extent = &extents->list[index];
	if (index < extents->count && extent->first < end) {
		uint32_t cut = (uint32_t)(end - extent->first);

		extent->first += cut;
		extent->count -= cut;
		extents->pieces -= cut;
	}
}

static uint64_t pieces_to_put(const struct extent *extent, uint64_t void_sequence)
{
	return extent->min_sequence > void_sequence ? 0 : extent->count;
}

uint32_t extents_cheapest_pair(const struct extents *extents, uint64_t void_sequence)
{
	uint64_t best_cost = UINT64_MAX, best_gap = UINT64_MAX;
	uint32_t best = 0;

	assert(extents->count >= 2);
	for (uint32_t index = 0; index + 1 < extents->count; index++) {
		const struct extent *left = &extents->list[index], *right = left + 1;
		uint64_t cost =
			pieces_to_put(left, void_sequence) + pieces_to_put(right, void_sequence);
		uint64_t gap = right->first - end_of(left);

		if (cost < best_cost || (cost == best_cost && gap < best_gap)) {
			best_cost = cost;
			best_gap = gap;
			best = index;
		}
	}
	return best;
}

void extents_bridge(struct extents *extents, uint32_t index, uint64_t void_sequence)
{
	struct extent *left = &extents->list[index], *right = left + 1;

	assert(index + 1 < extents->count);
	extents->pieces += right->first - end_of(left);
	left->loose |= right->loose || right->first != end_of(left);
	left->count = (uint32_t)(end_of(right) - left->first);
	left->min_sequence = void_sequence + 1;
	erase(extents, index + 1, 1);
	changed(extents, index);
}

void extents_encode(const struct extents *extents, uint32_t first, uint32_t count, uint8_t *to)
{
	assert(first + count <= extents->count);
	for (uint32_t index = first; index < first + count; index++, to += EXTENT_BYTES) {
		const struct extent *extent = &extents->list[index];

		put_le32(to, extent->first);
		put_le32(to + 4, (extent->count - 1) | (extent->loose ? EXTENT_LOOSE : 0));
		put_le64(to + 8, extent->min_sequence);
	}
}

int extents_decode(struct extents *extents, const uint8_t *from, uint32_t count)
{
	uint64_t end = 0;
	int result;

	if (count > EXTENTS_MAX)
		return -EBADMSG;
	extents->count = 0;
	extents->pieces = 0;
	result = extents_reserve(extents, count);
	if (result)
		return result;
	for (uint32_t index = 0; index < count; index++, from += EXTENT_BYTES) {
		uint32_t length = get_le32(from + 4);
		struct extent extent = {
			.first = get_le32(from),
			.count = (length & ~EXTENT_LOOSE) + 1,
			.min_sequence = get_le64(from + 8),
			.loose = length & EXTENT_LOOSE,
		};

		if (extent.first < end || end_of(&extent) > ENGINE_PIECES_MAX)
			return -EBADMSG;
		end = end_of(&extent);
		extents->list[index] = extent;
		extents->pieces += extent.count;
		extents->count++;
	}
	extents->changed_from = count;
	return 0;
}
