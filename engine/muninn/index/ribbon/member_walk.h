/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Goes through the segments of one group that may hold a tag, from the newest to the oldest, by the
 * group's ribbon and by the row's exact table. No segment is passed over, and none comes after one
 * that is older: false ones apart, of which there are some.
 */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_RIBBON_MEMBER_WALK_H
#define MUNINN_ENGINE_MUNINN_INDEX_RIBBON_MEMBER_WALK_H

#include "engine/muninn/index/ribbon/group.h"

/*
 * Locations of a segment: bit n mod 64 of word n / 64 is location n. There are as many words as
 * numbers need that have the bits of the highest one, which is behind candidates and all pages.
 */
enum { LOCATION_WORDS = 2 * MUNINN_SEGMENT_PAGES_MAX / 64 };

struct locations {
	uint64_t words[LOCATION_WORDS];
	uint32_t end; /* words from there on are not set */
};

struct member_walk {
	const struct group *group; /* NULL: the growing group, which has no ribbon */
	const struct exact *exact;
	uint32_t first; /* of the group's segments, in the exact table; its members follow */
	uint32_t base;  /* the location that 0 stands for in the ribbon */
	uint32_t tag;
	uint32_t below; /* members still to visit are below this, or in `found` */
	bool in_order;  /* the ribbon's entries come in order by themselves: then ... */
	bool has_ahead, at_end;
	struct group_walk walk; /* ... this is where it is ... */
	struct tag_entry ahead; /* ... and what was found of the next member. */
	/*
	 * Otherwise the entries of as many members as there is space for are gathered at a time:
	 * members still to visit of these, a bit each, and the locations of each, `stride` words.
	 */
	uint64_t found;
	uint32_t lowest, stride;
	uint64_t gathered[LOCATION_WORDS];
};

/*
 * `members`: how many segments from `first` on are the group's; `base`: what 0 stands for in its
 * ribbon.
 */
void member_walk_begin(struct member_walk *walk, const struct group *group, uint32_t base,
		       const struct exact *exact, uint32_t first, uint32_t members, uint32_t tag);

/* The next member, and all locations in it. False: there are no more. */
bool member_walk_next(struct member_walk *walk, uint32_t *member, struct locations *locations);

/* Only these are left. */
void locations_set(struct locations *locations, const uint16_t *all, uint32_t count);

/* Adds those from `begin` on that are below `end`; takes one out. Whether it was there. */
void locations_add(struct locations *locations, uint32_t begin, uint32_t end);
bool locations_take_out(struct locations *locations, uint32_t location);

/* The highest location that is left, which is taken out. False: there is none. */
bool locations_take_last(struct locations *locations, uint32_t *location);

#endif
