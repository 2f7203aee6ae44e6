/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The groups of a row, and its exact table. */
#include "engine/muninn/index/ribbon/ribbon_row.h"

#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "engine/muninn/index/ribbon/group_format.h"
#include "engine/muninn/index/ribbon/row_images.h"

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

static void drop_sections(struct ribbon_row *row)
{
	for (; row->section_count; row->section_count--) {
		struct section *section = &row->sections[row->section_count - 1];

		row_images_take_out(row, &section->group);
		section_destroy(section);
	}
	section_destroy(&row->made);
	row->next_has_section = false;
	row_images_fit(row);
}

void ribbon_row_destroy(struct ribbon_row *row)
{
	drop_sections(row);
	mapped_end(&row->images);
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
	for (uint32_t n = 0; n < row->section_count; n++)
		bytes += row->sections[n].group.kept;
	return bytes;
}

/* One that is being made, beside this, lasts until its segment counts: it is left out. */
uint64_t ribbon_row_images_memory(const struct ribbon_row *row)
{
	return row->images.mapped;
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
	bool grows_on;     /* the growing group's entries stay */
};

static uint32_t renumber(void *context, uint32_t segment)
{
	const struct change *change = context;
	uint32_t place = segment / RIBBON_MEMBERS;

	if ((place >= change->from && place < change->to) ||
	    (place >= change->count && !change->grows_on))
		return EXACT_DROP;
	if (place >= change->to)
		place = place - (change->to - change->from) + change->added;
	return place * RIBBON_MEMBERS + segment % RIBBON_MEMBERS;
}

/* Of the growing group: in the row, what member 0 is. */
static uint32_t growing_first(const struct ribbon_row *row)
{
	return row->count * RIBBON_MEMBERS;
}

/* The table after a group has come. NULL: out of memory. */
static struct exact *change_exact(const struct ribbon_row *row, const struct change *change,
				  const struct group *by)
{
	uint32_t groups = change->count - (change->to - change->from) + change->added;
	struct exact_shape shape = exact_shape_for(row, groups);
	struct tag_entry *entries = malloc((by->failed + UINT64_C(1)) * sizeof(*entries));
	struct exact *exact;

	if (!entries)
		return NULL;
	for (uint32_t n = 0; n < by->failed; n++) {
		entries[n] = group_failed_entry(by, n);
		entries[n].segment += change->from * RIBBON_MEMBERS;
		entries[n].location += ribbon_location_base(by);
	}
	exact = exact_rewrite(row->exact, &shape, entries, by->failed, renumber,
			      (void *)(uintptr_t)change);
	free(entries);
	return exact;
}

/* The failed entries of a section, as the exact table has them. Returns how many there are. */
static uint32_t section_entries(const struct ribbon_row *row, const struct section *section,
				uint32_t number, struct tag_entry *entries)
{
	for (uint32_t n = 0; n < section->group.failed; n++) {
		entries[n] = section->failed[n];
		entries[n].segment += growing_first(row) + number * RIBBON_SECTION_MEMBERS;
		entries[n].location += ribbon_location_base(&section->group);
	}
	return section->group.failed;
}

/* The growing group's entries that no section has. */
static uint32_t entries_apart(const struct ribbon_row *row, struct tag_entry *entries)
{
	uint32_t first = row->section_count * RIBBON_SECTION_MEMBERS, count = 0;

	for (uint32_t n = 0; n < row->section_count; n++)
		count += section_entries(row, &row->sections[n], n, entries + count);
	return count + growing_list(&row->growing, first, growing_members(&row->growing),
				    growing_first(row) + first, GROWING_LOCATIONS, entries + count);
}

/* The growing group's entries anew. Its sections still know what failed. */
static int rebuild_exact(struct ribbon_row *row)
{
	struct change none = { .from = row->count, .to = row->count, .count = row->count };
	uint32_t all = growing_entries(&row->growing, growing_members(&row->growing));
	struct tag_entry *entries = malloc((all + UINT64_C(1)) * sizeof(*entries));
	struct exact_shape shape = exact_shape_for(row, row->count);
	struct exact *exact = NULL;

	if (entries)
		exact = exact_rewrite(row->exact, &shape, entries, entries_apart(row, entries),
				      renumber, &none);
	free(entries);
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
	drop_sections(row);
	growing_begin(&row->growing, number);
	row->grows_in_exact = true;
}

