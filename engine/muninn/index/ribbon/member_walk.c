/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The order of a group's segments in a search.
 *
 * The numbers of a tag in a ribbon go from its newest entry to its oldest. The number of an entry
 * that has failed may be a false hit, though, which names any place, even an older one of the same
 * key. A search that believed it would take an old record for the newest. So as soon as the tag has
 * failed entries in the group, all its entries are gathered before the first member is named. Few
 * tags have any, and few have many entries.
 */
#include "engine/muninn/index/ribbon/member_walk.h"

#include <assert.h>

#include "engine/muninn/index/ribbon/placement.h"

static_assert(PLACEMENT_CANDIDATES + MUNINN_SEGMENT_PAGES_MAX <= LOCATION_WORDS * 64 &&
		      (LOCATION_WORDS & (LOCATION_WORDS - 1)) == 0,
	      "there is space for the locations of one segment at least");

/* ---- locations ---- */

static void clear(struct locations *locations)
{
	locations->end = 0;
}

static void add(struct locations *locations, uint32_t location)
{
	uint32_t word = location / 64;

	for (; locations->end <= word; locations->end++)
		locations->words[locations->end] = 0;
	locations->words[word] |= UINT64_C(1) << location % 64;
}

void locations_set(struct locations *locations, const uint16_t *all, uint32_t count)
{
	clear(locations);
	for (uint32_t n = 0; n < count; n++)
		add(locations, all[n]);
}

void locations_add(struct locations *locations, uint32_t begin, uint32_t end)
{
	for (uint32_t location = begin; location < end; location++)
		add(locations, location);
}

bool locations_take_out(struct locations *locations, uint32_t location)
{
	uint64_t *word = &locations->words[location / 64], bit = UINT64_C(1) << location % 64;
	bool was_there = location / 64 < locations->end && *word & bit;

	if (was_there)
		*word &= ~bit;
	return was_there;
}

bool locations_take_last(struct locations *locations, uint32_t *location)
{
	for (; locations->end; locations->end--) {
		uint64_t *word = &locations->words[locations->end - 1];
		uint32_t bit;

		if (!*word)
			continue;
		bit = 63 - (uint32_t)__builtin_clzll(*word);
		*word &= ~(UINT64_C(1) << bit);
		*location = (locations->end - 1) * 64 + bit;
		return true;
	}
	return false;
}

/* ---- entries of some members at once ---- */

static uint64_t *words_of(struct member_walk *walk, uint32_t member)
{
	return walk->gathered + (uint64_t)(member - walk->lowest) * walk->stride;
}

static void gather(struct member_walk *walk, const struct tag_entry *entry)
{
	uint64_t *words = words_of(walk, entry->segment);

	if (!(walk->found >> entry->segment & 1))
		memset(words, 0, walk->stride * sizeof(*words));
	walk->found |= UINT64_C(1) << entry->segment;
	words[entry->location / 64] |= UINT64_C(1) << entry->location % 64;
}

/*
 * The next entry in the exact table of members from `lowest` on that are below `below`; its segment
 * becomes the member.
 */
static bool next_exact(const struct member_walk *walk, uint32_t *at, struct tag_entry *entry)
{
	const struct exact_shape *shape = exact_shape_of(walk->exact);

	if (!exact_find(walk->exact, walk->tag, exact_rank(shape, walk->first + walk->lowest, 0),
			exact_rank(shape, walk->first + walk->below, 0), at, entry))
		return false;
	entry->segment -= walk->first;
	return true;
}

/* The next entry in the ribbon. */
static bool next_in_ribbon(const struct member_walk *walk, struct group_walk *numbers,
			   struct tag_entry *entry)
{
	bool found = group_next(walk->group, numbers, entry);

	entry->location += walk->base;
	return found;
}

/* Gathers all entries of the next members that there is space for. */
static void gather_some(struct member_walk *walk)
{
	struct group_walk numbers = { .tag = walk->tag, .has_failed = true };
	uint32_t space = LOCATION_WORDS / walk->stride, at = 0;
	struct tag_entry entry;

	walk->lowest = walk->below > space ? walk->below - space : 0;
	while (next_exact(walk, &at, &entry))
		gather(walk, &entry);
	while (walk->group && next_in_ribbon(walk, &numbers, &entry))
		if (entry.segment >= walk->lowest && entry.segment < walk->below)
			gather(walk, &entry);
	walk->below = walk->lowest;
}

static bool next_gathered(struct member_walk *walk, uint32_t *member, struct locations *locations)
{
	while (!walk->found && walk->below)
		gather_some(walk);
	if (!walk->found)
		return false;
	*member = 63 - (uint32_t)__builtin_clzll(walk->found);
	walk->found &= ~(UINT64_C(1) << *member);
	locations->end = walk->stride;
	memcpy(locations->words, words_of(walk, *member), walk->stride * sizeof(uint64_t));
	return true;
}

/* ---- entries that come in order ---- */

/* The next entry that is in order. Behind the last true one there may be false ones, which are not.
 */
static void look_ahead(struct member_walk *walk)
{
	walk->has_ahead = false;
	while (!walk->at_end && !walk->has_ahead) {
		walk->at_end = !next_in_ribbon(walk, &walk->walk, &walk->ahead);
		walk->has_ahead = !walk->at_end && walk->ahead.segment < walk->below;
	}
}

static bool next_in_order(struct member_walk *walk, uint32_t *member, struct locations *locations)
{
	if (!walk->has_ahead)
		look_ahead(walk);
	if (!walk->has_ahead)
		return false;
	clear(locations);
	*member = walk->ahead.segment;
	/* Others of this member are next to it; what follows is older. */
	walk->below = *member + 1;
	do {
		add(locations, walk->ahead.location);
		look_ahead(walk);
	} while (walk->has_ahead && walk->ahead.segment == *member);
	return true;
}

/* ---- */

void member_walk_begin(struct member_walk *walk, const struct group *group, uint32_t base,
		       const struct exact *exact, uint32_t first, uint32_t members, uint32_t tag)
{
	struct tag_entry entry;
	uint32_t at = 0;

	walk->group = group;
	walk->base = base;
	walk->exact = exact;
	walk->first = first;
	walk->tag = tag;
	walk->below = members;
	walk->walk = (struct group_walk){ .tag = tag };
	walk->has_ahead = walk->at_end = false;
	walk->found = 0;
	walk->lowest = 0;
	walk->stride = (uint32_t)divide_up(UINT64_C(1) << exact_shape_of(exact)->location_bits, 64);
	walk->in_order = !next_exact(walk, &at, &entry);
}

bool member_walk_next(struct member_walk *walk, uint32_t *member, struct locations *locations)
{
	if (!walk->in_order)
		return next_gathered(walk, member, locations);
	if (!walk->group || !next_in_order(walk, member, locations))
		return false;
	walk->below = *member;
	return true;
}
