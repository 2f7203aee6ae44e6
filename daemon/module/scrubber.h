/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Reads all of a device once in a period, a few pages at a time, and has moved what is beside lost
 * pages. The device's attendant calls it, so it needs neither a thread nor a timer.
 */
#ifndef MUNINN_DAEMON_MODULE_SCRUBBER_H
#define MUNINN_DAEMON_MODULE_SCRUBBER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "nand/nand.h"

#define SCRUB_DAYS_DEFAULT 30
#define SCRUB_DAYS_MAX     3650
#define SCRUB_RATE_DEFAULT 1000
#define SCRUB_RATE_MAX     1000000

struct scrub_options {
	uint32_t days; /* of a period; 0: never */
	uint32_t rate; /* pages a second, at most */
	bool moves;    /* what is beside lost pages */
};

struct scrubber {
	struct scrub_options options;
	struct engine *engine;
	struct nand *nand;
	uint64_t last_us;     /* when it looked last */
	double due;           /* places; less than 0: it is ahead */
	uint64_t pages_users; /* that users had moved then */
	struct engine_scrub scrub;
	int mend_error; /* the last one, so that it is logged once */
};

/* It begins somewhere: a service that is often started again comes to all places in time. */
void scrubber_begin(struct scrubber *scrubber, const struct scrub_options *options,
		    struct engine *engine, struct nand *nand, uint64_t now_us);

/* Does what is due. `now_us`: of a clock that only goes on. */
void scrubber_look(struct scrubber *scrubber, uint64_t now_us);

#endif
