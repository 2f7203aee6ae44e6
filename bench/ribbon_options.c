/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The command line of `muninn-bench ribbon`. */
#include <errno.h>
#include <getopt.h>

#include "bench/command_line.h"
#include "bench/ribbon_bench.h"
#include "engine/muninn/index/ribbon/ribbon_shape.h"

static const char help[] =
	"muninn-bench ribbon [OPTION...]: the parts of the ribbon index by themselves\n"
	"\n"
	"  --rows N       rows that are asked in turn (default 16)\n"
	"  --groups N     groups of a row (default 16)\n"
	"  --members N    segments of a group, of 1,024 keys each (default 24)\n"
	"  --segments N   segments that are arranged, of each kind of records (default 40)\n"
	"  --questions N  keys that are looked for, there and absent (default 2000000)\n"
	"  --seed N       of the random numbers (default 1)\n"
	"\n"
	"JSON objects go to stdout, a table to stderr.\n";

enum option_code {
	OPTION_HELP = 256,
	OPTION_ROWS,
	OPTION_GROUPS,
	OPTION_MEMBERS,
	OPTION_SEGMENTS,
	OPTION_QUESTIONS,
	OPTION_SEED
};

static const struct option long_options[] = {
	{ "help", no_argument, NULL, OPTION_HELP },
	{ "rows", required_argument, NULL, OPTION_ROWS },
	{ "groups", required_argument, NULL, OPTION_GROUPS },
	{ "members", required_argument, NULL, OPTION_MEMBERS },
	{ "segments", required_argument, NULL, OPTION_SEGMENTS },
	{ "questions", required_argument, NULL, OPTION_QUESTIONS },
	{ "seed", required_argument, NULL, OPTION_SEED },
	{ 0 },
};

struct ribbon_bench_options ribbon_bench_defaults(void)
{
	return (struct ribbon_bench_options){
		.rows = 16,
		.groups = 16,
		.members = RIBBON_MEMBERS,
		.segments = 40,
		.questions = 2000000,
		.seed = 1,
	};
}

static int take_number(struct ribbon_bench_options *options, int option, const char *text,
		       struct error_text *error)
{
	static const struct bench_number numbers[] = {
		{ "rows", false, 1, 1024 },
		{ "groups", false, 1, 64 },
		{ "members", false, 1, 64 },
		{ "segments", false, 1, 10000 },
		{ "questions", false, 1, 1ULL << 40 },
		{ "seed", false, 0, UINT64_MAX },
	};
	uint64_t value;

	if (bench_take_number(&numbers[option - OPTION_ROWS], text, &value, error) != 0)
		return -EINVAL;
	switch (option) {
	case OPTION_ROWS:
		options->rows = (uint32_t)value;
		break;
	case OPTION_GROUPS:
		options->groups = (uint32_t)value;
		break;
	case OPTION_MEMBERS:
		options->members = (uint32_t)value;
		break;
	case OPTION_SEGMENTS:
		options->segments = (uint32_t)value;
		break;
	case OPTION_QUESTIONS:
		options->questions = value;
		break;
	default:
		options->seed = value;
		break;
	}
	return 0;
}

/* 1: --help was asked for. */
static int parse(struct ribbon_bench_options *options, int argc, char **argv,
		 struct error_text *error)
{
	int option, result = 0;

	optind = 0;
	while (result == 0 && (option = bench_next_option(argc, argv, long_options, error)) != -1) {
		if (option == -EINVAL)
			return -EINVAL;
		if (option == OPTION_HELP)
			return 1;
		result = take_number(options, option, optarg, error);
	}
	return result;
}

int ribbon_bench_main(int argc, char **argv, FILE *json, FILE *text)
{
	struct ribbon_bench_options options = ribbon_bench_defaults();
	struct error_text error = { "" };
	int result = parse(&options, argc, argv, &error);

	if (result != 0)
		return bench_do_without("ribbon", help, result, &error, json, text);
	if (ribbon_bench_run(&options, json, text, &error) == 0)
		return DONE;
	fprintf(text, "muninn-bench ribbon: %s\n", error.text);
	return FAILED;
}
