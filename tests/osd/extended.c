/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Commands with further objects, for tests of extension capabilities. */
#include "tests/osd/extended.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bytes.h"

#define M (&secured_manager)

struct key_pair other_working;

static void make_objects(struct unit *unit)
{
	struct call call;

	unit_create(unit, P, SECOND);
	unit_write(unit, SECOND, 0, "second", 6);
	call = call_of(OSD_CREATE_COLLECTION, P, LINEAR);
	call_run(unit, &call);
	expect_good(unit);
	unit_set(unit, P, O, OSD_USER_OBJECT_COLLECTIONS, 1, "\0\0\0\0\0\1\0\7", 8);
	call = call_of(OSD_CREATE_USER_TRACKING_COLLECTION, P, TRACKING);
	call_run(unit, &call);
	expect_good(unit);
}

static void make_partitions(struct unit *unit)
{
	struct call call;

	unit_create_partition(unit, OTHER);
	unit_create(unit, OTHER, O);
	call = call_of(OSD_WRITE, OTHER, O);
	call_data(&call, "other", 5);
	call_run(unit, &call);
	expect_good(unit);
	call = call_of(OSD_CREATE_SNAPSHOT, SNAPSHOT, 0);
	call.cdb.address = P;
	call_run(unit, &call);
	expect_good(unit);
	call = call_of(OSD_CREATE_CLONE, CLONE, 0);
	call.cdb.address = P;
	call_run(unit, &call);
	expect_good(unit);
	secured_set_keys_of(unit, OTHER, 0x51, &other_working);
}

int extended_set_up(void **state)
{
	secured_set_up(state);
	make_objects(*state);
	make_partitions(*state);
	return 0;
}

/* ---- commands with a further object ---- */

void add_source(struct call *call, uint64_t partition, uint64_t object, bool attributes)
{
	struct osd_copy_source source = { .partition = partition,
					  .object = object,
					  .attributes = attributes };
	uint8_t content[OSD_COPY_SOURCE_BYTES];

	osd_copy_source_encode(&source, content);
	call_descriptor(call, OSD_CONTINUATION_COPY_SOURCE, content, sizeof(content));
}

static void fill_copy(struct call *call)
{
	add_source(call, P, SECOND, false);
}

static void fill_copy_with_attributes(struct call *call)
{
	add_source(call, P, SECOND, true);
}

static void fill_compare(struct call *call)
{
	uint8_t content[OSD_USER_OBJECT_BYTES];

	put_be64(content, P);
	put_be64(content + 8, SECOND);
	call_descriptor(call, OSD_CONTINUATION_USER_OBJECT, content, sizeof(content));
	call->cdb.length = call->data_in_capacity = 256;
}

static void fill_source_collection(struct call *call)
{
	call->cdb.address = LINEAR;
}

static void fill_query(struct call *call)
{
	static const uint8_t list[20] = { OSD_QUERY_ALL,
					  0,
					  0,
					  0,
					  0,
					  0,
					  0,
					  12,
					  0,
					  0,
					  0,
					  1,
					  0,
					  0,
					  0,
					  OSD_INFORMATION_LOGICAL_LENGTH };

	call_descriptor(call, OSD_CONTINUATION_QUERY_LIST, list, sizeof(list));
	call->cdb.address = TRACKING;
}

static void fill_source_partition(struct call *call)
{
	call->cdb.address = P;
}

static void fill_snapshot(struct call *call)
{
	call->cdb.address = SNAPSHOT;
}

static void fill_nothing(struct call *call)
{
	(void)call;
}

