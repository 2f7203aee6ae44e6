/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Paces slots, so that no commands use them up before their time. */
#include "engine/objects/slots.h"

#include "common/bytes.h"
#include "common/log.h"
#include "engine/objects/objects.h"

/* Device time between two warnings. */
#define WARN_EACH_MS 3600000

uint64_t slots_allowed(uint64_t device_ms)
{
	return SLOTS_AT_ONCE + device_ms / 2000 * SLOTS_IN_TWO_SECONDS +
	       device_ms % 2000 * SLOTS_IN_TWO_SECONDS / 2000;
}

/* The last one would end with RECORD_NEWEST. */
uint64_t slots_next(const struct engine *engine)
{
	uint64_t next = slot_end(engine->committed) + 1;

	return next < slot_begin(RECORD_NEWEST) ? next : 0;
}

static void warn(struct engine *engine, uint64_t device_ms)
{
	uint64_t warned = __atomic_load_n(&engine->slots_warned_ms, __ATOMIC_RELAXED);

	if (warned && device_ms < warned + WARN_EACH_MS)
		return;
	__atomic_store_n(&engine->slots_warned_ms, device_ms, __ATOMIC_RELAXED);
	log_line(LOG_LEVEL_WARNING,
		 "%s: commands begin moments faster than the device's life allows; from now on "
		 "there are three in two seconds",
		 engine->store->device);
}

int slots_check(struct engine *engine, enum slot_use use)
{
	uint64_t next = slots_next(engine) >> RECORD_SLOT_BITS, device_ms;

	if (!next)
		return -EOVERFLOW;
	/* Almost always, and then nobody asks for the time. */
	if (next + use <= SLOTS_AT_ONCE)
		return 0;
	device_ms = device_time_now(engine);
	if (next + use <= slots_allowed(device_ms))
		return 0;
	if (use != SLOT_PASS)
		warn(engine, device_ms);
	return -ETIME;
}

/* Whether the open transaction is the first of a slot. */
static bool is_begun(const struct engine *engine)
{
	return engine->writer && slot_begin(engine->numbered) > engine->committed;
}

int slots_end_present(struct engine *engine)
{
	int result = 0;

	if (!is_begun(engine) && !__atomic_load_n(&engine->slot_over, __ATOMIC_RELAXED))
		result = slots_check(engine, SLOT_KEEP);
	if (!result)
		__atomic_store_n(&engine->slot_over, true, __ATOMIC_RELAXED);
	/* Behind the last number of all nothing comes any more. */
	return result == -EOVERFLOW && engine->committed + 1 >= slot_begin(RECORD_NEWEST) ? 0
											  : result;
}
