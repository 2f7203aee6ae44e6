/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What to measure: the options of `muninn-bench run`, also filled in directly by the experiments.
 */
#ifndef MUNINN_BENCH_OPTIONS_H
#define MUNINN_BENCH_OPTIONS_H

#include "bench/distribution.h"
#include "common/error.h"
#include "engine/options.h"
#include "nand/timing.h"

enum { PHASES_MAX = 32, THREADS_MAX = 64, ASYNC_DEPTH_MAX = 1024 };

/* Of a record; a pair of `pair_bytes` has a value of so many bytes less. */
#define PAIR_HEADER_BYTES 28

enum bench_operation {
	OPERATION_INSERT, /* first records of pairs */
	OPERATION_LOOKUP,
	OPERATION_ABSENT, /* lookups of keys that were never inserted */
	OPERATION_UPDATE, /* newer records of pairs */
	OPERATION_DELETE,
	OPERATION_MIXED, /* lookups and updates */
	OPERATION_OPEN,  /* a crash of the process, and opening behind it */
};

enum bench_nand {
	BENCH_NAND_MEMORY,
	BENCH_NAND_HEADERS, /* values are made again, not kept */
	BENCH_NAND_MAPPED_FILE,
	BENCH_NAND_FILE,
};

/* Are segments reclaimed when the device gets full, and how are they found? */
enum bench_merge { BENCH_MERGE_OFF, BENCH_MERGE_SAMPLED, BENCH_MERGE_FILTERS };

struct bench_phase {
	enum bench_operation operation;
	enum distribution distribution;
	double lookup_share; /* mixed: 0..1 */
	uint64_t operations; /* 0: all pairs for insert and delete, at most OPERATIONS_DEFAULT
				otherwise */
	uint64_t window;     /* of oldest and newest; 0: as phase.h says */
};

struct bench_options {
	enum bench_nand nand;
	const char *path; /* of the image, for the two on files; created, and removed at the end */
	uint64_t size;    /* bytes of page data of the device */
	uint64_t pairs;
	uint32_t pair_bytes; /* key, record header and value together */
	struct bench_phase phases[PHASES_MAX];
	uint32_t phase_count;
	uint32_t threads;
	uint32_t depth;            /* look-ups of one thread that are under way at once */
	const char *timing_name;   /* as given */
	struct nand_timing timing; /* mode: virtual, real, or off (real time without waits) */
	bool adds_processor; /* in virtual time: what the store takes of a processor counts, too */
	bool history; /* every record is kept; otherwise newer ones replace those still buffered */
	double pareto_shape, zipfian_theta;
	uint64_t seed;
	/* Of the engine; 0 = its default. */
	uint32_t rows;
	uint32_t segment_bytes;
	enum index_kind index; /* 0: the default */
	uint32_t filters, paged_filters;
	bool even_filters;
	enum bloom_hot_rows hot_rows;
	uint32_t parity; /* 0: none, whatever the engine's default */
	enum bench_merge merge;
	uint32_t internal_version_tables;
	uint64_t table_cache_bytes; /* 0: tables in memory */
	uint32_t fpr_millionths, fpr_factor_permille;
};

#define OPERATIONS_DEFAULT 1000000

const char *operation_name(enum bench_operation operation);
const char *nand_name(enum bench_nand nand);
const char *merge_name(enum bench_merge merge);

/* Are latencies those of the device's own clock? */
bool is_virtual(const struct bench_options *options);

/* As --time has it. */
const char *time_name(const struct bench_options *options);

#define FILTERS_NAME_BYTES 24

/* "S8/7" and its like into `text`. */
void filters_name(const struct bench_options *options, char text[FILTERS_NAME_BYTES]);

/* The options of `run` when the command line says nothing. */
struct bench_options bench_options_default(void);

/*
 * Reads the options of `run`; argv[0] is not looked at. -EINVAL with a sentence; 1: --help was
 * asked for.
 */
int bench_options_parse(struct bench_options *options, int argc, char **argv,
			struct error_text *error);

/* Reads "S8/7", "N16/16" and so on. -EINVAL with a sentence. */
int bench_filters_parse(struct bench_options *options, const char *text, struct error_text *error);

/* Do the options fit together? Checks before anything is allocated. -EINVAL with a sentence. */
int bench_options_check(const struct bench_options *options, struct error_text *error);

extern const char bench_run_help[];

#endif