int ribbon_row_attach(struct ribbon_row *row)
{
	row->grows_in_exact = false;
	return growing_is_sound(&row->growing) ? 0 : -EINVAL;
}

/* Whether there are members for one more section. */
static bool has_members_for_section(const struct ribbon_row *row)
{
	return growing_members(&row->growing) / RIBBON_SECTION_MEMBERS > row->section_count;
}

void ribbon_row_condense(struct ribbon_row *row)
{
	if (!row->made.image && has_members_for_section(row))
		section_make(&row->made, &row->growing, row->section_count);
}

/* There is room for its image. */
static void take_made(struct ribbon_row *row)
{
	struct section *section = &row->sections[row->section_count];

	*section = (struct section){ .failed = row->made.failed };
	row_images_add(row, &row->made.group, &section->group);
	row->section_count++;
	free(row->made.image);
	row->made = (struct section){ 0 };
	row->next_has_section = false;
}

/* All that there are members for, as far as there is memory. */
static void make_sections(struct ribbon_row *row)
{
	for (ribbon_row_condense(row); row->made.image; ribbon_row_condense(row)) {
		if (row_images_make_room(row, &row->made.group)) {
			section_destroy(&row->made);
			return;
		}
		take_made(row);
	}
}

int ribbon_row_finish(struct ribbon_row *row)
{
	int result;

	if (row->grows_in_exact)
		return 0;
	make_sections(row);
	result = rebuild_exact(row);
	for (uint32_t n = 0; n < row->section_count; n++)
		section_forget_failed(&row->sections[n]);
	return result;
}

/* Members that the section has which has been made. */
static uint32_t drop_made(void *context, uint32_t segment)
{
	const struct ribbon_row *row = context;
	uint32_t first = growing_first(row) + row->section_count * RIBBON_SECTION_MEMBERS;

	return segment >= first && segment < first + RIBBON_SECTION_MEMBERS ? EXACT_DROP : segment;
}

/* The exact table with member `member`, whose `count` entries have been written. */
static struct exact *add_member(struct ribbon_row *row, uint32_t member, uint32_t count)
{
	bool has_section = row->made.image != NULL;
	uint32_t all = count + (has_section ? row->made.group.failed : 0);
	struct tag_entry *added = malloc((all + UINT64_C(1)) * sizeof(*added));
	struct exact *exact;

	if (!added)
		return NULL;
	growing_list(&row->growing, member, member + 1, growing_first(row) + member,
		     GROWING_LOCATIONS, added);
	if (has_section)
		section_entries(row, &row->made, row->section_count, added + count);
	exact = exact_rewrite(row->exact, exact_shape_of(row->exact), added, all,
			      has_section ? drop_made : NULL, row);
	free(added);
	row->next_has_section = has_section;
	return exact;
}

int ribbon_row_write(struct ribbon_row *row, const struct tag_entry *entries, uint32_t count,
		     const struct group_member *member)
{
	uint32_t members = growing_members(&row->growing);

	assert(row->grows_in_exact);
	exact_destroy(row->next);
	row->next = NULL;
	/* The first member ends what the group before it has left. */
	if (members == 0 && rebuild_exact(row))
		return -ENOMEM;
	/* Without memory for a section the exact table keeps its members. */
	if (row->made.image && row_images_make_room(row, &row->made.group))
		section_destroy(&row->made);
	growing_write(&row->growing, entries, count, member);
	row->next = add_member(row, members, count);
	return row->next ? 0 : -ENOMEM;
}

void ribbon_row_commit(struct ribbon_row *row)
{
	assert(row->next);
	growing_commit(&row->growing);
	exact_destroy(row->exact);
	row->exact = row->next;
	row->next = NULL;
	if (!row->next_has_section)
		return;
	section_forget_failed(&row->made);
	take_made(row);
}

