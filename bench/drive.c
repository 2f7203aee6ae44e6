/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Reads /sys/dev/block (the kernel's Documentation/block/stat.rst). */
#include "bench/drive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { SECTOR_BYTES = 512 };

int bench_drive_count(const char *path, struct bench_drive *drive)
{
	unsigned long long reads, read_sectors, writes, written_sectors;
	char stat_path[64];
	struct stat status;
	FILE *file;
	int found;

	if (stat(path, &status) < 0)
		return -errno;
	snprintf(stat_path, sizeof(stat_path), "/sys/dev/block/%u:%u/stat", major(status.st_dev),
		 minor(status.st_dev));
	file = fopen(stat_path, "r");
	if (!file)
		return -ENODEV;
	found = fscanf(file, "%llu %*u %llu %*u %llu %*u %llu", &reads, &read_sectors, &writes,
		       &written_sectors);
	fclose(file);
	if (found != 4)
		return -ENODEV;
	*drive = (struct bench_drive){ reads, read_sectors * SECTOR_BYTES, writes,
				       written_sectors * SECTOR_BYTES };
	return 0;
}

struct bench_drive bench_drive_between(const struct bench_drive *before,
				       const struct bench_drive *after)
{
	return (struct bench_drive){
		.reads = after->reads - before->reads,
		.read_bytes = after->read_bytes - before->read_bytes,
		.writes = after->writes - before->writes,
		.written_bytes = after->written_bytes - before->written_bytes,
	};
}

int bench_drive_forget(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), result;

	if (fd < 0)
		return -errno;
	result = fdatasync(fd) < 0 ? -errno : -posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
	return result;
}
