/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Encodes and decodes the iSCSI PDUs of the full-feature phase, byte by byte. */
#include "client/iscsi_pdu.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/bytes.h"

/* Types of additional header segments. */
enum { AHS_EXTENDED_CDB = 0x01, AHS_BIDIRECTIONAL_READ_LENGTH = 0x02 };
/* AHSLENGTH counts what is behind AHSTYPE: the type-specific byte and the data. */
#define AHS_HEAD_BYTES       4U
#define IMMEDIATE_DELIVERY   0x40
#define LOGOUT_CLOSE_SESSION 0x00

static void put_data_length(uint8_t *bhs, uint32_t length)
{
	assert(length < 1U << 24);
	bhs[5] = (uint8_t)(length >> 16);
	put_be16(bhs + 6, (uint16_t)length);
}

void iscsi_encode_lun(uint8_t to[8], unsigned lun)
{
	assert(lun < 0x4000);
	memset(to, 0, 8);
	put_be16(to, (uint16_t)(lun < 256 ? lun : 0x4000 | lun));
}

/* Returns the bytes appended at `to`, padding included. */
static size_t append_extended_cdb(uint8_t *to, const uint8_t *cdb, size_t length)
{
	size_t rest = length - ISCSI_BHS_CDB_BYTES;
	size_t padded = align_up(rest, 4);

	put_be16(to, (uint16_t)(rest + 1));
	to[2] = AHS_EXTENDED_CDB;
	to[3] = 0;
	memcpy(to + AHS_HEAD_BYTES, cdb + ISCSI_BHS_CDB_BYTES, rest);
	memset(to + AHS_HEAD_BYTES + rest, 0, padded - rest);
	return AHS_HEAD_BYTES + padded;
}

static size_t append_read_length(uint8_t *to, uint32_t length)
{
	put_be16(to, 5);
	to[2] = AHS_BIDIRECTIONAL_READ_LENGTH;
	to[3] = 0;
	put_be32(to + AHS_HEAD_BYTES, length);
	return AHS_HEAD_BYTES + 4;
}

size_t iscsi_encode_command(uint8_t to[ISCSI_COMMAND_HEADER_BYTES_MAX],
			    const struct iscsi_command *command)
{
	size_t used = ISCSI_BHS_BYTES;
	size_t in_header = min_u64(command->cdb_length, ISCSI_BHS_CDB_BYTES);

	assert(command->cdb_length >= 1 && command->cdb_length <= ISCSI_CDB_BYTES_MAX);
	assert(command->immediate_length <= command->write_length);
	memset(to, 0, ISCSI_BHS_BYTES);
	to[0] = ISCSI_SCSI_COMMAND;
	to[1] = (command->ordered ? ISCSI_TASK_ORDERED : ISCSI_TASK_SIMPLE) |
		(command->final ? ISCSI_FINAL : 0) | (command->reads ? ISCSI_COMMAND_READ : 0) |
		(command->writes ? ISCSI_COMMAND_WRITE : 0);
	put_data_length(to, command->immediate_length);
	memcpy(to + 8, command->lun, 8);
	put_be32(to + 16, command->task_tag);
	put_be32(to + 20, command->writes ? command->write_length : command->read_length);
	put_be32(to + 24, command->cmd_sn);
	put_be32(to + 28, command->exp_stat_sn);
	memcpy(to + 32, command->cdb, in_header);
	if (command->cdb_length > ISCSI_BHS_CDB_BYTES)
		used += append_extended_cdb(to + used, command->cdb, command->cdb_length);
	if (command->reads && command->writes)
		used += append_read_length(to + used, command->read_length);
	to[4] = (uint8_t)((used - ISCSI_BHS_BYTES) / 4);
	return used;
}

void iscsi_encode_data_out(uint8_t to[ISCSI_BHS_BYTES], const struct iscsi_data_out *data)
{
	memset(to, 0, ISCSI_BHS_BYTES);
	to[0] = ISCSI_DATA_OUT;
	to[1] = data->final ? ISCSI_FINAL : 0;
	put_data_length(to, data->length);
	memcpy(to + 8, data->lun, 8);
	put_be32(to + 16, data->task_tag);
	put_be32(to + 20, data->transfer_tag);
	put_be32(to + 28, data->exp_stat_sn);
	put_be32(to + 36, data->data_sn);
	put_be32(to + 40, data->offset);
}

void iscsi_encode_nop_answer(uint8_t to[ISCSI_BHS_BYTES], const uint8_t lun[8],
			     uint32_t transfer_tag, uint32_t cmd_sn, uint32_t exp_stat_sn)
{
	memset(to, 0, ISCSI_BHS_BYTES);
	to[0] = IMMEDIATE_DELIVERY | ISCSI_NOP_OUT;
	to[1] = ISCSI_FINAL;
	memcpy(to + 8, lun, 8);
	put_be32(to + 16, ISCSI_TAG_NONE);
	put_be32(to + 20, transfer_tag);
	put_be32(to + 24, cmd_sn);
	put_be32(to + 28, exp_stat_sn);
}

