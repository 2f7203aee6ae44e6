/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Memory from the kernel for one owner: as many pages as its bytes need. It grows without a copy of
 * them, and what it gives back is free at once; an allocator rounds large sizes up, and keeps for a
 * while what is freed. For what has several pages and lasts.
 */
#ifndef MUNINN_COMMON_MAPPED_MEMORY_H
#define MUNINN_COMMON_MAPPED_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct mapped_memory {
	uint8_t *at; /* at the beginning of a page; NULL: there are no bytes */
	uint64_t bytes;
	uint64_t mapped; /* of whole pages */
	bool is_sparse;  /* much is never written to, so it gets no huge pages */
};

/*
 * Gives it so many bytes. Those before stay, though `at` may change when there are more; those of a
 * new mapping are zero, and take no memory until they are written to. -ENOMEM: nothing has changed;
 * not when there are fewer.
 */
int mapped_resize(struct mapped_memory *memory, uint64_t bytes);

/* So many bytes, and the rest of their last page. */
uint64_t mapped_pages(uint64_t bytes);

/* Pages of all of them in this process, in bytes: those that nobody has written to as well. */
uint64_t mapped_all(void);

/* Gives all of it back. It may have none. */
void mapped_end(struct mapped_memory *memory);

#endif
