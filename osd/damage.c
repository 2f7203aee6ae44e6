/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Remembers the damage that commands have met since the unit was opened. */
#include "osd/damage.h"

#include <string.h>

#include "common/bytes.h"
#include "osd/execute.h"

void osd_damage_init(struct osd_damage_log *log)
{
	memset(log, 0, sizeof(*log));
	pthread_mutex_init(&log->lock, NULL);
}

void osd_damage_destroy(struct osd_damage_log *log)
{
	pthread_mutex_destroy(&log->lock);
}

/* ---- the log ---- */

static uint64_t last_met(const struct osd_damaged_object *entry)
{
	return max_u64(entry->content_ms, entry->attributes_ms);
}

/* The object's entry, or the one to give it. Under the lock. */
static struct osd_damaged_object *entry_for(struct osd_damage_log *log, uint64_t partition,
					    uint64_t object)
{
	struct osd_damaged_object *oldest = &log->objects[0];

	for (unsigned i = 0; i < OSD_DAMAGED_OBJECTS_MAX; i++) {
		struct osd_damaged_object *entry = &log->objects[i];

		if (entry->kinds != 0 && entry->partition == partition && entry->object == object)
			return entry;
		if (oldest->kinds != 0 && (entry->kinds == 0 || last_met(entry) < last_met(oldest)))
			oldest = entry;
	}
	*oldest = (struct osd_damaged_object){ .partition = partition, .object = object };
	return oldest;
}

void osd_damage_note(struct osd_damage_log *log, uint64_t partition, uint64_t object,
		     enum osd_damage_kind kind, uint64_t now_ms, bool checked)
{
	struct osd_damaged_object *entry;

	pthread_mutex_lock(&log->lock);
	entry = entry_for(log, partition, object);
	entry->kinds |= kind;
	entry->unchecked = !checked;
	if (kind == OSD_DAMAGE_CONTENT)
		entry->content_ms = now_ms;
	else
		entry->attributes_ms = now_ms;
	pthread_mutex_unlock(&log->lock);
}

void osd_damage_clear(struct osd_damage_log *log, uint64_t partition, uint64_t object)
{
	pthread_mutex_lock(&log->lock);
	for (unsigned i = 0; i < OSD_DAMAGED_OBJECTS_MAX; i++)
		if (log->objects[i].partition == partition && log->objects[i].object == object)
			log->objects[i].kinds = 0;
	pthread_mutex_unlock(&log->lock);
}

void osd_damage_clear_all(struct osd_damage_log *log, uint64_t partition)
{
	pthread_mutex_lock(&log->lock);
	for (unsigned i = 0; i < OSD_DAMAGED_OBJECTS_MAX; i++)
		if (partition == 0 || log->objects[i].partition == partition)
			log->objects[i].kinds = 0;
	pthread_mutex_unlock(&log->lock);
}

/* ---- what the pages tell ---- */

/*
 * Is this the first entry of its partition? Versions of a partition count as that partition. Under
 * the lock.
 */
static bool is_first_of_partition(const struct osd_damage_log *log, unsigned index)
{
	const uint64_t mask = (UINT64_C(1) << 48) - 1;

	for (unsigned i = 0; i < index; i++)
		if (log->objects[i].kinds != 0 &&
		    ((log->objects[i].partition ^ log->objects[index].partition) & mask) == 0)
			return false;
	return true;
}

struct osd_damage_summary osd_damage_read(struct osd_damage_log *log, uint64_t partition,
					  uint64_t object)
{
	struct osd_damage_summary summary = { 0 };

	pthread_mutex_lock(&log->lock);
	for (unsigned i = 0; i < OSD_DAMAGED_OBJECTS_MAX; i++) {
		const struct osd_damaged_object *entry = &log->objects[i];
		bool itself = entry->partition == partition && entry->object == object;
		bool contained = !itself && object == 0 &&
				 (partition == 0 || entry->partition == partition);

		if (entry->kinds == 0 || !(itself || contained))
			continue;
		summary.unchecked |= entry->unchecked;
		if (itself) {
			summary.kinds = entry->kinds;
			summary.content_ms = entry->content_ms;
			summary.attributes_ms = entry->attributes_ms;
			continue;
		}
		summary.contained_kinds |= entry->kinds;
		summary.contained_ms = max_u64(summary.contained_ms, last_met(entry));
		summary.contained += partition != 0 || is_first_of_partition(log, i);
	}
	pthread_mutex_unlock(&log->lock);
	return summary;
}

/* ---- commands ---- */

/*
 * Notes what a command met that ended with MEDIUM ERROR. If it was to make something, the damage is
 * of the container.
 */
static void note_failure(struct osd_request *request)
{
	struct osd_damage_log *log = &request->device->damage;
	uint64_t partition = request->sense.partition, object = request->sense.object;
	enum osd_damage_kind kind = request->phase == OSD_PHASE_COMMAND ? OSD_DAMAGE_CONTENT
									: OSD_DAMAGE_ATTRIBUTES;

	if (request->entry->target == OSD_TARGET_NEW_PARTITION)
		partition = 0;
	if (partition == 0 || request->entry->target == OSD_TARGET_NEW_USER_OBJECT ||
	    request->entry->target == OSD_TARGET_NEW_COLLECTION)
		object = 0;
	osd_damage_note(log, partition, object, kind, request->time_ms, false);
	pthread_mutex_lock(&log->lock);
	log->commands++;
	log->partition = request->sense.partition;
	log->object = request->sense.object;
	pthread_mutex_unlock(&log->lock);
}

void osd_damage_settle(struct osd_request *request)
{
	struct osd_damage_log *log = &request->device->damage;
	const struct osd_cdb *cdb = &request->cdb;

	if (request->sense.key == SENSE_MEDIUM_ERROR) {
		note_failure(request);
		return;
	}
	if (request->failed)
		return;
	switch (cdb->action) {
	case OSD_FORMAT_OSD:
		osd_damage_clear_all(log, 0);
		break;
	case OSD_REMOVE_PARTITION:
	case OSD_REFRESH_SNAPSHOT_OR_CLONE:
	case OSD_RESTORE_PARTITION_FROM_SNAPSHOT:
		osd_damage_clear_all(log, cdb->partition);
		break;
	case OSD_REMOVE:
	case OSD_REMOVE_COLLECTION:
		osd_damage_clear(log, cdb->partition, cdb->object);
		break;
	default:
		break;
	}
}
