/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Chooses which segment a merge takes next. The index estimates all segments; a few pages are read
 * of some; all records are counted of those that seem worth it (liveness.c).
 */
#include "engine/muninn/choose.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/muninn/directory.h"
#include "engine/muninn/liveness.h"
#include "engine/muninn/repair.h"
#include "engine/muninn/row.h"
#include "engine/records/rooms.h"

enum {
	SAMPLED_PAGES = 4,          /* of a segment, to estimate how much of it is live */
	CLOSER_PAGES = 8,           /* others of the best one, if these had fewer ... */
	SURE_RECORDS = 16,          /* ... records, for so many choices ... */
	CLOSER_CHOICES = 16,        /* ... after one was counted in vain */
	OLD_CANDIDATES = 4,         /* of the segments that are sampled for one victim, at most */
	OLD_BITS = 10,              /* so many of a row's segments count as old ones, as a power */
	GOOD_ENOUGH_PERMILLE = 100, /* a victim with so little live is taken at once */
	/* A segment that has been counted is taken with half as much again, up to this. */
	COUNTED_PERMILLE_MAX = 500,
};

/* What a choice is about. */
enum {
	STEP_FIRST,
	STEP_HISTORY,       /* samples of history's row */
	STEP_COUNT_HISTORY, /* the best of them */
	STEP_ESTIMATED,     /* by what the index estimates */
	STEP_SAMPLES,
	STEP_COUNT,        /* what was found; it may not be worth it */
	STEP_COUNT_ANYWAY, /* it is taken, however much is needed */
};

/*
 * Of a segment whose pages have been read and judged, what may be needed. It costs less to move
 * then than to look for another one.
 */
static uint32_t counted_permille_max(const struct merge_run *run)
{
	uint32_t most = run->merge->live_permille_max;

	return (uint32_t)max_u64(most, min_u64(most + most / 2, COUNTED_PERMILLE_MAX));
}

/*
 * The index has a segment a little sooner: until its buffer is given back, whoever seals it would
 * note it again behind a merge that took it out.
 */
static bool is_sealed(const struct muninn_store *store, uint32_t segment)
{
	return store->segment_rows[segment] != NO_ROW;
}

/* Data that are lost for good stay where they are. */
static bool is_movable(const void *context, uint32_t segment)
{
	const struct muninn_store *store = context;

	return is_sealed(store, segment) && !repair_is_lost(store, segment);
}

/*
 * What has been moved already is not chosen again. A choice must not wait for its end to ask that:
 * until then the segment may become free, and be another one.
 */
static bool is_new(const struct muninn_store *store, const struct victim *victim)
{
	return !merge_run_has_chosen(store->merge_run, victim->segment);
}

/*
 * The next sealed segment of a walk that visits all segments (`of_row` NO_ROW) or those of a row,
 * far apart ones one after the other. False: there are none.
 */
static bool next_segment(struct muninn_store *store, uint16_t of_row, struct victim *victim)
{
	struct merge_walk *walk = &store->merge_walk;
	uint32_t segments = store->geometry.segments;

	for (uint32_t tried = 0; tried < segments; tried++) {
		walk->cursor = (uint32_t)(((uint64_t)walk->cursor + walk->step) % segments);
		if (!is_movable(store, walk->cursor) ||
		    (of_row != NO_ROW && store->segment_rows[walk->cursor] != of_row))
			continue;
		victim->segment = walk->cursor;
		victim->row = store->segment_rows[walk->cursor];
		return true;
	}
	return false;
}

/* The next complete group of a walk over all rows. False: it begins again, or there are none. */
static bool next_group(struct muninn_store *store)
{
	struct merge_walk *walk = &store->merge_walk;

	for (walk->group++; walk->row < store->geometry.rows; walk->row++, walk->group = 0)
		if (walk->group < row_index_groups(store->rows[walk->row].index))
			return true;
	walk->row = 0;
	walk->group = UINT32_MAX;
	return false;
}

static void note_estimate(void *context, const struct sealed_segment *segment,
			  uint32_t live_permille)
{
	const struct muninn_store *store = context;

	store->merge_walk.estimates[segment->segment] =
		(uint16_t)(live_permille * segment->record_bytes / segment_bytes(store));
}

/* Notes what the index estimates of the segments of the walk's next group, and how full they are.
 */
static void estimate_group(struct muninn_store *store)
{
	const struct merge_walk *walk = &store->merge_walk;

	if (next_group(store))
		row_index_estimate(store->rows[walk->row].index, walk->group, note_estimate, store);
}

/*
 * -EAGAIN: by the index's estimates no segment of a complete group is worth it. They grow old, so a
 * group is looked at each time.
 */
static int choose_by_estimates(struct muninn_store *store, uint32_t live_permille_max,
			       struct victim *best)
{
	struct merge_walk *walk = &store->merge_walk;
	uint32_t segments = store->geometry.segments;

