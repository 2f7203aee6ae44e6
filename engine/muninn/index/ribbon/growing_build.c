/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Makes images of members of a growing group: of all of them, or of a section. */
#include <errno.h>
#include <stdlib.h>

#include "engine/muninn/index/ribbon/growing.h"

/* Of a part of a group's entries that have no candidate: most that its ribbon may leave out. */
enum { APART_MAX = 4 };

/* Those of members from `from` on. */
struct source {
	const struct growing *growing;
	uint32_t from, to;
	struct tag_entry *entries;
};

static uint32_t list(const struct source *source)
{
	return growing_list(source->growing, source->from, source->to, 0, source->entries);
}

/*
 * A ribbon of candidates takes six bits less for each entry than one of pages, but can't have those
 * without a candidate, which are moved to the end. If these are too many, all have pages.
 */
static void plan_entries(const struct source *source, struct group_plan *plan)
{
	struct tag_entry *entries = source->entries;
	uint32_t count = list(source), placed = 0;

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
	plan->entry_count = list(source);
	plan->apart_count = 0;
	for (uint32_t n = 0; n < count; n++)
		entries[n].location = growing_entry_page(
			source->growing, growing_entries(source->growing, source->from) + n);
}

int growing_make_image(const struct growing *growing, uint32_t from, uint32_t to,
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
	};
	int result = -ENOMEM;

	source.entries = malloc((count + UINT64_C(1)) * sizeof(*source.entries));
	if (builder && source.entries) {
		for (uint32_t n = 0; n < plan.member_count; n++)
			growing_read_member(growing, from + n, &members[n]);
		plan_entries(&source, &plan);
		result = group_build(builder, &plan, image, length);
	}
	group_builder_destroy(builder);
	free(source.entries);
	return result;
}
