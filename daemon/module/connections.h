/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The TCP connections of tgtd, each with its guard, from `accept` to `close`. stream.c calls these
 * in place of what tgtd calls.
 *
 * Main thread only.
 */
#ifndef MUNINN_DAEMON_MODULE_CONNECTIONS_H
#define MUNINN_DAEMON_MODULE_CONNECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>

struct connection;

/* NULL: not a connection that is followed. Any thread. */
struct connection *connection_of(int fd);

/* tgtd has accepted this one. */
void connection_begin(int fd, const struct sockaddr_storage *from);
void connection_close(struct connection *connection);

/* As the system calls. */
ssize_t connection_read(struct connection *connection, void *to, size_t bytes);
ssize_t connection_write(struct connection *connection, const void *from, size_t bytes);

/*
 * Events that tgtd need not ask the kernel for; returns how many. `*input`: there is one to read.
 * They come again until tgtd has done what they are for.
 */
int connections_give(struct epoll_event *events, int most, bool *input);

/* Says how often messages about connections have come again. tgtd may be about to end. */
void connections_sum_up(void);

/* tgtd has sent all of a PDU. */
void connection_pdu_sent(struct connection *connection);

/* tgtd wants these events, from its own epoll descriptor. NULL: none any more. 0 or -errno. */
int connection_watch(struct connection *connection, int epoll_fd, int operation,
		     struct epoll_event *wanted);

#endif
