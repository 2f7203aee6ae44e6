/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Objects of more pages than READ MAP, READ MAPS AND COMPARE and OBJECT STRUCTURE CHECK read in one
 * command: how far they get, that they say so, and that going on ends with everything looked at. On
 * flash with small pages, so that many of them are little data.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "osd/portions.h"
#include "tests/osd/unit.h"

#define PAGE      1024u
#define LIMIT     OSD_PAGES_PORTION /* that one command reads */
#define BIG_PAGES (LIMIT + 700u)
/* More than one command checks. */
#define OBJECTS   (OSD_ENTRIES_PORTION + 100u)
#define BIG_BYTES ((uint64_t)BIG_PAGES * PAGE)
/* A hole in the big object, which costs no reading. */
#define HOLE_PAGE  1000u
#define HOLE_PAGES 300u
/* Where reading it from its beginning gets to. */
#define REACHED ((uint64_t)(LIMIT + HOLE_PAGES) * PAGE)

static void write_range(struct unit *unit, uint64_t object, uint64_t first, uint64_t count)
{
	const uint64_t batch = 1024;
	uint8_t *data = malloc(batch * PAGE);

	memset(data, 'm', batch * PAGE);
	while (count > 0) {
		uint64_t part = min_u64(count, batch);

		unit_write(unit, object, first * PAGE, data, part * PAGE);
		first += part;
		count -= part;
	}
	free(data);
}

static void truncate_object(struct unit *unit, uint64_t object, uint64_t length)
{
	uint8_t value[8];

	put_be64(value, length);
	unit_set(unit, P, object, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH,
		 value, 8);
}

static void make_big(struct unit *unit, uint64_t object)
{
	write_range(unit, object, 0, HOLE_PAGE);
	write_range(unit, object, HOLE_PAGE + HOLE_PAGES, BIG_PAGES - HOLE_PAGE - HOLE_PAGES);
}

static int set_up(void **state)
{
	struct nand_geometry geometry = nand_geometry_default(320 << 20);
	struct unit *unit = malloc(sizeof(*unit));

	geometry.page_bytes = PAGE;
	geometry.blocks *= 4096 / PAGE;
	unit_open_on(unit, &geometry);
	unit_create_partition(unit, P);
	unit_create(unit, P, O);
	make_big(unit, O);
	*state = unit;
	return 0;
}

/* ---- READ MAP ---- */

static struct call map_call(uint16_t type, uint64_t address)
{
	struct call call = call_of(OSD_READ_MAP, P, O);

	call.cdb.map_type = type;
	call.cdb.address = address;
	call.cdb.length = call.data_in_capacity = 4096;
	return call;
}

/* The entries of the last answer. */
static size_t entries_of(struct unit *unit, struct osd_map_entry *entries, size_t capacity)
{
	size_t position = OSD_MAP_HEAD_BYTES, count = 0;

	while (count < capacity && osd_map_next(unit->data_in, unit->command.data_in_length,
						&position, &entries[count]) == 1)
		count++;
	assert_int_equal(get_be64(unit->data_in), count * OSD_MAP_ENTRY_BYTES);
	return count;
}

static void expect_entry(const struct osd_map_entry *entry, uint16_t type, uint64_t address,
			 uint64_t end)
{
	assert_int_equal(entry->type, type);
	assert_int_equal(entry->address, address);
	assert_int_equal(entry->address + entry->length, end);
}

static void test_a_map_ends_where_the_command_has_read_enough_and_goes_on_there(void **state)
{
	struct unit *unit = *state;
	struct call call = map_call(OSD_MAP_ALL, 0);
	struct osd_map_entry entries[8];

	call_run(unit, &call);
	shows_good(unit, READ_MAP, "more than 2,048 pages: the rest is a range of type 0000");
	assert_int_equal(entries_of(unit, entries, 8), 4);
	expect_entry(&entries[0], OSD_MAP_DATA, 0, HOLE_PAGE * PAGE);
	expect_entry(&entries[1], OSD_MAP_HOLE, HOLE_PAGE * PAGE, (HOLE_PAGE + HOLE_PAGES) * PAGE);
	expect_entry(&entries[2], OSD_MAP_DATA, (HOLE_PAGE + HOLE_PAGES) * PAGE, REACHED);
	expect_entry(&entries[3], OSD_MAP_ALL, REACHED, BIG_BYTES);
	call = map_call(OSD_MAP_ALL, REACHED);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(entries_of(unit, entries, 8), 1);
	expect_entry(&entries[0], OSD_MAP_DATA, REACHED, BIG_BYTES);
}

