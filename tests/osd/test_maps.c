/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* READ MAP, READ MAPS AND COMPARE and OBJECT STRUCTURE CHECK. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/log.h"
#include "nand/faults.h"
#include "osd/execute.h"
#include "tests/osd/unit.h"

#define PAGE 4096

static void truncate_to(struct unit *unit, uint64_t object, uint64_t length)
{
	struct call call = call_of(OSD_SET_ATTRIBUTES, P, object);

	call_set_number(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, length);
	call_run(unit, &call);
	expect_good(unit);
}

static void write_pages(struct unit *unit, uint64_t object, uint64_t first, uint64_t count,
			int value)
{
	uint8_t *data = malloc(count * PAGE);

	memset(data, value, count * PAGE);
	unit_write(unit, object, first * PAGE, data, count * PAGE);
	free(data);
}

/* Two pages of data, a hole of three, a byte, a hole up to 10 pages and 5 bytes. */
static void make_object(struct unit *unit)
{
	write_pages(unit, O, 0, 2, 'a');
	unit_write(unit, O, 5 * PAGE, "b", 1);
	truncate_to(unit, O, 10 * PAGE + 5);
}

static struct call map_call(uint16_t type, uint64_t address, size_t allocation)
{
	struct call call = call_of(OSD_READ_MAP, P, O);

	call.cdb.map_type = type;
	call.cdb.address = address;
	call.cdb.length = call.data_in_capacity = allocation;
	return call;
}

/* The entries of the last answer must be these. */
static void expect_entries(struct unit *unit, const struct osd_map_entry *expected, size_t count)
{
	size_t position = OSD_MAP_HEAD_BYTES;
	struct osd_map_entry entry;

	assert_int_equal(get_be64(unit->data_in), count * OSD_MAP_ENTRY_BYTES);
	assert_int_equal(unit->command.data_in_length, 8 + count * OSD_MAP_ENTRY_BYTES);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(osd_map_next(unit->data_in, unit->command.data_in_length,
					      &position, &entry),
				 1);
		assert_int_equal(entry.type, expected[i].type);
		assert_int_equal(entry.address, expected[i].address);
		assert_int_equal(entry.length, expected[i].length);
	}
	assert_int_equal(
		osd_map_next(unit->data_in, unit->command.data_in_length, &position, &entry), 0);
}

/* ---- READ MAP ---- */

static void test_read_map_tells_data_and_holes_apart(void **state)
{
	static const struct osd_map_entry all[] = {
		{ OSD_MAP_DATA, 2 * PAGE, 0 },
		{ OSD_MAP_HOLE, 3 * PAGE, 2 * PAGE },
		{ OSD_MAP_DATA, PAGE, 5 * PAGE },
		{ OSD_MAP_HOLE, 4 * PAGE + 5, 6 * PAGE },
	};
	struct unit *unit = *state;
	struct call call = map_call(OSD_MAP_ALL, 0, 512);

	make_object(unit);
	call_run(unit, &call);
	shows_good(unit, READ_MAP, "data and holes of the whole object");
	expect_entries(unit, all, 4);
}

static void test_read_map_gives_what_the_map_type_asks_for(void **state)
{
	static const struct osd_map_entry data[] = { { OSD_MAP_DATA, 2 * PAGE, 0 },
						     { OSD_MAP_DATA, PAGE, 5 * PAGE } };
	static const struct osd_map_entry holes[] = { { OSD_MAP_HOLE, 3 * PAGE, 2 * PAGE },
						      { OSD_MAP_HOLE, 4 * PAGE + 5, 6 * PAGE } };
	struct unit *unit = *state;
	struct call call = map_call(OSD_MAP_DATA, 0, 512);

	make_object(unit);
	call_run(unit, &call);
	shows_good(unit, READ_MAP, "only data, by map type 1");
	expect_entries(unit, data, 2);
	call.cdb.map_type = OSD_MAP_HOLE;
	call_run(unit, &call);
	shows_good(unit, READ_MAP, "only holes, by map type 2");
	expect_entries(unit, holes, 2);
	call.cdb.map_type = OSD_MAP_DAMAGED_ATTRIBUTES;
	call_run(unit, &call);
	shows_good(unit, READ_MAP, "no damaged attributes, by map type 8000");
	expect_entries(unit, NULL, 0);
}

