/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Counts the time that a device is open. */
#include "engine/objects/device_time.h"

#include "common/bytes.h"
#include "engine/objects/objects.h"

static uint64_t running_clock(const struct engine *engine)
{
	return engine->options.running_ms(engine->options.clock_context);
}

void device_time_init(struct engine *engine)
{
	pthread_mutex_init(&engine->device_time.mutex, NULL);
	engine->device_time.seen_ms = running_clock(engine);
	engine->device_time.passed_ms = DEVICE_TIME_FIRST;
}

void device_time_destroy(struct engine *engine)
{
	pthread_mutex_destroy(&engine->device_time.mutex);
}

void device_time_go_on(struct engine *engine, uint64_t passed_ms)
{
	struct device_time *time = &engine->device_time;

	pthread_mutex_lock(&time->mutex);
	time->passed_ms = max_u64(time->passed_ms, passed_ms);
	time->noted_ms = passed_ms;
	pthread_mutex_unlock(&time->mutex);
}

/* The caller has the mutex. */
static uint64_t look(struct engine *engine)
{
	struct device_time *time = &engine->device_time;
	uint64_t now = running_clock(engine);

	/* A clock that tests give may go back: then no time has passed. */
	if (now > time->seen_ms)
		time->passed_ms = min_u64(time->passed_ms + now - time->seen_ms, ONODE_TIME_MAX);
	time->seen_ms = now;
	return time->passed_ms;
}

uint64_t device_time_now(struct engine *engine)
{
	uint64_t now;

	pthread_mutex_lock(&engine->device_time.mutex);
	now = look(engine);
	pthread_mutex_unlock(&engine->device_time.mutex);
	return now;
}

uint64_t device_time_of(struct engine_txn *txn)
{
	if (!txn->device_ms)
		txn->device_ms = device_time_now(txn->engine);
	return txn->device_ms;
}

uint64_t device_time_note(struct engine *engine)
{
	uint64_t now;

	pthread_mutex_lock(&engine->device_time.mutex);
	now = engine->device_time.noted_ms = look(engine);
	pthread_mutex_unlock(&engine->device_time.mutex);
	return now;
}

uint64_t device_time_owed(struct engine *engine)
{
	uint64_t owed;

	pthread_mutex_lock(&engine->device_time.mutex);
	owed = look(engine) - engine->device_time.noted_ms;
	pthread_mutex_unlock(&engine->device_time.mutex);
	return owed;
}
