/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Connections: how many there may be, how long they may take, and what happens between a socket and
 * tgtd.
 *
 * tgtd waits in `write` until an initiator reads, and all others with it. So what a socket does not
 * take is kept here, and tgtd hears nothing of that connection until it is sent. A session that has
 * reached its limits is not read either, until answers have made room. Both are done by taking
 * events away from what tgtd asks epoll for.
 */
#include "daemon/module/connections.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/module/guard.h"
#include "daemon/module/requests.h"

#include "list.h"
#include "tgtd.h"

/* Wants the others before it. */
#include "work.h"

#define FOLLOWED_MAX  65536
#define LOG_BURST     20   /* lines about connections at once */
#define LOG_REFILL_MS 1000 /* one more each */
#define TICK_SECONDS  1

#define OTHER_DESCRIPTORS 256 /* of tgtd and of units */

struct connection {
	struct connection *next, *previous;
	int fd;
	char address[INET6_ADDRSTRLEN];
	struct guard guard;
	int64_t begun_ms, came_ms; /* accepted; last byte from the initiator */
	int64_t went_ms;           /* last byte to it, or the time at which there was one to send */
	bool ended;                /* tgtd is to close it */
	bool held;                 /* not read until the session has room */
	bool sending;              /* tgtd has sent a PDU in part */

	/* What tgtd has asked epoll for, and what it got. */
	int epoll_fd; /* -1: tgtd does not watch it */
	struct epoll_event wanted;
	uint32_t watched;

	/* What the socket has not taken, and a second descriptor of it that tells when it does. */
	uint8_t *kept;
	size_t kept_bytes, kept_at;
	int kept_fd; /* -1: none */
};

static struct connection *connections[FOLLOWED_MAX];
static struct connection *first;
static uint32_t count, held_count;
static struct guard_shared shared;

struct connection *connection_of(int fd)
{
	return fd >= 0 && fd < FOLLOWED_MAX ? connections[fd] : NULL;
}

/* ---- messages: one for each connection that ends, and not many at once ---- */

static bool may_log(void)
{
	static int64_t refilled_ms;
	static int64_t lines = LOG_BURST;
	int64_t now_ms = clock_ms(), more = (now_ms - refilled_ms) / LOG_REFILL_MS;

	if (more > 0) {
		lines = lines + more > LOG_BURST ? LOG_BURST : lines + more;
		refilled_ms = now_ms;
	}
	return lines > 0 && lines-- > 0;
}

static void report(const struct connection *connection, const char *reason)
{
	static uint64_t unsaid;
	const char *name = connection->guard.name;

	if (!may_log()) {
		unsaid++;
		return;
	}
	if (unsaid)
		log_line(LOG_LEVEL_WARNING, "ended %llu more connections without a message",
			 (unsigned long long)unsaid);
	unsaid = 0;
	/* The name comes last: tgtd cuts long lines. */
	log_line(LOG_LEVEL_WARNING, "ended a connection from %s: %s%s%s", connection->address,
		 reason, name[0] ? "; initiator " : "", name);
}

/* ---- events ---- */

static uint32_t events_for(const struct connection *connection)
{
	uint32_t events = connection->wanted.events;

	/* tgtd must never read while it has asked for its turn to write only: it would exit. */
	if (connection->ended)
		return events;
	if (connection->kept)
		return 0;
	return connection->held ? events & ~(uint32_t)EPOLLIN : events;
}

static int watch_events(struct connection *connection, int operation)
{
	struct epoll_event event = connection->wanted;

	event.events = events_for(connection);
	connection->watched = event.events;
	return (int)syscall(SYS_epoll_ctl, connection->epoll_fd, operation, connection->fd, &event);
}

static bool wants_to_send(const struct connection *connection)
{
	return connection->kept || connection->wanted.events & EPOLLOUT;
}

static void update_events(struct connection *connection)
{
	if (connection->epoll_fd >= 0 && events_for(connection) != connection->watched)
		watch_events(connection, EPOLL_CTL_MOD);
}

int connection_watch(struct connection *connection, int epoll_fd, int operation,
		     struct epoll_event *wanted)
{
	if (operation == EPOLL_CTL_DEL) {
		connection->epoll_fd = -1;
		return (int)syscall(SYS_epoll_ctl, epoll_fd, operation, connection->fd, wanted);
	}
	if (!wants_to_send(connection) && wanted->events & EPOLLOUT)
		connection->went_ms = clock_ms();
	connection->epoll_fd = epoll_fd;
	connection->wanted = *wanted;
	return watch_events(connection, operation);
}

/* ---- the end ---- */

static void forget_kept(struct connection *connection)
{
	if (!connection->kept)
		return;
	tgt_event_del(connection->kept_fd);
	close(connection->kept_fd);
	connection->kept_fd = -1;
	shared.bytes -= connection->kept_bytes;
	free(connection->kept);
	connection->kept = NULL;
}

