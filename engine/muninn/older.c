/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Which pages of a segment have records that are older than it: gathered when it is sealed. */
#include "engine/muninn/older.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "engine/muninn/index/index.h"

enum { LEVELS = UINT16_MAX + 1, WIDE = sizeof(struct older_levels) / sizeof(uint16_t) };

static uint64_t unit_of(uint64_t first, uint64_t below)
{
	return (below - first + LEVELS - 1) / LEVELS;
}

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
	ranges->unit = unit_of(first, older->below);
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

/* ---- storing ---- */

static uint32_t count_bits(const uint64_t map[OLDER_WORDS])
{
	uint32_t count = 0;

	for (uint32_t word = 0; word < OLDER_WORDS; word++)
		count += (uint32_t)__builtin_popcountll(map[word]);
	return count;
}

/* How many there are of a map's bits. */
static uint32_t levels_count(const uint64_t map[OLDER_WORDS], const uint64_t wide[OLDER_WORDS])
{
	return count_bits(map) + (WIDE - 1) * count_bits(wide);
}

static uint32_t levels_stored(const struct older_pages *older)
{
	return older->ranges ? levels_count(older->map, older->ranges->wide) : 0;
}

uint32_t older_stored(const struct older_pages *older)
{
	if (!older->below || !count_bits(older->map))
		return 0;
	return RANGES_BYTES + levels_stored(older) * sizeof(uint16_t);
}

static void put_map(uint8_t *to, const uint64_t map[OLDER_WORDS])
{
	for (uint32_t word = 0; word < OLDER_WORDS; word++)
		put_le64(to + word * sizeof(uint64_t), map[word]);
}

static void get_map(const uint8_t *from, uint64_t map[OLDER_WORDS])
{
	for (uint32_t word = 0; word < OLDER_WORDS; word++)
		map[word] = get_le64(from + word * sizeof(uint64_t));
}

void older_put(const struct older_pages *older, uint32_t member, uint8_t *to)
{
	const struct older_ranges *ranges = older->ranges;
	uint32_t levels = levels_stored(older);

	memset(to, 0, RANGES_BYTES);
	to[RANGES_MEMBER_AT] = (uint8_t)member;
	put_le16(to + RANGES_LEVELS_AT, (uint16_t)levels);
	put_le48(to + RANGES_BELOW_AT, older->below);
	put_map(to + RANGES_MAP_AT, older->map);
	if (!ranges)
		return;
	put_le48(to + RANGES_FIRST_AT, ranges->first);
	put_map(to + RANGES_WIDE_AT, ranges->wide);
	for (uint32_t n = 0; n < levels; n++)
		put_le16(to + RANGES_BYTES + n * sizeof(uint16_t), ranges->levels[n]);
}

/* What says where levels are makes sense. */
static bool maps_make_sense(const uint8_t *from)
{
	uint32_t levels = get_le16(from + RANGES_LEVELS_AT);
	uint64_t map[OLDER_WORDS], wide[OLDER_WORDS];
	bool is_within = true;

	get_map(from + RANGES_MAP_AT, map);
	get_map(from + RANGES_WIDE_AT, wide);
	for (uint32_t word = 0; word < OLDER_WORDS; word++)
		is_within &= !(wide[word] & ~map[word]);
	if (!levels)
		return !count_bits(wide);
	return is_within && levels == levels_count(map, wide) &&
	       get_le48(from + RANGES_FIRST_AT) < get_le48(from + RANGES_BELOW_AT);
}

uint32_t older_stored_at(const uint8_t *from, uint64_t length)
{
	uint32_t bytes;

	if (length < RANGES_BYTES)
		return 0;
	bytes = RANGES_BYTES + get_le16(from + RANGES_LEVELS_AT) * (uint32_t)sizeof(uint16_t);
	return bytes <= length && maps_make_sense(from) ? bytes : 0;
}

static struct older_ranges *get_ranges(const uint8_t *from, uint64_t below)
{
	uint32_t levels = get_le16(from + RANGES_LEVELS_AT);
	struct older_ranges *ranges =
		levels ? malloc(sizeof(*ranges) + levels * sizeof(ranges->levels[0])) : NULL;

	if (!ranges)
		return NULL;
	ranges->first = get_le48(from + RANGES_FIRST_AT);
	ranges->unit = unit_of(ranges->first, below);
	get_map(from + RANGES_WIDE_AT, ranges->wide);
	for (uint32_t n = 0; n < levels; n++)
		ranges->levels[n] = get_le16(from + RANGES_BYTES + n * sizeof(uint16_t));
	return ranges;
}

uint32_t older_get(struct older_pages *older, const uint8_t *from)
{
	*older = (struct older_pages){ .below = get_le48(from + RANGES_BELOW_AT) };
	get_map(from + RANGES_MAP_AT, older->map);
	older->ranges = get_ranges(from, older->below);
	return from[RANGES_MEMBER_AT];
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
