/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A file that an export makes. */
#include "client/tree_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/tree_xattr.h"

/* Without set-user-ID and set-group-ID. */
#define FILE_MODE_MASK 01777U

/* Passes over names that the tree has itself. */
int tree_file_create(const struct tree_destination *destination, const struct manifest_entry *entry,
		     struct tree_file *file)
{
	int result = -EEXIST;

	file->fd = -1;
	/* As many names as entries, and the entry's own. */
	for (size_t n = 0; result == -EEXIST && n <= destination->manifest->count + 1; n++) {
		tree_partial_name(entry->path, n, file->path);
		if (strcmp(file->path, entry->path) == 0)
			continue;
		file->fd = openat(destination->root, file->path,
				  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		result = file->fd < 0 ? -errno : 0;
	}
	return result;
}

static int give_name(int root, const char *partial, const char *path)
{
	if (renameat2(root, partial, root, path, RENAME_NOREPLACE) == 0)
		return 0;
	/* Not every file system can look first. */
	if (errno == EINVAL && renameat(root, partial, root, path) == 0)
		return 0;
	return -errno;
}

int tree_give_time(int fd, const struct manifest_entry *entry)
{
	const struct timespec times[2] = {
		{ .tv_nsec = UTIME_OMIT },
		{ .tv_sec = entry->seconds, .tv_nsec = entry->nanoseconds },
	};

	return futimens(fd, times) < 0 ? -errno : 0;
}

/* Only root can give files away. That others can't is no error, as with tar. */
static bool give_owner(int fd, const struct manifest_entry *entry, struct tree_lack *lack)
{
	if (entry->user == MANIFEST_NO_OWNER)
		return false;
	if (fchown(fd, entry->user, entry->group) == 0)
		return true;
	if (errno != EPERM || geteuid() == 0)
		lack->owner = -errno;
	return false;
}

/*
 * The owner first: changing it takes capabilities and special modes away. Extended attributes,
 * which may be ACLs, come behind the mode.
 */
int tree_give_status(int fd, const struct manifest_entry *entry, struct tree_lack *lack)
{
	mode_t mode = entry->mode;

	*lack = (struct tree_lack){ 0 };
	/* Set-user-ID and set-group-ID would mean another user here. */
	if (!give_owner(fd, entry, lack) && entry->type == MANIFEST_FILE)
		mode &= FILE_MODE_MASK;
	if (fchmod(fd, mode) < 0)
		return -errno;
	lack->xattr = tree_xattrs_write(fd, entry, &lack->xattr_name);
	return tree_give_time(fd, entry);
}

int tree_file_end(const struct tree_destination *destination, const struct manifest_entry *entry,
		  const struct tree_file *file, int result, struct tree_lack *lack)
{
	*lack = (struct tree_lack){ 0 };
	if (result == 0)
		result = tree_give_status(file->fd, entry, lack);
	if (close(file->fd) < 0 && result == 0)
		result = -errno;
	if (result == 0)
		result = give_name(destination->root, file->path, entry->path);
	if (result < 0)
		unlinkat(destination->root, file->path, 0);
	return result;
}
