/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A test for each way in which READ, WRITE, APPEND, CLEAR, PUNCH, LIST and the FLUSH family end, in
 * both versions. What else they do is in test_data.c and test_list.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bytes.h"
#include "common/log.h"
#include "nand/faults.h"
#include "tests/osd/unit.h"

static struct call data_call(uint16_t action, uint64_t address, const char *text)
{
	struct call call = call_of(action, P, O);

	call_data(&call, text, strlen(text));
	call.cdb.address = address;
	return call;
}

static struct call read_call(uint64_t address, size_t length)
{
	struct call call = call_of(OSD_READ, P, O);

	call.cdb.address = address;
	call.cdb.length = call.data_in_capacity = length;
	return call;
}

static struct call range_call(uint16_t action, uint64_t address, uint64_t length)
{
	struct call call = call_of(action, P, O);

	call.cdb.address = address;
	call.cdb.length = length;
	return call;
}

static void expect_content(struct unit *unit, const char *text)
{
	struct call call = read_call(0, strlen(text));

	assert_int_equal(unit_get_number(unit, P, O, OSD_USER_OBJECT_INFORMATION,
					 OSD_INFORMATION_LOGICAL_LENGTH),
			 strlen(text));
	call_run(unit, &call);
	expect_good(unit);
	assert_memory_equal(unit->data_in, text, strlen(text));
}

/* ---- READ ---- */

static void test_read_returns_what_is_there(void **state)
{
	struct unit *unit = *state;
	struct call call = read_call(1, 3);

	unit_write(unit, O, 0, "hello", 5);
	call_run(unit, &call);
	shows_good(unit, READ, "inside the object");
	assert_memory_equal(unit->data_in, "ell", 3);
}

static void test_read_of_nothing_is_good_even_at_the_end(void **state)
{
	struct unit *unit = *state;
	struct call call = read_call(5, 0);

	unit_write(unit, O, 0, "hello", 5);
	call_run(unit, &call);
	shows_good(unit, READ, "LENGTH 0, anywhere");
}

static void test_read_across_the_end_gives_zeros_and_a_recovered_error(void **state)
{
	struct unit *unit = *state;
	struct call call = read_call(3, 6);

	unit_write(unit, O, 0, "hello", 5);
	call_run(unit, &call);
	shows_sense(unit, READ, "crosses the logical length: zeros behind it", RECOVERED_ERROR,
		    READ_PAST_END_OF_USER_OBJECT);
	assert_memory_equal(unit->data_in, "lo\0\0\0\0", 6);
	assert_int_equal(unit_sense(unit).information, 2);
	assert_int_equal(unit_sense(unit).command_information, 2);
}

static void test_read_behind_the_end_points_at_the_address(void **state)
{
	struct unit *unit = *state;
	struct call call = read_call(5, 1);

	unit_write(unit, O, 0, "hello", 5);
	call_run(unit, &call);
	shows_fields(unit, READ, "starts at or behind the logical length", 44, 40);
}

static void test_read_of_more_than_data_in_is_refused(void **state)
{
	struct unit *unit = *state;
	struct call call = read_call(0, 3);

	unit_write(unit, O, 0, "hello", 5);
	call.cdb.length = 4;
	call_run(unit, &call);
	shows_fields(unit, READ, "more than Data-In has space for", 36, 32);
}

static void test_read_of_an_impossible_range_is_refused(void **state)
{
	struct unit *unit = *state;
	struct call call = read_call(UINT64_MAX, 2);

	call_run(unit, &call);
	shows_fields(unit, READ, "a range beyond 64 bits", 44, 40);
}

static void test_read_scatters(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_READ, P, O);

	unit_write(unit, O, 0, "hello", 5);
	call_piece(&call, 4, 1);
	call_piece(&call, 0, 2);
	call.data_in_capacity = 3;
	call_run(unit, &call);
	shows_good(unit, READ, "pieces of a scatter/gather list");
	assert_memory_equal(unit->data_in, "ohe", 3);
	call.cdb.length = 2;
	call_run(unit, &call);
	shows_field(unit, READ, "pieces that do not sum up to LENGTH", 32);
}

