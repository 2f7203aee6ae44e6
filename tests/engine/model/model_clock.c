/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Reckons by itself which moment a time means. */
#include "tests/engine/model/model_clock.h"

#include <string.h>

#include "common/bytes.h"
#include "engine/history/clock.h"
#include "engine/history/times.h"

/* How long a slot goes on at most, in all runs. */
#define SLOT_MS 1000

static struct model_time exactly(uint64_t ms)
{
	return (struct model_time){ ms, ms };
}

static const struct model_slot *last_slot(const struct model_clock *clock)
{
	return clock->count ? &clock->slots[clock->count - 1] : NULL;
}

/* The latest time on record. */
static struct model_time latest(const struct model_clock *clock)
{
	const struct model_slot *last = last_slot(clock);

	return last ? last->last : exactly(0);
}

/* ---- what is in doubt ---- */

/* When the last commit was that is placed before `ms`, or when its slot began; 0: none is. */
static struct model_time last_before(const struct model_clock *clock, uint64_t ms)
{
	struct model_time time = exactly(0);

	for (uint32_t at = 0; at < clock->count; at++) {
		const struct model_slot *slot = &clock->slots[at];

		if (slot->first.until <= ms)
			time.from = slot->last.until <= ms ? slot->last.from : slot->first.from;
		if (slot->first.from <= ms)
			time.until = slot->last.from <= ms ? min_u64(ms, slot->last.until)
							   : slot->first.until;
	}
	if (clock->forgot && time.from == 0)
		time.until = ms;
	if (clock->cut)
		time.from = 0;
	return time;
}

/* What is in doubt while the clock says `now_ms`; false: nothing. */
static bool present_doubt(const struct model_clock *clock, uint64_t now_ms,
			  struct model_doubt *doubt)
{
	struct model_time until = latest(clock);

	*doubt = (struct model_doubt){ .from = last_before(clock, now_ms), .until = until };
	/* Before everything that is on record: nothing was ahead of it. */
	if (now_ms + CLOCK_STEP_MS >= until.until || doubt->from.until == 0)
		return false;
	doubt->maybe = now_ms + CLOCK_STEP_MS >= until.from ||
		       (doubt->from.from == 0 && !clock->cut) || clock->forgot;
	return true;
}

static void note_doubt(struct model_clock *clock, uint64_t sequence, uint64_t now_ms)
{
	struct model_doubt *last = &clock->doubts[clock->doubt_count], doubt;

	if (!present_doubt(clock, now_ms, &doubt))
		return;
	doubt.sequence = sequence;
	for (uint32_t at = 0; at < clock->doubt_count; at++) {
		const struct model_doubt *noted = &clock->doubts[at];

		if (noted->maybe == doubt.maybe && noted->from.from <= doubt.from.from &&
		    noted->from.until <= doubt.from.until &&
		    noted->until.from >= doubt.until.from &&
		    noted->until.until >= doubt.until.until)
			return;
	}
	if (clock->doubt_count < MODEL_DOUBTS) {
		clock->doubt_count++;
	} else {
		/*
		 * The clock goes back no more, so that this is a time on record that is not known
		 * exactly.
		 */
		last--;
		doubt.from.from = min_u64(doubt.from.from, last->from.from);
		doubt.until.until = max_u64(doubt.until.until, last->until.until);
		doubt.sequence = last->sequence;
		doubt.maybe = true;
	}
	*last = doubt;
}

bool model_clock_is_behind(const struct model_clock *clock, uint64_t now_ms, bool *maybe)
{
	*maybe = now_ms < latest(clock).until;
	return now_ms < latest(clock).from;
}

static struct model_time not_behind(struct model_time time, uint64_t ms)
{
	return (struct model_time){ min_u64(time.from, ms), min_u64(time.until, ms) };
}

void model_clock_trust(struct model_clock *clock, uint64_t sequence, uint64_t now_ms)
{
	struct model_doubt doubt = { .sequence = sequence,
				     .from = last_before(clock, now_ms),
				     .until = exactly(now_ms) };

	/* Spans that go on behind what is trusted end there, and are one with it. */
	for (uint32_t at = 0; at < clock->doubt_count; at++) {
		struct model_doubt *noted = &clock->doubts[at];

		if (noted->until.until <= doubt.from.from)
			continue;
		noted->maybe |= noted->until.from <= doubt.from.until;
		noted->until = not_behind(noted->until, now_ms);
		noted->from = not_behind(noted->from, now_ms);
	}
	if (clock->doubt_count < MODEL_DOUBTS)
		clock->doubts[clock->doubt_count++] = doubt;
	for (uint32_t at = 0; at < clock->count; at++) {
		clock->slots[at].first = not_behind(clock->slots[at].first, now_ms);
		clock->slots[at].last = not_behind(clock->slots[at].last, now_ms);
	}
	clock->highest = now_ms;
}

/* Whether `ms` is in doubt for certain, or may be: then *maybe. */
static bool is_in_doubt(const struct model_doubt *doubt, uint64_t ms, bool *maybe)
{
	if (ms > doubt->from.from && ms < doubt->until.until)
		*maybe = true;
	return !doubt->maybe && ms > doubt->from.until && ms < doubt->until.from;
}

