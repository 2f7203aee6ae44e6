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
	uint32_t member;             /* the one being searched, and ... */
	struct group_member segment; /* ... what it is */
	struct member_walk walk;
	struct locations locations; /* in it, still to visit */
	uint32_t visited;           /* the page that was visited last */
	bool in_run;                /* the locations are pages of a run */
};

/* Pages that follow each other: none, if they end where they begin. */
struct page_range {
	uint32_t begin, end;
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
 * Whether the segment has runs that may have older records of the key, and the search does not go
 * through them yet. They come next if ribbon_search_run says that the page which was visited last
 * has the key: no other key's false hits shall lead there.
 */
bool ribbon_search_has_run(const struct ribbon_search *search);
void ribbon_search_run(struct ribbon_search *search);

/* Pages of runs that may have records of the key, the newest last. */
struct page_range ribbon_search_run_pages(const struct ribbon_search *search);

/*
 * The page of a location in that segment. False: it has no such location, so this is a false hit.
 */
bool ribbon_search_page_of(const struct ribbon_search *search, uint32_t location, uint32_t *page);

#endif
