/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What tests ask of the marks that clones leave on what they stand on. */
#ifndef MUNINN_TESTS_ENGINE_HISTORY_STANDING_MARKS_H
#define MUNINN_TESTS_ENGINE_HISTORY_STANDING_MARKS_H

#include "engine/objects/objects.h"
#include "tests/engine/fixture.h"

static inline int try_drop(struct fixture *f, uint64_t partition, uint32_t version)
{
	begin(f, ENGINE_FREE);
	return end(f, engine_version_drop(f->txn, partition, version));
}

/* How many indices are those of partitions that are gone. */
static inline uint64_t gone(struct fixture *f)
{
	struct partition *root;
	uint64_t count;

	assert_int_equal(partition_get(f->engine, 0, &root), 0);
	count = root->history->clones.count - root->sets[PARTITION_USER_OBJECTS].count;
	partition_release(f->engine, root);
	return count;
}

/* How many bounds of clones a current partition has. */
static inline uint64_t bounds_of(struct fixture *f, uint64_t id)
{
	struct partition *partition;
	uint64_t count;

	assert_int_equal(partition_get(f->engine, id, &partition), 0);
	count = partition->history->clones.count;
	partition_release(f->engine, partition);
	return count;
}

#endif
