/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Asks jemalloc how much memory the process has allocated. */
#include "bench/memory.h"

#include <stddef.h>

/* jemalloc's; absent where the sanitizers bring their own allocator. */
extern int mallctl(const char *name, void *old, size_t *old_bytes, void *new, size_t new_bytes)
	__attribute__((weak));

bool memory_allocated(uint64_t *bytes)
{
	uint64_t epoch = 1;
	size_t allocated = 0, length = sizeof(allocated), epoch_length = sizeof(epoch);

	/* Counts what this thread's cache keeps as freed. */
	if (!mallctl || mallctl("thread.tcache.flush", NULL, NULL, NULL, 0) != 0 ||
	    mallctl("epoch", &epoch, &epoch_length, &epoch, sizeof(epoch)) != 0 ||
	    mallctl("stats.allocated", &allocated, &length, NULL, 0) != 0)
		return false;
	*bytes = allocated;
	return true;
}
