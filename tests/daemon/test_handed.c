/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Files that go from muninnd to the module: the right ones arrive, and no other one stays open. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/descriptors.h"
#include "daemon/module/handed.h"

static int sockets[2];

static int set_up(void **state)
{
	char number[16];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, sockets), 0);
	snprintf(number, sizeof(number), "%d", sockets[1]);
	assert_int_equal(setenv(HANDED_VARIABLE, number, 1), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(sockets[0]);
	close(sockets[1]);
	return 0;
}

/* Hands `count` writing ends of a pipe over; returns its reading end. */
static int hand(uint64_t number, int count)
{
	int pipes[2], fds[DESCRIPTORS_MAX];

	assert_int_equal(pipe2(pipes, O_NONBLOCK), 0);
	for (int i = 0; i < count; i++)
		fds[i] = pipes[1];
	assert_int_equal(handed_send(sockets[0], number, fds, count), 0);
	close(pipes[1]);
	return pipes[0];
}

/* Whether nobody has the other end of a pipe any more. */
static bool is_closed(int pipe)
{
	char byte;
	ssize_t got = read(pipe, &byte, 1);

	assert_true(got == 0 || errno == EAGAIN);
	return got == 0;
}

static void test_files_come_to_who_names_their_number(void **state)
{
	struct error_text error;
	int fds[2], pipe, count = 2;

	(void)state;
	pipe = hand(7, 2);
	assert_int_equal(handed_take(7, fds, 2, &error), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
		assert_int_equal(write(fds[i], "x", 1), 1);
	}
	descriptors_close(fds, &count);
	assert_int_equal(count, 0);
	assert_int_equal(read(pipe, (char[2]){ 0 }, 2), 2);
	assert_true(is_closed(pipe));
	close(pipe);
}

/* Of questions that did not come so far. */
static void test_files_of_others_before_are_closed(void **state)
{
	struct error_text error;
	int fds[2], pipes[3], count = 2;

	(void)state;
	pipes[0] = hand(7, 2);
	pipes[1] = hand(8, 1);
	pipes[2] = hand(8, 2);
	assert_int_equal(handed_take(8, fds, 2, &error), 0);
	assert_true(is_closed(pipes[0]));
	assert_true(is_closed(pipes[1]));
	assert_false(is_closed(pipes[2]));
	descriptors_close(fds, &count);
	for (int i = 0; i < 3; i++)
		close(pipes[i]);
}

static void test_files_that_did_not_come_are_said(void **state)
{
	struct error_text error;
	int fds[2], pipe;

	(void)state;
	assert_int_equal(handed_take(7, fds, 2, &error), -ENOENT);
	assert_non_null(strstr(error.text, "did not come"));
	pipe = hand(6, 2);
	assert_int_equal(handed_take(7, fds, 2, &error), -ENOENT);
	assert_true(is_closed(pipe));
	close(pipe);
}

static void test_more_files_than_there_is_space_for_are_closed(void **state)
{
	int fds[DESCRIPTORS_MAX], pipe, count = 1;
	uint64_t number;

	(void)state;
	pipe = hand(7, DESCRIPTORS_MAX);
	fds[0] = dup(pipe);
	assert_int_equal(descriptors_receive(sockets[1], &number, sizeof(number), fds, &count),
			 sizeof(number));
	assert_int_equal(count, DESCRIPTORS_MAX);
	descriptors_close(fds, &count);
	assert_true(is_closed(pipe));
	close(pipe);
	assert_int_equal(handed_send(sockets[0], 8, fds, DESCRIPTORS_MAX + 1), -EINVAL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_files_come_to_who_names_their_number),
		TEST(test_files_of_others_before_are_closed),
		TEST(test_files_that_did_not_come_are_said),
		TEST(test_more_files_than_there_is_space_for_are_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
