/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The images of a row's groups in memory. */
#include "engine/muninn/index/ribbon/row_images.h"

#include <assert.h>

enum { CACHE_LINE = 64 };

static uint64_t space_of(const struct group *group)
{
	return align_up(group->kept, CACHE_LINE);
}

/* Of the images from one on, and before another one. */
struct range {
	const uint8_t *from, *to;
};

static void move_one(struct group *group, const struct range *range, const uint8_t *to)
{
	if (group->image >= range->from && group->image < range->to)
		group_move(group, to + (group->image - range->from));
}

/* All images of a range now begin at `to`. */
static void move(struct ribbon_row *row, const struct range *range, const uint8_t *to)
{
	for (uint32_t n = 0; n < row->count; n++)
		move_one(&row->complete[n].group, range, to);
	for (uint32_t n = 0; n < row->section_count; n++)
		move_one(&row->sections[n].group, range, to);
}

int row_images_make_room(struct ribbon_row *row, const struct group *group)
{
	struct range all = { .from = row->images.at, .to = row->images.at + row->images_used };
	int result = mapped_resize(&row->images, row->images_used + space_of(group));

	if (!result)
		move(row, &all, row->images.at);
	return result;
}

void row_images_add(struct ribbon_row *row, const struct group *group, struct group *kept)
{
	uint8_t *at = row->images.at + row->images_used;

	assert(row->images_used + space_of(group) <= row->images.bytes);
	memcpy(at, group->image, group->kept);
	*kept = *group;
	group_move(kept, at);
	row->images_used += space_of(group);
}

void row_images_take_out(struct ribbon_row *row, struct group *group)
{
	uint8_t *at = row->images.at + (group->image - row->images.at);
	uint64_t space = space_of(group);
	struct range behind = { .from = at + space, .to = row->images.at + row->images_used };

	group->image = NULL;
	memmove(at, behind.from, (size_t)(behind.to - behind.from));
	move(row, &behind, at);
	row->images_used -= space;
}

void row_images_fit(struct ribbon_row *row)
{
	uint64_t bytes = row->images_used;

	if (row->next_has_section)
		bytes += space_of(&row->made.group);
	if (bytes < row->images.bytes)
		(void)mapped_resize(&row->images, bytes);
}
