/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* `muninn-bench iscsi`: its options, its cases one after the other, and the table of goals. */
#include "bench/iscsi_bench.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "bench/command_line.h"
#include "bench/process.h"

static const char help[] =
	"muninn-bench iscsi [OPTION...]: a served unit beside stock tgtd's null and rdwr, and fio\n"
	"\n"
	"  --case NAME         may be given again; default: all, and they are\n";

static const char help_rest[] =
	"  --memory DIR        folder for images of cases in memory (default /dev/shm)\n"
	"  --drive DIR         folder for images of cases on a drive (default .)\n"
	"  --memory-size SIZE  page data of units in memory (default 4G); commands use a quarter\n"
	"  --drive-size SIZE   the same on the drive (default 16G)\n"
	"  --bytes SIZE        that write-1m-drive writes in a turn (default 8G)\n"
	"  --backend NAME      mmap or file, of the cases that do not ask for file;\n"
	"                      default: the service's\n"
	"  --set KEY=VALUE     a further line of the units' configuration; may be given again\n"
	"  --seconds N         of each measurement (default 2)\n"
	"  --sustained N       of write-4k-drive; tail takes a third, flush a sixth (default 30)\n"
	"  --turns N           of all sides (default 3, at most 99)\n"
	"  --quick             0.5 and 5 seconds, units of 1G and 4G, 1G of bytes\n"
	"  --muninnd PATH      default: beside muninn-bench\n"
	"  --seed N\n"
	"\n"
	"JSON objects go to stdout, lines for people to stderr. Exit code 1: something failed, or "
	"a goal was missed.\n"
	"It needs fio(1) and the package tgt.\n";

struct iscsi_options iscsi_bench_defaults(void)
{
	return (struct iscsi_options){
		.memory = "/dev/shm",
		.drive = ".",
		.memory_size = UINT64_C(4) << 30,
		.drive_size = UINT64_C(16) << 30,
		.bytes = UINT64_C(8) << 30,
		.seconds = 2,
		.sustained = 30,
		.turns = 3,
		.seed = 1,
	};
}

static void set_quick(struct iscsi_options *options)
{
	options->quick = true;
	options->memory_size = UINT64_C(1) << 30;
	options->drive_size = UINT64_C(4) << 30;
	options->bytes = UINT64_C(1) << 30;
	options->seconds = 0.5;
	options->sustained = 5;
}

/* ---- options ---- */

enum {
	OPTION_CASE = 256,
	OPTION_MEMORY,
	OPTION_DRIVE,
	OPTION_BACKEND,
	OPTION_SET,
	OPTION_SECONDS,
	OPTION_SUSTAINED,
	OPTION_QUICK,
	OPTION_MUNINND,
	OPTION_HELP,
	/* From here on numbers. */
	OPTION_MEMORY_SIZE,
	OPTION_DRIVE_SIZE,
	OPTION_BYTES,
	OPTION_TURNS,
	OPTION_SEED,
};

static const struct option long_options[] = {
	{ "case", required_argument, NULL, OPTION_CASE },
	{ "memory", required_argument, NULL, OPTION_MEMORY },
	{ "drive", required_argument, NULL, OPTION_DRIVE },
	{ "backend", required_argument, NULL, OPTION_BACKEND },
	{ "set", required_argument, NULL, OPTION_SET },
	{ "seconds", required_argument, NULL, OPTION_SECONDS },
	{ "sustained", required_argument, NULL, OPTION_SUSTAINED },
	{ "quick", no_argument, NULL, OPTION_QUICK },
	{ "muninnd", required_argument, NULL, OPTION_MUNINND },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ "memory-size", required_argument, NULL, OPTION_MEMORY_SIZE },
	{ "drive-size", required_argument, NULL, OPTION_DRIVE_SIZE },
	{ "bytes", required_argument, NULL, OPTION_BYTES },
	{ "turns", required_argument, NULL, OPTION_TURNS },
	{ "seed", required_argument, NULL, OPTION_SEED },
	{ 0 },
};

