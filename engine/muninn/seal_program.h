/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The stage of sealing in which a full buffer is programmed: the longest one. */
#ifndef MUNINN_ENGINE_MUNINN_SEAL_PROGRAM_H
#define MUNINN_ENGINE_MUNINN_SEAL_PROGRAM_H

#include "engine/muninn/store.h"

/*
 * Erases the segment of a row's (older) buffer, programs the buffer's pages to it, at most *budget
 * of them, and syncs the segment behind the last one. Goes on where it has ended before; the row's
 * `sealing` has how far that is (`erased`, `pages`), and what the index is to be told (`facts`,
 * `older`, `arrangement`). Beside everything. *complete: all is on flash. An error: of the flash;
 * -ENOMEM, -ENOSPC: of the host.
 */
int seal_program(struct muninn_store *store, uint32_t row, uint32_t *budget, bool *complete);

#endif
