/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A step of a merge, which keeps what keep.h says. */
#ifndef MUNINN_ENGINE_HISTORY_MERGE_STEP_H
#define MUNINN_ENGINE_HISTORY_MERGE_STEP_H

#include "engine/history/past.h"

/*
 * Merges once, or does a piece of that: see merge_step in records.h. The caller has the turn, and
 * no transaction is open. Errors: see there.
 */
int merge_step(struct engine *engine, struct record_merge *merge);
int merge_step_piece(struct engine *engine, struct record_merge *merge);

#endif
