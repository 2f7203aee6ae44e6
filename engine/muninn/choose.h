/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Which segment a merge takes next. */
#ifndef MUNINN_ENGINE_MUNINN_CHOOSE_H
#define MUNINN_ENGINE_MUNINN_CHOOSE_H

#include "engine/muninn/merge_run.h"

/*
 * -EAGAIN: none is worth it, or the run has read enough before that was known. -EINPROGRESS: a
 * piece has ended; the next call goes on.
 */
int choose_segment(struct merge_run *run, struct victim *best);

/* record_store_operations.merge_calls_max. */
uint32_t choose_calls_max(const struct muninn_store *store);

#endif
