/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* drop: a version, ranges of them, or all that a plan does not keep. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/versions.h"

#define PARAMETERS_BYTES 512

/* ---- one version ---- */

/*
 * The version that was made at a time, as `versions` shows it, with or without milliseconds. It
 * must be exact, because a dropped version does not come back.
 */
static int version_made_at(struct ctl *ctl, struct osd_client_address address,
			   struct osd_client_moment *moment)
{
	uint64_t first_ms = moment->value;
	uint64_t last_ms = first_ms + (first_ms % 1000 == 0 ? 999 : 0);
	struct ctl_versions versions = { 0 };
	uint64_t found = 0, number = 0;
	char time[CTL_TIME_TEXT];
	int code = ctl_load_versions(ctl, address, &versions);

	for (size_t i = 0; i < versions.count; i++) {
		if (versions.list[i].ms < first_ms || versions.list[i].ms > last_ms)
			continue;
		found++;
		number = versions.list[i].number;
	}
	ctl_free_versions(&versions);
	if (code != CTL_OK)
		return code;
	if (found == 0)
		return ctl_fail(ctl, CTL_NOT_FOUND,
				"drop: no version was made at %s; `muninnctl versions` shows when "
				"each was",
				ctl_format_time(first_ms, time));
	if (found > 1)
		return ctl_fail(ctl, CTL_USAGE,
				"drop: %" PRIu64 " versions were made in the second of %s; give "
				"milliseconds, or the number or name of one (`muninnctl versions`)",
				found, ctl_format_time(first_ms, time));
	*moment = (struct osd_client_moment){ .kind = OSD_CLIENT_AT_VERSION, .value = number };
	return CTL_OK;
}

/* `versions` of a partition also shows versions of the device, which must be dropped at 0. */
static int fail_drop(struct ctl *ctl, struct osd_client_address address,
		     const struct osd_client_moment *moment, const struct osd_client_error *error)
{
	char number[CTL_MOMENT_TEXT];

	if (error->result != -EINVAL || !error->has_sense || !address.partition)
		return ctl_fail_moment(ctl, address, moment, error);
	snprintf(number, sizeof(number), "%" PRIu64, moment->value);
	return ctl_fail(ctl, CTL_USAGE,
			"drop: '%s' is a version of the device, not of partition 0x%" PRIx64
			" alone; `muninnctl drop URL 0 %s` drops it for all partitions",
			moment->kind == OSD_CLIENT_AT_NAME ? moment->name : number,
			address.partition,
			moment->kind == OSD_CLIENT_AT_NAME ? moment->name : number);
}

/* As it is written: a number, a name, or the time when it was made. */
static int find_version(struct ctl *ctl, struct osd_client_address address, int index,
			struct osd_client_moment *moment)
{
	int code = ctl_moment(ctl, index, moment);

	if (code == CTL_OK && moment->kind == OSD_CLIENT_AT_TIME)
		code = version_made_at(ctl, address, moment);
	if (code == CTL_OK && moment->kind != OSD_CLIENT_AT_VERSION &&
	    moment->kind != OSD_CLIENT_AT_NAME)
		return ctl_fail(ctl, CTL_USAGE,
				"drop needs a version: its number, its name, or the time when it "
				"was made");
	return code;
}

/* `of_many`: a failure says which it is. */
static int drop_moment(struct ctl *ctl, struct osd_client_address address,
		       const struct osd_client_moment *moment, bool of_many)
{
	uint8_t parameters[PARAMETERS_BYTES];
	struct osd_item_writer writer;
	struct osd_client_error error;
	int code;

	osd_items_begin(&writer, parameters, sizeof(parameters));
	code = ctl_add_moment(ctl, &writer, 0, moment);
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	if (osd_client_execute(ctl->client, OSD_FUNCTION_DROP, address, writer.data, writer.length,
			       NULL, NULL, &error) < 0)
		return of_many && ctl_exit_of(&error) != CTL_INTERRUPTED
			       ? ctl_fail(ctl, ctl_exit_of(&error), "version %" PRIu64 ": %s",
					  moment->value, error.sentence.text)
			       : fail_drop(ctl, address, moment, &error);
	return CTL_OK;
}

static int drop_one(struct ctl *ctl, struct osd_client_address address)
{
	struct osd_client_moment moment;
	char text[OSD_CLIENT_ADDRESS_TEXT];
	int code = find_version(ctl, address, 1, &moment);

	if (code == CTL_OK && ctl->options->dry_run)
		return ctl_fail(ctl, CTL_USAGE, "drop: --dry-run is for ranges and plans");
	if (code == CTL_OK)
		code = drop_moment(ctl, address, &moment, false);
	if (code != CTL_OK || !ctl->options->json)
		return code;
	return ctl_print_json(
		stdout, json_pack("{s:s}", "changed", osd_client_format_address(address, text)));
}

/* ---- many ---- */

