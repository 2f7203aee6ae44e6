/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What the turns of `muninn-bench peers` come to: medians, ratios to the best peer, goals. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "bench/peers_bench.h"

#define GOAL_LOAD          8.0
#define GOAL_LOOK_UP       0.75
#define GOAL_READS         1.05
#define GOAL_WRITTEN_BYTES 2.1
#define GOAL_INDEX_BYTES   2.1

/* Less is loaded before compaction begins in earnest, and fills few groups of an index. */
#define DATA_BYTES_MIN (UINT64_C(1) << 29)

static const char *const phase_names[PEERS_PHASES] = {
	[PEERS_LOAD] = "load, settled",
	[PEERS_PRESENT] = "present keys, depth 1",
	[PEERS_ABSENT] = "absent keys, depth 1",
	[PEERS_PRESENT_DEEP] = "present keys, threads",
	[PEERS_UPDATE] = "pareto updates, settled",
	[PEERS_PRESENT_AGAIN] = "present keys again",
};

/* A figure of a result; negative: it has none. */
typedef double figure_function(const struct peers_result *result);

static double rate(const struct peers_result *result)
{
	return (double)result->operations / result->seconds;
}

static double rate_of_puts(const struct peers_result *result)
{
	return result->seconds_to_put > 0 ? (double)result->operations / result->seconds_to_put
					  : -1;
}

static double written(const struct peers_result *result)
{
	return result->has_drive && result->bytes > 0
		       ? (double)result->drive.written_bytes / (double)result->bytes
		       : -1;
}

static double drive_writes(const struct peers_result *result)
{
	return result->has_drive ? (double)result->drive.writes / (double)result->operations : -1;
}

static double drive_reads(const struct peers_result *result)
{
	return result->has_drive ? (double)result->drive.reads / (double)result->operations : -1;
}

static double drive_read_bytes(const struct peers_result *result)
{
	return result->has_drive ? (double)result->drive.read_bytes / (double)result->operations
				 : -1;
}

static double page_reads(const struct peers_result *result)
{
	return (double)result->page_reads / (double)result->operations;
}

static double memory(const struct peers_result *result)
{
	return (double)result->memory_bytes;
}

static double index_memory(const struct peers_result *result)
{
	return result->has_index ? (double)result->index_bytes : -1;
}

static double median_of(const struct peers_sheet *sheet, uint32_t store, enum peers_phase phase,
			figure_function *figure)
{
	double values[PEERS_RUNS_MAX];

	for (uint32_t run = 0; run < sheet->runs; run++)
		values[run] = figure(&sheet->results[store][run][phase]);
	return bench_median(values, sheet->runs);
}

/* ---- of each store ---- */

static bool is_of_puts(enum peers_phase phase)
{
	return phase == PEERS_LOAD || phase == PEERS_UPDATE;
}

static void add_figure(json_t *object, const char *name, double value)
{
	if (value >= 0)
		json_object_set_new(object, name, json_real(value));
}

static void report_store(const struct bench_output *output, const struct peers_sheet *sheet,
			 enum peers_phase phase, uint32_t store)
{
	const double pairs = (double)sheet->run->pairs;
	const struct {
		const char *name;
		double value;
	} figures[] = {
		{ "ops_per_s", median_of(sheet, store, phase, rate) },
		{ "puts_per_s", median_of(sheet, store, phase, rate_of_puts) },
		{ "written_per_byte",
		  is_of_puts(phase) ? median_of(sheet, store, phase, written) : -1 },
		{ "drive_writes_per_op", median_of(sheet, store, phase, drive_writes) },
		{ "drive_reads_per_op", median_of(sheet, store, phase, drive_reads) },
		{ "drive_read_bytes_per_op", median_of(sheet, store, phase, drive_read_bytes) },
		{ "page_reads_per_op",
		  store == 0 ? median_of(sheet, store, phase, page_reads) : -1 },
		{ "index_per_key", median_of(sheet, store, phase, index_memory) / pairs },
		{ "memory_per_key", median_of(sheet, store, phase, memory) / pairs },
	};
	json_t *object = json_pack("{s:s*, s:s, s:s, s:s, s:I, s:I, s:I, s:i}", "index",
				   store == 0 ? index_kind_name(sheet->run->index) : NULL,
				   "workload", sheet->run->workload->name, "phase",
				   phase_names[phase], "store", sheet->names[store], "pairs",
				   (json_int_t)sheet->run->pairs, "data_bytes",
				   (json_int_t)sheet->data_bytes, "memory_bytes",
				   (json_int_t)sheet->run->memory_bytes, "runs", (int)sheet->runs);

	fprintf(output->text, "%-24s %-8s %10.0f", phase_names[phase], sheet->names[store],
		figures[0].value);
	for (size_t i = 2; i < sizeof(figures) / sizeof(figures[0]); i++) {
		if (figures[i].value < 0)
			fprintf(output->text, " %9s", "-");
		else
			fprintf(output->text, " %9.2f", figures[i].value);
	}
	fputc('\n', output->text);
	for (size_t i = 0; object && i < sizeof(figures) / sizeof(figures[0]); i++)
		add_figure(object, figures[i].name, figures[i].value);
	bench_json_line(output, object);
}

