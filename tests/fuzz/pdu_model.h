/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What tgtd 1.0.85 does with the PDUs that the guard lets through: its buffers, lists and pointers,
 * without memory behind them. Where tgtd would write outside of a buffer, take a pointer from an
 * earlier PDU, put a command into a list twice or keep what nobody bounds, the model ends the
 * process. Written from usr/iscsi/iscsid.c; the names are tgtd's where a comment says so.
 */
#ifndef MUNINN_TESTS_FUZZ_PDU_MODEL_H
#define MUNINN_TESTS_FUZZ_PDU_MODEL_H

#include "daemon/module/guard.h"
#include "tests/fuzz/fuzz.h"

#define MODEL_TASKS_MAX 512

struct model_task {
	uint32_t tag, length, offset; /* offset: of tgtd's task, not of the PDU */
	int64_t r2t_count;            /* bytes of Data-Out that have not come */
	uint64_t allocated, allocated_in;
	uint8_t segments[GUARD_SEGMENTS_BYTES];
	uint32_t segment_bytes;
	bool unsolicited, both, executed, listed; /* listed: waits for its turn to be sent */
	uint8_t opcode;
};

struct model {
	struct guard guard;
	struct guard_shared shared;
	bool full, discovery, closed;
	bool known; /* the first login request has come */
	uint32_t expected_command;
	struct model_task tasks[MODEL_TASKS_MAX]; /* newest last */
	unsigned count;
	uint64_t bytes;
	struct model_task *receiving; /* tgtd's rx_task */
	uint8_t login[8192];
	uint32_t login_bytes;
};

void model_begin(struct model *model);
void model_end(struct model *model);

/*
 * The initiator sends a PDU; its parts come in pieces. Data behind `given` bytes are zeros. The
 * connection may be closed after it.
 */
void model_send(struct model *model, const uint8_t header[GUARD_HEADER_BYTES],
		const uint8_t *segments, const uint8_t *data, uint32_t given, uint32_t piece);

/* tgtd answers the login: at its end or not, with keys. */
void model_answer_login(struct model *model, bool end, const char *keys, size_t bytes);

/* tgtd does what it has to do next for this one: asks for data, or answers. */
void model_answer(struct model *model, struct model_task *task, bool with_data_in);

#endif
