/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The table of the standard's attributes, and what computes and sets those that are not plain storage. */
#include <errno.h>
#include <string.h>

#include "common/bytes.h"
#include "osd/page_table.h"

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
	{ OSD_USER_OBJECT_ERROR_RECOVERY, "T10 User Object Error Recovery" },
	{ OSD_USER_OBJECT_ATOMICS, "User Object Atomics" },
	{ OSD_PAGES_PARTITION + OSD_PAGE_DIRECTORY, "T10 Partition Directory" },
	{ OSD_PAGES_PARTITION + OSD_PAGE_INFORMATION, "T10 Partition Information" },
	{ OSD_PAGES_PARTITION + OSD_PAGE_QUOTAS, "T10 Partition Quotas" },
	{ OSD_PAGES_PARTITION + OSD_PAGE_TIMESTAMPS, "T10 Partition Timestamps" },
	{ OSD_PARTITION_ATTRIBUTES_ACCESS, "T10 Partition Attributes Access" },
	{ OSD_PARTITION_ERROR_RECOVERY, "T10 Partition Error Recovery" },
	{ OSD_PARTITION_SECURITY, "T10 Partition Policy/Security" },
	{ OSD_PAGES_COLLECTION + OSD_PAGE_DIRECTORY, "T10 Collection Directory" },
	{ OSD_PAGES_COLLECTION + OSD_PAGE_INFORMATION, "T10 Collection Information" },
	{ OSD_PAGES_COLLECTION + OSD_PAGE_TIMESTAMPS, "T10 Collection Timestamps" },
	{ OSD_PAGES_COLLECTION + OSD_PAGE_COLLECTIONS, "T10 Command Tracking" },
	{ OSD_COLLECTION_ERROR_RECOVERY, "T10 Collection Error Recovery" },
	{ OSD_COLLECTION_SECURITY, "T10 Collection Policy/Security" },
	{ OSD_PAGES_ROOT + OSD_PAGE_DIRECTORY, "T10 Root Directory" },
	{ OSD_PAGES_ROOT + OSD_PAGE_INFORMATION, "T10 Root Information" },
	{ OSD_PAGES_ROOT + OSD_PAGE_QUOTAS, "T10 Root Quotas" },
	{ OSD_PAGES_ROOT + OSD_PAGE_TIMESTAMPS, "T10 Root Timestamps" },
	{ OSD_ROOT_SECURITY, "T10 Root Policy/Security" },
	{ OSD_ROOT_ERROR_RECOVERY, "T10 Root Error Recovery" },
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
				   const struct osd_page_attribute *attribute, uint8_t *value)
{
	(void)request;
	(void)subject;
	return osd_page_identify(attribute->page, value);
}

/* ---- information pages ---- */

/* One bit for each of 256 methods, that of method 0 first. */
static uint32_t supported_isolation(uint8_t *value)
{
	memset(value, 0, 32);
	value[0] = 0x80 >> OSD_ISOLATION_NONE | 0x80 >> OSD_ISOLATION_STRICT |
		   0x80 >> OSD_ISOLATION_RANGE | 0x80 >> OSD_ISOLATION_FUNCTIONAL;
	return 32;
}

/* What can't be read is not shown. */
static uint32_t get_capacity(const struct osd_request *request, uint32_t number, uint8_t *value)
{
	uint64_t total, used;

	if (osd_capacities(request, &total, &used) != 0)
		return 0;
	return number64(value, number == OSD_ROOT_TOTAL_CAPACITY ? total : used);
}

static uint32_t get_root_information(const struct osd_request *request,
				     const struct osd_subject *subject,
				     const struct osd_page_attribute *attribute, uint8_t *value)
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
	case OSD_ROOT_USED_CAPACITY:
		return get_capacity(request, attribute->number, value);
	case OSD_ROOT_PARTITIONS:
		return number64(value, subject->stat.members);
	case OSD_ROOT_CLOCK:
		put_be48(value, engine_txn_time(request->txn));
		return 6;
	case OSD_ROOT_SUPPORTED_ISOLATION:
		return supported_isolation(value);
	case OSD_ROOT_DATA_ATOMICITY_GUARANTEE:
	case OSD_ROOT_ATTRIBUTES_ATOMICITY_GUARANTEE:
		return number64(value, UINT64_MAX); /* a command as a whole, whatever its size */
	case OSD_ROOT_DATA_ATOMICITY_ALIGNMENT:
		return number64(value, 1);
	case OSD_ROOT_SNAPSHOTS_MAX:
	case OSD_ROOT_CLONES_MAX:
		put_be32(value, ENGINE_PARTITIONS_MAX);
		return 4;
	case OSD_ROOT_BRANCH_DEPTH_MAX:
		put_be32(value, ENGINE_CLONE_DEPTH_MAX);
		return 4;
	case OSD_ROOT_SNAPSHOT_REFRESHING:
		value[0] = 1;
		return 1;
	case OSD_ROOT_ATOMICITY_MULTIPLIER:
		value[0] = 1;
		return 1;
	default: /* supported continuation descriptors: their longest content */
		put_be32(value, OSD_CONTINUATION_BYTES_MAX - OSD_CONTINUATION_BYTES_MIN);
		return 4;
	}
}

