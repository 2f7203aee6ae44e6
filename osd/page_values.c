/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Computes, sets and checks the attributes of the table that are not plain storage. */
#include "osd/page_values.h"

#include <errno.h>
#include <string.h>

#include "common/bytes.h"

static uint32_t number64(uint8_t *value, uint64_t number)
{
	put_be64(value, number);
	return 8;
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

/*
 * Shows nothing if it can't be read, nor for the past: then only the partitions tell what was used.
 */
static uint32_t get_capacity(const struct osd_request *request, const struct osd_subject *subject,
			     uint32_t number, uint8_t *value)
{
	uint64_t total, used;

	if (number == OSD_ROOT_USED_CAPACITY && subject->address.version != 0)
		return 0;
	if (osd_capacities(request, &total, &used) != 0)
		return 0;
	return number64(value, number == OSD_ROOT_TOTAL_CAPACITY ? total : used);
}

uint32_t osd_page_get_root_information(const struct osd_request *request,
				       const struct osd_subject *subject,
				       const struct osd_page_attribute *attribute, uint8_t *value)
{
	const struct osd_device *device = request->device;
	bool clones = osd_has(device, ENGINE_HAS_CLONES);

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
		return get_capacity(request, subject, attribute->number, value);
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
		put_be32(value, clones ? ENGINE_PARTITIONS_MAX : 0);
		return 4;
	case OSD_ROOT_BRANCH_DEPTH_MAX:
		put_be32(value, clones ? ENGINE_CLONE_DEPTH_MAX : 0);
		return 4;
	case OSD_ROOT_SNAPSHOT_REFRESHING:
		value[0] = clones;
		return 1;
	case OSD_ROOT_ATOMICITY_MULTIPLIER:
		value[0] = 1;
		return 1;
	default: /* supported continuation descriptors: their longest content */
		put_be32(value, OSD_CONTINUATION_BYTES_MAX - OSD_CONTINUATION_BYTES_MIN);
		return 4;
	}
}

