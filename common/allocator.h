/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What the process has of memory, as jemalloc and mapped_memory.h count it; giving some back. */
#ifndef MUNINN_COMMON_ALLOCATOR_H
#define MUNINN_COMMON_ALLOCATOR_H

#include <stdbool.h>
#include <stdint.h>

struct allocator_figures {
	uint64_t allocated_bytes; /* given out, as the allocator rounds it */
	uint64_t active_bytes;    /* of pages that hold something */
	uint64_t resident_bytes;  /* of physical memory, with the allocator's own at most */
};

/* False: the process has another allocator. What this thread's cache keeps counts as freed. */
bool allocator_read(struct allocator_figures *figures);

/*
 * Gives what has been freed back to the kernel, now: allocators keep it for some time, or for good.
 * For moments after which a process needs less.
 */
void allocator_give_back(void);

#endif
