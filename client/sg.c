/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The carrier of /dev/sgN, by the driver's asynchronous interface: write begins a command, read
 * gives one that has ended, in any order. Until then all its buffers stay in place.
 *
 * Commands of up to 16 bytes go as they are. OSD commands go in envelopes: SEND, and when that has
 * ended FETCH. So each task has one command of the driver's under way.
 */
#include "client/sg.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <scsi/sg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "client/session_private.h"
#include "common/bytes.h"
#include "wire/envelope.h"
#include "wire/status.h"

/* Of the driver's interface with struct sg_io_hdr. */
#define SG_VERSION_MIN 30000
/* The driver gives a command up a while after we do. */
#define DRIVER_PATIENCE_MS 10000U

static_assert(SG_SESSION_DATA_MAX == ENVELOPE_DATA_OUT_MAX, "what a letter takes");

enum stage { STAGE_PLAIN, STAGE_SEND, STAGE_FETCH };

/* What the driver needs of a command until it has ended. */
struct place {
	enum stage stage;
	bool under_way; /* the driver has it */
	uint8_t cdb[ENVELOPE_CDB_BYTES];
	uint8_t head[ENVELOPE_HEAD_BYTES]; /* of the letter, then of the answer */
	uint8_t sense[SESSION_SENSE_BYTES_MAX];
	struct sg_iovec segments[SESSION_SEGMENTS_MAX + 1];
};

struct sg_state {
	uint32_t instance; /* the tags' upper half: other programs share the kernel's session */
	struct task_list unsent;                 /* the driver had no room for their commands */
	struct place places[SG_QUEUE_DEPTH_MAX]; /* by the slot of the task */
};

static struct sg_state *state_of(const struct session *session)
{
	return session->carrier_state;
}

static struct place *place_of(const struct session *session, const struct session_task *task)
{
	return &state_of(session)->places[task->tag & 0xFFFF];
}

static bool is_plain(const struct session_task *task)
{
	return task->cdb_length <= ENVELOPE_CDB_BYTES;
}

static int check(const struct session_task *task)
{
	return task->out_length > SG_SESSION_DATA_MAX || task->in_length > SG_SESSION_DATA_MAX
		       ? -EMSGSIZE
		       : 0;
}

/* ---- to the driver ---- */

static unsigned add_segments(struct sg_iovec *to, unsigned used, const struct iovec *segments,
			     unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (segments[i].iov_len > 0)
			to[used++] = (struct sg_iovec){ segments[i].iov_base, segments[i].iov_len };
	return used;
}

/* The CDB and the data of the task's stage. */
static void lay_out(const struct session *session, struct session_task *task,
		    struct sg_io_hdr *header)
{
	struct place *place = place_of(session, task);
	bool writes = place->stage == STAGE_SEND ||
		      (place->stage == STAGE_PLAIN && task->out_length > 0);
	unsigned used = 0;

	header->dxfer_len = writes ? task->out_length : task->in_length;
	header->cmd_len = ENVELOPE_CDB_BYTES;
	if (place->stage == STAGE_PLAIN) {
		memcpy(place->cdb, task->cdb, task->cdb_length);
		header->cmd_len = (uint8_t)task->cdb_length;
	} else {
		header->dxfer_len += ENVELOPE_HEAD_BYTES;
		envelope_cdb_encode(
			&(struct envelope_cdb){
				.operation = writes ? ENVELOPE_SEND : ENVELOPE_FETCH,
				.tag = (uint64_t)state_of(session)->instance << 32 | task->tag,
				.length = header->dxfer_len,
			},
			place->cdb);
		place->segments[used++] = (struct sg_iovec){ place->head, ENVELOPE_HEAD_BYTES };
	}
	if (place->stage == STAGE_SEND)
		envelope_letter_encode(
			&(struct envelope_letter){ task->cdb, task->cdb_length, task->out_length },
			place->head);
	used = add_segments(place->segments, used, writes ? task->out : task->in,
			    writes ? task->out_count : task->in_count);
	header->dxfer_direction = used == 0 ? SG_DXFER_NONE
				  : writes  ? SG_DXFER_TO_DEV
					    : SG_DXFER_FROM_DEV;
	header->iovec_count = (uint16_t)used;
	header->dxferp = used ? place->segments : NULL;
}

