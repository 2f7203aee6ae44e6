/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Segments that a merge has emptied, on their way to being free. On stable storage comes first what
 * was moved, then that the segments are out, and last whatever is written to them. Each of the two
 * waits for the host, so a thread that seals may do that while the merge goes on with the next
 * segments: it takes it like a full buffer, under the number behind the last row's.
 *
 * They are gathered, and leave together. What was moved is made stable by a flush, which takes its
 * number when they begin to leave, and goes on when as many others have been gathered. By then most
 * of what the number speaks of has been sealed, so that the NVRAM need not be written for it.
 */
#ifndef MUNINN_ENGINE_MUNINN_EMPTIED_H
#define MUNINN_ENGINE_MUNINN_EMPTIED_H

#include "engine/muninn/store.h"

/*
 * In turn: adds the run's batch, of which all that is needed has been moved. `are_left`: the merge
 * does not wait for its end.
 */
void emptied_gather(struct muninn_store *store, bool are_left);

/* Whether those that are gathered should leave now; whether a merge is to wait until they can. */
bool emptied_are_due(const struct muninn_store *store);
bool emptied_are_urgent(const struct muninn_store *store);

/* In turn, if none are under way and any are gathered: these begin to leave. */
void emptied_begin(struct muninn_store *store);

/* Whether any are under way; whether there is anything to do for them now. */
bool emptied_are_under_way(const struct muninn_store *store);
bool emptied_have_work(const struct muninn_store *store);
bool emptied_are_gathered(const struct muninn_store *store);

/* So many may wait until they are free; 0: those of no merge have since the store was opened. */
uint32_t emptied_aim(const struct muninn_store *store);

/* How many there are that are not free yet. */
uint32_t emptied_count(const struct muninn_store *store);

/* How those ended that were under way last. Tells it once. */
int emptied_take_result(struct muninn_store *store);

/* In turn: waits for the host until there are none. */
void emptied_finish(struct muninn_store *store);

/*
 * For who wants their end: in turn, what follows the last wait, and whether any are still under
 * way; then without the turn, the next wait, or the rest of somebody else's.
 */
bool emptied_go_on(struct muninn_store *store);
void emptied_run(struct muninn_store *store);

/* By a thread, as seal_take and seal_step. False: none, or a thread has them already. */
bool emptied_take(struct muninn_store *store);
int emptied_step(struct muninn_store *store);

#endif
