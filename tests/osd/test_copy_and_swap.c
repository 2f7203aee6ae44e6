/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* COPY USER OBJECTS, osc-osd's atomic commands, and the PERFORM commands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/osd/unit.h"

/* An application page, where most attributes of these tests are. */
#define PAGE 0x10000u

static void expect_data(struct unit *unit, uint64_t partition, uint64_t object, const char *text)
{
	struct call call = call_of(OSD_READ, partition, object);

	call.cdb.length = call.data_in_capacity = strlen(text);
	call_run(unit, &call);
	expect_good(unit);
	assert_memory_equal(unit->data_in, text, strlen(text));
}

static void expect_text(struct unit *unit, uint64_t object, uint32_t page, uint32_t number,
			const char *text)
{
	char value[64];

	assert_int_equal(unit_get(unit, P, object, page, number, value, sizeof(value)),
			 strlen(text));
	assert_memory_equal(value, text, strlen(text));
}

/* ---- COPY USER OBJECTS ---- */

static void add_source(struct call *call, uint64_t partition, uint64_t object, bool attributes)
{
	struct osd_copy_source source = { partition, object, attributes, false, 0 };
	uint8_t content[OSD_COPY_SOURCE_BYTES];

	osd_copy_source_encode(&source, content);
	call_descriptor(call, OSD_CONTINUATION_COPY_SOURCE, content, sizeof(content));
}

static struct call copy_call(uint64_t to, uint64_t from)
{
	struct call call = call_of(OSD_COPY_USER_OBJECTS, P, to);

	add_source(&call, P, from, false);
	return call;
}

/* O becomes a member of a collection. */
static void join_a_collection(struct unit *unit)
{
	struct call call = call_of(OSD_CREATE_COLLECTION, P, O + 900);

	call_run(unit, &call);
	expect_good(unit);
	unit_set_number(unit, P, O, OSD_USER_OBJECT_COLLECTIONS, 1, O + 900);
}

static void test_a_copy_has_the_data_and_if_asked_the_attributes(void **state)
{
	struct unit *unit = *state;
	struct call call = copy_call(O + 7, O);
	char value[8];

	unit_write(unit, O, 0, "original", 8);
	unit_set(unit, P, O, PAGE, 1, "mine", 4);
	unit_set(unit, P, O, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USERNAME, "me", 2);
	call_run(unit, &call);
	shows_good(unit, COPY_USER_OBJECTS, "a new object with the data of another");
	expect_data(unit, P, O + 7, "original");
	assert_int_equal(unit_get(unit, P, O + 7, PAGE, 1, value, sizeof(value)), 0);

	/* A membership is the source's own, and so is what protects it. */
	unit_set(unit, P, O, OSD_USER_OBJECT_SECURITY, OSD_SECURITY_POLICY_ACCESS_TAG, "tag!", 4);
	join_a_collection(unit);
	call = call_of(OSD_COPY_USER_OBJECTS, P, 0);
	add_source(&call, P, O, true);
	call_get(&call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_OBJECT_ID);
	call_run(unit, &call);
	shows_good(unit, COPY_USER_OBJECTS, "with its attributes, by CPY_ATTR");
	assert_int_equal(get_be64(unit_retrieved(unit, &call, 0).value), O + 901);
	expect_data(unit, P, O + 901, "original");
	expect_text(unit, O + 901, PAGE, 1, "mine");
	assert_int_equal(unit_get(unit, P, O + 901, OSD_USER_OBJECT_COLLECTIONS, 1, value, 8), 0);
	assert_int_equal(unit_get(unit, P, O + 901, OSD_USER_OBJECT_SECURITY,
				  OSD_SECURITY_POLICY_ACCESS_TAG, value, 8),
			 0);
	expect_text(unit, O + 901, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USERNAME, "me");
	/* They are objects of their own. */
	unit_write(unit, O, 0, "changed!", 8);
	expect_data(unit, P, O + 901, "original");
}

static void test_several_objects_are_copied_at_once(void **state)
{
	struct unit *unit = *state;
	struct call call = copy_call(0, O);

	unit_create_partition(unit, P + 1);
	unit_create(unit, P + 1, O);
	unit_write(unit, O, 0, "first", 5);
	add_source(&call, P + 1, O, false);
	add_source(&call, P, O, false);
	call_run(unit, &call);
	shows_good(unit, COPY_USER_OBJECTS, "several sources, also of other partitions");
	expect_data(unit, P, O + 1, "first");
	assert_int_equal(unit_get_number(unit, P, O + 2, OSD_USER_OBJECT_INFORMATION,
					 OSD_INFORMATION_LOGICAL_LENGTH),
			 0);
	expect_data(unit, P, O + 3, "first");
}