static void hold(struct connection *connection, bool held)
{
	if (connection->held == held)
		return;
	connection->held = held;
	if (held)
		held_count++;
	else
		held_count--;
	update_events(connection);
}

/* tgtd reads the end of the stream, or can't write, and closes. */
static void drop(struct connection *connection)
{
	connection->ended = true;
	forget_kept(connection);
	hold(connection, false);
	shutdown(connection->fd, SHUT_RDWR);
	update_events(connection);
}

static void end(struct connection *connection, const char *reason)
{
	if (connection->ended)
		return;
	report(connection, reason);
	drop(connection);
}

/* Memory is free again: for the session, or for others that wait for it. */
static void go_on(void)
{
	for (struct connection *each = first; each && held_count; each = each->next)
		if (each->held && guard_may_go_on(&each->guard))
			hold(each, false);
}

void connection_close(struct connection *connection)
{
	hold(connection, false);
	forget_kept(connection);
	guard_end(&connection->guard);
	connections[connection->fd] = NULL;
	if (connection->next)
		connection->next->previous = connection->previous;
	if (connection->previous)
		connection->previous->next = connection->next;
	else
		first = connection->next;
	count--;
	free(connection);
	go_on();
}

/* ---- time ---- */

/* tgtd hears of nothing while it is held, and epoll reports a reset again and again. */
static bool is_reset(const struct connection *connection)
{
	struct pollfd socket = { .fd = connection->fd };

	return connection->held && poll(&socket, 1, 0) > 0;
}

static void look_at_time(struct connection *connection, int64_t now_ms)
{
	const struct limits *limits = &shared.limits;
	int64_t stall_ms = (int64_t)limits->stall_timeout * 1000;

	if (connection->guard.phase == GUARD_LOGIN &&
	    now_ms - connection->begun_ms > (int64_t)limits->login_timeout * 1000)
		end(connection, "the login takes too long");
	else if (is_reset(connection))
		drop(connection);
	else if (wants_to_send(connection) && now_ms - connection->went_ms > stall_ms)
		end(connection, "the initiator does not read its answers");
	else if (!connection->held && guard_waits(&connection->guard) &&
		 now_ms - connection->came_ms > stall_ms)
		end(connection, "the initiator does not send the rest of a PDU or of a transfer");
}

static void tick(void *unused)
{
	static struct tgt_work work = { .func = tick };
	int64_t now_ms = clock_ms();

	(void)unused;
	for (struct connection *each = first; each; each = each->next)
		if (!each->ended)
			look_at_time(each, now_ms);
	add_work(&work, TICK_SECONDS);
}

/* ---- the beginning ---- */

static void read_limits(void)
{
	const char *text = getenv(LIMITS_VARIABLE);
	struct rlimit descriptors;

	limits_default(&shared.limits);
	if (text && limits_read(text, &shared.limits))
		log_line(LOG_LEVEL_ERROR,
			 LIMITS_VARIABLE "=%s is none of muninnd's; using defaults", text);
	/* A connection may need two. Without any, tgtd would ask for the next one for ever. */
	if (!getrlimit(RLIMIT_NOFILE, &descriptors) &&
	    descriptors.rlim_cur < 2 * shared.limits.connections + OTHER_DESCRIPTORS)
		shared.limits.connections =
			descriptors.rlim_cur > OTHER_DESCRIPTORS + 2
				? (uint32_t)(descriptors.rlim_cur - OTHER_DESCRIPTORS) / 2
				: 1;
}

static uint32_t count_from(const char *address)
{
	uint32_t from = 0;

	for (const struct connection *each = first; each; each = each->next)
		from += !strcmp(each->address, address);
	return from;
}

static void write_address(const struct sockaddr_storage *from, char to[INET6_ADDRSTRLEN])
{
	const struct sockaddr_in *four = (const void *)from;
	const struct sockaddr_in6 *six = (const void *)from;
	const void *address = from->ss_family == AF_INET ? (const void *)&four->sin_addr
							 : &six->sin6_addr;

	if (!inet_ntop(from->ss_family, address, to, INET6_ADDRSTRLEN))
		strcpy(to, "?");
}

void connection_begin(int fd, const struct sockaddr_storage *from)
{
	static bool begun;
	struct connection *connection = fd < FOLLOWED_MAX ? calloc(1, sizeof(*connection)) : NULL;

	if (!begun) {
		read_limits();
		tick(NULL);
		begun = true;
	}
	/* Not to be followed: tgtd reads the end of the stream at once. */
	if (!connection) {
		shutdown(fd, SHUT_RDWR);
		return;
	}
	connection->fd = fd;
	connection->epoll_fd = -1;
	connection->kept_fd = -1;
	connection->begun_ms = connection->came_ms = connection->went_ms = clock_ms();
	write_address(from, connection->address);
	guard_begin(&connection->guard, &shared);
	if (count >= shared.limits.connections)
		end(connection, "there are too many connections");
	else if (count_from(connection->address) >= shared.limits.connections_per_address)
		end(connection, "there are too many connections from this address");
	connections[fd] = connection;
	connection->next = first;
	if (first)
		first->previous = connection;
	first = connection;
	count++;
}

