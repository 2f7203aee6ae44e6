/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Attribute lists, continuation segments, LIST data, sense and INQUIRY data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/wire/hex.h"
#include "wire/wire.h"

static void test_the_attach_question_is_written_as_linux_does(void **state)
{
	static const uint32_t numbers[] = { 4, 5, 6, 7, 8, 9, 0x80, 0x81, 0xC0, 0x100, 3 };
	uint8_t expected[96] = { 0 }, list[96];
	struct osd_list_writer writer;
	struct osd_list_reader reader;
	struct osd_attribute attribute;

	(void)state;
	hex_rows(LINUX_ATTACH_OUT, expected, sizeof(expected));
	osd_list_begin(&writer, OSD_2, OSD_LIST_TO_GET, list, sizeof(list));
	for (size_t i = 0; i < 11; i++)
		assert_true(osd_list_add_request(&writer, OSD_ROOT_INFORMATION, numbers[i]));
	assert_int_equal(osd_list_end(&writer), 96);
	assert_memory_equal(list, expected, 96);
	assert_false(osd_list_add_request(&writer, OSD_ROOT_INFORMATION, 1));

	assert_int_equal(osd_list_read(&reader, OSD_2, OSD_LIST_TO_GET, expected, sizeof(expected)),
			 0);
	for (size_t i = 0; i < 11; i++) {
		assert_int_equal(osd_list_next(&reader, &attribute), 1);
		assert_int_equal(attribute.page, OSD_ROOT_INFORMATION);
		assert_int_equal(attribute.number, numbers[i]);
	}
	assert_int_equal(osd_list_next(&reader, &attribute), 0);
}

/* The set list (2/1 = 0x80000000, 1/9 = "ktest") of the WRITE examples. */
static void write_set_list(enum osd_version version, const uint8_t *expected, size_t bytes)
{
	struct osd_list_writer writer;
	uint8_t list[64], length[8];

	put_be64(length, 0x80000000);
	osd_list_begin(&writer, version, OSD_LIST_TO_SET, list, sizeof(list));
	assert_true(osd_list_add_value(&writer, OSD_USER_OBJECT_QUOTAS, OSD_QUOTA_MAXIMUM_LENGTH,
				       length, 8));
	assert_true(osd_list_add_value(&writer, OSD_USER_OBJECT_INFORMATION,
				       OSD_INFORMATION_USERNAME, "ktest", 5));
	assert_int_equal(osd_list_end(&writer), bytes);
	assert_memory_equal(list, expected, bytes);
}

static void read_set_list(enum osd_version version, const uint8_t *list, size_t bytes)
{
	struct osd_list_reader reader;
	struct osd_attribute attribute;

	assert_int_equal(osd_list_read(&reader, version, OSD_LIST_TO_SET, list, bytes), 0);
	assert_int_equal(osd_list_next(&reader, &attribute), 1);
	assert_int_equal(attribute.page, 2);
	assert_int_equal(attribute.length, 8);
	assert_int_equal(get_be64(attribute.value), 0x80000000);
	assert_int_equal(osd_list_next(&reader, &attribute), 1);
	assert_int_equal(attribute.number, 9);
	assert_int_equal(attribute.present, 5);
	assert_memory_equal(attribute.value, "ktest", 5);
	assert_int_equal(osd_list_next(&reader, &attribute), 0);
}

static void test_set_lists_of_both_versions_match_the_examples(void **state)
{
	uint8_t out[524] = { 0 };

	(void)state;
	hex_rows(LINUX_WRITE_ATTRIBUTES_OUT, out, sizeof(out));
	write_set_list(OSD_2, out + 8, 56);
	read_set_list(OSD_2, out + 8, 56);
	read_set_list(OSD_2, out + 8, 53); /* without the last padding */
	memset(out, 0, sizeof(out));
	hex_rows(LINUX_OSD1_WRITE_OUT, out, sizeof(out));
	write_set_list(OSD_1, out + 256, 37);
	read_set_list(OSD_1, out + 256, 37);
}

static void test_retrieved_lists_match_the_examples(void **state)
{
	uint8_t expected[64] = { 0 }, list[64], number[8];
	struct osd_list_writer writer;

	(void)state;
	hex_rows(LINUX_READ_IN, expected, sizeof(expected));
	osd_list_begin(&writer, OSD_2, OSD_LIST_RETRIEVED, list, 56);
	put_be64(number, 4096);
	assert_true(osd_list_add_value(&writer, 1, 0x81, number, 8));
	put_be64(number, 5);
	assert_true(osd_list_add_value(&writer, 1, 0x82, number, 8));
	assert_int_equal(osd_list_end(&writer), 56);
	assert_memory_equal(list, expected + 8, 56);

	memset(expected, 0, sizeof(expected));
	hex_rows(UNDEFINED_ATTRIBUTES_IN, expected, sizeof(expected));
	osd_list_begin(&writer, OSD_2, OSD_LIST_RETRIEVED, list, sizeof(list));
	for (uint32_t i = 1; i <= 3; i++)
		assert_true(osd_list_add_value(&writer, 0x10003, i, NULL, 0));
	assert_int_equal(osd_list_end(&writer), 56);
	assert_memory_equal(list, expected, 56);
}

