/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Makes and removes collections and memberships, and keeps track of commands on tracking
 * collections.
 */
#include <errno.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "osd/functions.h"

/* IDs that are copied at a time. */
#define BATCH 256

static struct engine_address neighbour(const struct osd_request *request, uint64_t object)
{
	struct engine_address address = request->subject.address;

	address.object = object;
	return address;
}

/* ---- types ---- */

int osd_collection_type(const struct osd_subject *subject, uint8_t *type)
{
	uint32_t length;
	int result = engine_object_attribute_get(subject->object, OSD_COLLECTION_INFORMATION,
						 OSD_INFORMATION_COLLECTION_TYPE, type, 1, &length);

	if (result != -ENOENT)
		return result;
	*type = OSD_COLLECTION_LINEAR;
	return 0;
}

int osd_find_collection(struct osd_request *request, uint64_t object, uint16_t field,
			uint16_t permissions, struct osd_subject *subject)
{
	struct osd_further further;
	struct osd_object_id id;
	int result;

	if (osd_further_check(request, request->cdb.partition, object, permissions, &further) != 0)
		return -EINVAL;
	if (osd_object_id_decode(request->layout, object, &id) != 0 || id.object < OSD_FIRST_ID ||
	    id.version || id.ago || id.page)
		return osd_fail_field(request, field);
	result = osd_open(request, neighbour(request, id.object), subject);
	if (result == 0 && subject->stat.type != ENGINE_COLLECTION)
		result = -EINVAL;
	if (result != 0)
		return osd_result(request, result, field);
	return osd_further_check_found(request, &further, subject->address, &subject->stat);
}

/* ---- CREATE COLLECTION, CREATE USER TRACKING COLLECTION, REMOVE COLLECTION ---- */

int osd_create_collection(struct osd_request *request)
{
	struct osd_subject *subject = &request->subject;
	int result = osd_layout_create(request, ENGINE_COLLECTION, 1, &subject->address.object);

	if (result != 0)
		return osd_result(request, result, OSD_FIELD_OBJECT);
	return osd_created(request, ENGINE_COLLECTION, 1);
}

/* Puts the members of a collection into the new one. */
static int copy_members(struct osd_request *request, struct engine_object *from)
{
	struct engine_object *to = request->subject.object;
	uint64_t ids[BATCH], next = 0;
	size_t count;

	do {
		int result = engine_object_list(from, ENGINE_LIST_MEMBERS, next, ids, BATCH, &count,
						&next);

		for (size_t i = 0; result == 0 && i < count; i++)
			result = engine_object_member_insert(to, ids[i]);
		if (result != 0)
			return osd_result(request, result, 0);
	} while (next != 0);
	return 0;
}

int osd_create_user_tracking_collection(struct osd_request *request)
{
	static const uint8_t type = OSD_COLLECTION_IS_TRACKING;
	uint64_t partition = request->subject.address.partition, source = request->cdb.address;
	struct osd_subject from;
	int result;

	if (source != 0 && osd_find_collection(request, source, osd_address_field(request),
					       OSD_PERMISSION_READ, &from) != 0)
		return -EINVAL;
	/* A QUERY fills a collection in steps. */
	if (source != 0 && from.stat.members > OSD_SOURCE_MEMBERS_MAX)
		return osd_result(request, -E2BIG, 0);
	/* The source is about to lose members. */
	if (source != 0 &&
	    osd_tracker_active(&request->device->trackers, partition, from.address.object) != 0)
		return osd_fail_field(request, osd_address_field(request));
	result = osd_create_collection(request);
	if (result != 0)
		return result;
	result = engine_object_attribute_set(request->subject.object, OSD_COLLECTION_INFORMATION,
					     OSD_INFORMATION_COLLECTION_TYPE, &type, 1);
	if (result != 0)
		return osd_result(request, result, 0);
	return source != 0 ? copy_members(request, from.object) : 0;
}

int osd_remove_collection(struct osd_request *request)
{
	struct engine_address address = request->subject.address;
	bool force = request->cdb.command_options & OSD_FORCE_COLLECTION_REMOVAL;
	int result = 0;

	if (osd_tracker_active(&request->device->trackers, address.partition, address.object) != 0)
		return osd_fail_field(request, OSD_FIELD_OBJECT);
	if (force)
		result = engine_object_members_clear(request->subject.object);
	if (result == 0)
		result = engine_object_remove(request->subject.object);
	return osd_result(request, result, OSD_FIELD_OBJECT);
}

/* ---- the collections page of a user object ---- */

