/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* `muninn-bench history`: its options, its goals, and what it prints. */
#include "bench/history_bench.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>

#include "bench/history_measure.h"
#include "common/bytes.h"

/* Exit codes, as of all commands. */
enum { DONE = 0, FAILED = 1, WRONG_USE = 2 };

/*
 * Page reads that the paper's look-ups of pairs in the oldest table take beside those of all pairs:
 * 20,000 and 34,000 a second, at 15 us a page access (figure 9 and section 6.3).
 */
#define PAPER_OLDER_READS ((1e6 / 20000 - 1e6 / 34000) / 15)

struct history_bench_options history_bench_defaults(void)
{
	return (struct history_bench_options){
		.objects = 1000000,
		.snapshots = 10000,
		.lookups = 20000,
		.rollbacks = 4000,
		.size_bytes = UINT64_C(4) << 30,
		.seed = 1,
	};
}

/* ---- what was found ---- */

static const char *const kind_names[LOOKUP_KINDS] = { "settled", "unchanged", "changed" };

static const struct {
	const char *name, *text;
} moments[LOOKUP_MOMENTS] = {
	{ "filled", "current, when filled" },
	{ "control", "current, changes without snapshots" },
	{ "current", "current, changes with snapshots" },
	{ "first_version", "at version 1" },
	{ "middle_version", "at the version in the middle" },
	{ "random_versions", "at random versions" },
	{ "random_versions_again", "at these once more" },
	{ "rolled_back", "current, after the rollbacks" },
};

static double mean_of(const struct operation_cost *cost)
{
	return (double)cost->programs / cost->count;
}

/* Pages that its own records would fill alone. */
static double own_pages(const struct operation_cost *cost, uint32_t page_bytes)
{
	return (double)cost->record_bytes / cost->count / page_bytes;
}

static double percent(double now, double before)
{
	return (now / before - 1) * 100;
}

/* What a snapshot adds to all that is programmed, at any time. */
static double added_by_snapshot(const struct history_figures *figures)
{
	return ((double)figures->programs_snapshots - (double)figures->programs_control) /
	       figures->snapshot.count;
}

static void write_operation(FILE *json, const char *name, const struct operation_cost *cost)
{
	fprintf(json,
		"\"%s\": {\"count\": %u, \"page_programs\": %.4f, \"page_programs_most\": %llu, "
		"\"record_bytes\": %.1f}, ",
		name, cost->count, mean_of(cost), (unsigned long long)cost->most,
		(double)cost->record_bytes / cost->count);
}

static void write_opening(FILE *json, const char *name, const struct opening_cost *cost,
			  const char *end)
{
	fprintf(json, "\"%s\": {\"wall_us\": %.0f, \"cpu_us\": %.0f, \"page_reads\": %llu}%s", name,
		cost->wall_us, cost->cpu_us, (unsigned long long)cost->page_reads, end);
}

static void write_differences(FILE *json, const char *name, const struct difference_cost *cost)
{
	fprintf(json, "\"%s\": {\"found\": %llu, \"page_reads\": %llu, \"cpu_us\": %.0f}, ", name,
		(unsigned long long)cost->found, (unsigned long long)cost->page_reads,
		cost->cpu_us);
}

static void write_json(const struct history_bench_options *options,
		       const struct history_figures *figures, FILE *json)
{
	fprintf(json,
		"{\"objects\": %llu, \"snapshots\": %u, \"lookups\": %u, \"rollbacks\": %u, "
		"\"seed\": %llu, \"page_reads_per_lookup\": {",
		(unsigned long long)options->objects, options->snapshots, options->lookups,
		options->rollbacks, (unsigned long long)options->seed);
	for (int at = 0; at < LOOKUP_MOMENTS; at++) {
		fprintf(json, "%s\"%s\": {", at ? ", " : "", moments[at].name);
		for (int kind = 0; kind < LOOKUP_KINDS; kind++)
			fprintf(json, "%s\"%s\": %.4f", kind ? ", " : "", kind_names[kind],
				figures->reads[at][kind]);
		fputs("}", json);
	}
	fputs("}, ", json);
	write_operation(json, "snapshot", &figures->snapshot);
	write_operation(json, "rollback", &figures->rollback);
	write_operation(json, "snapshot_alone", &figures->alone);
	write_operation(json, "undo_of_a_large_object", &figures->undo);
	write_differences(json, "differences_of_neighbours", &figures->differences_few);
	write_differences(json, "differences_of_first_and_last", &figures->differences_all);
	fprintf(json,
		"\"page_programs_with_snapshots\": %llu, \"page_programs_without\": %llu, "
		"\"open\": {",
		(unsigned long long)figures->programs_snapshots,
		(unsigned long long)figures->programs_control);
	write_opening(json, "filled", &figures->open_filled, ", ");
	write_opening(json, "control", &figures->open_control, ", ");
	write_opening(json, "snapshots", &figures->open_snapshots, ", ");
	write_opening(json, "rolled_back", &figures->open_rolled_back, "}}\n");
}

