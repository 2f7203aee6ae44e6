/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The root at a moment of the past: which partitions there were, and what is in those that are
 * gone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bytes.h"
#include "osd/layout.h"
#include "tests/osd/function_call.h"

#define Q      (P + 1)
#define PACKED (P + 2)

/* Partition, or with 0 the root, at a version. */
static uint64_t at(uint64_t version, uint64_t partition)
{
	return version << 48 | partition;
}

static uint64_t view_at(struct unit *unit, uint64_t partition, uint64_t ms)
{
	struct function_call call;

	function_of(&call, OSD_FUNCTION_VIEW, partition, 0);
	osd_item_add_number(&call.writer, OSD_ITEM_TIME, ms);
	function_run(unit, &call);
	expect_good(unit);
	return function_number(unit, OSD_ITEM_VERSION);
}

static void remove_partition(struct unit *unit, uint64_t partition)
{
	struct call call = call_of(OSD_REMOVE_PARTITION, partition, 0);

	call.cdb.command_options = OSD_REMOVE_CONTENTS;
	unit->now_ms += FUNCTION_STEP_MS;
	call_run(unit, &call);
	expect_good(unit);
}

static void expect_listed(struct unit *unit, uint64_t container, const uint64_t *ids, size_t count)
{
	struct call call = call_of(OSD_LIST, container, 0);

	call.cdb.length = call.data_in_capacity = 256;
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit->command.data_in_length, 24 + 8 * count);
	for (size_t n = 0; n < count; n++)
		assert_true(get_be64(unit->data_in + 24 + 8 * n) == ids[n]);
}

/* P with an object at the first moment; then Q comes, and later P goes. */
struct story {
	uint64_t first, second; /* versions of the device */
	uint64_t first_ms, second_ms;
};

static struct story tell(struct unit *unit)
{
	struct story story;

	function_subscribe(unit);
	unit_write(unit, O, 0, "precious", 8);
	story.first = function_snapshot(unit, 0, NULL);
	story.first_ms = unit->now_ms;
	unit->now_ms += FUNCTION_STEP_MS;
	unit_create_partition(unit, Q);
	story.second = function_snapshot(unit, 0, NULL);
	story.second_ms = unit->now_ms;
	remove_partition(unit, P);
	unit->now_ms += FUNCTION_STEP_MS;
	return story;
}

static void expect_story_at(struct unit *unit, uint64_t first, uint64_t second)
{
	expect_listed(unit, at(first, 0), (const uint64_t[]){ P }, 1);
	expect_listed(unit, at(second, 0), (const uint64_t[]){ P, Q }, 2);
	expect_listed(unit, 0, (const uint64_t[]){ Q }, 1);
	function_expect_text(unit, at(first, P), O, "precious");
	function_expect_text(unit, at(second, P), O, "precious");
	assert_int_equal(
		unit_get_number(unit, at(second, 0), 0, OSD_ROOT_INFORMATION, OSD_ROOT_PARTITIONS),
		2);
	assert_int_equal(unit_get_number(unit, 0, 0, OSD_ROOT_INFORMATION, OSD_ROOT_PARTITIONS), 1);
}

static void test_the_root_at_a_version_of_the_device_has_the_partitions_of_then(void **state)
{
	struct unit *unit = *state;
	struct story story = tell(unit);

	expect_story_at(unit, story.first, story.second);
}

static void test_the_root_at_a_point_in_time_has_the_partitions_of_then(void **state)
{
	struct unit *unit = *state;
	struct story story = tell(unit);

	expect_story_at(unit, view_at(unit, 0, story.first_ms), view_at(unit, 0, story.second_ms));
}

