/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Remembers how many IDs remain of a list that was cut. */
#include "osd/listings.h"

void osd_listings_init(struct osd_listings *listings)
{
	*listings = (struct osd_listings){ .mutex = PTHREAD_MUTEX_INITIALIZER };
}

void osd_listings_note(struct osd_listings *listings, const struct osd_listing_key *key,
		       uint64_t count)
{
	pthread_mutex_lock(&listings->mutex);
	listings->entries[listings->oldest] = (struct osd_listing){ *key, count };
	listings->oldest = (listings->oldest + 1) % OSD_LISTINGS_MAX;
	pthread_mutex_unlock(&listings->mutex);
}

static bool are_same(const struct osd_listing_key *a, const struct osd_listing_key *b)
{
	return a->address.partition == b->address.partition &&
	       a->address.object == b->address.object && a->address.version == b->address.version &&
	       a->address.ago == b->address.ago && a->what == b->what &&
	       a->sequence == b->sequence && a->next == b->next;
}

bool osd_listings_find(struct osd_listings *listings, const struct osd_listing_key *key,
		       uint64_t *count)
{
	bool found = false;

	pthread_mutex_lock(&listings->mutex);
	for (unsigned i = 0; i < OSD_LISTINGS_MAX && !found; i++) {
		found = listings->entries[i].count != 0 && are_same(&listings->entries[i].key, key);
		if (found)
			*count = listings->entries[i].count;
	}
	pthread_mutex_unlock(&listings->mutex);
	return found;
}
