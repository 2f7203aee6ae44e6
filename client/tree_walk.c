/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What is in a directory, and what of it can not be read. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/tree_private.h"
#include "client/tree_xattr.h"
#include "common/bytes.h"

#define LINK_BYTES_MAX 65535U

/*
 * Files with several names, to find the entry that was the first. Open addressing; `used` stays
 * below half of `capacity`.
 */
struct link_table {
	struct link {
		dev_t device;
		ino_t inode;
		size_t index;
		bool used;
	} * links;
	size_t used, capacity;
};

static struct link *find_link(struct link_table *table, dev_t device, ino_t inode)
{
	size_t at = (inode * UINT64_C(0x9E3779B97F4A7C15) >> 20 ^ device) & (table->capacity - 1);

	while (table->links[at].used &&
	       (table->links[at].device != device || table->links[at].inode != inode))
		at = (at + 1) & (table->capacity - 1);
	return &table->links[at];
}

static int grow_links(struct link_table *table)
{
	struct link_table grown = { .used = table->used,
				    .capacity = table->capacity ? 2 * table->capacity : 256 };

	grown.links = calloc(grown.capacity, sizeof(*grown.links));
	if (!grown.links)
		return -ENOMEM;
	for (size_t i = 0; i < table->capacity; i++)
		if (table->links[i].used)
			*find_link(&grown, table->links[i].device, table->links[i].inode) =
				table->links[i];
	free(table->links);
	*table = grown;
	return 0;
}

/* A name in a directory. */
struct found {
	char *name;
	int error; /* of its status; 0: it is known */
	struct stat status;
};

/* A directory that is walked through, from the root to the present one. */
struct level {
	struct found *found; /* by name, in byte order */
	size_t count, next;
	size_t length; /* of its path */
};

struct walk {
	const struct tree_options *options;
	struct manifest *manifest;
	struct tree_unread *unread;
	struct tree_report *report;
	struct osd_client_error *error;
	struct link_table links;
	dev_t device; /* of the root */
	struct level *levels;
	size_t depth, levels_capacity;
	char *path; /* the walked directory's, a slash, and that of what is looked at */
	size_t length, capacity;
	size_t root_length; /* with the slash */
};

static int no_memory(struct walk *walk)
{
	return outcome_set_local(walk->error, -ENOMEM, "import: out of memory");
}

static void warn(const struct walk *walk, const char *what)
{
	struct error_text sentence;

	error_set(&sentence, 0, "%s: %s", walk->path, what);
	if (walk->options->warn)
		walk->options->warn(walk->options->context, sentence.text);
}

/* ---- paths ---- */

static const char *relative_path(const struct walk *walk)
{
	return walk->path + walk->root_length;
}

static bool is_root(const struct walk *walk)
{
	return walk->length == walk->root_length;
}

/* The path becomes that of a name in the directory whose path has this length. */
static int name_path(struct walk *walk, size_t length, const char *name)
{
	const bool has_slash = length == walk->root_length;
	const size_t name_length = strlen(name), needed = length + name_length + 2;

	if (needed > walk->capacity) {
		char *grown = realloc(walk->path, 2 * needed);

		if (!grown)
			return no_memory(walk);
		walk->path = grown;
		walk->capacity = 2 * needed;
	}
	if (!has_slash)
		walk->path[length++] = '/';
	memcpy(walk->path + length, name, name_length + 1);
	walk->length = length + name_length;
	return 0;
}

/* ---- entries ---- */

/* What is stored of it stays. `has_entry`: the last one is of this directory. */
static int note_unread(struct walk *walk, int error, bool has_entry)
{
	walk->report->left_out++;
	return tree_unread_add(walk->unread, relative_path(walk), walk->manifest->count, error,
			       has_entry) < 0
		       ? no_memory(walk)
		       : 0;
}

static struct manifest_entry *add_entry(struct walk *walk, const struct stat *status,
					enum manifest_type type)
{
	struct manifest_entry *entry = manifest_add(walk->manifest);

