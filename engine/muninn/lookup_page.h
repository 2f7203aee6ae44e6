/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What a look-up reads, and what it takes from a page that may have its key (lookup.c). */
#ifndef MUNINN_ENGINE_MUNINN_LOOKUP_PAGE_H
#define MUNINN_ENGINE_MUNINN_LOOKUP_PAGE_H

#include "engine/muninn/merge_run.h"
#include "engine/muninn/store.h"

/* A page that was visited ahead of its turn. No records: there is none. */
struct visited_ahead {
	uint64_t page;
	struct page_numbers numbers; /* of the key */
	int result;                  /* of the visit */
};

/* A lookup in progress. */
struct lookup {
	struct muninn_store *store;
	const struct record_key *key;
	struct key_hash hash;
	struct visibility visibility;
	uint64_t after; /* only what may hold higher numbers than this is searched */
	uint64_t any; /* a record with at least this number will do; 0: only the newest one does */
	struct merge_run *run; /* that it is made for; NULL: a user waits for it */
	/*
	 * Looks for the key in a page. 0: the search ends. -EAGAIN: it goes on to older places.
	 * -EBADMSG.
	 */
	int (*visit)(struct lookup *lookup, const struct page_view *page);
	struct record_info *info; /* of the newest found so far; an array when records are listed */
	uint32_t found, wanted;   /* of them */
	uint64_t found_page;      /* where the newest found so far is */
	/*
	 * Whether pages are visited ahead of their turn, and whether the newest found so far was
	 * found so: then an equal number that is found in its turn is of a later put.
	 */
	bool looks_ahead, is_ahead;
	struct visited_ahead ahead;
	uint8_t *value;
	uint32_t capacity;
	uint32_t *crc; /* of the newest record: what its header has; NULL: not wanted */
};

/* A page, and memory for it. */
struct read_page {
	struct page_view view;
	struct page_spare spare;
	uint8_t data[MUNINN_PAGE_BYTES_MAX];
	uint8_t spare_bytes[4096];
};

/* Ways to visit a page. The newest record; several of the key; whether any is between two numbers.
 */
int lookup_take_newest(struct lookup *lookup, const struct page_view *page);
int lookup_take_several(struct lookup *lookup, const struct page_view *page);
int lookup_take_between(struct lookup *lookup, const struct page_view *page);

/* Reads a page of flash, for a user or for a merge. -EINPROGRESS, -EBUSY, -EBADMSG. */
int lookup_read_page(struct lookup *lookup, uint64_t number, struct read_page *page);

/* Reads pages for a user. -EINPROGRESS: he may not wait, and they are not at hand. */
int lookup_read_pages(struct muninn_store *store, const struct nand_page_io *ios, uint32_t count);

/* Makes a view of a page that has been read. `result`: of the read. Logs what is wrong. */
int lookup_view_page(const struct muninn_store *store, const struct nand_page_io *io, int result,
		     struct page_spare *spare, struct page_view *view);

#endif
