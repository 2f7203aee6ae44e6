/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Writes the status page. */
#include "daemon/page.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/metrics.h"

#define REFRESH_S 10

/* Cards beside each other as far as they fit, so that a phone has them below each other. */
static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	"<meta http-equiv=\"refresh\" content=\"%d\">\n<title>Muninn</title>\n<style>\n"
	"body{font:16px/1.4 sans-serif;margin:1rem;color:#222;background:#fff}\n"
	"h1{font-size:1.4rem;margin:0 0 .5rem}h2{font-size:1.1rem;margin:1.2rem 0 .4rem}\n"
	".cards{display:grid;gap:.8rem;grid-template-columns:repeat(auto-fill,minmax(17rem,1fr))}\n"
	".card{border:1px solid #bbb;border-radius:.4rem;padding:.6rem .8rem;min-width:0}\n"
	".bad{border-color:#b00;background:#fee}h3{font-size:1rem;margin:0 0 .3rem}\n"
	"dl{display:grid;grid-template-columns:auto auto;margin:0;gap:.1rem .8rem}\n"
	"dd{margin:0;text-align:right;overflow-wrap:anywhere}\n"
	".bar{display:flex;height:.8rem;background:#ddd;margin:.3rem 0}.bar i{background:#369}\n"
	".bar b{background:#c83}p,li{overflow-wrap:anywhere}ul{padding-left:1.2rem}\n"
	"@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}"
	".bad{background:#400}.bar{background:#444}}\n"
	"</style>\n</head>\n<body>\n";

/* ---- pieces ---- */

static uint64_t number(const json_t *object, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(object, name));
}

static const char *text(const json_t *object, const char *name)
{
	const char *value = json_string_value(json_object_get(object, name));

	return value ? value : "";
}

/* Initiators choose some texts, such as those that messages repeat. */
static void put_escaped(FILE *to, const char *words)
{
	for (; *words; words++)
		switch (*words) {
		case '<':
			fputs("&lt;", to);
			break;
		case '>':
			fputs("&gt;", to);
			break;
		case '&':
			fputs("&amp;", to);
			break;
		case '"':
			fputs("&quot;", to);
			break;
		default:
			fputc(*words, to);
		}
}

static void put_line(FILE *to, const char *name, const char *value)
{
	fprintf(to, "<dt>%s</dt><dd>", name);
	put_escaped(to, value);
	fputs("</dd>\n", to);
}

static void put_number(FILE *to, const char *name, uint64_t value)
{
	fprintf(to, "<dt>%s</dt><dd>%" PRIu64 "</dd>\n", name, value);
}

