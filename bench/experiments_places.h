/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What the paper may mean by the places of a key, simulated. */
#ifndef MUNINN_BENCH_EXPERIMENTS_PLACES_H
#define MUNINN_BENCH_EXPERIMENTS_PLACES_H

#include "bench/experiments.h"

/* Adds a simulation of each reading to the list. */
void experiments_list_places(struct experiment_list *list, const struct experiment_scale *scale,
			     uint64_t seed);

#endif
