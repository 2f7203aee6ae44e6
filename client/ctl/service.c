/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* One request to the service on this host, and its answer: a line of JSON each. */
#include "client/ctl/service.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/descriptors.h"

#define ANSWER_BYTES_MAX (4U << 20)
#define BLOCK_BYTES      65536U
/* Opening a large device takes a while. */
#define TIMEOUT_MS 600000

static const char *socket_path(const struct ctl *ctl)
{
	const char *usual = getenv("MUNINN_SOCKET");

	return ctl->options->socket ? ctl->options->socket : usual ? usual : SERVICE_SOCKET;
}

static int fail_connect(const struct ctl *ctl, const char *path, int reason)
{
	if (reason == EACCES || reason == EPERM)
		return ctl_fail(ctl, CTL_DENIED,
				"%s: %s: root may administer the service, its own user, and the "
				"members of admin_group, if its configuration names one",
				path, strerror(reason));
	return ctl_fail(ctl, CTL_CONNECTION,
			"%s: %s: no service answers there; does it run (systemctl status muninn)? "
			"--socket FILE names another one: `admin` in its run_dir",
			path, strerror(reason));
}

static int connect_to(const struct ctl *ctl, int *fd)
{
	const char *path = socket_path(ctl);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int reason;

	if (strlen(path) >= sizeof(address.sun_path))
		return ctl_fail(ctl, CTL_USAGE, "%s: a socket's name has %zu characters at most",
				path, sizeof(address.sun_path) - 1);
	strcpy(address.sun_path, path);
	*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return ctl_fail(ctl, CTL_LOCAL, "%s", strerror(errno));
	if (connect(*fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return CTL_OK;
	reason = errno;
	close(*fd);
	return reason == EINTR ? CTL_INTERRUPTED : fail_connect(ctl, path, reason);
}

/* The files go with the first bytes. */
static int send_all(int fd, const char *text, size_t length, const int *fds, int count)
{
	while (length) {
		ssize_t sent = descriptors_send(fd, text, length, fds, count);

		if (sent == -EINTR)
			continue;
		if (sent < 0)
			return (int)sent;
		text += sent;
		length -= (size_t)sent;
		count = 0;
	}
	return 0;
}

/*
 * Until the other end closes; *text is to be freed. -ETIMEDOUT: it does nothing. -EINTR: a signal
 * that this program handles.
 */
static int receive_all(int fd, int timeout_ms, char **text, size_t *length)
{
	size_t capacity = 0;

	*text = NULL;
	*length = 0;
	while (*length < ANSWER_BYTES_MAX) {
		struct pollfd more = { .fd = fd, .events = POLLIN };
		ssize_t got;
		int ready;

		if (*length + BLOCK_BYTES > capacity) {
			char *larger = realloc(*text, capacity + 4 * BLOCK_BYTES);

			if (!larger)
				return -ENOMEM;
			*text = larger;
			capacity += 4 * BLOCK_BYTES;
		}
		ready = poll(&more, 1, timeout_ms);
		if (ready <= 0)
			return ready ? -errno : -ETIMEDOUT;
		got = recv(fd, *text + *length, BLOCK_BYTES, 0);
		if (got < 0 && errno == EINTR)
			continue;
		/* Who was turned away before he had asked finds this behind the refusal. */
		if (got < 0 && errno == ECONNRESET && *length)
			return 0;
		if (got <= 0)
			return got < 0 ? -errno : 0;
		*length += (size_t)got;
	}
	return -EMSGSIZE;
}

static int take_answer(struct ctl *ctl, const char *text, size_t length, json_t **answer)
{
	json_error_t wrong;
	json_t *whole = text ? json_loadb(text, length, 0, &wrong) : NULL;
	json_t *error = json_object_get(whole, "error");
	int code = CTL_OK;

	*answer = json_incref(json_object_get(whole, "ok"));
	if (error)
		code = ctl_fail(ctl, ctl_exit_by_name(service_text(error, "kind")), "%s: %s",
				ctl->verb, service_text(error, "message"));
	else if (!*answer)
		code = ctl_fail(ctl, CTL_CONNECTION,
				"%s: the service has closed the connection without an answer",
				ctl->verb);
	json_decref(whole);
	return code;
}

int service_ask(struct ctl *ctl, json_t *request, json_t **answer)
{
	return service_ask_handing(ctl, request, NULL, 0, answer);
}

int service_ask_handing(struct ctl *ctl, json_t *request, const int *fds, int count,
			json_t **answer)
{
	int timeout_ms = ctl->options->client.timeout_ms ? (int)ctl->options->client.timeout_ms
							 : TIMEOUT_MS;
	char *line, *text = NULL;
	size_t length = 0;
	int fd = -1, code, result;

	*answer = NULL;
	json_object_set_new(request, "do", json_string(ctl->verb));
	line = json_dumps(request, JSON_COMPACT);
	json_decref(request);
	if (!line)
		return ctl_fail(ctl, CTL_USAGE, "%s: an argument is no UTF-8 text", ctl->verb);
	code = connect_to(ctl, &fd);
	if (code != CTL_OK) {
		free(line);
		return code;
	}
	/* Whether or not it could be sent: who is turned away is told why. */
	result = send_all(fd, line, strlen(line), fds, count);
	if (!result)
		result = send_all(fd, "\n", 1, NULL, 0);
	result = receive_all(fd, timeout_ms, &text, &length);
	close(fd);
	if (result == -EINTR)
		code = CTL_INTERRUPTED;
	else if (result)
		code = ctl_fail(ctl, CTL_CONNECTION, "%s: the service does not answer: %s",
				ctl->verb, strerror(-result));
	else
		code = take_answer(ctl, text, length, answer);
	free(text);
	free(line);
	return code;
}

const char *service_text(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

const json_t *service_item(const json_t *object, const char *name, size_t index)
{
	return json_array_get(json_object_get(object, name), index);
}

uint64_t service_number(const json_t *object, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(object, name));
}

int service_end(const struct ctl *ctl, json_t *answer)
{
	if (ctl->options->json)
		return ctl_print_json(stdout, answer);
	json_decref(answer);
	return ctl_end_output(ctl);
}
