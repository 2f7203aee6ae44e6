/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * READ, WRITE, APPEND, CLEAR, PUNCH: data in and out, ends of objects, scatter/gather, lengths that
 * lie.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/osd/unit.h"

static void read_range(struct unit *unit, uint64_t address, uint64_t length)
{
	struct call call = call_of(OSD_READ, P, O);

	call.cdb.address = address;
	call.cdb.length = call.data_in_capacity = length;
	call_run(unit, &call);
}

static void expect_object(struct unit *unit, const void *expected, size_t length)
{
	assert_int_equal(unit_get_number(unit, P, O, OSD_USER_OBJECT_INFORMATION,
					 OSD_INFORMATION_LOGICAL_LENGTH),
			 length);
	read_range(unit, 0, length);
	expect_good(unit);
	assert_int_equal(unit->command.data_in_length, length);
	if (length > 0)
		assert_memory_equal(unit->data_in, expected, length);
}

static void test_what_was_written_is_read(void **state)
{
	struct unit *unit = *state;
	size_t sizes[] = { 1, 4095, 4096, 4097, 1 << 20 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint8_t *data = malloc(sizes[i]);

		for (size_t j = 0; j < sizes[i]; j++)
			data[j] = (uint8_t)(j * 31 + i);
		unit_write(unit, O, 0, data, sizes[i]);
		assert_int_equal(unit->command.data_out_used, sizes[i]);
		expect_object(unit, data, sizes[i]);
		free(data);
	}
}

static void test_a_write_behind_the_end_leaves_a_hole_of_zeros(void **state)
{
	struct unit *unit = *state;
	uint8_t expected[10003] = { 0 };

	unit_write(unit, O, 10000, "end", 3);
	memcpy(expected + 10000, "end", 3);
	expect_object(unit, expected, sizeof(expected));
}

static void test_a_write_of_nothing_changes_nothing(void **state)
{
	struct unit *unit = *state;

	unit_write(unit, O, 0, "hello", 5);
	unit_write(unit, O, 100, NULL, 0);
	expect_object(unit, "hello", 5);
}

static void test_a_read_across_the_end_is_filled_with_zeros_and_says_how_much_there_was(
	void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_READ, P, O);
	struct osd_sense sense;

	unit_write(unit, O, 0, "hello", 5);
	call.cdb.address = 2;
	call.cdb.length = call.data_in_capacity = 8;
	call_get(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH);
	call_run(unit, &call);
	expect_sense(unit, SENSE_RECOVERED_ERROR, SENSE_READ_PAST_END_OF_USER_OBJECT);
	sense = unit_sense(unit);
	assert_true(sense.has_information);
	assert_int_equal(sense.information, 3);
	assert_true(sense.has_command_information);
	assert_int_equal(sense.command_information, 3);
	assert_int_equal(sense.not_initiated, 0);
	assert_memory_equal(unit->data_in, "llo\0\0\0\0\0", 8);
	assert_int_equal(get_be64(unit_retrieved(unit, &call, 0).value), 5);
}

static void test_a_read_that_starts_at_the_end_points_at_the_address(void **state)
{
	struct unit *unit = *state;

	unit_write(unit, O, 0, "hello", 5);
	read_range(unit, 5, 1);
	expect_field(unit, 40);
	read_range(unit, UINT64_MAX - 1, 1);
	expect_field(unit, 40);
	read_range(unit, 5, 0);
	expect_good(unit);
	assert_int_equal(unit->command.data_in_length, 0);
}

static void test_append_writes_at_the_end_and_says_where(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_APPEND, P, O);

	unit_write(unit, O, 0, "hello", 5);
	call_data(&call, " you", 4);
	call_get(&call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_APPEND_ADDRESS);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(get_be64(unit_retrieved(unit, &call, 0).value), 5);
	expect_object(unit, "hello you", 9);
	call_data(&call, NULL, 0);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(get_be64(unit_retrieved(unit, &call, 0).value), 9);
}

static void run_range(struct unit *unit, uint16_t action, uint64_t address, uint64_t length)
{
	struct call call = call_of(action, P, O);

	call.cdb.address = address;
	call.cdb.length = length;
	call_run(unit, &call);
}

