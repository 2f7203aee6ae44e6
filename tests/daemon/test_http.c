/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What the status page and the metrics ask for, with the service's answers played. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/admin_verbs.h"
#include "daemon/http.h"
#include "daemon/server.h"

static unsigned int statuses, logins; /* asked for so often */

json_t *__wrap_admin_carry_out(struct server *server, const json_t *request,
			       const struct admin_caller *caller);

json_t *__wrap_admin_carry_out(struct server *server, const json_t *request,
			       const struct admin_caller *caller)
{
	(void)server;
	(void)caller;
	if (!strcmp(json_string_value(json_object_get(request, "do")), "status")) {
		statuses++;
		return json_pack("{s:{s:[]}}", "ok", "units");
	}
	logins++;
	return json_pack("{s:{s:[{s:s,s:s,s:[]}]}}", "ok", "sessions", "initiator", "iqn.x:a",
			 "address", "10.0.0.1", "units");
}

/* A port that is free just now. */
static uint16_t free_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	close(fd);
	return ntohs(address.sin_port);
}

/* Whether what is at the path has the text. */
static bool has(struct http *http, uint16_t port, const char *request, const char *text)
{
	static char got[65536];
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	size_t length = 0;
	ssize_t more;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(send(fd, request, strlen(request), 0), strlen(request));
	do {
		http_serve(http);
		more = recv(fd, got + length, sizeof(got) - 1 - length, MSG_DONTWAIT);
		length += more > 0 ? (size_t)more : 0;
	} while (more > 0 || (more < 0 && errno == EAGAIN));
	got[length] = '\0';
	close(fd);
	return strstr(got, text) != NULL;
}

static void test_only_the_page_asks_who_is_logged_in_and_once_for_a_status(void **state)
{
	static struct config config;
	struct server server = { .config = &config };
	struct error_text error = { "" };
	struct http *http;

	(void)state;
	strcpy(config.metrics.address, "127.0.0.1");
	config.metrics.port = free_port();
	assert_int_equal(http_open(&server, &http, &error), 0);
	assert_true(has(http, config.metrics.port, "GET /metrics HTTP/1.0\r\n\r\n", "muninn_"));
	assert_int_equal(statuses, 1);
	assert_int_equal(logins, 0);
	for (int i = 0; i < 3; i++)
		assert_true(has(http, config.metrics.port, "GET / HTTP/1.0\r\n\r\n", "iqn.x:a"));
	assert_in_range(logins, 1, statuses);
	http_close(http);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_the_page_asks_who_is_logged_in_and_once_for_a_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
