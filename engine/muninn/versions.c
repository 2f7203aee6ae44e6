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

#include "engine/muninn/store.h"

/* The lowest and the highest number in a table. */
static void sequences_of(const struct table *table, uint64_t *first, uint64_t *last)
{
	*first = RECORD_NEWEST;
	*last = 0;

	for (uint64_t live = table_live(table); live; live &= live - 1) {
		struct table_column facts;

		table_read_column(table, (uint32_t)__builtin_ctzll(live), &facts);
		*first = min_u64(*first, facts.first_sequence);
		*last = max_u64(*last, facts.last_sequence);
	}
}

void versions_refresh(const struct muninn_store *store, struct row *row)
{
	struct internal_version *versions = NULL;
	uint32_t count = 0;

	if (row->complete_count)
		versions = realloc(row->versions, row->complete_count * sizeof(*versions));
	if (!versions) {
		/* No memory, or no tables: every search begins with the newest one. */
		free(row->versions);
		row->versions = NULL;
		row->version_count = 0;
		return;
	}
	row->versions = versions;
	for (uint32_t n = 0; n < row->complete_count; n++) {
		uint32_t number = table_index(&row->complete[n]) / store->version_tables;
		uint64_t first, last;

		sequences_of(&row->complete[n], &first, &last);
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
	row->version_count = count;
}

uint32_t versions_find(const struct row *row, uint64_t bound)
{
	uint32_t low = 0, high = row->version_count;

	if (!row->version_count)
		return row->complete_count;
	/*
	 * The versions with a floor within the bound come first; wanted is the end of the last one.
	 */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (row->versions[middle].floor <= bound)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? row->versions[low - 1].tables_end : 0;
}

uint32_t versions_find_after(const struct row *row, uint64_t after)
{
	uint32_t low = 0, high = row->version_count;

	/* The versions with nothing behind `after`, nor in an older one, come first. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (row->versions[middle].ceiling <= after)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? row->versions[low - 1].tables_end : 0;
}
