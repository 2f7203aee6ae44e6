/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What the kernel has counted for the drive below a file, and making it forget the file. */
#ifndef MUNINN_BENCH_DRIVE_H
#define MUNINN_BENCH_DRIVE_H

#include <stdint.h>

/* Requests and bytes since the host has started, of everybody who uses the drive. */
struct bench_drive {
	uint64_t reads, read_bytes;
	uint64_t writes, written_bytes;
};

/* -ENODEV: the file's file system has no drive of its own (tmpfs, overlay). */
int bench_drive_count(const char *path, struct bench_drive *drive);

/* What was counted between two looks. */
struct bench_drive bench_drive_between(const struct bench_drive *before,
				       const struct bench_drive *after);

/* Writes back a file that nobody has open, and drops it from the host's page cache. -errno. */
int bench_drive_forget(const char *path);

#endif
