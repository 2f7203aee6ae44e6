/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The table of the standard's attributes. */
#include <errno.h>
#include <string.h>

#include "common/bytes.h"
#include "osd/page_table.h"
#include "osd/page_values.h"

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
#define TIME(page, number)                                                        \
	{                                                                         \
		page, number, 6, true, osd_page_get_time, osd_page_set_time, NULL \
	}
#define CREATED_TIME(page)                                                      \
	{                                                                       \
		page, OSD_TIME_CREATED, 6, false, osd_page_get_time, NULL, NULL \
	}
#define BYPASS(page)                                                               \
	{                                                                          \
		page, OSD_TIME_BYPASS, 1, true, NULL, NULL, osd_page_allows_bypass \
	}

#define METHOD(page, number)                                                                   \
	{                                                                                      \
		page, number, 1, true, osd_page_get_security, NULL, osd_security_allows_method \
	}
#define NONCE_WINDOW(number)                                                          \
	{                                                                             \
		OSD_PARTITION_SECURITY, number, 6, true, osd_page_get_security, NULL, \
			osd_security_allows_window                                    \
	}
#define WORKING_KEY_IDENTIFIER(version)                                                       \
	COMPUTED(OSD_PARTITION_SECURITY, OSD_SECURITY_WORKING_KEY_IDENTIFIERS + (version), 7, \
		 osd_page_get_security)
#define DEFAULT_DUPLICATION(number, allows)                                                   \
	{                                                                                     \
		OSD_PARTITION_INFORMATION, number, 4, true, osd_page_get_default_duplication, \
			NULL, allows                                                          \
	}
/* pages.c checks their length. */
#define ACCESS_LIST(number) STORED(OSD_PARTITION_ATTRIBUTES_ACCESS, number, 0)
/*
 * RECOVERY tells of damage; OWN_RECOVERY of the object itself, CONTAINER_RECOVERY also of what is
 * in it.
 */
#define RECOVERY(page, number, length) COMPUTED(page, number, length, osd_page_get_error_recovery)

#define OWN_RECOVERY(page) IDENTIFICATION(page), RECOVERY(page, OSD_RECOVERY_DAMAGE_SUMMARY, 1)
#define RECOVERY_TIMES(page)                            \
	RECOVERY(page, OSD_RECOVERY_LAST_DATA_TIME, 6), \
		RECOVERY(page, OSD_RECOVERY_LAST_ATTRIBUTES_TIME, 6)
#define CONTAINER_RECOVERY(page)                                                           \
	OWN_RECOVERY(page), RECOVERY(page, OSD_RECOVERY_CONTAINED_DAMAGE_SUMMARY, 1),      \
		RECOVERY_TIMES(page), RECOVERY(page, OSD_RECOVERY_LAST_CONTAINED_TIME, 6), \
		RECOVERY(page, OSD_RECOVERY_NUMBER_DAMAGED, 8)
#define FROZEN_AUDIT(number) STORED(OSD_PARTITION_FROZEN_AUDITS, number, 20)

#define DUPLICATION(number) COMPUTED(OSD_ROOT_INFORMATION, number, 4, osd_page_get_duplication)

