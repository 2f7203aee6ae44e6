/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What the status page draws. Drawings have no text, because they are as wide as the screen, and
 * text in them would be too small on a phone: what they say stands beside them, or comes when one
 * points at them.
 */
#include "daemon/page_parts.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "daemon/facts.h"
#include "daemon/trend.h"

#define MAP_COLUMNS 32
#define LIVE_LEVELS 5
#define LINE_WIDTH  600
#define LINE_HEIGHT 60
#define TIME_WIDTH  1000
#define TIME_HEIGHT 100
#define BAR_WIDTH   6
#define TIME_BYTES  32

/* ---- texts ---- */

void page_put_escaped(FILE *to, const char *words)
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

const char *page_size(uint64_t bytes, char *text)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double shown = (double)bytes;
	size_t unit = 0;

	while (shown >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		shown /= 1024;
		unit++;
	}
	snprintf(text, PAGE_SIZE_BYTES, "%.*f %s", unit ? 1 : 0, shown, units[unit]);
	return text;
}

static const char *time_of(int64_t ms, char text[TIME_BYTES])
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm parts;

	gmtime_r(&seconds, &parts);
	strftime(text, TIME_BYTES, "%Y-%m-%d %H:%M:%SZ", &parts);
	return text;
}

/* ---- the map ---- */

/* As an array of struct engine_stretch says it. */
struct stretch {
	uint64_t segments, free, sealed, looked, live;
};

static struct stretch stretch_of(const json_t *stretches, size_t n)
{
	const json_t *values = json_array_get(stretches, n);
	uint64_t value[5];

	for (size_t i = 0; i < 5; i++)
		value[i] = (uint64_t)json_integer_value(json_array_get(values, i));
	return (struct stretch){ value[0], value[1], value[2], value[3], value[4] };
}

static unsigned int live_percent(const struct stretch *stretch)
{
	return stretch->looked ? (unsigned int)(stretch->live * 100 / stretch->looked) : 0;
}

/* The class of its colour. */
static const char *class_of(const struct stretch *stretch)
{
	static const char *const live[LIVE_LEVELS] = { "l0", "l1", "l2", "l3", "l4" };
	size_t level = live_percent(stretch) * LIVE_LEVELS / 100;

	if (!stretch->sealed)
		return stretch->free * 2 >= stretch->segments ? "fr" : "me";
	if (!stretch->looked)
		return "un";
	return live[level < LIVE_LEVELS ? level : LIVE_LEVELS - 1];
}

static void put_stretch(FILE *to, const struct stretch *stretch, size_t n, uint64_t first)
{
	fprintf(to,
		"<rect class=\"%s\" x=\"%zu\" y=\"%zu\" width=\".9\" height=\".9\"><title>"
		"segments %" PRIu64 " to %" PRIu64 ": %" PRIu64 " free, %" PRIu64 " sealed",
		class_of(stretch), n % MAP_COLUMNS, n / MAP_COLUMNS, first,
		first + stretch->segments - 1, stretch->free, stretch->sealed);
	if (stretch->looked)
		fprintf(to, ", %u %% live", live_percent(stretch));
	fputs("</title></rect>\n", to);
}

void page_put_map(FILE *to, const json_t *map)
{
	const json_t *stretches = json_object_get(map, "stretches");
	size_t count = json_array_size(stretches);
	uint64_t first = 0;

	if (!count)
		return;
	fprintf(to,
		"<h4>Segments by use, and how much of them lives</h4>\n"
		"<svg class=\"map\" role=\"img\" aria-label=\"Map of the flash\" "
		"viewBox=\"0 0 %d %zu\">\n",
		MAP_COLUMNS, (count + MAP_COLUMNS - 1) / MAP_COLUMNS);
	for (size_t n = 0; n < count; n++) {
		struct stretch stretch = stretch_of(stretches, n);

		put_stretch(to, &stretch, n, first);
		first += stretch.segments;
	}
	/* Two lines, each of one question; and no colour stands apart from its word. */
	fputs("</svg>\n<p class=\"key\"><span><i class=\"fr\"></i>free</span> "
	      "<span><i class=\"me\"></i>metadata</span></p>\n"
	      "<p class=\"key\">What lives of sealed segments: "
	      "<span><i class=\"l0\"></i>little</span> <span><i class=\"l1\"></i>"
	      "<i class=\"l2\"></i><i class=\"l3\"></i><i class=\"l4\"></i>all</span> "
	      "<span><i class=\"un\"></i>not looked at</span></p>\n",
	      to);
}

/* ---- versions ---- */

static void put_bar(FILE *to, const json_t *version, int64_t from_ms, int64_t until_ms,
		    uint64_t most)
{
	uint64_t written = facts_number(version, "written_bytes");
	double share = most ? log1p((double)written) / log1p((double)most) : 0;
	double span = (double)(until_ms - from_ms) + 1;
	double at = (double)((int64_t)facts_number(version, "time_ms") - from_ms) / span;
	double height = 6 + share * (TIME_HEIGHT - 6);
	char size[PAGE_SIZE_BYTES], time[TIME_BYTES];

	fprintf(to, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%.1f\"><title>",
		facts_number(version, "partition") ? "l3" : "me", at * (TIME_WIDTH - BAR_WIDTH),
		TIME_HEIGHT - height, BAR_WIDTH, height);
	fprintf(to, "version %" PRIu64 " ", facts_number(version, "version"));
	page_put_escaped(to, facts_text(version, "name"));
	fprintf(to, " of 0x%" PRIx64 ", %s, %s since the one before</title></rect>\n",
		facts_number(version, "partition"),
		time_of((int64_t)facts_number(version, "time_ms"), time), page_size(written, size));
}