/* COLLECTIONS PER USER OBJECT of the partition. 0: no limit. */
static int get_quota(struct osd_request *request, uint64_t *quota)
{
	uint8_t value[4];
	uint32_t length;
	int result = osd_attribute_at(request->txn, neighbour(request, 0), OSD_PARTITION_QUOTAS,
				      OSD_QUOTA_COLLECTIONS_PER_OBJECT, value, sizeof(value),
				      &length);

	*quota = result == 0 && length == sizeof(value) ? get_be32(value) : 0;
	return result == -ENOENT ? 0 : result;
}

int osd_set_membership(struct osd_request *request, const struct osd_subject *subject,
		       const struct osd_attribute *attribute)
{
	uint64_t collection = attribute->length != 0 ? get_be64(attribute->value) : 0, quota;
	struct osd_object_id id;
	uint32_t before, after;
	int result = engine_object_membership_count(subject->object, &before);

	/* Only length 0 ends a membership, not the ID 0. */
	if (attribute->length != 0 && collection == 0)
		return -EINVAL;
	if (osd_object_id_decode(request->layout, collection, &id) != 0 || id.version || id.ago ||
	    id.page)
		return -EINVAL;
	if (result == 0)
		result =
			engine_object_membership_set(subject->object, attribute->number, id.object);
	if (result == 0)
		result = get_quota(request, &quota);
	if (result == 0)
		result = engine_object_membership_count(subject->object, &after);
	if (result == 0 && after > before && quota != 0 && after > quota)
		result = -EDQUOT;
	/* The value is wrong, not an ID in the CDB. */
	return result == -EEXIST ? -EINVAL : result;
}

/* ---- which collections are in work ---- */

void osd_trackers_init(struct osd_trackers *trackers)
{
	*trackers = (struct osd_trackers){ .mutex = PTHREAD_MUTEX_INITIALIZER };
}

/*
 * The entry of a collection; with partition 0, a free entry. NULL: there is none. A cancelled
 * command no longer works on what is there now. The caller holds the mutex.
 */
static struct osd_tracker *find_tracker(struct osd_trackers *trackers, uint64_t partition,
					uint64_t object)
{
	for (size_t i = 0; i < OSD_TRACKERS_MAX; i++)
		if (trackers->entries[i].partition == partition &&
		    trackers->entries[i].object == object && !trackers->entries[i].cancelled)
			return &trackers->entries[i];
	return NULL;
}

uint16_t osd_tracker_active(struct osd_trackers *trackers, uint64_t partition, uint64_t object)
{
	const struct osd_tracker *found;
	uint16_t action = 0;

	pthread_mutex_lock(&trackers->mutex);
	found = find_tracker(trackers, partition, object);
	if (found)
		action = found->action;
	pthread_mutex_unlock(&trackers->mutex);
	return action;
}

int osd_tracking_begin(struct osd_request *request, uint64_t object, uint64_t members,
		       uint16_t field)
{
	struct osd_trackers *trackers = &request->device->trackers;
	uint64_t partition = request->subject.address.partition;
	struct osd_tracker *entry;
	bool busy;

	pthread_mutex_lock(&trackers->mutex);
	busy = find_tracker(trackers, partition, object) != NULL;
	entry = busy ? NULL : find_tracker(trackers, 0, 0);
	if (entry)
		*entry = (struct osd_tracker){ .partition = partition,
					       .object = object,
					       .action = request->cdb.action };
	pthread_mutex_unlock(&trackers->mutex);
	if (busy)
		return osd_fail_field(request, field);
	if (!entry)
		return osd_fail(request, SENSE_ILLEGAL_REQUEST, SENSE_SYSTEM_RESOURCE_FAILURE);
	request->tracking =
		(struct osd_tracking){ .partition = partition,
				       .object = object,
				       .entry = entry,
				       .created = request->subject.stat.created_sequence,
				       .members = members };
	return 0;
}

static bool is_cancelled(const struct osd_request *request)
{
	struct osd_trackers *trackers = &request->device->trackers;
	bool cancelled;

	pthread_mutex_lock(&trackers->mutex);
	cancelled = request->tracking.entry->cancelled;
	pthread_mutex_unlock(&trackers->mutex);
	return cancelled;
}

int osd_tracking_resume(struct osd_request *request)
{
	struct osd_tracking *tracking = &request->tracking;

	/*
	 * Nobody can remove the tracked collection alone, but the one that a QUERY searches can go.
	 */
	if (is_cancelled(request) || request->subject.stat.created_sequence != tracking->created)
		return osd_fail_field(request, OSD_FIELD_OBJECT);
	tracking->committed = tracking->counts;
	return 0;
}

