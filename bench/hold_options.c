/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The command line of `muninn-bench hold`. */
#include <errno.h>
#include <getopt.h>

#include "bench/command_line.h"
#include "bench/hold_bench.h"

static const char help[] =
	"muninn-bench hold [OPTION...]: how long each command, at its largest, holds up a READ of "
	"4 KiB\n"
	"\n"
	"  --mib N            MiB of the large objects (default 256); takes 16 times as much "
	"memory\n"
	"  --members N        of the large collection, and objects of a CREATE (default 65535)\n"
	"  --modifications N  that UNDO takes back (default 65536)\n"
	"  --records N        the goal: no command holds others up for more records (default "
	"8448)\n"
	"  --only TEXT        only the commands whose name holds the text\n"
	"\n"
	"JSON objects go to stdout, a table to stderr. The exit code is 1 when the goal is "
	"missed.\n";

enum option_code {
	OPTION_HELP = 256,
	OPTION_ONLY,
	OPTION_MIB,
	OPTION_MEMBERS,
	OPTION_MODIFICATIONS,
	OPTION_RECORDS
};

static const struct option long_options[] = {
	{ "help", no_argument, NULL, OPTION_HELP },
	{ "only", required_argument, NULL, OPTION_ONLY },
	{ "mib", required_argument, NULL, OPTION_MIB },
	{ "members", required_argument, NULL, OPTION_MEMBERS },
	{ "modifications", required_argument, NULL, OPTION_MODIFICATIONS },
	{ "records", required_argument, NULL, OPTION_RECORDS },
	{ 0 },
};

static int take_number(struct hold_options *options, int option, const char *text,
		       struct error_text *error)
{
	static const struct bench_number numbers[] = {
		{ "mib", false, 1, 1024 },
		{ "members", false, 1, 65535 },
		{ "modifications", false, 1, 65536 },
		{ "records", false, 1, 1 << 30 },
	};
	uint32_t *places[] = { &options->mib, &options->members, &options->modifications,
			       &options->records_max };
	uint64_t value;

	if (bench_take_number(&numbers[option - OPTION_MIB], text, &value, error) != 0)
		return -EINVAL;
	*places[option - OPTION_MIB] = (uint32_t)value;
	return 0;
}

/* 1: --help was asked for. */
static int parse(struct hold_options *options, int argc, char **argv, struct error_text *error)
{
	int option, result = 0;

	optind = 0;
	while (result == 0 && (option = bench_next_option(argc, argv, long_options, error)) != -1) {
		switch (option) {
		case -EINVAL:
			return -EINVAL;
		case OPTION_HELP:
			return 1;
		case OPTION_ONLY:
			options->only = optarg;
			break;
		default:
			result = take_number(options, option, optarg, error);
			break;
		}
	}
	return result;
}

int hold_bench_main(int argc, char **argv, FILE *json, FILE *text)
{
	struct hold_options options = hold_defaults();
	struct error_text error = { "" };
	int result = parse(&options, argc, argv, &error);

	if (result != 0)
		return bench_do_without("hold", help, result, &error, json, text);
	if (hold_bench_run(&options, json, text, &error) == 0)
		return DONE;
	fprintf(text, "muninn-bench hold: %s\n", error.text);
	return FAILED;
}
