/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * How much the service did in the last minutes, by what answers of `status` count. It is known for
 * as long as somebody asked, for the status page comes again by itself.
 */
#ifndef MUNINN_DAEMON_TREND_H
#define MUNINN_DAEMON_TREND_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#define TREND_SPAN_MS    600000
#define TREND_SPACING_MS 5000 /* answers that follow each other sooner are left out */
#define TREND_POINTS_MAX (TREND_SPAN_MS / TREND_SPACING_MS)

/* All units together; what they did since the point before. */
struct trend_point {
	int64_t at_ms;          /* of clock.h */
	double commands, bytes; /* a second */
	double latency_us;      /* of a command, on average; 0: there were none */
};

/* All that units have counted. */
struct trend_sum {
	uint64_t commands, bytes, took_us, timed;
	size_t units;
};

struct trend {
	struct trend_sum last;
	int64_t last_ms; /* 0: never */
	struct trend_point points[TREND_POINTS_MAX];
	size_t first, count;
};

/* Takes an answer of `status` into account. */
void trend_note(struct trend *trend, const json_t *status, int64_t now_ms);
/* The n-th point, oldest first. */
const struct trend_point *trend_at(const struct trend *trend, size_t n);

#endif
