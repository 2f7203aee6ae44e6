/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The ways of merging that are simulated. */
#include "bench/merge_model_private.h"

#include <assert.h>
#include <stdlib.h>

/* ---- moving ---- */

static void free_segment(struct model *model, uint32_t number)
{
	model_unlink_segment(model, number);
	model_drop_member(model, number);
	model->segments[number].sealed = false;
	model->unused[model->unused_count++] = number;
	model->sealed--;
	model->freed++;
}

/* What has been chosen is free when a step has ended. */
void model_free_chosen(struct model *model, uint32_t from)
{
	while (model->chosen_count > from)
		free_segment(model, model->chosen[--model->chosen_count]);
	model->taken = 0;
}

static void move_to(struct model *model, uint32_t number, uint32_t *buffer)
{
	const struct segment *segment = &model->segments[number];

	for (uint32_t n = 0; n < segment->used; n++)
		if (model_is_needed(model, &segment->records[n])) {
			model_append_to(model, buffer, segment->row, &segment->records[n]);
			model->moved++;
		}
}

static uint32_t needed_of(const struct model *model, uint32_t from)
{
	uint32_t needed = 0;

	for (uint32_t c = from; c < model->chosen_count; c++) {
		const struct segment *segment = &model->segments[model->chosen[c]];

		for (uint32_t n = 0; n < segment->used; n++)
			needed += model_is_needed(model, &segment->records[n]);
	}
	return needed;
}

static bool may_go_on(const struct model *model)
{
	return model->reads < READS * READS_PERMILLE / 1000;
}

bool model_step_single(struct model *model, uint32_t wanted, uint32_t most)
{
	while (model->chosen_count < wanted && (!model->chosen_count || may_go_on(model))) {
		if (!model_choose(model, NONE, most))
			break;
		uint32_t number = model->chosen[model->chosen_count - 1];
		struct model_row *row = &model->rows[model->segments[number].row];

		move_to(model, number,
			model->options->way == MERGE_WAY_APART ? &row->apart : &row->active);
	}
	return model->chosen_count > 0;
}

/* Whole segments of what is needed of those that were chosen last; the rest goes to the buffer. */
static void move_together(struct model *model, uint32_t from, uint32_t group)
{
	uint32_t row_number = model->segments[model->chosen[from]].row, output = NONE;
	uint32_t whole = needed_of(model, from) / model->segment_records * model->segment_records;
	uint32_t before = model->chosen[from];

	for (uint32_t c = from; c < model->chosen_count; c++) {
		const struct segment *segment = &model->segments[model->chosen[c]];

		for (uint32_t n = 0; n < segment->used; n++) {
			if (!model_is_needed(model, &segment->records[n]))
				continue;
			model->moved++;
			if (!whole) {
				model->aside++;
				model_append_to(model, &model->rows[row_number].active, row_number,
						&segment->records[n]);
				continue;
			}
			if (output == NONE)
				output = model_take_segment(model, row_number);
			model_append(model, output, &segment->records[n]);
			if (model->segments[output].used < model->segment_records)
				continue;
			whole -= model->segment_records;
			if (group == NONE) {
				model_seal(model, output);
			} else {
				model_count_seal(model, output);
				model_link_segment(model, output, before);
				model_add_member(model, group, output);
				model->groups[group].first = NONE;
			}
			output = NONE;
		}
	}
	assert(output == NONE);
}

bool model_step_batch(struct model *model, uint32_t wanted, uint32_t most)
{
	while (model->chosen_count < wanted && (!model->chosen_count || may_go_on(model))) {
		uint32_t from = model->chosen_count;

		if (!model_choose(model, NONE, most))
			break;
		uint32_t row = model->segments[model->chosen[from]].row;

		while (needed_of(model, from) < model->segment_records &&
		       model->chosen_count - from < SEGMENTS_AT_ONCE &&
		       model_choose(model, row, most))
			;
		move_together(model, from, NONE);
	}
	return model->chosen_count > 0;
}

/* ---- groups ---- */

struct unit {
	uint32_t group, permille, count;
	struct candidate members[2 * GROUP];
};

