/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The other end of a session, in the same thread: the test plays the target. It takes PDUs that the
 * session has sent and answers with whatever it likes, right or wrong.
 */
#ifndef MUNINN_TESTS_CLIENT_PEER_H
#define MUNINN_TESTS_CLIENT_PEER_H

#include "client/session.h"

#define PEER_DATA_MAX (1U << 20)

struct peer {
	int fd; /* -1: closed */
	struct session *session;
	uint32_t stat_sn; /* of the next answer */
	uint32_t max_cmd_sn;
	uint64_t clock_ms; /* the session's clock: only the test moves it */
};

/* A PDU from the session. */
struct sent_pdu {
	uint8_t header[512];
	size_t header_length;
	uint8_t data[PEER_DATA_MAX];
	size_t data_length;
};

/* Values that real targets agree on; tests change them before peer_open. */
extern const struct session_parameters PEER_PARAMETERS;

/* A session with `queue_depth`, a timeout of 1000 ms and a clock that stands still. */
void peer_open(struct peer *peer, const struct session_parameters *parameters,
	       uint32_t queue_depth);
/* Destroys the session and closes. */
void peer_close(struct peer *peer);
/* The target dies. */
void peer_hang_up(struct peer *peer);

/* The next PDU that the session sends, which must come without the target's doing anything. */
void peer_take(struct peer *peer, struct sent_pdu *pdu);
/* Nothing is being sent. */
void peer_takes_nothing(struct peer *peer);

/*
 * Sends a header of 48 bytes, `data` and padding, and lets the session work; returns what
 * session_step returned.
 */
int peer_give(struct peer *peer, const uint8_t header[48], const void *data, size_t length);

/* Headers of the target's PDUs, with StatSN (of the next answer) and window filled in. */
void peer_header(const struct peer *peer, uint8_t header[48], uint8_t opcode, uint8_t flags,
		 uint32_t tag);

/* SCSI Response. Uses up a StatSN. */
int peer_respond(struct peer *peer, uint32_t tag, uint8_t status);
int peer_respond_sense(struct peer *peer, uint32_t tag, const uint8_t *sense, size_t length);
/* Data-In without status. */
int peer_data_in(struct peer *peer, uint32_t tag, uint32_t sequence, uint32_t offset,
		 const void *data, size_t length);
int peer_r2t(struct peer *peer, uint32_t tag, uint32_t transfer_tag, uint32_t sequence,
	     uint32_t offset, uint32_t length);

/* Fields of a sent PDU. */
uint32_t sent_tag(const struct sent_pdu *pdu);
uint32_t sent_cmd_sn(const struct sent_pdu *pdu);

/* A task that counts its completions. */
struct counted_task {
	struct session_task task; /* first */
	unsigned done;
};
/* A 6-byte CDB, Data-Out of `out_length` and buffer of `in_length` bytes. */
void counted_task_make(struct counted_task *task, const void *out, size_t out_length, void *in,
		       size_t in_length);

#endif
