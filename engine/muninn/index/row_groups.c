/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The groups of a row and the segments in them, whatever the index. */
#include <assert.h>
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

/* ---- one group in the place of others ---- */

/* It and a root have to be written: as many segments as a group has must have gone. */
enum { JOIN_GONE_MIN = 24 };

/*
 * Adds complete group `n`, and to *sum what is left of it. False: it does not go with those that
 * are there. Segments differ in their entries, so an eighth is left free.
 */
static bool add_to_join(const struct row_index *row, struct index_join *join, uint32_t from,
			uint32_t n, struct index_group *sum)
{
	struct index_group group = group_at(row, n);
	struct index_group most = row->type->most(row, group_at(row, from).number);
	uint32_t live = (uint32_t)__builtin_popcountll(group.live);
	uint32_t entries = (uint32_t)divide_up((uint64_t)group.entries * live, group.members);

	if (join->count == INDEX_JOIN_MAX || !live || !row->type->may_join(row, n, from) ||
	    sum->members + live > most.members ||
	    sum->entries + entries > most.entries - most.entries / 8)
		return false;
	join->numbers[join->count] = group.number;
	join->live[join->count++] = group.live;
	sum->members += live;
	sum->entries += entries;
	return true;
}

/* The most of what begins with complete group `from`: returns how many segments have gone. */
static uint32_t join_from(const struct row_index *row, uint32_t from, struct index_join *best)
{
	struct index_group left = { 0 };
	struct index_join join = { 0 };
	uint32_t all = 0, most = 0;

	for (uint32_t n = from; n < row->type->groups(row); n++) {
		uint32_t gone;

		if (!add_to_join(row, &join, from, n, &left))
			break;
		all += group_at(row, n).members;
		gone = all - left.members;
		if (gone < left.members || gone < JOIN_GONE_MIN || gone < most)
			continue;
		most = gone;
		*best = join;
	}
	return most;
}

bool row_index_find_join(const struct row_index *row, struct index_join *join)
{
	uint32_t most = 0, groups = row->type->most ? row->type->groups(row) : 0;

	*join = (struct index_join){ 0 };
	/* The row's last segment stays known, whether or not it is still there. */
	if (!growing(row).members)
		groups = 0;
	for (uint32_t n = 0; n < groups; n++) {
		struct index_join found;
		uint32_t gone = join_from(row, n, &found);

		if (gone <= most)
			continue;
		most = gone;
		*join = found;
	}
	return join->count > 0;
}

int row_index_join(const struct row_index *row, const struct index_join *join,
		   const struct index_image *parts, struct index_image *image)
{
	return row->type->join(row, join, parts, image);
}

uint64_t row_index_join_live(const struct row_index *row, const struct index_join *join)
{
	uint64_t live = 0;
	uint32_t member = 0;

	for (uint32_t n = 0; n < join->count; n++) {
		uint64_t still = row_index_has(row, join->numbers[n])
					 ? group_at(row, groups_below(row, join->numbers[n])).live
					 : 0;

		for (uint64_t left = join->live[n]; left; left &= left - 1)
			live |= (still >> __builtin_ctzll(left) & 1) << member++;
	}
	return live;
}

uint8_t *row_index_group_live_word(const struct row_index *row, uint32_t group)
{
	assert(row_index_has(row, group));
	return group_at(row, groups_below(row, group)).live_word;
}

/* The number behind the last one of a group. */
static uint32_t numbers_end(const struct index_group *group)
{
	return group->number + (group->joins ? group->joins : 1);
}

/* More numbers, or fewer segments left of these. */
static enum index_double compare(const struct index_group *image, const struct index_group *there)
{
	if (image->joins != there->joins)
		return image->joins > there->joins ? DOUBLE_NEWER : DOUBLE_OUTDATED;
	if (image->members != there->members)
		return image->members < there->members ? DOUBLE_NEWER : DOUBLE_OUTDATED;
	return image->number == there->number ? DOUBLE_COPY : DOUBLE_OUTDATED;
}

enum index_double row_index_find_double(const struct row_index *row,
					const struct index_image *image, uint32_t *other)
{
	struct index_group of_image;

	*other = image->group;
	if (!row->type->read_image)
		return row_index_has(row, image->group) ? DOUBLE_COPY : DOUBLE_NONE;
	if (!row->type->read_image(image, &of_image))
		return DOUBLE_NONE;
	for (uint32_t n = 0; n < row->type->groups(row); n++) {
		struct index_group there = group_at(row, n);

		if (there.number >= numbers_end(&of_image) ||
		    of_image.number >= numbers_end(&there))
			continue;
		*other = there.number;
		return compare(&of_image, &there);
	}
	return DOUBLE_NONE;
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
