/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * From tgtd to the initiator. The beginning of a PDU waits for what follows, so that one system
 * call sends both. What a socket does not take is kept, and sent when it does.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/module/connections_private.h"
#include "daemon/module/later.h"

#include "list.h"
#include "tgtd.h"

void connection_forget_kept(struct connection *connection)
{
	if (!connection->kept)
		return;
	tgt_event_del(connection->kept_fd);
	close(connection->kept_fd);
	connection->kept_fd = -1;
	connections_shared.bytes -= connection->kept_bytes;
	free(connection->kept);
	connection->kept = NULL;
	connection->kept_at = connection->kept_bytes = 0;
	/* The kernel is asked before tgtd sends again. */
	connection->trusted = false;
	connection->credit = 0;
}

static bool is_inside_of_pdu(const struct connection *connection)
{
	return connection->guard.out.part != GUARD_HEADER;
}

/*
 * Sends two parts, the first of which may be empty. Bytes that went, or -1 with errno. `more`: the
 * last segment of the network stays open for what follows.
 */
static ssize_t send_some(struct connection *connection, const struct iovec parts[2], bool more)
{
	struct msghdr message = { .msg_iov = (struct iovec *)parts, .msg_iovlen = 2 };
	ssize_t sent = syscall(SYS_sendmsg, connection->fd, &message,
			       MSG_NOSIGNAL | MSG_DONTWAIT | (more ? MSG_MORE : 0));

	if (sent > 0)
		connection->went_ms = clock_ms();
	return sent < 0 && errno == EAGAIN ? 0 : sent;
}

/* The socket takes more. */
static void send_kept(int fd, int events, void *data)
{
	struct connection *connection = data;
	const struct iovec rest[] = {
		{ connection->kept + connection->kept_at,
		  connection->kept_bytes - connection->kept_at },
		{ NULL, 0 },
	};
	ssize_t sent;

	(void)fd;
	(void)events;
	sent = send_some(connection, rest, is_inside_of_pdu(connection));
	if (sent >= 0)
		connection->kept_at += (size_t)sent;
	else
		shutdown(connection->fd, SHUT_RDWR);
	if (sent >= 0 && connection->kept_at < connection->kept_bytes)
		return;
	connection_forget_kept(connection);
	connection_update_events(connection);
	connections_go_on();
}

/* Has somebody call when the socket takes more. */
static bool watch_kept(struct connection *connection)
{
	int fd = fcntl(connection->fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return false;
	if (tgt_event_add(fd, EPOLLOUT, send_kept, connection)) {
		close(fd);
		return false;
	}
	connection->kept_fd = fd;
	return true;
}

/* Keeps what is left of two parts behind so many bytes. False: no memory, or no descriptors. */
static bool keep(struct connection *connection, const struct iovec parts[2], size_t sent)
{
	size_t bytes = parts[0].iov_len + parts[1].iov_len - sent;
	uint8_t *kept = realloc(connection->kept, connection->kept_bytes + bytes);
	bool first = !connection->kept;

	if (!kept)
		return false;
	if (first && !watch_kept(connection)) {
		free(kept);
		return false;
	}
	connection->kept = kept;
	for (int i = 0; i < 2; i++) {
		size_t skipped = sent < parts[i].iov_len ? sent : parts[i].iov_len;
		size_t rest = parts[i].iov_len - skipped;

		sent -= skipped;
		if (rest)
			memcpy(kept + connection->kept_bytes,
			       (const uint8_t *)parts[i].iov_base + skipped, rest);
		connection->kept_bytes += rest;
	}
	connections_shared.bytes += bytes;
	connection_update_events(connection);
	return true;
}

/* Does the PDU go on behind this, which is short? Then it is sent with the rest. */
static bool put_off(struct connection *connection, const void *from, size_t bytes)
{
	if (!is_inside_of_pdu(connection) || connection->guard.out.part > GUARD_DATA ||
	    bytes > HEAD_BYTES - connection->head_bytes)
		return false;
	memcpy(connection->head + connection->head_bytes, from, bytes);
	connection->head_bytes += (uint32_t)bytes;
	return true;
}

static ssize_t broken(void)
{
	errno = EPIPE;
	return -1;
}

ssize_t connection_write(struct connection *connection, const void *from, size_t bytes)
{
	const struct iovec parts[] = {
		{ connection->head, connection->head_bytes },
		{ (void *)(uintptr_t)from, bytes },
	};
	size_t all = connection->head_bytes + bytes;
	ssize_t sent = 0;

	if (connection->ended)
		return broken();
	connection->sending = true;
	guard_went(&connection->guard, from, bytes);
	if (connection->guard.reason[0]) {
		connection_end(connection, connection->guard.reason);
		return broken();
	}
	connection_login_answered(connection);
	if (put_off(connection, from, bytes))
		return (ssize_t)bytes;
	connection->head_bytes = 0;
	/* While tgtd has more to do, answers leave together: answers.c pushes them. */
	if (!connection->kept)
		sent = send_some(connection, parts,
				 is_inside_of_pdu(connection) || later_is_busy());
	if (sent < 0)
		return -1;
	if ((size_t)sent < all && !keep(connection, parts, (size_t)sent)) {
		connection_end(connection, "there is no memory for its answers");
		return broken();
	}
	connection_spend(connection, all);
	connections_go_on();
	return (ssize_t)bytes;
}

void connection_pdu_sent(struct connection *connection)
{
	connection->sending = false;
}
