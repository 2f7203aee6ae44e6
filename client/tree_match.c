/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Finds the object of a stored tree with which a file of the present directory goes on. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/tree_store.h"

/*
 * How many vanished files with the same length and time are tried, to find one whose object is
 * free.
 */
#define CANDIDATES_MAX 64U

struct matcher {
	const struct manifest *manifest, *old;
	const struct manifest_entry **sorted; /* of `old` */
	size_t sorted_count;
	bool *taken; /* by index in `old`: a file goes on with its object */
	size_t *matches;
};

static size_t index_in(const struct manifest *manifest, const struct manifest_entry *entry)
{
	return (size_t)(entry - manifest->entries);
}

static void take(struct matcher *matcher, size_t index, size_t old)
{
	matcher->taken[old] = true;
	matcher->matches[index] = old;
}

/* ---- by path ---- */

static int compare_paths(const void *a, const void *b)
{
	const struct manifest_entry *const *left = a, *const *right = b;

	return strcmp((*left)->path, (*right)->path);
}

static void match_paths_of(struct matcher *matcher, bool stays)
{
	const struct manifest *old = matcher->old;

	for (size_t i = 0; i < matcher->manifest->count; i++) {
		const struct manifest_entry *entry = &matcher->manifest->entries[i];
		const struct manifest_entry *const *found;
		size_t at;

		if (entry->type != MANIFEST_FILE || entry->stays != stays ||
		    matcher->sorted_count == 0)
			continue;
		found = bsearch(&entry, matcher->sorted, matcher->sorted_count,
				sizeof(*matcher->sorted), compare_paths);
		if (!found)
			continue;
		at = (*found)->type == MANIFEST_HARD_LINK ? (*found)->linked
							  : index_in(old, *found);
		if (!matcher->taken[at])
			take(matcher, i, at);
	}
}

static void match_paths(struct matcher *matcher)
{
	const struct manifest *old = matcher->old;

	for (size_t i = 0; i < old->count; i++)
		if (old->entries[i].type == MANIFEST_FILE ||
		    old->entries[i].type == MANIFEST_HARD_LINK)
			matcher->sorted[matcher->sorted_count++] = &old->entries[i];
	qsort(matcher->sorted, matcher->sorted_count, sizeof(*matcher->sorted), compare_paths);
	/* What stays needs just its object. For a file that can be read a new one will do. */
	match_paths_of(matcher, true);
	match_paths_of(matcher, false);
}

/* ---- by what a rename leaves ---- */

static int compare_content(const void *a, const void *b)
{
	const struct manifest_entry *left = *(const struct manifest_entry *const *)a;
	const struct manifest_entry *right = *(const struct manifest_entry *const *)b;

	if (left->length != right->length)
		return left->length < right->length ? -1 : 1;
	if (left->seconds != right->seconds)
		return left->seconds < right->seconds ? -1 : 1;
	return (left->nanoseconds > right->nanoseconds) - (left->nanoseconds < right->nanoseconds);
}

/* The first one in `sorted` at or behind `entry`. */
static size_t lower_bound(const struct matcher *matcher, const struct manifest_entry *entry)
{
	size_t low = 0, high = matcher->sorted_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_content(&matcher->sorted[middle], &entry) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void match_renamed(struct matcher *matcher)
{
	const struct manifest *old = matcher->old;

	matcher->sorted_count = 0;
	for (size_t i = 0; i < old->count; i++)
		if (old->entries[i].type == MANIFEST_FILE && !matcher->taken[i])
			matcher->sorted[matcher->sorted_count++] = &old->entries[i];
	qsort(matcher->sorted, matcher->sorted_count, sizeof(*matcher->sorted), compare_content);
	for (size_t i = 0; i < matcher->manifest->count; i++) {
		const struct manifest_entry *entry = &matcher->manifest->entries[i];
		size_t at, end;

		/* One that was not looked at is what its path says, or nothing. */
		if (entry->type != MANIFEST_FILE || matcher->matches[i] != SIZE_MAX || entry->stays)
			continue;
		at = lower_bound(matcher, entry);
		for (end = at + CANDIDATES_MAX; at < matcher->sorted_count && at < end; at++) {
			size_t candidate = index_in(old, matcher->sorted[at]);

			if (compare_content(&matcher->sorted[at], &entry) != 0)
				break;
			if (!matcher->taken[candidate]) {
				take(matcher, i, candidate);
				break;
			}
		}
	}
}

int tree_match(const struct manifest *manifest, const struct manifest *old, size_t *matches)
{
	struct matcher matcher = {
		.manifest = manifest,
		.old = old,
		.sorted = calloc(old->count + 1, sizeof(*matcher.sorted)),
		.taken = calloc(old->count + 1, sizeof(*matcher.taken)),
		.matches = matches,
	};
	int result = matcher.sorted && matcher.taken ? 0 : -ENOMEM;

	for (size_t i = 0; i < manifest->count; i++)
		matches[i] = SIZE_MAX;
	if (result == 0) {
		match_paths(&matcher);
		match_renamed(&matcher);
	}
	free(matcher.sorted);
	free(matcher.taken);
	return result;
}