/* The current command page is the command's, whichever copy it is asked of. */
static void test_the_change_in_used_capacity_is_that_of_all_copies(void **state)
{
	struct unit *unit = *state;
	struct call call = copy_call(0, O);
	uint8_t data[3 * 4096] = { 1 };

	unit_write(unit, O, 0, data, sizeof(data));
	unit_create(unit, P, O + 1);
	unit_write(unit, O + 1, 0, data, 4096);
	add_source(&call, P, O + 1, false);
	call_get(&call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_CHANGE_IN_USED_CAPACITY);
	call_run(unit, &call);
	expect_good(unit);
	/* Head of the list 8, then for each copy its head 16 and the entry 16 + 8. */
	assert_int_equal(unit->command.data_in_length, 8 + 2 * 40);
	assert_int_equal(get_be64(unit->data_in + 40), 4 * 4096);
	assert_int_equal(get_be64(unit->data_in + 80), 4 * 4096);
}

static void test_an_old_version_can_be_copied(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_COPY_USER_OBJECTS, P, O + 1);
	struct engine_txn *txn;
	uint32_t version;

	unit_write(unit, O, 0, "then", 4);
	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_snapshot(txn, P, NULL, &version), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	unit_write(unit, O, 0, "now!", 4);
	add_source(&call, (uint64_t)version << 48 | P, O, false);
	call_run(unit, &call);
	shows_good(unit, COPY_USER_OBJECTS, "an object of an old version");
	expect_data(unit, P, O + 1, "then");
}

static void test_every_way_to_duplicate_but_the_sharing_ones_is_known(void **state)
{
	static const uint8_t known[] = { 0x00, 0x81, 0xFD, 0xFE, 0xFF },
			     unknown[] = { 0x01, 0x41, 0x02, 0xF0 };
	struct unit *unit = *state;
	struct call call = copy_call(0, O);

	for (size_t i = 0; i < sizeof(known); i++) {
		call.cdb.duplication_method = known[i];
		call_run(unit, &call);
		expect_good(unit);
	}
	for (size_t i = 0; i < sizeof(unknown); i++) {
		call.cdb.duplication_method = unknown[i];
		call_run(unit, &call);
		shows_field(unit, COPY_USER_OBJECTS,
			    "duplication methods 01 and 41, and unknown ones", 14);
	}
}

static void test_a_copy_wants_sources_that_are_there(void **state)
{
	struct unit *unit = *state;
	struct call call = copy_call(O + 1, O + 9);
	struct osd_copy_source late = { P, O, false, false, 3 };
	uint8_t content[OSD_COPY_SOURCE_BYTES];

	call_run(unit, &call);
	shows_field(unit, COPY_USER_OBJECTS, "there is no such source: nothing is made", 48);
	call = call_of(OSD_GET_ATTRIBUTES, P, O + 1);
	call_run(unit, &call);
	expect_field(unit, 24);
	call = copy_call(O + 1, 0);
	call_run(unit, &call);
	shows_field(unit, COPY_USER_OBJECTS, "a source that is no user object", 48);
	call = copy_call(O + 1, O + 1);
	call_run(unit, &call);
	shows_field(unit, COPY_USER_OBJECTS, "a source that is the copy itself", 48);
	call = call_of(OSD_COPY_USER_OBJECTS, P, O + 1);
	call_run(unit, &call);
	shows_field(unit, COPY_USER_OBJECTS, "no source", 48);
	call_descriptor(&call, OSD_CONTINUATION_COPY_SOURCE, "short", 5);
	call_run(unit, &call);
	shows_field(unit, COPY_USER_OBJECTS, "a source descriptor of another length", 48);
	call = call_of(OSD_COPY_USER_OBJECTS, P, O + 1);
	osd_copy_source_encode(&late, content);
	call_descriptor(&call, OSD_CONTINUATION_COPY_SOURCE, content, sizeof(content));
	call_run(unit, &call);
	shows_field(unit, COPY_USER_OBJECTS, "a time of duplication other than 0", 48);
}

