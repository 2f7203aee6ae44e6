/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What opening has to know of a growth that was cut short. */
#ifndef MUNINN_NAND_GROW_H
#define MUNINN_NAND_GROW_H

#include "nand/private.h"

/* The name of the larger NVRAM file while an image grows, to be freed. NULL: no memory. */
char *nand_grown_nvram_path(const char *nvram_path);

/*
 * Ends a growth that was cut short, of an image that is open for writing and found right.
 * `is_unnamed`: it counts, and the new NVRAM file, which is open, gets its name. Otherwise what the
 * growth has left goes. -errno with a sentence.
 */
int nand_grow_settle(struct nand *nand, const char *nvram_path, bool is_unnamed,
		     struct error_text *error);

#endif
