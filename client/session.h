/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The full-feature phase of one iSCSI session with one connection, error recovery level 0: SCSI
 * commands with long CDBs and bidirectional transfers, several in flight. It takes the socket after
 * a successful login, and knows nothing of OSD.
 *
 * It uses one thread, and only session_step blocks. It does not trust the target: it checks
 * everything before use, and writes data only into the buffer of the command that asked for it. A
 * target that breaks the protocol, closes the connection or is silent for too long ends the session
 * with a sentence. Every command under way then completes with that error.
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
	 * How long a command without a time of its own waits while the target does nothing for any
	 * command; 0 = for ever. Answers, requests for data and data all count, so a slow target is
	 * not a dead one.
	 */
	uint32_t timeout_ms;
	unsigned lun;
	uint64_t (*clock_ms)(void *context); /* monotonic; NULL: the system's */
	void *clock_context;
};

struct session;

/*
 * One SCSI command. The caller owns it and everything that it points to, and leaves it in place
 * from session_submit until `done`.
 */
struct session_task {
	uint8_t cdb[ISCSI_CDB_BYTES_MAX];
	size_t cdb_length;
	struct iovec out[SESSION_SEGMENTS_MAX]; /* Data-Out: the segments one behind the other */
	unsigned out_count;
	struct iovec in[SESSION_SEGMENTS_MAX]; /* space for Data-In */
	unsigned in_count;
	/*
	 * Begins when all commands that the unit had before it have ended, those of other sessions
	 * too. A kernel's node does not carry this.
	 */
	bool ordered;
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
 * Takes over `fd`, a connected socket after a successful login. session_destroy closes it; a
 * failure here closes it at once. -EINVAL (options or parameters out of range), -ENOMEM.
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
 * Queues a command. The next session_step that finds a place in the queue and in the target's
 * window sends it. -EINVAL: lengths out of range; -EMSGSIZE: more data than SG_SESSION_DATA_MAX,
 * over /dev/sg; -ENOTCONN or the reason: the session has ended. On error `done` is not called.
 */
int session_submit(struct session *session, struct session_task *task);

/*
 * Sends and receives what it can, and calls `done` of what has ended. If there is nothing to do at
 * once, waits at most `timeout_ms` (-1: until something happens or times out). Returns 0, or the
 * negative errno with which the session has ended.
 */
int session_step(struct session *session, int timeout_ms);

/* Commands submitted and not done. */
size_t session_outstanding(const struct session *session);

/* Waits for the commands in flight, then logs out. 0, or why the session ended before. */
int session_logout(struct session *session, uint32_t timeout_ms);

/* Why the session has ended: 0 while it lives; `error` gets the sentence. */
int session_error(const struct session *session, struct error_text *error);

/*
 * For callers that wait for several sessions at once: the socket, and what a poll() of it is to
 * wait for. When it is ready, session_step with a time of 0 does the work.
 */
int session_descriptor(const struct session *session);
short session_events(const struct session *session);

/*
 * Sends what was submitted, as far as the socket takes it, and calls nobody. 0, or the error that
 * the next session_step reports to the commands.
 */
int session_push(struct session *session);

#endif
