/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Which intervals nobody can tell from their not being there, so that they can be dropped. A reader
 * goes by the last interval at or before its bound, and from there as of the number that it goes
 * back to. So an interval is used by readers in one stretch only, from it to the next one of its
 * scope or of a wider one. It may go when no moment that can be reached lies in its stretch, and no
 * other interval goes back into it: then every reader goes by the same others as before, so merging
 * finds the same records needed. Both stay true: moments that are gone never come back, and a new
 * interval goes back to a moment that can be reached, or to where another one goes back to. Several
 * may go together, since what goes away only takes readers from others, but for those in its own
 * stretch, and there are none.
 */
#ifndef MUNINN_ENGINE_HISTORY_HIDDEN_REVIEW_H
#define MUNINN_ENGINE_HISTORY_HIDDEN_REVIEW_H

#include <stdbool.h>

struct engine;

/*
 * Looks at some intervals, from where the last call ended, and drops those that may go. The caller
 * has the turn, and no transaction is open. Errors leave all as it was.
 */
void hidden_review(struct engine *engine);

/* Whether the next call has more to do than to look. */
bool hidden_review_is_due(const struct engine *engine);

/*
 * The same before a transaction, when there are many more than the last round left, or one was
 * refused.
 */
void hidden_review_if_due(struct engine *engine);

#endif
