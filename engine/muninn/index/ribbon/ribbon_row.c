/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The groups of a row, and its exact table. */
#include "engine/muninn/index/ribbon/ribbon_row.h"

#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "engine/muninn/index/ribbon/group_format.h"

/* ---- the row ---- */

/* For so many complete groups, and a growing one. Of spare bits most entries have some anyway. */
static struct exact_shape exact_shape_for(const struct ribbon_row *row, uint32_t groups)
{
	return (struct exact_shape){
		.bucket_bits = row->shape->bucket_bits,
		.segment_bits = bits_for(RIBBON_MEMBERS * (groups + 1)),
		.location_bits = bits_for(row->shape->locations),
	};
}

int ribbon_row_create(struct ribbon_row *row, const struct ribbon_shape *shape, uint32_t number,
		      uint8_t *nvram, uint8_t *sum)
{
	struct exact_shape exact;

	*row = (struct ribbon_row){
		.shape = shape,
		.growing = { .shape = shape, .nvram = nvram, .sum = sum, .row = number },
	};
	exact = exact_shape_for(row, 0);
	row->exact = exact_create(&exact);
	return row->exact ? 0 : -ENOMEM;
}

void ribbon_row_destroy(struct ribbon_row *row)
{
	for (uint32_t n = 0; n < row->count; n++)
		free(row->complete[n].image);
	free(row->complete);
	exact_destroy(row->exact);
	exact_destroy(row->next);
	*row = (struct ribbon_row){ 0 };
}

uint64_t ribbon_row_bytes(const struct ribbon_row *row)
{
	uint64_t bytes = exact_bytes(row->exact) + row->count * sizeof(*row->complete);

	for (uint32_t n = 0; n < row->count; n++)
		bytes += row->complete[n].group.kept;
	return bytes;
}

uint64_t ribbon_row_images_memory(const struct ribbon_row *row)
{
	uint64_t bytes = 0;

	for (uint32_t n = 0; n < row->count; n++)
		bytes += malloc_usable_size(row->complete[n].image);
	return bytes;
}

uint64_t ribbon_row_other_memory(const struct ribbon_row *row)
{
	return malloc_usable_size(row->complete) + exact_memory(row->exact) +
	       exact_memory(row->next);
}

/* ---- the exact table ---- */

/* What becomes of the groups' places in the row. */
struct change {
	uint32_t from, to; /* places that go */
	uint32_t added;    /* groups that come in their place: 0 or 1 */
	uint32_t count;    /* complete groups before that */
};

static uint32_t place_after(const struct change *change, uint32_t place)
{
	return place < change->to ? place : place - (change->to - change->from) + change->added;
}

/* The growing group's entries are added anew each time. */
static uint32_t renumber(void *context, uint32_t segment)
{
	const struct change *change = context;
	uint32_t place = segment / RIBBON_MEMBERS;

	if (place >= change->count || (place >= change->from && place < change->to))
		return EXACT_DROP;
	return place_after(change, place) * RIBBON_MEMBERS + segment % RIBBON_MEMBERS;
}

/* The growing group's entries stay. */
static uint32_t renumber_all(void *context, uint32_t segment)
{
	const struct change *change = context;
	uint32_t place = segment / RIBBON_MEMBERS;

	if (place >= change->from && place < change->to)
		return EXACT_DROP;
	return place_after(change, place) * RIBBON_MEMBERS + segment % RIBBON_MEMBERS;
}

/* Entries of the growing group from member `first` on, up to `last`, whose place is `place`. */
static uint32_t growing_entries_of(const struct growing *growing, uint32_t first, uint32_t last,
				   uint32_t place, struct tag_entry *entries)
{
	uint32_t begin = growing_entries(growing, first), n = begin;

	for (uint32_t member = first; member < last; member++)
		for (; n < growing_entries(growing, member + 1); n++) {
			entries[n - begin] = growing_entry(growing, n);
			entries[n - begin].segment = place * RIBBON_MEMBERS + member;
		}
	return n - begin;
}

/*
 * The table after a change: what is left of complete groups, the failed entries of `by`, and the
 * growing group's, if it stays. NULL: out of memory.
 */
static struct exact *change_exact(const struct ribbon_row *row, const struct change *change,
				  const struct group *by, bool grows_on)
{
	uint32_t groups = change->count - (change->to - change->from) + change->added;
	uint32_t members = grows_on ? growing_members(&row->growing) : 0;
	uint32_t failed = by ? by->failed : 0;
	struct exact_shape shape = exact_shape_for(row, groups);
	struct tag_entry *entries =
		malloc((failed + growing_entries(&row->growing, members) + 1) * sizeof(*entries));
	struct exact *exact;

	if (!entries)
		return NULL;
	for (uint32_t n = 0; n < failed; n++) {
		entries[n] = group_failed_entry(by, n);
		entries[n].segment += change->from * RIBBON_MEMBERS;
		entries[n].location += ribbon_location_base(by);
	}
	failed += growing_entries_of(&row->growing, 0, members, groups, entries + failed);
	exact = exact_rewrite(row->exact, &shape, entries, failed, renumber,
			      (void *)(uintptr_t)change);
	free(entries);
	return exact;
}