static void test_a_retrieved_list_is_cut_at_its_allocation_and_reads_back(void **state)
{
	uint8_t value[20];

	(void)state;
	memset(value, 0xAA, sizeof(value));
	for (enum osd_version version = OSD_1; version <= OSD_2; version++) {
		size_t whole = osd_list_head_bytes(version) +
			       2 * osd_list_entry_bytes(version, sizeof(value));

		for (size_t capacity = 0; capacity <= whole + 8; capacity++) {
			uint8_t *list = malloc(capacity + 1);
			struct osd_list_writer writer;
			struct osd_list_reader reader;
			struct osd_attribute attribute;
			size_t length, read = 0;

			memset(list, 0x55, capacity + 1);
			osd_list_begin(&writer, version, OSD_LIST_RETRIEVED, list, capacity);
			osd_list_add_value(&writer, 1, 9, value, sizeof(value));
			osd_list_add_value(&writer, 1, 9, value, sizeof(value));
			length = osd_list_end(&writer);
			assert_true(length <= capacity && length <= whole);
			assert_int_equal(list[length], 0x55);
			assert_int_equal(writer.truncated, capacity < whole);
			if (length > 0) {
				assert_int_equal(osd_list_read(&reader, version, OSD_LIST_RETRIEVED,
							       list, length),
						 0);
				while (osd_list_next(&reader, &attribute) == 1) {
					assert_int_equal(attribute.length, sizeof(value));
					assert_true(attribute.present <= sizeof(value));
					assert_memory_equal(attribute.value, value,
							    attribute.present);
					read++;
				}
			}
			assert_int_equal(capacity >= whole, read == 2 && !writer.truncated);
			free(list);
		}
	}
}

static void test_malformed_lists_are_refused(void **state)
{
	uint8_t out[80] = { 0 };
	struct osd_list_reader reader;
	struct osd_attribute attribute;

	(void)state;
	hex_rows(LINUX_WRITE_ATTRIBUTES_OUT, out, sizeof(out));
	assert_int_equal(osd_list_read(&reader, OSD_2, OSD_LIST_TO_SET, out + 8, 7), -EMSGSIZE);
	assert_int_equal(osd_list_read(&reader, OSD_2, OSD_LIST_TO_GET, out + 8, 56), -EINVAL);
	/* entry beyond the list */
	assert_int_equal(osd_list_read(&reader, OSD_2, OSD_LIST_TO_SET, out + 8, 52), 0);
	assert_int_equal(osd_list_next(&reader, &attribute), 1);
	assert_int_equal(osd_list_next(&reader, &attribute), -EMSGSIZE);
	/* a piece of an entry's head */
	assert_int_equal(osd_list_read(&reader, OSD_2, OSD_LIST_TO_GET, out + 64, 16), 0);
	assert_int_equal(osd_list_read(&reader, OSD_2, OSD_LIST_TO_GET, out + 64, 15), 0);
	assert_int_equal(osd_list_next(&reader, &attribute), -EMSGSIZE);
}

static void test_a_retrieved_list_that_claims_too_much_is_bounded_by_the_buffer(void **state)
{
	uint8_t in[64] = { 0 };
	struct osd_list_reader reader;
	struct osd_attribute attribute;
	int entries = 0;

	(void)state;
	hex_rows(LINUX_READ_IN, in, sizeof(in));
	put_be32(in + 12, 0xFFFFFFFF);
	assert_int_equal(osd_list_read(&reader, OSD_2, OSD_LIST_RETRIEVED, in + 8, 56), 0);
	while (osd_list_next(&reader, &attribute) == 1)
		entries++;
	assert_int_equal(entries, 2);
}

