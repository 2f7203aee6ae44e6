/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* `muninn-bench import`: its options, its goals, and what it prints. */
#include "bench/import_bench.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>

#include "bench/command_line.h"
#include "bench/process.h"

static const struct {
	const char *name, *ours, *others;
	double goal; /* the most that the ratio of times may be */
} tasks[IMPORT_TASKS] = {
	[IMPORT_WHOLE] = { "import", "muninnctl import", "tar -cf", 2.0 },
	[IMPORT_BACK] = { "export", "muninnctl export", "tar -xf", 1.5 },
	[IMPORT_AGAIN] = { "update", "muninnctl import --update", "borg create", 0.5 },
};

#define ROOM_GOAL 1.1

static struct import_bench_options defaults(void)
{
	return (struct import_bench_options){
		.tree = { .files = 50000, .bytes = UINT64_C(614) << 20, .seed = 1 },
		.folder = ".",
		.borg = "borg",
		.size_bytes = UINT64_C(4) << 30,
		.turns = 3,
	};
}

/* ---- what was found ---- */

static void report_task(const struct bench_output *output, uint32_t turns, enum import_task task,
			const struct import_bench_figures *figures, struct bench_goals *goals)
{
	const double *ours = figures->ours[task], *others = figures->others[task];
	bool compared = task != IMPORT_AGAIN || figures->has_borg;
	double ratios[BENCH_RUNS_MAX], ratio;
	json_t *object = json_pack("{s:s, s:f, s:s, s:i}", "task", tasks[task].name, "seconds",
				   bench_median(ours, turns), "reference", tasks[task].others,
				   "turns", (int)turns);

	fprintf(output->text, "%-26s %8.3f s", tasks[task].ours, bench_median(ours, turns));
	if (!compared) {
		fprintf(output->text, "   %s: not installed\n", tasks[task].others);
		json_object_set_new(object, "reference_seconds", json_null());
		json_object_set_new(object, "ratio", json_null());
		bench_json_line(output, object);
		return;
	}
	for (uint32_t i = 0; i < turns; i++)
		ratios[i] = ours[i] / others[i];
	ratio = bench_median(ratios, turns);
	fprintf(output->text, "   %-11s %8.3f s   ratio %.3f\n", tasks[task].others,
		bench_median(others, turns), ratio);
	json_object_set_new(object, "reference_seconds", json_real(bench_median(others, turns)));
	json_object_set_new(object, "ratio", json_real(ratio));
	bench_json_line(output, object);
	bench_goals_add(goals, &(struct bench_goal){ .name = tasks[task].name,
						     .what = "time, of that of the other program",
						     .value = ratio,
						     .goal = tasks[task].goal,
						     .at_most = true });
}

static unsigned report(const struct bench_output *output,
		       const struct import_bench_options *options,
		       const struct import_bench_figures *figures)
{
	struct bench_goals goals = { .count = 0 };
	double room = (double)figures->used_bytes / (double)figures->tree_bytes;

	fprintf(output->text, "%llu files, %.1f MiB in them, in %s; medians of %u turns\n",
		(unsigned long long)options->tree.files,
		(double)figures->tree_bytes / (double)(1 << 20), options->folder, options->turns);
	bench_json_line(output, json_pack("{s:s?, s:I, s:I, s:I, s:I, s:f}", "index",
					  options->index, "files", (json_int_t)options->tree.files,
					  "bytes", (json_int_t)figures->tree_bytes, "seed",
					  (json_int_t)options->tree.seed, "used_bytes",
					  (json_int_t)figures->used_bytes, "room", room));
	for (int task = 0; task < IMPORT_TASKS; task++)
		report_task(output, options->turns, task, figures, &goals);
	fprintf(output->text, "%-26s %8.3f of the bytes in files\n", "used of the flash", room);
	bench_goals_add(&goals, &(struct bench_goal){ .name = "room",
						      .what = "bytes used, of those in files",
						      .value = room,
						      .goal = ROOM_GOAL,
						      .at_most = true });
	return bench_goals_report(output, &goals);
}

/* ---- the command line ---- */