static void report_space(const struct bench_output *output, const struct peers_sheet *sheet)
{
	for (uint32_t store = 0; store < sheet->stores; store++) {
		double values[PEERS_RUNS_MAX], ratio;

		for (uint32_t run = 0; run < sheet->runs; run++)
			values[run] = (double)sheet->space[store][run];
		ratio = bench_median(values, sheet->runs) / (double)sheet->data_bytes;
		fprintf(output->text, "%-24s %-8s %10.2f bytes a byte\n", "files after the load",
			sheet->names[store], ratio);
		bench_json_line(output, json_pack("{s:s, s:s, s:s, s:f}", "workload",
						  sheet->run->workload->name, "phase",
						  "files after the load", "store",
						  sheet->names[store], "bytes_per_byte", ratio));
	}
}

/* ---- beside the best peer ---- */

static uint32_t best_peer(const struct peers_sheet *sheet, enum peers_phase phase)
{
	uint32_t best = 1;

	for (uint32_t store = 2; store < sheet->stores; store++)
		if (median_of(sheet, store, phase, rate) > median_of(sheet, best, phase, rate))
			best = store;
	return best;
}

static double compare(const struct bench_output *output, const struct peers_sheet *sheet,
		      enum peers_phase phase)
{
	uint32_t best = best_peer(sheet, phase);
	struct bench_pair pair = { .reference_name = sheet->names[best],
				   .unit = "ops/s",
				   .runs = sheet->runs };
	char name[64];

	snprintf(name, sizeof(name), "%s: %s", sheet->run->workload->name, phase_names[phase]);
	pair.name = name;
	for (uint32_t run = 0; run < sheet->runs; run++) {
		pair.measured[run] = rate(&sheet->results[0][run][phase]);
		pair.reference[run] = rate(&sheet->results[best][run][phase]);
	}
	return bench_pair_report(output, &pair);
}

static void add_goal(struct bench_goals *goals, const struct peers_sheet *sheet, const char *what,
		     double value, double least, double most)
{
	const struct bench_goal goal = { .name = sheet->run->workload->name,
					 .what = what,
					 .value = value,
					 .goal = most > 0 ? most : least,
					 .at_most = most > 0 };

	/* The host does not count what the drive does. */
	if (value >= 0)
		bench_goals_add(goals, &goal);
}

/* As much as was asked for is rounded down to whole pairs. */
static bool has_data_for_goals(const struct peers_sheet *sheet)
{
	return sheet->data_bytes + PEER_KEY_BYTES + PEERS_VALUE_MAX > DATA_BYTES_MIN;
}

static void add_goals(const struct peers_sheet *sheet, const double ratios[PEERS_PHASES],
		      struct bench_goals *goals)
{
	double reads = median_of(sheet, 0, PEERS_PRESENT, drive_reads);
	double pages = median_of(sheet, 0, PEERS_PRESENT, page_reads);

	if (sheet->run->workload->goals_of_load && sheet->stores > 1) {
		if (has_data_for_goals(sheet))
			add_goal(goals, sheet, "load, settled : best peer", ratios[PEERS_LOAD],
				 GOAL_LOAD, 0);
		add_goal(goals, sheet, "cold look-ups of present keys, depth 1 : best peer",
			 ratios[PEERS_PRESENT], GOAL_LOOK_UP, 0);
	}
	add_goal(goals, sheet, "reads of the drive a page read of a look-up",
		 reads < 0 ? -1 : reads / pages, 0, GOAL_READS);
	if (sheet->run->workload->goal_of_bytes)
		add_goal(goals, sheet, "bytes written to the drive a user's byte, load",
			 median_of(sheet, 0, PEERS_LOAD, written), 0, GOAL_WRITTEN_BYTES);
	if (sheet->run->workload->goals_of_load && has_data_for_goals(sheet))
		add_goal(goals, sheet, "bytes a key, filters and index",
			 median_of(sheet, 0, PEERS_PRESENT, index_memory) /
				 (double)sheet->run->pairs,
			 0, GOAL_INDEX_BYTES);
}

void peers_report(const struct bench_output *output, const struct peers_sheet *sheet,
		  struct bench_goals *goals)
{
	double ratios[PEERS_PHASES] = { 0 };

	fprintf(output->text,
		"\n%s: %llu pairs, %llu MiB of keys and values, medians of %u turns\n"
		"%-24s %-8s %10s %9s %9s %9s %9s %9s %9s %9s\n",
		sheet->run->workload->name, (unsigned long long)sheet->run->pairs,
		(unsigned long long)sheet->data_bytes >> 20, sheet->runs, "phase", "store", "ops/s",
		"written/B", "writes/op", "reads/op", "read B/op", "pages/op", "index/key",
		"memory/key");
	for (int phase = 0; phase < PEERS_PHASES; phase++)
		for (uint32_t store = 0; store < sheet->stores; store++)
			report_store(output, sheet, (enum peers_phase)phase, store);
	report_space(output, sheet);
	for (int phase = 0; sheet->stores > 1 && phase < PEERS_PHASES; phase++)
		ratios[phase] = compare(output, sheet, (enum peers_phase)phase);
	add_goals(sheet, ratios, goals);
}
