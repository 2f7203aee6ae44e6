/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Lets the service use what an administrator makes in its folder. */
#include "common/owner.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int owner_take_from_folder(int fd, const char *path)
{
	struct stat folder;
	char *copy;
	int result;

	if (geteuid() != 0)
		return 0;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	result = stat(dirname(copy), &folder);
	if (result == 0 && folder.st_uid != 0)
		result = fchown(fd, folder.st_uid, folder.st_gid);
	free(copy);
	return result < 0 ? -errno : 0;
}
