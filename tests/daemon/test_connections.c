/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Connections between real sockets and tgtd, which the test plays, as it plays the initiator: what
 * is read ahead, what leaves together, what a full socket does not take, and which events tgtd is
 * told of without asking the kernel.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "daemon/module/connections_private.h"
#include "daemon/module/later.h"
#include "daemon/module/requests.h"

#include "list.h"
#include "tgtd.h"

/* Wants the others before it. */
#include "work.h"

enum { HEADER = GUARD_HEADER_BYTES, PING = 0x40 | GUARD_NOP_OUT, TAG = 0x1234 };

/* ---- tgtd ---- */

static struct {
	int fd;
	event_handler_t handler;
	void *data;
} kept; /* the descriptor of what is kept; 0: none */
static bool refuse_to_watch;

int tgt_event_add(int fd, int events, event_handler_t handler, void *data)
{
	assert_int_equal(events, EPOLLOUT);
	assert_int_equal(kept.fd, 0);
	if (refuse_to_watch)
		return -ENOMEM;
	kept.fd = fd;
	kept.handler = handler;
	kept.data = data;
	return 0;
}

void tgt_event_del(int fd)
{
	assert_int_equal(fd, kept.fd);
	kept.fd = 0;
}

void add_work(struct tgt_work *work, unsigned int second)
{
	(void)work;
	(void)second;
}

void requests_arrive(void)
{
}

/* ---- the scene ---- */

static int epoll, tgtd, initiator;
static struct connection *connection;
static char mark; /* what tgtd has epoll give back */

static void connect_both(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	struct sockaddr_storage peer = { 0 };
	socklen_t bytes = sizeof(address), peer_bytes = sizeof(peer);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, bytes), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &bytes), 0);
	initiator = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(initiator, (struct sockaddr *)&address, bytes), 0);
	tgtd = accept(listener, (struct sockaddr *)&peer, &peer_bytes);
	assert_true(tgtd >= 0);
	close(listener);
	connection_begin(tgtd, &peer);
	connection = connection_of(tgtd);
	assert_non_null(connection);
}

static void watch(int operation, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = &mark };

	assert_int_equal(connection_watch(connection, epoll, operation, &event), 0);
}

/* As if a login had ended. */
static void begin_session(void)
{
	connection->guard.phase = GUARD_FULL;
	assert_int_equal(
		guard_tasks_init(&connection->guard.tasks, 2 * connections_shared.limits.commands),
		0);
}

static int set_up(void **state)
{
	(void)state;
	refuse_to_watch = false;
	later_set_busy(false);
	epoll = epoll_create1(0);
	connect_both();
	assert_int_equal(fcntl(tgtd, F_SETFL, O_NONBLOCK), 0);
	watch(EPOLL_CTL_ADD, EPOLLIN);
	begin_session();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (connection)
		connection_close(connection);
	close(tgtd);
	close(initiator);
	close(epoll);
	return kept.fd || connections_shared.bytes ? -1 : 0;
}

/* What tgtd is told without the kernel; 0: nothing. */
static uint32_t at_hand(void)
{
	struct epoll_event events[2];
	bool input;
	int given = connections_give(events, 2, &input);

	assert_in_range(given, 0, 1);
	if (!given)
		return 0;
	assert_ptr_equal(events[0].data.ptr, &mark);
	assert_int_equal(input, (events[0].events & EPOLLIN) != 0);
	return events[0].events;
}

/* What the kernel tells tgtd. */
static uint32_t of_kernel(void)
{
	struct epoll_event event;

	return epoll_wait(epoll, &event, 1, 0) == 1 ? event.events : 0;
}

/* ---- from the initiator ---- */

/* A ping that tgtd answers, with so many bytes of data. Returns its length. */
static size_t make_ping(uint8_t *to, uint32_t data)
{
	memset(to, 0, HEADER);
	to[0] = PING;
	to[1] = 0x80;
	put_be32(to + 4, data);
	put_be32(to + 16, TAG);
	put_be32(to + 20, GUARD_TAG_NONE);
	for (uint32_t i = 0; i < align_up(data, 4); i++)
		to[HEADER + i] = i < data ? (uint8_t)(i * 7 + data) : 0;
	return HEADER + align_up(data, 4);
}

static void initiator_sends(const void *from, size_t bytes)
{
	assert_int_equal(send(initiator, from, bytes, 0), bytes);
}

