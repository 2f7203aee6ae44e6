/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Remembers the unit attentions that an initiator has not been told yet. */
#include "osd/conditions.h"

#include <pthread.h>
#include <stdlib.h>

#include "wire/standard.h"

struct nexus {
	uint64_t nexus;   /* 0: free */
	uint64_t heard;   /* when, counted in commands */
	unsigned pending; /* 1 << enum osd_attention */
};

struct osd_conditions {
	pthread_mutex_t lock;
	uint64_t clock; /* commands heard */
	struct nexus nexuses[OSD_NEXUSES_MAX];
};

struct osd_conditions *osd_conditions_create(void)
{
	struct osd_conditions *conditions = calloc(1, sizeof(*conditions));

	if (conditions)
		pthread_mutex_init(&conditions->lock, NULL);
	return conditions;
}

void osd_conditions_destroy(struct osd_conditions *conditions)
{
	if (!conditions)
		return;
	pthread_mutex_destroy(&conditions->lock);
	free(conditions);
}

/* ---- unit attentions ---- */

void osd_attention_raise(struct osd_conditions *conditions, uint64_t nexus,
			 enum osd_attention attention)
{
	pthread_mutex_lock(&conditions->lock);
	for (unsigned i = 0; i < OSD_NEXUSES_MAX; i++)
		if (conditions->nexuses[i].nexus != nexus)
			conditions->nexuses[i].pending |= 1u << attention;
	pthread_mutex_unlock(&conditions->lock);
}

void osd_attention_raise_for(struct osd_conditions *conditions, uint64_t nexus,
			     enum osd_attention attention)
{
	pthread_mutex_lock(&conditions->lock);
	for (unsigned i = 0; i < OSD_NEXUSES_MAX; i++)
		if (nexus != 0 && conditions->nexuses[i].nexus == nexus)
			conditions->nexuses[i].pending |= 1u << attention;
	pthread_mutex_unlock(&conditions->lock);
}

unsigned osd_attention_look(struct osd_conditions *conditions, uint64_t nexus,
			    enum osd_attention *attention)
{
	unsigned pending = 0;

	pthread_mutex_lock(&conditions->lock);
	for (unsigned i = 0; i < OSD_NEXUSES_MAX; i++)
		if (nexus != 0 && conditions->nexuses[i].nexus == nexus)
			pending = conditions->nexuses[i].pending;
	pthread_mutex_unlock(&conditions->lock);
	if (pending != 0)
		*attention = (enum osd_attention)__builtin_ctz(pending);
	return (unsigned)__builtin_popcount(pending);
}

/*
 * The entry of a nexus. A new nexus takes the entry of the one that was silent longest, with
 * nothing pending.
 */
static struct nexus *find(struct osd_conditions *conditions, uint64_t nexus)
{
	struct nexus *oldest = &conditions->nexuses[0];

	for (unsigned i = 0; i < OSD_NEXUSES_MAX; i++) {
		struct nexus *entry = &conditions->nexuses[i];

		if (entry->nexus == nexus)
			return entry;
		if (entry->heard < oldest->heard)
			oldest = entry;
	}
	*oldest = (struct nexus){ .nexus = nexus };
	return oldest;
}

bool osd_attention_take(struct osd_conditions *conditions, uint64_t nexus,
			enum osd_attention *attention)
{
	struct nexus *entry;
	bool taken;

	if (nexus == 0)
		return false;
	pthread_mutex_lock(&conditions->lock);
	entry = find(conditions, nexus);
	entry->heard = ++conditions->clock;
	taken = entry->pending != 0;
	if (taken) {
		*attention = (enum osd_attention)__builtin_ctz(entry->pending);
		entry->pending &= entry->pending - 1;
	}
	pthread_mutex_unlock(&conditions->lock);
	return taken;
}

uint16_t osd_attention_code(enum osd_attention attention)
{
	switch (attention) {
	case OSD_ATTENTION_RESET:
		return SENSE_BUS_DEVICE_RESET_FUNCTION_OCCURRED;
	case OSD_ATTENTION_CLEARED:
		return SENSE_COMMANDS_CLEARED_BY_ANOTHER_INITIATOR;
	case OSD_ATTENTION_FORMATTED:
	case OSD_ATTENTION_RESTORED:
		return SENSE_MEDIUM_MAY_HAVE_CHANGED;
	case OSD_ATTENTION_KEYS_CHANGED:
	case OSD_ATTENTIONS:
		break;
	}
	return SENSE_PARAMETERS_CHANGED;
}
