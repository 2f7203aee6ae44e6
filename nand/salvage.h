/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Looking at an image in whatever state it is, without changing a byte of it. */
#ifndef MUNINN_NAND_SALVAGE_H
#define MUNINN_NAND_SALVAGE_H

#include "common/finding.h"
#include "nand/nand.h"

/*
 * Opens a private copy of an image: the files are opened for reading, and all that is programmed,
 * erased or stored from now on stays in this process's memory and ends with the handle. Nobody can
 * open the image for writing meanwhile. -EBUSY: somebody has.
 *
 * What is wrong with the files is added to `findings`, and gone around: one copy of the superblock
 * is enough; what a file does not have is zeros; so is the NVRAM if its file is missing or belongs
 * to another image. `lost`: the geometry if both copies of the superblock are damaged (NULL: not
 * known, -EUCLEAN); nand_contents is "" then. -ENOENT, -EINVAL: there is no image.
 */
int nand_open_copy(const char *path, const struct nand_geometry *lost, struct findings *findings,
		   struct nand **nand, struct error_text *error);

/*
 * As nand_create, with the geometry and the UUID of another image: to take its place, with the same
 * name to initiators and the same keys.
 */
int nand_create_twin(const char *path, const struct nand *of, uint64_t nvram_bytes,
		     struct error_text *error);

/*
 * Makes the damaged words of a private copy's block table anew, from what the pages of the blocks
 * say; adds them to the findings. A block that was erased may have its old pages again, so only
 * what something refers to counts for certain.
 */
void nand_mend_blocks(struct nand *nand, struct findings *findings);

/* How many words that has found damaged. */
uint32_t nand_blocks_were_damaged(const struct nand *nand);

#endif
