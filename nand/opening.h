/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Whether an image and its NVRAM file are of the same time. Each opening has a number, which both
 * files note (nand_note_opening) when recovery is done and before anything new is stored: NVRAM
 * first, then the image. So whatever becomes of process or host, the image's number is never ahead
 * of its NVRAM's, and that of the NVRAM is ahead only if noting itself was interrupted. Everything
 * else is certain: somebody has put back one of the files. What recovery changes, and an opening
 * that fails, is not noted: between two such times the files are not told apart.
 */
#ifndef MUNINN_NAND_OPENING_H
#define MUNINN_NAND_OPENING_H

#include "nand/private.h"

/*
 * Compares what the two files have noted. -EINVAL with a sentence that names both, and when each
 * was last opened. What is not known is no reason to refuse.
 */
int nand_opening_check(const char *image, const struct nand_opening *of_image, const char *nvram,
		       const struct nand_opening *of_nvram, struct error_text *error);

#endif
