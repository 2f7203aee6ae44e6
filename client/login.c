/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Logs in with libiscsi, which keeps negotiated values and sequence numbers to itself. So this code
 * looks at each whole login response with MSG_PEEK before it tells libiscsi that there is something
 * to read. A login is strictly request and answer, so the socket holds one response.
 */
#include "client/login.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <iscsi/iscsi.h>

#include "client/login_keys.h"
#include "common/bytes.h"

#define REDIRECTIONS_MAX  4
#define ISID_MASK         ((UINT64_C(1) << 40) - 1)
#define POLL_MILLISECONDS 100
/* libiscsi copies URLs into fields of 255 characters and cuts longer ones. */
#define URL_CHARACTERS_MAX 240U
#define URL_SCHEME         "iscsi://"

enum attempt_state {
	ATTEMPT_CONNECTING,
	ATTEMPT_LOGGING_IN,
	ATTEMPT_DISCOVERING,
	ATTEMPT_DONE,
	ATTEMPT_FAILED
};

struct attempt {
	struct iscsi_context *iscsi;
	struct iscsi_url *url;
	uint64_t isid;
	enum attempt_state state;
	bool discovery;
	bool redirected;
	struct login_outcome outcome;
	uint64_t deadline_ms;
	login_found *found;
	void *found_context;
	int found_result;
	char reason[256]; /* what libiscsi said when it failed; later it says something else */
};

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- set-up ---- */

/* Refuses what libiscsi's parser does not survive or silently cuts. */
static int check_url(const char *url, struct error_text *error)
{
	const char *argument;

	if (strncmp(url, URL_SCHEME, strlen(URL_SCHEME)) != 0)
		return error_set(error, -EINVAL,
				 "URL '%.80s' does not begin with iscsi://; the form is "
				 "iscsi://[USER%%SECRET@]HOST[:PORT]/TARGET/LUN",
				 url);
	if (strlen(url) > URL_CHARACTERS_MAX)
		return error_set(error, -EINVAL, "URL is longer than %u characters",
				 URL_CHARACTERS_MAX);
	for (argument = strchr(url, '?'); argument; argument = strchr(argument + 1, '&')) {
		size_t length = strcspn(argument + 1, "&");

		if (!memchr(argument + 1, '=', length))
			return error_set(error, -EINVAL,
					 "URL '%.80s': an argument behind '?' has no '='", url);
	}
	return 0;
}

