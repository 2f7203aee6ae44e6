/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * top: what the service does just now. Two looks at what it has counted, and the difference a
 * second. A terminal shows it again and again; a pipe gets it once.
 */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/ctl/service.h"
#include "common/clock.h"

enum {
	INTERVAL_MS = 2000,
	COLUMNS = 80,
	ROWS_BESIDE = 6, /* head lines, and the last one */
	ROWS_MAX = 1000, /* where there is no terminal */
	LATENCY_TEXT = 32,
};

struct look {
	json_t *status;
	int64_t at_ms;
};

static volatile sig_atomic_t stopped;

static void stop(int number)
{
	(void)number;
	stopped = 1;
}

/* The unit of the same number in the look before; NULL: it is new. */
static const json_t *before_of(const struct look *before, const json_t *unit)
{
	const json_t *each;

	for (size_t i = 0; (each = service_item(before->status, "units", i)); i++)
		if (service_number(each, "lun") == service_number(unit, "lun"))
			return each;
	return NULL;
}

/* How much a counter has grown. It starts again at 0 where a session or tgtd has ended. */
static double grown(const json_t *before, const json_t *now, const char *name)
{
	uint64_t from = service_number(before, name), to = service_number(now, name);

	return before && to > from ? (double)(to - from) : 0;
}

static const char *size_of(double bytes, char text[CTL_SIZE_TEXT])
{
	return ctl_format_size((uint64_t)bytes, text);
}

/* Commands whose time was taken, and the microseconds of all of them. */
struct took {
	uint64_t commands, us;
};

/* Facts of the form `MICROSECONDS COUNT...`; a service of long ago has none. */
static struct took took_of(const json_t *unit)
{
	static const char *const facts[] = { "latency_reads", "latency_writes",
					     "latency_bidirectional" };
	struct took took = { 0 };

	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		char *at, *end;

		took.us += strtoull(service_text(unit, facts[i]), &end, 10);
		do {
			at = end;
			took.commands += strtoull(at, &end, 10);
		} while (end != at);
	}
	return took;
}

/* The mean; "-": no command has ended. */
static void latency_between(const json_t *before, const json_t *now, char text[LATENCY_TEXT])
{
	struct took from = took_of(before), to = took_of(now);
	double ms;

	snprintf(text, LATENCY_TEXT, "-");
	if (!before || to.commands <= from.commands || to.us < from.us)
		return;
	ms = (double)(to.us - from.us) / (double)(to.commands - from.commands) / 1000;
	snprintf(text, LATENCY_TEXT, "%.*f ms", ms < 100 ? 2 : 0, ms);
}

static void draw_unit(const json_t *before, const json_t *unit, double seconds)
{
	char read[CTL_SIZE_TEXT], written[CTL_SIZE_TEXT], latency[LATENCY_TEXT];

	if (json_object_get(unit, "trouble")) {
		printf("%3" PRIu64 " %-4s %.*s\n", service_number(unit, "lun"),
		       service_text(unit, "type"), COLUMNS - 9, service_text(unit, "trouble"));
		return;
	}
	latency_between(before, unit, latency);
	printf("%3" PRIu64 " %-4s %9.0f %10s %9.0f %10s %9s %8.0f %8zu\n",
	       service_number(unit, "lun"), service_text(unit, "type"),
	       (grown(before, unit, "reads") + grown(before, unit, "bidirectional")) / seconds,
	       size_of(grown(before, unit, "read_bytes") / seconds, read),
	       grown(before, unit, "writes") / seconds,
	       size_of(grown(before, unit, "written_bytes") / seconds, written), latency,
	       grown(before, unit, "errors") / seconds,
	       json_array_size(json_object_get(unit, "sessions")));
}

/* Is it the first unit of its device? */
static bool is_first(const json_t *status, const json_t *unit)
{
	const json_t *each;

	for (size_t i = 0; (each = service_item(status, "units", i)) && each != unit; i++)
		if (!strcmp(service_text(each, "image"), service_text(unit, "image")))
			return false;
	return true;
}

/* Commands of this kind or of both, of all units of the device. */
static double commands_of(const struct look *before, const struct look *now, const json_t *unit,
			  const char *kind)
{
	const json_t *each;
	double commands = 0;

	for (size_t i = 0; (each = service_item(now->status, "units", i)); i++)
		if (!strcmp(service_text(each, "image"), service_text(unit, "image")))
			commands += grown(before_of(before, each), each, kind) +
				    grown(before_of(before, each), each, "bidirectional");
	return commands;
}

