/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* LIST: whole, cut and continued, with attributes; and INQUIRY. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "common/bytes.h"
#include "osd/listings.h"
#include "tests/osd/unit.h"

#define OBJECTS 100

static int set_up_objects(void **state)
{
	struct unit *unit;
	struct call call = call_of(OSD_CREATE, P, 0);

	unit_set_up(state);
	unit = *state;
	unit_create_partition(unit, P);
	call.cdb.objects = OBJECTS;
	call_run(unit, &call);
	expect_good(unit);
	return 0;
}

/* LIST with room for the head and `bytes`. */
static struct call list_of(uint64_t partition, uint64_t initial, size_t bytes)
{
	struct call call = call_of(OSD_LIST, partition, 0);

	call.cdb.address = initial;
	call.cdb.length = call.data_in_capacity = OSD_LIST_HEAD_BYTES + bytes;
	return call;
}

static struct osd_list_head run_list(struct unit *unit, struct call *call)
{
	struct osd_list_head head;

	call_run(unit, call);
	expect_good(unit);
	assert_int_equal(osd_list_head_decode(call->cdb.version, unit->data_in,
					      unit->command.data_in_length, &head),
			 0);
	return head;
}

static void test_all_objects_are_listed_in_order(void **state)
{
	struct unit *unit = *state;
	struct call call = list_of(P, 0, 8 * (OBJECTS + 10));
	struct osd_list_head head = run_list(unit, &call);
	struct osd_listed_object object;
	size_t position = OSD_LIST_HEAD_BYTES;

	assert_int_equal(head.additional_length, 16 + 8 * OBJECTS);
	assert_int_equal(head.continuation_id, 0);
	assert_int_equal(head.identifier, 0);
	assert_int_equal(head.format, OSD_LISTED_USER_OBJECTS);
	assert_int_equal(unit->command.data_in_length, OSD_LIST_HEAD_BYTES + 8 * OBJECTS);
	for (uint64_t i = 0; i < OBJECTS; i++) {
		assert_int_equal(osd_listed_next(&head, unit->data_in, unit->command.data_in_length,
						 &position, &object),
				 1);
		assert_int_equal(object.id, P + i);
	}
}

static void test_a_list_is_cut_and_continued_until_its_end(void **state)
{
	struct unit *unit = *state;
	struct call call = list_of(P, 0, 8 * 30 + 7);
	uint64_t next = P, rest = OBJECTS;
	struct osd_list_head head;

	do {
		struct osd_listed_object object;
		size_t position = OSD_LIST_HEAD_BYTES;

		head = run_list(unit, &call);
		assert_false(head.changed);
		assert_int_equal(head.additional_length, 16 + 8 * rest);
		while (osd_listed_next(&head, unit->data_in, unit->command.data_in_length,
				       &position, &object)) {
			assert_int_equal(object.id, next++);
			rest--;
		}
		assert_int_equal(head.continuation_id, rest > 0 ? next : 0);
		assert_int_equal(head.identifier != 0, rest > 0);
		call.cdb.address = head.continuation_id;
		call.cdb.list_identifier = head.identifier;
	} while (head.continuation_id != 0);
	assert_int_equal(rest, 0);
}

static void test_a_changed_list_says_so(void **state)
{
	struct unit *unit = *state;
	struct call call = list_of(P, 0, 8 * 50), removal = call_of(OSD_REMOVE, P, P + 80);
	struct osd_list_head head = run_list(unit, &call);

	call_run(unit, &removal);
	call.cdb.address = head.continuation_id;
	call.cdb.list_identifier = head.identifier;
	head = run_list(unit, &call);
	assert_true(head.changed);
	assert_int_equal(head.additional_length, 16 + 8 * 49);
	/* Also when as many are there as before; and once told, the rest is not changed. */
	call = list_of(P, 0, 8 * 50);
	head = run_list(unit, &call);
	unit_create(unit, P, P + 80);
	removal = call_of(OSD_REMOVE, P, P + 81);
	call_run(unit, &removal);
	expect_good(unit);
	call = list_of(P, head.continuation_id, 8 * 10);
	call.cdb.list_identifier = head.identifier;
	head = run_list(unit, &call);
	assert_true(head.changed);
	assert_int_equal(head.additional_length, 16 + 8 * 49);
	call = list_of(P, head.continuation_id, 8 * 50);
	call.cdb.list_identifier = head.identifier;
	head = run_list(unit, &call);
	assert_false(head.changed);
	assert_int_equal(head.additional_length, 16 + 8 * 39);
	unit_create(unit, P, P + 81);
}

