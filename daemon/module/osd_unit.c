/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The OSD unit: commands of T10 OSD (operation code 0x7F; in envelopes 0xC0 and 0xC1) on the unit's
 * threads, INQUIRY and TEST UNIT READY in place of tgtd's own. What the commands mean is in osd/.
 */
#include "daemon/module/osd_unit.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/bytes.h"
#include "daemon/module/nexus.h"
#include "daemon/module/unit.h"
#include "osd/osd.h"
#include "wire/envelope.h"
#include "wire/keys_file.h"

/* Needs the others before it. */
#include "target.h"

/*
 * tgtd tells a backing store of no logout. So looks who is still there before it matters: when a
 * new session wants a place, and when a command asks who uses a partition.
 */
static void arrives(struct unit *unit, const struct scsi_cmd *cmd, bool is_first)
{
	if (is_first ||
	    osd_asks_for_sessions(unit->state, nexus_of(cmd), cmd->scb, (size_t)cmd->scb_len))
		osd_forget_sessions(unit->state, nexus_is_logged_in, cmd->dev->tgt);
}

static bool is_aborted(void *cmd)
{
	return io_threads_is_aborted(cmd);
}

/* tgtd's command as the OSD layer's. Leaves the results as they are, which are long. */
static void take_command(struct scsi_cmd *cmd, struct osd_command *command)
{
	enum data_direction direction = scsi_get_data_dir(cmd);
	bool writes = direction & DATA_WRITE, reads = direction & DATA_READ;

	command->cdb = cmd->scb;
	command->cdb_length = (size_t)cmd->scb_len;
	command->nexus = nexus_of(cmd);
	command->initiator = nexus_initiator(cmd);
	command->is_aborted = is_aborted;
	command->abort_context = cmd;
	command->data_out = writes ? scsi_get_out_buffer(cmd) : NULL;
	command->data_out_length = writes ? scsi_get_out_length(cmd) : 0;
	command->data_in = reads ? scsi_get_in_buffer(cmd) : NULL;
	command->data_in_capacity = reads ? scsi_get_in_length(cmd) : 0;
}

/* The results of a command that has ended. */
static void give_results(struct unit *unit, const struct osd_command *command, struct scsi_cmd *cmd)
{
	assert(command->data_in_length <= command->data_in_capacity);
	assert(command->sense_length <= OSD_SENSE_BYTES_MAX);
	memcpy(cmd->sense_buffer, command->sense, command->sense_length);
	cmd->sense_len = (int)command->sense_length;
	unit_note_sense(unit, command->sense, command->sense_length);
	/*
	 * tgtd sends the transfer length of Data-In whatever the status is. So the data of a short
	 * read goes with its sense.
	 */
	scsi_set_in_resid_by_actual(cmd, (uint32_t)command->data_in_length);
	scsi_set_out_resid_by_actual(
		cmd, (uint32_t)min_u64(command->data_out_used, command->data_out_length));
	scsi_set_result(cmd, command->status);
}

static void execute(struct unit *unit, struct scsi_cmd *cmd)
{
	struct osd_command command;

	take_command(cmd, &command);
	osd_execute(unit->state, &command);
	give_results(unit, &command, cmd);
}

static bool attempt(struct unit *unit, struct scsi_cmd *cmd, struct nand_stage *stage)
{
	struct osd_command command;

	take_command(cmd, &command);
	if (!osd_execute_at_once(unit->state, &command, stage))
		return false;
	give_results(unit, &command, cmd);
	return true;
}

/*
 * INQUIRY of an OSD logical unit, in place of tgtd's, which has neither our vendor nor our
 * identification.
 */
