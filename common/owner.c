/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Lets the service use what an administrator makes in its folder. The service's user may exchange
 * anything there at any moment, so a path is followed once, and only descriptors are believed.
 */
#include "common/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int owner_open_folder(const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	char *folder;
	int fd;

	*name = slash ? slash + 1 : path;
	if (!slash)
		folder = strdup(".");
	else
		folder = strndup(path, slash == path ? 1 : (size_t)(slash - path));
	if (!folder)
		return -ENOMEM;
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	free(folder);
	return fd;
}

/* To the user and the group that the folder belongs to. */
static int give(int fd, int folder)
{
	struct stat status;

	if (geteuid() != 0)
		return 0;
	if (fstat(folder, &status) < 0)
		return -errno;
	if (status.st_uid != 0 && fchown(fd, status.st_uid, status.st_gid) < 0)
		return -errno;
	return 0;
}

int owner_make_file(int folder, const char *name, int flags, mode_t mode)
{
	int fd = openat(folder, name, flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	int result;

	if (fd < 0)
		return -errno;
	result = give(fd, folder);
	if (result == 0)
		return fd;
	unlinkat(folder, name, 0);
	close(fd);
	return result;
}

int owner_sync_folder(int folder)
{
	/* Some file systems cannot sync directories; they have nothing to make stable then. */
	return fsync(folder) < 0 && errno != EINVAL ? -errno : 0;
}
