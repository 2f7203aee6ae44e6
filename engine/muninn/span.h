/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Records of one size that fill pages badly: of 1,036 bytes three fit in a page of 4 KiB, which
 * leaves a quarter of it empty. A segment of such records spans its pages: it is a row of cells,
 * each as long as the largest record, and one that does not end in a page ends in the next one.
 * Its header is always in the page where it begins.
 *
 * A buffer has to hold as many records as its segment. Its pages are longer than those of flash
 * then, by what takes them to whole cells, and there are fewer of them. No record of the buffer
 * spans its pages.
 */
#ifndef MUNINN_ENGINE_MUNINN_SPAN_H
#define MUNINN_ENGINE_MUNINN_SPAN_H

#include "engine/muninn/geometry.h"

/* The pages of a buffer. */
struct span {
	uint32_t cell_bytes; /* of each record at most; 0: none spans pages, ... */
	uint32_t page_cells; /* ... and a page holds as many records as fit */
	uint32_t page_bytes; /* of a page of the buffer */
	uint32_t pages;
};

/* For cells of `cell_bytes`; as without them if these can't be, or 0. */
struct span span_of(const struct muninn_geometry *geometry, uint32_t cell_bytes);

/*
 * Whether a segment of such cells takes an eighth more than one whose records are in one page each.
 * A record fills its cell by so many per mille on average; seven eighths at least.
 */
bool span_pays(const struct muninn_geometry *geometry, uint32_t cell_bytes, uint32_t permille);

/*
 * Cells that begin in the next page of a segment. *begin: in how many bytes of it a cell of the
 * page before ends; 0 for the first page; then that of the page behind it. `is_last`: no page is.
 */
uint32_t span_next_page(const struct muninn_geometry *geometry, uint32_t cell_bytes, bool is_last,
			uint32_t *begin);

#endif
