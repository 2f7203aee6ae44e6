/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The index of an active segment: a hash table of (tag, page). */
#include "engine/muninn/index/ribbon/active.h"

#include <assert.h>
#include <stdlib.h>

#include "engine/muninn/index/ribbon/ribbon_hash.h"

#define NO_PAGE_YET UINT16_MAX /* of a slot */

/*
 * A page that so many keys of a kind have passed by counts as full for others of that kind. Kinds
 * are what key_hash tells of size: metadata is small.
 */
enum { PASSED_BY_MAX = 32, KINDS = 2 };

struct active {
	const struct ribbon_shape *shape;
	uint32_t slots, count;
	uint32_t *tags;         /* of each slot */
	uint16_t *pages;        /* NO_PAGE_YET: the slot is free */
	uint32_t low[KINDS];    /* pages below are full */
	uint8_t *passed[KINDS]; /* of each page */
};

/* ---- memory ---- */

/* Four in five are used when no further entry is taken. Mostly it is one in five. */
static uint32_t slots_for(const struct ribbon_shape *shape)
{
	return shape->segment_entries + shape->segment_entries / 4 + 2;
}

struct active *active_create(const struct ribbon_shape *shape)
{
	struct active *active = calloc(1, sizeof(*active));

	if (!active)
		return NULL;
	active->shape = shape;
	active->slots = slots_for(shape);
	active->tags = malloc(active->slots * sizeof(*active->tags));
	active->pages = malloc(active->slots * sizeof(*active->pages));
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

uint64_t active_bytes(const struct ribbon_shape *shape)
{
	return sizeof(struct active) + slots_for(shape) * UINT64_C(6) +
	       KINDS * (uint64_t)shape->segment_pages;
}

void active_begin(struct active *active)
{
	for (uint32_t slot = 0; slot < active->slots; slot++)
		active->pages[slot] = NO_PAGE_YET;
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

/* The highest page of a tag below another one. False: there is none. */
static bool find_below(const struct active *active, uint32_t tag, uint32_t below, uint32_t *page)
{
	bool found = false;

	for (uint32_t slot = first_slot(active, tag); active->pages[slot] != NO_PAGE_YET;
	     slot = next_slot(active, slot)) {
		uint32_t other = active->pages[slot];

		if (active->tags[slot] != tag || other >= below || (found && other <= *page))
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

static void note(struct active *active, uint32_t tag, uint32_t page)
{
	uint32_t slot = slot_of(active, tag, page);

	if (active->pages[slot] != NO_PAGE_YET)
		return;
	active->tags[slot] = tag;
	active->pages[slot] = (uint16_t)page;
	active->count++;
}

/* ---- putting ---- */

uint32_t active_first(const struct active *active, const struct key_hash *hash)
{
	uint32_t page;

	return find_below(active, tag_of(hash), UINT32_MAX, &page) ? page
								   : active->low[hash->metadata];
}

bool active_next(const struct active *active, const struct key_hash *hash, uint32_t *page)
{
	uint32_t tag = tag_of(hash);

	while (*page < active->shape->segment_pages && !can_be_noted(active, tag, *page))
		++*page;
	return *page < active->shape->segment_pages;
}

void active_note(struct active *active, const struct key_hash *hash, uint32_t page)
{
	uint8_t *passed = active->passed[hash->metadata];
	uint32_t *low = &active->low[hash->metadata];

	for (uint32_t other = active_first(active, hash); other < page; other++)
		passed[other] += passed[other] < PASSED_BY_MAX;
	while (*low < active->shape->segment_pages && passed[*low] == PASSED_BY_MAX)
		++*low;
	note(active, tag_of(hash), page);
}

bool active_note_page(struct active *active, const struct key_hash *hash, uint32_t page)
{
	if (page >= active->shape->segment_pages || !can_be_noted(active, tag_of(hash), page))
		return false;
	note(active, tag_of(hash), page);
	return true;
}

/* ---- finding ---- */

bool active_find(const struct active *active, const struct key_hash *hash, uint32_t *page)
{
	return find_below(active, tag_of(hash), *page, page);
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