uint32_t osd_page_get_information(const struct osd_request *request,
				  const struct osd_subject *subject,
				  const struct osd_page_attribute *attribute, uint8_t *value)
{
	switch (attribute->number) {
	case OSD_INFORMATION_PARTITION_ID:
		return number64(value, osd_wire_partition(subject->address));
	case OSD_INFORMATION_OBJECT_ID:
		return number64(value, osd_wire_object(request, subject->address.object));
	case OSD_INFORMATION_COLLECTION_TYPE:
		return osd_collection_type(subject, value) == 0 ? 1 : 0;
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

/* Kept as somebody set it; all methods mean the same. */
uint32_t osd_page_get_default_isolation(const struct osd_request *request,
					const struct osd_subject *subject,
					const struct osd_page_attribute *attribute, uint8_t *value)
{
	uint32_t length;

	(void)request;
	if (engine_object_attribute_get(subject->object, attribute->page, attribute->number, value,
					1, &length) != 0)
		value[0] = OSD_ISOLATION_STRICT;
	return 1;
}

bool osd_page_allows_isolation(const struct osd_request *request, const uint8_t *value)
{
	(void)request;
	return osd_isolation_is_known(value[0]) && value[0] != OSD_ISOLATION_DEFAULT;
}

/* 1 for each method and time that COPY USER OBJECTS has. */
uint32_t osd_page_get_duplication(const struct osd_request *request,
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
 * The default of CREATE SNAPSHOT and CREATE CLONE. All methods are alike, so the value is kept and
 * changes nothing; there is one time of duplication.
 */
uint32_t osd_page_get_default_duplication(const struct osd_request *request,
					  const struct osd_subject *subject,
					  const struct osd_page_attribute *attribute,
					  uint8_t *value)
{
	bool method = attribute->number < OSD_INFORMATION_SNAPSHOT_TIME;
	uint32_t length;

	(void)request;
	if (engine_object_attribute_get(subject->object, attribute->page, attribute->number, value,
					4, &length) != 0)
		put_be32(value, method ? OSD_DUPLICATION_SPACE_EFFICIENT : 0);
	return 4;
}

bool osd_page_allows_duplication_method(const struct osd_request *request, const uint8_t *value)
{
	(void)request;
	return get_be32(value) <= UINT8_MAX && osd_clone_method_is_known(value[3]);
}

bool osd_page_allows_duplication_time(const struct osd_request *request, const uint8_t *value)
{
	(void)request;
	return get_be32(value) == 0;
}

/* ---- error recovery pages ---- */

/* A time that is undefined while nothing happened. */
static uint32_t time_met(uint8_t *value, uint64_t milliseconds)
{
	put_be48(value, milliseconds);
	return milliseconds ? 6 : 0;
}

/* Recommends a check where a command met damage by chance, because there may be more. */
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

uint32_t osd_page_get_error_recovery(const struct osd_request *request,
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
uint32_t osd_page_get_damaged_commands(const struct osd_request *request,
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
uint32_t osd_page_get_duplicate(const struct osd_request *request,
				const struct osd_subject *subject,
				const struct osd_page_attribute *attribute, uint8_t *value)
{
	struct engine_clone clone;

	if (osd_clone_get(request, subject->address.partition, &clone) != 0)
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

uint32_t osd_page_get_clone_depth(const struct osd_request *request,
				  const struct osd_subject *subject,
				  const struct osd_page_attribute *attribute, uint8_t *value)
{
	uint32_t depth;

	(void)attribute;
	if (!osd_has(request->device, ENGINE_HAS_CLONES) ||
	    engine_clone_depth(request->txn, subject->address.partition, &depth) != 0 || depth == 0)
		return 0;
	put_be32(value, depth);
	return 4;
}

/* Stored only where somebody chose a layout. */
uint32_t osd_page_get_layout(const struct osd_request *request, const struct osd_subject *subject,
			     const struct osd_page_attribute *attribute, uint8_t *value)
{
	uint32_t length;

	(void)request;
	if (engine_object_attribute_get(subject->object, attribute->page, attribute->number, value,
					1, &length) != 0 ||
	    length != 1)
		value[0] = OSD_LAYOUT_FLAT;
	return 1;
}

/* The layout is chosen when a partition is created and never changes. */
int osd_page_set_layout(struct osd_request *request, const struct osd_subject *subject,
			const struct osd_page_attribute *attribute, const uint8_t *value)
{
	if (request->entry->target != OSD_TARGET_NEW_PARTITION)
		return -EINVAL;
	return engine_object_attribute_set(subject->object, attribute->page, attribute->number,
					   value, 1);
}

bool osd_page_allows_layout(const struct osd_request *request, const uint8_t *value)
{
	(void)request;
	return value[0] == OSD_LAYOUT_FLAT || value[0] == OSD_LAYOUT_PACKED;
}

int osd_page_set_logical_length(struct osd_request *request, const struct osd_subject *subject,
				const struct osd_page_attribute *attribute, const uint8_t *value)
{
	int result = engine_object_truncate(subject->object, get_be64(value));

	(void)attribute;
	/* The length is data and attribute alike. */
	if (result != 0 || request->timestamps_bypassed)
		return result;
	return engine_object_set_time(subject->object, ENGINE_TIME_ATTRIBUTES_MODIFIED,
				      engine_txn_time(request->txn));
}

/* ---- the command tracking page ---- */

/* Service action of the command at work; only tracking collections have one, or none. */
uint32_t osd_page_get_active_command(const struct osd_request *request,
				     const struct osd_subject *subject,
				     const struct osd_page_attribute *attribute, uint8_t *value)
{
	uint8_t type;

	(void)attribute;
	if (osd_collection_type(subject, &type) != 0 || type != OSD_COLLECTION_IS_TRACKING)
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

uint32_t osd_page_get_time(const struct osd_request *request, const struct osd_subject *subject,
			   const struct osd_page_attribute *attribute, uint8_t *value)
{
	(void)request;
	put_be48(value, subject->stat.times_ms[time_of(attribute->number)]);
	return 6;
}

int osd_page_set_time(struct osd_request *request, const struct osd_subject *subject,
		      const struct osd_page_attribute *attribute, const uint8_t *value)
{
	(void)request;
	return engine_object_set_time(subject->object, time_of(attribute->number), get_be48(value));
}

bool osd_page_allows_bypass(const struct osd_request *request, const uint8_t *value)
{
	(void)request;
	return value[0] == OSD_TIMESTAMPS_UPDATE || value[0] == OSD_TIMESTAMPS_BYPASS;
}

/* ---- policy/security pages ---- */

uint32_t osd_page_get_security(const struct osd_request *request, const struct osd_subject *subject,
			       const struct osd_page_attribute *attribute, uint8_t *value)
{
	return osd_security_attribute(request, subject, attribute->page, attribute->number, value);
}
