/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * How often a command looks up an object: once each that it names. What it asks of root and
 * partition is known, and right whatever happens to them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/osd/function_call.h"

static const uint8_t data[100] = { 1 };

/* Look-ups of objects by the call, which must succeed. */
static uint64_t count(struct unit *unit, struct call call)
{
	struct engine_statistics before, after;

	engine_read_statistics(unit->engine, &before);
	call_run(unit, &call);
	expect_good(unit);
	engine_read_statistics(unit->engine, &after);
	return after.object_lookups - before.object_lookups;
}

static struct call write_of(uint64_t bytes)
{
	struct call call = call_of(OSD_WRITE, P, O);

	call_data(&call, data, bytes);
	return call;
}

static void a_command_looks_up_once_what_it_names(void **state)
{
	struct unit *unit = *state;
	struct call call;

	unit_write(unit, O, 0, data, sizeof(data));
	assert_int_equal(count(unit, write_of(100)), 1);
	call = call_of(OSD_READ, P, O);
	call.cdb.length = call.data_in_capacity = 100;
	assert_int_equal(count(unit, call), 1);
	/* The partition and the new object. */
	assert_int_equal(count(unit, call_of(OSD_CREATE, P, 0)), 2);
	call = call_of(OSD_SET_ATTRIBUTES, P, O);
	call_set(&call, OSD_PAGES_APPLICATION, 1, data, 10);
	assert_int_equal(count(unit, call), 1);
	call = call_of(OSD_GET_ATTRIBUTES, P, O);
	call_get(&call, OSD_PAGES_APPLICATION, 1);
	assert_int_equal(count(unit, call), 1);
	call = call_of(OSD_LIST, P, 0);
	call.cdb.length = call.data_in_capacity = 200;
	assert_int_equal(count(unit, call), 1);
}

static void set_capacity(struct unit *unit, uint64_t bytes)
{
	unit_set_number(unit, P, 0, OSD_PARTITION_QUOTAS, OSD_QUOTA_CAPACITY, bytes);
}

static void write_fits(struct unit *unit, bool fits)
{
	static const uint8_t pages[3 * 4096];
	struct call call = call_of(OSD_WRITE, P, O);

	call_data(&call, pages, sizeof(pages));
	call_run(unit, &call);
	if (fits)
		expect_good(unit);
	else
		expect_sense(unit, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR);
}

static void a_quota_counts_from_its_command_on(void **state)
{
	struct unit *unit = *state;

	set_capacity(unit, 4096);
	write_fits(unit, false);
	set_capacity(unit, 0);
	write_fits(unit, true);
}

static void a_quota_whose_command_fails_does_not_count(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_SET_ATTRIBUTES, P, 0);

	/* The second set is refused when the first is done: no such length of a page's name. */
	call_set_number(&call, OSD_PARTITION_QUOTAS, OSD_QUOTA_CAPACITY, 4096);
	call_set_number(&call, OSD_MUNINN_PARTITION, OSD_MUNINN_LAYOUT, 1);
	call_run(unit, &call);
	assert_int_not_equal(unit->command.status, SCSI_STATUS_GOOD);
	write_fits(unit, true);
}

/* Its facts are made behind the set, of what it set, when a get of what is not here ends it. */
static void a_quota_whose_command_is_taken_back_does_not_count(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_SET_ATTRIBUTES, 0, 0);

	call_set_number(&call, OSD_ROOT_QUOTAS, OSD_QUOTA_PARTITION_COUNT, 1);
	call_get(&call, OSD_PARTITION_QUOTAS, OSD_QUOTA_CAPACITY);
	call_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	unit_create_partition(unit, P + 1);
	unit_create_partition(unit, P + 2);
}

static void a_quota_goes_and_comes_with_its_moment(void **state)
{
	static const uint64_t partitions[] = { P, 0 };
	struct unit *unit = *state;
	uint64_t version;

	function_subscribe(unit);
	for (size_t i = 0; i < 2; i++) {
		version = function_snapshot(unit, partitions[i], NULL);
		set_capacity(unit, 4096);
		write_fits(unit, false);
		function_run_with(unit, OSD_FUNCTION_ROLLBACK, partitions[i], 0, OSD_ITEM_VERSION,
				  version);
		expect_good(unit);
		write_fits(unit, true);
		unit_set_number(unit, P, O, OSD_USER_OBJECT_INFORMATION,
				OSD_INFORMATION_LOGICAL_LENGTH, 0);
	}
}

static void a_format_takes_quotas_and_layouts_away(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_FORMAT_OSD, 0, 0);

	set_capacity(unit, 4096);
	unit_set_number(unit, 0, 0, OSD_ROOT_QUOTAS, OSD_QUOTA_PARTITION_COUNT, 1);
	call_run(unit, &call);
	expect_good(unit);
	unit_create_partition(unit, P);
	unit_create_partition(unit, P + 1);
	unit_create(unit, P, O);
	write_fits(unit, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object(a_command_looks_up_once_what_it_names),
		with_object(a_quota_counts_from_its_command_on),
		with_object(a_quota_whose_command_fails_does_not_count),
		with_object(a_quota_whose_command_is_taken_back_does_not_count),
		with_object(a_quota_goes_and_comes_with_its_moment),
		with_object(a_format_takes_quotas_and_layouts_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
