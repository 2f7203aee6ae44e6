/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Writes the status page. */
#include "daemon/page.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/facts.h"
#include "daemon/page_parts.h"

#define REFRESH_S      10
#define SESSIONS_SHOWN 50

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
	"dl{display:grid;grid-template-columns:minmax(min-content,1fr) auto;margin:0;gap:.1rem "
	".8rem}\n"
	"dd{margin:0;text-align:right;overflow-wrap:anywhere}\n"
	".bar{display:flex;height:.8rem;background:#ddd;margin:.3rem 0}.bar i{background:#369}\n"
	".bar b{background:#c83}.bar u{background:#9bd}p,li,td{overflow-wrap:anywhere}\n"
	"ul{padding-left:1.2rem}h4{font-size:.9rem;margin:.6rem 0 "
	".3rem}svg{display:block;width:100%%}\n"
	".line{height:4rem;border-bottom:1px solid #bbb}\n"
	"polyline{fill:none;stroke:#369;stroke-width:2;vector-effect:non-scaling-stroke}\n"
	".fr{fill:#ddd;background:#ddd}.me{fill:#c83;background:#c83}.un{fill:#999;background:#999}"
	"\n"
	".l0{fill:#cdf;background:#cdf}.l1{fill:#9bd;background:#9bd}.l2{fill:#69b;background:#69b}"
	"\n"
	".l3{fill:#369;background:#369}.l4{fill:#036;background:#036}\n"
	".key i{display:inline-block;width:.8rem;height:.8rem;margin:0 .2rem 0 .4rem}\n"
	".key span{white-space:nowrap}\n"
	".key,.ends{font-size:.85rem;margin:.3rem "
	"0}.ends{display:flex;justify-content:space-between}\n"
	".wide{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem}\n"
	"td,th{padding:.1rem .5rem .1rem 0;text-align:left;font-weight:normal}th{color:#777}\n"
	".devices{grid-template-columns:repeat(auto-fill,minmax(min(28rem,100%%),1fr))}\n"
	"@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}"
	".bad{background:#400}.bar{background:#444}.fr{fill:#333;background:#333}"
	".l0{fill:#246;background:#246}.l1{fill:#368;background:#368}.l2{fill:#58a;background:#58a}"
	".l3{fill:#7ac;background:#7ac}.l4{fill:#bdf;background:#bdf}}\n"
	"</style>\n</head>\n<body>\n";

/* ---- pieces ---- */

static void put_line(FILE *to, const char *name, const char *value)
{
	fprintf(to, "<dt>%s</dt><dd>", name);
	page_put_escaped(to, value);
	fputs("</dd>\n", to);
}

static void put_number(FILE *to, const char *name, uint64_t value)
{
	fprintf(to, "<dt>%s</dt><dd>%" PRIu64 "</dd>\n", name, value);
}

static void put_size(FILE *to, const char *name, uint64_t bytes)
{
	char size[PAGE_SIZE_BYTES];

	fprintf(to, "<dt>%s</dt><dd>%s</dd>\n", name, page_size(bytes, size));
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
		total += facts_number(unit, names[i]);
	return total;
}

/* ---- the cards ---- */

static void put_service(FILE *to, const json_t *status)
{
	const json_t *tgtd = json_object_get(status, "tgtd"), *each;

	fputs("<h1>Muninn ", to);
	page_put_escaped(to, facts_text(status, "version"));
	fprintf(to, "</h1>\n<div class=\"cards\">\n<div class=\"card%s\"><h3>Service</h3><dl>\n",
		json_is_object(tgtd) ? "" : " bad");
	put_line(to, "since", facts_text(status, "since"));
	put_line(to, "tgtd", json_is_object(tgtd) ? facts_text(tgtd, "since") : "is started again");
	put_number(to, "restarts of tgtd", facts_number(status, "tgtd_restarts"));
	put_line(to, "at", facts_text(status, "portal"));
	fputs("</dl></div>\n", to);
	for (size_t i = 0; (each = json_array_get(json_object_get(status, "targets"), i)); i++) {
		fputs("<div class=\"card\"><h3>Target</h3><dl>\n", to);
		put_line(to, "name", facts_text(each, "name"));
		put_number(to, "sessions", facts_number(each, "sessions"));
		fputs("</dl></div>\n", to);
	}
	fputs("</div>\n", to);
}

