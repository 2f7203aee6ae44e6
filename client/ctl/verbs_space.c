/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* space: what takes the space, and what would free some. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/growth.h"
#include "client/ctl/items.h"
#include "client/ctl/space.h"
#include "client/ctl/versions.h"

#define PARAMETERS_BYTES 2048

struct wanted {
	struct ctl *ctl;
	struct osd_client_address address;
	struct osd_item_writer writer;
	uint8_t parameters[PARAMETERS_BYTES];
	bool frees;                     /* a question of what would */
	struct osd_client_moment since; /* OSD_CLIENT_NOW: none is given */
	struct ctl_versions versions;
	struct growth growth;
};

/* ---- versions ---- */

static int fail_version(const struct wanted *wanted, const char *text)
{
	return ctl_fail(wanted->ctl, CTL_NOT_FOUND,
			"space: there is no version '%s'; `muninnctl versions` lists them", text);
}

/* without=VERSION: a number or a name of those that the partition, or the device, can drop. */
static int take_without(struct wanted *wanted, const char *text)
{
	const struct ctl_version *version;
	uint64_t number = 0;

	if (ctl_parse_number(text, UINT16_MAX, &number) < 0)
		number = 0;
	version = ctl_find_version(&wanted->versions, number, text);
	if (!version)
		return fail_version(wanted, text);
	if (wanted->address.partition && version->number >= OSD_DEVICE_VERSION_FIRST)
		return ctl_fail(wanted->ctl, CTL_USAGE,
				"space: '%s' is a version of the device: ask with 0 in place of "
				"the partition",
				text);
	wanted->frees = true;
	osd_item_add_number(&wanted->writer, OSD_ITEM_VERSION, version->number);
	return CTL_OK;
}

/* ---- arguments ---- */

/* since=MOMENT: as if no moment before it were kept. */
static int take_since(struct wanted *wanted, const char *text)
{
	int code = ctl_parse_moment(wanted->ctl, text, &wanted->since);

	if (code != CTL_OK)
		return code;
	/* NOW stands for no moment. */
	if (wanted->since.kind == OSD_CLIENT_NOW)
		wanted->since = (struct osd_client_moment){ .kind = OSD_CLIENT_AT_TIME,
							    .value = ctl_now_ms() };
	if (wanted->since.kind == OSD_CLIENT_AT_NAME &&
	    !ctl_find_version(&wanted->versions, 0, wanted->since.name))
		return fail_version(wanted, text);
	wanted->frees = true;
	return ctl_add_moment(wanted->ctl, &wanted->writer, OSD_ITEM_FROM, &wanted->since);
}

static int take_pages(struct wanted *wanted, const char *text)
{
	uint64_t pages = INT64_MAX;

	if (strcmp(text, "all") != 0 &&
	    (ctl_parse_number(text, INT64_MAX, &pages) < 0 || pages == 0))
		return ctl_fail(wanted->ctl, CTL_USAGE, "space: pages=%s: a number, or all", text);
	osd_item_add_number(&wanted->writer, OSD_ITEM_COUNT, pages);
	return CTL_OK;
}

static int take_word(struct wanted *wanted, const char *word, uint32_t *drops)
{
	if (strncmp(word, "without=", 8) == 0) {
		if (++*drops > OSD_SPACE_DROPS_MAX)
			return ctl_fail(wanted->ctl, CTL_USAGE,
					"space: at most %d versions at once", OSD_SPACE_DROPS_MAX);
		return take_without(wanted, word + 8);
	}
	if (strncmp(word, "since=", 6) == 0)
		return take_since(wanted, word + 6);
	if (strncmp(word, "pages=", 6) == 0)
		return take_pages(wanted, word + 6);
	return ctl_fail(wanted->ctl, CTL_USAGE,
			"space: '%s' is none of without=VERSION, since=MOMENT, pages=N", word);
}

/* Names of partitions may have a =, too. */
static bool is_word(const char *text)
{
	return strncmp(text, "without=", 8) == 0 || strncmp(text, "since=", 6) == 0 ||
	       strncmp(text, "pages=", 6) == 0;
}

