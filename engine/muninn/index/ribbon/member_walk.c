/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The order of a group's segments in a search.
 *
 * The numbers of a tag in a ribbon go from its newest entry to its oldest. The number of an entry
 * that has failed may be a false hit, though, which names any place, even an older one of the same
 * key. A search that believed it would take an old record for the newest. So as soon as the tag has
 * failed entries in the group, all its entries are gone through for each member, and the newest
 * member that is left comes next. Few tags have any, and few have many entries.
 */
#include "engine/muninn/index/ribbon/member_walk.h"

#include <assert.h>

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

/* ---- the exact table ---- */

/* The entry below a member's rank; its segment becomes the member. */
static bool exact_entry(const struct member_walk *walk, uint64_t below, struct tag_entry *entry)
{
	uint64_t from = exact_rank(exact_shape_of(walk->exact), walk->first, 0);

	if (!exact_below(walk->exact, walk->tag, from, from + below, entry))
		return false;
	entry->segment -= walk->first;
	return true;
}

static uint64_t rank_of_member(const struct member_walk *walk, uint32_t member)
{
	return exact_rank(exact_shape_of(walk->exact), member, 0);
}

/* ---- all entries, gone through for the newest member below a bound ---- */

struct choice {
	bool found;
	uint32_t member;
	struct locations *locations;
};

static void consider(struct choice *choice, const struct tag_entry *entry)
{
	if (choice->found && entry->segment < choice->member)
		return;
	if (!choice->found || entry->segment > choice->member)
		clear(choice->locations);
	choice->found = true;
	choice->member = entry->segment;
	add(choice->locations, entry->location);
}

static bool choose_member(struct member_walk *walk, uint32_t *member, struct locations *locations)
{
	struct choice choice = { .locations = locations };
	struct group_walk numbers = { .tag = walk->tag, .has_failed = true };
	uint64_t below = rank_of_member(walk, walk->below);
	struct tag_entry entry;

	while (walk->group && group_next(walk->group, &numbers, &entry))
		if (entry.segment < walk->below)
			consider(&choice, &entry);
	while (exact_entry(walk, below, &entry) &&
	       (!choice.found || entry.segment >= choice.member)) {
		consider(&choice, &entry);
		below = exact_rank(exact_shape_of(walk->exact), entry.segment, entry.location);
	}
	*member = choice.member;
	return choice.found;
}

/* ---- entries that come in order ---- */

/* The next entry that is in order. Behind the last true one there may be false ones, which are not.
 */
static void look_ahead(struct member_walk *walk)
{
	walk->has_ahead = false;
	while (!walk->at_end && !walk->has_ahead) {
		walk->at_end = !group_next(walk->group, &walk->walk, &walk->ahead);
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

void member_walk_begin(struct member_walk *walk, const struct group *group,
		       const struct exact *exact, uint32_t first, uint32_t members, uint32_t tag)
{
	struct tag_entry entry;

	*walk = (struct member_walk){
		.group = group,
		.exact = exact,
		.first = first,
		.tag = tag,
		.below = members,
		.walk = { .tag = tag },
	};
	walk->in_order = group && !exact_entry(walk, rank_of_member(walk, members), &entry);
}

bool member_walk_next(struct member_walk *walk, uint32_t *member, struct locations *locations)
{
	bool found = walk->in_order ? next_in_order(walk, member, locations)
				    : choose_member(walk, member, locations);

	if (found)
		walk->below = *member;
	return found;
}
