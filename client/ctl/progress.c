/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The bar on the terminal. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "client/ctl/ctl.h"
#include "common/bytes.h"

#define REDRAW_MS          100
#define COLUMNS_DEFAULT    80 /* of a terminal that does not say */
#define BAR_CHARACTERS     24
#define BAR_CHARACTERS_MIN 4
#define PERCENT_CHARACTERS 5 /* " 100%" */
/* The least time between two lines. A function that ends sooner needs no bar. */
#define LINE_MS  1000
#define QUIET_MS 300

static volatile sig_atomic_t interrupted;

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/*
 * A line that fits into the terminal: a label and how much is done, behind them as many of the
 * other parts as have space, in the order in which they come, and a bar in what is left.
 */
struct line {
	size_t columns;
	char head[64], parts[160];
};

static size_t terminal_columns(void)
{
	struct winsize size;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col
									   : COLUMNS_DEFAULT;
}

/* One less: a full line would already begin the next one. */
static void line_begin(struct line *line, const char *label)
{
	line->columns = terminal_columns() - 1;
	line->parts[0] = '\0';
	snprintf(line->head, sizeof(line->head), "%s", label);
}

static void line_add(struct line *line, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void line_add(struct line *line, const char *format, ...)
{
	size_t used = strlen(line->parts), before = strlen(line->head) + PERCENT_CHARACTERS;
	char part[sizeof(line->parts)];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(part, sizeof(part), format, arguments);
	va_end(arguments);
	if (before + used + strlen(part) <= line->columns &&
	    used + strlen(part) < sizeof(line->parts))
		strcpy(line->parts + used, part);
}

static void line_add_eta(struct line *line, uint64_t seconds)
{
	line_add(line, "  ETA %" PRIu64 ":%02u:%02u", seconds / 3600, (unsigned)(seconds / 60 % 60),
		 (unsigned)(seconds % 60));
}

/* `done` of `total`, or with `total` 0 nobody knows of how much. */
static void line_draw(const struct line *line, uint64_t done, uint64_t total)
{
	size_t used = strlen(line->head) + strlen(line->parts) + PERCENT_CHARACTERS + 3;
	size_t width = line->columns > used ? min_u64(line->columns - used, BAR_CHARACTERS) : 0;
	unsigned permille = total ? (unsigned)(min_u64(done, total) * 1000 / total) : 0;
	char text[sizeof(line->head) + sizeof(line->parts) + BAR_CHARACTERS + 16];
	char bar[BAR_CHARACTERS + 4] = "";

	if (total && width >= BAR_CHARACTERS_MIN) {
		memset(bar, ' ', width + 3);
		memset(bar + 2, '#', width * permille / 1000);
		bar[1] = '[';
		bar[width + 2] = ']';
		bar[width + 3] = '\0';
	}
	if (total)
		snprintf(text, sizeof(text), "%s %3u%%%s%s", line->head, permille / 10, bar,
			 line->parts);
	else
		snprintf(text, sizeof(text), "%s%s", line->head, line->parts);
	/* Clears the rest of a longer line. */
	fprintf(stderr, "\r%.*s\033[K", (int)line->columns, text);
	fflush(stderr);
}

static void draw(struct progress *progress, uint64_t now)
{
	char done[CTL_SIZE_TEXT], total[CTL_SIZE_TEXT], rate[CTL_SIZE_TEXT];
	uint64_t elapsed = now > progress->started_ms ? now - progress->started_ms : 1;
	uint64_t bytes_a_second = progress->bytes * 1000 / elapsed;
	struct line line;

	progress->drawn_ms = now;
	line_begin(&line, progress->label);
	ctl_format_size(progress->bytes, done);
	if (progress->bytes_total)
		line_add(&line, " %s of %s", done, ctl_format_size(progress->bytes_total, total));
	else
		line_add(&line, " %s", done);
	line_add(&line, "  %s/s", ctl_format_size(bytes_a_second, rate));
	if (progress->bytes_total && bytes_a_second && progress->bytes <= progress->bytes_total)
		line_add_eta(&line, (progress->bytes_total - progress->bytes) / bytes_a_second);
	if (progress->files_total)
		line_add(&line, "  %" PRIu64 "/%" PRIu64 " files", progress->files,
			 progress->files_total);
	line_draw(&line, progress->bytes, progress->bytes_total);
}

static void draw_permille(struct progress *progress, uint64_t now)
{
	uint64_t elapsed = now - progress->started_ms;
	struct line line;

	progress->drawn_ms = now;
	line_begin(&line, progress->label);
	if (progress->permille > 0)
		line_add_eta(&line,
			     elapsed * (1000 - progress->permille) / progress->permille / 1000);
	line_draw(&line, progress->permille, 1000);
}

void progress_begin(struct progress *progress, const struct ctl *ctl, const char *label,
		    uint64_t bytes_total, uint64_t files_total)
{
	*progress = (struct progress){
		.shown = isatty(STDERR_FILENO) && !ctl->options->quiet && !ctl->options->json,
		.label = label,
		.bytes_total = bytes_total,
		.files_total = files_total,
		.started_ms = now_ms(),
	};
}

void progress_add(struct progress *progress, uint64_t bytes, uint64_t files)
{
	uint64_t now;

	progress->bytes += bytes;
	progress->files += files;
	if (!progress->shown)
		return;
	now = now_ms();
	if (now - progress->drawn_ms >= REDRAW_MS)
		draw(progress, now);
}

void progress_end(struct progress *progress)
{
	if (!progress->shown || !progress->drawn_ms)
		return;
	if (progress->is_permille)
		draw_permille(progress, now_ms());
	else
		draw(progress, now_ms());
	fputc('\n', stderr);
}

/* ---- functions of the target ---- */

static void interrupt(int number)
{
	(void)number;
	interrupted = 1;
	/* The second one ends the process in any case, whichever it is. */
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
}

void progress_catch_signals(void)
{
	const struct sigaction action = { .sa_handler = interrupt };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

bool progress_interrupted(void)
{
	return interrupted;
}

void progress_watch(struct progress *progress, const struct ctl *ctl, const char *label)
{
	progress_begin(progress, ctl, label, 0, 0);
	progress->is_permille = true;
	progress->in_lines = ctl->options->progress && !progress->shown && !ctl->options->quiet;
	progress_catch_signals();
}

void progress_clear(const struct progress *progress)
{
	if (progress->shown && progress->drawn_ms)
		fputs("\r\033[K", stderr);
}

int progress_items(struct progress *progress, const uint8_t *items, size_t length)
{
	uint64_t permille, now = now_ms();

	if (interrupted)
		return -ECANCELED;
	if (osd_item_find_number(items, length, OSD_ITEM_PROGRESS, &permille) < 0)
		return 0;
	/* If others add things meanwhile, the target's progress goes back. The bar does not. */
	progress->permille = max_u64(progress->permille, min_u64(permille, 1000));
	if (progress->shown && now - progress->started_ms >= QUIET_MS &&
	    now - progress->drawn_ms >= REDRAW_MS)
		draw_permille(progress, now);
	if (progress->in_lines &&
	    (progress->permille == 1000 || now - progress->drawn_ms >= LINE_MS)) {
		progress->drawn_ms = now;
		fprintf(stderr, "%s: %u%%\n", progress->label, (unsigned)(progress->permille / 10));
	}
	return 0;
}
