/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Runs of those parts of muninn-bench that have a command line of their own: `muninn-bench
 * history`, `list`, `nand`.
 */
#ifndef MUNINN_TESTS_BENCH_PART_H
#define MUNINN_TESTS_BENCH_PART_H

#include <stdio.h>

typedef int bench_part(int argc, char **argv, FILE *json, FILE *text);

/*
 * Runs the command line, the part's name first, split at spaces; returns its exit code. The caller
 * frees what was printed.
 */
int run_part(bench_part *part, const char *name, const char *line, char **json, char **text);

#endif