static void test_partitions_of_then_are_listed_with_attributes_of_then(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_LIST, 0, 0);
	uint64_t version;

	function_subscribe(unit);
	unit_set(unit, P, 0, OSD_PARTITION_INFORMATION, OSD_INFORMATION_USERNAME, "old", 3);
	version = function_snapshot(unit, 0, NULL);
	unit_set(unit, P, 0, OSD_PARTITION_INFORMATION, OSD_INFORMATION_USERNAME, "new", 3);
	call.cdb.partition = at(version, 0);
	call.cdb.list_attributes = true;
	call.cdb.length = call.data_in_capacity = 256;
	call_get(&call, OSD_PARTITION_INFORMATION, OSD_INFORMATION_USERNAME);
	call_run(unit, &call);
	expect_good(unit);
	assert_non_null(memmem(unit->data_in, unit->command.data_in_length, "old", 3));
	assert_null(memmem(unit->data_in, unit->command.data_in_length, "new", 3));
}

/* What was used then only the partitions tell; what the device is does not change. */
static void test_the_root_of_then_knows_its_capacity_and_not_what_was_used(void **state)
{
	struct unit *unit = *state;
	struct story story = tell(unit);
	uint64_t root = at(story.first, 0);
	uint8_t value[8];

	assert_int_equal(
		unit_get_number(unit, root, 0, OSD_ROOT_INFORMATION, OSD_ROOT_TOTAL_CAPACITY),
		unit_get_number(unit, 0, 0, OSD_ROOT_INFORMATION, OSD_ROOT_TOTAL_CAPACITY));
	assert_int_equal(unit_get(unit, root, 0, OSD_ROOT_INFORMATION, OSD_ROOT_USED_CAPACITY,
				  value, sizeof(value)),
			 0);
}

static void test_only_versions_and_views_of_the_device_are_of_the_root(void **state)
{
	struct unit *unit = *state;
	struct story story;
	struct call call;
	uint64_t view;

	function_subscribe(unit);
	unit->now_ms += FUNCTION_STEP_MS;
	view = view_at(unit, P, unit->now_ms);
	story = tell(unit);
	call = call_of(OSD_LIST, at(view, 0), 0);
	call.cdb.length = call.data_in_capacity = 256;
	call_run(unit, &call);
	expect_field(unit, 16);
	call.cdb.partition = at(1, 0);
	call_run(unit, &call);
	expect_field(unit, 16);
	call.cdb.partition = at(story.second + 1, 0);
	call_run(unit, &call);
	expect_field(unit, 16);
	/* The root has lists, and no objects. */
	call = call_of(OSD_READ, at(story.first, 0), O);
	call_run(unit, &call);
	expect_field(unit, 16);
	call = call_of(OSD_LIST_COLLECTION, at(story.first, 0), 0);
	call_run(unit, &call);
	expect_field(unit, 16);
}

/* Before its first command the device has no moments: a wrong year must not empty it. */
static void test_a_device_does_not_go_back_behind_its_first_command(void **state)
{
	static const enum osd_function functions[] = { OSD_FUNCTION_VIEW, OSD_FUNCTION_ROLLBACK };
	const struct {
		uint16_t tag;
		uint64_t value;
	} moments[] = { { OSD_ITEM_TIME, UNIT_CLOCK - 1 }, { OSD_ITEM_SEQUENCE, 5 } };
	struct unit *unit = *state;
	struct function_call call;

	tell(unit);
	for (int n = 0; n < 2; n++)
		for (int form = 0; form < 2; form++) {
			function_of(&call, functions[n], 0, 0);
			osd_item_add_number(&call.writer, moments[form].tag, moments[form].value);
			function_run(unit, &call);
			expect_parameter(unit, 0);
		}
	expect_listed(unit, 0, (const uint64_t[]){ Q }, 1);
	function_of(&call, OSD_FUNCTION_RETENTION, 0, 0);
	function_run(unit, &call);
	expect_good(unit);
	assert_in_range(function_number(unit, OSD_ITEM_HORIZON), UNIT_CLOCK,
			UNIT_CLOCK + FUNCTION_STEP_MS);
	function_of(&call, OSD_FUNCTION_VIEW, 0, 0);
	osd_item_add_number(&call.writer, OSD_ITEM_TIME, function_number(unit, OSD_ITEM_HORIZON));
	function_run(unit, &call);
	expect_good(unit);
	expect_listed(unit, at(function_number(unit, OSD_ITEM_VERSION), 0), (const uint64_t[]){ P },
		      1);
}

