/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The current command page, and the pages that have a fixed structure: head (page, bytes behind
 * it), then the fields.
 */
#include <errno.h>

#include "common/bytes.h"
#include "osd/execute.h"

/* ---- the current command page ---- */

static size_t check_value_bytes(const struct osd_request *request)
{
	return request->cdb.version == OSD_1 ? 20 : 32;
}

/* Of several new objects the highest. */
static uint64_t current_object(const struct osd_request *request)
{
	return osd_wire_object(request, request->subject.address.object +
						(request->created > 1 ? request->created - 1 : 0));
}

static uint64_t change_in_used_capacity(const struct osd_request *request)
{
	return request->subject.stat.used_bytes - request->before.used_bytes;
}

int osd_current_command_get(struct osd_request *request, uint32_t number, uint8_t *value,
			    uint32_t *length)
{
	const struct osd_subject *subject = &request->subject;
	uint8_t check_value[OSD_CHECK_VALUE_BYTES_MAX];

	*length = 8;
	switch (number) {
	case OSD_ATTRIBUTE_IDENTIFICATION:
		*length = osd_page_identify(OSD_PAGE_CURRENT_COMMAND, value);
		break;
	case OSD_CURRENT_RESPONSE_CHECK_VALUE:
		*length = (uint32_t)check_value_bytes(request);
		osd_security_good_response(request, check_value);
		memcpy(value, check_value, *length);
		break;
	case OSD_CURRENT_OBJECT_TYPE:
		*length = 1;
		value[0] = (uint8_t)osd_wire_type(subject->stat.type);
		break;
	case OSD_CURRENT_PARTITION_ID:
		put_be64(value, osd_wire_partition(subject->address));
		break;
	case OSD_CURRENT_OBJECT_ID:
		put_be64(value, current_object(request));
		break;
	case OSD_CURRENT_APPEND_ADDRESS:
		put_be64(value, request->append_address);
		break;
	case OSD_CURRENT_CHANGE_IN_USED_CAPACITY:
		if (request->cdb.version == OSD_2)
			put_be64(value, change_in_used_capacity(request));
		else
			*length = 0;
		break;
	default:
		*length = 0;
		break;
	}
	return 0;
}

static size_t current_command_structure(struct osd_request *request, uint8_t *data)
{
	size_t at = 8 + check_value_bytes(request);
	uint8_t check_value[OSD_CHECK_VALUE_BYTES_MAX];

	osd_security_good_response(request, check_value);
	memcpy(data + 8, check_value, check_value_bytes(request));
	data[at] = (uint8_t)osd_wire_type(request->subject.stat.type);
	put_be64(data + at + 4, osd_wire_partition(request->subject.address));
	put_be64(data + at + 12, current_object(request));
	put_be64(data + at + 20, request->append_address);
	if (request->cdb.version == OSD_1)
		return at + 28;
	put_be64(data + at + 28, change_in_used_capacity(request));
	return at + 36;
}

/* ---- pages whose structure is a row of attributes ---- */

struct page_field {
	uint32_t number;
	uint8_t bytes;
};

struct page_layout {
	uint32_t page;
	struct page_field fields[6];
};

#define TIMES                                                                       \
	{ OSD_TIME_CREATED, 6 }, { OSD_TIME_ATTRIBUTES_ACCESSED, 6 },               \
		{ OSD_TIME_ATTRIBUTES_MODIFIED, 6 }, { OSD_TIME_DATA_ACCESSED, 6 }, \
	{                                                                           \
		OSD_TIME_DATA_MODIFIED, 6                                           \
	}

static const struct page_layout layouts[] = {
	{ OSD_USER_OBJECT_QUOTAS, { { OSD_QUOTA_MAXIMUM_LENGTH, 8 } } },
	{ OSD_USER_OBJECT_TIMESTAMPS, { TIMES } },
	{ OSD_USER_OBJECT_SECURITY, { { OSD_SECURITY_POLICY_ACCESS_TAG, 4 } } },
	{ OSD_PARTITION_QUOTAS,
	  { { OSD_QUOTA_MAXIMUM_LENGTH, 8 },
	    { OSD_QUOTA_CAPACITY, 8 },
	    { OSD_QUOTA_OBJECT_COUNT, 8 },
	    { OSD_QUOTA_COLLECTIONS_PER_OBJECT, 4 } } },
	{ OSD_PARTITION_TIMESTAMPS, { TIMES, { OSD_TIME_BYPASS, 1 } } },
	{ OSD_COLLECTION_TIMESTAMPS, { TIMES } },
	{ OSD_COLLECTION_SECURITY, { { OSD_SECURITY_POLICY_ACCESS_TAG, 4 } } },
	{ OSD_ROOT_QUOTAS,
	  { { OSD_QUOTA_MAXIMUM_LENGTH, 8 },
	    { OSD_QUOTA_CAPACITY, 8 },
	    { OSD_QUOTA_OBJECT_COUNT, 8 },
	    { OSD_QUOTA_COLLECTIONS_PER_OBJECT, 4 },
	    { OSD_QUOTA_PARTITION_COUNT, 8 } } },
	{ OSD_ROOT_TIMESTAMPS,
	  { { OSD_TIME_ATTRIBUTES_ACCESSED, 6 },
	    { OSD_TIME_ATTRIBUTES_MODIFIED, 6 },
	    { OSD_TIME_BYPASS, 1 } } },
};

int osd_page_structure(struct osd_request *request, const struct osd_subject *subject,
		       uint32_t page, uint8_t data[OSD_PAGE_STRUCTURE_BYTES_MAX], size_t *length)
{
	const struct page_layout *layout = NULL;
	size_t at = 8;

	memset(data, 0, OSD_PAGE_STRUCTURE_BYTES_MAX);
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].page == page)
			layout = &layouts[i];
	if (page == OSD_PAGE_CURRENT_COMMAND)
		at = current_command_structure(request, data);
	else if (!layout)
		return -EINVAL;
	for (size_t i = 0; layout && i < 6 && layout->fields[i].bytes != 0; i++) {
		uint8_t value[OSD_VALUE_BYTES_MAX];
		uint32_t bytes;
		int result = osd_page_get(request, subject, page, layout->fields[i].number, value,
					  &bytes);

		if (result != 0)
			return result;
		/* Fields that are not defined are zero. */
		if (bytes == layout->fields[i].bytes)
			memcpy(data + at, value, bytes);
		at += layout->fields[i].bytes;
	}
	put_be32(data, page);
	put_be32(data + 4, (uint32_t)(at - 8));
	*length = at;
	return 0;
}
