/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Space of an image's blocks on the host's file system, and its way to the host's drive; for the
 * back ends on files.
 */
#ifndef MUNINN_NAND_SPACE_H
#define MUNINN_NAND_SPACE_H

#include "nand/private.h"

int nand_space_open(struct nand *nand, struct error_text *error);
void nand_space_close(struct nand *nand);

/* As `prepare` of struct nand_backend; nothing to do without nand_space_open. */
int nand_space_take(struct nand *nand, uint32_t block);

/* As `discard`: gives the space back, unless it is kept. */
void nand_space_give(struct nand *nand, uint32_t block);

/* As `sync`. */
int nand_image_sync(struct nand *nand);

#endif