/* ---- from the initiator to tgtd ---- */

static ssize_t not_now(void)
{
	errno = EAGAIN;
	return -1;
}

/* tgtd forgets requests that it need not answer when it may write. */
static void look_at_silent(struct connection *connection)
{
	struct pollfd socket = { .fd = connection->fd, .events = POLLOUT };

	if (connection->guard.silent >= shared.limits.commands && poll(&socket, 1, 0) > 0 &&
	    socket.revents & POLLOUT)
		connection->guard.silent = 0;
}

/*
 * May tgtd see a new PDU? Not while it sends a request for data: it would free a command twice if
 * the connection ended while data for it comes in.
 */
static bool may_begin_pdu(struct connection *connection)
{
	if (connection->sending && connection->guard.asking)
		return false;
	hold(connection, !guard_may_go_on(&connection->guard));
	if (!connection->held)
		look_at_silent(connection);
	return !connection->held;
}

ssize_t connection_read(struct connection *connection, void *to, size_t bytes)
{
	bool pdu_ended;
	ssize_t got;

	if (connection->ended)
		return 0;
	if (guard_is_between(&connection->guard) && !may_begin_pdu(connection))
		return not_now();
	/* Then tgtd and the guard would not mean the same part of a PDU. */
	if (bytes != guard_missing(&connection->guard)) {
		end(connection, "tgtd reads what the guard does not expect");
		return 0;
	}
	got = syscall(SYS_read, connection->fd, to, bytes);
	if (got <= 0)
		return got;
	connection->came_ms = clock_ms();
	if (!guard_came(&connection->guard, to, (size_t)got, &pdu_ended)) {
		end(connection, connection->guard.reason);
		return 0;
	}
	if (pdu_ended && guard_opcode(&connection->guard.in) == GUARD_TASK_MANAGEMENT)
		requests_arrive();
	return got;
}

/* ---- from tgtd to the initiator ---- */

/* Bytes that went, or -1 with errno. */
static ssize_t send_some(struct connection *connection, const uint8_t *from, size_t bytes)
{
	ssize_t sent = syscall(SYS_sendto, connection->fd, from, bytes, MSG_NOSIGNAL | MSG_DONTWAIT,
			       NULL, 0);

	if (sent > 0)
		connection->went_ms = clock_ms();
	return sent < 0 && errno == EAGAIN ? 0 : sent;
}

/* The socket takes more. */
static void send_kept(int fd, int events, void *data)
{
	struct connection *connection = data;
	ssize_t sent;

	(void)fd;
	(void)events;
	sent = send_some(connection, connection->kept + connection->kept_at,
			 connection->kept_bytes - connection->kept_at);
	if (sent >= 0)
		connection->kept_at += (size_t)sent;
	else
		shutdown(connection->fd, SHUT_RDWR);
	if (sent >= 0 && connection->kept_at < connection->kept_bytes)
		return;
	forget_kept(connection);
	update_events(connection);
	go_on();
}

/* False: impossible, for want of memory or descriptors. */
static bool keep(struct connection *connection, const uint8_t *from, size_t bytes)
{
	connection->kept = malloc(bytes);
	connection->kept_fd = connection->kept ? fcntl(connection->fd, F_DUPFD_CLOEXEC, 0) : -1;
	if (connection->kept_fd < 0 ||
	    tgt_event_add(connection->kept_fd, EPOLLOUT, send_kept, connection)) {
		if (connection->kept_fd >= 0)
			close(connection->kept_fd);
		free(connection->kept);
		connection->kept = NULL;
		connection->kept_fd = -1;
		return false;
	}
	memcpy(connection->kept, from, bytes);
	connection->kept_bytes = bytes;
	connection->kept_at = 0;
	shared.bytes += bytes;
	update_events(connection);
	return true;
}

ssize_t connection_write(struct connection *connection, const void *from, size_t bytes)
{
	ssize_t sent;

	if (connection->ended) {
		errno = EPIPE;
		return -1;
	}
	sent = send_some(connection, from, bytes);
	if (sent < 0)
		return -1;
	if ((size_t)sent < bytes &&
	    (connection->kept ||
	     !keep(connection, (const uint8_t *)from + sent, bytes - (size_t)sent))) {
		end(connection, "there is no memory for its answers");
		errno = EPIPE;
		return -1;
	}
	connection->sending = true;
	guard_went(&connection->guard, from, bytes);
	if (connection->guard.reason[0]) {
		end(connection, connection->guard.reason);
		errno = EPIPE;
		return -1;
	}
	go_on();
	return (ssize_t)bytes;
}

void connection_pdu_sent(struct connection *connection)
{
	connection->sending = false;
}
