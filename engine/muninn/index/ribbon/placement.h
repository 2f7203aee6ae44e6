/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Puts items of different sizes into pages, each into one of a few candidate pages of its own:
 * cuckoo hashing with buckets, solved once for all of them. An item without space takes that of
 * another one, which goes to another of its candidates, and so on, by the shortest such path.
 */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_RIBBON_PLACEMENT_H
#define MUNINN_ENGINE_MUNINN_INDEX_RIBBON_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * With three pages each, records of a quarter of a page fill 99.9 % of a segment; with two 98.5 %.
 * The index needs as many bits for three as for four, and takes the fourth for false.
 */
#define PLACEMENT_CANDIDATES 3
#define PLACEMENT_NONE       UINT8_MAX

struct placement_item {
	uint32_t bytes; /* up to a page's */
	uint16_t pages[PLACEMENT_CANDIDATES];
	uint8_t candidate; /* out: where it is; PLACEMENT_NONE: nowhere */
};

/* NULL: out of memory. NULL may be destroyed. */
struct placement;
struct placement *placement_create(uint32_t pages_max, uint32_t items_max);
void placement_destroy(struct placement *placement);
uint64_t placement_bytes(uint32_t pages_max, uint32_t items_max);

/*
 * Begins with empty pages, with `space` bytes each, for `count` items, which outlive the solving;
 * none is anywhere yet.
 */
void placement_begin(struct placement *placement, uint32_t pages, const uint32_t *space,
		     struct placement_item *items, uint32_t count);

/*
 * Places an item, and moves others for it; none of these loses its place. False: there is no space
 * within reach, and nothing has changed.
 */
bool placement_add(struct placement *placement, uint32_t item);

#endif