/* Those of a partition; the device's, which are dropped there, are left out. */
static int load_versions(struct ctl *ctl, struct osd_client_address address,
			 struct ctl_versions *versions)
{
	int code = ctl_load_versions(ctl, address, versions);
	size_t own = 0;

	for (size_t i = 0; address.partition && i < versions->count; i++)
		if (versions->list[i].number < OSD_DEVICE_VERSION_FIRST)
			versions->list[own++] = versions->list[i];
	if (address.partition)
		versions->count = own;
	return code;
}

/* ---- ranges: FROM..TO, each a version or a time, or missing ---- */

/* An end of a range as a moment; `text` has `length` bytes. NOW: it is missing. */
static int parse_end(struct ctl *ctl, const char *text, size_t length,
		     struct osd_client_moment *moment)
{
	char end[OSD_VERSION_NAME_MAX + 1] = "";
	struct error_text sentence;

	*moment = (struct osd_client_moment){ .kind = OSD_CLIENT_NOW };
	if (length == 0)
		return CTL_OK;
	if (length < sizeof(end))
		memcpy(end, text, length);
	if (osd_client_parse_moment(end, ctl_now_ms(), moment, &sentence) < 0)
		return ctl_fail(ctl, CTL_USAGE, "%s", sentence.text);
	if (moment->kind != OSD_CLIENT_AT_VERSION && moment->kind != OSD_CLIENT_AT_NAME &&
	    moment->kind != OSD_CLIENT_AT_TIME)
		return ctl_fail(ctl, CTL_USAGE,
				"drop: '%s' is no end of a range: a number, a name or a time is",
				end);
	return CTL_OK;
}

/*
 * The index of the first (`is_last`: behind the last) version of a range. A number or a name must
 * be one of them; a time need not.
 */
static int find_end(struct ctl *ctl, const struct ctl_versions *versions,
		    const struct osd_client_moment *moment, bool is_last, size_t *index)
{
	size_t at = 0;

	if (moment->kind == OSD_CLIENT_NOW) {
		*index = is_last ? versions->count : 0;
		return CTL_OK;
	}
	for (; at < versions->count; at++) {
		const struct ctl_version *version = &versions->list[at];

		if (moment->kind == OSD_CLIENT_AT_TIME
			    ? (is_last ? version->ms > moment->value : version->ms >= moment->value)
		    : moment->kind == OSD_CLIENT_AT_NAME ? strcmp(version->name, moment->name) == 0
							 : version->number == moment->value)
			break;
	}
	if (at == versions->count && moment->kind == OSD_CLIENT_AT_NAME)
		return ctl_fail(ctl, CTL_NOT_FOUND, "drop: there is no version '%s' here",
				moment->name);
	if (at == versions->count && moment->kind == OSD_CLIENT_AT_VERSION)
		return ctl_fail(ctl, CTL_NOT_FOUND, "drop: there is no version %" PRIu64 " here",
				moment->value);
	*index = at + (is_last && moment->kind != OSD_CLIENT_AT_TIME);
	return CTL_OK;
}

/* A name may have two dots itself: then it is that version. */
static int choose_range(struct ctl *ctl, struct ctl_versions *versions, const char *text)
{
	const char *dots = strstr(text, "..");
	struct ctl_version *named = dots ? ctl_find_version(versions, 0, text) : NULL;
	struct osd_client_moment from, to;
	size_t first, end;
	int code;

	if (named) {
		named->is_chosen = true;
		return CTL_OK;
	}
	if (!dots) { /* one of several */
		code = parse_end(ctl, text, strlen(text), &from);
		to = from;
	} else {
		code = parse_end(ctl, text, (size_t)(dots - text), &from);
		if (code == CTL_OK)
			code = parse_end(ctl, dots + 2, strlen(dots + 2), &to);
	}
	if (code == CTL_OK && !dots && from.kind == OSD_CLIENT_AT_TIME)
		return ctl_fail(ctl, CTL_USAGE,
				"drop: '%s' is a time; of several versions give numbers or names, "
				"or a range, as in 2026-11-01..2026-11-08",
				text);
	if (code == CTL_OK)
		code = find_end(ctl, versions, &from, false, &first);
	if (code == CTL_OK)
		code = find_end(ctl, versions, &to, true, &end);
	if (code == CTL_OK && first > end)
		return ctl_fail(ctl, CTL_USAGE, "drop: '%s' ends before it begins", text);
	for (size_t i = first; code == CTL_OK && i < end; i++)
		versions->list[i].is_chosen = true;
	return code;
}

/* ---- plans ---- */

static bool has_plan(const struct ctl_options *options)
{
	bool has = options->keep_last > 0;

	for (int kind = 0; kind < OSD_SCHEDULE_KINDS; kind++)
		has = has || options->keep[kind] > 0;
	return has;
}

