/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Judges the PDUs of one connection before tgtd acts on them (RFC 7143). tgtd trusts its
 * initiators: it writes data wherever a PDU says, and allocates whatever a PDU names. The guard
 * lets through what tgtd handles safely, and all that a correct initiator sends.
 *
 * It sees both directions as bytes, so it needs neither tgtd nor sockets. guard_rules.c has the
 * rules.
 */
#ifndef MUNINN_DAEMON_MODULE_GUARD_H
#define MUNINN_DAEMON_MODULE_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/module/guard_tasks.h"
#include "daemon/module/guard_text.h"
#include "daemon/module/limits.h"

#define GUARD_HEADER_BYTES 48
#define GUARD_ISID_BYTES   6
/* An extended CDB of 244 bytes and a read length, each with a head of 4 bytes. */
#define GUARD_SEGMENTS_BYTES 256

enum guard_phase { GUARD_LOGIN, GUARD_DISCOVERY, GUARD_FULL, GUARD_LOGOUT };

/* Parts of a PDU, in their order. */
enum guard_part {
	GUARD_HEADER,
	GUARD_SEGMENTS,
	GUARD_HEADER_DIGEST,
	GUARD_DATA,
	GUARD_DATA_DIGEST,
	GUARD_PARTS,
};

/* One direction of a connection. */
struct guard_flow {
	uint8_t header[GUARD_HEADER_BYTES];
	uint32_t left[GUARD_PARTS]; /* bytes of each part of the PDU that have not come */
	enum guard_part part;
	uint32_t text_left; /* bytes of the data that are text, not padding */
	struct guard_text text;
};

/* What both sides have agreed on. */
struct guard_agreed {
	uint32_t segment_bytes; /* MaxRecvDataSegmentLength of the target */
	uint32_t first_burst;
	bool initial_r2t, immediate_data;
	bool header_digest, data_digest;
};

/* What all connections share. */
struct guard_shared {
	struct limits limits;
	uint64_t bytes; /* of tgtd's buffers for commands */
};

struct guard {
	struct guard_shared *shared;
	struct guard_flow in, out;
	struct guard_agreed agreed;
	enum guard_phase phase;
	struct guard_tasks tasks;
	struct guard_task *task; /* of the PDU that comes */
	uint64_t bytes;          /* the connection's part of shared->bytes */
	uint32_t pings;          /* other requests that are not answered */
	uint32_t silent; /* requests without an answer that tgtd may not have forgotten yet */
	uint32_t expected_command; /* CmdSN */
	uint32_t logins;           /* login requests that have come */
	bool typed, discovers;
	bool asking; /* the PDU that tgtd sends is an R2T */
	uint8_t segments[GUARD_SEGMENTS_BYTES];
	char name[GUARD_NAME_BYTES + 1]; /* of the initiator; empty before it has said it */
	char target[GUARD_NAME_BYTES + 1];
	uint8_t isid[GUARD_ISID_BYTES]; /* with the name, the initiator's port */
	uint16_t refusal; /* status class and detail of the answer that ended the login; 0: none */
	char reason[160]; /* why the connection must end; empty = it need not */
};

void guard_begin(struct guard *guard, struct guard_shared *shared);
void guard_end(struct guard *guard);

/* Bytes that tgtd must be about to read: the rest of the part that comes. */
uint32_t guard_missing(const struct guard *guard);

/* Is a new PDU to come, of which nothing has come yet? */
bool guard_is_between(const struct guard *guard);

/* May the initiator send another command, or has the session to wait for answers first? */
bool guard_may_go_on(const struct guard *guard);

/* Are both sessions with one target, from one port of an initiator? */
bool guard_is_same_session(const struct guard *one, const struct guard *other);

/* Does the initiator keep the target waiting: inside of a PDU, or for data? */
bool guard_waits(const struct guard *guard);

/*
 * Bytes from the initiator, which tgtd has read but not seen. `*ended` = a PDU has come to its end.
 * False: the connection must end, for guard->reason.
 */
bool guard_came(struct guard *guard, const uint8_t *from, size_t bytes, bool *ended);

/* Bytes from tgtd. */
void guard_went(struct guard *guard, const uint8_t *from, size_t bytes);

/* ---- for guard.c and guard_rules.c ---- */

enum guard_opcode {
	GUARD_NOP_OUT = 0x00,
	GUARD_COMMAND = 0x01,
	GUARD_TASK_MANAGEMENT = 0x02,
	GUARD_LOGIN_REQUEST = 0x03,
	GUARD_TEXT_REQUEST = 0x04,
	GUARD_DATA_OUT = 0x05,
	GUARD_LOGOUT_REQUEST = 0x06,
	GUARD_NOP_IN = 0x20,
	GUARD_RESPONSE = 0x21,
	GUARD_TASK_MANAGEMENT_RESPONSE = 0x22,
	GUARD_LOGIN_RESPONSE = 0x23,
	GUARD_DATA_IN = 0x25,
	GUARD_R2T = 0x31,
};

#define GUARD_TAG_NONE UINT32_C(0xffffffff)

enum guard_opcode guard_opcode(const struct guard_flow *flow);
uint32_t guard_data_length(const struct guard_flow *flow);

/* Each returns false, with guard->reason, when the connection must end. */
bool guard_refuse(struct guard *guard, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
bool guard_judge_header(struct guard *guard);
bool guard_judge_segments(struct guard *guard);
bool guard_judge_end(struct guard *guard);

/* A key of the initiator, or of tgtd. As guard_text_key. */
const char *guard_key_came(void *context, const struct guard_text *text);
const char *guard_key_went(void *context, const struct guard_text *text);

#endif
