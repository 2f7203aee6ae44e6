/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Turns an answer of `status` into Prometheus' text format. */
#include "daemon/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A metric and the fact that it is. Facts of several rows of one name differ in their label. */
struct metric {
	const char *name, *type, *help;
	const char *fact;
	const char *label; /* further ones, with a comma before; "": none */
};

#define COMMANDS "Commands that the unit has answered."
#define BYTES    "Bytes that commands have moved."

#define BY_KEY(key)                                                                               \
	{                                                                                         \
		"unit_sense_total", "counter",                                                    \
			"Commands that the unit has ended with sense, by its key.", "sense_" key, \
			",key=\"" key "\""                                                        \
	}

static const struct metric of_commands[] = {
	{ "unit_commands_total", "counter", COMMANDS, "reads", ",kind=\"read\"" },
	{ "unit_commands_total", "counter", COMMANDS, "writes", ",kind=\"write\"" },
	{ "unit_commands_total", "counter", COMMANDS, "bidirectional", ",kind=\"both\"" },
	{ "unit_bytes_total", "counter", BYTES, "read_bytes", ",direction=\"read\"" },
	{ "unit_bytes_total", "counter", BYTES, "written_bytes", ",direction=\"written\"" },
	{ "unit_errors_total", "counter", "Commands that ended with an error.", "errors", "" },
	BY_KEY("not_ready"),
	BY_KEY("medium_error"),
	BY_KEY("hardware_error"),
	BY_KEY("illegal_request"),
	BY_KEY("unit_attention"),
	BY_KEY("data_protect"),
	BY_KEY("aborted_command"),
	BY_KEY("miscompare"),
	BY_KEY("other"),
};

#define SEGMENTS "Segments by their state."
#define READ     "Pages of flash that were read, by cause, since the device was opened."
#define PROGRAM  "Pages of flash that were programmed, by cause, since the device was opened."
#define ERASE    "Blocks of flash that were erased, by cause, since the device was opened."
#define BY_CAUSE(name, help, fact)                                                  \
	{ name, "counter", help, fact "_user", ",cause=\"user\"" },                 \
		{ name, "counter", help, fact "_index", ",cause=\"index\"" },       \
		{ name, "counter", help, fact "_merge", ",cause=\"merge\"" },       \
		{ name, "counter", help, fact "_recovery", ",cause=\"recovery\"" }, \
		{ name, "counter", help, fact "_metadata", ",cause=\"metadata\"" }, \
	{                                                                           \
		name, "counter", help, fact "_scrub", ",cause=\"scrub\""            \
	}

static const struct metric of_devices[] = {
	{ "device_capacity_bytes", "gauge", "What users can fill.", "capacity_bytes", "" },
	{ "device_used_bytes", "gauge", "What present and past take of it.", "used_bytes", "" },
	{ "device_page_bytes", "gauge", "Data of a page of flash.", "page_bytes", "" },
	BY_CAUSE("device_pages_read_total", READ, "pages_read"),
	BY_CAUSE("device_pages_programmed_total", PROGRAM, "pages_programmed"),
	BY_CAUSE("device_blocks_erased_total", ERASE, "blocks_erased"),
	{ "device_records_put_total", "counter", "Records that were stored.", "records_put", "" },
	{ "device_record_bytes_put_total", "counter", "Bytes of them: what users have written.",
	  "record_bytes_put", "" },
	{ "device_records_got_total", "counter", "Records that were looked up and found.",
	  "records_got", "" },
	{ "device_records_absent_total", "counter", "Records that were looked up in vain.",
	  "records_absent", "" },
	{ "device_lookup_pages_total", "counter", "Pages that were read for looking up.",
	  "user_page_reads", "" },
	{ "device_false_positive_pages_total", "counter", "Of these, pages without the record.",
	  "false_positive_reads", "" },
	{ "device_index_bytes", "gauge", "Memory of the index.", "index_bytes", "" },
	{ "device_nvram_bytes", "gauge", "Bytes in NVRAM that are not on flash yet.",
	  "buffer_bytes", "" },
	{ "device_segments", "gauge", SEGMENTS, "segments_free", ",state=\"free\"" },
	{ "device_segments", "gauge", SEGMENTS, "segments_sealed", ",state=\"sealed\"" },
	{ "device_segments", "gauge", SEGMENTS, "segments_metadata", ",state=\"metadata\"" },
	{ "device_sealed_record_bytes", "gauge", "Bytes of records in sealed segments.",
	  "sealed_record_bytes", "" },
	{ "device_segment_bytes", "gauge", "Data of a segment.", "segment_bytes", "" },
	{ "device_pages_lost_total", "counter", "Reads of pages that are lost.", "pages_lost", "" },
	{ "device_pages_repaired_total", "counter", "Reads of pages that parity has made again.",
	  "pages_repaired", "" },
	{ "device_erase_count_max", "gauge", "Erases of the most worn block that was looked at.",
	  "erase_count_most", "" },
	{ "device_erase_count_mean", "gauge", "Erases of a block, on average.", "erase_count_mean",
	  "" },
};

