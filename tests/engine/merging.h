/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What the thread does that merges beside the writers (engine/history/merger.h), without a thread:
 * the test says when it gets how far. A transaction that would wait for room waits here until the
 * thread has made some, or finds none to be had. There is one of them at a time.
 */
#ifndef MUNINN_TESTS_ENGINE_MERGING_H
#define MUNINN_TESTS_ENGINE_MERGING_H

#include "engine/history/merge.h"

struct merging {
	struct engine *engine;      /* NULL: has not begun */
	struct history_calls calls; /* the engine's, with our own wait for space */
	const struct history_calls *original;
	struct merge_job job;
	bool runs;       /* something is to be read, or made stable, before its next piece */
	uint64_t merged; /* segments, in all */
	/* NULL, or it sees the merger behind each piece, and the grant from before it. */
	void (*looks)(const struct merger *merger, int64_t grant_before);
};

/*
 * Where the engine would start its thread it begins; otherwise, as with merge_manual, it does not.
 * Options that start a real one must not be set.
 */
void merging_begin(struct merging *merging, struct engine *engine);

/* What is under way stays so, as in a crash. */
void merging_end(struct merging *merging);

/* The thread's turn between two transactions: it takes what is wanted, and does its next piece. */
void merging_go_on(struct merging *merging);

/* What it does beside transactions, between two pieces. */
void merging_run(struct merging *merging);

/* Goes on until no step is under way: whoever merges himself waits for that. */
void merging_end_step(struct merging *merging);

#endif
