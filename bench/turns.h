/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Measurements in turns: each side runs for a while, then the other one, so that a noisy machine
 * disturbs both. Figures are medians, and a ratio is the median of the ratios of each turn.
 */
#ifndef MUNINN_BENCH_TURNS_H
#define MUNINN_BENCH_TURNS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { BENCH_RUNS_MAX = 99, BENCH_GOALS_MAX = 64 };

/* Where results go: a JSON object a line, and lines for people. */
struct bench_output {
	FILE *json, *text;
};

/* Writes the object and a line's end, and takes the object over. NULL (no memory): only the end. */
void bench_json_line(const struct bench_output *output, json_t *object);

/* Of the monotonic clock. */
double bench_seconds(void);
double bench_median(const double *values, uint32_t count);

/* A measurement beside its reference: medians, and their ratio turn by turn. */
struct bench_pair {
	const char *name, *reference_name, *unit;
	double goal; /* least ratio; 0: none */
	uint32_t runs;
	double reference[BENCH_RUNS_MAX], measured[BENCH_RUNS_MAX];
};

/* Prints; returns the median of the ratios. Both values of a turn are rates: more is better. */
double bench_pair_report(const struct bench_output *output, const struct bench_pair *pair);

/* A figure and what it must reach. */
struct bench_goal {
	const char *name, *what; /* of the case; what the figure is */
	double value, goal;
	bool at_most; /* the goal is the most that the value may be, else the least */
};

struct bench_goals {
	struct bench_goal goals[BENCH_GOALS_MAX];
	unsigned count;
};

/* Notes a goal for the table. What does not fit is left out. */
void bench_goals_add(struct bench_goals *goals, const struct bench_goal *goal);
bool bench_goal_reached(const struct bench_goal *goal);
/* Prints the table; returns how many goals were missed. */
unsigned bench_goals_report(const struct bench_output *output, const struct bench_goals *goals);

#endif
