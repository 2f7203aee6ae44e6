/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Medians, ratios turn by turn, and the table of goals. */
#include "bench/turns.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double bench_seconds(void)
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

double bench_median(const double *values, uint32_t count)
{
	double sorted[BENCH_RUNS_MAX];

	memcpy(sorted, values, count * sizeof(sorted[0]));
	qsort(sorted, count, sizeof(sorted[0]), compare);
	return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

double bench_pair_report(const struct bench_output *output, const struct bench_pair *pair)
{
	double ratios[BENCH_RUNS_MAX] = { 0 }, ratio, measured, reference;
	double quarter, three_quarters, least, most;
	json_t *object;

	for (uint32_t i = 0; i < pair->runs; i++)
		ratios[i] = pair->measured[i] / pair->reference[i];
	qsort(ratios, pair->runs, sizeof(ratios[0]), compare);
	least = ratios[0];
	quarter = ratios[(pair->runs - 1) / 4];
	three_quarters = ratios[pair->runs - 1 - (pair->runs - 1) / 4];
	most = ratios[pair->runs - 1];
	ratio = bench_median(ratios, pair->runs);
	measured = bench_median(pair->measured, pair->runs);
	reference = bench_median(pair->reference, pair->runs);
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
	bench_json_line(output, object);
	return ratio;
}

/* ---- goals ---- */

void bench_goals_add(struct bench_goals *goals, const struct bench_goal *goal)
{
	if (goals->count < BENCH_GOALS_MAX)
		goals->goals[goals->count++] = *goal;
}

bool bench_goal_reached(const struct bench_goal *goal)
{
	return goal->at_most ? goal->value <= goal->goal : goal->value >= goal->goal;
}

unsigned bench_goals_report(const struct bench_output *output, const struct bench_goals *goals)
{
	unsigned missed = 0;

	fprintf(output->text, "\n%-18s %-58s %10s  %-8s\n", "case", "what", "median", "goal");
	for (unsigned i = 0; i < goals->count; i++) {
		const struct bench_goal *goal = &goals->goals[i];
		bool reached = bench_goal_reached(goal);
		json_t *object;

		missed += !reached;
		fprintf(output->text, "%-18s %-58s %10.3f  %s %-6g %s\n", goal->name, goal->what,
			goal->value, goal->at_most ? "<=" : ">=", goal->goal,
			reached ? "met" : "MISSED");
		object = json_pack("{s:s, s:s, s:f, s:f, s:s, s:b}", "goal_of", goal->name, "what",
				   goal->what, "median", goal->value, "goal", goal->goal, "is",
				   goal->at_most ? "at most" : "at least", "met", (int)reached);
		bench_json_line(output, object);
	}
	return missed;
}

void bench_json_line(const struct bench_output *output, json_t *object)
{
	if (object)
		json_dumpf(object, output->json, JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6));
	fputc('\n', output->json);
	fflush(output->json);
	json_decref(object);
}
