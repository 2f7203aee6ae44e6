/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Says lines once, and counts their repetitions. */
#include "daemon/module/repetitions.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The line's own place, a free one, or NULL. */
static struct repetition *find(struct repetitions *repetitions, const char *text)
{
	struct repetition *free = NULL;

	for (size_t n = 0; n < REPETITIONS_MAX; n++) {
		struct repetition *each = &repetitions->list[n];

		if (!each->text[0])
			free = free ? free : each;
		else if (!strncmp(each->text, text, sizeof(each->text) - 1))
			return each;
	}
	return free;
}

static void count_other(struct repetitions *repetitions, int64_t now_ms)
{
	if (repetitions->others++ == 0)
		repetitions->others_since_ms = now_ms;
}

void repetitions_say(struct repetitions *repetitions, enum log_level level, const char *text,
		     int64_t now_ms)
{
	struct repetition *found;

	repetitions_sum_up(repetitions, now_ms);
	found = find(repetitions, text);
	if (!found) {
		count_other(repetitions, now_ms);
	} else if (found->text[0]) {
		found->again++;
	} else {
		snprintf(found->text, sizeof(found->text), "%s", text);
		found->level = level;
		found->since_ms = now_ms;
		log_line(level, "%s", text);
	}
}

static bool is_due(int64_t since_ms, int64_t now_ms)
{
	return now_ms - since_ms >= REPETITIONS_EACH_MS;
}

/* One that does not come any more gives its place up, and at an end all do: then no time is known.
 */
static void sum_up(struct repetition *repetition, int64_t now_ms)
{
	if (repetition->again)
		log_line(repetition->level, "%" PRIu64 " more in the last minute: %s",
			 repetition->again, repetition->text);
	if (!repetition->again || now_ms == INT64_MAX)
		repetition->text[0] = '\0';
	repetition->again = 0;
	repetition->since_ms = now_ms;
}

void repetitions_sum_up(struct repetitions *repetitions, int64_t now_ms)
{
	for (size_t n = 0; n < REPETITIONS_MAX; n++) {
		struct repetition *each = &repetitions->list[n];

		if (each->text[0] && is_due(each->since_ms, now_ms))
			sum_up(each, now_ms);
	}
	if (repetitions->others && is_due(repetitions->others_since_ms, now_ms)) {
		log_line(LOG_LEVEL_WARNING, "%" PRIu64 " more %s without a message",
			 repetitions->others, repetitions->what);
		repetitions->others = 0;
	}
}
