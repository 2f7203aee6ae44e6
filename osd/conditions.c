/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Remembers unit attentions that sessions have not been told yet, and the partitions they use. */
#include "osd/conditions.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "wire/standard.h"

/* iSCSI names have 223 bytes at most. */
#define NAME_BYTES 224

struct nexus {
	uint64_t nexus;   /* 0: free */
	uint64_t heard;   /* when, counted in commands */
	unsigned pending; /* 1 << enum osd_attention */
};

/* What the nexus at the same place uses. Apart from it, because every command looks for its nexus.
 */
struct use {
	char initiator[NAME_BYTES];
	bool all;       /* more partitions than are noted */
	unsigned count; /* of those that are */
	uint64_t partitions[OSD_USED_PARTITIONS_MAX];
};

struct osd_conditions {
	struct osd_units *units;     /* that the unit is one of; NULL: it is alone */
	struct osd_conditions *next; /* of `units` */
	pthread_mutex_t lock;
	uint64_t clock; /* commands heard */
	struct nexus nexuses[OSD_NEXUSES_MAX];
	struct use uses[OSD_NEXUSES_MAX];
};

/* Its lock is taken before that of a unit. */
struct osd_units {
	pthread_mutex_t lock;
	struct osd_conditions *first;
};

/* ---- units of one device ---- */

struct osd_units *osd_units_create(void)
{
	struct osd_units *units = calloc(1, sizeof(*units));

	if (units)
		pthread_mutex_init(&units->lock, NULL);
	return units;
}

void osd_units_destroy(struct osd_units *units)
{
	if (!units)
		return;
	assert(!units->first);
	pthread_mutex_destroy(&units->lock);
	free(units);
}

void osd_conditions_join(struct osd_conditions *conditions, struct osd_units *units)
{
	assert(!conditions->units);
	pthread_mutex_lock(&units->lock);
	conditions->units = units;
	conditions->next = units->first;
	units->first = conditions;
	pthread_mutex_unlock(&units->lock);
}

static void leave(struct osd_conditions *conditions)
{
	struct osd_units *units = conditions->units;
	struct osd_conditions **link = &units->first;

	pthread_mutex_lock(&units->lock);
	while (*link != conditions)
		link = &(*link)->next;
	*link = conditions->next;
	pthread_mutex_unlock(&units->lock);
}

/* Calls a function for a unit and for the others of its device. */
static void for_each_unit(struct osd_conditions *conditions,
			  void (*call)(struct osd_conditions *each, void *context), void *context)
{
	struct osd_units *units = conditions->units;

	if (!units) {
		call(conditions, context);
		return;
	}
	pthread_mutex_lock(&units->lock);
	for (struct osd_conditions *each = units->first; each; each = each->next)
		call(each, context);
	pthread_mutex_unlock(&units->lock);
}

/* ---- life ---- */

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
	if (conditions->units)
		leave(conditions);
	pthread_mutex_destroy(&conditions->lock);
	free(conditions);
}

/* Does the nexus at a place use the partition; 0: any? */
static bool uses(const struct osd_conditions *conditions, unsigned place, uint64_t partition)
{
	const struct use *use = &conditions->uses[place];

	if (conditions->nexuses[place].nexus == 0 || use->count == 0)
		return false;
	if (use->all || partition == 0)
		return true;
	for (unsigned i = 0; i < use->count; i++)
		if (use->partitions[i] == partition)
			return true;
	return false;
}

/* ---- unit attentions ---- */

struct raising {
	const struct osd_conditions *cause; /* the unit that it happened to */
	uint64_t nexus, partition;
	enum osd_attention attention;
};

/* Of another unit the causer's session knows nothing, either. */
static void raise_in_unit(struct osd_conditions *conditions, void *context)
{
	const struct raising *raising = context;
	bool is_cause = conditions == raising->cause;

	pthread_mutex_lock(&conditions->lock);
	for (unsigned i = 0; i < OSD_NEXUSES_MAX; i++)
		if ((!is_cause || conditions->nexuses[i].nexus != raising->nexus) &&
		    (raising->partition == 0 || uses(conditions, i, raising->partition)))
			conditions->nexuses[i].pending |= 1u << raising->attention;
	pthread_mutex_unlock(&conditions->lock);
}

void osd_attention_raise(struct osd_conditions *conditions, uint64_t nexus, uint64_t partition,
			 enum osd_attention attention)
{
	struct raising raising = {
		.cause = conditions, .nexus = nexus, .partition = partition, .attention = attention
	};

