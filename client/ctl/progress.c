/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The bar on the terminal. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/ctl/ctl.h"

#define REDRAW_MS      100
#define BAR_CHARACTERS 24

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void draw_bar(const struct progress *progress)
{
	unsigned filled = (unsigned)(progress->bytes * BAR_CHARACTERS / progress->bytes_total);
	char bar[BAR_CHARACTERS + 1];

	if (filled > BAR_CHARACTERS)
		filled = BAR_CHARACTERS;
	memset(bar, ' ', BAR_CHARACTERS);
	memset(bar, '#', filled);
	bar[BAR_CHARACTERS] = '\0';
	fprintf(stderr, " %3u%% [%s]", (unsigned)(progress->bytes * 100 / progress->bytes_total),
		bar);
}

static void draw_eta(const struct progress *progress, uint64_t bytes_a_second)
{
	uint64_t seconds;

	if (bytes_a_second == 0 || progress->bytes > progress->bytes_total)
		return;
	seconds = (progress->bytes_total - progress->bytes) / bytes_a_second;
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
		draw_bar(progress);
		fprintf(stderr, " %s of %s", ctl_format_size(progress->bytes, done),
			ctl_format_size(progress->bytes_total, total));
	} else {
		fprintf(stderr, " %s", ctl_format_size(progress->bytes, done));
	}
	fprintf(stderr, "  %s/s", ctl_format_size(bytes_a_second, rate));
	if (progress->files_total)
		fprintf(stderr, "  %" PRIu64 "/%" PRIu64 " files", progress->files,
			progress->files_total);
	if (progress->bytes_total)
		draw_eta(progress, bytes_a_second);
	/* The rest of a longer line before. */
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
	draw(progress, now_ms());
	fputc('\n', stderr);
}
