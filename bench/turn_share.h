/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* How long writers of a served unit have the turn, and wait for it: by the unit's own STATISTICS.
 */
#ifndef MUNINN_BENCH_TURN_SHARE_H
#define MUNINN_BENCH_TURN_SHARE_H

#include <stdint.h>

#include "bench/turns.h"
#include "common/error.h"

struct turn_share {
	uint64_t turns, held_us, waited, waited_us, most_us;
	double seconds; /* when it was read; between two: how long that took */
};

/* `muninnd`: a path; muninnctl, which asks the unit, lies beside it. -EIO with a sentence. */
int turn_share_read(const char *muninnd, const char *url, struct turn_share *share,
		    struct error_text *error);

/* Adds to `sum` what happened between two readings. */
void turn_share_add(struct turn_share *sum, const struct turn_share *before,
		    const struct turn_share *after);

void turn_share_report(const struct bench_output *output, const char *name, const char *side,
		       const struct turn_share *sum);

#endif
