/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The bar on the terminal. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/ctl/ctl.h"
#include "common/bytes.h"

#define REDRAW_MS      100
#define BAR_CHARACTERS 24
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

static void draw_bar(uint64_t done, uint64_t total)
{
	unsigned filled = (unsigned)(done * BAR_CHARACTERS / total);
	char bar[BAR_CHARACTERS + 1];

	if (filled > BAR_CHARACTERS)
		filled = BAR_CHARACTERS;
	memset(bar, ' ', BAR_CHARACTERS);
	memset(bar, '#', filled);
	bar[BAR_CHARACTERS] = '\0';
	fprintf(stderr, " %3u%% [%s]", (unsigned)(done * 100 / total), bar);
}

static void draw_eta(uint64_t seconds)
{
	fprintf(stderr, "  ETA %" PRIu64 ":%02u:%02u", seconds / 3600,
		(unsigned)(seconds / 60 % 60), (unsigned)(seconds % 60));
}

static void draw(struct progress *progress, uint64_t now)
{
	char done[CTL_SIZE_TEXT], total[CTL_SIZE_TEXT], rate[CTL_SIZE_TEXT];
	uint64_t elapsed = now > progress->started_ms ? now - progress->started_ms : 1;
	uint64_t bytes_a_second = progress->bytes * 1000 / elapsed;

	progress->drawn_ms = now;
	fprintf(stderr, "\r%s", progress->label);
	if (progress->bytes_total) {
		draw_bar(progress->bytes, progress->bytes_total);
		fprintf(stderr, " %s of %s", ctl_format_size(progress->bytes, done),
			ctl_format_size(progress->bytes_total, total));
	} else {
		fprintf(stderr, " %s", ctl_format_size(progress->bytes, done));
	}
	fprintf(stderr, "  %s/s", ctl_format_size(bytes_a_second, rate));
	if (progress->files_total)
		fprintf(stderr, "  %" PRIu64 "/%" PRIu64 " files", progress->files,
			progress->files_total);
	if (progress->bytes_total && bytes_a_second && progress->bytes <= progress->bytes_total)
		draw_eta((progress->bytes_total - progress->bytes) / bytes_a_second);
	/* Clears the rest of a longer line. */
	fputs("\033[K", stderr);
	fflush(stderr);
}

static void draw_permille(struct progress *progress, uint64_t now)
{
	uint64_t elapsed = now - progress->started_ms;

	progress->drawn_ms = now;
	fprintf(stderr, "\r%s", progress->label);
	draw_bar(progress->permille, 1000);
	if (progress->permille > 0)
		draw_eta(elapsed * (1000 - progress->permille) / progress->permille / 1000);
	fputs("\033[K", stderr);
	fflush(stderr);
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
}

bool progress_interrupted(void)
{
	return interrupted;
}

void progress_watch(struct progress *progress, const struct ctl *ctl, const char *label)
{
	/* The second ^C ends the process in any case. */
	const struct sigaction action = { .sa_handler = interrupt, .sa_flags = SA_RESETHAND };

	progress_begin(progress, ctl, label, 0, 0);
	progress->is_permille = true;
	progress->in_lines = ctl->options->progress && !progress->shown && !ctl->options->quiet;
	sigaction(SIGINT, &action, NULL);
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