static void test_what_is_no_change_of_the_list_is_not_told_as_one(void **state)
{
	struct unit *unit = *state;
	struct call call = list_of(P, 0, 8 * 50), other = call_of(OSD_CREATE_COLLECTION, P, 0);
	struct osd_list_head head = run_list(unit, &call);
	uint64_t collection;

	/*
	 * Data and attributes of listed objects, what fails, and collections, which have a list of
	 * their own.
	 */
	unit_write(unit, P + 60, 100000, "x", 1);
	unit_set(unit, P, P + 60, 0x10000, 1, "x", 1);
	unit_set(unit, P, 0, 0x30010000, 1, "x", 1);
	call_get(&other, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_OBJECT_ID);
	call_run(unit, &other);
	expect_good(unit);
	collection = get_be64(unit_retrieved(unit, &other, 0).value);
	call.cdb.address = head.continuation_id;
	call.cdb.list_identifier = head.identifier;
	head = run_list(unit, &call);
	assert_false(head.changed);
	assert_int_equal(head.additional_length, 16 + 8 * 50);
	other = call_of(OSD_REMOVE_COLLECTION, P, collection);
	call_run(unit, &other);
	expect_good(unit);
}

static void test_a_list_is_counted_again_when_its_count_was_forgotten(void **state)
{
	struct unit *unit = *state;
	struct call call = list_of(P, 0, 8 * 7);
	struct osd_list_head head = run_list(unit, &call);

	/* So many other rests are noted meanwhile. */
	for (uint64_t i = 0; i < OSD_LISTINGS_MAX; i++) {
		struct call other = list_of(P, P + i, 8 * 3);

		run_list(unit, &other);
	}
	call = list_of(P, head.continuation_id, 8 * 7);
	call.cdb.list_identifier = head.identifier;
	head = run_list(unit, &call);
	assert_false(head.changed);
	assert_int_equal(head.additional_length, 16 + 8 * (OBJECTS - 7));
}

static void test_nonsense_identifiers_and_ids_are_harmless(void **state)
{
	static const uint32_t identifiers[] = { 1, 5, 99, 101, 0x7FFFFFFF, 0xFFFFFFFF };
	struct unit *unit = *state;

	for (size_t i = 0; i < sizeof(identifiers) / sizeof(identifiers[0]); i++) {
		struct call call = list_of(P, P + 50, 8 * 10);
		struct osd_list_head head;

		call.cdb.list_identifier = identifiers[i];
		head = run_list(unit, &call);
		assert_int_equal(head.continuation_id, P + 60);
		assert_true(head.identifier != 0);
		assert_int_equal(head.additional_length, 16 + 8 * 50);
		assert_true(head.changed);
		call = list_of(P, UINT64_MAX, 80);
		call.cdb.list_identifier = identifiers[i];
		head = run_list(unit, &call);
		assert_int_equal(head.continuation_id, 0);
		assert_int_equal(head.additional_length, 16);
	}
}

static void test_short_allocations_truncate(void **state)
{
	struct unit *unit = *state;

	for (size_t room = 0; room <= 40; room++) {
		struct call call = call_of(OSD_LIST, P, 0);

		call.cdb.length = room;
		call.data_in_capacity = 100;
		call_run(unit, &call);
		expect_good(unit);
		assert_int_equal(unit->command.data_in_length,
				 room <= 24 ? room : 24 + (room - 24) / 8 * 8);
		if (room >= 8)
			assert_int_equal(get_be64(unit->data_in), 16 + 8 * OBJECTS);
	}
}

static void test_more_allocation_than_the_initiator_expects_is_bounded(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_LIST, P, 0);

	call.cdb.length = UINT64_MAX;
	call.data_in_capacity = 100;
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit->command.data_in_length, 96);
}

