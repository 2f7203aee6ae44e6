/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Leaves and removes the small files beside an image. */
#include "nand/left.h"

#include <errno.h>
#include <fcntl.h>
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

static int write_stable(int folder, const char *name, const char *text)
{
	size_t length = strlen(text);
	ssize_t written;
	int fd, result = 0;

	/* One that a killed process has left. */
	if (unlinkat(folder, name, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = owner_make_file(folder, name, O_WRONLY, 0640);
	if (fd < 0)
		return fd;
	written = write(fd, text, length);
	if (written < 0)
		result = -errno;
	else if ((size_t)written != length)
		result = -ENOSPC;
	else if (fsync(fd) < 0)
		result = -errno;
	close(fd);
	return result;
}

/* Under another name first, so that the file is there whole or not at all. */
static int put(int folder, const char *name, const char *text)
{
	char *temporary;
	int result;

	if (asprintf(&temporary, "%s.new", name) < 0)
		return -ENOMEM;
	result = write_stable(folder, temporary, text);
	if (result == 0 && renameat(folder, temporary, folder, name) < 0)
		result = -errno;
	if (result < 0)
		unlinkat(folder, temporary, 0);
	free(temporary);
	return result == 0 ? owner_sync_folder(folder) : result;
}

int nand_left_put(const char *path, const char *text)
{
	const char *name;
	int folder = owner_open_folder(path, &name), result;

	if (folder < 0)
		return folder;
	result = put(folder, name, text);
	close(folder);
	return result;
}

int nand_left_remove(const char *path)
{
	const char *name;
	int folder = owner_open_folder(path, &name), result;

	if (folder < 0)
		return folder;
	result = unlinkat(folder, name, 0) < 0 ? -errno : owner_sync_folder(folder);
	close(folder);
	return result;
}