static void test_ids_of_copies_are_new_and_of_several_the_target_s_choice(void **state)
{
	struct unit *unit = *state;
	struct call call = copy_call(O + 1, O);

	call_run(unit, &call);
	expect_good(unit);
	call_run(unit, &call);
	shows_field(unit, COPY_USER_OBJECTS, "the ID is taken", 24);
	call = copy_call(0xFFFF, O);
	call_run(unit, &call);
	shows_field(unit, COPY_USER_OBJECTS, "an ID from 1 to FFFF", 24);
	call = copy_call(O + 1, O);
	add_source(&call, P, O, false);
	call_run(unit, &call);
	shows_field(unit, COPY_USER_OBJECTS, "several sources with a requested ID", 48);
}

static void test_copies_keep_to_quotas(void **state)
{
	struct unit *unit = *state;
	struct call call = copy_call(0, O);

	unit_write(unit, O, 0, "nine byte", 9);
	unit_set_number(unit, P, 0, OSD_PARTITION_QUOTAS, OSD_QUOTA_MAXIMUM_LENGTH, 8);
	call_run(unit, &call);
	shows_sense(unit, COPY_USER_OBJECTS, "a copy beyond a quota", DATA_PROTECT, QUOTA_ERROR);
	/* Each of several. */
	unit_create(unit, P, O + 1);
	call = copy_call(0, O + 1);
	add_source(&call, P, O, false);
	call_run(unit, &call);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR);
}

/* ---- COMPARE AND SWAP, FETCH AND ADD ---- */

static struct call swap_call(uint16_t action, const uint8_t operands[16])
{
	struct call call = call_of(action, P, O);

	call_data(&call, operands, action == OSD_COMPARE_AND_SWAP ? 16 : 8);
	call.cdb.length = 8;
	call.data_in_capacity = 8;
	return call;
}

/* The number before the command. */
static uint64_t compare_and_swap(struct unit *unit, uint64_t compare, uint64_t swap)
{
	uint8_t operands[16];
	struct call call;

	put_be64(operands, compare);
	put_be64(operands + 8, swap);
	call = swap_call(OSD_COMPARE_AND_SWAP, operands);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit->command.data_in_length, 8);
	return get_be64(unit->data_in);
}

static void test_compare_and_swap_sets_what_it_found_equal(void **state)
{
	static const uint8_t five_to_six[16] = { [7] = 5, [15] = 6 };
	struct unit *unit = *state;
	struct call call = swap_call(OSD_COMPARE_AND_SWAP, five_to_six);

	assert_int_equal(compare_and_swap(unit, 7, 9), 0);
	assert_int_equal(compare_and_swap(unit, 0, 5), 0);
	call_run(unit, &call);
	shows_good(unit, COMPARE_AND_SWAP, "swapped, the old number is answered");
	assert_int_equal(get_be64(unit->data_in), 5);
	call_run(unit, &call);
	shows_good(unit, COMPARE_AND_SWAP, "not equal: not swapped, the number is answered");
	assert_int_equal(get_be64(unit->data_in), 6);
	assert_int_equal(
		unit_get_number(unit, P, O, OSD_USER_OBJECT_ATOMICS, OSD_ATOMICS_COMPARE_AND_SWAP),
		6);
}

static void test_fetch_and_add_adds_and_answers_what_was_there(void **state)
{
	static const uint8_t three[16] = { [7] = 3 };
	static const uint8_t minus_one[16] = { 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF };
	struct unit *unit = *state;
	struct call call = swap_call(OSD_FETCH_AND_ADD, three);

	for (uint64_t i = 0; i < 5; i++) {
		call_run(unit, &call);
		shows_good(unit, FETCH_AND_ADD, "the number before is answered");
		assert_int_equal(get_be64(unit->data_in), 3 * i);
	}
	call = swap_call(OSD_FETCH_AND_ADD, minus_one);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(
		unit_get_number(unit, P, O, OSD_USER_OBJECT_ATOMICS, OSD_ATOMICS_FETCH_AND_ADD),
		14);
}

