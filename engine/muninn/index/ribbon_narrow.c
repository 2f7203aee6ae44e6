/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Which pages of a segment a search for an old version leaves out. */
#include "engine/muninn/index/ribbon_narrow.h"

/* Of fewer pages all are visited from the newest one on. */
enum { GUESS_PAGES = 2, HALVE_PAGES = 6 };

/*
 * Lists the pages that are left, but for those of false locations, and those of the key's run. A
 * candidate is newer than that.
 */
static void list_pages(const struct ribbon_search *search, struct narrow *narrow)
{
	struct locations pages = search->locations;
	uint32_t page;

	narrow->count = 0;
	for (uint32_t location = PLACEMENT_CANDIDATES; location-- > 0;)
		if (locations_take_out(&pages, location) &&
		    ribbon_search_page_of(search, location, &page))
			narrow_add(narrow, location, page);
	if (ribbon_search_has_run(search)) {
		struct page_range run = ribbon_search_run_pages(search);

		locations_add(&pages, location_of_page(run.begin), location_of_page(run.end));
	}
	for (uint32_t location; locations_take_last(&pages, &location);)
		narrow_add(narrow, location, location - PLACEMENT_CANDIDATES);
}

/*
 * The first page that surely has the key, and nothing as old as the bound of any key. From there on
 * the key's run is too new, and its head. UINT32_MAX: there is no such page.
 *
 * The pages of the run but the first one and the last one begin with a record of the key's tag. The
 * last one may begin with one of the next tag: see run_tags. A record of the tag is one of the key,
 * or the key has nothing here, unless two keys have the tag in this segment; then the heads of both
 * are in runs, and have locations there.
 */
static uint32_t too_new_from(const struct ribbon_search *search, index_probe *probe, void *context)
{
	struct page_range run = ribbon_search_run_pages(search);
	struct locations locations = search->locations;
	uint32_t location;

	while (locations_take_last(&locations, &location))
		if (location >= PLACEMENT_CANDIDATES &&
		    location - PLACEMENT_CANDIDATES < group_member_runs(&search->segment))
			return UINT32_MAX;
	for (uint32_t page = run.begin + 1; page + 1 < run.end; page++)
		if (!probe(context, page, NULL))
			return page;
	return UINT32_MAX;
}

/* Leaves out, without a read, pages that have nothing as old. */
static void pass_too_new(const struct ribbon_search *search, struct narrow *narrow,
			 index_probe *probe, void *context)
{
	uint32_t from = too_new_from(search, probe, context), kept = 0;

	for (uint32_t n = 0; n < narrow->count; n++) {
		uint32_t page = narrow->pages[n];

		if (page >= from || !probe(context, page, NULL))
			continue;
		narrow->places[kept] = narrow->places[n];
		narrow->pages[kept++] = (uint16_t)page;
	}
	narrow->count = kept;
}

/* Only these places are left, the newest last. */
static void keep_places(struct ribbon_search *search, const struct narrow *narrow)
{
	uint32_t first = 0;

	/* If a candidate is old enough, all of the run is. That comes behind it. */
	if (narrow->count && narrow->places[narrow->count - 1] < PLACEMENT_CANDIDATES)
		while (narrow->places[first] >= PLACEMENT_CANDIDATES)
			first++;
	else
		search->in_run = true;
	locations_set(&search->locations, &narrow->places[first], narrow->count - first);
}

/*
 * What was moved is in its place by number where there are runs, and only there. Merges leave these
 * as they are: narrowing did not save them reads.
 */
static bool may_narrow(const struct group_member *segment, enum narrow_way way)
{
	return segment->is_ordered || (segment->has_runs && way == NARROW_GUESS);
}

int ribbon_narrow(struct ribbon_search *search, enum narrow_way way, index_probe *probe,
		  void *context)
{
	const struct group_member *segment = &search->segment;
	struct narrow narrow;
	int result;

	if (!may_narrow(segment, way) || search->bound >= segment->last_sequence)
		return 0;
	list_pages(search, &narrow);
	if (segment->has_runs && way == NARROW_GUESS) {
		pass_too_new(search, &narrow, probe, context);
		if (narrow.count < GUESS_PAGES)
			keep_places(search, &narrow);
	}
	if (narrow.count < (way == NARROW_GUESS ? GUESS_PAGES : HALVE_PAGES))
		return 0;
	narrow.first_sequence = segment->first_sequence;
	narrow.last_sequence = segment->last_sequence;
	result = narrow_find(&narrow, search->bound, segment->is_ordered ? way : NARROW_MOVED,
			     probe, context);
	keep_places(search, &narrow);
	return result;
}
