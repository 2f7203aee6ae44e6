/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * From a row's buffer to flash. A row that has two buffers puts to the newer one; the older one
 * waits to be sealed, in stages. What takes long in a stage, programs and syncs, runs beside
 * everything; what follows it is done in turn.
 */
#ifndef MUNINN_ENGINE_MUNINN_SEAL_H
#define MUNINN_ENGINE_MUNINN_SEAL_H

#include "engine/muninn/store.h"

/*
 * Programs a row's (older) buffer, adds it to the index and begins an empty one, or makes the newer
 * one the row's. If that has begun already, goes on with it to the end. -ENOSPC, -EIO.
 */
int seal_row(struct muninn_store *store, uint32_t row);

/* Begins anew with what does not count yet, in all rows. Their buffers may change then. */
void seal_give_up(struct muninn_store *store);

/*
 * Ends what has begun to count of a row's group. To be called before a segment of the row is taken
 * out, or an image of it written anew.
 */
void seal_settle_group(struct muninn_store *store, uint32_t row);

/* Images lie one behind the other: ends the one that is under way. */
void seal_end_image(struct muninn_store *store);

/* Whether seal_take finds nothing until a thread that is about an image asks for its next stage. */
bool seal_is_held_up(const struct muninn_store *store);

/* record_store_operations.seal_take, seal_run, seal_step, seal_pressure. */
int seal_take(struct muninn_store *store);
void seal_run(struct muninn_store *store, uint32_t row);
int seal_step(struct muninn_store *store, uint32_t row);

/*
 * record_store_operations.catch_up. Goes on sealing what waits for it, with at most `pages` page
 * programs. Outside transactions. Errors are logged, and the next call tries again.
 */
void seal_catch_up(struct muninn_store *store, uint32_t pages);

#endif
