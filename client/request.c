/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* One command: its buffers and its CDB. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/client_private.h"
#include "common/bytes.h"
#include "wire/vendor.h"

#define VERSION_SHIFT 48

void osd_request_address(struct osd_request *request, struct osd_client_address address)
{
	request->cdb.partition = address.partition | (uint64_t)address.version << VERSION_SHIFT;
	request->cdb.object = address.object;
}

/*
 * Functions of EXECUTE are on a partition or the root, even if they name an object, except for two.
 */
static bool is_function_of_containers(const struct osd_cdb *cdb)
{
	uint16_t function = (uint16_t)(cdb->address >> 48);

	return cdb->action == OSD_EXECUTE && function != OSD_FUNCTION_SEARCH &&
	       function != OSD_FUNCTION_CHECKSUM;
}

enum osd_object_type request_object_type(const struct osd_cdb *cdb)
{
	switch (cdb->action) {
	case OSD_CREATE:
	case OSD_CREATE_AND_WRITE:
	case OSD_COPY_USER_OBJECTS:
		return OSD_TYPE_USER_OBJECT;
	case OSD_CREATE_COLLECTION:
	case OSD_CREATE_USER_TRACKING_COLLECTION:
	case OSD_REMOVE_COLLECTION:
	case OSD_QUERY:
	case OSD_REMOVE_MEMBER_OBJECTS:
	case OSD_GET_MEMBER_ATTRIBUTES:
	case OSD_SET_MEMBER_ATTRIBUTES:
	case OSD_FLUSH_COLLECTION:
		return OSD_TYPE_COLLECTION;
	case OSD_LIST_COLLECTION:
		return cdb->object ? OSD_TYPE_COLLECTION : OSD_TYPE_PARTITION;
	case OSD_CREATE_PARTITION:
	case OSD_CREATE_CLONE:
	case OSD_CREATE_SNAPSHOT:
		return OSD_TYPE_PARTITION;
	default:
		if (cdb->object && !is_function_of_containers(cdb))
			return OSD_TYPE_USER_OBJECT;
		return osd_names_root(cdb->partition) ? OSD_TYPE_ROOT : OSD_TYPE_PARTITION;
	}
}

static size_t sets_bytes(const struct osd_request *request, enum osd_version version)
{
	size_t bytes = request->set_count ? osd_list_head_bytes(version) : 0;

	for (size_t i = 0; i < request->set_count; i++)
		bytes += osd_list_entry_bytes(version, request->sets[i].length);
	return bytes;
}

/* Attributes to get, that of security included. */
static size_t gets_of(const struct osd_request *request)
{
	return request->get_count + request->security.gets_response;
}

static size_t answer_bytes(const struct osd_request *request, enum osd_version version)
{
	size_t bytes = gets_of(request) ? osd_list_head_bytes(version) : 0;

	if (request->security.gets_response)
		bytes += osd_list_entry_bytes(version,
					      osd_security_layout(version)->check_value_bytes);
	for (size_t i = 0; i < request->get_count; i++)
		bytes += osd_list_entry_bytes(version, request->gets[i].length);
	return align_up(bytes, 8);
}

/* Command data to send, without the continuation segment. */
static size_t command_bytes(const struct osd_request *request)
{
	return request->data_length - request->cdb.continuation_length;
}

static bool values_valid(const struct osd_request *request)
{
	for (size_t i = 0; i < request->set_count; i++)
		if (request->sets[i].length > OSD_ATTRIBUTE_BYTES_MAX)
			return false;
	return request->data_length <= INT32_MAX && request->buffer_length <= INT32_MAX &&
	       request->data_length >= request->cdb.continuation_length &&
	       (request->cdb.action == OSD_EXECUTE || request->cdb.action == OSD_SET_MASTER_KEY ||
		!(command_bytes(request) && request->buffer_length));
}

/*
 * Data-Out: command data where the caller has it; then, in scratch, padding, the set list, padding,
 * the get list. Data-In: command data where the caller wants it; then, in scratch, padding and the
 * retrieved attributes.
 */
