/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Requests of administrators: which verb it is, how the service is, sessions. */
#include "daemon/admin_verbs.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/version.h"
#include "daemon/reload.h"
#include "daemon/tgt_control.h"
#include "daemon/troubles.h"

#define SESSIONS_MAX 4096 /* as [limits] has it */
#define STATUS_MS    2000 /* a unit that is busy for longer does not hold up `status` */
#define STATUSES_MS  6000 /* nor do many of them */
#define NAMED_MAX    3    /* sessions that a sentence names */

/* One request at a time. */
static struct tgt_session sessions[SESSIONS_MAX];

/* ---- what verbs share ---- */

int admin_number(struct admin_request *request, const char *name, uint64_t *number)
{
	const json_t *value = json_object_get(request->fields, name);

	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return error_set(&request->error, -EINVAL, "the request lacks the number %s", name);
	*number = (uint64_t)json_integer_value(value);
	return 0;
}

const char *admin_text(const struct admin_request *request, const char *name)
{
	return json_string_value(json_object_get(request->fields, name));
}

bool admin_flag(const struct admin_request *request, const char *name)
{
	return json_is_true(json_object_get(request->fields, name));
}

void admin_log(const struct admin_request *request, const char *format, ...)
{
	char what[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	log_line(LOG_LEVEL_INFO, "administration: %s, by %s", what, request->caller->who);
}

int admin_result(int result, int refusal)
{
	if (result == TGT_BUSY)
		return -EBUSY;
	if (result == TGT_REFUSED)
		return refusal ? refusal : -EIO;
	return result;
}

int admin_ask(struct admin_request *request, unsigned int lun, const char *question, char **answer)
{
	int refusal = 0;
	int result = tgt_lun_ask(&request->server->tgtd, lun, question, answer, &refusal,
				 &request->error);

	return admin_result(result, refusal);
}

/* The sessions that are logged in, in `sessions`. */
static int list_sessions(struct server *server, size_t *count, struct error_text *error)
{
	const struct config *config = server->config;
	int result = 0;

	*count = 0;
	for (unsigned int i = 0; !result && i < config->target_count; i++) {
		size_t more = 0;

		result = tgt_sessions(&server->tgtd, config->targets[i].id, sessions + *count,
				      SESSIONS_MAX - *count, &more, error);
		*count = *count + more < SESSIONS_MAX ? *count + more : SESSIONS_MAX;
	}
	return admin_result(result, 0);
}

/* Calls `found` with the numbers of the sessions that have used a unit. */
typedef void found_session(void *context, uint64_t number);

/* Their lines are the first ones of an answer. */
static void take_users(char *answer, found_session *found, void *context)
{
	uint64_t number;
	int length;

	while (sscanf(answer, "session %" SCNu64 "%n", &number, &length) == 1) {
		found(context, number);
		answer += length;
		answer += *answer == '\n';
	}
}

static int find_users(struct server *server, unsigned int lun, found_session *found, void *context,
		      struct error_text *error)
{
	char *answer;
	int refusal;
	int result = tgt_lun_ask(&server->tgtd, lun, "use", &answer, &refusal, error);

	if (result)
		return admin_result(result, refusal);
	take_users(answer, found, context);
	free(answer);
	return 0;
}

static void count_one(void *context, uint64_t number)
{
	(void)number;
	++*(size_t *)context;
}

int admin_count_users(struct server *server, unsigned int lun, size_t *count,
		      struct error_text *error)
{
	*count = 0;
	return find_users(server, lun, count_one, count, error);
}

static void add_number(void *context, uint64_t number)
{
	json_array_append_new(context, json_integer((json_int_t)number));
}

static const struct tgt_session *find_session(size_t count, uint64_t number)
{
	for (size_t i = 0; i < count; i++)
		if (sessions[i].number == number)
			return &sessions[i];
	return NULL;
}

int admin_check_unused(struct server *server, unsigned int lun, struct error_text *error)
{
	json_t *users = json_array();
	size_t count, used, named = 0;
	char names[512] = "";
	int result = list_sessions(server, &count, error);

	if (!result)
		result = find_users(server, lun, add_number, users, error);
	used = json_array_size(users);
	for (size_t i = 0; i < used && named < NAMED_MAX; i++) {
		json_int_t number = json_integer_value(json_array_get(users, i));
		const struct tgt_session *session = find_session(count, (uint64_t)number);
		size_t length = strlen(names);

		if (session)
			snprintf(names + length, sizeof(names) - length, "%s%.100s at %s",
				 named++ ? ", " : "", session->initiator, session->address);
	}
	json_decref(users);
	if (result || !used)
		return result;
	return error_set(error, -EBUSY,
			 "LUN %u: %zu session%s use%s it (%s%s): log out there, or say --force",
			 lun, used, used == 1 ? "" : "s", used == 1 ? "s" : "", names,
			 used > named ? ", ..." : "");
}

/* ---- status ---- */

/* "2026-01-31T12:00:00Z" */
static json_t *time_text(int64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm parts;
	char text[32];

	gmtime_r(&seconds, &parts);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
	return json_string(text);
}

/*
 * When something began, of which clock.h says when it was. The clocks are compared to the
 * microsecond, so that it is the same second each time.
 */
static json_t *since_text(int64_t then_ms)
{
	struct timespec now;
	int64_t ahead_us;

	clock_gettime(CLOCK_REALTIME, &now);
	ahead_us =
		(int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 - (int64_t)clock_microseconds();
	return time_text(ahead_us / 1000 + then_ms);
}

static json_t *fact_value(const char *text)
{
	char *end;
	long long number = strtoll(text, &end, 10);

	return isdigit((unsigned char)text[0]) && !*end ? json_integer(number) : json_string(text);
}

/* Lines of a name and a value, as members. */
static void add_facts(json_t *to, char *lines)
{
	char *line;

	while ((line = strsep(&lines, "\n"))) {
		char *value = line;
		const char *name = strsep(&value, " ");

		if (!value || !strcmp(name, "session"))
			continue;
		if (!strcmp(name, "read_only"))
			json_object_set_new(to, name, json_boolean(value[0] == '1'));
		else if (!strcmp(name, "partition"))
			json_object_set_new(to, name,
					    json_sprintf("0x%llx", strtoull(value, NULL, 10)));
		else
			json_object_set_new(to, name, fact_value(value));
	}
}

static int ask_facts(struct server *server, unsigned int lun, char **facts, char **use,
		     struct error_text *error)
{
	int refusal, result = tgt_lun_ask(&server->tgtd, lun, "facts", facts, &refusal, error);

	return result ? result : tgt_lun_ask(&server->tgtd, lun, "use", use, &refusal, error);
}

/* Not asked any more behind `deadline_ms`, nor behind a tgtd that does not answer. */
static json_t *describe_unit(struct server *server, const struct lun_config *lun,
			     int64_t *deadline_ms)
{
	json_t *unit = json_pack("{s:i,s:s,s:s,s:b,s:[]}", "lun", (int)lun->number, "type",
				 lun->type->word, "image", lun->image, "added", lun->added,
				 "sessions");
	struct error_text error = { "" };
	const struct target_config *target = config_find_target(server->config, lun->target);
	char *facts = NULL, *use = NULL;
	int result = -ESRCH;

	if (lun->device[0])
		json_object_set_new(unit, "device", json_string(lun->device));
	if (target)
		json_object_set_new(unit, "target", json_string(target->name));
	if (server_tgtd_runs(server) && clock_ms() >= *deadline_ms)
		error_set(&error, 0, "it was not asked: others did not answer in time");
	else if (server_tgtd_runs(server))
		result = ask_facts(server, lun->number, &facts, &use, &error);
	if (result == -ETIMEDOUT)
		*deadline_ms = 0;
	if (!result) {
		take_users(use, add_number, json_object_get(unit, "sessions"));
		add_facts(unit, facts);
		add_facts(unit, use);
	} else {
		json_object_set_new(unit, "trouble",
				    json_string(error.text[0] ? error.text : "it is not served"));
	}
	free(facts);
	free(use);
	return unit;
}

static json_t *list_troubles(void)
{
	json_t *list = json_array();
	const struct trouble *trouble;

	for (unsigned int i = 0; (trouble = trouble_get(i)); i++) {
		struct trouble shown = *trouble;

		tgt_make_plain(shown.line);
		json_array_append_new(
			list, json_pack("{s:o,s:s,s:s}", "time", time_text(shown.time_ms), "level",
					log_level_word(shown.level), "line", shown.line));
	}
	return list;
}

/* The targets with their sessions, the first `count` of `sessions`. */
static json_t *list_targets(const struct config *config, size_t count)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < config->target_count; i++) {
		int here = 0;

		for (size_t j = 0; j < count; j++)
			here += sessions[j].target == config->targets[i].id;
		json_array_append_new(list, json_pack("{s:s,s:i}", "name", config->targets[i].name,
						      "sessions", here));
	}
	return list;
}

