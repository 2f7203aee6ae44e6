/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Keeps the last lines that tell of trouble. */
#include "daemon/troubles.h"

#include <stdio.h>
#include <time.h>

static struct trouble kept[TROUBLES_MAX];
static unsigned int noted; /* since the start */

void trouble_note(enum log_level level, const char *line)
{
	struct trouble *trouble = &kept[noted % TROUBLES_MAX];
	struct timespec now;

	if (level > LOG_LEVEL_WARNING)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	trouble->time_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
	trouble->level = level;
	snprintf(trouble->line, sizeof(trouble->line), "%s", line);
	noted++;
}

void trouble_sink(enum log_level level, const char *line)
{
	fprintf(stderr, "%smuninn: %s: %s\n", log_priority(level), log_level_word(level), line);
	trouble_note(level, line);
}

const struct trouble *trouble_get(unsigned int index)
{
	if (index >= noted || index >= TROUBLES_MAX)
		return NULL;
	return &kept[(noted - 1 - index) % TROUBLES_MAX];
}
