/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Leaves out what is damaged of an NVRAM, so that the rest can be used: for copying what is whole
 * off a device that can't be opened. On a private copy of the device only.
 */
#ifndef MUNINN_ENGINE_MUNINN_MEND_H
#define MUNINN_ENGINE_MUNINN_MEND_H

#include "engine/muninn/store.h"

/*
 * Takes out of the buffers what fails its checksums, adds that to records->salvage, and notes in
 * `lost` which keys had a place there. -EINVAL: what is beside the buffers contradicts its sums,
 * too, so only a rebuilt NVRAM can be opened.
 */
int mend_nvram(struct nand *nand, const struct record_options *records,
	       const struct muninn_options *options, struct lost *lost);

/* Makes a buffer no row's, and new. */
void mend_empty(struct buffer *buffer);

/* ---- what is lost ---- */

/* Whether a record of the key may be lost. record_store_operations.is_uncertain */
enum record_certainty lost_has(struct record_store *store, const struct record_key *key);

#endif
