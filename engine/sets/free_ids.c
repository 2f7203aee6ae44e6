/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Chooses IDs for objects that are created without a requested one. */
#include "engine/sets/free_ids.h"

#include <errno.h>

#include "common/bytes.h"
#include "engine/engine.h"

struct search {
	const struct idset *sets;
	unsigned count_of_sets, shift;
	uint64_t last;
};

/* The highest taken ID; ENGINE_FIRST_ID - 1: none. */
static int find_highest(const struct search *search, uint64_t *highest)
{
	*highest = ENGINE_FIRST_ID - 1;
	for (unsigned which = 0; which < search->count_of_sets; which++) {
		uint64_t element;
		int result = idset_last(&search->sets[which], &element);

		if (result && result != -ENOENT)
			return result;
		if (!result)
			*highest = max_u64(*highest, element >> search->shift);
	}
	return 0;
}

/*
 * The free IDs *first..*last around `id`, or if that is taken those right below it; *first > *last:
 * none.
 */
static int find_gap(const struct search *search, uint64_t id, uint64_t *first, uint64_t *last)
{
	*first = ENGINE_FIRST_ID;
	*last = search->last;
	for (unsigned which = 0; which < search->count_of_sets; which++) {
		const struct idset *set = &search->sets[which];
		uint64_t element, next;
		size_t count;
		bool more;
		int result =
			idset_list(set, id << search->shift, &element, 1, &count, &more, &next);

		if (!result && count)
			*last = min_u64(*last, (element >> search->shift) - 1);
		if (!result)
			result = idset_before(set, id << search->shift, &element);
		if (result && result != -ENOENT)
			return result;
		if (!result)
			*first = max_u64(*first, (element >> search->shift) + 1);
	}
	return 0;
}

int free_ids_find(const struct idset *sets, unsigned count_of_sets, unsigned shift, uint64_t last,
		  uint32_t count, uint64_t *first)
{
	struct search search = { sets, count_of_sets, shift, last };
	uint64_t highest, end;
	int result = find_highest(&search, &highest);

	if (result)
		return result;
	if (highest < last && last - highest >= count) {
		*first = highest + 1;
		return 0;
	}
	for (unsigned bit = 0; bit < 64; bit++) {
		uint64_t distance = (UINT64_C(1) << bit) - 1;

		if (distance > last - ENGINE_FIRST_ID)
			break;
		result = find_gap(&search, ENGINE_FIRST_ID + distance, first, &end);
		if (result)
			return result;
		if (*first <= end && end - *first >= count - 1)
			return 0;
	}
	return -EFBIG;
}
