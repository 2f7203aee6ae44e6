/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What an export finds in its directory, and what it leaves there for the next one. */
#include "client/tree_destination.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/read_fully.h"
#include "common/bytes.h"

#define MARKER ".muninn-export"
/* A path of the tree whose characters are all escaped, and the digest. */
#define MARKER_TEXT_BYTES (3 * PATH_MAX + 128)

static int fail(const struct tree_destination *destination, int result,
		struct osd_client_error *error)
{
	return outcome_set_local(error, result, "%s: %s", destination->directory,
				 strerror(-result));
}

/* ---- names ---- */

void tree_partial_name(const char *path, size_t number, char partial[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	char ending[32] = TREE_PARTIAL;

	if (number > 0)
		snprintf(ending, sizeof(ending), ".%zu" TREE_PARTIAL, number);
	snprintf(partial, PATH_MAX, "%.*s%.*s%s", (int)(name - path), path,
		 (int)(NAME_MAX - strlen(ending)), name, ending);
}

bool tree_is_partial(const char *path)
{
	size_t length = strlen(path), ending = strlen(TREE_PARTIAL);

	return length > ending && strcmp(path + length - ending, TREE_PARTIAL) == 0;
}

static bool has_entry(const struct manifest *manifest, const char *path)
{
	for (size_t i = 0; i < manifest->count; i++)
		if (strcmp(manifest->entries[i].path, path) == 0)
			return true;
	return false;
}

/* One that the tree does not have itself. */
static void name_marker(struct tree_destination *destination)
{
	char name[PATH_MAX];
	size_t number = 0;

	do
		tree_partial_name(MARKER, number++, name);
	while (has_entry(destination->manifest, name));
	memcpy(destination->marker_name, name, strlen(name) + 1);
}

/* How many there are, `limit` at most, or a negative errno. */
static int count_names(const struct tree_destination *destination, int limit)
{
	int fd = openat(destination->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int result = -errno, count = 0;

	if (!stream) {
		if (fd >= 0)
			close(fd);
		return result;
	}
	while (count < limit && (entry = readdir(stream)) != NULL)
		count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	closedir(stream);
	return count;
}

/* ---- the marker ---- */

/* The length, or -ENOMEM. */
static int write_text(const struct tree_pointer *tree, const char *below,
		      char text[MARKER_TEXT_BYTES])
{
	char hex[2 * MANIFEST_SHA256_BYTES + 1], *escaped;
	int length;

	if (manifest_escape(below ? below : ".", &escaped) < 0)
		return -ENOMEM;
	manifest_hex(tree->sha256, sizeof(tree->sha256), hex);
	length = snprintf(text, MARKER_TEXT_BYTES, "muninnctl export\nmanifest %s\nbelow %s\n", hex,
			  escaped);
	free(escaped);
	return length < (int)MARKER_TEXT_BYTES ? length : -ENAMETOOLONG;
}

static int make_marker(struct tree_destination *destination, const char *text, int length)
{
	if (ftruncate(destination->marker, 0) < 0)
		return -errno;
	if (pwrite(destination->marker, text, (size_t)length, 0) != length)
		return errno ? -errno : -ENOSPC;
	return 0;
}

/* False: another export has it, or had it just now, and has come to its end. */
static bool lock_marker(const struct tree_destination *destination)
{
	/* Not every file system has locks. */
	if (flock(destination->marker, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return false;
	return faccessat(destination->root, destination->marker_name, F_OK, AT_SYMLINK_NOFOLLOW) ==
	       0;
}

/* One that another export has is left to it. */
static int open_marker(struct tree_destination *destination, struct osd_client_error *error)
{
	destination->marker = openat(destination->root, destination->marker_name,
				     O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (destination->marker < 0)
		return fail(destination, -errno, error);
	if (lock_marker(destination))
		return 0;
	close(destination->marker);
	destination->marker = -1;
	return outcome_set_local(error, -EBUSY, "another export into %s runs",
				 destination->directory);
}

/* Reads the marker, or writes it into a directory where there is nothing else. */
static int take_marker(struct tree_destination *destination, const char *text, int length,
		       struct osd_client_error *error)
{
	char found[MARKER_TEXT_BYTES];
	int names = count_names(destination, 2), result;
	ssize_t got;

	if (names < 0)
		return fail(destination, names, error);
	if (names > 0 &&
	    faccessat(destination->root, destination->marker_name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return outcome_set_local(
			error, -ENOTEMPTY,
			"%s is not empty; a tree is only unpacked into an empty directory",
			destination->directory);
	result = open_marker(destination, error);
	if (result < 0)
		return result;
	got = read_fully(destination->marker, (uint8_t *)found, sizeof(found));
	destination->resumes = got == length && memcmp(found, text, (size_t)length) == 0;
	if (destination->resumes)
		return 0;
	if (names > 1)
		return outcome_set_local(
			error, -ENOTEMPTY,
			"%s has an unfinished export of another tree, or of another state of it, "
			"as its file %s says: remove the directory, or export into another one",
			destination->directory, destination->marker_name);
	result = make_marker(destination, text, length);
	return result < 0 ? fail(destination, result, error) : 0;
}

/* ---- what was left ---- */

static int compare_paths(const void *a, const void *b)
{
	const struct manifest_entry *const *left = a, *const *right = b;

	return strcmp((*left)->path, (*right)->path);
}

struct sweep {
	const struct tree_destination *destination;
	const struct manifest_entry **sorted;
	size_t count;
};

static bool is_file_of_tree(const struct sweep *sweep, char *path)
{
	const struct manifest_entry key = { .path = path }, *wanted = &key;
	const struct manifest_entry *const *found = bsearch(&wanted, sweep->sorted, sweep->count,
							    sizeof(*sweep->sorted), compare_paths);

	return found && ((*found)->type == MANIFEST_FILE || (*found)->type == MANIFEST_HARD_LINK);
}

static bool is_file_up_to(const struct sweep *sweep, char *path, size_t length)
{
	const char behind = path[length];
	bool is_file;

	path[length] = '\0';
	is_file = is_file_of_tree(sweep, path);
	path[length] = behind;
	return is_file;
}

/* Is it a name of tree_partial_name for a file of the tree? Others may have such names, too. */
static bool is_partial_of_tree(const struct sweep *sweep, char *path)
{
	const char *slash = strrchr(path, '/');
	size_t length = strlen(path) - strlen(TREE_PARTIAL);

	/* A long name has lost its end. */
	if (strlen(slash ? slash + 1 : path) == NAME_MAX || is_file_up_to(sweep, path, length))
		return true;
	while (length > 0 && isdigit((unsigned char)path[length - 1]))
		length--;
	return length > 0 && path[length - 1] == '.' && is_file_up_to(sweep, path, length - 1);
}

/* Removes a file that was not whole, and that is none of the tree's. */
static int consider(const struct sweep *sweep, char *path)
{
	const struct tree_destination *destination = sweep->destination;
	struct stat status;

	if (!tree_is_partial(path) || strcmp(path, destination->marker_name) == 0 ||
	    is_file_of_tree(sweep, path) || !is_partial_of_tree(sweep, path))
		return 0;
	if (fstatat(destination->root, path, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(status.st_mode))
		return 0;
	return unlinkat(destination->root, path, 0) < 0 ? -errno : 0;
}

static int sweep_names(const struct sweep *sweep, const char *directory, DIR *stream)
{
	const struct dirent *entry;
	char *path;
	int result = 0;

	while (result == 0 && (entry = readdir(stream)) != NULL) {
		if (asprintf(&path, "%s/%s", directory, entry->d_name) < 0)
			return -ENOMEM;
		/* Paths of the tree do not begin with its root. */
		result = consider(sweep, strcmp(directory, ".") == 0 ? path + 2 : path);
		free(path);
	}
	return result;
}

/*
 * A directory of the tree. If it is there, it is one that can be written, and no link that leads
 * elsewhere.
 */
static int sweep_directory(const struct sweep *sweep, const char *path)
{
	int root = sweep->destination->root, result;
	struct stat status;
	DIR *stream;

	if (fstatat(root, path, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISDIR(status.st_mode))
		return -ENOTDIR;
	/* An export that was nearly done has given it its mode. */
	if ((status.st_mode & S_IRWXU) != S_IRWXU && fchmodat(root, path, S_IRWXU, 0) < 0)
		return -errno;
	stream = tree_open_names(root, path, O_NOFOLLOW);
	if (!stream)
		return -errno;
	result = sweep_names(sweep, path, stream);
	closedir(stream);
	return result;
}

static int sweep_all(const struct tree_destination *destination, struct osd_client_error *error)
{
	const struct manifest *manifest = destination->manifest;
	struct sweep sweep = { .destination = destination,
			       .sorted = calloc(manifest->count + 1, sizeof(*sweep.sorted)) };
	int result = 0;

	if (!sweep.sorted)
		return fail(destination, -ENOMEM, error);
	for (size_t i = 0; i < manifest->count; i++)
		sweep.sorted[sweep.count++] = &manifest->entries[i];
	qsort(sweep.sorted, sweep.count, sizeof(*sweep.sorted), compare_paths);
	/* Parents come before their children. */
	for (size_t i = 0; i < manifest->count && result == 0; i++) {
		if (manifest->entries[i].type != MANIFEST_DIRECTORY)
			continue;
		result = sweep_directory(&sweep, manifest->entries[i].path);
		if (result < 0)
			outcome_set_local(error, result, "%s/%s: %s", destination->directory,
					  manifest->entries[i].path, strerror(-result));
	}
	free(sweep.sorted);
	return result;
}

/* ---- beginning and end ---- */

int tree_destination_open(struct tree_destination *destination, struct osd_client_error *error)
{
	long name_max;

	if (mkdir(destination->directory, 0700) < 0 && errno != EEXIST)
		return fail(destination, -errno, error);
	destination->root = open(destination->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (destination->root < 0)
		return fail(destination, -errno, error);
	name_max = fpathconf(destination->root, _PC_NAME_MAX);
	destination->name_max = name_max > 0 ? (size_t)name_max : NAME_MAX;
	return 0;
}

/* Of the last name, as it is or while the file is not whole. */
static size_t longest_name(const struct manifest_entry *entry, size_t length)
{
	if (entry->type == MANIFEST_DIRECTORY || entry->type == MANIFEST_SYMLINK)
		return length;
	return min_u64(length + strlen(TREE_PARTIAL), NAME_MAX);
}

size_t tree_destination_too_long(const struct tree_destination *destination,
				 const struct manifest_entry *entry)
{
	size_t begin = 0, end, name;

	do {
		end = begin + strcspn(entry->path + begin, "/");
		name = end - begin;
		if (!entry->path[end])
			name = longest_name(entry, name);
		if (name > destination->name_max || begin + name >= PATH_MAX)
			return end;
		begin = end + 1;
	} while (entry->path[end]);
	return 0;
}

int tree_destination_begin(struct tree_destination *destination, const struct tree_pointer *tree,
			   const char *below, struct osd_client_error *error)
{
	char text[MARKER_TEXT_BYTES];
	int length = write_text(tree, below, text), result;

	if (length < 0)
		return fail(destination, length, error);
	name_marker(destination);
	result = take_marker(destination, text, length, error);
	return result == 0 && destination->resumes ? sweep_all(destination, error) : result;
}

int tree_destination_finish(struct tree_destination *destination)
{
	int result = unlinkat(destination->root, destination->marker_name, 0) < 0 ? -errno : 0;

	close(destination->marker);
	destination->marker = -1;
	return result;
}

void tree_destination_close(struct tree_destination *destination)
{
	if (destination->marker >= 0) {
		if (count_names(destination, 2) == 1)
			unlinkat(destination->root, destination->marker_name, 0);
		close(destination->marker);
	}
	if (destination->root >= 0)
		close(destination->root);
}

/* ---- files ---- */

/* 1, 0, or a negative errno. */
static int has_content(const struct tree_destination *destination, const char *path,
		       const struct manifest_entry *entry)
{
	uint8_t sha256[MANIFEST_SHA256_BYTES];
	int fd = openat(destination->root, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), result;

	/* Its mode may shut out who has brought it. */
	if (fd < 0)
		return errno == EACCES ? 0 : -errno;
	result = tree_hash_file(destination->client, fd, sha256);
	close(fd);
	return result < 0 ? result : memcmp(sha256, entry->sha256, sizeof(sha256)) == 0;
}

/*
 * A file has its time before it has its name. So one with that time and another content is one that
 * the host lost when it crashed.
 */
int tree_destination_has(const struct tree_destination *destination, const char *path,
			 const struct manifest_entry *entry)
{
	struct stat status;
	bool has_time;
	int result = 0;

	if (!destination->resumes)
		return 0;
	if (fstatat(destination->root, path, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISREG(status.st_mode))
		return -EEXIST;
	if ((uint64_t)status.st_size == entry->length)
		result = has_content(destination, path, entry);
	if (result != 0)
		return result;
	has_time = status.st_mtim.tv_sec == entry->seconds &&
		   status.st_mtim.tv_nsec == (long)entry->nanoseconds;
	if (!has_time && !tree_is_partial(path))
		return -EEXIST;
	return unlinkat(destination->root, path, 0) < 0 ? -errno : 0;
}
