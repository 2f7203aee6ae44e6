/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Which pages of a sealed segment have records that are older than it, and of which numbers.
 * Merging puts old records beside new ones, so nearly every segment has some, and its lowest number
 * says nothing. Who looks for a key as of a moment before the segment reads only pages that may
 * have something between that moment and what he has found. Other pages are of no use to him.
 *
 * This is in memory. A growing group in NVRAM and the image of a complete one have it too, as far
 * as the index has room, so it survives a restart. Where nothing is known every page may have old
 * records, of any numbers.
 *
 * Ranges of numbers take space only for pages with old records, and only in segments with versions
 * that a merge moved while newer ones existed. So a device without history has none.
 */
#ifndef MUNINN_ENGINE_MUNINN_OLDER_H
#define MUNINN_ENGINE_MUNINN_OLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/muninn/format.h"

struct page_view;
struct sealed_segment;

enum { OLDER_WORDS = 4, OLDER_BITS = 64 * OLDER_WORDS };

/*
 * Two ranges that the numbers of the old records behind a bit of the map are in, as levels: from
 * `lowest` to `end`, and from `begin` to `highest`. A key's versions that were moved together have
 * numbers close to each other, and on most pages those of one move or two.
 */
struct older_levels {
	uint16_t lowest, end, begin, highest;
};

/*
 * Level n is of the numbers from first + n * unit on. The unit is the smallest one with which
 * levels reach up to older_pages.below. Until older_end there are the levels of each bit. Behind
 * it, of those that are set: all of a `wide` one, and the only one of another.
 */
struct older_ranges {
	uint64_t first, unit; /* unit 0: there are none */
	uint64_t wide[OLDER_WORDS];
	uint16_t levels[];
};

enum { OLDER_STORED_MAX = RANGES_BYTES + OLDER_BITS * sizeof(struct older_levels) };

struct older_pages {
	uint64_t below; /* pages whose bit is 0 have no number below this; 0: nothing is known */
	uint64_t map[OLDER_WORDS];   /* a bit for each page, or for 2, 4, ... of a large segment */
	struct older_ranges *ranges; /* on the heap; NULL: old records may have any numbers */
};

/*
 * In turn: before a buffer is sealed. What was gathered for an earlier try goes. `below`: what is
 * new of the segment has this number or a higher one; 0: that is not known.
 */
void older_begin(struct older_pages *older, uint64_t below);

/* What is known of all records of the segment, before older_note. */
void older_expect(struct older_pages *older, const struct sealed_segment *facts);

/* Looks at a page that is going to be programmed; at the same one again, too. */
void older_note(struct older_pages *older, uint32_t segment_pages, uint32_t page,
		const struct page_view *view);

/* In turn: all pages have been noted. Gives back memory that is not needed. */
void older_end(struct older_pages *older);

/* Forgets what is known, and gives back its memory. */
void older_forget(struct older_pages *older);

/*
 * Bytes that older_put stores, at most OLDER_STORED_MAX (format.h has their layout). 0: there is
 * nothing to store, since no page has old records, or nothing is known.
 */
uint32_t older_stored(const struct older_pages *older);

/* Stores all that is known of `member` of a group, behind older_end. */
void older_put(const struct older_pages *older, uint32_t member, uint8_t *to);

/*
 * How many bytes at the beginning of `length` older_put has stored of a segment. 0: these are none.
 */
uint32_t older_stored_at(const uint8_t *from, uint64_t length);

/*
 * Takes up such bytes, of which there are older_stored_at, and returns the member. Without memory
 * there are no ranges. What `older` was is not given back.
 */
uint32_t older_get(struct older_pages *older, const uint8_t *from);

/* Bytes that the allocator gave for ranges. */
uint64_t older_memory(const struct older_pages *older);

static inline uint32_t older_bit(uint32_t segment_pages, uint32_t page)
{
	return segment_pages > OLDER_BITS ? page / (segment_pages / OLDER_BITS) : page;
}

static inline bool older_bit_is_set(const uint64_t map[OLDER_WORDS], uint32_t bit)
{
	return map[bit / 64] >> bit % 64 & 1;
}

/*
 * Where old records of a page may be that is closest below a bound, if anything is; else where the
 * lowest ones are. The page has old records, and there are ranges.
 */
struct older_range {
	uint64_t lowest, highest;
};

struct older_range older_range(const struct older_pages *older, uint32_t segment_pages,
			       uint32_t page, uint64_t bound);

/* Whether a page has nothing with a number above `after` and up to `bound`. */
static inline bool older_passes(const struct older_pages *older, uint32_t segment_pages,
				uint32_t page, uint64_t after, uint64_t bound)
{
	struct older_range range;

	if (bound >= older->below)
		return false;
	if (!older_bit_is_set(older->map, older_bit(segment_pages, page)))
		return true;
	if (!older->ranges)
		return false;
	range = older_range(older, segment_pages, page, bound);
	return bound < range.lowest || range.highest <= after;
}

#endif
