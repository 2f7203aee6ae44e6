/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* How the picture of watch is laid out on so many rows and columns, and drawn. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/ctl.h"
#include "client/ctl/watch.h"

/* Columns of the parts of a line, with the blanks before them. */
enum {
	LABEL_MIN = 7,
	TIME_COLUMNS = 2 + 20,
	BAR_FRAME = 3, /* blank and two strokes */
	BAR_MIN = 5,
	BAR_GOOD = 10,
	BAR_UNLIMITED = 40,
	SIZE_COLUMNS = 1 + 10,
	MORE_COLUMNS = 1 + 13, /* "+12.5 MiB", "of 1.5 TiB" */
	NAME_BLANKS = 2,
	NAME_MIN = 8,
	NAME_GOOD = 18,
	TEXT_BYTES = 160,
};

/* The columns of each part, the same in all lines; 0: not shown. */
struct widths {
	size_t all; /* of the terminal; 0: no limit */
	size_t label, bar, name;
	bool time, size, more;
};

struct drawing {
	FILE *to;
	struct watch_picture *picture;
	struct widths widths;
	size_t rows_left;
};

/* ---- widths ---- */

/* Takes `columns` away if so many are left. */
static bool take(size_t *left, size_t columns)
{
	if (*left < columns)
		return false;
	*left -= columns;
	return true;
}

static void measure(const struct watch_list *list, struct widths *widest)
{
	for (size_t i = 0; i < list->count; i++) {
		size_t label = strlen(list->lines[i].label), name = strlen(list->lines[i].name);

		widest->label = label > widest->label ? label : widest->label;
		widest->name = name > widest->name ? name : widest->name;
		widest->time |= list->lines[i].time_ms != 0;
	}
}

/*
 * Shares out the columns: first a bar, then what was written, then times; then a good bar; names,
 * and a longer bar, from the rest.
 */
static struct widths fit(const struct watch_picture *picture)
{
	struct widths widest = { .label = LABEL_MIN }, widths = { .all = picture->columns };
	size_t left = picture->columns, more;

	measure(&picture->partitions, &widest);
	measure(&picture->versions, &widest);
	if (left == 0) {
		widest.bar = BAR_UNLIMITED;
		widest.size = widest.more = true;
		return widest;
	}
	widths.label = widest.label < left ? widest.label : left;
	left -= widths.label;
	widths.size = take(&left, SIZE_COLUMNS);
	widths.bar = widths.size && take(&left, BAR_FRAME + BAR_MIN) ? BAR_MIN : 0;
	widths.more = widths.bar && take(&left, MORE_COLUMNS);
	widths.time = widths.more && widest.time && take(&left, TIME_COLUMNS);
	if (!widths.bar)
		return widths;
	more = left < BAR_GOOD - BAR_MIN ? left : BAR_GOOD - BAR_MIN;
	widths.bar += more;
	left -= more;
	if (widths.more && widest.name && left >= NAME_BLANKS + NAME_MIN) {
		more = widest.name < NAME_GOOD ? widest.name : NAME_GOOD;
		widths.name = more < left - NAME_BLANKS ? more : left - NAME_BLANKS;
		left -= NAME_BLANKS + widths.name;
	}
	widths.bar += left;
	return widths;
}

/* ---- lines of text ---- */

static void end_row(struct drawing *drawing)
{
	putc('\n', drawing->to);
	if (drawing->rows_left > 0)
		drawing->rows_left--;
}

/* Sentences, in as many rows as they need. */
static void write_text(struct drawing *drawing, const char *text)
{
	size_t columns = drawing->widths.all ? drawing->widths.all : strlen(text);

	while (*text && drawing->rows_left > 0) {
		size_t length = strlen(text);

		if (length > columns) {
			length = columns;
			while (length > 0 && text[length] != ' ')
				length--;
			length = length ? length : columns;
		}
		fprintf(drawing->to, "%.*s", (int)length, text);
		end_row(drawing);
		text += length;
		text += strspn(text, " ");
	}
}

/*
 * How many of the first `bytes` bytes are whole characters. A character takes at least a byte for
 * each column.
 */
