/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Makes images of members of a growing group: of all of them, or of a section. */
#include <errno.h>
#include <stdlib.h>

#include "engine/muninn/index/ribbon/growing.h"
#include "engine/muninn/index/ribbon/growing_format.h"

/* Of a part of a group's entries that have no candidate: most that its ribbon may leave out. */
enum { APART_MAX = 4 };

/* Those of members from `from` on. */
struct source {
	const struct growing *growing;
	uint32_t from, to;
	struct tag_entry *entries;
};

static uint32_t list(const struct source *source, enum growing_locations locations)
{
	return growing_list(source->growing, source->from, source->to, 0, locations,
			    source->entries);
}

/*
 * A ribbon of candidates takes six bits less for each entry than one of pages, but can't have those
 * without a candidate, which are moved to the end. If these are too many, all have pages.
 */
static void plan_entries(const struct source *source, struct group_plan *plan)
{
	struct tag_entry *entries = source->entries;
	uint32_t count = list(source, GROWING_LOCATIONS), placed = 0;

	for (uint32_t n = 0; n < count; n++) {
		struct tag_entry entry = entries[n];

		if (entry.location >= PLACEMENT_CANDIDATES)
			continue;
		entries[n] = entries[placed];
		entries[placed++] = entry;
	}
	plan->entries = entries;
	plan->locations = PLACEMENT_CANDIDATES;
	plan->entry_count = placed;
	plan->apart = entries + placed;
	plan->apart_count = count - placed;
	if (plan->apart_count <= count / APART_MAX)
		return;
	plan->locations = source->growing->shape->segment_pages;
	plan->entry_count = list(source, GROWING_PAGES);
	plan->apart_count = 0;
}

/* The members, and the tags of their runs; `tags` has space for as many as there are entries. */
static void plan_members(const struct source *source, bool with_tags, struct group_member *members,
			 uint32_t *tags)
{
	for (uint32_t n = 0; n < source->to - source->from; n++) {
		struct group_member *member = &members[n];
		const uint8_t *at;

		growing_read_member(source->growing, source->from + n, member);
		member->has_runs &= with_tags;
		at = growing_run_tags(source->growing, source->from + n);
		for (uint32_t page = 0; page < group_member_runs(member); page++)
			*tags++ = get_le32(at + (uint64_t)page * GROWING_ENTRY_BYTES);
	}
}

int growing_make_image(const struct growing *growing, uint32_t from, uint32_t to, bool with_tags,
		       uint32_t fingerprint_bits, uint8_t **image, uint64_t *length)
{
	uint32_t count = growing_entries(growing, to) - growing_entries(growing, from);
	struct source source = { .growing = growing, .from = from, .to = to };
	struct group_builder *builder = group_builder_create(count);
	struct group_member members[RIBBON_MEMBERS];
	struct group_plan plan = {
		.row = growing->row,
		.number = growing_number(growing),
		.fingerprint_bits = fingerprint_bits,
		.members = members,
		.member_count = to - from,
		.tagged_max = with_tags ? ribbon_image_bytes_max(growing->shape) : 0,
	};
	uint32_t *tags = malloc((count + UINT64_C(1)) * sizeof(*tags));
	int result = -ENOMEM;

	source.entries = malloc((count + UINT64_C(1)) * sizeof(*source.entries));
	if (builder && source.entries && tags) {
		plan_members(&source, with_tags, members, tags);
		plan.run_tags = tags;
		plan_entries(&source, &plan);
		result = group_build(builder, &plan, image, length);
	}
	group_builder_destroy(builder);
	free(source.entries);
	free(tags);
	return result;
}