struct layout {
	struct osd_segment set_data, get_list, retrieved;
	size_t lists;  /* bytes of scratch for Data-Out */
	size_t answer; /* bytes of scratch for Data-In */
};

/* ALLDATA: adds integrity information behind everything else. */
static void add_integrity(struct osd_request *request, enum osd_version version, size_t *out,
			  size_t *in)
{
	struct osd_request_security *security = &request->security;

	security->out_encoded = security->in_encoded = OSD_OFFSET_UNUSED;
	if (security->method != OSD_ALLDATA)
		return;
	if (*out > 0) {
		security->out_integrity = osd_offset_encode(version, *out, &security->out_encoded);
		*out = security->out_integrity + osd_data_out_integrity_bytes(version);
	}
	if (*in > 0) {
		security->in_integrity = osd_offset_encode(version, *in, &security->in_encoded);
		*in = security->in_integrity + osd_data_in_integrity_bytes(version);
	}
}

static int lay_out(struct osd_request *request, enum osd_version version, struct layout *layout)
{
	size_t out = request->data_length, in = request->buffer_length;

	*layout = (struct layout){ 0 };
	if (request->set_count) {
		layout->set_data.offset = osd_offset_encode(version, out, NULL);
		layout->set_data.length = (uint32_t)sets_bytes(request, version);
		out = layout->set_data.offset + layout->set_data.length;
	}
	if (gets_of(request)) {
		layout->get_list.offset = osd_offset_encode(version, out, NULL);
		layout->get_list.length = (uint32_t)(osd_list_head_bytes(version) +
						     gets_of(request) * OSD_GET_DESCRIPTOR_BYTES);
		out = layout->get_list.offset + layout->get_list.length;
	}
	/* A list's attributes stand in the list. */
	if (gets_of(request) && !request->cdb.list_attributes) {
		layout->retrieved.offset = osd_offset_encode(version, in, NULL);
		layout->retrieved.length = (uint32_t)answer_bytes(request, version);
		in = layout->retrieved.offset + layout->retrieved.length;
	}
	add_integrity(request, version, &out, &in);
	if (out > INT32_MAX || in > INT32_MAX)
		return -EINVAL;
	layout->lists = out - request->data_length;
	layout->answer = in - request->buffer_length;
	return 0;
}

static void write_lists(struct osd_request *request, enum osd_version version,
			const struct layout *layout)
{
	struct osd_list_writer writer;
	/* Offsets count from the start of Data-Out, and scratch begins behind the command data. */
	uint8_t *base = request->scratch;

	if (request->set_count) {
		osd_list_begin(&writer, version, OSD_LIST_TO_SET,
			       base + (layout->set_data.offset - request->data_length),
			       layout->set_data.length);
		for (size_t i = 0; i < request->set_count; i++)
			osd_list_add_value(&writer, request->sets[i].page, request->sets[i].number,
					   request->sets[i].value, request->sets[i].length);
		osd_list_end(&writer);
		assert(!writer.truncated);
	}
	if (gets_of(request)) {
		osd_list_begin(&writer, version, OSD_LIST_TO_GET,
			       base + (layout->get_list.offset - request->data_length),
			       layout->get_list.length);
		if (request->security.gets_response)
			osd_list_add_request(&writer, OSD_PAGE_CURRENT_COMMAND,
					     OSD_CURRENT_RESPONSE_CHECK_VALUE);
		for (size_t i = 0; i < request->get_count; i++)
			osd_list_add_request(&writer, request->gets[i].page,
					     request->gets[i].number);
		osd_list_end(&writer);
		assert(!writer.truncated);
	}
}

static void add_segment(struct iovec *segments, unsigned *count, const void *base, size_t length)
{
	if (length > 0)
		segments[(*count)++] = (struct iovec){ (void *)base, length };
}

