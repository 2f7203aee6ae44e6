/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A folder of a benchmark's own, which goes with all that is in it. */
#ifndef MUNINN_BENCH_FOLDER_H
#define MUNINN_BENCH_FOLDER_H

#include <stddef.h>

#include "common/error.h"

/*
 * Makes muninn-bench-XXXXXX in `parent`, with its absolute name in `folder` ("" on failure). -errno
 * with a sentence; -ENAMETOOLONG: not within `bytes`.
 */
int bench_folder_make(const char *parent, char *folder, size_t bytes, struct error_text *error);

/* "": nothing to do. */
void bench_folder_remove(const char *folder);

#endif
