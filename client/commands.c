/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Commands that the caller waits for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/client_private.h"
#include "common/bytes.h"

#define INQUIRY       0x12
#define INQUIRY_BYTES 96

static int run(struct osd_client *client, struct osd_request *request,
	       struct osd_client_error *error)
{
	osd_client_run(client, request);
	return outcome_give(&request->error, error);
}

/* ---- IDs that the target chooses ---- */

struct asked_number {
	uint32_t number; /* in the current command page */
	bool several;    /* the answer is a list of objects: finds the first two IDs */
	uint64_t value;
	uint64_t step; /* if several: from an ID to the next one */
	bool known;
};

/* Space for the first two objects in such a list, each with up to two attributes. */
#define TWO_OBJECTS_BYTES 256U

/*
 * Moves on to the next object behind the one at the reader's position. In OSD-2 an object comes
 * before all its attributes and says how long they are; in OSD-1 each attribute comes after its
 * object.
 */
static bool pass_object(struct osd_list_reader *reader)
{
	size_t left = reader->length - reader->position;
	struct osd_attribute attribute;
	size_t bytes;

	if (reader->version == OSD_1) {
		reader->position += 8;
		return osd_list_next(reader, &attribute) == 1;
	}
	bytes = OSD_LIST_OBJECT_HEAD_BYTES + get_be16(reader->data + reader->position + 14);
	reader->position += min_u64(bytes, left);
	return true;
}

/* Takes the first two different IDs, because one alone does not tell where the others are. */
static void take_objects(const struct osd_request *request, struct asked_number *asked)
{
	struct osd_list_reader reader;
	const uint8_t *list;
	size_t length;

	if (request_retrieved(request, &list, &length) < 0 ||
	    osd_list_read(&reader, request->cdb.version, OSD_LIST_OF_OBJECTS, list, length) < 0)
		return;
	while (!asked->known && reader.length - reader.position >= OSD_LIST_OBJECT_HEAD_BYTES) {
		uint64_t id = get_be64(list + reader.position);

		if (asked->value == 0)
			asked->value = id;
		asked->step = id - asked->value;
		asked->known = id > asked->value;
		if (!pass_object(&reader))
			return;
	}
}

static void take_number(struct osd_request *request)
{
	struct asked_number *asked = request->context;
	struct osd_list_reader reader;
	struct osd_attribute attribute;

	if (request->error.result < 0)
		return;
	if (asked->several)
		take_objects(request, asked);
	if (asked->several || osd_request_attributes(request, &reader) < 0)
		return;
	while (osd_list_next(&reader, &attribute) == 1)
		if (attribute.page == OSD_PAGE_CURRENT_COMMAND &&
		    attribute.number == asked->number && attribute.length == 8 &&
		    attribute.present == 8) {
			asked->value = get_be64(attribute.value);
			asked->known = true;
		}
}

/* `step` may be NULL; with one object it is 0. */
static int run_for_number(struct osd_client *client, struct osd_request *request, uint32_t number,
			  uint64_t *value, uint64_t *step, struct osd_client_error *error)
{
	struct osd_client_value get = { .page = OSD_PAGE_CURRENT_COMMAND,
					.number = number,
					.length = 8 };
	struct asked_number asked = { .number = number, .several = request->cdb.objects > 1 };
	int result;

	if (value) {
		get.length += asked.several ? TWO_OBJECTS_BYTES : 0;
		request->gets = &get;
		request->get_count = 1;
		request->done = take_number;
		request->context = &asked;
	}
	result = run(client, request, error);
	if (result < 0 || !value)
		return result;
	if (!asked.known)
		return outcome_set(error, -EPROTO,
				   "%s: done, but the target does not tell the new ID or address",
				   osd_action_name(request->cdb.action));
	*value = asked.value;
	if (step)
		*step = asked.step;
	return 0;
}

int request_run_for_number(struct osd_client *client, struct osd_request *request, uint32_t number,
			   uint64_t *value, struct osd_client_error *error)
{
	return run_for_number(client, request, number, value, NULL, error);
}

/* ---- commands ---- */

int osd_client_format(struct osd_client *client, uint64_t capacity, struct osd_client_error *error)
{
	struct osd_request request = { .cdb = { .action = OSD_FORMAT_OSD, .length = capacity } };

	return run(client, &request, error);
}

