/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What merging costs when it is done in other ways: a simulation of rows, segments and records
 * alone, without a store. The engine has the first way, and the simulation of that one gives what
 * the engine gives; the others say what changing it would bring.
 */
#ifndef MUNINN_BENCH_MERGE_MODEL_H
#define MUNINN_BENCH_MERGE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/* Where what is still needed of a segment goes. */
enum merge_way {
	MERGE_WAY_ACTIVE, /* to the buffer of its row, among new records: the engine's way */
	MERGE_WAY_GROUP,  /* a complete group is read, and rewritten at its place in age */
	MERGE_WAY_TWO,    /* the same with two groups that follow each other */
	MERGE_WAY_APART,  /* to a buffer of its row for such records alone, which stays */
	MERGE_WAY_BATCH,  /* several segments of one row together make whole ones; the rest of them
			     goes to the buffer of the row */
	MERGE_WAY_PART,   /* as the last, but of one complete group, and they take their place */
	MERGE_WAYS
};

enum merge_updates {
	MERGE_UPDATES_RANDOM,
	MERGE_UPDATES_PARETO,
	MERGE_UPDATES_HOT,
	MERGE_UPDATES_KINDS
};

const char *merge_way_name(enum merge_way way);
const char *merge_updates_name(enum merge_updates updates);

struct merge_model_options {
	enum merge_way way;
	enum merge_updates updates; /* hot: a tenth of the keys takes nine tenths of them */
	uint32_t segments, rows;    /* of the device; at least 32 for each row, a power of two */
	uint32_t page_records;      /* 4 of 1 KiB; 1 of a page */
	uint32_t live_permille; /* keys, as a part of the records that the device has space for */
	bool history;           /* as much as fits is kept; false: only the present */
	uint32_t turns;         /* updates, as multiples of the device, half of them measured */
	uint64_t seed;
};

struct merge_model_report {
	bool full;       /* merging finds no space: the rest says nothing */
	double programs; /* pages, for each update */
	double moved;    /* part of a freed segment that was moved */
	double reads;    /* pages, for each freed segment */
	double entries;  /* of the index, for each key */
	double ranges;   /* segments whose numbers may include one of the past, of those of a row */
	double history;  /* updates that are kept, of the records that the device has space for */
	double aside;    /* part of freed segments that went to the row's buffer after all */
	uint32_t transient; /* segments that merging takes at most before it frees any */
};

/* -ENOMEM. */
int merge_model_run(const struct merge_model_options *options, struct merge_model_report *report);

#endif