static void test_a_scatter_gather_segment_matches_the_example(void **state)
{
	static const struct osd_piece pieces[] = { { 0, 2 }, { 8, 3 } };
	uint8_t expected[85] = { 0 }, segment[80];
	struct osd_continuation continuation;
	struct osd_descriptor descriptor;
	struct osd_piece piece;

	(void)state;
	hex_rows(LINUX_WRITE_SCATTERED_OUT, expected, sizeof(expected));
	assert_int_equal(osd_continuation_encode(OSD_WRITE, pieces, 2, segment, sizeof(segment)),
			 80);
	assert_memory_equal(segment, expected, 80);
	assert_int_equal(osd_continuation_encode(OSD_WRITE, pieces, 2, segment, 79), 0);

	assert_int_equal(osd_continuation_read(&continuation, OSD_WRITE, expected, 80), 0);
	assert_int_equal(osd_continuation_next(&continuation, &descriptor), 1);
	assert_int_equal(descriptor.type, OSD_CONTINUATION_SCATTER_GATHER);
	assert_int_equal(descriptor.length, 32);
	osd_piece_decode(&descriptor, 1, &piece);
	assert_int_equal(piece.offset, 8);
	assert_int_equal(piece.length, 3);
	assert_int_equal(osd_continuation_next(&continuation, &descriptor), 0);
}

static void test_malformed_continuation_segments_are_refused(void **state)
{
	uint8_t segment[85] = { 0 };
	struct osd_continuation continuation;
	struct osd_descriptor descriptor;

	(void)state;
	hex_rows(LINUX_WRITE_SCATTERED_OUT, segment, sizeof(segment));
	assert_int_equal(osd_continuation_read(&continuation, OSD_READ, segment, 80), -EINVAL);
	assert_int_equal(osd_continuation_read(&continuation, OSD_WRITE, segment, 40), -EINVAL);
	put_be32(segment + 44, 0xFFFFFFF8);
	assert_int_equal(osd_continuation_read(&continuation, OSD_WRITE, segment, 80), 0);
	assert_int_equal(osd_continuation_next(&continuation, &descriptor), -EINVAL);
	put_be32(segment + 44, 18);
	assert_int_equal(osd_continuation_next(&continuation, &descriptor), -EINVAL);
	segment[43] = 6;
	assert_int_equal(osd_continuation_next(&continuation, &descriptor), 1);
	segment[0] = 2;
	assert_int_equal(osd_continuation_read(&continuation, OSD_WRITE, segment, 80), -EINVAL);
}

static void test_list_data_matches_the_example(void **state)
{
	uint8_t expected[32] = { 0 }, head_bytes[OSD_LIST_HEAD_BYTES];
	struct osd_list_head head = { .additional_length = 24, .format = OSD_LISTED_USER_OBJECTS },
			     back;
	struct osd_listed_object object;
	size_t position = OSD_LIST_HEAD_BYTES;

	(void)state;
	hex_rows(LINUX_LIST_IN, expected, sizeof(expected));
	osd_list_head_encode(OSD_2, &head, head_bytes);
	assert_memory_equal(head_bytes, expected, sizeof(head_bytes));
	assert_int_equal(osd_list_head_decode(OSD_2, expected, sizeof(expected), &back), 0);
	assert_int_equal(back.format, OSD_LISTED_USER_OBJECTS);
	assert_int_equal(osd_listed_next(&back, expected, sizeof(expected), &position, &object), 1);
	assert_int_equal(object.id, 0x10005);
	assert_int_equal(osd_listed_next(&back, expected, sizeof(expected), &position, &object), 0);
	assert_int_equal(osd_list_head_decode(OSD_2, expected, 23, &back), -EMSGSIZE);

	head.containers = true;
	osd_list_head_encode(OSD_1, &head, head_bytes);
	assert_int_equal(head_bytes[23], 1);
	assert_int_equal(osd_list_head_decode(OSD_1, head_bytes, sizeof(head_bytes), &back), 0);
	assert_true(back.containers);
	assert_int_equal(back.format, 0);
}

