/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Says in the log that a device fills up, before it is full. */
#include "daemon/module/fullness.h"

#include <stddef.h>

#include "common/log.h"
#include "engine/engine.h"

#define LOOK_US 2000000
/* Merging makes a full device a little less full, again and again: that is no news. */
#define BACK_PERCENT 5

static const uint32_t levels[] = { 100, FULLNESS_VERY_HIGH_PERCENT, FULLNESS_HIGH_PERCENT };

/* Rounded down: only what is quite full is 100 % full. */
static uint32_t percent_of(uint64_t used, uint64_t capacity)
{
	return capacity ? (uint32_t)((unsigned __int128)used * 100 / capacity) : 0;
}

/* The highest level that is reached at so many percent; 0: none. */
static uint32_t level_at(uint32_t percent)
{
	for (size_t n = 0; n < sizeof(levels) / sizeof(levels[0]); n++)
		if (percent >= levels[n])
			return levels[n];
	return 0;
}

uint32_t fullness_reached(struct fullness *fullness, uint64_t used, uint64_t capacity)
{
	uint32_t percent = percent_of(used, capacity), level = level_at(percent);

	if (level > fullness->said) {
		/* A full device refuses writes with a sense of its own. */
		if (fullness->said < FULLNESS_VERY_HIGH_PERCENT)
			__atomic_fetch_add(&fullness->crossings, 1, __ATOMIC_RELAXED);
		fullness->said = level;
		return level;
	}
	/* What it fell below by far enough may be said again. */
	if (percent + BACK_PERCENT < fullness->said)
		fullness->said = level_at(percent + BACK_PERCENT);
	return 0;
}

void fullness_look(struct fullness *fullness, struct engine *engine, const char *image,
		   uint64_t now_us)
{
	struct engine_statistics statistics;
	uint32_t level;

	if (fullness->looked_us && now_us < fullness->looked_us + LOOK_US)
		return;
	fullness->looked_us = now_us;
	engine_read_statistics(engine, &statistics);
	__atomic_store_n(&fullness->used_bytes, statistics.used_bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&fullness->capacity_bytes, statistics.capacity_bytes, __ATOMIC_RELAXED);
	level = fullness_reached(fullness, statistics.used_bytes, statistics.capacity_bytes);
	if (!level)
		return;
	log_line(level == FULLNESS_HIGH_PERCENT ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING,
		 level == 100 ? "%s: full: %u %% of %llu MiB are in use, history included; writes "
				"are refused unless some of it can go"
			      : "%s: %u %% of %llu MiB are in use, history included",
		 image, level, (unsigned long long)(statistics.capacity_bytes >> 20));
}