/* A group that is complete, or two that follow each other. False: there is none. */
static bool draw_unit(struct model *model, struct unit *unit)
{
	uint32_t segment = model_next_segment(model, NONE), needed = 0, records = 0;
	uint32_t groups = model->options->way == MERGE_WAY_TWO ? 2 : 1;

	*unit = (struct unit){ .group = segment == NONE ? NONE : model->segments[segment].group };
	for (uint32_t n = unit->group; n != NONE && groups-- > 0; n = model->groups[n].behind) {
		const struct group *group = &model->groups[n];

		if (!group->complete)
			break;
		segment = group->first;
		for (uint32_t m = 0; m < group->members; m++) {
			uint32_t found = model_sample(model, segment, SAMPLED_PAGES);

			unit->members[unit->count++] =
				(struct candidate){ .segment = segment, .permille = found };
			needed += found;
			records++;
			segment = model->segments[segment].behind;
		}
	}
	unit->permille = records ? needed / records : 1001;
	return unit->count > 0;
}

static bool choose_unit(struct model *model, struct unit *best)
{
	best->permille = 1001;
	for (uint32_t n = 0; n < SAMPLED_GROUPS; n++) {
		struct unit unit;

		if (draw_unit(model, &unit) && unit.permille < best->permille)
			*best = unit;
	}
	return best->permille <= 1000;
}

/* All of a unit is read, and what is needed takes its place. */
static void rewrite(struct model *model, const struct unit *unit)
{
	uint32_t from = model->chosen_count, row, before, group = NONE, output = NONE;
	uint32_t first_group = unit->group;

	for (uint32_t n = 0; n < unit->count; n++)
		model_take(model, unit->members[n].segment);
	for (uint32_t n = from; n < model->chosen_count; n++)
		model_count_needed(model, model->chosen[n], true);
	before = model->chosen[from];
	row = model->segments[before].row;
	for (uint32_t c = from; c < model->chosen_count; c++) {
		const struct segment *segment = &model->segments[model->chosen[c]];
		bool last = c + 1 == model->chosen_count;

		for (uint32_t n = 0; n <= segment->used; n++) {
			if (n < segment->used && model_is_needed(model, &segment->records[n])) {
				if (output == NONE)
					output = model_take_segment(model, row);
				model_append(model, output, &segment->records[n]);
				model->moved++;
			}
			if (output == NONE ||
			    (model->segments[output].used < model->segment_records &&
			     !(last && n == segment->used)))
				continue;
			if (group == NONE || model->groups[group].members == GROUP) {
				group = model_take_group(model, row, first_group);
				model->groups[group].complete = true;
			}
			model_count_seal(model, output);
			model_link_segment(model, output, before);
			model_add_member(model, group, output);
			output = NONE;
		}
	}
	model_free_chosen(model, from);
}

static int by_permille(const void *one, const void *other)
{
	const struct candidate *a = one, *b = other;

	return (a->permille > b->permille) - (a->permille < b->permille);
}

/* Those of a group with little that is needed, as many as fill segments, and its image anew. */
static void rewrite_part(struct model *model, struct unit *unit, uint32_t most)
{
	uint32_t from = model->chosen_count;
	struct group *group = &model->groups[unit->group];

	qsort(unit->members, unit->count, sizeof(unit->members[0]), by_permille);
	for (uint32_t n = 0; n < unit->count && unit->members[n].permille <= most; n++) {
		if (model->chosen_count > from && needed_of(model, from) >= model->segment_records)
			break;
		model_count_needed(model, unit->members[n].segment, false);
		model_take(model, unit->members[n].segment);
	}
	if (model->chosen_count == from)
		return;
	/* The tags of its other segments are read again. */
	model->reads += (uint64_t)PAGES * (group->members - (model->chosen_count - from));
	uint32_t oldest = group->first;

	move_together(model, from, unit->group);
	group->first = oldest;
	/* It begins with what was put before its oldest segment, if that was chosen. */
	for (uint32_t before = model->segments[group->first].before;
	     before != NONE && model->segments[before].group == unit->group;
	     before = model->segments[before].before)
		group->first = before;
	model->entries -= group->entries;
	group->entries = 0;
	for (uint32_t n = group->first; n != NONE && model->segments[n].group == unit->group;
	     n = model->segments[n].behind)
		if (!model->segments[n].chosen)
			group->entries += model_count_entries(model, &model->segments[n]);
	model->entries += group->entries;
	model_free_chosen(model, from);
}

bool model_step_group(struct model *model, uint32_t most)
{
	struct unit unit;

	if (!choose_unit(model, &unit))
		return false;
	if (model->options->way == MERGE_WAY_PART) {
		uint32_t freed = (uint32_t)model->freed;

		rewrite_part(model, &unit, most);
		return model->freed != freed;
	}
	if (unit.permille > most || unit.permille * unit.count >= 1000 * (unit.count - 1))
		return false;
	rewrite(model, &unit);
	return true;
}
