/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The index of an active segment: a hash table of (tag, page). There is address space for the most
 * entries that a segment may have, mostly four times what it has. So the table begins with slots
 * for the expected ones, and doubles within that space. What it has never used takes no memory.
 */
#include "engine/muninn/index/ribbon/active.h"

#include <assert.h>
#include <malloc.h>
#include <stdlib.h>

#include "common/mapped_memory.h"
#include "engine/muninn/index/ribbon/ribbon_hash.h"

#define SPREAD (1U << 15) /* of a page, while slots are doubled: the entry is in its place */

/*
 * A page that so many keys of a kind have passed by counts as full for others of that kind. Kinds
 * are what key_hash tells of size: metadata is small.
 */
enum { PASSED_BY_MAX = 32, KINDS = 2 };

struct active {
	const struct ribbon_shape *shape;
	uint32_t slots, slots_max, count;
	uint32_t slots_used;         /* the most that there have been; all behind are free */
	struct mapped_memory memory; /* of the slots */
	uint32_t low[KINDS];         /* pages below are full */
	uint8_t *passed[KINDS];      /* of each page */
	uint8_t passed_by[];
};

/* ---- slots ---- */

/*
 * A slot is a tag (4), and a page + 1 (2), which is 0 when it is free. They follow each other
 * without gaps, so those that are used are in few pages of memory.
 */
enum { SLOT_WORD_AT = 4, SLOT_BYTES = 6, SLOT_FREE = 0 };

static uint8_t *slot_at(const struct active *active, uint32_t slot)
{
	return active->memory.at + (uint64_t)slot * SLOT_BYTES;
}

static uint32_t slot_tag(const struct active *active, uint32_t slot)
{
	return get_le32(slot_at(active, slot));
}

static uint32_t slot_word(const struct active *active, uint32_t slot)
{
	return get_le16(slot_at(active, slot) + SLOT_WORD_AT);
}

static void put_word(struct active *active, uint32_t slot, uint32_t word)
{
	put_le16(slot_at(active, slot) + SLOT_WORD_AT, (uint16_t)word);
}

static void put_slot(struct active *active, uint32_t slot, uint32_t tag, uint32_t word)
{
	put_le32(slot_at(active, slot), tag);
	put_word(active, slot, word);
}

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

/* It is empty, and its slots take no memory before it begins. */
struct active *active_create(const struct ribbon_shape *shape)
{
	size_t pages = shape->segment_pages;
	struct active *active = calloc(1, sizeof(*active) + KINDS * pages);

	if (!active)
		return NULL;
	active->shape = shape;
	active->slots = slots_for(shape->entries_expected);
	active->slots_max = slots_for(shape->segment_entries);
	for (size_t kind = 0; kind < KINDS; kind++)
		active->passed[kind] = active->passed_by + kind * pages;
	active->memory.is_sparse = true;
	if (!mapped_resize(&active->memory, active->slots_max * (uint64_t)SLOT_BYTES))
		return active;
	active_destroy(active);
	return NULL;
}

void active_destroy(struct active *active)
{
	if (!active)
		return;
	mapped_end(&active->memory);
	free(active);
}

uint64_t active_bytes(const struct active *active)
{
	return sizeof(*active) + active->slots_used * (uint64_t)SLOT_BYTES +
	       KINDS * (uint64_t)active->shape->segment_pages;
}

uint64_t active_memory(const struct active *active)
{
	return malloc_usable_size((void *)(uintptr_t)active) +
	       mapped_pages(active->slots_used * (uint64_t)SLOT_BYTES);
}

static void use_slots(struct active *active, uint32_t slots)
{
	active->slots = slots;
	if (active->slots_used < slots)
		active->slots_used = slots;
}

void active_begin(struct active *active)
{
	memset(active->memory.at, SLOT_FREE, active->slots_used * (uint64_t)SLOT_BYTES);
	use_slots(active, slots_for(active->shape->entries_expected));
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

	while (slot_word(active, slot) != SLOT_FREE &&
	       (slot_tag(active, slot) != tag || slot_word(active, slot) != page + 1))
		slot = next_slot(active, slot);
	return slot;
}

/* The highest page of a tag below another one; others pass as in active_find. False: none. */
static bool find_below(const struct active *active, uint32_t tag, uint32_t below,
		       const uint64_t *lowest, uint64_t bound, uint32_t *page)
{
	bool found = false;

	for (uint32_t slot = first_slot(active, tag); slot_word(active, slot) != SLOT_FREE;
	     slot = next_slot(active, slot)) {
		uint32_t other = slot_word(active, slot) - 1;

		if (slot_tag(active, slot) != tag || other >= below || (found && other <= *page) ||
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
	       slot_word(active, slot_of(active, tag, page)) != SLOT_FREE;
}

/*
 * Puts the entry of a slot where it belongs among more slots. One that was there and has not been
 * put anew goes on instead.
 */
static void spread(struct active *active, uint32_t slot)
{
	uint32_t tag = slot_tag(active, slot), word = slot_word(active, slot);

	put_word(active, slot, SLOT_FREE);
	while (word != SLOT_FREE) {
		uint32_t to = first_slot(active, tag), other_tag, other;

		while (slot_word(active, to) & SPREAD)
			to = next_slot(active, to);
		other_tag = slot_tag(active, to);
		other = slot_word(active, to);
		put_slot(active, to, tag, word | SPREAD);
		tag = other_tag;
		word = other;
	}
}

static void double_slots(struct active *active)
{
	uint32_t before = active->slots;

	use_slots(active, 2 * before < active->slots_max ? 2 * before : active->slots_max);
	for (uint32_t slot = 0; slot < before; slot++)
		if (slot_word(active, slot) != SLOT_FREE && !(slot_word(active, slot) & SPREAD))
			spread(active, slot);
	for (uint32_t slot = 0; slot < active->slots; slot++)
		put_word(active, slot, slot_word(active, slot) & ~SPREAD);
}

static void note(struct active *active, uint32_t tag, uint32_t page)
{
	uint32_t slot = slot_of(active, tag, page);

	if (slot_word(active, slot) != SLOT_FREE)
		return;
	if (!has_slot_for_one_more(active)) {
		double_slots(active);
		slot = slot_of(active, tag, page);
	}
	put_slot(active, slot, tag, page + 1);
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

		if (slot_word(active, slot) == SLOT_FREE)
			continue;
		*entry = (struct tag_entry){ .tag = slot_tag(active, slot),
					     .location = slot_word(active, slot) - 1 };
		++*at;
		return true;
	}
	return false;
}
