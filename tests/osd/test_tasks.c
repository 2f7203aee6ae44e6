/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * PERFORM TASK MANAGEMENT FUNCTION: which tasks of the logical unit a function is about, and what
 * it answers. The tasks are the test's; those of the daemon are tried in
 * tests/daemon/test_io_threads.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bytes.h"
#include "tests/osd/unit.h"

enum { ALICE = 1, BOB = 2, CAROL = 3 };

/* ---- tasks of three sessions ---- */

struct task {
	uint64_t nexus, tag;
	bool aborted;
};

static struct task tasks[4];

static uint32_t choose(void *context, const struct osd_task_choice *choice, bool abort,
		       osd_task_found *found, void *found_context)
{
	uint32_t count = 0;

	assert_ptr_equal(context, tasks);
	for (size_t i = 0; i < 4; i++) {
		struct task *task = &tasks[i];

		if (task->aborted || (!choice->every_nexus && task->nexus != choice->nexus) ||
		    (choice->one && task->tag != choice->tag))
			continue;
		count++;
		task->aborted = abort;
		if (found)
			found(found_context, task->nexus);
	}
	return count;
}

static int set_up(void **state)
{
	static const struct osd_task_set set = { .context = tasks, .choose = choose };
	static const struct task fresh[4] = {
		{ ALICE, 7, false },
		{ ALICE, 8, false },
		{ BOB, 7, false },
		{ CAROL, 9, false },
	};
	struct unit *unit;
	int result = unit_set_up_with_object(state);

	memcpy(tasks, fresh, sizeof(fresh));
	unit = *state;
	osd_device_set_tasks(unit->device, &set);
	/* The unit knows those whom it has heard of. */
	for (unit->nexus = ALICE; unit->nexus < CAROL; unit->nexus++)
		unit_get_number(unit, P, 0, OSD_PARTITION_INFORMATION,
				OSD_INFORMATION_PARTITION_ID);
	unit->nexus = ALICE;
	return result;
}

static int set_up_osd1(void **state)
{
	int result = set_up(state);

	unit_version = OSD_1;
	return result;
}

static int tear_down(void **state)
{
	unit_version = OSD_2;
	return unit_tear_down(state);
}

static struct call function_call(uint8_t function, uint64_t tag)
{
	struct call call = call_of(OSD_PERFORM_TASK_MANAGEMENT_FUNCTION, 0, 0);

	call.cdb.task_function = function;
	call.cdb.task_tag = tag;
	call.cdb.length = call.data_in_capacity = OSD_TASK_ANSWER_BYTES;
	return call;
}

/* SERVICE RESPONSE of a function of Alice's. */
static uint8_t manage(struct unit *unit, uint8_t function, uint64_t tag)
{
	struct call call = function_call(function, tag);

	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit->command.data_in_length, OSD_TASK_ANSWER_BYTES);
	assert_int_equal(get_be32(unit->data_in), 6 << 16);
	return unit->data_in[4];
}

static void assert_aborted(bool first, bool second, bool third, bool fourth)
{
	assert_int_equal(tasks[0].aborted, first);
	assert_int_equal(tasks[1].aborted, second);
	assert_int_equal(tasks[2].aborted, third);
	assert_int_equal(tasks[3].aborted, fourth);
}

/* ---- functions ---- */

static void test_abort_task_ends_the_session_s_task_of_that_tag(void **state)
{
	struct unit *unit = *state;

	assert_int_equal(manage(unit, OSD_ABORT_TASK, 7), OSD_TASK_FUNCTION_COMPLETE);
	shows_good(unit, PERFORM_TASK_MANAGEMENT_FUNCTION,
		   "ABORT TASK: FUNCTION COMPLETE, also without such a task");
	assert_aborted(true, false, false, false);
	assert_int_equal(manage(unit, OSD_ABORT_TASK, 1234), OSD_TASK_FUNCTION_COMPLETE);
	assert_aborted(true, false, false, false);
}

static void test_abort_task_set_ends_the_session_s_tasks(void **state)
{
	struct unit *unit = *state;

	assert_int_equal(manage(unit, OSD_ABORT_TASK_SET, 0), OSD_TASK_FUNCTION_COMPLETE);
	shows_good(unit, PERFORM_TASK_MANAGEMENT_FUNCTION, "ABORT TASK SET: FUNCTION COMPLETE");
	assert_aborted(true, true, false, false);
}

