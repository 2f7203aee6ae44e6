/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Which attributes there are: the standard's in one table, the others plain storage of the engine.
 *
 * A table entry with a getter is computed; one without is stored like any other attribute, but with
 * a length (and sometimes a value) that is checked. What is not in the table of a standard page is
 * not defined and can't be set.
 */
#include <errno.h>
#include <string.h>

#include "common/bytes.h"
#include "osd/execute.h"

/* Longest computed value. */
#define COMPUTED_BYTES_MAX 64

struct page_attribute {
	uint32_t page;
	uint32_t number;
	uint16_t length; /* 0 = any */
	bool settable;
	/* Returns the length, 0 = not defined. */
	uint32_t (*get)(const struct osd_request *request, const struct osd_subject *subject,
			const struct page_attribute *attribute, uint8_t value[COMPUTED_BYTES_MAX]);
	/* NULL: stored. */
	int (*set)(struct osd_request *request, const struct osd_subject *subject,
		   const struct page_attribute *attribute, const uint8_t *value);
	bool (*allows)(const uint8_t *value); /* NULL: any value of the right length */
};

static uint32_t number64(uint8_t *value, uint64_t number)
{
	put_be64(value, number);
	return 8;
}

/* ---- page identifications and the directory page ---- */

static const struct {
	uint32_t page;
	const char *name;
} page_names[] = {
	{ OSD_PAGES_USER_OBJECT + OSD_PAGE_DIRECTORY, "T10 User Object Directory" },
	{ OSD_PAGES_USER_OBJECT + OSD_PAGE_INFORMATION, "T10 User Object Information" },
	{ OSD_PAGES_USER_OBJECT + OSD_PAGE_QUOTAS, "T10 User Object Quotas" },
	{ OSD_PAGES_USER_OBJECT + OSD_PAGE_TIMESTAMPS, "T10 User Object Timestamps" },
	{ OSD_PAGES_USER_OBJECT + OSD_PAGE_COLLECTIONS, "T10 User Object Collections" },
	{ OSD_USER_OBJECT_SECURITY, "T10 User Object Policy/Security" },
	{ OSD_USER_OBJECT_ATOMICS, "User Object Atomics" },
	{ OSD_PAGES_PARTITION + OSD_PAGE_DIRECTORY, "T10 Partition Directory" },
	{ OSD_PAGES_PARTITION + OSD_PAGE_INFORMATION, "T10 Partition Information" },
	{ OSD_PAGES_PARTITION + OSD_PAGE_QUOTAS, "T10 Partition Quotas" },
	{ OSD_PAGES_PARTITION + OSD_PAGE_TIMESTAMPS, "T10 Partition Timestamps" },
	{ OSD_PARTITION_SECURITY, "T10 Partition Policy/Security" },
	{ OSD_PAGES_COLLECTION + OSD_PAGE_DIRECTORY, "T10 Collection Directory" },
	{ OSD_PAGES_COLLECTION + OSD_PAGE_INFORMATION, "T10 Collection Information" },
	{ OSD_PAGES_COLLECTION + OSD_PAGE_TIMESTAMPS, "T10 Collection Timestamps" },
	{ OSD_PAGES_COLLECTION + OSD_PAGE_COLLECTIONS, "T10 Command Tracking" },
	{ OSD_COLLECTION_SECURITY, "T10 Collection Policy/Security" },
	{ OSD_PAGES_ROOT + OSD_PAGE_DIRECTORY, "T10 Root Directory" },
	{ OSD_PAGES_ROOT + OSD_PAGE_INFORMATION, "T10 Root Information" },
	{ OSD_PAGES_ROOT + OSD_PAGE_QUOTAS, "T10 Root Quotas" },
	{ OSD_PAGES_ROOT + OSD_PAGE_TIMESTAMPS, "T10 Root Timestamps" },
	{ OSD_ROOT_SECURITY, "T10 Root Policy/Security" },
	{ OSD_PAGE_CURRENT_COMMAND, "T10 Current Command" },
};

uint32_t osd_page_identify(uint32_t page, uint8_t *value)
{
	for (size_t i = 0; i < sizeof(page_names) / sizeof(page_names[0]); i++) {
		if (page_names[i].page != page)
			continue;
		memset(value, 0, OSD_IDENTIFICATION_BYTES);
		memcpy(value, page == OSD_USER_OBJECT_ATOMICS ? "OSC     " : "INCITS  ", 8);
		memcpy(value + 8, page_names[i].name, strlen(page_names[i].name));
		return OSD_IDENTIFICATION_BYTES;
	}
	return 0;
}