const struct use uses[] = {
	{ OSD_COPY_USER_OBJECTS, P, 0, OSD_TYPE_USER_OBJECT,
	  OSD_PERMISSION_CREATE | OSD_PERMISSION_WRITE | OSD_PERMISSION_M_OBJECT, fill_copy, P,
	  SECOND, OSD_TYPE_USER_OBJECT, OSD_PERMISSION_READ },
	{ OSD_COPY_USER_OBJECTS, P, 0, OSD_TYPE_USER_OBJECT,
	  OSD_PERMISSION_CREATE | OSD_PERMISSION_WRITE | OSD_PERMISSION_M_OBJECT,
	  fill_copy_with_attributes, P, SECOND, OSD_TYPE_USER_OBJECT,
	  OSD_PERMISSION_READ | OSD_PERMISSION_GET_ATTR },
	{ OSD_READ_MAPS_AND_COMPARE, P, O, OSD_TYPE_USER_OBJECT,
	  OSD_PERMISSION_READ | OSD_PERMISSION_M_OBJECT, fill_compare, P, SECOND,
	  OSD_TYPE_USER_OBJECT, OSD_PERMISSION_READ },
	{ OSD_CREATE_USER_TRACKING_COLLECTION, P, 0, OSD_TYPE_COLLECTION,
	  OSD_PERMISSION_CREATE | OSD_PERMISSION_M_OBJECT, fill_source_collection, P, LINEAR,
	  OSD_TYPE_COLLECTION, OSD_PERMISSION_READ },
	{ OSD_QUERY, P, LINEAR, OSD_TYPE_COLLECTION, OSD_PERMISSION_QUERY | OSD_PERMISSION_M_OBJECT,
	  fill_query, P, TRACKING, OSD_TYPE_COLLECTION, OSD_PERMISSION_WRITE },
	{ OSD_CREATE_SNAPSHOT, NEW, 0, OSD_TYPE_PARTITION,
	  OSD_PERMISSION_CREATE | OSD_PERMISSION_GLOBAL, fill_source_partition, P, 0,
	  OSD_TYPE_PARTITION, OSD_PERMISSION_READ },
	{ OSD_CREATE_CLONE, NEW + 1, 0, OSD_TYPE_PARTITION,
	  OSD_PERMISSION_CREATE | OSD_PERMISSION_GLOBAL, fill_source_partition, P, 0,
	  OSD_TYPE_PARTITION, OSD_PERMISSION_READ },
	{ OSD_REFRESH_SNAPSHOT_OR_CLONE, SNAPSHOT, 0, OSD_TYPE_PARTITION,
	  OSD_PERMISSION_OBJ_MGMT | OSD_PERMISSION_WRITE | OSD_PERMISSION_REMOVE, fill_nothing, P,
	  0, OSD_TYPE_PARTITION, OSD_PERMISSION_READ },
	{ OSD_RESTORE_PARTITION_FROM_SNAPSHOT, P, 0, OSD_TYPE_PARTITION,
	  OSD_PERMISSION_OBJ_MGMT | OSD_PERMISSION_WRITE | OSD_PERMISSION_REMOVE, fill_snapshot,
	  SNAPSHOT, 0, OSD_TYPE_PARTITION, OSD_PERMISSION_READ },
};

const size_t use_count = sizeof(uses) / sizeof(uses[0]);

struct signed_call call_of_use(struct unit *unit, const struct use *use, uint8_t method)
{
	struct signed_call call =
		signed_call_of(unit, use->action, use->partition, use->object, method);

	call.capability.object_type = use->type;
	call.capability.descriptor_type = osd_descriptor_type(OSD_2, use->type);
	if (use->action == OSD_CREATE_SNAPSHOT || use->action == OSD_CREATE_CLONE)
		call.secret = M->root.authentication;
	use->fill(&call.call);
	return call;
}

struct granted *extend(struct signed_call *call, const struct use *use)
{
	return signed_extend(call, use->further_partition, use->further_object, use->further_type,
			     use->further_permissions);
}

void expect_extension_field(struct unit *unit, const struct signed_call *call, uint16_t field)
{
	struct osd_sense sense = unit_sense(unit);
	size_t list =
		call->call.cdb.continuation_length - call->extension_count * OSD_EXTENSION_BYTES;

	assert_int_equal(sense.key, SENSE_ILLEGAL_REQUEST);
	assert_int_equal(sense.code, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	assert_true(sense.has_field && !sense.field_in_cdb);
	assert_int_equal(sense.field - list + OSD_FIELD_CAPABILITY_FORMAT, field);
	assert_int_equal(unit->command.data_in_length, 0);
}

struct signed_call copy_of_other(struct unit *unit, uint8_t method)
{
	struct signed_call call = signed_call_of(unit, OSD_COPY_USER_OBJECTS, P, 0, method);

	call.capability.object_type = OSD_TYPE_USER_OBJECT;
	call.capability.descriptor_type = OSD_DESCRIPTOR_OBJECT;
	add_source(&call.call, OTHER, O, false);
	return call;
}

void extend_by_other(struct signed_call *call)
{
	signed_extend(call, OTHER, O, OSD_TYPE_USER_OBJECT, OSD_PERMISSION_READ)->secret =
		other_working.authentication;
}
