/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Creates collections, changes their members and asks queries of them. */
#include "client/collections.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/client_private.h"
#include "common/bytes.h"

/* Space for all memberships that an object may have, and some more. */
#define MEMBERSHIPS_BYTES (64U << 10)
/*
 * Matches that the first QUERY has space for. If there are more, a second QUERY has space for them.
 */
#define MATCHES           4096U
#define QUERY_HEAD_BYTES  12U
#define QUERY_TRIES       4
#define QUERY_FORMAT_BYTE 11
/* The pause between two questions whether a command has ended. */
#define POLL_NS 20000000

static int run(struct osd_client *client, struct osd_request *request,
	       struct osd_client_error *error)
{
	osd_client_run(client, request);
	return outcome_give(&request->error, error);
}

/* ---- making and removing ---- */

int osd_client_create_collection(struct osd_client *client, uint64_t partition, uint64_t requested,
				 uint64_t *chosen, struct osd_client_error *error)
{
	struct osd_request request = { .cdb = { .action = OSD_CREATE_COLLECTION,
						.partition = partition,
						.object = requested } };

	return request_run_for_number(client, &request, OSD_CURRENT_OBJECT_ID, chosen, error);
}

int osd_client_create_tracking_collection(struct osd_client *client, uint64_t partition,
					  uint64_t requested, uint64_t source, uint64_t *chosen,
					  struct osd_client_error *error)
{
	struct osd_request request = { .cdb = { .action = OSD_CREATE_USER_TRACKING_COLLECTION,
						.partition = partition,
						.object = requested,
						.address = source } };
	const struct osd_cdb other = { .action = OSD_LIST_COLLECTION,
				       .partition = partition,
				       .object = source };
	uint8_t segment[OSD_REQUEST_EXTENSIONS_BYTES(1)];
	int result = source == 0 ? 0
				 : request_extend_by(client, &request, &other, segment,
						     sizeof(segment), error);

	if (result < 0)
		return result;
	return request_run_for_number(client, &request, OSD_CURRENT_OBJECT_ID, chosen, error);
}

int osd_client_remove_collection(struct osd_client *client, struct osd_client_address collection,
				 bool force, struct osd_client_error *error)
{
	struct osd_request request = {
		.cdb = { .action = OSD_REMOVE_COLLECTION,
			 .command_options = force ? OSD_FORCE_COLLECTION_REMOVAL : 0 },
	};

	osd_request_address(&request, collection);
	return run(client, &request, error);
}

/* ---- commands on members ---- */

/* The command tracking page tells how a command ended that was answered before its end. */
static int ended_result(struct osd_client *client, struct osd_client_address collection,
			struct osd_client_error *error)
{
	uint64_t status = 0;
	int result = osd_client_get_number(client, collection, OSD_COLLECTION_TRACKING,
					   OSD_TRACKING_ENDED_STATUS, &status, error);

	if (result < 0 || status == 0)
		return result;
	if (status == OSD_TRACKING_NOT_ENDED)
		return outcome_set(error, -EREMOTEIO,
				   "the target was interrupted; the same command goes on with what "
				   "remains in the collection");
	return outcome_set(error, -EIO,
			   "the target ended in the middle with SCSI status 0x%02x; why is in "
			   "attribute 0x%x/0x%x of the collection, and what remains is in it",
			   (unsigned)status, OSD_COLLECTION_TRACKING, OSD_TRACKING_SENSE_DATA);
}

static int wait_for_end(struct osd_client *client, struct osd_client_address collection,
			struct osd_client_error *error)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };
	uint64_t active = 1;

	while (active != 0) {
		int result = osd_client_get_number(client, collection, OSD_COLLECTION_TRACKING,
						   OSD_TRACKING_ACTIVE_COMMAND, &active, error);

		if (result < 0)
			return result;
		if (active != 0)
			nanosleep(&pause, NULL);
	}
	return ended_result(client, collection, error);
}

static int remove_members(struct osd_client *client, struct osd_client_address collection,
			  bool tracking, struct osd_client_error *error)
{
	struct osd_request request = { .cdb = { .action = OSD_REMOVE_MEMBER_OBJECTS,
						.immediate_tracking = tracking } };
	int result;

	osd_request_address(&request, collection);
	result = run(client, &request, error);
	return result < 0 || !tracking ? result : wait_for_end(client, collection, error);
}

