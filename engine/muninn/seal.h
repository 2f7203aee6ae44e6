/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* From a row's buffer to flash. */
#ifndef MUNINN_ENGINE_MUNINN_SEAL_H
#define MUNINN_ENGINE_MUNINN_SEAL_H

#include "engine/muninn/store.h"

/* What has been programmed does not count; its segment is free again. */
void seal_give_up(struct muninn_store *store, struct sealing *sealing);

/*
 * Programs a row's (older) active segment, adds it to the index and begins an empty one. If
 * history's row has begun that already, goes on with it to the end. -ENOSPC, -EIO.
 */
int seal_row(struct muninn_store *store, uint32_t row);

/*
 * record_store_operations.catch_up. If history's row has a second buffer, or is due for one, goes
 * on sealing the first with at most `pages` page programs. Outside transactions. Errors are logged,
 * and the next call tries again.
 */
void seal_catch_up(struct muninn_store *store, uint32_t pages);

#endif