	if (!entry)
		return NULL;
	entry->type = type;
	entry->mode = status->st_mode & 07777;
	entry->seconds = status->st_mtim.tv_sec;
	entry->nanoseconds = (uint32_t)status->st_mtim.tv_nsec;
	entry->user = status->st_uid;
	entry->group = status->st_gid;
	entry->path = strdup(is_root(walk) ? "." : relative_path(walk));
	return entry->path ? entry : NULL;
}

static int take_symlink(struct walk *walk, const struct stat *status)
{
	struct manifest_entry *entry;
	char *target = malloc(LINK_BYTES_MAX + 1);
	ssize_t length;

	if (!target)
		return no_memory(walk);
	length = readlink(walk->path, target, LINK_BYTES_MAX);
	if (length <= 0) {
		free(target);
		return note_unread(walk, length < 0 ? errno : EINVAL, false);
	}
	target[length] = '\0';
	entry = add_entry(walk, status, MANIFEST_SYMLINK);
	if (!entry) {
		free(target);
		return no_memory(walk);
	}
	entry->target = target;
	walk->report->symlinks++;
	return 0;
}

/* Without attributes that can't be read the rest is stored all the same. */
static int take_xattrs(struct walk *walk, struct manifest_entry *entry)
{
	char what[256];
	int result = tree_xattrs_read(walk->path, entry);

	if (result == -ENOMEM)
		return no_memory(walk);
	if (result < 0 && result != -ENOENT) {
		snprintf(what, sizeof(what), "%s; its extended attributes are not stored",
			 strerror(-result));
		warn(walk, what);
		walk->report->incomplete++;
	}
	return 0;
}

/* Is this another name of a file that has an entry? */
static int take_file(struct walk *walk, const struct stat *status)
{
	struct manifest_entry *entry = add_entry(walk, status, MANIFEST_FILE);
	struct link *link;

	if (!entry)
		return no_memory(walk);
	entry->length = (uint64_t)status->st_size;
	if (status->st_nlink > 1) {
		if (walk->links.used * 2 >= walk->links.capacity && grow_links(&walk->links) < 0)
			return no_memory(walk);
		link = find_link(&walk->links, status->st_dev, status->st_ino);
		if (link->used) {
			entry->type = MANIFEST_HARD_LINK;
			entry->linked = link->index;
			entry->user = entry->group = MANIFEST_NO_OWNER;
			walk->report->hard_links++;
			return 0;
		}
		*link = (struct link){ status->st_dev, status->st_ino, walk->manifest->count - 1,
				       true };
		walk->links.used++;
	}
	walk->report->files++;
	walk->report->bytes += entry->length;
	return take_xattrs(walk, entry);
}

bool tree_is_excluded(const struct tree_options *options, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < options->exclude_count; i++) {
		const char *pattern = options->excludes[i];
		const char *from_root = pattern + strspn(pattern, "/");

		if (strchr(pattern, '/') ? fnmatch(from_root, path, FNM_PATHNAME) == 0
					 : fnmatch(pattern, name, 0) == 0)
			return true;
	}
	return false;
}

/* ---- directories ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct found *)a)->name, ((const struct found *)b)->name);
}

static void free_level(struct level *level)
{
	for (size_t i = 0; i < level->count; i++)
		free(level->found[i].name);
	free(level->found);
}

static int add_found(struct level *level, size_t *capacity, DIR *stream, const char *name)
{
	struct found *found;

	if (level->count == *capacity) {
		size_t more = *capacity ? 2 * *capacity : 16;
		struct found *grown = reallocarray(level->found, more, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		level->found = grown;
		*capacity = more;
	}
	found = &level->found[level->count];
	found->name = strdup(name);
	if (!found->name)
		return -ENOMEM;
	level->count++;
	found->error = fstatat(dirfd(stream), name, &found->status, AT_SYMLINK_NOFOLLOW) < 0 ? errno
											     : 0;
	return 0;
}

/* All names or none, so that nothing is taken for gone because it was not read. */
static int read_names(struct level *level, DIR *stream)
{
	const struct dirent *entry;
	size_t capacity = 0;
	int result = 0;

	while (result == 0) {
		/* readdir tells its end from its failure by errno alone. */
		errno = 0;
		entry = readdir(stream);
		if (!entry)
			return -errno;
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			result = add_found(level, &capacity, stream, entry->d_name);
	}
	return result;
}

