/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What merging keeps: what is found at the present, at the end of every kept version, and at every
 * moment that can be reached, of objects that exist there.
 */
#ifndef MUNINN_ENGINE_HISTORY_MERGE_STEP_H
#define MUNINN_ENGINE_HISTORY_MERGE_STEP_H

#include "engine/history/past.h"

/* Merges once. The caller has the turn, and no transaction is open. Errors: see records.h. */
int merge_step(struct engine *engine, struct record_merge *merge);

#endif
