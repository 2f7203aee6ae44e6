/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The ribbon index of an active segment: which of its pages have which tags, in memory. A key may
 * go to any page from the last one on that has it, so its pages are in the order of its records.
 */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_RIBBON_ACTIVE_H
#define MUNINN_ENGINE_MUNINN_INDEX_RIBBON_ACTIVE_H

#include "engine/muninn/hash.h"
#include "engine/muninn/index/ribbon/ribbon_shape.h"

struct active;

/* NULL: out of memory. NULL may be destroyed. */
struct active *active_create(const struct ribbon_shape *shape);
void active_destroy(struct active *active);

/* Bytes that it has needed so far; what its memory has of these, in whole pages. */
uint64_t active_bytes(const struct active *active);
uint64_t active_memory(const struct active *active);

/* Empties it. */
void active_begin(struct active *active);

/*
 * The pages that a key may be put to: *page begins with active_first and is added one to for each
 * further call. False: there are no more, or there is no space to note the key.
 */
uint32_t active_first(const struct active *active, const struct key_hash *hash);
bool active_next(const struct active *active, const struct key_hash *hash, uint32_t *page);

/* The key has been put to the page. Until then nothing has been noted since active_first. */
void active_note(struct active *active, const struct key_hash *hash, uint32_t page);

/* The page takes no more records: it counts as full for all kinds of keys. */
void active_fill(struct active *active, uint32_t page);

/* The key is found in a page, in any order of pages. False: there is no space for that. */
bool active_note_page(struct active *active, const struct key_hash *hash, uint32_t page);

/*
 * The pages that may hold the key, newest first: *page begins with UINT32_MAX. `lowest`: a number
 * of each page; those with one above `bound` are passed over; NULL: none is. False: there are no
 * more.
 */
bool active_find(const struct active *active, const struct key_hash *hash, const uint64_t *lowest,
		 uint64_t bound, uint32_t *page);

/* How many entries it has; one after the other: *at begins with 0. False: the end. */
uint32_t active_count(const struct active *active);
bool active_entry(const struct active *active, uint32_t *at, struct tag_entry *entry);

#endif
