/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Attributes of objects, and listing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/client_private.h"
#include "client/collections.h"
#include "client/sg.h"
#include "common/bytes.h"

/* IDs asked for with one LIST. */
#define LIST_IDS 4096U
/* The space for objects with attributes, of one LIST. */
#define LIST_BYTES (256U << 10)

static int run(struct osd_client *client, struct osd_request *request,
	       struct osd_client_error *error)
{
	osd_client_run(client, request);
	return outcome_give(&request->error, error);
}

/* ---- attributes ---- */

int osd_client_set_attributes(struct osd_client *client, struct osd_client_address address,
			      const struct osd_client_value *sets, size_t count,
			      struct osd_client_error *error)
{
	struct osd_request request = { .cdb = { .action = OSD_SET_ATTRIBUTES },
				       .sets = sets,
				       .set_count = count };

	osd_request_address(&request, address);
	return run(client, &request, error);
}

struct getting {
	osd_client_attribute *each;
	void *context;
	int result;
};

static void take_attributes(struct osd_request *request)
{
	struct getting *getting = request->context;
	struct osd_list_reader reader;
	struct osd_attribute attribute;

	if (request->error.result < 0)
		return;
	getting->result = osd_request_attributes(request, &reader);
	while (getting->result == 0 && osd_list_next(&reader, &attribute) == 1)
		getting->result = getting->each(getting->context, &attribute);
}

int osd_client_get_attributes(struct osd_client *client, struct osd_client_address address,
			      const struct osd_client_value *gets, size_t count,
			      osd_client_attribute *each, void *context,
			      struct osd_client_error *error)
{
	struct getting getting = { .each = each, .context = context };
	struct osd_request request = {
		.cdb = { .action = OSD_GET_ATTRIBUTES },
		.gets = gets,
		.get_count = count,
		.done = take_attributes,
		.context = &getting,
	};
	int result;

	osd_request_address(&request, address);
	result = run(client, &request, error);
	if (result < 0)
		return result;
	if (getting.result == -EPROTO || getting.result == -ENODATA)
		outcome_set(error, getting.result,
			    "GET ATTRIBUTES: the target's answer holds no attributes");
	return getting.result;
}

/*
 * The space for all attributes of an object: Muninn's have at most 1 MiB, where each counts 16
 * bytes beside its value. A list has up to 7 bytes more for each, and those of standard pages.
 */
#define ALL_BYTES (2U << 20)
/* Over /dev/sg; the rest is for the list's head and a check value. */
#define ALL_BYTES_SG (SG_SESSION_DATA_MAX - 256U)

struct all_attributes {
	osd_client_attribute *each;
	void *context;
	enum osd_version version;
	uint64_t space;
};

/* An entry whose head has no room is left out in silence, so what is left says whether one was. */
static int take_any(void *context, const struct osd_attribute *attribute)
{
	struct all_attributes *all = context;
	uint64_t bytes = osd_list_entry_bytes(all->version, attribute->length);

	if (attribute->present < attribute->length || bytes > all->space)
		return -EOVERFLOW;
	all->space -= bytes;
	return attribute->length ? all->each(all->context, attribute) : 0;
}

static int get_all(struct osd_client *client, struct osd_client_address address,
		   struct all_attributes *all, struct osd_client_error *error)
{
	const struct osd_client_value get = { .page = OSD_PAGE_ALL,
					      .number = OSD_ATTRIBUTE_ALL,
					      .length = (uint32_t)all->space };
	int result = osd_client_get_attributes(client, address, &get, 1, take_any, all, error);

	if (result == 0 && all->space < osd_list_entry_bytes(all->version, 0) + 8)
		result = -EOVERFLOW;
	return result == -EOVERFLOW
		       ? outcome_set(error, result,
				     "GET ATTRIBUTES: there are more attributes than one command "
				     "brings")
		       : result;
}

int osd_client_get_all_attributes(struct osd_client *client, struct osd_client_address address,
				  osd_client_attribute *each, void *context,
				  struct osd_client_error *error)
{
	struct all_attributes all = {
		.each = each, .context = context, .version = client->version, .space = ALL_BYTES
	};
	int result = get_all(client, address, &all, error);

	if (result != -EMSGSIZE)
		return result;
	all.space = ALL_BYTES_SG;
	return get_all(client, address, &all, error);
}

struct one_attribute {
	uint32_t page, number;
	void *value;
	uint32_t capacity, length;
	bool found, cut;
};

static int take_one(void *context, const struct osd_attribute *attribute)
{
	struct one_attribute *one = context;

	if (attribute->page != one->page || attribute->number != one->number || one->found)
		return 0;
	one->found = true;
	one->length = attribute->length;
	one->cut = attribute->length > one->capacity || attribute->present < attribute->length;
	memcpy(one->value, attribute->value, min_u64(attribute->present, one->capacity));
	return 0;
}

int osd_client_get_attribute(struct osd_client *client, struct osd_client_address address,
			     uint32_t page, uint32_t number, void *value, uint32_t capacity,
			     uint32_t *length, struct osd_client_error *error)
{
	struct osd_client_value get = { .page = page, .number = number, .length = capacity };
	struct one_attribute one = {
		.page = page, .number = number, .value = value, .capacity = capacity
	};
	int result = osd_client_get_attributes(client, address, &get, 1, take_one, &one, error);

	if (result < 0)
		return result;
	if (length)
		*length = one.length;
	if (!one.found || one.length == 0)
		return outcome_set(error, -ENODATA, "attribute 0x%x/0x%x is not defined", page,
				   number);
	if (one.cut)
		return outcome_set(error, -ENOBUFS,
				   "attribute 0x%x/0x%x has %u bytes, more than expected", page,
				   number, one.length);
	return 0;
}

