/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Internal versions: a fixed number of consecutive read-only tables of a row. A bound on sequence
 * numbers points at the newest one that can hold something so old, found by binary search, so that
 * reading an old version does not test the filters of what came later.
 *
 * The floor of an internal version is the lowest sequence number in it or in a newer one. Merge
 * moves old records to new segments, so the lowest number of a version alone need not rise from one
 * to the next; floors do. Likewise its ceiling is the highest number in it or in an older one:
 * nothing that is put behind a number is in a version with a ceiling up to it.
 */
#include <stdlib.h>

#include "engine/muninn/index/table_bounds.h"

/* The lowest and the highest number in a table. */
static void sequences_of(const struct table *table, uint64_t *first, uint64_t *last)
{
	*first = RECORD_NEWEST;
	*last = 0;

	for (uint64_t live = table_live(table); live; live &= live - 1) {
		struct sealed_segment facts;

		table_read_column(table, (uint32_t)__builtin_ctzll(live), &facts);
		*first = min_u64(*first, facts.first_sequence);
		*last = max_u64(*last, facts.last_sequence);
	}
}

void bounds_refresh(struct table_bounds *bounds, const struct table *tables, uint32_t table_count,
		    uint32_t tables_each)
{
	struct internal_version *versions = NULL;
	uint32_t count = 0;

	if (table_count)
		versions = realloc(bounds->versions, table_count * sizeof(*versions));
	if (!versions) {
		/* No memory, or no tables: every search begins with the newest one. */
		free(bounds->versions);
		bounds->versions = NULL;
		bounds->count = 0;
		return;
	}
	bounds->versions = versions;
	for (uint32_t n = 0; n < table_count; n++) {
		uint32_t number = table_index(&tables[n]) / tables_each;
		uint64_t first, last;

		sequences_of(&tables[n], &first, &last);
		if (count)
			last = max_u64(last, versions[count - 1].ceiling);
		if (count == 0 || versions[count - 1].number != number)
			versions[count++] =
				(struct internal_version){ .number = number, .floor = first };
		versions[count - 1].floor = min_u64(versions[count - 1].floor, first);
		versions[count - 1].ceiling = last;
		versions[count - 1].tables_end = n + 1;
	}
	for (uint32_t n = count - 1; n-- > 0;)
		versions[n].floor = min_u64(versions[n].floor, versions[n + 1].floor);
	bounds->count = count;
}

uint32_t bounds_find(const struct table_bounds *bounds, uint32_t table_count, uint64_t bound)
{
	uint32_t low = 0, high = bounds->count;

	if (!bounds->count)
		return table_count;
	/*
	 * The versions with a floor within the bound come first; wanted is the end of the last one.
	 */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (bounds->versions[middle].floor <= bound)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? bounds->versions[low - 1].tables_end : 0;
}

uint32_t bounds_find_after(const struct table_bounds *bounds, uint64_t after)
{
	uint32_t low = 0, high = bounds->count;

	/* The versions with nothing behind `after`, nor in an older one, come first. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (bounds->versions[middle].ceiling <= after)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? bounds->versions[low - 1].tables_end : 0;
}
