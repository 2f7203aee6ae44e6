/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Segments that a merge has emptied, on their way to being free. On stable storage comes first what
 * was moved, then that the segments are out, and last whatever is written to them. Each of the two
 * waits for the host, so a thread that seals may do that while the merge goes on with the next
 * segments: it takes it like a full buffer, under the number behind the last row's.
 */
#ifndef MUNINN_ENGINE_MUNINN_EMPTIED_H
#define MUNINN_ENGINE_MUNINN_EMPTIED_H

#include "engine/muninn/store.h"

/* In turn, none under way: what the run has moved of its batch is complete. */
void emptied_begin(struct muninn_store *store);

bool emptied_are_under_way(const struct muninn_store *store);

/* How those ended that were under way last. Tells it once. */
int emptied_take_result(struct muninn_store *store);

/* In turn: waits for the host until none are under way. */
void emptied_finish(struct muninn_store *store);

/*
 * For who needs their end: in turn, what follows the last wait, and whether any are still under
 * way; then without the turn, the next wait, or the rest of somebody else's.
 */
bool emptied_go_on(struct muninn_store *store);
void emptied_run(struct muninn_store *store);

/* By a thread, as seal_take and seal_step. False: none wait, or a thread has them already. */
bool emptied_wait(const struct muninn_store *store);
bool emptied_take(struct muninn_store *store);
int emptied_step(struct muninn_store *store);

#endif
