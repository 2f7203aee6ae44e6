/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Simulates merging: its steps, and the whole. */
#include "bench/merge_model_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"

static const char *const way_names[] = {
	[MERGE_WAY_ACTIVE] = "active", [MERGE_WAY_GROUP] = "group", [MERGE_WAY_TWO] = "two groups",
	[MERGE_WAY_APART] = "apart",   [MERGE_WAY_BATCH] = "batch", [MERGE_WAY_PART] = "part",
};

static const char *const update_names[] = {
	[MERGE_UPDATES_RANDOM] = "random",
	[MERGE_UPDATES_PARETO] = "pareto",
	[MERGE_UPDATES_HOT] = "hot",
};

const char *merge_way_name(enum merge_way way)
{
	return way_names[way];
}

const char *merge_updates_name(enum merge_updates updates)
{
	return update_names[updates];
}

/* ---- steps ---- */

static uint32_t capacity(const struct model *model)
{
	return (uint32_t)((uint64_t)model->options->segments * model->segment_records / 10 * 9);
}

static uint32_t permille_max(const struct model *model)
{
	const uint32_t range = HISTORY_MUCH_PERMILLE - HISTORY_LITTLE_PERMILLE;
	uint64_t kept = (model->now - model->horizon) * UINT64_C(1000) / capacity(model);
	uint64_t more = kept - min_u64(kept, HISTORY_LITTLE_PERMILLE);

	if (!model->options->history)
		return LIVE_PERMILLE_AUTOMATIC;
	return LIVE_PERMILLE_AUTOMATIC -
	       (uint32_t)((LIVE_PERMILLE_AUTOMATIC - LIVE_PERMILLE_CHEAP) * min_u64(more, range) /
			  range);
}

static void give_up_history(struct model *model, uint32_t wanted)
{
	uint64_t kept = model->now - model->horizon;
	uint64_t more =
		max_u64(2 * UINT64_C(1) * wanted * model->segment_records, kept / RECLAIM_PART);

	model->horizon += (uint32_t)min_u64(kept, more);
	model->futile = 0;
}

/* Whether a step frees more than it takes. */
static bool step(struct model *model, uint32_t wanted, uint32_t most)
{
	uint32_t before = model->sealed;
	bool found;

	model->reads = 0;
	model->step_began = model->page_reads;
	model->chosen_count = 0;
	model->taken = 0;
	switch (model->options->way) {
	case MERGE_WAY_BATCH:
		found = model_step_batch(model, wanted, most);
		break;
	case MERGE_WAY_GROUP:
	case MERGE_WAY_TWO:
	case MERGE_WAY_PART:
		found = model_step_group(model, most);
		break;
	default:
		found = model_step_single(model, wanted, most);
		break;
	}
	model_free_chosen(model, 0);
	model->merge_reads += model->reads;
	return found && model->sealed < before;
}

/* False: the device is full. */
static bool make_space(struct model *model)
{
	for (uint32_t steps = 0; model->sealed > model->sealed_max; steps++) {
		uint32_t wanted =
			(uint32_t)max_u64(model->sealed - model->sealed_max, SEGMENTS_AT_ONCE);

		if (steps == STEPS_MAX || model->unused_count < 2 * GROUP + 2)
			return false;
		model->futile = step(model, wanted, permille_max(model)) ? 0 : model->futile + 1;
		if (model->options->history && model->futile >= FUTILE_STEPS)
			give_up_history(model, wanted);
	}
	return true;
}

/* ---- the whole ---- */

static void begin(struct model *model)
{
	const struct merge_model_options *options = model->options;

	sampler_begin(&model->sampler,
		      options->updates == MERGE_UPDATES_PARETO ? DISTRIBUTION_PARETO
							       : DISTRIBUTION_RANDOM,
		      &(struct sampler_options){ .pairs = model->keys,
						 .seed = options->seed,
						 .pareto_shape = PARETO_SHAPE_DEFAULT,
						 .zipfian_theta = ZIPFIAN_THETA_DEFAULT });
	model->walk_step = walk_step(model->segment_count);
	model->random = random_stream(options->seed, 0);
	for (uint32_t n = 0; n < model->segment_count; n++) {
		model->segments[n].records =
			model->segments[0].records + n * (uint64_t)model->segment_records;
		model->unused[model->unused_count++] = model->segment_count - 1 - n;
	}
	for (uint32_t n = 0; n < model->group_count; n++)
		model->free_groups[model->free_group_count++] = model->group_count - 1 - n;
	for (uint32_t n = 0; n < options->rows; n++) {
		model->rows[n] = (struct model_row){ NONE, NONE, NONE, NONE, 0, 0, 0 };
		model->rows[n].active = model_take_segment(model, n);
		model->rows[n].apart = model_take_segment(model, n);
		model_take_group(model, n, NONE);
	}
	memset(model->newest, 0xff, model->keys * sizeof(*model->newest));
}

