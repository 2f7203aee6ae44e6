/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * `muninn-bench paper`: runs the experiments side by side and puts the paper's numbers beside ours.
 */
#ifndef MUNINN_BENCH_PAPER_H
#define MUNINN_BENCH_PAPER_H

#include <stdio.h>

#include "bench/experiments.h"

struct paper_options {
	const struct experiment_scale *scale;
	const char *output; /* file for the JSON list */
	const char *only;   /* NULL, or a part of the names of the sections to run */
	const char *commit; /* NULL, or what was measured */
	uint64_t seed;
	uint32_t jobs;       /* experiments side by side */
	bool adds_processor; /* look-ups once more with what they take of a processor */
};

extern const char bench_paper_help[];

/* As bench_options_parse. */
int paper_options_parse(struct paper_options *options, int argc, char **argv,
			struct error_text *error);

/*
 * Progress goes to `progress`, the table to `table`. Errors with a sentence; then no file is
 * written.
 */
int paper_run(const struct paper_options *options, FILE *table, FILE *progress,
	      struct error_text *error);

#endif
