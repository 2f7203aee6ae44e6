/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Where the parts of Data-Out and Data-In are: segments in any order, with gaps, at offsets of
 * every exponent, in both versions; and what is used and sent of the buffers, from which residuals
 * are reckoned.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/osd/secured.h"

#define PAGE     0xF0000010u
#define OUT_MAX  (UINT64_C(1) << 20)
#define ROOM     64u
#define GARBAGE  0xEE /* between segments: nobody looks at it */
#define DATA_LEN 5u

/* A command with a set list and a get list, and where everything is. */
struct placed {
	uint16_t action;
	uint64_t data;      /* where the data is: behind the continuation segment; none in commands
			       without */
	uint64_t set, get;  /* offsets in Data-Out */
	uint64_t retrieved; /* and in Data-In */
	uint64_t behind;    /* further bytes of Data-Out, and of Data-In's room */
};

static uint8_t *out;

/*
 * The form of an offset with this exponent (as in the CDB: OSD-2 signed); the offset must have one.
 */
static uint32_t form(uint64_t offset, int exponent)
{
	uint64_t unit = UINT64_C(1) << (exponent + 8);

	assert_int_equal(offset % unit, 0);
	assert_true(offset / unit < 1 << 28);
	return (uint32_t)exponent << 28 | (uint32_t)(offset / unit);
}

static size_t put_list(enum osd_list_role role, uint8_t *at)
{
	struct osd_list_writer writer;

	osd_list_begin(&writer, unit_version, role, at, 128);
	if (role == OSD_LIST_TO_SET)
		assert_true(osd_list_add_value(&writer, PAGE, 1, "value", 5));
	else
		assert_true(osd_list_add_request(&writer, PAGE, 1));
	return osd_list_end(&writer);
}

/* Executes it with offsets of these exponents. */
static void run_placed(struct unit *unit, const struct placed *placed, int set_exponent,
		       int get_exponent, int retrieved_exponent)
{
	struct call call = call_of(placed->action, P, O);
	uint8_t cdb[OSD_CDB_BYTES_MAX];
	size_t length, set_bytes, get_bytes;
	bool writes = placed->action == OSD_WRITE, reads = placed->action == OSD_READ;
	uint64_t end = placed->data + (writes ? DATA_LEN : 0);

	memset(out, GARBAGE, OUT_MAX);
	set_bytes = put_list(OSD_LIST_TO_SET, out + placed->set);
	get_bytes = put_list(OSD_LIST_TO_GET, out + placed->get);
	if (writes)
		memcpy(out + placed->data, "hello", DATA_LEN);
	call.cdb.length = writes || reads ? DATA_LEN : 0;
	assert_int_equal(osd_cdb_encode(&call.cdb, cdb, &length), 0);
	put_be32(cdb + 52, (uint32_t)get_bytes);
	put_be32(cdb + 56, form(placed->get, get_exponent));
	put_be32(cdb + 60, ROOM);
	put_be32(cdb + 64, form(placed->retrieved, retrieved_exponent));
	put_be32(cdb + 68, (uint32_t)set_bytes);
	put_be32(cdb + 72, form(placed->set, set_exponent));
	end = max_u64(end, max_u64(placed->set + set_bytes, placed->get + get_bytes));
	unit_execute(unit, cdb, length, out, end + placed->behind,
		     placed->retrieved + ROOM + placed->behind);
	if (unit->command.status == SCSI_STATUS_GOOD)
		assert_int_equal(unit->command.data_out_used, end);
}

/* The set has happened and its value was retrieved, behind data and zeros. */
static void expect_done(struct unit *unit, const struct placed *placed)
{
	size_t entry = unit_version == OSD_1 ? 10 : 16, head = unit_version == OSD_1 ? 4 : 8;
	size_t bytes = head + (unit_version == OSD_1 ? entry + 5 : align_up(entry + 5, 8));
	const uint8_t *answer;
	bool reads = placed->action == OSD_READ;
	uint8_t value[5];

	expect_good(unit);
	assert_int_equal(unit->command.data_in_length, placed->retrieved + bytes);
	answer = unit->data_in + placed->retrieved;
	assert_int_equal(answer[0], OSD_LIST_TYPE_VALUES);
	assert_int_equal(get_be32(answer + head), PAGE);
	assert_memory_equal(answer + head + entry, "value", 5);
	if (reads)
		assert_memory_equal(unit->data_in, "hello", DATA_LEN);
	for (uint64_t at = reads ? DATA_LEN : 0; at < placed->retrieved; at++)
		assert_int_equal(unit->data_in[at], 0);
	assert_int_equal(unit_get(unit, P, O, PAGE, 1, value, 5), 5);
	unit_set(unit, P, O, PAGE, 1, NULL, 0);
}

