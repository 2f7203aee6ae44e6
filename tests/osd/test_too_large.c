/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Commands that are too large to be carried out in one piece: they are refused as a whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "osd/execute.h"
#include "tests/osd/collection_calls.h"
#include "tests/osd/command_rows.h"
#include "tests/osd/unit.h"
#include "wire/vendor.h"

#define PAGE 4096

static uint64_t objects_in(struct unit *unit)
{
	return unit_get_number(unit, P, 0, OSD_PARTITION_INFORMATION, OSD_INFORMATION_MEMBERS);
}

static void test_a_write_of_too_many_pages_is_refused(void **state)
{
	struct unit *unit = *state;
	const size_t most = OSD_WRITE_BYTES_MAX;
	uint8_t *data = calloc(1, most + PAGE + 1);
	struct call call = call_of(OSD_WRITE, P, O);

	call.cdb.address = 100;
	call_data(&call, data, most);
	call_run(unit, &call);
	shows_good(unit, WRITE, "8 MiB, at any address");
	call_data(&call, data, most + PAGE + 1);
	call_run(unit, &call);
	shows_fields(unit, WRITE, "more than 2,049 pages", 36, 32);
	call.cdb.action = OSD_APPEND;
	call_run(unit, &call);
	shows_fields(unit, APPEND, "more than 2,049 pages", 36, 32);
	call.cdb.action = OSD_CREATE_AND_WRITE;
	call.cdb.object = O + 7;
	call_run(unit, &call);
	shows_fields(unit, CREATE_AND_WRITE, "more than 2,049 pages: none is made", 36, 32);
	assert_int_equal(objects_in(unit), 1);
	call = call_of(OSD_CREATE, P, 0);
	call.cdb.objects = OSD_CREATE_OBJECTS_MAX + 1;
	call_run(unit, &call);
	shows_fields(unit, CREATE, "more than 2,048 objects", 36, 32);
	assert_int_equal(objects_in(unit), 1);
	free(data);
}

/* What the sets of all objects put counts, too. */
static void test_sets_of_many_objects_are_not_to_be_long(void **state)
{
	struct unit *unit = *state;
	struct osd_cdb decoded = { .version = OSD_2,
				   .action = OSD_CREATE,
				   .format = OSD_ATTRIBUTES_LIST,
				   .partition = P,
				   .objects = OSD_CREATE_OBJECTS_MAX };
	uint8_t cdb[OSD_CDB_BYTES_MAX], list[8192], value[5000] = { 1 };
	struct osd_list_writer writer;

	osd_list_begin(&writer, OSD_2, OSD_LIST_TO_SET, list, sizeof(list));
	osd_list_add_value(&writer, 0x10000, 1, value, sizeof(value));
	decoded.set_data.length = (uint32_t)writer.length;
	assert_int_equal(osd_cdb_encode(&decoded, cdb, NULL), 0);
	unit_execute(unit, cdb, OSD2_CDB_BYTES, list, writer.length, 0);
	shows_field(unit, CREATE, "more than 8 MiB of sets for all objects", 32);
	assert_int_equal(objects_in(unit), 1);
	decoded.objects = 100;
	assert_int_equal(osd_cdb_encode(&decoded, cdb, NULL), 0);
	unit_execute(unit, cdb, OSD2_CDB_BYTES, list, writer.length, 0);
	expect_good(unit);
	assert_int_equal(objects_in(unit), 101);
}

static void test_a_punch_that_would_move_too_much_is_refused(void **state)
{
	struct unit *unit = *state;
	uint8_t *data = malloc(OSD_WRITE_BYTES_MAX);
	struct call call = call_of(OSD_PUNCH, P, O);

	memset(data, 'p', OSD_WRITE_BYTES_MAX);
	unit_write(unit, O, PAGE, data, OSD_WRITE_BYTES_MAX);
	unit_write(unit, O, OSD_WRITE_BYTES_MAX + PAGE, "end", 3);
	call.cdb.length = PAGE;
	call_run(unit, &call);
	shows_sense(unit, PUNCH, "more than 2,048 pages with data behind the range",
		    ILLEGAL_REQUEST, SYSTEM_RESOURCE_FAILURE);
	assert_int_equal(unit_get_number(unit, P, O, OSD_USER_OBJECT_INFORMATION,
					 OSD_INFORMATION_LOGICAL_LENGTH),
			 OSD_WRITE_BYTES_MAX + PAGE + 3);
	call.cdb.address = PAGE;
	call_run(unit, &call);
	expect_good(unit);
	free(data);
}

#define COLLECTION UINT64_C(0x20000)
#define TRACKING   UINT64_C(0x10001)

static void test_a_command_on_too_many_members_as_a_whole_is_refused(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_COLLECTION, P, COLLECTION);

	call_run(unit, &call);
	expect_good(unit);
	call = call_of(OSD_CREATE, P, 0);
	call.cdb.objects = 4;
	call_set_number(&call, OSD_USER_OBJECT_COLLECTIONS, 1, COLLECTION);
	call_run(unit, &call);
	expect_good(unit);
	call = call_of(OSD_CREATE_USER_TRACKING_COLLECTION, P, TRACKING);
	call.cdb.address = COLLECTION;
	call_run(unit, &call);
	expect_good(unit);
	unit->device->portions.objects = 3;
	call = call_of(OSD_SET_MEMBER_ATTRIBUTES, P, COLLECTION);
	call_set_number(&call, 0x10000, 1, 5);
	call_run(unit, &call);
	shows_sense(unit, SET_MEMBER_ATTRIBUTES, "more than 2,048 members of a linear collection",
		    ILLEGAL_REQUEST, SYSTEM_RESOURCE_FAILURE);
	call = call_of(OSD_GET_MEMBER_ATTRIBUTES, P, COLLECTION);
	call_get(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH);
	call_run(unit, &call);
	shows_sense(unit, GET_MEMBER_ATTRIBUTES, "more than 2,048 members of a linear collection",
		    ILLEGAL_REQUEST, SYSTEM_RESOURCE_FAILURE);
	call = call_of(OSD_REMOVE_MEMBER_OBJECTS, P, COLLECTION);
	call_run(unit, &call);
	shows_sense(unit, REMOVE_MEMBER_OBJECTS, "more than 2,048 members of a linear collection",
		    ILLEGAL_REQUEST, SYSTEM_RESOURCE_FAILURE);
	assert_int_equal(objects_in(unit), 1 + 4 + 2);
	/* A tracking collection has no limit, unless the answer tells of its members. */
	call = call_of(OSD_SET_MEMBER_ATTRIBUTES, P, TRACKING);
	call_set_number(&call, 0x10000, 1, 5);
	call_get(&call, 0x10000, 1);
	call_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_SYSTEM_RESOURCE_FAILURE);
	call = call_of(OSD_REMOVE_MEMBER_OBJECTS, P, TRACKING);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(objects_in(unit), 1 + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object(test_a_write_of_too_many_pages_is_refused),
		with_object(test_sets_of_many_objects_are_not_to_be_long),
		with_object(test_a_punch_that_would_move_too_much_is_refused),
		with_object(test_a_command_on_too_many_members_as_a_whole_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
