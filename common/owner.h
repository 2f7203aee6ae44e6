/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Files that root makes beside those of a service which runs as another user. They belong to that
 * user. All is done in a folder that is opened once: the user may turn the path of its folder into
 * a link to somewhere else meanwhile.
 */
#ifndef MUNINN_COMMON_OWNER_H
#define MUNINN_COMMON_OWNER_H

#include <sys/types.h>

/*
 * Opens the folder of a file, to be closed; `name` becomes the file's name in it, the end of
 * `path`. -errno.
 */
int owner_open_folder(const char *path, const char **name);

/*
 * Makes a file that is not there, nor a link of that name, and opens it with `flags`. If this
 * process is root, the file belongs to the user and the group of the folder. The descriptor, or
 * -errno, and then nothing was made.
 */
int owner_make_file(int folder, const char *name, int flags, mode_t mode);

/* Makes the names in a folder stable. -errno. */
int owner_sync_folder(int folder);

#endif
