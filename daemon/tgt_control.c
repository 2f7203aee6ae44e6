/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Sends requests to a running tgtd over its control socket. */
#include "daemon/tgt_control.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/module/control_words.h"
#include "daemon/module/handed.h"

#include "scsi.h"
#include "tgtadm.h"

#define ENDING_MS           1000
#define PARAMETER_BYTES_MAX 8192 /* tgtd's own limit on a request */
#define ANSWER_BYTES_MAX    (1U << 20)
#define CONNECTIONS_MAX     4096
#define RETRY_MS            20

/* What tgtd answers, as text. */
static const char *tgtd_reason(uint32_t code)
{
	static const char *const reasons[] = {
		[TGTADM_UNKNOWN_ERR] = "unknown error",
		[TGTADM_NOMEM] = "out of memory",
		[TGTADM_NO_DRIVER] = "it has no iSCSI driver",
		[TGTADM_NO_TARGET] = "there is no such target",
		[TGTADM_NO_LUN] = "there is no such logical unit",
		[TGTADM_NO_SESSION] = "there is no such session",
		[TGTADM_NO_CONNECTION] = "there is no such connection",
		[TGTADM_TARGET_EXIST] = "the target exists already",
		[TGTADM_LUN_EXIST] = "the logical unit exists already",
		[TGTADM_ACL_EXIST] = "the entry exists already",
		[TGTADM_USER_EXIST] = "the account exists already",
		[TGTADM_INVALID_REQUEST] = "invalid request",
		[TGTADM_TARGET_ACTIVE] = "the target is in use",
		[TGTADM_LUN_ACTIVE] = "the logical unit has active commands",
		[TGTADM_UNSUPPORTED_OPERATION] = "unsupported operation",
		[TGTADM_UNKNOWN_PARAM] = "unknown parameter",
	};

	if (code < sizeof(reasons) / sizeof(reasons[0]) && reasons[code])
		return reasons[code];
	return "unknown error code";
}

/* ---- one request ---- */

/* `timeout_ms`: how long it may take to connect and to send, each. */
static int connect_control(int timeout_ms)
{
	const struct timeval limit = { .tv_sec = timeout_ms / 1000,
				       .tv_usec = timeout_ms % 1000 * 1000 };
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = TGTD_SOCKET_FILE };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		int result = -errno;

		close(fd);
		return result;
	}
	return fd;
}

/*
 * Receives exactly `bytes`, and relays tgtd's messages meanwhile. -ETIMEDOUT after the deadline.
 */
static int receive(struct tgtd *tgtd, int fd, int64_t deadline_ms, void *to, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		int64_t left_ms = deadline_ms - clock_ms();
		enum tgtd_event event = tgtd_wait(tgtd, fd, left_ms > 0 ? (int)left_ms : 0);
		ssize_t got;

		if (event != TGTD_FD_READY)
			return event == TGTD_ENDED ? -ESRCH : -ETIMEDOUT;
		got = recv(fd, (char *)to + done, bytes - done, 0);
		if (got == 0)
			return -ECONNRESET;
		if (got < 0 && errno != EINTR)
			return -errno;
		if (got > 0)
			done += (size_t)got;
	}
	return 0;
}

static int exchange(struct tgtd *tgtd, int fd, struct tgtadm_req *request, const char *parameters,
		    uint32_t *code, char **answer)
{
	int64_t deadline_ms = clock_ms() + tgtd->answer_ms;
	char message[PARAMETER_BYTES_MAX];
	size_t bytes = *parameters ? strlen(parameters) + 1 : 0;
	struct tgtadm_rsp response;
	char *text;
	int result;

	request->len = (uint32_t)(sizeof(*request) + bytes);
	memcpy(message, request, sizeof(*request));
	memcpy(message + sizeof(*request), parameters, bytes);
	if (send(fd, message, request->len, MSG_NOSIGNAL) != (ssize_t)request->len)
		return -errno;
	result = receive(tgtd, fd, deadline_ms, &response, sizeof(response));
	if (result)
		return result;
	*code = response.err;
	bytes = response.len - sizeof(response);
	if (response.len < sizeof(response) || bytes > ANSWER_BYTES_MAX)
		return -EPROTO;
	text = calloc(1, bytes + 1);
	if (!text)
		return -ENOMEM;
	result = receive(tgtd, fd, deadline_ms, text, bytes);
	if (!result && answer)
		*answer = text;
	else
		free(text);
	return result;
}

