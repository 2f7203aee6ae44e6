/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Which events tgtd is told of a connection.
 *
 * The kernel is not asked for what is known. A connection of which something has been read ahead is
 * readable. One whose socket has taken everything so far is writable, and asked again only now and
 * then: tgtd turns that event on and off for each answer, and sends an answer in two rounds of its
 * event loop. What a socket does not take after all is kept (sending.c).
 */
#include <poll.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/module/connections_private.h"

/* A socket that can be written to mostly takes so much. */
#define CREDIT_BYTES 65536

static struct connection *first_ready, *last_ready;

/* ---- what tgtd may be told ---- */

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

/* What is known without the kernel. */
static uint32_t events_at_hand(const struct connection *connection)
{
	uint32_t known = 0;

	if (connection->epoll_fd < 0 || connection->ended)
		return 0;
	if (connection->inbox.count > 0)
		known |= EPOLLIN;
	if (connection->trusted)
		known |= EPOLLOUT;
	return events_for(connection) & known;
}

static uint32_t events_of_kernel(const struct connection *connection)
{
	return events_for(connection) & ~(events_at_hand(connection) & (uint32_t)EPOLLOUT);
}

bool connection_wants_to_send(const struct connection *connection)
{
	return connection->kept || connection->wanted.events & EPOLLOUT;
}

/* ---- the list of those that have an event at hand ---- */

static void link_ready(struct connection *connection)
{
	connection->next_ready = NULL;
	connection->previous_ready = last_ready;
	if (last_ready)
		last_ready->next_ready = connection;
	else
		first_ready = connection;
	last_ready = connection;
	connection->ready = true;
}

static void unlink_ready(struct connection *connection)
{
	struct connection *next = connection->next_ready, *previous = connection->previous_ready;

	if (next)
		next->previous_ready = previous;
	else
		last_ready = previous;
	if (previous)
		previous->next_ready = next;
	else
		first_ready = next;
	connection->ready = false;
}

static void update_ready(struct connection *connection)
{
	bool ready = events_at_hand(connection) != 0;

	if (ready && !connection->ready)
		link_ready(connection);
	else if (!ready && connection->ready)
		unlink_ready(connection);
}

int connections_give(struct epoll_event *events, int most, bool *input)
{
	struct connection *connection = first_ready;
	int given = 0;

	*input = false;
	for (; connection && given < most; connection = connection->next_ready, given++) {
		events[given] = connection->wanted;
		events[given].events = events_at_hand(connection);
		*input |= events[given].events & EPOLLIN;
	}
	return given;
}

/* ---- the kernel ---- */

static bool takes_more(struct connection *connection)
{
	struct pollfd socket = { .fd = connection->fd, .events = POLLOUT };

	if (connection->credit > 0)
		return true;
	if (poll(&socket, 1, 0) != 1 || socket.revents != POLLOUT)
		return false;
	connection->credit = CREDIT_BYTES;
	return true;
}

void connection_spend(struct connection *connection, size_t bytes)
{
	connection->credit -= (int64_t)bytes;
	if (!connection->trusted || connection->credit > 0)
		return;
	connection->trusted = takes_more(connection);
	connection_update_events(connection);
}

static int watch_events(struct connection *connection, int operation)
{
	struct epoll_event event = connection->wanted;

	event.events = connection->watched = events_of_kernel(connection);
	return (int)syscall(SYS_epoll_ctl, connection->epoll_fd, operation, connection->fd, &event);
}

void connection_update_events(struct connection *connection)
{
	update_ready(connection);
	if (connection->epoll_fd >= 0 && events_of_kernel(connection) != connection->watched)
		watch_events(connection, EPOLL_CTL_MOD);
}

int connection_watch(struct connection *connection, int epoll_fd, int operation,
		     struct epoll_event *wanted)
{
	bool same = operation == EPOLL_CTL_MOD && epoll_fd == connection->epoll_fd &&
		    connection->wanted.data.ptr == wanted->data.ptr;

	if (operation == EPOLL_CTL_DEL) {
		connection->epoll_fd = -1;
		update_ready(connection);
		return (int)syscall(SYS_epoll_ctl, epoll_fd, operation, connection->fd, wanted);
	}
	if (!connection_wants_to_send(connection) && wanted->events & EPOLLOUT)
		connection->went_ms = clock_ms();
	connection->epoll_fd = epoll_fd;
	connection->wanted = *wanted;
	connection->trusted = wanted->events & EPOLLOUT && takes_more(connection);
	update_ready(connection);
	if (same && events_of_kernel(connection) == connection->watched)
		return 0;
	return watch_events(connection, operation);
}

void connection_forget_events(struct connection *connection)
{
	connection->epoll_fd = -1;
	update_ready(connection);
}
