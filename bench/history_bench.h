/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * `muninn-bench history`: what snapshots, rollbacks and reading old versions cost, by the device's
 * own counters. The engine is on flash in memory, without iSCSI.
 */
#ifndef MUNINN_BENCH_HISTORY_BENCH_H
#define MUNINN_BENCH_HISTORY_BENCH_H

#include <stdint.h>
#include <stdio.h>

#include "common/error.h"

struct history_bench_options {
	uint64_t objects;   /* with some hundred bytes each */
	uint32_t snapshots; /* with one object changed between two of them */
	uint32_t lookups;   /* of random objects, for each figure */
	uint32_t rollbacks;
	uint64_t size_bytes; /* page data of the device */
	uint64_t seed;
};

struct history_bench_options history_bench_defaults(void);

/*
 * One JSON object to `json`, lines to `text`. Every byte read is checked. 0; 1: a goal is missed;
 * negative with a sentence.
 */
int history_bench_run(const struct history_bench_options *options, FILE *json, FILE *text,
		      struct error_text *error);

/* Runs the command line; argv[0] is not looked at. Returns the exit code of the program. */
int history_bench_main(int argc, char **argv, FILE *json, FILE *text);

#endif
