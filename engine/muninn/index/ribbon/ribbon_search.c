/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Searches a row: group by group, and in a group from its newest member on. */
#include "engine/muninn/index/ribbon/ribbon_search.h"

#include "engine/muninn/index/ribbon/growing_format.h"
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
			search->member = search->member_first + member;
			if (!read_member(search, search->member, after, facts))
				continue;
			search->in_run = false;
			*segment = facts->segment;
			return true;
		}
		if (!go_on(search))
			return false;
	}
}

/* ---- pages of a segment ---- */

bool ribbon_search_page_of(const struct ribbon_search *search, uint32_t location, uint32_t *page)
{
	const struct group_member *segment = &search->segment;
	uint32_t pages = search->row->shape->segment_pages;
	/* On older devices one that is all runs is said to have candidates. */
	bool has_candidates = segment->by_candidates && segment->run_pages < pages;

	if (location >= PLACEMENT_CANDIDATES)
		*page = location - PLACEMENT_CANDIDATES;
	else if (has_candidates)
		*page = group_member_runs(segment) + candidate_page(&search->hash, segment->serial,
								    location,
								    pages - segment->run_pages);
	return location >= PLACEMENT_CANDIDATES || has_candidates;
}

bool ribbon_search_page(struct ribbon_search *search, uint32_t *page)
{
	uint32_t location;

	while (locations_take_last(&search->locations, &location))
		if (ribbon_search_page_of(search, location, page)) {
			search->visited = *page;
			return true;
		}
	return false;
}

/* ---- runs ---- */

/* Of a segment's runs: the tag of each page, so many bytes apart. */
struct run_tags {
	const uint8_t *tags;
	uint32_t stride, pages;
};

static struct run_tags read_run_tags(const struct ribbon_search *search)
{
	const struct ribbon_row *row = search->row;
	struct run_tags tags = { .pages = group_member_runs(&search->segment) };

	if (grows(search)) {
		tags.tags = growing_run_tags(&row->growing, search->member);
		tags.stride = GROWING_ENTRY_BYTES;
	} else {
		tags.tags = group_run_tags(&row->complete[search->place].group, search->member);
		tags.stride = RUN_TAG_BYTES;
	}
	return tags;
}

/* How many pages have a tag below this; they are in the order of their tags. */
static uint32_t count_below(const struct run_tags *tags, uint64_t tag)
{
	uint32_t low = 0, high = tags->pages;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (get_le32(tags->tags + (uint64_t)middle * tags->stride) < tag)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct page_range ribbon_search_run_pages(const struct ribbon_search *search)
{
	struct run_tags tags = read_run_tags(search);
	uint64_t tag = tag_of(&search->hash);
	uint32_t begin = count_below(&tags, tag);

	/* It may begin behind another one on the page before. */
	return (struct page_range){ .begin = begin ? begin - 1 : 0,
				    .end = count_below(&tags, tag + 1) };
}

bool ribbon_search_has_run(const struct ribbon_search *search)
{
	return search->segment.has_runs && !search->in_run;
}

void ribbon_search_run(struct ribbon_search *search)
{
	struct page_range pages = ribbon_search_run_pages(search);

	/* Of several keys with the tag, heads may be left. The page itself has been visited. */
	locations_add(&search->locations, location_of_page(pages.begin),
		      location_of_page(pages.end));
	locations_take_out(&search->locations, location_of_page(search->visited));
	search->in_run = true;
}
