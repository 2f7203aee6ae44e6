/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Finds the page of an old version. Where merging moved nothing, by interpolation. A key that is
 * put evenly has its versions evenly over its pages: then the numbers on either side tell where
 * between them the bound is. One that is put in bursts has them close together: then those in one
 * page tell how far it is to the bound. So a thousand versions take two or three reads, where
 * halving takes eight. If that does not soon end, the versions are neither, and every other try
 * halves. Among records that merging moved numbers jump, so there it halves.
 */
#include "engine/muninn/index/narrow.h"

#include <string.h>

#include "common/bytes.h"

enum {
	GUESSES = 4, /* before every other try halves */
	UNEVEN = 4,  /* so many times as close together as in the whole segment, or a part of it */
};

/* What is looked for is in the places from `low` on that are below `high`. */
struct range {
	uint32_t low, high;
	uint64_t low_sequence, high_sequence; /* of what is before and behind these places ... */
	bool knows_low, knows_high; /* ... and whether that is the key's or the segment's */
	/* The key has so many numbers in so many pages; no pages: that is not known yet. */
	uint64_t step_sequences, step_pages;
	bool has_read;
	uint32_t last; /* place that was read last, and the lowest number there */
	uint64_t last_sequence;
};

static bool is_uneven(const struct range *range)
{
	double all =
		(double)(range->high_sequence - range->low_sequence) * (double)range->step_pages;
	double even = (double)range->step_sequences * (range->high - range->low);

	return range->step_pages > 0 && (all > UNEVEN * even || even > UNEVEN * all);
}

static uint32_t interpolate(const struct range *range, uint64_t bound)
{
	uint64_t width = range->high_sequence - range->low_sequence;

	return range->low +
	       (uint32_t)((bound - range->low_sequence) * (range->high - range->low) / width);
}

/* From the end that is known. */
static uint32_t extrapolate(const struct range *range, uint64_t bound)
{
	uint64_t sequences = range->knows_low ? bound - range->low_sequence
					      : range->high_sequence - bound;
	uint64_t pages = sequences * range->step_pages / range->step_sequences;

	pages = min_u64(pages, range->high - range->low - UINT64_C(1));
	return range->knows_low ? range->low + (uint32_t)pages : range->high - 1 - (uint32_t)pages;
}

static uint32_t guess(const struct range *range, uint64_t bound)
{
	if (bound <= range->low_sequence)
		return range->low;
	if (range->knows_low != range->knows_high && is_uneven(range))
		return extrapolate(range, bound);
	return interpolate(range, bound);
}

/* The place to probe next, behind so many tries. */
static uint32_t choose(const struct range *range, uint64_t bound, enum narrow_way way,
		       uint32_t tries)
{
	if (way == NARROW_MOVED && tries == 0)
		return range->high - 1;
	if (way != NARROW_GUESS || (tries >= GUESSES && tries % 2 == 0))
		return range->low + (range->high - range->low) / 2;
	return guess(range, bound);
}

/* By the two pages that were read last, or by what is in the only one. */
static void learn_step(struct range *range, uint32_t n, const struct page_numbers *numbers)
{
	bool rises = n > range->last;

	if (range->has_read && numbers->lowest != range->last_sequence) {
		range->step_sequences = rises ? numbers->lowest - range->last_sequence
					      : range->last_sequence - numbers->lowest;
		range->step_pages = rises ? n - range->last : range->last - n;
	} else if (numbers->highest != numbers->lowest) {
		range->step_sequences = (numbers->highest - numbers->lowest) * numbers->records;
		range->step_pages = numbers->records - 1;
	}
	range->has_read = true;
	range->last = n;
	range->last_sequence = numbers->lowest;
}

static void turn(uint16_t *numbers, uint32_t count)
{
	for (uint32_t n = 0; n < count / 2; n++) {
		uint16_t number = numbers[n];

		numbers[n] = numbers[count - 1 - n];
		numbers[count - 1 - n] = number;
	}
}

/* The n-th place does not have the key. */
static void drop(struct narrow *narrow, struct range *range, uint32_t n)
{
	uint32_t behind = --narrow->count - n;

	memmove(&narrow->places[n], &narrow->places[n + 1], behind * sizeof(narrow->places[0]));
	memmove(&narrow->pages[n], &narrow->pages[n + 1], behind * sizeof(narrow->pages[0]));
	range->high--;
	range->last -= range->last > n;
}

/* What a probe of the n-th place says. */
static void learn(struct range *range, uint32_t n, uint64_t bound,
		  const struct page_numbers *numbers)
{
	learn_step(range, n, numbers);
	if (numbers->lowest > bound) {
		range->high = n;
		range->high_sequence = numbers->lowest;
		range->knows_high = true;
		return;
	}
	range->low = n + 1;
	range->low_sequence = numbers->highest;
	range->knows_low = true;
	/* An equal one may go on in the next page: of a command's puts the last one counts. */
	if (numbers->highest > bound)
		range->high = range->low;
}

int narrow_find(struct narrow *narrow, uint64_t bound, enum narrow_way way, index_probe *probe,
		void *context)
{
	struct range range = { .high = narrow->count,
			       .low_sequence = narrow->first_sequence,
			       .high_sequence = narrow->last_sequence };

	turn(narrow->places, narrow->count);
	turn(narrow->pages, narrow->count);
	for (uint32_t tries = 0; range.low < range.high; tries++) {
		struct page_numbers numbers;
		uint32_t n = choose(&range, bound, way, tries);
		int result = probe(context, narrow->pages[n], &numbers);

		if (result < 0)
			return result;
		if (result)
			learn(&range, n, bound, &numbers);
		else
			drop(narrow, &range, n);
	}
	narrow->count = range.low;
	return 0;
}
