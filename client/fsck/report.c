/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Findings, progress and results, as lines or as JSON. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/fsck/fsck.h"
#include "common/clock.h"

/* Findings of a kind that are printed without --all. */
#define PRINTED_MAX 20
#define REDRAW_MS   200

static void clear_progress(struct fsck_report *report)
{
	if (report->drawn)
		fputs("\r\033[K", stderr);
	report->drawn = false;
}

/* ---- findings ---- */

static void print_place(const struct finding *finding)
{
	if (finding->object)
		printf("object 0x%" PRIx64 "/0x%" PRIx64 ": ", finding->partition, finding->object);
	else if (finding->partition)
		printf("partition 0x%" PRIx64 ": ", finding->partition);
}

static void print_finding(struct fsck_report *report, const struct finding *finding)
{
	const struct finding_words *words = finding_words(finding->kind);

	clear_progress(report);
	printf("%s: ", words->name);
	print_place(finding);
	printf("%s; %s; --repair %s\n", finding->text, words->meaning, words->salvage);
}

static void add_to_list(struct fsck_report *report, const struct finding *finding)
{
	const struct finding_words *words = finding_words(finding->kind);
	json_t *object = json_pack("{s:s,s:s,s:s,s:s,s:b}", "kind", words->name, "text",
				   finding->text, "meaning", words->meaning, "repair",
				   words->salvage, "loss", (int)words->is_loss);

	if (finding->partition)
		json_object_set_new(object, "partition",
				    json_integer((json_int_t)finding->partition));
	if (finding->object)
		json_object_set_new(object, "object", json_integer((json_int_t)finding->object));
	json_array_append_new(report->list, object);
}

static void take_finding(void *context, const struct finding *finding)
{
	struct fsck_report *report = context;
	uint64_t number = ++report->by_kind[finding->kind];

	report->losses += finding_words(finding->kind)->is_loss;
	if (report->options->json)
		add_to_list(report, finding);
	else if (!report->options->quiet && (report->options->all || number <= PRINTED_MAX))
		print_finding(report, finding);
}

void report_begin(struct fsck_report *report, const struct fsck_options *options)
{
	*report = (struct fsck_report){
		.options = options,
		.findings = { .take = take_finding, .context = report },
		.list = options->json ? json_array() : NULL,
		.shows_progress = isatty(STDERR_FILENO) && !options->json && !options->quiet,
	};
}

/* ---- progress ---- */

void report_progress(void *context, const char *step, uint64_t done, uint64_t total)
{
	struct fsck_report *report = context;
	uint64_t now = clock_microseconds() / 1000;

	if (!report->shows_progress || now - report->drawn_ms < REDRAW_MS)
		return;
	report->drawn_ms = now;
	report->drawn = true;
	fprintf(stderr, "\r%s: %s, %" PRIu64 " of %" PRIu64 "\033[K", report->options->image, step,
		done, total);
	fflush(stderr);
}

void report_note(struct fsck_report *report, const char *format, ...)
{
	va_list arguments;

	if (report->options->quiet || report->options->json)
		return;
	clear_progress(report);
	fputs("muninn-fsck: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

/* ---- the end ---- */

static void print_more(const struct fsck_report *report)
{
	for (int kind = 0; kind < FINDING_KINDS; kind++)
		if (report->by_kind[kind] > PRINTED_MAX && !report->options->all)
			printf("%s: %" PRIu64 " more; --all prints them\n",
			       finding_words((enum finding_kind)kind)->name,
			       report->by_kind[kind] - PRINTED_MAX);
}

static void print_counts(const char *before, const struct fsck_counts *counts)
{
	printf("%s%" PRIu64 " partitions, %" PRIu64 " objects, %" PRIu64 " collections, %" PRIu64
	       " bytes of data",
	       before, counts->partitions, counts->objects, counts->collections,
	       counts->data_bytes);
}

static void print_end(struct fsck_report *report, const struct fsck_counts *found,
		      const struct fsck_counts *copied)
{
	const struct fsck_options *options = report->options;

	clear_progress(report);
	print_more(report);
	printf("%s: ", options->image);
	print_counts("", found);
	printf(", %" PRIu64 " versions; ", found->versions);
	if (report->findings.count)
		printf("%" PRIu64 " findings\n", report->findings.count);
	else
		puts("nothing is wrong");
	if (!copied)
		return;
	printf("%s: ", options->to);
	print_counts("copied ", copied);
	puts(report->losses ? "; what is missing, or may be older, is named above"
			    : "; nothing of the present is missing");
}

static json_t *counts_json(const struct fsck_counts *counts)
{
	return json_pack("{s:I,s:I,s:I,s:I,s:I}", "partitions", (json_int_t)counts->partitions,
			 "objects", (json_int_t)counts->objects, "collections",
			 (json_int_t)counts->collections, "versions", (json_int_t)counts->versions,
			 "data_bytes", (json_int_t)counts->data_bytes);
}

static void dump(json_t *value)
{
	json_dumpf(value, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(value);
}

void report_end(struct fsck_report *report, const struct fsck_counts *found,
		const struct fsck_counts *copied, enum fsck_exit code)
{
	const struct fsck_options *options = report->options;
	json_t *value;

	if (!options->json) {
		if (!options->quiet)
			print_end(report, found, copied);
		return;
	}
	value = json_pack("{s:s,s:s,s:i,s:o,s:o}", "image", options->image, "index", report->index,
			  "exit", (int)code, "found", counts_json(found), "findings", report->list);
	if (copied)
		json_object_set_new(value, "copied", counts_json(copied));
	dump(value);
}

enum fsck_exit report_failure(struct fsck_report *report, enum fsck_exit code, const char *text)
{
	clear_progress(report);
	if (report->options->json)
		dump(json_pack("{s:s,s:i,s:s,s:o}", "image", report->options->image, "exit",
			       (int)code, "error", text, "findings", report->list));
	else
		fprintf(stderr, "muninn-fsck: %s\n", text);
	return code;
}