static void no_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void test_damaged_data_is_never_returned(void **state)
{
	struct unit *unit = *state;
	struct nand_faults faults = nand_faults_default();
	struct error_text error = { "" };
	static uint8_t data[8 << 20];
	struct call call = read_call(0, sizeof(data));

	log_configure(no_log, LOG_LEVEL_ERROR);
	for (int i = 0; i < 3; i++)
		unit_write(unit, O, i * sizeof(data), data, sizeof(data));
	faults.on = 1 << NAND_FAULT_UNREADABLE;
	faults.unreadable = 1;
	assert_int_equal(nand_set_faults(unit->nand, &faults, &error), 0);
	call_run(unit, &call);
	shows_sense(unit, READ, "stored data fails its checksum", MEDIUM_ERROR,
		    UNRECOVERED_READ_ERROR);
	/* All of it is damaged, but what is still in NVRAM. */
	assert_true(unit_sense(unit).has_information);
	assert_in_range(unit_sense(unit).information, 0, sizeof(data) - 1);
	assert_in_range(unit_sense(unit).command_information, 1,
			sizeof(data) - unit_sense(unit).information);
}

static void test_a_read_that_meets_damage_tells_the_first_damaged_range(void **state)
{
	struct unit *unit = *state;
	struct nand_faults faults = nand_faults_default();
	struct error_text error = { "" };
	static uint8_t data[8 << 20];
	struct call part = read_call(0, sizeof(data));

	log_configure(no_log, LOG_LEVEL_ERROR);
	for (int i = 0; i < 3; i++)
		unit_write(unit, O, i * sizeof(data), data, sizeof(data));
	/* So many that some groups lose more than parity gives back. */
	faults.on = 1 << NAND_FAULT_UNREADABLE;
	faults.unreadable = 0.02;
	assert_int_equal(nand_set_faults(unit->nand, &faults, &error), 0);
	call_run(unit, &part);
	expect_sense(unit, SENSE_MEDIUM_ERROR, SENSE_UNRECOVERED_READ_ERROR);
	uint64_t at = unit_sense(unit).information;
	uint64_t length = unit_sense(unit).command_information;

	assert_true(at > 0 && length > 0 && at + length < sizeof(data));
	part = read_call(0, at);
	call_run(unit, &part);
	expect_good(unit);
	part = read_call(at, length);
	call_run(unit, &part);
	expect_sense(unit, SENSE_MEDIUM_ERROR, SENSE_UNRECOVERED_READ_ERROR);
	assert_int_equal(unit_sense(unit).information, at);
	assert_int_equal(unit_sense(unit).command_information, length);
	part = read_call(at + length, 1);
	call_run(unit, &part);
	expect_good(unit);
}

/* ---- WRITE ---- */

static void test_write_overwrites_and_extends(void **state)
{
	struct unit *unit = *state;
	struct call call = data_call(OSD_WRITE, 3, "p me");

	unit_write(unit, O, 0, "hello", 5);
	call_run(unit, &call);
	shows_good(unit, WRITE, "over what is there and behind it");
	expect_content(unit, "help me");
}

static void test_write_gathers(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_WRITE, P, O);

	call.data = "ohell";
	call.data_length = 5;
	call_piece(&call, 4, 1);
	call_piece(&call, 0, 4);
	call_run(unit, &call);
	shows_good(unit, WRITE, "pieces of a scatter/gather list");
	expect_content(unit, "hello");
	call.cdb.length = 4;
	call_run(unit, &call);
	shows_field(unit, WRITE, "pieces that do not sum up to LENGTH", 32);
}

static void test_write_of_more_than_data_out_is_refused(void **state)
{
	struct unit *unit = *state;
	struct call call = data_call(OSD_WRITE, 0, "hello");

	call.cdb.length = 6;
	call_run(unit, &call);
	shows_fields(unit, WRITE, "more than came of Data-Out", 36, 32);
}

static void test_write_of_an_impossible_range_is_refused(void **state)
{
	struct unit *unit = *state;
	struct call call = data_call(OSD_WRITE, UINT64_MAX - 2, "hello");

	call_run(unit, &call);
	shows_fields(unit, WRITE, "a range beyond 64 bits or the largest object", 44, 40);
	call.cdb.address = UINT64_C(1) << 60;
	call_run(unit, &call);
	shows_fields(unit, WRITE, "a range beyond 64 bits or the largest object", 44, 40);
}

static void test_write_keeps_to_the_maximum_length(void **state)
{
	struct unit *unit = *state;
	struct call call = data_call(OSD_WRITE, 1, "hello");

	unit_set_number(unit, P, O, OSD_USER_OBJECT_QUOTAS, OSD_QUOTA_MAXIMUM_LENGTH, 5);
	call_run(unit, &call);
	shows_sense(unit, WRITE, "longer than the object's maximum", DATA_PROTECT, QUOTA_ERROR);
	expect_content(unit, "");
}

