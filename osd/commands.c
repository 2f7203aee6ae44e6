/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The commands that are implemented, and the work of those that make and remove things. */
#include <errno.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "wire/vendor.h"

/* ---- FORMAT OSD ---- */

static int check_format(struct osd_request *request)
{
	struct engine_statistics statistics;

	engine_read_statistics(request->device->engine, &statistics);
	if (request->cdb.length > statistics.capacity_bytes)
		return osd_fail_field(request, osd_length_field(request));
	return 0;
}

/* ---- partitions ---- */

static int create_partition(struct osd_request *request)
{
	struct osd_subject *subject = &request->subject;
	uint64_t chosen;
	int result = engine_partition_create(request->txn, request->cdb.partition, &chosen);

	if (result != 0)
		return osd_result(request, result, OSD_FIELD_PARTITION);
	subject->address = (struct engine_address){ .partition = chosen };
	result = osd_created(request, ENGINE_PARTITION, 1);
	if (result == 0)
		result = osd_security_inherit(request);
	if (result == 0)
		result = osd_layout_inherit(request);
	return result == 0 ? osd_quotas_inherit_partition(request) : result;
}

static int check_remove_scope(struct osd_request *request)
{
	unsigned scope = request->cdb.version == OSD_1 ? OSD_REMOVE_IF_EMPTY
						       : request->cdb.command_options & 7;

	return scope <= OSD_REMOVE_CONTENTS ? 0
					    : osd_fail_field(request, OSD_FIELD_COMMAND_OPTIONS);
}

static int remove_partition(struct osd_request *request)
{
	bool contents = request->cdb.version == OSD_2 &&
			(request->cdb.command_options & 7) == OSD_REMOVE_CONTENTS;

	uint64_t partition = request->subject.address.partition;

	if (osd_security_close(request, partition) != 0)
		return -EINVAL;
	return osd_result(request, engine_partition_remove(request->txn, partition, contents),
			  OSD_FIELD_PARTITION);
}

/* ---- user objects ---- */

static int check_create(struct osd_request *request)
{
	const struct osd_cdb *cdb = &request->cdb;
	uint64_t set_bytes = (uint64_t)cdb->objects * cdb->set_data.length;

	/* With several objects the target chooses the IDs. */
	if ((cdb->objects > 1 && cdb->object != 0) || cdb->objects > OSD_CREATE_OBJECTS_MAX ||
	    (cdb->objects > 1 && set_bytes > OSD_WRITE_BYTES_MAX))
		return osd_fail_field(request, osd_length_field(request));
	return 0;
}

int osd_create_objects(struct osd_request *request, uint32_t count)
{
	struct osd_subject *subject = &request->subject;
	uint64_t first;
	int result = osd_layout_create(request, ENGINE_USER_OBJECT, count, &first);

	if (result != 0)
		return osd_result(request, result, OSD_FIELD_OBJECT);
	subject->address.object = first;
	result = osd_created(request, ENGINE_USER_OBJECT, count);
	if (result == 0)
		result = osd_security_inherit(request);
	return result == 0 ? osd_quotas_inherit_object(request) : result;
}

static int create(struct osd_request *request)
{
	return osd_create_objects(request, request->cdb.objects > 0 ? request->cdb.objects : 1);
}

static int create_and_write(struct osd_request *request)
{
	int result = create(request);

	return result == 0 ? osd_write(request) : result;
}

static int remove_object(struct osd_request *request)
{
	return osd_result(request, engine_object_remove(request->subject.object), OSD_FIELD_OBJECT);
}

/* ---- FLUSH family ---- */

static int check_flush(struct osd_request *request)
{
	/* Everything becomes stable, whatever the scope. That includes what was asked for. */
	return request->cdb.flush_scope <= 2 ? 0
					     : osd_fail_field(request, OSD_FIELD_COMMAND_OPTIONS);
}

/* ---- the table ---- */

