/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Which functions the sense data says were not begun, which came to their end, and so which one
 * failed: the one in neither field.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "tests/osd/collection_calls.h"
#include "tests/osd/secured.h"

/* Without security no capability is looked at. */
#define CAPABILITIES                                                     \
	(OSD_FUNCTION_COMMAND_CAPABILITY | OSD_FUNCTION_SET_CAPABILITY | \
	 OSD_FUNCTION_GET_CAPABILITY)

static const uint8_t many_bytes[9000];

/* These functions failed, those of `completed` ended well, all others never began. */
static void expect_functions(struct unit *unit, uint32_t failed, uint32_t completed)
{
	struct osd_sense sense;

	assert_int_equal(unit->command.status, SCSI_STATUS_CHECK_CONDITION);
	sense = unit_sense(unit);
	assert_int_equal(sense.completed, completed);
	assert_int_equal(sense.not_initiated, OSD_FUNCTIONS_ALL & ~(failed | completed));
}

/* Objects of P may have 4096 bytes. */
static void limit_length(struct unit *unit)
{

	unit_set_number(unit, P, 0, OSD_PARTITION_QUOTAS, OSD_QUOTA_MAXIMUM_LENGTH, 4096);
	unit_set_number(unit, P, O, OSD_USER_OBJECT_QUOTAS, OSD_QUOTA_MAXIMUM_LENGTH, 4096);
}

static void test_what_is_refused_in_validation_was_not_begun(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_WRITE, P, O + 1);

	call_data(&call, "x", 1);
	call_run(unit, &call);
	expect_functions(unit, 0, 0);
	/* Sets are looked at before anything is done. */
	call = call_of(OSD_WRITE, P, O);
	call_data(&call, "x", 1);
	call_set_number(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_OBJECT_ID, 1);
	call_run(unit, &call);
	expect_functions(unit, 0, 0);
}

static void test_a_command_that_fails_is_in_neither_field_and_validation_is_completed(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_READ, P, O);

	call.cdb.address = 99;
	call.cdb.length = call.data_in_capacity = 5;
	call_run(unit, &call);
	expect_functions(unit, OSD_FUNCTION_COMMAND, OSD_FUNCTION_VALIDATION);
}

static void test_data_beyond_a_quota_is_a_failure_of_the_command(void **state)
{
	struct unit *unit = *state;
	struct call call;

	limit_length(unit);
	call = call_of(OSD_WRITE, P, O);
	call_data(&call, many_bytes, sizeof(many_bytes));
	call_run(unit, &call);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR);
	expect_functions(unit, OSD_FUNCTION_COMMAND, OSD_FUNCTION_VALIDATION);
	/* Also beside sets that have nothing to do with it. */
	call_set_number(&call, TEST_PAGE, TEST_NUMBER, 1);
	call_run(unit, &call);
	expect_functions(unit, OSD_FUNCTION_COMMAND, OSD_FUNCTION_VALIDATION);
	call = call_of(OSD_CREATE_AND_WRITE, P, 0);
	call_data(&call, many_bytes, sizeof(many_bytes));
	call_run(unit, &call);
	expect_functions(unit, OSD_FUNCTION_COMMAND, OSD_FUNCTION_VALIDATION);
}

static void test_a_length_beyond_a_quota_is_a_failure_of_the_sets(void **state)
{
	static const uint16_t actions[] = { OSD_SET_ATTRIBUTES, OSD_GET_ATTRIBUTES, OSD_WRITE };
	struct unit *unit = *state;

	limit_length(unit);
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		struct call call = call_of(actions[i], P, O);

		if (actions[i] == OSD_WRITE)
			call_data(&call, "x", 1);
		call_set_number(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH,
				5000);
		call_run(unit, &call);
		expect_sense(unit, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR);
		expect_functions(unit, OSD_FUNCTION_SET_ATTRIBUTES, OSD_FUNCTION_VALIDATION);
	}
}

/*
 * The work of the command was undone with it: it can be sent again as it was, without that set or
 * get.
 */
static void test_what_was_undone_counts_as_not_begun(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE, P, O + 1);

	call_get(&call, OSD_PARTITION_INFORMATION, OSD_INFORMATION_PARTITION_ID);
	call_run(unit, &call);
	expect_functions(unit, OSD_FUNCTION_GET_ATTRIBUTES, OSD_FUNCTION_VALIDATION);
	call = call_of(OSD_CREATE, P, O + 1);
	call_set_number(&call, OSD_USER_OBJECT_COLLECTIONS, 1, 0x99999);
	call_run(unit, &call);
	expect_functions(unit, OSD_FUNCTION_SET_ATTRIBUTES, OSD_FUNCTION_VALIDATION);
}

