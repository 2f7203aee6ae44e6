/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Searches a row: group by group, and in a group from its newest member on. */
#include "engine/muninn/index/ribbon/ribbon_search.h"

#include "engine/muninn/index/ribbon/ribbon_hash.h"

void ribbon_search_begin(struct ribbon_search *search, const struct ribbon_row *row,
			 const struct key_hash *hash, uint64_t bound)
{
	uint32_t tag = tag_of(hash);

	search->row = row;
	search->hash = *hash;
	search->bound = bound;
	search->place = row->count;
	search->section = row->section_count;
	search->in_group = false;
	search->locations.end = 0;
	/* What is asked first, of all groups: their answers come together. */
	exact_prefetch(row->exact, tag);
	for (uint32_t n = row->section_count; n-- > 0;)
		group_prefetch(&row->sections[n].group, tag);
	for (uint32_t n = row->count; n-- > 0;)
		group_prefetch(&row->complete[n].group, tag);
}

/* Whether a group may have anything between the numbers. */
static bool is_wanted(const struct ribbon_search *search, uint64_t after)
{
	const struct ribbon_row *row = search->row;

	return search->place == row->count ||
	       (row->complete[search->place].first_sequence <= search->bound &&
		row->complete[search->place].last_sequence > after);
}

/* Whether it goes through the growing group, section by section. */
static bool grows(const struct ribbon_search *search)
{
	return search->place == search->row->count;
}

static void begin_group(struct ribbon_search *search)
{
	const struct ribbon_row *row = search->row;
	const struct group *group = NULL;
	uint32_t members = RIBBON_MEMBERS;

	search->member_first = 0;
	if (!grows(search)) {
		group = &row->complete[search->place].group;
	} else {
		search->member_first = search->section * RIBBON_SECTION_MEMBERS;
		members -= search->member_first;
		if (search->section < row->section_count) {
			group = &row->sections[search->section].group;
			members = RIBBON_SECTION_MEMBERS;
		}
	}
	member_walk_begin(&search->walk, group, group ? ribbon_location_base(group) : 0, row->exact,
			  search->place * RIBBON_MEMBERS + search->member_first, members,
			  tag_of(&search->hash));
	search->in_group = true;
}

/* False: that was the oldest one. */
static bool go_on(struct ribbon_search *search)
{
	search->in_group = false;
	search->locations.end = 0;
	if (grows(search) && search->section) {
		search->section--;
		return true;
	}
	if (search->place == 0)
		return false;
	search->place--;
	return true;
}

/* Whether a member is there and may have anything between the numbers. */
static bool read_member(const struct ribbon_search *search, uint32_t member, uint64_t after,
			struct group_member *facts)
{
	const struct ribbon_row *row = search->row;
	uint64_t live = grows(search) ? growing_live(&row->growing)
				      : get_le64(row->complete[search->place].live);

	if (!(live >> member & 1))
		return false;
	if (grows(search))
		growing_read_member(&row->growing, member, facts);
	else
		group_read_member(&row->complete[search->place].group, member, facts);
	return facts->first_sequence <= search->bound && facts->last_sequence > after;
}

bool ribbon_search_segment(struct ribbon_search *search, uint64_t after, uint32_t *segment)
{
	for (;;) {
		struct group_member *facts = &search->segment;
		uint32_t member;

		if (!search->in_group && is_wanted(search, after))
			begin_group(search);
		while (search->in_group &&
		       member_walk_next(&search->walk, &member, &search->locations)) {
			if (!read_member(search, search->member_first + member, after, facts))
				continue;
			*segment = facts->segment;
			return true;
		}
		if (!go_on(search))
			return false;
	}
}

bool ribbon_search_page_of(const struct ribbon_search *search, uint32_t location, uint32_t *page)
{
	const struct group_member *segment = &search->segment;
	uint32_t pages = search->row->shape->segment_pages;
	/* On older devices one that is all tail is said to have candidates. */
	bool has_candidates = segment->by_candidates && segment->tail_pages < pages;

	if (location >= PLACEMENT_CANDIDATES)
		*page = location - PLACEMENT_CANDIDATES;
	else if (has_candidates)
		*page = candidate_page(&search->hash, segment->serial, location,
				       pages - segment->tail_pages);
	return location >= PLACEMENT_CANDIDATES || has_candidates;
}

bool ribbon_search_page(struct ribbon_search *search, uint32_t *page)
{
	uint32_t location;

	while (locations_take_last(&search->locations, &location))
		if (ribbon_search_page_of(search, location, page))
			return true;
	return false;
}