static int add_case(struct iscsi_options *options, const char *name, struct error_text *error)
{
	for (unsigned i = 0; i < iscsi_case_count; i++) {
		if (strcmp(iscsi_cases[i].name, name) != 0)
			continue;
		options->cases |= UINT32_C(1) << i;
		return 0;
	}
	return error_set(error, -EINVAL, "--case %s: there is no such case", name);
}

static int set_backend(struct iscsi_options *options, const char *name, struct error_text *error)
{
	if (strcmp(name, "mmap") != 0 && strcmp(name, "file") != 0)
		return error_set(error, -EINVAL, "--backend %s: there are mmap and file", name);
	options->backend = name;
	return 0;
}

static int add_setting(struct iscsi_options *options, const char *setting, struct error_text *error)
{
	size_t used = strlen(options->settings);

	if (!strchr(setting, '=') || strchr(setting, '\n'))
		return error_set(error, -EINVAL, "--set %s: must be KEY=VALUE", setting);
	if (used + strlen(setting) + 2 > sizeof(options->settings))
		return error_set(error, -EINVAL, "--set %s: too many of them", setting);
	sprintf(options->settings + used, "%s\n", setting);
	return 0;
}

static int set_seconds(const char *name, const char *text, double *seconds,
		       struct error_text *error)
{
	char *end;

	*seconds = strtod(text, &end);
	if (end == text || *end || !(*seconds >= 0.05 && *seconds <= 3600))
		return error_set(error, -EINVAL, "--%s %s: must be a number, 0.05 to 3600", name,
				 text);
	return 0;
}

static int set_number(struct iscsi_options *options, int option, const char *text,
		      struct error_text *error)
{
	static const struct bench_number numbers[] = {
		{ "memory-size", true, UINT64_C(64) << 20, UINT64_C(1) << 40 },
		{ "drive-size", true, UINT64_C(64) << 20, UINT64_C(1) << 46 },
		{ "bytes", true, UINT64_C(16) << 20, UINT64_C(1) << 46 },
		{ "turns", false, 1, BENCH_RUNS_MAX },
		{ "seed", false, 0, UINT64_MAX },
	};
	uint64_t value;

