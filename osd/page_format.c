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

/* The highest one of several new objects. */
static uint64_t current_object(const struct osd_request *request)
{
	return osd_wire_object(request, request->subject.address.object +
						(request->created > 1 ? request->created - 1 : 0));
}

/* Of all new objects together, if the command created several; they were empty before. */
static uint64_t change_in_used_capacity(const struct osd_request *request)
{
	if (request->created > 1)
		return request->created_used_bytes;
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

/* ---- structures of attributes ---- */

/* A structure while it is filled. */
struct structure {
	struct osd_request *request;
	const struct osd_subject *subject;
	uint32_t page;
	uint8_t *data; /* OSD_PAGE_STRUCTURE_BYTES_MAX, zeros */
	size_t at;
	int result; /* the first failure */
};

/* Adds the value of an attribute. Adds zeros for an undefined one, and returns false. */
static bool add_attribute(struct structure *structure, uint32_t number, uint32_t bytes)
{
	uint8_t value[OSD_VALUE_BYTES_MAX];
	uint32_t length = 0;
	bool defined;

	if (structure->result == 0)
		structure->result = osd_page_get(structure->request, structure->subject,
						 structure->page, number, value, &length);
	defined = structure->result == 0 && length == bytes;
	if (defined)
		memcpy(structure->data + structure->at, value, bytes);
	structure->at += bytes;
	return defined;
}

static void add_zeros(struct structure *structure, size_t bytes)
{
	structure->at += bytes;
}

/*
 * Root policy/security, as in Linux's header (OSD-2 revision 5), whose page length leaves out the
 * clock. Behind that, in OSD-2, comes the boot epoch as in SAM-QFS.
 */
static void add_root_security(struct structure *structure)
{
	size_t valid;
	bool master, root;

	add_attribute(structure, OSD_SECURITY_DEFAULT_METHOD, 1);
	add_attribute(structure, OSD_SECURITY_PARTITION_DEFAULT_METHOD, 1);
	add_attribute(structure, OSD_SECURITY_SUPPORTED_METHODS, 2);
	valid = structure->at;
	add_zeros(structure, 1);
	add_attribute(structure, OSD_SECURITY_OLDEST_NONCE, 6);
	add_attribute(structure, OSD_SECURITY_NEWEST_NONCE, 6);
	add_attribute(structure, OSD_SECURITY_ADJUSTABLE_CLOCK, 6);
	master = add_attribute(structure, OSD_SECURITY_MASTER_KEY_IDENTIFIER, 7);
	root = add_attribute(structure, OSD_SECURITY_ROOT_KEY_IDENTIFIER, 7);
	structure->data[valid] = (uint8_t)(master << 1 | root);
	for (uint32_t i = 0; i < 16; i++)
		add_attribute(structure, OSD_SECURITY_ALGORITHMS + i, 1);
	for (uint32_t i = 0; i < 16; i++)
		add_attribute(structure, OSD_SECURITY_DH_GROUPS + i, 1);
	if (structure->request->cdb.version == OSD_1)
		return;
	add_zeros(structure, 1);
	add_attribute(structure, OSD_SECURITY_BOOT_EPOCH, 2);
}

/* Partition policy/security, as both headers have it. */
static void add_partition_security(struct structure *structure)
{
	size_t valid;

	add_zeros(structure, 3);
	add_attribute(structure, OSD_SECURITY_DEFAULT_METHOD, 1);
	add_attribute(structure, OSD_SECURITY_OLDEST_NONCE, 6);
	add_attribute(structure, OSD_SECURITY_NEWEST_NONCE, 6);
	add_attribute(structure, OSD_SECURITY_NONCE_LIST_DEPTH, 2);
	add_attribute(structure, OSD_SECURITY_FROZEN_KEYS, 2);
	add_attribute(structure, OSD_SECURITY_POLICY_ACCESS_TAG, 4);
	add_attribute(structure, OSD_SECURITY_USER_OBJECT_POLICY_ACCESS_TAG, 4);
	valid = structure->at;
	add_zeros(structure, 3);
	structure->data[valid] = add_attribute(structure, OSD_SECURITY_PARTITION_KEY_IDENTIFIER, 7);
	for (uint32_t i = 0; i < 16; i++)
		if (add_attribute(structure, OSD_SECURITY_WORKING_KEY_IDENTIFIERS + i, 7))
			structure->data[valid + 1 + i / 8] |= (uint8_t)(1u << i % 8);
}

/* The collections that a user object is in, in the order of the attributes' numbers. */
static void add_collections(struct structure *structure)
{
	uint8_t value[OSD_VALUE_BYTES_MAX];
	uint32_t page = OSD_USER_OBJECT_COLLECTIONS, number = 1, length;

	while (structure->at + 8 <= OSD_PAGE_STRUCTURE_BYTES_MAX) {
		int result = osd_page_next(structure->request, structure->subject, &page, &number,
					   value, &length);

		if (result == -ENOENT ||
		    (result == 0 && (page != OSD_USER_OBJECT_COLLECTIONS || length != 8)))
			return;
		structure->result = result;
		if (result != 0)
			return;
		memcpy(structure->data + structure->at, value, 8);
		structure->at += 8;
		number++;
	}
}

/* ---- pages whose structure is a row of attributes ---- */

#define FIELDS_MAX 6
/* Number of a reserved field. */
#define RESERVED OSD_ATTRIBUTE_ALL

struct page_field {
	uint32_t number;
	uint8_t bytes; /* 0: no further field */
};

struct page_layout {
	uint32_t page;
	struct page_field fields[FIELDS_MAX];
};

#define TIMES                                                                       \
	{ OSD_TIME_CREATED, 6 }, { OSD_TIME_ATTRIBUTES_ACCESSED, 6 },               \
		{ OSD_TIME_ATTRIBUTES_MODIFIED, 6 }, { OSD_TIME_DATA_ACCESSED, 6 }, \
	{                                                                           \
		OSD_TIME_DATA_MODIFIED, 6                                           \
	}
#define CONTAINER_RECOVERY                                                                        \
	{ OSD_RECOVERY_NUMBER_DAMAGED, 8 }, { OSD_RECOVERY_DAMAGE_SUMMARY, 1 },                   \
		{ OSD_RECOVERY_CONTAINED_DAMAGE_SUMMARY, 1 }, { OSD_RECOVERY_LAST_DATA_TIME, 6 }, \
		{ OSD_RECOVERY_LAST_ATTRIBUTES_TIME, 6 },                                         \
	{                                                                                         \
		OSD_RECOVERY_LAST_CONTAINED_TIME, 6                                               \
	}
#define RECOVERY                                                                                 \
	{ OSD_RECOVERY_DAMAGE_SUMMARY, 1 }, { RESERVED, 1 }, { OSD_RECOVERY_LAST_DATA_TIME, 6 }, \
	{                                                                                        \
		OSD_RECOVERY_LAST_ATTRIBUTES_TIME, 6                                             \
	}

static const struct page_layout layouts[] = {
	{ OSD_USER_OBJECT_QUOTAS, { { OSD_QUOTA_MAXIMUM_LENGTH, 8 } } },
	{ OSD_USER_OBJECT_TIMESTAMPS, { TIMES } },
	{ OSD_USER_OBJECT_SECURITY, { { OSD_SECURITY_POLICY_ACCESS_TAG, 4 } } },
	{ OSD_USER_OBJECT_ERROR_RECOVERY, { RECOVERY } },
	{ OSD_PARTITION_QUOTAS,
	  { { OSD_QUOTA_MAXIMUM_LENGTH, 8 },
	    { OSD_QUOTA_CAPACITY, 8 },
	    { OSD_QUOTA_OBJECT_COUNT, 8 },
	    { OSD_QUOTA_COLLECTIONS_PER_OBJECT, 4 } } },
	{ OSD_PARTITION_TIMESTAMPS, { TIMES, { OSD_TIME_BYPASS, 1 } } },
	{ OSD_PARTITION_ERROR_RECOVERY, { CONTAINER_RECOVERY } },
	{ OSD_COLLECTION_TIMESTAMPS, { TIMES } },
	{ OSD_COLLECTION_SECURITY, { { OSD_SECURITY_POLICY_ACCESS_TAG, 4 } } },
	{ OSD_COLLECTION_ERROR_RECOVERY, { RECOVERY } },
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
	{ OSD_ROOT_ERROR_RECOVERY, { CONTAINER_RECOVERY } },
};

/* False: the page has no such structure. */
static bool add_row(struct structure *structure)
{
	const struct page_layout *layout = NULL;

	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].page == structure->page)
			layout = &layouts[i];
	for (size_t i = 0; layout && i < FIELDS_MAX && layout->fields[i].bytes != 0; i++) {
		if (layout->fields[i].number == RESERVED)
			add_zeros(structure, layout->fields[i].bytes);
		else
			add_attribute(structure, layout->fields[i].number, layout->fields[i].bytes);
	}
	return layout != NULL;
}

