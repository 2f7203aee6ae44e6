/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Runs of muninn-bench inside the test program, and what they wrote. All fail the test when
 * something goes wrong.
 */
#ifndef MUNINN_TESTS_BENCH_SUPPORT_H
#define MUNINN_TESTS_BENCH_SUPPORT_H

#include "bench/report.h"

/* Phases of one run at most. */
enum { PHASES = 12 };

/* A store so small that tests are quick and tables complete: 4 rows of segments of 16 pages. */
#define SMALL "--size 256M --rows 4 --segment-size 64K --pairs 40000 "

/*
 * Splits the line at spaces and parses it as the command line; results as of bench_options_parse.
 */
int parse(struct bench_options *options, const char *line, struct error_text *error);

void parse_well(struct bench_options *options, const char *line);

/* What a run of the line writes to stdout; to be freed. */
char *run(const char *line);

/* The same as JSON objects, one a phase, to be released; returns how many. */
size_t run_phases(const char *line, json_t *phases[PHASES]);
void release(json_t **phases, size_t count);

/* Fields of a phase. */
double number(const json_t *phase, const char *name);
const char *text(const json_t *phase, const char *name);

/* Equal to nine digits, as many as are written. */
void assert_close(double a, double b);

#endif