	if (bench_take_number(&numbers[option - OPTION_MEMORY_SIZE], text, &value, error) != 0)
		return -EINVAL;
	switch (option) {
	case OPTION_MEMORY_SIZE:
		options->memory_size = value;
		break;
	case OPTION_DRIVE_SIZE:
		options->drive_size = value;
		break;
	case OPTION_BYTES:
		options->bytes = value;
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

static int take_option(struct iscsi_options *options, int option, struct error_text *error)
{
	switch (option) {
	case OPTION_CASE:
		return add_case(options, optarg, error);
	case OPTION_BACKEND:
		return set_backend(options, optarg, error);
	case OPTION_SET:
		return add_setting(options, optarg, error);
	case OPTION_SECONDS:
		return set_seconds("seconds", optarg, &options->seconds, error);
	case OPTION_SUSTAINED:
		return set_seconds("sustained", optarg, &options->sustained, error);
	case OPTION_MEMORY:
		options->memory = optarg;
		return 0;
	case OPTION_DRIVE:
		options->drive = optarg;
		return 0;
	case OPTION_MUNINND:
		options->muninnd = optarg;
		return 0;
	case OPTION_QUICK:
		set_quick(options);
		return 0;
	default:
		return set_number(options, option, optarg, error);
	}
}

/* A device keeps a part for itself, so not all of it can be written. */
static int check_sizes(const struct iscsi_options *options, struct error_text *error)
{
	if (options->bytes <= options->drive_size / 4 * 3)
		return 0;
	return error_set(error, -EINVAL, "--bytes: must be at most three quarters of --drive-size");
}

/* 1: --help was asked for. */
static int parse(struct iscsi_options *options, int argc, char **argv, struct error_text *error)
{
	int option, result = 0;

	optind = 0;
	while (result == 0 && (option = bench_next_option(argc, argv, long_options, error)) != -1) {
		if (option == -EINVAL || option == OPTION_HELP)
			return option == OPTION_HELP ? 1 : option;
		result = take_option(options, option, error);
	}
	if (!options->cases)
		options->cases = (UINT32_C(1) << iscsi_case_count) - 1;
	return result == 0 ? check_sizes(options, error) : result;
}

/* ---- places ---- */

void iscsi_leave_place(struct iscsi_context *context)
{
	if (context->place_open)
		iscsi_place_close(&context->place);
	context->place_open = false;
}

int iscsi_want_place(struct iscsi_context *context, const struct iscsi_wish *wish,
		     struct error_text *error)
{
	const struct iscsi_options *options = context->options;
	struct iscsi_place *place = &context->place;
	const char *wanted = wish->backend ? wish->backend : options->backend;
	uint64_t size = wish->on_drive ? options->drive_size : options->memory_size;
	int result;

	if (context->place_open && place->on_drive == wish->on_drive &&
	    place->disks == wish->disks &&
	    (wanted ? place->backend && strcmp(place->backend, wanted) == 0 : !place->backend))
		return 0;
	iscsi_leave_place(context);
	result = iscsi_place_open(place, options, wish, size / 4, error);
	if (result < 0)
		return result;
	context->place_open = true;
	fprintf(context->output->text, "# in %s: writing what will be read\n", place->folder);
	result = iscsi_place_fill(place, &place->muninn, error);
	if (result == 0)
		result = iscsi_place_fill(place, &place->idle, error);
	return result == 0 ? iscsi_place_fill(place, &place->rdwr, error) : result;
}

/* ---- the command ---- */

static void interrupt(int number)
{
	(void)number;
	load_interrupt();
}

static int find_muninnd(char *path, size_t bytes, struct error_text *error)
{
	int result = bench_process_folder(path, bytes - sizeof("/muninnd"), error);

	if (result == 0)
		strcat(path, "/muninnd");
	return result;
}

static int run(const struct iscsi_options *options, const struct bench_output *output,
	       struct error_text *error)
{
	struct bench_goals goals = { .count = 0 };
	struct iscsi_context context = { .options = options, .output = output, .goals = &goals };
	int result = 0;

	if (options->quick)
		fprintf(output->text,
			"# quick: short turns, small units; %llu MiB are written in "
			"place of 8 GiB\n",
			(unsigned long long)(options->bytes >> 20));
	for (unsigned i = 0; i < iscsi_case_count && result == 0; i++) {
		if (!(options->cases >> i & 1))
			continue;
		fprintf(output->text, "# %s: %s\n", iscsi_cases[i].name, iscsi_cases[i].what);
		result = iscsi_cases[i].run(&context, error);
	}
	iscsi_leave_place(&context);
	if (bench_goals_report(output, &goals) > 0 && result == 0)
		result = -ERANGE;
	return result;
}

int iscsi_bench_main(int argc, char **argv, FILE *json, FILE *text)
{
	const struct bench_output output = { json, text };
	struct iscsi_options options = iscsi_bench_defaults();
	struct error_text error = { "" };
	int result = parse(&options, argc, argv, &error);
	char muninnd[SERVER_PATH_BYTES];

	if (result > 0) {
		fputs(help, json);
		for (unsigned i = 0; i < iscsi_case_count; i++)
			fprintf(json, "      %-17s %s\n", iscsi_cases[i].name, iscsi_cases[i].what);
		fputs(help_rest, json);
		return DONE;
	}
	if (result < 0)
		return bench_do_without("iscsi", help, result, &error, json, text);
	if (!options.muninnd) {
		result = find_muninnd(muninnd, sizeof(muninnd), &error);
		options.muninnd = muninnd;
	}
	bench_catch_interrupts(interrupt);
	signal(SIGPIPE, SIG_IGN);
	if (result == 0)
		result = run(&options, &output, &error);
	if (result < 0 && result != -ERANGE)
		fprintf(text, "muninn-bench iscsi: %s\n", error.text);
	return result == 0 ? DONE : FAILED;
}