static void print_operation(FILE *text, const char *name, const struct operation_cost *cost,
			    uint32_t page_bytes)
{
	fprintf(text,
		"  %-32s mean %.3f, most %llu in one of %u; its records %.0f bytes, %.3f pages\n",
		name, mean_of(cost), (unsigned long long)cost->most, cost->count,
		(double)cost->record_bytes / cost->count, own_pages(cost, page_bytes));
}

static void print_opening(FILE *text, const char *name, const struct opening_cost *cost,
			  const struct opening_cost *before)
{
	fprintf(text, "  %-34s %8.0f us %8.0f us of the processor (%+.1f %%) %8llu page reads\n",
		name, cost->wall_us, cost->cpu_us, percent(cost->cpu_us, before->cpu_us),
		(unsigned long long)cost->page_reads);
}

static void print_differences(FILE *text, const char *name, uint64_t objects,
			      const struct difference_cost *cost)
{
	fprintf(text,
		"  %-32s %llu found; %llu page reads, %.3f s of the processor, %.2f us an object\n",
		name, (unsigned long long)cost->found, (unsigned long long)cost->page_reads,
		cost->cpu_us / 1e6, cost->cpu_us / (double)objects);
}

static void print(const struct history_bench_options *options,
		  const struct history_figures *figures, FILE *text)
{
	fprintf(text, "%llu objects, %u snapshots, %u rollbacks\npage reads a look-up%-16s",
		(unsigned long long)options->objects, options->snapshots, options->rollbacks, "");
	for (int kind = 0; kind < LOOKUP_KINDS; kind++)
		fprintf(text, " %10s", kind_names[kind]);
	for (int at = 0; at < LOOKUP_MOMENTS; at++) {
		fprintf(text, "\n  %-34s", moments[at].text);
		for (int kind = 0; kind < LOOKUP_KINDS; kind++)
			fprintf(text, " %10.4f", figures->reads[at][kind]);
	}
	fputs("\npage programs\n", text);
	print_operation(text, "snapshot", &figures->snapshot, figures->page_bytes);
	print_operation(text, "rollback", &figures->rollback, figures->page_bytes);
	print_operation(text, "snapshots, nothing between them", &figures->alone,
			figures->page_bytes);
	print_operation(text, "undo of a large object", &figures->undo, figures->page_bytes);
	fprintf(text, "  %.3f a snapshot more than without snapshots, in all\ndifferences\n",
		added_by_snapshot(figures));
	print_differences(text, "of two versions, one change", options->objects,
			  &figures->differences_few);
	print_differences(text, "of the first version and the last", options->objects,
			  &figures->differences_all);
	fputs("opening, medians\n", text);
	print_opening(text, "when filled", &figures->open_filled, &figures->open_filled);
	print_opening(text, "changes without snapshots", &figures->open_control,
		      &figures->open_filled);
	print_opening(text, "changes with snapshots", &figures->open_snapshots,
		      &figures->open_filled);
	print_opening(text, "after the rollbacks", &figures->open_rolled_back,
		      &figures->open_filled);
}

/* ---- goals ---- */

static bool goal(FILE *text, const char *what, double found, double most)
{
	fprintf(text, "  %-72s %8.3f, at most %.3f%s\n", what, found, most,
		found <= most ? "" : ": MISSED");
	return found <= most;
}