static int take_arguments(struct wanted *wanted)
{
	struct ctl *ctl = wanted->ctl;
	bool has_address = ctl->argument_count > 0 && !is_word(ctl->arguments[0]);
	uint32_t drops = 0;
	int code = CTL_OK;

	osd_items_begin(&wanted->writer, wanted->parameters, sizeof(wanted->parameters));
	if (has_address)
		code = ctl_scope_address(ctl, 0, &wanted->address);
	code = ctl_present(ctl, code, wanted->address);
	if (code == CTL_OK)
		code = ctl_load_versions(ctl, wanted->address, &wanted->versions);
	for (int i = has_address; code == CTL_OK && i < ctl->argument_count; i++)
		code = take_word(wanted, ctl->arguments[i], &drops);
	return code;
}

/* ---- the report ---- */

static uint64_t sum_of(const struct space_part *part)
{
	return part->live + part->kept + part->history + part->reclaimable;
}

/* What records do not take of what is used: the index. */
static uint64_t index_of(const struct space *space)
{
	return space->used > space->records ? space->used - space->records : 0;
}

/* What can be written before writing is refused. */
static uint64_t available_of(const struct space *space)
{
	uint64_t free = space->capacity > space->used ? space->capacity - space->used : 0;

	return free + space->all.history + space->all.reclaimable;
}

static uint64_t reserved_of(const struct space *space)
{
	return space->device > space->capacity ? space->device - space->capacity : 0;
}

static const char *name_of(const struct space_part *part, char text[24])
{
	static const char *const names[] = {
		[OSD_SPACE_DEVICE] = "device",
		[OSD_SPACE_REMOVED] = "removed",
		[OSD_SPACE_OTHERS] = "others",
	};

	if (part->kind != OSD_SPACE_PARTITION && part->kind <= OSD_SPACE_OTHERS)
		return names[part->kind];
	snprintf(text, 24, "0x%" PRIx64, part->partition);
	return text;
}

static void print_row(const char *name, const struct space_part *part)
{
	const uint64_t values[] = { sum_of(part), part->live, part->kept, part->history,
				    part->reclaimable };
	char size[CTL_SIZE_TEXT];

	printf("%-16s", name);
	for (size_t n = 0; n < sizeof(values) / sizeof(values[0]); n++)
		printf(" %11s", ctl_format_size(values[n], size));
	putchar('\n');
}

static void print_fact(const char *name, uint64_t bytes)
{
	char size[CTL_SIZE_TEXT];

	printf("%-16s %11s\n", name, ctl_format_size(bytes, size));
}

static void print_versions(const struct wanted *wanted, const struct space *space)
{
	if (wanted->versions.count)
		printf("\n%-7s  %-24s  %11s  %s\n", "VERSION", "MADE", "ALONE", "NAME");
	for (size_t n = 0; n < wanted->versions.count; n++) {
		const struct ctl_version *version = &wanted->versions.list[n];
		char time[CTL_TIME_TEXT], size[CTL_SIZE_TEXT];

		printf("%7" PRIu64 "  %-24s  %11s  ", version->number,
		       ctl_format_time(version->ms, time),
		       ctl_format_size(space->own[version->number % SPACE_VERSIONS], size));
		ctl_print_text(version->name);
		putchar('\n');
	}
}

/* "growth  3.1 GiB a day, by the last 17.0 hours; full in about 40 days" */
static void print_growth(const struct growth *growth, uint64_t available)
{
	const double days = growth_days_until_full(growth, available);
	const bool tells_days = growth->span_ms >= GROWTH_SPAN_MS_MIN;
	const int64_t bytes = tells_days ? growth_of_a_day(growth) : growth->bytes;
	char size[CTL_SIZE_TEXT];

	if (!growth->is_known)
		return;
	ctl_format_size((uint64_t)(bytes < 0 ? -bytes : bytes), size);
	printf("%-16s %s%*s", "growth", bytes < 0 ? "-" : "", bytes < 0 ? 10 : 11, size);
	if (tells_days)
		printf(" a day, by the last %.1f hours", (double)growth->span_ms / 3600000);
	else
		printf(" in the last %.1f minutes", (double)growth->span_ms / 60000);
	if (days >= 0)
		printf("; full in about %.*f days", days < 10 ? 1 : 0, days);
	putchar('\n');
}