const struct osd_page_attribute osd_page_table[] = {
	/* user objects */
	IDENTIFICATION(OSD_USER_OBJECT_INFORMATION),
	COMPUTED(OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_PARTITION_ID, 8,
		 osd_page_get_information),
	COMPUTED(OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_OBJECT_ID, 8,
		 osd_page_get_information),
	STORED(OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USERNAME, 0),
	COMPUTED(OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USED_CAPACITY, 8,
		 osd_page_get_information),
	{ OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, 8, true,
	  osd_page_get_information, osd_page_set_logical_length, NULL },
	COMPUTED(OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_ACTUAL_DATA_SPACE, 8,
		 osd_page_get_information),
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
	COMPUTED(OSD_PARTITION_INFORMATION, OSD_INFORMATION_PARTITION_ID, 8,
		 osd_page_get_information),
	STORED(OSD_PARTITION_INFORMATION, OSD_INFORMATION_USERNAME, 0),
	COMPUTED(OSD_PARTITION_INFORMATION, OSD_INFORMATION_USED_CAPACITY, 8,
		 osd_page_get_information),
	COMPUTED(OSD_PARTITION_INFORMATION, OSD_INFORMATION_USED_CAPACITY_INCREMENT, 8,
		 osd_page_get_information),
	COMPUTED(OSD_PARTITION_INFORMATION, OSD_INFORMATION_MEMBERS, 8, osd_page_get_information),
	COMPUTED(OSD_PARTITION_INFORMATION, OSD_INFORMATION_ACTUAL_DATA_SPACE, 8,
		 osd_page_get_information),
	DEFAULT_DUPLICATION(OSD_INFORMATION_SNAPSHOT_METHOD, osd_page_allows_duplication_method),
	DEFAULT_DUPLICATION(OSD_INFORMATION_CLONE_METHOD, osd_page_allows_duplication_method),
	DEFAULT_DUPLICATION(OSD_INFORMATION_SNAPSHOT_TIME, osd_page_allows_duplication_time),
	DEFAULT_DUPLICATION(OSD_INFORMATION_CLONE_TIME, osd_page_allows_duplication_time),
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
	COMPUTED(OSD_PARTITION_SECURITY, OSD_SECURITY_NONCE_LIST_DEPTH, 2, osd_page_get_security),
	STORED(OSD_PARTITION_SECURITY, OSD_SECURITY_FROZEN_KEYS, 2),
	COMPUTED(OSD_PARTITION_SECURITY, OSD_SECURITY_PARTITION_KEY_IDENTIFIER, 7,
		 osd_page_get_security),
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
	{ OSD_MUNINN_PARTITION, OSD_MUNINN_LAYOUT, 1, true, osd_page_get_layout,
	  osd_page_set_layout, osd_page_allows_layout },
	COMPUTED(OSD_MUNINN_PARTITION, OSD_MUNINN_SOURCE_PARTITION, 8, osd_page_get_duplicate),
	COMPUTED(OSD_MUNINN_PARTITION, OSD_MUNINN_DUPLICATION_TIME, 6, osd_page_get_duplicate),
	COMPUTED(OSD_MUNINN_PARTITION, OSD_MUNINN_WRITABLE, 1, osd_page_get_duplicate),
	COMPUTED(OSD_MUNINN_PARTITION, OSD_MUNINN_CLONE_DEPTH, 4, osd_page_get_clone_depth),
	/* collections */
	IDENTIFICATION(OSD_COLLECTION_INFORMATION),
	COMPUTED(OSD_COLLECTION_INFORMATION, OSD_INFORMATION_PARTITION_ID, 8,
		 osd_page_get_information),
	COMPUTED(OSD_COLLECTION_INFORMATION, OSD_INFORMATION_OBJECT_ID, 8,
		 osd_page_get_information),
	STORED(OSD_COLLECTION_INFORMATION, OSD_INFORMATION_USERNAME, 0),
	COMPUTED(OSD_COLLECTION_INFORMATION, OSD_INFORMATION_COLLECTION_TYPE, 1,
		 osd_page_get_information),
	COMPUTED(OSD_COLLECTION_INFORMATION, OSD_INFORMATION_USED_CAPACITY, 8,
		 osd_page_get_information),
	IDENTIFICATION(OSD_COLLECTION_TIMESTAMPS),
	CREATED_TIME(OSD_COLLECTION_TIMESTAMPS),
	TIME(OSD_COLLECTION_TIMESTAMPS, OSD_TIME_ATTRIBUTES_ACCESSED),
	TIME(OSD_COLLECTION_TIMESTAMPS, OSD_TIME_ATTRIBUTES_MODIFIED),
	TIME(OSD_COLLECTION_TIMESTAMPS, OSD_TIME_DATA_ACCESSED),
	TIME(OSD_COLLECTION_TIMESTAMPS, OSD_TIME_DATA_MODIFIED),
	IDENTIFICATION(OSD_COLLECTION_TRACKING),
	READ_ONLY(OSD_COLLECTION_TRACKING, OSD_TRACKING_PERCENT_COMPLETE),
	COMPUTED(OSD_COLLECTION_TRACKING, OSD_TRACKING_ACTIVE_COMMAND, 2,
		 osd_page_get_active_command),
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
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_SYSTEM_ID, 20, osd_page_get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_VENDOR, 8, osd_page_get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_PRODUCT, 16, osd_page_get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_MODEL, 32, osd_page_get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_REVISION, 4, osd_page_get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_SERIAL_NUMBER, 0, osd_page_get_root_information),
	STORED(OSD_ROOT_INFORMATION, OSD_ROOT_OSD_NAME, 0),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_CONTINUATION_LENGTH_MAX, 4,
		 osd_page_get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_TOTAL_CAPACITY, 8, osd_page_get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_USED_CAPACITY, 8, osd_page_get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_PARTITIONS, 8, osd_page_get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_CLOCK, 6, osd_page_get_root_information),
	{ OSD_ROOT_INFORMATION, OSD_ROOT_DEFAULT_ISOLATION, 1, true, osd_page_get_default_isolation,
	  NULL, osd_page_allows_isolation },
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_SUPPORTED_ISOLATION, 32,
		 osd_page_get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_DATA_ATOMICITY_GUARANTEE, 8,
		 osd_page_get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_DATA_ATOMICITY_ALIGNMENT, 8,
		 osd_page_get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_ATTRIBUTES_ATOMICITY_GUARANTEE, 8,
		 osd_page_get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_ATOMICITY_MULTIPLIER, 1,
		 osd_page_get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_SNAPSHOTS_MAX, 4, osd_page_get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_CLONES_MAX, 4, osd_page_get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_BRANCH_DEPTH_MAX, 4, osd_page_get_root_information),
	DUPLICATION(OSD_ROOT_DUPLICATION_METHODS + OSD_DUPLICATION_DEFAULT),
	DUPLICATION(OSD_ROOT_DUPLICATION_METHODS + OSD_DUPLICATION_BYTE_BY_BYTE),
	DUPLICATION(OSD_ROOT_DUPLICATION_METHODS + OSD_DUPLICATION_FASTEST),
	DUPLICATION(OSD_ROOT_DUPLICATION_METHODS + OSD_DUPLICATION_HIGHEST_AVAILABILITY),
	DUPLICATION(OSD_ROOT_DUPLICATION_METHODS + OSD_DUPLICATION_ANY),
	DUPLICATION(OSD_ROOT_DUPLICATION_TIMES),
	DUPLICATION(OSD_ROOT_DUPLICATION_FREEZING),
	COMPUTED(OSD_ROOT_INFORMATION, OSD_ROOT_SNAPSHOT_REFRESHING, 1,
		 osd_page_get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION,
		 OSD_ROOT_CONTINUATION_DESCRIPTORS + OSD_CONTINUATION_SCATTER_GATHER, 4,
		 osd_page_get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION,
		 OSD_ROOT_CONTINUATION_DESCRIPTORS + OSD_CONTINUATION_QUERY_LIST, 4,
		 osd_page_get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION,
		 OSD_ROOT_CONTINUATION_DESCRIPTORS + OSD_CONTINUATION_USER_OBJECT, 4,
		 osd_page_get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION,
		 OSD_ROOT_CONTINUATION_DESCRIPTORS + OSD_CONTINUATION_COPY_SOURCE, 4,
		 osd_page_get_root_information),
	COMPUTED(OSD_ROOT_INFORMATION,
		 OSD_ROOT_CONTINUATION_DESCRIPTORS + OSD_CONTINUATION_EXTENSION_CAPABILITIES, 4,
		 osd_page_get_root_information),
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
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_OLDEST_NONCE, 6, osd_page_get_security),
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_NEWEST_NONCE, 6, osd_page_get_security),
	METHOD(OSD_ROOT_SECURITY, OSD_SECURITY_PARTITION_DEFAULT_METHOD),
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_SUPPORTED_METHODS, 2, osd_page_get_security),
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_ADJUSTABLE_CLOCK, 6, osd_page_get_security),
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_BOOT_EPOCH, 2, osd_page_get_security),
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_MASTER_KEY_IDENTIFIER, 7, osd_page_get_security),
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_ROOT_KEY_IDENTIFIER, 7, osd_page_get_security),
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_ALGORITHMS, 1, osd_page_get_security),
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_DH_GROUPS, 1, osd_page_get_security),
	COMPUTED(OSD_ROOT_SECURITY, OSD_SECURITY_DH_GROUPS + 1, 1, osd_page_get_security),
	CONTAINER_RECOVERY(OSD_ROOT_ERROR_RECOVERY),
	COMPUTED(OSD_MUNINN_ROOT, OSD_MUNINN_DAMAGED_COMMANDS, 8, osd_page_get_damaged_commands),
	COMPUTED(OSD_MUNINN_ROOT, OSD_MUNINN_DAMAGED_PARTITION, 8, osd_page_get_damaged_commands),
	COMPUTED(OSD_MUNINN_ROOT, OSD_MUNINN_DAMAGED_OBJECT, 8, osd_page_get_damaged_commands),
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
