/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * `muninn-bench import`: what storing a directory tree and bringing it back costs, beside tar and
 * borg. A muninnd of its own, whose image is on the file system where the others' archives are.
 */
#ifndef MUNINN_BENCH_IMPORT_BENCH_H
#define MUNINN_BENCH_IMPORT_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "bench/source_tree.h"
#include "bench/turns.h"
#include "common/error.h"

struct import_bench_options {
	struct source_tree tree;
	const char *folder;   /* where the tree, both archives and the image are */
	const char *programs; /* the folder of muninnd and muninnctl */
	const char *borg;     /* this program */
	const char *index;    /* of the unit: bloom or ribbon; NULL: as muninnd has it */
	uint64_t size_bytes;  /* of the unit */
	uint32_t turns;
};

/* What is timed; each has a program of ours, and one of others. */
enum import_task { IMPORT_WHOLE, IMPORT_BACK, IMPORT_AGAIN, IMPORT_TASKS };

struct import_bench_figures {
	/* Seconds of each turn. */
	double ours[IMPORT_TASKS][BENCH_RUNS_MAX], others[IMPORT_TASKS][BENCH_RUNS_MAX];
	bool has_borg;       /* else others[IMPORT_AGAIN] is nothing */
	uint64_t tree_bytes; /* in files */
	uint64_t used_bytes; /* what the first import took of the flash */
};

/*
 * Everything that comes back is compared. -errno with a sentence; -ECANCELED when *stop became
 * true. Nothing stays in the folder.
 */
int import_bench_measure(const struct import_bench_options *options, const volatile int *stop,
			 struct import_bench_figures *figures, struct error_text *error);

/* Runs the command line; argv[0] is not looked at. Returns the exit code of the program. */
int import_bench_main(int argc, char **argv, FILE *json, FILE *text);

#endif