static void put_row(FILE *to, const json_t *version)
{
	char sizes[2][PAGE_SIZE_BYTES], time[TIME_BYTES];
	uint64_t partition = facts_number(version, "partition");

	fprintf(to, "<tr><td>%s</td><td>",
		time_of((int64_t)facts_number(version, "time_ms"), time));
	if (partition)
		fprintf(to, "0x%" PRIx64, partition);
	else
		fputs("device", to);
	fprintf(to, "</td><td>%" PRIu64 "</td><td>", facts_number(version, "version"));
	page_put_escaped(to, facts_text(version, "name"));
	fprintf(to, "</td><td>%s</td><td>%s</td></tr>\n",
		page_size(facts_number(version, "written_bytes"), sizes[0]),
		partition ? page_size(facts_number(version, "used_bytes"), sizes[1]) : "");
}

void page_put_versions(FILE *to, const json_t *map, int64_t now_ms)
{
	const json_t *versions = json_object_get(map, "versions"), *each;
	int64_t from_ms = now_ms;
	char time[TIME_BYTES];
	uint64_t most = 0;

	if (json_array_size(versions) == 0)
		return;
	for (size_t i = 0; (each = json_array_get(versions, i)); i++) {
		int64_t at_ms = (int64_t)facts_number(each, "time_ms");

		from_ms = at_ms < from_ms ? at_ms : from_ms;
		/* A clock was ahead when it was made. */
		now_ms = at_ms > now_ms ? at_ms : now_ms;
		if (facts_number(each, "written_bytes") > most)
			most = facts_number(each, "written_bytes");
	}
	fprintf(to,
		"<h4>Newest versions, by what was written since the one before</h4>\n"
		"<svg class=\"line\" role=\"img\" aria-label=\"Versions on a time line\" "
		"preserveAspectRatio=\"none\" viewBox=\"0 0 %d %d\">\n",
		TIME_WIDTH, TIME_HEIGHT);
	for (size_t i = 0; (each = json_array_get(versions, i)); i++)
		put_bar(to, each, from_ms, now_ms, most);
	fprintf(to,
		"</svg>\n<p class=\"ends\"><span>%s</span><span>now</span></p>\n"
		"<details><summary>%zu versions</summary><div class=\"wide\"><table>\n"
		"<tr><th>time</th><th>partition</th><th>version</th><th>name</th><th>written</th>"
		"<th>holds</th></tr>\n",
		time_of(from_ms, time), json_array_size(versions));
	for (size_t i = 0; (each = json_array_get(versions, i)); i++)
		put_row(to, each);
	fputs("</table></div></details>\n", to);
	if (facts_number(map, "more_partitions"))
		fputs("<p>There are more partitions, whose versions are not shown.</p>\n", to);
}

/* ---- throughput and latency ---- */

enum of_point { COMMANDS, BYTES, LATENCY };

static double value_of(const struct trend_point *point, enum of_point which)
{
	return which == COMMANDS ? point->commands
	       : which == BYTES  ? point->bytes
				 : point->latency_us;
}

static void put_line(FILE *to, const struct trend *trend, enum of_point which, double most)
{
	int64_t last_ms = trend_at(trend, trend->count - 1)->at_ms;

	fprintf(to,
		"<svg class=\"line\" aria-hidden=\"true\" preserveAspectRatio=\"none\" "
		"viewBox=\"0 0 %d %d\"><polyline points=\"",
		LINE_WIDTH, LINE_HEIGHT);
	for (size_t n = 0; n < trend->count; n++) {
		const struct trend_point *point = trend_at(trend, n);
		double ago = (double)(last_ms - point->at_ms) / TREND_SPAN_MS;

		fprintf(to, "%.0f,%.1f ", LINE_WIDTH * (1 - ago),
			LINE_HEIGHT - 1 - value_of(point, which) / most * (LINE_HEIGHT - 2));
	}
	fputs("\"/></svg>\n", to);
}

static void put_value(FILE *to, enum of_point which, double value)
{
	char size[PAGE_SIZE_BYTES];

	if (which == BYTES)
		fprintf(to, "%s/s", page_size((uint64_t)value, size));
	else if (which == COMMANDS)
		fprintf(to, "%.0f/s", value);
	else
		fprintf(to, "%.2f ms", value / 1000);
}

void page_put_trend(FILE *to, const struct trend *trend)
{
	static const char *const titles[] = { "Commands", "Bytes", "Latency, mean" };

	if (!trend || !trend->count)
		return;
	fputs("<h2>Last ten minutes, as far as somebody looked</h2>\n<div class=\"cards\">\n", to);
	for (enum of_point which = COMMANDS; which <= LATENCY; which++) {
		double most = 0;

		for (size_t n = 0; n < trend->count; n++)
			most = fmax(most, value_of(trend_at(trend, n), which));
		fprintf(to, "<div class=\"card\"><h3>%s</h3>\n", titles[which]);
		put_line(to, trend, which, most > 0 ? most : 1);
		fputs("<dl><dt>now</dt><dd>", to);
		put_value(to, which, value_of(trend_at(trend, trend->count - 1), which));
		fputs("</dd>\n<dt>most</dt><dd>", to);
		put_value(to, which, most);
		fputs("</dd></dl></div>\n", to);
	}
	fputs("</div>\n", to);
}
