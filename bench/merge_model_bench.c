/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* `muninn-bench merging`: the command line, and what it prints. */
#include "bench/merge_model_bench.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>

#include "bench/command_line.h"
#include "bench/merge_model.h"

static const char help[] =
	"muninn-bench merging [OPTION...]: ways of merging beside the engine's, simulated\n"
	"\n"
	"  --segments N      of 256 pages, that the device has (default 1024)\n"
	"  --rows N          a power of two (default 8)\n"
	"  --page-records N  records of a page: 4 of 1 KiB (default), or 1\n"
	"  --live N          keys, per mille of the records that fill the device (default 570)\n"
	"  --history         keep as much history as fits; otherwise only the present\n"
	"  --turns N         updates, as multiples of the device; the second half is measured\n"
	"                    (default 3)\n"
	"  --seed N          of the random numbers (default 1)\n"
	"\n"
	"Each way with updates that are random, pareto, and hot (a tenth of the keys takes nine\n"
	"tenths). The ways:\n"
	"  active      each segment by itself, to the buffer of its row: the engine's\n"
	"  group       24 segments of a row that follow each other are rewritten at their place\n"
	"  two groups  48 of them\n"
	"  apart       each segment by itself, to a second buffer of its row\n"
	"  batch       some segments of a row together, to whole segments; the rest as active\n"
	"  part        the same of one group, at their place\n"
	"\n"
	"JSON objects go to stdout, a table to stderr.\n";

enum option_code {
	OPTION_HELP = 256,
	OPTION_SEGMENTS,
	OPTION_ROWS,
	OPTION_PAGE_RECORDS,
	OPTION_LIVE,
	OPTION_TURNS,
	OPTION_SEED,
	OPTION_HISTORY
};

static const struct option long_options[] = {
	{ "help", no_argument, NULL, OPTION_HELP },
	{ "segments", required_argument, NULL, OPTION_SEGMENTS },
	{ "rows", required_argument, NULL, OPTION_ROWS },
	{ "page-records", required_argument, NULL, OPTION_PAGE_RECORDS },
	{ "live", required_argument, NULL, OPTION_LIVE },
	{ "turns", required_argument, NULL, OPTION_TURNS },
	{ "seed", required_argument, NULL, OPTION_SEED },
	{ "history", no_argument, NULL, OPTION_HISTORY },
	{ 0 },
};

static int take_number(struct merge_model_options *options, int option, const char *text,
		       struct error_text *error)
{
	static const struct bench_number numbers[] = {
		{ "segments", false, 32, 8192 }, { "rows", false, 1, 256 },
		{ "page-records", false, 1, 4 }, { "live", false, 10, 800 },
		{ "turns", false, 1, 100 },      { "seed", false, 0, UINT64_MAX },
	};
	uint64_t value;

	if (bench_take_number(&numbers[option - OPTION_SEGMENTS], text, &value, error) != 0)
		return -EINVAL;
	switch (option) {
	case OPTION_SEGMENTS:
		options->segments = (uint32_t)value;
		break;
	case OPTION_ROWS:
		options->rows = (uint32_t)value;
		break;
	case OPTION_PAGE_RECORDS:
		options->page_records = (uint32_t)value;
		break;
	case OPTION_LIVE:
		options->live_permille = (uint32_t)value;
		break;
	case OPTION_TURNS:
		options->turns = (uint32_t)value;
		break;
	default:
		options->seed = value;
		break;
	}
	return 0;
}

static int check(const struct merge_model_options *options, struct error_text *error)
{
	if (options->rows & (options->rows - 1))
		return error_set(error, -EINVAL, "--rows %u: must be a power of two",
				 options->rows);
	if (options->segments < 32 * options->rows)
		return error_set(error, -EINVAL, "--segments %u: must be at least 32 for each row",
				 options->segments);
	return 0;
}

/* 1: --help was asked for. */
static int parse(struct merge_model_options *options, int argc, char **argv,
		 struct error_text *error)
{
	int option, result = 0;

	optind = 0;
	while (result == 0 && (option = bench_next_option(argc, argv, long_options, error)) != -1) {
		if (option == -EINVAL)
			return -EINVAL;
		if (option == OPTION_HELP)
			return 1;
		if (option == OPTION_HISTORY)
			options->history = true;
		else
			result = take_number(options, option, optarg, error);
	}
	return result ? result : check(options, error);
}

static void print_json(const struct merge_model_options *options,
		       const struct merge_model_report *report, FILE *json)
{
	json_t *object = json_pack(
		"{ss ss si si si si sb sI sb sf sf sf sf sf sf sf si}", "way",
		merge_way_name(options->way), "updates", merge_updates_name(options->updates),
		"segments", (int)options->segments, "rows", (int)options->rows, "page_records",
		(int)options->page_records, "live_permille", (int)options->live_permille, "history",
		options->history, "seed", (json_int_t)options->seed, "full", report->full,
		"page_writes_update", report->programs, "page_reads_segment", report->reads,
		"moved_share", report->moved, "entries_key", report->entries, "ranges_share",
		report->ranges, "history_share", report->history, "aside_share", report->aside,
		"transient_segments", (int)report->transient);

	json_dumpf(object, json, JSON_COMPACT | JSON_REAL_PRECISION(6));
	fputc('\n', json);
	json_decref(object);
}

static void print_line(const struct merge_model_options *options,
		       const struct merge_model_report *report, FILE *text)
{
	fprintf(text, "%-7s %-10s ", merge_updates_name(options->updates),
		merge_way_name(options->way));
	if (report->full)
		fputs("finds no space\n", text);
	else
		fprintf(text, "%12.4f %13.0f %6.1f %11.2f %8.1f %8.1f %9u\n", report->programs,
			report->reads, 100 * report->moved, report->entries, 100 * report->ranges,
			100 * report->history, report->transient);
}

int merge_model_bench_main(int argc, char **argv, FILE *json, FILE *text)
{
	struct merge_model_options options = { .segments = 1024,
					       .rows = 8,
					       .page_records = 4,
					       .live_permille = 570,
					       .turns = 3,
					       .seed = 1 };
	struct error_text error = { "" };
	struct merge_model_report report;
	int result = parse(&options, argc, argv, &error);

	if (result != 0)
		return bench_do_without("merging", help, result, &error, json, text);
	fputs("updates way        writes/update reads/segment moved% entries/key in range history% "
	      "transient\n",
	      text);
	for (uint32_t n = 0; n < MERGE_UPDATES_KINDS * MERGE_WAYS; n++) {
		options.updates = n / MERGE_WAYS;
		options.way = n % MERGE_WAYS;
		if (merge_model_run(&options, &report) != 0) {
			fputs("muninn-bench merging: out of memory; use fewer --segments\n", text);
			return FAILED;
		}
		print_json(&options, &report, json);
		print_line(&options, &report, text);
	}
	return DONE;
}