static uint32_t get_identification(const struct osd_request *request,
				   const struct osd_subject *subject,
				   const struct page_attribute *attribute, uint8_t *value)
{
	(void)request;
	(void)subject;
	return osd_page_identify(attribute->page, value);
}

/* ---- information pages ---- */

static uint32_t get_root_information(const struct osd_request *request,
				     const struct osd_subject *subject,
				     const struct page_attribute *attribute, uint8_t *value)
{
	const struct osd_device *device = request->device;

	switch (attribute->number) {
	case OSD_ROOT_SYSTEM_ID:
		memcpy(value, device->system_id, sizeof(device->system_id));
		return sizeof(device->system_id);
	case OSD_ROOT_VENDOR:
		memcpy(value, OSD_VENDOR, 8);
		return 8;
	case OSD_ROOT_PRODUCT:
		memcpy(value, OSD_PRODUCT, 16);
		return 16;
	case OSD_ROOT_MODEL:
		memcpy(value, OSD_MODEL, 32);
		return 32;
	case OSD_ROOT_REVISION:
		memcpy(value, OSD_REVISION, 4);
		return 4;
	case OSD_ROOT_SERIAL_NUMBER:
		memcpy(value, device->serial, strlen(device->serial));
		return (uint32_t)strlen(device->serial);
	case OSD_ROOT_CONTINUATION_LENGTH_MAX:
		put_be32(value, OSD_CONTINUATION_BYTES_MAX);
		return 4;
	case OSD_ROOT_TOTAL_CAPACITY:
		return number64(value, request->statistics.capacity_bytes);
	case OSD_ROOT_USED_CAPACITY:
		return number64(value, request->statistics.used_bytes);
	case OSD_ROOT_PARTITIONS:
		return number64(value, subject->stat.members);
	case OSD_ROOT_CLOCK:
		put_be48(value, engine_txn_time(request->txn));
		return 6;
	case OSD_ROOT_DEFAULT_ISOLATION:
		value[0] = OSD_ISOLATION_STRICT;
		return 1;
	case OSD_ROOT_SUPPORTED_ISOLATION:
		memset(value, 0, 32);
		memcpy(value,
		       (const uint8_t[]){ OSD_ISOLATION_NONE, OSD_ISOLATION_STRICT,
					  OSD_ISOLATION_RANGE, OSD_ISOLATION_FUNCTIONAL },
		       4);
		return 32;
	default: /* supported continuation descriptors: their longest content */
		put_be32(value, OSD_CONTINUATION_BYTES_MAX - OSD_CONTINUATION_BYTES_MIN);
		return 4;
	}
}

static uint32_t get_information(const struct osd_request *request,
				const struct osd_subject *subject,
				const struct page_attribute *attribute, uint8_t *value)
{
	switch (attribute->number) {
	case OSD_INFORMATION_PARTITION_ID:
		return number64(value, osd_wire_partition(subject->address));
	case OSD_INFORMATION_OBJECT_ID:
		return number64(value, osd_wire_object(request, subject->address.object));
	case OSD_INFORMATION_COLLECTION_TYPE:
		return osd_collection_type(request, subject, value) == 0 ? 1 : 0;
	case OSD_INFORMATION_USED_CAPACITY:
		return number64(value, subject->stat.used_bytes);
	case OSD_INFORMATION_LOGICAL_LENGTH:
		return number64(value, subject->stat.length);
	case OSD_INFORMATION_MEMBERS:
		return number64(value, subject->stat.members);
	default:
		return 0;
	}
}

/* The layout is chosen when a partition is created and never changes. */
static int set_layout(struct osd_request *request, const struct osd_subject *subject,
		      const struct page_attribute *attribute, const uint8_t *value)
{
	if (request->entry->target != OSD_TARGET_NEW_PARTITION)
		return -EINVAL;
	return engine_attribute_set(request->txn, subject->address, attribute->page,
				    attribute->number, value, 1);
}

static bool allows_layout(const uint8_t *value)
{
	return value[0] == OSD_LAYOUT_FLAT || value[0] == OSD_LAYOUT_PACKED;
}

static int set_logical_length(struct osd_request *request, const struct osd_subject *subject,
			      const struct page_attribute *attribute, const uint8_t *value)
{
	(void)attribute;
	return engine_truncate(request->txn, subject->address, get_be64(value));
}

/* ---- the command tracking page ---- */

