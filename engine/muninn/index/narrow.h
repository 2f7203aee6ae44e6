/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Finds the page of an old version among the pages of a segment that have its key, if its numbers
 * rise with these pages.
 */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_NARROW_H
#define MUNINN_ENGINE_MUNINN_INDEX_NARROW_H

#include <assert.h>

#include "engine/muninn/format.h"

enum { NARROW_PLACES_MAX = 2 * MUNINN_SEGMENT_PAGES_MAX };

/* The lowest and the highest number that records of a key have in a page, and how many there are.
 */
struct page_numbers {
	uint64_t lowest, highest;
	uint32_t records;
};

/*
 * Reads a page. 1: these are the numbers; 0: it has none of the key, or nothing as old as the bound
 * of any key; or an error. `numbers` is NULL: says without a read whether it may have something as
 * old, 1 or 0.
 */
typedef int index_probe(void *context, uint32_t page, struct page_numbers *numbers);

enum narrow_way {
	NARROW_GUESS, /* by the fewest probes */
	/*
	 * The newest page first, then by halves: among records that merging moved. Their numbers
	 * jump, and those of the segment say nothing of the key's. All that the key has in such a
	 * segment is often too old, which the newest page tells.
	 */
	NARROW_MOVED,
	/*
	 * By halves: who asks for many versions of a key, and keeps what was read, meets the same
	 * pages again.
	 */
	NARROW_HALVE,
};

struct narrow {
	uint64_t first_sequence, last_sequence; /* of the segment */
	/* Where the index has the key, and which pages these places are. */
	uint32_t count;
	uint16_t places[NARROW_PLACES_MAX], pages[NARROW_PLACES_MAX];
};

/* Adds a place. The one with the highest numbers is the first. */
static inline void narrow_add(struct narrow *narrow, uint32_t place, uint32_t page)
{
	assert(narrow->count < NARROW_PLACES_MAX);
	narrow->places[narrow->count] = (uint16_t)place;
	narrow->pages[narrow->count++] = (uint16_t)page;
}

/*
 * Leaves only the places up to the last one that has anything as old as the bound, and none of
 * those where a probe did not find the key. An error of a probe, or 0. Their order changes.
 */
int narrow_find(struct narrow *narrow, uint64_t bound, enum narrow_way way, index_probe *probe,
		void *context);

#endif