static void test_partitions_are_listed_without_the_root(void **state)
{
	struct unit *unit = *state;
	struct call call = list_of(0, 0, 80);
	struct osd_list_head head;

	unit_create_partition(unit, P + 5);
	head = run_list(unit, &call);
	assert_int_equal(head.format, OSD_LISTED_PARTITIONS);
	assert_int_equal(unit->command.data_in_length, 24 + 16);
	assert_int_equal(get_be64(unit->data_in + 24), P);
	assert_int_equal(get_be64(unit->data_in + 32), P + 5);
	call.cdb.version = OSD_1;
	head = run_list(unit, &call);
	assert_true(head.containers);
	call.cdb.partition = P + 1;
	call_run(unit, &call);
	expect_field(unit, 16);
	call = list_of(P, 0, 80);
	call.cdb.command_options = 1;
	call_run(unit, &call);
	expect_field(unit, 11);
}

static void test_a_get_list_addresses_the_partition(void **state)
{
	struct unit *unit = *state;
	struct call call = list_of(P, 0, 8 * OBJECTS);

	call_get(&call, OSD_PARTITION_INFORMATION, OSD_INFORMATION_MEMBERS);
	run_list(unit, &call);
	assert_int_equal(get_be64(unit_retrieved(unit, &call, 0).value), OBJECTS);
}

static void test_a_list_with_attributes_has_them_behind_each_id(void **state)
{
	struct unit *unit = *state;
	struct call call = list_of(P, P + 90, 4096);
	struct osd_list_head head;
	struct osd_listed_object object;
	struct osd_attribute attribute;
	size_t position = OSD_LIST_HEAD_BYTES;

	unit_write(unit, P + 91, 0, "12345", 5);
	call.cdb.list_attributes = true;
	call.retrieved_capacity = 0;
	call_get(&call, 1, OSD_INFORMATION_LOGICAL_LENGTH);
	call_get(&call, 0x10000, 1);
	head = run_list(unit, &call);
	assert_int_equal(head.format, OSD_LISTED_USER_OBJECTS + 1);
	assert_int_equal(head.additional_length, 16 + 10 * (16 + 24 + 16));
	for (uint64_t i = 90; i < OBJECTS; i++) {
		assert_int_equal(osd_listed_next(&head, unit->data_in, unit->command.data_in_length,
						 &position, &object),
				 1);
		assert_int_equal(object.id, P + i);
		assert_int_equal(object.type, OSD_TYPE_USER_OBJECT);
		assert_int_equal(osd_list_next(&object.attributes, &attribute), 1);
		assert_int_equal(get_be64(attribute.value), i == 91 ? 5 : 0);
		assert_int_equal(osd_list_next(&object.attributes, &attribute), 1);
		assert_int_equal(attribute.length, 0);
	}
}

static void test_a_list_with_attributes_is_cut_between_objects(void **state)
{
	struct unit *unit = *state;
	struct call call = list_of(P, 0, 3 * 40 + 39);
	struct osd_list_head head;

	call.cdb.list_attributes = true;
	call.retrieved_capacity = 0;
	call_get(&call, 1, OSD_INFORMATION_LOGICAL_LENGTH);
	head = run_list(unit, &call);
	assert_int_equal(unit->command.data_in_length, 24 + 3 * 40);
	assert_int_equal(head.continuation_id, P + 3);
	assert_true(head.identifier != 0);
	assert_int_equal(head.additional_length, UINT64_MAX);
	call = list_of(P, 0, 80);
	call.cdb.list_attributes = true;
	call_get(&call, OSD_PARTITION_INFORMATION, 1);
	call_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
}