/* Service action of the command at work; only tracking collections have one, or none. */
static uint32_t get_active_command(const struct osd_request *request,
				   const struct osd_subject *subject,
				   const struct page_attribute *attribute, uint8_t *value)
{
	uint8_t type;

	(void)attribute;
	if (osd_collection_type(request, subject, &type) != 0 || type != OSD_COLLECTION_IS_TRACKING)
		return 0;
	put_be16(value, osd_tracker_active(&request->device->trackers, subject->address.partition,
					   subject->address.object));
	return 2;
}

/* ---- timestamps pages ---- */

static enum engine_time time_of(uint32_t number)
{
	return (enum engine_time)(ENGINE_TIME_CREATED + (number - OSD_TIME_CREATED));
}

static uint32_t get_time(const struct osd_request *request, const struct osd_subject *subject,
			 const struct page_attribute *attribute, uint8_t *value)
{
	(void)request;
	put_be48(value, subject->stat.times_ms[time_of(attribute->number)]);
	return 6;
}

static int set_time(struct osd_request *request, const struct osd_subject *subject,
		    const struct page_attribute *attribute, const uint8_t *value)
{
	return engine_set_time(request->txn, subject->address, time_of(attribute->number),
			       get_be48(value));
}

static bool allows_bypass(const uint8_t *value)
{
	return value[0] == OSD_TIMESTAMPS_UPDATE || value[0] == OSD_TIMESTAMPS_BYPASS;
}

/* ---- policy/security pages ---- */

static uint32_t get_security(const struct osd_request *request, const struct osd_subject *subject,
			     const struct page_attribute *attribute, uint8_t *value)
{
	return osd_security_attribute(request, subject, attribute->page, attribute->number, value);
}

/* ---- the table, in order of page and number ---- */

#define IDENTIFICATION(page)                                                         \
	{                                                                            \
		page, OSD_ATTRIBUTE_IDENTIFICATION, OSD_IDENTIFICATION_BYTES, false, \
			get_identification, NULL, NULL                               \
	}
#define COMPUTED(page, number, length, get)                  \
	{                                                    \
		page, number, length, false, get, NULL, NULL \
	}
#define STORED(page, number, length)                         \
	{                                                    \
		page, number, length, true, NULL, NULL, NULL \
	}
/* Stored by the target alone. */
#define READ_ONLY(page, number)                          \
	{                                                \
		page, number, 0, false, NULL, NULL, NULL \
	}
#define TIME(page, number)                                      \
	{                                                       \
		page, number, 6, true, get_time, set_time, NULL \
	}
#define CREATED_TIME(page)                                             \
	{                                                              \
		page, OSD_TIME_CREATED, 6, false, get_time, NULL, NULL \
	}
#define BYPASS(page)                                                      \
	{                                                                 \
		page, OSD_TIME_BYPASS, 1, true, NULL, NULL, allows_bypass \
	}

#define METHOD(page, number)                                                          \
	{                                                                             \
		page, number, 1, true, get_security, NULL, osd_security_allows_method \
	}
#define NONCE_WINDOW(number)                                                 \
	{                                                                    \
		OSD_PARTITION_SECURITY, number, 6, true, get_security, NULL, \
			osd_security_allows_window                           \
	}
#define WORKING_KEY_IDENTIFIER(version)                                                       \
	COMPUTED(OSD_PARTITION_SECURITY, OSD_SECURITY_WORKING_KEY_IDENTIFIERS + (version), 7, \
		 get_security)
#define FROZEN_AUDIT(number) STORED(OSD_PARTITION_FROZEN_AUDITS, number, 20)

