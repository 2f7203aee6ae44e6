/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Reed-Solomon parity over pages, which gives back those that the flash has lost.
 *
 * A group is up to 128 consecutive pages of a segment. Parity of them takes no page: it is in the
 * spare areas of the same pages, a share in each. The shares have parity of their own, so that they
 * may be lost together with their pages.
 *
 * A run is what is written as a whole and not as a segment: the image of a group of the index, a
 * root. Its parity is in pages behind it. Bytes: docs/format.md.
 *
 * Pure functions of memory; which pages are lost is the caller's to know.
 */
#ifndef MUNINN_ENGINE_MUNINN_PARITY_H
#define MUNINN_ENGINE_MUNINN_PARITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nand/nand.h"

/* The code has 256 symbols: pages of a group and parities together. */
#define PARITY_GROUP_PAGES_MAX 128
#define PARITY_LOSSES_MAX      16

struct parity_shape {
	uint32_t losses; /* pages of a group that may be lost; 0: there is no parity */
	uint32_t group_pages;
	uint32_t page_bytes;
	uint32_t head_bytes;  /* of a spare area that parity covers; the share is behind them */
	uint32_t share_bytes; /* of each spare area */
};

/* `losses` at most half of a group. */
struct parity_shape parity_shape(uint32_t page_bytes, uint32_t head_bytes, uint32_t segment_pages,
				 uint32_t losses);

/* A systematic code: `data` symbols, and `more` ones that are made of them. */
struct parity_code {
	uint32_t data, more;
	uint32_t used;   /* of the data symbols: the others are zeros */
	uint8_t *tables; /* of its multiplications, as libisal takes them; NULL if `more` is 1 */
};

struct parity {
	struct parity_shape shape;
	struct parity_code pages, shares;
};

/* -ENOMEM. A shape without parity allocates nothing. `parity_destroy` also of zeros. */
int parity_create(struct parity *parity, const struct parity_shape *shape);
void parity_destroy(struct parity *parity);

/* Bytes of its memory that the allocator gave. */
uint64_t parity_memory(const struct parity *parity);

/* Memory that a call needs. */
size_t parity_scratch_bytes(const struct parity_shape *shape);

/*
 * Puts the shares into the spare areas of a group: begin, then add each page, in any order, when
 * its data and head are there and in the nearest cache, then end.
 */
void parity_begin(const struct parity *parity, uint8_t *scratch);
void parity_add(const struct parity *parity, uint32_t number, const struct nand_page_io *page,
		uint8_t *scratch);
void parity_end(const struct parity *parity, const struct nand_page_io *group, uint8_t *scratch);

/*
 * Makes data and heads of `count` lost pages again, numbers within the group, ascending. All else
 * of the group is as it was programmed. -EBADMSG: more are lost than there are parities. The shares
 * of lost pages are not made.
 */
int parity_restore(const struct parity *parity, const struct nand_page_io *group,
		   const uint32_t *lost, uint32_t count, uint8_t *scratch);

/* ---- runs: in groups of up to as many pages as those of segments ---- */

/* Pages of parity of a run of `pages`; those of its first group come first. */
uint32_t parity_run_more(const struct parity_shape *shape, uint32_t pages);

/* Makes them, in `bytes` behind the pages. */
void parity_run_encode(const struct parity *parity, uint8_t *bytes, uint32_t pages);

/*
 * Makes those of the run's pages again that are lost; `lost` also tells of the pages of parity.
 * -EBADMSG: of some group more are lost than there are parities. `scratch` as for a group.
 */
int parity_run_restore(const struct parity *parity, uint8_t *bytes, uint32_t pages,
		       const bool *lost, uint8_t *scratch);

#endif
