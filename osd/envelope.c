/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * SEND and FETCH: OSD commands in envelopes. What is inside is executed as if it had come by
 * itself: the same session, checks, security, attempts and attentions.
 *
 * FETCH itself ends with GOOD whatever the command inside ends with. So nobody on the way, as the
 * system of the initiator, takes the command's status for that of the way.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "osd/execute.h"
#include "wire/envelope.h"

enum {
	/* Copying a letter so long takes no longer than handing the command over. */
	AT_ONCE_BYTES_MAX = 65536 + ENVELOPE_HEAD_BYTES,
};

bool osd_is_envelope(const struct osd_command *command)
{
	return command->cdb_length > 0 &&
	       (command->cdb[0] == ENVELOPE_SEND || command->cdb[0] == ENVELOPE_FETCH);
}

static void begin(struct osd_command *command)
{
	command->status = SCSI_STATUS_GOOD;
	command->sense_length = 0;
	command->data_in_length = 0;
	command->data_out_used = 0;
}

static void fail(struct osd_command *command, uint16_t code, bool in_cdb, uint16_t field)
{
	struct osd_sense sense = {
		.key = SENSE_ILLEGAL_REQUEST,
		.code = code,
		.has_field = code != SENSE_COMMAND_SEQUENCE_ERROR,
		.field_in_cdb = in_cdb,
		.field = field,
	};

	command->status = SCSI_STATUS_CHECK_CONDITION;
	command->sense_length = osd_sense_encode(&sense, command->sense, sizeof(command->sense));
}

static void fail_field(struct osd_command *command, uint16_t field)
{
	fail(command, SENSE_INVALID_FIELD_IN_CDB, true, field);
}

/* ---- SEND ---- */

static void send(struct osd_device *device, struct osd_command *command,
		 const struct envelope_cdb *cdb)
{
	struct envelope_letter content;
	struct osd_letter *letter;
	uint16_t bad_field;
	int result;

	if (cdb->length > ENVELOPE_HEAD_BYTES + ENVELOPE_DATA_OUT_MAX ||
	    cdb->length > command->data_out_length) {
		fail_field(command, ENVELOPE_CDB_LENGTH);
		return;
	}
	if (envelope_letter_decode(command->data_out, cdb->length, &content, &bad_field) != 0) {
		fail(command, SENSE_INVALID_FIELD_IN_PARAMETER_LIST, false, bad_field);
		return;
	}
	result = osd_letters_take(&device->letters, command->nexus, cdb->tag, cdb->length, &letter);
	if (result == -EALREADY)
		fail(command, SENSE_COMMAND_SEQUENCE_ERROR, false, 0);
	else if (result != 0)
		command->status = SCSI_STATUS_BUSY;
	else {
		memcpy(letter->bytes, command->data_out, cdb->length);
		osd_letter_keep(&device->letters, letter);
		command->data_out_used = cdb->length;
	}
}

/* ---- FETCH ---- */

/* The command in the letter, as if the session had sent it by itself. */
static struct osd_command inside(const struct osd_command *command, const struct osd_letter *letter,
				 const struct envelope_cdb *cdb)
{
	struct envelope_letter content;
	uint16_t bad_field;
	size_t space = min_u64(cdb->length, command->data_in_capacity) - ENVELOPE_HEAD_BYTES;
	int result = envelope_letter_decode(letter->bytes, letter->length, &content, &bad_field);

	assert(result == 0);
	return (struct osd_command){
		.cdb = content.cdb,
		.cdb_length = content.cdb_length,
		.data_out = content.data_length ? letter->bytes + ENVELOPE_HEAD_BYTES : NULL,
		.data_out_length = content.data_length,
		.data_in = space ? command->data_in + ENVELOPE_HEAD_BYTES : NULL,
		.data_in_capacity = space,
		.nexus = command->nexus,
		.initiator = command->initiator,
		.is_aborted = command->is_aborted,
		.abort_context = command->abort_context,
	};
}

/* What has become of the command is the answer; an abort is one of FETCH. */
static void answer(struct osd_command *command, const struct osd_command *executed)
{
	const struct envelope_answer head = {
		.status = executed->status,
		.sense = executed->sense,
		.sense_length = executed->sense_length,
		.data_length = executed->data_in_length,
		.data_out_used = min_u64(executed->data_out_used, executed->data_out_length),
	};

	if (executed->status == SCSI_STATUS_TASK_ABORTED) {
		command->status = executed->status;
		return;
	}
	envelope_answer_encode(&head, command->data_in);
	command->data_in_length = ENVELOPE_HEAD_BYTES + executed->data_in_length;
}

/* As osd_execute_at_once if `at_once`, else as osd_execute. */
static bool fetch(struct osd_device *device, struct osd_command *command,
		  const struct envelope_cdb *cdb, bool at_once, struct nand_stage *stage)
{
	struct osd_command executed;
	struct osd_letter *letter;
	bool done = true;

	if (command->data_in_capacity < ENVELOPE_HEAD_BYTES) {
		fail_field(command, ENVELOPE_CDB_LENGTH);
		return true;
	}
	letter = osd_letters_find(&device->letters, command->nexus, cdb->tag);
	if (!letter) {
		fail_field(command, ENVELOPE_CDB_TAG);
		return true;
	}
	executed = inside(command, letter, cdb);
	if (at_once)
		done = osd_command_execute_at_once(device, &executed, stage);
	else
		osd_command_execute(device, &executed);
	if (done) {
		answer(command, &executed);
		osd_letter_end(&device->letters, letter);
	} else
		osd_letter_keep(&device->letters, letter);
	return done;
}

/* ---- both ---- */

static bool execute(struct osd_device *device, struct osd_command *command, bool at_once,
		    struct nand_stage *stage)
{
	struct envelope_cdb cdb;
	uint16_t bad_field;

	begin(command);
	if (envelope_cdb_decode(command->cdb, command->cdb_length, &cdb, &bad_field) != 0)
		fail_field(command, bad_field);
	else if (cdb.operation == ENVELOPE_FETCH)
		return fetch(device, command, &cdb, at_once, stage);
	else if (!at_once || cdb.length <= AT_ONCE_BYTES_MAX)
		send(device, command, &cdb);
	else
		return false;
	return true;
}

void osd_envelope_execute(struct osd_device *device, struct osd_command *command)
{
	execute(device, command, false, NULL);
}

bool osd_envelope_execute_at_once(struct osd_device *device, struct osd_command *command,
				  struct nand_stage *stage)
{
	return execute(device, command, true, stage);
}

bool osd_envelope_asks_for_sessions(struct osd_device *device, uint64_t nexus, const uint8_t *cdb,
				    size_t cdb_length)
{
	struct envelope_letter content;
	struct envelope_cdb decoded;
	struct osd_letter *letter;
	uint16_t bad_field;
	bool asks;

	if (envelope_cdb_decode(cdb, cdb_length, &decoded, &bad_field) != 0 ||
	    decoded.operation != ENVELOPE_FETCH)
		return false;
	letter = osd_letters_find(&device->letters, nexus, decoded.tag);
	if (!letter)
		return false;
	asks = envelope_letter_decode(letter->bytes, letter->length, &content, &bad_field) == 0 &&
	       osd_asks_for_sessions(device, nexus, content.cdb, content.cdb_length);
	osd_letter_keep(&device->letters, letter);
	return asks;
}