static void test_write_keeps_to_the_partition_s_capacity(void **state)
{
	struct unit *unit = *state;
	struct call call = data_call(OSD_WRITE, 0, "hello");

	unit_set_number(unit, P, 0, OSD_PARTITION_QUOTAS, OSD_QUOTA_CAPACITY, 4096);
	call_run(unit, &call);
	expect_good(unit);
	call.cdb.address = 4096;
	call_run(unit, &call);
	shows_sense(unit, WRITE, "more than the partition may hold", DATA_PROTECT, QUOTA_ERROR);
	expect_content(unit, "hello");
}

/* ---- APPEND ---- */

static void test_append_writes_at_the_end(void **state)
{
	struct unit *unit = *state;
	struct call call = data_call(OSD_APPEND, 0, " world");

	unit_write(unit, O, 0, "hello", 5);
	call_get(&call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_APPEND_ADDRESS);
	call_run(unit, &call);
	shows_good(unit, APPEND, "at the end, whose address is answered");
	assert_int_equal(get_be64(unit_retrieved(unit, &call, 0).value), 5);
	expect_content(unit, "hello world");
}

static void test_append_of_more_than_data_out_is_refused(void **state)
{
	struct unit *unit = *state;
	struct call call = data_call(OSD_APPEND, 0, "hello");

	call.cdb.length = 6;
	call_run(unit, &call);
	shows_fields(unit, APPEND, "more than came of Data-Out", 36, 32);
}

static void test_append_to_a_full_object_is_refused(void **state)
{
	struct unit *unit = *state;
	struct call call = data_call(OSD_APPEND, 0, "hello");

	unit_set_number(unit, P, O, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH,
			ENGINE_PIECES_MAX * UINT64_C(4096));
	call_run(unit, &call);
	shows_fields(unit, APPEND, "more than an object can hold", 36, 32);
}

static void test_append_keeps_to_the_maximum_length(void **state)
{
	struct unit *unit = *state;
	struct call call = data_call(OSD_APPEND, 0, "hello");

	unit_set_number(unit, P, O, OSD_USER_OBJECT_QUOTAS, OSD_QUOTA_MAXIMUM_LENGTH, 5);
	call_run(unit, &call);
	expect_good(unit);
	call_run(unit, &call);
	shows_sense(unit, APPEND, "longer than the object's maximum", DATA_PROTECT, QUOTA_ERROR);
	expect_content(unit, "hello");
}

/* ---- CLEAR and PUNCH: OSD-2 only ---- */

static void test_clear_zeros_a_range_and_extends(void **state)
{
	struct unit *unit = *state;
	struct call call = range_call(OSD_CLEAR, 1, 2), read;

	unit_write(unit, O, 0, "hello", 5);
	call_run(unit, &call);
	shows_good(unit, CLEAR, "zeros over the range");
	call = range_call(OSD_CLEAR, 4, 4);
	call_run(unit, &call);
	shows_good(unit, CLEAR, "a range beyond the end extends the object");
	read = read_call(0, 8);
	call_run(unit, &read);
	expect_good(unit);
	assert_memory_equal(unit->data_in, "h\0\0l\0\0\0\0", 8);
}

static void test_clear_of_an_impossible_range_is_refused(void **state)
{
	struct unit *unit = *state;
	struct call call = range_call(OSD_CLEAR, UINT64_MAX, 2);

	call_run(unit, &call);
	shows_field(unit, CLEAR, "a range beyond 64 bits or the largest object", 40);
	call = range_call(OSD_CLEAR, UINT64_C(1) << 60, 2);
	call_run(unit, &call);
	shows_field(unit, CLEAR, "a range beyond 64 bits or the largest object", 40);
}

static void test_clear_keeps_to_the_maximum_length(void **state)
{
	struct unit *unit = *state;
	struct call call = range_call(OSD_CLEAR, 0, 6);

	unit_set_number(unit, P, O, OSD_USER_OBJECT_QUOTAS, OSD_QUOTA_MAXIMUM_LENGTH, 5);
	call_run(unit, &call);
	shows_sense(unit, CLEAR, "longer than the object's maximum", DATA_PROTECT, QUOTA_ERROR);
}