/* Is a broken connection that of a tgtd that ends? Its sockets are closed before it is gone. */
static bool is_ending(struct tgtd *tgtd, int result)
{
	bool is_broken = result == -ECONNRESET || result == -EPIPE || result == -ECONNREFUSED;

	return is_broken && tgtd->pid > 0 && tgtd_wait(tgtd, -1, ENDING_MS) == TGTD_ENDED;
}

/*
 * `answer` may be NULL; otherwise the caller frees it after success. `as_good`: a refusal that is
 * success, too. `what` names the action in sentences.
 */
static int request_full(struct tgtd *tgtd, struct tgtadm_req *request, const char *parameters,
			const char *what, char **answer, uint32_t as_good, struct error_text *error)
{
	uint32_t code = TGTADM_SUCCESS;
	int fd, result;

	strcpy(request->lld, "iscsi");
	if (strlen(parameters) + 1 > PARAMETER_BYTES_MAX - sizeof(*request))
		return error_set(error, -E2BIG, "%s: the parameters are too long for tgtd", what);
	fd = connect_control(tgtd->answer_ms);
	/* It is not what was asked for that is missing. */
	if (fd == -ENOENT)
		fd = -ECONNREFUSED;
	if (fd < 0 && !is_ending(tgtd, fd))
		return error_set(error, fd, "%s: tgtd's control socket: %s", what, strerror(-fd));
	result = fd < 0 ? -ESRCH : exchange(tgtd, fd, request, parameters, &code, answer);
	if (fd >= 0)
		close(fd);
	if (is_ending(tgtd, result))
		result = -ESRCH;
	if (result == -ESRCH)
		return error_set(error, result, "%s: tgtd has ended", what);
	if (result == -ETIMEDOUT)
		return error_set(error, result, "%s: tgtd does not answer within %d s", what,
				 tgtd->answer_ms / 1000);
	if (result)
		return error_set(error, result, "%s: tgtd does not answer: %s", what,
				 strerror(-result));
	if (code == TGTADM_SUCCESS || code == as_good)
		return 0;
	if (answer) {
		free(*answer);
		*answer = NULL;
	}
	error_set(error, 0, "%s: tgtd refused: %s", what, tgtd_reason(code));
	return code == TGTADM_LUN_ACTIVE ? TGT_BUSY : TGT_REFUSED;
}

static int request_answer(struct tgtd *tgtd, struct tgtadm_req *request, const char *parameters,
			  const char *what, char **answer, struct error_text *error)
{
	return request_full(tgtd, request, parameters, what, answer, TGTADM_SUCCESS, error);
}

static int request_done(struct tgtd *tgtd, struct tgtadm_req *request, const char *parameters,
			const char *what, struct error_text *error)
{
	return request_answer(tgtd, request, parameters, what, NULL, error);
}

/* tgtd's numbers of targets are signed. */
static int32_t tid_of(unsigned int target)
{
	return (int32_t)target;
}

/* ---- readiness, portals ---- */

int tgt_wait_ready(struct tgtd *tgtd, int timeout_ms, struct error_text *error)
{
	int64_t deadline = clock_ms() + timeout_ms;

	while (clock_ms() < deadline) {
		int fd = connect_control(timeout_ms);
		struct tgtadm_req request = { .mode = MODE_LLD, .op = OP_SHOW, .tid = -1 };

		if (fd >= 0) {
			close(fd);
			return request_done(tgtd, &request, "", "first request", error);
		}
		if (tgtd_wait(tgtd, -1, RETRY_MS) == TGTD_ENDED)
			return error_set(error, -ESRCH, "tgtd ended while it started");
	}
	return error_set(error, -ETIMEDOUT, "tgtd did not open its control socket within %d s",
			 timeout_ms / 1000);
}

int tgt_portal_listens(struct tgtd *tgtd, const char *portal, bool *listens,
		       struct error_text *error)
{
	struct tgtadm_req request = { .mode = MODE_PORTAL, .op = OP_SHOW, .tid = -1 };
	char wanted[128], *answer = NULL;
	int result;

	/* Lines are "Portal: ADDRESS:PORT,GROUP". */
	snprintf(wanted, sizeof(wanted), "Portal: %s,", portal);
	result = request_answer(tgtd, &request, "", "portals", &answer, error);
	if (result)
		return result;
	*listens = strstr(answer, wanted) != NULL;
	free(answer);
	return 0;
}

