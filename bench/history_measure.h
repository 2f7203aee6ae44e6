/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Measures `muninn-bench history`: two devices, filled alike, of which one gets snapshots. */
#ifndef MUNINN_BENCH_HISTORY_MEASURE_H
#define MUNINN_BENCH_HISTORY_MEASURE_H

#include "bench/history_bench.h"

/* Which objects are looked up. */
enum lookup_of {
	/*
	 * Never changed, and so old that they had left the row buffers when the device was filled.
	 */
	LOOKUP_SETTLED,
	LOOKUP_UNCHANGED, /* of all that are never changed */
	LOOKUP_CHANGED,   /* one of them is changed before each snapshot */
	LOOKUP_KINDS
};

/* As of when, on which device. */
enum lookup_at {
	LOOKUP_FILLED,  /* current, before any change: the same on both devices */
	LOOKUP_CONTROL, /* current, after as many changes at the same times without snapshots */
	LOOKUP_CURRENT, /* current, after the snapshots: as all that follow, which change nothing */
	LOOKUP_FIRST,   /* at version 1 */
	LOOKUP_MIDDLE,
	LOOKUP_RANDOM, /* each at a random version, none of which was asked for since opening */
	LOOKUP_RANDOM_AGAIN, /* the same once more */
	LOOKUP_ROLLED_BACK,  /* current, after the rollbacks, whatever the contents are */
	LOOKUP_MOMENTS
};

/* What operations of one kind cost. */
struct operation_cost {
	uint32_t count;
	uint64_t programs;     /* pages, whatever for */
	uint64_t most;         /* in one operation */
	uint64_t record_bytes; /* that were put */
};

struct opening_cost {
	double wall_us, cpu_us; /* medians */
	uint64_t page_reads;
};

/* What all differences between two versions cost. */
struct difference_cost {
	uint64_t found, page_reads;
	double cpu_us;
};

struct history_figures {
	double reads[LOOKUP_MOMENTS][LOOKUP_KINDS]; /* page reads a look-up */
	struct operation_cost snapshot, rollback;
	struct operation_cost alone;            /* snapshots with nothing between them */
	struct operation_cost undo;             /* of all of a large object */
	struct difference_cost differences_few; /* of two neighbours: one change */
	struct difference_cost differences_all; /* of the first and the last version */
	struct opening_cost open_filled, open_control, open_snapshots, open_rolled_back;
	uint64_t programs_control,
		programs_snapshots; /* changes included, from the filled device on */
	uint32_t page_bytes;
};

/* Objects that are changed, the first ones; the others never are. */
uint64_t history_changed_objects(const struct history_bench_options *options);

/* Fills devices and measures. A negative error with a sentence. */
int history_measure(const struct history_bench_options *options, struct history_figures *figures,
		    struct error_text *error);

#endif