	if (!walk->estimates) {
		walk->estimates = malloc(segments * sizeof(*walk->estimates));
		if (!walk->estimates)
			return -ENOMEM;
		memset(walk->estimates, 0xff, segments * sizeof(*walk->estimates));
	}
	estimate_group(store);
	*best = (struct victim){ .segment = NO_SEGMENT, .live_permille = live_permille_max + 1 };
	for (uint32_t segment = 0; segment < segments; segment++) {
		if (!is_movable(store, segment) || walk->estimates[segment] >= best->live_permille)
			continue;
		*best = (struct victim){ .row = store->segment_rows[segment],
					 .segment = segment,
					 .live_permille = walk->estimates[segment] };
	}
	if (best->segment == NO_SEGMENT)
		return -EAGAIN;
	/* Whatever comes of it, not again before its group is looked at again. */
	walk->estimates[best->segment] = UINT16_MAX;
	return 0;
}

/* Where few segments of a group are left, they go too, when the directory needs the space. */
static bool sparse_segment(struct muninn_store *store, struct victim *victim)
{
	struct sealed_segment segment;

	if (directory_used(store) < store->geometry.directory_entries / 4 * 3)
		return false;
	for (victim->row = 0; victim->row < store->geometry.rows; victim->row++)
		if (row_index_find_sparse(store->rows[victim->row].index, &segment)) {
			victim->segment = segment.segment;
			victim->live_permille = 0;
			return !repair_is_lost(store, victim->segment) && is_new(store, victim);
		}
	return false;
}

/*
 * Data that never change are moved now and then, however much is needed, so that their blocks wear
 * like others.
 */
static bool unworn_segment(struct muninn_store *store, struct victim *victim)
{
	victim->segment = space_level(&store->space, is_movable, store);
	if (victim->segment == NO_SEGMENT)
		return false;
	victim->row = store->segment_rows[victim->segment];
	victim->live_permille = 0;
	victim->is_unworn = true;
	return is_new(store, victim);
}

/* ---- step by step ---- */

/* Of a step: the next one follows. */
#define GOES_ON 1

static int go_on(struct merge_run *run, uint32_t step)
{
	run->choice.step = step;
	run->choice.candidate_count = 0;
	return GOES_ON;
}

static bool is_worth_it(const struct merge_run *run)
{
	return run->choice.best.live_permille <= run->merge->live_permille_max;
}

static bool is_worth_moving(const struct merge_run *run)
{
	return run->choice.best.live_permille <= counted_permille_max(run);
}

/* ---- candidates ---- */

static void add_candidate(struct merge_run *run, const struct victim *victim)
{
	struct merge_choice *choice = &run->choice;

	if (!is_new(run->store, victim))
		return;
	choice->candidates[choice->candidate_count++] = (struct merge_candidate){
		.victim = *victim,
		.first = (uint32_t)hash_mix(++run->store->merge_walk.random),
	};
}

/*
 * One of the oldest segments of the next row: where all is put again as often, they have the least
 * that is live. Of equal ones the oldest is taken, since it has had the longest time to change.
 */
static void add_old(struct merge_run *run)
{
	struct muninn_store *store = run->store;
	struct merge_walk *walk = &store->merge_walk;
	uint64_t random = hash_mix(++walk->random);
	uint64_t passed = (random >> 32) % (UINT64_C(1) << random % OLD_BITS);
	struct index_walk segments = { 0 };
	struct sealed_segment segment;
	struct victim victim = { .row = walk->old_row++ % store->geometry.rows };
	bool found = false;

	do
		found |= row_index_next(store->rows[victim.row].index, &segments, &segment);
	while (found && passed-- > 0);
	victim.segment = segment.segment;
	if (found && is_movable(store, victim.segment))
		add_candidate(run, &victim);
}

/* -EAGAIN: there are no sealed segments. */
static int draw_candidates(struct merge_run *run, uint16_t of_row)
{
	struct merge_choice *choice = &run->choice;
	struct victim victim = { 0 };

	for (uint32_t n = 0; of_row == NO_ROW && n < OLD_CANDIDATES; n++)
		add_old(run);
	for (uint32_t n = choice->candidate_count; n < MERGE_CANDIDATES; n++)
		if (next_segment(run->store, of_row, &victim))
			add_candidate(run, &victim);
	return choice->candidate_count ? 0 : -EAGAIN;
}

/* False: pages are missing. */
static bool sample_from(struct merge_run *run, struct merge_candidate *candidate,
			struct sample sample)
{
	uint32_t live;