/* ---- orders and gaps ---- */

static const struct placed orders[] = {
	/* data, sets, gets; with and without gaps */
	{ OSD_WRITE, 0, 256, 512, 0, 0 },
	{ OSD_WRITE, 0, 512, 256, 256, 0 },
	{ OSD_WRITE, 0, 65536, 256, 65536, 0 },
	{ OSD_WRITE, 0, 256, 65536, 512, 300 },
	/* no data: lists at the very beginning, in either order */
	{ OSD_SET_ATTRIBUTES, 0, 0, 256, 0, 0 },
	{ OSD_SET_ATTRIBUTES, 0, 256, 0, 256, 7 },
	{ OSD_SET_ATTRIBUTES, 0, 65536, 0, 4096, 0 },
	/* data in, in front of the answer, behind a gap or not */
	{ OSD_READ, 0, 0, 256, 256, 0 },
	{ OSD_READ, 0, 512, 0, 4096, 9 },
	{ OSD_READ, 0, 0, 65536, 65536, 1 },
};

#define ORDERS (sizeof(orders) / sizeof(orders[0]))

static void test_segments_may_be_in_any_order_with_gaps(void **state)
{
	struct unit *unit = *state;

	unit_write(unit, O, 0, "hello", DATA_LEN);
	for (size_t i = 0; i < ORDERS; i++) {
		run_placed(unit, &orders[i], 0, 0, 0);
		expect_done(unit, &orders[i]);
	}
}

/*
 * The one data that does not begin at byte 0 is the answer of the atomics, whose CDB says where it
 * is.
 */
enum { ANSWER_AT = 512, ANSWER_END = ANSWER_AT + 8 };

static struct call count_call(void)
{
	static const uint8_t three[8] = { [7] = 3 };
	struct call call = call_of(OSD_FETCH_AND_ADD, P, O);

	call_data(&call, three, sizeof(three));
	call.cdb.address = ANSWER_AT;
	call.data_in_capacity = ANSWER_END;
	call.retrieved_capacity = ROOM;
	call_set(&call, PAGE, 1, "value", 5);
	call_get(&call, PAGE, 1);
	return call;
}

/* Zeros, but for the list of ROOM bytes at most at `retrieved`, and the number `before`. */
static void expect_count(struct unit *unit, uint64_t retrieved, uint64_t before)
{
	const uint8_t *answer = unit->data_in + retrieved;

	expect_good(unit);
	assert_true(unit->command.data_in_length >= ANSWER_END);
	assert_int_equal(get_be64(unit->data_in + ANSWER_AT), before);
	assert_int_equal(answer[0], OSD_LIST_TYPE_VALUES);
	assert_int_equal(get_be32(answer + 4), 24);
	assert_int_equal(get_be32(answer + 8), PAGE);
	assert_memory_equal(answer + 24, "value", 5);
	for (uint64_t at = 0; at < ANSWER_AT; at++)
		if (at < retrieved || at >= retrieved + 32)
			assert_int_equal(unit->data_in[at], 0);
}

static void test_attributes_may_be_in_front_of_data_whose_place_the_cdb_says(void **state)
{
	static const uint64_t places[] = { 0, 256, ANSWER_AT - ROOM };
	struct unit *unit = *state;
	struct call call = count_call();
	struct encoded_call encoded;
	uint64_t count = 0;

	call_encode(&call, &encoded);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++, count += 3) {
		put_be32(encoded.cdb + 64, form(places[i], -5));
		unit_execute(unit, encoded.cdb, encoded.cdb_length, encoded.out, encoded.out_length,
			     ANSWER_END);
		expect_count(unit, places[i], count);
		assert_int_equal(unit->command.data_in_length, ANSWER_END);
	}
	/* Into the number, and onto it. */
	for (uint64_t at = ANSWER_AT - ROOM + 8; at <= ANSWER_AT; at += ROOM - 8) {
		put_be32(encoded.cdb + 64, form(at, -5));
		unit_execute(unit, encoded.cdb, encoded.cdb_length, encoded.out, encoded.out_length,
			     2 * ANSWER_END);
		expect_field(unit, 64);
	}
	free(encoded.out);
}

