/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Makes one group of several. */
#include "engine/muninn/index/ribbon/group_join.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/muninn/index/ribbon/group_format.h"

struct join {
	struct group groups[GROUP_PARTS_MAX];
	struct group_member members[RIBBON_MEMBERS];
	uint32_t member_count;
	struct tag_entry *entries;
	uint32_t entry_count;
	uint32_t *run_tags;
	uint32_t run_pages;
};

/* ---- the parts ---- */

static bool is_whole(const struct group *group, const struct ribbon_shape *shape,
		     const struct group_part *part)
{
	return part->length == group_whole_bytes(group) && group_is_intact(group, part->length) &&
	       group->members <= RIBBON_MEMBERS && !(part->live >> group->members) &&
	       group_entries_make_sense(group, shape->locations - ribbon_location_base(group));
}

static bool follows(const struct group *group, const struct group *before)
{
	return group->row == before->row && group->number > before->number &&
	       group->locations == before->locations;
}

/* Takes up all images. Returns how many entries they have; 0: not all are what they should be. */
static uint64_t attach(struct join *join, const struct ribbon_shape *shape,
		       const struct group_part *parts, uint32_t count)
{
	uint32_t members = 0;
	uint64_t entries = 0;

	for (uint32_t n = 0; n < count; n++) {
		struct group *group = &join->groups[n];

		if (!group_attach(group, parts[n].image, parts[n].length) ||
		    !is_whole(group, shape, &parts[n]) || (n && !follows(group, group - 1)))
			return 0;
		entries += group->entries;
		members += (uint32_t)__builtin_popcountll(parts[n].live);
	}
	return members >= 1 && members <= RIBBON_MEMBERS ? entries : 0;
}

/* The members of a part that go on. Their new numbers, in `renumbered`. */
static void add_members(struct join *join, const struct group *group, uint64_t live,
			uint32_t renumbered[GROUP_SEGMENTS])
{
	for (uint32_t n = 0; n < group->members; n++) {
		struct group_member *member = &join->members[join->member_count];
		const uint8_t *tags = group_run_tags(group, n);

		if (!(live >> n & 1))
			continue;
		group_read_member(group, n, member);
		renumbered[n] = join->member_count++;
		for (uint32_t page = 0; page < group_member_runs(member); page++)
			join->run_tags[join->run_pages++] =
				get_le32(tags + (uint64_t)page * RUN_TAG_BYTES);
	}
}

static int add_part(struct join *join, const struct group *group, const struct group_part *part)
{
	uint64_t live = part->live;
	struct tag_entry *entries = join->entries + join->entry_count;
	uint32_t renumbered[GROUP_SEGMENTS];
	int result = group_list(group, part->length, entries);
	uint32_t kept = 0;

	if (result)
		return result;
	add_members(join, group, live, renumbered);
	for (uint32_t n = 0; n < group->entries; n++) {
		if (!(live >> entries[n].segment & 1))
			continue;
		entries[kept] = entries[n];
		entries[kept++].segment = renumbered[entries[n].segment];
	}
	join->entry_count += kept;
	return 0;
}

/* Pages of runs of all members of the parts. */
static uint32_t count_run_pages(const struct join *join, uint32_t count)
{
	uint32_t pages = 0;

	for (uint32_t n = 0; n < count; n++)
		for (uint32_t member = 0; member < join->groups[n].members; member++) {
			struct group_member facts;

			group_read_member(&join->groups[n], member, &facts);
			pages += group_member_runs(&facts);
		}
	return pages;
}

/* ---- the whole ---- */

/* Those that a ribbon can't have are moved to the end. Returns how many the others are. */
static uint32_t part_entries(struct join *join)
{
	uint32_t locations = join->groups[0].locations, placed = 0;

	for (uint32_t n = 0; n < join->entry_count; n++) {
		struct tag_entry entry = join->entries[n];

		if (entry.location >= locations)
			continue;
		join->entries[n] = join->entries[placed];
		join->entries[placed++] = entry;
	}
	return placed;
}

static int build(struct join *join, const struct ribbon_shape *shape, const struct group *last,
		 uint8_t **image, uint64_t *length)
{
	const struct group *first = &join->groups[0];
	uint32_t placed = part_entries(join);
	struct group_plan plan = {
		.row = first->row,
		.number = first->number,
		.joins = last->number + (last->joins ? last->joins : 1) - first->number,
		.fingerprint_bits = ribbon_fingerprint_bits(first->number),
		.locations = first->locations,
		.members = join->members,
		.member_count = join->member_count,
		.entries = join->entries,
		.entry_count = placed,
		.apart = join->entries + placed,
		.apart_count = join->entry_count - placed,
		.run_tags = join->run_tags,
		.tagged_max = ribbon_image_bytes_max(shape),
	};
	struct group_builder *builder = group_builder_create(placed);
	int result = builder ? group_build(builder, &plan, image, length) : -ENOMEM;

	group_builder_destroy(builder);
	return result;
}

static int join_parts(struct join *join, const struct ribbon_shape *shape,
		      const struct group_part *parts, uint32_t count, uint8_t **image,
		      uint64_t *length)
{
	int result = 0;

	for (uint32_t n = 0; !result && n < count; n++)
		result = add_part(join, &join->groups[n], &parts[n]);
	if (result)
		return result;
	/* So that it can be made again from its segments, which end when one more may not fit. */
	if (join->entry_count + join->run_pages > shape->group_entries - shape->segment_entries)
		return -EFBIG;
	return build(join, shape, &join->groups[count - 1], image, length);
}

int group_join(const struct ribbon_shape *shape, const struct group_part *parts, uint32_t count,
	       uint8_t **image, uint64_t *length)
{
	struct join *join = calloc(1, sizeof(*join));
	uint64_t entries = join ? attach(join, shape, parts, count) : 0;
	int result = join ? -EINVAL : -ENOMEM;

	if (entries) {
		join->entries = malloc(entries * sizeof(*join->entries));
		join->run_tags = malloc((count_run_pages(join, count) + UINT64_C(1)) *
					sizeof(*join->run_tags));
		result = join->entries && join->run_tags
				 ? join_parts(join, shape, parts, count, image, length)
				 : -ENOMEM;
		free(join->entries);
		free(join->run_tags);
	}
	free(join);
	return result;
}
