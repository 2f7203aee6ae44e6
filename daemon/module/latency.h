/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * How long commands took, from their arrival to their answer, in fixed classes. One thread counts:
 * tgtd's main thread, which sees each command come and go. So nothing is locked.
 */
#ifndef MUNINN_DAEMON_MODULE_LATENCY_H
#define MUNINN_DAEMON_MODULE_LATENCY_H

#include <stddef.h>
#include <stdint.h>

/* Of each class the longest time that is in it; what takes longer is in one more. */
static const uint32_t latency_limits_us[] = {
	50,    100,   250,    500,    1000,   2500,    5000,    10000,
	25000, 50000, 100000, 250000, 500000, 1000000, 2500000, 10000000,
};
enum { LATENCY_LIMITS = sizeof(latency_limits_us) / sizeof(latency_limits_us[0]) };
enum { LATENCY_CLASSES = LATENCY_LIMITS + 1 };

struct latency {
	uint64_t sum_us;
	uint64_t count[LATENCY_CLASSES];
};

static inline void latency_count(struct latency *latency, uint32_t us)
{
	size_t at = 0;

	while (at < LATENCY_LIMITS && us > latency_limits_us[at])
		at++;
	latency->count[at]++;
	latency->sum_us += us;
}

#endif