static void test_numbers_want_their_operands_and_room_for_the_answer(void **state)
{
	static const uint8_t operands[16];
	struct unit *unit = *state;
	struct call call = swap_call(OSD_COMPARE_AND_SWAP, operands);

	call.cdb.length = 7;
	call_run(unit, &call);
	shows_field(unit, COMPARE_AND_SWAP, "a LENGTH below 8", 32);
	call = swap_call(OSD_COMPARE_AND_SWAP, operands);
	call.cut_data_out = 1;
	call_run(unit, &call);
	shows_field(unit, COMPARE_AND_SWAP, "less Data-Out than two numbers", 32);
	call = swap_call(OSD_COMPARE_AND_SWAP, operands);
	call.cdb.address = 1;
	call_run(unit, &call);
	shows_field(unit, COMPARE_AND_SWAP, "a place of the answer outside Data-In", 40);

	call = swap_call(OSD_FETCH_AND_ADD, operands);
	call.cdb.length = 7;
	call_run(unit, &call);
	shows_field(unit, FETCH_AND_ADD, "a LENGTH below 8", 32);
	call = swap_call(OSD_FETCH_AND_ADD, operands);
	call.cut_data_out = 1;
	call_run(unit, &call);
	shows_field(unit, FETCH_AND_ADD, "less Data-Out than a number", 32);
	call = swap_call(OSD_FETCH_AND_ADD, operands);
	call.data_in_capacity = 7;
	call_run(unit, &call);
	shows_field(unit, FETCH_AND_ADD, "a place of the answer outside Data-In", 40);
}

static void test_the_answer_goes_where_the_address_says_behind_zeros(void **state)
{
	static const uint8_t three[16] = { [7] = 3 };
	struct unit *unit = *state;
	struct call call = swap_call(OSD_FETCH_AND_ADD, three);

	call_run(unit, &call);
	call.cdb.address = 5;
	call.data_in_capacity = 16;
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit->command.data_in_length, 13);
	assert_memory_equal(unit->data_in, "\0\0\0\0\0\0\0\0\0\0\0\0\3", 13);
}

/* ---- GENERAL COMPARE AND SWAP, CONDITIONAL SET ATTRIBUTES ---- */

static struct call set_call(uint16_t action, const char *compare, const char *swap)
{
	struct call call = call_of(action, P, O);

	call_set(&call, PAGE, 1, compare, (uint32_t)strlen(compare));
	call_set(&call, PAGE, 1, swap, (uint32_t)strlen(swap));
	call_set(&call, PAGE, 2, "further", 7);
	call_get(&call, PAGE, 2);
	return call;
}

static void expect_retrieved(struct unit *unit, const struct call *call, size_t index,
			     const char *text)
{
	struct osd_attribute attribute = unit_retrieved(unit, call, index);

	assert_int_equal(attribute.length, strlen(text));
	if (text[0] != '\0')
		assert_memory_equal(attribute.value, text, strlen(text));
}

static void test_conditional_sets_happen_only_when_the_comparison_held(void **state)
{
	struct unit *unit = *state;
	struct call call = set_call(OSD_CONDITIONAL_SET_ATTRIBUTES, "other", "new");

	unit_set(unit, P, O, PAGE, 1, "old", 3);
	call_run(unit, &call);
	shows_good(unit, CONDITIONAL_SET_ATTRIBUTES, "not equal: nothing is set");
	expect_retrieved(unit, &call, 0, "old");
	expect_retrieved(unit, &call, 1, "");
	expect_text(unit, O, PAGE, 1, "old");

	call = set_call(OSD_CONDITIONAL_SET_ATTRIBUTES, "old", "new");
	call_run(unit, &call);
	shows_good(unit, CONDITIONAL_SET_ATTRIBUTES,
		   "equal: the attribute and the further ones are set");
	expect_retrieved(unit, &call, 0, "old");
	expect_retrieved(unit, &call, 1, "further");
	expect_text(unit, O, PAGE, 1, "new");
}

static void test_a_general_swap_sets_further_attributes_in_any_case(void **state)
{
	struct unit *unit = *state;
	struct call call = set_call(OSD_GENERAL_COMPARE_AND_SWAP, "other", "new");

	unit_set(unit, P, O, PAGE, 1, "old", 3);
	call_run(unit, &call);
	shows_good(unit, GENERAL_COMPARE_AND_SWAP,
		   "not equal: not swapped, further attributes are set");
	expect_retrieved(unit, &call, 0, "old");
	expect_retrieved(unit, &call, 1, "further");
	expect_text(unit, O, PAGE, 1, "old");
	call = set_call(OSD_GENERAL_COMPARE_AND_SWAP, "old", "new");
	call_run(unit, &call);
	shows_good(unit, GENERAL_COMPARE_AND_SWAP, "equal: swapped");
	expect_retrieved(unit, &call, 0, "old");
	expect_text(unit, O, PAGE, 1, "new");
}

