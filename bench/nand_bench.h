/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * `muninn-bench nand`: the emulated NAND by itself. Each back end runs in turns, in one process,
 * with what the machine can do without it, so that a noisy machine disturbs both. Figures are
 * medians.
 */
#ifndef MUNINN_BENCH_NAND_BENCH_H
#define MUNINN_BENCH_NAND_BENCH_H

#include <stdint.h>
#include <stdio.h>

#include "bench/turns.h"
#include "common/error.h"
#include "nand/nand.h"

enum nand_bench_part {
	NAND_BENCH_MMAP = 1 << 0,    /* program and read of memory beside memcpy(3) */
	NAND_BENCH_FILE = 1 << 1,    /* random reads and sequential programs beside fio(1) */
	NAND_BENCH_HEADERS = 1 << 2, /* memory for a huge device */
};

struct nand_bench_options {
	unsigned parts;
	const char *path;      /* of the image of the file part; created, and removed at the end */
	uint64_t mmap_bytes;   /* page data of the device in memory */
	uint64_t file_bytes;   /* of the image */
	uint64_t device_bytes; /* of the device that the headers part fills in part */
	uint64_t records;      /* with which it does so */
	uint32_t record_bytes; /* header and value */
	uint32_t runs;         /* of each pair of measurements */
	double seconds;        /* of each random read */
	uint32_t memory_limit_mib; /* that the headers part must stay below */
	uint64_t seed;
};

/* Runs the command line; argv[0] is not looked at. Returns the exit code of the program. */
int nand_bench_main(int argc, char **argv, FILE *json, FILE *text);

struct nand_bench_options nand_bench_defaults(void);

/* The parts. 0, or negative with a sentence; -ERANGE: it ran, but a goal was missed. */
int nand_bench_mmap(const struct nand_bench_options *options, const struct bench_output *output,
		    struct error_text *error);
int nand_bench_file(const struct nand_bench_options *options, const struct bench_output *output,
		    struct error_text *error);
int nand_bench_headers(const struct nand_bench_options *options, const struct bench_output *output,
		       struct error_text *error);

#endif
