/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Connections: how many there may be, how long they may take, and what happens between a socket and
 * tgtd.
 *
 * tgtd waits in `write` until an initiator reads, and all others with it. So what a socket does not
 * take is kept (sending.c), and tgtd hears nothing of that connection until it is sent. A session
 * that has reached its limits is not read either, until answers have made room. Both are done by
 * taking events away from what tgtd asks epoll for (events.c).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/module/connections_private.h"
#include "daemon/module/repetitions.h"
#include "daemon/module/requests.h"

#include "list.h"

/* Wants the other before it. */
#include "work.h"

#define FOLLOWED_MAX 65536
#define TICK_SECONDS 1

#define OTHER_DESCRIPTORS 256 /* of tgtd and of units */

static struct connection *connections[FOLLOWED_MAX];
static struct connection *first;
static uint32_t count, held_count;
struct guard_shared connections_shared;

struct connection *connection_of(int fd)
{
	return fd >= 0 && fd < FOLLOWED_MAX ? connections[fd] : NULL;
}

/* ---- messages: one for each connection that ends, and not many at once ---- */

/* Those who try to log in all the time hide neither an attack nor those who do. */
static struct repetitions logins = { .what = "logins" };
static struct repetitions refusals = { .what = "refused logins" };
static struct repetitions ends = { .what = "ends of connections" };