/* By a tracking collection that is made for it. */
static int remove_in_batches(struct osd_client *client, struct osd_client_address collection,
			     struct osd_client_error *error)
{
	struct osd_client_address tracking = { .partition = collection.partition };
	struct osd_client_error ignored;
	int result = osd_client_create_tracking_collection(
		client, collection.partition, 0, collection.object, &tracking.object, error);

	if (result < 0)
		return result;
	result = remove_members(client, tracking, true, error);
	osd_client_remove_collection(client, tracking, true, &ignored);
	return result;
}

int osd_client_remove_members(struct osd_client *client, struct osd_client_address collection,
			      struct osd_client_error *error)
{
	uint64_t type = OSD_COLLECTION_LINEAR;
	int result = osd_client_get_number(client, collection, OSD_COLLECTION_INFORMATION,
					   OSD_INFORMATION_COLLECTION_TYPE, &type, error);

	if (result < 0 && result != -ENODATA)
		return result;
	result = remove_members(client, collection, type == OSD_COLLECTION_IS_TRACKING, error);
	return result == -E2BIG ? remove_in_batches(client, collection, error) : result;
}

/* ---- memberships ---- */

/*
 * What is looked for in the memberships of an object: the number of the one in `collection`, and
 * the first free number at or behind `wanted`.
 */
struct memberships {
	uint64_t collection;
	uint32_t wanted;
	uint32_t number; /* 0: none */
};

static int take_membership(void *context, const struct osd_attribute *attribute)
{
	struct memberships *memberships = context;

	if (attribute->number == OSD_ATTRIBUTE_IDENTIFICATION || attribute->length == 0)
		return 0;
	if (attribute->present == 8 && get_be64(attribute->value) == memberships->collection)
		memberships->number = attribute->number;
	/* The attributes come in ascending order. */
	if (attribute->number == memberships->wanted)
		memberships->wanted++;
	return 0;
}

/*
 * The number follows from the collection's ID. So two clients that give an object memberships in
 * different collections at the same time do not choose one number.
 */
static int find_membership(struct osd_client *client, struct osd_client_address object,
			   struct memberships *memberships, struct osd_client_error *error)
{
	const struct osd_client_value all = { .page = OSD_USER_OBJECT_COLLECTIONS,
					      .number = OSD_ATTRIBUTE_ALL,
					      .length = MEMBERSHIPS_BYTES };

	memberships->wanted =
		1 + (uint32_t)(memberships->collection % (OSD_COLLECTIONS_LAST_NUMBER / 2));
	return osd_client_get_attributes(client, object, &all, 1, take_membership, memberships,
					 error);
}

static int set_membership(struct osd_client *client, struct osd_client_address object,
			  uint32_t number, uint64_t collection, struct osd_client_error *error)
{
	uint8_t value[8];
	struct osd_client_value set = { .page = OSD_USER_OBJECT_COLLECTIONS,
					.number = number,
					.value = value,
					.length = collection ? sizeof(value) : 0 };

	put_be64(value, collection);
	return osd_client_set_attributes(client, object, &set, 1, error);
}

int osd_client_join_collection(struct osd_client *client, struct osd_client_address object,
			       uint64_t collection, struct osd_client_error *error)
{
	struct memberships memberships = { .collection = collection };
	int result = find_membership(client, object, &memberships, error);

	if (result < 0 || memberships.number != 0)
		return result;
	return set_membership(client, object, memberships.wanted, collection, error);
}

int osd_client_leave_collection(struct osd_client *client, struct osd_client_address object,
				uint64_t collection, struct osd_client_error *error)
{
	struct memberships memberships = { .collection = collection };
	int result = find_membership(client, object, &memberships, error);

	if (result < 0)
		return result;
	if (memberships.number == 0)
		return outcome_set(
			error, -ENODATA, "object 0x%llx is not a member of collection 0x%llx",
			(unsigned long long)object.object, (unsigned long long)collection);
	return set_membership(client, object, memberships.number, 0, error);
}

/* ---- QUERY ---- */

/* Writes a criterion and returns its length. `at` NULL: only the length. */
static size_t encode_criterion(const struct osd_client_criterion *criterion, uint8_t *at)
{
	size_t minimum = criterion->minimum_length, maximum = criterion->maximum_length;

	if (!at)
		return 16 + minimum + maximum;
	put_be16(at + 2, (uint16_t)(12 + minimum + maximum));
	put_be32(at + 4, criterion->page);
	put_be32(at + 8, criterion->number);
	put_be16(at + 12, criterion->minimum_length);
	if (minimum > 0)
		memcpy(at + 14, criterion->minimum, minimum);
	put_be16(at + 14 + minimum, criterion->maximum_length);
	if (maximum > 0)
		memcpy(at + 16 + minimum, criterion->maximum, maximum);
	return 16 + minimum + maximum;
}