static int rebuild_exact(struct ribbon_row *row)
{
	const struct change none = { .from = row->count, .to = row->count, .count = row->count };
	struct exact *exact = change_exact(row, &none, NULL, true);

	if (!exact)
		return -ENOMEM;
	exact_destroy(row->exact);
	row->exact = exact;
	row->grows_in_exact = true;
	return 0;
}

/* ---- the growing group ---- */

void ribbon_row_begin(struct ribbon_row *row, uint32_t number)
{
	/*
	 * Entries of the group before this one may stay in the exact table until it is written
	 * again. They name members that there are not yet.
	 */
	growing_begin(&row->growing, number);
	row->grows_in_exact = true;
}

int ribbon_row_attach(struct ribbon_row *row)
{
	row->grows_in_exact = false;
	return growing_is_sound(&row->growing) ? 0 : -EINVAL;
}

int ribbon_row_finish(struct ribbon_row *row)
{
	return row->grows_in_exact ? 0 : rebuild_exact(row);
}

int ribbon_row_write(struct ribbon_row *row, const struct tag_entry *entries, uint32_t count,
		     const struct group_member *member)
{
	uint32_t members = growing_members(&row->growing);
	struct exact_shape shape = *exact_shape_of(row->exact);
	struct tag_entry *added = malloc((count + 1) * sizeof(*added));

	assert(row->grows_in_exact);
	exact_destroy(row->next);
	row->next = NULL;
	if (!added)
		return -ENOMEM;
	/* The first member ends what the group before it has left. */
	if (members == 0 && rebuild_exact(row)) {
		free(added);
		return -ENOMEM;
	}
	shape = *exact_shape_of(row->exact);
	growing_write(&row->growing, entries, count, member);
	growing_entries_of(&row->growing, members, members + 1, row->count, added);
	row->next = exact_rewrite(row->exact, &shape, added, count, NULL, NULL);
	free(added);
	return row->next ? 0 : -ENOMEM;
}

void ribbon_row_commit(struct ribbon_row *row)
{
	assert(row->next);
	growing_commit(&row->growing);
	exact_destroy(row->exact);
	row->exact = row->next;
	row->next = NULL;
}

/* Of a part of a group's entries that have no candidate: most that its ribbon may leave out. */
enum { APART_MAX = 4 };

/*
 * A ribbon of candidates takes six bits less for each entry than one of pages, but can't have those
 * without a candidate, which are moved to the end. If these are too many, all have pages.
 */
static void plan_locations(const struct ribbon_row *row, struct group_plan *plan,
			   struct tag_entry *entries)
{
	uint32_t count = plan->entry_count, placed = 0;

	for (uint32_t n = 0; n < count; n++) {
		struct tag_entry entry = entries[n];

		if (entry.location >= PLACEMENT_CANDIDATES)
			continue;
		entries[n] = entries[placed];
		entries[placed++] = entry;
	}
	plan->locations = PLACEMENT_CANDIDATES;
	plan->entry_count = placed;
	plan->apart = entries + placed;
	plan->apart_count = count - placed;
	if (plan->apart_count <= count / APART_MAX)
		return;
	plan->locations = row->shape->segment_pages;
	plan->entry_count = growing_entries_of(&row->growing, 0, plan->member_count, 0, entries);
	plan->apart_count = 0;
	for (uint32_t n = 0; n < count; n++)
		entries[n].location = growing_entry_page(&row->growing, n);
}

int ribbon_row_make_image(const struct ribbon_row *row, struct group_builder *builder,
			  struct tag_entry *entries, uint8_t **image, uint64_t *length)
{
	const struct growing *growing = &row->growing;
	struct group_member members[RIBBON_MEMBERS];
	struct group_plan plan = {
		.row = growing->row,
		.number = growing_number(growing),
		.fingerprint_bits = ribbon_fingerprint_bits(growing_number(growing)),
		.members = members,
		.member_count = growing_members(growing),
		.entries = entries,
	};

	for (uint32_t member = 0; member < plan.member_count; member++)
		growing_read_member(growing, member, &members[member]);
	plan.entry_count = growing_entries_of(growing, 0, plan.member_count, 0, entries);
	plan_locations(row, &plan, entries);
	return group_build(builder, &plan, image, length);
}

/* ---- complete groups ---- */

