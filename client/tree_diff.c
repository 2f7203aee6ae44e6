/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Compares the names, modes, times and links of two trees by their manifests. */
#include "client/tree_diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/tree_private.h"

/* ---- names by object ---- */

static int compare_names(const void *a, const void *b)
{
	const struct tree_name *left = a, *right = b;

	if (left->object != right->object)
		return left->object < right->object ? -1 : 1;
	return strcmp(left->path, right->path);
}

void tree_names_free(struct tree_names *names)
{
	manifest_free(&names->manifest);
	free(names->names);
	*names = (struct tree_names){ 0 };
}

int tree_names_of(struct manifest *manifest, uint64_t manifest_object, struct tree_names *names)
{
	*names = (struct tree_names){ .manifest = *manifest, .manifest_object = manifest_object };
	*manifest = (struct manifest){ 0 };
	names->names = calloc(names->manifest.count + 1, sizeof(*names->names));
	if (!names->names) {
		tree_names_free(names);
		return -ENOMEM;
	}
	for (size_t i = 0; i < names->manifest.count; i++) {
		const struct manifest_entry *entry = &names->manifest.entries[i];
		const struct manifest_entry *file =
			entry->type == MANIFEST_HARD_LINK ? &names->manifest.entries[entry->linked]
							  : entry;

		if (file->type == MANIFEST_FILE)
			names->names[names->count++] =
				(struct tree_name){ file->object, entry->path, file };
	}
	qsort(names->names, names->count, sizeof(*names->names), compare_names);
	return 0;
}

int tree_names_load(struct osd_client *client, struct osd_client_address partition,
		    struct tree_names *names, struct osd_client_error *error)
{
	struct manifest manifest = { 0 };
	struct tree_pointer pointer;
	uint64_t begun_ms;
	bool marked = false;
	int result = tree_read_pointer(client, partition, &pointer, error);

	*names = (struct tree_names){ 0 };
	if (result == 0)
		result = tree_read_update(client, partition, &marked, &begun_ms, error);
	if (result == 0 && marked)
		return outcome_set(error, -EINPROGRESS,
				   "an update of the tree has not been completed");
	if (result == 0)
		result = tree_read_manifest(client, partition, &pointer, &manifest, error);
	if (result == 0 && tree_names_of(&manifest, pointer.object, names) < 0)
		return outcome_set_local(error, -ENOMEM, "names: out of memory");
	return result;
}