	merge_run_look(run);
	live = liveness_sample(run, &candidate->victim, &sample);
	if (merge_run_misses(run))
		return false;
	merge_run_got_ahead(run);
	candidate->victim.live_permille = live;
	candidate->is_sure = (candidate->is_sampled && !candidate->is_cut) ||
			     sample.records >= SURE_RECORDS;
	candidate->is_sampled = true;
	candidate->is_cut = sample.is_cut;
	return true;
}

/* What is above that is not worth it, or there is a cheaper candidate already. */
static uint32_t limit_of(const struct merge_run *run)
{
	const struct merge_choice *choice = &run->choice;
	uint32_t limit = run->merge->live_permille_max;

	for (uint32_t n = 0; n < choice->candidate_count; n++) {
		const struct merge_candidate *candidate = &choice->candidates[n];
		uint32_t live = candidate->victim.live_permille;

		if (candidate->is_sampled && !candidate->is_cut && live <= limit)
			limit = live - (live > 0);
	}
	return limit;
}

/* Whether the candidate has been sampled, as far as it takes now. */
static bool is_sampled_to(const struct merge_candidate *candidate, uint32_t limit)
{
	return candidate->is_sampled &&
	       !(candidate->is_cut && candidate->victim.live_permille <= limit);
}

static bool sample(struct merge_run *run, struct merge_candidate *candidate)
{
	uint32_t limit = limit_of(run);

	return is_sampled_to(candidate, limit) ||
	       sample_from(run, candidate,
			   (struct sample){ .first = candidate->first,
					    .pages = SAMPLED_PAGES,
					    .limit = limit });
}

/*
 * The best of many that were judged by few records each is seldom as good as it looks, and to count
 * it takes all its pages. So other pages are asked about it; what they say counts alone.
 */
static bool look_closer(struct merge_run *run, struct merge_candidate *candidate)
{
	uint32_t between = run->store->geometry.segment_pages / CLOSER_PAGES / 2;

	return sample_from(run, candidate,
			   (struct sample){ .first = candidate->first + between,
					    .pages = CLOSER_PAGES,
					    .limit = run->merge->live_permille_max });
}

/* 0: all have been sampled, or a very good one was found. -EINPROGRESS. */
static int sample_candidates(struct merge_run *run)
{
	struct merge_choice *choice = &run->choice;

	for (uint32_t n = 0; n < choice->candidate_count; n++) {
		struct merge_candidate *candidate = &choice->candidates[n];

		if (merge_run_has_done_enough(run))
			return -EINPROGRESS;
		if (sample(run, candidate) &&
		    candidate->victim.live_permille <= GOOD_ENOUGH_PERMILLE)
			return 0;
	}
	return merge_run_lacks(run) ? -EINPROGRESS : 0;
}

/* NULL: none was sampled. */
static struct merge_candidate *best_candidate(struct merge_choice *choice)
{
	struct merge_candidate *best = NULL;

	for (uint32_t n = 0; n < choice->candidate_count; n++) {
		struct merge_candidate *candidate = &choice->candidates[n];

		if (candidate->is_sampled &&
		    (!best || candidate->victim.live_permille < best->victim.live_permille))
			best = candidate;
	}
	return best;
}

/* -EAGAIN: there are no sealed segments. -EINPROGRESS. */
static int choose_by_samples(struct merge_run *run, uint16_t of_row)
{
	struct merge_choice *choice = &run->choice;
	struct merge_candidate *best;
	int result = 0;

	if (!choice->candidate_count)
		result = draw_candidates(run, of_row);
	while (!result) {
		result = sample_candidates(run);
		if (result)
			break;
		best = best_candidate(choice);
		choice->best.live_permille = 1001;
		if (best)
			choice->best = best->victim;
		if (!best || best->is_sure || !run->store->merge_walk.closer_choices ||
		    !is_worth_it(run))
			break;
		if (!look_closer(run, best))
			result = -EINPROGRESS;
	}
	return result;
}

/*
 * When nothing can be removed any more and some go back again and again, history's row alone has
 * something to reclaim: what it says takes the place of what it said before, and few segments of a
 * group keep an image that takes more than they do.
 */
static int step_history(struct merge_run *run)
{
	struct muninn_store *store = run->store;
	uint16_t row = (uint16_t)history_row(&store->geometry);
	struct sealed_segment sparse;
	int result;

	if (!run->choice.candidate_count &&
	    row_index_find_sparse(store->rows[row].index, &sparse) &&
	    !repair_is_lost(store, sparse.segment)) {
		run->choice.best = (struct victim){ .row = row, .segment = sparse.segment };
		return is_new(store, &run->choice.best) ? go_on(run, STEP_COUNT_ANYWAY) : -EAGAIN;
	}
	result = choose_by_samples(run, row);
	if (result == -EINPROGRESS)
		return result;
	return go_on(run, !result && is_worth_it(run) ? STEP_COUNT_HISTORY : STEP_ESTIMATED);
}