int osd_client_create_named(struct osd_client *client, uint64_t requested, int layout,
			    const char *name, uint64_t *chosen, struct osd_client_error *error)
{
	uint8_t value = (uint8_t)layout;
	struct osd_client_value sets[2];
	struct osd_request request = {
		.cdb = { .action = OSD_CREATE_PARTITION, .partition = requested },
		.sets = sets,
	};

	if (layout >= 0)
		sets[request.set_count++] = (struct osd_client_value){
			.page = OSD_MUNINN_PARTITION,
			.number = OSD_MUNINN_LAYOUT,
			.value = &value,
			.length = 1,
		};
	if (name)
		sets[request.set_count++] = osd_client_name_value(name);
	return request_run_for_number(client, &request, OSD_CURRENT_PARTITION_ID, chosen, error);
}

int osd_client_create_partition(struct osd_client *client, uint64_t requested, int layout,
				uint64_t *chosen, struct osd_client_error *error)
{
	return osd_client_create_named(client, requested, layout, NULL, chosen, error);
}

int osd_client_remove_partition(struct osd_client *client, uint64_t partition, bool contents,
				struct osd_client_error *error)
{
	struct osd_request request = {
		.cdb = { .action = OSD_REMOVE_PARTITION,
			 .partition = partition,
			 .command_options = contents ? OSD_REMOVE_CONTENTS : OSD_REMOVE_IF_EMPTY },
	};

	return run(client, &request, error);
}

/*
 * Adds the extension capability that reading a second partition needs. `segment`:
 * OSD_REQUEST_EXTENSIONS_BYTES(1).
 */
static int extend_by_partition(struct osd_client *client, struct osd_request *request,
			       uint64_t partition, uint8_t *segment, struct osd_client_error *error)
{
	const struct osd_cdb other = { .action = OSD_LIST, .partition = partition };

	return request_extend_by(client, request, &other, segment, OSD_REQUEST_EXTENSIONS_BYTES(1),
				 error);
}

int osd_client_clone_named(struct osd_client *client, struct osd_client_address source,
			   uint64_t requested, bool writable, const char *name, uint64_t *chosen,
			   struct osd_client_error *error)
{
	const struct osd_client_value set = osd_client_name_value(name ? name : "");
	struct osd_request request = { .sets = &set, .set_count = name != NULL };
	uint8_t segment[OSD_REQUEST_EXTENSIONS_BYTES(1)];
	int result;

	osd_request_address(&request, source);
	request.cdb.action = writable ? OSD_CREATE_CLONE : OSD_CREATE_SNAPSHOT;
	request.cdb.address = request.cdb.partition;
	request.cdb.partition = requested;
	result = extend_by_partition(client, &request, request.cdb.address, segment, error);
	if (result < 0)
		return result;
	return request_run_for_number(client, &request, OSD_CURRENT_PARTITION_ID, chosen, error);
}

int osd_client_clone(struct osd_client *client, struct osd_client_address source,
		     uint64_t requested, bool writable, uint64_t *chosen,
		     struct osd_client_error *error)
{
	return osd_client_clone_named(client, source, requested, writable, NULL, chosen, error);
}

int osd_client_refresh_clone(struct osd_client *client, uint64_t clone, bool force,
			     struct osd_client_error *error)
{
	struct osd_request request = {
		.cdb = { .action = OSD_REFRESH_SNAPSHOT_OR_CLONE,
			 .partition = clone,
			 .command_options = force ? OSD_FORCE_USERS : 0 },
	};
	uint8_t segment[OSD_REQUEST_EXTENSIONS_BYTES(1)];
	uint64_t source;
	int result = 0;

	/* Only a client that signs needs to know. */
	if (client->give_credential)
		result = osd_client_get_number(client, (struct osd_client_address){ clone, 0, 0 },
					       OSD_MUNINN_PARTITION, OSD_MUNINN_SOURCE_PARTITION,
					       &source, error);
	if (client->give_credential && result == 0)
		result = extend_by_partition(client, &request, source, segment, error);
	/* If the partition is no clone, the target refuses the command. */
	return result == 0 || result == -ENODATA ? run(client, &request, error) : result;
}

int osd_client_detach_clone(struct osd_client *client, uint64_t clone,
			    struct osd_client_error *error)
{
	struct osd_request request = { .cdb = { .action = OSD_DETACH_CLONE, .partition = clone } };

	return run(client, &request, error);
}

int osd_client_create(struct osd_client *client, uint64_t partition, uint64_t requested,
		      uint16_t count, uint64_t *first, uint64_t *step,
		      struct osd_client_error *error)
{
	struct osd_request request = {
		.cdb = { .action = OSD_CREATE,
			 .partition = partition,
			 .object = requested,
			 .objects = count },
	};

	if (requested && count > 1)
		return outcome_set(error, -EINVAL,
				   "CREATE: only one object can be created with a requested ID");
	return run_for_number(client, &request, OSD_CURRENT_OBJECT_ID, first, step, error);
}

