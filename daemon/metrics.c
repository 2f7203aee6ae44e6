/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Turns an answer of `status` into Prometheus' text format. */
#include "daemon/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/facts.h"

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

#define HELD     "What takes the space, about, as a look at some pages tells."
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
	{ "device_available_bytes", "gauge",
	  "What can still be written, about: history that goes for it included.", "available_bytes",
	  "" },
	{ "device_held_bytes", "gauge", HELD, "live_bytes", ",what=\"present\"" },
	{ "device_held_bytes", "gauge", HELD, "kept_bytes", ",what=\"kept\"" },
	{ "device_held_bytes", "gauge", HELD, "history_bytes", ",what=\"history\"" },
	{ "device_held_bytes", "gauge", HELD, "reclaimable_bytes", ",what=\"reclaimable\"" },
	{ "device_versions", "gauge", "Kept versions of the device as a whole.", "device_versions",
	  "" },
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
	fprintf(to, "muninn_info{version=\"%s\"} 1\n", facts_text(status, "version"));
	put_head(to, "tgtd_up", "gauge", "Whether tgtd runs, and initiators can log in.");
	fprintf(to, "muninn_tgtd_up %d\n", json_is_object(tgtd));
	put_head(to, "tgtd_restarts_total", "counter", "How often tgtd was started again.");
	fprintf(to, "muninn_tgtd_restarts_total %" PRIu64 "\n",
		facts_number(status, "tgtd_restarts"));
	put_head(to, "sessions", "gauge", "Sessions that are logged in, by target.");
	for (size_t i = 0; i < json_array_size(targets); i++)
		fprintf(to, "muninn_sessions{target=\"%s\"} %" PRIu64 "\n",
			facts_text(json_array_get(targets, i), "name"),
			facts_number(json_array_get(targets, i), "sessions"));
}

static void put_units(FILE *to, const json_t *units)
{
	put_head(to, "unit_up", "gauge", "Whether the unit answers.");
	for (size_t i = 0; i < json_array_size(units); i++) {
		const json_t *unit = json_array_get(units, i);

		fprintf(to, "muninn_unit_up{lun=\"%" PRIu64 "\",type=\"%s\"} %d\n",
			facts_number(unit, "lun"), facts_text(unit, "type"), facts_is_known(unit));
	}
	for (size_t j = 0; j < LENGTH(of_commands); j++) {
		const struct metric *metric = &of_commands[j];

		put_head_once(to, metric, j ? metric - 1 : NULL);
		for (size_t i = 0; i < json_array_size(units); i++) {
			const json_t *unit = json_array_get(units, i);

			if (facts_is_known(unit))
				fprintf(to, "muninn_%s{lun=\"%" PRIu64 "\"%s} %" PRIu64 "\n",
					metric->name, facts_number(unit, "lun"), metric->label,
					facts_number(unit, metric->fact));
		}
	}
}

/* Prometheus wants seconds, and each class with all shorter ones. */
static void put_latency(FILE *to, const json_t *unit, const char *kind, const char *fact)
{
	struct latency latency;
	uint64_t lun = facts_number(unit, "lun"), count = 0;
	const char *const name = "muninn_unit_command_seconds";

	if (!facts_is_known(unit) || !facts_latency(unit, fact, &latency))
		return;
	for (int class = 0; class < LATENCY_LIMITS; class ++) {
		count += latency.count[class];
		fprintf(to, "%s_bucket{lun=\"%" PRIu64 "\",kind=\"%s\",le=\"%g\"} %" PRIu64 "\n",
			name, lun, kind, latency_limits_us[class] / 1e6, count);
	}
	count += latency.count[LATENCY_LIMITS];
	fprintf(to,
		"%s_bucket{lun=\"%" PRIu64 "\",kind=\"%s\",le=\"+Inf\"} %" PRIu64 "\n"
		"%s_sum{lun=\"%" PRIu64 "\",kind=\"%s\"} %" PRIu64 ".%06" PRIu64 "\n"
		"%s_count{lun=\"%" PRIu64 "\",kind=\"%s\"} %" PRIu64 "\n",
		name, lun, kind, count, name, lun, kind, latency.sum_us / 1000000,
		latency.sum_us % 1000000, name, lun, kind, count);
}

static void put_latencies(FILE *to, const json_t *units)
{
	static const struct {
		const char *kind, *fact;
	} kinds[] = {
		{ "read", "latency_reads" },
		{ "write", "latency_writes" },
		{ "both", "latency_bidirectional" },
	};

	put_head(to, "unit_command_seconds", "histogram",
		 "How long commands took, from their arrival to their answer.");
	for (size_t i = 0; i < json_array_size(units); i++)
		for (size_t j = 0; j < LENGTH(kinds); j++)
			put_latency(to, json_array_get(units, i), kinds[j].kind, kinds[j].fact);
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

			if (!facts_is_of_device(status, unit) ||
			    !json_object_get(unit, metric->fact))
				continue;
			facts_device_name(unit, name, sizeof(name));
			fprintf(to, "muninn_%s{device=\"%s\"%s} %" PRIu64 "\n", metric->name, name,
				metric->label, facts_number(unit, metric->fact));
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
	put_latencies(to, json_object_get(status, "units"));
	put_devices(to, status);
	if (fclose(to)) {
		free(made);
		return NULL;
	}
	return made;
}
