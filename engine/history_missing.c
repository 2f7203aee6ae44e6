/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The calls of engine.h's history section that are not there yet. */
#include <errno.h>

#include "engine/engine.h"

int engine_diff_next(struct engine_txn *txn, uint64_t partition, struct engine_moment from,
		     struct engine_moment to, struct engine_diff_cursor *cursor,
		     struct engine_difference *difference)
{
	(void)txn;
	(void)partition;
	(void)from;
	(void)to;
	(void)cursor;
	(void)difference;
	return -EOPNOTSUPP;
}

int engine_clone(struct engine_txn *txn, uint64_t source, struct engine_moment moment,
		 uint64_t requested, bool writable, uint64_t *chosen)
{
	(void)txn;
	(void)source;
	(void)moment;
	(void)requested;
	(void)writable;
	(void)chosen;
	return -EOPNOTSUPP;
}

int engine_clone_refresh(struct engine_txn *txn, uint64_t clone)
{
	(void)txn;
	(void)clone;
	return -EOPNOTSUPP;
}

int engine_clone_detach(struct engine_txn *txn, uint64_t clone)
{
	(void)txn;
	(void)clone;
	return -EOPNOTSUPP;
}

int engine_clone_get(struct engine_txn *txn, uint64_t partition, struct engine_clone *clone)
{
	(void)txn;
	(void)partition;
	(void)clone;
	return -EOPNOTSUPP;
}