static uint32_t get_information(const struct osd_request *request,
				const struct osd_subject *subject,
				const struct osd_page_attribute *attribute, uint8_t *value)
{
	switch (attribute->number) {
	case OSD_INFORMATION_PARTITION_ID:
		return number64(value, osd_wire_partition(subject->address));
	case OSD_INFORMATION_OBJECT_ID:
		return number64(value, osd_wire_object(request, subject->address.object));
	case OSD_INFORMATION_COLLECTION_TYPE:
		return osd_collection_type(request, subject, value) == 0 ? 1 : 0;
	case OSD_INFORMATION_USED_CAPACITY:
	case OSD_INFORMATION_ACTUAL_DATA_SPACE:
		return number64(value, subject->stat.used_bytes);
	case OSD_INFORMATION_USED_CAPACITY_INCREMENT:
		return number64(value, engine_page_bytes(request->device->engine));
	case OSD_INFORMATION_LOGICAL_LENGTH:
		return number64(value, subject->stat.length);
	case OSD_INFORMATION_MEMBERS:
		return number64(value, subject->stat.members);
	default:
		return 0;
	}
}

/* Kept as it was set; what it means is the same for all methods. */
static uint32_t get_default_isolation(const struct osd_request *request,
				      const struct osd_subject *subject,
				      const struct osd_page_attribute *attribute, uint8_t *value)
{
	uint32_t length;

	if (engine_attribute_get(request->txn, subject->address, attribute->page, attribute->number,
				 value, 1, &length) != 0)
		value[0] = OSD_ISOLATION_STRICT;
	return 1;
}

static bool allows_isolation(const uint8_t *value)
{
	return osd_isolation_is_known(value[0]) && value[0] != OSD_ISOLATION_DEFAULT;
}

/* Methods and times of COPY USER OBJECTS that there are: 1. */
static uint32_t get_duplication(const struct osd_request *request,
				const struct osd_subject *subject,
				const struct osd_page_attribute *attribute, uint8_t *value)
{
	(void)request;
	(void)subject;
	(void)attribute;
	put_be32(value, 1);
	return 4;
}

/*
 * What CREATE SNAPSHOT and CREATE CLONE do when they are not told. All methods are alike, so that what is set is kept and
 * changes nothing; there is one time of duplication.
 */
static uint32_t get_default_duplication(const struct osd_request *request,
					const struct osd_subject *subject,
					const struct osd_page_attribute *attribute, uint8_t *value)
{
	bool method = attribute->number < OSD_INFORMATION_SNAPSHOT_TIME;
	uint32_t length;

	if (engine_attribute_get(request->txn, subject->address, attribute->page, attribute->number,
				 value, 4, &length) != 0)
		put_be32(value, method ? OSD_DUPLICATION_SPACE_EFFICIENT : 0);
	return 4;
}

static bool allows_duplication_method(const uint8_t *value)
{
	return get_be32(value) <= UINT8_MAX && osd_clone_method_is_known(value[3]);
}

static bool allows_duplication_time(const uint8_t *value)
{
	return get_be32(value) == 0;
}

/* ---- error recovery pages ---- */

/* A time that is not defined as long as there was nothing. */
static uint32_t time_met(uint8_t *value, uint64_t milliseconds)
{
	put_be48(value, milliseconds);
	return milliseconds ? 6 : 0;
}

/* A check is recommended where damage was met by chance: there may be more. */
static uint8_t damage_summary(const struct osd_damage_summary *damage, enum engine_type type)
{
	uint8_t summary = damage->kinds;

	if (type == ENGINE_ROOT && damage->kinds != 0 && damage->unchecked)
		summary |= OSD_DAMAGE_ROOT_CHECK_RECOMMENDED;
	if ((type == ENGINE_ROOT && damage->contained != 0 && damage->unchecked) ||
	    (type == ENGINE_PARTITION && damage->unchecked))
		summary |= OSD_DAMAGE_PARTITION_CHECK_RECOMMENDED;
	return summary;
}

