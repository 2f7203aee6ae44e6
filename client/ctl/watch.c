/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * watch: where space is, as a picture. Of a partition by version, of the device by partition. On a terminal the newest lines that
 * fit, again and again; into a pipe all of them, once.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/ctl/ctl.h"
#include "client/ctl/items.h"

enum {
	LINES_MAX = 4096, /* kept in memory; older ones are counted */
	INTERVAL_MS = 2000,
	BAR_COLUMNS_MIN = 10,
	BAR_COLUMNS = 40,   /* where the width is not known */
	OTHER_COLUMNS = 75, /* of a line beside its bar: number, time, sizes, and 18 of the name */
	OTHER_ROWS = 7,     /* of the picture beside the lines of versions */
};

/* One bar. */
struct line {
	char label[24];
	uint64_t time_ms; /* 0: none */
	uint64_t used, written;
	char name[OSD_VERSION_NAME_MAX + 1];
};

struct picture {
	struct ctl *ctl;
	struct line *lines; /* LINES_MAX */
	size_t count;
	uint64_t left_out; /* older ones */
	uint64_t device_used, device_capacity, horizon_ms;
	bool coloured;
	size_t rows, columns; /* of the terminal; rows 0: no limit */
};

static volatile sig_atomic_t stopped;

static void stop(int number)
{
	(void)number;
	stopped = 1;
}

/* ---- looking ---- */

static struct line *add_line(struct picture *picture)
{
	if (picture->count == LINES_MAX) {
		memmove(picture->lines, picture->lines + 1,
			(LINES_MAX - 1) * sizeof(picture->lines[0]));
		picture->count--;
		picture->left_out++;
	}
	picture->lines[picture->count] = (struct line){ .time_ms = 0 };
	return &picture->lines[picture->count++];
}

static int take_versions(void *context, const uint8_t *data, size_t length)
{
	struct osd_item_reader reader;
	struct osd_item entry;

	osd_items_read(&reader, data, length);
	while (osd_item_next(&reader, &entry) == 1) {
		struct line *line;

		if (entry.tag != OSD_ITEM_ENTRY)
			continue;
		line = add_line(context);
		snprintf(line->label, sizeof(line->label), "%" PRIu64,
			 entry_number(&entry, OSD_ITEM_VERSION));
		line->time_ms = entry_number(&entry, OSD_ITEM_TIME);
		line->used = entry_number(&entry, OSD_ITEM_USED);
		line->written = entry_number(&entry, OSD_ITEM_WRITTEN);
		entry_text(&entry, OSD_ITEM_NAME, line->name, sizeof(line->name));
	}
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct line *left = a, *right = b;

	return (left->time_ms > right->time_ms) - (left->time_ms < right->time_ms);
}

/* The versions of a partition, the device's among them, in the order in which they were made, and the present. */
static int look_at_partition(struct picture *picture, struct osd_client_address partition,
			     struct osd_client_error *error)
{
	struct osd_client *client = picture->ctl->client;
	struct items found = { .length = 0 };
	struct line *line;
	uint64_t used = 0;

	if (osd_client_execute(client, OSD_FUNCTION_VERSIONS, partition, NULL, 0, take_versions,
			       picture, error) < 0 ||
	    osd_client_execute(client, OSD_FUNCTION_RETENTION, partition, NULL, 0, items_take,
			       &found, error) < 0 ||
	    osd_client_get_number(client, partition, OSD_PARTITION_INFORMATION,
				  OSD_INFORMATION_USED_CAPACITY, &used, error) < 0)
		return error->result;
	qsort(picture->lines, picture->count, sizeof(picture->lines[0]), by_time);
	picture->horizon_ms = items_number(&found, OSD_ITEM_HORIZON);
	line = add_line(picture);
	snprintf(line->label, sizeof(line->label), "now");
	line->time_ms = ctl_now_ms();
	line->used = used;
	return 0;
}

struct partitions {
	uint64_t ids[LINES_MAX];
	size_t count;
};

static int take_partition(void *context, uint64_t id)
{
	struct partitions *partitions = context;

	if (partitions->count == LINES_MAX)
		return 1;
	partitions->ids[partitions->count++] = id;
	return 0;
}

static int look_at_device(struct picture *picture, struct osd_client_error *error)
{
	struct osd_client *client = picture->ctl->client;
	struct partitions *partitions = calloc(1, sizeof(*partitions));
	int result;

	if (!partitions) {
		*error = (struct osd_client_error){ .result = -ENOMEM, .local = true };
		return error_set(&error->sentence, -ENOMEM, "watch: no memory");
	}
	result = osd_client_list(client, (struct osd_client_address){ 0 }, OSD_FIRST_ID,
				 take_partition, partitions, error);
	for (size_t i = 0; result >= 0 && i < partitions->count; i++) {
		struct osd_client_address address = { .partition = partitions->ids[i] };
		uint64_t used = 0;
		struct line *line;

		result = osd_client_get_number(client, address, OSD_PARTITION_INFORMATION,
					       OSD_INFORMATION_USED_CAPACITY, &used, error);
		if (result == -ENOENT) {
			result = 0; /* removed meanwhile */
			continue;
		}
		line = add_line(picture);
		snprintf(line->label, sizeof(line->label), "0x%" PRIx64, address.partition);
		line->used = used;
	}
	free(partitions);
	return result < 0 ? result : 0;
}

