/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What is in a directory. */
#include <errno.h>
#include <fnmatch.h>
#include <fts.h>
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

struct walk {
	const struct tree_options *options;
	struct manifest *manifest;
	struct tree_report *report;
	struct osd_client_error *error;
	struct link_table links;
	size_t root_length;
};

static int no_memory(struct walk *walk)
{
	return outcome_set_local(walk->error, -ENOMEM, "import: out of memory");
}

static void warn(const struct walk *walk, const char *path, const char *what)
{
	struct error_text sentence;

	error_set(&sentence, 0, "%s: %s", path, what);
	if (walk->options->warn)
		walk->options->warn(walk->options->context, sentence.text);
}

static int leave_out(struct walk *walk, const char *path, int error)
{
	char what[256];

	snprintf(what, sizeof(what), "%s; it is left out", strerror(error));
	warn(walk, path, what);
	walk->report->left_out++;
	return 0;
}

static int take_symlink(struct walk *walk, const FTSENT *found, struct manifest_entry *entry)
{
	char *target = malloc(LINK_BYTES_MAX + 1);
	ssize_t length;

	if (!target)
		return no_memory(walk);
	length = readlink(found->fts_accpath, target, LINK_BYTES_MAX);
	if (length <= 0) {
		free(target);
		entry->left_out = true;
		return leave_out(walk, found->fts_path, length < 0 ? errno : EINVAL);
	}
	target[length] = '\0';
	entry->target = target;
	walk->report->symlinks++;
	return 0;
}

/* Without attributes that can't be read the rest is stored all the same. */
static int take_xattrs(struct walk *walk, const FTSENT *found, struct manifest_entry *entry)
{
	char what[256];
	int result = tree_xattrs_read(found->fts_accpath, entry);

	if (result == -ENOMEM)
		return no_memory(walk);
	if (result < 0 && result != -ENOENT) {
		snprintf(what, sizeof(what), "%s; its extended attributes are not stored",
			 strerror(-result));
		warn(walk, found->fts_path, what);
		walk->report->incomplete++;
	}
	return 0;
}

/* Is this another name of a file that has an entry? */
static int take_file(struct walk *walk, const FTSENT *found, struct manifest_entry *entry)
{
	const struct stat *stat = found->fts_statp;
	size_t index = walk->manifest->count - 1;
	struct link *link;

	entry->length = (uint64_t)stat->st_size;
	if (stat->st_nlink > 1) {
		if (walk->links.used * 2 >= walk->links.capacity && grow_links(&walk->links) < 0)
			return no_memory(walk);
		link = find_link(&walk->links, stat->st_dev, stat->st_ino);
		if (link->used) {
			entry->type = MANIFEST_HARD_LINK;
			entry->linked = link->index;
			entry->user = entry->group = MANIFEST_NO_OWNER;
			walk->report->hard_links++;
			return 0;
		}
		*link = (struct link){ stat->st_dev, stat->st_ino, index, true };
		walk->links.used++;
	}
	walk->report->files++;
	walk->report->bytes += entry->length;
	return take_xattrs(walk, found, entry);
}

static struct manifest_entry *add_entry(struct walk *walk, const FTSENT *found,
					enum manifest_type type)
{
	struct manifest_entry *entry = manifest_add(walk->manifest);
	const char *path = found->fts_path + walk->root_length;

	if (!entry)
		return NULL;
	path += strspn(path, "/");
	entry->type = type;
	entry->mode = found->fts_statp->st_mode & 07777;
	entry->seconds = found->fts_statp->st_mtim.tv_sec;
	entry->nanoseconds = (uint32_t)found->fts_statp->st_mtim.tv_nsec;
	entry->user = found->fts_statp->st_uid;
	entry->group = found->fts_statp->st_gid;
	entry->path = strdup(found->fts_level == FTS_ROOTLEVEL ? "." : path);
	return entry->path ? entry : NULL;
}

static int skip(struct walk *walk, const FTSENT *found)
{
	walk->report->skipped++;
	warn(walk, found->fts_path, "not stored, it is no file, directory or link");
	return 0;
}

static bool is_excluded(const struct walk *walk, const FTSENT *found)
{
	const char *path = found->fts_path + walk->root_length;

	if (found->fts_level == FTS_ROOTLEVEL)
		return false;
	path += strspn(path, "/");
	for (size_t i = 0; i < walk->options->exclude_count; i++) {
		const char *pattern = walk->options->excludes[i];
		const char *from_root = pattern + strspn(pattern, "/");

		if (strchr(pattern, '/') ? fnmatch(from_root, path, FNM_PATHNAME) == 0
					 : fnmatch(pattern, found->fts_name, 0) == 0)
			return true;
	}
	return false;
}

static int take(struct walk *walk, const FTSENT *found)
{
	int error = found->fts_errno ? found->fts_errno : EIO;
	struct manifest_entry *entry;

	switch (found->fts_info) {
	case FTS_DP:
		return 0;
	case FTS_D:
		walk->report->directories++;
		entry = add_entry(walk, found, MANIFEST_DIRECTORY);
		return entry ? take_xattrs(walk, found, entry) : no_memory(walk);
	case FTS_F:
		entry = add_entry(walk, found, MANIFEST_FILE);
		return entry ? take_file(walk, found, entry) : no_memory(walk);
	case FTS_SL:
	case FTS_SLNONE:
		entry = add_entry(walk, found, MANIFEST_SYMLINK);
		return entry ? take_symlink(walk, found, entry) : no_memory(walk);
	case FTS_DEFAULT:
		return skip(walk, found);
	default:
		/* A directory of which nothing is known but its name is stored as an empty one. */
		if (found->fts_level > FTS_ROOTLEVEL)
			return leave_out(walk, found->fts_path, error);
		return outcome_set_local(walk->error, -error, "%s: %s", found->fts_path,
					 strerror(error));
	}
}

static int take_unless_excluded(struct walk *walk, FTS *fts, FTSENT *found)
{
	if (!is_excluded(walk, found))
		return take(walk, found);
	walk->report->excluded += found->fts_info != FTS_DP;
	/* Without what is below. */
	fts_set(fts, found, FTS_SKIP);
	return 0;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

int tree_walk(const char *directory, const struct tree_options *options, struct manifest *manifest,
	      struct tree_report *report, struct osd_client_error *error)
{
	char *roots[] = { (char *)directory, NULL };
	struct walk walk = {
		.options = options,
		.manifest = manifest,
		.report = report,
		.error = error,
		.root_length = strlen(directory),
	};
	struct stat status;
	FTSENT *found;
	FTS *fts;
	int result = 0;

	if (stat(directory, &status) < 0)
		return outcome_set_local(error, -errno, "%s: %s", directory, strerror(errno));
	if (!S_ISDIR(status.st_mode))
		return outcome_set_local(error, -ENOTDIR,
					 "%s is no directory; `muninnctl put` stores single files",
					 directory);
	fts = fts_open(roots,
		       FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR |
			       (options->one_file_system ? FTS_XDEV : 0),
		       by_name);
	if (!fts)
		return outcome_set_local(error, -errno, "%s: %s", directory, strerror(errno));
	/* fts_read tells its end from its failure by errno alone. */
	while (result == 0 && (errno = 0, found = fts_read(fts)) != NULL)
		result = take_unless_excluded(&walk, fts, found);
	if (result == 0 && errno)
		result = outcome_set_local(error, -errno, "%s: %s", directory, strerror(errno));
	fts_close(fts);
	free(walk.links.links);
	return result;
}
