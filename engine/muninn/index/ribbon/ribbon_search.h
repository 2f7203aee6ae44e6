/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A search through the groups of a row, from the newest to the oldest. */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_RIBBON_SEARCH_H
#define MUNINN_ENGINE_MUNINN_INDEX_RIBBON_SEARCH_H

#include "engine/muninn/index/ribbon/member_walk.h"
#include "engine/muninn/index/ribbon/ribbon_row.h"

struct ribbon_search {
	const struct ribbon_row *row;
	struct key_hash hash;
	uint64_t bound;
	uint32_t place; /* of the group being searched; the row's count: the growing one */
	/* Of the growing one, the section; the row's count of these: members that are in none. */
	uint32_t section;
	bool in_group;               /* whether that has begun ... */
	uint32_t member_first;       /* ... and which member its first one is */
	struct group_member segment; /* the one being searched */
	struct member_walk walk;
	struct locations locations; /* in it, still to visit */
};

void ribbon_search_begin(struct ribbon_search *search, const struct ribbon_row *row,
			 const struct key_hash *hash, uint64_t bound);

/*
 * Goes on to the next segment that may have anything of the key with a number above `after`. False:
 * there are no more.
 */
bool ribbon_search_segment(struct ribbon_search *search, uint64_t after, uint32_t *segment);

/* Goes on to the next page of that segment, the newest first. False: there are no more. */
bool ribbon_search_page(struct ribbon_search *search, uint32_t *page);

/*
 * The page of a location in that segment. False: it has no such location, so this is a false hit.
 */
bool ribbon_search_page_of(const struct ribbon_search *search, uint32_t location, uint32_t *page);

#endif
