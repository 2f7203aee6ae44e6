/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The capacity that FORMAT OSD gives the unit: told, and kept to by all partitions together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "engine/options.h"
#include "tests/osd/function_call.h"

enum { PAGE = 4096, PAGES = 16, CAPACITY = PAGES * PAGE };

#define OTHER (P + 1)

static uint64_t clock_of(void *context)
{
	return ((const struct unit *)context)->now_ms;
}

static void start_again(struct unit *unit)
{
	const struct engine_options options = { .clock_ms = clock_of, .clock_context = unit };
	static const uint8_t uuid[16] = { 0x10, 1, 2, 3 };
	struct error_text error;

	osd_device_destroy(unit->device);
	engine_abandon(unit->engine);
	assert_int_equal(engine_open(unit->nand, &options, &unit->engine, &error), 0);
	assert_int_equal(osd_device_create(unit->engine, uuid, NULL, &unit->device), 0);
}

static void format(struct unit *unit, uint64_t capacity)
{
	struct call call = call_of(OSD_FORMAT_OSD, 0, 0);

	call.cdb.length = capacity;
	call_run(unit, &call);
}

/* Writes `count` pages from page `first` on of an object; the caller looks at the answer. */
static void write_pages(struct unit *unit, uint64_t partition, uint64_t object, uint64_t first,
			uint32_t count)
{
	struct call call = call_of(OSD_WRITE, partition, object);
	uint8_t *data = malloc((size_t)count * PAGE);

	memset(data, 'x', (size_t)count * PAGE);
	call_data(&call, data, (size_t)count * PAGE);
	call.cdb.address = first * PAGE;
	call_run(unit, &call);
	free(data);
}

static uint64_t total(struct unit *unit)
{
	return unit_get_number(unit, 0, 0, OSD_ROOT_INFORMATION, OSD_ROOT_TOTAL_CAPACITY);
}

static uint64_t used(struct unit *unit)
{
	return unit_get_number(unit, 0, 0, OSD_ROOT_INFORMATION, OSD_ROOT_USED_CAPACITY);
}

/*
 * A unit of CAPACITY with an object in each of two partitions, all of which but a page is in use.
 */
static void fill_unit(struct unit *unit)
{
	format(unit, CAPACITY);
	expect_good(unit);
	unit_create_partition(unit, P);
	unit_create_partition(unit, OTHER);
	unit_create(unit, P, O);
	unit_create(unit, OTHER, O);
	write_pages(unit, P, O, 0, 10);
	expect_good(unit);
	write_pages(unit, OTHER, O, 0, PAGES - 11);
	expect_good(unit);
	assert_int_equal(used(unit), CAPACITY - PAGE);
}

static void test_a_formatted_capacity_is_told_and_kept_to(void **state)
{
	struct unit *unit = *state;
	uint64_t whole = total(unit);

	format(unit, CAPACITY);
	shows_good(unit, FORMAT_OSD, "a capacity, which is the unit's from then on");
	assert_int_equal(total(unit), CAPACITY);
	assert_int_equal(used(unit), 0);
	fill_unit(unit);
	write_pages(unit, OTHER, O, 8, 2);
	shows_sense(unit, WRITE, "more than the unit was formatted for", DATA_PROTECT, QUOTA_ERROR);
	assert_int_equal(used(unit), CAPACITY - PAGE);
	write_pages(unit, OTHER, O, 8, 1);
	expect_good(unit);
	assert_int_equal(used(unit), CAPACITY);
	write_pages(unit, P, O, 10, 1);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR);
	/* What does not grow is written, and what goes makes room. */
	write_pages(unit, P, O, 3, 4);
	expect_good(unit);
	struct call call = call_of(OSD_REMOVE, OTHER, O);

	call_run(unit, &call);
	expect_good(unit);
	write_pages(unit, P, O, 10, 6);
	expect_good(unit);
	/* Until the next format. */
	format(unit, 0);
	expect_good(unit);
	assert_int_equal(total(unit), whole);
	unit_create_partition(unit, P);
	unit_create(unit, P, O);
	write_pages(unit, P, O, 0, 2 * PAGES);
	expect_good(unit);
}

static void test_a_formatted_capacity_outlives_the_process(void **state)
{
	struct unit *unit = *state;

	fill_unit(unit);
	start_again(unit);
	assert_int_equal(total(unit), CAPACITY);
	write_pages(unit, P, O, 10, 2);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR);
	assert_int_equal(used(unit), CAPACITY - PAGE);
	write_pages(unit, P, O, 10, 1);
	expect_good(unit);
}

static void test_what_a_rollback_brings_back_is_counted(void **state)
{
	struct unit *unit = *state;
	struct function_call call;
	uint64_t version;

	function_subscribe(unit);
	fill_unit(unit);
	version = function_snapshot(unit, 0, NULL);
	struct call removal = call_of(OSD_REMOVE_PARTITION, OTHER, 0);

	removal.cdb.command_options = OSD_REMOVE_CONTENTS;
	call_run(unit, &removal);
	expect_good(unit);
	assert_int_equal(used(unit), 10 * PAGE);
	write_pages(unit, P, O, 10, 6);
	expect_good(unit);
	function_of(&call, OSD_FUNCTION_ROLLBACK, 0, 0);
	osd_item_add_number(&call.writer, OSD_ITEM_VERSION, version);
	function_run(unit, &call);
	expect_good(unit);
	assert_int_equal(total(unit), CAPACITY);
	assert_int_equal(used(unit), CAPACITY - PAGE);
	write_pages(unit, P, O, 10, 1);
	expect_good(unit);
	write_pages(unit, P, O, 11, 1);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR);
}

