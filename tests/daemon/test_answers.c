/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Answers that are pushed together, and events that the kernel is not asked for. The test plays
 * tgtd: it uncorks a socket behind each PDU, and waits for events. The file under test takes the
 * places of two functions of libc in this program, as it does in tgtd.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/module/answers.c" /* NOLINT(bugprone-suspicious-include) */

/* The tests' sockets are connections, and those know what the test lays down here. */
struct connection {
	int unused;
};

static struct connection known;
static int tgtd[2], initiator[2];
static unsigned int sent_pdus;
static struct epoll_event at_hand[2];
static int at_hand_count;

/* The table of connections changes while other threads run: they must not look. */
struct connection *connection_of(int fd)
{
	assert_true(pthread_equal(pthread_self(), main_thread));
	return fd == tgtd[0] || fd == tgtd[1] ? &known : NULL;
}

void connection_pdu_sent(struct connection *connection)
{
	assert_ptr_equal(connection, &known);
	sent_pdus++;
}

int connections_give(struct epoll_event *events, int most, bool *input)
{
	int given = at_hand_count < most ? at_hand_count : most;

	*input = false;
	for (int i = 0; i < given; i++) {
		events[i] = at_hand[i];
		*input |= events[i].events & EPOLLIN;
	}
	return given;
}

static int epoll, ready; /* `ready` is readable while there is something to do */

static void connect_pair(int pair)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t bytes = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, bytes), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &bytes), 0);
	initiator[pair] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(initiator[pair], (struct sockaddr *)&address, bytes), 0);
	tgtd[pair] = accept(listener, NULL, NULL);
	assert_true(tgtd[pair] >= 0);
	close(listener);
}

static int set_up(void **state)
{
	struct epoll_event event = { .events = EPOLLIN };
	int pipes[2];

	(void)state;
	main_thread = pthread_self();
	later_set_busy(false);
	held_count = rounds = unasked = 0;
	at_hand_count = 0;
	sent_pdus = 0;
	epoll = epoll_create1(0);
	assert_int_equal(pipe(pipes), 0);
	ready = pipes[1];
	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[0], &event), 0);
	event.data.fd = pipes[0];
	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_MOD, pipes[0], &event), 0);
	connect_pair(0);
	connect_pair(1);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (int pair = 0; pair < 2; pair++) {
		close(tgtd[pair]);
		close(initiator[pair]);
	}
	close(epoll);
	close(ready);
	return 0;
}

static int set_cork(int socket, int on)
{
	return setsockopt(socket, IPPROTO_TCP, TCP_CORK, &on, sizeof(on));
}

static void send_pdu(int pair)
{
	assert_int_equal(set_cork(tgtd[pair], 1), 0);
	/* As sending.c sends. */
	assert_int_equal(send(tgtd[pair], "PDU.", 4, later_is_busy() ? MSG_MORE : 0), 4);
	assert_int_equal(set_cork(tgtd[pair], 0), 0);
}

/* Bytes that have come to the initiator. */
static ssize_t came(int pair)
{
	char buffer[256];
	ssize_t bytes = recv(initiator[pair], buffer, sizeof(buffer), MSG_DONTWAIT);

	return bytes < 0 ? 0 : bytes;
}

static void make_busy(void)
{
	struct epoll_event event;

	assert_int_equal(write(ready, ".", 1), 1);
	/* The host may take the processor away in the middle of it. */
	while (!later_is_busy())
		assert_int_equal(epoll_wait(epoll, &event, 1, -1), 1);
}

static void make_idle(void)
{
	struct epoll_event event;
	char byte;

	assert_int_equal(epoll_wait(epoll, &event, 1, 0), 1);
	assert_int_equal(read(event.data.fd, &byte, 1), 1);
}

static void test_an_answer_leaves_at_once_when_nothing_else_is_to_be_done(void **state)
{
	struct epoll_event event;

	(void)state;
	assert_int_equal(epoll_wait(epoll, &event, 1, 0), 0);
	send_pdu(0);
	assert_int_equal(came(0), 4);
}

static void test_answers_leave_together_before_tgtd_waits(void **state)
{
	struct epoll_event event;

	(void)state;
	make_busy();
	send_pdu(0);
	send_pdu(1);
	assert_int_equal(epoll_wait(epoll, &event, 1, -1), 1);
	send_pdu(0);
	assert_int_equal(came(0), 0);
	assert_int_equal(came(1), 0);
	make_idle();
	assert_int_equal(epoll_wait(epoll, &event, 1, 0), 0);
	assert_int_equal(came(0), 8);
	assert_int_equal(came(1), 4);
	/* Nothing stays corked. */
	send_pdu(1);
	assert_int_equal(came(1), 4);
}