int ribbon_row_check(const struct ribbon_row *row, const struct ribbon_image *image,
		     uint32_t number)
{
	struct group group;

	return group_attach(&group, image->bytes, image->length) &&
			       image->length ==
				       group.kept + (uint64_t)group.failed * FAILED_BYTES &&
			       group_is_intact(&group, image->length) &&
			       group.row == row->growing.row && group.number == number &&
			       group.members <= RIBBON_MEMBERS &&
			       (group.locations == PLACEMENT_CANDIDATES ||
				group.locations == row->shape->segment_pages) &&
			       group_entries_make_sense(
				       &group, row->shape->locations - ribbon_location_base(&group))
		       ? 0
		       : -EINVAL;
}

/* What is kept of an image, in memory of its own at a cache line. */
static int keep(const struct ribbon_image *image, struct complete *complete)
{
	struct group group;
	bool attached = group_attach(&group, image->bytes, image->length);

	assert(attached);
	*complete = (struct complete){
		.image = aligned_alloc(64, align_up(group.kept, 64)),
		.live = image->live,
		.first_sequence = UINT64_MAX,
	};
	if (!complete->image)
		return -ENOMEM;
	memcpy(complete->image, image->bytes, group.kept);
	group_attach(&complete->group, complete->image, group.kept);
	for (uint32_t member = 0; member < group.members; member++) {
		struct group_member facts;

		group_read_member(&group, member, &facts);
		complete->first_sequence = min_u64(complete->first_sequence, facts.first_sequence);
		complete->last_sequence = max_u64(complete->last_sequence, facts.last_sequence);
	}
	return 0;
}

/* Puts a group, or none, in the place of others. There is memory for it. */
static void put_in_place(struct ribbon_row *row, const struct change *change,
			 const struct complete *complete)
{
	for (uint32_t n = change->from; n < change->to; n++)
		free(row->complete[n].image);
	if (row->count > change->to)
		memmove(&row->complete[change->from + change->added], &row->complete[change->to],
			(row->count - change->to) * sizeof(*row->complete));
	row->count = row->count - (change->to - change->from) + change->added;
	if (!change->added)
		return;
	assert(row->complete && complete);
	row->complete[change->from] = *complete;
}

/* A member may have been written that does not count yet. */
static void take_away(struct ribbon_row *row, struct change *change)
{
	exact_reduce(row->exact, renumber_all, change);
	if (row->next)
		exact_reduce(row->next, renumber_all, change);
	put_in_place(row, change, NULL);
}

/*
 * Another copy of the only group that goes has the same entries at the same place, so tables stay.
 * A member may have been written meanwhile that does not count yet.
 */
static bool takes_copy(struct ribbon_row *row, const struct change *change, const struct group *by,
		       uint8_t *live)
{
	struct complete *complete = &row->complete[change->from];

	if (change->to - change->from != 1 || complete->group.number != by->number)
		return false;
	complete->live = live;
	return true;
}

int ribbon_row_replace(struct ribbon_row *row, uint32_t from, uint32_t to,
		       const struct ribbon_image *by)
{
	struct change change = { .from = from, .to = to, .added = by != NULL, .count = row->count };
	struct complete complete, *grown;
	struct exact *exact;
	struct group whole;

	if (!by) {
		take_away(row, &change);
		return 0;
	}
	group_attach(&whole, by->bytes, by->length);
	if (takes_copy(row, &change, &whole, by->live)) {
		free(by->bytes);
		return 0;
	}
	assert(!row->next);
	grown = realloc(row->complete, (row->count + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	row->complete = grown;
	if (keep(by, &complete))
		return -ENOMEM;
	exact = change_exact(row, &change, &whole,
			     row->grows_in_exact && whole.number != growing_number(&row->growing));
	if (!exact) {
		free(complete.image);
		return -ENOMEM;
	}
	put_in_place(row, &change, &complete);
	exact_destroy(row->exact);
	row->exact = exact;
	free(by->bytes);
	return 0;
}

int ribbon_row_copy_image(const struct ribbon_row *row, uint32_t place, uint8_t **image,
			  uint64_t *length)
{
	const struct group *group = &row->complete[place].group;
	uint32_t at = 0, failed = 0;
	struct tag_entry entry;

	*length = group->kept + (uint64_t)group->failed * FAILED_BYTES;
	*image = malloc(*length);
	if (!*image)
		return -ENOMEM;
	memcpy(*image, group->image, group->kept);
	while (exact_next(row->exact, &at, &entry)) {
		if (entry.segment / RIBBON_MEMBERS != place)
			continue;
		entry.segment %= RIBBON_MEMBERS;
		entry.location -= ribbon_location_base(group);
		assert(failed < group->failed);
		group_put_failed_entry(*image + group->kept + (uint64_t)failed++ * FAILED_BYTES,
				       &entry);
	}
	assert(failed == group->failed);
	group_put_crc(*image, *length);
	return 0;
}