static void put_size(FILE *to, const char *name, uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double shown = (double)bytes;
	size_t unit = 0;

	while (shown >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		shown /= 1024;
		unit++;
	}
	fprintf(to, "<dt>%s</dt><dd>%.*f %s</dd>\n", name, unit ? 1 : 0, shown, units[unit]);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* Of the sum of what the facts with these names say. */
static uint64_t sum(const json_t *unit, const char *const *names, size_t count)
{
	uint64_t total = 0;

	for (size_t i = 0; i < count; i++)
		total += number(unit, names[i]);
	return total;
}

/* ---- the cards ---- */

static void put_service(FILE *to, const json_t *status)
{
	const json_t *tgtd = json_object_get(status, "tgtd"), *each;

	fputs("<h1>Muninn ", to);
	put_escaped(to, text(status, "version"));
	fprintf(to, "</h1>\n<div class=\"cards\">\n<div class=\"card%s\"><h3>Service</h3><dl>\n",
		json_is_object(tgtd) ? "" : " bad");
	put_line(to, "since", text(status, "since"));
	put_line(to, "tgtd", json_is_object(tgtd) ? text(tgtd, "since") : "is started again");
	put_number(to, "restarts of tgtd", number(status, "tgtd_restarts"));
	put_line(to, "at", text(status, "portal"));
	fputs("</dl></div>\n", to);
	for (size_t i = 0; (each = json_array_get(json_object_get(status, "targets"), i)); i++) {
		fputs("<div class=\"card\"><h3>Target</h3><dl>\n", to);
		put_line(to, "name", text(each, "name"));
		put_number(to, "sessions", number(each, "sessions"));
		fputs("</dl></div>\n", to);
	}
	fputs("</div>\n", to);
}

static void put_segments(FILE *to, const json_t *unit)
{
	uint64_t all = number(unit, "segments"), sealed = number(unit, "segments_sealed");
	uint64_t metadata = number(unit, "segments_metadata");

	if (!all)
		return;
	fprintf(to,
		"<div class=\"bar\" title=\"segments\"><i style=\"width:%.1f%%\"></i>"
		"<b style=\"width:%.1f%%\"></b></div>\n<dl>\n",
		percent(sealed, all), percent(metadata, all));
	put_number(to, "segments sealed", sealed);
	put_number(to, "free", number(unit, "segments_free"));
	fputs("</dl>\n", to);
}

static void put_device(FILE *to, const json_t *unit)
{
	static const char *const programmed[] = { "pages_programmed_user",
						  "pages_programmed_merge" };
	uint64_t used = number(unit, "used_bytes"), capacity = number(unit, "capacity_bytes");
	uint64_t lost = number(unit, "pages_lost");
	char name[CONFIG_DEVICE_BYTES];

	metrics_device_name(unit, name, sizeof(name));
	fprintf(to, "<div class=\"card%s\"><h3>", lost ? " bad" : "");
	put_escaped(to, name);
	fprintf(to,
		"</h3>\n<div class=\"bar\" title=\"used\"><i "
		"style=\"width:%.1f%%\"></i></div><dl>\n",
		percent(used, capacity));
	put_size(to, "used", used);
	put_size(to, "of", capacity);
	put_size(to, "index in memory", number(unit, "index_bytes"));
	put_size(to, "in NVRAM", number(unit, "buffer_bytes"));
	put_number(to, "pages programmed for users and by merging",
		   sum(unit, programmed, sizeof(programmed) / sizeof(programmed[0])));
	put_number(to, "blocks erased", number(unit, "blocks_erased"));
	put_number(to, "erases of a block, mean", number(unit, "erase_count_mean"));
	put_number(to, "most", number(unit, "erase_count_most"));
	put_number(to, "reads of lost pages", lost);
	fputs("</dl>\n", to);
	put_segments(to, unit);
	fputs("</div>\n", to);
}

static void put_unit(FILE *to, const json_t *unit)
{
	const char *trouble = text(unit, "trouble");

	fprintf(to, "<div class=\"card%s\"><h3>LUN %" PRIu64 " %s</h3>", trouble[0] ? " bad" : "",
		number(unit, "lun"), text(unit, "type"));
	if (trouble[0]) {
		fputs("<p>", to);
		put_escaped(to, trouble);
		fputs("</p></div>\n", to);
		return;
	}
	fputs("<dl>\n", to);
	if (json_object_get(unit, "bytes"))
		put_size(to, "size", number(unit, "bytes"));
	if (json_object_get(unit, "partition"))
		put_line(to, "volume", text(unit, "partition"));
	put_number(to, "sessions", json_array_size(json_object_get(unit, "sessions")));
	put_number(to, "reads", number(unit, "reads"));
	put_size(to, "read", number(unit, "read_bytes"));
	put_number(to, "writes", number(unit, "writes") + number(unit, "bidirectional"));
	put_size(to, "written", number(unit, "written_bytes"));
	put_number(to, "errors", number(unit, "errors"));
	fputs("</dl></div>\n", to);
}

static void put_troubles(FILE *to, const json_t *troubles)
{
	const json_t *each;

	if (json_array_size(troubles) == 0)
		return;
	fputs("<h2>Last warnings and errors, the newest first</h2>\n<ul>\n", to);
	for (size_t i = 0; (each = json_array_get(troubles, i)); i++) {
		fprintf(to, "<li>%s %s: ", text(each, "time"), text(each, "level"));
		put_escaped(to, text(each, "line"));
		fputs("</li>\n", to);
	}
	fputs("</ul>\n", to);
}

static void put_all(FILE *to, const json_t *status)
{
	const json_t *units = json_object_get(status, "units"), *unit;

	fprintf(to, head, REFRESH_S);
	put_service(to, status);
	fputs("<h2>Devices</h2>\n<div class=\"cards\">\n", to);
	for (size_t i = 0; (unit = json_array_get(units, i)); i++)
		if (metrics_is_of_device(status, unit))
			put_device(to, unit);
	fputs("</div>\n<h2>Units</h2>\n<div class=\"cards\">\n", to);
	for (size_t i = 0; (unit = json_array_get(units, i)); i++)
		put_unit(to, unit);
	fputs("</div>\n", to);
	put_troubles(to, json_object_get(status, "troubles"));
	fputs("</body>\n</html>\n", to);
}

char *page_text(const json_t *status)
{
	char *made = NULL;
	size_t bytes;
	FILE *to = open_memstream(&made, &bytes);

	if (!to)
		return NULL;
	put_all(to, status);
	if (fclose(to)) {
		free(made);
		return NULL;
	}
	return made;
}
