/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Leaves and removes the small files beside an image. */
#include "nand/left.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/owner.h"

char *nand_left_path(const char *image, const char *name)
{
	char *text;

	return asprintf(&text, "%s.%s", image, name) < 0 ? NULL : text;
}

/* Makes a rename or removal in the file's directory last. */
static int sync_directory_of(const char *path)
{
	char *copy = strdup(path);
	int fd, result = 0;

	if (!copy)
		return -ENOMEM;
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(copy);
	/* Some file systems cannot sync directories; they have nothing to make stable then. */
	if (fd < 0 || (fsync(fd) < 0 && errno != EINVAL))
		result = -errno;
	if (fd >= 0)
		close(fd);
	return result;
}

static int write_stable(const char *path, const char *text)
{
	size_t length = strlen(text);
	int fd, result;

	/* One that a killed process has left. */
	if (unlink(path) < 0 && errno != ENOENT)
		return -errno;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (fd < 0)
		return -errno;
	result = owner_take_from_folder(fd, path);
	if (result == 0 && (write(fd, text, length) != (ssize_t)length || fsync(fd) < 0))
		result = errno ? -errno : -EIO;
	close(fd);
	return result;
}

/* Under another name first, so that the file is there whole or not at all. */
int nand_left_put(const char *path, const char *text)
{
	char *temporary;
	int result;

	if (asprintf(&temporary, "%s.new", path) < 0)
		return -ENOMEM;
	result = write_stable(temporary, text);
	if (result == 0 && rename(temporary, path) < 0)
		result = -errno;
	if (result < 0)
		unlink(temporary);
	free(temporary);
	return result == 0 ? sync_directory_of(path) : result;
}

int nand_left_remove(const char *path)
{
	return unlink(path) < 0 ? -errno : sync_directory_of(path);
}