/* The name comes last: tgtd cuts long lines. */
static void report(struct repetitions *of, enum log_level level,
		   const struct connection *connection, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
static void report(struct repetitions *of, enum log_level level,
		   const struct connection *connection, const char *format, ...)
{
	const char *name = connection->guard.name;
	char text[REPETITION_BYTES];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (name[0] && length < (int)sizeof(text))
		snprintf(text + length, sizeof(text) - (size_t)length, "; initiator %s", name);
	repetitions_say(of, level, text, clock_ms());
}

static void sum_up(int64_t now_ms)
{
	repetitions_sum_up(&logins, now_ms);
	repetitions_sum_up(&refusals, now_ms);
	repetitions_sum_up(&ends, now_ms);
}

void connections_sum_up(void)
{
	sum_up(INT64_MAX);
}

/* ---- the end ---- */

static void hold(struct connection *connection, bool held)
{
	if (connection->held == held)
		return;
	connection->held = held;
	if (held)
		held_count++;
	else
		held_count--;
	connection_update_events(connection);
}

static void drop(struct connection *connection)
{
	connection->ended = true;
	connection_forget_kept(connection);
	hold(connection, false);
	shutdown(connection->fd, SHUT_RDWR);
	connection_update_events(connection);
}

void connection_end(struct connection *connection, const char *reason)
{
	if (connection->ended)
		return;
	report(&ends, LOG_LEVEL_WARNING, connection, "ended a connection from %s: %s",
	       connection->address, reason);
	drop(connection);
}

void connections_go_on(void)
{
	for (struct connection *each = first; each && held_count; each = each->next)
		if (each->held && guard_may_go_on(&each->guard))
			hold(each, false);
}

void connection_close(struct connection *connection)
{
	hold(connection, false);
	connection_forget_kept(connection);
	connection_forget_events(connection);
	inbox_close(&connection->inbox);
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
	connections_go_on();
}

/* ---- logins ---- */

/* RFC 7143, 11.13.5, as far as tgtd sends them. */
static const char *refusal_text(uint16_t refusal)
{
	switch (refusal) {
	case 0x0201:
		return "authentication failed (CHAP)";
	case 0x0202:
		return "the access list (allow_address, allow_name) has not got it";
	case 0x0203:
		return "there is no such target, or the access list has not got the initiator";
	default:
		return "tgtd does not take it";
	}
}

/*
 * A session that logs in anew takes the place of its earlier one (RFC 7143, 6.3.5), whose commands
 * that have not come to tgtd never do. tgtd sees to that only if the login has a security stage.
 */
static void end_earlier(const struct connection *connection)
{
	for (struct connection *each = first; each; each = each->next)
		if (each != connection && guard_is_same_session(&each->guard, &connection->guard))
			connection_end(each, "the initiator has logged in anew");
}

void connection_login_answered(struct connection *connection)
{
	const struct guard *guard = &connection->guard;

	if (connection->reported || (guard->phase == GUARD_LOGIN && !guard->refusal))
		return;
	connection->reported = true;
	if (guard->refusal)
		report(&refusals, LOG_LEVEL_WARNING, connection,
		       "refused a login from %s to %s: %s (status %04x)", connection->address,
		       guard->target, refusal_text(guard->refusal), guard->refusal);
	else if (!guard->discovers)
		report(&logins, LOG_LEVEL_INFO, connection, "a login from %s to %s",
		       connection->address, guard->target);
	end_earlier(connection);
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
	const struct limits *limits = &connections_shared.limits;
	int64_t stall_ms = (int64_t)limits->stall_timeout * 1000;

	if (connection->guard.phase == GUARD_LOGIN &&
	    now_ms - connection->begun_ms > (int64_t)limits->login_timeout * 1000)
		connection_end(connection, "the login takes too long");
	else if (is_reset(connection))
		drop(connection);
	else if (connection_wants_to_send(connection) && now_ms - connection->went_ms > stall_ms)
		connection_end(connection, "the initiator does not read its answers");
	else if (!connection->held && guard_waits(&connection->guard) &&
		 now_ms - connection->came_ms > stall_ms)
		connection_end(connection,
			       "the initiator does not send the rest of a PDU or of a transfer");
}

static void tick(void *unused)
{
	static struct tgt_work work = { .func = tick };
	int64_t now_ms = clock_ms();

	(void)unused;
	for (struct connection *each = first; each; each = each->next)
		if (!each->ended)
			look_at_time(each, now_ms);
	sum_up(now_ms);
	add_work(&work, TICK_SECONDS);
}

/* ---- the beginning ---- */

static void read_limits(void)
{
	const char *text = getenv(LIMITS_VARIABLE);
	struct rlimit descriptors;

	limits_default(&connections_shared.limits);
	if (text && limits_read(text, &connections_shared.limits))
		log_line(LOG_LEVEL_ERROR,
			 LIMITS_VARIABLE "=%s is none of muninnd's; using defaults", text);
	/* A connection may need two. Without any, tgtd would ask for the next one for ever. */
	if (!getrlimit(RLIMIT_NOFILE, &descriptors) &&
	    descriptors.rlim_cur < 2 * connections_shared.limits.connections + OTHER_DESCRIPTORS)
		connections_shared.limits.connections =
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
	guard_begin(&connection->guard, &connections_shared);
	if (count >= connections_shared.limits.connections)
		connection_end(connection, "there are too many connections");
	else if (count_from(connection->address) >=
		 connections_shared.limits.connections_per_address)
		connection_end(connection, "there are too many connections from this address");
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

	if (connection->guard.silent >= connections_shared.limits.commands &&
	    poll(&socket, 1, 0) > 0 && socket.revents & POLLOUT)
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
	/* Somebody who has not logged in costs no memory. */
	if (!connection->inbox.memory && connection->guard.phase == GUARD_FULL)
		inbox_open(&connection->inbox);
	/* Then tgtd and the guard would not mean the same part of a PDU. */
	if (bytes != guard_missing(&connection->guard)) {
		connection_end(connection, "tgtd reads what the guard does not expect");
		return 0;
	}
	got = inbox_read(&connection->inbox, connection->fd, to, bytes);
	connection_update_events(connection);
	if (got <= 0)
		return got;
	connection->came_ms = clock_ms();
	if (!guard_came(&connection->guard, to, (size_t)got, &pdu_ended)) {
		connection_end(connection, connection->guard.reason);
		return 0;
	}
	if (pdu_ended && guard_opcode(&connection->guard.in) == GUARD_TASK_MANAGEMENT)
		requests_arrive();
	return got;
}