int tgt_portal_close(struct tgtd *tgtd, const char *portal, struct error_text *error)
{
	struct tgtadm_req request = { .mode = MODE_PORTAL, .op = OP_DELETE, .tid = -1 };
	char parameters[160];

	snprintf(parameters, sizeof(parameters), "portalOps portal=%s,", portal);
	return request_done(tgtd, &request, parameters, "closing the portal", error);
}

/* ---- target, units, access ---- */

int tgt_target_create(struct tgtd *tgtd, unsigned int target, const char *name,
		      struct error_text *error)
{
	struct tgtadm_req request = { .mode = MODE_TARGET, .op = OP_NEW, .tid = tid_of(target) };
	char parameters[512];

	snprintf(parameters, sizeof(parameters), "targetname=%s", name);
	return request_done(tgtd, &request, parameters, "creating the target", error);
}

int tgt_target_offer(struct tgtd *tgtd, unsigned int target, const char *parameter,
		     struct error_text *error)
{
	struct tgtadm_req request = { .mode = MODE_TARGET, .op = OP_UPDATE, .tid = tid_of(target) };

	return request_done(tgtd, &request, parameter, parameter, error);
}

int tgt_lun_create(struct tgtd *tgtd, unsigned int target, unsigned int number,
		   const struct unit_type *type, const char *image, const char *options,
		   struct error_text *error)
{
	struct tgtadm_req request = {
		.mode = MODE_DEVICE,
		.op = OP_NEW,
		.tid = tid_of(target),
		.lun = number,
		.device_type = type->device_type,
	};
	char parameters[PARAMETER_BYTES_MAX], what[64];

	snprintf(parameters, sizeof(parameters), "path=%s,bstype=%s,bsopts=%s", image,
		 type->backing_store, options);
	snprintf(what, sizeof(what), "LUN %u", number);
	tgtd->target_of[number % sizeof(tgtd->target_of)] = (uint8_t)target;
	return request_done(tgtd, &request, parameters, what, error);
}

/* What the module answers itself: daemon/module/control.h. */
static int ask_lun(struct tgtd *tgtd, unsigned int number, const char *word,
		   struct error_text *error)
{
	struct tgtadm_req request = {
		.mode = MODE_DEVICE,
		.op = OP_UPDATE,
		.tid = tgtd->target_of[number % sizeof(tgtd->target_of)],
		.lun = number,
	};
	char parameters[CONTROL_QUESTION_BYTES + 16], what[64];

	snprintf(parameters, sizeof(parameters), "muninn=%s", word);
	snprintf(what, sizeof(what), "LUN %u, %s", number, word);
	return request_done(tgtd, &request, parameters, what, error);
}

int tgt_lun_flush(struct tgtd *tgtd, unsigned int number, struct error_text *error)
{
	return ask_lun(tgtd, number, "flush", error);
}

int tgt_lun_is_idle(struct tgtd *tgtd, unsigned int number, struct error_text *error)
{
	return ask_lun(tgtd, number, "idle", error);
}

int tgt_lun_log(struct tgtd *tgtd, unsigned int number, enum log_level level,
		struct error_text *error)
{
	char words[32];

	snprintf(words, sizeof(words), "log %s", log_level_word(level));
	return ask_lun(tgtd, number, words, error);
}

int tgt_lun_probe(struct tgtd *tgtd, unsigned int number, struct error_text *error)
{
	return ask_lun(tgtd, number, "probe", error);
}

int tgt_lun_delete(struct tgtd *tgtd, unsigned int number, struct error_text *error)
{
	struct tgtadm_req request = {
		.mode = MODE_DEVICE,
		.op = OP_DELETE,
		.tid = tgtd->target_of[number % sizeof(tgtd->target_of)],
		.lun = number,
	};
	char what[64];

	snprintf(what, sizeof(what), "removing LUN %u", number);
	return request_done(tgtd, &request, "", what, error);
}

/* Takes what the module has left: "-ERRNO SENTENCE" of a refusal, else "0" and lines. */
static int take_answer(char **answer, int *refusal, struct error_text *error)
{
	FILE *file = fopen(CONTROL_ANSWER_FILE, "re");
	char *text = calloc(1, CONTROL_ANSWER_BYTES_MAX + 1), *rest;
	size_t got = text && file ? fread(text, 1, CONTROL_ANSWER_BYTES_MAX, file) : 0;

	if (file)
		fclose(file);
	unlink(CONTROL_ANSWER_FILE);
	if (!got) {
		free(text);
		return error_set(error, -EPROTO, "the module's answer is missing");
	}
	*refusal = (int)strtol(text, &rest, 10);
	rest += *rest == ' ' || *rest == '\n';
	if (*refusal) {
		error_set(error, 0, "%s", rest);
		free(text);
		return TGT_REFUSED;
	}
	memmove(text, rest, strlen(rest) + 1);
	*answer = text;
	return 0;
}

