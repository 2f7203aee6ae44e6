/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What is kept in memory of versions and moments from one transaction to the next: which bound a
 * version has, and what the state of a partition was as of a bound. Neither changes but by what
 * calls kept_forget. Two tables of fixed size, in which an entry takes the place of another one.
 * Thread-safe.
 */
#ifndef MUNINN_ENGINE_OBJECTS_KEPT_H
#define MUNINN_ENGINE_OBJECTS_KEPT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/objects/partition.h"

#define KEPT_STATES 64

struct kept_bound {
	uint64_t partition; /* ID */
	uint64_t bound;
	uint32_t version;    /* 0: not in use */
	uint32_t generation; /* the entry counts if the table has the same */
};

struct kept_state {
	uint64_t bound; /* 0: not in use */
	struct partition state;
};

struct kept {
	pthread_mutex_t mutex;
	uint32_t bounds_count; /* places */
	uint32_t generation;   /* of the bounds that count */
	struct kept_bound *bounds;
	struct kept_state states[KEPT_STATES];
};

/* Places for `bounds` versions, at least 1. -ENOMEM. kept_destroy frees, also what is all zero. */
int kept_init(struct kept *kept, uint32_t bounds);
void kept_destroy(struct kept *kept);

/* Memory of the tables. */
uint64_t kept_bytes(const struct kept *kept);

/* Forgets everything: which bound or state there is may have changed. */
void kept_forget(struct kept *kept);

/* The bound of a version of partition `id`, or of the device as that partition is asked for it. */
bool kept_find_bound(struct kept *kept, uint64_t id, uint32_t version, uint64_t *bound);
void kept_add_bound(struct kept *kept, uint64_t id, uint32_t version, uint64_t bound);

/* The state of partition `state->id` as of a bound. */
bool kept_find_state(struct kept *kept, uint64_t id, uint64_t bound, struct partition *state);
void kept_add_state(struct kept *kept, uint64_t bound, const struct partition *state);

#endif
