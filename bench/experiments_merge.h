/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The experiments of the paper that measure merging. */
#ifndef MUNINN_BENCH_EXPERIMENTS_MERGE_H
#define MUNINN_BENCH_EXPERIMENTS_MERGE_H

#include "bench/experiments.h"

/* Adds Figure 10 and section 6.5 to the list. */
void experiments_list_merge(struct experiment_list *list, const struct experiment_scale *scale,
			    uint64_t seed);

#endif
