/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The command line of `muninn-bench list`. */
#include <errno.h>
#include <getopt.h>

#include "bench/command_line.h"
#include "bench/list_bench.h"

static const char help[] =
	"muninn-bench list [OPTION...]: what an entry of LIST and LIST COLLECTION costs, over its "
	"place in the list\n"
	"\n"
	"  --objects N   in the partition and in the collection (default 1000000)\n"
	"  --answer N      bytes of an answer (default 65536)\n"
	"  --steps N     points of each curve (default 20)\n"
	"  --nodes N     nodes of directories kept in memory (default 1024)\n"
	"  --ids         without the lists that have an attribute of each entry\n"
	"  --size N      GiB of the device, which is memory that is taken as it fills (default 4)\n"
	"\n"
	"JSON objects go to stdout, a table to stderr.\n";

enum option_code {
	OPTION_HELP = 256,
	OPTION_IDS,
	OPTION_OBJECTS,
	OPTION_ANSWER,
	OPTION_STEPS,
	OPTION_NODES,
	OPTION_SIZE
};

static const struct option long_options[] = {
	{ "help", no_argument, NULL, OPTION_HELP },
	{ "ids", no_argument, NULL, OPTION_IDS },
	{ "objects", required_argument, NULL, OPTION_OBJECTS },
	{ "answer", required_argument, NULL, OPTION_ANSWER },
	{ "steps", required_argument, NULL, OPTION_STEPS },
	{ "nodes", required_argument, NULL, OPTION_NODES },
	{ "size", required_argument, NULL, OPTION_SIZE },
	{ 0 },
};

static int take_number(struct list_bench_options *options, int option, const char *text,
		       struct error_text *error)
{
	static const struct bench_number numbers[] = {
		{ "objects", false, 1, 100000000 }, { "answer", false, 32, 1 << 28 },
		{ "steps", false, 1, 10000 },       { "nodes", false, 128, 1 << 20 },
		{ "size", false, 1, 4096 },
	};
	uint64_t value;

	if (bench_take_number(&numbers[option - OPTION_OBJECTS], text, &value, error) != 0)
		return -EINVAL;
	switch (option) {
	case OPTION_OBJECTS:
		options->objects = value;
		break;
	case OPTION_ANSWER:
		options->answer_bytes = (uint32_t)value;
		break;
	case OPTION_STEPS:
		options->steps = (uint32_t)value;
		break;
	case OPTION_NODES:
		options->nodes = (uint32_t)value;
		break;
	default:
		options->size_bytes = value << 30;
		break;
	}
	return 0;
}

/* 1: --help was asked for. */
static int parse(struct list_bench_options *options, int argc, char **argv,
		 struct error_text *error)
{
	int option, result = 0;

	optind = 0;
	while (result == 0 && (option = bench_next_option(argc, argv, long_options, error)) != -1) {
		switch (option) {
		case -EINVAL:
			return -EINVAL;
		case OPTION_HELP:
			return 1;
		case OPTION_IDS:
			options->ids_only = true;
			break;
		default:
			result = take_number(options, option, optarg, error);
			break;
		}
	}
	return result;
}

int list_bench_main(int argc, char **argv, FILE *json, FILE *text)
{
	struct list_bench_options options = list_bench_defaults();
	struct error_text error = { "" };
	int result = parse(&options, argc, argv, &error);

	if (result != 0)
		return bench_do_without("list", help, result, &error, json, text);
	if (list_bench_run(&options, json, text, &error) == 0)
		return DONE;
	fprintf(text, "muninn-bench list: %s\n", error.text);
	return FAILED;
}