static bool make(struct model *model)
{
	const struct merge_model_options *options = model->options;
	uint32_t mark = options->segments / 10 + options->rows + MARK_SEGMENTS;

	model->segment_records = PAGES * options->page_records;
	model->keys = (uint32_t)((uint64_t)options->segments * model->segment_records *
				 options->live_permille / 1000);
	model->sealed_max = options->segments - mark;
	/* Beside the device's there are buffers, and space for what a step takes. */
	model->segment_count = options->segments + 2 * options->rows + 4 * GROUP;
	model->group_count = model->segment_count + options->rows;
	model->segments = calloc(model->segment_count, sizeof(*model->segments));
	model->unused = calloc(model->segment_count, sizeof(*model->unused));
	model->groups = calloc(model->group_count, sizeof(*model->groups));
	model->free_groups = calloc(model->group_count, sizeof(*model->free_groups));
	model->rows = calloc(options->rows, sizeof(*model->rows));
	model->newest = calloc(model->keys, sizeof(*model->newest));
	model->seen = calloc(model->keys, sizeof(*model->seen));
	model->read_at = calloc(model->segment_count * (size_t)PAGES, sizeof(*model->read_at));
	if (model->segments)
		model->segments[0].records =
			calloc((size_t)model->segment_count * model->segment_records,
			       sizeof(struct record));
	return model->segments && model->unused && model->groups && model->free_groups &&
	       model->rows && model->newest && model->seen && model->read_at &&
	       model->segments[0].records;
}

static void destroy(struct model *model)
{
	if (model->segments)
		free(model->segments[0].records);
	free(model->segments);
	free(model->unused);
	free(model->groups);
	free(model->free_groups);
	free(model->rows);
	free(model->newest);
	free(model->seen);
	free(model->read_at);
}

/* The part of a row's segments whose numbers may include one of the past. */
static double ranges(struct model *model)
{
	uint64_t among = 0, all = 0;
	uint32_t past = model->options->history ? model->now - model->horizon : model->now / 4;

	for (uint32_t n = 0; n < QUESTIONS; n++) {
		uint32_t at = model->now - (uint32_t)random_below(&model->random, past + 1);

		for (uint32_t s = 0; s < model->segment_count; s++) {
			const struct segment *segment = &model->segments[s];

			all += segment->sealed;
			among += segment->sealed && segment->first <= at && segment->last >= at;
		}
	}
	return all ? (double)among / (double)all : 0;
}

static void report_on(struct model *model, uint64_t updates, struct merge_model_report *report)
{
	double freed = (double)max_u64(1, model->freed);

	report->programs = (double)model->programs / (double)updates;
	report->moved = (double)model->moved / freed / model->segment_records;
	report->reads = (double)model->merge_reads / freed;
	report->entries = (double)model->entries / model->keys;
	report->ranges = ranges(model);
	report->history = !model->options->history ? 0
						   : (double)(model->now - model->horizon) /
							     (double)model->options->segments /
							     model->segment_records;
	report->aside = (double)model->aside / freed / model->segment_records;
	report->transient = model->transient;
}

static bool update(struct model *model, uint64_t updates)
{
	for (uint64_t n = 0; n < updates; n++) {
		model_put(model, model_draw_key(model));
		if (!make_space(model))
			return false;
	}
	return true;
}

int merge_model_run(const struct merge_model_options *options, struct merge_model_report *report)
{
	struct model model = { .options = options };
	int result = make(&model) ? 0 : -ENOMEM;
	uint64_t updates = (uint64_t)options->segments * model.segment_records * options->turns / 2;

	*report = (struct merge_model_report){ 0 };
	if (!result) {
		begin(&model);
		for (uint32_t key = 0; key < model.keys; key++)
			model_put(&model, key);
		report->full = !update(&model, updates);
		model.programs = model.merge_reads = model.freed = model.moved = model.aside = 0;
		model.transient = 0;
		report->full = report->full || !update(&model, updates);
		report_on(&model, updates, report);
	}
	destroy(&model);
	return result;
}
