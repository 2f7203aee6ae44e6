/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What connections.c (life and reading), events.c and sending.c know of a connection. */
#ifndef MUNINN_DAEMON_MODULE_CONNECTIONS_PRIVATE_H
#define MUNINN_DAEMON_MODULE_CONNECTIONS_PRIVATE_H

#include <netinet/in.h>

#include "daemon/module/connections.h"
#include "daemon/module/guard.h"
#include "daemon/module/inbox.h"

/* A PDU's header and its digest. */
#define HEAD_BYTES 52

struct connection {
	struct connection *next, *previous;
	int fd;
	char address[INET6_ADDRSTRLEN];
	struct guard guard;
	int64_t begun_ms, came_ms; /* accepted; last byte that tgtd has read */
	int64_t went_ms;           /* last byte to it, or the time at which there was one to send */
	bool ended;                /* tgtd is to close it */
	bool held;                 /* not read until the session has room */
	bool sending;              /* tgtd has sent a PDU in part */
	bool reported;             /* how its login has ended */
	struct inbox inbox;        /* of a session: what tgtd has not read yet */

	/* What tgtd has asked epoll for, and what it got. */
	int epoll_fd; /* -1: tgtd does not watch it */
	struct epoll_event wanted;
	uint32_t watched;

	/* Events that tgtd is given without the kernel. */
	struct connection *next_ready, *previous_ready;
	bool ready;     /* linked: there is an event */
	bool trusted;   /* the socket takes more, so tgtd may send whenever it wants to */
	int64_t credit; /* bytes until the kernel is asked again whether it does */

	/* The beginning of a PDU, which is sent with what follows. */
	uint8_t head[HEAD_BYTES];
	uint32_t head_bytes;

	/* What the socket has not taken, and a second descriptor of it that tells when it does. */
	uint8_t *kept;
	size_t kept_bytes, kept_at;
	int kept_fd; /* -1: none */
};

/* ---- connections.c ---- */

/* Ends the connection and says why: tgtd reads the end of the stream, or can't write, and closes.
 */
void connection_end(struct connection *connection, const char *reason);

/*
 * tgtd has answered a request to log in. If the login has ended with it, says how, and ends the
 * session that it takes the place of.
 */
void connection_login_answered(struct connection *connection);

/* Memory is free again: for the session, or for others that wait for it. */
void connections_go_on(void);

/* Memory of all connections, and their limits. */
extern struct guard_shared connections_shared;

/* ---- events.c ---- */

/* Something has changed of what tgtd may be told. */
void connection_update_events(struct connection *connection);

/* The connection goes. */
void connection_forget_events(struct connection *connection);

/* So many bytes have gone to the socket. */
void connection_spend(struct connection *connection, size_t bytes);

bool connection_wants_to_send(const struct connection *connection);

/* ---- sending.c ---- */

void connection_forget_kept(struct connection *connection);

#endif
