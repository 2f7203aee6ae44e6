/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Which segment merging takes: the simulation of muninn/choose.c. */
#include "bench/merge_model_private.h"

#include "common/bytes.h"

/* ---- reading ---- */

/* A merge remembers the pages that it read last. */
static void read_page(struct model *model, uint32_t segment, uint32_t page)
{
	uint64_t *at = &model->read_at[segment * (uint64_t)PAGES + page];

	if (*at > model->step_began && model->page_reads - *at < REMEMBERED_PAGES)
		return;
	*at = ++model->page_reads;
	model->reads++;
}

static uint32_t page_of(const struct model *model, const struct place *place, uint32_t key)
{
	if (model->options->page_records == 1)
		return place->at;
	return (uint32_t)random_mix(key + (place->segment + UINT64_C(1)) * RANDOM_STEP) % PAGES;
}

/* Whether a record is needed, and the reads that tell it. `known`: all of its group is read. */
static bool judge(struct model *model, uint32_t segment, const struct record *record, bool known)
{
	const struct place *newest = &model->newest[record->key];
	const struct segment *other = &model->segments[newest->segment];

	if (record->ended == NEVER)
		return true;
	if (other->sealed && newest->segment != segment && !(known && other->chosen))
		read_page(model, newest->segment, page_of(model, newest, record->key));
	return model_is_needed(model, record);
}

uint32_t model_count_needed(struct model *model, uint32_t number, bool known)
{
	struct segment *segment = &model->segments[number];
	uint32_t needed = 0;

	model->reads += PAGES;
	for (uint32_t n = 0; n < segment->used; n++)
		needed += judge(model, number, &segment->records[n], known);
	return needed;
}

static uint32_t permille(const struct model *model, uint32_t number, uint32_t needed, uint32_t of)
{
	const struct segment *segment = &model->segments[number];
	uint64_t whole = max_u64(segment->used, model->segment_records);

	return of ? (uint32_t)((uint64_t)needed * 1000 * segment->used / of / whole) : 0;
}

uint32_t model_sample(struct model *model, uint32_t number, uint32_t pages)
{
	struct segment *segment = &model->segments[number];
	uint32_t samples = (uint32_t)min_u64(segment->used, pages * model->options->page_records);
	uint32_t first = (uint32_t)random_below(&model->random, max_u64(1, segment->used));
	uint32_t needed = 0;

	for (uint32_t n = 0; n < samples; n++) {
		uint32_t at = (first + n * (segment->used / samples)) % segment->used;

		needed += judge(model, number, &segment->records[at], false);
	}
	model->reads += pages;
	return permille(model, number, needed, samples);
}

/* ---- choosing a segment ---- */

static bool is_free_to_choose(const struct model *model, uint32_t number)
{
	return model->segments[number].sealed && !model->segments[number].chosen;
}

static uint32_t old_segment(struct model *model, uint32_t row)
{
	uint64_t random = random_next(&model->random);
	uint64_t passed = (random >> 32) % (UINT64_C(1) << random % OLD_BITS);
	uint32_t number = model->rows[row].oldest;

	while (number != NONE && passed-- > 0 && model->segments[number].behind != NONE)
		number = model->segments[number].behind;
	return number;
}

uint32_t model_next_segment(struct model *model, uint32_t of_row)
{
	for (uint32_t tried = 0; tried < model->segment_count; tried++) {
		model->cursor = (model->cursor + model->walk_step) % model->segment_count;
		if (is_free_to_choose(model, model->cursor) &&
		    (of_row == NONE || model->segments[model->cursor].row == of_row))
			return model->cursor;
	}
	return NONE;
}

static uint32_t draw_candidates(struct model *model, uint32_t of_row,
				struct candidate candidates[CANDIDATES])
{
	uint32_t count = 0;

	for (uint32_t n = 0; n < CANDIDATES; n++) {
		uint32_t row = of_row == NONE ? model->old_row++ % model->options->rows : of_row;
		uint32_t number = n < OLD_CANDIDATES ? old_segment(model, row)
						     : model_next_segment(model, of_row);

		if (number != NONE && is_free_to_choose(model, number))
			candidates[count++] = (struct candidate){ .segment = number };
	}
	return count;
}

static uint32_t sparse_segment(const struct model *model)
{
	uint32_t entries = model->segment_count / SPARSE + model->options->rows;

	if (model->groups_used < entries / 4 * 3)
		return NONE;
	for (uint32_t n = 0; n < model->group_count; n++)
		if (model->groups[n].complete && model->groups[n].members <= SPARSE &&
		    model->groups[n].members && is_free_to_choose(model, model->groups[n].first))
			return model->groups[n].first;
	return NONE;
}

void model_take(struct model *model, uint32_t number)
{
	model->segments[number].chosen = true;
	model->chosen[model->chosen_count++] = number;
}

/* The best candidate by samples; others are not looked at when one is very good. NULL: none. */
static struct candidate *best_of(struct model *model, struct candidate *candidates, uint32_t count)
{
	struct candidate *best = NULL;

	for (uint32_t n = 0; n < count; n++) {
		struct candidate *candidate = &candidates[n];

		if (!candidate->is_sampled) {
			candidate->permille =
				model_sample(model, candidate->segment, SAMPLED_PAGES);
			candidate->is_sampled = true;
			candidate->is_sure = SAMPLED_PAGES * model->options->page_records >=
					     SURE_RECORDS;
		}
		if (!best || candidate->permille < best->permille)
			best = candidate;
		if (candidate->permille <= GOOD_ENOUGH_PERMILLE)
			break;
	}
	return best;
}

/* As choose.c does, by samples. False: none is worth it. */
bool model_choose(struct model *model, uint32_t of_row, uint32_t most)
{
	struct candidate candidates[CANDIDATES];
	uint32_t counted_most =
		(uint32_t)max_u64(most, min_u64(most + most / 2, COUNTED_PERMILLE_MAX));
	uint32_t sparse = of_row == NONE ? sparse_segment(model) : NONE, count;
	bool found = false;

	if (sparse != NONE) {
		model_count_needed(model, sparse, false);
		model_take(model, sparse);
		return true;
	}
	count = draw_candidates(model, of_row, candidates);
	while (model->reads < READS) {
		struct candidate *best = best_of(model, candidates, count);

		if (!best || best->permille > most)
			break;
		if (!best->is_sure && model->closer_choices) {
			best->permille = model_sample(model, best->segment, CLOSER_PAGES);
			best->is_sure = true;
			continue;
		}
		uint32_t needed = model_count_needed(model, best->segment, false);

		if (permille(model, best->segment, needed, model->segments[best->segment].used) <=
		    counted_most) {
			model_take(model, best->segment);
			found = true;
			break;
		}
		best->permille = 1001;
		model->closer_choices = CLOSER_CHOICES;
	}
	model->closer_choices -= model->closer_choices > 0;
	return found;
}