static uint32_t get_error_recovery(const struct osd_request *request,
				   const struct osd_subject *subject,
				   const struct osd_page_attribute *attribute, uint8_t *value)
{
	struct osd_damage_summary damage =
		osd_damage_read(&request->device->damage, osd_wire_partition(subject->address),
				osd_wire_object(request, subject->address.object));

	switch (attribute->number) {
	case OSD_RECOVERY_DAMAGE_SUMMARY:
		value[0] = damage_summary(&damage, subject->stat.type);
		return 1;
	case OSD_RECOVERY_CONTAINED_DAMAGE_SUMMARY:
		value[0] = damage.contained_kinds;
		return 1;
	case OSD_RECOVERY_LAST_DATA_TIME:
		return time_met(value, damage.content_ms);
	case OSD_RECOVERY_LAST_ATTRIBUTES_TIME:
		return time_met(value, damage.attributes_ms);
	case OSD_RECOVERY_LAST_CONTAINED_TIME:
		return time_met(value, damage.contained_ms);
	default:
		return number64(value, damage.contained);
	}
}

/* Our own: commands that ended with MEDIUM ERROR. */
static uint32_t get_damaged_commands(const struct osd_request *request,
				     const struct osd_subject *subject,
				     const struct osd_page_attribute *attribute, uint8_t *value)
{
	struct osd_damage_log *log = &request->device->damage;
	uint64_t numbers[3];

	(void)subject;
	pthread_mutex_lock(&log->lock);
	numbers[0] = log->commands;
	numbers[1] = log->partition;
	numbers[2] = log->object;
	pthread_mutex_unlock(&log->lock);
	if (numbers[0] == 0 && attribute->number != OSD_MUNINN_DAMAGED_COMMANDS)
		return 0;
	return number64(value, numbers[attribute->number - OSD_MUNINN_DAMAGED_COMMANDS]);
}

/* What a snapshot or clone stands on. */
static uint32_t get_duplicate(const struct osd_request *request, const struct osd_subject *subject,
			      const struct osd_page_attribute *attribute, uint8_t *value)
{
	struct engine_clone clone;

	if (engine_clone_get(request->txn, subject->address.partition, &clone) != 0)
		return 0;
	switch (attribute->number) {
	case OSD_MUNINN_SOURCE_PARTITION:
		return number64(value, clone.source);
	case OSD_MUNINN_DUPLICATION_TIME:
		put_be48(value, clone.time_ms);
		return 6;
	default:
		value[0] = clone.writable;
		return 1;
	}
}

/* The layout is chosen when a partition is created and never changes. */
static int set_layout(struct osd_request *request, const struct osd_subject *subject,
		      const struct osd_page_attribute *attribute, const uint8_t *value)
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
			      const struct osd_page_attribute *attribute, const uint8_t *value)
{
	int result = engine_truncate(request->txn, subject->address, get_be64(value));

	(void)attribute;
	/* It is data and attribute alike. */
	if (result != 0 || request->timestamps_bypassed)
		return result;
	return engine_set_time(request->txn, subject->address, ENGINE_TIME_ATTRIBUTES_MODIFIED,
			       engine_txn_time(request->txn));
}

/* ---- the command tracking page ---- */

/* Service action of the command at work; only tracking collections have one, or none. */
static uint32_t get_active_command(const struct osd_request *request,
				   const struct osd_subject *subject,
				   const struct osd_page_attribute *attribute, uint8_t *value)
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
			 const struct osd_page_attribute *attribute, uint8_t *value)
{
	(void)request;
	put_be48(value, subject->stat.times_ms[time_of(attribute->number)]);
	return 6;
}

static int set_time(struct osd_request *request, const struct osd_subject *subject,
		    const struct osd_page_attribute *attribute, const uint8_t *value)
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
			     const struct osd_page_attribute *attribute, uint8_t *value)
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
#define DEFAULT_DUPLICATION(number, allows)                                                       \
	{                                                                                         \
		OSD_PARTITION_INFORMATION, number, 4, true, get_default_duplication, NULL, allows \
	}