/* A name that somebody has given; those that the target gives by time are none. */
static bool has_own_name(const struct ctl_version *version)
{
	return version->name[0] && !osd_version_name_is_scheduled((const uint8_t *)version->name,
								  strlen(version->name));
}

/* From new to old, the newest of each of the last N hours, days or the like that have one. */
static void keep_periods(struct ctl_versions *versions, enum osd_schedule_kind kind, uint64_t most)
{
	uint64_t kept = 0, period = UINT64_MAX;

	for (size_t i = versions->count; i-- > 0 && kept < most;) {
		uint64_t began = osd_schedule_period(kind, versions->list[i].ms);

		if (began == period)
			continue;
		versions->list[i].is_chosen = false;
		period = began;
		kept++;
	}
}

static void choose_by_plan(struct ctl_versions *versions, const struct ctl_options *options)
{
	size_t last = versions->count;

	for (size_t i = 0; i < versions->count; i++)
		versions->list[i].is_chosen = !has_own_name(&versions->list[i]);
	for (uint64_t kept = 0; kept < options->keep_last && last > 0; kept++)
		versions->list[--last].is_chosen = false;
	for (int kind = 0; kind < OSD_SCHEDULE_KINDS; kind++)
		keep_periods(versions, (enum osd_schedule_kind)kind, options->keep[kind]);
}

/* ---- dropping them ---- */

static int tell(struct ctl_list *list, const struct ctl_version *version)
{
	char time[CTL_TIME_TEXT];

	ctl_format_time(version->ms, time);
	if (list->is_json)
		return ctl_list_add(list, ctl_json_with_text(json_pack("{s:I,s:s}", "version",
								       (json_int_t)version->number,
								       "time", time),
							     "name", version->name));
	printf("%5" PRIu64 "  %s  ", version->number, time);
	ctl_print_text(version->name);
	putchar('\n');
	return 0;
}

/* One that can't be dropped, as a clone stands on it, does not keep the others. */
static int drop_chosen(struct ctl *ctl, struct osd_client_address address,
		       const struct ctl_versions *versions)
{
	struct ctl_list list = ctl_list_of(ctl);
	int first_code = CTL_OK, code = CTL_OK;

	/* Without a connection nothing more can end; those that have are told all the same. */
	for (size_t i = 0; i < versions->count && code != CTL_CONNECTION && code != CTL_INTERRUPTED;
	     i++) {
		const struct osd_client_moment moment = { .kind = OSD_CLIENT_AT_VERSION,
							  .value = versions->list[i].number };

		if (!versions->list[i].is_chosen)
			continue;
		code = ctl->options->dry_run ? CTL_OK : drop_moment(ctl, address, &moment, true);
		if (code == CTL_OK && tell(&list, &versions->list[i]) < 0)
			return ctl_fail(ctl, CTL_LOCAL, "drop: out of memory");
		if (first_code == CTL_OK || code == CTL_CONNECTION || code == CTL_INTERRUPTED)
			first_code = code;
	}
	code = ctl_list_end(&list, ctl);
	return first_code == CTL_OK ? code : first_code;
}

static size_t count_chosen(const struct ctl_versions *versions)
{
	size_t count = 0;

	for (size_t i = 0; i < versions->count; i++)
		count += versions->list[i].is_chosen;
	return count;
}

static int drop_many(struct ctl *ctl, struct osd_client_address address)
{
	struct ctl_versions versions = { 0 };
	char where[64] = "the device";
	size_t chosen = 0;
	int code = load_versions(ctl, address, &versions);

	if (code == CTL_OK && ctl->argument_count == 1)
		choose_by_plan(&versions, ctl->options);
	for (int i = 1; i < ctl->argument_count && code == CTL_OK; i++)
		code = choose_range(ctl, &versions, ctl->arguments[i]);
	chosen = count_chosen(&versions);
	if (address.partition)
		snprintf(where, sizeof(where), "partition 0x%" PRIx64, address.partition);
	if (code == CTL_OK && chosen > 0 && !ctl->options->dry_run)
		code = ctl_confirm(ctl, "%zu of %zu versions of %s end for good", chosen,
				   versions.count, where);
	if (code == CTL_OK)
		code = drop_chosen(ctl, address, &versions);
	ctl_free_versions(&versions);
	return code;
}

int verb_drop(struct ctl *ctl)
{
	struct osd_client_address address;
	bool plan = has_plan(ctl->options);
	int code = ctl_scope_address(ctl, 0, &address);

	if (code != CTL_OK)
		return code;
	if (plan && ctl->argument_count > 1)
		return ctl_fail(ctl, CTL_USAGE,
				"drop: either versions, or what to keep of all of them");
	if (!plan && ctl->argument_count == 1)
		return ctl_fail(
			ctl, CTL_USAGE,
			"drop: a version is missing, or what to keep, as in --keep-daily 7");
	if (ctl->argument_count == 2 && !strstr(ctl->arguments[1], ".."))
		return drop_one(ctl, address);
	return drop_many(ctl, address);
}