int osd_client_remove(struct osd_client *client, struct osd_client_address address,
		      struct osd_client_error *error)
{
	struct osd_request request = { .cdb = { .action = OSD_REMOVE } };

	osd_request_address(&request, address);
	return run(client, &request, error);
}

int osd_client_create_and_write(struct osd_client *client, uint64_t partition, uint64_t requested,
				const void *data, size_t length, uint64_t *chosen,
				struct osd_client_error *error)
{
	struct osd_request request = {
		.cdb = { .action = OSD_CREATE_AND_WRITE,
			 .partition = partition,
			 .object = requested },
		.data = data,
		.data_length = length,
	};

	return request_run_for_number(client, &request, OSD_CURRENT_OBJECT_ID, chosen, error);
}

int osd_client_write(struct osd_client *client, struct osd_client_address address, uint64_t offset,
		     const void *data, size_t length, struct osd_client_error *error)
{
	struct osd_request request = {
		.cdb = { .action = OSD_WRITE, .address = offset },
		.data = data,
		.data_length = length,
	};

	osd_request_address(&request, address);
	return run(client, &request, error);
}

int osd_client_append(struct osd_client *client, struct osd_client_address address,
		      const void *data, size_t length, uint64_t *offset,
		      struct osd_client_error *error)
{
	struct osd_request request = { .cdb = { .action = OSD_APPEND },
				       .data = data,
				       .data_length = length };

	osd_request_address(&request, address);
	return request_run_for_number(client, &request, OSD_CURRENT_APPEND_ADDRESS, offset, error);
}

int osd_client_read(struct osd_client *client, struct osd_client_address address, uint64_t offset,
		    void *data, size_t length, size_t *got, struct osd_client_error *error)
{
	struct osd_request request = {
		.cdb = { .action = OSD_READ, .address = offset },
		.buffer = data,
		.buffer_length = length,
	};
	int result;

	osd_request_address(&request, address);
	result = run(client, &request, error);
	*got = result == 0 ? request.received : 0;
	return result;
}

static int change_range(struct osd_client *client, uint16_t action,
			struct osd_client_address address, uint64_t offset, uint64_t length,
			struct osd_client_error *error)
{
	struct osd_request request = {
		.cdb = { .action = action, .address = offset, .length = length }
	};

	osd_request_address(&request, address);
	return run(client, &request, error);
}

int osd_client_copy(struct osd_client *client, struct osd_client_address source, uint64_t partition,
		    uint64_t requested, uint64_t *chosen, struct osd_client_error *error)
{
	struct osd_request named = { 0 }, request = { .cdb = { .action = OSD_COPY_USER_OBJECTS,
							       .partition = partition,
							       .object = requested } };
	struct osd_copy_source copy = { .attributes = true };
	uint8_t content[OSD_COPY_SOURCE_BYTES];
	uint8_t segment[128 + OSD_REQUEST_EXTENSIONS_BYTES(1)];
	size_t length;
	int result;

	osd_request_address(&named, source);
	named.cdb.action = OSD_READ;
	copy.partition = named.cdb.partition;
	copy.object = named.cdb.object;
	osd_copy_source_encode(&copy, content);
	length = osd_continuation_add(segment, 0, sizeof(segment), OSD_COPY_USER_OBJECTS,
				      OSD_CONTINUATION_COPY_SOURCE, content, sizeof(content));
	request.cdb.continuation_length = (uint32_t)length;
	request.data = segment;
	request.data_length = length;
	result = request_extend_by(client, &request, &named.cdb, segment, sizeof(segment), error);
	if (result < 0)
		return result;
	return request_run_for_number(client, &request, OSD_CURRENT_OBJECT_ID, chosen, error);
}

int osd_client_clear(struct osd_client *client, struct osd_client_address address, uint64_t offset,
		     uint64_t length, struct osd_client_error *error)
{
	return change_range(client, OSD_CLEAR, address, offset, length, error);
}

int osd_client_truncate(struct osd_client *client, struct osd_client_address address,
			uint64_t length, struct osd_client_error *error)
{
	uint8_t value[8];
	struct osd_client_value set = {
		.page = OSD_USER_OBJECT_INFORMATION,
		.number = OSD_INFORMATION_LOGICAL_LENGTH,
		.value = value,
		.length = sizeof(value),
	};

	int result;

	put_be64(value, length);
	result = osd_client_set_attributes(client, address, &set, 1, error);
	/* The length is the only set that the target can have refused. */
	if (result == -EINVAL && error && error->has_sense &&
	    error->sense.code == SENSE_INVALID_FIELD_IN_PARAMETER_LIST)
		error_set(&error->sentence, 0,
			  "%llu bytes are more than the object can have; in a partition whose IDs "
			  "are packed that is 65536 pages, and a flat one (`mkpart --layout flat`) "
			  "takes longer ones",
			  (unsigned long long)length);
	return result;
}

