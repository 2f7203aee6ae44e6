/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* One command: its buffers and its CDB. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/client_private.h"
#include "common/bytes.h"
#include "osd/vendor.h"

#define VERSION_SHIFT 48

void osd_request_address(struct osd_request *request, struct osd_client_address address)
{
	request->cdb.partition = address.partition | (uint64_t)address.version << VERSION_SHIFT;
	request->cdb.object = address.object;
}

static enum osd_object_type object_type(const struct osd_cdb *cdb)
{
	switch (cdb->action) {
	case OSD_CREATE:
	case OSD_CREATE_AND_WRITE:
		return OSD_TYPE_USER_OBJECT;
	case OSD_CREATE_COLLECTION:
	case OSD_CREATE_USER_TRACKING_COLLECTION:
	case OSD_REMOVE_COLLECTION:
	case OSD_QUERY:
	case OSD_REMOVE_MEMBER_OBJECTS:
	case OSD_GET_MEMBER_ATTRIBUTES:
	case OSD_SET_MEMBER_ATTRIBUTES:
		return OSD_TYPE_COLLECTION;
	case OSD_LIST_COLLECTION:
		return cdb->object ? OSD_TYPE_COLLECTION : OSD_TYPE_PARTITION;
	default:
		if (cdb->object)
			return OSD_TYPE_USER_OBJECT;
		return cdb->partition ? OSD_TYPE_PARTITION : OSD_TYPE_ROOT;
	}
}

static size_t sets_bytes(const struct osd_request *request, enum osd_version version)
{
	size_t bytes = request->set_count ? osd_list_head_bytes(version) : 0;

	for (size_t i = 0; i < request->set_count; i++)
		bytes += osd_list_entry_bytes(version, request->sets[i].length);
	return bytes;
}

static size_t answer_bytes(const struct osd_request *request, enum osd_version version)
{
	size_t bytes = request->get_count ? osd_list_head_bytes(version) : 0;

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
	return request->data_length <= INT32_MAX && request->room_length <= INT32_MAX &&
	       request->data_length >= request->cdb.continuation_length &&
	       (request->cdb.action == OSD_EXECUTE ||
		!(command_bytes(request) && request->room_length));
}

/*
 * Data-Out: command data where the caller has it; behind it, in scratch, padding, the set list, padding, the get list.
 * Data-In: command data where the caller wants it; behind it, in scratch, padding and the retrieved attributes.
 */
struct layout {
	struct osd_segment set_data, get_list, retrieved;
	size_t lists;  /* bytes of scratch for Data-Out */
	size_t answer; /* bytes of scratch for Data-In */
};

static int lay_out(const struct osd_request *request, enum osd_version version,
		   struct layout *layout)
{
	size_t out = request->data_length, in = request->room_length;

	*layout = (struct layout){ 0 };
	if (request->set_count) {
		layout->set_data.offset = osd_offset_encode(version, out, NULL);
		layout->set_data.length = (uint32_t)sets_bytes(request, version);
		out = layout->set_data.offset + layout->set_data.length;
	}
	if (request->get_count) {
		layout->get_list.offset = osd_offset_encode(version, out, NULL);
		layout->get_list.length = (uint32_t)(osd_list_head_bytes(version) +
						     request->get_count * OSD_GET_DESCRIPTOR_BYTES);
		out = layout->get_list.offset + layout->get_list.length;
		layout->retrieved.offset = osd_offset_encode(version, in, NULL);
		layout->retrieved.length = (uint32_t)answer_bytes(request, version);
		in = layout->retrieved.offset + layout->retrieved.length;
	}
	if (out > INT32_MAX || in > INT32_MAX)
		return -EINVAL;
	layout->lists = out - request->data_length;
	layout->answer = in - request->room_length;
	return 0;
}

static void write_lists(struct osd_request *request, enum osd_version version,
			const struct layout *layout)
{
	struct osd_list_writer writer;
	/* Offsets count from the start of Data-Out; scratch begins behind the command data. */
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
	if (request->get_count) {
		osd_list_begin(&writer, version, OSD_LIST_TO_GET,
			       base + (layout->get_list.offset - request->data_length),
			       layout->get_list.length);
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

int request_prepare(struct osd_request *request, enum osd_version version)
{
	struct session_task *task = &request->task;
	struct osd_cdb *cdb = &request->cdb;
	struct layout layout;

	if (!values_valid(request) || lay_out(request, version, &layout) < 0)
		return -EINVAL;
	request->scratch = NULL;
	if (layout.lists + layout.answer > 0) {
		request->scratch = calloc(1, layout.lists + layout.answer);
		if (!request->scratch)
			return -ENOMEM;
	}
	write_lists(request, version, &layout);
	cdb->version = version;
	cdb->format = OSD_ATTRIBUTES_LIST;
	cdb->set_data = layout.set_data;
	cdb->get_list = layout.get_list;
	cdb->retrieved = layout.retrieved;
	if (cdb->action == OSD_EXECUTE)
		cdb->length = request->room_length; /* the parameters' length is in cdb.address */
	else if (command_bytes(request) || request->room_length)
		cdb->length = command_bytes(request) + request->room_length;
	osd_capability_nosec(cdb, object_type(cdb));
	*task = (struct session_task){ .timeout_ms = request->timeout_ms };
	if (osd_cdb_encode(cdb, task->cdb, &task->cdb_length) < 0) {
		request_release(request);
		return -EINVAL;
	}
	add_segment(task->out, &task->out_count, request->data, request->data_length);
	add_segment(task->out, &task->out_count, request->scratch, layout.lists);
	add_segment(task->in, &task->in_count, request->room, request->room_length);
	if (request->scratch)
		add_segment(task->in, &task->in_count, request->scratch + layout.lists,
			    layout.answer);
	request->lists_length = layout.lists;
	request->retrieved_offset = layout.retrieved.offset;
	request->retrieved_length = layout.retrieved.length;
	return 0;
}

void request_release(struct osd_request *request)
{
	free(request->scratch);
	request->scratch = NULL;
}

int request_retrieved(const struct osd_request *request, const uint8_t **list, size_t *length)
{
	size_t gap = request->retrieved_offset - request->room_length;
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
	int result = request_retrieved(request, &list, &length);

	if (result < 0)
		return result;
	return osd_list_read(reader, request->cdb.version, OSD_LIST_RETRIEVED, list, length) < 0
		       ? -EPROTO
		       : 0;
}
