/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What happens to one page in front of any back end: the rules of flash and the checksums.
 *
 * Each read and program has two halves. The first asks whether it may be; the second asks whether
 * the result is right, and makes it count. Between them the back end moves the page, at once or
 * while others are on the way too. Every path, synchronous or not, goes through both.
 *
 * Order of a program: data and spare area first, then, with release, the block's word. So the end
 * of the process at any instruction leaves a page whole or not programmed. Order of an erase: the
 * word first, then the contents.
 */
#ifndef MUNINN_NAND_PAGE_H
#define MUNINN_NAND_PAGE_H

#include "nand/private.h"

/* Logs and counts a broken rule; aborts or returns -EPERM, as the device's policy says. */
int nand_violation(struct nand *nand, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * A block's word. False: it is damaged. What was programmed before it was stored is visible after.
 */
bool nand_word_load(const struct nand *nand, uint32_t block, struct nand_block_word *word);
void nand_word_store(struct nand *nand, uint32_t block, const struct nand_block_word *word);

/* Pages of a block whose program has begun on a queue and not ended. */
static inline uint32_t nand_pages_on_the_way(const struct nand *nand, uint32_t block)
{
	return nand->on_the_way
		       ? atomic_load_explicit(&nand->on_the_way[block], memory_order_relaxed)
		       : 0;
}

/* A page on its way: where it is, and the state of its block when it set out. */
struct nand_page_way {
	uint32_t block, index;
	struct nand_block_word word;
};

/*
 * May the page be read? 0, -ERANGE, -EBADMSG (state of the block damaged), -ENODATA or -EIO (the
 * power is off).
 */
int nand_page_read_begin(struct nand *nand, const struct nand_page_io *io,
			 struct nand_page_way *way);

/*
 * Puts bit errors, if there are any, into what the back end returned in io->data (if wanted) and
 * `spare` (spare_bytes). Is it what was programmed? Then fills io->spare. 0, -EBADMSG, or -ENODATA
 * if the block was erased meanwhile.
 */
int nand_page_read_finish(struct nand *nand, const struct nand_page_io *io,
			  const struct nand_page_way *way, uint8_t *spare);

/*
 * May the page be programmed? Makes sure of the space for it. 0, -ERANGE, -EPERM, -ENOSPC (the host
 * is full) or -EIO. -EIO also if an injected fault or a power cut makes the program fail; what that
 * leaves of the page is there then.
 */
int nand_page_program_begin(struct nand *nand, const struct nand_page_io *io,
			    struct nand_page_way *way);

/* Fills `spare` (spare_bytes), which may be io->spare, with what is to be stored beside io->data.
 */
void nand_page_seal(const struct nand *nand, const struct nand_page_io *io,
		    const struct nand_page_way *way, uint8_t *spare);

/* From here on the page counts as programmed. Its data and spare area have been stored. */
void nand_page_program_finish(struct nand *nand, const struct nand_page_way *way);

#endif