/* Until so many bytes can be read from the socket at once. */
static void await_bytes(int fd, size_t bytes)
{
	uint8_t buffer[65536];

	assert_true(bytes <= sizeof(buffer));
	assert_int_equal(recv(fd, buffer, bytes, MSG_PEEK | MSG_WAITALL), bytes);
}

static void tgtd_waits_for(size_t bytes)
{
	assert_int_equal(fcntl(tgtd, F_SETFL, 0), 0);
	await_bytes(tgtd, bytes);
	assert_int_equal(fcntl(tgtd, F_SETFL, O_NONBLOCK), 0);
}

/* tgtd reads a part of a PDU, which must be this. */
static void tgtd_reads(const uint8_t *wanted, size_t bytes)
{
	uint8_t *got = malloc(bytes);

	assert_int_equal(connection_read(connection, got, bytes), bytes);
	assert_memory_equal(got, wanted, bytes);
	free(got);
}

/* ---- reading ahead ---- */

static void test_several_pdus_come_by_one_system_call(void **state)
{
	uint8_t pdus[4096];
	size_t first = make_ping(pdus, 100), second = make_ping(pdus + first, 0);
	size_t all = first + second;

	(void)state;
	initiator_sends(pdus, all);
	tgtd_waits_for(all);
	assert_int_equal(of_kernel(), EPOLLIN);
	tgtd_reads(pdus, HEADER);
	/* The kernel has no more of it, and tgtd is told to read on. */
	assert_int_equal(of_kernel(), 0);
	assert_int_equal(at_hand(), EPOLLIN);
	tgtd_reads(pdus + HEADER, first - HEADER);
	assert_int_equal(at_hand(), EPOLLIN);
	tgtd_reads(pdus + first, HEADER);
	assert_int_equal(at_hand(), 0);
	assert_int_equal(connection_read(connection, pdus, HEADER), -1);
	assert_int_equal(errno, EAGAIN);
}

static void test_nothing_is_read_ahead_before_the_login_has_ended(void **state)
{
	uint8_t pdus[4096];
	size_t first = make_ping(pdus, 0), second = make_ping(pdus + first, 0);

	(void)state;
	connection->guard.phase = GUARD_DISCOVERY;
	initiator_sends(pdus, first + second);
	tgtd_waits_for(first + second);
	(void)connection_read(connection, pdus, HEADER);
	assert_int_equal(at_hand(), 0);
	assert_null(connection->inbox.memory);
}

static void test_a_part_that_comes_in_pieces_is_whole_at_the_end(void **state)
{
	uint8_t pdus[4096], got[4096];
	size_t all = make_ping(pdus, 1000);

	(void)state;
	initiator_sends(pdus, HEADER + 10);
	tgtd_waits_for(HEADER + 10);
	tgtd_reads(pdus, HEADER);
	assert_int_equal(connection_read(connection, got, all - HEADER), 10);
	assert_int_equal(at_hand(), 0);
	initiator_sends(pdus + HEADER + 10, all - HEADER - 10);
	tgtd_waits_for(all - HEADER - 10);
	tgtd_reads(pdus + HEADER + 10, all - HEADER - 10);
	assert_int_equal(at_hand(), 0);
}

static void test_the_end_of_the_stream_comes_behind_what_was_read_ahead(void **state)
{
	uint8_t pdus[4096];
	size_t first = make_ping(pdus, 0), second = make_ping(pdus + first, 0);

	(void)state;
	initiator_sends(pdus, first + second);
	assert_int_equal(shutdown(initiator, SHUT_WR), 0);
	tgtd_waits_for(first + second);
	tgtd_reads(pdus, HEADER);
	tgtd_reads(pdus + first, HEADER);
	assert_int_equal(connection_read(connection, pdus, HEADER), 0);
}