static void put_segments(FILE *to, const json_t *unit)
{
	uint64_t all = facts_number(unit, "segments"),
		 sealed = facts_number(unit, "segments_sealed");
	uint64_t metadata = facts_number(unit, "segments_metadata");

	if (!all)
		return;
	fprintf(to,
		"<div class=\"bar\" title=\"segments\"><i style=\"width:%.1f%%\"></i>"
		"<b style=\"width:%.1f%%\"></b></div>\n<dl>\n",
		percent(sealed, all), percent(metadata, all));
	put_number(to, "segments sealed", sealed);
	put_number(to, "free", facts_number(unit, "segments_free"));
	fputs("</dl>\n", to);
}

/* Present and kept, history that goes when writes need its space, and the rest. */
static void put_space(FILE *to, const json_t *unit)
{
	uint64_t used = facts_number(unit, "used_bytes");
	uint64_t capacity = facts_number(unit, "capacity_bytes");
	const json_t *map = json_object_get(unit, "map");
	uint64_t needed = facts_number(map, "live_bytes") + facts_number(map, "kept_bytes");

	if (!json_object_get(map, "live_bytes") || needed > used)
		needed = used;
	fprintf(to,
		"<div class=\"bar\" title=\"used\"><i style=\"width:%.1f%%\"></i>"
		"<u style=\"width:%.1f%%\"></u></div><dl>\n",
		percent(needed, capacity), percent(used - needed, capacity));
	put_size(to, "used", used);
	put_size(to, "of", capacity);
	if (!json_object_get(map, "live_bytes"))
		return;
	put_size(to, "the present, about", facts_number(map, "live_bytes"));
	put_size(to, "kept by versions and policies", facts_number(map, "kept_bytes"));
	put_size(to,
		 json_is_false(json_object_get(unit, "gives_way"))
			 ? "history that stays until somebody merges"
			 : "history that goes when needed",
		 facts_number(map, "history_bytes") + facts_number(map, "reclaimable_bytes"));
}

static void put_device(FILE *to, const json_t *unit, int64_t now_ms)
{
	static const char *const programmed[] = { "pages_programmed_user",
						  "pages_programmed_merge" };
	uint64_t lost = facts_number(unit, "pages_lost");
	char name[CONFIG_DEVICE_BYTES];

	facts_device_name(unit, name, sizeof(name));
	fprintf(to, "<div class=\"card%s\"><h3>", lost ? " bad" : "");
	page_put_escaped(to, name);
	fputs("</h3>\n", to);
	put_space(to, unit);
	put_size(to, "index in memory", facts_number(unit, "index_bytes"));
	put_size(to, "in NVRAM", facts_number(unit, "buffer_bytes"));
	put_number(to, "pages programmed for users and by merging",
		   sum(unit, programmed, sizeof(programmed) / sizeof(programmed[0])));
	put_number(to, "blocks erased", facts_number(unit, "blocks_erased"));
	put_number(to, "erases of a block, mean", facts_number(unit, "erase_count_mean"));
	put_number(to, "most", facts_number(unit, "erase_count_most"));
	put_number(to, "reads of lost pages", lost);
	fputs("</dl>\n", to);
	put_segments(to, unit);
	page_put_map(to, json_object_get(unit, "map"));
	page_put_versions(to, json_object_get(unit, "map"), now_ms);
	fputs("</div>\n", to);
}

