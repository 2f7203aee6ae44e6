/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Whose a file is that root makes beside those of a service which runs as another user. */
#ifndef MUNINN_COMMON_OWNER_H
#define MUNINN_COMMON_OWNER_H

/*
 * Gives a file that this process has just made at `path` (O_CREAT with O_EXCL) to the user and the
 * group that its folder belongs to. Does nothing unless this process is root. -errno.
 */
int owner_take_from_folder(int fd, const char *path);

#endif
