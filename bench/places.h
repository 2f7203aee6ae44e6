/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * How full segments get when a key may be put to a segment only so often: a simulation of
 * placement alone, without a store. It says what the paper's "24 places" may mean; the engine has
 * one reading of it, and the simulation of that one gives what the engine gives.
 */
#ifndef MUNINN_BENCH_PLACES_H
#define MUNINN_BENCH_PLACES_H

#include "bench/distribution.h"

enum { PLACES_PAGES_MAX = 256, PLACES_PER_PAGE_MAX = 4 };

struct places_options {
	uint32_t rows;            /* a power of two */
	uint32_t pages, per_page; /* of a segment: a power of two; records of equal size */
	uint32_t places;          /* hash functions of a key */
	/*
	 * Versions of one key that a place takes: the first `paged` ones, which have a filter each,
	 * and those behind them.
	 */
	uint32_t paged, paged_versions, further_versions;
	enum distribution distribution;
	uint64_t pairs, puts, seed;
};

struct places_report {
	uint64_t segments; /* sealed */
	double utilization;
};

/*
 * Puts records, each to the first place of its key, from the last one that has the key on, that
 * takes it. A key that finds none seals its row's segment. -ENOMEM.
 */
int places_simulate(const struct places_options *options, struct places_report *report);

/* Versions of a key that a segment takes at most. */
uint32_t places_versions(const struct places_options *options);

#endif
