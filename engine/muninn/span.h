/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Records that fill pages badly: of 1,036 bytes three fit in a page of 4 KiB, which leaves a
 * quarter of it empty. If most records of a segment have such a size, they span its pages: it has
 * cells of that size, and one that does not end in a page ends in the next one. The header of a
 * record is always in the page where it begins. Few records may be larger than a cell.
 *
 * A buffer has to hold as many records as its segment. Its pages are longer than those of flash
 * then, by what takes them to whole cells, and there are fewer of them. No record of the buffer
 * spans its pages. One that is larger than a cell takes its bytes of a page.
 */
#ifndef MUNINN_ENGINE_MUNINN_SPAN_H
#define MUNINN_ENGINE_MUNINN_SPAN_H

#include "engine/muninn/geometry.h"

/* The pages of a buffer. */
struct span {
	uint32_t cell_bytes; /* of most records at most; 0: none spans pages, ... */
	uint32_t page_cells; /* ... and a page holds as many records as fit */
	uint32_t page_bytes; /* of a page of the buffer */
	uint32_t pages;
	/*
	 * If any record is larger than a cell, so many of them are used: the segment has space for
	 * what these hold, whatever that is. 0: none may be larger.
	 */
	uint32_t mixed_pages;
};

/* For cells of `cell_bytes`; as without them if these can't be, or 0. */
struct span span_of(const struct muninn_geometry *geometry, uint32_t cell_bytes);

/*
 * Cells that begin in the next page of a segment. *begin: in how many bytes of it a cell of the
 * page before ends; 0 for the first page; then that of the page behind it. `is_last`: no page is.
 */
uint32_t span_next_page(const struct muninn_geometry *geometry, uint32_t cell_bytes, bool is_last,
			uint32_t *begin);

/* Where in a segment a record that is larger than a cell may begin, from byte `at` on. */
uint64_t span_next_header(const struct muninn_geometry *geometry, uint64_t at);

/* ---- which cells ---- */

/* Sizes are counted in so many classes of one width, and those beyond a page in one more. */
enum { SPAN_SIZES = 64 };

/* The records of a buffer, by their bytes with headers. */
struct span_sizes {
	uint32_t counts[SPAN_SIZES + 1];
	uint32_t largest[SPAN_SIZES + 1]; /* bytes of the largest of a class */
	uint64_t bytes;
	uint32_t pages; /* of the buffer, that have any */
};

/* Whether so many bytes of records fill a segment so well that cells can't be worth it. */
bool span_is_full(const struct muninn_geometry *geometry, uint64_t bytes);

void span_count(const struct muninn_geometry *geometry, uint32_t bytes, struct span_sizes *sizes);

/*
 * The cells that a buffer of such records should have; 0: none. `now`: the pages of the buffer that
 * they come from. It should have cells if a segment takes an eighth more of them then, and three
 * quarters of the cells that they take are filled. If there is too little to see that, it has what
 * `now` has.
 */
uint32_t span_choose(const struct muninn_geometry *geometry, const struct span *now,
		     const struct span_sizes *sizes);

#endif
