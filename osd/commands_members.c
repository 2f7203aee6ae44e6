/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The commands on all members of a collection: REMOVE MEMBER OBJECTS, GET and SET MEMBER
 * ATTRIBUTES.
 */
#include <errno.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "wire/vendor.h"

/* Result of the functions below: no space for the answer about a member. It is no error. */
#define ANSWER_FULL 1

/* Does the command's work on one member. ANSWER_FULL: it did nothing. */
typedef int visit(struct osd_request *request, struct osd_subject *member);

static bool has_get_list(const struct osd_request *request)
{
	return request->cdb.format == OSD_ATTRIBUTES_LIST && request->cdb.get_list.length != 0;
}

/* Does the answer tell of the members? Each command can tell of a member only once. */
static bool tells_of_members(const struct osd_request *request)
{
	return request->entry->flags & OSD_MEMBERS && has_get_list(request);
}

int osd_check_members(struct osd_request *request)
{
	const struct osd_cdb *cdb = &request->cdb;

	/* Page format gives only what is about the command itself. */
	if (request->entry->flags & OSD_MEMBERS && cdb->format == OSD_ATTRIBUTES_PAGE &&
	    cdb->get_page != 0 && cdb->get_page != OSD_PAGE_CURRENT_COMMAND)
		return osd_fail_field(request, 52);
	return 0;
}

/* ---- one member ---- */

static int remove_member(struct osd_request *request, struct osd_subject *member)
{
	return osd_result(request, engine_object_remove(member->object), OSD_FIELD_OBJECT);
}

/* The command's sets, on the member in place of the addressed object. */
static int set_attributes(struct osd_request *request, const struct osd_subject *member)
{
	struct osd_subject collection = request->subject;
	struct engine_stat before = request->before;
	int result;

	if (!osd_has_sets(request))
		return 0;
	request->phase = OSD_PHASE_SETS;
	request->subject = *member;
	request->before = member->stat;
	result = osd_apply_sets(request);
	if (result == 0)
		result = osd_quotas_check(request);
	request->subject = collection;
	request->before = before;
	return result;
}

/* Adds the attributes of a member to the answer, all of them or none. ANSWER_FULL: none. */
static int get_attributes(struct osd_request *request, struct osd_subject *member)
{
	struct osd_list_writer *writer = &request->answer.writer;
	struct osd_list_writer before = *writer;
	int result;

	if (!has_get_list(request))
		return 0;
	request->phase = OSD_PHASE_GETS;
	if (request->answer.full)
		return ANSWER_FULL;
	result = engine_object_stat(member->object, &member->stat);
	if (result != 0)
		return osd_result(request, result, 0);
	if (osd_list_object_begin(writer, osd_wire_object(request, member->address.object),
				  osd_wire_type(member->stat.type))) {
		if (osd_answer_list(request, member, writer) != 0)
			return -EINVAL;
		osd_list_object_end(writer);
	}
	if (writer->truncated) {
		*writer = before;
		request->answer.full = true;
		return ANSWER_FULL;
	}
	return osd_result(request, engine_object_accessed(member->object, false, true), 0);
}

static int get_member(struct osd_request *request, struct osd_subject *member)
{
	int result = get_attributes(request, member);

	return result == 0 ? set_attributes(request, member) : result;
}

static int set_member(struct osd_request *request, struct osd_subject *member)
{
	int result = set_attributes(request, member);

	if (result == 0)
		result = get_attributes(request, member);
	/* The command is for its sets. They go on when there is no space to tell of them. */
	return result == ANSWER_FULL ? 0 : result;
}

/* ---- all members ---- */

enum fate { FATE_VISITED, FATE_MISSING, FATE_NEWER };

/* Looks a member up. A bare ID may have no object, or a newer one than was meant. */
static int find_member(struct osd_request *request, uint64_t id, struct osd_subject *member,
		       enum fate *fate)
{
	struct engine_address address = request->subject.address;
	int result;

	*fate = FATE_VISITED;
	address.object = id;
	result = osd_open(request, address, member);
	if (result == -ENOENT || (result == 0 && member->stat.type != ENGINE_USER_OBJECT)) {
		*fate = FATE_MISSING;
		return 0;
	}
	if (result == 0 && member->stat.created_sequence > request->subject.stat.filled_sequence)
		*fate = FATE_NEWER;
	return osd_result(request, result, 0);
}

/* The command is done with the member, which leaves a tracking collection. */
static int leave(struct osd_request *request, uint64_t id, enum fate fate)
{
	struct osd_tracking *tracking = &request->tracking;
	int result;

	if (tracking->partition == 0)
		return 0;
	if (fate == FATE_MISSING)
		tracking->counts.missing_skipped++;
	else if (fate == FATE_NEWER)
		tracking->counts.newer_skipped++;
	else
		tracking->counts.processed++;
	result = engine_object_member_remove(request->subject.object, id);
	/* The membership may have gone with the object. */
	return result == -ENOENT ? 0 : osd_result(request, result, 0);
}

