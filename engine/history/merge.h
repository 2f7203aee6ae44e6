/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* When to merge, and when history is given up for space. */
#ifndef MUNINN_ENGINE_HISTORY_MERGE_H
#define MUNINN_ENGINE_HISTORY_MERGE_H

#include "engine/history/past.h"

/*
 * Before a transaction: frees some segments if the store gets low and merging is automatic. The
 * caller has the turn alone, and no transaction is open.
 */
void merge_before(struct engine *engine, enum engine_mode mode);

/* Whether merge_before has more to do than to look. The caller has the turn alone. */
bool merge_is_due(const struct engine *engine);

/* With a thread that merges: what it does in turn. */
struct merge_job {
	bool stores;        /* history may be given up for it */
	bool under_way;     /* a step is: its next piece follows operations->merge_run */
	uint64_t looked_at; /* records, by the last piece */
	struct record_merge merge;
};

/* Whether the store gets low and a step may gain. */
bool merge_is_wanted(struct engine *engine);

/* A piece of a step. -EAGAIN: no step is wanted, or the last ones gained nothing. */
int merge_do_piece(struct engine *engine, struct merge_job *job);

/* The same of a step for segments that lost pages, whatever the space. 0 or why there is none. */
int merge_mend_piece(struct engine *engine, struct merge_job *job);

/* A transaction was committed that may have freed something: steps may gain again. */
void merge_after(struct engine_txn *txn);

/*
 * Whether `bytes` of records can be put. The caller has a turn. True when the store doesn't know.
 */
bool merge_has_space(struct engine *engine, uint64_t bytes);

/* Whether so many bytes of records can be on the device at all. */
bool merge_fits(struct engine *engine, uint64_t bytes);

#endif