static int look(struct picture *picture, struct osd_client_address address)
{
	struct osd_client_address root = { 0 };
	struct ctl *ctl = picture->ctl;
	struct osd_client_error error;

	picture->count = 0;
	picture->left_out = picture->horizon_ms = 0;
	if (osd_client_get_number(ctl->client, root, OSD_ROOT_INFORMATION, OSD_ROOT_USED_CAPACITY,
				  &picture->device_used, &error) < 0 ||
	    osd_client_get_number(ctl->client, root, OSD_ROOT_INFORMATION, OSD_ROOT_TOTAL_CAPACITY,
				  &picture->device_capacity, &error) < 0 ||
	    (address.partition ? look_at_partition(picture, address, &error)
			       : look_at_device(picture, &error)) < 0)
		return ctl_fail_command(ctl, &error);
	return CTL_OK;
}

/* ---- drawing ---- */

static void colour(const struct picture *picture, const char *code)
{
	if (picture->coloured)
		fputs(code, stdout);
}

/* Columns for `bytes` of `most`; a little is one. */
static size_t columns_of(uint64_t bytes, uint64_t most, size_t columns)
{
	size_t filled = (size_t)((double)bytes / (double)most * (double)columns);

	return filled == 0 && bytes > 0 ? 1 : filled;
}

/* What is used; the part of it that was written since the line before looks different. */
static void draw_bar(const struct picture *picture, const struct line *line, uint64_t most,
		     size_t columns)
{
	size_t all = columns_of(line->used, most, columns),
	       fresh = columns_of(line->written, most, columns);

	fresh = fresh < all ? fresh : all;
	putchar('|');
	colour(picture, "\033[34m");
	for (size_t i = 0; i < all - fresh; i++)
		putchar('=');
	colour(picture, "\033[33m");
	for (size_t i = 0; i < fresh; i++)
		putchar('+');
	colour(picture, "\033[0m");
	printf("%*s|", (int)(columns - all), "");
}

static void draw_line(const struct picture *picture, const struct line *line, uint64_t most,
		      size_t columns)
{
	char time[CTL_TIME_TEXT] = "", size[CTL_SIZE_TEXT], written[CTL_SIZE_TEXT + 1] = "";

	if (line->time_ms) {
		ctl_format_time(line->time_ms, time);
		strcpy(time + 19, "Z"); /* whole seconds */
	}
	if (line->written) {
		written[0] = '+';
		ctl_format_size(line->written, written + 1);
	}
	printf("%7s  %-20s ", line->label, time);
	draw_bar(picture, line, most, columns);
	/* A long name would wrap, and the lines would be more than fit. */
	printf(" %10s %11s  %.*s\n", ctl_format_size(line->used, size), written,
	       picture->rows ? 18 : OSD_VERSION_NAME_MAX, line->name);
}

static size_t bar_columns(const struct picture *picture)
{
	if (picture->columns == 0)
		return BAR_COLUMNS;
	return picture->columns > OTHER_COLUMNS + BAR_COLUMNS_MIN ? picture->columns - OTHER_COLUMNS
								  : BAR_COLUMNS_MIN;
}

static void draw_head(const struct picture *picture, bool is_device)
{
	char used[CTL_SIZE_TEXT], whole[CTL_SIZE_TEXT], time[CTL_TIME_TEXT];
	const struct line device = { .used = picture->device_used };
	uint64_t capacity = picture->device_capacity ? picture->device_capacity : 1;

	printf("%7s  %-20s ", "device", "");
	draw_bar(picture, &device, capacity, bar_columns(picture));
	printf(" %10s of %s\n", ctl_format_size(picture->device_used, used),
	       ctl_format_size(capacity, whole));
	if (is_device) {
		puts("\nThe device holds history, too. = used by the present of each partition");
		return;
	}
	puts("\n= used, + written since the version before");
	if (picture->horizon_ms)
		printf("Every moment since %s can be reached.\n",
		       ctl_format_time(picture->horizon_ms, time));
}

static void draw(const struct picture *picture, bool is_device)
{
	size_t room = picture->rows > OTHER_ROWS ? picture->rows - OTHER_ROWS : 1, first = 0;
	uint64_t most = 1;

	if (picture->rows && picture->count > room)
		first = picture->count - room;
	for (size_t i = first; i < picture->count; i++) {
		most = picture->lines[i].used > most ? picture->lines[i].used : most;
		most = picture->lines[i].written > most ? picture->lines[i].written : most;
	}
	draw_head(picture, is_device);
	if (first + picture->left_out > 0)
		printf("%7s  %" PRIu64 " more before these\n", "...", first + picture->left_out);
	for (size_t i = first; i < picture->count; i++)
		draw_line(picture, &picture->lines[i], most, bar_columns(picture));
	if (picture->count == 0)
		puts("no partitions");
}

static void measure_terminal(struct picture *picture)
{
	struct winsize size;

	picture->coloured = isatty(STDOUT_FILENO);
	picture->rows = picture->columns = 0;
	if (picture->coloured && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
		picture->rows = size.ws_row;
		picture->columns = size.ws_col;
	}
}

int verb_watch(struct ctl *ctl)
{
	const struct sigaction action = { .sa_handler = stop, .sa_flags = SA_RESETHAND };
	struct picture picture = { .ctl = ctl };
	struct osd_client_address address;
	int code = ctl_scope_address(ctl, 0, &address);

	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	picture.lines = calloc(LINES_MAX, sizeof(*picture.lines));
	if (!picture.lines)
		return ctl_fail(ctl, CTL_LOCAL, "watch: no memory");
	sigaction(SIGINT, &action, NULL);
	/* A pipe gets one picture; a terminal one after the other until it is interrupted. */
	do {
		code = look(&picture, address);
		if (code != CTL_OK)
			break;
		measure_terminal(&picture);
		if (picture.coloured)
			fputs("\033[H\033[2J", stdout);
		draw(&picture, address.partition == 0);
		code = ctl_end_output(ctl);
	} while (code == CTL_OK && picture.coloured && !stopped &&
		 poll(NULL, 0, INTERVAL_MS) == 0 && !stopped);
	free(picture.lines);
	return code;
}