/* Their length is checked in pages.c. */
#define ACCESS_LIST(number) STORED(OSD_PARTITION_ATTRIBUTES_ACCESS, number, 0)
/* Of itself, and of what is in it. */
#define RECOVERY(page, number, length) COMPUTED(page, number, length, get_error_recovery)
#define OWN_RECOVERY(page)             IDENTIFICATION(page), RECOVERY(page, OSD_RECOVERY_DAMAGE_SUMMARY, 1)
#define RECOVERY_TIMES(page)                            \
	RECOVERY(page, OSD_RECOVERY_LAST_DATA_TIME, 6), \
		RECOVERY(page, OSD_RECOVERY_LAST_ATTRIBUTES_TIME, 6)
#define CONTAINER_RECOVERY(page)                                                           \
	OWN_RECOVERY(page), RECOVERY(page, OSD_RECOVERY_CONTAINED_DAMAGE_SUMMARY, 1),      \
		RECOVERY_TIMES(page), RECOVERY(page, OSD_RECOVERY_LAST_CONTAINED_TIME, 6), \
		RECOVERY(page, OSD_RECOVERY_NUMBER_DAMAGED, 8)
#define FROZEN_AUDIT(number) STORED(OSD_PARTITION_FROZEN_AUDITS, number, 20)

#define DUPLICATION(number) COMPUTED(OSD_ROOT_INFORMATION, number, 4, get_duplication)

