/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What a store should cost, by equations from its options alone: nothing in here runs the engine.
 * docs/benchmarks/paper.md has the equations in words. They are this project's own: the text of the
 * paper's equations 1 to 5 is not at hand.
 */
#ifndef MUNINN_BENCH_PREDICT_H
#define MUNINN_BENCH_PREDICT_H

#include "bench/options.h"

enum { PREDICT_FILTERS_MAX = 16, PREDICT_FUNCTIONS = 24 };

/* ---- a segment ---- */

/* Places of a record in a segment. */
struct predict_shape {
	uint32_t pages, per_page; /* of records of equal size */
	uint32_t filters,
		paged;     /* the last filter stands for all functions behind the paged ones */
	double keys_limit; /* that a filter takes */
};

struct predict_segment {
	double records;                   /* when the first one finds no place */
	double keys[PREDICT_FILTERS_MAX]; /* of them, by the filter that remembers them */
};

/* Equation 1: a record goes to the first of its functions whose page has space. */
void predict_segment(const struct predict_shape *shape, struct predict_segment *segment);

/* ---- a filter ---- */

/* Equation 2: bits a key for a false-positive rate, with the best number of hashes. */
double predict_bits_per_key(double rate);

/*
 * Equation 3: the rate of a filter of `bits` and `hashes` (at most 20) whose keys are Poisson
 * distributed.
 */
double predict_rate(double keys, double bits, uint32_t hashes);

/* ---- a store ---- */

struct prediction {
	enum index_kind index;
	uint32_t rows, tables_expected;
	uint32_t page_bytes, page_ns; /* the time of one page access */
	double rate, factor;          /* of the newest table; its growth for each older one */
	struct predict_shape shape;
	struct predict_segment segment;
};

/* Pairs of different keys are put, one after the other. */
void predict_begin(struct prediction *prediction, const struct bench_options *options);

/* Share of sealed segments' bytes that records take. */
double predict_utilization(const struct prediction *prediction);

/*
 * Segments that so many pairs are in each row, and how many of these are sealed on average, which
 * the functions below take.
 */
double predict_segments(const struct prediction *prediction, double pairs);
double predict_sealed(const struct prediction *prediction, double pairs);

/* Equation 4: bytes of all rows' filters, maps and columns. NAN for the ribbon index. */
double predict_index_bytes(const struct prediction *prediction, double sealed);

/* Pages of segments and of complete tables or groups, of all rows. */
double predict_page_writes(const struct prediction *prediction, double sealed);

/*
 * Equation 5: page reads of a look-up of an absent key; and of one of those that are
 * `from` to `to` in a row's segments by age, all of them alike. What is in a buffer costs none.
 */
double predict_absent_reads(const struct prediction *prediction, double sealed);
double predict_reads(const struct prediction *prediction, double sealed, double from, double to);

/* Look-ups a second that wait for one page after the other. */
double predict_per_second(const struct prediction *prediction, double reads);

/* ---- a hot key ---- */

/*
 * Utilization by `puts` with one key that takes `share` of them, of which a segment takes
 * `versions` at most. Its row has as many segments as that key needs.
 */
double predict_hot_utilization(const struct prediction *prediction, double puts, double share,
			       double versions);

#endif