static int verb_status(struct admin_request *request)
{
	struct server *server = request->server;
	const struct config *config = server->config;
	int answer_ms = server->tgtd.answer_ms;
	json_t *units = json_array();
	int64_t deadline_ms = clock_ms() + STATUSES_MS;
	size_t count = 0;

	if (answer_ms > STATUS_MS)
		server->tgtd.answer_ms = STATUS_MS;
	if (server_tgtd_runs(server) &&
	    list_sessions(server, &count, &request->error) == -ETIMEDOUT)
		deadline_ms = 0;
	for (unsigned int i = 0; i < config->lun_count; i++)
		json_array_append_new(units, describe_unit(server, &config->luns[i], &deadline_ms));
	server->tgtd.answer_ms = answer_ms;
	json_object_update_new(request->ok,
			       json_pack("{s:s,s:i,s:o,s:s,s:s,s:s,s:i,s:o,s:i,s:o,s:o}", "version",
					 MUNINN_VERSION, "process", (int)getpid(), "since",
					 since_text(server->started_ms), "configuration",
					 config->source, "target", config->targets[0].name,
					 "portal", server->portals, "sessions", (int)count,
					 "targets", list_targets(config, count), "tgtd_restarts",
					 (int)server->restarts_total, "units", units, "troubles",
					 list_troubles()));
	json_object_set_new(request->ok, "tgtd",
			    server_tgtd_runs(server)
				    ? json_pack("{s:i,s:o,s:i}", "process", (int)server->tgtd.pid,
						"since", since_text(server->up_since_ms),
						"restarts", (int)server->restarts_total)
				    : json_null());
	return 0;
}