static const struct osd_command_entry command_table[] = {
	{ OSD_OBJECT_STRUCTURE_CHECK, ENGINE_READ, OSD_TARGET_ANY, OSD_ALLOCATION,
	  osd_check_structure_check, osd_object_structure_check, OSD_PERMISSION_OBJ_MGMT, 0 },
	{ OSD_FORMAT_OSD, ENGINE_WRITE, OSD_TARGET_ROOT, OSD_REFORMATS, check_format,
	  osd_set_capacity, OSD_PERMISSION_OBJ_MGMT | OSD_PERMISSION_GLOBAL, 0 },
	{ OSD_CREATE, ENGINE_WRITE, OSD_TARGET_NEW_USER_OBJECT, OSD_SHORT, check_create, create,
	  OSD_PERMISSION_CREATE, 0 },
	{ OSD_LIST, ENGINE_READ, OSD_TARGET_ROOT_OR_PARTITION,
	  OSD_ALLOCATION | OSD_LISTS | OSD_READS_DATA, osd_check_list, osd_list,
	  OSD_PERMISSION_READ, 0 },
	{ OSD_PUNCH, ENGINE_WRITE, OSD_TARGET_USER_OBJECT, OSD_HAS_ADDRESS, NULL, osd_punch,
	  OSD_PERMISSION_WRITE, 0 },
	{ OSD_READ, ENGINE_READ, OSD_TARGET_USER_OBJECT,
	  OSD_DATA_IN | OSD_SHORT | OSD_SCATTERS | OSD_HAS_RANGE | OSD_READS_DATA, NULL, osd_read,
	  OSD_PERMISSION_READ, 0 },
	{ OSD_WRITE, ENGINE_WRITE, OSD_TARGET_USER_OBJECT,
	  OSD_DATA_OUT | OSD_SHORT | OSD_SCATTERS | OSD_HAS_RANGE, NULL, osd_write,
	  OSD_PERMISSION_WRITE, 0 },
	{ OSD_APPEND, ENGINE_WRITE, OSD_TARGET_USER_OBJECT, OSD_DATA_OUT | OSD_SHORT, NULL,
	  osd_append, OSD_PERMISSION_APPEND, 0 },
	{ OSD_FLUSH, ENGINE_READ, OSD_TARGET_USER_OBJECT, OSD_FLUSHES, check_flush, NULL,
	  OSD_PERMISSION_OBJ_MGMT, 0 },
	{ OSD_CLEAR, ENGINE_WRITE, OSD_TARGET_USER_OBJECT, OSD_HAS_RANGE, NULL, osd_clear,
	  OSD_PERMISSION_WRITE, 0 },
	{ OSD_REMOVE, ENGINE_FREE, OSD_TARGET_USER_OBJECT, OSD_ATTRIBUTES_FIRST, NULL,
	  remove_object, OSD_PERMISSION_REMOVE, 0 },
	{ OSD_CREATE_PARTITION, ENGINE_WRITE, OSD_TARGET_NEW_PARTITION, 0, NULL, create_partition,
	  OSD_PERMISSION_CREATE | OSD_PERMISSION_GLOBAL, 0 },
	{ OSD_REMOVE_PARTITION, ENGINE_FREE, OSD_TARGET_PARTITION, OSD_ATTRIBUTES_FIRST,
	  check_remove_scope, remove_partition, OSD_PERMISSION_REMOVE | OSD_PERMISSION_GLOBAL, 0 },
	{ OSD_COMPARE_AND_SWAP, ENGINE_WRITE, OSD_TARGET_USER_OBJECT, OSD_SWAPS | OSD_SHORT,
	  osd_check_swap, osd_compare_and_swap, OSD_PERMISSION_GET_ATTR | OSD_PERMISSION_SET_ATTR,
	  0 },
	{ OSD_GET_ATTRIBUTES, ENGINE_READ, OSD_TARGET_ANY, OSD_GETS_FIRST | OSD_SHORT, NULL, NULL,
	  OSD_PERMISSION_GET_ATTR, 0 },
	{ OSD_SET_ATTRIBUTES, ENGINE_READ, OSD_TARGET_ANY, OSD_SHORT, NULL, NULL,
	  OSD_PERMISSION_SET_ATTR, 0 },
	{ OSD_FETCH_AND_ADD, ENGINE_WRITE, OSD_TARGET_USER_OBJECT, OSD_SWAPS | OSD_SHORT,
	  osd_check_swap, osd_fetch_and_add, OSD_PERMISSION_GET_ATTR | OSD_PERMISSION_SET_ATTR, 0 },
	{ OSD_CONDITIONAL_SET_ATTRIBUTES, ENGINE_WRITE, OSD_TARGET_USER_OBJECT, OSD_OWN_LISTS,
	  osd_check_own_lists, osd_conditional_set,
	  OSD_PERMISSION_GET_ATTR | OSD_PERMISSION_SET_ATTR, 0 },
	{ OSD_CREATE_AND_WRITE, ENGINE_WRITE, OSD_TARGET_NEW_USER_OBJECT,
	  OSD_DATA_OUT | OSD_SHORT | OSD_SCATTERS | OSD_HAS_RANGE, NULL, create_and_write,
	  OSD_PERMISSION_CREATE | OSD_PERMISSION_WRITE, 0 },
	{ OSD_COPY_USER_OBJECTS, ENGINE_WRITE, OSD_TARGET_NEW_USER_OBJECT, OSD_COPIES | OSD_EXTENDS,
	  osd_check_copy, osd_copy_user_objects, OSD_PERMISSION_CREATE | OSD_PERMISSION_WRITE, 0 },
	{ OSD_SET_KEY, ENGINE_WRITE, OSD_TARGET_ROOT_OR_PARTITION, 0, osd_check_set_key,
	  osd_set_key, OSD_PERMISSION_DEV_MGMT, 0 },
	{ OSD_SET_MASTER_KEY, ENGINE_WRITE, OSD_TARGET_ROOT, OSD_KEY_PARAMETERS,
	  osd_check_set_master_key, osd_set_master_key, OSD_PERMISSION_DEV_MGMT, 0 },
	{ OSD_CREATE_COLLECTION, ENGINE_WRITE, OSD_TARGET_NEW_COLLECTION, 0, NULL,
	  osd_create_collection, OSD_PERMISSION_CREATE, ENGINE_HAS_COLLECTIONS },
	{ OSD_CREATE_USER_TRACKING_COLLECTION, ENGINE_WRITE, OSD_TARGET_NEW_COLLECTION, OSD_EXTENDS,
	  NULL, osd_create_user_tracking_collection, OSD_PERMISSION_CREATE,
	  ENGINE_HAS_COLLECTIONS },
	{ OSD_REMOVE_COLLECTION, ENGINE_FREE, OSD_TARGET_COLLECTION, OSD_ATTRIBUTES_FIRST, NULL,
	  osd_remove_collection, OSD_PERMISSION_REMOVE, ENGINE_HAS_COLLECTIONS },
	{ OSD_LIST_COLLECTION, ENGINE_READ, OSD_TARGET_PARTITION_OR_COLLECTION,
	  OSD_ALLOCATION | OSD_LISTS | OSD_READS_DATA, osd_check_list, osd_list,
	  OSD_PERMISSION_READ, ENGINE_HAS_COLLECTIONS },
	{ OSD_QUERY, ENGINE_READ, OSD_TARGET_COLLECTION,
	  OSD_ALLOCATION | OSD_QUERIES | OSD_EXTENDS | OSD_READS_DATA, osd_check_query, osd_query,
	  OSD_PERMISSION_QUERY, ENGINE_HAS_COLLECTIONS },
	{ OSD_REMOVE_MEMBER_OBJECTS, ENGINE_FREE, OSD_TARGET_COLLECTION, OSD_EXTENDS,
	  osd_check_members, osd_remove_member_objects,
	  OSD_PERMISSION_M_OBJECT | OSD_PERMISSION_REMOVE, ENGINE_HAS_COLLECTIONS },
	{ OSD_GET_MEMBER_ATTRIBUTES, ENGINE_READ, OSD_TARGET_COLLECTION, OSD_EXTENDS | OSD_MEMBERS,
	  osd_check_members, osd_get_member_attributes,
	  OSD_PERMISSION_M_OBJECT | OSD_PERMISSION_GET_ATTR, ENGINE_HAS_COLLECTIONS },
	{ OSD_SET_MEMBER_ATTRIBUTES, ENGINE_READ, OSD_TARGET_COLLECTION, OSD_EXTENDS | OSD_MEMBERS,
	  osd_check_members, osd_set_member_attributes,
	  OSD_PERMISSION_M_OBJECT | OSD_PERMISSION_SET_ATTR, ENGINE_HAS_COLLECTIONS },
	{ OSD_FLUSH_COLLECTION, ENGINE_READ, OSD_TARGET_COLLECTION, OSD_FLUSHES, check_flush, NULL,
	  OSD_PERMISSION_OBJ_MGMT, ENGINE_HAS_COLLECTIONS },
	{ OSD_FLUSH_PARTITION, ENGINE_READ, OSD_TARGET_PARTITION, OSD_FLUSHES, check_flush, NULL,
	  OSD_PERMISSION_OBJ_MGMT, 0 },
	{ OSD_FLUSH_OSD, ENGINE_READ, OSD_TARGET_ROOT, OSD_FLUSHES, check_flush, NULL,
	  OSD_PERMISSION_OBJ_MGMT, 0 },
	{ OSD_GENERAL_COMPARE_AND_SWAP, ENGINE_WRITE, OSD_TARGET_USER_OBJECT, OSD_OWN_LISTS,
	  osd_check_own_lists, osd_conditional_set,
	  OSD_PERMISSION_GET_ATTR | OSD_PERMISSION_SET_ATTR, 0 },
	{ OSD_CREATE_CLONE, ENGINE_WRITE, OSD_TARGET_NEW_PARTITION, OSD_EXTENDS, osd_check_clone,
	  osd_create_clone, OSD_PERMISSION_CREATE | OSD_PERMISSION_GLOBAL, ENGINE_HAS_CLONES },
	{ OSD_CREATE_SNAPSHOT, ENGINE_WRITE, OSD_TARGET_NEW_PARTITION, OSD_EXTENDS, osd_check_clone,
	  osd_create_snapshot, OSD_PERMISSION_CREATE | OSD_PERMISSION_GLOBAL, ENGINE_HAS_CLONES },
	{ OSD_DETACH_CLONE, ENGINE_WRITE, OSD_TARGET_PARTITION, 0, NULL, osd_detach_clone,
	  OSD_PERMISSION_WRITE, ENGINE_HAS_CLONES },
	/* Like ROLLBACK, they take away what came later. */
	{ OSD_REFRESH_SNAPSHOT_OR_CLONE, ENGINE_WRITE, OSD_TARGET_PARTITION,
	  OSD_RESTORES | OSD_EXTENDS, NULL, osd_refresh_clone,
	  OSD_PERMISSION_OBJ_MGMT | OSD_PERMISSION_WRITE | OSD_PERMISSION_REMOVE,
	  ENGINE_HAS_CLONES },
	{ OSD_RESTORE_PARTITION_FROM_SNAPSHOT, ENGINE_HISTORY, OSD_TARGET_PARTITION,
	  OSD_RESTORES | OSD_EXTENDS, NULL, osd_restore_partition,
	  OSD_PERMISSION_OBJ_MGMT | OSD_PERMISSION_WRITE | OSD_PERMISSION_REMOVE,
	  ENGINE_HAS_CLONES | ENGINE_HAS_ROLLBACK | ENGINE_HAS_VERSIONS },
	{ OSD_READ_MAP, ENGINE_READ, OSD_TARGET_USER_OBJECT, OSD_ALLOCATION, osd_check_map,
	  osd_read_map, OSD_PERMISSION_READ, 0 },
	{ OSD_READ_MAPS_AND_COMPARE, ENGINE_READ, OSD_TARGET_USER_OBJECT,
	  OSD_ALLOCATION | OSD_NAMES_OBJECT | OSD_EXTENDS, NULL, osd_read_maps_and_compare,
	  OSD_PERMISSION_READ, 0 },
	{ OSD_PERFORM_SCSI_COMMAND, ENGINE_READ, OSD_TARGET_ANY, OSD_ALLOCATION, osd_check_embedded,
	  osd_perform_scsi_command, OSD_PERMISSION_DEV_MGMT, 0 },
	{ OSD_PERFORM_TASK_MANAGEMENT_FUNCTION, ENGINE_READ, OSD_TARGET_ANY,
	  OSD_ALLOCATION | OSD_UNINTERRUPTED, osd_check_task_management,
	  osd_perform_task_management, OSD_PERMISSION_DEV_MGMT, 0 },
};

const struct osd_command_entry *osd_command_find(uint16_t action)
{
	for (size_t i = 0; i < sizeof(command_table) / sizeof(command_table[0]); i++)
		if (command_table[i].action == action)
			return &command_table[i];
	return NULL;
}
