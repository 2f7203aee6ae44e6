/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* status, reload, session, lun, device grow: the service on this host. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/service.h"

/* ---- status ---- */

static void print_size(const json_t *object, const char *name)
{
	char text[CTL_SIZE_TEXT];

	fputs(ctl_format_size(service_number(object, name), text), stdout);
}

static void print_disk(const json_t *unit)
{
	const char *version = service_text(unit, "version");

	print_size(unit, "bytes");
	printf(", volume %s", service_text(unit, "partition"));
	if (json_object_get(unit, "version"))
		printf(" at %s", version[0] ? version : "a version");
	if (json_is_true(json_object_get(unit, "read_only")))
		printf(", read-only");
	printf("; device ");
}

static void print_unit(const json_t *unit)
{
	size_t sessions = json_array_size(json_object_get(unit, "sessions"));
	const char *device = service_text(unit, "device");

	printf("LUN %-3" PRIu64 " %-4s  ", service_number(unit, "lun"), service_text(unit, "type"));
	if (json_object_get(unit, "trouble")) {
		printf("%s\n", service_text(unit, "trouble"));
		return;
	}
	if (json_object_get(unit, "bytes"))
		print_disk(unit);
	printf("%s%s", device, device[0] ? " " : "");
	print_size(unit, "used_bytes");
	printf(" used of ");
	print_size(unit, "capacity_bytes");
	if (service_number(unit, "pages_lost"))
		printf(", %" PRIu64 " pages lost", service_number(unit, "pages_lost"));
	printf("; %zu session%s%s\n", sessions, sessions == 1 ? "" : "s",
	       json_is_true(json_object_get(unit, "added")) ? "; gone after a restart" : "");
}

static void print_status(const json_t *status)
{
	const json_t *tgtd = json_object_get(status, "tgtd"), *each;

	printf("muninnd %s, process %" PRIu64 ", since %s\n", service_text(status, "version"),
	       service_number(status, "process"), service_text(status, "since"));
	if (json_is_object(tgtd))
		printf("tgtd    process %" PRIu64 ", since %s, started again %" PRIu64 " times\n",
		       service_number(tgtd, "process"), service_text(tgtd, "since"),
		       service_number(tgtd, "restarts"));
	else
		printf("tgtd    does not run just now: it is started again\n");
	for (size_t i = 0; (each = service_item(status, "targets", i)); i++)
		printf("target  %s at %s, %" PRIu64 " sessions\n", service_text(each, "name"),
		       service_text(status, "portal"), service_number(each, "sessions"));
	printf("file    %s\n", service_text(status, "configuration"));
	for (size_t i = 0; (each = service_item(status, "units", i)); i++)
		print_unit(each);
	for (size_t i = 0; (each = service_item(status, "troubles", i)); i++)
		printf("%s%s %s: %s\n", i ? "" : "\nlast warnings and errors, the newest first:\n",
		       service_text(each, "time"), service_text(each, "level"),
		       service_text(each, "line"));
}

int verb_status(struct ctl *ctl)
{
	json_t *answer;
	int code = service_ask(ctl, json_object(), &answer);

	if (code != CTL_OK)
		return code;
	if (!ctl->options->json)
		print_status(answer);
	return service_end(ctl, answer);
}

/* ---- reload ---- */

static size_t print_sentences(const json_t *answer, const char *name, const char *head)
{
	const json_t *sentence;
	size_t i = 0;

	while ((sentence = service_item(answer, name, i))) {
		printf("%s%s\n", head, json_string_value(sentence));
		i++;
	}
	return i;
}

int verb_reload(struct ctl *ctl)
{
	json_t *answer;
	int code = service_ask(ctl, json_object(), &answer), ended;
	bool is_left;

	if (code != CTL_OK)
		return code;
	is_left = json_array_size(json_object_get(answer, "left")) > 0;
	if (!ctl->options->json &&
	    print_sentences(answer, "done", "") + print_sentences(answer, "left", "not done: ") +
			    print_sentences(answer, "restart", "restart: ") ==
		    0)
		printf("nothing has changed\n");
	ended = service_end(ctl, answer);
	return ended == CTL_OK && is_left ? CTL_TARGET : ended;
}

/* ---- sessions ---- */

static void print_session(const json_t *session)
{
	const json_t *unit;

	printf("%" PRIu64 " %s %s", service_number(session, "session"),
	       service_text(session, "initiator"), service_text(session, "address"));
	for (size_t i = 0; (unit = service_item(session, "units", i)); i++)
		printf("%s%" JSON_INTEGER_FORMAT, i ? "," : " LUN ", json_integer_value(unit));
	putchar('\n');
}