void iscsi_encode_logout(uint8_t to[ISCSI_BHS_BYTES], uint32_t task_tag, uint32_t cmd_sn,
			 uint32_t exp_stat_sn)
{
	memset(to, 0, ISCSI_BHS_BYTES);
	to[0] = IMMEDIATE_DELIVERY | ISCSI_LOGOUT_REQUEST;
	to[1] = ISCSI_FINAL | LOGOUT_CLOSE_SESSION;
	put_be32(to + 16, task_tag);
	put_be32(to + 24, cmd_sn);
	put_be32(to + 28, exp_stat_sn);
}

static void decode_scsi_response(const uint8_t *from, struct iscsi_header *header)
{
	header->response = from[2];
	header->status = from[3];
	header->read_residual = get_be32(from + 40);
	header->residual = get_be32(from + 44);
}

static void decode_data_in(const uint8_t *from, struct iscsi_header *header)
{
	header->transfer_tag = get_be32(from + 20);
	header->sequence = get_be32(from + 36);
	header->offset = get_be32(from + 40);
	if (header->flags & ISCSI_DATA_IN_STATUS) {
		header->status = from[3];
		header->residual = get_be32(from + 44);
	}
}

static void decode_r2t(const uint8_t *from, struct iscsi_header *header)
{
	header->transfer_tag = get_be32(from + 20);
	header->sequence = get_be32(from + 36);
	header->offset = get_be32(from + 40);
	header->burst_length = get_be32(from + 44);
}

int iscsi_decode_header(const uint8_t from[ISCSI_BHS_BYTES], struct iscsi_header *header)
{
	*header = (struct iscsi_header){
		.opcode = from[0] & 0x3f,
		.flags = from[1],
		.additional_header_words = from[4],
		.data_length = (uint32_t)from[5] << 16 | get_be16(from + 6),
		.task_tag = get_be32(from + 16),
		.stat_sn = get_be32(from + 24),
		.exp_cmd_sn = get_be32(from + 28),
		.max_cmd_sn = get_be32(from + 32),
	};
	memcpy(header->lun, from + 8, 8);
	if (from[0] & IMMEDIATE_DELIVERY)
		return -EPROTO;
	switch (header->opcode) {
	case ISCSI_SCSI_RESPONSE:
		decode_scsi_response(from, header);
		return 0;
	case ISCSI_DATA_IN:
		decode_data_in(from, header);
		return 0;
	case ISCSI_R2T:
		decode_r2t(from, header);
		return 0;
	case ISCSI_NOP_IN:
		header->transfer_tag = get_be32(from + 20);
		return 0;
	case ISCSI_LOGOUT_RESPONSE:
	case ISCSI_REJECT:
		header->response = from[2];
		return 0;
	case ISCSI_ASYNC_MESSAGE:
		header->async_event = from[36];
		return 0;
	default:
		return -EPROTO;
	}
}

const char *iscsi_opcode_name(enum iscsi_opcode opcode)
{
	switch (opcode) {
	case ISCSI_NOP_OUT:
		return "NOP-Out";
	case ISCSI_SCSI_COMMAND:
		return "SCSI Command";
	case ISCSI_DATA_OUT:
		return "Data-Out";
	case ISCSI_LOGOUT_REQUEST:
		return "Logout Request";
	case ISCSI_NOP_IN:
		return "NOP-In";
	case ISCSI_SCSI_RESPONSE:
		return "SCSI Response";
	case ISCSI_LOGIN_RESPONSE:
		return "Login Response";
	case ISCSI_DATA_IN:
		return "Data-In";
	case ISCSI_LOGOUT_RESPONSE:
		return "Logout Response";
	case ISCSI_R2T:
		return "R2T";
	case ISCSI_ASYNC_MESSAGE:
		return "Asynchronous Message";
	case ISCSI_REJECT:
		return "Reject";
	}
	return "unknown PDU";
}

const char *iscsi_reject_reason(uint8_t reason)
{
	switch (reason) {
	case 0x02:
		return "data digest error";
	case 0x03:
		return "SNACK reject";
	case 0x04:
		return "protocol error";
	case 0x05:
		return "command not supported";
	case 0x06:
		return "too many immediate commands";
	case 0x07:
		return "task in progress";
	case 0x08:
		return "invalid data acknowledgement";
	case 0x09:
		return "invalid PDU field";
	case 0x0a:
		return "long operation, cannot generate a target transfer tag";
	case 0x0c:
		return "waiting for logout";
	default:
		return "reason not known";
	}
}