static int print_report(const struct wanted *wanted, const struct space *space)
{
	char text[24], size[CTL_SIZE_TEXT];

	print_fact("capacity", space->capacity);
	print_fact("used", space->used);
	print_fact("index", index_of(space));
	print_fact("available", available_of(space));
	print_fact("reserved", reserved_of(space));
	print_growth(&wanted->growth, available_of(space));
	printf("\n%-16s %11s %11s %11s %11s %11s\n", "PARTITION", "USED", "LIVE", "KEPT", "HISTORY",
	       "RECLAIMABLE");
	for (size_t n = 0; n < space->part_count; n++)
		print_row(name_of(&space->parts[n], text), &space->parts[n]);
	print_versions(wanted, space);
	if (wanted->frees)
		printf("\nwould free %s\n", ctl_format_size(space->all.freed, size));
	if (space->looked_at < space->pages)
		printf("\nabout, by %" PRIu64 " of %" PRIu64 " pages\n", space->looked_at,
		       space->pages);
	return ctl_end_output(wanted->ctl);
}

/* ---- as JSON ---- */

static json_t *part_json(const struct space_part *part, const char *name)
{
	return json_pack("{s:s,s:I,s:I,s:I,s:I,s:I}", "partition", name, "used",
			 (json_int_t)sum_of(part), "live", (json_int_t)part->live, "kept",
			 (json_int_t)part->kept, "history", (json_int_t)part->history,
			 "reclaimable", (json_int_t)part->reclaimable);
}

/* Numbers as they are: null where nobody can tell. */
static json_t *growth_json(const struct growth *growth, uint64_t available)
{
	const double days = growth_days_until_full(growth, available);
	const bool tells_days = growth->is_known && growth->span_ms >= GROWTH_SPAN_MS_MIN;

	if (!growth->is_known)
		return json_null();
	return json_pack("{s:I,s:f,s:o,s:o}", "bytes", (json_int_t)growth->bytes, "seconds",
			 (double)growth->span_ms / 1000, "a_day",
			 tells_days ? json_integer((json_int_t)growth_of_a_day(growth))
				    : json_null(),
			 "full_in_days", days >= 0 ? json_real(days) : json_null());
}

static int print_json(const struct wanted *wanted, const struct space *space)
{
	json_t *parts = json_array(), *versions = json_array(), *object;
	char text[24], time[CTL_TIME_TEXT];

	for (size_t n = 0; n < space->part_count; n++)
		json_array_append_new(parts,
				      part_json(&space->parts[n], name_of(&space->parts[n], text)));
	for (size_t n = 0; n < wanted->versions.count; n++) {
		const struct ctl_version *version = &wanted->versions.list[n];

		json_array_append_new(
			versions,
			ctl_json_with_text(
				json_pack("{s:I,s:s,s:I}", "version", (json_int_t)version->number,
					  "time", ctl_format_time(version->ms, time), "alone",
					  (json_int_t)space->own[version->number % SPACE_VERSIONS]),
				"name", version->name));
	}
	object = json_pack(
		"{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:o}", "capacity", (json_int_t)space->capacity,
		"used", (json_int_t)space->used, "index", (json_int_t)index_of(space), "available",
		(json_int_t)available_of(space), "reserved", (json_int_t)reserved_of(space),
		"looked_at", (json_int_t)space->looked_at, "pages", (json_int_t)space->pages,
		"partitions", parts, "versions", versions);
	if (object)
		json_object_set_new(object, "growth",
				    growth_json(&wanted->growth, available_of(space)));
	if (object && wanted->frees)
		json_object_set_new(object, "frees", json_integer((json_int_t)space->all.freed));
	return ctl_print_json(stdout, object);
}

int verb_space(struct ctl *ctl)
{
	struct wanted *wanted = calloc(1, sizeof(*wanted));
	struct space space = { .parts = NULL };
	int code;

	if (!wanted)
		return ctl_fail(ctl, CTL_LOCAL, "space: no memory");
	wanted->ctl = ctl;
	code = take_arguments(wanted);
	if (code == CTL_OK)
		code = space_gather(&space, ctl, wanted->address, &wanted->writer,
				    wanted->since.kind == OSD_CLIENT_NOW ? NULL : &wanted->since);
	if (code == CTL_OK)
		growth_take(&wanted->growth, ctl, wanted->address);
	if (code == CTL_OK)
		code = ctl->options->json ? print_json(wanted, &space)
					  : print_report(wanted, &space);
	space_free(&space);
	ctl_free_versions(&wanted->versions);
	free(wanted);
	return code;
}
