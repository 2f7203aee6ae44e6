/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* `muninn-bench nand`: its options, its turns over the back ends, and their medians. */
#include "bench/nand_bench.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

/* ---- what all parts need ---- */

double nand_bench_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double nand_bench_median(const double *values, uint32_t count)
{
	double sorted[NAND_BENCH_RUNS_MAX];

	memcpy(sorted, values, count * sizeof(sorted[0]));
	qsort(sorted, count, sizeof(sorted[0]), compare);
	return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

double nand_bench_report(const struct nand_bench_output *output, const struct nand_bench_pair *pair)
{
	double ratios[NAND_BENCH_RUNS_MAX] = { 0 }, ratio, measured, reference;
	double quarter, three_quarters, least, most;
	json_t *object;

	for (uint32_t i = 0; i < pair->runs; i++)
		ratios[i] = pair->measured[i] / pair->reference[i];
	qsort(ratios, pair->runs, sizeof(ratios[0]), compare);
	least = ratios[0];
	quarter = ratios[(pair->runs - 1) / 4];
	three_quarters = ratios[pair->runs - 1 - (pair->runs - 1) / 4];
	most = ratios[pair->runs - 1];
	ratio = nand_bench_median(ratios, pair->runs);
	measured = nand_bench_median(pair->measured, pair->runs);
	reference = nand_bench_median(pair->reference, pair->runs);
	fprintf(output->text,
		"%-34s %11.1f %-6s  %-24s %11.1f  ratio %.3f (half of them %.3f..%.3f, "
		"all %.3f..%.3f)",
		pair->name, measured, pair->unit, pair->reference_name, reference, ratio, quarter,
		three_quarters, least, most);
	if (pair->goal > 0)
		fprintf(output->text, "  goal %.2f %s", pair->goal,
			ratio >= pair->goal ? "reached" : "MISSED");
	fputc('\n', output->text);
	object = json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:i}", "bench",
			   pair->name, "reference", pair->reference_name, "unit", pair->unit,
			   "measured", measured, "reference_measured", reference, "ratio", ratio,
			   "ratio_least", least, "ratio_quarter", quarter, "ratio_three_quarters",
			   three_quarters, "ratio_most", most, "runs", (int)pair->runs);
	if (object && pair->goal > 0)
		json_object_set_new(object, "goal", json_real(pair->goal));
	if (object)
		json_dumpf(object, output->json, JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6));
	fputc('\n', output->json);
	json_decref(object);
	return ratio;
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
		{ "runs", false, 1, NAND_BENCH_RUNS_MAX },
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
			   const struct nand_bench_output *output, struct error_text *error);
	} parts[] = {
		{ NAND_BENCH_MMAP, nand_bench_mmap },
		{ NAND_BENCH_FILE, nand_bench_file },
		{ NAND_BENCH_HEADERS, nand_bench_headers },
	};
	const struct nand_bench_output output = { json, text };
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