/* Bytes that a punch moves at a time where the target does not move them. */
#define MOVE_BYTES (1U << 20)

static bool is_zero(const uint8_t *bytes, size_t length)
{
	return length > 0 && bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0;
}

/* Moves `length` bytes at `from` down to `to`; zeros become a hole. */
static int move(struct osd_client *client, struct osd_client_address address, uint64_t from,
		uint64_t to, uint8_t *buffer, size_t length, struct osd_client_error *error)
{
	size_t got;
	int result = osd_client_read(client, address, from, buffer, length, &got, error);

	if (result != 0)
		return result;
	if (is_zero(buffer, length))
		return osd_client_clear(client, address, to, length, error);
	return osd_client_write(client, address, to, buffer, length, error);
}

/* The same as PUNCH in many commands, for a range that is followed by more than the target moves.
 */
static int punch_by_moving(struct osd_client *client, struct osd_client_address address,
			   uint64_t offset, uint64_t length, struct osd_client_error *error)
{
	uint8_t *buffer = malloc(MOVE_BYTES);
	uint64_t size = 0;
	int result = buffer ? osd_client_get_number(client, address, OSD_USER_OBJECT_INFORMATION,
						    OSD_INFORMATION_LOGICAL_LENGTH, &size, error)
			    : outcome_set(error, -ENOMEM, "out of memory");

	/* The target has found more than that behind the range. */
	for (uint64_t at = offset + length; result == 0 && at < size; at += MOVE_BYTES)
		result = move(client, address, at, at - length, buffer,
			      (size_t)min_u64(MOVE_BYTES, size - at), error);
	free(buffer);
	return result == 0 ? osd_client_truncate(client, address, size - length, error) : result;
}

int osd_client_punch(struct osd_client *client, struct osd_client_address address, uint64_t offset,
		     uint64_t length, struct osd_client_error *error)
{
	int result = change_range(client, OSD_PUNCH, address, offset, length, error);

	return result == -E2BIG ? punch_by_moving(client, address, offset, length, error) : result;
}

int osd_client_flush(struct osd_client *client, struct osd_client_address address,
		     struct osd_client_error *error)
{
	struct osd_request request = { .cdb = { .action = OSD_FLUSH,
						.flush_scope = OSD_FLUSH_ALL } };

	osd_request_address(&request, address);
	if (!address.object) {
		request.cdb.action = address.partition ? OSD_FLUSH_PARTITION : OSD_FLUSH_OSD;
		request.cdb.flush_scope = OSD_FLUSH_RECURSIVE;
	}
	return run(client, &request, error);
}

/* ---- the one command that is not of OSD ---- */

struct plain_command {
	struct session_task task; /* first: the session knows only this */
	bool finished;
};

static void plain_done(struct session_task *task)
{
	((struct plain_command *)task)->finished = true;
}

int osd_client_inquiry(struct osd_client *client, struct osd_inquiry_data *inquiry,
		       struct osd_client_error *error)
{
	return client_inquiry(client, false, inquiry, error);
}

int client_inquiry(struct osd_client *client, bool ordered, struct osd_inquiry_data *inquiry,
		   struct osd_client_error *error)
{
	uint8_t data[INQUIRY_BYTES];
	struct plain_command command = {
		.task = { .cdb = { INQUIRY, 0, 0, 0, INQUIRY_BYTES },
			  .cdb_length = 6,
			  .in = { { data, sizeof(data) } },
			  .in_count = 1,
			  .ordered = ordered,
			  .done = plain_done },
	};
	struct error_text sentence;
	int result = session_submit(client->session, &command.task);

	while (result == 0 && !command.finished)
		session_step(client->session, -1);
	if (result == 0)
		result = command.task.result;
	if (result < 0)
		return outcome_set(error, result, "%s",
				   session_error(client->session, &sentence) ? sentence.text
									     : strerror(-result));
	if (command.task.status != 0)
		return outcome_set(error, -EIO,
				   "INQUIRY: the target answers with SCSI status 0x%02x",
				   command.task.status);
	if (osd_inquiry_decode(data, command.task.in_received, inquiry) < 0)
		return outcome_set(error, -EPROTO,
				   "INQUIRY: the target's answer has only %zu bytes",
				   command.task.in_received);
	return 0;
}
