/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Moments, versions and views as bounds. */
#ifndef MUNINN_ENGINE_HISTORY_MOMENTS_H
#define MUNINN_ENGINE_HISTORY_MOMENTS_H

#include "engine/history/past.h"

/*
 * The bound of a moment of a current partition, of the root: of the whole device. In a writing
 * transaction the present is one only if nothing has been changed: -EINVAL. -ENOENT: not to be
 * reached.
 */
int moment_resolve(struct engine_txn *txn, struct partition *partition, struct engine_moment moment,
		   uint64_t *bound);

/* Which view is the first one to be given by an engine that is opened at `now_ms`. */
uint32_t views_begin(uint64_t now_ms);

/* The bound of a version number of partition `id`, which need not exist any more. -ENOENT. */
int moment_of_version(struct engine_txn *txn, uint64_t id, uint32_t version, uint64_t *bound);

/* The same of a view, and as of when it shows objects. */
int moment_of_view(struct engine_txn *txn, uint64_t id, uint32_t version, uint64_t *bound,
		   uint64_t *objects_bound);

/*
 * The bound before the newest `modifications` ones of an object (log.c). -ENOENT: there are fewer
 * to be reached; -E2BIG: that is more than ENGINE_AGO_AT_ONCE.
 */
int moment_ago(struct engine_txn *txn, uint64_t partition, uint64_t object, uint32_t modifications,
	       uint64_t *bound);

/* The same as far as one transaction counts, from what `undo` has on; -EAGAIN: not to the end. */
int moment_count_back(struct engine_txn *txn, uint64_t partition, uint64_t object,
		      uint32_t modifications, struct engine_undo *undo);

#endif