static void test_clear_writes_zeros_and_extends(void **state)
{
	struct unit *unit = *state;

	unit_write(unit, O, 0, "hello", 5);
	run_range(unit, OSD_CLEAR, 1, 2);
	expect_good(unit);
	expect_object(unit, "h\0\0lo", 5);
	run_range(unit, OSD_CLEAR, 4, 4);
	expect_good(unit);
	expect_object(unit, "h\0\0l\0\0\0\0", 8);
	run_range(unit, OSD_CLEAR, 100, 0);
	expect_good(unit);
	expect_object(unit, "h\0\0l\0\0\0\0", 8);
	run_range(unit, OSD_CLEAR, UINT64_MAX, 2);
	expect_field(unit, 40);
	run_range(unit, OSD_CLEAR, UINT64_MAX - 10, 2);
	expect_field(unit, 40);
}

static void test_punch_removes_the_range_and_moves_the_rest_down(void **state)
{
	struct unit *unit = *state;

	unit_write(unit, O, 0, "0123456789", 10);
	run_range(unit, OSD_PUNCH, 2, 3);
	expect_good(unit);
	expect_object(unit, "0156789", 7);
	run_range(unit, OSD_PUNCH, 5, UINT64_MAX);
	expect_good(unit);
	expect_object(unit, "01567", 5);
	run_range(unit, OSD_PUNCH, 5, 3);
	expect_good(unit);
	run_range(unit, OSD_PUNCH, 6, 1);
	expect_field(unit, 40);
	expect_object(unit, "01567", 5);
}

/* ---- lengths that do not fit the buffers ---- */

static void test_lengths_beyond_the_buffers_are_refused(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_WRITE, P, O);

	call_data(&call, "hello", 5);
	call.cdb.length = 6;
	call_run(unit, &call);
	expect_field(unit, 32);
	call.cdb.length = UINT64_MAX;
	call_run(unit, &call);
	expect_field(unit, 32);
	call.cdb.address = 1;
	call_run(unit, &call);
	expect_field(unit, 40);
	call = call_of(OSD_APPEND, P, O);
	call.cdb.length = 1;
	call_run(unit, &call);
	expect_field(unit, 32);
	call = call_of(OSD_READ, P, O);
	call.cdb.length = 6;
	call.data_in_capacity = 5;
	call_run(unit, &call);
	expect_field(unit, 32);
	call.cdb.length = UINT64_MAX;
	call_run(unit, &call);
	expect_field(unit, 32);
	expect_object(unit, NULL, 0);
}

static void test_less_command_data_than_data_out_is_used(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_WRITE, P, O);

	call_data(&call, "hello", 5);
	call.cdb.length = 2;
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit->command.data_out_used, 2);
	expect_object(unit, "he", 2);
}

static void test_an_address_that_no_object_can_have_is_refused(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_WRITE, P, O);

	call_data(&call, "hello", 5);
	call.cdb.address = UINT64_C(1) << 62;
	call_run(unit, &call);
	expect_field(unit, 40);
	expect_object(unit, NULL, 0);
}

/* ---- scatter/gather ---- */

static void test_scattered_writes_and_reads_go_where_the_list_says(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_WRITE, P, O);

	call_data(&call, "abcdefg", 7);
	call.cdb.length = 0;
	call.cdb.address = 100;
	call_piece(&call, 8, 3);
	call_piece(&call, 0, 2);
	call_piece(&call, 20, 0);
	call_piece(&call, 4, 2);
	call_set(&call, 0x10000, 1, "x", 1);
	call_run(unit, &call);
	expect_good(unit);

	read_range(unit, 100, 11);
	expect_good(unit);
	assert_memory_equal(unit->data_in, "de\0\0fg\0\0abc", 11);

	call = call_of(OSD_READ, P, O);
	call.cdb.address = 100;
	call_piece(&call, 9, 2);
	call_piece(&call, 0, 5);
	call.data_in_capacity = 7;
	call_get(&call, 0x10000, 1);
	call_run(unit, &call);
	expect_good(unit);
	assert_memory_equal(unit->data_in, "bcde\0\0f", 7);
	assert_memory_equal(unit_retrieved(unit, &call, 0).value, "x", 1);
}

