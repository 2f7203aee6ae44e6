/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Which pages of a segment have records that are older than it: gathered when it is sealed. */
#include "engine/muninn/older.h"

#include <malloc.h>
#include <stdlib.h>

#include "engine/muninn/index/index.h"

enum { LEVELS = UINT16_MAX + 1 };

void older_forget(struct older_pages *older)
{
	free(older->ranges);
	*older = (struct older_pages){ 0 };
}

uint64_t older_memory(const struct older_pages *older)
{
	return malloc_usable_size(older->ranges);
}

void older_begin(struct older_pages *older, uint64_t below)
{
	older_forget(older);
	older->below = below;
	/* Without memory look-ups read more pages. */
	if (below)
		older->ranges = calloc(1, sizeof(*older->ranges) +
						  OLDER_BITS * sizeof(older->ranges->of[0]));
}

void older_expect(struct older_pages *older, const struct sealed_segment *facts)
{
	const struct older_levels none = { .lowest = LEVELS - 1 };
	struct older_ranges *ranges = older->ranges;
	uint64_t first = facts->first_sequence;

	if (!ranges || facts->is_ordered || first >= older->below)
		return;
	ranges->first = first;
	ranges->unit = (older->below - first + LEVELS - 1) / LEVELS;
	for (uint32_t bit = 0; bit < OLDER_BITS; bit++)
		ranges->of[bit] = none;
}

/* ---- noting ---- */

static uint16_t level_of(const struct older_ranges *ranges, uint64_t number)
{
	uint64_t level = (number - ranges->first) / ranges->unit;

	assert(number >= ranges->first && level < LEVELS);
	return (uint16_t)level;
}

/* Widens the ranges, or makes one of both and begins another, so that the widest gap stays. */
static void add(struct older_levels *levels, uint16_t level)
{
	int gap = levels->begin - levels->end;

	if (levels->lowest > levels->highest) {
		*levels = (struct older_levels){ level, level, level, level };
	} else if (level < levels->lowest && levels->lowest - level > gap) {
		levels->begin = levels->lowest;
		levels->lowest = levels->end = level;
	} else if (level < levels->lowest) {
		levels->lowest = level;
	} else if (level > levels->highest && level - levels->highest > gap) {
		levels->end = levels->highest;
		levels->begin = levels->highest = level;
	} else if (level > levels->highest) {
		levels->highest = level;
	} else if (level > levels->end && level < levels->begin) {
		if (level - levels->end < levels->begin - level)
			levels->end = level;
		else
			levels->begin = level;
	}
}

void older_note(struct older_pages *older, uint32_t segment_pages, uint32_t page,
		const struct page_view *view)
{
	uint32_t bit = older_bit(segment_pages, page), offset = 0;
	struct page_record record;

	while (page_next(view, &offset, &record)) {
		uint64_t number = record_sequence(record.header);

		if (number >= older->below)
			continue;
		older->map[bit / 64] |= UINT64_C(1) << bit % 64;
		if (older->ranges && older->ranges->unit)
			add(&older->ranges->of[bit], level_of(older->ranges, number));
	}
}

void older_end(struct older_pages *older)
{
	struct older_ranges *ranges = older->ranges;
	uint32_t kept = 0;

	if (!ranges)
		return;
	for (uint32_t bit = 0; bit < OLDER_BITS; bit++)
		if (older_has(older, bit))
			ranges->of[kept++] = ranges->of[bit];
	if (ranges->unit) {
		ranges = realloc(ranges, sizeof(*ranges) + kept * sizeof(ranges->of[0]));
		older->ranges = ranges ? ranges : older->ranges;
	} else {
		free(ranges);
		older->ranges = NULL;
	}
}

/* ---- asking ---- */

static struct older_levels levels_of(const struct older_pages *older, uint32_t bit)
{
	uint64_t before = older->map[bit / 64] & ((UINT64_C(1) << bit % 64) - 1);
	uint32_t n = (uint32_t)__builtin_popcountll(before);

	for (uint32_t word = 0; word < bit / 64; word++)
		n += (uint32_t)__builtin_popcountll(older->map[word]);
	return older->ranges->of[n];
}

struct older_range older_range(const struct older_pages *older, uint32_t segment_pages,
			       uint32_t page, uint64_t bound)
{
	const struct older_ranges *ranges = older->ranges;
	struct older_levels levels = levels_of(older, older_bit(segment_pages, page));
	uint64_t begin = ranges->first + levels.begin * ranges->unit;
	bool is_behind = bound >= begin;
	uint16_t highest = is_behind ? levels.highest : levels.end;

	return (struct older_range){
		.lowest = is_behind ? begin : ranges->first + levels.lowest * ranges->unit,
		.highest = ranges->first + (highest + UINT64_C(1)) * ranges->unit - 1,
	};
}