static int inquiry(struct unit *unit, struct scsi_cmd *cmd)
{
	uint32_t allocated = get_be16(&cmd->scb[3]);
	uint32_t capacity = scsi_get_in_length(cmd);
	int length;

	if (allocated < capacity)
		capacity = allocated;
	length = osd_inquiry(unit->state, nexus_of(cmd), cmd->scb, scsi_get_in_buffer(cmd),
			     capacity);
	if (length < 0) {
		scsi_set_in_resid_by_actual(cmd, 0);
		sense_data_build(cmd, ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
		return SAM_STAT_CHECK_CONDITION;
	}
	scsi_set_in_resid_by_actual(cmd, (uint32_t)min_u64((uint64_t)length, capacity));
	return SAM_STAT_GOOD;
}

/* TEST UNIT READY: tells what happened to the unit that the session has not been told yet. */
static int test_unit_ready(struct unit *unit, struct scsi_cmd *cmd)
{
	uint8_t sense[OSD_SENSE_BYTES_MAX];
	size_t length;

	if (!osd_unit_attention(unit->state, nexus_of(cmd), sense, &length))
		return unit_perform_stock(unit, cmd);
	memcpy(cmd->sense_buffer, sense, length);
	cmd->sense_len = (int)length;
	return SAM_STAT_CHECK_CONDITION;
}

/* tgtd knows no envelopes. What it checks of other commands, it goes on to check. */
static int hand_over(int host_no, struct scsi_cmd *cmd)
{
	(void)host_no;
	if (cmd->scb[0] == VARLEN_CDB)
		return unit_perform_stock(unit_of(cmd->dev), cmd);
	return unit_submit(cmd);
}

/* tgtd has refused operation codes that the kind does not name. */
static int perform(struct unit *unit, struct scsi_cmd *cmd)
{
	if (cmd->scb[0] == INQUIRY)
		return inquiry(unit, cmd);
	if (cmd->scb[0] == TEST_UNIT_READY)
		return test_unit_ready(unit, cmd);
	return unit_perform_stock(unit, cmd);
}

/* For PERFORM TASK MANAGEMENT FUNCTION, from inside osd_execute. */
static uint32_t choose_tasks(void *context, const struct osd_task_choice *choice, bool abort,
			     osd_task_found *found, void *found_context)
{
	const struct unit *unit = context;
	const struct task_choice chosen = {
		.every_nexus = choice->every_nexus,
		.nexus = choice->nexus,
		.one = choice->one,
		.tag = choice->tag,
	};

	return io_threads_choose(unit->threads, &chosen, abort, found, found_context);
}

static int read_device_key(struct unit *unit, struct error_text *error)
{
	struct lun_options *options = &unit->options;
	int result;

	if (!options->key_file[0])
		return 0;
	result = osd_key_file_read(options->key_file, options->osd.device_key, error);
	options->osd.has_device_key = result == 0;
	return result;
}

static int open_osd(struct unit *unit, uint64_t *bytes, struct error_text *error)
{
	struct engine *engine = device_engine(unit->device);
	const struct osd_task_set tasks = { .context = unit, .choose = choose_tasks };
	struct osd_options *options = &unit->options.osd;
	struct engine_statistics statistics;
	struct osd_device *osd;
	int result = read_device_key(unit, error);

	if (!result) {
		result = osd_device_create(engine, device_uuid(unit->device), options, &osd);
		if (result)
			error_set(error, result, "no OSD can be made: %s", strerror(-result));
	}
	explicit_bzero(options->device_key, sizeof(options->device_key));
	if (result)
		return result;
	osd_device_set_tasks(osd, &tasks);
	osd_device_join(osd, device_units(unit->device));
	unit->state = osd;
	engine_read_statistics(engine, &statistics);
	*bytes = statistics.capacity_bytes;
	return 0;
}

static void close_osd(struct unit *unit)
{
	osd_device_destroy(unit->state);
	unit->state = NULL;
}

static const uint8_t operations[] = { TEST_UNIT_READY, REQUEST_SENSE, INQUIRY,       REPORT_LUNS,
				      VARLEN_CDB,      ENVELOPE_SEND, ENVELOPE_FETCH };
static const uint8_t on_threads[] = { VARLEN_CDB, ENVELOPE_SEND, ENVELOPE_FETCH };

const struct unit_kind osd_unit = {
	.type = &unit_types[UNIT_TYPE_OSD],
	.operations = operations,
	.operation_count = sizeof(operations),
	.on_threads = on_threads,
	.on_threads_count = sizeof(on_threads),
	.hand_over = hand_over,
	.open = open_osd,
	.close = close_osd,
	.arrives = arrives,
	.execute = execute,
	.attempt = attempt,
	.perform = perform,
};