static void test_read_map_begins_at_its_address(void **state)
{
	static const struct osd_map_entry rest[] = { { OSD_MAP_DATA, PAGE - 1, 5 * PAGE + 1 },
						     { OSD_MAP_HOLE, 4 * PAGE + 5, 6 * PAGE } };
	struct unit *unit = *state;
	struct call call = map_call(OSD_MAP_ALL, 5 * PAGE + 1, 512);

	make_object(unit);
	call_run(unit, &call);
	shows_good(unit, READ_MAP, "from STARTING BYTE ADDRESS on");
	expect_entries(unit, rest, 2);
	call.cdb.address = 10 * PAGE + 5;
	call_run(unit, &call);
	expect_good(unit);
	expect_entries(unit, NULL, 0);
}

static void test_read_map_behind_the_end_points_at_the_address(void **state)
{
	struct unit *unit = *state;
	struct call call = map_call(OSD_MAP_ALL, 10 * PAGE + 6, 512);

	make_object(unit);
	call_run(unit, &call);
	shows_field(unit, READ_MAP, "starts behind the end", 40);
}

static void test_read_map_refuses_unknown_map_types(void **state)
{
	struct unit *unit = *state;
	struct call call = map_call(4, 0, 512);

	call_run(unit, &call);
	shows_field(unit, READ_MAP, "an unknown map type", 48);
}

static void test_a_map_is_cut_at_its_allocation_and_tells_its_full_length(void **state)
{
	struct unit *unit = *state;

	make_object(unit);
	for (size_t allocation = 0; allocation < 8 + 4 * OSD_MAP_ENTRY_BYTES; allocation++) {
		struct call call = map_call(OSD_MAP_ALL, 0, allocation);

		call_run(unit, &call);
		expect_good(unit);
		assert_int_equal(unit->command.data_in_length, allocation);
		if (allocation >= 8)
			assert_int_equal(get_be64(unit->data_in), 4 * OSD_MAP_ENTRY_BYTES);
	}
}

static void test_ranges_beyond_32_bits_take_several_entries(void **state)
{
	static const struct osd_map_entry holes[] = {
		{ OSD_MAP_HOLE, 0x80000000, 0 },
		{ OSD_MAP_HOLE, 0x80000000, 0x80000000 },
		{ OSD_MAP_HOLE, 7, UINT64_C(0x100000000) },
	};
	struct unit *unit = *state;
	struct call call = map_call(OSD_MAP_ALL, 0, 512);

	truncate_to(unit, O, UINT64_C(0x100000007));
	call_run(unit, &call);
	expect_good(unit);
	expect_entries(unit, holes, 3);
}

/* ---- READ MAPS AND COMPARE ---- */

static struct call compare_call(uint64_t partition, uint64_t object)
{
	struct call call = call_of(OSD_READ_MAPS_AND_COMPARE, P, O);
	uint8_t content[OSD_USER_OBJECT_BYTES];

	put_be64(content, partition);
	put_be64(content + 8, object);
	call_descriptor(&call, OSD_CONTINUATION_USER_OBJECT, content, sizeof(content));
	call.cdb.length = call.data_in_capacity = 512;
	return call;
}

static void test_comparing_gives_the_ranges_that_differ(void **state)
{
	static const struct osd_map_entry differing[] = {
		{ OSD_MAP_DATA, PAGE, PAGE },
		{ OSD_MAP_HOLE, PAGE, 3 * PAGE },
		{ OSD_MAP_DATA, 5 * PAGE, 10 * PAGE },
	};
	struct unit *unit = *state;
	struct call call = compare_call(P, O + 1);

	unit_create(unit, P, O + 1);
	write_pages(unit, O, 0, 2, 'a');
	write_pages(unit, O, 10, 5, 'a');
	write_pages(unit, O + 1, 0, 1, 'a');
	write_pages(unit, O + 1, 3, 1, 'b');
	truncate_to(unit, O + 1, 10 * PAGE);
	call_run(unit, &call);
	shows_good(unit, READ_MAPS_AND_COMPARE,
		   "ranges that differ, with what the first object has there");
	expect_entries(unit, differing, 3);
	call.cdb.address = 3 * PAGE + 1;
	call_run(unit, &call);
	shows_good(unit, READ_MAPS_AND_COMPARE, "from STARTING BYTE ADDRESS on");
	assert_int_equal(get_be64(unit->data_in), 2 * OSD_MAP_ENTRY_BYTES);
}