static void test_an_undefined_attribute_takes_the_new_value(void **state)
{
	struct unit *unit = *state;
	struct call call = set_call(OSD_CONDITIONAL_SET_ATTRIBUTES, "anything", "new");

	call_run(unit, &call);
	shows_good(unit, CONDITIONAL_SET_ATTRIBUTES,
		   "not defined: it is set, the further ones are not");
	expect_retrieved(unit, &call, 0, "");
	expect_text(unit, O, PAGE, 1, "new");
	assert_int_equal(unit_get(unit, P, O, PAGE, 2, NULL, 0), 0);
	unit_set(unit, P, O, PAGE, 1, NULL, 0);
	call = set_call(OSD_GENERAL_COMPARE_AND_SWAP, "anything", "new");
	call_run(unit, &call);
	shows_good(unit, GENERAL_COMPARE_AND_SWAP, "not defined: it is set");
	expect_text(unit, O, PAGE, 1, "new");
}

static void test_the_old_value_comes_without_a_get_list_too(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_GENERAL_COMPARE_AND_SWAP, P, O);
	struct encoded_call encoded;

	unit_set(unit, P, O, PAGE, 1, "old", 3);
	call_set(&call, PAGE, 1, "old", 3);
	call_set(&call, PAGE, 1, "new", 3);
	call.cdb.retrieved.length = 64;
	call_encode(&call, &encoded);
	unit_execute(unit, encoded.cdb, encoded.cdb_length, encoded.out, encoded.out_length, 64);
	free(encoded.out);
	expect_good(unit);
	assert_int_equal(unit->command.data_in_length, 8 + 24);
	assert_int_equal(unit->data_in[0], OSD_LIST_TYPE_VALUES);
	assert_memory_equal(unit->data_in + 24, "old", 3);
}

static void test_swaps_of_attributes_want_two_operands_of_one_attribute(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_GENERAL_COMPARE_AND_SWAP, P, O);

	call_run(unit, &call);
	shows_sense(unit, GENERAL_COMPARE_AND_SWAP, "no set list", ILLEGAL_REQUEST,
		    PARAMETER_LIST_LENGTH_ERROR);
	call_set(&call, PAGE, 1, "one", 3);
	call_run(unit, &call);
	shows_sense(unit, GENERAL_COMPARE_AND_SWAP, "one operand", ILLEGAL_REQUEST,
		    PARAMETER_LIST_LENGTH_ERROR);
	call_set(&call, PAGE, 2, "other", 5);
	call_run(unit, &call);
	shows_sense(unit, GENERAL_COMPARE_AND_SWAP, "operands of two attributes", ILLEGAL_REQUEST,
		    INVALID_FIELD_IN_PARAMETER_LIST);
	call = call_of(OSD_GENERAL_COMPARE_AND_SWAP, P, O);
	call.cdb.format = OSD_ATTRIBUTES_PAGE;
	call_run(unit, &call);
	shows_field(unit, GENERAL_COMPARE_AND_SWAP, "not in list format", 11);

	call = call_of(OSD_CONDITIONAL_SET_ATTRIBUTES, P, O);
	call_run(unit, &call);
	shows_sense(unit, CONDITIONAL_SET_ATTRIBUTES, "no set list", ILLEGAL_REQUEST,
		    PARAMETER_LIST_LENGTH_ERROR);
	call_set(&call, PAGE, 1, "one", 3);
	call_set(&call, PAGE + 1, 1, "other", 5);
	call_run(unit, &call);
	shows_sense(unit, CONDITIONAL_SET_ATTRIBUTES, "operands of two attributes", ILLEGAL_REQUEST,
		    INVALID_FIELD_IN_PARAMETER_LIST);
	call = call_of(OSD_CONDITIONAL_SET_ATTRIBUTES, P, O);
	call.cdb.format = OSD_ATTRIBUTES_CDB;
	call_run(unit, &call);
	shows_field(unit, CONDITIONAL_SET_ATTRIBUTES, "not in list format", 11);
}

static void test_an_operand_that_can_t_be_set_changes_nothing(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_GENERAL_COMPARE_AND_SWAP, P, O);

	call_set_number(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USED_CAPACITY, 0);
	call_set_number(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USED_CAPACITY, 7);
	call_run(unit, &call);
	shows_sense(unit, GENERAL_COMPARE_AND_SWAP, "an attribute that can't be set",
		    ILLEGAL_REQUEST, INVALID_FIELD_IN_PARAMETER_LIST);
	call.cdb.action = OSD_CONDITIONAL_SET_ATTRIBUTES;
	call_run(unit, &call);
	shows_sense(unit, CONDITIONAL_SET_ATTRIBUTES, "an attribute that can't be set",
		    ILLEGAL_REQUEST, INVALID_FIELD_IN_PARAMETER_LIST);
}