/* One that lost a page is moved, however much is needed. */
static int choose_mended(struct merge_run *run)
{
	struct victim *best = &run->choice.best;

	if (!repair_next(run->store, &best->segment) || !is_sealed(run->store, best->segment) ||
	    !is_new(run->store, best))
		return -EAGAIN;
	best->row = run->store->segment_rows[best->segment];
	return go_on(run, STEP_COUNT_ANYWAY);
}

static int step_first(struct merge_run *run)
{
	struct muninn_store *store = run->store;

	run->choice.best = (struct victim){ 0 };
	if (run->merge->choice == RECORD_MERGE_MENDED)
		return choose_mended(run);
	if (sparse_segment(store, &run->choice.best) || unworn_segment(store, &run->choice.best))
		return go_on(run, STEP_COUNT_ANYWAY);
	run->choice.best = (struct victim){ 0 };
	return go_on(run, room_has_segment(store->geometry.room_kept, RECORD_ROOM_RETURN,
					   store->space.count)
				  ? STEP_ESTIMATED
				  : STEP_HISTORY);
}

/*
 * The index estimates complete groups only, and hardly sees what a hot key has put again. So what
 * it does not find is looked for by samples.
 */
static int step_estimated(struct merge_run *run)
{
	struct merge_choice *choice = &run->choice;
	int result;

	if (run->merge->choice != RECORD_MERGE_ESTIMATED)
		return go_on(run, STEP_SAMPLES);
	if (!choice->candidate_count) {
		result = choose_by_estimates(run->store, run->merge->live_permille_max,
					     &choice->best);
		if (result)
			return result == -EAGAIN ? go_on(run, STEP_SAMPLES) : result;
		add_candidate(run, &choice->best);
		if (!choice->candidate_count)
			return go_on(run, STEP_SAMPLES);
	}
	if (!sample(run, &choice->candidates[0]))
		return -EINPROGRESS;
	choice->best = choice->candidates[0].victim;
	return go_on(run, is_worth_it(run) ? STEP_COUNT : STEP_SAMPLES);
}

/* A few pages tell which segment is best. Whether it is worth moving takes counting. */
static int step_samples(struct merge_run *run)
{
	int result = choose_by_samples(run, NO_ROW);

	if (!result && !is_worth_it(run))
		result = -EAGAIN;
	if (result == -EAGAIN && !run->tried_again && repair_try_again(run->store)) {
		run->tried_again = true;
		return go_on(run, STEP_SAMPLES);
	}
	if (result)
		return result;
	run->choice.step = STEP_COUNT;
	return GOES_ON;
}

/* What was counted is not worth it: the next best one of the candidates may be. */
static int pass_over(struct merge_run *run)
{
	struct merge_choice *choice = &run->choice;

	for (uint32_t n = 0; n < choice->candidate_count; n++)
		if (choice->candidates[n].victim.segment == choice->best.segment)
			choice->candidates[n].victim.live_permille = 1001;
	choice->step = STEP_SAMPLES;
	run->store->merge_walk.closer_choices = CLOSER_CHOICES;
	return merge_run_has_read_enough(run) ? -EAGAIN : GOES_ON;
}

static int step_count(struct merge_run *run)
{
	bool is_asked = run->choice.step != STEP_COUNT_ANYWAY;
	int result = liveness_count(run, is_asked && run->choice.best.live_permille <=
							     GOOD_ENOUGH_PERMILLE);

	if (result)
		return result;
	if (run->choice.step == STEP_COUNT_ANYWAY)
		return merge_run_has_read_enough(run) ? -EAGAIN : 0;
	if (is_worth_moving(run))
		return 0;
	return run->choice.step == STEP_COUNT_HISTORY ? go_on(run, STEP_ESTIMATED) : pass_over(run);
}

static int (*const steps[])(struct merge_run *run) = {
	[STEP_FIRST] = step_first,         [STEP_HISTORY] = step_history,
	[STEP_COUNT_HISTORY] = step_count, [STEP_ESTIMATED] = step_estimated,
	[STEP_SAMPLES] = step_samples,     [STEP_COUNT] = step_count,
	[STEP_COUNT_ANYWAY] = step_count,
};

int choose_segment(struct merge_run *run, struct victim *best)
{
	int result = GOES_ON;

	while (result == GOES_ON)
		result = steps[run->choice.step](run);
	if (result == -EINPROGRESS)
		return result;
	*best = run->choice.best;
	run->store->merge_walk.closer_choices -= run->store->merge_walk.closer_choices > 0;
	go_on(run, STEP_FIRST);
	return result;
}

uint32_t choose_calls_max(const struct muninn_store *store)
{
	return store->geometry.segments / (MERGE_CANDIDATES - OLD_CANDIDATES) + 1;
}