/* Makes a continuation segment with the query list. NULL: it is too long, or there is no memory. */
static uint8_t *make_segment(bool all, const struct osd_client_criterion *criteria, size_t count,
			     size_t *bytes)
{
	size_t list = 4, at = OSD_CONTINUATION_BYTES_MIN + 4;
	uint8_t *segment;

	for (size_t i = 0; i < count; i++) {
		if (criteria[i].minimum_length + criteria[i].maximum_length > UINT16_MAX - 12)
			return NULL;
		list += encode_criterion(&criteria[i], NULL);
	}
	*bytes = OSD_CONTINUATION_BYTES_MIN + align_up(list, 8);
	segment = list <= INT32_MAX ? calloc(1, *bytes) : NULL;
	if (!segment)
		return NULL;
	segment[0] = OSD_CONTINUATION_FORMAT;
	put_be16(segment + 2, OSD_QUERY);
	put_be16(segment + 40, OSD_CONTINUATION_QUERY_LIST);
	segment[43] = (uint8_t)(align_up(list, 8) - list);
	put_be32(segment + 44, (uint32_t)list);
	segment[OSD_CONTINUATION_BYTES_MIN] = all ? OSD_QUERY_ALL : OSD_QUERY_ANY;
	for (size_t i = 0; i < count; i++)
		at += encode_criterion(&criteria[i], segment + at);
	return segment;
}

/* Length of the whole answer, of which `request` got a part. 0: it makes no sense. */
static uint64_t answer_bytes(const struct osd_request *request)
{
	const uint8_t *answer = request->buffer;
	uint64_t additional;

	if (request->received < QUERY_HEAD_BYTES ||
	    answer[QUERY_FORMAT_BYTE] >> 2 != OSD_LISTED_USER_OBJECTS)
		return 0;
	additional = get_be64(answer);
	if (additional < 4 || additional > INT32_MAX || (additional - 4) % 8 != 0)
		return 0;
	return 8 + additional;
}

/* Runs the command with as much space as its answer needs. */
static int query(struct osd_client *client, struct osd_request *request,
		 struct osd_client_error *error)
{
	uint64_t wanted = QUERY_HEAD_BYTES + 8 * MATCHES;

	/* Members may be added between two tries. */
	for (int tries = 0; tries < QUERY_TRIES; tries++) {
		int result;

		free(request->buffer);
		request->buffer = malloc(wanted);
		if (!request->buffer)
			return outcome_set_local(error, -ENOMEM, "QUERY: out of memory");
		request->buffer_length = wanted;
		result = run(client, request, error);
		if (result < 0)
			return result;
		wanted = answer_bytes(request);
		if (wanted == 0)
			return outcome_set(error, -EPROTO,
					   "QUERY: the target's answer makes no sense");
		if (wanted <= request->received)
			return 0;
		if (wanted <= request->buffer_length)
			return outcome_set(error, -EPROTO, "QUERY: the target's answer is cut");
	}
	return outcome_set(error, -EBUSY, "QUERY: there are more matches each time");
}

int osd_client_query(struct osd_client *client, struct osd_client_address collection, bool all,
		     const struct osd_client_criterion *criteria, size_t count,
		     osd_client_listed *each, void *context, struct osd_client_error *error)
{
	struct osd_request request = { .cdb = { .action = OSD_QUERY } };
	size_t bytes = 0;
	uint8_t *segment = make_segment(all, criteria, count, &bytes);
	const uint8_t *answer;
	int result;

	if (!segment)
		return outcome_set_local(error, -EMSGSIZE, "QUERY: the criteria are too long");
	request.data = segment;
	request.data_length = bytes;
	request.cdb.continuation_length = (uint32_t)bytes;
	osd_request_address(&request, collection);
	result = query(client, &request, error);
	answer = request.buffer;
	for (size_t at = QUERY_HEAD_BYTES; result == 0 && at + 8 <= request.received; at += 8)
		result = each(context, get_be64(answer + at));
	free(request.buffer);
	free(segment);
	return result;
}
