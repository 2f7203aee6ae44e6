/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The table from errors to sense codes, also for errors that a healthy engine does not have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "osd/execute.h"

static struct osd_sense sense_of(int error, uint16_t field, enum osd_phase phase)
{
	struct osd_command command = { .data_in_length = 5 };
	struct osd_request request = { .command = &command, .phase = phase };
	struct osd_sense sense;

	request.cdb.partition = 0x10000;
	assert_int_equal(osd_result(&request, -error, field), -error);
	osd_finish(&request);
	assert_int_equal(command.status, SCSI_STATUS_CHECK_CONDITION);
	assert_int_equal(command.data_in_length, 0);
	assert_int_equal(osd_sense_decode(command.sense, command.sense_length, &sense), 0);
	assert_true(sense.has_object);
	assert_int_equal(sense.partition, 0x10000);
	return sense;
}

static void test_each_error_has_its_sense(void **state)
{
	static const struct {
		int error;
		uint8_t key;
		uint16_t code;
	} cases[] = {
		{ ENOENT, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_CDB },
		{ EEXIST, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_CDB },
		{ EINVAL, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_CDB },
		{ ESTALE, SENSE_ILLEGAL_REQUEST, SENSE_PARAMETER_VALUE_INVALID },
		{ ENOTEMPTY, SENSE_ILLEGAL_REQUEST,
		  SENSE_PARTITION_OR_COLLECTION_CONTAINS_USER_OBJECTS },
		{ EMSGSIZE, SENSE_ILLEGAL_REQUEST, SENSE_PARAMETER_LIST_LENGTH_ERROR },
		{ EFBIG, SENSE_ILLEGAL_REQUEST, SENSE_SYSTEM_RESOURCE_FAILURE },
		{ EMLINK, SENSE_ILLEGAL_REQUEST, SENSE_SYSTEM_RESOURCE_FAILURE },
		{ EOVERFLOW, SENSE_DATA_PROTECT, SENSE_SYSTEM_RESOURCE_FAILURE },
		{ ETIME, SENSE_ABORTED_COMMAND, SENSE_INSUFFICIENT_RESOURCES },
		{ ENOSPC, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR },
		{ EDQUOT, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR },
		{ EROFS, SENSE_DATA_PROTECT, SENSE_WRITE_PROTECTED },
		{ EBADMSG, SENSE_MEDIUM_ERROR, SENSE_UNRECOVERED_READ_ERROR },
		{ EIO, SENSE_HARDWARE_ERROR, SENSE_INTERNAL_TARGET_FAILURE },
		{ ENXIO, SENSE_HARDWARE_ERROR,
		  SENSE_INTERNAL_TARGET_FAILURE }, /* not expected of an engine */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct osd_sense sense = sense_of(cases[i].error, 24, OSD_PHASE_VALIDATION);

		assert_int_equal(sense.key, cases[i].key);
		assert_int_equal(sense.code, cases[i].code);
		assert_int_equal(sense.has_field, cases[i].code == SENSE_INVALID_FIELD_IN_CDB ||
							  cases[i].error == EMLINK);
	}
}

static void test_functions_that_were_not_begun_are_named(void **state)
{
	static const struct {
		enum osd_phase phase;
		uint32_t not_initiated, completed;
	} cases[] = {
		{ OSD_PHASE_VALIDATION, 0xB0103030, 0 },
		{ OSD_PHASE_COMMAND, 0x20103030, 0x80000000 },
		{ OSD_PHASE_SETS, 0x30102030, 0x80000000 },
		{ OSD_PHASE_GETS, 0x30103020, 0x80000000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct osd_sense sense = sense_of(EIO, 0, cases[i].phase);

		assert_int_equal(sense.not_initiated, cases[i].not_initiated);
		assert_int_equal(sense.completed, cases[i].completed);
	}
}

static void test_without_memory_a_command_is_busy_and_has_no_sense(void **state)
{
	struct osd_command command = { .data_in_length = 5 };
	struct osd_request request = { .command = &command, .phase = OSD_PHASE_COMMAND };

	(void)state;
	assert_int_equal(osd_result(&request, -ENOMEM, 24), -ENOMEM);
	assert_true(request.failed);
	osd_finish(&request);
	assert_int_equal(command.status, SCSI_STATUS_BUSY);
	assert_int_equal(command.sense_length, 0);
	assert_int_equal(command.data_in_length, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_error_has_its_sense),
		cmocka_unit_test(test_without_memory_a_command_is_busy_and_has_no_sense),
		cmocka_unit_test(test_functions_that_were_not_begun_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
