/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A clock that only goes on, for durations and time limits. It does not say the time of day. */
#ifndef MUNINN_COMMON_CLOCK_H
#define MUNINN_COMMON_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_microseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* For limits: differences may be negative. */
static inline int64_t clock_ms(void)
{
	return (int64_t)(clock_microseconds() / 1000);
}

#endif