int tgt_lun_ask(struct tgtd *tgtd, unsigned int number, const char *question, char **answer,
		int *refusal, struct error_text *error)
{
	int64_t deadline_ms = clock_ms() + tgtd->answer_ms;
	char words[CONTROL_QUESTION_BYTES];
	int result;

	*answer = NULL;
	*refusal = 0;
	if (snprintf(words, sizeof(words), "ask %s", question) >= (int)sizeof(words))
		return error_set(error, -E2BIG, "the request is too long");
	while ((result = ask_lun(tgtd, number, words, error)) == TGT_BUSY) {
		if (clock_ms() >= deadline_ms)
			return error_set(error, -EBUSY, "LUN %u is still at it after %d s", number,
					 tgtd->answer_ms / 1000);
		if (tgtd_wait(tgtd, -1, RETRY_MS) == TGTD_ENDED)
			return error_set(error, -ESRCH, "tgtd has ended");
	}
	return result ? result : take_answer(answer, refusal, error);
}

int tgt_lun_back_up(struct tgtd *tgtd, unsigned int number, const int *fds, int count, int *refusal,
		    struct error_text *error)
{
	char question[64], *answer;
	int result = handed_send(tgtd->handed_fd, ++tgtd->handed, fds, count);

	*refusal = 0;
	if (result)
		return error_set(error, result, "the files can't be handed to tgtd: %s",
				 strerror(-result));
	snprintf(question, sizeof(question), "backup %" PRIu64, tgtd->handed);
	result = tgt_lun_ask(tgtd, number, question, &answer, refusal, error);
	free(answer);
	return result;
}

static int allow(struct tgtd *tgtd, unsigned int target, bool yes, const char *kind,
		 const char *who, struct error_text *error)
{
	struct tgtadm_req request = {
		.mode = MODE_TARGET,
		.op = yes ? OP_BIND : OP_UNBIND,
		.tid = tid_of(target),
	};
	char parameters[512];

	snprintf(parameters, sizeof(parameters), "%s=%s", kind, who);
	return request_full(tgtd, &request, parameters,
			    yes ? "allowing initiators" : "refusing initiators", NULL,
			    yes ? TGTADM_ACL_EXIST : TGTADM_ACL_NOEXIST, error);
}

int tgt_allow_address(struct tgtd *tgtd, unsigned int target, const char *address,
		      struct error_text *error)
{
	return allow(tgtd, target, true, "initiator-address", address, error);
}

int tgt_allow_name(struct tgtd *tgtd, unsigned int target, const char *name,
		   struct error_text *error)
{
	return allow(tgtd, target, true, "initiator-name", name, error);
}

int tgt_disallow_address(struct tgtd *tgtd, unsigned int target, const char *address,
			 struct error_text *error)
{
	return allow(tgtd, target, false, "initiator-address", address, error);
}

int tgt_disallow_name(struct tgtd *tgtd, unsigned int target, const char *name,
		      struct error_text *error)
{
	return allow(tgtd, target, false, "initiator-name", name, error);
}

int tgt_account_create(struct tgtd *tgtd, const char *user, const char *secret,
		       struct error_text *error)
{
	struct tgtadm_req request = { .mode = MODE_ACCOUNT, .op = OP_NEW, .tid = -1 };
	char parameters[512];

	snprintf(parameters, sizeof(parameters), "user=%s,password=%s", user, secret);
	return request_full(tgtd, &request, parameters, "creating the CHAP account", NULL,
			    TGTADM_USER_EXIST, error);
}

int tgt_account_bind(struct tgtd *tgtd, unsigned int target, const char *user, bool outgoing,
		     struct error_text *error)
{
	struct tgtadm_req request = {
		.mode = MODE_ACCOUNT,
		.op = OP_BIND,
		.tid = tid_of(target),
		.ac_dir = outgoing ? ACCOUNT_TYPE_OUTGOING : ACCOUNT_TYPE_INCOMING,
	};
	char parameters[512];

	snprintf(parameters, sizeof(parameters), "user=%s", user);
	return request_full(tgtd, &request, parameters, "requiring the CHAP account", NULL,
			    outgoing ? TGTADM_SUCCESS : TGTADM_USER_EXIST, error);
}

