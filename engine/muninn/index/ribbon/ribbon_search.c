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
	search->in_group = false;
	search->locations.end = 0;
	/* What is asked first, of all groups: their answers come together. */
	exact_prefetch(row->exact, tag);
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

static void begin_group(struct ribbon_search *search)
{
	const struct ribbon_row *row = search->row;
	bool grows = search->place == row->count;
	const struct group *group = grows ? NULL : &row->complete[search->place].group;

	member_walk_begin(&search->walk, group, group ? ribbon_location_base(group) : 0, row->exact,
			  search->place * RIBBON_MEMBERS, RIBBON_MEMBERS, tag_of(&search->hash));
	search->in_group = true;
}

/* Whether a member is there and may have anything between the numbers. */
static bool read_member(const struct ribbon_search *search, uint32_t member, uint64_t after,
			struct group_member *facts)
{
	const struct ribbon_row *row = search->row;
	bool grows = search->place == row->count;
	uint64_t live = grows ? growing_live(&row->growing)
			      : get_le64(row->complete[search->place].live);

	if (!(live >> member & 1))
		return false;
	if (grows)
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
			if (!read_member(search, member, after, facts))
				continue;
			*segment = facts->segment;
			return true;
		}
		search->in_group = false;
		search->locations.end = 0;
		if (search->place == 0)
			return false;
		search->place--;
	}
}

/* False: the segment has no such location, so that this is a false hit. */
static bool page_of(const struct ribbon_search *search, uint32_t location, uint32_t *page)
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
		if (page_of(search, location, page))
			return true;
	return false;
}

/* From so many pages of a key on the one of an old record is found by halving. */
enum { NARROW_PAGES = 6 };

/*
 * The records of a key rise with its pages. So the pages behind the last one that has anything as
 * old as is looked for are left out, by halves, not one by one.
 */
static int halve(struct ribbon_search *search, int (*probe)(void *context, uint32_t page),
		 void *context)
{
	struct locations *locations = &search->locations;
	uint32_t low = 0, high = 0;

	locations_last(locations, UINT32_MAX, &high);
	/* What is looked for is not behind `high`, and in `low` or behind it. */
	while (low < high) {
		uint32_t half = low + (high - low + 1) / 2, location, page;
		int result = 2;

		if (!locations_last(locations, half, &location) || location <= low) {
			low = half;
			continue;
		}
		if (page_of(search, location, &page))
			result = probe(context, page);
		if (result < 0)
			return result;
		if (result == 2)
			locations_leave(locations, location);
		else if (result)
			low = location;
		else
			high = location - 1;
	}
	locations_leave_behind(locations, low);
	return 0;
}

int ribbon_search_narrow(struct ribbon_search *search, int (*probe)(void *context, uint32_t page),
			 void *context)
{
	if (!search->segment.is_ordered || search->bound >= search->segment.last_sequence ||
	    locations_count(&search->locations) < NARROW_PAGES)
		return 0;
	return halve(search, probe, context);
}