static void test_a_list_with_attributes_wants_those_of_its_entries_even_if_there_is_none(
	void **state)
{
	static const struct {
		uint16_t action;
		uint64_t partition;
		uint32_t page;
	} cases[] = {
		{ OSD_LIST, P + 1, OSD_PARTITION_INFORMATION },
		{ OSD_LIST, P + 1, OSD_COLLECTION_INFORMATION },
		{ OSD_LIST, 0, OSD_USER_OBJECT_INFORMATION },
		{ OSD_LIST_COLLECTION, P + 1, OSD_USER_OBJECT_INFORMATION },
	};
	struct unit *unit = *state;
	struct call removal;

	unit_create_partition(unit, P + 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct call call = call_of(cases[i].action, cases[i].partition, 0);

		call.cdb.length = call.data_in_capacity = 512;
		call.cdb.list_attributes = true;
		call_get(&call, cases[i].page, 1);
		call_run(unit, &call);
		expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	}
	removal = call_of(OSD_REMOVE_PARTITION, P + 1, 0);
	call_run(unit, &removal);
	expect_good(unit);
}

static void test_a_list_never_leaves_out_attributes_of_an_object_unseen(void **state)
{
	struct unit *unit = *state;
	struct call call = list_of(P, P + 39, 1 << 20);
	struct osd_sense sense;

	unit_set_long(unit, P, P + 40, 0x10000, 1, 65000);
	unit_set_long(unit, P, P + 40, 0x10000, 2, 4);
	call.cdb.list_attributes = true;
	call_get(&call, 0x10000, 1);
	call_get(&call, 0x10000, 2);
	run_list(unit, &call);
	/* With more than its length can say the object is named, instead of what fits. */
	unit_set_long(unit, P, P + 40, 0x10000, 2, 600);
	call_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	sense = unit_sense(unit);
	assert_true(sense.partition == P && sense.object == P + 40);
	assert_int_equal(sense.attributes, 1);
	assert_int_equal(sense.attribute[0].page, 0x10000);
	assert_int_equal(sense.attribute[0].number, 2);
	/* Less room than that is only the end of this part. */
	call = list_of(P, P + 39, 60000);
	call.cdb.list_attributes = true;
	call_get(&call, 0x10000, 1);
	call_get(&call, 0x10000, 2);
	assert_int_equal(run_list(unit, &call).continuation_id, P + 40);
	unit_set_long(unit, P, P + 40, 0x10000, 1, 1);
}

static void test_partitions_are_listed_with_their_attributes(void **state)
{
	struct unit *unit = *state;
	struct call call = list_of(0, 0, 4096);
	struct osd_list_head head;
	struct osd_listed_object object;
	struct osd_attribute attribute;
	size_t position = OSD_LIST_HEAD_BYTES;

	call.cdb.list_attributes = true;
	call.retrieved_capacity = 0;
	call_get(&call, OSD_PARTITION_INFORMATION, OSD_INFORMATION_MEMBERS);
	head = run_list(unit, &call);
	assert_int_equal(head.format, OSD_LISTED_PARTITIONS + 1);
	assert_int_equal(osd_listed_next(&head, unit->data_in, unit->command.data_in_length,
					 &position, &object),
			 1);
	assert_int_equal(object.id, P);
	assert_int_equal(object.type, OSD_TYPE_PARTITION);
	assert_int_equal(osd_list_next(&object.attributes, &attribute), 1);
	assert_int_equal(get_be64(attribute.value), OBJECTS);
}

/* ---- INQUIRY ---- */

static int inquire(struct unit *unit, bool vital, uint8_t page, uint8_t *data, size_t capacity)
{
	uint8_t cdb[6] = { 0x12, vital, page, 0, 255, 0 };

	return osd_inquiry(unit->device, 0, cdb, data, capacity);
}

static void test_standard_inquiry_data_is_of_an_osd(void **state)
{
	uint8_t data[96];
	struct osd_inquiry_data inquiry;

	memset(data, 0x5A, sizeof(data));
	assert_int_equal(inquire(*state, false, 0, data, 36), 66);
	assert_int_equal(data[36], 0x5A);
	assert_int_equal(data[4], 61);
	assert_int_equal(data[3] & 0x0F, 2);
	assert_int_equal(osd_inquiry_decode(data, 36, &inquiry), 0);
	assert_int_equal(inquiry.device_type, OSD_PERIPHERAL_DEVICE_TYPE);
	assert_int_equal(inquiry.version, 5);
	assert_string_equal(inquiry.vendor, "MUNINN");
	assert_int_equal(inquire(*state, false, 1, data, sizeof(data)), -EINVAL);
}

