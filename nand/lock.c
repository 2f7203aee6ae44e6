/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Lets one process at a time have an image. flock(2) and not fcntl(2): it also keeps out a second
 * open in the same process, stays when another descriptor of the file is closed, and ends with its
 * holder.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "nand/private.h"

long nand_lock_holder(int fd)
{
	unsigned long long line_inode;
	unsigned int line_major, line_minor;
	struct stat status;
	char line[256];
	long pid, found = 0;
	FILE *locks;

	if (fstat(fd, &status) < 0)
		return 0;
	locks = fopen("/proc/locks", "re");
	if (!locks)
		return 0;
	/* 1: FLOCK  ADVISORY  WRITE 6994 fe:00:9978594 0 EOF */
	while (found == 0 && fgets(line, sizeof(line), locks))
		if (sscanf(line, "%*u: FLOCK %*s WRITE %ld %x:%x:%llu", &pid, &line_major,
			   &line_minor, &line_inode) == 4 &&
		    pid > 0 && line_inode == status.st_ino && line_major == major(status.st_dev) &&
		    line_minor == minor(status.st_dev))
			found = pid;
	fclose(locks);
	return found;
}

static int lock_image(int fd, int kind, const char *path, struct error_text *error)
{
	long holder;

	if (flock(fd, kind | LOCK_NB) == 0)
		return 0;
	if (errno != EWOULDBLOCK)
		return error_set(error, -errno, "cannot lock %s: %s", path, strerror(errno));
	holder = nand_lock_holder(fd);
	if (holder > 0)
		return error_set(error, -EBUSY, "%s is in use by process %ld: stop it first", path,
				 holder);
	return error_set(error, -EBUSY, "%s is in use by another process: stop it first", path);
}

int nand_lock_image(int fd, const char *path, struct error_text *error)
{
	return lock_image(fd, LOCK_EX, path, error);
}

int nand_lock_image_shared(int fd, const char *path, struct error_text *error)
{
	return lock_image(fd, LOCK_SH, path, error);
}