static const struct page_attribute attribute_table[] = {
	/* user objects */
	IDENTIFICATION(OSD_USER_OBJECT_INFORMATION),
	COMPUTED(OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_PARTITION_ID, 8, get_information),
	COMPUTED(OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_OBJECT_ID, 8, get_information),
	STORED(OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USERNAME, 0),
	COMPUTED(OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USED_CAPACITY, 8, get_information),
	{ OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, 8, true, get_information,
	  set_logical_length, NULL },
	IDENTIFICATION(OSD_USER_OBJECT_QUOTAS),
	STORED(OSD_USER_OBJECT_QUOTAS, OSD_QUOTA_MAXIMUM_LENGTH, 8),
	IDENTIFICATION(OSD_USER_OBJECT_TIMESTAMPS),
	CREATED_TIME(OSD_USER_OBJECT_TIMESTAMPS),
	TIME(OSD_USER_OBJECT_TIMESTAMPS, OSD_TIME_ATTRIBUTES_ACCESSED),
	TIME(OSD_USER_OBJECT_TIMESTAMPS, OSD_TIME_ATTRIBUTES_MODIFIED),
	TIME(OSD_USER_OBJECT_TIMESTAMPS, OSD_TIME_DATA_ACCESSED),
	TIME(OSD_USER_OBJECT_TIMESTAMPS, OSD_TIME_DATA_MODIFIED),
	IDENTIFICATION(OSD_USER_OBJECT_COLLECTIONS),
	IDENTIFICATION(OSD_USER_OBJECT_SECURITY),
	STORED(OSD_USER_OBJECT_SECURITY, OSD_SECURITY_POLICY_ACCESS_TAG, 4),
	IDENTIFICATION(OSD_USER_OBJECT_ATOMICS),
	STORED(OSD_USER_OBJECT_ATOMICS, OSD_ATOMICS_COMPARE_AND_SWAP, 8),
	STORED(OSD_USER_OBJECT_ATOMICS, OSD_ATOMICS_FETCH_AND_ADD, 8),
	/* partitions */
	IDENTIFICATION(OSD_PARTITION_INFORMATION),
	COMPUTED(OSD_PARTITION_INFORMATION, OSD_INFORMATION_PARTITION_ID, 8, get_information),
	STORED(OSD_PARTITION_INFORMATION, OSD_INFORMATION_USERNAME, 0),
	COMPUTED(OSD_PARTITION_INFORMATION, OSD_INFORMATION_USED_CAPACITY, 8, get_information),
	COMPUTED(OSD_PARTITION_INFORMATION, OSD_INFORMATION_MEMBERS, 8, get_information),
	IDENTIFICATION(OSD_PARTITION_QUOTAS),
	STORED(OSD_PARTITION_QUOTAS, OSD_QUOTA_MAXIMUM_LENGTH, 8),
	STORED(OSD_PARTITION_QUOTAS, OSD_QUOTA_CAPACITY, 8),
	STORED(OSD_PARTITION_QUOTAS, OSD_QUOTA_OBJECT_COUNT, 8),
	STORED(OSD_PARTITION_QUOTAS, OSD_QUOTA_COLLECTIONS_PER_OBJECT, 4),
	IDENTIFICATION(OSD_PARTITION_TIMESTAMPS),
	CREATED_TIME(OSD_PARTITION_TIMESTAMPS),
	TIME(OSD_PARTITION_TIMESTAMPS, OSD_TIME_ATTRIBUTES_ACCESSED),
	TIME(OSD_PARTITION_TIMESTAMPS, OSD_TIME_ATTRIBUTES_MODIFIED),
	TIME(OSD_PARTITION_TIMESTAMPS, OSD_TIME_DATA_ACCESSED),
	TIME(OSD_PARTITION_TIMESTAMPS, OSD_TIME_DATA_MODIFIED),
	BYPASS(OSD_PARTITION_TIMESTAMPS),
	IDENTIFICATION(OSD_PARTITION_SECURITY),
	METHOD(OSD_PARTITION_SECURITY, OSD_SECURITY_DEFAULT_METHOD),
	NONCE_WINDOW(OSD_SECURITY_OLDEST_NONCE),
	NONCE_WINDOW(OSD_SECURITY_NEWEST_NONCE),
	COMPUTED(OSD_PARTITION_SECURITY, OSD_SECURITY_NONCE_LIST_DEPTH, 2, get_security),
	STORED(OSD_PARTITION_SECURITY, OSD_SECURITY_FROZEN_KEYS, 2),
	COMPUTED(OSD_PARTITION_SECURITY, OSD_SECURITY_PARTITION_KEY_IDENTIFIER, 7, get_security),
	WORKING_KEY_IDENTIFIER(0),
	WORKING_KEY_IDENTIFIER(1),
	WORKING_KEY_IDENTIFIER(2),
	WORKING_KEY_IDENTIFIER(3),
	WORKING_KEY_IDENTIFIER(4),
	WORKING_KEY_IDENTIFIER(5),
	WORKING_KEY_IDENTIFIER(6),
	WORKING_KEY_IDENTIFIER(7),
	WORKING_KEY_IDENTIFIER(8),
	WORKING_KEY_IDENTIFIER(9),
	WORKING_KEY_IDENTIFIER(10),
	WORKING_KEY_IDENTIFIER(11),
	WORKING_KEY_IDENTIFIER(12),
	WORKING_KEY_IDENTIFIER(13),
	WORKING_KEY_IDENTIFIER(14),
	WORKING_KEY_IDENTIFIER(15),
	STORED(OSD_PARTITION_SECURITY, OSD_SECURITY_POLICY_ACCESS_TAG, 4),
	STORED(OSD_PARTITION_SECURITY, OSD_SECURITY_USER_OBJECT_POLICY_ACCESS_TAG, 4),
	FROZEN_AUDIT(1),
	FROZEN_AUDIT(2),
	FROZEN_AUDIT(3),
	FROZEN_AUDIT(4),
	FROZEN_AUDIT(5),
	FROZEN_AUDIT(6),
	FROZEN_AUDIT(7),
	FROZEN_AUDIT(8),
	FROZEN_AUDIT(9),
	FROZEN_AUDIT(10),
	FROZEN_AUDIT(11),
	FROZEN_AUDIT(12),
	FROZEN_AUDIT(13),
	FROZEN_AUDIT(14),
	FROZEN_AUDIT(15),
	FROZEN_AUDIT(16),
	{ OSD_MUNINN_PARTITION, OSD_MUNINN_LAYOUT, 1, true, NULL, set_layout, allows_layout },
	/* collections */
	IDENTIFICATION(OSD_COLLECTION_INFORMATION),
	COMPUTED(OSD_COLLECTION_INFORMATION, OSD_INFORMATION_PARTITION_ID, 8, get_information),
	COMPUTED(OSD_COLLECTION_INFORMATION, OSD_INFORMATION_OBJECT_ID, 8, get_information),
	STORED(OSD_COLLECTION_INFORMATION, OSD_INFORMATION_USERNAME, 0),
	COMPUTED(OSD_COLLECTION_INFORMATION, OSD_INFORMATION_COLLECTION_TYPE, 1, get_information),
	COMPUTED(OSD_COLLECTION_INFORMATION, OSD_INFORMATION_USED_CAPACITY, 8, get_information),
	IDENTIFICATION(OSD_COLLECTION_TIMESTAMPS),
	CREATED_TIME(OSD_COLLECTION_TIMESTAMPS),
	TIME(OSD_COLLECTION_TIMESTAMPS, OSD_TIME_ATTRIBUTES_ACCESSED),
	TIME(OSD_COLLECTION_TIMESTAMPS, OSD_TIME_ATTRIBUTES_MODIFIED),
	TIME(OSD_COLLECTION_TIMESTAMPS, OSD_TIME_DATA_ACCESSED),
	TIME(OSD_COLLECTION_TIMESTAMPS, OSD_TIME_DATA_MODIFIED),
	IDENTIFICATION(OSD_COLLECTION_TRACKING),
	READ_ONLY(OSD_COLLECTION_TRACKING, OSD_TRACKING_PERCENT_COMPLETE),
	COMPUTED(OSD_COLLECTION_TRACKING, OSD_TRACKING_ACTIVE_COMMAND, 2, get_active_command),
	READ_ONLY(OSD_COLLECTION_TRACKING, OSD_TRACKING_ENDED_STATUS),
	READ_ONLY(OSD_COLLECTION_TRACKING, OSD_TRACKING_SENSE_DATA),
	READ_ONLY(OSD_COLLECTION_TRACKING, OSD_TRACKING_MEMBERS),
	READ_ONLY(OSD_COLLECTION_TRACKING, OSD_TRACKING_PROCESSED),
	READ_ONLY(OSD_COLLECTION_TRACKING, OSD_TRACKING_NEWER_SKIPPED),
	READ_ONLY(OSD_COLLECTION_TRACKING, OSD_TRACKING_MISSING_SKIPPED),
	IDENTIFICATION(OSD_COLLECTION_SECURITY),
	STORED(OSD_COLLECTION_SECURITY, OSD_SECURITY_POLICY_ACCESS_TAG, 4),
	/* the root */
	IDENTIFICATION(OSD_ROOT_INFORMATION),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_SYSTEM_ID, 20, get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_VENDOR, 8, get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_PRODUCT, 16, get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_MODEL, 32, get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_REVISION, 4, get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_SERIAL_NUMBER, 0, get_root_information),
	STORED(OSD_ROOT_INFORMATION, OSD_ROOT_OSD_NAME, 0),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_CONTINUATION_LENGTH_MAX, 4, get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_TOTAL_CAPACITY, 8, get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_USED_CAPACITY, 8, get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_PARTITIONS, 8, get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_CLOCK, 6, get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_DEFAULT_ISOLATION, 1, get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_SUPPORTED_ISOLATION, 32, get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION,
		 OSD_ROOT_CONTINUATION_DESCRIPTORS + OSD_CONTINUATION_SCATTER_GATHER, 4,
		 get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION,
		 OSD_ROOT_CONTINUATION_DESCRIPTORS + OSD_CONTINUATION_QUERY_LIST, 4,
		 get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION,
		 OSD_ROOT_CONTINUATION_DESCRIPTORS + OSD_CONTINUATION_EXTENSION_CAPABILITIES, 4,
		 get_root_information),
	IDENTIFICATION(OSD_ROOT_QUOTAS),
	STORED(OSD_ROOT_QUOTAS, OSD_QUOTA_MAXIMUM_LENGTH, 8),
	STORED(OSD_ROOT_QUOTAS, OSD_QUOTA_CAPACITY, 8),
	STORED(OSD_ROOT_QUOTAS, OSD_QUOTA_OBJECT_COUNT, 8),
	STORED(OSD_ROOT_QUOTAS, OSD_QUOTA_COLLECTIONS_PER_OBJECT, 4),
	STORED(OSD_ROOT_QUOTAS, OSD_QUOTA_PARTITION_COUNT, 8),
	IDENTIFICATION(OSD_ROOT_TIMESTAMPS),
	TIME(OSD_ROOT_TIMESTAMPS, OSD_TIME_ATTRIBUTES_ACCESSED),
	TIME(OSD_ROOT_TIMESTAMPS, OSD_TIME_ATTRIBUTES_MODIFIED),
	BYPASS(OSD_ROOT_TIMESTAMPS),
	IDENTIFICATION(OSD_ROOT_SECURITY),
	METHOD(OSD_ROOT_SECURITY, OSD_SECURITY_DEFAULT_METHOD),
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_OLDEST_NONCE, 6, get_security),
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_NEWEST_NONCE, 6, get_security),
	METHOD(OSD_ROOT_SECURITY, OSD_SECURITY_PARTITION_DEFAULT_METHOD),
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_SUPPORTED_METHODS, 2, get_security),
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_BOOT_EPOCH, 2, get_security),
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_ADJUSTABLE_CLOCK, 6, get_security),
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_MASTER_KEY_IDENTIFIER, 7, get_security),
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_ROOT_KEY_IDENTIFIER, 7, get_security),
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_ALGORITHMS, 1, get_security),
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_DH_GROUPS, 1, get_security),
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_DH_GROUPS + 1, 1, get_security),
};