static void test_a_scattered_read_past_the_end_counts_what_was_there(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_READ, P, O);

	unit_write(unit, O, 0, "hello", 5);
	call_piece(&call, 3, 4);
	call_piece(&call, 9, 2);
	call_piece(&call, 0, 1);
	call.data_in_capacity = 7;
	call_run(unit, &call);
	expect_sense(unit, SENSE_RECOVERED_ERROR, SENSE_READ_PAST_END_OF_USER_OBJECT);
	assert_int_equal(unit_sense(unit).information, 3);
	assert_memory_equal(unit->data_in, "lo\0\0\0\0h", 7);

	call = call_of(OSD_READ, P, O);
	call_piece(&call, 0, 1);
	call_piece(&call, 9, 2);
	call.data_in_capacity = 3;
	call_run(unit, &call);
	expect_sense(unit, SENSE_RECOVERED_ERROR, SENSE_READ_PAST_END_OF_USER_OBJECT);

	call = call_of(OSD_READ, P, O);
	call_piece(&call, 5, 4);
	call_piece(&call, 9, 2);
	call.data_in_capacity = 6;
	call_run(unit, &call);
	expect_field(unit, 40);
}

static void test_bad_scatter_lists_are_refused(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_WRITE, P, O);

	call_data(&call, "abcdefg", 7);
	call.cdb.length = 0;
	call_piece(&call, 0, 3);
	call_piece(&call, 8, 3);
	call.cdb.length = 7; /* not the sum */
	call_run(unit, &call);
	expect_field(unit, 32);
	call.cdb.length = 6;
	call.pieces[1].offset = UINT64_MAX - 1;
	call_run(unit, &call);
	expect_field(unit, 48);
	call.pieces[1] = (struct osd_piece){ 0, UINT64_MAX - 2 };
	call.cdb.length = 0; /* the sum, modulo 2^64 */
	call_run(unit, &call);
	expect_field(unit, 48);
	expect_object(unit, NULL, 0);
}

static void test_continuation_segments_where_none_belongs_are_refused(void **state)
{
	static const uint16_t actions[] = { OSD_APPEND,          OSD_CLEAR,          OSD_PUNCH,
					    OSD_CREATE,          OSD_REMOVE,         OSD_FORMAT_OSD,
					    OSD_GET_ATTRIBUTES,  OSD_SET_ATTRIBUTES, OSD_FLUSH,
					    OSD_CREATE_PARTITION };
	struct unit *unit = *state;

	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		struct call call = call_of(actions[i], P, O);

		call_piece(&call, 0, 0);
		call_run(unit, &call);
		expect_field(unit, 48);
	}
}

static void test_malformed_continuation_segments_are_refused(void **state)
{
	static const struct {
		size_t at;
		uint8_t value;
	} changes[] = {
		{ 0, 2 },     /* format */
		{ 3, 0x85 },  /* another action */
		{ 41, 2 },    /* descriptor type */
		{ 43, 1 },    /* padding */
		{ 47, 0x28 }, /* longer than the segment */
		{ 47, 8 },    /* half a piece, and another descriptor behind it */
	};
	struct unit *unit = *state;
	struct osd_cdb decoded = { .version = OSD_2,
				   .action = OSD_WRITE,
				   .format = OSD_ATTRIBUTES_LIST,
				   .partition = P,
				   .object = O,
				   .length = 2 };
	static const struct osd_piece pieces[] = { { 0, 1 }, { 4, 1 } };
	uint8_t cdb[OSD_CDB_BYTES_MAX], out[82] = { 0 };

	decoded.continuation_length =
		(uint32_t)osd_continuation_encode(OSD_WRITE, pieces, 2, out, sizeof(out));
	assert_int_equal(osd_cdb_encode(&decoded, cdb, NULL), 0);
	unit_execute(unit, cdb, OSD2_CDB_BYTES, out, sizeof(out), 0);
	expect_good(unit);
	unit_execute(unit, cdb, OSD2_CDB_BYTES, out, 79, 0);
	expect_field(unit, 48);
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		uint8_t bad[82];

		memcpy(bad, out, sizeof(bad));
		bad[changes[i].at] = changes[i].value;
		unit_execute(unit, cdb, OSD2_CDB_BYTES, bad, sizeof(bad), 0);
		expect_field(unit, 48);
	}
}

