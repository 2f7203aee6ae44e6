/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* `muninn-bench merging`: ways of merging beside the engine's, simulated. */
#ifndef MUNINN_BENCH_MERGE_MODEL_BENCH_H
#define MUNINN_BENCH_MERGE_MODEL_BENCH_H

#include <stdio.h>

/* Runs the command line; argv[0] is not looked at. Returns the exit code of the program. */
int merge_model_bench_main(int argc, char **argv, FILE *json, FILE *text);

#endif
