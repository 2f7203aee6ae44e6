/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * PERFORM TASK MANAGEMENT FUNCTION, on the tasks that the device was given (osd.h).
 *
 * The function comes last in the command's transaction, after everything that can refuse the
 * command: the tasks are not the engine's, so nothing can undo what happened to them.
 */
#include <errno.h>

#include "common/bytes.h"
#include "osd/execute.h"

enum { FIELD_TASK_FUNCTION = 39 };

int osd_check_task_management(struct osd_request *request)
{
	switch (request->cdb.task_function) {
	case OSD_ABORT_TASK:
	case OSD_ABORT_TASK_SET:
	case OSD_CLEAR_TASK_SET:
	case OSD_LOGICAL_UNIT_RESET:
	case OSD_I_T_NEXUS_RESET:
	case OSD_CLEAR_ACA:
	case OSD_QUERY_TASK:
	case OSD_QUERY_TASK_SET:
	case OSD_QUERY_UNIT_ATTENTION:
		return 0;
	default:
		return osd_fail_field(request, FIELD_TASK_FUNCTION);
	}
}

/* The command's gets come after the function. Can they be answered? */
static int check_gets(struct osd_request *request)
{
	uint8_t structure[OSD_PAGE_STRUCTURE_BYTES_MAX];
	uint32_t page = request->cdb.get_page;
	size_t length;

	if (request->cdb.format != OSD_ATTRIBUTES_PAGE || page == 0 || page == OSD_PAGE_ALL)
		return osd_check_gets(request, request->subject.stat.type);
	return osd_result(request,
			  osd_page_structure(request, &request->subject, page, structure, &length),
			  52);
}

/* ---- the functions ---- */

static uint32_t choose(struct osd_request *request, bool every_nexus, bool one, bool abort,
		       osd_task_found *found)
{
	struct osd_device *device = request->device;
	struct osd_task_choice choice = {
		.every_nexus = every_nexus,
		.nexus = request->command->nexus,
		.one = one,
		.tag = request->cdb.task_tag,
	};

	return device->tasks.choose(device->tasks.context, &choice, abort, found, request);
}

/* Another initiator ends this task: its own initiator gets a unit attention. */
static void tell_cleared(void *context, uint64_t nexus)
{
	const struct osd_request *request = context;

	if (nexus != request->command->nexus)
		osd_attention_raise_for(request->device->conditions, nexus, OSD_ATTENTION_CLEARED);
}

static uint8_t query(struct osd_request *request, bool one)
{
	return choose(request, false, one, false, NULL) > 0 ? OSD_TASK_FUNCTION_SUCCEEDED
							    : OSD_TASK_FUNCTION_COMPLETE;
}

/* ADDITIONAL RESPONSE INFORMATION: how many unit attentions wait for the nexus, and the first. */
static uint8_t query_attention(struct osd_request *request, uint8_t *information)
{
	enum osd_attention attention;
	unsigned count = osd_attention_look(request->device->conditions, request->command->nexus,
					    &attention);

	if (count == 0)
		return OSD_TASK_FUNCTION_COMPLETE;
	information[0] =
		(uint8_t)((count > 1 ? OSD_UADE_MORE : OSD_UADE_ONE) << 4 | SENSE_UNIT_ATTENTION);
	put_be16(information + 1, osd_attention_code(attention));
	return OSD_TASK_FUNCTION_SUCCEEDED;
}

/* SERVICE RESPONSE. Unknown functions on tasks, and functions of the connection, are rejected. */
static uint8_t perform(struct osd_request *request, uint8_t *information)
{
	uint8_t function = request->cdb.task_function;

	if (function == OSD_QUERY_UNIT_ATTENTION)
		return query_attention(request, information);
	if (!request->device->tasks.choose)
		return OSD_TASK_FUNCTION_REJECTED;
	switch (function) {
	case OSD_ABORT_TASK:
		choose(request, false, true, true, NULL);
		return OSD_TASK_FUNCTION_COMPLETE;
	case OSD_ABORT_TASK_SET:
		choose(request, false, false, true, NULL);
		return OSD_TASK_FUNCTION_COMPLETE;
	case OSD_CLEAR_TASK_SET:
		choose(request, true, false, true, tell_cleared);
		return OSD_TASK_FUNCTION_COMPLETE;
	case OSD_LOGICAL_UNIT_RESET:
		choose(request, true, false, true, NULL);
		osd_attention_raise(request->device->conditions, request->command->nexus, 0,
				    OSD_ATTENTION_RESET);
		return OSD_TASK_FUNCTION_COMPLETE;
	case OSD_QUERY_TASK:
		return query(request, true);
	case OSD_QUERY_TASK_SET:
		return query(request, false);
	default: /* CLEAR ACA: there is none. I_T NEXUS RESET: the transport's own. */
		return OSD_TASK_FUNCTION_REJECTED;
	}
}

int osd_perform_task_management(struct osd_request *request)
{
	uint8_t answer[OSD_TASK_ANSWER_BYTES] = { 0 };
	size_t length = min_u64(sizeof(answer), request->in_data_length);
	int result = check_gets(request);

	if (result != 0)
		return result;
	put_be16(answer, sizeof(answer) - 2);
	answer[4] = perform(request, answer + 5);
	memcpy(request->command->data_in, answer, length);
	request->command->data_in_length = length;
	return 0;
}
