/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A clock for time limits. */
#ifndef MUNINN_DAEMON_CLOCK_H
#define MUNINN_DAEMON_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Milliseconds since some moment; never goes back. */
static inline int64_t clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#endif
