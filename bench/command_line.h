/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What the command lines of `muninn-bench list`, `hold` and `nand` share. */
#ifndef MUNINN_BENCH_COMMAND_LINE_H
#define MUNINN_BENCH_COMMAND_LINE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/error.h"

/* Exit codes, as of all commands. */
enum { DONE = 0, FAILED = 1, WRONG_USE = 2 };

/* An option with a number; `unit`: K, M, G or T (powers of 1024) may stand behind it. */
struct bench_number {
	const char *name;
	bool unit;
	uint64_t least, most;
};

/* 0, or -EINVAL with a sentence that names the option and its limits. */
int bench_take_number(const struct bench_number *option, const char *text, uint64_t *value,
		      struct error_text *error);

/*
 * The next option by getopt_long; the caller has set `optind` to 0 before the first. Returns its
 * code, -1 behind the last one, or -EINVAL with a sentence: an unknown option, a missing value, or
 * a word that is no option.
 */
struct option;
int bench_next_option(int argc, char **argv, const struct option *options,
		      struct error_text *error);

/*
 * Ends `muninn-bench COMMAND` if its options ask for help (`result` > 0) or are wrong (< 0): says
 * so, and returns the exit code.
 */
int bench_do_without(const char *command, const char *help, int result,
		     const struct error_text *error, FILE *json, FILE *text);

#endif
