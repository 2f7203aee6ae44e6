/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Goes over a hole of an object without looking at each of its zeros.
 *
 * Threads that meet the same byte again and again are soon at steps where they were before,
 * `period` bytes ago. Which thread comes from which is then the same in every period, because it
 * follows from the steps and their order alone. The beginnings repeat too, if the threads in front
 * kept theirs, and all others began later by exactly one period: each of these comes from one of
 * these, or is new.
 */
#include <string.h>

#include "common/bytes.h"
#include "osd/expression_match.h"

static uint64_t zeros_end(const struct expression_matcher *matcher)
{
	return matcher->bytes_at + matcher->length;
}

void expression_zeros_forget(struct expression_matcher *matcher)
{
	matcher->landmark.set = false;
}

static void set_landmark(struct expression_matcher *matcher, uint64_t offset)
{
	struct landmark *landmark = &matcher->landmark;

	/* Looks twice as far each time, and so finds a period of any length (Brent). */
	landmark->reach = landmark->set ? 2 * landmark->reach : 1;
	landmark->set = true;
	landmark->offset = offset;
	landmark->count = matcher->here_count;
	memcpy(landmark->threads, matcher->here, matcher->here_count * sizeof(matcher->here[0]));
	landmark->found = matcher->found;
	landmark->begin = matcher->begin;
	landmark->end = matcher->end;
}

/* Is the state that of the landmark? *kept: how many threads in front have kept their beginning. */
static bool is_at_landmark(const struct expression_matcher *matcher, uint64_t period,
			   uint32_t *kept)
{
	const struct landmark *landmark = &matcher->landmark;
	const struct thread *before = landmark->threads, *now = matcher->here;
	uint32_t count = matcher->here_count, i = 0;

	if (count != landmark->count || matcher->found != landmark->found ||
	    (matcher->found && matcher->begin != landmark->begin))
		return false;
	while (i < count && now[i].step == before[i].step && now[i].begin == before[i].begin)
		i++;
	*kept = i;
	/* Threads with one beginning stay together, and no thread begins behind a match. */
	if (i < count && (matcher->found || (i > 0 && before[i].begin == before[i - 1].begin)))
		return false;
	while (i < count && now[i].step == before[i].step &&
	       now[i].begin == before[i].begin + period)
		i++;
	return i == count;
}

static void leave_out(struct expression_matcher *matcher, struct place *place, uint64_t bytes,
		      uint32_t kept)
{
	for (uint32_t i = kept; i < matcher->here_count; i++)
		matcher->here[i].begin += bytes;
	/* A match that got longer in a period gets longer in each. */
	if (matcher->found && matcher->end != matcher->landmark.end)
		matcher->end += bytes;
	place->offset += bytes;
	expression_zeros_forget(matcher);
}

bool expression_zeros_cross(struct expression_matcher *matcher, struct place *place)
{
	const struct landmark *landmark = &matcher->landmark;
	uint64_t limit = 2 * matcher->expression->span, period, periods;
	uint32_t kept;

	/* Every place is the same only if the byte before is a zero as well. */
	if (matcher->bytes || matcher->length == 0 || place->offset <= matcher->bytes_at ||
	    place->offset >= zeros_end(matcher))
		return false;
	period = landmark->set ? place->offset - landmark->offset : 0;
	if (period == 0 || !is_at_landmark(matcher, period, &kept)) {
		if (!landmark->set || period >= landmark->reach)
			set_landmark(matcher, place->offset);
		return false;
	}
	periods = (zeros_end(matcher) - place->offset) / period;
	if (kept > 0)
		periods = min_u64(periods,
				  (limit - 1 - (place->offset - matcher->here[0].begin)) / period);
	if (periods == 0)
		return false;
	leave_out(matcher, place, periods * period, kept);
	return true;
}

uint64_t expression_zeros_resume(const struct expression_matcher *matcher, uint64_t from,
				 uint64_t end, uint64_t next)
{
	uint64_t reach = end - from, stride = next - from;

	if (matcher->bytes || from <= matcher->bytes_at || end > zeros_end(matcher) ||
	    zeros_end(matcher) - next < reach)
		return next;
	return next + (zeros_end(matcher) - reach - next) / stride * stride;
}