/* The unit attention that a session gets with its next command; 0: none. */
static uint16_t attention_of(struct unit *unit, uint64_t nexus)
{
	uint8_t sense[OSD_SENSE_BYTES_MAX];
	struct osd_sense decoded;
	size_t length;

	if (!osd_unit_attention(unit->device, nexus, sense, &length))
		return 0;
	assert_int_equal(osd_sense_decode(sense, length, &decoded), 0);
	assert_int_equal(decoded.key, SENSE_UNIT_ATTENTION);
	return decoded.code;
}

static void test_clear_task_set_ends_the_tasks_of_all_and_tells_the_others(void **state)
{
	struct unit *unit = *state;

	tasks[3].nexus = BOB;
	assert_int_equal(manage(unit, OSD_CLEAR_TASK_SET, 0), OSD_TASK_FUNCTION_COMPLETE);
	shows_good(unit, PERFORM_TASK_MANAGEMENT_FUNCTION, "CLEAR TASK SET: FUNCTION COMPLETE");
	assert_aborted(true, true, true, true);
	assert_int_equal(attention_of(unit, ALICE), 0);
	assert_int_equal(attention_of(unit, BOB), SENSE_COMMANDS_CLEARED_BY_ANOTHER_INITIATOR);
	assert_int_equal(attention_of(unit, BOB), 0);
	/* She had no task. */
	assert_int_equal(attention_of(unit, CAROL), 0);
}

static void test_logical_unit_reset_ends_all_tasks_and_tells_all_others(void **state)
{
	struct unit *unit = *state;

	tasks[3].nexus = BOB;
	unit->nexus = CAROL;
	unit_get_number(unit, P, 0, OSD_PARTITION_INFORMATION, OSD_INFORMATION_PARTITION_ID);
	unit->nexus = ALICE;
	assert_int_equal(manage(unit, OSD_LOGICAL_UNIT_RESET, 0), OSD_TASK_FUNCTION_COMPLETE);
	shows_good(unit, PERFORM_TASK_MANAGEMENT_FUNCTION, "LOGICAL UNIT RESET: FUNCTION COMPLETE");
	assert_aborted(true, true, true, true);
	assert_int_equal(attention_of(unit, ALICE), 0);
	assert_int_equal(attention_of(unit, BOB), SENSE_BUS_DEVICE_RESET_FUNCTION_OCCURRED);
	assert_int_equal(attention_of(unit, CAROL), SENSE_BUS_DEVICE_RESET_FUNCTION_OCCURRED);
}

static void test_queries_tell_whether_tasks_are_there_and_end_none(void **state)
{
	struct unit *unit = *state;

	assert_int_equal(manage(unit, OSD_QUERY_TASK, 8), OSD_TASK_FUNCTION_SUCCEEDED);
	shows_good(unit, PERFORM_TASK_MANAGEMENT_FUNCTION,
		   "QUERY TASK: FUNCTION SUCCEEDED if it is there, otherwise FUNCTION COMPLETE");
	/* That is a task of another session. */
	assert_int_equal(manage(unit, OSD_QUERY_TASK, 9), OSD_TASK_FUNCTION_COMPLETE);
	assert_int_equal(manage(unit, OSD_QUERY_TASK_SET, 0), OSD_TASK_FUNCTION_SUCCEEDED);
	shows_good(unit, PERFORM_TASK_MANAGEMENT_FUNCTION,
		   "QUERY TASK SET: FUNCTION SUCCEEDED if there is a task, otherwise FUNCTION "
		   "COMPLETE");
	assert_aborted(false, false, false, false);
	unit->nexus = CAROL + 1;
	assert_int_equal(manage(unit, OSD_QUERY_TASK_SET, 0), OSD_TASK_FUNCTION_COMPLETE);
}