static void test_clones_and_copies_count_as_what_they_show(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_CLONE, P + 2, 0);

	fill_unit(unit);
	call.cdb.address = P;
	call_run(unit, &call);
	shows_sense(unit, CREATE_CLONE, "more than the unit was formatted for", DATA_PROTECT,
		    QUOTA_ERROR);
	call = call_of(OSD_REMOVE, P, O);
	call_run(unit, &call);
	expect_good(unit);
	call = call_of(OSD_CREATE_CLONE, P + 2, 0);
	call.cdb.address = OTHER;
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(used(unit), 2 * (PAGES - 11) * PAGE);
	/* Written in the clone, too, it is not there twice. */
	write_pages(unit, P + 2, O, 0, PAGES - 11);
	expect_good(unit);
	assert_int_equal(used(unit), 2 * (PAGES - 11) * PAGE);
}

static void test_each_command_that_adds_data_keeps_to_the_capacity(void **state)
{
	static const uint8_t data[2 * PAGE];
	struct unit *unit = *state;
	struct call call;

	fill_unit(unit);
	call = call_of(OSD_APPEND, P, O);
	call_data(&call, data, sizeof(data));
	call_run(unit, &call);
	shows_sense(unit, APPEND, "more than the unit was formatted for", DATA_PROTECT,
		    QUOTA_ERROR);
	call = call_of(OSD_CREATE_AND_WRITE, P, 0);
	call_data(&call, data, sizeof(data));
	call_run(unit, &call);
	shows_sense(unit, CREATE_AND_WRITE, "more than the unit was formatted for: none is made",
		    DATA_PROTECT, QUOTA_ERROR);
	assert_int_equal(used(unit), CAPACITY - PAGE);
	/* An end in the last page that there is. */
	call = call_of(OSD_APPEND, P, O);
	call_data(&call, data, PAGE);
	call_run(unit, &call);
	expect_good(unit);
}

static void test_what_duplicates_add_keeps_to_the_capacity(void **state)
{
	struct osd_copy_source source = { OTHER, O, false, false, 0 };
	uint8_t content[OSD_COPY_SOURCE_BYTES];
	struct unit *unit = *state;
	struct call call;

	fill_unit(unit);
	call = call_of(OSD_COPY_USER_OBJECTS, P, 0);
	osd_copy_source_encode(&source, content);
	call_descriptor(&call, OSD_CONTINUATION_COPY_SOURCE, content, sizeof(content));
	call_run(unit, &call);
	shows_sense(unit, COPY_USER_OBJECTS, "more than the unit was formatted for", DATA_PROTECT,
		    QUOTA_ERROR);
	call = call_of(OSD_CREATE_SNAPSHOT, P + 2, 0);
	call.cdb.address = OTHER;
	call_run(unit, &call);
	shows_sense(unit, CREATE_SNAPSHOT, "more than the unit was formatted for", DATA_PROTECT,
		    QUOTA_ERROR);
	assert_int_equal(used(unit), CAPACITY - PAGE);
}

static void test_a_snapshot_is_not_refreshed_to_more_than_the_capacity(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_SNAPSHOT, P + 2, 0);

	format(unit, CAPACITY);
	unit_create_partition(unit, P);
	unit_create(unit, P, O);
	write_pages(unit, P, O, 0, 1);
	call.cdb.address = P;
	call_run(unit, &call);
	expect_good(unit);
	write_pages(unit, P, O, 0, PAGES - 2);
	expect_good(unit);
	call = call_of(OSD_REFRESH_SNAPSHOT_OR_CLONE, P + 2, 0);
	call_run(unit, &call);
	shows_sense(unit, REFRESH_SNAPSHOT_OR_CLONE, "more than the unit was formatted for",
		    DATA_PROTECT, QUOTA_ERROR);
	assert_int_equal(used(unit), CAPACITY - PAGE);
}

static void test_a_command_that_fails_has_used_nothing(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_WRITE, P, O);

	fill_unit(unit);
	call_data(&call, "more", 4);
	call.cdb.address = 20 * PAGE;
	call_set(&call, OSD_ROOT_INFORMATION, OSD_ROOT_OSD_NAME, "name", 5);
	call_run(unit, &call);
	assert_int_not_equal(unit->command.status, SCSI_STATUS_GOOD);
	assert_int_equal(used(unit), CAPACITY - PAGE);
	write_pages(unit, P, O, 10, 1);
	expect_good(unit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_unit_in_both(test_a_formatted_capacity_is_told_and_kept_to),
		with_unit(test_a_formatted_capacity_outlives_the_process),
		with_unit(test_what_a_rollback_brings_back_is_counted),
		with_unit(test_clones_and_copies_count_as_what_they_show),
		with_unit_in_both(test_each_command_that_adds_data_keeps_to_the_capacity),
		with_unit(test_what_duplicates_add_keeps_to_the_capacity),
		with_unit(test_a_snapshot_is_not_refreshed_to_more_than_the_capacity),
		with_unit(test_a_command_that_fails_has_used_nothing),
	};

	return cmocka_run_group_tests_name("formatted capacity", tests, NULL, NULL);
}
