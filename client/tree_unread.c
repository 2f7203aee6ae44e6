/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What is stored of directories and names that can't be read. It may be the only copy that there
 * still is. So its entries go into the new manifest, at the place that they have in the order of
 * the walk: those of the present tree, and files that an interrupted import has completed.
 *
 * A hard link that stays needs its file. If the walk has that file unchanged, the link is one to
 * it. If not, the link becomes the file that was stored.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/tree_store.h"
#include "common/bytes.h"

/* ---- gaps ---- */

int tree_unread_add(struct tree_unread *unread, const char *path, size_t at, int error,
		    bool has_entry)
{
	struct tree_gap *gap;

	if (unread->count == unread->capacity) {
		size_t capacity = 2 * unread->capacity + 16;
		struct tree_gap *grown = reallocarray(unread->gaps, capacity, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		unread->gaps = grown;
		unread->capacity = capacity;
	}
	gap = &unread->gaps[unread->count];
	*gap = (struct tree_gap){
		.path = strdup(path), .at = at, .error = error, .has_entry = has_entry
	};
	if (!gap->path)
		return -ENOMEM;
	unread->count++;
	return 0;
}

void tree_unread_free(struct tree_unread *unread)
{
	for (size_t i = 0; i < unread->count; i++)
		free(unread->gaps[i].path);
	free(unread->gaps);
	*unread = (struct tree_unread){ 0 };
}

/* ---- keeping ---- */

/* A stored entry that stays. */
struct candidate {
	const struct manifest_entry *entry;
	const struct tree_gap *gap;
	bool is_leftover;
};

struct keeper {
	struct importer *importer;
	const struct manifest *old;
	struct candidate *candidates; /* in the order of the walk */
	size_t candidate_count;
	struct manifest merged;
	size_t *walked_places; /* by index in the walk's manifest: that in `merged`; SIZE_MAX */
	size_t *old_places;    /* the same of the present tree's */
	size_t base;           /* in `merged`: the directory in which the gap is, or that it is */
};

/* The order of a walk: what is below a directory comes before names that begin as its own. */
static int compare_paths(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	if (*a == *b)
		return 0;
	if (!*a || !*b)
		return *a ? 1 : -1;
	if (*a == '/' || *b == '/')
		return *a == '/' ? -1 : 1;
	return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;
	int order = compare_paths(left->entry->path, right->entry->path);

	return order ? order : left->is_leftover - right->is_leftover;
}

static int compare_entries(const void *a, const void *b)
{
	const struct manifest_entry *left = a, *right = b;

	return compare_paths(left->path, right->path);
}

static bool is_at_or_below(const char *path, const char *above)
{
	size_t length = strlen(above);

	return strncmp(path, above, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

/* The one that this path is in; NULL: none. A directory that has its entry is not in its own. */
static const struct tree_gap *find_gap(const struct tree_unread *unread, const char *path)
{
	const struct tree_gap *gap;
	size_t low = 0, high = unread->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_paths(unread->gaps[middle].path, path) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return NULL;
	gap = &unread->gaps[low - 1];
	if (!is_at_or_below(path, gap->path) || (gap->has_entry && strcmp(path, gap->path) == 0))
		return NULL;
	return gap;
}

/* Does a pattern leave it out, or a directory above it in the gap? 1, 0, or -ENOMEM. */
static int is_excluded(const struct keeper *keeper, const struct tree_gap *gap, const char *path)
{
	const struct tree_options *options = keeper->importer->options;
	size_t end = strlen(gap->path);
	char *part = strdup(path);
	int excluded = 0;

	if (!part)
		return -ENOMEM;
	while (path[end] && !excluded) {
		end += 1 + strcspn(path + end + 1, "/");
		part[end] = '\0';
		excluded = tree_is_excluded(options, part);
		part[end] = path[end];
	}
	free(part);
	return excluded;
}

static int consider(struct keeper *keeper, const struct manifest_entry *entry, bool is_leftover)
{
	const struct tree_gap *gap = find_gap(&keeper->importer->unread, entry->path);
	int excluded = gap ? is_excluded(keeper, gap, entry->path) : 1;

	if (!excluded)
		keeper->candidates[keeper->candidate_count++] =
			(struct candidate){ entry, gap, is_leftover };
	return excluded < 0 ? excluded : 0;
}

/* Without a checksum it is not complete. */
static bool is_complete(const struct manifest_entry *entry)
{
	static const uint8_t none[MANIFEST_SHA256_BYTES];

	return memcmp(entry->sha256, none, sizeof(none)) != 0;
}

static int find_candidates(struct keeper *keeper, const struct manifest *leftovers)
{
	int result = 0;

	for (size_t i = 0; i < keeper->old->count && result == 0; i++)
		result = consider(keeper, &keeper->old->entries[i], false);
	for (size_t i = 0; i < leftovers->count && result == 0; i++)
		if (is_complete(&leftovers->entries[i]) &&
		    manifest_path_is_clean(leftovers->entries[i].path))
			result = consider(keeper, &leftovers->entries[i], true);
	qsort(keeper->candidates, keeper->candidate_count, sizeof(*keeper->candidates),
	      compare_candidates);
	return result;
}

/* ---- entries that are kept ---- */

static struct manifest_entry *add(struct keeper *keeper, enum manifest_type type, const char *path)
{
	struct manifest_entry *entry = manifest_add(&keeper->merged);

	if (!entry)
		return NULL;
	entry->type = type;
	entry->stays = true;
	entry->path = strdup(path);
	return entry->path ? entry : NULL;
}

static void count(struct tree_report *report, const struct manifest_entry *entry)
{
	switch (entry->type) {
	case MANIFEST_DIRECTORY:
		report->directories++;
		break;
	case MANIFEST_SYMLINK:
		report->symlinks++;
		break;
	case MANIFEST_HARD_LINK:
		report->hard_links++;
		break;
	case MANIFEST_FILE:
		report->files++;
		report->bytes += entry->length;
		break;
	}
}

/* All but the object, which an update finds. */
static int copy(struct keeper *keeper, const struct manifest_entry *from, const char *path)
{
	struct manifest_entry *entry = add(keeper, from->type, path);

	if (!entry || manifest_copy_owner(entry, from) < 0)
		return -ENOMEM;
	entry->mode = from->mode;
	entry->seconds = from->seconds;
	entry->nanoseconds = from->nanoseconds;
	entry->length = from->length;
	memcpy(entry->sha256, from->sha256, sizeof(entry->sha256));
	if (from->target) {
		entry->target = strdup(from->target);
		if (!entry->target)
			return -ENOMEM;
	}
	count(keeper->importer->report, entry);
	return 0;
}

/* Objects do not tell the owner, and nobody has told anything of the directory. */
static void take_from_base(struct keeper *keeper, struct manifest_entry *entry)
{
	const struct manifest_entry *base = &keeper->merged.entries[keeper->base];

	entry->user = base->user;
	entry->group = base->group;
	if (entry->type != MANIFEST_DIRECTORY)
		return;
	entry->mode = base->mode;
	entry->seconds = base->seconds;
	entry->nanoseconds = base->nanoseconds;
}

static struct manifest_entry *last_of(struct keeper *keeper)
{
	return &keeper->merged.entries[keeper->merged.count - 1];
}

/*
 * Makes the directories on the way from the gap's to this path that are not there. 0: something
 * else has the name of one.
 */
static int make_way(struct keeper *keeper, const char *path)
{
	const char *base = keeper->merged.entries[keeper->base].path;
	size_t end = strcmp(base, ".") == 0 ? 0 : strlen(base) + 1;

	for (end += strcspn(path + end, "/"); path[end]; end += 1 + strcspn(path + end + 1, "/")) {
		const struct manifest_entry *last = last_of(keeper);
		struct manifest_entry *made;
		char *part;

		/* Whatever is below a directory comes right behind it. */
		if (strncmp(last->path, path, end) == 0 && last->path[end] == '/')
			continue;
		if (strncmp(last->path, path, end) == 0 && !last->path[end]) {
			if (last->type != MANIFEST_DIRECTORY)
				return 0;
			continue;
		}
		part = strndup(path, end);
		made = part ? add(keeper, MANIFEST_DIRECTORY, part) : NULL;
		free(part);
		if (!made)
			return -ENOMEM;
		take_from_base(keeper, made);
		count(keeper->importer->report, made);
	}
	return 1;
}

/* The walk's file that has the path of a stored one, and is as it was stored. SIZE_MAX: none. */
static size_t place_of_walked(const struct keeper *keeper, const struct manifest_entry *stored)
{
	const struct manifest *manifest = keeper->importer->manifest;
	/* The first one, the root, has no name. */
	const struct manifest_entry *entry = bsearch(stored, manifest->entries + 1,
						     manifest->count - 1, sizeof(*entry),
						     compare_entries);

	if (entry && entry->type == MANIFEST_HARD_LINK)
		entry = &manifest->entries[entry->linked];
	if (!entry || entry->type != MANIFEST_FILE || entry->length != stored->length ||
	    entry->seconds != stored->seconds || entry->nanoseconds != stored->nanoseconds)
		return SIZE_MAX;
	return keeper->walked_places[entry - manifest->entries];
}

static int keep_link(struct keeper *keeper, const struct manifest_entry *link)
{
	const struct manifest_entry *file = &keeper->old->entries[link->linked];
	struct manifest_entry *entry;
	size_t place = keeper->old_places[link->linked];

	if (place == SIZE_MAX)
		place = place_of_walked(keeper, file);
	if (place == SIZE_MAX) {
		keeper->old_places[link->linked] = keeper->merged.count;
		return copy(keeper, file, link->path);
	}
	entry = add(keeper, MANIFEST_HARD_LINK, link->path);
	if (!entry)
		return -ENOMEM;
	entry->linked = place;
	count(keeper->importer->report, entry);
	return 0;
}

static int keep(struct keeper *keeper, const struct candidate *candidate)
{
	const struct manifest_entry *entry = candidate->entry;
	int result;

	if (strcmp(last_of(keeper)->path, entry->path) == 0)
		return 0;
	result = make_way(keeper, entry->path);
	if (result <= 0)
		return result;
	if (entry->type == MANIFEST_HARD_LINK)
		return keep_link(keeper, entry);
	if (!candidate->is_leftover)
		keeper->old_places[entry - keeper->old->entries] = keeper->merged.count;
	result = copy(keeper, entry, entry->path);
	if (result == 0 && candidate->is_leftover)
		take_from_base(keeper, last_of(keeper));
	return result;
}

/* ---- all of them ---- */

static void warn(const struct keeper *keeper, const struct tree_gap *gap, bool stays)
{
	const struct importer *importer = keeper->importer;
	struct error_text sentence;

	if (!importer->options->warn)
		return;
	error_set(&sentence, 0, "%s/%s: %s; %s", importer->directory, gap->path,
		  strerror(gap->error),
		  stays            ? "what is stored of it stays"
		  : gap->has_entry ? "what is in it is left out"
				   : "it is left out");
	importer->options->warn(importer->options->context, sentence.text);
}

static bool is_directly_below(const char *path, const char *directory)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : 1;

	return strlen(directory) == length && memcmp(slash ? path : ".", directory, length) == 0;
}

/* The last directory that the gap's path is below, or is. Names of one directory share it. */
static void find_base(struct keeper *keeper, const struct tree_gap *gap)
{
	if (is_directly_below(gap->path, keeper->merged.entries[keeper->base].path) &&
	    !gap->has_entry)
		return;
	keeper->base = keeper->merged.count - 1;
	while (keeper->base > 0 &&
	       (keeper->merged.entries[keeper->base].type != MANIFEST_DIRECTORY ||
		!is_at_or_below(gap->path, keeper->merged.entries[keeper->base].path)))
		keeper->base--;
}

/* Fills the gap with what comes next of the candidates. */
static int fill(struct keeper *keeper, const struct tree_gap *gap, size_t *next)
{
	const size_t before = keeper->merged.count;
	int result = 0;

	if (*next < keeper->candidate_count && keeper->candidates[*next].gap == gap)
		find_base(keeper, gap);
	while (result == 0 && *next < keeper->candidate_count &&
	       keeper->candidates[*next].gap == gap)
		result = keep(keeper, &keeper->candidates[(*next)++]);
	warn(keeper, gap, keeper->merged.count > before);
	return result;
}

/* Moves entries of the walk up to this one. */
static int take_walked(struct keeper *keeper, size_t *next, size_t end)
{
	struct manifest *manifest = keeper->importer->manifest;

	for (; *next < end; ++*next) {
		struct manifest_entry *entry = manifest_add(&keeper->merged);

		if (!entry)
			return -ENOMEM;
		*entry = manifest->entries[*next];
		if (entry->type == MANIFEST_HARD_LINK)
			entry->linked = keeper->walked_places[entry->linked];
		keeper->walked_places[*next] = keeper->merged.count - 1;
	}
	return 0;
}

static int merge(struct keeper *keeper)
{
	const struct tree_unread *unread = &keeper->importer->unread;
	size_t walked = 0, next = 0;
	int result = 0;

	for (size_t i = 0; i < unread->count && result == 0; i++) {
		result = take_walked(keeper, &walked, unread->gaps[i].at);
		if (result == 0)
			result = fill(keeper, &unread->gaps[i], &next);
	}
	return result == 0 ? take_walked(keeper, &walked, keeper->importer->manifest->count)
			   : result;
}

/* The walk's manifest becomes the merged one. On error it is as it was. */
static void take_over(struct keeper *keeper, bool merged)
{
	struct manifest *manifest = keeper->importer->manifest;

	if (merged) {
		free(manifest->entries);
		*manifest = keeper->merged;
		return;
	}
	for (size_t i = 0; i < manifest->count; i++)
		if (keeper->walked_places[i] != SIZE_MAX)
			keeper->merged.entries[keeper->walked_places[i]] =
				(struct manifest_entry){ .path = NULL };
	manifest_free(&keeper->merged);
}

static size_t *no_places(size_t count)
{
	size_t *places = malloc((count + 1) * sizeof(*places));

	for (size_t i = 0; places && i < count; i++)
		places[i] = SIZE_MAX;
	return places;
}

int tree_keep_unread(struct importer *importer, const struct manifest *old,
		     const struct manifest *leftovers)
{
	struct keeper keeper = { .importer = importer, .old = old };
	int result = -ENOMEM;

	if (importer->unread.count == 0)
		return 0;
	keeper.candidates = calloc(old->count + leftovers->count + 1, sizeof(*keeper.candidates));
	keeper.walked_places = no_places(importer->manifest->count);
	keeper.old_places = no_places(old->count);
	if (keeper.candidates && keeper.walked_places && keeper.old_places) {
		result = find_candidates(&keeper, leftovers);
		if (result == 0)
			result = merge(&keeper);
		take_over(&keeper, result == 0);
	}
	free(keeper.candidates);
	free(keeper.walked_places);
	free(keeper.old_places);
	return result < 0 ? importer_fail_local(importer, result, "import") : 0;
}