static void test_the_root_of_then_is_read_only(void **state)
{
	struct unit *unit = *state;
	struct story story = tell(unit);
	struct function_call function;
	struct call call = call_of(OSD_SET_ATTRIBUTES, at(story.first, 0), 0);

	call_set(&call, OSD_ROOT_INFORMATION, OSD_ROOT_OSD_NAME, "name", 4);
	call_run(unit, &call);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_WRITE_PROTECTED);
	function_of(&function, OSD_FUNCTION_SNAPSHOT, at(story.first, 0), 0);
	function_run(unit, &function);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_WRITE_PROTECTED);
	/* Functions that look back find their moments in their parameters. */
	function_of(&function, OSD_FUNCTION_VERSIONS, at(story.first, 0), 0);
	function_run(unit, &function);
	expect_field(unit, 16);
}

static void test_a_structure_check_of_the_root_goes_through_the_partitions_of_then(void **state)
{
	struct unit *unit = *state;
	struct story story = tell(unit);
	struct call call = call_of(OSD_OBJECT_STRUCTURE_CHECK, at(story.second, 0), 0);
	struct osd_check_head head;

	call.cdb.length = call.data_in_capacity = 4096;
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(osd_check_head_decode(unit->data_in, unit->command.data_in_length, &head),
			 0);
	assert_int_equal(head.objects, 3); /* the root, P, Q */
	assert_int_equal(unit->command.data_in_length, OSD_CHECK_HEAD_BYTES);
}

/* The IDs of then have the layout of then, whatever is in that place now. */
static void test_a_packed_partition_that_is_gone_is_read_by_packed_ids(void **state)
{
	const uint64_t id = UINT64_C(5) << 32;
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_PARTITION, PACKED, 0);
	uint8_t layout = OSD_LAYOUT_PACKED;
	uint64_t version, versions[2];
	struct call write = call_of(OSD_WRITE, PACKED, id);

	function_subscribe(unit);
	call_set(&call, OSD_MUNINN_PARTITION, OSD_MUNINN_LAYOUT, &layout, 1);
	call_run(unit, &call);
	expect_good(unit);
	unit_create(unit, PACKED, id);
	call_data(&write, "packed", 6);
	call_run(unit, &write);
	expect_good(unit);
	version = function_snapshot(unit, 0, NULL);
	versions[0] = version;
	versions[1] = view_at(unit, 0, unit->now_ms);
	remove_partition(unit, PACKED);
	for (int again = 0; again < 2; again++) {
		for (int n = 0; n < 2; n++) {
			expect_listed(unit, at(versions[n], PACKED), &id, 1);
			function_expect_text(unit, at(versions[n], PACKED), id, "packed");
		}
		if (again)
			break;
		unit->now_ms += FUNCTION_STEP_MS;
		unit_create_partition(unit, PACKED);
	}
	unit_create(unit, PACKED, O);
	expect_listed(unit, PACKED, (const uint64_t[]){ O }, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object(test_the_root_at_a_version_of_the_device_has_the_partitions_of_then),
		with_object(test_the_root_at_a_point_in_time_has_the_partitions_of_then),
		with_object(test_partitions_of_then_are_listed_with_attributes_of_then),
		with_object(test_the_root_of_then_knows_its_capacity_and_not_what_was_used),
		with_object(test_only_versions_and_views_of_the_device_are_of_the_root),
		with_object(test_a_device_does_not_go_back_behind_its_first_command),
		with_object(test_the_root_of_then_is_read_only),
		with_object(test_a_structure_check_of_the_root_goes_through_the_partitions_of_then),
		with_object(test_a_packed_partition_that_is_gone_is_read_by_packed_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