static void test_query_unit_attention_tells_the_first_and_leaves_it(void **state)
{
	struct unit *unit = *state;
	struct call format = call_of(OSD_FORMAT_OSD, 0, 0);

	assert_int_equal(manage(unit, OSD_QUERY_UNIT_ATTENTION, 0), OSD_TASK_FUNCTION_COMPLETE);
	unit->nexus = BOB;
	call_run(unit, &format);
	expect_good(unit);
	unit->nexus = ALICE;
	assert_int_equal(manage(unit, OSD_QUERY_UNIT_ATTENTION, 0), OSD_TASK_FUNCTION_SUCCEEDED);
	shows_good(unit, PERFORM_TASK_MANAGEMENT_FUNCTION,
		   "QUERY UNIT ATTENTION: FUNCTION SUCCEEDED with the first, which stays");
	assert_memory_equal(unit->data_in + 5, "\x16\x28\x00", 3);
	unit->nexus = BOB;
	assert_int_equal(manage(unit, OSD_LOGICAL_UNIT_RESET, 0), OSD_TASK_FUNCTION_COMPLETE);
	unit->nexus = ALICE;
	/* Two now, and the reset comes first. */
	assert_int_equal(manage(unit, OSD_QUERY_UNIT_ATTENTION, 0), OSD_TASK_FUNCTION_SUCCEEDED);
	assert_memory_equal(unit->data_in + 5, "\x26\x29\x03", 3);
	assert_int_equal(attention_of(unit, ALICE), SENSE_BUS_DEVICE_RESET_FUNCTION_OCCURRED);
	assert_int_equal(attention_of(unit, ALICE), SENSE_MEDIUM_MAY_HAVE_CHANGED);
	assert_int_equal(manage(unit, OSD_QUERY_UNIT_ATTENTION, 0), OSD_TASK_FUNCTION_COMPLETE);
}

static void test_functions_of_the_connection_are_rejected(void **state)
{
	struct unit *unit = *state;

	assert_int_equal(manage(unit, OSD_I_T_NEXUS_RESET, 0), OSD_TASK_FUNCTION_REJECTED);
	shows_good(unit, PERFORM_TASK_MANAGEMENT_FUNCTION,
		   "I_T NEXUS RESET, CLEAR ACA: FUNCTION REJECTED");
	assert_int_equal(manage(unit, OSD_CLEAR_ACA, 0), OSD_TASK_FUNCTION_REJECTED);
	assert_aborted(false, false, false, false);
}

static void test_a_unit_that_does_not_know_its_tasks_rejects_functions_on_them(void **state)
{
	static const uint8_t functions[] = { OSD_ABORT_TASK,     OSD_ABORT_TASK_SET,
					     OSD_CLEAR_TASK_SET, OSD_LOGICAL_UNIT_RESET,
					     OSD_QUERY_TASK,     OSD_QUERY_TASK_SET };
	static const struct osd_task_set none;
	struct unit *unit = *state;

	osd_device_set_tasks(unit->device, &none);
	for (size_t i = 0; i < sizeof(functions); i++)
		assert_int_equal(manage(unit, functions[i], 7), OSD_TASK_FUNCTION_REJECTED);
	assert_int_equal(attention_of(unit, BOB), 0);
}

/* ---- the command around them ---- */

static void test_unknown_functions_are_refused(void **state)
{
	static const uint8_t functions[] = { 0x00, 0x03, 0x20, 0x83, 0xFF };
	struct unit *unit = *state;

	for (size_t i = 0; i < sizeof(functions); i++) {
		struct call call = function_call(functions[i], 7);

		call_run(unit, &call);
		shows_field(unit, PERFORM_TASK_MANAGEMENT_FUNCTION, "an unknown function", 39);
	}
	assert_aborted(false, false, false, false);
}

static void test_the_answer_is_cut_to_the_allocation_length(void **state)
{
	struct unit *unit = *state;

	for (size_t length = 0; length <= OSD_TASK_ANSWER_BYTES + 1; length++) {
		struct call call = function_call(OSD_QUERY_TASK_SET, 0);

		call.cdb.length = call.data_in_capacity = length;
		call_run(unit, &call);
		expect_good(unit);
		assert_int_equal(unit->command.data_in_length,
				 min_u64(length, OSD_TASK_ANSWER_BYTES));
		assert_memory_equal(unit->data_in, "\0\6\0\0\5\0\0\0",
				    min_u64(length, OSD_TASK_ANSWER_BYTES));
	}
}

