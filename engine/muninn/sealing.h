/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Who is about a row's older buffer, which is on its way to flash. A stage of that may be run by a
 * thread without the turn. Then who has the turn waits for the end of the run before it touches
 * what the stage is about. That is the only lock of a store.
 */
#ifndef MUNINN_ENGINE_MUNINN_SEALING_H
#define MUNINN_ENGINE_MUNINN_SEALING_H

#include "engine/muninn/store.h"

/* -ENOMEM. Also destroys what could be created in part only. */
int sealing_create(struct muninn_store *store);
void sealing_destroy(struct muninn_store *store);

/* Bytes of memory that the allocator gave. */
uint64_t sealing_memory(const struct muninn_store *store);

/* In turn: from now on a thread may run the stage. */
void sealing_offer(struct muninn_store *store, struct sealing *sealing);

/* Makes a stage that was offered the caller's. False: it is no more on offer. */
bool sealing_claim(struct muninn_store *store, struct sealing *sealing);
void sealing_ran(struct muninn_store *store, struct sealing *sealing);

/* In turn: takes the offer back, or waits for the end of the run. */
void sealing_pause(struct muninn_store *store, struct sealing *sealing);
void sealing_pause_all(struct muninn_store *store);

/* Whether somebody runs it; waits until nobody does. */
bool sealing_is_running(struct muninn_store *store, const struct sealing *sealing);
void sealing_wait(struct muninn_store *store, const struct sealing *sealing);

/* Memory to program a segment of `sealing` from; waits while others have it all. */
struct seal_scratch *sealing_take_scratch(struct muninn_store *store,
					  const struct sealing *sealing);
void sealing_give_scratch(struct muninn_store *store, struct seal_scratch *scratch);

#endif