/* The check value covers the data from byte 0 on, and the attributes. */
static void test_attributes_in_front_of_data_are_signed_with_it(void **state)
{
	struct unit *unit = *state;
	struct signed_call call = signed_call_of(unit, OSD_FETCH_AND_ADD, P, O, OSD_ALLDATA);
	struct encoded_call encoded;
	struct call plain = count_call();
	const uint8_t *information;

	plain.cdb = call.call.cdb;
	plain.cdb.length = 8;
	plain.cdb.address = ANSWER_AT;
	call.call = plain;
	signed_encode(unit, &call, &encoded);
	put_be32(encoded.cdb + 64, form(256, -5));
	call.call.cdb.retrieved.offset = 256;
	signed_again(unit, &call, &encoded);
	signed_execute(unit, &call, &encoded);
	expect_count(unit, 256, 0);
	information =
		unit->data_in + unit->command.data_in_length - osd_data_in_integrity_bytes(OSD_2);
	assert_int_equal(get_be64(information), ANSWER_END);
	assert_int_equal(get_be64(information + 8), 8 + 24);
}

/* ---- exponents ---- */

static void test_an_offset_means_the_same_in_all_its_forms(void **state)
{
	static const struct placed placed = { OSD_WRITE, 0, 65536, 131072, 65536, 0 };
	struct unit *unit = *state;
	int first = unit_version == OSD_1 ? 0 : -5, last = unit_version == OSD_1 ? 8 : 7;

	for (int exponent = first; exponent <= last; exponent++) {
		run_placed(unit, &placed, exponent, first, first);
		expect_done(unit, &placed);
		run_placed(unit, &placed, first, exponent, last);
		expect_done(unit, &placed);
		run_placed(unit, &placed, last, last, exponent);
		expect_done(unit, &placed);
	}
}

static void test_osd2_aligns_to_8_bytes(void **state)
{
	struct unit *unit = *state;

	for (uint64_t offset = 8; offset < 256; offset += 8) {
		struct placed placed = { OSD_WRITE, 0, offset, offset + 64, offset, 0 };

		run_placed(unit, &placed, -5, -5, -5);
		expect_done(unit, &placed);
	}
}

/* Exponents below -5 would be offsets that are no multiple of 8. */
static void test_osd2_refuses_smaller_units(void **state)
{
	static const struct placed placed = { OSD_WRITE, 0, 256, 512, 256, 0 };
	struct unit *unit = *state;

	for (int exponent = -8; exponent < -5; exponent++) {
		run_placed(unit, &placed, exponent, 0, 0);
		expect_field(unit, 72);
		run_placed(unit, &placed, 0, exponent, 0);
		expect_field(unit, 56);
		run_placed(unit, &placed, 0, 0, exponent);
		expect_field(unit, 64);
	}
}

static void test_offsets_beyond_all_buffers_are_refused(void **state)
{
	static const uint16_t fields[] = { 56, 64, 72 };
	static const uint16_t answers[] = { 52, 60, 68 }; /* the length is what does not fit */
	static const uint32_t forms[] = { 0x7FFFFFFF, 0x0FFFFFFF, 0x70000010, 0xF0000010 };
	struct unit *unit = *state;

	for (size_t i = 0; i < 3; i++) {
		for (size_t j = 0; j < sizeof(forms) / sizeof(forms[0]); j++) {
			struct call call = call_of(OSD_SET_ATTRIBUTES, P, O);
			struct encoded_call encoded;

			call_set(&call, PAGE, 1, "value", 5);
			call_get(&call, PAGE, 1);
			call.retrieved_capacity = ROOM;
			call_encode(&call, &encoded);
			put_be32(encoded.cdb + fields[i], forms[j]);
			unit_execute(unit, encoded.cdb, encoded.cdb_length, encoded.out,
				     encoded.out_length, encoded.in_capacity);
			free(encoded.out);
			expect_field(unit, answers[i]);
		}
	}
}

/* ---- what is not there ---- */

/* Every initiator has its own offset for a segment that is not there. */
static void test_the_offset_of_an_absent_segment_means_nothing(void **state)
{
	static const uint32_t forms[] = { 0, 0xFFFFFFFF, 0xB0000000, 0x7FFFFFFF, 0x80000001 };
	static const uint16_t fields[] = { 56, 64, 72 };
	struct unit *unit = *state;

	for (size_t i = 0; i < 3; i++) {
		for (size_t j = 0; j < sizeof(forms) / sizeof(forms[0]); j++) {
			struct call call = call_of(OSD_WRITE, P, O);
			struct encoded_call encoded;

			call_data(&call, "hello", DATA_LEN);
			call_encode(&call, &encoded);
			put_be32(encoded.cdb + fields[i], forms[j]);
			unit_execute(unit, encoded.cdb, encoded.cdb_length, encoded.out,
				     encoded.out_length, 16);
			free(encoded.out);
			expect_good(unit);
			assert_int_equal(unit->command.data_out_used, DATA_LEN);
			assert_int_equal(unit->command.data_in_length, 0);
		}
	}
}

