/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Errors as sense data: the one table from errno values, and how a command ends. */
#include <assert.h>
#include <errno.h>

#include "common/bytes.h"
#include "osd/execute.h"

static const struct {
	int error;
	uint8_t key;
	uint16_t code;
} error_table[] = {
	{ ENOENT, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_CDB },
	{ EEXIST, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_CDB },
	{ EINVAL, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_CDB },
	{ EMSGSIZE, SENSE_ILLEGAL_REQUEST, SENSE_PARAMETER_LIST_LENGTH_ERROR },
	/* A time before the present time epoch. */
	{ ESTALE, SENSE_ILLEGAL_REQUEST, SENSE_PARAMETER_VALUE_INVALID },
	/* An engine that cannot do it. */
	{ EOPNOTSUPP, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_COMMAND_OPERATION_CODE },
	{ ENOTEMPTY, SENSE_ILLEGAL_REQUEST, SENSE_PARTITION_OR_COLLECTION_CONTAINS_USER_OBJECTS },
	{ EFBIG, SENSE_ILLEGAL_REQUEST, SENSE_SYSTEM_RESOURCE_FAILURE },
	{ E2BIG, SENSE_ILLEGAL_REQUEST, SENSE_SYSTEM_RESOURCE_FAILURE },
	/* Its field tells it from the others: it names the source of the clone. */
	{ EMLINK, SENSE_ILLEGAL_REQUEST, SENSE_SYSTEM_RESOURCE_FAILURE },
	/* Sequence numbers are used up: no write gets through, as on a worn-out medium. */
	{ EOVERFLOW, SENSE_DATA_PROTECT, SENSE_SYSTEM_RESOURCE_FAILURE },
	/* Too fast: the same command may be sent again in a while. */
	{ ETIME, SENSE_ABORTED_COMMAND, SENSE_INSUFFICIENT_RESOURCES },
	/* Linux reports this code as "no space", whatever the key. */
	{ ENOSPC, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR },
	{ EDQUOT, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR },
	{ EROFS, SENSE_DATA_PROTECT, SENSE_WRITE_PROTECTED },
	{ EPERM, SENSE_DATA_PROTECT, SENSE_CONDITIONAL_WRITE_PROTECT },
	{ EBUSY, SENSE_ILLEGAL_REQUEST, SENSE_COMMAND_SEQUENCE_ERROR },
	{ EBADMSG, SENSE_MEDIUM_ERROR, SENSE_UNRECOVERED_READ_ERROR },
	{ EIO, SENSE_HARDWARE_ERROR, SENSE_INTERNAL_TARGET_FAILURE },
};

/* Starts the sense data of the command's first failure. */
static void begin_failure(struct osd_request *request, uint8_t key, uint16_t code)
{
	assert(!request->failed);
	request->failed = true;
	request->sense = (struct osd_sense){ .key = key, .code = code };
}

int osd_fail(struct osd_request *request, uint8_t key, uint16_t code)
{
	begin_failure(request, key, code);
	return -EINVAL;
}

int osd_fail_field(struct osd_request *request, uint16_t field)
{
	begin_failure(request, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_CDB);
	request->sense.has_field = true;
	request->sense.field_in_cdb = true;
	request->sense.field = field;
	return -EINVAL;
}

