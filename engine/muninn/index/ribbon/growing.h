/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The growing group of a row: in NVRAM, member by member. */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_RIBBON_GROWING_H
#define MUNINN_ENGINE_MUNINN_INDEX_RIBBON_GROWING_H

#include "engine/muninn/index/ribbon/active.h"

struct growing {
	const struct ribbon_shape *shape;
	uint8_t *nvram; /* growing_bytes of it */
	uint8_t *sum;   /* its pair of sums in NVRAM */
	uint32_t row;
	uint64_t written; /* what the member that has been written adds to the sum */
};

uint64_t growing_bytes(const struct ribbon_shape *shape);

/* Begins group `number`: no members. Crash-safe: the store of the number comes last. */
void growing_begin(struct growing *growing, uint32_t number);

/* Whether NVRAM holds a group of this row. One without members has to begin again. */
bool growing_is_sound(const struct growing *growing);

/* The sum of what is in NVRAM. */
uint64_t growing_sum(const struct growing *growing);

uint32_t growing_number(const struct growing *growing);
uint32_t growing_members(const struct growing *growing);
uint64_t growing_live(const struct growing *growing);

/* No further member: it has as many as it shall, or another one's entries may not fit. */
bool growing_is_full(const struct growing *growing);

/*
 * Writes a member behind the others; it does not count yet. There must be space for it. Locations
 * of its entries are words (location_word). Behind the `count` entries of its keys is one for each
 * page of its runs: its tag (RUN_TAG_BYTES).
 */
void growing_write(struct growing *growing, const struct tag_entry *entries, uint32_t count,
		   const struct group_member *member);

/*
 * Keeps `count` bytes with it, which are the store's, if there is room behind the entries. Those of
 * later members take that room, if they need it.
 */
void growing_append(struct growing *growing, const uint8_t *bytes, uint32_t count);

/*
 * What is kept so with a member that counts: *count bytes in NVRAM. NULL, and 0: nothing, or it is
 * not whole any more.
 */
const uint8_t *growing_appended(const struct growing *growing, uint32_t member, uint32_t *count);

/* Makes it count: one store, within the first page. */
void growing_commit(struct growing *growing);

/* A member counts no more: one store. */
void growing_take_out(struct growing *growing, uint32_t member);

void growing_read_member(const struct growing *growing, uint32_t member,
			 struct group_member *facts);

/* Entries of so many members, runs' ones too; those of one that has been written count, too. */
uint32_t growing_entries(const struct growing *growing, uint32_t members);

enum growing_locations { GROWING_LOCATIONS, GROWING_PAGES };

/*
 * The entries of keys, of members from `from` on that are below `to`, one behind the other, oldest
 * member first. The segment of the first of these members is `segment`, that of each other one
 * follows. Returns how many. Their locations, or the numbers of their pages.
 */
uint32_t growing_list(const struct growing *growing, uint32_t from, uint32_t to, uint32_t segment,
		      enum growing_locations locations, struct tag_entry *entries);

/* The tags of pages of a member's runs, in 4 bytes each, GROWING_ENTRY_BYTES apart. */
const uint8_t *growing_run_tags(const struct growing *growing, uint32_t member);

/*
 * The image of a group of members from `from` on that are below `to`, on the heap; `with_runs`: and
 * with their runs' tags and those of its entries, or as if they had none. Only bits of live members
 * may change meanwhile. -ENOMEM.
 */
int growing_make_image(const struct growing *growing, uint32_t from, uint32_t to, bool with_tags,
		       uint32_t fingerprint_bits, uint8_t **image, uint64_t *length);

#endif