/* ---- PERFORM ---- */

static struct call embedded_call(uint8_t operation, size_t allocation)
{
	struct call call = call_of(OSD_PERFORM_SCSI_COMMAND, 0, 0);

	call.cdb.embedded_cdb[0] = operation;
	if (operation == OSD_SCSI_INQUIRY)
		put_be16(call.cdb.embedded_cdb + 3, (uint16_t)allocation);
	else
		call.cdb.embedded_cdb[4] = (uint8_t)allocation;
	call.data_in_capacity = allocation;
	return call;
}

static void test_scsi_commands_are_performed(void **state)
{
	struct unit *unit = *state;
	struct call call = embedded_call(OSD_SCSI_INQUIRY, 96);
	struct osd_inquiry_data inquiry;

	call_get(&call, OSD_ROOT_INFORMATION, OSD_ROOT_VENDOR);
	call_run(unit, &call);
	shows_good(unit, PERFORM_SCSI_COMMAND, "INQUIRY, with attributes of the root");
	assert_int_equal(osd_inquiry_decode(unit->data_in, 66, &inquiry), 0);
	assert_int_equal(inquiry.device_type, OSD_PERIPHERAL_DEVICE_TYPE);
	assert_memory_equal(unit_retrieved(unit, &call, 0).value, "MUNINN  ", 8);

	call = embedded_call(OSD_SCSI_INQUIRY, 7);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit->command.data_in_length, 7);
	call = embedded_call(OSD_SCSI_TEST_UNIT_READY, 0);
	call_run(unit, &call);
	shows_good(unit, PERFORM_SCSI_COMMAND, "TEST UNIT READY");
	call = embedded_call(OSD_SCSI_REQUEST_SENSE, 18);
	call.cdb.embedded_cdb[1] = 1;
	call_run(unit, &call);
	shows_good(unit, PERFORM_SCSI_COMMAND, "REQUEST SENSE: there is none");
	assert_int_equal(unit->command.data_in_length, 8);
	assert_memory_equal(unit->data_in, "\x72\0\0\0\0\0\0\0", 8);
}

static void test_scsi_commands_that_can_t_be_performed_are_refused(void **state)
{
	struct unit *unit = *state;
	struct call call = embedded_call(0x28, 0);

	call_run(unit, &call);
	shows_field(unit, PERFORM_SCSI_COMMAND, "a command other than those", 32);
	call = embedded_call(OSD_SCSI_REQUEST_SENSE, 18);
	call_run(unit, &call);
	shows_field(unit, PERFORM_SCSI_COMMAND, "REQUEST SENSE in fixed format", 33);
	call = embedded_call(OSD_SCSI_INQUIRY, 96);
	call.cdb.embedded_cdb[1] = 1;
	call.cdb.embedded_cdb[2] = 0xC7;
	call_run(unit, &call);
	shows_field(unit, PERFORM_SCSI_COMMAND, "INQUIRY of an unknown VPD page", 34);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object(test_a_copy_has_the_data_and_if_asked_the_attributes),
		with_object(test_several_objects_are_copied_at_once),
		with_object(test_an_old_version_can_be_copied),
		with_object(test_the_change_in_used_capacity_is_that_of_all_copies),
		with_object(test_every_way_to_duplicate_but_the_sharing_ones_is_known),
		with_object(test_a_copy_wants_sources_that_are_there),
		with_object(test_ids_of_copies_are_new_and_of_several_the_target_s_choice),
		with_object(test_copies_keep_to_quotas),
		with_object(test_compare_and_swap_sets_what_it_found_equal),
		with_object(test_fetch_and_add_adds_and_answers_what_was_there),
		with_object(test_numbers_want_their_operands_and_room_for_the_answer),
		with_object(test_the_answer_goes_where_the_address_says_behind_zeros),
		with_object(test_conditional_sets_happen_only_when_the_comparison_held),
		with_object(test_a_general_swap_sets_further_attributes_in_any_case),
		with_object(test_an_undefined_attribute_takes_the_new_value),
		with_object(test_the_old_value_comes_without_a_get_list_too),
		with_object(test_swaps_of_attributes_want_two_operands_of_one_attribute),
		with_object(test_an_operand_that_can_t_be_set_changes_nothing),
		with_unit_in_both(test_scsi_commands_are_performed),
		with_unit_in_both(test_scsi_commands_that_can_t_be_performed_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