/* Adds the command data. A signed command has its own copy of the segment's check value. */
static void add_data(struct osd_request *request)
{
	struct session_task *task = &request->task;
	const uint8_t *data = request->data;

	if (request->security.method < OSD_CMDRSP || request->cdb.continuation_length == 0) {
		add_segment(task->out, &task->out_count, data, request->data_length);
		return;
	}
	add_segment(task->out, &task->out_count, data, OSD_CONTINUATION_CHECK_VALUE);
	add_segment(task->out, &task->out_count, request->security.continuation_value,
		    sizeof(request->security.continuation_value));
	add_segment(task->out, &task->out_count, data + OSD_CONTINUATION_HEAD_BYTES,
		    request->data_length - OSD_CONTINUATION_HEAD_BYTES);
}

int request_prepare(struct osd_request *request, const struct osd_client *client)
{
	enum osd_version version = client->version;
	struct session_task *task = &request->task;
	struct osd_cdb *cdb = &request->cdb;
	struct layout layout;
	int result;

	if (!values_valid(request))
		return -EINVAL;
	cdb->version = version;
	cdb->format = OSD_ATTRIBUTES_LIST;
	osd_capability_nosec(cdb, request_object_type(cdb));
	result = security_begin(client, request);
	request->scratch = NULL;
	if (result < 0) {
		request_release(request);
		return result;
	}
	if (lay_out(request, version, &layout) < 0) {
		request_release(request);
		return -EINVAL;
	}
	if (layout.lists + layout.answer > 0) {
		request->scratch = calloc(1, layout.lists + layout.answer);
		if (!request->scratch) {
			request_release(request);
			return -ENOMEM;
		}
	}
	write_lists(request, version, &layout);
	cdb->set_data = layout.set_data;
	cdb->get_list = layout.get_list;
	cdb->retrieved = layout.retrieved;
	if (cdb->action == OSD_EXECUTE)
		cdb->length = request->buffer_length; /* the parameters' length is in cdb.address */
	else if (command_bytes(request) || request->buffer_length)
		cdb->length = command_bytes(request) + request->buffer_length;
	*task = (struct session_task){ .timeout_ms = request->timeout_ms };
	if (osd_cdb_encode(cdb, task->cdb, &task->cdb_length) < 0) {
		request_release(request);
		return -EINVAL;
	}
	add_data(request);
	add_segment(task->out, &task->out_count, request->scratch, layout.lists);
	add_segment(task->in, &task->in_count, request->buffer, request->buffer_length);
	if (request->scratch)
		add_segment(task->in, &task->in_count, request->scratch + layout.lists,
			    layout.answer);
	request->lists_length = layout.lists;
	request->retrieved_offset = layout.retrieved.offset;
	request->retrieved_length = layout.retrieved.length;
	result = security_sign(client, request);
	if (result < 0)
		request_release(request);
	return result;
}

void request_release(struct osd_request *request)
{
	security_forget(request);
	free(request->scratch);
	request->scratch = NULL;
}

int request_retrieved(const struct osd_request *request, const uint8_t **list, size_t *length)
{
	size_t gap = request->retrieved_offset - request->buffer_length;
	size_t arrived = request->task.in_received;

	if (request->retrieved_length == 0 || arrived <= request->retrieved_offset)
		return -ENODATA;
	*list = request->scratch + request->lists_length + gap;
	*length = arrived - request->retrieved_offset;
	return 0;
}

int osd_request_attributes(const struct osd_request *request, struct osd_list_reader *reader)
{
	const uint8_t *list;
	size_t length;
	struct osd_attribute of_security;
	int result = request_retrieved(request, &list, &length);

	if (result < 0)
		return result;
	if (osd_list_read(reader, request->cdb.version, OSD_LIST_RETRIEVED, list, length) < 0)
		return -EPROTO;
	/* The client itself asked for the first one. */
	if (request->security.gets_response && osd_list_next(reader, &of_security) != 1)
		return -EPROTO;
	return request->get_count > 0 ? 0 : -ENODATA;
}