static void test_punch_removes_a_range(void **state)
{
	struct unit *unit = *state;
	struct call call = range_call(OSD_PUNCH, 1, 2);

	unit_write(unit, O, 0, "hello", 5);
	call_run(unit, &call);
	shows_good(unit, PUNCH, "the rest moves down");
	expect_content(unit, "hlo");
	call.cdb.length = 100;
	call_run(unit, &call);
	shows_good(unit, PUNCH, "a range beyond the end cuts the object at its start");
	expect_content(unit, "h");
}

static void test_punch_behind_the_end_points_at_the_address(void **state)
{
	struct unit *unit = *state;
	struct call call = range_call(OSD_PUNCH, 6, 1);

	unit_write(unit, O, 0, "hello", 5);
	call_run(unit, &call);
	shows_field(unit, PUNCH, "starts behind the end", 40);
}

/* ---- LIST ---- */

static struct call list_call(uint64_t partition)
{
	struct call call = call_of(OSD_LIST, partition, 0);

	call.cdb.length = call.data_in_capacity = 24 + 8 * 2;
	return call;
}

static void test_list_lists_objects_and_partitions(void **state)
{
	struct unit *unit = *state;
	struct call call = list_call(P);

	call_run(unit, &call);
	shows_good(unit, LIST, "user objects of a partition");
	assert_int_equal(get_be64(unit->data_in + 24), O);
	call = list_call(0);
	call_run(unit, &call);
	shows_good(unit, LIST, "partitions of the root");
	assert_int_equal(get_be64(unit->data_in + 24), P);
}

static void test_list_is_cut_and_continued(void **state)
{
	struct unit *unit = *state;
	struct call call = list_call(P);

	for (uint64_t i = 1; i < 4; i++)
		unit_create(unit, P, O + i);
	call_run(unit, &call);
	shows_good(unit, LIST, "cut; continued by list identifier and continuation ID");
	assert_int_equal(get_be64(unit->data_in + 8), O + 2);
	call.cdb.list_identifier = get_be32(unit->data_in + 16);
	assert_int_not_equal(call.cdb.list_identifier, 0);
	call.cdb.address = O + 2;
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(get_be64(unit->data_in + 24), O + 2);
	assert_int_equal(get_be64(unit->data_in + 8), 0);
	assert_int_equal(get_be32(unit->data_in + 16), 0);
}

static void test_list_with_attributes_has_them_behind_each_id(void **state)
{
	struct unit *unit = *state;
	struct call call = list_call(P);

	unit_set(unit, P, O, 0x10000, 1, "mine", 4);
	call.cdb.list_attributes = true;
	call.cdb.length = call.data_in_capacity = 256;
	call_get(&call, 0x10000, 1);
	call_run(unit, &call);
	shows_good(unit, LIST, "LIST_ATTR: attributes of each entry");
	assert_memory_equal(unit->data_in + 24 + 16 + 16, "mine", 4);
}

static void test_list_has_one_sort_order(void **state)
{
	struct unit *unit = *state;
	struct call call = list_call(P);

	call.cdb.command_options = 1;
	call_run(unit, &call);
	shows_field(unit, LIST, "a sort order other than 0", 11);
}

static void test_list_takes_attributes_of_entries_by_lists_only(void **state)
{
	struct unit *unit = *state;
	struct call call = list_call(P);

	call.cdb.list_attributes = true;
	call.cdb.format = OSD_ATTRIBUTES_PAGE;
	call_run(unit, &call);
	shows_field(unit, LIST, "LIST_ATTR outside list format", 11);
}

/* ---- the FLUSH family ---- */

/* How often the device was made stable on the host's storage. */
static uint64_t syncs(struct unit *unit)
{
	struct nand_counters counters;

	nand_read_counters(unit->nand, &counters);
	return counters.nvram_sync_requests;
}

/* Runs a flush behind a write, in every scope; the last answer is that of scope 2. */
static void flush(struct unit *unit, uint16_t action, uint64_t partition, uint64_t object)
{
	struct call call = call_of(action, partition, object);

	for (uint8_t scope = 0; scope <= 2; scope++) {
		uint64_t before;

		unit_write(unit, O, 0, "dirty", 5);
		before = syncs(unit);
		call.cdb.flush_scope = scope;
		call_run(unit, &call);
		expect_good(unit);
		assert_true(syncs(unit) > before);
	}
}

static void flush_of_scope_3(struct unit *unit, uint16_t action, uint64_t partition,
			     uint64_t object)
{
	struct call call = call_of(action, partition, object);

	call.cdb.flush_scope = 3;
	call_run(unit, &call);
}

