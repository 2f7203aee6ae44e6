/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* `muninn-bench disk-history`: its options, its goals, and what it prints. */
#include "bench/disk_history.h"

#include <errno.h>
#include <getopt.h>

#include "bench/command_line.h"

struct disk_history_options disk_history_defaults(void)
{
	return (struct disk_history_options){
		.volume_bytes = UINT64_C(1) << 40,
		.pages = 65536,
		.snapshots = 10000,
		.overwrites = 8,
		.reads = 20000,
		.rollbacks = 1000,
		.exposures = 1000,
		.size_bytes = UINT64_C(2) << 30,
		.seed = 1,
	};
}

/* ---- what was found ---- */

static json_t *json_of(const struct disk_history_times *times)
{
	return json_pack("{s:i, s:f, s:f}", "count", (int)times->count, "median_ms", times->median,
			 "most_ms", times->most);
}

static void write_json(const struct bench_output *output,
		       const struct disk_history_options *options,
		       const struct disk_history_figures *figures)
{
	json_t *reads = json_pack("{s:f, s:f, s:f, s:f}", "filled", figures->reads_filled,
				  "control", figures->reads_control, "current",
				  figures->reads_current, "versions", figures->reads_versions);
	json_t *object = json_pack(
		"{s:I, s:I, s:i, s:i, s:o, s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:o, s:o}",
		"volume_bytes", (json_int_t)options->volume_bytes, "pages",
		(json_int_t)options->pages, "snapshots", (int)options->snapshots, "overwrites",
		(int)options->overwrites, "page_reads_per_read", reads, "snapshot_bytes",
		figures->snapshot_bytes, "snapshot_page_programs", figures->snapshot_programs,
		"snapshot_page_programs_most", figures->snapshot_programs_most, "version_bytes",
		figures->version_bytes, "rollback_bytes", figures->rollback_bytes, "snapshot",
		json_of(&figures->snapshot), "rollback", json_of(&figures->rollback), "exposure",
		json_of(&figures->exposure), "clone", json_of(&figures->clone));

	bench_json_line(output, object);
}

static void print_times(FILE *text, const char *name, const struct disk_history_times *times)
{
	fprintf(text, "  %-48s median %8.3f ms, most %8.3f ms of %u\n", name, times->median,
		times->most, times->count);
}

static void print(FILE *text, const struct disk_history_options *options,
		  const struct disk_history_figures *figures)
{
	fprintf(text,
		"a volume of %llu GiB, %llu pages of 4 KiB written all over it, %u snapshots with "
		"%u random\noverwrites before each\n",
		(unsigned long long)options->volume_bytes >> 30, (unsigned long long)options->pages,
		options->snapshots, options->overwrites);
	fprintf(text, "page reads of a READ of 4 KiB\n  %-48s %8.4f\n  %-48s %8.4f\n",
		"when filled", figures->reads_filled, "after the overwrites, without snapshots",
		figures->reads_control);
	fprintf(text, "  %-48s %8.4f\n  %-48s %8.4f\n", "after the overwrites, with snapshots",
		figures->reads_current, "at random versions", figures->reads_versions);
	fprintf(text,
		"space\n  %-48s %8.0f bytes, %.3f page programs, most %.0f\n  %-48s %8.0f bytes\n"
		"  %-48s %8.0f bytes\n",
		"a snapshot's own records", figures->snapshot_bytes, figures->snapshot_programs,
		figures->snapshot_programs_most, "what a version holds at most",
		figures->version_bytes, "a rollback's own records", figures->rollback_bytes);
	fputs("time\n", text);
	print_times(text, "a snapshot", &figures->snapshot);
	print_times(text, "a rollback, and a READ", &figures->rollback);
	print_times(text, "a version becomes a disk, and a READ", &figures->exposure);
	print_times(text, "a clone of a moment becomes a disk, and a READ", &figures->clone);
}

