/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The groups of a row and the segments in them, whatever the index. */
#include <stdlib.h>

#include "engine/muninn/index/index_type.h"
#include "engine/muninn/nvram.h"

static struct index_group group_at(const struct row_index *row, uint32_t n)
{
	struct index_group group;

	row->type->read_group(row, n, &group);
	return group;
}

static struct index_group growing(const struct row_index *row)
{
	return group_at(row, row->type->groups(row));
}

/* How many complete groups have lower numbers. */
static uint32_t groups_below(const struct row_index *row, uint32_t number)
{
	uint32_t low = 0, high = row->type->groups(row);

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (group_at(row, middle).number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- the growing group ---- */

uint32_t row_index_growing(const struct row_index *row)
{
	return growing(row).number;
}

uint32_t row_index_members(const struct row_index *row)
{
	return growing(row).members;
}

uint64_t row_index_live(const struct row_index *row)
{
	return growing(row).live;
}

void row_index_read_member(const struct row_index *row, uint32_t member,
			   struct sealed_segment *segment)
{
	row->type->read_segment(row, row->type->groups(row), member, segment);
}

/* ---- complete groups ---- */

uint32_t row_index_groups(const struct row_index *row)
{
	return row->type->groups(row);
}

int row_index_replace(struct row_index *row, uint32_t first, uint32_t last,
		      const struct index_image *by)
{
	assert(first <= last && (!by || (by->group >= first && by->group <= last)));
	return row->type->replace(row, groups_below(row, first), groups_below(row, last + 1), by);
}

bool row_index_has(const struct row_index *row, uint32_t group)
{
	uint32_t n = groups_below(row, group);

	return n < row->type->groups(row) && group_at(row, n).number == group;
}

bool row_index_newest(const struct row_index *row, uint32_t *group)
{
	uint32_t count = row->type->groups(row);

	if (!count)
		return false;
	*group = group_at(row, count - 1).number;
	return true;
}

int row_index_copy_image(const struct row_index *row, uint32_t group, struct index_image *image)
{
	assert(row_index_has(row, group));
	return row->type->copy_image(row, groups_below(row, group), image);
}

bool row_index_is_in_memory(const struct row_index *row, uint32_t group)
{
	assert(row_index_has(row, group));
	return row->type->is_in_memory(row, groups_below(row, group));
}

uint8_t *row_index_empty_group(const struct row_index *row, uint32_t *group)
{
	for (uint32_t n = 0; n < row->type->groups(row); n++) {
		struct index_group complete = group_at(row, n);

		if (complete.live)
			continue;
		*group = complete.number;
		return complete.live_word;
	}
	return NULL;
}

bool row_index_find_sparse(const struct row_index *row, struct sealed_segment *segment)
{
	for (uint32_t n = 0; n < row->type->groups(row); n++) {
		uint64_t live = group_at(row, n).live;

		if (!live || (uint32_t)__builtin_popcountll(live) > row->type->sparse)
			continue;
		row->type->read_segment(row, n, (uint32_t)__builtin_ctzll(live), segment);
		return true;
	}
	return false;
}

void row_index_estimate(const struct row_index *row, uint32_t n,
			void (*note)(void *context, const struct sealed_segment *segment,
				     uint32_t live_permille),
			void *context)
{
	uint32_t live_permille[GROUP_SEGMENTS];

	if (!row->type->estimate)
		return;
	row->type->estimate(row, n, live_permille);
	for (uint64_t live = group_at(row, n).live; live; live &= live - 1) {
		uint32_t member = (uint32_t)__builtin_ctzll(live);
		struct sealed_segment segment;

		row->type->read_segment(row, n, member, &segment);
		note(context, &segment, live_permille[member]);
	}
}

/* ---- segments ---- */

bool row_index_next(const struct row_index *row, struct index_walk *walk,
		    struct sealed_segment *segment)
{
	for (; walk->at <= row->type->groups(row); walk->at++, walk->member = 0) {
		struct index_group group = group_at(row, walk->at);
		uint64_t live = walk->all ? UINT64_MAX : group.live;

		while (walk->member < group.members) {
			uint32_t member = walk->member++;

			if (!(live >> member & 1))
				continue;
			row->type->read_segment(row, walk->at, member, segment);
			return true;
		}
	}
	return false;
}

void row_index_find(const struct row_index *row, uint32_t number, struct sealed_segment *segment)
{
	struct index_walk walk = { 0 };

	while (row_index_next(row, &walk, segment))
		if (segment->segment == number)
			return;
	assert(!"a sealed segment is in a group of its row");
	abort();
}

uint8_t *row_index_live_word(const struct row_index *row, const struct sealed_segment *segment)
{
	return group_at(row, groups_below(row, segment->group)).live_word;
}

void row_index_take_out(struct row_index *row, const struct sealed_segment *segment)
{
	struct index_group group = group_at(row, groups_below(row, segment->group));

	assert(group.number == segment->group && group.live >> segment->member & 1);
	/* Of a complete group this word is in the directory, which has a sum of its own. */
	if (group.live_word)
		nvram_store64(group.live_word,
			      get_le64(group.live_word) & ~(UINT64_C(1) << segment->member));
	else
		row->type->take_out(row, segment->member);
}

uint64_t row_index_last_serial(const struct row_index *row)
{
	struct index_walk walk = { .all = true };
	struct sealed_segment segment;
	uint64_t serial = 0;

	while (row_index_next(row, &walk, &segment))
		serial = max_u64(serial, segment.serial);
	return serial;
}

uint32_t row_index_read_last(const struct row_index *row, struct sealed_segment *segments,
			     uint32_t max)
{
	uint32_t n = row->type->groups(row), count;
	struct index_group group = group_at(row, n);

	if (group.members == 0 && n)
		group = group_at(row, --n);
	count = group.members < max ? group.members : max;
	for (uint32_t i = 0; i < count; i++)
		row->type->read_segment(row, n, group.members - count + i, &segments[i]);
	return count;
}
