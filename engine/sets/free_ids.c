/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Chooses IDs for objects that are created without a requested one. */
#include "engine/sets/free_ids.h"

#include <errno.h>

#include "common/bytes.h"

/* The highest taken ID; that before the lowest one: none. */
static int find_highest(const struct free_ids *ids, uint64_t *highest)
{
	*highest = ids->lowest - 1;
	for (unsigned which = 0; which < ids->count_of_sets; which++) {
		uint64_t element;
		int result = idset_last(&ids->sets[which], &element);

		if (result && result != -ENOENT)
			return result;
		if (!result)
			*highest = max_u64(*highest, element >> ids->shift);
	}
	return 0;
}

/*
 * The free IDs *first..*last around `id`, or if that is taken those right below it; *first > *last:
 * none.
 */
static int find_gap(const struct free_ids *ids, uint64_t id, uint64_t *first, uint64_t *last)
{
	*first = ids->lowest;
	*last = ids->highest;
	for (unsigned which = 0; which < ids->count_of_sets; which++) {
		const struct idset *set = &ids->sets[which];
		uint64_t element, next;
		size_t count;
		bool more;
		int result = idset_list(set, id << ids->shift, &element, 1, &count, &more, &next);

		if (!result && count)
			*last = min_u64(*last, (element >> ids->shift) - 1);
		if (!result)
			result = idset_before(set, id << ids->shift, &element);
		if (result && result != -ENOENT)
			return result;
		if (!result)
			*first = max_u64(*first, (element >> ids->shift) + 1);
	}
	return 0;
}

int free_ids_find(const struct free_ids *ids, uint32_t count, uint64_t *first)
{
	uint64_t highest, end;
	int result = find_highest(ids, &highest);

	if (result)
		return result;
	if (highest < ids->highest && ids->highest - highest >= count) {
		*first = highest + 1;
		return 0;
	}
	for (unsigned bit = 0; bit < 64; bit++) {
		uint64_t distance = (UINT64_C(1) << bit) - 1;

		if (distance > ids->highest - ids->lowest)
			break;
		result = find_gap(ids, ids->lowest + distance, first, &end);
		if (result)
			return result;
		if (*first <= end && end - *first >= count - 1)
			return 0;
	}
	return -EFBIG;
}