	if (attention == OSD_ATTENTION_FORMATTED || attention == OSD_ATTENTION_RESTORED)
		for_each_unit(conditions, raise_in_unit, &raising);
	else
		raise_in_unit(conditions, &raising);
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
	conditions->uses[oldest - conditions->nexuses] = (struct use){ .count = 0 };
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

/* ---- what they use ---- */

/*
 * Up to its end (struct osd_command), as far as there is space. iSCSI names have no blanks, but
 * initiators that call themselves something else log in, too, and blanks part names from each
 * other: a blank inside is %20.
 */
static void copy_name(char name[NAME_BYTES], const char *from)
{
	const char *const end = OSD_INITIATOR_END;
	size_t used = 0;

	for (; *from && *from != '\n' && strncmp(from, end, strlen(end)) != 0; from++) {
		const char *as = *from == ' ' ? "%20" : (char[]){ *from, '\0' };

		if (used + strlen(as) >= NAME_BYTES)
			break;
		used += (size_t)snprintf(name + used, NAME_BYTES - used, "%s", as);
	}
	name[used] = '\0';
}

static void note(struct use *use, uint64_t partition, const char *initiator)
{
	if (use->count == 0)
		copy_name(use->initiator, initiator ? initiator : "");
	if (use->count < OSD_USED_PARTITIONS_MAX)
		use->partitions[use->count++] = partition;
	else
		use->all = true;
}

void osd_use_note(struct osd_conditions *conditions, uint64_t nexus, uint64_t partition,
		  const char *initiator)
{
	if (nexus == 0)
		return;
	pthread_mutex_lock(&conditions->lock);
	for (unsigned i = 0; i < OSD_NEXUSES_MAX; i++) {
		if (conditions->nexuses[i].nexus != nexus)
			continue;
		if (!uses(conditions, i, partition))
			note(&conditions->uses[i], partition, initiator);
		break;
	}
	pthread_mutex_unlock(&conditions->lock);
}

/* Adds a name, unless it is there or does not fit. The first one is cut. */
static void add_name(char names[OSD_SENSE_USERS_BYTES + 1], const char *name)
{
	size_t used = strlen(names), length = strlen(name);

	for (const char *found = names; *found;
	     found += strcspn(found, " "), found += *found == ' ')
		if (strncmp(found, name, length) == 0 && (!found[length] || found[length] == ' '))
			return;
	if (used == 0)
		length = min_u64(length, OSD_SENSE_USERS_BYTES);
	else if (used + 1 + length > OSD_SENSE_USERS_BYTES)
		return;
	else
		names[used++] = ' ';
	memcpy(names + used, name, length);
	names[used + length] = '\0';
}

struct counting {
	const struct osd_conditions *asking;
	uint64_t nexus, partition;
	unsigned count;
	char *names;
};

static void count_in_unit(struct osd_conditions *conditions, void *context)
{
	struct counting *counting = context;

	pthread_mutex_lock(&conditions->lock);
	for (unsigned i = 0; i < OSD_NEXUSES_MAX; i++) {
		bool asks = conditions == counting->asking &&
			    conditions->nexuses[i].nexus == counting->nexus;

		if (asks || !uses(conditions, i, counting->partition))
			continue;
		counting->count++;
		if (conditions->uses[i].initiator[0])
			add_name(counting->names, conditions->uses[i].initiator);
	}
	pthread_mutex_unlock(&conditions->lock);
}

unsigned osd_users(struct osd_conditions *conditions, uint64_t nexus, uint64_t partition,
		   char names[OSD_SENSE_USERS_BYTES + 1])
{
	struct counting counting = {
		.asking = conditions, .nexus = nexus, .partition = partition, .names = names
	};

	names[0] = '\0';
	for_each_unit(conditions, count_in_unit, &counting);
	return counting.count;
}

struct forgetting {
	osd_is_logged_in *is_logged_in;
	void *context;
};

static void forget_in_unit(struct osd_conditions *conditions, void *context)
{
	const struct forgetting *forgetting = context;

	pthread_mutex_lock(&conditions->lock);
	for (unsigned i = 0; i < OSD_NEXUSES_MAX; i++) {
		struct nexus *entry = &conditions->nexuses[i];

		if (entry->nexus != 0 &&
		    !forgetting->is_logged_in(forgetting->context, entry->nexus))
			*entry = (struct nexus){ .nexus = 0 };
	}
	pthread_mutex_unlock(&conditions->lock);
}

void osd_nexuses_forget(struct osd_conditions *conditions, osd_is_logged_in *is_logged_in,
			void *context)
{
	struct forgetting forgetting = { .is_logged_in = is_logged_in, .context = context };

	for_each_unit(conditions, forget_in_unit, &forgetting);
}