/* Checks the goals that counters alone decide, which are the same in every run. */
static bool check_goals(const struct history_figures *figures, FILE *text)
{
	const double(*reads)[LOOKUP_KINDS] = figures->reads;
	bool reached = true;

	fputs("goals\n", text);
	reached &= goal(text, "page programs of a snapshot, the most of all",
			(double)max_u64(figures->snapshot.most, figures->alone.most), 2);
	reached &= goal(text, "page programs of a rollback, the most of all",
			(double)figures->rollback.most, 4);
	reached &= goal(text, "page programs that a snapshot adds to all, mean",
			added_by_snapshot(figures), 2);
	reached &= goal(text, "page programs a snapshot with nothing between them, mean",
			mean_of(&figures->alone), 2);
	reached &= goal(text, "page programs of an undo of a large object, mean",
			mean_of(&figures->undo), 4);
	reached &= goal(text, "current settled objects: % more page reads than when filled",
			percent(reads[LOOKUP_CURRENT][LOOKUP_SETTLED],
				reads[LOOKUP_FILLED][LOOKUP_SETTLED]),
			1);
	for (int at = LOOKUP_FIRST; at <= LOOKUP_RANDOM_AGAIN; at++) {
		/* A changed object of then is where it was when it was current. */
		double more = reads[at][LOOKUP_UNCHANGED] - reads[LOOKUP_CURRENT][LOOKUP_UNCHANGED];
		double changed_more =
			reads[at][LOOKUP_CHANGED] - reads[LOOKUP_FILLED][LOOKUP_CHANGED];

		fprintf(text, "  %s, page reads more than\n", moments[at].text);
		reached &= goal(text, "  of the same objects now, unchanged ones", more,
				PAPER_OLDER_READS);
		reached &= goal(text, "  of the same objects when filled, changed ones",
				changed_more, PAPER_OLDER_READS);
	}
	return reached;
}

int history_bench_run(const struct history_bench_options *options, FILE *json, FILE *text,
		      struct error_text *error)
{
	struct history_figures figures;
	int result = history_measure(options, &figures, error);

	if (result)
		return result;
	write_json(options, &figures, json);
	print(options, &figures, text);
	return check_goals(&figures, text) ? 0 : 1;
}

/* ---- the command line ---- */

static const char help[] =
	"muninn-bench history [OPTION...]: what snapshots, rollbacks and old versions cost\n"
	"\n"
	"  --objects N     of 400 bytes each (default 1000000, at least 2)\n"
	"  --snapshots N   each behind a change of one object (default 10000, at most 30000)\n"
	"  --lookups N     of random objects, for each figure (default 20000)\n"
	"  --rollbacks N   to random versions, each behind a change (default 4000, at most 4096)\n"
	"  --size N        GiB of the device, which is memory that is taken as it fills (default "
	"4)\n"
	"  --seed N        (default 1)\n"
	"\n"
	"A JSON object goes to stdout, lines to stderr. The exit code is 1 when a goal is "
	"missed.\n";

static const struct option long_options[] = {
	{ "objects", required_argument, NULL, 0 }, { "snapshots", required_argument, NULL, 1 },
	{ "lookups", required_argument, NULL, 2 }, { "rollbacks", required_argument, NULL, 3 },
	{ "size", required_argument, NULL, 4 },    { "seed", required_argument, NULL, 5 },
	{ "help", no_argument, NULL, 6 },          { 0 },
};

static int take_number(struct history_bench_options *options, int option, const char *text,
		       struct error_text *error)
{
	static const uint64_t most[] = { 100000000, 30000, 100000000, 4096, 4096, UINT32_MAX };
	const unsigned long long least = option == 0 ? 2 : 1;
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || value < least || value > most[option])
		return error_set(error, -EINVAL, "--%s %s: must be a number, %llu to %llu",
				 long_options[option].name, text, least,
				 (unsigned long long)most[option]);
	switch (option) {
	case 0:
		options->objects = value;
		break;
	case 1:
		options->snapshots = (uint32_t)value;
		break;
	case 2:
		options->lookups = (uint32_t)value;
		break;
	case 3:
		options->rollbacks = (uint32_t)value;
		break;
	case 4:
		options->size_bytes = value << 30;
		break;
	default:
		options->seed = value;
		break;
	}
	return 0;
}

int history_bench_main(int argc, char **argv, FILE *json, FILE *text)
{
	struct history_bench_options options = history_bench_defaults();
	struct error_text error = { "unknown option" };
	int option, result = 0;

	optind = 0;
	opterr = 0;
	while (!result && (option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (option == 6) {
			fputs(help, json);
			return DONE;
		}
		result = option == '?' ? -EINVAL : take_number(&options, option, optarg, &error);
	}
	if (result || optind < argc) {
		fprintf(text, "muninn-bench history: %s\n%s", error.text, help);
		return WRONG_USE;
	}
	result = history_bench_run(&options, json, text, &error);
	if (result < 0)
		fprintf(text, "muninn-bench history: %s\n", error.text);
	return result ? FAILED : DONE;
}
