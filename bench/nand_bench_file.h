/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What the two halves of the file part, writes and reads, share. Private to them. */
#ifndef MUNINN_BENCH_NAND_BENCH_FILE_H
#define MUNINN_BENCH_NAND_BENCH_FILE_H

#include "bench/fio.h"
#include "bench/nand_bench.h"
#include "bench/random.h"

#define NAND_BENCH_FILE_GOAL        0.9
#define NAND_BENCH_READ_GOAL        0.85 /* fio reads no spare areas */
#define NAND_BENCH_DRIVE_READS_MOST 1.05

struct nand_bench_file {
	const struct nand_bench_options *options;
	struct nand_geometry geometry;
	struct nand_options nand_options;
	uint64_t data_offset;  /* of the first page, in the image */
	uint64_t data_bytes;   /* page data */
	uint64_t stored_bytes; /* all pages with their spare areas */
	struct random_state random;
};

/* Adds to `error` what failed; returns `result`. */
int nand_bench_file_failed(struct error_text *error, int result, const char *what);

/* What fio has to do where the image has its pages; `depth` blocks at once. */
struct bench_fio nand_bench_file_fio(const struct nand_bench_file *bench, bool write,
				     uint32_t block_bytes, uint32_t depth);

/* Prints the pair. 0, or -ERANGE with a sentence if a goal was missed. */
int nand_bench_file_report(const struct bench_output *output, const struct bench_pair *pair,
			   struct error_text *error);

/*
 * Random reads beside fio, and how many reads of the drive they are. As nand_bench_file.
 */
int nand_bench_file_reads(struct nand_bench_file *bench, const struct bench_output *output,
			  struct error_text *error);

#endif
