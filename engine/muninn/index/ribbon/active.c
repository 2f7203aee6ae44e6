/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The index of an active segment: a hash table of (tag, page). There is address space for the most
 * entries that a segment may have, mostly four times what it has. So the table begins with slots
 * for the expected ones, and doubles within that space. What it has never used takes no memory.
 */
#include "engine/muninn/index/ribbon/active.h"

#include <assert.h>
#include <stdlib.h>

#include "engine/muninn/index/ribbon/ribbon_hash.h"

#define NO_PAGE_YET UINT16_MAX /* of a slot */
#define SPREAD      (1U << 15) /* of a page, while slots are doubled: the entry is in its place */

/*
 * A page that so many keys of a kind have passed by counts as full for others of that kind. Kinds
 * are what key_hash tells of size: metadata is small.
 */
enum { PASSED_BY_MAX = 32, KINDS = 2 };

struct active {
	const struct ribbon_shape *shape;
	uint32_t slots, slots_max, count;
	uint32_t slots_used;    /* the most that there have been */
	uint32_t *tags;         /* of each slot */
	uint16_t *pages;        /* NO_PAGE_YET: the slot is free */
	uint32_t low[KINDS];    /* pages below are full */
	uint8_t *passed[KINDS]; /* of each page */
};

/* ---- memory ---- */

/* Four in five are used when there are so many entries. */
static uint32_t slots_for(uint32_t entries)
{
	return entries + entries / 4 + 2;
}

static bool has_slot_for_one_more(const struct active *active)
{
	return slots_for(active->count + 1) <= active->slots;
}

struct active *active_create(const struct ribbon_shape *shape)
{
	struct active *active = calloc(1, sizeof(*active));

	if (!active)
		return NULL;
	active->shape = shape;
	active->slots_max = slots_for(shape->segment_entries);
	active->tags = malloc(active->slots_max * sizeof(*active->tags));
	active->pages = malloc(active->slots_max * sizeof(*active->pages));
	active->passed[0] = malloc(KINDS * (size_t)shape->segment_pages);
	if (!active->tags || !active->pages || !active->passed[0]) {
		active_destroy(active);
		return NULL;
	}
	active->passed[1] = active->passed[0] + shape->segment_pages;
	active_begin(active);
	return active;
}

void active_destroy(struct active *active)
{
	if (!active)
		return;
	free(active->tags);
	free(active->pages);
	free(active->passed[0]);
	free(active);
}

uint64_t active_bytes(const struct active *active)
{
	return sizeof(*active) + active->slots_used * UINT64_C(6) +
	       KINDS * (uint64_t)active->shape->segment_pages;
}

/* The slots from one on, up to another one, are free. */
static void free_slots(struct active *active, uint32_t from, uint32_t to)
{
	for (uint32_t slot = from; slot < to; slot++)
		active->pages[slot] = NO_PAGE_YET;
	active->slots = to;
	if (active->slots_used < to)
		active->slots_used = to;
}

void active_begin(struct active *active)
{
	free_slots(active, 0, slots_for(active->shape->entries_expected));
	memset(active->passed[0], 0, KINDS * (size_t)active->shape->segment_pages);
	active->low[0] = active->low[1] = 0;
	active->count = 0;
}

/* ---- the table ---- */

static uint32_t first_slot(const struct active *active, uint32_t tag)
{
	uint32_t mixed = (uint32_t)(tag * UINT64_C(0x9e3779b97f4a7c15) >> 32);

	return (uint32_t)((uint64_t)mixed * active->slots >> 32);
}

static uint32_t next_slot(const struct active *active, uint32_t slot)
{
	return slot + 1 < active->slots ? slot + 1 : 0;
}

/* The slot that has the entry, or the free one where it belongs. */
static uint32_t slot_of(const struct active *active, uint32_t tag, uint32_t page)
{
	uint32_t slot = first_slot(active, tag);

	while (active->pages[slot] != NO_PAGE_YET &&
	       (active->tags[slot] != tag || active->pages[slot] != page))
		slot = next_slot(active, slot);
	return slot;
}

/* The highest page of a tag below another one; others pass as in active_find. False: none. */
static bool find_below(const struct active *active, uint32_t tag, uint32_t below,
		       const uint64_t *lowest, uint64_t bound, uint32_t *page)
{
	bool found = false;

	for (uint32_t slot = first_slot(active, tag); active->pages[slot] != NO_PAGE_YET;
	     slot = next_slot(active, slot)) {
		uint32_t other = active->pages[slot];

		if (active->tags[slot] != tag || other >= below || (found && other <= *page) ||
		    (lowest && lowest[other] > bound))
			continue;
		*page = other;
		found = true;
	}
	return found;
}

