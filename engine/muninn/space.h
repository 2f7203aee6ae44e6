/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Free segments. Which ones are in use follows from the tables and the directory; nothing else is stored. */
#ifndef MUNINN_ENGINE_MUNINN_SPACE_H
#define MUNINN_ENGINE_MUNINN_SPACE_H

#include "engine/muninn/geometry.h"

struct space {
	struct nand *nand;
	const struct muninn_geometry *geometry;
	uint32_t *ring; /* free segments, oldest first */
	uint32_t first, count;
	uint32_t retired; /* segments with a block that failed */
};

/* All segments for which in_use[segment] is false are free. -ENOMEM. */
int space_create(struct space *space, struct nand *nand, const struct muninn_geometry *geometry,
		 const bool *in_use);
void space_destroy(struct space *space);

/*
 * Takes the segment that was free longest and erases it if need be; a segment that can't be erased is retired and the
 * next one taken. -ENOSPC: no free segment.
 */
int space_take(struct space *space, uint32_t *segment);

/* Gives back a segment whose contents nobody needs. */
void space_release(struct space *space, uint32_t segment);

/* First page of a segment. */
static inline uint64_t segment_page(const struct muninn_geometry *geometry, uint32_t segment)
{
	return (uint64_t)segment * geometry->segment_pages;
}

#endif
