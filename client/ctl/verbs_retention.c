/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* How much history is kept: retention. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/ctl/ctl.h"
#include "client/ctl/items.h"

#define PARAMETERS_BYTES 512

static const char *const retention_names[] = {
	[OSD_RETAIN_SNAPSHOTS] = "snapshots",
	[OSD_RETAIN_ALL] = "all",
	[OSD_RETAIN_NONE] = "none",
};

/* Longer than any history; the target takes no longer time. */
#define DURATION_MS_MAX ((UINT64_C(1) << 48) - 1)

/* Reads "24h", "7d", "0" as milliseconds. -EINVAL: it is no duration. -ERANGE: too long. */
static int parse_duration(const char *text, uint64_t *ms)
{
	struct osd_client_moment moment;
	struct error_text error;
	char before[32];
	const uint64_t now = UINT64_MAX / 2;

	*ms = 0;
	if (strcmp(text, "0") == 0)
		return 0;
	if (snprintf(before, sizeof(before), "-%s", text) >= (int)sizeof(before) ||
	    osd_client_parse_moment(before, now, &moment, &error) < 0)
		return -EINVAL;
	*ms = now - moment.value;
	return *ms <= DURATION_MS_MAX ? 0 : -ERANGE;
}

/*
 * Adds one part of a policy. Refuses a part that was given before, because nobody knows which one
 * should count.
 */
static int add_part(struct ctl *ctl, const char *word, struct osd_item_writer *writer, uint16_t tag,
		    uint64_t value)
{
	struct osd_item before;

	if (osd_item_find(writer->data, writer->length, tag, &before) == 0)
		return ctl_fail(ctl, CTL_USAGE,
				"retention: '%s' contradicts what stands before it; give each "
				"part of a policy once",
				word);
	osd_item_add_number(writer, tag, value);
	return CTL_OK;
}

/* When a lock ends. */
static int take_lock(struct ctl *ctl, const char *text, struct osd_item_writer *writer)
{
	const uint64_t now = ctl_now_ms();
	struct osd_client_moment moment;
	struct error_text error;
	char wanted[CTL_TIME_TEXT], present[CTL_TIME_TEXT];

	if (osd_client_parse_moment(text, now, &moment, &error) < 0)
		return ctl_fail(ctl, CTL_USAGE,
				"retention: lock-until wants a time, as 2027-01-31 or "
				"2027-01-31T18:00:00Z: %s",
				error.text);
	if (moment.kind != OSD_CLIENT_AT_TIME)
		return ctl_fail(ctl, CTL_USAGE,
				"retention: lock-until: '%s' is no time; for instance 2027-01-31",
				text);
	/*
	 * Only the target's administrator can end a lock. A time that is over would look as if this
	 * did.
	 */
	if (moment.value <= now)
		return ctl_fail(
			ctl, CTL_USAGE,
			"retention: lock-until=%s lies in the past: it is %s, and now is %s; a "
			"lock ends in the future",
			text, ctl_format_time(moment.value, wanted), ctl_format_time(now, present));
	return add_part(ctl, text, writer, OSD_ITEM_LOCK_UNTIL, moment.value);
}

/* "keep-all=24h" and the like into parameters. */
static int take_policy(struct ctl *ctl, const char *word, struct osd_item_writer *writer)
{
	static const struct {
		const char *name;
		uint16_t tag;
	} durations[] = {
		{ "keep-all=", OSD_ITEM_KEEP_ALL },
		{ "interval=", OSD_ITEM_KEEP_INTERVAL },
		{ "interval-for=", OSD_ITEM_KEEP_INTERVAL_FOR },
	};
	uint64_t value;

	for (uint64_t kind = 0; kind <= OSD_RETAIN_NONE; kind++)
		if (strcmp(word, retention_names[kind]) == 0)
			return add_part(ctl, word, writer, OSD_ITEM_KIND, kind);
	for (size_t i = 0; i < sizeof(durations) / sizeof(durations[0]); i++) {
		size_t length = strlen(durations[i].name);
		int result;

		if (strncmp(word, durations[i].name, length) != 0)
			continue;
		result = parse_duration(word + length, &value);
		if (result < 0)
			return ctl_fail(
				ctl, CTL_USAGE, "retention: %s'%s' is %s", durations[i].name,
				word + length,
				result == -ERANGE
					? "longer than 8900 years"
					: "no duration; for instance 24h, 90min, 7d, 2w, or "
					  "0 (units: ms, s, min, h, d, w)");
		return add_part(ctl, word, writer, durations[i].tag, value);
	}
	if (strncmp(word, "lock-until=", 11) == 0)
		return take_lock(ctl, word + 11, writer);
	return ctl_fail(ctl, CTL_USAGE,
			"retention: '%s' is none of snapshots, all, none, keep-all=, interval=, "
			"interval-for=, lock-until=",
			word);
}