static const char help[] =
	"muninn-bench import [OPTION...]: directory trees, beside tar and borg\n"
	"\n"
	"  --files N        of the tree (default 50000)\n"
	"  --bytes N        in its files (default 614M)\n"
	"  --size N         of the unit (default 4G)\n"
	"  --index NAME     of the unit, bloom or ribbon (default: as muninnd has it)\n"
	"  --turns N        (default 3)\n"
	"  --seed N         of the tree (default 1)\n"
	"  --folder PATH    where tree, archives and image are while it runs (default .)\n"
	"  --programs PATH  the folder of muninnd and muninnctl (default: that of muninn-bench)\n"
	"  --borg PATH      this program (default borg); without it there is no comparison of\n"
	"                   --update\n"
	"\n"
	"Each turn has a fresh unit. JSON objects go to stdout, a table to stderr. The exit code\n"
	"is 1 when a goal is missed.\n";

static const struct bench_number numbers[] = {
	{ "files", false, 1, 10000000 },
	{ "bytes", true, 1, UINT64_C(1) << 40 },
	{ "size", true, 1 << 26, UINT64_C(1) << 42 },
	{ "turns", false, 1, BENCH_RUNS_MAX },
	{ "seed", false, 0, UINT32_MAX },
};

enum {
	NUMBERS = sizeof(numbers) / sizeof(numbers[0]),
	OPTION_HELP = 256,
	OPTION_FOLDER,
	OPTION_PROGRAMS,
	OPTION_BORG,
	OPTION_INDEX,
	OPTION_NUMBER
};

static int take_number(struct import_bench_options *options, int number, struct error_text *error)
{
	uint64_t value;
	int result = bench_take_number(&numbers[number], optarg, &value, error);

	if (result < 0)
		return result;
	switch (number) {
	case 0:
		options->tree.files = value;
		break;
	case 1:
		options->tree.bytes = value;
		break;
	case 2:
		options->size_bytes = value;
		break;
	case 3:
		options->turns = (uint32_t)value;
		break;
	default:
		options->tree.seed = value;
		break;
	}
	return 0;
}

/* 1: --help was asked for. */
static int parse(struct import_bench_options *options, int argc, char **argv,
		 struct error_text *error)
{
	struct option long_options[NUMBERS + 6] = {
		{ "help", no_argument, NULL, OPTION_HELP },
		{ "folder", required_argument, NULL, OPTION_FOLDER },
		{ "programs", required_argument, NULL, OPTION_PROGRAMS },
		{ "borg", required_argument, NULL, OPTION_BORG },
		{ "index", required_argument, NULL, OPTION_INDEX },
	};
	int option, result = 0;

	for (int i = 0; i < NUMBERS; i++)
		long_options[i + 5] = (struct option){ numbers[i].name, required_argument, NULL,
						       OPTION_NUMBER + i };
	optind = 0;
	while (result == 0 && (option = bench_next_option(argc, argv, long_options, error)) != -1) {
		switch (option) {
		case -EINVAL:
			return -EINVAL;
		case OPTION_HELP:
			return 1;
		case OPTION_FOLDER:
			options->folder = optarg;
			break;
		case OPTION_PROGRAMS:
			options->programs = optarg;
			break;
		case OPTION_BORG:
			options->borg = optarg;
			break;
		case OPTION_INDEX:
			options->index = optarg;
			break;
		default:
			result = take_number(options, option - OPTION_NUMBER, error);
			break;
		}
	}
	return result;
}

static volatile int interrupted;

static void interrupt(int number)
{
	interrupted = number;
}

int import_bench_main(int argc, char **argv, FILE *json, FILE *text)
{
	struct import_bench_options options = defaults();
	const struct bench_output output = { .json = json, .text = text };
	struct import_bench_figures figures;
	struct error_text error = { "" };
	char programs[PATH_MAX];
	int result = parse(&options, argc, argv, &error);

	if (result)
		return bench_do_without("import", help, result, &error, json, text);
	if (!options.programs) {
		result = bench_process_folder(programs, sizeof(programs), &error);
		options.programs = programs;
	}
	bench_catch_interrupts(interrupt);
	if (result || import_bench_measure(&options, &interrupted, &figures, &error)) {
		fprintf(text, "muninn-bench import: %s\n", error.text);
		return FAILED;
	}
	return report(&output, &options, &figures) ? FAILED : DONE;
}