/* ---- sessions ---- */

struct unit_users {
	json_t *list; /* of all sessions */
	unsigned int lun;
};

static void add_unit(void *context, uint64_t number)
{
	const struct unit_users *users = context;

	for (size_t i = 0; i < json_array_size(users->list); i++) {
		const json_t *session = json_array_get(users->list, i);

		if (json_integer_value(json_object_get(session, "session")) == (json_int_t)number)
			json_array_append_new(json_object_get(session, "units"),
					      json_integer(users->lun));
	}
}

static int verb_session_ls(struct admin_request *request)
{
	const struct config *config = request->server->config;
	json_t *list = json_array();
	size_t count;
	int result = list_sessions(request->server, &count, &request->error);

	for (size_t i = 0; !result && i < count; i++)
		json_array_append_new(list, json_pack("{s:I,s:s,s:s,s:[]}", "session",
						      (json_int_t)sessions[i].number, "initiator",
						      sessions[i].initiator, "address",
						      sessions[i].address, "units"));
	for (unsigned int i = 0; !result && i < config->lun_count; i++) {
		struct unit_users users = { list, config->luns[i].number };

		result = find_users(request->server, users.lun, add_unit, &users, &request->error);
	}
	json_object_set_new(request->ok, "sessions", list);
	return result;
}