/* 1: it is on its way; 0: the driver has no room for it now; or the session's failure. */
static int begin(struct session *session, struct session_task *task)
{
	struct place *place = place_of(session, task);
	struct sg_io_hdr header = {
		.interface_id = 'S',
		.mx_sb_len = sizeof(place->sense),
		.sbp = place->sense,
		.cmdp = place->cdb,
		.timeout = task->allowed_ms ? task->allowed_ms + DRIVER_PATIENCE_MS : UINT32_MAX,
		.pack_id = (int)task->tag,
	};

	if (task->allowed_ms > UINT32_MAX - DRIVER_PATIENCE_MS)
		header.timeout = UINT32_MAX;
	lay_out(session, task, &header);
	place->under_way = write(session->fd, &header, sizeof(header)) == (ssize_t)sizeof(header);
	if (place->under_way)
		return 1;
	/* EDOM: as many as there may be. ENOMEM passes when others have ended. */
	if (errno == EDOM || errno == EAGAIN || errno == EINTR ||
	    (errno == ENOMEM && session->slots_used > 1))
		return 0;
	return session_fail(session, -errno, "%s: the kernel does not take the command: %s",
			    session->carrier->name, strerror(errno));
}

/* Begins what the driver had no room for. 1: all of it. */
static int begin_unsent(struct session *session)
{
	struct sg_state *state = state_of(session);
	int begun = 1;

	while (state->unsent.first && begun == 1) {
		begun = begin(session, state->unsent.first);
		if (begun == 1)
			task_list_take(&state->unsent);
	}
	return begun;
}

static int sg_send(struct session *session)
{
	struct session_task *task;
	uint32_t cmd_sn;
	int begun = begin_unsent(session);

	while (begun == 1) {
		/* Nobody but the queue's depth limits how many there are. */
		session->max_cmd_sn = session->cmd_sn + SG_QUEUE_DEPTH_MAX;
		task = session_activate(session, &cmd_sn);
		if (!task)
			break;
		place_of(session, task)->stage = is_plain(task) ? STAGE_PLAIN : STAGE_SEND;
		task_list_append(&state_of(session)->unsent, task);
		begun = begin_unsent(session);
	}
	if (begun < 0)
		return session->failure;
	/* There is nobody to take leave of. */
	if (session->logout == LOGOUT_WANTED)
		session->logout = LOGOUT_ANSWERED;
	return 0;
}

static bool sg_has_output(const struct session *session)
{
	return state_of(session)->unsent.first != NULL;
}

/* ---- from the driver ---- */

static void take_sense(struct session_task *task, const uint8_t *sense, size_t length)
{
	task->sense_length = min_u64(length, SESSION_SENSE_BYTES_MAX);
	memcpy(task->sense, sense, task->sense_length);
}

/* What SEND, FETCH or a plain command ended with itself, as the outcome of the task. */
static void end_as_is(struct session *session, struct session_task *task,
		      const struct sg_io_hdr *header, bool is_data)
{
	size_t left = is_data && header->resid > 0 ? (size_t)header->resid : 0;

	task->status = header->status;
	take_sense(task, place_of(session, task)->sense, header->sb_len_wr);
	if (is_data && task->in_length > 0) {
		task->in_received = task->in_length - min_u64(left, task->in_length);
		task->in_residual = (int64_t)(task->in_length - task->in_received);
	} else if (is_data)
		task->out_residual = (int64_t)min_u64(left, task->out_length);
	session_answered(session, task);
}

static int end_answer(struct session *session, struct session_task *task,
		      const struct sg_io_hdr *header)
{
	size_t left = header->resid > 0 ? (size_t)header->resid : 0;
	size_t space = ENVELOPE_HEAD_BYTES + (size_t)task->in_length;
	struct envelope_answer answer;

	if (envelope_answer_decode(place_of(session, task)->head, space - min_u64(left, space),
				   &answer) < 0 ||
	    answer.data_out_used > task->out_length)
		return session_fail(session, -EPROTO,
				    "%s: the unit's answer to an envelope is none",
				    session->carrier->name);
	task->status = answer.status;
	take_sense(task, answer.sense, answer.sense_length);
	task->in_received = answer.data_length;
	task->in_residual = (int64_t)(task->in_length - answer.data_length);
	task->out_residual = (int64_t)(task->out_length - answer.data_out_used);
	session_answered(session, task);
	return 0;
}