static void test_flush_makes_an_object_stable(void **state)
{
	struct unit *unit = *state;

	flush(unit, OSD_FLUSH, P, O);
	shows_good(unit, FLUSH, "scopes 0, 1, 2: everything is stable");
	flush_of_scope_3(unit, OSD_FLUSH, P, O);
	shows_field(unit, FLUSH, "scope 3", 11);
}

static void test_flush_collection_makes_it_stable(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_COLLECTION, P, O + 1);

	call_run(unit, &call);
	expect_good(unit);
	flush(unit, OSD_FLUSH_COLLECTION, P, O + 1);
	shows_good(unit, FLUSH_COLLECTION, "scopes 0, 1, 2: everything is stable");
	flush_of_scope_3(unit, OSD_FLUSH_COLLECTION, P, O + 1);
	shows_field(unit, FLUSH_COLLECTION, "scope 3", 11);
}

static void test_flush_partition_makes_it_stable(void **state)
{
	struct unit *unit = *state;

	flush(unit, OSD_FLUSH_PARTITION, P, 0);
	shows_good(unit, FLUSH_PARTITION, "scopes 0, 1, 2: everything is stable");
	flush_of_scope_3(unit, OSD_FLUSH_PARTITION, P, 0);
	shows_field(unit, FLUSH_PARTITION, "scope 3", 11);
}

static void test_linux_s_flush_of_a_collection_names_an_object_to_flush_partition(void **state)
{
	struct unit *unit = *state;

	flush(unit, OSD_FLUSH_PARTITION, P, O + 1);
	shows_good(unit, FLUSH_PARTITION, "with an object ID, which is not looked at");
}

static void test_flush_osd_makes_everything_stable(void **state)
{
	struct unit *unit = *state;

	flush(unit, OSD_FLUSH_OSD, 0, 0);
	shows_good(unit, FLUSH_OSD, "scopes 0, 1, 2: everything is stable");
	flush_of_scope_3(unit, OSD_FLUSH_OSD, 0, 0);
	shows_field(unit, FLUSH_OSD, "scope 3", 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object_in_both(test_read_returns_what_is_there),
		with_object_in_both(test_read_of_nothing_is_good_even_at_the_end),
		with_object_in_both(test_read_across_the_end_gives_zeros_and_a_recovered_error),
		with_object_in_both(test_read_behind_the_end_points_at_the_address),
		with_object_in_both(test_read_of_more_than_data_in_is_refused),
		with_object_in_both(test_read_of_an_impossible_range_is_refused),
		with_object(test_read_scatters),
		with_object_in_both(test_damaged_data_is_never_returned),
		with_object_in_both(test_a_read_that_meets_damage_tells_the_first_damaged_range),
		with_object_in_both(test_write_overwrites_and_extends),
		with_object(test_write_gathers),
		with_object_in_both(test_write_of_more_than_data_out_is_refused),
		with_object_in_both(test_write_of_an_impossible_range_is_refused),
		with_object_in_both(test_write_keeps_to_the_maximum_length),
		with_object_in_both(test_write_keeps_to_the_partition_s_capacity),
		with_object_in_both(test_append_writes_at_the_end),
		with_object_in_both(test_append_of_more_than_data_out_is_refused),
		with_object_in_both(test_append_to_a_full_object_is_refused),
		with_object_in_both(test_append_keeps_to_the_maximum_length),
		with_object(test_clear_zeros_a_range_and_extends),
		with_object(test_clear_of_an_impossible_range_is_refused),
		with_object(test_clear_keeps_to_the_maximum_length),
		with_object(test_punch_removes_a_range),
		with_object(test_punch_behind_the_end_points_at_the_address),
		with_object_in_both(test_list_lists_objects_and_partitions),
		with_object_in_both(test_list_is_cut_and_continued),
		with_object(test_list_with_attributes_has_them_behind_each_id),
		with_object_in_both(test_list_has_one_sort_order),
		with_object(test_list_takes_attributes_of_entries_by_lists_only),
		with_object_in_both(test_flush_makes_an_object_stable),
		with_object_in_both(test_flush_collection_makes_it_stable),
		with_object_in_both(test_flush_partition_makes_it_stable),
		with_object_in_both(
			test_linux_s_flush_of_a_collection_names_an_object_to_flush_partition),
		with_object_in_both(test_flush_osd_makes_everything_stable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