int osd_client_get_number(struct osd_client *client, struct osd_client_address address,
			  uint32_t page, uint32_t number, uint64_t *value,
			  struct osd_client_error *error)
{
	uint8_t bytes[8];
	uint32_t length;
	int result = osd_client_get_attribute(client, address, page, number, bytes, sizeof(bytes),
					      &length, error);

	if (result < 0)
		return result;
	*value = 0;
	for (uint32_t i = 0; i < length; i++)
		*value = *value << 8 | bytes[i];
	return 0;
}

/* ---- LIST ---- */

struct listing {
	osd_client_listed *each;
	osd_client_listed_attributes *each_with; /* NULL: IDs alone */
	void *context;
	uint64_t least; /* the next ID must not be below: a list that goes back would never end */
	bool ended;     /* the last possible ID has come */
};

static int take_ids(struct listing *listing, const struct osd_list_head *head, const uint8_t *data,
		    size_t length)
{
	struct osd_listed_object object;
	size_t position = OSD_LIST_HEAD_BYTES;

	while (osd_listed_next(head, data, length, &position, &object) == 1) {
		int result;

		if (listing->ended || object.id < listing->least)
			return -EPROTO;
		listing->ended = object.id == UINT64_MAX;
		listing->least = object.id + 1;
		result = listing->each_with ? listing->each_with(listing->context, object.id,
								 &object.attributes)
					    : listing->each(listing->context, object.id);
		if (result != 0)
			return result;
	}
	return 0;
}

static int list_part(struct osd_client *client, struct osd_request *request,
		     struct listing *listing, bool *more, struct osd_client_error *error)
{
	struct osd_list_head head;
	uint64_t least = listing->least;
	int result = run(client, request, error);

	if (result < 0)
		return result;
	if (osd_list_head_decode(request->cdb.version, request->buffer, request->received, &head) <
	    0)
		return outcome_set(error, -EPROTO, "LIST: the target's answer has no head");
	if (listing->each_with && !osd_list_has_attributes(&head))
		return outcome_set(error, -EOPNOTSUPP, "LIST: the target lists no attributes");
	result = take_ids(listing, &head, request->buffer, request->received);
	if (result == -EPROTO)
		return outcome_set(error, result,
				   "LIST: the target's IDs are not in ascending order");
	*more = head.continuation_id != 0;
	if (result == 0 && *more &&
	    (listing->ended || listing->least == least || head.continuation_id < listing->least))
		return outcome_set(error, -EPROTO,
				   "LIST: the target's continuation does not go on");
	listing->least = *more ? head.continuation_id : listing->least;
	request->cdb.list_identifier = head.identifier;
	request->cdb.address = head.continuation_id;
	return result;
}

static int list_by(struct osd_client *client, struct osd_request *request, struct listing *listing,
		   struct osd_client_error *error)
{
	bool more = true;
	int result = 0;

	request->buffer = malloc(request->buffer_length);
	if (!request->buffer)
		return outcome_set(error, -ENOMEM, "LIST: out of memory");
	while (result == 0 && more)
		result = list_part(client, request, listing, &more, error);
	free(request->buffer);
	return result;
}

static int list_all(struct osd_client *client, uint16_t action, struct osd_client_address address,
		    uint64_t first, osd_client_listed *each, void *context,
		    struct osd_client_error *error)
{
	struct listing listing = { .each = each, .context = context, .least = first };
	struct osd_request request = {
		.cdb = { .action = action, .address = first },
		.buffer_length = OSD_LIST_HEAD_BYTES + 8 * LIST_IDS,
	};

	osd_request_address(&request, address);
	return list_by(client, &request, &listing, error);
}

int osd_client_list(struct osd_client *client, struct osd_client_address address, uint64_t first,
		    osd_client_listed *each, void *context, struct osd_client_error *error)
{
	address.object = 0;
	return list_all(client, OSD_LIST, address, first, each, context, error);
}

int osd_client_list_attributes(struct osd_client *client, struct osd_client_address address,
			       uint64_t first, const struct osd_client_value *gets, size_t count,
			       osd_client_listed_attributes *each, void *context,
			       struct osd_client_error *error)
{
	struct listing listing = { .each_with = each, .context = context, .least = first };
	struct osd_request request = {
		.cdb = { .action = OSD_LIST, .address = first, .list_attributes = true },
		.gets = gets,
		.get_count = count,
		.buffer_length = LIST_BYTES,
	};

	if (client->version == OSD_1)
		return outcome_set(error, -EOPNOTSUPP, "LIST: OSD-1 lists no attributes");
	address.object = 0;
	osd_request_address(&request, address);
	return list_by(client, &request, &listing, error);
}

int osd_client_list_collection(struct osd_client *client, struct osd_client_address address,
			       uint64_t first, osd_client_listed *each, void *context,
			       struct osd_client_error *error)
{
	return list_all(client, OSD_LIST_COLLECTION, address, first, each, context, error);
}
