/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A device whose NVRAM is lost. */
#ifndef MUNINN_ENGINE_MUNINN_REBUILD_H
#define MUNINN_ENGINE_MUNINN_REBUILD_H

#include "engine/muninn/options.h"
#include "engine/records/records.h"
#include "nand/nand.h"

struct lost;

/*
 * Makes the NVRAM again from what is on flash, without what was only in NVRAM. -ENOENT: there is no
 * root. `lost` (mend.h) NULL: without anything that NVRAM holds. Otherwise, on a private copy, with
 * its buffers, and its numbers if those fit their sums; what is damaged on flash is added.
 */
int rebuild_nvram(struct nand *nand, const struct record_options *records,
		  const struct muninn_options *options, struct lost *lost,
		  struct error_text *error);

#endif