int ribbon_row_make_image(const struct ribbon_row *row, uint8_t **image, uint64_t *length)
{
	const struct growing *growing = &row->growing;

	return growing_make_image(growing, 0, growing_members(growing), true,
				  ribbon_fingerprint_bits(growing_number(growing)), image, length);
}

/* ---- complete groups ---- */

int ribbon_row_check(const struct ribbon_row *row, const struct ribbon_image *image,
		     uint32_t number)
{
	struct group group;

	return group_attach(&group, image->bytes, image->length) &&
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

/* What is kept of an image. There is room for it. */
static struct complete keep(struct ribbon_row *row, const struct group *group, uint8_t *live)
{
	struct complete complete = { .live = live, .first_sequence = UINT64_MAX };

	for (uint32_t member = 0; member < group->members; member++) {
		struct group_member facts;

		group_read_member(group, member, &facts);
		complete.first_sequence = min_u64(complete.first_sequence, facts.first_sequence);
		complete.last_sequence = max_u64(complete.last_sequence, facts.last_sequence);
	}
	row_images_add(row, group, &complete.group);
	return complete;
}

/* Puts a group, or none, in the place of others. There is memory for it. */
static void put_in_place(struct ribbon_row *row, const struct change *change,
			 const struct group *by, uint8_t *live)
{
	for (uint32_t n = change->from; n < change->to; n++)
		row_images_take_out(row, &row->complete[n].group);
	if (row->count > change->to)
		memmove(&row->complete[change->from + change->added], &row->complete[change->to],
			(row->count - change->to) * sizeof(*row->complete));
	row->count = row->count - (change->to - change->from);
	if (change->added) {
		assert(row->complete && by);
		row->complete[change->from] = keep(row, by, live);
		row->count++;
	}
	row_images_fit(row);
}

/* A member may have been written that does not count yet. */
static void take_away(struct ribbon_row *row, struct change *change)
{
	exact_reduce(row->exact, renumber, change);
	if (row->next)
		exact_reduce(row->next, renumber, change);
	put_in_place(row, change, NULL, NULL);
}

/* Whether two images are of the same segments. */
static bool has_same_members(const struct group *a, const struct group *b)
{
	return a->number == b->number && a->members == b->members &&
	       memcmp(a->image + GROUP_HEADER_BYTES, b->image + GROUP_HEADER_BYTES,
		      (size_t)a->members * MEMBER_BYTES) == 0;
}

/*
 * Another copy of the only group that goes has the same entries at the same place, so tables stay.
 * A member may have been written meanwhile that does not count yet.
 */
static bool takes_copy(struct ribbon_row *row, const struct change *change, const struct group *by,
		       uint8_t *live)
{
	struct complete *complete = &row->complete[change->from];

	if (change->to - change->from != 1 || !has_same_members(&complete->group, by))
		return false;
	complete->live = live;
	return true;
}

int ribbon_row_replace(struct ribbon_row *row, uint32_t from, uint32_t to,
		       const struct ribbon_image *by)
{
	struct change change = {
		.from = from, .to = to, .added = by != NULL, .count = row->count, .grows_on = true
	};
	struct complete *grown;
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
	/* Of a member that was given up. */
	exact_destroy(row->next);
	row->next = NULL;
	grown = realloc(row->complete, (row->count + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	row->complete = grown;
	if (row_images_make_room(row, &whole))
		return -ENOMEM;
	/* Without members, what the group before it has left. */
	change.grows_on = growing_members(&row->growing) &&
			  whole.number != growing_number(&row->growing);
	exact = change_exact(row, &change, &whole);
	if (!exact) {
		row_images_fit(row);
		return -ENOMEM;
	}
	put_in_place(row, &change, &whole, by->live);
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
	put_le32(*image + GROUP_APPENDED_AT, 0);
	put_le32(*image + GROUP_TAGS_AT, 0);
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
