/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Serves the status page and the metrics over HTTP. */
#include "daemon/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/admin_verbs.h"
#include "daemon/facts.h"
#include "daemon/flash_map.h"
#include "daemon/metrics.h"
#include "daemon/page.h"
#include "daemon/server.h"
#include "daemon/trend.h"

#define CONNECTIONS_MAX  16U
#define CONNECTION_BYTES ((size_t)16384) /* of a request's head, and what the library needs */
#define CONNECTION_S     10U             /* without a byte in either direction */
#define STATUS_LASTS_MS  1000            /* who asks sooner gets the same again */
#define LOGINS_MS        2000
#define NEVER_MS         INT32_MAX
#define POLICY           "default-src 'none'; style-src 'unsafe-inline'"

struct http {
	struct server *server;
	struct MHD_Daemon *library;
	json_t *status; /* as it was asked last; NULL: never */
	int64_t asked_ms;
	bool logins_asked; /* for this status */
	struct flash_maps maps;
	struct trend trend;
};

/* ---- answers ---- */

static json_t *ask(struct http *http, const char *verb)
{
	json_t *request = json_pack("{s:s}", "do", verb);
	const struct admin_caller caller = { .who = "metrics" };
	json_t *answer = admin_carry_out(http->server, request, &caller);

	json_decref(request);
	return answer;
}

/* Who has just not answered is asked nothing more: nobody waits for him twice. */
static bool answers_soon(const json_t *status)
{
	const json_t *units = json_object_get(status, "units");

	for (size_t i = 0; i < json_array_size(units); i++)
		if (!facts_is_known(json_array_get(units, i)))
			return false;
	return status != NULL;
}

/* For the page alone, for it takes a question to each unit. */
static void add_logins(struct http *http)
{
	int answer_ms = http->server->tgtd.answer_ms;
	json_t *answer, *list;

	if (http->logins_asked || !answers_soon(http->status))
		return;
	http->logins_asked = true;
	if (answer_ms > LOGINS_MS)
		http->server->tgtd.answer_ms = LOGINS_MS;
	answer = ask(http, "session ls");
	http->server->tgtd.answer_ms = answer_ms;
	list = json_object_get(json_object_get(answer, "ok"), "sessions");
	if (list)
		json_object_set(http->status, "logins", list);
	json_decref(answer);
}

static const json_t *look(struct http *http)
{
	json_t *answer;

	if (http->status && clock_ms() - http->asked_ms < STATUS_LASTS_MS)
		return http->status;
	answer = ask(http, "status");
	json_decref(http->status);
	http->status = json_incref(json_object_get(answer, "ok"));
	json_decref(answer);
	trend_note(&http->trend, http->status, clock_ms());
	flash_maps_add(&http->maps, http->server, http->status, answers_soon(http->status));
	http->logins_asked = false;
	http->asked_ms = clock_ms();
	return http->status;
}

static char *page_of(struct http *http)
{
	look(http);
	add_logins(http);
	return page_text(http->status, &http->trend);
}

/* `text` is freed. */
static enum MHD_Result answer(struct MHD_Connection *connection, unsigned int code,
			      const char *type, char *text)
{
	struct MHD_Response *response;
	enum MHD_Result result;

	if (!text)
		return MHD_NO;
	response = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(text);
		return MHD_NO;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, "Content-Security-Policy", POLICY);
	result = MHD_queue_response(connection, code, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *bytes, void **state)
{
	struct http *http = context;

	(void)version;
	(void)data;
	(void)bytes;
	(void)state;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return answer(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain",
			      strdup("GET and HEAD are all there is\n"));
	if (strcmp(url, "/metrics") == 0)
		return answer(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8",
			      metrics_text(look(http)));
	if (strcmp(url, "/") == 0)
		return answer(connection, MHD_HTTP_OK, "text/html; charset=utf-8", page_of(http));
	return answer(connection, MHD_HTTP_NOT_FOUND, "text/plain",
		      strdup("/ is the status page, /metrics is for Prometheus\n"));
}

/* ---- life ---- */

static int listen_on(const struct portal *where)
{
	struct sockaddr_storage address;
	socklen_t length = portal_address(where, &address);
	const int yes = 1;
	int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), result;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (address.ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
	if (bind(fd, (struct sockaddr *)&address, length) || listen(fd, CONNECTIONS_MAX)) {
		result = -errno;
		close(fd);
		return result;
	}
	return fd;
}

int http_open(struct server *server, struct http **http, struct error_text *error)
{
	const struct portal *where = &server->config->metrics;
	char text[CONFIG_PORTAL_BYTES];
	struct http *new;
	int fd;

	*http = NULL;
	if (!where->port)
		return 0;
	config_portal(where, text);
	fd = listen_on(where);
	if (fd < 0)
		return error_set(error, fd, "metrics: cannot listen on %s: %s", text,
				 strerror(-fd));
	new = calloc(1, sizeof(*new));
	if (new) {
		new->server = server;
		new->library = MHD_start_daemon(
			MHD_USE_EPOLL, 0, NULL, NULL, on_request, new, MHD_OPTION_LISTEN_SOCKET, fd,
			MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
			MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_BYTES,
			MHD_OPTION_CONNECTION_TIMEOUT, CONNECTION_S, MHD_OPTION_END);
	}
	if (!new || !new->library) {
		close(fd);
		free(new);
		return error_set(error, -ENOMEM, "metrics: %s can't be served", text);
	}
	*http = new;
	return 0;
}

void http_close(struct http *http)
{
	if (!http)
		return;
	MHD_stop_daemon(http->library);
	json_decref(http->status);
	flash_maps_end(&http->maps);
	free(http);
}

int http_fd(const struct http *http)
{
	const union MHD_DaemonInfo *info;

	if (!http)
		return -1;
	info = MHD_get_daemon_info(http->library, MHD_DAEMON_INFO_EPOLL_FD);
	return info ? info->epoll_fd : -1;
}

int64_t http_wait_ms(const struct http *http)
{
	MHD_UNSIGNED_LONG_LONG wait_ms;

	if (!http || MHD_get_timeout(http->library, &wait_ms) != MHD_YES)
		return NEVER_MS;
	return wait_ms < NEVER_MS ? (int64_t)wait_ms : NEVER_MS;
}

void http_serve(struct http *http)
{
	if (http)
		MHD_run(http->library);
}
