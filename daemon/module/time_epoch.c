/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Begins a new time epoch when the administrator says that the host's clock is right again. */
#include "daemon/module/time_epoch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/log.h"
#include "daemon/module/instruction.h"
#include "engine/engine.h"
#include "engine/history.h"

/* The administrator gives the time to the minute, and the unit may have been opened later. */
#define FAR_MS (5 * 60 * 1000)

enum { TIME_TEXT = 32 };

static const char *format_time(uint64_t ms, char text[TIME_TEXT])
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm parts;

	snprintf(text, TIME_TEXT, "?");
	if (gmtime_r(&seconds, &parts))
		strftime(text, TIME_TEXT, "%Y-%m-%dT%H:%M:%SZ", &parts);
	return text;
}

/* -ERANGE: it is another time by the clock; *now_ms = which. */
static int begin_time_epoch(struct engine *engine, uint64_t told_ms, uint64_t *now_ms)
{
	struct engine_txn *txn;
	int result;

	*now_ms = 0;
	if (!(engine_capabilities(engine) & ENGINE_HAS_RETENTION))
		return -EOPNOTSUPP;
	result = engine_begin(engine, ENGINE_RESCUE, &txn);
	if (result)
		return result;
	*now_ms = engine_txn_time(txn);
	if (*now_ms > told_ms + FAR_MS || told_ms > *now_ms + FAR_MS)
		result = -ERANGE;
	if (!result)
		result = engine_time_epoch(txn);
	if (!result)
		return engine_commit(txn, true);
	engine_abort(txn);
	return result;
}

void time_epoch_take(struct engine *engine, const char *image)
{
	char now[TIME_TEXT], reason[128];
	uint64_t told_ms = 0, now_ms = 0;
	int result = instruction_read(image, "time-epoch", &told_ms);

	if (result == -ENOENT)
		return;
	if (!result)
		result = begin_time_epoch(engine, told_ms, &now_ms);
	format_time(now_ms, now);
	if (!result)
		log_line(LOG_LEVEL_WARNING,
			 "%s: a new time epoch begins at %s, as the administrator asked; reach "
			 "earlier moments by number, version or name",
			 image, now);
	else if (result == -ERANGE)
		snprintf(reason, sizeof(reason), "the clock says %s; set it first", now);
	else if (result == -EALREADY)
		snprintf(reason, sizeof(reason),
			 "nothing on record is ahead of the clock, which says %s; there is "
			 "nothing to do",
			 now);
	else
		snprintf(reason, sizeof(reason), "%s",
			 result == -EINVAL       ? "the file holds no time"
			 : result == -EOPNOTSUPP ? "this unit's engine records no times of its own"
						 : strerror(-result));
	instruction_answer(image, "time-epoch", result ? reason : NULL);
}
