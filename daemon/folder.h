/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Folders of the service: made, and tried without leaving a trace. */
#ifndef MUNINN_DAEMON_FOLDER_H
#define MUNINN_DAEMON_FOLDER_H

#include <stdint.h>

#include "common/error.h"

/*
 * Makes a folder, and those above it that are missing; `made` is how many of them are new, also on
 * failure. -errno with a sentence.
 */
int folder_make(const char *path, unsigned int *made, struct error_text *error);

/* Takes back what folder_make has made, as far as the folders are empty. */
void folder_take_back(const char *path, unsigned int made);

/*
 * Whether a file of `bytes` bytes can be made beside `file`, with a name that is 10 characters
 * longer. Makes one, sparse, and removes it. -errno with a sentence.
 */
int folder_try_file(const char *file, uint64_t bytes, struct error_text *error);

#endif