static void test_a_map_of_damage_says_what_it_has_not_read(void **state)
{
	struct unit *unit = *state;
	struct call call = map_call(OSD_MAP_DAMAGED_DATA, 0);
	struct osd_map_entry entries[8];

	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(entries_of(unit, entries, 8), 1);
	expect_entry(&entries[0], OSD_MAP_ALL, REACHED, BIG_BYTES);
	call = map_call(OSD_MAP_DAMAGED_DATA, REACHED);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(entries_of(unit, entries, 8), 0);
}

static void test_maps_that_read_nothing_have_no_limit(void **state)
{
	struct unit *unit = *state;
	struct call call = map_call(OSD_MAP_DATA, 0);
	struct osd_map_entry entries[8];

	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(entries_of(unit, entries, 8), 2);
	expect_entry(&entries[1], OSD_MAP_DATA, (HOLE_PAGE + HOLE_PAGES) * PAGE, BIG_BYTES);
	call = map_call(OSD_MAP_HOLE, 0);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(entries_of(unit, entries, 8), 1);
}

/* ---- READ MAPS AND COMPARE ---- */

static void test_a_comparison_goes_on_to_its_end(void **state)
{
	struct unit *unit = *state;
	uint64_t address = 0, different = 0;
	uint8_t content[OSD_USER_OBJECT_BYTES];
	unsigned calls = 0;

	unit_create(unit, P, O + 1);
	make_big(unit, O + 1);
	/* One byte near the beginning, one in the last page. */
	unit_write(unit, O + 1, 5 * PAGE, "?", 1);
	unit_write(unit, O + 1, BIG_BYTES - 1, "?", 1);
	put_be64(content, P);
	put_be64(content + 8, O + 1);
	do {
		struct call call = call_of(OSD_READ_MAPS_AND_COMPARE, P, O);
		struct osd_map_entry entries[8];
		size_t count;

		call_descriptor(&call, OSD_CONTINUATION_USER_OBJECT, content, sizeof(content));
		call.cdb.length = call.data_in_capacity = 4096;
		call.cdb.address = address;
		call_run(unit, &call);
		shows_good(unit, READ_MAPS_AND_COMPARE,
			   "more pages than one command reads: the rest is a range of type 0000");
		count = entries_of(unit, entries, 8);
		address = 0;
		for (size_t i = 0; i < count; i++) {
			if (entries[i].type == OSD_MAP_ALL) {
				assert_int_equal(i, count - 1);
				assert_int_equal(entries[i].address + entries[i].length, BIG_BYTES);
				address = entries[i].address;
			} else {
				assert_int_equal(entries[i].type, OSD_MAP_DATA);
				assert_int_equal(entries[i].length, PAGE);
				assert_int_equal(entries[i].address,
						 different == 0 ? 5 * PAGE : BIG_BYTES - PAGE);
				different++;
			}
		}
		assert_true(++calls < 8);
	} while (address != 0);
	assert_int_equal(different, 2);
	assert_true(calls > 1);
}

/* ---- OBJECT STRUCTURE CHECK ---- */

static struct osd_check_head check(struct unit *unit, uint64_t object, uint64_t address)
{
	struct call call = call_of(OSD_OBJECT_STRUCTURE_CHECK, P, object);
	struct osd_check_head head;

	call.cdb.address = address;
	call.cdb.length = call.data_in_capacity = 4096;
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(osd_check_head_decode(unit->data_in, unit->command.data_in_length, &head),
			 0);
	return head;
}

static void test_a_check_of_an_object_goes_on_at_a_byte_address(void **state)
{
	struct unit *unit = *state;
	struct osd_check_head head = check(unit, O, 0);

	shows_good(unit, OBJECT_STRUCTURE_CHECK,
		   "an object of more than 2,048 pages: where to go on in it");
	assert_int_equal(head.pages, LIMIT);
	assert_int_equal(head.continuation, REACHED);
	head = check(unit, O, head.continuation);
	assert_int_equal(head.pages, BIG_PAGES - HOLE_PAGES - LIMIT);
	assert_int_equal(head.continuation, 0);
	assert_int_equal(head.additional_length, OSD_CHECK_HEAD_BYTES - 8);
}