static void test_an_object_compared_with_its_past_shows_what_changed(void **state)
{
	static const struct osd_map_entry changed[] = { { OSD_MAP_DATA, PAGE, 2 * PAGE } };
	struct unit *unit = *state;
	struct engine_txn *txn;
	struct call call;
	uint32_t version;

	write_pages(unit, O, 0, 4, 'a');
	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_snapshot(txn, P, NULL, &version), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	unit_write(unit, O, 2 * PAGE + 100, "new", 3);
	call = compare_call((uint64_t)version << 48 | P, O);
	call_run(unit, &call);
	shows_good(unit, READ_MAPS_AND_COMPARE, "an object and an old version of it");
	expect_entries(unit, changed, 1);
}

static void test_comparing_wants_one_user_object_to_compare_with(void **state)
{
	struct unit *unit = *state;
	struct call call = compare_call(P, O + 9);

	call_run(unit, &call);
	shows_field(unit, READ_MAPS_AND_COMPARE, "there is no such second object", 48);
	call = compare_call(P, 0);
	call_run(unit, &call);
	shows_field(unit, READ_MAPS_AND_COMPARE, "the second one is no user object", 48);
	call = compare_call(P, O);
	call_descriptor(&call, OSD_CONTINUATION_USER_OBJECT, call.continuation + 48, 16);
	call_run(unit, &call);
	shows_field(unit, READ_MAPS_AND_COMPARE, "two user object descriptors", 48);
	call.continuation_length = call.cdb.continuation_length = 0;
	call_run(unit, &call);
	shows_field(unit, READ_MAPS_AND_COMPARE, "no user object descriptor", 48);
	call_descriptor(&call, OSD_CONTINUATION_USER_OBJECT, "short", 5);
	call_run(unit, &call);
	shows_field(unit, READ_MAPS_AND_COMPARE, "a user object descriptor of another length", 48);
}

static void test_comparing_behind_both_ends_points_at_the_address(void **state)
{
	struct unit *unit = *state;
	struct call call = compare_call(P, O);

	call.cdb.address = 1;
	call_run(unit, &call);
	shows_field(unit, READ_MAPS_AND_COMPARE, "starts behind the end of both", 40);
}

/* ---- OBJECT STRUCTURE CHECK ---- */

static struct call check_call(uint64_t partition, uint64_t object)
{
	struct call call = call_of(OSD_OBJECT_STRUCTURE_CHECK, partition, object);

	call.cdb.length = call.data_in_capacity = 1024;
	return call;
}

static struct osd_check_head check_head(struct unit *unit)
{
	struct osd_check_head head;

	assert_int_equal(osd_check_head_decode(unit->data_in, unit->command.data_in_length, &head),
			 0);
	assert_int_equal(head.additional_length, unit->command.data_in_length - 8);
	return head;
}

static void test_a_whole_device_checks_clean(void **state)
{
	struct unit *unit = *state;
	struct call call = check_call(0, 0);
	struct osd_check_head head;

	make_object(unit);
	unit_create_partition(unit, P + 5);
	call_run(unit, &call);
	shows_good(unit, OBJECT_STRUCTURE_CHECK, "the root and its partitions");
	head = check_head(unit);
	assert_int_equal(head.objects, 3);
	assert_int_equal(head.continuation, 0);
	assert_int_equal(head.additional_length, OSD_CHECK_HEAD_BYTES - 8);

	for (uint64_t i = 1; i < 200; i++)
		unit_create(unit, P, O + i);
	call = check_call(P, 0);
	call_run(unit, &call);
	shows_good(unit, OBJECT_STRUCTURE_CHECK, "a partition with everything in it");
	head = check_head(unit);
	assert_int_equal(head.objects, 201);
	assert_int_equal(head.pages, 3);
	assert_int_equal(head.continuation, 0);
	assert_int_equal(head.additional_length, OSD_CHECK_HEAD_BYTES - 8);
}