static int done[2];

static void count_done(void *context)
{
	++*(int *)context;
}

static void test_what_is_put_off_is_done_once_before_tgtd_waits(void **state)
{
	struct epoll_event event;

	(void)state;
	done[0] = done[1] = 0;
	assert_false(later_put_off(count_done, &done[0]));
	make_busy();
	assert_true(later_put_off(count_done, &done[0]));
	assert_true(later_put_off(count_done, &done[1]));
	assert_true(later_put_off(count_done, &done[0]));
	assert_int_equal(epoll_wait(epoll, &event, 1, -1), 1);
	assert_int_equal(done[0], 0);
	later_forget(&done[1]);
	make_idle();
	assert_int_equal(epoll_wait(epoll, &event, 1, 0), 0);
	assert_int_equal(done[0], 1);
	assert_int_equal(done[1], 0);
	assert_false(later_put_off(count_done, &done[0]));
}

static void test_so_many_answers_leave_however_busy_tgtd_is(void **state)
{
	(void)state;
	make_busy();
	for (int i = 0; i < PDUS_HELD_MAX - 1; i++)
		send_pdu(0);
	assert_int_equal(came(0), 0);
	send_pdu(0);
	assert_int_equal(came(0), 4 * PDUS_HELD_MAX);
}

static void test_sockets_are_pushed_by_their_own_answers(void **state)
{
	(void)state;
	make_busy();
	send_pdu(1);
	for (int i = 0; i < PDUS_HELD_MAX - 1; i++)
		send_pdu(0);
	assert_int_equal(came(0) + came(1), 0);
	send_pdu(0);
	assert_int_equal(came(0), 4 * PDUS_HELD_MAX);
	assert_int_equal(came(1), 0);
	for (int i = 0; i < PDUS_HELD_MAX - 1; i++)
		send_pdu(1);
	assert_int_equal(came(1), 4 * PDUS_HELD_MAX);
}

static void test_more_sockets_than_can_be_noted_lose_nothing(void **state)
{
	(void)state;
	make_busy();
	send_pdu(0);
	/* Others that are held; nothing is at these numbers. */
	while (held_count < SOCKETS_HELD_MAX)
		held[held_count++].socket = -1;
	send_pdu(1);
	assert_int_equal(came(0), 4);
	assert_int_equal(held_count, 1);
	for (int i = 0; i < PDUS_HELD_MAX - 1; i++)
		send_pdu(1);
	assert_int_equal(came(1), 4 * PDUS_HELD_MAX);
	assert_int_equal(held_count, 0);
}

static void test_an_answer_does_not_wait_for_long_for_others_that_send_none(void **state)
{
	struct epoll_event event;

	(void)state;
	make_busy();
	send_pdu(0);
	for (int round = 1; round < ROUNDS_HELD_MAX; round++)
		assert_int_equal(epoll_wait(epoll, &event, 1, -1), 1);
	assert_int_equal(came(0), 0);
	assert_int_equal(epoll_wait(epoll, &event, 1, -1), 1);
	assert_int_equal(came(0), 4);
}

static void test_a_socket_that_ends_meanwhile_loses_nothing_and_harms_nobody(void **state)
{
	struct epoll_event event;
	int number = tgtd[0];

	(void)state;
	make_busy();
	send_pdu(0);
	close(tgtd[0]);
	assert_int_equal(came(0), 4);
	close(initiator[0]);
	connect_pair(0);
	while (tgtd[0] != number) {
		int other = dup(tgtd[0]);

		close(tgtd[0]);
		tgtd[0] = other;
		assert_true(other < 1000);
		if (initiator[0] == number) {
			initiator[0] = dup(initiator[0]);
			close(number);
		}
	}
	send_pdu(0);
	make_idle();
	assert_int_equal(epoll_wait(epoll, &event, 1, 0), 0);
	assert_int_equal(came(0), 4);
}