const struct osd_page_attribute osd_page_table[] = {
	/* user objects */
	IDENTIFICATION(OSD_USER_OBJECT_INFORMATION),
	COMPUTED(OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_PARTITION_ID, 8, get_information),
	COMPUTED(OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_OBJECT_ID, 8, get_information),
	STORED(OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USERNAME, 0),
	COMPUTED(OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USED_CAPACITY, 8, get_information),
	{ OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, 8, true, get_information,
	  set_logical_length, NULL },
	COMPUTED(OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_ACTUAL_DATA_SPACE, 8,
		 get_information),
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
	OWN_RECOVERY(OSD_USER_OBJECT_ERROR_RECOVERY),
	RECOVERY_TIMES(OSD_USER_OBJECT_ERROR_RECOVERY),
	IDENTIFICATION(OSD_USER_OBJECT_ATOMICS),
	STORED(OSD_USER_OBJECT_ATOMICS, OSD_ATOMICS_COMPARE_AND_SWAP, 8),
	STORED(OSD_USER_OBJECT_ATOMICS, OSD_ATOMICS_FETCH_AND_ADD, 8),
	/* partitions */
	IDENTIFICATION(OSD_PARTITION_INFORMATION),
	COMPUTED(OSD_PARTITION_INFORMATION, OSD_INFORMATION_PARTITION_ID, 8, get_information),
	STORED(OSD_PARTITION_INFORMATION, OSD_INFORMATION_USERNAME, 0),
	COMPUTED(OSD_PARTITION_INFORMATION, OSD_INFORMATION_USED_CAPACITY, 8, get_information),
	COMPUTED(OSD_PARTITION_INFORMATION, OSD_INFORMATION_USED_CAPACITY_INCREMENT, 8,
		 get_information),
	COMPUTED(OSD_PARTITION_INFORMATION, OSD_INFORMATION_MEMBERS, 8, get_information),
	COMPUTED(OSD_PARTITION_INFORMATION, OSD_INFORMATION_ACTUAL_DATA_SPACE, 8, get_information),
	DEFAULT_DUPLICATION(OSD_INFORMATION_SNAPSHOT_METHOD, allows_duplication_method),
	DEFAULT_DUPLICATION(OSD_INFORMATION_CLONE_METHOD, allows_duplication_method),
	DEFAULT_DUPLICATION(OSD_INFORMATION_SNAPSHOT_TIME, allows_duplication_time),
	DEFAULT_DUPLICATION(OSD_INFORMATION_CLONE_TIME, allows_duplication_time),
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
	IDENTIFICATION(OSD_PARTITION_ATTRIBUTES_ACCESS),
	ACCESS_LIST(1),
	ACCESS_LIST(2),
	ACCESS_LIST(3),
	ACCESS_LIST(4),
	ACCESS_LIST(5),
	ACCESS_LIST(6),
	ACCESS_LIST(7),
	ACCESS_LIST(8),
	ACCESS_LIST(9),
	ACCESS_LIST(10),
	ACCESS_LIST(11),
	ACCESS_LIST(12),
	ACCESS_LIST(13),
	ACCESS_LIST(14),
	ACCESS_LIST(15),
	ACCESS_LIST(16),
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
	CONTAINER_RECOVERY(OSD_PARTITION_ERROR_RECOVERY),
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
	COMPUTED(OSD_MUNINN_PARTITION, OSD_MUNINN_SOURCE_PARTITION, 8, get_duplicate),
	COMPUTED(OSD_MUNINN_PARTITION, OSD_MUNINN_DUPLICATION_TIME, 6, get_duplicate),
	COMPUTED(OSD_MUNINN_PARTITION, OSD_MUNINN_WRITABLE, 1, get_duplicate),
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
	OWN_RECOVERY(OSD_COLLECTION_ERROR_RECOVERY),
	RECOVERY_TIMES(OSD_COLLECTION_ERROR_RECOVERY),
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
	{ OSD_ROOT_INFORMATION, OSD_ROOT_DEFAULT_ISOLATION, 1, true, get_default_isolation, NULL,
	  allows_isolation },
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_SUPPORTED_ISOLATION, 32, get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_DATA_ATOMICITY_GUARANTEE, 8, get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_DATA_ATOMICITY_ALIGNMENT, 8, get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_ATTRIBUTES_ATOMICITY_GUARANTEE, 8,
		 get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_ATOMICITY_MULTIPLIER, 1, get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_SNAPSHOTS_MAX, 4, get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_CLONES_MAX, 4, get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_BRANCH_DEPTH_MAX, 4, get_root_information),
	DUPLICATION(OSD_ROOT_DUPLICATION_METHODS + OSD_DUPLICATION_DEFAULT),
	DUPLICATION(OSD_ROOT_DUPLICATION_METHODS + OSD_DUPLICATION_BYTE_BY_BYTE),
	DUPLICATION(OSD_ROOT_DUPLICATION_METHODS + OSD_DUPLICATION_FASTEST),
	DUPLICATION(OSD_ROOT_DUPLICATION_METHODS + OSD_DUPLICATION_HIGHEST_AVAILABILITY),
	DUPLICATION(OSD_ROOT_DUPLICATION_METHODS + OSD_DUPLICATION_ANY),
	DUPLICATION(OSD_ROOT_DUPLICATION_TIMES),
	DUPLICATION(OSD_ROOT_DUPLICATION_FREEZING),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_SNAPSHOT_REFRESHING, 1, get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION,
		 OSD_ROOT_CONTINUATION_DESCRIPTORS + OSD_CONTINUATION_SCATTER_GATHER, 4,
		 get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION,
		 OSD_ROOT_CONTINUATION_DESCRIPTORS + OSD_CONTINUATION_QUERY_LIST, 4,
		 get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION,
		 OSD_ROOT_CONTINUATION_DESCRIPTORS + OSD_CONTINUATION_USER_OBJECT, 4,
		 get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION,
		 OSD_ROOT_CONTINUATION_DESCRIPTORS + OSD_CONTINUATION_COPY_SOURCE, 4,
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
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_ADJUSTABLE_CLOCK, 6, get_security),
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_BOOT_EPOCH, 2, get_security),
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_MASTER_KEY_IDENTIFIER, 7, get_security),
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_ROOT_KEY_IDENTIFIER, 7, get_security),
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_ALGORITHMS, 1, get_security),
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_DH_GROUPS, 1, get_security),
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_DH_GROUPS + 1, 1, get_security),
	CONTAINER_RECOVERY(OSD_ROOT_ERROR_RECOVERY),
	COMPUTED(OSD_MUNINN_ROOT, OSD_MUNINN_DAMAGED_COMMANDS, 8, get_damaged_commands),
	COMPUTED(OSD_MUNINN_ROOT, OSD_MUNINN_DAMAGED_PARTITION, 8, get_damaged_commands),
	COMPUTED(OSD_MUNINN_ROOT, OSD_MUNINN_DAMAGED_OBJECT, 8, get_damaged_commands),
};

const size_t osd_page_table_length = sizeof(osd_page_table) / sizeof(osd_page_table[0]);

size_t osd_page_table_position(uint32_t page, uint32_t number)
{
	size_t low = 0, high = osd_page_table_length;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct osd_page_attribute *entry = &osd_page_table[middle];

		if (entry->page < page || (entry->page == page && entry->number < number))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct osd_page_attribute *osd_page_table_find(uint32_t page, uint32_t number)
{
	size_t i = osd_page_table_position(page, number);

	if (i < osd_page_table_length && osd_page_table[i].page == page &&
	    osd_page_table[i].number == number)
		return &osd_page_table[i];
	return NULL;
}
