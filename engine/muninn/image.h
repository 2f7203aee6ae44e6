/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Writing full groups of the rows' indices to flash. */
#ifndef MUNINN_ENGINE_MUNINN_IMAGE_H
#define MUNINN_ENGINE_MUNINN_IMAGE_H

#include "engine/muninn/store.h"

/*
 * Writes a row's growing group, which must be full, to flash, and begins the next one. Takes the
 * pages that it programs off *pages. If these are too few for a group of history's row, the next
 * call goes on. Sets *completed if any group is complete now, so that a root has to be written; on
 * errors too. -ENOSPC, -EIO.
 */
int image_complete_group(struct muninn_store *store, uint32_t row, uint32_t *pages,
			 bool *completed);

#endif
