/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Lines of the log that come by the hundred when somebody tries a wrong secret again and again, or
 * scans the portal. Each is said at once, but once a minute at most: then one line says how often
 * it came again. Of lines that differ there are REPETITIONS_MAX a minute at most, and further ones
 * are counted together. So a minute has twice as many lines and one at most, whatever comes.
 */
#ifndef MUNINN_DAEMON_MODULE_REPETITIONS_H
#define MUNINN_DAEMON_MODULE_REPETITIONS_H

#include <stdint.h>

#include "common/log.h"

#define REPETITIONS_MAX     20
#define REPETITION_BYTES    768
#define REPETITIONS_EACH_MS 60000

struct repetition {
	char text[REPETITION_BYTES]; /* "": none */
	enum log_level level;
	int64_t since_ms; /* when it was said, or its repetitions were */
	uint64_t again;   /* since then */
};

/* Zeroed at the beginning, but for `what`. */
struct repetitions {
	const char *what; /* the lines are about, in the plural */
	struct repetition list[REPETITIONS_MAX];
	uint64_t others; /* that were no longer told apart */
	int64_t others_since_ms;
};

/* Says a line, or counts it. */
void repetitions_say(struct repetitions *repetitions, enum log_level level, const char *text,
		     int64_t now_ms);

/*
 * To be called now and then: says how often lines came again, of which the last word is a minute
 * old. With INT64_MAX of all: it may be the end. If it is not, lines are said anew.
 */
void repetitions_sum_up(struct repetitions *repetitions, int64_t now_ms);

#endif