#define ATTRIBUTES (sizeof(attribute_table) / sizeof(attribute_table[0]))

/* Index of the first entry at or behind (page, number). */
static size_t lower_bound(uint32_t page, uint32_t number)
{
	size_t low = 0, high = ATTRIBUTES;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct page_attribute *entry = &attribute_table[middle];

		if (entry->page < page || (entry->page == page && entry->number < number))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static const struct page_attribute *find_entry(uint32_t page, uint32_t number)
{
	size_t i = lower_bound(page, number);

	if (i < ATTRIBUTES && attribute_table[i].page == page &&
	    attribute_table[i].number == number)
		return &attribute_table[i];
	return NULL;
}

/* ---- page numbers ---- */

uint32_t osd_first_page(enum engine_type type)
{
	switch (type) {
	case ENGINE_ROOT:
		return OSD_PAGES_ROOT;
	case ENGINE_PARTITION:
		return OSD_PAGES_PARTITION;
	case ENGINE_COLLECTION:
		return OSD_PAGES_COLLECTION;
	case ENGINE_USER_OBJECT:
		break;
	}
	return OSD_PAGES_USER_OBJECT;
}

enum osd_object_type osd_wire_type(enum engine_type type)
{
	switch (type) {
	case ENGINE_ROOT:
		return OSD_TYPE_ROOT;
	case ENGINE_PARTITION:
		return OSD_TYPE_PARTITION;
	case ENGINE_COLLECTION:
		return OSD_TYPE_COLLECTION;
	case ENGINE_USER_OBJECT:
		break;
	}
	return OSD_TYPE_USER_OBJECT;
}

bool osd_page_type(uint32_t page, enum engine_type *type)
{
	if (page < OSD_PAGES_PARTITION)
		*type = ENGINE_USER_OBJECT;
	else if (page < OSD_PAGES_COLLECTION)
		*type = ENGINE_PARTITION;
	else if (page < OSD_PAGES_ROOT)
		*type = ENGINE_COLLECTION;
	else if (page < OSD_PAGES_RESERVED)
		*type = ENGINE_ROOT;
	else
		return false;
	return true;
}

static bool fits_type(uint32_t page, enum engine_type type)
{
	enum engine_type page_type;

	return page >= OSD_PAGES_ANY_OBJECT ||
	       (osd_page_type(page, &page_type) && page_type == type);
}

/* ---- setting ---- */

/* Pages that clients fill as they like. `page` fits the object's type. */
static bool is_free_page(uint32_t page, enum engine_type type)
{
	uint32_t relative = page - osd_first_page(type);

	if (page >= OSD_PAGES_ANY_OBJECT)
		return page < OSD_PAGE_CURRENT_COMMAND;
	return relative >= OSD_PAGES_APPLICATION && relative < OSD_PAGES_VENDOR;
}

/* Memberships are numbers that the table does not list. */
static bool is_membership(uint32_t page, uint32_t number)
{
	return page == OSD_USER_OBJECT_COLLECTIONS && number != OSD_ATTRIBUTE_IDENTIFICATION &&
	       number <= OSD_COLLECTIONS_LAST_NUMBER;
}

int osd_page_check_set(enum engine_type type, const struct osd_attribute *attribute)
{
	const struct page_attribute *entry;
	uint32_t length = attribute->length;

	if (attribute->page == OSD_PAGE_ALL || attribute->number == OSD_ATTRIBUTE_ALL ||
	    length > OSD_ATTRIBUTE_BYTES_MAX || !fits_type(attribute->page, type))
		return -EINVAL;
	if (is_free_page(attribute->page, type)) {
		/* Number 0 names the page: a string. */
		if (attribute->number == OSD_ATTRIBUTE_IDENTIFICATION && length != 0 &&
		    (length > OSD_IDENTIFICATION_BYTES || !memchr(attribute->value, 0, length)))
			return -EINVAL;
		return 0;
	}
	if (is_membership(attribute->page, attribute->number))
		return length == 0 || length == 8 ? 0 : -EINVAL;
	entry = find_entry(attribute->page, attribute->number);
	if (!entry || !entry->settable)
		return -EINVAL;
	if (length == 0 && !entry->get && !entry->set)
		return 0; /* a stored attribute becomes undefined */
	if (entry->length != 0 && length != entry->length)
		return -EINVAL;
	return !entry->allows || entry->allows(attribute->value) ? 0 : -EINVAL;
}

int osd_page_set(struct osd_request *request, const struct osd_subject *subject,
		 const struct osd_attribute *attribute)
{
	const struct page_attribute *entry = find_entry(attribute->page, attribute->number);

	if (is_membership(attribute->page, attribute->number))
		return osd_set_membership(request, subject, attribute);
	if (entry && entry->set)
		return entry->set(request, subject, entry, attribute->value);
	return engine_attribute_set(request->txn, subject->address, attribute->page,
				    attribute->number, attribute->value, attribute->length);
}

int osd_page_copy_stored(struct osd_request *request, struct engine_address from,
			 struct engine_address to, enum engine_type type)
{
	uint8_t value[OSD_VALUE_BYTES_MAX];
	struct osd_attribute attribute = { .value = value };
	int result;

	while ((result = engine_attribute_next(request->txn, from, &attribute.page,
					       &attribute.number, value, sizeof(value),
					       &attribute.length)) == 0) {
		const struct page_attribute *entry = find_entry(attribute.page, attribute.number);

		/* What is not settable, or does something when it is set, is the object's own. */
		if (!(entry && (entry->get || entry->set)) &&
		    osd_page_check_set(type, &attribute) == 0)
			result = engine_attribute_set(request->txn, to, attribute.page,
						      attribute.number, value, attribute.length);
		if (result != 0)
			return osd_result(request, result, 0);
		if (attribute.number++ == UINT32_MAX && attribute.page++ == UINT32_MAX)
			break;
	}
	return result == -ENOENT ? 0 : osd_result(request, result, 0);
}

/* ---- getting ---- */

/* Memberships are stored with the engine's ID of the collection. */
static void id_to_wire(const struct osd_request *request, uint32_t page, uint8_t *value,
		       uint32_t length)
{
	if (page == OSD_USER_OBJECT_COLLECTIONS && length == 8)
		put_be64(value, osd_wire_object(request, get_be64(value)));
}

static int get_stored(struct osd_request *request, const struct osd_subject *subject, uint32_t page,
		      uint32_t number, uint8_t *value, uint32_t *length)
{
	int result = engine_attribute_get(request->txn, subject->address, page, number, value,
					  OSD_VALUE_BYTES_MAX, length);

	if (result == 0)
		id_to_wire(request, page, value, *length);
	if (result != -ENOENT)
		return result;
	*length = 0;
	return 0;
}

/* The directory page: `page` is a number in it. */
static int get_directory(struct osd_request *request, const struct osd_subject *subject,
			 uint32_t page, uint8_t *value, uint32_t *length)
{
	uint32_t found = page, number = 0;
	int result;

	*length = 0;
	/*
	 * Its own identification; of user objects that is the directory's entry of the directory,
	 * too.
	 */
	if (page == OSD_ATTRIBUTE_IDENTIFICATION)
		page = osd_first_page(subject->stat.type) + OSD_PAGE_DIRECTORY;
	if (page >= OSD_PAGE_CURRENT_COMMAND || !fits_type(page, subject->stat.type) ||
	    osd_page_is_private(page))
		return 0;
	*length = osd_page_identify(page, value);
	if (*length != 0)
		return 0;
	result = engine_attribute_next(request->txn, subject->address, &found, &number, value,
				       OSD_VALUE_BYTES_MAX, length);
	if (result == -ENOENT || (result == 0 && found != page)) {
		*length = 0;
		return 0;
	}
	/* A page without a name of its own is one of 40 zero bytes. */
	if (result == 0) {
		uint32_t named = number == OSD_ATTRIBUTE_IDENTIFICATION
					 ? min_u64(*length, OSD_IDENTIFICATION_BYTES)
					 : 0;

		memset(value + named, 0, OSD_IDENTIFICATION_BYTES - named);
		*length = OSD_IDENTIFICATION_BYTES;
	}
	return result;
}

int osd_page_get(struct osd_request *request, const struct osd_subject *subject, uint32_t page,
		 uint32_t number, uint8_t value[OSD_VALUE_BYTES_MAX], uint32_t *length)
{
	const struct page_attribute *entry;

	if (page == OSD_PAGE_CURRENT_COMMAND)
		return osd_current_command_get(request, number, value, length);
	if (!fits_type(page, subject->stat.type))
		return -EINVAL;
	if (page == osd_first_page(subject->stat.type) + OSD_PAGE_DIRECTORY)
		return get_directory(request, subject, number, value, length);
	if (osd_page_is_private(page)) {
		*length = 0;
		return 0;
	}
	entry = find_entry(page, number);
	if (entry && entry->get) {
		*length = entry->get(request, subject, entry, value);
		return 0;
	}
	return get_stored(request, subject, page, number, value, length);
}

/* The first computed attribute at or behind (*page, *number) that is defined. */
static bool next_computed(struct osd_request *request, const struct osd_subject *subject,
			  uint32_t *page, uint32_t *number, uint8_t value[COMPUTED_BYTES_MAX],
			  uint32_t *length)
{
	uint32_t first = osd_first_page(subject->stat.type);

	for (size_t i = *page < first ? lower_bound(first, 0) : lower_bound(*page, *number);
	     i < ATTRIBUTES; i++) {
		const struct page_attribute *entry = &attribute_table[i];

		if (!fits_type(entry->page, subject->stat.type))
			return false;
		if (!entry->get)
			continue;
		*length = entry->get(request, subject, entry, value);
		if (*length != 0) {
			*page = entry->page;
			*number = entry->number;
			return true;
		}
	}
	return false;
}

/* The first stored attribute at or behind (*page, *number) that initiators may see. */
static int next_stored(struct osd_request *request, const struct osd_subject *subject,
		       uint32_t *page, uint32_t *number, uint8_t *value, uint32_t *length)
{
	int result = engine_attribute_next(request->txn, subject->address, page, number, value,
					   OSD_VALUE_BYTES_MAX, length);

	if (result != 0 || !osd_page_is_private(*page))
		return result;
	/* It is the last page of its type. */
	(*page)++;
	*number = 0;
	return engine_attribute_next(request->txn, subject->address, page, number, value,
				     OSD_VALUE_BYTES_MAX, length);
}

int osd_page_next(struct osd_request *request, const struct osd_subject *subject, uint32_t *page,
		  uint32_t *number, uint8_t value[OSD_VALUE_BYTES_MAX], uint32_t *length)
{
	uint8_t computed[COMPUTED_BYTES_MAX];
	uint32_t computed_page = *page, computed_number = *number, computed_length;
	bool has_computed = next_computed(request, subject, &computed_page, &computed_number,
					  computed, &computed_length);
	int result = next_stored(request, subject, page, number, value, length);

	if (result != 0 && result != -ENOENT)
		return result;
	if (result == 0)
		id_to_wire(request, *page, value, *length);
	if (!has_computed ||
	    (result == 0 &&
	     (*page < computed_page || (*page == computed_page && *number < computed_number))))
		return result;
	*page = computed_page;
	*number = computed_number;
	*length = computed_length;
	memcpy(value, computed, computed_length);
	return 0;
}
