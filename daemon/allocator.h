/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Which allocator tgtd gets. */
#ifndef MUNINN_DAEMON_ALLOCATOR_H
#define MUNINN_DAEMON_ALLOCATOR_H

#include <limits.h>

#include "common/error.h"

/* Values of the key `allocator` besides a path. */
#define ALLOCATOR_JEMALLOC "jemalloc"
#define ALLOCATOR_SYSTEM   "system"

/*
 * The library to preload into tgtd for a value of the key `allocator`; "" for that of the C
 * library. jemalloc is looked for where the C library is; where it is missing, a warning says so,
 * and tgtd goes on without it. -ENOENT and the like with a sentence: the path names no file that
 * can be read. muninnd that is built with sanitizers preloads none, because they bring their own.
 */
int allocator_find(const char *configured, char library[PATH_MAX], struct error_text *error);

#endif