static void print_duration(const char *name, uint64_t ms)
{
	if (ms % 1000)
		printf("%-13s %" PRIu64 " ms\n", name, ms);
	else if (ms)
		printf("%-13s %" PRIu64 " s\n", name, ms / 1000);
}

static int retention_report(const struct ctl *ctl, const struct items *found)
{
	uint64_t kind = items_number(found, OSD_ITEM_KIND),
		 lock = items_number(found, OSD_ITEM_LOCK_UNTIL);
	const char *name = kind <= OSD_RETAIN_NONE ? retention_names[kind] : "unknown";
	char horizon[CTL_TIME_TEXT], until[CTL_TIME_TEXT];

	ctl_format_time(items_number(found, OSD_ITEM_HORIZON), horizon);
	ctl_format_time(lock, until);
	if (ctl->options->json)
		return ctl_print_json(
			stdout,
			json_pack("{s:s,s:I,s:I,s:I,s:s?,s:s,s:I,s:I}", "retention", name,
				  "keep_all_ms", (json_int_t)items_number(found, OSD_ITEM_KEEP_ALL),
				  "interval_ms",
				  (json_int_t)items_number(found, OSD_ITEM_KEEP_INTERVAL),
				  "interval_for_ms",
				  (json_int_t)items_number(found, OSD_ITEM_KEEP_INTERVAL_FOR),
				  "locked_until", lock ? until : NULL, "reaches_back_to", horizon,
				  "versions", (json_int_t)items_number(found, OSD_ITEM_COUNT),
				  "rollbacks",
				  (json_int_t)items_number(found, OSD_ITEM_ROLLBACKS)));
	printf("%-13s %s\n", "retention", name);
	print_duration("keep all", items_number(found, OSD_ITEM_KEEP_ALL));
	print_duration("interval", items_number(found, OSD_ITEM_KEEP_INTERVAL));
	print_duration("interval for", items_number(found, OSD_ITEM_KEEP_INTERVAL_FOR));
	printf("%-13s %s\n", "locked until", lock ? until : "not locked");
	printf("%-13s %s\n", "reaches back", horizon);
	printf("%-13s %" PRIu64 "\n%-13s %" PRIu64 "\n", "versions",
	       items_number(found, OSD_ITEM_COUNT), "rollbacks",
	       items_number(found, OSD_ITEM_ROLLBACKS));
	return ctl_end_output(ctl);
}

/* The part of a policy: the given one, or else the present one. */
static uint64_t part_of(const struct osd_item_writer *given, const struct items *now, uint16_t tag)
{
	struct osd_item item;
	uint64_t value;

	if (osd_item_find(given->data, given->length, tag, &item) == 0 &&
	    osd_item_number(&item, &value) == 0)
		return value;
	return items_number(now, tag);
}

/* The target only says that it is no policy. Finds out why. */
static int fail_policy(struct ctl *ctl, struct osd_client_address address,
		       const struct osd_item_writer *given, const struct osd_client_error *error)
{
	struct items now = { 0 };
	struct osd_client_error outcome;
	bool interval, interval_for;

	if (error->result != -EINVAL || !error->has_sense ||
	    osd_client_execute(ctl->client, OSD_FUNCTION_RETENTION, address, NULL, 0, items_take,
			       &now, &outcome) < 0)
		return ctl_fail_command(ctl, error);
	interval = part_of(given, &now, OSD_ITEM_KEEP_INTERVAL) != 0;
	interval_for = part_of(given, &now, OSD_ITEM_KEEP_INTERVAL_FOR) != 0;
	if (interval == interval_for)
		return ctl_fail_command(ctl, error);
	return ctl_fail(ctl, CTL_USAGE,
			"retention: %s= is missing: one moment each interval=, kept for "
			"interval-for=, as in interval=1h interval-for=1w; both 0 keep none",
			interval ? "interval-for" : "interval");
}

int verb_retention(struct ctl *ctl)
{
	struct osd_client_address address;
	struct osd_client_error error;
	uint8_t parameters[PARAMETERS_BYTES];
	struct osd_item_writer writer;
	struct items found = { 0 };
	bool sets = ctl->argument_count > 1;
	int code = ctl_scope_address(ctl, 0, &address);

	osd_items_begin(&writer, parameters, sizeof(parameters));
	for (int i = 1; code == CTL_OK && i < ctl->argument_count; i++)
		code = take_policy(ctl, ctl->arguments[i], &writer);
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	if (osd_client_execute(ctl->client,
			       sets ? OSD_FUNCTION_SET_RETENTION : OSD_FUNCTION_RETENTION, address,
			       parameters, writer.length, items_take, &found, &error) < 0)
		return sets ? fail_policy(ctl, address, &writer, &error)
			    : ctl_fail_command(ctl, &error);
	return retention_report(ctl, &found);
}