static void default_initiator_name(char *name, size_t capacity)
{
	char host[64] = "localhost";

	gethostname(host, sizeof(host) - 1);
	for (char *c = host; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c += 'a' - 'A';
		else if (!(*c >= 'a' && *c <= 'z') && !(*c >= '0' && *c <= '9') && *c != '.' &&
			 *c != '-')
			*c = '-';
	snprintf(name, capacity, "iqn.2026-01.io.muninn:client.%s", host);
}

/* 0: there is none, and libiscsi's own stays. */
static uint64_t draw_isid(void)
{
	uint64_t random = 0;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return 0;
	return random & ISID_MASK;
}

static void set_isid(struct iscsi_context *iscsi, uint64_t isid)
{
	if (isid != 0)
		iscsi_set_isid_random(iscsi, (uint32_t)(isid >> 16), (uint32_t)(isid & 0xFFFF));
}

static int begin(struct attempt *attempt, const char *url, const struct login_options *options,
		 struct error_text *error)
{
	char name[128];
	int result = check_url(url, error);

	if (result < 0)
		return result;
	default_initiator_name(name, sizeof(name));
	attempt->iscsi =
		iscsi_create_context(options->initiator_name ? options->initiator_name : name);
	if (!attempt->iscsi)
		return error_set(error, -ENOMEM, "login: libiscsi gives no context");
	iscsi_set_noautoreconnect(attempt->iscsi, 1);
	set_isid(attempt->iscsi, attempt->isid);
	attempt->url = attempt->discovery ? iscsi_parse_portal_url(attempt->iscsi, url)
					  : iscsi_parse_full_url(attempt->iscsi, url);
	if (!attempt->url)
		return error_set(error, -EINVAL, "%s", iscsi_get_error(attempt->iscsi));
	if (!attempt->discovery && !attempt->url->target[0])
		return error_set(error, -EINVAL, "URL '%s': the target's name is missing", url);
	if (attempt->url->lun < 0 || attempt->url->lun >= 0x4000)
		return error_set(error, -EINVAL, "URL: LUN %d is not in 0..16383",
				 attempt->url->lun);
	iscsi_set_session_type(attempt->iscsi,
			       attempt->discovery ? ISCSI_SESSION_DISCOVERY : ISCSI_SESSION_NORMAL);
	/* After the URL, which may ask for a digest: the native phase has none. */
	iscsi_set_header_digest(attempt->iscsi, ISCSI_HEADER_DIGEST_NONE);
	iscsi_set_immediate_data(attempt->iscsi, options->immediate_data ? ISCSI_IMMEDIATE_DATA_YES
									 : ISCSI_IMMEDIATE_DATA_NO);
	iscsi_set_initial_r2t(attempt->iscsi,
			      options->initial_r2t ? ISCSI_INITIAL_R2T_YES : ISCSI_INITIAL_R2T_NO);
	login_outcome_begin(&attempt->outcome, options->immediate_data, options->initial_r2t);
	return 0;
}

/*
 * Overwrites names and secrets of the context in their whole length, so that no CHAP secret stays
 * in freed memory.
 */
static void end(struct attempt *attempt)
{
	if (attempt->url) {
		explicit_bzero(attempt->url->passwd, sizeof(attempt->url->passwd));
		explicit_bzero(attempt->url->target_passwd, sizeof(attempt->url->target_passwd));
		iscsi_destroy_url(attempt->url);
	}
	if (attempt->iscsi) {
		iscsi_set_initiator_username_pwd(attempt->iscsi, "", "");
		iscsi_set_target_username_pwd(attempt->iscsi, "", "");
		iscsi_destroy_context(attempt->iscsi);
	}
	attempt->url = NULL;
	attempt->iscsi = NULL;
}

/* ---- progress, called by libiscsi ---- */

static void note_reason(struct attempt *attempt)
{
	static const char own_name[] = "iscsi_service: ";
	const char *said = iscsi_get_error(attempt->iscsi);
	size_t length;

	if (strncmp(said, own_name, strlen(own_name)) == 0)
		said += strlen(own_name);
	length = strcspn(said, "\n");
	while (length > 0 && said[length - 1] == '.')
		length--;
	snprintf(attempt->reason, sizeof(attempt->reason), "%.*s", (int)length, said);
}

static void discovered(struct iscsi_context *iscsi, int status, void *data, void *context)
{
	struct attempt *attempt = context;

	(void)iscsi;
	attempt->state = status == SCSI_STATUS_GOOD ? ATTEMPT_DONE : ATTEMPT_FAILED;
	if (status != SCSI_STATUS_GOOD) {
		note_reason(attempt);
		return;
	}
	for (const struct iscsi_discovery_address *target = data; target; target = target->next)
		for (const struct iscsi_target_portal *portal = target->portals; portal;
		     portal = portal->next)
			if (attempt->found_result == 0)
				attempt->found_result = attempt->found(attempt->found_context,
								       target->target_name,
								       portal->portal);
}

static void logged_in(struct iscsi_context *iscsi, int status, void *data, void *context)
{
	struct attempt *attempt = context;

	(void)data;
	attempt->state = ATTEMPT_FAILED;
	attempt->redirected = status == (int)SCSI_STATUS_REDIRECT;
	if (status != SCSI_STATUS_GOOD) {
		note_reason(attempt);
		return;
	}
	if (!attempt->discovery)
		attempt->state = ATTEMPT_DONE;
	else if (iscsi_discovery_async(iscsi, discovered, attempt) == 0)
		attempt->state = ATTEMPT_DISCOVERING;
}

static void connected(struct iscsi_context *iscsi, int status, void *data, void *context)
{
	struct attempt *attempt = context;

	(void)data;
	/* libiscsi calls this again when the connection ends. */
	if (attempt->state != ATTEMPT_CONNECTING)
		return;
	if (status == SCSI_STATUS_GOOD && iscsi_login_async(iscsi, logged_in, attempt) == 0)
		attempt->state = ATTEMPT_LOGGING_IN;
	else {
		note_reason(attempt);
		attempt->state = ATTEMPT_FAILED;
	}
}

/* ---- the loop ---- */

/* 1: a whole response was seen and noted; 0: more bytes are needed; negative: error. */
static int peek_response(struct attempt *attempt, struct error_text *error)
{
	uint8_t bytes[ISCSI_BHS_BYTES + LOGIN_DATA_BYTES_MAX];
	ssize_t got =
		recv(iscsi_get_fd(attempt->iscsi), bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
	uint32_t length;
	int result;

	if (got == 0)
		return error_set(error, -ECONNRESET, "login: the target closed the connection");
	if (got < 0)
		return errno == EAGAIN || errno == EINTR
			       ? 0
			       : error_set(error, -errno, "login: the connection broke: %s",
					   strerror(errno));
	if (got < (ssize_t)ISCSI_BHS_BYTES)
		return 0;
	length = (uint32_t)bytes[5] << 16 | get_be16(bytes + 6);
	if (bytes[4] != 0 || length > LOGIN_DATA_BYTES_MAX)
		return error_set(
			error, -EPROTO,
			"login: what answers there speaks no iSCSI; is it the right port?");
	if ((size_t)got < ISCSI_BHS_BYTES + length)
		return 0;
	result = login_outcome_note(&attempt->outcome, bytes, bytes + ISCSI_BHS_BYTES, length,
				    error);
	return result < 0 ? result : 1;
}

static int failure_of_status(const struct attempt *attempt)
{
	enum { INITIATOR_ERROR = 2, AUTHENTICATION = 1, AUTHORISATION = 2, NOT_FOUND = 3 };

	if (attempt->outcome.status_class == INITIATOR_ERROR) {
		if (attempt->outcome.status_detail == AUTHENTICATION ||
		    attempt->outcome.status_detail == AUTHORISATION)
			return -EACCES;
		if (attempt->outcome.status_detail == NOT_FOUND)
			return -ENODEV;
	}
	return attempt->outcome.status_class ? -ECONNREFUSED : -EIO;
}

static int failed(struct attempt *attempt, struct error_text *error)
{
	const char *host = attempt->url->portal;

	switch (failure_of_status(attempt)) {
	case -EACCES:
		return error_set(error, -EACCES,
				 "login at %s: the target does not let this initiator in; check "
				 "user and secret in the URL, and the target's access list",
				 host);
	case -ENODEV:
		return error_set(error, -ENODEV,
				 "login at %s: there is no target '%s', or its access list has not "
				 "got this initiator; `muninnctl discover` lists the targets",
				 host, attempt->url->target);
	default:
		break;
	}
	/* Mutual CHAP: the target did not prove who it is. */
	if (strstr(attempt->reason, "CHAP"))
		return error_set(
			error, -EACCES,
			"login at %s: %s; is it the right target, and its secret in the URL right?",
			host, attempt->reason);
	return error_set(error, -ECONNREFUSED,
			 "login at %s: %s; is the target running, and the port right?", host,
			 attempt->reason);
}

/* Lets libiscsi work once. 0 or an error. */
static int advance(struct attempt *attempt, struct error_text *error)
{
	struct pollfd poll_fd = { .fd = iscsi_get_fd(attempt->iscsi) };
	int noted = 1;

	poll_fd.events = (short)iscsi_which_events(attempt->iscsi);
	if (poll(&poll_fd, 1, POLL_MILLISECONDS) < 0 && errno != EINTR)
		return error_set(error, -errno, "login: poll: %s", strerror(errno));
	if (attempt->state == ATTEMPT_LOGGING_IN && poll_fd.revents & POLLIN &&
	    !(poll_fd.revents & POLLERR)) {
		noted = peek_response(attempt, error);
		if (noted < 0)
			return noted;
	}
	if (noted == 0) {
		/*
		 * With half a response the socket stays readable, so poll alone would not wait for
		 * the rest.
		 */
		poll(NULL, 0, 1);
		return 0;
	}
	if (iscsi_service(attempt->iscsi, poll_fd.revents) < 0 && attempt->state != ATTEMPT_DONE) {
		if (!attempt->reason[0])
			note_reason(attempt);
		attempt->state = ATTEMPT_FAILED;
	}
	return 0;
}

static int run(struct attempt *attempt, const char *portal, struct error_text *error)
{
	attempt->state = ATTEMPT_CONNECTING;
	attempt->redirected = false;
	attempt->reason[0] = '\0';
	if (iscsi_connect_async(attempt->iscsi, portal, connected, attempt) < 0)
		return error_set(error, -ECONNREFUSED, "connecting to %s: %s", portal,
				 iscsi_get_error(attempt->iscsi));
	while (attempt->state != ATTEMPT_DONE && attempt->state != ATTEMPT_FAILED) {
		int result;

		if (now_ms() >= attempt->deadline_ms)
			return error_set(
				error, -ETIMEDOUT,
				"login at %s: no answer in time; is it the right host and port?",
				portal);
		result = advance(attempt, error);
		if (result < 0)
			return result;
	}
	if (attempt->state == ATTEMPT_DONE)
		return 0;
	return attempt->redirected ? -EREMCHG : failed(attempt, error);
}

/* Runs `attempt` to its end, with a new context for each portal that the target redirects to. */
static int run_redirected(struct attempt *attempt, const char *url,
			  const struct login_options *options, struct error_text *error)
{
	char portal[MAX_STRING_SIZE + 1] = "";

	attempt->deadline_ms = now_ms() + options->timeout_ms;
	attempt->isid = options->isid ? options->isid : draw_isid();
	for (int redirections = 0; redirections <= REDIRECTIONS_MAX; redirections++) {
		int result = begin(attempt, url, options, error);

		if (result < 0)
			return result;
		result = run(attempt, portal[0] ? portal : attempt->url->portal, error);
		if (result != -EREMCHG)
			return result;
		snprintf(portal, sizeof(portal), "%s", iscsi_get_target_address(attempt->iscsi));
		end(attempt);
	}
	return error_set(error, -ELOOP,
			 "login: the target sends this initiator from portal to portal");
}

int login_connect(const char *url, const struct login_options *options, struct login_result *result,
		  struct error_text *error)
{
	struct attempt attempt = { 0 };
	int status = run_redirected(&attempt, url, options, error);

	if (status == 0) {
		/* The context closes its own descriptor. This one keeps the connection. */
		result->fd = fcntl(iscsi_get_fd(attempt.iscsi), F_DUPFD_CLOEXEC, 0);
		result->lun = (unsigned)attempt.url->lun;
		result->isid = attempt.isid;
		result->parameters = attempt.outcome.parameters;
		if (result->fd < 0)
			status = error_set(error, -errno, "login: %s", strerror(errno));
	}
	end(&attempt);
	return status;
}

int login_discover(const char *url, const struct login_options *options, login_found *found,
		   void *context, struct error_text *error)
{
	struct attempt attempt = { .discovery = true, .found = found, .found_context = context };
	int status = run_redirected(&attempt, url, options, error);

	if (status == 0)
		status = attempt.found_result;
	end(&attempt);
	return status;
}
