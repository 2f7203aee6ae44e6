/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Reclaiming segments. */
#ifndef MUNINN_ENGINE_MUNINN_MERGE_H
#define MUNINN_ENGINE_MUNINN_MERGE_H

#include "engine/muninn/store.h"

/* record_store_operations.merge, merge_step, merge_run. */
int merge_segments(struct muninn_store *store, const struct record_keep *keep,
		   struct record_merge *merge);
int merge_piece(struct muninn_store *store, const struct record_keep *keep,
		struct record_merge *merge);
void merge_run_beside(struct muninn_store *store);

#endif