static void test_attributes_are_those_of_the_addressed_object(void **state)
{
	struct unit *unit = *state;
	struct call call = function_call(OSD_ABORT_TASK, 7);

	call.cdb.partition = P;
	call.cdb.object = O;
	call_set(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USERNAME, "managed", 7);
	call_get(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USERNAME);
	call.retrieved_capacity = 64;
	call_run(unit, &call);
	expect_good(unit);
	assert_memory_equal(unit_retrieved(unit, &call, 0).value, "managed", 7);
	assert_aborted(true, false, false, false);
}

static void test_a_command_that_is_refused_ends_no_task(void **state)
{
	struct unit *unit = *state;
	struct call call = function_call(OSD_ABORT_TASK_SET, 0);

	call_set_number(&call, OSD_ROOT_INFORMATION, OSD_ROOT_TOTAL_CAPACITY, 1);
	call_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	call = function_call(OSD_ABORT_TASK_SET, 0);
	call_get(&call, OSD_PARTITION_INFORMATION, OSD_INFORMATION_USERNAME);
	call.retrieved_capacity = 64;
	call_run(unit, &call);
	shows_sense(unit, PERFORM_TASK_MANAGEMENT_FUNCTION,
		    "a get that can't be: no function is performed", ILLEGAL_REQUEST,
		    INVALID_FIELD_IN_PARAMETER_LIST);
	call = function_call(OSD_ABORT_TASK_SET, 0);
	call.cdb.format = OSD_ATTRIBUTES_PAGE;
	call.cdb.get_page = OSD_ROOT_INFORMATION;
	call_run(unit, &call);
	expect_field(unit, 52);
	assert_aborted(false, false, false, false);
}

/* ---- which functions there are ---- */

static void test_the_functions_that_there_are_are_told(void **state)
{
	static const struct osd_task_set none;
	struct unit *unit = *state;
	struct call call = call_of(OSD_PERFORM_SCSI_COMMAND, 0, 0);

	call.cdb.embedded_cdb[0] = OSD_SCSI_MAINTENANCE_IN;
	call.cdb.embedded_cdb[1] = 0x0D;
	for (uint32_t room = 0; room < 8; room++) {
		put_be32(call.cdb.embedded_cdb + 6, room);
		call.data_in_capacity = room;
		call_run(unit, &call);
		shows_good(unit, PERFORM_SCSI_COMMAND,
			   "REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS");
		assert_int_equal(unit->command.data_in_length, min_u64(room, 4));
		assert_memory_equal(unit->data_in, "\xDC\x06\0\0", min_u64(room, 4));
	}
	osd_device_set_tasks(unit->device, &none);
	call_run(unit, &call);
	expect_good(unit);
	assert_memory_equal(unit->data_in, "\x00\x04\0\0", 4);
	call.cdb.embedded_cdb[2] = 0x80;
	call_run(unit, &call);
	shows_field(unit, PERFORM_SCSI_COMMAND, "extended data of task management functions", 34);
	call.cdb.embedded_cdb[1] = 0x0C;
	call_run(unit, &call);
	shows_field(unit, PERFORM_SCSI_COMMAND, "another service action of MAINTENANCE IN", 33);
}

#define with_tasks_in_both(test)                                  \
	{ #test " (OSD-1)", test, set_up_osd1, tear_down, NULL }, \
	{                                                         \
#test, test, set_up, tear_down, NULL              \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_tasks_in_both(test_abort_task_ends_the_session_s_task_of_that_tag),
		with_tasks_in_both(test_abort_task_set_ends_the_session_s_tasks),
		with_tasks_in_both(test_clear_task_set_ends_the_tasks_of_all_and_tells_the_others),
		with_tasks_in_both(test_logical_unit_reset_ends_all_tasks_and_tells_all_others),
		with_tasks_in_both(test_queries_tell_whether_tasks_are_there_and_end_none),
		with_tasks_in_both(test_query_unit_attention_tells_the_first_and_leaves_it),
		with_tasks_in_both(test_functions_of_the_connection_are_rejected),
		with_tasks_in_both(
			test_a_unit_that_does_not_know_its_tasks_rejects_functions_on_them),
		with_tasks_in_both(test_unknown_functions_are_refused),
		with_tasks_in_both(test_the_answer_is_cut_to_the_allocation_length),
		with_tasks_in_both(test_attributes_are_those_of_the_addressed_object),
		with_tasks_in_both(test_a_command_that_is_refused_ends_no_task),
		with_tasks_in_both(test_the_functions_that_there_are_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
