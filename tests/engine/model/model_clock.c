/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What times mean in a random run, by which number was committed when. */
#include "tests/engine/model/model_clock.h"

#include <string.h>

#include "common/bytes.h"
#include "engine/history/times.h"

/* The last recorded time. */
static uint64_t latest(const struct model_clock *clock)
{
	return clock->count ? clock->slots[clock->count - 1].last_ms : 0;
}

/* ---- commits ---- */

bool model_clock_is_behind(const struct model_clock *clock, uint64_t now_ms)
{
	return now_ms < latest(clock);
}

/* All that was before counts as of then. */
void model_clock_begin_epoch(struct model_clock *clock, uint64_t sequence, uint64_t now_ms)
{
	clock->epoch_sequence = sequence;
	clock->epoch_ms = clock->highest = now_ms;
	for (uint32_t at = 0; at < clock->count; at++)
		clock->slots[at].first_ms = clock->slots[at].last_ms = now_ms;
}

static void add_slot(struct model_clock *clock, uint64_t number, uint64_t ms)
{
	uint64_t recorded_ms = max_u64(ms, latest(clock));

	if (clock->count == MODEL_SLOTS) {
		clock->count -= MODEL_SLOTS / 4;
		memmove(clock->slots, clock->slots + MODEL_SLOTS / 4,
			clock->count * sizeof(clock->slots[0]));
		clock->forgot = true;
	}
	clock->slots[clock->count++] = (struct model_slot){ .number = number,
							    .first_ms = recorded_ms,
							    .last_ms = recorded_ms };
}

void model_clock_see(struct model_clock *clock, uint64_t sequence, uint64_t ms)
{
	struct model_slot *last = clock->count ? &clock->slots[clock->count - 1] : NULL;

	clock->highest = max_u64(clock->highest, ms);
	if (sequence <= clock->sequence)
		return;
	clock->sequence = sequence;
	/* The first slot is what making the device took, of which no time is on record. */
	if (sequence < RECORD_SLOT)
		return;
	if (last && last->number == slot_begin(sequence))
		last->last_ms = max_u64(last->last_ms, ms);
	else
		add_slot(clock, slot_begin(sequence), ms);
}

void model_clock_open(struct model_clock *clock, uint64_t sequence)
{
	while (clock->count && clock->slots[clock->count - 1].number > sequence)
		clock->count--;
	clock->sequence = sequence;
	/* Of the last slot nothing but its beginning is on record. */
	if (clock->count)
		clock->slots[clock->count - 1].last_ms = clock->slots[clock->count - 1].first_ms;
}

/* ---- what times mean ---- */

/* The slot that was over last at `ms`. */
static enum model_meaning find_moment(const struct model_clock *clock, uint64_t ms, uint64_t *bound)
{
	uint32_t at = clock->count;

	*bound = 0;
	while (at && clock->slots[at - 1].first_ms > ms)
		at--;
	if (at == 0)
		return clock->forgot ? MODEL_NOT_CERTAIN : MODEL_MEANS_MOMENT;
	if (clock->slots[at - 1].last_ms <= ms) {
		*bound = slot_end(clock->slots[at - 1].number);
		return MODEL_MEANS_MOMENT;
	}
	/*
	 * It goes on: the one before it, if there was none in between that the model did not see.
	 */
	if (at == 1 || clock->slots[at - 2].number + RECORD_SLOT != clock->slots[at - 1].number ||
	    clock->slots[at - 2].last_ms > ms)
		return MODEL_NOT_CERTAIN;
	*bound = slot_end(clock->slots[at - 2].number);
	return MODEL_MEANS_MOMENT;
}

enum model_meaning model_clock_meaning(const struct model_clock *clock, uint64_t ms,
				       uint64_t *bound)
{
	return ms < clock->epoch_ms ? MODEL_BEFORE_EPOCH : find_moment(clock, ms, bound);
}

/* ---- random times ---- */

uint64_t model_clock_some_time(const struct model_clock *clock, uint64_t now_ms, uint64_t random)
{
	uint64_t kind = random % 4, ms = now_ms, off;

	random /= 4;
	if (kind == 0 && clock->count)
		ms = clock->slots[random % clock->count].first_ms;
	else if (kind == 1 && clock->count)
		ms = clock->slots[random % clock->count].last_ms;
	else if (kind == 2 && clock->epoch_ms)
		ms = clock->epoch_ms;
	else
		return (random >> 8) % (latest(clock) + 10000);
	off = (random >> 16) % 7;
	return off == 6 ? ms + (random >> 24) % 3000 : ms + off - min_u64(ms, 3);
}

uint64_t model_clock_some_jump(const struct model_clock *clock, uint64_t now_ms, uint64_t random)
{
	uint64_t kind = random % 8, far = (random >> 8) % 200000, near = (random >> 8) % 4000;

	switch (kind) {
	case 0:
	case 1:
		return now_ms - min_u64(now_ms, near);
	case 2:
		return now_ms - min_u64(now_ms, far);
	case 3:
		return now_ms + near;
	case 4:
		return now_ms + far;
	case 5:
		/* As a clock comes whose battery is empty. */
		return (random >> 8) % 5 ? now_ms : 1 + near;
	default:
		/* So much time has passed. */
		return max_u64(now_ms, latest(clock)) + near;
	}
}
