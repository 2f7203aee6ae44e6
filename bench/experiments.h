/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The experiments of the paper (Kang, Pitchumani, Marlette, Miller: Muninn, SYSTOR'14),
 * sections 6.1 to 6.5. Each one is a store of its own; they are independent of each other.
 */
#ifndef MUNINN_BENCH_EXPERIMENTS_H
#define MUNINN_BENCH_EXPERIMENTS_H

#include "bench/phase.h"
#include "bench/places.h"

enum { EXPERIMENTS_MAX = 128, FINDINGS_MAX = 40, NAME_BYTES = 48 };

/* One number beside the paper's. */
struct paper_figure {
	const char *section;
	char name[NAME_BYTES];
	const char *metric, *unit;
	double paper; /* NAN: the paper gives no number, or it is not known here */
	double ours;
	double predicted; /* by predict.h; NAN: no equation says it */
	const char *note; /* or NULL */
};

struct experiment {
	char name[NAME_BYTES];
	const char *section;
	int (*run)(struct experiment *experiment, struct bench_store *store,
		   struct error_text *error);
	struct bench_options options; /* of the store */
	bool has_no_store;            /* it gets NULL for a store */
	/* What `run` makes of it. */
	enum distribution distribution;
	uint64_t operations; /* updates or lookups */
	bool adds_processor; /* look-ups of 6.3 once more, with their processor time */
	uint32_t steps;
	uint64_t segments;            /* to be sealed */
	uint32_t keys;                /* with many versions */
	struct places_options places; /* to be simulated */
	const char *note;
	bool has_second;           /* it is run with the ribbon index, too, ... */
	struct experiment *second; /* ... which is this one, behind all others; NULL: not so */
	/* Results. */
	struct paper_figure findings[FINDINGS_MAX];
	uint32_t finding_count;
	double seconds; /* of the host */
	int result;
	struct error_text error;
};

/*
 * How large the experiments are. Whatever the scale, a row has its share of the paper's device, 512
 * MiB, and where it matters as many tables as with 50 million pairs on 64 GiB and 128 rows, 402
 * segments. For a lookup's reads and the size of the index depend on the tables of a row, not on
 * the number of rows.
 */
struct experiment_scale {
	const char *name, *description;
	uint64_t pairs, bytes; /* section 6.3 */
	uint32_t rows;
	uint32_t steps;                    /* of its inserts: Figure 9 */
	uint64_t lookups;                  /* of each kind */
	uint32_t filter_rows;              /* Figure 7 */
	uint64_t filter_segments;          /* of a row */
	uint32_t rate_rows;                /* Figure 8 */
	uint64_t rate_pairs;               /* of a row */
	uint32_t rate_count, factor_count; /* at most 5 and 4 */
	uint64_t update_pairs, updates;    /* section 6.4 */
	uint32_t update_rows;
	uint32_t merge_rows;                 /* Figure 10 and section 6.5 */
	uint64_t overlap_pairs;              /* Figure 10: of a row */
	uint64_t merge_pairs, merge_updates; /* section 6.5: of a row; 0 pairs: left out */
	uint64_t history_pairs; /* old versions: all pairs, and those that have many versions */
	uint32_t history_keys;
	const char *note; /* for section 6.3, or NULL */
};

extern const struct experiment_scale experiment_scale_full, experiment_scale_quick;

struct experiment_list {
	struct experiment experiments[EXPERIMENTS_MAX];
	uint32_t count;
};

/* Of the paper's device, for a row. */
#define EXPERIMENT_ROW_BYTES (UINT64_C(512) << 20)

/*
 * Adds an experiment to the list, and a number to what an experiment has found. For those who
 * define experiments.
 */
struct experiment *experiment_add(struct experiment_list *list, const char *section, uint64_t seed);
struct paper_figure *experiment_find(struct experiment *experiment, const char *metric,
				     const char *unit, double ours);

/* Lists all experiments, in the order of the paper. */
void experiments_list(struct experiment_list *list, const struct experiment_scale *scale,
		      uint64_t seed);

/* Adds the same with the ribbon index for those that it says something about. */
void experiments_add_ribbon(struct experiment_list *list);

/* Runs one and keeps result and error in it. */
void experiment_run(struct experiment *experiment);

#endif