/* The place of the first name at or behind an object's. */
static size_t lower_bound(const struct tree_names *names, uint64_t object)
{
	size_t low = 0, high = names->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (names->names[middle].object < object)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct tree_name *tree_names_find(const struct tree_names *names, uint64_t object)
{
	size_t at = lower_bound(names, object);

	return at < names->count && names->names[at].object == object ? &names->names[at] : NULL;
}

static bool same_time(const struct manifest_entry *a, const struct manifest_entry *b)
{
	return a->seconds == b->seconds && a->nanoseconds == b->nanoseconds;
}

bool tree_names_explain(const struct tree_names *from, const struct tree_names *to, uint64_t object)
{
	const struct tree_name *before = tree_names_find(from, object),
			       *after = tree_names_find(to, object);

	if (!before || !after)
		return false;
	return before->file->length != after->file->length ||
	       memcmp(before->file->sha256, after->file->sha256, MANIFEST_SHA256_BYTES) != 0 ||
	       before->file->mode != after->file->mode || !same_time(before->file, after->file) ||
	       strcmp(before->file->path, after->file->path) != 0;
}

/* ---- comparing ---- */

struct comparison {
	const struct tree_names *from, *to;
	tree_each_difference *each;
	void *context;
};

static int tell(const struct comparison *comparison, enum tree_difference_kind kind,
		const struct tree_name *from, const struct tree_name *to)
{
	const struct tree_difference difference = {
		.kind = kind,
		.object = to     ? to->object
			  : from ? from->object
				 : 0,
		.from = from ? from->file : NULL,
		.to = to ? to->file : NULL,
		.from_path = from ? from->path : NULL,
		.to_path = to ? to->path : NULL,
	};

	return comparison->each(comparison->context, &difference);
}

static int tell_status(const struct comparison *comparison, const struct tree_name *from,
		       const struct tree_name *to)
{
	int result = 0;

	if (from->file->mode != to->file->mode)
		result = tell(comparison, TREE_MODE, from, to);
	if (result == 0 && !same_time(from->file, to->file))
		result = tell(comparison, TREE_TIME, from, to);
	if (result == 0 && !manifest_same_owner(from->file, to->file))
		result = tell(comparison, TREE_OWNER, from, to);
	if (result == 0 && !manifest_same_xattrs(from->file, to->file))
		result = tell(comparison, TREE_XATTRS, from, to);
	return result;
}

/* The next name of `list` that `other` does not have, or the end. Both lists are of one object. */
static size_t next_alone(const struct tree_name *list, size_t at, size_t end,
			 const struct tree_name *other, size_t other_count)
{
	while (at < end && bsearch(&list[at], other, other_count, sizeof(*other), compare_names))
		at++;
	return at;
}

/* The names of an object that is in both trees. */
static int compare_names_of(const struct comparison *comparison, const struct tree_name *from,
			    size_t from_count, const struct tree_name *to, size_t to_count)
{
	size_t gone = 0, come = 0;
	int result = tell_status(comparison, &from[0], &to[0]);

	while (result == 0) {
		gone = next_alone(from, gone, from_count, to, to_count);
		come = next_alone(to, come, to_count, from, from_count);
		if (gone == from_count && come == to_count)
			break;
		if (gone < from_count && come < to_count)
			result = tell(comparison, TREE_RENAMED, &from[gone], &to[come]);
		else if (gone < from_count)
			result = tell(comparison, TREE_UNLINKED, &from[gone], &to[0]);
		else
			result = tell(comparison, TREE_LINKED, &from[0], &to[come]);
		gone += gone < from_count;
		come += come < to_count;
	}
	return result;
}

/* All names but the file's own, of an object that only one tree has. */
static int tell_links(const struct comparison *comparison, enum tree_difference_kind kind,
		      const struct tree_name *names, size_t count)
{
	int result = 0;

	for (size_t i = 0; i < count && result == 0; i++) {
		if (names[i].path == names[i].file->path)
			continue;
		result = kind == TREE_LINKED ? tell(comparison, kind, NULL, &names[i])
					     : tell(comparison, kind, &names[i], NULL);
	}
	return result;
}

static size_t count_names(const struct tree_names *names, size_t at)
{
	size_t end = at;

	while (end < names->count && names->names[end].object == names->names[at].object)
		end++;
	return end - at;
}

static int compare_files(const struct comparison *comparison)
{
	const struct tree_names *from = comparison->from, *to = comparison->to;
	size_t before = 0, after = 0;
	int result = 0;

	while (result == 0 && (before < from->count || after < to->count)) {
		const struct tree_name *old = &from->names[before], *new = &to->names[after];
		size_t old_count = count_names(from, before), new_count = count_names(to, after);

		if (before < from->count && after < to->count && old->object == new->object)
			result = compare_names_of(comparison, old, old_count, new, new_count);
		else if (after == to->count || (before < from->count && old->object < new->object))
			new_count = 0;
		else
			old_count = 0;
		if (new_count == 0)
			result = tell_links(comparison, TREE_UNLINKED, old, old_count);
		if (old_count == 0)
			result = tell_links(comparison, TREE_LINKED, new, new_count);
		before += old_count;
		after += new_count;
	}
	return result;
}

/* ---- directories and symbolic links ---- */

static int compare_paths(const void *a, const void *b)
{
	const struct manifest_entry *left = *(const struct manifest_entry *const *)a;
	const struct manifest_entry *right = *(const struct manifest_entry *const *)b;
	int order = strcmp(left->path, right->path);

	return order ? order : (left->type > right->type) - (left->type < right->type);
}

/* Those of a tree by path; NULL: no memory. */
static const struct manifest_entry **sort_others(const struct manifest *manifest, size_t *count)
{
	const struct manifest_entry **sorted = calloc(manifest->count + 1, sizeof(*sorted));

	*count = 0;
	if (!sorted)
		return NULL;
	for (size_t i = 0; i < manifest->count; i++)
		if (manifest->entries[i].type == MANIFEST_DIRECTORY ||
		    manifest->entries[i].type == MANIFEST_SYMLINK)
			sorted[(*count)++] = &manifest->entries[i];
	qsort(sorted, *count, sizeof(*sorted), compare_paths);
	return sorted;
}

static int compare_other(const struct comparison *comparison, const struct manifest_entry *from,
			 const struct manifest_entry *to)
{
	const struct tree_name before = { 0, from ? from->path : NULL, from },
			       after = { 0, to ? to->path : NULL, to };
	int result;

	if (!from || !to)
		return from ? tell(comparison, TREE_REMOVED, &before, NULL)
			    : tell(comparison, TREE_ADDED, NULL, &after);
	result = tell_status(comparison, &before, &after);
	if (result == 0 && from->type == MANIFEST_SYMLINK && strcmp(from->target, to->target) != 0)
		result = tell(comparison, TREE_TARGET, &before, &after);
	return result;
}

static int compare_others(const struct comparison *comparison)
{
	size_t from_count, to_count, before = 0, after = 0;
	const struct manifest_entry **from = sort_others(&comparison->from->manifest, &from_count),
				    **to = sort_others(&comparison->to->manifest, &to_count);
	int result = from && to ? 0 : -ENOMEM;

	while (result == 0 && (before < from_count || after < to_count)) {
		int order = before == from_count ? 1
			    : after == to_count  ? -1
						 : compare_paths(&from[before], &to[after]);

		result = compare_other(comparison, order <= 0 ? from[before] : NULL,
				       order >= 0 ? to[after] : NULL);
		before += order <= 0;
		after += order >= 0;
	}
	free(from);
	free(to);
	return result;
}

int tree_compare(const struct tree_names *from, const struct tree_names *to,
		 tree_each_difference *each, void *context)
{
	const struct comparison comparison = { from, to, each, context };
	int result = compare_files(&comparison);

	return result == 0 ? compare_others(&comparison) : result;
}
