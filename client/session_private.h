/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What session.c (life of commands), session_send.c and session_receive.c share. */
#ifndef MUNINN_CLIENT_SESSION_PRIVATE_H
#define MUNINN_CLIENT_SESSION_PRIVATE_H

#include "client/session.h"

/* PDUs gathered into one sendmsg. */
#define BATCH_PDUS           32U
#define BATCH_VECTORS        (BATCH_PDUS * (SESSION_SEGMENTS_MAX + 2))
#define RECEIVE_BUFFER_BYTES (64U << 10)
/* Data segments that belong to no command: sense, rejected headers, ping data. */
#define CONTROL_BYTES_MAX 8192U
/* NOP-Ins that wait for their answer. A target that sends more without reading is broken. */
#define NOP_ANSWERS_MAX 8U

/* Life of a command. Only session.c changes it. */
enum task_state {
	TASK_IDLE,     /* not the session's */
	TASK_WAITING,  /* for a place in queue and window */
	TASK_ACTIVE,   /* has a tag; the target may speak of it */
	TASK_ANSWERED, /* answered, but its last PDU is still being sent */
	TASK_DONE,     /* on the list whose `done` is called next */
};

struct task_list {
	struct session_task *first, *last;
};

/* PDUs being sent: headers here, data in place. */
struct send_batch {
	uint8_t headers[BATCH_PDUS][ISCSI_COMMAND_HEADER_BYTES_MAX];
	struct session_task *tasks[BATCH_PDUS]; /* NULL: not a command's */
	unsigned pdus;
	struct iovec vectors[BATCH_VECTORS];
	unsigned vectors_used, vectors_sent;
};

/* The PDU being received. */
struct receive_state {
	uint8_t buffer[RECEIVE_BUFFER_BYTES];
	size_t begin, end; /* bytes received and not looked at */
	bool in_pdu;       /* `header` is valid and its data is awaited */
	struct iscsi_header header;
	struct session_task *task;                     /* Data-In: whose */
	struct iovec places[SESSION_SEGMENTS_MAX + 1]; /* where the rest of the data segment goes */
	unsigned places_count;
	uint32_t data_left, padding_left;
	uint8_t control[CONTROL_BYTES_MAX];
};

enum logout_state { LOGOUT_NONE, LOGOUT_WANTED, LOGOUT_SENT, LOGOUT_ANSWERED };

struct nop_answer {
	uint8_t lun[8];
	uint32_t transfer_tag;
};

/* How commands get to the target and their answers back: iSCSI's PDUs on a socket, or /dev/sg. */
struct session_carrier {
	const char *name; /* what messages begin with */
	/* Sends what is submitted, as far as it goes at once. 0 or the session's failure. */
	int (*send)(struct session *session);
	/* Is something left to be sent? */
	bool (*has_output)(const struct session *session);
	/* Receives what is there, and acts on it. 0 or the session's failure. */
	int (*receive)(struct session *session);
	/* -EMSGSIZE: the carrier takes no command with so much data. NULL: it takes all. */
	int (*check)(const struct session_task *task);
};

struct session {
	const struct session_carrier *carrier;
	void *carrier_state; /* freed with the session */
	int fd;
	struct session_parameters parameters;
	struct session_options options;
	uint8_t lun[8];
	uint32_t cmd_sn, exp_stat_sn, max_cmd_sn;

	struct session_task **slots; /* queue_depth of them; the tag's low half is the index */
	uint32_t *generations;       /* the tag's high half, one for each slot */
	uint32_t slots_used;
	struct task_list waiting, bursts, done;
	size_t outstanding;
	uint64_t progress_ms; /* when the target last did something for a command */
	/* Since when commands wait with none in flight and the window closed; 0 = not so. */
	uint64_t blocked_since_ms;

	struct nop_answer nop_answers[NOP_ANSWERS_MAX];
	unsigned nop_count;
	enum logout_state logout;
	bool closing; /* the target wants no more commands */
	bool deaf; /* the connection takes no more bytes; what it still has to give comes first */

	int failure;
	struct error_text failure_text;
	struct send_batch batch;
	struct receive_state receive;
};

/* ---- session.c ---- */

/* As session_create, over a carrier. The session owns `state`, also if this fails. */
int session_create_on(const struct session_carrier *carrier, void *state, int fd,
		      const struct session_parameters *parameters,
		      const struct session_options *options, struct session **session,
		      struct error_text *error);

/* Ends the session; only the first reason is kept. Returns `result`. */
int session_fail(struct session *session, int result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The active command with this tag, or NULL. */
struct session_task *session_find(struct session *session, uint32_t tag);

/*
 * Gives the first waiting command a tag, a deadline and a command number. NULL: none may be sent.
 */
struct session_task *session_activate(struct session *session, uint32_t *cmd_sn);

/*
 * The target has done something for a command, so its silence counts from now. It can do so only a
 * limited number of times for each command.
 */
void session_progress(struct session *session);

/* The target has answered (task->result and the other results are set). */
void session_answered(struct session *session, struct session_task *task);

void task_list_append(struct task_list *list, struct session_task *task);
struct session_task *task_list_take(struct task_list *list);

/* a is behind b in the serial arithmetic of RFC 1982. */
static inline bool serial_after(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

/*
 * Fills `to` with at most `capacity` vectors that cover [offset, offset + length) of `count`
 * segments; returns how many. The range lies inside the segments.
 */
unsigned segments_slice(const struct iovec *segments, unsigned count, size_t offset, size_t length,
			struct iovec *to, unsigned capacity);

/* ---- session_send.c and session_receive.c: the carrier of iSCSI ---- */

/* Sends as much as the socket takes. 0 or the session's failure. */
int session_send(struct session *session);
bool session_has_output(const struct session *session);
/* Sends the next `length` bytes of the command's Data-Out, under this transfer tag. */
void session_begin_burst(struct session *session, struct session_task *task, uint32_t tag,
			 uint32_t length);
/* The command is answered: drops what was not sent of it. */
void session_drop_burst(struct session *session, struct session_task *task);

/* ---- session_receive.c ---- */

/* Receives what the socket has, bounded, and acts on it. 0 or the session's failure. */
int session_receive(struct session *session);

#endif
