/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * How many IDs remain of lists that were cut, so that the next part need not count them. Private to
 * osd/. In memory and bounded; the target counts again what it does not know.
 */
#ifndef MUNINN_OSD_LISTINGS_H
#define MUNINN_OSD_LISTINGS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

#define OSD_LISTINGS_MAX 64

/* The rest of a list at one moment, from `next` on. */
struct osd_listing_key {
	struct engine_address
		address; /* the container; of the root and partitions without object */
	enum engine_list what;
	uint64_t sequence; /* engine_list_sequence */
	uint64_t next;
};

struct osd_listings {
	pthread_mutex_t mutex;
	struct osd_listing {
		struct osd_listing_key key;
		uint64_t count; /* 0: not in use */
	} entries[OSD_LISTINGS_MAX];
	unsigned oldest;
};

void osd_listings_init(struct osd_listings *listings);
/* Notes that `count` IDs remain; forgets the list that was noted longest ago. */
void osd_listings_note(struct osd_listings *listings, const struct osd_listing_key *key,
		       uint64_t count);
/* False: not known (any more). */
bool osd_listings_find(struct osd_listings *listings, const struct osd_listing_key *key,
		       uint64_t *count);

#endif