static bool can_be_noted(const struct active *active, uint32_t tag, uint32_t page)
{
	return active->count < active->shape->segment_entries ||
	       active->pages[slot_of(active, tag, page)] != NO_PAGE_YET;
}

/*
 * Puts the entry of a slot where it belongs among more slots. One that was there and has not been
 * put anew goes on instead.
 */
static void spread(struct active *active, uint32_t slot)
{
	uint32_t tag = active->tags[slot];
	uint16_t page = active->pages[slot];

	active->pages[slot] = NO_PAGE_YET;
	while (page != NO_PAGE_YET) {
		uint32_t to = first_slot(active, tag), other_tag;
		uint16_t other;

		while (active->pages[to] != NO_PAGE_YET && active->pages[to] & SPREAD)
			to = next_slot(active, to);
		other_tag = active->tags[to];
		other = active->pages[to];
		active->tags[to] = tag;
		active->pages[to] = page | SPREAD;
		tag = other_tag;
		page = other;
	}
}

static void double_slots(struct active *active)
{
	uint32_t before = active->slots;

	free_slots(active, before, 2 * before < active->slots_max ? 2 * before : active->slots_max);
	for (uint32_t slot = 0; slot < before; slot++)
		if (active->pages[slot] != NO_PAGE_YET && !(active->pages[slot] & SPREAD))
			spread(active, slot);
	for (uint32_t slot = 0; slot < active->slots; slot++)
		if (active->pages[slot] != NO_PAGE_YET)
			active->pages[slot] &= (uint16_t)~SPREAD;
}

static void note(struct active *active, uint32_t tag, uint32_t page)
{
	uint32_t slot = slot_of(active, tag, page);

	if (active->pages[slot] != NO_PAGE_YET)
		return;
	if (!has_slot_for_one_more(active)) {
		double_slots(active);
		slot = slot_of(active, tag, page);
	}
	active->tags[slot] = tag;
	active->pages[slot] = (uint16_t)page;
	active->count++;
}

/* ---- putting ---- */

uint32_t active_first(const struct active *active, const struct key_hash *hash)
{
	uint32_t page;

	return find_below(active, tag_of(hash), UINT32_MAX, NULL, 0, &page)
		       ? page
		       : active->low[hash->metadata];
}

bool active_next(const struct active *active, const struct key_hash *hash, uint32_t *page)
{
	uint32_t tag = tag_of(hash);

	while (*page < active->shape->segment_pages && !can_be_noted(active, tag, *page))
		++*page;
	return *page < active->shape->segment_pages;
}

/* All pages below `low` are full. */
static void pass_over_full(struct active *active, uint32_t kind)
{
	uint32_t *low = &active->low[kind];

	while (*low < active->shape->segment_pages && active->passed[kind][*low] == PASSED_BY_MAX)
		++*low;
}

void active_note(struct active *active, const struct key_hash *hash, uint32_t page)
{
	uint8_t *passed = active->passed[hash->metadata];
	uint32_t low = active->low[hash->metadata];

	/* Of full pages, which are all below, there is nothing to count. */
	for (uint32_t other = page > low ? active_first(active, hash) : page; other < page; other++)
		passed[other] += passed[other] < PASSED_BY_MAX;
	pass_over_full(active, hash->metadata);
	note(active, tag_of(hash), page);
}

void active_fill(struct active *active, uint32_t page)
{
	for (uint32_t kind = 0; kind < KINDS; kind++) {
		active->passed[kind][page] = PASSED_BY_MAX;
		pass_over_full(active, kind);
	}
}

bool active_note_page(struct active *active, const struct key_hash *hash, uint32_t page)
{
	if (page >= active->shape->segment_pages || !can_be_noted(active, tag_of(hash), page))
		return false;
	note(active, tag_of(hash), page);
	return true;
}

/* ---- finding ---- */

bool active_find(const struct active *active, const struct key_hash *hash, const uint64_t *lowest,
		 uint64_t bound, uint32_t *page)
{
	return find_below(active, tag_of(hash), *page, lowest, bound, page);
}

uint32_t active_count(const struct active *active)
{
	return active->count;
}

bool active_entry(const struct active *active, uint32_t *at, struct tag_entry *entry)
{
	for (; *at < active->slots; ++*at) {
		uint32_t slot = *at;

		if (active->pages[slot] == NO_PAGE_YET)
			continue;
		*entry = (struct tag_entry){ .tag = active->tags[slot],
					     .location = active->pages[slot] };
		++*at;
		return true;
	}
	return false;
}