/* The partition whose contents the command takes away or back; *all: every one. False: none. */
static bool takes_contents(const struct osd_request *request, uint64_t *partition, bool *all)
{
	const struct osd_command_entry *entry = request->entry;
	bool rolls_back = entry->execute == osd_function_rollback && request->object == 0;

	*partition = request->subject.address.partition;
	*all = entry->flags & OSD_REFORMATS || (rolls_back && *partition == 0);
	return *all || rolls_back || entry->flags & OSD_RESTORES ||
	       entry->action == OSD_REMOVE_PARTITION;
}

void osd_tracking_cancel_others(const struct osd_request *request)
{
	struct osd_trackers *trackers = &request->device->trackers;
	uint64_t partition;
	bool all;

	if (!takes_contents(request, &partition, &all))
		return;
	pthread_mutex_lock(&trackers->mutex);
	for (size_t i = 0; i < OSD_TRACKERS_MAX; i++) {
		struct osd_tracker *entry = &trackers->entries[i];

		if (entry->partition != 0 && (all || entry->partition == partition))
			entry->cancelled = true;
	}
	pthread_mutex_unlock(&trackers->mutex);
}

/* ---- the command tracking page ---- */

static int store_number(struct engine_txn *txn, struct engine_address address, uint32_t number,
			uint64_t value, uint32_t bytes)
{
	uint8_t encoded[8];

	put_be64(encoded, value);
	return osd_attribute_set_at(txn, address, OSD_COLLECTION_TRACKING, number,
				    encoded + 8 - bytes, bytes);
}

static int store_page(struct engine_txn *txn, const struct osd_tracking *tracking,
		      const struct osd_tracking_counts *counts, uint16_t status, bool all_done)
{
	struct engine_address address = { .partition = tracking->partition,
					  .object = tracking->object };
	uint64_t done = counts->processed + counts->newer_skipped + counts->missing_skipped;
	bool complete = all_done || done >= tracking->members;
	const struct {
		uint32_t number, bytes;
		uint64_t value;
	} attributes[] = {
		{ OSD_TRACKING_PERCENT_COMPLETE, 1,
		  complete ? 100 : done * 100 / tracking->members },
		{ OSD_TRACKING_ENDED_STATUS, 2, status },
		{ OSD_TRACKING_SENSE_DATA, 0, 0 },
		{ OSD_TRACKING_MEMBERS, 8, tracking->members },
		{ OSD_TRACKING_PROCESSED, 8, counts->processed },
		{ OSD_TRACKING_NEWER_SKIPPED, 8, counts->newer_skipped },
		{ OSD_TRACKING_MISSING_SKIPPED, 8, counts->missing_skipped },
	};
	int result = 0;

	for (size_t i = 0; result == 0 && i < sizeof(attributes) / sizeof(attributes[0]); i++)
		result = store_number(txn, address, attributes[i].number, attributes[i].value,
				      attributes[i].bytes);
	return result;
}

int osd_tracking_store(struct osd_request *request, bool ended)
{
	uint16_t status = ended ? SCSI_STATUS_GOOD : OSD_TRACKING_NOT_ENDED;

	/* A command whose answer was full has ended, although it has not done everything. */
	return osd_result(request,
			  store_page(request->txn, &request->tracking, &request->tracking.counts,
				     status, ended && !request->answer.full),
			  0);
}

/*
 * If the failure can't be stored (the device is full, the collection is gone), the page says what
 * the last batch said: not ended.
 */
static void store_failure(const struct osd_request *request)
{
	const struct osd_tracking *tracking = &request->tracking;
	struct engine_address address = { .partition = tracking->partition,
					  .object = tracking->object };
	const struct osd_command *command = request->command;
	struct engine_txn *txn;
	int result = engine_begin(request->device->engine, ENGINE_FREE, &txn);

	if (result != 0)
		return;
	/* Whatever is there now was never its collection, or is that of an earlier time. */
	result = is_cancelled(request)
			 ? -ENOENT
			 : store_page(txn, tracking, &tracking->committed, command->status, false);
	if (result == 0)
		result = osd_attribute_set_at(txn, address, OSD_COLLECTION_TRACKING,
					      OSD_TRACKING_SENSE_DATA, command->sense,
					      (uint32_t)command->sense_length);
	if (result == 0)
		engine_commit(txn, false);
	else
		engine_abort(txn);
}

void osd_tracking_end(struct osd_request *request)
{
	struct osd_trackers *trackers = &request->device->trackers;
	const struct osd_tracking *tracking = &request->tracking;

	if (tracking->partition == 0)
		return;
	if (request->failed)
		store_failure(request);
	pthread_mutex_lock(&trackers->mutex);
	*tracking->entry = (struct osd_tracker){ 0 };
	pthread_mutex_unlock(&trackers->mutex);
}
