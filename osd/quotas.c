/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Quotas: attributes of the quotas pages, 0 or undefined = no limit; and the capacity that the unit
 * was formatted with. A command fails as a whole if it makes something grow beyond its quota. A
 * command that makes nothing grow never does.
 */
#include <errno.h>

#include "common/bytes.h"
#include "osd/execute.h"

/* Value of a quota, 0 = none. */
static int get_quota(struct osd_request *request, struct engine_address address, uint32_t page,
		     uint32_t number, uint64_t *quota)
{
	uint8_t value[8];
	uint32_t length;
	int result = osd_attribute_at(request->txn, address, page, number, value, sizeof(value),
				      &length);

	*quota = result == 0 && length == sizeof(value) ? get_be64(value) : 0;
	return result == -ENOENT ? 0 : osd_result(request, result, 0);
}

static struct engine_address partition_of(const struct osd_request *request)
{
	struct engine_address address = request->subject.address;

	address.object = 0;
	return address;
}

/* ---- defaults ---- */

/* A new object or partition takes an attribute of its container. */
static int inherit(struct osd_request *request, struct engine_address from, uint32_t from_page,
		   uint32_t page, uint32_t number)
{
	uint8_t value[8];
	uint32_t length;
	int result = osd_attribute_at(request->txn, from, from_page, number, value, sizeof(value),
				      &length);

	if (result == -ENOENT)
		return 0;
	for (uint64_t i = 0; result == 0 && i < max_u64(request->created, 1); i++)
		result = osd_set_created(request, i, page, number, value, length);
	return osd_result(request, result, 0);
}

int osd_quotas_inherit_object(struct osd_request *request)
{
	return inherit(request, partition_of(request), OSD_PARTITION_QUOTAS, OSD_USER_OBJECT_QUOTAS,
		       OSD_QUOTA_MAXIMUM_LENGTH);
}

int osd_quotas_inherit_partition(struct osd_request *request)
{
	static const uint32_t numbers[] = { OSD_QUOTA_MAXIMUM_LENGTH, OSD_QUOTA_CAPACITY,
					    OSD_QUOTA_OBJECT_COUNT,
					    OSD_QUOTA_COLLECTIONS_PER_OBJECT };
	struct engine_address root = { 0 };
	int result = 0;

	for (size_t i = 0; result == 0 && i < sizeof(numbers) / sizeof(numbers[0]); i++)
		result = inherit(request, root, OSD_ROOT_QUOTAS, OSD_PARTITION_QUOTAS, numbers[i]);
	return result;
}

/* ---- limits ---- */

/* Fails when `used` is above the quota. */
static int check(struct osd_request *request, struct engine_address address, uint32_t page,
		 uint32_t number, uint64_t used)
{
	uint64_t quota;

	if (get_quota(request, address, page, number, &quota) != 0)
		return -EINVAL;
	return quota == 0 || used <= quota ? 0 : osd_result(request, -EDQUOT, 0);
}

/* What a partition holds, after the command. */
static int stat_partition(struct osd_request *request, struct engine_stat *stat)
{
	return osd_result(request, osd_stat_at(request, partition_of(request), stat),
			  OSD_FIELD_PARTITION);
}

/*
 * The maximum length of an object, if the command made it longer. Adds its used capacity to *used.
 */
static int check_length(struct osd_request *request, uint64_t index, uint64_t *used)
{
	struct osd_subject after;
	int result = osd_open_created(request, index, &after);

	if (result != 0)
		return osd_result(request, result, OSD_FIELD_OBJECT);
	*used += after.stat.used_bytes;
	if (after.stat.length > request->before.length)
		result = check(request, after.address, OSD_USER_OBJECT_QUOTAS,
			       OSD_QUOTA_MAXIMUM_LENGTH, after.stat.length);
	osd_close(&after);
	return result;
}

/* What a partition may hold, if the command added something. */
static int check_partition(struct osd_request *request, bool grew)
{
	struct engine_address address = partition_of(request);
	uint64_t capacity = 0, objects = 0;
	struct engine_stat partition;

	if (grew &&
	    get_quota(request, address, OSD_PARTITION_QUOTAS, OSD_QUOTA_CAPACITY, &capacity) != 0)
		return -EINVAL;
	if (request->created != 0 && get_quota(request, address, OSD_PARTITION_QUOTAS,
					       OSD_QUOTA_OBJECT_COUNT, &objects) != 0)
		return -EINVAL;
	if (capacity == 0 && objects == 0)
		return 0;
	if (stat_partition(request, &partition) != 0)
		return -EINVAL;
	if ((capacity != 0 && partition.used_bytes > capacity) ||
	    (objects != 0 && partition.members - partition.collections > objects))
		return osd_result(request, -EDQUOT, 0);
	return 0;
}

static int check_partitions(struct osd_request *request)
{
	struct engine_address root = { 0 };
	struct engine_stat stat;
	int result = osd_stat_at(request, root, &stat);

	if (result != 0)
		return osd_result(request, result, 0);
	return check(request, root, OSD_ROOT_QUOTAS, OSD_QUOTA_PARTITION_COUNT, stat.members);
}

/* ---- the formatted capacity ---- */

/* 0: the device's. */
static int formatted_capacity(const struct osd_request *request, uint64_t *capacity)
{
	struct engine_address root = { 0 };

	return osd_security_number(request, root, osd_private_page(ENGINE_ROOT),
				   OSD_PRIVATE_FORMATTED_CAPACITY, capacity);
}

int osd_set_capacity(struct osd_request *request)
{
	struct engine_address root = { 0 };
	uint8_t value[8];

	put_be64(value, request->cdb.length);
	return osd_result(request,
			  osd_attribute_set_at(request->txn, root, osd_private_page(ENGINE_ROOT),
					       OSD_PRIVATE_FORMATTED_CAPACITY, value,
					       request->cdb.length ? sizeof(value) : 0),
			  0);
}

int osd_capacities(const struct osd_request *request, uint64_t *total, uint64_t *used)
{
	uint64_t formatted;
	int64_t change;
	int result = formatted_capacity(request, &formatted);

	*total = request->statistics.capacity_bytes;
	*used = request->statistics.used_bytes;
	if (result != 0 || formatted == 0)
		return result;
	/* History takes no space of the formatted capacity. */
	*total = min_u64(*total, formatted);
	return engine_used(request->txn, used, &change);
}

static int check_capacity(struct osd_request *request)
{
	uint64_t formatted, used;
	int64_t change;
	int result = formatted_capacity(request, &formatted);

	if (result == 0 && formatted == 0)
		return 0;
	if (result == 0)
		result = engine_used(request->txn, &used, &change);
	if (result == 0 && change > 0 && used > formatted)
		result = -EDQUOT;
	return osd_result(request, result, 0);
}

int osd_quotas_check(struct osd_request *request)
{
	uint64_t used = 0;

	if (osd_layout_check(request) != 0 || check_capacity(request) != 0)
		return -EINVAL;
	if (request->subject.stat.type == ENGINE_PARTITION && request->created > 0)
		return check_partitions(request);
	if (request->subject.stat.type != ENGINE_USER_OBJECT)
		return 0;
	for (uint64_t i = 0; i < max_u64(request->created, 1); i++)
		if (check_length(request, i, &used) != 0)
			return -EINVAL;
	request->created_used_bytes = request->created > 0 ? used : 0;
	return check_partition(request, used > request->before.used_bytes);
}
