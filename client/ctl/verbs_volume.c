/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* volume: volumes of the devices that the service on this host has, and units of their past. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/ctl/service.h"
#include "wire/wire.h"

/* What keeps it over a restart: the service forgets it. */
int service_added(const struct ctl *ctl, json_t *answer)
{
	const char *file = service_text(answer, "file");

	if (!ctl->options->json) {
		printf("LUN %" PRIu64 " %s %s\n\n", service_number(answer, "lun"),
		       service_text(answer, "type"), service_text(answer, "url"));
		if (file[0])
			printf("It is gone after a restart, unless you put this into %s:\n\n%s",
			       file, service_text(answer, "section"));
		else
			printf("It is gone after a restart: this service has no file.\n");
	}
	return service_end(ctl, answer);
}

static json_t *begin(const struct ctl *ctl)
{
	json_t *request = json_object();

	if (ctl->options->device)
		json_object_set_new(request, "device", json_string_nocheck(ctl->options->device));
	return request;
}

/* Sends it if `code` is CTL_OK; the answer needs no lines. */
static int ask(struct ctl *ctl, int code, json_t *request)
{
	json_t *answer;

	if (code != CTL_OK) {
		json_decref(request);
		return code;
	}
	code = service_ask(ctl, request, &answer);
	return code == CTL_OK ? service_end(ctl, answer) : code;
}

static int take_number(const struct ctl *ctl, json_t *request, const char *name, const char *text)
{
	uint64_t number;

	if (ctl_parse_number(text, OSD_LAST_PARTITION_ID, &number) || number < OSD_FIRST_ID)
		return ctl_fail(ctl, CTL_USAGE, "%s: '%s' is no partition; IDs begin at 0x10000",
				ctl->verb, text);
	json_object_set_new(request, name, json_integer((json_int_t)number));
	return CTL_OK;
}

static int take_size(const struct ctl *ctl, json_t *request, int index)
{
	uint64_t bytes;
	int code = ctl_size(ctl, index, "SIZE", &bytes);

	if (code == CTL_OK)
		json_object_set_new(request, "bytes", json_integer((json_int_t)bytes));
	return code;
}

/* ---- ls ---- */

static void print_volume(const json_t *volume)
{
	char bytes[CTL_SIZE_TEXT], used[CTL_SIZE_TEXT];
	const json_t *unit;

	printf("%s %s %s, %s used", service_text(volume, "partition"),
	       service_text(volume, "device"),
	       ctl_format_size(service_number(volume, "bytes"), bytes),
	       ctl_format_size(service_number(volume, "used_bytes"), used));
	if (json_object_get(volume, "clone_of"))
		printf(", clone of %s", service_text(volume, "clone_of"));
	if (json_is_true(json_object_get(volume, "read_only")))
		printf(", read-only");
	for (size_t i = 0; (unit = service_item(volume, "units", i)); i++)
		printf("%s%" JSON_INTEGER_FORMAT, i ? "," : ", LUN ", json_integer_value(unit));
	putchar('\n');
}

int verb_volume_ls(struct ctl *ctl)
{
	const json_t *volume;
	json_t *answer;
	int code = service_ask(ctl, begin(ctl), &answer);

	if (code != CTL_OK)
		return code;
	for (size_t i = 0; !ctl->options->json && (volume = service_item(answer, "volumes", i));
	     i++)
		print_volume(volume);
	if (!ctl->options->json && json_is_true(json_object_get(answer, "incomplete")))
		printf("... and perhaps more: --device NAME lists those of one device\n");
	return service_end(ctl, answer);
}

/* ---- create, rm, resize ---- */

int verb_volume_create(struct ctl *ctl)
{
	json_t *request = begin(ctl), *answer;
	int code = take_size(ctl, request, 0);

	json_object_set_new(request, "block_bytes",
			    json_integer((json_int_t)ctl->options->block_bytes));
	json_object_set_new(request, "partition", json_integer(0));
	if (code == CTL_OK && ctl->argument_count > 1)
		code = take_number(ctl, request, "partition", ctl->arguments[1]);
	if (code != CTL_OK) {
		json_decref(request);
		return code;
	}
	code = service_ask(ctl, request, &answer);
	if (code != CTL_OK)
		return code;
	if (!ctl->options->json)
		printf("%s\n", service_text(answer, "partition"));
	return service_end(ctl, answer);
}

int verb_volume_rm(struct ctl *ctl)
{
	json_t *request = begin(ctl);

	return ask(ctl, take_number(ctl, request, "partition", ctl->arguments[0]), request);
}

int verb_volume_resize(struct ctl *ctl)
{
	json_t *request = begin(ctl);
	int code = take_number(ctl, request, "partition", ctl->arguments[0]);

	if (code == CTL_OK)
		code = take_size(ctl, request, 1);
	return ask(ctl, code, request);
}

/* ---- expose ---- */

static int take_moment(struct ctl *ctl, json_t *request, const char *text)
{
	struct osd_client_moment moment;
	const char *kind = "now";
	int code = ctl_parse_moment(ctl, text, &moment);

	if (code != CTL_OK)
		return code;
	switch (moment.kind) {
	case OSD_CLIENT_NOW:
		break;
	case OSD_CLIENT_AT_NAME:
		json_object_set_new(request, "version", json_string_nocheck(moment.name));
		return CTL_OK;
	case OSD_CLIENT_AT_VERSION:
		json_object_set_new(request, "version", json_sprintf("%" PRIu64, moment.value));
		return CTL_OK;
	case OSD_CLIENT_AT_TIME:
		kind = "time";
		break;
	case OSD_CLIENT_AT_SEQUENCE:
		kind = "sequence";
		break;
	default:
		return ctl_fail(ctl, CTL_USAGE, "%s: '%s' is no moment of a volume", ctl->verb,
				text);
	}
	json_object_set_new(request, "kind", json_string(kind));
	json_object_set_new(request, "value", json_integer((json_int_t)moment.value));
	return CTL_OK;
}

int verb_volume_expose(struct ctl *ctl)
{
	char *moment = strchr(ctl->arguments[0], '@');
	json_t *request = begin(ctl), *answer;
	int code = CTL_OK;

	if (moment)
		*moment++ = '\0';
	if (moment && ctl->options->at)
		code = ctl_fail(ctl, CTL_USAGE, "%s: '@%s' and --at are two moments", ctl->verb,
				moment);
	if (code == CTL_OK)
		code = take_number(ctl, request, "partition", ctl->arguments[0]);
	if (code == CTL_OK)
		code = take_moment(ctl, request,
				   moment             ? moment
				   : ctl->options->at ? ctl->options->at
						      : "now");
	if (ctl->options->lun)
		json_object_set_new(request, "lun", json_integer((json_int_t)ctl->options->lun));
	json_object_set_new(request, "writable", json_boolean(ctl->options->writable));
	if (code != CTL_OK) {
		json_decref(request);
		return code;
	}
	code = service_ask(ctl, request, &answer);
	if (code != CTL_OK)
		return code;
	if (!ctl->options->json && json_object_get(answer, "partition"))
		printf("volume %s is a clone, which stays when the unit is removed: `volume rm` "
		       "ends it\n",
		       service_text(answer, "partition"));
	return service_added(ctl, answer);
}