static void test_list_data_with_attributes_round_trips(void **state)
{
	uint8_t data[256];
	struct osd_list_head head = { .format = OSD_LISTED_USER_OBJECTS + 1 };
	struct osd_list_writer writer;
	struct osd_listed_object object;
	struct osd_attribute attribute;
	size_t position = OSD_LIST_HEAD_BYTES, length;

	(void)state;
	osd_list_begin_bare(&writer, OSD_2, data + OSD_LIST_HEAD_BYTES,
			    sizeof(data) - OSD_LIST_HEAD_BYTES);
	for (uint64_t id = 0x10000; id < 0x10002; id++) {
		assert_true(osd_list_object_begin(&writer, id, OSD_TYPE_USER_OBJECT));
		assert_true(osd_list_add_value(&writer, 1, 9, "name", 4));
		assert_true(osd_list_add_value(&writer, 1, 0x82, NULL, 0));
		osd_list_object_end(&writer);
	}
	length = OSD_LIST_HEAD_BYTES + osd_list_end(&writer);
	assert_int_equal(length, OSD_LIST_HEAD_BYTES + 2 * (16 + 24 + 16));
	head.additional_length = length - 8;
	osd_list_head_encode(OSD_2, &head, data);
	for (uint64_t id = 0x10000; id < 0x10002; id++) {
		assert_int_equal(osd_listed_next(&head, data, length, &position, &object), 1);
		assert_int_equal(object.id, id);
		assert_int_equal(object.type, OSD_TYPE_USER_OBJECT);
		assert_int_equal(osd_list_next(&object.attributes, &attribute), 1);
		assert_memory_equal(attribute.value, "name", 4);
		assert_int_equal(osd_list_next(&object.attributes, &attribute), 1);
		assert_int_equal(attribute.length, 0);
		assert_int_equal(osd_list_next(&object.attributes, &attribute), 0);
	}
	assert_int_equal(osd_listed_next(&head, data, length, &position, &object), 0);
	position = OSD_LIST_HEAD_BYTES;
	assert_int_equal(osd_listed_next(&head, data, OSD_LIST_HEAD_BYTES + 55, &position, &object),
			 0);
}

static void test_entries_of_one_listed_object_never_exceed_their_16_bit_length(void **state)
{
	size_t capacity = 200000;
	uint8_t *data = malloc(capacity), *value = calloc(1, 40000);
	struct osd_list_writer writer;
	struct osd_list_head head = { .additional_length = UINT64_MAX,
				      .format = OSD_LISTED_USER_OBJECTS + 1 };
	struct osd_listed_object object;
	size_t position = 0, count = 0;

	(void)state;
	osd_list_begin_bare(&writer, OSD_2, data, capacity);
	for (uint64_t id = 1; id <= 2; id++) {
		assert_true(osd_list_object_begin(&writer, id, OSD_TYPE_USER_OBJECT));
		assert_true(osd_list_add_value(&writer, 1, 9, value, 40000));
		assert_false(osd_list_add_value(&writer, 1, 9, value, 40000));
		osd_list_object_end(&writer);
	}
	while (osd_listed_next(&head, data, writer.length, &position, &object) == 1)
		assert_int_equal(object.id, ++count);
	assert_int_equal(count, 2);
	free(data);
	free(value);
}

static void test_sense_matches_the_example_and_round_trips(void **state)
{
	uint8_t expected[48] = { 0 }, data[OSD_SENSE_ENCODED_MAX];
	struct osd_sense back, sense = {
		.key = SENSE_ILLEGAL_REQUEST,
		.code = SENSE_INVALID_FIELD_IN_CDB,
		.has_object = true,
		.not_initiated = OSD_FUNCTIONS_ALL,
		.partition = 0x10000,
		.object = 0x19999,
		.has_field = true,
		.field_in_cdb = true,
		.field = 24,
	};

	(void)state;
	hex_rows(SENSE_NO_SUCH_OBJECT, expected, sizeof(expected));
	assert_int_equal(osd_sense_encode(&sense, data, sizeof(data)), 48);
	assert_memory_equal(data, expected, 48);

	sense.has_information = sense.has_command_information = true;
	sense.information = 0x123456789;
	sense.command_information = 42;
	sense.attributes = 2;
	sense.attribute[1].page = 0x10003;
	sense.attribute[1].number = 7;
	assert_int_equal(osd_sense_encode(&sense, data, sizeof(data)), 48 + 24 + 20);
	assert_int_equal(osd_sense_decode(data, 48 + 24 + 20, &back), 0);
	assert_int_equal(back.key, SENSE_ILLEGAL_REQUEST);
	assert_int_equal(back.code, SENSE_INVALID_FIELD_IN_CDB);
	assert_true(back.has_object && back.has_field && back.field_in_cdb);
	assert_int_equal(back.not_initiated, OSD_FUNCTIONS_ALL);
	assert_int_equal(back.object, 0x19999);
	assert_int_equal(back.field, 24);
	assert_int_equal(back.information, 0x123456789);
	assert_int_equal(back.command_information, 42);
	assert_int_equal(back.attributes, 2);
	assert_int_equal(back.attribute[1].page, 0x10003);
	assert_int_equal(back.attribute[1].number, 7);
}

