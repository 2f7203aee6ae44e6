/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * PERFORM SCSI COMMAND: a SCSI command of other devices, with the attributes and the security of an
 * OSD command.
 */
#include <errno.h>

#include "common/bytes.h"
#include "osd/execute.h"

enum { FIELD_EMBEDDED_CDB = 32 };

/*
 * REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS: a service action of MAINTENANCE IN, and the bits of
 * its data.
 */
enum { REPORT_TASK_FUNCTIONS = 0x0D, TASK_FUNCTIONS_BYTES = 4 };
enum { ATS = 0x80, ATSS = 0x40, CTSS = 0x10, LURS = 0x08, QTS = 0x04 }; /* byte 0 */
enum { QAES = 0x04, QTSS = 0x02 };                                      /* byte 1 */

int osd_check_embedded(struct osd_request *request)
{
	const uint8_t *cdb = request->cdb.embedded_cdb;

	switch (cdb[0]) {
	case OSD_SCSI_TEST_UNIT_READY:
		return 0;
	case OSD_SCSI_REQUEST_SENSE:
		/* Descriptor format, the one that an OSD has. */
		return cdb[1] & 1 ? 0 : osd_fail_field(request, FIELD_EMBEDDED_CDB + 1);
	case OSD_SCSI_INQUIRY:
		if (osd_inquiry(request->device, request->command->nexus, cdb, NULL, 0) < 0)
			return osd_fail_field(request, FIELD_EMBEDDED_CDB + 2);
		return 0;
	case OSD_SCSI_MAINTENANCE_IN:
		if ((cdb[1] & 0x1F) != REPORT_TASK_FUNCTIONS)
			return osd_fail_field(request, FIELD_EMBEDDED_CDB + 1);
		/* RETURN EXTENDED PARAMETER DATA would give timeouts, and there are none. */
		return cdb[2] & 0x80 ? osd_fail_field(request, FIELD_EMBEDDED_CDB + 2) : 0;
	default:
		return osd_fail_field(request, FIELD_EMBEDDED_CDB);
	}
}

/* Sense data that says nothing: the sense of a command comes with its status. */
static size_t answer_sense(uint8_t *data, size_t space)
{
	static const struct osd_sense nothing = { .key = SENSE_NO_SENSE, .code = SENSE_NONE };
	uint8_t sense[OSD_SENSE_ENCODED_MAX];
	size_t length = min_u64(osd_sense_encode(&nothing, sense, sizeof(sense)), space);

	memcpy(data, sense, length);
	return length;
}

/* The functions that PERFORM TASK MANAGEMENT FUNCTION performs. */
static size_t answer_task_functions(const struct osd_device *device, uint8_t *data, size_t space)
{
	uint8_t functions[TASK_FUNCTIONS_BYTES] = { 0, QAES };
	size_t length = min_u64(sizeof(functions), space);

	if (device->tasks.choose) {
		functions[0] = ATS | ATSS | CTSS | LURS | QTS;
		functions[1] |= QTSS;
	}
	memcpy(data, functions, length);
	return length;
}

int osd_perform_scsi_command(struct osd_request *request)
{
	struct osd_command *command = request->command;
	const uint8_t *cdb = request->cdb.embedded_cdb;
	size_t space = request->in_data_length;
	int length;

	if (cdb[0] == OSD_SCSI_REQUEST_SENSE)
		command->data_in_length = answer_sense(command->data_in, space);
	if (cdb[0] == OSD_SCSI_MAINTENANCE_IN)
		command->data_in_length =
			answer_task_functions(request->device, command->data_in, space);
	if (cdb[0] != OSD_SCSI_INQUIRY)
		return 0;
	length = osd_inquiry(request->device, command->nexus, cdb, command->data_in, space);
	if (length < 0)
		return osd_fail_field(request, FIELD_EMBEDDED_CDB + 2);
	command->data_in_length = min_u64((uint64_t)length, space);
	return 0;
}
