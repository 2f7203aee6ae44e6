/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The full-feature phase of one iSCSI session with one connection, error recovery level 0: SCSI
 * commands with long CDBs and bidirectional transfers, several in flight. It owns a socket that the
 * login has brought so far, and knows nothing of OSD.
 *
 * One thread. Nothing blocks but session_step. A target is not trusted: whatever it sends is
 * checked before it is used, data is written into the buffer of the command that asked for it and
 * nowhere else, and a target that breaks the protocol, closes the connection or is silent for too
 * long ends the session with a sentence; every command that was under way then completes with that
 * error.
 */
#ifndef MUNINN_CLIENT_SESSION_H
#define MUNINN_CLIENT_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "client/iscsi_pdu.h"
#include "common/error.h"

#define SESSION_SEGMENTS_MAX    4U
#define SESSION_SENSE_BYTES_MAX 252U
#define SESSION_QUEUE_DEPTH_MAX 1024U

/* What the login has agreed on and where its numbering stopped. */
struct session_parameters {
	bool immediate_data;
	bool initial_r2t;
	uint32_t first_burst_bytes;
	uint32_t max_burst_bytes;
	uint32_t target_segment_bytes; /* MaxRecvDataSegmentLength of the target: longest segment to
					  send */
	uint32_t initiator_segment_bytes; /* ours: longest segment to accept */
	uint32_t cmd_sn;                  /* of the first command */
	uint32_t exp_stat_sn;             /* of the first answer */
	uint32_t max_cmd_sn;
};

struct session_options {
	uint32_t queue_depth; /* commands sent and not answered, 1..SESSION_QUEUE_DEPTH_MAX */
	/*
	 * How long a command waits while the target does nothing for any command, if it has no time
	 * of its own; 0 = for ever. Answers, requests for data and data count: a slow target is not
	 * a dead one.
	 */
	uint32_t timeout_ms;
	unsigned lun;
	uint64_t (*clock_ms)(void *context); /* monotonic; NULL: the system's */
	void *clock_context;
};

struct session;

/*
 * One SCSI command. The caller owns it and all that it points to, unmoved, from session_submit
 * until `done`.
 */
struct session_task {
	uint8_t cdb[ISCSI_CDB_BYTES_MAX];
	size_t cdb_length;
	struct iovec out[SESSION_SEGMENTS_MAX]; /* Data-Out: the segments one behind the other */
	unsigned out_count;
	struct iovec in[SESSION_SEGMENTS_MAX]; /* space for Data-In */
	unsigned in_count;
	uint32_t timeout_ms; /* 0 = the session's */
	void (*done)(struct session_task
			     *task); /* called from session_step; may submit; must not step */

	/* Results, valid in `done`. */
	int result;     /* 0: the target has answered with `status`; otherwise negative errno, see
			   session_error */
	uint8_t status; /* SCSI status */
	uint8_t sense[SESSION_SENSE_BYTES_MAX];
	size_t sense_length;
	size_t in_received; /* bytes at the beginning of the Data-In buffer that the target has set
			     */
	int64_t out_residual; /* bytes not used (> 0) or missing (< 0) of Data-Out, as the target
				 says */
	int64_t in_residual;  /* the same for the space for Data-In */

	/* The session's own. */
	struct session_task *next;
	uint32_t tag;
	uint32_t out_length, in_length;
	uint32_t out_promised; /* bytes sent or queued in order; the next R2T begins here */
	uint32_t sequence;     /* next DataSN or R2TSN of the target */
	uint32_t burst_tag, burst_offset, burst_left, burst_sn;
	uint32_t batched; /* PDUs of it in the batch that is being sent */
	uint64_t sent_ms;
	uint32_t allowed_ms; /* 0 = for ever */
	uint8_t state;
};

/*
 * Takes over `fd`, a connected socket behind a successful login; it is closed by session_destroy,
 * and at once when this fails. -EINVAL (options or parameters out of range), -ENOMEM.
 */
int session_create(int fd, const struct session_parameters *parameters,
		   const struct session_options *options, struct session **session,
		   struct error_text *error);

/*
 * Closes the connection without a word. Commands under way complete with -ECANCELED before it
 * returns.
 */
void session_destroy(struct session *session);

/*
 * Queues a command; it is sent by the next session_step that finds a place in the queue and in the
 * target's window. -EINVAL: lengths out of range; -ENOTCONN or the reason: the session has ended.
 * On error `done` is not called.
 */
int session_submit(struct session *session, struct session_task *task);

/*
 * Sends and receives what can be, waiting at most `timeout_ms` (-1: until something happens or
 * times out) when there is nothing to do at once, and calls `done` of what is finished. Returns 0,
 * or the negative errno with which the session has ended.
 */
int session_step(struct session *session, int timeout_ms);

/* Commands submitted and not done. */
size_t session_outstanding(const struct session *session);

/*
 * Takes commands that are in flight to their end, then logs out. 0, or why the session ended
 * before.
 */
int session_logout(struct session *session, uint32_t timeout_ms);

/* Why the session has ended: 0 while it lives; `error` gets the sentence. */
int session_error(const struct session *session, struct error_text *error);

/* The socket, for a caller's own poll(), and the events to wait for. */
int session_fd(const struct session *session);
short session_events(const struct session *session);

#endif