#define LENGTH(table) (sizeof(table) / sizeof((table)[0]))

/* ---- what the answer says ---- */

static uint64_t number(const json_t *object, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(object, name));
}

static const char *text(const json_t *object, const char *name)
{
	const char *value = json_string_value(json_object_get(object, name));

	return value ? value : "";
}

static bool is_known(const json_t *unit)
{
	return unit && !json_object_get(unit, "trouble");
}

bool metrics_is_of_device(const json_t *status, const json_t *unit)
{
	const json_t *units = json_object_get(status, "units");

	for (size_t i = 0; is_known(unit) && i < json_array_size(units); i++) {
		const json_t *each = json_array_get(units, i);

		if (is_known(each) && !strcmp(text(each, "image"), text(unit, "image")))
			return each == unit;
	}
	return false;
}

void metrics_device_name(const json_t *unit, char *name, size_t bytes)
{
	const char *device = text(unit, "device");

	if (device[0])
		snprintf(name, bytes, "%s", device);
	else
		snprintf(name, bytes, "lun%" PRIu64, number(unit, "lun"));
}

/* ---- the text ---- */

static void put_head(FILE *to, const char *name, const char *type, const char *help)
{
	fprintf(to, "# HELP muninn_%s %s\n# TYPE muninn_%s %s\n", name, help, name, type);
}

/* Above the first of the rows of a name. */
static void put_head_once(FILE *to, const struct metric *metric, const struct metric *before)
{
	if (!before || strcmp(before->name, metric->name) != 0)
		put_head(to, metric->name, metric->type, metric->help);
}

/* Labels need no escapes: names of devices and targets have letters, digits and . : - _ alone. */
static void put_service(FILE *to, const json_t *status)
{
	const json_t *tgtd = json_object_get(status, "tgtd");
	const json_t *targets = json_object_get(status, "targets");

	put_head(to, "info", "gauge", "Version of the service.");
	fprintf(to, "muninn_info{version=\"%s\"} 1\n", text(status, "version"));
	put_head(to, "tgtd_up", "gauge", "Whether tgtd runs, and initiators can log in.");
	fprintf(to, "muninn_tgtd_up %d\n", json_is_object(tgtd));
	put_head(to, "tgtd_restarts_total", "counter", "How often tgtd was started again.");
	fprintf(to, "muninn_tgtd_restarts_total %" PRIu64 "\n", number(status, "tgtd_restarts"));
	put_head(to, "sessions", "gauge", "Sessions that are logged in, by target.");
	for (size_t i = 0; i < json_array_size(targets); i++)
		fprintf(to, "muninn_sessions{target=\"%s\"} %" PRIu64 "\n",
			text(json_array_get(targets, i), "name"),
			number(json_array_get(targets, i), "sessions"));
}

static void put_units(FILE *to, const json_t *units)
{
	put_head(to, "unit_up", "gauge", "Whether the unit answers.");
	for (size_t i = 0; i < json_array_size(units); i++) {
		const json_t *unit = json_array_get(units, i);

		fprintf(to, "muninn_unit_up{lun=\"%" PRIu64 "\",type=\"%s\"} %d\n",
			number(unit, "lun"), text(unit, "type"), is_known(unit));
	}
	for (size_t j = 0; j < LENGTH(of_commands); j++) {
		const struct metric *metric = &of_commands[j];

		put_head_once(to, metric, j ? metric - 1 : NULL);
		for (size_t i = 0; i < json_array_size(units); i++) {
			const json_t *unit = json_array_get(units, i);

			if (is_known(unit))
				fprintf(to, "muninn_%s{lun=\"%" PRIu64 "\"%s} %" PRIu64 "\n",
					metric->name, number(unit, "lun"), metric->label,
					number(unit, metric->fact));
		}
	}
}

static void put_devices(FILE *to, const json_t *status)
{
	const json_t *units = json_object_get(status, "units");

	for (size_t j = 0; j < LENGTH(of_devices); j++) {
		const struct metric *metric = &of_devices[j];

		put_head_once(to, metric, j ? metric - 1 : NULL);
		for (size_t i = 0; i < json_array_size(units); i++) {
			const json_t *unit = json_array_get(units, i);
			char name[CONFIG_DEVICE_BYTES];

			if (!metrics_is_of_device(status, unit) ||
			    !json_object_get(unit, metric->fact))
				continue;
			metrics_device_name(unit, name, sizeof(name));
			fprintf(to, "muninn_%s{device=\"%s\"%s} %" PRIu64 "\n", metric->name, name,
				metric->label, number(unit, metric->fact));
		}
	}
}

char *metrics_text(const json_t *status)
{
	char *made = NULL;
	size_t bytes;
	FILE *to = open_memstream(&made, &bytes);

	if (!to)
		return NULL;
	put_service(to, status);
	put_units(to, json_object_get(status, "units"));
	put_devices(to, status);
	if (fclose(to)) {
		free(made);
		return NULL;
	}
	return made;
}
