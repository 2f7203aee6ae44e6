/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Results of phases for programs (JSON) and for people (a table). */
#ifndef MUNINN_BENCH_REPORT_H
#define MUNINN_BENCH_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "bench/phase.h"

/*
 * Everything known of a phase, as docs/benchmarks/run.md lists it. The caller owns the reference.
 * NULL: out of memory.
 */
json_t *report_json(const struct phase_report *report, const struct bench_store *store);

void report_table_head(FILE *to);
void report_table_line(FILE *to, const struct phase_report *report,
		       const struct bench_store *store);

/*
 * Runs all phases of the options on a fresh store: a JSON object a line to `json`, the table to
 * `table`.
 */
int bench_run(const struct bench_options *options, FILE *json, FILE *table,
	      struct error_text *error);

#endif