static void test_collections_are_checked_with_their_members(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_COLLECTION, P, O + 1);

	call_run(unit, &call);
	expect_good(unit);
	unit_set_number(unit, P, O, OSD_USER_OBJECT_COLLECTIONS, 1, O + 1);
	call = check_call(P, O + 1);
	call_run(unit, &call);
	shows_good(unit, OBJECT_STRUCTURE_CHECK, "a collection");
	assert_int_equal(check_head(unit).objects, 1);
	assert_int_equal(check_head(unit).additional_length, OSD_CHECK_HEAD_BYTES - 8);
	call = check_call(P, 0);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(check_head(unit).objects, 3);
	assert_int_equal(check_head(unit).additional_length, OSD_CHECK_HEAD_BYTES - 8);
}

static void test_an_object_is_checked_from_an_address_on(void **state)
{
	struct unit *unit = *state;
	struct call call = check_call(P, O);

	make_object(unit);
	call_run(unit, &call);
	shows_good(unit, OBJECT_STRUCTURE_CHECK, "a user object");
	assert_int_equal(check_head(unit).pages, 3);
	call.cdb.address = 2 * PAGE;
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(check_head(unit).pages, 1);
}

static void test_a_check_without_room_for_a_report_is_refused(void **state)
{
	struct unit *unit = *state;
	struct call call = check_call(P, O);

	call.cdb.length = OSD_CHECK_HEAD_BYTES - 1;
	call_run(unit, &call);
	shows_field(unit, OBJECT_STRUCTURE_CHECK, "less allocation than a report's head", 32);
	call.cdb.length = 1024;
	call.data_in_capacity = OSD_CHECK_HEAD_BYTES - 1;
	call_run(unit, &call);
	expect_field(unit, 32);
}

static void no_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

/* Objects O .. O + 23 of 256 pages each, some pages of which are unreadable from now on. */
static void make_damaged_objects(struct unit *unit)
{
	struct nand_faults faults = nand_faults_default();
	struct error_text error = { "" };

	/* One command checks all. */
	unit->device->portions.pages = unit->device->portions.records = 1 << 16;
	log_configure(no_log, LOG_LEVEL_ERROR);
	for (uint64_t i = 0; i < 24; i++) {
		if (i > 0)
			unit_create(unit, P, O + i);
		write_pages(unit, O + i, 0, 256, 'a' + (int)i);
	}
	faults.on = 1 << NAND_FAULT_UNREADABLE;
	faults.unreadable = 0.004;
	assert_int_equal(nand_set_faults(unit->nand, &faults, &error), 0);
}

static bool can_be_read(struct unit *unit, uint64_t object, uint64_t page)
{
	struct call call = call_of(OSD_READ, P, object);

	call.cdb.address = page * PAGE;
	call.cdb.length = call.data_in_capacity = PAGE;
	call_run(unit, &call);
	if (unit->command.status == SCSI_STATUS_GOOD)
		return true;
	expect_sense(unit, SENSE_MEDIUM_ERROR, SENSE_UNRECOVERED_READ_ERROR);
	return false;
}

static void test_a_map_of_damage_names_the_pages_that_can_t_be_read(void **state)
{
	struct unit *unit = *state;
	unsigned damaged = 0;

	make_damaged_objects(unit);
	for (uint64_t object = O; object < O + 24; object++) {
		struct call call = map_call(OSD_MAP_DAMAGED_DATA, 0, 4096);
		size_t position = OSD_MAP_HEAD_BYTES;
		struct osd_map_entry entry = { 0 };
		uint8_t map[4096];
		size_t length;

		call.cdb.object = object;
		call_run(unit, &call);
		shows_good(unit, READ_MAP, "only damaged data, by map type 3");
		length = unit->command.data_in_length;
		memcpy(map, unit->data_in, length);
		for (uint64_t page = 0; page < 256; page++) {
			bool readable = can_be_read(unit, object, page);

			if (page * PAGE >= entry.address + entry.length &&
			    osd_map_next(map, length, &position, &entry) == 0)
				entry.address = UINT64_MAX / 2;
			assert_int_equal(readable, page * PAGE < entry.address);
			damaged += !readable;
		}
	}
	assert_true(damaged > 0);
}

