/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Rows, segments, groups and records of the simulation of merging. */
#include "bench/merge_model_private.h"

#include <assert.h>

#include "common/bytes.h"

/* ---- keys ---- */

static uint32_t row_of(const struct model *model, uint32_t key)
{
	return (uint32_t)random_mix(key + RANDOM_STEP) & (model->options->rows - 1);
}

uint32_t model_draw_key(struct model *model)
{
	uint32_t hot = model->keys / 10;

	if (model->options->updates != MERGE_UPDATES_HOT)
		return (uint32_t)sampler_pair(&model->sampler, &model->random, model->draws++);
	if (random_below(&model->random, 10))
		return (uint32_t)permutation_at(&model->sampler.strewn,
						random_below(&model->random, hot));
	return (uint32_t)permutation_at(&model->sampler.strewn,
					hot + random_below(&model->random, model->keys - hot));
}

bool model_is_needed(const struct model *model, const struct record *record)
{
	return record->ended == NEVER ||
	       (model->options->history && record->ended > model->horizon);
}

/* ---- segments in their order ---- */

uint32_t model_take_segment(struct model *model, uint32_t row)
{
	uint32_t number;

	assert(model->unused_count);
	number = model->unused[--model->unused_count];
	struct segment *segment = &model->segments[number];

	*segment = (struct segment){ .row = row,
				     .group = NONE,
				     .before = NONE,
				     .behind = NONE,
				     .first = NEVER,
				     .records = segment->records };
	return number;
}

void model_link_segment(struct model *model, uint32_t number, uint32_t behind)
{
	struct segment *segment = &model->segments[number];
	struct model_row *row = &model->rows[segment->row];

	segment->behind = behind;
	segment->before = behind == NONE ? row->newest : model->segments[behind].before;
	*(segment->before == NONE ? &row->oldest : &model->segments[segment->before].behind) =
		number;
	*(behind == NONE ? &row->newest : &model->segments[behind].before) = number;
}

void model_unlink_segment(struct model *model, uint32_t number)
{
	struct segment *segment = &model->segments[number];
	struct model_row *row = &model->rows[segment->row];

	*(segment->before == NONE ? &row->oldest : &model->segments[segment->before].behind) =
		segment->behind;
	*(segment->behind == NONE ? &row->newest : &model->segments[segment->behind].before) =
		segment->before;
}

/* ---- groups ---- */

uint32_t model_take_group(struct model *model, uint32_t row_number, uint32_t behind)
{
	struct model_row *row = &model->rows[row_number];
	uint32_t number;

	assert(model->free_group_count);
	number = model->free_groups[--model->free_group_count];
	struct group *group = &model->groups[number];

	*group = (struct group){ .row = row_number, .first = NONE, .behind = behind };
	group->before = behind == NONE ? row->newest_group : model->groups[behind].before;
	*(group->before == NONE ? &row->oldest_group : &model->groups[group->before].behind) =
		number;
	*(behind == NONE ? &row->newest_group : &model->groups[behind].before) = number;
	model->groups_used++;
	return number;
}

static void end_group(struct model *model, uint32_t number)
{
	struct group *group = &model->groups[number];
	struct model_row *row = &model->rows[group->row];

	*(group->before == NONE ? &row->oldest_group : &model->groups[group->before].behind) =
		group->behind;
	*(group->behind == NONE ? &row->newest_group : &model->groups[group->behind].before) =
		group->before;
	model->entries -= group->entries;
	model->groups_used--;
	model->free_groups[model->free_group_count++] = number;
}

/* A key has one entry in a segment. */
uint32_t model_count_entries(struct model *model, const struct segment *segment)
{
	uint32_t entries = 0;

	model->seen_now++;
	for (uint32_t n = 0; n < segment->used; n++) {
		entries += model->seen[segment->records[n].key] != model->seen_now;
		model->seen[segment->records[n].key] = model->seen_now;
	}
	return entries;
}

void model_add_member(struct model *model, uint32_t group_number, uint32_t number)
{
	struct group *group = &model->groups[group_number];
	struct segment *segment = &model->segments[number];
	uint32_t entries = model_count_entries(model, segment);

	segment->group = group_number;
	if (group->first == NONE)
		group->first = number;
	group->members++;
	group->sealed++;
	group->entries += entries;
	model->entries += entries;
}

/* The engine keeps what a group has until all its members are gone. */
void model_drop_member(struct model *model, uint32_t number)
{
	struct segment *segment = &model->segments[number];
	struct group *group = &model->groups[segment->group];

	group->members--;
	if (group->first == number)
		group->first = segment->behind != NONE && model->segments[segment->behind].group ==
								  segment->group
				       ? segment->behind
				       : NONE;
	if (!group->members && group->complete)
		end_group(model, segment->group);
}

/* ---- putting ---- */

/* What a segment takes of pages; the last of a group may be short. */
void model_count_seal(struct model *model, uint32_t number)
{
	struct segment *segment = &model->segments[number];
	uint32_t per_page = model->options->page_records;

	segment->sealed = true;
	model->sealed++;
	model->taken++;
	model->transient = (uint32_t)max_u64(model->transient, model->taken);
	model->programs += (segment->used + per_page - 1) / per_page;
}

void model_seal(struct model *model, uint32_t number)
{
	struct model_row *row = &model->rows[model->segments[number].row];
	uint32_t growing = row->newest_group;

	model_count_seal(model, number);
	model_link_segment(model, number, NONE);
	model_add_member(model, growing, number);
	if (model->groups[growing].sealed < GROUP)
		return;
	model->groups[growing].complete = true;
	model_take_group(model, model->segments[number].row, NONE);
	if (!model->groups[growing].members)
		end_group(model, growing);
}

void model_append(struct model *model, uint32_t number, const struct record *record)
{
	struct segment *segment = &model->segments[number];

	segment->first = (uint32_t)min_u64(segment->first, record->put);
	segment->last = (uint32_t)max_u64(segment->last, record->put);
	if (record->ended == NEVER)
		model->newest[record->key] = (struct place){ number, segment->used };
	segment->records[segment->used++] = *record;
}

/* As gather.c does: without history a full buffer drops what is superseded, but not too often. */
static void gather(struct model *model, uint32_t number)
{
	struct segment *segment = &model->segments[number];
	uint32_t used = segment->used;

	segment->used = 0;
	segment->first = NEVER;
	for (uint32_t n = 0; n < used; n++)
		if (segment->records[n].ended == NEVER)
			model_append(model, number,
				     &(struct record){ segment->records[n].key,
						       segment->records[n].put, NEVER });
}

void model_append_to(struct model *model, uint32_t *buffer, uint32_t number,
		     const struct record *record)
{
	struct model_row *row = &model->rows[number];

	if (model->segments[*buffer].used == model->segment_records && *buffer == row->active &&
	    !model->options->history && row->put >= model->segment_records / PUT_PART) {
		gather(model, *buffer);
		row->put = 0;
	}
	if (model->segments[*buffer].used == model->segment_records) {
		model_seal(model, *buffer);
		*buffer = model_take_segment(model, number);
	}
	row->put += *buffer == row->active;
	model_append(model, *buffer, record);
}

void model_put(struct model *model, uint32_t key)
{
	uint32_t row = row_of(model, key);
	struct place *place = &model->newest[key];
	struct record *old =
		place->segment == NONE ? NULL : &model->segments[place->segment].records[place->at];

	model->now++;
	if (old)
		old->ended = model->now;
	model_append_to(model, &model->rows[row].active, row,
			&(struct record){ .key = key, .put = model->now, .ended = NEVER });
}