static void test_batches_that_were_done_leave_nothing_that_was_not_begun(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_SET_MEMBER_ATTRIBUTES, P, T);

	unit->device->portions.members = 2;
	unit_set(unit, P, M + 5, OSD_USER_OBJECT_QUOTAS, OSD_QUOTA_MAXIMUM_LENGTH,
		 (uint8_t[]){ 0, 0, 0, 0, 0, 0, 0, 1 }, 8);
	call_set_number(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, 2);
	call_run(unit, &call);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR);
	expect_functions(unit, OSD_FUNCTION_COMMAND | OSD_FUNCTION_SET_ATTRIBUTES,
			 OSD_FUNCTION_VALIDATION);
	assert_members(unit, T, 0x3F0);
	/* The first batch fails now: nothing is done. */
	call_run(unit, &call);
	expect_functions(unit, OSD_FUNCTION_SET_ATTRIBUTES, OSD_FUNCTION_VALIDATION);
}

/*
 * A member whose attributes are too long for the answer: with it all others are left as they were.
 */
static void test_gets_of_members_that_fail_leave_nothing_begun(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_SET_MEMBER_ATTRIBUTES, P, T);

	unit->device->portions.members = 2;
	unit_set_long(unit, P, M + 5, TEST_PAGE, 1, 40000);
	unit_set_long(unit, P, M + 5, TEST_PAGE, 2, 40000);
	call_set_number(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, 2);
	call_get(&call, TEST_PAGE, OSD_ATTRIBUTE_ALL);
	call.retrieved_capacity = 1 << 18;
	call_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	expect_functions(unit, OSD_FUNCTION_GET_ATTRIBUTES, OSD_FUNCTION_VALIDATION);
	assert_members(unit, T, (1U << MEMBERS) - 1);
}

static void test_capabilities_that_were_verified_are_completed(void **state)
{
	struct unit *unit = *state;

	limit_length(unit);
	secured_close(unit, OSD_CAPKEY);
	for (int i = 0; i < SECURED_METHODS; i++) {
		struct signed_call call = signed_call_of(unit, OSD_WRITE, P, O, secured_methods[i]);
		uint32_t verified = OSD_FUNCTION_VALIDATION | OSD_FUNCTION_COMMAND_CAPABILITY;

		call_data(&call.call, many_bytes, sizeof(many_bytes));
		signed_run(unit, &call);
		expect_functions(unit, OSD_FUNCTION_COMMAND, verified);
		call = signed_call_of(unit, OSD_WRITE, P, O, secured_methods[i]);
		call_data(&call.call, many_bytes, sizeof(many_bytes));
		call_set_number(&call.call, TEST_PAGE, TEST_NUMBER, 1);
		call_get(&call.call, TEST_PAGE, TEST_NUMBER);
		signed_run(unit, &call);
		expect_functions(unit, OSD_FUNCTION_COMMAND,
				 OSD_FUNCTION_VALIDATION | CAPABILITIES);
	}
	/* One that does not allow the command stops everything. */
	{
		struct signed_call call = signed_call_of(unit, OSD_WRITE, P, O, OSD_CAPKEY);

		call_data(&call.call, "x", 1);
		let_expire(&call.capability);
		signed_run(unit, &call);
		expect_functions(unit, 0, 0);
	}
}

static void test_a_recovered_error_has_completed_everything(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_READ, P, O);

	unit_write(unit, O, 0, "x", 1);
	call.cdb.length = call.data_in_capacity = 5;
	call_run(unit, &call);
	assert_int_equal(unit_sense(unit).key, SENSE_RECOVERED_ERROR);
	assert_int_equal(unit_sense(unit).not_initiated, 0);
	assert_int_equal(unit_sense(unit).completed, OSD_FUNCTIONS_ALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object_in_both(
			test_a_command_that_fails_is_in_neither_field_and_validation_is_completed),
		with_object_in_both(test_a_length_beyond_a_quota_is_a_failure_of_the_sets),
		with_object_in_both(test_a_recovered_error_has_completed_everything),
		with_members(test_batches_that_were_done_leave_nothing_that_was_not_begun),
		with_members(test_gets_of_members_that_fail_leave_nothing_begun),
		with_keys_in_both(test_capabilities_that_were_verified_are_completed),
		with_object_in_both(test_data_beyond_a_quota_is_a_failure_of_the_command),
		with_object_in_both(test_what_is_refused_in_validation_was_not_begun),
		with_object_in_both(test_what_was_undone_counts_as_not_begun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