/*
 * What was noted is on record span by span, until there are too many: the last one takes the others
 * in then, with what lies between.
 */
static bool may_be_joined(const struct model_clock *clock, uint64_t ms)
{
	uint64_t from = UINT64_MAX, until = 0;

	for (uint32_t at = CLOCK_SPANS_MAX - 1; at < clock->doubt_count; at++) {
		from = min_u64(from, clock->doubts[at].from.from);
		until = max_u64(until, clock->doubts[at].until.until);
	}
	return ms > from && ms < until;
}

/* ---- commits ---- */

static void add_slot(struct model_clock *clock, uint64_t number, uint64_t ms)
{
	struct model_time before = latest(clock), time = {
		.from = max_u64(ms, before.from),
		.until = max_u64(ms, before.until),
	};

	if (clock->count == MODEL_SLOTS) {
		clock->count -= MODEL_SLOTS / 4;
		memmove(clock->slots, clock->slots + MODEL_SLOTS / 4,
			clock->count * sizeof(clock->slots[0]));
		clock->forgot = true;
	}
	clock->slots[clock->count++] =
		(struct model_slot){ .number = number, .first = time, .last = time };
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
	if (last && last->number == slot_begin(sequence)) {
		last->last.from = max_u64(last->last.from, ms);
		last->last.until = max_u64(last->last.until, ms);
		return;
	}
	note_doubt(clock, sequence, ms);
	add_slot(clock, slot_begin(sequence), ms);
}

void model_clock_open(struct model_clock *clock, uint64_t sequence)
{
	struct model_slot *last;

	while (clock->count && clock->slots[clock->count - 1].number > sequence)
		clock->count--;
	while (clock->doubt_count && clock->doubts[clock->doubt_count - 1].sequence > sequence)
		clock->doubt_count--;
	clock->sequence = sequence;
	if (!clock->count)
		return;
	/*
	 * How late in its slot the last commit was its number tells, that of what was noted for
	 * merging also; some may be gone.
	 */
	last = &clock->slots[clock->count - 1];
	last->last.from = last->first.from;
	last->last.until = max_u64(last->last.until, last->first.until + SLOT_MS);
}

/* ---- what times mean ---- */

/* The slot that was over last at `ms`. */
static enum model_meaning find_moment(const struct model_clock *clock, uint64_t ms, uint64_t *bound)
{
	uint32_t at = clock->count;

	*bound = 0;
	while (at && clock->slots[at - 1].first.until > ms)
		at--;
	if (at < clock->count && clock->slots[at].first.from <= ms)
		return MODEL_NOT_CERTAIN;
	if (at == 0)
		return clock->forgot ? MODEL_NOT_CERTAIN : MODEL_MEANS_MOMENT;
	if (clock->slots[at - 1].last.until <= ms) {
		*bound = slot_end(clock->slots[at - 1].number);
		return MODEL_MEANS_MOMENT;
	}
	/*
	 * It goes on: the one before it, if there was none in between that the model did not see.
	 */
	if (clock->slots[at - 1].last.from <= ms || at == 1 ||
	    clock->slots[at - 2].number + RECORD_SLOT != clock->slots[at - 1].number ||
	    clock->slots[at - 2].last.until > ms)
		return MODEL_NOT_CERTAIN;
	*bound = slot_end(clock->slots[at - 2].number);
	return MODEL_MEANS_MOMENT;
}

enum model_meaning model_clock_meaning(const struct model_clock *clock, uint64_t now_ms,
				       uint64_t ms, uint64_t *bound)
{
	struct model_doubt present;
	bool maybe = false;

	if (present_doubt(clock, now_ms, &present) && is_in_doubt(&present, ms, &maybe))
		return MODEL_IN_DOUBT;
	for (uint32_t at = 0; at < clock->doubt_count; at++)
		if (is_in_doubt(&clock->doubts[at], ms, &maybe))
			return MODEL_IN_DOUBT;
	if (maybe || may_be_joined(clock, ms))
		return MODEL_NOT_CERTAIN;
	return find_moment(clock, ms, bound);
}

/* ---- random times ---- */

uint64_t model_clock_some_time(const struct model_clock *clock, uint64_t now_ms, uint64_t random)
{
	uint64_t kind = random % 5, ms = now_ms, off;

	random /= 5;
	if (kind == 0 && clock->count)
		ms = clock->slots[random % clock->count].first.from;
	else if (kind == 1 && clock->count)
		ms = clock->slots[random % clock->count].last.until;
	else if (kind == 2 && clock->doubt_count)
		ms = clock->doubts[random % clock->doubt_count].from.from;
	else if (kind == 3 && clock->doubt_count)
		ms = clock->doubts[random % clock->doubt_count].until.until;
	else
		return (random >> 8) % (latest(clock).until + 10000);
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
		return max_u64(now_ms, latest(clock).until) + near;
	}
}