static int deal_with(struct osd_request *request, uint64_t id, visit *work)
{
	struct osd_subject member;
	enum fate fate;
	int result = find_member(request, id, &member, &fate);

	if (result == 0 && fate == FATE_VISITED)
		result = work(request, &member);
	osd_close(&member);
	return result == 0 ? leave(request, id, fate) : result;
}

/*
 * Works on members: on all, or on the next batch. If the answer tells of them, all are one
 * transaction: a failure discards the answer about earlier members, so these must not have left.
 */
static int visit_members(struct osd_request *request, visit *work, bool batches, bool *more)
{
	uint64_t ids[OSD_MEMBERS_PORTION], next = 0;
	size_t count;

	do {
		int result = engine_object_list(request->subject.object, ENGINE_LIST_MEMBERS, next,
						ids, request->device->portions.members, &count,
						&next);

		if (result != 0)
			return osd_result(request, result, OSD_FIELD_OBJECT);
		for (size_t i = 0; i < count; i++) {
			result = deal_with(request, ids[i], work);
			if (result != 0)
				return result;
			if (batches && i + 1 < count && osd_has_worked_enough(request)) {
				next = ids[i + 1];
				break;
			}
		}
	} while (next != 0 && !batches);
	*more = next != 0;
	return 0;
}

/*
 * Makes sure that a command on a tracking collection writes, and is the only one. Sets
 * request->more if that needs another transaction.
 */
static int begin_tracking(struct osd_request *request)
{
	const struct osd_subject *subject = &request->subject;

	if (request->mode == ENGINE_READ) {
		request->mode = ENGINE_FREE;
		request->more = true;
		return 0;
	}
	if (request->tracking.partition != 0)
		return osd_tracking_resume(request);
	return osd_tracking_begin(request, subject->address.object, subject->stat.members,
				  OSD_FIELD_OBJECT);
}

static void begin_answer(struct osd_request *request)
{
	struct osd_member_answer *answer = &request->answer;
	const struct osd_segment *space = &request->cdb.retrieved;
	uint8_t *place = request->command->data_in + (space->length > 0 ? space->offset : 0);

	if (!has_get_list(request) || answer->begun)
		return;
	answer->begun = true;
	osd_list_begin(&answer->writer, request->cdb.version, OSD_LIST_OF_OBJECTS, place,
		       space->length);
	answer->full = answer->writer.truncated;
}

/*
 * Do members leave the collection when the command is done with them? They do in a tracking
 * collection, but not in one of the past.
 */
static int loses_members(struct osd_request *request, bool *loses)
{
	const struct engine_address *address = &request->subject.address;
	struct engine_clone clone;
	uint8_t type = OSD_COLLECTION_LINEAR;
	int result = osd_collection_type(&request->subject, &type);

	*loses = type == OSD_COLLECTION_IS_TRACKING && address->version == 0 && address->ago == 0;
	if (result != 0 || !*loses)
		return result;
	result = osd_clone_get(request, address->partition, &clone);
	if (result == 0)
		*loses = clone.writable;
	return result == -ENOENT ? 0 : result;
}

/* Members, or bytes that the sets of all of them put, that are more than one transaction does. */
static bool is_too_much_at_once(const struct osd_request *request)
{
	uint64_t members = request->subject.stat.members;

	return members > request->device->portions.objects ||
	       (members > 1 && members * request->cdb.set_data.length > OSD_WRITE_BYTES_MAX);
}

static int run_on_members(struct osd_request *request, visit *work)
{
	bool tracking, batches, more = false;
	int result = loses_members(request, &tracking);

	if (result != 0)
		return osd_result(request, result, OSD_FIELD_OBJECT);
	if (request->cdb.immediate_tracking && !tracking)
		return osd_fail_field(request, OSD_FIELD_COMMAND_OPTIONS);
	batches = tracking && !tells_of_members(request);
	if (!batches && is_too_much_at_once(request))
		return osd_result(request, -E2BIG, 0);
	if (tracking && (begin_tracking(request) != 0 || request->more))
		return request->failed ? -EINVAL : 0;
	begin_answer(request);
	result = visit_members(request, work, batches, &more);
	if (result < 0)
		return result;
	if (tracking && osd_tracking_store(request, !more) != 0)
		return -EINVAL;
	request->more = more;
	return 0;
}

int osd_remove_member_objects(struct osd_request *request)
{
	return run_on_members(request, remove_member);
}

/* The attributes of the members, behind the last one. */
static int finish_answer(struct osd_request *request)
{
	if (request->more)
		return 0;
	if (!has_get_list(request))
		return osd_answer_gets(request);
	osd_add_to_data_in(request, osd_list_end(&request->answer.writer));
	return 0;
}

int osd_get_member_attributes(struct osd_request *request)
{
	int result = osd_check_gets(request, ENGINE_USER_OBJECT);

	if (result == 0)
		result = run_on_members(request, get_member);
	return result == 0 ? finish_answer(request) : result;
}

int osd_set_member_attributes(struct osd_request *request)
{
	int result = osd_check_gets(request, ENGINE_USER_OBJECT);

	if (result == 0)
		result = run_on_members(request, set_member);
	return result == 0 ? finish_answer(request) : result;
}
