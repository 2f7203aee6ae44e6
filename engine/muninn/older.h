/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Which pages of a sealed segment have records that are older than it. Merging puts old records
 * beside new ones, so nearly every segment has some, and its lowest number says nothing. Who looks
 * for a key as of a moment before the segment reads only these pages; others, with newer versions
 * of the key, are of no use to him. This is in memory, of segments that were sealed since the store
 * was opened: of others every page may have old records.
 */
#ifndef MUNINN_ENGINE_MUNINN_OLDER_H
#define MUNINN_ENGINE_MUNINN_OLDER_H

#include <stdbool.h>
#include <stdint.h>

struct page_view;
struct row;

enum { OLDER_WORDS = 4 };

struct older_pages {
	uint64_t below; /* pages whose bit is 0 have no number below this; 0: nothing is known */
	uint64_t map[OLDER_WORDS]; /* a bit for each page, or for 2, 4, ... of a large segment */
};

/* In turn: before the row's older buffer is sealed. */
void older_begin(struct older_pages *older, const struct row *row);

/* Looks at a page that is going to be programmed; at the same one again, too. */
void older_note(struct older_pages *older, uint32_t segment_pages, uint32_t page,
		const struct page_view *view);

static inline uint32_t older_bit(uint32_t segment_pages, uint32_t page)
{
	return segment_pages > OLDER_WORDS * 64 ? page / (segment_pages / (OLDER_WORDS * 64))
						: page;
}

/* Whether a page has nothing with a number up to `bound`. */
static inline bool older_passes(const struct older_pages *older, uint32_t segment_pages,
				uint32_t page, uint64_t bound)
{
	uint32_t bit = older_bit(segment_pages, page);

	return bound < older->below && !(older->map[bit / 64] >> bit % 64 & 1);
}

#endif