static int verb_session_kick(struct admin_request *request)
{
	const char *initiator = admin_text(request, "initiator");
	json_t *kicked = json_array();
	uint64_t number = 0;
	size_t count;
	int result = initiator ? 0 : admin_number(request, "session", &number);

	if (!result)
		result = list_sessions(request->server, &count, &request->error);
	for (size_t i = 0; !result && i < count; i++) {
		const struct tgt_session *session = &sessions[i];

		if (initiator ? strcmp(session->initiator, initiator) : session->number != number)
			continue;
		result = admin_result(
			tgt_session_close(&request->server->tgtd, session, &request->error), 0);
		if (result)
			break;
		admin_log(request, "session %" PRIu64 " of %s at %s is ended", session->number,
			  session->initiator, session->address);
		json_array_append_new(kicked, json_integer((json_int_t)session->number));
	}
	if (!result && !json_array_size(kicked))
		result = initiator ? error_set(&request->error, -ENOENT,
					       "no session of %s is logged in", initiator)
				   : error_set(&request->error, -ENOENT,
					       "there is no session %" PRIu64, number);
	json_object_set_new(request->ok, "kicked", kicked);
	return result;
}

/* ---- reload ---- */

static int verb_reload(struct admin_request *request)
{
	struct reload_report report = { json_array(), json_array(), json_array() };
	int result = reload(request->server, &report, &request->error);

	json_object_set_new(request->ok, "done", report.done);
	json_object_set_new(request->ok, "left", report.left);
	json_object_set_new(request->ok, "restart", report.restart);
	admin_log(request, result ? "a reload was refused" : "the configuration is taken up anew");
	return result;
}

/* ---- which verb it is ---- */

static const struct {
	const char *name;
	admin_verb *run;
	bool without_tgtd; /* it needs none */
} verbs[] = {
	{ "status", verb_status, true },
	{ "session ls", verb_session_ls, false },
	{ "session kick", verb_session_kick, false },
	{ "reload", verb_reload, false },
	{ "lun add", admin_lun_add, false },
	{ "lun rm", admin_lun_rm, false },
	{ "lun resize", admin_lun_resize, false },
	{ "volume ls", admin_volume_ls, false },
	{ "volume create", admin_volume_create, false },
	{ "volume rm", admin_volume_rm, false },
	{ "volume resize", admin_volume_resize, false },
	{ "volume expose", admin_volume_expose, false },
	{ "device backup", admin_device_backup, false },
	{ "device grow", admin_device_grow, false },
};

/* By the names that muninnctl gives its exit codes. */
static const char *kind_of(int result)
{
	switch (result) {
	case -EINVAL:
	case -E2BIG:
	case -ENODEV:
		return "usage";
	case -ENOENT:
		return "not found";
	case -EEXIST:
		return "exists";
	case -ENOSPC:
	case -EFBIG:
		return "no space";
	case -EPERM:
	case -EACCES:
		return "denied";
	default:
		return "target";
	}
}

static int run(struct admin_request *request)
{
	const char *name = admin_text(request, "do");

	if (!name)
		return error_set(&request->error, -EINVAL,
				 "a request is a JSON object on one line, with a verb as \"do\"");
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(verbs[i].name, name))
			return verbs[i].without_tgtd || server_tgtd_runs(request->server)
				       ? verbs[i].run(request)
				       : error_set(&request->error, -ESRCH,
						   "tgtd does not run just now, it is started "
						   "again: try in a moment");
	return error_set(&request->error, -EINVAL,
			 "this service, " MUNINN_VERSION ", knows no '%s'; after an upgrade "
			 "restart it",
			 name);
}

json_t *admin_carry_out(struct server *server, const json_t *fields,
			const struct admin_caller *caller)
{
	struct admin_request request = {
		.server = server,
		.fields = fields,
		.caller = caller,
		.ok = json_object(),
	};
	int result = run(&request);

	if (!result)
		return json_pack("{s:o}", "ok", request.ok);
	json_decref(request.ok);
	tgt_make_plain(request.error.text);
	return json_pack("{s:{s:s,s:s}}", "error", "kind", kind_of(result), "message",
			 request.error.text);
}
