/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Which pages of a segment have records that are older than it: gathered when it is sealed. */
#include "engine/muninn/older.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "engine/muninn/index/index.h"

enum { LEVELS = UINT16_MAX + 1, WIDE = sizeof(struct older_levels) / sizeof(uint16_t) };

/* Until older_end: of each bit. */
static struct older_levels *levels_of_all(struct older_ranges *ranges)
{
	return (struct older_levels *)(void *)ranges->levels;
}

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
						  OLDER_BITS * sizeof(struct older_levels));
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
		levels_of_all(ranges)[bit] = none;
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
			add(&levels_of_all(older->ranges)[bit], level_of(older->ranges, number));
	}
}

/* Moves the levels of bits that are set to the beginning. Returns how many are left. */
static uint32_t pack(const struct older_pages *older, struct older_ranges *ranges)
{
	uint32_t kept = 0;

	for (uint32_t bit = 0; bit < OLDER_BITS; bit++) {
		const struct older_levels levels = levels_of_all(ranges)[bit];
		bool is_wide = levels.lowest != levels.highest;

		if (!older_bit_is_set(older->map, bit))
			continue;
		memcpy(&ranges->levels[kept], &levels, sizeof(levels));
		ranges->wide[bit / 64] |= (uint64_t)is_wide << bit % 64;
		kept += is_wide ? WIDE : 1;
	}
	return kept;
}

void older_end(struct older_pages *older)
{
	struct older_ranges *ranges = older->ranges;

	if (!ranges)
		return;
	if (ranges->unit) {
		size_t bytes = pack(older, ranges) * sizeof(ranges->levels[0]);

		ranges = realloc(ranges, sizeof(*ranges) + bytes);
		older->ranges = ranges ? ranges : older->ranges;
	} else {
		free(ranges);
		older->ranges = NULL;
	}
}

/* ---- asking ---- */

/* How many bits before one are set. */
static uint32_t set_before(const uint64_t map[OLDER_WORDS], uint32_t bit)
{
	uint64_t before = map[bit / 64] & ((UINT64_C(1) << bit % 64) - 1);
	uint32_t count = (uint32_t)__builtin_popcountll(before);

	for (uint32_t word = 0; word < bit / 64; word++)
		count += (uint32_t)__builtin_popcountll(map[word]);
	return count;
}

static struct older_levels levels_of(const struct older_pages *older, uint32_t bit)
{
	const struct older_ranges *ranges = older->ranges;
	const uint16_t *at = ranges->levels + set_before(older->map, bit) +
			     (WIDE - 1) * set_before(ranges->wide, bit);
	struct older_levels levels = { *at, *at, *at, *at };

	if (older_bit_is_set(ranges->wide, bit))
		memcpy(&levels, at, sizeof(levels));
	return levels;
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