static void test_a_check_names_each_object_that_is_damaged(void **state)
{
	struct unit *unit = *state;
	struct call call = check_call(P, 0);
	size_t position = OSD_CHECK_HEAD_BYTES, length;
	struct osd_check_entry entry = { 0 };
	uint8_t report[1024];
	unsigned damaged = 0;

	make_damaged_objects(unit);
	call_run(unit, &call);
	shows_good(unit, OBJECT_STRUCTURE_CHECK, "a report of damaged objects");
	assert_in_range(check_head(unit).pages, 24 * 256, 24 * 256 + 100);
	length = unit->command.data_in_length;
	memcpy(report, unit->data_in, length);
	for (uint64_t object = O; object < O + 24; object++) {
		bool readable = true;

		if (entry.object < object && osd_check_next(report, length, &position, &entry) == 0)
			entry.object = UINT64_MAX;
		for (uint64_t page = 0; page < 256 && readable; page++)
			readable = can_be_read(unit, object, page);
		assert_int_equal(readable, entry.object != object);
		if (!readable)
			assert_int_equal(entry.type, OSD_MAP_DAMAGED_DATA);
		damaged += !readable;
	}
	assert_in_range(damaged, 1, 23);
}

static void test_a_report_that_is_full_says_where_to_go_on(void **state)
{
	struct unit *unit = *state;
	struct call call = check_call(P, 0);
	uint64_t whole, objects = 0, entries = 0;
	unsigned calls = 0;

	make_damaged_objects(unit);
	call_run(unit, &call);
	whole = check_head(unit).additional_length;
	call.cdb.length = OSD_CHECK_HEAD_BYTES + OSD_CHECK_ENTRY_BYTES;
	do {
		struct osd_check_head head;

		call_run(unit, &call);
		expect_good(unit);
		head = check_head(unit);
		entries +=
			(head.additional_length + 8 - OSD_CHECK_HEAD_BYTES) / OSD_CHECK_ENTRY_BYTES;
		assert_true(head.continuation == 0 || head.continuation > call.cdb.address);
		call.cdb.address = head.continuation;
		objects += head.objects;
		assert_true(++calls <= 24);
	} while (call.cdb.address != 0);
	assert_true(calls > 1);
	assert_true(objects >= 24);
	assert_int_equal(whole + 8, OSD_CHECK_HEAD_BYTES + entries * OSD_CHECK_ENTRY_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object(test_read_map_tells_data_and_holes_apart),
		with_object(test_read_map_gives_what_the_map_type_asks_for),
		with_object(test_read_map_begins_at_its_address),
		with_object(test_read_map_behind_the_end_points_at_the_address),
		with_object(test_read_map_refuses_unknown_map_types),
		with_object(test_a_map_is_cut_at_its_allocation_and_tells_its_full_length),
		with_object(test_ranges_beyond_32_bits_take_several_entries),
		with_object(test_comparing_gives_the_ranges_that_differ),
		with_object(test_an_object_compared_with_its_past_shows_what_changed),
		with_object(test_comparing_wants_one_user_object_to_compare_with),
		with_object(test_comparing_behind_both_ends_points_at_the_address),
		with_object(test_a_whole_device_checks_clean),
		with_object(test_collections_are_checked_with_their_members),
		with_object(test_an_object_is_checked_from_an_address_on),
		with_object(test_a_map_of_damage_names_the_pages_that_can_t_be_read),
		with_object(test_a_check_names_each_object_that_is_damaged),
		with_object(test_a_report_that_is_full_says_where_to_go_on),
		with_object(test_a_check_without_room_for_a_report_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