static int read_level(const struct walk *walk, struct level *level)
{
	const int follow = is_root(walk) ? 0 : O_NOFOLLOW;
	DIR *stream = tree_open_names(AT_FDCWD, walk->path, follow);
	int result;

	if (!stream)
		return -errno;
	result = read_names(level, stream);
	closedir(stream);
	if (level->count > 0)
		qsort(level->found, level->count, sizeof(*level->found), by_name);
	return result;
}

/* Next are the names in the directory of this path. */
static int descend(struct walk *walk)
{
	struct level level = { .length = walk->length };
	struct level *grown = walk->levels;
	int result;

	if (walk->depth == walk->levels_capacity) {
		grown = reallocarray(walk->levels, 2 * walk->depth + 16, sizeof(*grown));
		if (!grown)
			return no_memory(walk);
		walk->levels = grown;
		walk->levels_capacity = 2 * walk->depth + 16;
	}
	result = read_level(walk, &level);
	if (result == 0) {
		walk->levels[walk->depth++] = level;
		return 0;
	}
	free_level(&level);
	/* Those of this process or machine say nothing about the directory. */
	if (tree_concerns_all(result) || is_root(walk))
		return outcome_set_local(walk->error, result, "%s: %s", walk->path,
					 strerror(-result));
	return note_unread(walk, -result, true);
}

static int take_directory(struct walk *walk, const struct stat *status)
{
	struct manifest_entry *entry = add_entry(walk, status, MANIFEST_DIRECTORY);
	int result = entry ? take_xattrs(walk, entry) : no_memory(walk);

	walk->report->directories++;
	if (result < 0 || (walk->options->one_file_system && status->st_dev != walk->device))
		return result;
	return descend(walk);
}

static int take(struct walk *walk, const struct found *found)
{
	if (tree_is_excluded(walk->options, relative_path(walk))) {
		walk->report->excluded++;
		return 0;
	}
	if (found->error)
		return note_unread(walk, found->error, false);
	if (S_ISDIR(found->status.st_mode))
		return take_directory(walk, &found->status);
	if (S_ISREG(found->status.st_mode))
		return take_file(walk, &found->status);
	if (S_ISLNK(found->status.st_mode))
		return take_symlink(walk, &found->status);
	walk->report->skipped++;
	warn(walk, "not stored, it is no file, directory or link");
	return 0;
}

static int walk_below(struct walk *walk)
{
	int result = 0;

	while (result == 0 && walk->depth > 0) {
		struct level *level = &walk->levels[walk->depth - 1];
		/* Another level may move this one. */
		struct found found;

		if (level->next == level->count) {
			free_level(level);
			walk->depth--;
			continue;
		}
		found = level->found[level->next++];
		result = name_path(walk, level->length, found.name);
		if (result == 0)
			result = take(walk, &found);
	}
	while (walk->depth > 0)
		free_level(&walk->levels[--walk->depth]);
	return result;
}

int tree_walk(const char *directory, const struct tree_options *options, struct manifest *manifest,
	      struct tree_unread *unread, struct tree_report *report,
	      struct osd_client_error *error)
{
	struct walk walk = {
		.options = options,
		.manifest = manifest,
		.unread = unread,
		.report = report,
		.error = error,
		.root_length = strlen(directory) + 1,
		.length = strlen(directory) + 1,
		.capacity = strlen(directory) + 2,
	};
	struct stat status;
	int result;

	if (stat(directory, &status) < 0)
		return outcome_set_local(error, -errno, "%s: %s", directory, strerror(errno));
	if (!S_ISDIR(status.st_mode))
		return outcome_set_local(error, -ENOTDIR,
					 "%s is no directory; `muninnctl put` stores single files",
					 directory);
	walk.device = status.st_dev;
	if (asprintf(&walk.path, "%s/", directory) < 0)
		return no_memory(&walk);
	result = take_directory(&walk, &status);
	if (result == 0)
		result = walk_below(&walk);
	free(walk.levels);
	free(walk.path);
	free(walk.links.links);
	return result;
}