static void test_a_continuation_segment_may_be_as_long_as_the_root_says_and_no_longer(void **state)
{
	struct unit *unit = *state;
	uint8_t value[4] = { 0 };
	uint32_t value_length = unit_get(unit, 0, 0, OSD_ROOT_INFORMATION,
					 OSD_ROOT_CONTINUATION_LENGTH_MAX, value, 4);
	size_t most = get_be32(value);
	size_t count = (most - OSD_SCATTER_GATHER_BYTES(0)) / 16 + 1;
	struct osd_piece *pieces = calloc(count, sizeof(*pieces));
	size_t bytes = OSD_SCATTER_GATHER_BYTES(count);
	uint8_t cdb[OSD_CDB_BYTES_MAX], *out = calloc(1, bytes + 1);

	assert_int_equal(value_length, 4);
	assert_true(pieces && out);
	pieces[0] = (struct osd_piece){ 5, 1 }; /* the others are empty */
	for (size_t used = count - 1; used <= count; used++) {
		struct osd_cdb decoded = { .version = OSD_2,
					   .action = OSD_WRITE,
					   .format = OSD_ATTRIBUTES_LIST,
					   .partition = P,
					   .object = O,
					   .length = 1 };

		decoded.continuation_length =
			(uint32_t)osd_continuation_encode(OSD_WRITE, pieces, used, out, bytes);
		assert_int_equal(osd_cdb_encode(&decoded, cdb, NULL), 0);
		assert_int_equal(decoded.continuation_length <= most, used < count);
		unit_execute(unit, cdb, OSD2_CDB_BYTES, out, decoded.continuation_length + 1, 0);
		if (used < count)
			shows_good(unit, WRITE, "a continuation segment of 65,536 bytes");
		else
			shows_field(unit, WRITE, "a continuation segment above 65,536 bytes", 48);
	}
	free(pieces);
	free(out);
}

/* ---- a full device ---- */

static void test_a_full_device_refuses_writes_as_no_space_and_still_reads_and_removes(void **state)
{
	struct unit *unit = *state;
	size_t size = 1 << 20, written = 0, appended = 0;
	uint8_t *data = malloc(size);
	struct call call;

	(void)state;
	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)(i * 7 + i / 4096);
	for (;;) {
		call = call_of(OSD_CREATE_AND_WRITE, P, O + 1 + written);
		call_data(&call, data, size);
		call_run(unit, &call);
		if (unit->command.status != SCSI_STATUS_GOOD)
			break;
		assert_true(++written < 1000);
	}
	shows_sense(unit, CREATE_AND_WRITE, "the device is full", DATA_PROTECT, QUOTA_ERROR);
	assert_true(written > 8);
	call = call_of(OSD_READ, P, O + written);
	call.cdb.length = call.data_in_capacity = size;
	call_run(unit, &call);
	expect_good(unit);
	assert_memory_equal(unit->data_in, data, size);
	call = call_of(OSD_READ, P, O + 1 + written); /* nothing of the one that failed is left */
	call_run(unit, &call);
	expect_field(unit, 24);
	/* To the last byte. */
	do {
		call = call_of(OSD_APPEND, P, O);
		call_data(&call, data, 1);
		call_run(unit, &call);
		assert_true(++appended < size);
	} while (unit->command.status == SCSI_STATUS_GOOD);
	shows_sense(unit, APPEND, "the device is full", DATA_PROTECT, QUOTA_ERROR);
	call = call_of(OSD_SET_ATTRIBUTES, P, O + 1);
	call_set_number(&call, 1, OSD_INFORMATION_LOGICAL_LENGTH, 0);
	call_run(unit, &call);
	expect_good(unit);
	for (size_t i = 0; i < written; i++) {
		call = call_of(OSD_REMOVE, P, O + 1 + i);
		call_run(unit, &call);
		expect_good(unit);
	}
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object(test_what_was_written_is_read),
		with_object(test_a_write_behind_the_end_leaves_a_hole_of_zeros),
		with_object(test_a_write_of_nothing_changes_nothing),
		with_object(
			test_a_read_across_the_end_is_filled_with_zeros_and_says_how_much_there_was),
		with_object(test_a_read_that_starts_at_the_end_points_at_the_address),
		with_object(test_append_writes_at_the_end_and_says_where),
		with_object(test_clear_writes_zeros_and_extends),
		with_object(test_punch_removes_the_range_and_moves_the_rest_down),
		with_object(test_lengths_beyond_the_buffers_are_refused),
		with_object(test_less_command_data_than_data_out_is_used),
		with_object(test_an_address_that_no_object_can_have_is_refused),
		with_object(test_scattered_writes_and_reads_go_where_the_list_says),
		with_object(test_a_scattered_read_past_the_end_counts_what_was_there),
		with_object(test_bad_scatter_lists_are_refused),
		with_object(test_continuation_segments_where_none_belongs_are_refused),
		with_object(test_malformed_continuation_segments_are_refused),
		with_object(
			test_a_continuation_segment_may_be_as_long_as_the_root_says_and_no_longer),
		with_object(
			test_a_full_device_refuses_writes_as_no_space_and_still_reads_and_removes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
