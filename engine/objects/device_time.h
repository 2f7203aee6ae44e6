/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Device time: how long the device has been open since it was formatted first, in milliseconds. It
 * goes on with the host's monotonic clock, so nobody can set it. It stands still while the device
 * is closed, and a crash may take back what was not on record yet. So it is never more than the
 * time that has really passed. What must not end early (locks), and what may only be used so fast
 * (slots), counts in it.
 */
#ifndef MUNINN_ENGINE_OBJECTS_DEVICE_TIME_H
#define MUNINN_ENGINE_OBJECTS_DEVICE_TIME_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct engine;
struct engine_txn;

/* What a new device begins with: so all that is paced can be had from the first moment on. */
#define DEVICE_TIME_FIRST (UINT64_C(1) << 24)

struct device_time {
	pthread_mutex_t mutex;
	uint64_t passed_ms; /* device time ... */
	uint64_t seen_ms;   /* ... when the running clock said so */
	uint64_t noted_ms;  /* device time that was put on record last */
};

void device_time_init(struct engine *engine);
void device_time_destroy(struct engine *engine);

/* Device time goes on from what is on record, if that is more. */
void device_time_go_on(struct engine *engine, uint64_t passed_ms);

uint64_t device_time_now(struct engine *engine);

/* The same for all that a transaction asks it for. */
uint64_t device_time_of(struct engine_txn *txn);

/* Now, for a record of it. */
uint64_t device_time_note(struct engine *engine);

/* How much of it is not on record. */
uint64_t device_time_owed(struct engine *engine);

/*
 * How fast something may be used: one in `each_ms`, and `most` at once that were saved up. How much
 * was used is one number, the device time up to which it is used up.
 */
struct pace {
	uint32_t each_ms, most;
};

/* Whether one is left, and so many more behind it. */
static inline bool pace_allows(struct pace pace, uint64_t used_ms, uint64_t now_ms, uint32_t more)
{
	return used_ms + (1 + (uint64_t)more) * pace.each_ms <= now_ms;
}

/* Up to when they are used up after one more. */
static inline uint64_t pace_use(struct pace pace, uint64_t used_ms, uint64_t now_ms)
{
	uint64_t saved_ms = (uint64_t)pace.each_ms * pace.most;
	uint64_t first_ms = now_ms > saved_ms ? now_ms - saved_ms : 0;

	return (used_ms > first_ms ? used_ms : first_ms) + pace.each_ms;
}

#endif
