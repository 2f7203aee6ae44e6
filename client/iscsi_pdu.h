/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The iSCSI PDUs of the full-feature phase (RFC 7143, section 11), byte by byte. Nothing here does
 * I/O or keeps state. There are no digests: the login offers HeaderDigest and DataDigest None only.
 */
#ifndef MUNINN_CLIENT_ISCSI_PDU_H
#define MUNINN_CLIENT_ISCSI_PDU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ISCSI_BHS_BYTES 48U
/*
 * CDB bytes that the basic header holds; the rest travels in an extended-CDB additional header
 * segment.
 */
#define ISCSI_BHS_CDB_BYTES 16U
/* The longest CDB of SPC: 8 bytes of header and 252 behind ADDITIONAL CDB LENGTH. */
#define ISCSI_CDB_BYTES_MAX 260U
/* Basic header, extended-CDB segment of the longest CDB and bidirectional read-length segment. */
#define ISCSI_COMMAND_HEADER_BYTES_MAX (ISCSI_BHS_BYTES + 4 + 244 + 8)
#define ISCSI_TAG_NONE                 UINT32_C(0xFFFFFFFF)

enum iscsi_opcode {
	ISCSI_NOP_OUT = 0x00,
	ISCSI_SCSI_COMMAND = 0x01,
	ISCSI_DATA_OUT = 0x05,
	ISCSI_LOGOUT_REQUEST = 0x06,
	ISCSI_NOP_IN = 0x20,
	ISCSI_SCSI_RESPONSE = 0x21,
	ISCSI_LOGIN_RESPONSE = 0x23,
	ISCSI_DATA_IN = 0x25,
	ISCSI_LOGOUT_RESPONSE = 0x26,
	ISCSI_R2T = 0x31,
	ISCSI_ASYNC_MESSAGE = 0x32,
	ISCSI_REJECT = 0x3f,
};

/* Flags of byte 1. */
enum {
	ISCSI_FINAL = 0x80,
	ISCSI_COMMAND_READ = 0x40,
	ISCSI_COMMAND_WRITE = 0x20,
	ISCSI_TASK_SIMPLE = 0x01,
	ISCSI_TASK_ORDERED = 0x02,
	ISCSI_READ_OVERFLOW = 0x10, /* bidirectional read residual */
	ISCSI_READ_UNDERFLOW = 0x08,
	ISCSI_OVERFLOW = 0x04,
	ISCSI_UNDERFLOW = 0x02,
	ISCSI_DATA_IN_STATUS = 0x01,
};

/*
 * A LUN below 16384 as the 8 bytes of SAM: peripheral addressing below 256, flat space from there.
 */
void iscsi_encode_lun(uint8_t to[8], unsigned lun);

struct iscsi_command {
	const uint8_t *lun; /* 8 bytes */
	uint32_t task_tag;
	uint32_t cmd_sn;
	uint32_t exp_stat_sn;
	const uint8_t *cdb;
	size_t cdb_length; /* 1..ISCSI_CDB_BYTES_MAX */
	bool ordered;      /* an ORDERED task, in place of a SIMPLE one */
	bool reads, writes;
	uint32_t read_length;      /* bytes of space for Data-In */
	uint32_t write_length;     /* bytes of Data-Out, immediate data included */
	uint32_t immediate_length; /* bytes of data segment behind this header */
	bool final;                /* no unsolicited Data-Out PDU follows */
};

/*
 * Encodes a SCSI Command with the additional header segments that it needs; returns the bytes
 * written.
 */
size_t iscsi_encode_command(uint8_t to[ISCSI_COMMAND_HEADER_BYTES_MAX],
			    const struct iscsi_command *command);

struct iscsi_data_out {
	const uint8_t *lun;
	uint32_t task_tag;
	uint32_t transfer_tag; /* of the R2T; ISCSI_TAG_NONE: unsolicited */
	uint32_t exp_stat_sn;
	uint32_t data_sn;
	uint32_t offset; /* in the command's Data-Out */
	uint32_t length; /* bytes of data segment */
	bool final;      /* last of its burst */
};

void iscsi_encode_data_out(uint8_t to[ISCSI_BHS_BYTES], const struct iscsi_data_out *data);

/* The answer to a NOP-In that asks for one. */
void iscsi_encode_nop_answer(uint8_t to[ISCSI_BHS_BYTES], const uint8_t lun[8],
			     uint32_t transfer_tag, uint32_t cmd_sn, uint32_t exp_stat_sn);

/* Immediate logout that closes the session. */
void iscsi_encode_logout(uint8_t to[ISCSI_BHS_BYTES], uint32_t task_tag, uint32_t cmd_sn,
			 uint32_t exp_stat_sn);

/* The basic header of a target's PDU. Fields that its opcode does not have are 0 or false. */
struct iscsi_header {
	enum iscsi_opcode opcode;
	uint8_t flags;    /* byte 1 */
	uint8_t response; /* SCSI Response, Reject reason (byte 2), Logout Response */
	uint8_t status;   /* SCSI Response, Data-In with status */
	uint8_t additional_header_words;
	uint32_t data_length;
	uint8_t lun[8];
	uint32_t task_tag;
	uint32_t transfer_tag; /* R2T, NOP-In, Data-In */
	uint32_t stat_sn;
	uint32_t exp_cmd_sn;
	uint32_t max_cmd_sn;
	uint32_t sequence;      /* DataSN of Data-In, R2TSN of R2T */
	uint32_t offset;        /* Data-In, R2T */
	uint32_t burst_length;  /* R2T: desired data transfer length */
	uint32_t residual;      /* SCSI Response, Data-In with status */
	uint32_t read_residual; /* SCSI Response: bidirectional read residual */
	uint8_t async_event;    /* Asynchronous Message */
};

/*
 * Decodes a received basic header. -EPROTO: a target may not send such a PDU in the full-feature
 * phase. Does not judge values: the session knows what they must be.
 */
int iscsi_decode_header(const uint8_t from[ISCSI_BHS_BYTES], struct iscsi_header *header);

/* The name of an opcode, of a Reject reason, for error messages. Never NULL. */
const char *iscsi_opcode_name(enum iscsi_opcode opcode);
const char *iscsi_reject_reason(uint8_t reason);

#endif