static void test_sense_names_who_prevents_a_command(void **state)
{
	/* The descriptor is that of docs/protocol.md. */
	static const uint8_t expected[] = { 0x72, 0x05, 0x53, 0x02, 0,    0,    0,
					    12,   0x80, 0x0a, 0x00, 0x02, 0x69, 0x71,
					    0x6e, 0x2e, 0x68, 0x6f, 0x73, 0x74 };
	uint8_t data[OSD_SENSE_ENCODED_MAX];
	struct osd_sense back, sense = {
		.key = SENSE_ILLEGAL_REQUEST,
		.code = SENSE_MEDIUM_REMOVAL_PREVENTED,
		.users = 2,
		.user_names = "iqn.host",
	};

	(void)state;
	assert_int_equal(osd_sense_encode(&sense, data, sizeof(data)), sizeof(expected));
	assert_memory_equal(data, expected, sizeof(expected));
	assert_int_equal(osd_sense_decode(data, sizeof(expected), &back), 0);
	assert_int_equal(back.users, 2);
	assert_string_equal(back.user_names, "iqn.host");

	/* What could change a terminal's state is not shown. */
	data[15] = 0x1B;
	assert_int_equal(osd_sense_decode(data, sizeof(expected), &back), 0);
	assert_string_equal(back.user_names, "iqn");

	/* The longest ones fit beside what else such an answer has. */
	sense.has_object = true;
	sense.check_value_bytes = 32;
	memset(sense.user_names, 'n', OSD_SENSE_USERS_BYTES);
	assert_int_equal(osd_sense_encode(&sense, data, 250), 8 + 32 + 34 + 4 + 160);
	assert_int_equal(osd_sense_decode(data, 238, &back), 0);
	assert_string_equal(back.user_names, sense.user_names);
}

static void test_sense_of_any_length_decodes_or_is_refused(void **state)
{
	uint8_t data[48] = { 0 };
	static const uint8_t fixed[18] = { 0xF0, 0, 5, 0,    0, 1, 0,    10, 0,
					   0,    0, 0, 0x24, 0, 0, 0xC0, 0,  24 };
	struct osd_sense sense;

	(void)state;
	hex_rows(SENSE_OF_OSC, data, sizeof(data));
	for (size_t length = 0; length <= sizeof(data); length++)
		assert_int_equal(osd_sense_decode(data, length, &sense), length < 8 ? -EINVAL : 0);
	assert_true(sense.has_object);
	assert_int_equal(osd_sense_decode(fixed, sizeof(fixed), &sense), 0);
	assert_int_equal(sense.key, SENSE_ILLEGAL_REQUEST);
	assert_int_equal(sense.code, SENSE_INVALID_FIELD_IN_CDB);
	assert_int_equal(sense.information, 0x100);
	assert_int_equal(sense.field, 24);
	assert_string_equal(osd_sense_key_name(5), "ILLEGAL REQUEST");
	assert_string_equal(osd_sense_code_name(0x2400), "INVALID FIELD IN CDB");
}

static void test_inquiry_data_decodes(void **state)
{
	uint8_t data[36] = { 0x11, 0, 5, 2, 31 };
	struct osd_inquiry_data inquiry;

	(void)state;
	memcpy(data + 8, "MUNINN  OBJECT STORE    1   ", 28);
	assert_int_equal(osd_inquiry_decode(data, sizeof(data), &inquiry), 0);
	assert_int_equal(inquiry.device_type, OSD_PERIPHERAL_DEVICE_TYPE);
	assert_string_equal(inquiry.vendor, "MUNINN");
	assert_string_equal(inquiry.product, "OBJECT STORE");
	assert_string_equal(inquiry.revision, "1");
	assert_int_equal(osd_inquiry_decode(data, 35, &inquiry), -EMSGSIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_attach_question_is_written_as_linux_does),
		cmocka_unit_test(test_set_lists_of_both_versions_match_the_examples),
		cmocka_unit_test(test_retrieved_lists_match_the_examples),
		cmocka_unit_test(test_a_retrieved_list_is_cut_at_its_allocation_and_reads_back),
		cmocka_unit_test(test_malformed_lists_are_refused),
		cmocka_unit_test(
			test_a_retrieved_list_that_claims_too_much_is_bounded_by_the_buffer),
		cmocka_unit_test(test_a_scatter_gather_segment_matches_the_example),
		cmocka_unit_test(test_malformed_continuation_segments_are_refused),
		cmocka_unit_test(test_list_data_matches_the_example),
		cmocka_unit_test(test_list_data_with_attributes_round_trips),
		cmocka_unit_test(
			test_entries_of_one_listed_object_never_exceed_their_16_bit_length),
		cmocka_unit_test(test_sense_matches_the_example_and_round_trips),
		cmocka_unit_test(test_sense_names_who_prevents_a_command),
		cmocka_unit_test(test_sense_of_any_length_decodes_or_is_refused),
		cmocka_unit_test(test_inquiry_data_decodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