static void test_a_session_at_its_limits_is_not_told_of_what_was_read_ahead(void **state)
{
	uint8_t pdus[4096], answer[HEADER] = { GUARD_NOP_IN, 0x80 };
	size_t first = make_ping(pdus, 0), second = make_ping(pdus + first, 0);
	uint32_t commands = connections_shared.limits.commands;

	(void)state;
	put_be32(answer + 16, TAG);
	connections_shared.limits.commands = 1;
	initiator_sends(pdus, first + second);
	tgtd_waits_for(first + second);
	tgtd_reads(pdus, HEADER);
	assert_int_equal(at_hand(), EPOLLIN);
	assert_int_equal(connection_read(connection, pdus + 1024, HEADER), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(at_hand(), 0);
	/* The answer makes room. */
	assert_int_equal(connection_write(connection, answer, HEADER), HEADER);
	connection_pdu_sent(connection);
	assert_int_equal(at_hand(), EPOLLIN);
	tgtd_reads(pdus + first, HEADER);
	connections_shared.limits.commands = commands;
}

static void test_a_connection_that_ended_gives_nothing_of_what_was_read_ahead(void **state)
{
	uint8_t pdus[4096];
	size_t first = make_ping(pdus, 0), second = make_ping(pdus + first, 0);

	(void)state;
	initiator_sends(pdus, first + second);
	tgtd_waits_for(first + second);
	tgtd_reads(pdus, HEADER);
	connection_end(connection, "the test ends it");
	assert_int_equal(at_hand(), 0);
	assert_true(of_kernel() & EPOLLIN);
	assert_int_equal(connection_read(connection, pdus, HEADER), 0);
}

/* ---- sending ---- */

static size_t make_answer(uint8_t *to, uint32_t data)
{
	size_t bytes = make_ping(to, data);

	to[0] = GUARD_NOP_IN;
	return bytes;
}

/* Bytes that have come to the initiator. */
static size_t came(uint8_t *to, size_t most)
{
	ssize_t got = recv(initiator, to, most, MSG_DONTWAIT);

	return got < 0 ? 0 : (size_t)got;
}

static void test_a_header_leaves_with_its_data(void **state)
{
	uint8_t pdu[4096], got[4096];
	size_t all = make_answer(pdu, 1001);

	(void)state;
	assert_int_equal(connection_write(connection, pdu, HEADER), HEADER);
	assert_int_equal(came(got, sizeof(got)), 0);
	assert_int_equal(connection_write(connection, pdu + HEADER, all - HEADER), all - HEADER);
	assert_int_equal(recv(initiator, got, all, MSG_WAITALL), all);
	assert_memory_equal(got, pdu, all);
	/* One without data needs nothing behind it. */
	make_answer(pdu, 0);
	assert_int_equal(connection_write(connection, pdu, HEADER), HEADER);
	assert_int_equal(recv(initiator, got, HEADER, MSG_WAITALL), HEADER);
	assert_memory_equal(got, pdu, HEADER);
}

static void test_digests_leave_in_their_places(void **state)
{
	uint8_t pdu[4096], got[4096];
	size_t all = make_answer(pdu, 100);

	(void)state;
	connection->guard.agreed.header_digest = connection->guard.agreed.data_digest = true;
	assert_int_equal(connection_write(connection, pdu, HEADER), HEADER);
	assert_int_equal(connection_write(connection, "hdig", 4), 4);
	assert_int_equal(connection_write(connection, pdu + HEADER, 50), 50);
	assert_int_equal(connection_write(connection, pdu + HEADER + 50, all - HEADER - 50),
			 all - HEADER - 50);
	assert_int_equal(connection_write(connection, "ddig", 4), 4);
	assert_int_equal(recv(initiator, got, all + 8, MSG_WAITALL), all + 8);
	assert_memory_equal(got, pdu, HEADER);
	assert_memory_equal(got + HEADER, "hdig", 4);
	assert_memory_equal(got + HEADER + 4, pdu + HEADER, all - HEADER);
	assert_memory_equal(got + all + 4, "ddig", 4);
	assert_int_equal(connection->guard.out.part, GUARD_HEADER);
}

/* Pushes a socket whose last segment was left open. */
static void push(void)
{
	const int on = 1;

	assert_int_equal(setsockopt(tgtd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &on, sizeof(on)), 0);
}

static void test_answers_stay_open_for_others_while_tgtd_has_more_to_do(void **state)
{
	uint8_t pdu[4096], got[4096];

	(void)state;
	make_answer(pdu, 0);
	later_set_busy(true);
	assert_int_equal(connection_write(connection, pdu, HEADER), HEADER);
	assert_int_equal(connection_write(connection, pdu, HEADER), HEADER);
	assert_int_equal(came(got, sizeof(got)), 0);
	push();
	assert_int_equal(recv(initiator, got, 2 * HEADER, MSG_WAITALL), 2 * HEADER);
	assert_memory_equal(got + HEADER, pdu, HEADER);
}

/* Sends PDUs until the socket takes no more; returns their bytes. */
static size_t fill_socket(const uint8_t *pdu, size_t bytes)
{
	size_t sent = 0;

	while (!kept.fd) {
		assert_int_equal(connection_write(connection, pdu, HEADER), HEADER);
		assert_int_equal(connection_write(connection, pdu + HEADER, bytes - HEADER),
				 bytes - HEADER);
		connection_pdu_sent(connection);
		sent += bytes;
		assert_true(sent < 1 << 28);
	}
	return sent;
}

/* The initiator reads so many copies of the PDU; tgtd hears when the socket takes more. */
static void read_all(const uint8_t *pdu, size_t bytes, size_t all)
{
	uint8_t *got = malloc(bytes);

	for (size_t at = 0; at < all; at += bytes) {
		for (size_t n = 0; n < bytes;) {
			struct pollfd ends[] = { { initiator, POLLIN, 0 },
						 { kept.fd ? kept.fd : -1, POLLOUT, 0 } };

			assert_true(poll(ends, 2, 10000) > 0);
			if (ends[1].revents)
				kept.handler(kept.fd, EPOLLOUT, kept.data);
			n += came(got + n, bytes - n);
		}
		assert_memory_equal(got, pdu, bytes);
	}
	free(got);
	assert_int_equal(kept.fd, 0);
}

static void test_what_a_full_socket_does_not_take_comes_in_order(void **state)
{
	static uint8_t pdu[65536 + HEADER];
	size_t bytes = make_answer(pdu, 65536), all;

	(void)state;
	watch(EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
	assert_int_equal(at_hand(), EPOLLOUT);
	all = fill_socket(pdu, bytes);
	/* tgtd is told nothing until all of it is sent. */
	assert_int_equal(at_hand(), 0);
	assert_int_equal(of_kernel(), 0);
	assert_true(connections_shared.bytes > 0);
	/* It writes on all the same. */
	assert_int_equal(connection_write(connection, pdu, HEADER), HEADER);
	assert_int_equal(connection_write(connection, pdu + HEADER, bytes - HEADER),
			 bytes - HEADER);
	read_all(pdu, bytes, all + bytes);
	assert_int_equal(connections_shared.bytes, 0);
	assert_int_equal(of_kernel(), EPOLLOUT);
}

static void test_a_connection_ends_when_nothing_can_be_kept(void **state)
{
	static uint8_t pdu[65536 + HEADER];
	size_t bytes = make_answer(pdu, 65536), sent = 0;

	(void)state;
	refuse_to_watch = true;
	while (connection_write(connection, pdu, HEADER) == HEADER &&
	       connection_write(connection, pdu + HEADER, bytes - HEADER) ==
		       (ssize_t)(bytes - HEADER))
		assert_true((sent += bytes) < 1 << 28);
	assert_int_equal(errno, EPIPE);
	assert_true(connection->ended);
	assert_int_equal(connections_shared.bytes, 0);
}

/* ---- events ---- */

static void test_tgtd_may_send_without_asking_the_kernel(void **state)
{
	(void)state;
	watch(EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
	assert_int_equal(at_hand(), EPOLLOUT);
	assert_int_equal(of_kernel(), 0);
	watch(EPOLL_CTL_MOD, EPOLLIN);
	assert_int_equal(at_hand(), 0);
	/* Only what tgtd wants: it must not read while it wants to write only. */
	initiator_sends("x", 1);
	tgtd_waits_for(1);
	watch(EPOLL_CTL_MOD, EPOLLOUT);
	assert_int_equal(at_hand(), EPOLLOUT);
	assert_int_equal(of_kernel(), 0);
	watch(EPOLL_CTL_MOD, EPOLLIN);
	assert_int_equal(of_kernel(), EPOLLIN);
}

static void test_nothing_is_told_of_a_connection_that_tgtd_does_not_watch(void **state)
{
	struct epoll_event event = { 0 };

	(void)state;
	watch(EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
	assert_int_equal(connection_watch(connection, epoll, EPOLL_CTL_DEL, &event), 0);
	assert_int_equal(at_hand(), 0);
	watch(EPOLL_CTL_ADD, EPOLLIN | EPOLLOUT);
	assert_int_equal(at_hand(), EPOLLOUT);
	connection_close(connection);
	connection = NULL;
	assert_int_equal(at_hand(), 0);
}

static void test_a_peer_that_is_gone_is_told_by_the_kernel(void **state)
{
	const struct linger at_once = { .l_onoff = 1 };

	(void)state;
	assert_int_equal(setsockopt(initiator, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)),
			 0);
	close(initiator);
	watch(EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
	assert_true(of_kernel() & (EPOLLERR | EPOLLHUP));
}

/* ---- how many there may be ---- */

static const struct limits usual_limits = { 256, 128, 15, 60, 1024, 1 << 20, 1 << 20, 1 << 20 };

/* A connection of its own from 10.0.0.`host`, as tgtd accepts it. Has it ended at once? */
static bool ends_at_once(uint8_t host, int ends[2])
{
	struct sockaddr_storage peer = { 0 };
	struct sockaddr_in *address = (struct sockaddr_in *)&peer;
	uint8_t header[HEADER];

	address->sin_family = AF_INET;
	address->sin_addr.s_addr = htonl(UINT32_C(0x0a000000) | host);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	connection_begin(ends[0], &peer);
	assert_non_null(connection_of(ends[0]));
	return connection_read(connection_of(ends[0]), header, HEADER) == 0;
}

static void test_no_more_connections_than_there_may_be_from_all_and_from_one_address(void **state)
{
	const struct limits before = connections_shared.limits;
	int ends[6][2];

	(void)state;
	connections_shared.limits = usual_limits;
	connections_shared.limits.connections = 5;
	connections_shared.limits.connections_per_address = 2;
	/* The scene's is one of the five. One that ends at once counts until tgtd closes it. */
	assert_false(ends_at_once(1, ends[0]));
	assert_false(ends_at_once(1, ends[1]));
	assert_true(ends_at_once(1, ends[2]));
	assert_false(ends_at_once(2, ends[3]));
	assert_true(ends_at_once(3, ends[4]));
	connection_close(connection_of(ends[2][0]));
	connection_close(connection_of(ends[4][0]));
	assert_false(ends_at_once(3, ends[5]));
	connections_shared.limits = before;
	for (int i = 0; i < 6; i++) {
		if (connection_of(ends[i][0]))
			connection_close(connection_of(ends[i][0]));
		close(ends[i][0]);
		close(ends[i][1]);
	}
}

/* ---- the place of an earlier session ---- */

/* The login is whole, up to tgtd's answer that ends it. */
static void log_in(const int ends[2], uint8_t port, const char *name, const char *target)
{
	char keys[256];
	const int length = snprintf(keys, sizeof(keys),
				    "InitiatorName=%s%cTargetName=%s%cSessionType=Normal", name, 0,
				    target, 0) +
			   1;
	uint8_t pdu[HEADER + 256] = { 0x40 | GUARD_LOGIN_REQUEST, 0x87 }, read[HEADER + 256];
	size_t bytes = HEADER + align_up((size_t)length, 4), got = 0;

	put_be32(pdu + 4, (uint32_t)length);
	memcpy(pdu + 8, (uint8_t[]){ 0x80, 0, 0, 0, 0, port }, GUARD_ISID_BYTES);
	memcpy(pdu + HEADER, keys, (size_t)length);
	assert_int_equal(send(ends[1], pdu, bytes, 0), bytes);
	while (got < bytes) {
		struct connection *to = connection_of(ends[0]);
		ssize_t some = connection_read(to, read, guard_missing(&to->guard));

		assert_true(some > 0);
		got += (size_t)some;
	}
}

static void answer_login(const int ends[2])
{
	const uint8_t answer[HEADER] = { GUARD_LOGIN_RESPONSE, 0x87 };

	assert_int_equal(connection_write(connection_of(ends[0]), answer, HEADER), HEADER);
	connection_pdu_sent(connection_of(ends[0]));
}

static void test_a_session_that_logs_in_anew_ends_its_earlier_one(void **state)
{
	enum { EARLIER, OTHER_PORT, OTHER_NAME, OTHER_TARGET, LOGGING_IN, ANEW, ALL };
	int ends[ALL][2];
	uint8_t ping[HEADER], answer[HEADER];

	(void)state;
	for (int i = 0; i < ALL; i++) {
		assert_false(ends_at_once((uint8_t)(1 + i), ends[i]));
		log_in(ends[i], i == OTHER_PORT ? 2 : 1, i == OTHER_NAME ? "iqn.b" : "iqn.a",
		       i == OTHER_TARGET ? "iqn.disk" : "iqn.osd");
		if (i != LOGGING_IN)
			answer_login(ends[i]);
	}
	for (int i = 0; i < ALL; i++) {
		assert_int_equal(connection_of(ends[i][0])->ended, i == EARLIER);
		if (i != LOGGING_IN)
			assert_int_equal(recv(ends[i][1], answer, HEADER, 0), HEADER);
	}
	/* What its initiator still sends does not come to tgtd. */
	make_ping(ping, 0);
	assert_int_equal(send(ends[EARLIER][1], ping, HEADER, MSG_NOSIGNAL), -1);
	assert_int_equal(connection_read(connection_of(ends[EARLIER][0]), ping, HEADER), 0);
	/* One that ended has no place to take. */
	answer_login(ends[LOGGING_IN]);
	assert_true(connection_of(ends[ANEW][0])->ended);
	assert_false(connection_of(ends[LOGGING_IN][0])->ended);
	for (int i = 0; i < ALL; i++) {
		connection_close(connection_of(ends[i][0]));
		close(ends[i][0]);
		close(ends[i][1]);
	}
}

/* ---- at random ---- */

static uint32_t random_below(uint64_t *state, uint32_t limit)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*state >> 33) % limit;
}

static void answer_ping(void)
{
	uint8_t answer[HEADER], came_back[HEADER];

	make_answer(answer, 0);
	assert_int_equal(connection_write(connection, answer, HEADER), HEADER);
	connection_pdu_sent(connection);
	assert_int_equal(recv(initiator, came_back, HEADER, MSG_WAITALL), HEADER);
	assert_memory_equal(came_back, answer, HEADER);
}

static void test_any_pieces_of_a_stream_come_as_they_were_sent(void **state)
{
	enum { STREAM = 1 << 20 };
	const char *wanted = getenv("MUNINN_SEED");
	uint64_t seed = wanted ? strtoull(wanted, NULL, 0) : 20261126, random = seed;
	uint8_t *stream = malloc(STREAM + 131072), *got = malloc(STREAM + 131072);
	size_t all = 0, sent = 0, read = 0;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	while (all < STREAM) {
		uint32_t kind = random_below(&random, 3);
		uint32_t data = random_below(&random, kind == 0 ? 1 : kind == 1 ? 300 : 8192);

		all += make_ping(stream + all, data);
	}
	while (read < all) {
		size_t some = 1 + random_below(&random, 50000);
		size_t part = guard_missing(&connection->guard);
		ssize_t bytes;

		some = min_u64(some, all - sent);
		if (some && random_below(&random, 2)) {
			bytes = send(initiator, stream + sent, some, MSG_DONTWAIT);
			sent += bytes > 0 ? (size_t)bytes : 0;
		}
		bytes = connection_read(connection, got + read, part);
		if (bytes < 0)
			assert_int_equal(errno, EAGAIN);
		else
			assert_in_range(bytes, 1, part);
		read += bytes > 0 ? (size_t)bytes : 0;
		assert_int_equal(at_hand(), connection->inbox.count ? EPOLLIN : 0);
		if (bytes > 0 && guard_is_between(&connection->guard))
			answer_ping();
	}
	assert_int_equal(read, all);
	assert_memory_equal(got, stream, all);
	free(stream);
	free(got);
}

#define connected(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		connected(test_several_pdus_come_by_one_system_call),
		connected(test_nothing_is_read_ahead_before_the_login_has_ended),
		connected(test_a_part_that_comes_in_pieces_is_whole_at_the_end),
		connected(test_the_end_of_the_stream_comes_behind_what_was_read_ahead),
		connected(test_a_session_at_its_limits_is_not_told_of_what_was_read_ahead),
		connected(test_a_connection_that_ended_gives_nothing_of_what_was_read_ahead),
		connected(test_a_header_leaves_with_its_data),
		connected(test_digests_leave_in_their_places),
		connected(test_answers_stay_open_for_others_while_tgtd_has_more_to_do),
		connected(test_what_a_full_socket_does_not_take_comes_in_order),
		connected(test_a_connection_ends_when_nothing_can_be_kept),
		connected(test_tgtd_may_send_without_asking_the_kernel),
		connected(test_nothing_is_told_of_a_connection_that_tgtd_does_not_watch),
		connected(test_a_peer_that_is_gone_is_told_by_the_kernel),
		connected(test_no_more_connections_than_there_may_be_from_all_and_from_one_address),
		connected(test_a_session_that_logs_in_anew_ends_its_earlier_one),
		connected(test_any_pieces_of_a_stream_come_as_they_were_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