/* ---- any page ---- */

/* Can the subject have the page? */
static bool fits(const struct osd_subject *subject, uint32_t page)
{
	enum engine_type type;

	return page == OSD_PAGE_CURRENT_COMMAND ||
	       (osd_page_type(page, &type) && type == subject->stat.type);
}

int osd_page_structure(struct osd_request *request, const struct osd_subject *subject,
		       uint32_t page, uint8_t data[OSD_PAGE_STRUCTURE_BYTES_MAX], size_t *length)
{
	struct structure structure = { request, subject, page, data, 8, 0 };

	if (!fits(subject, page))
		return -EINVAL;
	memset(data, 0, OSD_PAGE_STRUCTURE_BYTES_MAX);
	switch (page) {
	case OSD_PAGE_CURRENT_COMMAND:
		structure.at = current_command_structure(request, data);
		break;
	case OSD_ROOT_SECURITY:
		add_root_security(&structure);
		break;
	case OSD_PARTITION_SECURITY:
		add_partition_security(&structure);
		break;
	case OSD_USER_OBJECT_COLLECTIONS:
		add_collections(&structure);
		break;
	default:
		if (!add_row(&structure))
			return -EINVAL;
		break;
	}
	if (structure.result != 0)
		return structure.result;
	put_be32(data, page);
	put_be32(data + 4, (uint32_t)(structure.at - 8));
	*length = structure.at;
	return 0;
}
