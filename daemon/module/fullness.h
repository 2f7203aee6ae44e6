/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * How full a device is: says in the log, once each, that it is 80, 95 or 100 % full, and counts
 * what initiators of its disks are to be told.
 */
#ifndef MUNINN_DAEMON_MODULE_FULLNESS_H
#define MUNINN_DAEMON_MODULE_FULLNESS_H

#include <stdint.h>

struct engine;

/* Levels that initiators of disks are told of: the thresholds of thin provisioning. */
#define FULLNESS_HIGH_PERCENT      80
#define FULLNESS_VERY_HIGH_PERCENT 95

/* Zeroed at the beginning. */
struct fullness {
	uint32_t said; /* the highest level that was said; 0: none */
	uint64_t looked_us;
	/* As of the last look. Atomic: other threads read them. */
	uint64_t used_bytes, capacity_bytes;
	/* How often one of FULLNESS_..._PERCENT was reached or passed: once for both at once. */
	uint32_t crossings;
};

/*
 * The level in percent that has been reached and was not said yet, or 0. A level is said again only
 * after the device was 5 % below it. Counts in `crossings`.
 */
uint32_t fullness_reached(struct fullness *fullness, uint64_t used, uint64_t capacity);

/* To be called now and then; looks every two seconds. Waits for its turn. */
void fullness_look(struct fullness *fullness, struct engine *engine, const char *image,
		   uint64_t now_us);

#endif
