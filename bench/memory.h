/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What the allocator says of the process's memory. */
#ifndef MUNINN_BENCH_MEMORY_H
#define MUNINN_BENCH_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Bytes that jemalloc has given out and not got back. False: another allocator is linked (builds
 * with sanitizers).
 */
bool memory_allocated(uint64_t *bytes);

#endif