/*
 * Goes on until a partition has been checked; returns the objects looked at, `left` those that are
 * to be checked by themselves.
 */
static uint64_t check_partition(struct unit *unit, uint64_t *left, size_t *left_count)
{
	uint64_t address = 0, objects = 0;
	unsigned calls = 0;

	*left_count = 0;
	do {
		struct osd_check_head head = check(unit, 0, address);
		size_t position = OSD_CHECK_HEAD_BYTES;
		struct osd_check_entry entry;

		while (osd_check_next(unit->data_in, unit->command.data_in_length, &position,
				      &entry) == 1) {
			assert_int_equal(entry.type, OSD_MAP_ALL);
			assert_true(*left_count < 4);
			left[(*left_count)++] = entry.object;
		}
		/* The partition itself is counted by each command. */
		objects += head.objects - 1;
		assert_true(head.continuation == 0 || head.continuation > address);
		address = head.continuation;
		assert_true(++calls < 16);
	} while (address != 0);
	return objects;
}

static void test_a_check_of_a_partition_leaves_large_objects_out_by_name(void **state)
{
	struct unit *unit = *state;
	uint64_t left[4];
	size_t left_count;

	/*
	 * Before and behind the large one, which is checked alone by the command that begins with
	 * it.
	 */
	for (uint64_t i = 1; i <= 3; i++) {
		unit_create(unit, P, O - i);
		write_range(unit, O - i, 0, 20);
		unit_create(unit, P, O + i);
		write_range(unit, O + i, 0, 20);
	}
	assert_int_equal(check_partition(unit, left, &left_count), 7);
	shows_good(unit, OBJECT_STRUCTURE_CHECK,
		   "an object of more than 2,048 pages in a partition is named, type 0000");
	assert_int_equal(left_count, 1);
	assert_int_equal(left[0], O);
}

static void test_a_check_of_a_partition_stops_before_an_object_it_can_t_finish(void **state)
{
	struct unit *unit = *state;
	struct osd_check_head head;
	uint64_t left[4];
	size_t left_count;

	/* Three that together are more than a command reads. */
	truncate_object(unit, O, (uint64_t)(LIMIT * 9 / 20) * PAGE);
	for (uint64_t i = 1; i <= 2; i++) {
		unit_create(unit, P, O + i);
		write_range(unit, O + i, 0, LIMIT * 9 / 20);
	}
	head = check(unit, 0, 0);
	assert_int_equal(head.continuation, O + 2);
	assert_int_equal(head.objects, 3);
	assert_int_equal(check_partition(unit, left, &left_count), 3);
	assert_int_equal(left_count, 0);
}

static void test_a_check_of_a_partition_looks_at_so_many_objects(void **state)
{
	struct unit *unit = *state;
	struct osd_check_head head;
	struct call call;

	truncate_object(unit, O, 0);
	for (unsigned i = 0; i < 2; i++) {
		call = call_of(OSD_CREATE, P, 0);
		call.cdb.objects = OBJECTS / 2;
		call_run(unit, &call);
		expect_good(unit);
	}
	head = check(unit, 0, 0);
	shows_good(unit, OBJECT_STRUCTURE_CHECK,
		   "a partition of more than 2,048 objects: where to go on");
	assert_int_equal(head.objects, OSD_ENTRIES_PORTION);
	assert_int_not_equal(head.continuation, 0);
	head = check(unit, 0, head.continuation);
	/* One more, and the partition, which both commands count. */
	assert_int_equal(head.objects, OBJECTS + 1 + 2 - OSD_ENTRIES_PORTION);
	assert_int_equal(head.continuation, 0);
}

#define with_big(test) cmocka_unit_test_setup_teardown(test, set_up, unit_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_big(test_a_map_ends_where_the_command_has_read_enough_and_goes_on_there),
		with_big(test_a_map_of_damage_says_what_it_has_not_read),
		with_big(test_maps_that_read_nothing_have_no_limit),
		with_big(test_a_comparison_goes_on_to_its_end),
		with_big(test_a_check_of_an_object_goes_on_at_a_byte_address),
		with_big(test_a_check_of_a_partition_leaves_large_objects_out_by_name),
		with_big(test_a_check_of_a_partition_stops_before_an_object_it_can_t_finish),
		with_big(test_a_check_of_a_partition_looks_at_so_many_objects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