int osd_fail_attribute(struct osd_request *request, uint32_t page, uint32_t number)
{
	if (request->cdb.format == OSD_ATTRIBUTES_CDB)
		osd_fail_field(request, 52);
	else
		begin_failure(request, SENSE_ILLEGAL_REQUEST,
			      SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	request->sense.attributes = 1;
	request->sense.attribute[0].page = page;
	request->sense.attribute[0].number = number;
	return -EINVAL;
}

uint32_t osd_sense_of(int result)
{
	for (size_t i = 0; i < sizeof(error_table) / sizeof(error_table[0]); i++)
		if (error_table[i].error == -result)
			return (uint32_t)error_table[i].key << 16 | error_table[i].code;
	return (uint32_t)SENSE_HARDWARE_ERROR << 16 | SENSE_INTERNAL_TARGET_FAILURE;
}

int osd_result(struct osd_request *request, int result, uint16_t field)
{
	uint16_t code;

	if (result == 0)
		return 0;
	/*
	 * Nothing was wrong with the command, and nothing of it has happened: the initiator may
	 * send it again.
	 */
	if (result == -ENOMEM) {
		request->failed = true;
		request->command->status = SCSI_STATUS_BUSY;
		return result;
	}
	code = (uint16_t)osd_sense_of(result);
	begin_failure(request, (uint8_t)(osd_sense_of(result) >> 16), code);
	if ((code == SENSE_INVALID_FIELD_IN_CDB || result == -EMLINK) && field != 0) {
		request->sense.has_field = true;
		request->sense.field_in_cdb = true;
		request->sense.field = field;
	}
	return result;
}

/* The function that does the work of the phase. */
static uint32_t function_of(enum osd_phase phase)
{
	switch (phase) {
	case OSD_PHASE_SETS:
		return OSD_FUNCTION_SET_ATTRIBUTES;
	case OSD_PHASE_GETS:
		return OSD_FUNCTION_GET_ATTRIBUTES;
	case OSD_PHASE_COMMAND:
	case OSD_PHASE_DONE:
	case OSD_PHASE_VALIDATION:
		break;
	}
	return OSD_FUNCTION_COMMAND;
}

/* Functions that checked whether they may do the command, and found that they may. */
static uint32_t functions_of_validation(const struct osd_request *request)
{
	uint32_t functions = OSD_FUNCTION_VALIDATION;

	if (request->security.method == OSD_NOSEC)
		return functions;
	functions |= OSD_FUNCTION_COMMAND_CAPABILITY;
	if (osd_has_sets(request))
		functions |= OSD_FUNCTION_SET_CAPABILITY;
	if (osd_has_gets(request))
		functions |= OSD_FUNCTION_GET_CAPABILITY;
	return functions;
}

/*
 * Functions that started and did not end: the one that failed. The work of others was undone with
 * it, so they count as not initiated. But what earlier transactions of the command did stays. (A
 * command that gets attributes of members has one transaction.)
 */
static uint32_t functions_failed(const struct osd_request *request)
{
	uint32_t functions = function_of(request->phase);

	if (!request->partly_done)
		return functions;
	functions |= OSD_FUNCTION_COMMAND;
	if (request->entry->flags & OSD_MEMBERS && osd_has_sets(request))
		functions |= OSD_FUNCTION_SET_ATTRIBUTES;
	return functions;
}

/*
 * A function in neither field has started and failed. What fails in validation has not begun at
 * all.
 */
static void tell_functions(const struct osd_request *request, struct osd_sense *sense)
{
	if (!request->failed) {
		sense->completed = OSD_FUNCTIONS_ALL;
		return;
	}
	sense->not_initiated = OSD_FUNCTIONS_ALL;
	if (request->phase == OSD_PHASE_VALIDATION)
		return;
	sense->completed = functions_of_validation(request);
	sense->not_initiated &= ~(sense->completed | functions_failed(request));
}

void osd_finish(struct osd_request *request)
{
	struct osd_command *command = request->command;
	struct osd_sense *sense = &request->sense;

	if (request->failed)
		command->data_in_length = 0;
	if (command->status == SCSI_STATUS_BUSY || command->status == SCSI_STATUS_TASK_ABORTED)
		return;
	if (sense->key == SENSE_NO_SENSE) {
		command->status = SCSI_STATUS_GOOD;
		return;
	}
	/* The addressed object, unless another one is at fault. */
	if (!sense->has_object) {
		sense->has_object = true;
		sense->partition = request->cdb.partition;
		sense->object = request->cdb.object;
	}
	tell_functions(request, sense);
	if (request->security.authenticated)
		sense->check_value_bytes = request->cdb.version == OSD_1 ? 20 : 32;
	command->status = SCSI_STATUS_CHECK_CONDITION;
	command->sense_length = osd_sense_encode(sense, command->sense, sizeof(command->sense));
}
