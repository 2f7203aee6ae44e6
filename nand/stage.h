/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What nand_read_at_hand asks of a stage. */
#ifndef MUNINN_NAND_STAGE_H
#define MUNINN_NAND_STAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "nand/nand.h"

/* Copies a page that has come. False: it has not, or is not the page any more. */
bool nand_stage_copy(struct nand *nand, struct nand_stage *stage, const struct nand_page_io *io);

/* Notes a page that is wanted. */
void nand_stage_note(struct nand *nand, struct nand_stage *stage, uint64_t page);

#endif
