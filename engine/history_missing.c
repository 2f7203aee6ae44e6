/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The calls of engine.h's history section that are not there yet. */
#include <errno.h>

#include "engine/engine.h"

int engine_moment_resolve(struct engine_txn *txn, uint64_t partition, struct engine_moment moment,
			  uint64_t *sequence)
{
	(void)txn;
	(void)partition;
	(void)moment;
	(void)sequence;
	return -EOPNOTSUPP;
}

int engine_version_next(struct engine_txn *txn, uint64_t partition, uint32_t from,
			struct engine_version *version)
{
	(void)txn;
	(void)partition;
	(void)from;
	(void)version;
	return -EOPNOTSUPP;
}

int engine_version_find(struct engine_txn *txn, uint64_t partition, const char *name,
			uint32_t *version)
{
	(void)txn;
	(void)partition;
	(void)name;
	(void)version;
	return -EOPNOTSUPP;
}

int engine_version_drop(struct engine_txn *txn, uint64_t partition, uint32_t version)
{
	(void)txn;
	(void)partition;
	(void)version;
	return -EOPNOTSUPP;
}

int engine_view_open(struct engine_txn *txn, uint64_t partition, struct engine_moment moment,
		     uint32_t *version)
{
	(void)txn;
	(void)partition;
	(void)moment;
	(void)version;
	return -EOPNOTSUPP;
}

int engine_rollback(struct engine_txn *txn, uint64_t partition, struct engine_moment to)
{
	(void)txn;
	(void)partition;
	(void)to;
	return -EOPNOTSUPP;
}

int engine_rollback_object(struct engine_txn *txn, uint64_t partition, uint64_t object,
			   struct engine_moment to)
{
	(void)txn;
	(void)partition;
	(void)object;
	(void)to;
	return -EOPNOTSUPP;
}

int engine_undo(struct engine_txn *txn, uint64_t partition, uint64_t object, uint32_t modifications)
{
	(void)txn;
	(void)partition;
	(void)object;
	(void)modifications;
	return -EOPNOTSUPP;
}

int engine_log_next(struct engine_txn *txn, uint64_t partition, uint64_t object, uint64_t below,
		    struct engine_modification *modification)
{
	(void)txn;
	(void)partition;
	(void)object;
	(void)below;
	(void)modification;
	return -EOPNOTSUPP;
}

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

int engine_retention_get(struct engine_txn *txn, uint64_t partition,
			 struct engine_retention *retention)
{
	(void)txn;
	(void)partition;
	(void)retention;
	return -EOPNOTSUPP;
}

int engine_retention_set(struct engine_txn *txn, uint64_t partition,
			 const struct engine_retention *retention, bool administrator)
{
	(void)txn;
	(void)partition;
	(void)retention;
	(void)administrator;
	return -EOPNOTSUPP;
}

int engine_history(struct engine_txn *txn, uint64_t partition, struct engine_history *history)
{
	(void)txn;
	(void)partition;
	(void)history;
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
