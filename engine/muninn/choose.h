/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Which segment a merge takes next. */
#ifndef MUNINN_ENGINE_MUNINN_CHOOSE_H
#define MUNINN_ENGINE_MUNINN_CHOOSE_H

#include "engine/muninn/merge_run.h"

/* A sealed segment. */
struct victim {
	uint32_t row;
	uint32_t segment;
	uint32_t live_permille; /* of the bytes of its records, those that are needed */
	bool is_unworn;         /* chosen to level wear */
};

/* -EAGAIN: none is worth it, or the run has read enough before that was known. */
int choose_segment(struct merge_run *run, struct victim *best);

/* record_store_operations.merge_calls_max. */
uint32_t choose_calls_max(const struct muninn_store *store);

#endif