/* A command of the driver's has ended. */
static int ended(struct session *session, const struct sg_io_hdr *header)
{
	struct session_task *task = session_find(session, (uint32_t)header->pack_id);
	struct place *place;

	place = task ? place_of(session, task) : NULL;
	if (!place || !place->under_way)
		return session_fail(session, -EPROTO,
				    "%s: the kernel answers what was not asked for",
				    session->carrier->name);
	place->under_way = false;
	if (header->host_status)
		return session_fail(session, -ECONNRESET,
				    "%s: the kernel could not bring a command to the unit and its "
				    "answer back (host status 0x%02x); has its session ended?",
				    session->carrier->name, header->host_status);
	session_progress(session);
	if (place->stage == STAGE_PLAIN || header->status != SCSI_STATUS_GOOD) {
		end_as_is(session, task, header, place->stage == STAGE_PLAIN);
		return 0;
	}
	if (place->stage == STAGE_FETCH)
		return end_answer(session, task, header);
	place->stage = STAGE_FETCH;
	task_list_append(&state_of(session)->unsent, task);
	return begin_unsent(session) < 0 ? session->failure : 0;
}

static int sg_receive(struct session *session)
{
	for (unsigned i = 0; i < SG_QUEUE_DEPTH_MAX; i++) {
		struct sg_io_hdr header = { .interface_id = 'S', .pack_id = -1 };
		ssize_t got = read(session->fd, &header, sizeof(header));

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (got != (ssize_t)sizeof(header))
			return session_fail(session, -ECONNRESET,
					    "%s: the unit is gone: %s; has its session ended?",
					    session->carrier->name,
					    got < 0 ? strerror(errno) : "no answer");
		if (ended(session, &header) < 0)
			return session->failure;
	}
	return 0;
}

/* ---- sessions ---- */

static const struct session_carrier sg_carrier = {
	.name = "SCSI generic",
	.send = sg_send,
	.has_output = sg_has_output,
	.receive = sg_receive,
	.check = check,
};

int sg_session_create(int fd, const struct session_options *options, struct session **session,
		      struct error_text *error)
{
	/* What an iSCSI session agrees on; nobody looks at it here. */
	const struct session_parameters any = {
		.max_burst_bytes = 65536,
		.target_segment_bytes = 65536,
		.initiator_segment_bytes = 65536,
	};
	struct session_options used = *options;
	struct sg_state *state = calloc(1, sizeof(*state));

	if (!state || getrandom(&state->instance, sizeof(state->instance), 0) !=
			      (ssize_t)sizeof(state->instance)) {
		free(state);
		close(fd);
		return error_set(error, -ENOMEM, "SCSI generic: out of memory");
	}
	used.queue_depth = (uint32_t)min_u64(used.queue_depth, SG_QUEUE_DEPTH_MAX);
	return session_create_on(&sg_carrier, state, fd, &any, &used, session, error);
}

int sg_session_open(const char *url, const struct session_options *options,
		    struct session **session, struct error_text *error)
{
	const char *path = url + strlen(SG_SCHEME);
	int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	int version = 0;

	if (fd < 0)
		return error_set(error, -errno, "%s: %s%s", path, strerror(errno),
				 errno == ENOENT ? "; is the module sg loaded, and the initiator "
						   "logged in? `lsscsi -g` lists the nodes"
						 : "");
	if (ioctl(fd, SG_GET_VERSION_NUM, &version) < 0 || version < SG_VERSION_MIN) {
		close(fd);
		return error_set(error, -ENOTTY,
				 "%s is no SCSI generic node; the form is sg:/dev/sgN", path);
	}
	return sg_session_create(fd, options, session, error);
}
