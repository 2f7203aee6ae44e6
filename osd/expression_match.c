/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Finds leftmost-longest matches: all threads go through the text at once, byte by byte (after
 * Pike's way of running Thompson's machines). A thread is a step and where in the text it began.
 * Threads are in the order of their beginnings, and of two at the same step only the earlier one
 * stays, so there are never more than steps.
 */
#include <errno.h>
#include <stdlib.h>

#include "osd/expression_match.h"

struct expression_matcher *expression_matcher_create(const struct expression *expression)
{
	struct expression_matcher *matcher = calloc(1, sizeof(*matcher));

	if (matcher)
		matcher->expression = expression;
	return matcher;
}

void expression_matcher_free(struct expression_matcher *matcher)
{
	free(matcher);
}

/* ---- the text ---- */

/* The byte at an offset. -1: the text ends there. Below: negative errno - 1. */
static int byte_at(struct expression_matcher *matcher, uint64_t offset)
{
	if (offset - matcher->bytes_at >= matcher->length) {
		int result =
			matcher->read(matcher->context, offset, &matcher->bytes, &matcher->length);

		matcher->bytes_at = offset;
		expression_zeros_forget(matcher);
		if (result < 0) {
			matcher->length = 0;
			return result - 1;
		}
		if (matcher->length == 0)
			return -1;
	}
	return matcher->bytes ? matcher->bytes[offset - matcher->bytes_at] : 0;
}

/* ---- threads ---- */

static void note_match(struct expression_matcher *matcher, uint64_t begin, uint64_t end)
{
	if (begin == end || (matcher->found && begin > matcher->begin))
		return;
	matcher->found = true;
	matcher->begin = begin;
	matcher->end = end;
}

static void visit(struct expression_matcher *matcher, uint32_t step, uint32_t *count)
{
	if (matcher->seen[step] == matcher->turn)
		return;
	matcher->seen[step] = matcher->turn;
	matcher->waiting[(*count)++] = step;
}

/*
 * Follows a thread through all steps that consume nothing, up to those that consume the next byte.
 * Returns the work.
 */
static uint32_t follow(struct expression_matcher *matcher, struct thread thread,
		       const struct place *place)
{
	const struct expression *expression = matcher->expression;
	uint32_t count = 0, work = 0;

	visit(matcher, thread.step, &count);
	while (count > 0) {
		uint32_t at = matcher->waiting[--count];
		const struct expression_step *step = &expression->steps[at];

		work++;
		switch (step->operation) {
		case EXPRESSION_SET:
			if (place->behind >= 0 && expression_set_has(&expression->sets[step->set],
								     (uint8_t)place->behind))
				matcher->next[matcher->next_count++] =
					(struct thread){ at + 1, thread.begin };
			break;
		case EXPRESSION_SPLIT:
			visit(matcher, (uint32_t)((int32_t)at + step->jump), &count);
			visit(matcher, at + 1, &count);
			break;
		case EXPRESSION_JUMP:
			visit(matcher, (uint32_t)((int32_t)at + step->jump), &count);
			break;
		case EXPRESSION_LINE_BEGIN:
			if (place->before < 0 || place->before == '\n')
				visit(matcher, at + 1, &count);
			break;
		case EXPRESSION_LINE_END:
			if (place->behind < 0 || place->behind == '\n')
				visit(matcher, at + 1, &count);
			break;
		default:
			note_match(matcher, thread.begin, place->offset);
		}
	}
	return work;
}

/* Takes all threads over the next byte. Returns the work. */
static uint32_t advance(struct expression_matcher *matcher, const struct place *place)
{
	uint32_t work = 4;

	matcher->turn++;
	matcher->next_count = 0;
	for (uint32_t i = 0; i < matcher->here_count; i++) {
		/* These threads can't win against the match. */
		if (matcher->found && matcher->here[i].begin > matcher->begin)
			break;
		work += follow(matcher, matcher->here[i], place);
	}
	if (!matcher->found && place->behind >= 0 &&
	    expression_set_has(&matcher->expression->first, (uint8_t)place->behind))
		work += follow(matcher, (struct thread){ 0, place->offset }, place);
	for (uint32_t i = 0; i < matcher->next_count; i++)
		matcher->here[i] = matcher->next[i];
	matcher->here_count = matcher->next_count;
	return work;
}

/*
 * Skips bytes that no match begins with. Only when there are no threads. Returns the byte where it
 * ends.
 */
static int skip(struct expression_matcher *matcher, struct place *place, uint64_t *work)
{
	int byte = byte_at(matcher, place->offset);

	while (byte >= 0 && *work < EXPRESSION_WORK_MAX &&
	       !expression_set_has(&matcher->expression->first, (uint8_t)byte)) {
		place->before = byte;
		place->offset = matcher->bytes ? place->offset + 1
					       : matcher->bytes_at + matcher->length;
		*work += 4;
		byte = byte_at(matcher, place->offset);
	}
	return byte;
}

/* ---- finding ---- */

/* The earliest beginning that is still open: nothing that begins before it can match. */
static uint64_t open_begin(const struct expression_matcher *matcher, uint64_t offset)
{
	uint64_t begin = matcher->here_count > 0 ? matcher->here[0].begin : offset;

	return matcher->found && matcher->begin < begin ? matcher->begin : begin;
}

/* Moves the search to another place, without threads. */
static int restart(struct expression_matcher *matcher, uint64_t from, struct place *place)
{
	*place = (struct place){ .offset = from, .before = -1 };
	matcher->here_count = 0;
	matcher->found = false;
	expression_zeros_forget(matcher);
	if (from > 0)
		place->before = byte_at(matcher, from - 1);
	return place->before < -1 ? place->before + 1 : 0;
}

int expression_find(struct expression_matcher *matcher, uint64_t from, expression_read *read,
		    void *context, uint64_t *work, uint64_t *begin, uint64_t *end)
{
	uint64_t span = matcher->expression->span, start = from;
	struct place place;
	int result;

	matcher->read = read;
	matcher->context = context;
	matcher->length = 0;
	result = restart(matcher, from, &place);
	while (result == 0) {
		if (matcher->here_count == 0 && matcher->found)
			break;
		place.behind = matcher->here_count == 0 ? skip(matcher, &place, work)
							: byte_at(matcher, place.offset);
		if (place.behind < -1)
			return place.behind + 1;
		if (*work >= EXPRESSION_WORK_MAX && open_begin(matcher, place.offset) > start) {
			*begin = open_begin(matcher, place.offset);
			return EXPRESSION_PAUSED;
		}
		if (expression_zeros_cross(matcher, &place))
			continue;
		*work += advance(matcher, &place);
		if (place.behind < 0 && !matcher->found)
			return EXPRESSION_NONE;
		place.before = place.behind;
		place.offset += place.behind >= 0;
		if (matcher->here_count == 0 || place.offset - matcher->here[0].begin < 2 * span)
			continue;
		/* The match gets too long: takes what it has found, or goes on further behind. */
		if (matcher->found)
			break;
		from = expression_zeros_resume(matcher, from, place.offset,
					       matcher->here[0].begin + span);
		result = restart(matcher, from, &place);
	}
	if (result != 0)
		return result;
	*begin = matcher->begin;
	*end = matcher->end;
	return EXPRESSION_FOUND;
}
