/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
#include "engine/muninn/space.h"

#include <errno.h>
#include <stdlib.h>

#include "common/log.h"

int space_create(struct space *space, struct nand *nand, const struct muninn_geometry *geometry,
		 const bool *in_use)
{
	*space = (struct space){ .nand = nand, .geometry = geometry };
	space->ring = calloc(geometry->segments, sizeof(*space->ring));
	if (!space->ring)
		return -ENOMEM;
	for (uint32_t segment = 0; segment < geometry->segments; segment++)
		if (!in_use[segment])
			space->ring[space->count++] = segment;
	return 0;
}

void space_destroy(struct space *space)
{
	free(space->ring);
	space->ring = NULL;
}

/* Erases the blocks of a segment that are not erased already. */
static int erase_segment(struct space *space, uint32_t segment)
{
	uint32_t block = segment * space->geometry->segment_blocks;

	for (uint32_t i = 0; i < space->geometry->segment_blocks; i++, block++) {
		struct nand_block_info info;
		int result = nand_block_info(space->nand, block, &info);

		if (!result && info.state == NAND_BLOCK_BAD)
			result = -EIO;
		if (!result && info.next_page != 0)
			result = nand_erase(space->nand, NAND_CAUSE_USER, block);
		if (result) {
			log_line(LOG_LEVEL_WARNING,
				 "segment %u is retired: block %u can't be erased (error %d)",
				 segment, block, -result);
			return result;
		}
	}
	return 0;
}

int space_take(struct space *space, uint32_t *segment)
{
	while (space->count) {
		*segment = space->ring[space->first];
		space->first = (space->first + 1) % space->geometry->segments;
		space->count--;
		if (erase_segment(space, *segment) == 0)
			return 0;
		space->retired++;
	}
	return -ENOSPC;
}

void space_release(struct space *space, uint32_t segment)
{
	assert(space->count < space->geometry->segments);
	space->ring[(space->first + space->count) % space->geometry->segments] = segment;
	space->count++;
}