static void test_other_options_and_errors_are_as_ever(void **state)
{
	struct epoll_event event;
	int on = 1, got = 0;
	socklen_t bytes = sizeof(got);

	(void)state;
	make_busy();
	assert_int_equal(setsockopt(tgtd[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
	assert_int_equal(getsockopt(tgtd[0], IPPROTO_TCP, TCP_NODELAY, &got, &bytes), 0);
	assert_int_equal(got, 1);
	assert_int_equal(set_cork(ready, 1), -1);
	assert_int_equal(sent_pdus, 0);
	assert_int_equal(epoll_wait(ready, &event, 1, 0), -1);
}

static void give_at_hand(uint32_t events)
{
	at_hand[0] = (struct epoll_event){ .events = events, .data.fd = tgtd[0] };
	at_hand_count = 1;
}

static void test_the_kernel_is_asked_now_and_then_while_connections_know_of_events(void **state)
{
	struct epoll_event events[4];
	int asked = 0;

	(void)state;
	assert_int_equal(write(ready, ".", 1), 1);
	give_at_hand(EPOLLIN);
	for (int round = 0; round < 4 * UNASKED_MAX; round++) {
		int count = epoll_wait(epoll, events, 4, -1);

		assert_int_equal(events[0].data.fd, tgtd[0]);
		assert_int_equal(events[0].events, EPOLLIN);
		assert_in_range(count, 1, 2);
		asked += count - 1;
	}
	assert_int_equal(asked, 4);
	/* There is space for what connections know of only. */
	for (int round = 0; round < UNASKED_MAX; round++)
		assert_int_equal(epoll_wait(epoll, events, 1, -1), 1);
	assert_int_equal(events[0].data.fd, tgtd[0]);
	at_hand_count = 0;
	assert_int_equal(epoll_wait(epoll, events, 4, -1), 1);
	assert_int_not_equal(events[0].data.fd, tgtd[0]);
}

static void test_answers_are_held_while_commands_have_been_read_ahead(void **state)
{
	struct epoll_event event;

	(void)state;
	give_at_hand(EPOLLIN | EPOLLOUT);
	assert_int_equal(epoll_wait(epoll, &event, 1, -1), 1);
	send_pdu(0);
	assert_int_equal(came(0), 0);
	at_hand_count = 0;
	assert_int_equal(epoll_wait(epoll, &event, 1, 0), 0);
	assert_int_equal(came(0), 4);
	assert_int_equal(sent_pdus, 1);
}

static void test_an_answer_by_itself_is_not_held_for_being_sent_in_two_rounds(void **state)
{
	struct epoll_event event;

	(void)state;
	give_at_hand(EPOLLOUT);
	for (int round = 0; round < 2; round++)
		assert_int_equal(epoll_wait(epoll, &event, 1, -1), 1);
	send_pdu(0);
	assert_int_equal(came(0), 4);
}

static void test_what_connections_know_of_holds_up_nothing_for_long(void **state)
{
	struct epoll_event event;

	(void)state;
	done[0] = 0;
	make_busy();
	assert_true(later_put_off(count_done, &done[0]));
	send_pdu(0);
	give_at_hand(EPOLLIN);
	for (int round = 0; round < ROUNDS_HELD_MAX; round++)
		assert_int_equal(epoll_wait(epoll, &event, 1, -1), 1);
	assert_int_equal(came(0), 4);
	assert_int_equal(done[0], 1);
}

static void *uncork(void *socket)
{
	send_pdu(*(int *)socket);
	return NULL;
}

static void test_other_threads_hold_nothing(void **state)
{
	pthread_t thread;
	int pair = 1;

	(void)state;
	make_busy();
	assert_int_equal(pthread_create(&thread, NULL, uncork, &pair), 0);
	pthread_join(thread, NULL);
	assert_int_equal(came(1), 4);
	assert_int_equal(held_count, 0);
}

#define prepared(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		prepared(test_an_answer_leaves_at_once_when_nothing_else_is_to_be_done),
		prepared(test_answers_leave_together_before_tgtd_waits),
		prepared(test_what_is_put_off_is_done_once_before_tgtd_waits),
		prepared(test_so_many_answers_leave_however_busy_tgtd_is),
		prepared(test_sockets_are_pushed_by_their_own_answers),
		prepared(test_more_sockets_than_can_be_noted_lose_nothing),
		prepared(test_an_answer_does_not_wait_for_long_for_others_that_send_none),
		prepared(test_a_socket_that_ends_meanwhile_loses_nothing_and_harms_nobody),
		prepared(test_other_options_and_errors_are_as_ever),
		prepared(test_the_kernel_is_asked_now_and_then_while_connections_know_of_events),
		prepared(test_answers_are_held_while_commands_have_been_read_ahead),
		prepared(test_an_answer_by_itself_is_not_held_for_being_sent_in_two_rounds),
		prepared(test_what_connections_know_of_holds_up_nothing_for_long),
		prepared(test_other_threads_hold_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
