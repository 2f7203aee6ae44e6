/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* `muninn-bench nand`: its options, its turns over the back ends, and their medians. */
#include "bench/nand_bench.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "bench/command_line.h"

static const char help[] =
	"muninn-bench nand [OPTION...]: the emulated NAND beside what the machine does without it\n"
	"\n"
	"  --backend NAME    mmap, file, headers; may be given again; default: all\n"
	"  --file PATH       image of the file part, created and removed; must be on the drive to "
	"be\n"
	"                    measured; default: muninn-bench-nand.image in the working directory\n"
	"  --size SIZE       page data of that image (default 1G)\n"
	"  --memory SIZE     page data of the device of the mmap part (default 256M)\n"
	"  --device SIZE     of the headers part (default 4T)\n"
	"  --records N       records it is given (default 1000000; --full: 100000000)\n"
	"  --record-size N   bytes of a record with its header (default 1024)\n"
	"  --full            the headers part at full scale: some minutes, 3 GiB of memory\n"
	"  --runs N          pairs of measurements (default 5, at most 99)\n"
	"  --seconds N       length of each random read measurement, 0.1 to 3600 (default 2)\n"
	"  --seed N\n"
	"\n"
	"JSON objects go to stdout, lines for people to stderr. Exit code 1: something failed, or "
	"a goal was missed.\n"
	"The file part needs fio(1).\n";

struct nand_bench_options nand_bench_defaults(void)
{
	return (struct nand_bench_options){
		.path = "muninn-bench-nand.image",
		.mmap_bytes = UINT64_C(256) << 20,
		.file_bytes = UINT64_C(1) << 30,
		.device_bytes = UINT64_C(4) << 40,
		.records = 1000000,
		.record_bytes = 1024,
		.runs = 5,
		.seconds = 2,
		.memory_limit_mib = 8192,
		.seed = 1,
	};
}

/* ---- the command line ---- */

static int add_part(struct nand_bench_options *options, const char *name, struct error_text *error)
{
	if (strcmp(name, "mmap") == 0)
		options->parts |= NAND_BENCH_MMAP;
	else if (strcmp(name, "file") == 0)
		options->parts |= NAND_BENCH_FILE;
	else if (strcmp(name, "headers") == 0)
		options->parts |= NAND_BENCH_HEADERS;
	else
		return error_set(error, -EINVAL, "--backend %s: there are mmap, file and headers",
				 name);
	return 0;
}

enum {
	OPTION_BACKEND = 256,
	OPTION_FILE,
	OPTION_FULL,
	OPTION_HELP,
	OPTION_SECONDS,
	/* From here on numbers. */
	OPTION_SIZE,
	OPTION_MEMORY,
	OPTION_DEVICE,
	OPTION_RECORDS,
	OPTION_RECORD_SIZE,
	OPTION_RUNS,
	OPTION_SEED,
};

static const struct option long_options[] = {
	{ "backend", required_argument, NULL, OPTION_BACKEND },
	{ "file", required_argument, NULL, OPTION_FILE },
	{ "full", no_argument, NULL, OPTION_FULL },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ "size", required_argument, NULL, OPTION_SIZE },
	{ "memory", required_argument, NULL, OPTION_MEMORY },
	{ "device", required_argument, NULL, OPTION_DEVICE },
	{ "records", required_argument, NULL, OPTION_RECORDS },
	{ "record-size", required_argument, NULL, OPTION_RECORD_SIZE },
	{ "runs", required_argument, NULL, OPTION_RUNS },
	{ "seconds", required_argument, NULL, OPTION_SECONDS },
	{ "seed", required_argument, NULL, OPTION_SEED },
	{ 0 },
};

static int set_number(struct nand_bench_options *options, int option, const char *text,
		      struct error_text *error)
{
	static const struct bench_number numbers[] = {
		{ "size", true, UINT64_C(64) << 20, UINT64_C(1) << 42 },
		{ "memory", true, UINT64_C(16) << 20, UINT64_C(1) << 42 },
		{ "device", true, UINT64_C(64) << 20, UINT64_C(1) << 46 },
		{ "records", false, 1, UINT64_C(1) << 40 },
		{ "record-size", false, 28, 4096 },
		{ "runs", false, 1, BENCH_RUNS_MAX },
		{ "seed", false, 0, UINT64_MAX },
	};
	uint64_t value;

	if (bench_take_number(&numbers[option - OPTION_SIZE], text, &value, error) != 0)
		return -EINVAL;
	switch (option) {
	case OPTION_SIZE:
		options->file_bytes = value;
		break;
	case OPTION_MEMORY:
		options->mmap_bytes = value;
		break;
	case OPTION_DEVICE:
		options->device_bytes = value;
		break;
	case OPTION_RECORDS:
		options->records = value;
		break;
	case OPTION_RECORD_SIZE:
		options->record_bytes = (uint32_t)value;
		break;
	case OPTION_RUNS:
		options->runs = (uint32_t)value;
		break;
	default:
		options->seed = value;
		break;
	}
	return 0;
}

static int set_seconds(struct nand_bench_options *options, const char *text,
		       struct error_text *error)
{
	char *end;

	options->seconds = strtod(text, &end);
	if (end == text || *end || !(options->seconds >= 0.1 && options->seconds <= 3600))
		return error_set(error, -EINVAL, "--seconds %s: must be a number, 0.1 to 3600",
				 text);
	return 0;
}

/* 1: --help was asked for. */
static int parse(struct nand_bench_options *options, int argc, char **argv,
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
		case OPTION_FULL:
			options->records = 100000000;
			break;
		case OPTION_FILE:
			options->path = optarg;
			break;
		case OPTION_BACKEND:
			result = add_part(options, optarg, error);
			break;
		case OPTION_SECONDS:
			result = set_seconds(options, optarg, error);
			break;
		default:
			result = set_number(options, option, optarg, error);
			break;
		}
	}
	if (!options->parts)
		options->parts = NAND_BENCH_MMAP | NAND_BENCH_FILE | NAND_BENCH_HEADERS;
	return result;
}

int nand_bench_main(int argc, char **argv, FILE *json, FILE *text)
{
	static const struct {
		enum nand_bench_part part;
		int (*run)(const struct nand_bench_options *options,
			   const struct bench_output *output, struct error_text *error);
	} parts[] = {
		{ NAND_BENCH_MMAP, nand_bench_mmap },
		{ NAND_BENCH_FILE, nand_bench_file },
		{ NAND_BENCH_HEADERS, nand_bench_headers },
	};
	const struct bench_output output = { json, text };
	struct nand_bench_options options = nand_bench_defaults();
	struct error_text error = { "" };
	int result = parse(&options, argc, argv, &error);
	int code = DONE;

	if (result != 0)
		return bench_do_without("nand", help, result, &error, json, text);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (!(options.parts & parts[i].part))
			continue;
		result = parts[i].run(&options, &output, &error);
		fflush(json);
		if (result == 0)
			continue;
		code = FAILED;
		fprintf(text, "muninn-bench nand: %s\n", error.text);
	}
	return code;
}