int verb_session_ls(struct ctl *ctl)
{
	const json_t *session;
	json_t *answer;
	int code = service_ask(ctl, json_object(), &answer);

	if (code != CTL_OK)
		return code;
	for (size_t i = 0; !ctl->options->json && (session = service_item(answer, "sessions", i));
	     i++)
		print_session(session);
	return service_end(ctl, answer);
}

int verb_session_kick(struct ctl *ctl)
{
	const char *which = ctl->arguments[0];
	json_t *request = json_object(), *answer;
	uint64_t number;
	int code;

	if (ctl_parse_number(which, UINT16_MAX, &number) == 0)
		json_object_set_new(request, "session", json_integer((json_int_t)number));
	else
		json_object_set_new(request, "initiator", json_string_nocheck(which));
	code = service_ask(ctl, request, &answer);
	return code == CTL_OK ? service_end(ctl, answer) : code;
}

/* ---- units ---- */

static int take_lun(struct ctl *ctl, json_t *request)
{
	uint64_t number;

	if (ctl_parse_number(ctl->arguments[0], UINT8_MAX, &number) || number == 0) {
		json_decref(request);
		return ctl_fail(ctl, CTL_USAGE, "%s: '%s' is no LUN, a number from 1 to 255",
				ctl->verb, ctl->arguments[0]);
	}
	json_object_set_new(request, "lun", json_integer((json_int_t)number));
	return CTL_OK;
}

int verb_lun_add(struct ctl *ctl)
{
	json_t *request = json_object(), *keys = json_array(), *answer;
	int code = take_lun(ctl, request);

	for (int i = 1; i < ctl->argument_count; i++)
		json_array_append_new(keys, json_string_nocheck(ctl->arguments[i]));
	if (code != CTL_OK) {
		json_decref(keys);
		return code;
	}
	json_object_set_new(request, "keys", keys);
	code = service_ask(ctl, request, &answer);
	return code == CTL_OK ? service_added(ctl, answer) : code;
}

int verb_lun_rm(struct ctl *ctl)
{
	json_t *request = json_pack("{s:b}", "force", ctl->options->force), *answer;
	int code = take_lun(ctl, request);

	if (code == CTL_OK)
		code = service_ask(ctl, request, &answer);
	if (code != CTL_OK)
		return code;
	if (!ctl->options->json && json_is_true(json_object_get(answer, "in_file")))
		printf("LUN %s comes back at the next start%s, unless you remove [lun %s] from "
		       "%s\n",
		       ctl->arguments[0],
		       json_is_true(json_object_get(answer, "needs_start")) ? "" : " or reload",
		       ctl->arguments[0], service_text(answer, "file"));
	return service_end(ctl, answer);
}

int verb_lun_resize(struct ctl *ctl)
{
	json_t *request = json_object(), *answer;
	uint64_t bytes;
	int code = take_lun(ctl, request);

	if (code != CTL_OK)
		return code;
	code = ctl_size(ctl, 1, "SIZE", &bytes);
	if (code != CTL_OK) {
		json_decref(request);
		return code;
	}
	json_object_set_new(request, "bytes", json_integer((json_int_t)bytes));
	code = service_ask(ctl, request, &answer);
	return code == CTL_OK ? service_end(ctl, answer) : code;
}

/* ---- devices ---- */

static void print_growth(const json_t *answer, const char *size)
{
	char texts[2][CTL_SIZE_TEXT];

	printf("%s has grown from %s to %s\n", service_text(answer, "image"),
	       ctl_format_size(service_number(answer, "bytes_before"), texts[0]),
	       ctl_format_size(service_number(answer, "bytes"), texts[1]));
	if (json_is_true(json_object_get(answer, "smaller_in_file")))
		printf("%s of %s has a smaller size, which the next start warns of: write "
		       "size = %s there\n",
		       service_text(answer, "section"), service_text(answer, "file"), size);
}

int verb_device_grow(struct ctl *ctl)
{
	json_t *answer;
	uint64_t bytes;
	int code = ctl_size(ctl, 1, "SIZE", &bytes);

	if (code != CTL_OK)
		return code;
	code = service_ask(ctl,
			   json_pack("{s:o,s:I}", "device", json_string(ctl->arguments[0]), "bytes",
				     (json_int_t)bytes),
			   &answer);
	if (code != CTL_OK)
		return code;
	if (!ctl->options->json)
		print_growth(answer, ctl->arguments[1]);
	return service_end(ctl, answer);
}
