/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Fuzzes what a target may answer to a session of the client. */
#include "tests/fuzz/client_session.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/session.h"
#include "common/bytes.h"

#define TASKS_MAX    4
#define BUFFER_BYTES 300
#define OUT_BYTES    700
/* PDUs of one input. */
#define PDUS_MAX 32

struct task {
	struct session_task task; /* first */
	uint8_t *buffer;
	uint32_t sequence, offset; /* of the next Data-In as it should be */
	unsigned done;
};

struct scene {
	int fd; /* the target's end */
	struct session *session;
	struct task tasks[TASKS_MAX];
	unsigned count;
	uint32_t stat_sn, cmd_sn;
};

static uint64_t standing_clock(void *context)
{
	(void)context;
	return 5000;
}

static void note_done(struct session_task *task)
{
	((struct task *)task)->done++;
}

static void submit(struct scene *scene, bool writes, bool reads)
{
	static const uint8_t out[OUT_BYTES];
	struct task *task = &scene->tasks[scene->count++];

	task->task.cdb[0] = 0x28;
	task->task.cdb_length = 10;
	task->task.done = note_done;
	task->buffer = fuzz_exact(BUFFER_BYTES, 0);
	if (reads) {
		task->task.in[0] = (struct iovec){ task->buffer, 100 };
		task->task.in[1] = (struct iovec){ task->buffer + 100, BUFFER_BYTES - 100 };
		task->task.in_count = 2;
	}
	if (writes) {
		task->task.out[0] = (struct iovec){ (void *)out, OUT_BYTES };
		task->task.out_count = 1;
	}
	fuzz_check(session_submit(scene->session, &task->task) == 0);
}

static void set_scene(struct scene *scene, uint8_t how)
{
	struct session_parameters parameters = {
		.immediate_data = how & 1,
		.initial_r2t = how & 2,
		.first_burst_bytes = 512,
		.max_burst_bytes = 512,
		.target_segment_bytes = 512,
		.initiator_segment_bytes = 512,
		.cmd_sn = 0xFFFFFFFE, /* wraps soon */
		.exp_stat_sn = 0xFFFFFFFF,
		.max_cmd_sn = 0xFFFFFFFE + 127,
	};
	struct session_options options = {
		.queue_depth = 2,
		.timeout_ms = 1000,
		.clock_ms = standing_clock,
	};
	int fds[2];

	memset(scene, 0, sizeof(*scene));
	fuzz_check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	fuzz_check(session_create(fds[0], &parameters, &options, &scene->session, NULL) == 0);
	scene->fd = fds[1];
	scene->stat_sn = parameters.exp_stat_sn;
	scene->cmd_sn = parameters.cmd_sn;
	for (unsigned i = 0; i <= (how >> 2) % TASKS_MAX; i++)
		submit(scene, how & 1 << (4 + i % 2), how & 1 << (6 + i % 2));
}

/* Throws away what the session has sent. */
static void drain(struct scene *scene)
{
	uint8_t buffer[4096];

	for (int reads = 0; reads < 8; reads++)
		if (recv(scene->fd, buffer, sizeof(buffer), MSG_DONTWAIT) <= 0)
			return;
}

static void transmit(struct scene *scene, const uint8_t *bytes, size_t size)
{
	if (size > 0)
		(void)!send(scene->fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/*
 * A PDU with the numbers that it should have, of which the input may change one byte. Its head in
 * the input: which opcode, which task and flags, bytes of data (2), byte to change, its value.
 */
static void transmit_pdu(struct scene *scene, struct fuzz_reader *input)
{
	static const uint8_t opcodes[] = {
		ISCSI_SCSI_RESPONSE,   ISCSI_DATA_IN, ISCSI_R2T,
		ISCSI_NOP_IN,          ISCSI_REJECT,  ISCSI_ASYNC_MESSAGE,
		ISCSI_LOGOUT_RESPONSE, ISCSI_DATA_IN
	};
	uint8_t opcode = opcodes[fuzz_take8(input) % sizeof(opcodes)], flags = fuzz_take8(input);
	struct task *task = &scene->tasks[flags % scene->count];
	uint16_t length = fuzz_take16(input);
	uint8_t at = fuzz_take8(input), value = fuzz_take8(input);
	uint8_t header[ISCSI_BHS_BYTES] = { opcode, (uint8_t)(ISCSI_FINAL | flags >> 2) };
	static const uint8_t padding[4];
	size_t taken;
	const uint8_t *data = fuzz_take(input, length & 0x1FF, &taken);

	put_be16(header + 6, (uint16_t)taken);
	put_be32(header + 16, opcode == ISCSI_NOP_IN ? ISCSI_TAG_NONE : task->task.tag);
	put_be32(header + 20, opcode == ISCSI_DATA_IN ? ISCSI_TAG_NONE : 7);
	put_be32(header + 24, scene->stat_sn);
	put_be32(header + 28, scene->cmd_sn);
	put_be32(header + 32, scene->cmd_sn + 127);
	if (opcode == ISCSI_DATA_IN || opcode == ISCSI_R2T) {
		put_be32(header + 36, task->sequence++);
		put_be32(header + 40, opcode == ISCSI_R2T ? task->task.out_promised : task->offset);
		put_be32(header + 44, opcode == ISCSI_R2T ? (length >> 9) + 1U : BUFFER_BYTES);
		task->offset += opcode == ISCSI_DATA_IN ? (uint32_t)taken : 0;
	}
	if (opcode != ISCSI_NOP_IN && opcode != ISCSI_R2T &&
	    (opcode != ISCSI_DATA_IN || header[1] & ISCSI_DATA_IN_STATUS))
		scene->stat_sn++;
	if (at < ISCSI_BHS_BYTES)
		header[at] = value;
	transmit(scene, header, sizeof(header));
	transmit(scene, data, taken);
	transmit(scene, padding, (4 - taken % 4) % 4);
}

void fuzz_client_session(struct fuzz_reader *input)
{
	static struct scene scene;
	struct error_text error = { "" };

	set_scene(&scene, fuzz_take8(input));
	session_step(scene.session, 0);
	for (int i = 0; i < PDUS_MAX && input->left > 0; i++) {
		if (input->data[0] == 0xFF) {
			size_t taken;
			const uint8_t *raw = fuzz_take(input, 1 + ISCSI_BHS_BYTES, &taken);

			transmit(&scene, raw + 1, taken - 1);
		} else {
			transmit_pdu(&scene, input);
		}
		if (session_step(scene.session, 0) < 0)
			break;
		drain(&scene);
	}
	if (session_error(scene.session, &error) < 0)
		fuzz_check(error.text[0] != '\0' && session_outstanding(scene.session) == 0);
	close(scene.fd);
	session_destroy(scene.session);
	for (unsigned i = 0; i < scene.count; i++) {
		fuzz_check(scene.tasks[i].done == 1);
		fuzz_check(scene.tasks[i].task.result <= 0);
		fuzz_check(scene.tasks[i].task.in_received <= BUFFER_BYTES);
		fuzz_check(scene.tasks[i].task.sense_length <= SESSION_SENSE_BYTES_MAX);
		free(scene.tasks[i].buffer);
	}
}
