/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Asks jemalloc, if it is in this process, or the C library. */
#include "common/allocator.h"

#include <malloc.h>
#include <stddef.h>

#include "common/mapped_memory.h"

/* jemalloc's; absent with another allocator, such as that of the sanitizers. */
extern int mallctl(const char *name, void *old, size_t *old_bytes, void *new, size_t new_bytes)
	__attribute__((weak));

static bool read_size(const char *name, uint64_t *bytes)
{
	size_t value = 0, length = sizeof(value);

	if (mallctl(name, &value, &length, NULL, 0) != 0)
		return false;
	*bytes = value;
	return true;
}

/* Whoever asks for memory need not know which kind another one has. */
static void add_mapped(struct allocator_figures *figures)
{
	uint64_t bytes = mapped_all();

	figures->allocated_bytes += bytes;
	figures->active_bytes += bytes;
	figures->resident_bytes += bytes;
}

bool allocator_read(struct allocator_figures *figures)
{
	uint64_t epoch = 1;
	size_t epoch_length = sizeof(epoch);

	/* Its figures are those of the last epoch. */
	bool is_known = mallctl && mallctl("thread.tcache.flush", NULL, NULL, NULL, 0) == 0 &&
			mallctl("epoch", &epoch, &epoch_length, &epoch, sizeof(epoch)) == 0 &&
			read_size("stats.allocated", &figures->allocated_bytes) &&
			read_size("stats.active", &figures->active_bytes) &&
			read_size("stats.resident", &figures->resident_bytes);

	if (is_known)
		add_mapped(figures);
	return is_known;
}

/* "arena.4096": all of them (MALLCTL_ARENAS_ALL). Where that fails nothing is lost. */
void allocator_give_back(void)
{
	if (!mallctl) {
		malloc_trim(0);
		return;
	}
	mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
	mallctl("arena.4096.purge", NULL, NULL, NULL, 0);
}
