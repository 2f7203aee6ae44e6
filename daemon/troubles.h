/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The last warnings and errors of this process and of its tgtd, for who asks how the service is. */
#ifndef MUNINN_DAEMON_TROUBLES_H
#define MUNINN_DAEMON_TROUBLES_H

#include <stdint.h>

#include "common/log.h"

#define TROUBLES_MAX      16
#define TROUBLE_LINE_SIZE 512

struct trouble {
	int64_t time_ms; /* since 1970 */
	enum log_level level;
	char line[TROUBLE_LINE_SIZE];
};

/* Keeps a line that has been logged, if it tells of trouble. */
void trouble_note(enum log_level level, const char *line);

/* A log_sink: as the usual one, and keeps the line. */
void trouble_sink(enum log_level level, const char *line);

/* The `index`-th of those that are kept, the newest first; NULL: there is none. */
const struct trouble *trouble_get(unsigned int index);

#endif
