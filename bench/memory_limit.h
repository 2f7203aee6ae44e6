/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A limit on the memory of a process, and on what the host's page cache keeps of the files that it
 * reads and writes: a control group of the kernel, of either version. Only root can make one.
 */
#ifndef MUNINN_BENCH_MEMORY_LIMIT_H
#define MUNINN_BENCH_MEMORY_LIMIT_H

#include <limits.h>
#include <stdint.h>

#include "common/error.h"

struct bench_memory_limit {
	char group[PATH_MAX]; /* its folder; "": there is none */
};

/* -errno with a sentence: this host does not let us. Ended by bench_memory_limit_end. */
int bench_memory_limit_begin(struct bench_memory_limit *limit, uint64_t bytes,
			     struct error_text *error);

/* Makes the limit that of this process, and of those that it starts. -errno. */
int bench_memory_limit_enter(const struct bench_memory_limit *limit);

/* When no process is in it any more. */
void bench_memory_limit_end(struct bench_memory_limit *limit);

#endif