static int whole_characters(const char *text, size_t bytes)
{
	size_t length = strlen(text);

	if (length <= bytes)
		return (int)length;
	while (bytes > 0 && ((uint8_t)text[bytes] & 0xC0) == 0x80)
		bytes--;
	return (int)bytes;
}

/* ---- bars ---- */

static void colour(const struct drawing *drawing, const char *code)
{
	if (drawing->picture->coloured)
		fputs(code, drawing->to);
}

/* Columns for `bytes` of `most`; a little is one. */
static size_t columns_of(uint64_t bytes, uint64_t most, size_t columns)
{
	size_t filled = (size_t)((double)bytes / (double)most * (double)columns);

	filled = filled < columns ? filled : columns;
	return filled == 0 && bytes > 0 ? 1 : filled;
}

static void repeat(const struct drawing *drawing, char sign, size_t times)
{
	for (size_t i = 0; i < times; i++)
		putc(sign, drawing->to);
}

/* Draws what is used. The part that was written since the line before looks different. */
static void draw_bar(const struct drawing *drawing, const struct watch_line *line, uint64_t most)
{
	size_t columns = drawing->widths.bar, fresh = columns_of(line->written, most, columns),
	       all = line->used ? columns_of(line->used, most, columns) : 0;

	/* A version of the device only has what was written. */
	if (drawing->picture->is_device && line->used == 0)
		all = fresh;
	fresh = fresh < all ? fresh : all;
	fputs(" |", drawing->to);
	colour(drawing, "\033[34m");
	repeat(drawing, '=', all - fresh);
	colour(drawing, "\033[33m");
	repeat(drawing, '+', fresh);
	colour(drawing, "\033[0m");
	repeat(drawing, ' ', columns - all);
	putc('|', drawing->to);
}

/* A line with `more` behind the used size. */
static void draw_row(struct drawing *drawing, const struct watch_line *line, uint64_t most,
		     const char *more)
{
	const struct widths *widths = &drawing->widths;
	char time[CTL_TIME_TEXT] = "", size[CTL_SIZE_TEXT];
	bool has_used = line->used || !line->written || !drawing->picture->is_device;

	if (line->time_ms) {
		ctl_format_time(line->time_ms, time);
		strcpy(time + 19, "Z"); /* whole seconds */
	}
	fprintf(drawing->to, "%*.*s", (int)widths->label, (int)widths->label, line->label);
	if (widths->time)
		fprintf(drawing->to, "  %-20s", time);
	if (widths->bar)
		draw_bar(drawing, line, most);
	if (widths->size)
		fprintf(drawing->to, " %10s", has_used ? ctl_format_size(line->used, size) : "");
	if (widths->more && (*more || line->name[0]))
		fprintf(drawing->to, " %13s", more);
	if (widths->name && line->name[0])
		fprintf(drawing->to, "  %.*s", whole_characters(line->name, widths->name),
			line->name);
	end_row(drawing);
}

static void draw_line(struct drawing *drawing, const struct watch_line *line, uint64_t most)
{
	char written[CTL_SIZE_TEXT + 1] = "";

	if (line->written) {
		written[0] = '+';
		ctl_format_size(line->written, written + 1);
	}
	draw_row(drawing, line, most, written);
}

static void draw_lines(struct drawing *drawing, const struct watch_line *lines, size_t count)
{
	uint64_t most = 1;

	for (size_t i = 0; i < count; i++) {
		most = lines[i].used > most ? lines[i].used : most;
		most = lines[i].written > most ? lines[i].written : most;
	}
	for (size_t i = 0; i < count; i++)
		draw_line(drawing, &lines[i], most);
}

/* ---- lists ---- */

static int by_used(const void *a, const void *b)
{
	const struct watch_line *left = a, *right = b;

	return (left->used < right->used) - (left->used > right->used);
}

static int by_number(const void *a, const void *b)
{
	const struct watch_line *left = a, *right = b;

	return (left->number > right->number) - (left->number < right->number);
}

/* Rows that the whole list takes. */
static size_t rows_of(const struct watch_list *list)
{
	return list->count + (list->left_out > 0);
}

