/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * `muninn-bench threads`: what the engine does for several threads that call it at once, each with
 * objects of its own. Transactions on an engine on flash in memory, without commands and iSCSI.
 */
#ifndef MUNINN_BENCH_THREADS_BENCH_H
#define MUNINN_BENCH_THREADS_BENCH_H

#include <stdint.h>
#include <stdio.h>

#include "common/error.h"

enum { THREADS_BENCH_MAX = 16 };

struct threads_bench_options {
	uint32_t threads;    /* the most; each case runs with 1, 2, 4 and so on up to that */
	uint32_t operations; /* of a measurement, of all threads together */
	uint32_t turns;      /* measurements of each */
};

struct threads_bench_options threads_bench_defaults(void);

/*
 * Runs the cases in turns: WRITEs of 4 KiB over others, without history, READs, and READs beside
 * one thread that writes. A JSON object for each case and number of threads to `json`, a
 * table to `text`: operations a second, beside those of one thread. 0; negative with a sentence.
 */
int threads_bench_run(const struct threads_bench_options *options, FILE *json, FILE *text,
		      struct error_text *error);

/* Runs the command line; argv[0] is not looked at. Returns the exit code of the program. */
int threads_bench_main(int argc, char **argv, FILE *json, FILE *text);

#endif
