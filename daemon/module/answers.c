/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Pushes answers to the network together: `setsockopt` and `epoll_wait` of a preloaded module stand
 * before libc's.
 *
 * tgtd corks a socket (TCP_CORK) before each PDU and uncorks it behind. Uncorking pushes the last
 * segment out and wakes the initiator, and that takes more of a processor than everything else
 * about a short command. So while there is more to do, the socket stays corked, and what follows
 * shares the push. Before tgtd waits, after PDUS_HELD_MAX PDUs, and when tgtd has asked for events
 * ROUNDS_HELD_MAX times, everything held is pushed. Full segments leave at once in any case.
 *
 * One command at a time gains nothing by that. So answers are held only after a call of epoll_wait
 * that had something to give at once.
 *
 * A socket that is closed meanwhile is pushed by its end. If its number is another connection's by
 * then, that is pushed too early once, which does no harm.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "daemon/module/connections.h"
#include "daemon/module/later.h"

enum {
	PDUS_HELD_MAX = 8,
	ROUNDS_HELD_MAX = 16,
	/* A call of epoll_wait that took longer has waited. */
	AT_ONCE_NS = 4000,
};

/* Of tgtd's main thread, the only one that may hold anything. */
static pthread_t main_thread;
static int held[PDUS_HELD_MAX]; /* sockets that are to be pushed, each once */
static unsigned int held_count;
static unsigned int pdus;   /* since the last push */
static unsigned int rounds; /* since then: calls of epoll_wait that had events at once */

/* When the module is loaded, which tgtd's main thread does. */
__attribute__((constructor)) static void note_main_thread(void)
{
	main_thread = pthread_self();
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int cork(int socket, int on)
{
	return (int)syscall(SYS_setsockopt, socket, IPPROTO_TCP, TCP_CORK, &on, sizeof(on));
}

static int wait_for_events(int epoll, struct epoll_event *events, int most, int timeout)
{
	return (int)syscall(SYS_epoll_wait, epoll, events, most, timeout);
}

static void push(void)
{
	for (unsigned int i = 0; i < held_count; i++)
		(void)cork(held[i], 0);
	held_count = 0;
	pdus = 0;
	rounds = 0;
}

static bool is_held(int socket)
{
	for (unsigned int i = 0; i < held_count; i++)
		if (held[i] == socket)
			return true;
	return false;
}

/* Before a PDU. */
static int begin_pdu(int socket)
{
	return is_held(socket) ? 0 : cork(socket, 1);
}

/* Behind a PDU. */
static int end_pdu(int socket)
{
	if (!later_is_busy())
		return cork(socket, 0);
	if (!is_held(socket))
		held[held_count++] = socket;
	if (++pdus >= PDUS_HELD_MAX)
		push();
	return 0;
}

/* In libc's places, by the symbols' names. */
int answers_setsockopt(int socket, int level, int name, const void *value,
		       socklen_t bytes) __asm__("setsockopt");
int answers_epoll_wait(int epoll, struct epoll_event *events, int most,
		       int timeout) __asm__("epoll_wait");

int answers_setsockopt(int socket, int level, int name, const void *value, socklen_t bytes)
{
	int on;

	if (level != IPPROTO_TCP || name != TCP_CORK || bytes != sizeof(on) ||
	    !pthread_equal(pthread_self(), main_thread))
		return (int)syscall(SYS_setsockopt, socket, level, name, value, bytes);
	memcpy(&on, value, sizeof(on));
	if (!on && connection_of(socket))
		connection_pdu_sent(connection_of(socket));
	return on ? begin_pdu(socket) : end_pdu(socket);
}

int answers_epoll_wait(int epoll, struct epoll_event *events, int most, int timeout)
{
	uint64_t began_ns;
	int count;

	if (!pthread_equal(pthread_self(), main_thread))
		return wait_for_events(epoll, events, most, timeout);
	if (held_count || later_has_any()) {
		count = wait_for_events(epoll, events, most, 0);
		if (count != 0 && ++rounds < ROUNDS_HELD_MAX)
			return count;
		later_do();
		push();
		if (count != 0)
			return count;
	}
	began_ns = now_ns();
	count = wait_for_events(epoll, events, most, timeout);
	later_set_busy(count > 0 && now_ns() - began_ns < AT_ONCE_NS);
	return count;
}