static void draw_share(int width, double pages, double commands)
{
	if (commands > 0)
		printf(" %*.2f", width, pages / commands);
	else
		printf(" %*s", width, "-");
}

static void draw_device(const struct look *before, const struct look *now, const json_t *unit,
			double seconds)
{
	const json_t *unit_before = before_of(before, unit);
	double read = grown(unit_before, unit, "pages_read");
	double programmed = grown(unit_before, unit, "pages_programmed");
	uint64_t capacity = service_number(unit, "capacity_bytes");
	char name[16], size[CTL_SIZE_TEXT];

	if (json_object_get(unit, "device"))
		snprintf(name, sizeof(name), "%s", service_text(unit, "device"));
	else
		snprintf(name, sizeof(name), "lun%" PRIu64, service_number(unit, "lun"));
	printf("%-10.10s %7.0f %7.0f %7.0f", name, read / seconds, programmed / seconds,
	       grown(unit_before, unit, "blocks_erased") / seconds);
	draw_share(9, read, commands_of(before, now, unit, "reads"));
	draw_share(10, programmed, commands_of(before, now, unit, "writes"));
	printf(" %5" PRIu64 " %3.0f%% of %s\n", service_number(unit, "erase_count_mean"),
	       capacity ? 100.0 * (double)service_number(unit, "used_bytes") / (double)capacity : 0,
	       ctl_format_size(capacity, size));
}

static size_t terminal_rows(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row ? size.ws_row : ROWS_MAX;
}

static void draw(const struct look *before, const struct look *now)
{
	double seconds = (double)(now->at_ms - before->at_ms + 1) / 1000;
	const json_t *status = now->status, *each, *trouble = service_item(status, "troubles", 0);
	size_t rows = terminal_rows(), left = rows > ROWS_BESIDE ? rows - ROWS_BESIDE : 1;

	printf("muninnd %s since %s, %" PRIu64 " sessions\n\n", service_text(status, "version"),
	       service_text(status, "since"), service_number(status, "sessions"));
	printf("LUN TYPE   READS/s     READ/s  WRITES/s    WRITE/s   LATENCY ERRORS/s SESSIONS\n");
	for (size_t i = 0; left && (each = service_item(status, "units", i)); i++, left--)
		draw_unit(before_of(before, each), each, seconds);
	if (left)
		printf("\nDEVICE     PAGES/s  PROG/s ERASE/s PAGE/READ PROG/WRITE  WEAR USED\n");
	for (size_t i = 0; left && (each = service_item(status, "units", i)); i++) {
		if (json_object_get(each, "trouble") || !is_first(status, each))
			continue;
		draw_device(before, now, each, seconds);
		left--;
	}
	if (trouble)
		printf("\n%.*s\n", COLUMNS - 1, service_text(trouble, "line"));
}

/* The form of the request is that of status. */
static int look(struct ctl *ctl, struct look *into)
{
	const char *verb = ctl->verb;
	int code;

	ctl->verb = "status";
	code = service_ask(ctl, json_object(), &into->status);
	into->at_ms = clock_ms();
	ctl->verb = verb;
	return code;
}

/* Until somebody has pressed ^C, or once; the looks are freed at the end. */
static int watch(struct ctl *ctl, struct look *before, struct look *now, bool again)
{
	int code = look(ctl, before);

	while (code == CTL_OK) {
		poll(NULL, 0, INTERVAL_MS);
		if (stopped)
			return CTL_OK;
		code = look(ctl, now);
		if (code != CTL_OK)
			break;
		if (again)
			printf("\033[H\033[2J");
		draw(before, now);
		if (ctl_end_output(ctl) != CTL_OK || !again)
			return ctl_end_output(ctl);
		json_decref(before->status);
		*before = *now;
		now->status = NULL;
	}
	return code == CTL_INTERRUPTED && stopped ? CTL_OK : code;
}

int verb_top(struct ctl *ctl)
{
	struct look before = { NULL, 0 }, now = { NULL, 0 };
	struct sigaction action = { .sa_handler = stop };
	int code;

	if (ctl->options->json)
		return ctl_fail(ctl, CTL_USAGE,
				"top: is for people; `status --json` has what it counts");
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	code = watch(ctl, &before, &now, isatty(STDOUT_FILENO));
	json_decref(before.status);
	json_decref(now.status);
	return code;
}