int tgt_account_delete(struct tgtd *tgtd, const char *user, struct error_text *error)
{
	struct tgtadm_req request = { .mode = MODE_ACCOUNT, .op = OP_DELETE, .tid = -1 };
	char parameters[512];

	snprintf(parameters, sizeof(parameters), "user=%s", user);
	return request_full(tgtd, &request, parameters, "removing the CHAP account", NULL,
			    TGTADM_NO_USER, error);
}

int tgt_accounts(struct tgtd *tgtd, char **text, struct error_text *error)
{
	struct tgtadm_req request = { .mode = MODE_ACCOUNT, .op = OP_SHOW, .tid = -1 };

	return request_answer(tgtd, &request, "", "CHAP accounts", text, error);
}

/* ---- sessions ---- */

void tgt_make_plain(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

/* The rest of a line behind `key`: whatever an initiator calls itself, also with blanks. */
static bool take_rest(const char *line, const char *key, char *to, size_t bytes)
{
	size_t length = strlen(key);

	line += strspn(line, " ");
	if (strncmp(line, key, length) != 0)
		return false;
	snprintf(to, bytes, "%s", line + length);
	return true;
}

/*
 * Of each connection tgtd prints four lines: its session, itself, its initiator and its address.
 */
static size_t parse_sessions(char *text, struct tgt_session *sessions, size_t capacity)
{
	struct tgt_session session = { 0 };
	size_t count = 0;
	char *line;

	while ((line = strsep(&text, "\n"))) {
		if (sscanf(line, "Session: %" SCNu64, &session.number) == 1 ||
		    sscanf(line, " Connection: %" SCNu32, &session.connection) == 1)
			continue;
		if (take_rest(line, "Initiator: ", session.initiator, sizeof(session.initiator)) &&
		    count++ < capacity)
			sessions[count - 1] = session;
		/* It is missing when the other end has just gone. */
		if (count && count <= capacity)
			sscanf(line, " IP Address: %63s", sessions[count - 1].address);
	}
	return count;
}

int tgt_sessions(struct tgtd *tgtd, unsigned int target, struct tgt_session *sessions,
		 size_t capacity, size_t *count, struct error_text *error)
{
	struct tgtadm_req show = { .mode = MODE_CONNECTION, .op = OP_SHOW, .tid = tid_of(target) };
	char *answer = NULL;
	int result = request_answer(tgtd, &show, "", "connections", &answer, error);

	if (result)
		return result;
	*count = parse_sessions(answer, sessions, capacity);
	for (size_t i = 0; i < *count && i < capacity; i++) {
		sessions[i].target = target;
		tgt_make_plain(sessions[i].initiator);
		tgt_make_plain(sessions[i].address);
	}
	free(answer);
	return 0;
}

int tgt_session_close(struct tgtd *tgtd, const struct tgt_session *session,
		      struct error_text *error)
{
	struct tgtadm_req close_one = {
		.mode = MODE_CONNECTION,
		.op = OP_DELETE,
		.tid = tid_of(session->target),
		.sid = session->number,
		.cid = session->connection,
	};
	int result = request_done(tgtd, &close_one, "", "closing a connection", error);

	return result == TGT_REFUSED ? 0 : result;
}

/* ---- the end ---- */

int tgt_connections_close(struct tgtd *tgtd, unsigned int target, struct error_text *error)
{
	struct tgt_session *sessions = calloc(CONNECTIONS_MAX, sizeof(*sessions));
	size_t count = 0;
	int result;

	if (!sessions)
		return error_set(error, -ENOMEM, "out of memory");
	result = tgt_sessions(tgtd, target, sessions, CONNECTIONS_MAX, &count, error);
	for (size_t i = 0; !result && i < count && i < CONNECTIONS_MAX; i++)
		result = tgt_session_close(tgtd, &sessions[i], error);
	free(sessions);
	return result;
}

int tgt_target_delete(struct tgtd *tgtd, unsigned int target, struct error_text *error)
{
	struct tgtadm_req request = {
		.mode = MODE_TARGET,
		.op = OP_DELETE,
		.tid = tid_of(target),
		.force = 1,
	};

	return request_done(tgtd, &request, "", "closing the target", error);
}

int tgt_shutdown(struct tgtd *tgtd, struct error_text *error)
{
	struct tgtadm_req request = { .mode = MODE_SYSTEM, .op = OP_DELETE, .tid = -1 };

	return request_done(tgtd, &request, "", "ending tgtd", error);
}
