/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * `muninn-bench ribbon`: the ribbon index by itself. Arranging segments, building groups and
 * asking them, where every key is looked for; then whole rows.
 */
#ifndef MUNINN_BENCH_RIBBON_BENCH_H
#define MUNINN_BENCH_RIBBON_BENCH_H

#include <stdint.h>
#include <stdio.h>

#include "common/error.h"

struct ribbon_bench_options {
	uint32_t rows;     /* that are asked in turn */
	uint32_t groups;   /* of a row */
	uint32_t members;  /* segments of a group */
	uint32_t segments; /* that are arranged, of each kind of records */
	uint64_t questions;
	uint64_t seed;
};

struct ribbon_bench_options ribbon_bench_defaults(void);

/*
 * A JSON object for each part to `json`, a table to `text`. -EBADMSG, -ENOMEM with a sentence: a
 * key was not found, or memory is short.
 */
int ribbon_bench_run(const struct ribbon_bench_options *options, FILE *json, FILE *text,
		     struct error_text *error);

/* Runs the command line; argv[0] is not looked at. Returns the exit code of the program. */
int ribbon_bench_main(int argc, char **argv, FILE *json, FILE *text);

#endif
