/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Sizes of the ribbon index of a device. */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_RIBBON_SHAPE_H
#define MUNINN_ENGINE_MUNINN_INDEX_RIBBON_SHAPE_H

#include "engine/muninn/index/ribbon/group.h"
#include "engine/muninn/index/ribbon/placement.h"

enum {
	/*
	 * Segments of a group, at most. More of them wait longer in the exact tables, fewer are
	 * more groups to ask. Three in four of the numbers that a ribbon has space for: the others
	 * are false hits that give themselves away.
	 */
	RIBBON_MEMBERS = 24,
	RIBBON_SPARSE = 8, /* a group that is full has more segments, however small their records */
	RIBBON_FINGERPRINT_BITS = 7, /* one more in every second group */
	/*
	 * Segments of a section of a growing group (section.h). It is in memory alone, and there
	 * are few: a longer fingerprint costs next to nothing.
	 */
	RIBBON_SECTION_MEMBERS = 4,
	RIBBON_SECTIONS = RIBBON_MEMBERS / RIBBON_SECTION_MEMBERS,
	RIBBON_SECTION_FINGERPRINT_BITS = 12,
};

struct ribbon_shape {
	uint32_t segment_pages;
	uint32_t locations;        /* of a segment: candidates, and pages behind them */
	uint32_t entries_expected; /* of a segment */
	uint32_t segment_entries;  /* most of a segment: then it is sealed */
	uint32_t group_entries;    /* most of a group */
	uint32_t bucket_bits;      /* of the exact tables */
};

/*
 * `record_bytes`: the expected mean of a record. A segment may have four times as many entries as
 * it would have of such records, but not more than it can have at all.
 */
static inline struct ribbon_shape ribbon_shape_choose(uint32_t page_bytes, uint32_t segment_pages,
						      uint32_t record_bytes)
{
	uint64_t expected =
		max_u64(1, (uint64_t)page_bytes / record_bytes) * (uint64_t)segment_pages;
	uint64_t most = (uint64_t)segment_pages * (page_bytes / RECORD_HEADER_BYTES + 1);
	uint32_t entries = (uint32_t)min_u64(4 * expected, most);
	uint32_t group = (uint32_t)max_u64(RIBBON_MEMBERS * expected + entries,
					   (RIBBON_SPARSE + 1) * (uint64_t)entries);

	return (struct ribbon_shape){
		.segment_pages = segment_pages,
		.locations = PLACEMENT_CANDIDATES + segment_pages,
		.entries_expected = (uint32_t)min_u64(expected, entries),
		.segment_entries = entries,
		.group_entries = group,
		/* Some twelve entries a bucket, when half a group waits. */
		.bucket_bits = (uint32_t)max_u64(4, min_u64(14, bits_for(group / 64))),
	};
}

/*
 * How many segments a group of a row has. The first one, or the first two, have fewer in most rows,
 * so that groups of different rows are full at different times.
 */
static inline uint32_t ribbon_members(uint32_t row, uint32_t number)
{
	uint32_t ahead = RIBBON_SPARSE + 1 + row % RIBBON_MEMBERS;

	if (number == 0)
		return ahead > RIBBON_MEMBERS ? ahead / 2 : ahead;
	return number == 1 && ahead > RIBBON_MEMBERS ? ahead - ahead / 2 : RIBBON_MEMBERS;
}

/* Of the largest image that a group can have. */
static inline uint64_t ribbon_image_bytes_max(const struct ribbon_shape *shape)
{
	return group_image_bytes_max(RIBBON_MEMBERS, shape->group_entries,
				     RIBBON_FINGERPRINT_BITS + 1 + bits_for(shape->segment_pages) +
					     bits_for(RIBBON_MEMBERS));
}

/*
 * A location is a candidate of the key, or PLACEMENT_CANDIDATES + a page. Of a key without a
 * candidate the pages are in the order of its records. Other keys have one entry in a segment. A
 * growing group keeps a word: bits 11-0 page, bits 13-12 candidate + 1 (0: none).
 */
enum { LOCATION_PAGE_BITS = 12 };

static inline uint32_t location_word(uint32_t page, uint32_t candidate)
{
	return page | (candidate < PLACEMENT_CANDIDATES ? candidate + 1 : 0) << LOCATION_PAGE_BITS;
}

static inline uint32_t location_of_page(uint32_t page)
{
	return PLACEMENT_CANDIDATES + page;
}

static inline uint32_t word_page(uint32_t word)
{
	return word & ((1U << LOCATION_PAGE_BITS) - 1);
}

static inline uint32_t word_location(uint32_t word)
{
	uint32_t candidate = word >> LOCATION_PAGE_BITS;

	return candidate ? candidate - 1 : location_of_page(word_page(word));
}

/* The ribbon of a group has numbers of candidates, or of pages. What the first one stands for. */
static inline uint32_t ribbon_location_base(const struct group *group)
{
	return group->locations == PLACEMENT_CANDIDATES ? 0 : PLACEMENT_CANDIDATES;
}

static_assert(MUNINN_SEGMENT_PAGES_MAX <= 1 << LOCATION_PAGE_BITS, "a page has a place in a word");

static inline uint32_t ribbon_fingerprint_bits(uint32_t number)
{
	return RIBBON_FINGERPRINT_BITS + (number % 2 == 0);
}

#endif
