/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What old versions cost, which the paper stores but does not look up. */
#ifndef MUNINN_BENCH_EXPERIMENTS_HISTORY_H
#define MUNINN_BENCH_EXPERIMENTS_HISTORY_H

#include "bench/experiments.h"

/* Adds look-ups of old versions to the list. */
void experiments_list_history(struct experiment_list *list, const struct experiment_scale *scale,
			      uint64_t seed);

#endif