static unsigned check_goals(const struct bench_output *output,
			    const struct disk_history_options *options,
			    const struct disk_history_figures *figures)
{
	struct bench_goals goals = { .count = 0 };
	/* Each page with what its record has beside it, and once more with the snapshot itself. */
	double data = options->overwrites * 4096.0;
	const struct bench_goal wanted[] = {
		{ "snapshot", "page programs, the most of all", figures->snapshot_programs_most, 2,
		  true },
		{ "snapshot", "bytes of its own", figures->snapshot_bytes, 4096, true },
		{ "version", "bytes, of those of its overwrites", figures->version_bytes / data,
		  1.05, true },
		{ "read", "page reads, of those without snapshots",
		  figures->reads_current / figures->reads_control, 1.01, true },
		{ "rollback", "ms, the most of all", figures->rollback.most, 100, true },
		{ "exposure", "ms, the most of all", figures->exposure.most, 100, true },
		{ "clone", "ms, the most of all", figures->clone.most, 100, true },
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		bench_goals_add(&goals, &wanted[i]);
	return bench_goals_report(output, &goals);
}

/* ---- the command line ---- */

static const char help[] =
	"muninn-bench disk-history [OPTION...]: what the history of a disk costs\n"
	"\n"
	"  --volume N      bytes of the thin volume (default 1T)\n"
	"  --pages N       of 4 KiB that are written first, all over it (default 65536)\n"
	"  --snapshots N   (default 10000, at most 32767)\n"
	"  --overwrites N  of random pages of these, before each snapshot (default 8)\n"
	"  --reads N       of random pages, for each figure (default 20000)\n"
	"  --rollbacks N   to random versions (default 1000, at most 4096)\n"
	"  --exposures N   of random versions, and of random moments (default 1000)\n"
	"  --size N        bytes of the device, which is memory that is taken as it fills "
	"(default 2G)\n"
	"  --seed N        (default 1)\n"
	"\n"
	"A JSON object goes to stdout, lines to stderr. The exit code is 1 when a goal is "
	"missed.\n";

static const struct bench_number numbers[] = {
	{ "volume", true, 1 << 20, UINT64_C(1) << 50 },
	{ "pages", false, 1, 100000000 },
	{ "snapshots", false, 2, 32767 },
	{ "overwrites", false, 1, 100000 },
	{ "reads", false, 1, 100000000 },
	{ "rollbacks", false, 1, 4096 },
	{ "exposures", false, 1, 10000 },
	{ "size", true, 1 << 28, UINT64_C(1) << 40 },
	{ "seed", false, 0, UINT32_MAX },
};

enum { NUMBERS = sizeof(numbers) / sizeof(numbers[0]), OPTION_HELP = 256, OPTION_NUMBER };

static void take(struct disk_history_options *options, int number, uint64_t value)
{
	uint32_t *const small[NUMBERS] = {
		[2] = &options->snapshots, [3] = &options->overwrites, [4] = &options->reads,
		[5] = &options->rollbacks, [6] = &options->exposures,
	};
	uint64_t *const large[NUMBERS] = { [0] = &options->volume_bytes,
					   [1] = &options->pages,
					   [7] = &options->size_bytes,
					   [8] = &options->seed };

	if (small[number])
		*small[number] = (uint32_t)value;
	else
		*large[number] = value;
}

/* 1: --help was asked for. */
static int parse(struct disk_history_options *options, int argc, char **argv,
		 struct error_text *error)
{
	struct option long_options[NUMBERS + 2] = { { "help", no_argument, NULL, OPTION_HELP } };
	int option, result = 0;

	for (int i = 0; i < NUMBERS; i++)
		long_options[i + 1] = (struct option){ numbers[i].name, required_argument, NULL,
						       OPTION_NUMBER + i };
	optind = 0;
	while (!result && (option = bench_next_option(argc, argv, long_options, error)) != -1) {
		uint64_t value;

		if (option == OPTION_HELP)
			return 1;
		if (option == -EINVAL)
			return -EINVAL;
		result = bench_take_number(&numbers[option - OPTION_NUMBER], optarg, &value, error);
		if (!result)
			take(options, option - OPTION_NUMBER, value);
	}
	if (!result && options->pages > options->volume_bytes / 4096)
		result = error_set(error, -EINVAL, "--pages: the volume has fewer");
	return result;
}

int disk_history_main(int argc, char **argv, FILE *json, FILE *text)
{
	struct disk_history_options options = disk_history_defaults();
	const struct bench_output output = { .json = json, .text = text };
	struct disk_history_figures figures;
	struct error_text error = { "" };
	int result = parse(&options, argc, argv, &error);

	if (result)
		return bench_do_without("disk-history", help, result, &error, json, text);
	if (disk_history_measure(&options, &figures, &error)) {
		fprintf(text, "muninn-bench disk-history: %s\n", error.text);
		return FAILED;
	}
	write_json(&output, &options, &figures);
	print(text, &options, &figures);
	return check_goals(&output, &options, &figures) ? FAILED : DONE;
}
