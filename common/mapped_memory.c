/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Private mappings of no file. */
#include "common/mapped_memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/bytes.h"

static atomic_uint_fast64_t all;

uint64_t mapped_pages(uint64_t bytes)
{
	return align_up(bytes, (uint64_t)sysconf(_SC_PAGESIZE));
}

uint64_t mapped_all(void)
{
	return all;
}

static bool grow(struct mapped_memory *memory, uint64_t mapped)
{
	void *at = memory->mapped ? mremap(memory->at, memory->mapped, mapped, MREMAP_MAYMOVE)
				  : mmap(NULL, mapped, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return false;
	if (memory->is_sparse)
		(void)madvise(at, mapped, MADV_NOHUGEPAGE);
	all += mapped - memory->mapped;
	memory->at = at;
	memory->mapped = mapped;
	return true;
}

/*
 * The kernel may have joined it to a mapping behind it. To part them is one mapping more, of which
 * a process has a limit: then the pages stay mapped, without memory.
 */
static void shrink(struct mapped_memory *memory, uint64_t mapped)
{
	uint8_t *from = memory->at + mapped;
	uint64_t rest = memory->mapped - mapped;

	if (munmap(from, rest)) {
		(void)madvise(from, rest, MADV_DONTNEED);
		return;
	}
	all -= rest;
	memory->mapped = mapped;
}

int mapped_resize(struct mapped_memory *memory, uint64_t bytes)
{
	uint64_t mapped = mapped_pages(bytes);

	if (mapped > memory->mapped && !grow(memory, mapped))
		return -ENOMEM;
	if (mapped < memory->mapped)
		shrink(memory, mapped);
	memory->bytes = bytes;
	if (!memory->mapped)
		memory->at = NULL;
	return 0;
}

void mapped_end(struct mapped_memory *memory)
{
	(void)mapped_resize(memory, 0);
	*memory = (struct mapped_memory){ 0 };
}