static void put_unit(FILE *to, const json_t *unit)
{
	const char *trouble = facts_text(unit, "trouble");

	fprintf(to, "<div class=\"card%s\"><h3>LUN %" PRIu64 " %s</h3>", trouble[0] ? " bad" : "",
		facts_number(unit, "lun"), facts_text(unit, "type"));
	if (trouble[0]) {
		fputs("<p>", to);
		page_put_escaped(to, trouble);
		fputs("</p></div>\n", to);
		return;
	}
	fputs("<dl>\n", to);
	if (json_object_get(unit, "bytes"))
		put_size(to, "size", facts_number(unit, "bytes"));
	if (json_object_get(unit, "partition"))
		put_line(to, "volume", facts_text(unit, "partition"));
	put_number(to, "sessions", json_array_size(json_object_get(unit, "sessions")));
	put_number(to, "reads", facts_number(unit, "reads"));
	put_size(to, "read", facts_number(unit, "read_bytes"));
	put_number(to, "writes",
		   facts_number(unit, "writes") + facts_number(unit, "bidirectional"));
	put_size(to, "written", facts_number(unit, "written_bytes"));
	put_number(to, "errors", facts_number(unit, "errors"));
	fputs("</dl></div>\n", to);
}

/* The first of them: there may be thousands. */
static void put_sessions(FILE *to, const json_t *logins)
{
	size_t count = json_array_size(logins);

	if (!count)
		return;
	fputs("<h2>Sessions</h2>\n<div class=\"wide\"><table>\n<tr><th>initiator</th><th>at</th>"
	      "<th>uses LUN</th></tr>\n",
	      to);
	for (size_t i = 0; i < count && i < SESSIONS_SHOWN; i++) {
		const json_t *each = json_array_get(logins, i);
		const json_t *units = json_object_get(each, "units");

		fputs("<tr><td>", to);
		page_put_escaped(to, facts_text(each, "initiator"));
		fputs("</td><td>", to);
		page_put_escaped(to, facts_text(each, "address"));
		fputs("</td><td>", to);
		for (size_t j = 0; j < json_array_size(units); j++)
			fprintf(to, "%s%" JSON_INTEGER_FORMAT, j ? ", " : "",
				json_integer_value(json_array_get(units, j)));
		fputs("</td></tr>\n", to);
	}
	fputs("</table></div>\n", to);
	if (count > SESSIONS_SHOWN)
		fprintf(to, "<p>and %zu more</p>\n", count - SESSIONS_SHOWN);
}

static void put_troubles(FILE *to, const json_t *troubles)
{
	const json_t *each;

	if (json_array_size(troubles) == 0)
		return;
	fputs("<h2>Last warnings and errors, the newest first</h2>\n<ul>\n", to);
	for (size_t i = 0; (each = json_array_get(troubles, i)); i++) {
		fprintf(to, "<li>%s %s: ", facts_text(each, "time"), facts_text(each, "level"));
		page_put_escaped(to, facts_text(each, "line"));
		fputs("</li>\n", to);
	}
	fputs("</ul>\n", to);
}

static void put_all(FILE *to, const json_t *status, const struct trend *trend)
{
	const json_t *units = json_object_get(status, "units"), *unit;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	fprintf(to, head, REFRESH_S);
	put_service(to, status);
	page_put_trend(to, trend);
	fputs("<h2>Devices</h2>\n<div class=\"cards devices\">\n", to);
	for (size_t i = 0; (unit = json_array_get(units, i)); i++)
		if (facts_is_of_device(status, unit))
			put_device(to, unit, (int64_t)now.tv_sec * 1000);
	fputs("</div>\n<h2>Units</h2>\n<div class=\"cards\">\n", to);
	for (size_t i = 0; (unit = json_array_get(units, i)); i++)
		put_unit(to, unit);
	fputs("</div>\n", to);
	put_sessions(to, json_object_get(status, "logins"));
	put_troubles(to, json_object_get(status, "troubles"));
	fputs("</body>\n</html>\n", to);
}

char *page_text(const json_t *status, const struct trend *trend)
{
	char *made = NULL;
	size_t bytes;
	FILE *to = open_memstream(&made, &bytes);

	if (!to)
		return NULL;
	put_all(to, status, trend);
	if (fclose(to)) {
		free(made);
		return NULL;
	}
	return made;
}
