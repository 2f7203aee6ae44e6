/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Makes folders and tries files. Only trying tells whether a host allows something: permissions,
 * read-only mounts, limits of names and of sizes differ from one file system to the next.
 */
#include "daemon/folder.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIAL_NAME ".tryXXXXXX" /* as long as .new.nvram, the longest name beside an image */

/* The end of the next part of a path behind `from`; NULL: there is none. */
static const char *part_end(const char *from)
{
	from += strspn(from, "/");
	return *from ? from + strcspn(from, "/") : NULL;
}

int folder_make(const char *path, unsigned int *made, struct error_text *error)
{
	char part[PATH_MAX];
	struct stat status;

	*made = 0;
	for (const char *end = path; (end = part_end(end)) != NULL;) {
		snprintf(part, sizeof(part), "%.*s", (int)(end - path), path);
		if (mkdir(part, 0700) == 0)
			++*made;
		else if (errno != EEXIST)
			return error_set(error, -errno, "%s: %s", part, strerror(errno));
		else if (stat(part, &status) == 0 && !S_ISDIR(status.st_mode))
			return error_set(error, -ENOTDIR, "%s: %s", part, strerror(ENOTDIR));
	}
	return 0;
}

/* Leaves out the last part of a path. False: it was the only one. */
static bool leave_last(char *path)
{
	size_t length = strlen(path);

	while (length > 1 && path[length - 1] == '/')
		length--;
	while (length > 0 && path[length - 1] != '/')
		length--;
	path[length] = '\0';
	return length > 1;
}

/* Where folder_make has failed, the last parts of the path were never made. */
void folder_take_back(const char *path, unsigned int made)
{
	char part[PATH_MAX];
	bool more = true;

	snprintf(part, sizeof(part), "%s", path);
	for (; made > 0 && more; more = leave_last(part)) {
		if (rmdir(part) == 0)
			made--;
		else if (errno != ENOENT && errno != ENAMETOOLONG)
			return;
	}
}

int folder_try_file(const char *file, uint64_t bytes, struct error_text *error)
{
	char trial[PATH_MAX + sizeof(TRIAL_NAME)];
	int fd, result = 0;

	snprintf(trial, sizeof(trial), "%s" TRIAL_NAME, file);
	fd = mkstemp(trial);
	if (fd < 0)
		return error_set(error, -errno, "no file can be made beside %s: %s", file,
				 strerror(errno));
	if (ftruncate(fd, (off_t)bytes))
		result = error_set(error, -errno, "%s can't be %llu bytes long: %s", file,
				   (unsigned long long)bytes, strerror(errno));
	unlink(trial);
	close(fd);
	return result;
}
