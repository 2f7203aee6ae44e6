/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Stands between tgtd and its connections: the functions of a preloaded module that stand before
 * libc's. tgtd reads sockets with `read` alone, on its main thread, and never beyond the end of a
 * part of a PDU: header, additional header segments, data. It acts on a part when all of it has
 * been read. It writes header and data of a PDU, each by `write`, and takes the cork off the socket
 * at the PDU's end.
 *
 * A module that is not preloaded follows nothing, and guards nothing.
 */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/module/connections.h"

static pthread_t main_thread;

/* When the module is loaded, which tgtd's main thread does. */
__attribute__((constructor)) static void note_main_thread(void)
{
	main_thread = pthread_self();
}

/* The table of connections is the main thread's: others do not even look. */
static struct connection *followed(int fd)
{
	return pthread_equal(pthread_self(), main_thread) ? connection_of(fd) : NULL;
}

/* In libc's places, by the symbols' names. */
ssize_t stream_read(int fd, void *to, size_t bytes) __asm__("read");
ssize_t stream_write(int fd, const void *from, size_t bytes) __asm__("write");
int stream_close(int fd) __asm__("close");
int stream_accept(int fd, struct sockaddr *from, socklen_t *bytes) __asm__("accept");
int stream_epoll_ctl(int epoll_fd, int operation, int fd,
		     struct epoll_event *event) __asm__("epoll_ctl");

ssize_t stream_read(int fd, void *to, size_t bytes)
{
	struct connection *connection = followed(fd);

	return connection ? connection_read(connection, to, bytes)
			  : syscall(SYS_read, fd, to, bytes);
}

ssize_t stream_write(int fd, const void *from, size_t bytes)
{
	struct connection *connection = followed(fd);

	return connection ? connection_write(connection, from, bytes)
			  : syscall(SYS_write, fd, from, bytes);
}

int stream_close(int fd)
{
	struct connection *connection = followed(fd);

	if (connection)
		connection_close(connection);
	return (int)syscall(SYS_close, fd);
}

int stream_accept(int fd, struct sockaddr *from, socklen_t *bytes)
{
	int accepted = (int)syscall(SYS_accept, fd, from, bytes);
	struct sockaddr_storage own = { 0 }, peer = { 0 };
	socklen_t own_bytes = sizeof(own), peer_bytes = sizeof(peer);

	if (accepted < 0 || !pthread_equal(pthread_self(), main_thread))
		return accepted;
	/* tgtd's control socket is a local one. */
	if (getsockname(accepted, (struct sockaddr *)&own, &own_bytes) ||
	    (own.ss_family != AF_INET && own.ss_family != AF_INET6))
		return accepted;
	/* A peer that is gone already has no address. */
	getpeername(accepted, (struct sockaddr *)&peer, &peer_bytes);
	connection_begin(accepted, &peer);
	return accepted;
}

int stream_epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event)
{
	struct connection *connection = followed(fd);

	return connection ? connection_watch(connection, epoll_fd, operation, event)
			  : (int)syscall(SYS_epoll_ctl, epoll_fd, operation, fd, event);
}