static void test_each_listed_vpd_page_is_there_and_no_other(void **state)
{
	uint8_t list[32] = { 0 }, data[255];
	int length = inquire(*state, true, 0, list, sizeof(list));
	bool listed[256] = { false };

	assert_int_equal(length, 4 + list[3]);
	for (int i = 4; i < length; i++)
		listed[list[i]] = true;
	for (unsigned page = 0; page < 256; page++) {
		int bytes = inquire(*state, true, (uint8_t)page, data, sizeof(data));

		assert_int_equal(bytes > 0, listed[page]);
		if (bytes > 0) {
			assert_int_equal(data[0], OSD_PERIPHERAL_DEVICE_TYPE);
			assert_int_equal(data[1], page);
			assert_int_equal(get_be16(data + 2), bytes - 4);
		}
	}
	assert_true(listed[0x80] && listed[0x83] && listed[0xB0] && listed[0xB1]);
	assert_int_equal(inquire(*state, true, 0x80, data, sizeof(data)), 40);
	assert_memory_equal(data + 4, "10010203-0405-0607-0809-0a0b0c0d0e0f", 36);
	assert_int_equal(inquire(*state, true, 0x83, data, sizeof(data)), 4 + 12 + 36 + 12);
	assert_memory_equal(data + 8, "MUNINN  10010203", 16);
	assert_int_equal(data[4 + 12 + 36 + 4] >> 4, 3);
	assert_int_equal(inquire(*state, true, 0xB0, data, sizeof(data)), 24);
	assert_memory_equal(data + 4, "\1\0\0\x10\x10\1\2\3", 8);
}

static void test_identity_can_be_configured(void **state)
{
	struct unit *unit = *state;
	struct osd_options options = { .system_id = "configured id 123456", .serial = "SN1" };
	uint8_t value[64];

	osd_device_destroy(unit->device);
	assert_int_equal(
		osd_device_create(unit->engine, nand_uuid(unit->nand), &options, &unit->device), 0);
	assert_int_equal(unit_get(unit, 0, 0, OSD_ROOT_INFORMATION, OSD_ROOT_SYSTEM_ID, value, 64),
			 20);
	assert_memory_equal(value, "configured id 123456", 20);
	assert_int_equal(
		unit_get(unit, 0, 0, OSD_ROOT_INFORMATION, OSD_ROOT_SERIAL_NUMBER, value, 64), 3);
	assert_int_equal(inquire(unit, true, 0x80, value, sizeof(value)), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_objects_are_listed_in_order),
		cmocka_unit_test(test_a_list_is_cut_and_continued_until_its_end),
		cmocka_unit_test(test_nonsense_identifiers_and_ids_are_harmless),
		cmocka_unit_test(test_short_allocations_truncate),
		cmocka_unit_test(test_more_allocation_than_the_initiator_expects_is_bounded),
		cmocka_unit_test(test_a_get_list_addresses_the_partition),
		cmocka_unit_test(test_a_list_with_attributes_has_them_behind_each_id),
		cmocka_unit_test(test_a_list_with_attributes_is_cut_between_objects),
		cmocka_unit_test(
			test_a_list_with_attributes_wants_those_of_its_entries_even_if_there_is_none),
		cmocka_unit_test(test_a_list_never_leaves_out_attributes_of_an_object_unseen),
		cmocka_unit_test(test_partitions_are_listed_with_their_attributes),
		cmocka_unit_test(test_standard_inquiry_data_is_of_an_osd),
		cmocka_unit_test(test_each_listed_vpd_page_is_there_and_no_other),
		cmocka_unit_test(test_partitions_are_listed_without_the_root),
		cmocka_unit_test(test_a_changed_list_says_so),
		cmocka_unit_test(test_what_is_no_change_of_the_list_is_not_told_as_one),
		cmocka_unit_test(test_a_list_is_counted_again_when_its_count_was_forgotten),
		cmocka_unit_test(test_identity_can_be_configured),
	};

	return cmocka_run_group_tests(tests, set_up_objects, unit_tear_down);
}
