/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * tgtd's event loop, and answers that leave together: `setsockopt` and `epoll_wait` of a preloaded
 * module stand before libc's.
 *
 * tgtd corks a socket (TCP_CORK) before each PDU and uncorks it behind. Uncorking pushes the last
 * segment out and wakes the initiator, and that takes more of a processor than everything else
 * about a short command. So while there is more to do, what is sent stays open for what follows
 * (MSG_MORE, sending.c), and several PDUs share the push. After PDUS_HELD_MAX PDUs a socket is
 * pushed. Before tgtd waits, and when tgtd has asked for events ROUNDS_HELD_MAX times, all are.
 * Full segments leave at once in any case. The cork itself is never set.
 *
 * One command at a time gains nothing by that. So answers are held only when there was something to
 * do at once: an event of the kernel, or a command that has been read ahead.
 *
 * The kernel is not asked for events as long as connections know of some (connections_give), but
 * for each UNASKED_MAX-th time.
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
	SOCKETS_HELD_MAX = 64,
	ROUNDS_HELD_MAX = 16,
	UNASKED_MAX = 8,
	/* A call of epoll_wait that took longer has waited. */
	AT_ONCE_NS = 4000,
};

/* Of tgtd's main thread, the only one that may hold anything. */
static pthread_t main_thread;
/* Sockets that are to be pushed, each once, and how many PDUs of each are held. */
static struct {
	int socket;
	unsigned int pdus;
} held[SOCKETS_HELD_MAX];
static unsigned int held_count;
static unsigned int rounds;  /* since all were pushed: calls of epoll_wait that gave events */
static unsigned int unasked; /* calls of epoll_wait since the kernel was asked */

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

static int wait_for_events(int epoll, struct epoll_event *events, int most, int timeout)
{
	return (int)syscall(SYS_epoll_wait, epoll, events, most, timeout);
}

/* Taking a cork off pushes, also where there is none. */
static int push_socket(int socket)
{
	const int off = 0;

	return (int)syscall(SYS_setsockopt, socket, IPPROTO_TCP, TCP_CORK, &off, sizeof(off));
}

static void push(void)
{
	for (unsigned int i = 0; i < held_count; i++)
		(void)push_socket(held[i].socket);
	held_count = 0;
	rounds = 0;
}

static unsigned int find_held(int socket)
{
	unsigned int i = 0;

	while (i < held_count && held[i].socket != socket)
		i++;
	return i;
}

/* Behind a PDU. */
static void end_pdu(int socket)
{
	unsigned int i = find_held(socket);

	/* Then nothing of it was held. */
	if (!later_is_busy())
		return;
	if (i == SOCKETS_HELD_MAX) {
		push();
		i = 0;
	}
	if (i == held_count) {
		held[held_count].socket = socket;
		held[held_count++].pdus = 0;
	}
	if (++held[i].pdus < PDUS_HELD_MAX)
		return;
	(void)push_socket(socket);
	held[i] = held[--held_count];
}

/* In libc's places, by the symbols' names. */
int answers_setsockopt(int socket, int level, int name, const void *value,
		       socklen_t bytes) __asm__("setsockopt");
int answers_epoll_wait(int epoll, struct epoll_event *events, int most,
		       int timeout) __asm__("epoll_wait");

int answers_setsockopt(int socket, int level, int name, const void *value, socklen_t bytes)
{
	struct connection *connection = NULL;
	int on;

	/* The table of connections is the main thread's: others do not even look. */
	if (level == IPPROTO_TCP && name == TCP_CORK && bytes == sizeof(on) &&
	    pthread_equal(pthread_self(), main_thread))
		connection = connection_of(socket);
	if (!connection)
		return (int)syscall(SYS_setsockopt, socket, level, name, value, bytes);
	memcpy(&on, value, sizeof(on));
	if (on)
		return 0;
	connection_pdu_sent(connection);
	end_pdu(socket);
	return 0;
}

/* Nothing is held for ever, however much there is to do. */
static void count_round(void)
{
	if (++rounds < ROUNDS_HELD_MAX)
		return;
	later_do();
	push();
}

/* There are events without asking the kernel. */
static int give(int epoll, struct epoll_event *events, int most, int given, bool input)
{
	int more = 0;

	if (++unasked >= UNASKED_MAX) {
		unasked = 0;
		more = given < most ? wait_for_events(epoll, events + given, most - given, 0) : 0;
	}
	if (input || more > 0)
		later_set_busy(true);
	count_round();
	return given + (more > 0 ? more : 0);
}

int answers_epoll_wait(int epoll, struct epoll_event *events, int most, int timeout)
{
	uint64_t began_ns;
	bool input;
	int count;

	if (!pthread_equal(pthread_self(), main_thread))
		return wait_for_events(epoll, events, most, timeout);
	count = connections_give(events, most, &input);
	if (count > 0)
		return give(epoll, events, most, count, input);
	unasked = 0;
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