/*
 * How many lines fit on so many rows: all, or one less and a row that says how many more there are.
 */
static size_t lines_on(const struct watch_list *list, size_t rows)
{
	if (rows_of(list) <= rows)
		return list->count;
	return rows > 0 ? rows - 1 : 0;
}

static void write_more(struct drawing *drawing, uint64_t more, const char *what)
{
	char text[TEXT_BYTES];

	if (more == 0 || drawing->rows_left == 0)
		return;
	snprintf(text, sizeof(text), "%*s  %" PRIu64 " more %s", (int)drawing->widths.label, "...",
		 more, what);
	fprintf(drawing->to, "%.*s",
		(int)(drawing->widths.all ? drawing->widths.all : strlen(text)), text);
	end_row(drawing);
}

static void draw_versions(struct drawing *drawing, size_t rows)
{
	const struct watch_list *list = &drawing->picture->versions;
	size_t count = lines_on(list, rows), first = list->count - count;

	write_more(drawing, first + list->left_out, "before these");
	draw_lines(drawing, list->lines + first, count);
}

static void draw_partitions(struct drawing *drawing, size_t rows)
{
	struct watch_list *list = &drawing->picture->partitions;
	size_t count = lines_on(list, rows);
	uint64_t used = list->left_out_used;
	char what[64], size[CTL_SIZE_TEXT];

	if (count < list->count)
		qsort(list->lines, list->count, sizeof(list->lines[0]), by_used);
	for (size_t i = count; i < list->count; i++)
		used += list->lines[i].used;
	qsort(list->lines, count, sizeof(list->lines[0]), by_number);
	draw_lines(drawing, list->lines, count);
	snprintf(what, sizeof(what), "with %s", ctl_format_size(used, size));
	write_more(drawing, list->count - count + list->left_out, what);
}

/* ---- the picture ---- */

static void draw_head(struct drawing *drawing)
{
	const struct watch_picture *picture = drawing->picture;
	const struct watch_line device = { .label = "device", .used = picture->used };
	char more[CTL_SIZE_TEXT + 3] = "of ", text[TEXT_BYTES], time[CTL_TIME_TEXT];

	ctl_format_size(picture->capacity, more + 3);
	draw_row(drawing, &device, picture->capacity ? picture->capacity : 1, more);
	end_row(drawing);
	write_text(drawing, picture->is_device
				    ? "= used by the present of each partition; the device holds "
				      "history, too."
				    : "= used, + written since the version before.");
	if (picture->horizon_ms) {
		snprintf(text, sizeof(text), "Every moment since %s can be reached.",
			 ctl_format_time(picture->horizon_ms, time));
		write_text(drawing, text);
	}
}

static void draw_device(struct drawing *drawing)
{
	const struct watch_picture *picture = drawing->picture;
	size_t partitions = rows_of(&picture->partitions), versions = rows_of(&picture->versions);
	size_t lines = drawing->rows_left;

	if (partitions == 0) {
		write_text(drawing, "No partitions.");
		lines = drawing->rows_left;
	}
	if (versions) { /* a blank row and the title, which may need two */
		const size_t title = 3;

		lines = lines > title ? lines - title : 0;
		versions = versions < lines / 2 ? versions : lines / 2;
		if (partitions < lines - versions)
			versions = lines - partitions;
	}
	draw_partitions(drawing, versions < lines ? lines - versions : 0);
	if (versions && drawing->rows_left > 1) {
		end_row(drawing);
		write_text(drawing, "Versions of the device: + written since the one before.");
		draw_versions(drawing, drawing->rows_left);
	}
}

void watch_draw(FILE *to, struct watch_picture *picture)
{
	struct drawing drawing = {
		.to = to,
		.picture = picture,
		.widths = fit(picture),
		/* The cursor stands behind the last row. */
		.rows_left = picture->rows ? picture->rows - 1 : SIZE_MAX,
	};

	draw_head(&drawing);
	if (picture->is_device)
		draw_device(&drawing);
	else
		draw_versions(&drawing, drawing.rows_left);
}
