/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Keeps bounds of versions and past states of partitions in memory. */
#include "engine/objects/kept.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_FACTOR UINT64_C(0x9e3779b97f4a7c15)

int kept_init(struct kept *kept, uint32_t bounds)
{
	memset(kept, 0, sizeof(*kept));
	pthread_mutex_init(&kept->mutex, NULL);
	kept->generation = 1;
	kept->bounds = calloc(bounds, sizeof(*kept->bounds));
	if (!kept->bounds)
		return -ENOMEM;
	kept->bounds_count = bounds;
	return 0;
}

void kept_destroy(struct kept *kept)
{
	free(kept->bounds);
	kept->bounds = NULL;
	pthread_mutex_destroy(&kept->mutex);
}

uint64_t kept_bytes(const struct kept *kept)
{
	return sizeof(kept->states) + kept->bounds_count * sizeof(*kept->bounds);
}

void kept_forget(struct kept *kept)
{
	pthread_mutex_lock(&kept->mutex);
	memset(kept->states, 0, sizeof(kept->states));
	/* Entries of a generation that has come round again must not count. */
	if (++kept->generation == 0) {
		memset(kept->bounds, 0, kept->bounds_count * sizeof(*kept->bounds));
		kept->generation = 1;
	}
	pthread_mutex_unlock(&kept->mutex);
}

/*
 * Versions of one partition lie side by side: none takes another one's place while there are
 * enough.
 */
static struct kept_bound *bound_place(struct kept *kept, uint64_t id, uint32_t version)
{
	uint64_t place = ((id * HASH_FACTOR) >> 32) + version;

	return &kept->bounds[place % kept->bounds_count];
}

bool kept_find_bound(struct kept *kept, uint64_t id, uint32_t version, uint64_t *bound)
{
	struct kept_bound *place = bound_place(kept, id, version);
	bool found;

	pthread_mutex_lock(&kept->mutex);
	found = version && place->generation == kept->generation && place->version == version &&
		place->partition == id;
	if (found)
		*bound = place->bound;
	pthread_mutex_unlock(&kept->mutex);
	return found;
}

void kept_add_bound(struct kept *kept, uint64_t id, uint32_t version, uint64_t bound)
{
	pthread_mutex_lock(&kept->mutex);
	*bound_place(kept, id, version) = (struct kept_bound){
		.partition = id,
		.bound = bound,
		.version = version,
		.generation = kept->generation,
	};
	pthread_mutex_unlock(&kept->mutex);
}

static struct kept_state *state_place(struct kept *kept, uint64_t id, uint64_t bound)
{
	uint64_t hash = (id ^ bound << 16) * HASH_FACTOR;

	return &kept->states[(hash >> 40) % KEPT_STATES];
}

bool kept_find_state(struct kept *kept, uint64_t id, uint64_t bound, struct partition *state)
{
	struct kept_state *place = state_place(kept, id, bound);
	bool found;

	pthread_mutex_lock(&kept->mutex);
	found = bound && place->bound == bound && place->state.id == id;
	if (found)
		*state = place->state;
	pthread_mutex_unlock(&kept->mutex);
	return found;
}

void kept_add_state(struct kept *kept, uint64_t bound, const struct partition *state)
{
	pthread_mutex_lock(&kept->mutex);
	*state_place(kept, state->id, bound) =
		(struct kept_state){ .bound = bound, .state = *state };
	pthread_mutex_unlock(&kept->mutex);
}