/* ---- residuals ---- */

static void test_what_is_used_of_the_buffers_leaves_the_residuals(void **state)
{
	struct unit *unit = *state;
	struct call call;

	unit_write(unit, O, 0, "hello", DATA_LEN);
	for (size_t more = 0; more < 20; more++) {
		uint8_t data[32] = "hello";
		struct encoded_call encoded;

		/* More Data-Out than the command describes, more room than it fills. */
		call = call_of(OSD_WRITE, P, O);
		call.cdb.length = DATA_LEN;
		call_encode(&call, &encoded);
		unit_execute(unit, encoded.cdb, encoded.cdb_length, data, DATA_LEN + more, more);
		free(encoded.out);
		expect_good(unit);
		assert_int_equal(unit->command.data_out_used, DATA_LEN);
		assert_int_equal(unit->command.data_in_length, 0);
		call = call_of(OSD_READ, P, O);
		call.cdb.length = DATA_LEN;
		call.data_in_capacity = DATA_LEN + more;
		call_run(unit, &call);
		expect_good(unit);
		assert_int_equal(unit->command.data_in_length, DATA_LEN);
		/* A list has as much as there is, or as there is room for. */
		call = call_of(OSD_LIST, P, 0);
		call.cdb.length = 24 + more;
		call.data_in_capacity = 64;
		call_run(unit, &call);
		expect_good(unit);
		assert_int_equal(unit->command.data_in_length, more < 8 ? 24 : 32);
	}
	/* A command that fails sends nothing, whatever it has found out before. */
	call = call_of(OSD_READ, P, O);
	call.cdb.length = call.data_in_capacity = DATA_LEN;
	call_get(&call, OSD_ROOT_INFORMATION, 1);
	call_run(unit, &call);
	assert_int_equal(unit->command.status, SCSI_STATUS_CHECK_CONDITION);
	assert_int_equal(unit->command.data_in_length, 0);
}

/* ---- continuation segment, data and lists together ---- */

static void test_data_is_behind_the_continuation_segment_and_lists_behind_it(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_WRITE, P, O);
	struct encoded_call encoded;
	size_t data;

	call_piece(&call, 100, 2);
	call_piece(&call, 7, 3);
	call_data(&call, "abcde", 5);
	call_set(&call, PAGE, 1, "value", 5);
	call_get(&call, PAGE, 1);
	call.retrieved_capacity = ROOM;
	call_encode(&call, &encoded);
	data = get_be32(encoded.cdb + 48);
	assert_int_equal(data % 8, 0);
	assert_memory_equal(encoded.out + data, "abcde", 5);
	unit_execute(unit, encoded.cdb, encoded.cdb_length, encoded.out, encoded.out_length,
		     encoded.in_capacity);
	expect_good(unit);
	assert_int_equal(unit->command.data_out_used, encoded.out_length);
	/* A list inside the continuation segment, or in the data. */
	for (size_t at = 0; at < data + 5; at += 8) {
		put_be32(encoded.cdb + 72, form(at, -5));
		unit_execute(unit, encoded.cdb, encoded.cdb_length, encoded.out, encoded.out_length,
			     encoded.in_capacity);
		expect_field(unit, 72);
	}
	free(encoded.out);
	call = call_of(OSD_READ, P, O);
	call.cdb.length = call.data_in_capacity = 102;
	call_run(unit, &call);
	expect_good(unit);
	assert_memory_equal(unit->data_in + 7, "cde", 3);
	assert_memory_equal(unit->data_in + 100, "ab", 2);
}

static int make_buffer(void **state)
{
	(void)state;
	out = malloc(OUT_MAX);
	return out ? 0 : -1;
}

static int free_buffer(void **state)
{
	(void)state;
	free(out);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object_in_both(test_segments_may_be_in_any_order_with_gaps),
		with_object_in_both(test_an_offset_means_the_same_in_all_its_forms),
		with_object(test_attributes_may_be_in_front_of_data_whose_place_the_cdb_says),
		with_keys(test_attributes_in_front_of_data_are_signed_with_it),
		with_object(test_osd2_aligns_to_8_bytes),
		with_object(test_osd2_refuses_smaller_units),
		with_object_in_both(test_offsets_beyond_all_buffers_are_refused),
		with_object_in_both(test_the_offset_of_an_absent_segment_means_nothing),
		with_object_in_both(test_what_is_used_of_the_buffers_leaves_the_residuals),
		with_object(test_data_is_behind_the_continuation_segment_and_lists_behind_it),
	};

	return cmocka_run_group_tests(tests, make_buffer, free_buffer);
}
